//! Reading a scenario.

use crate::agent::{Ending, Line, Scripted, count_urgency};
use crate::world::people::{Act, Cue, When, answer};
use autopilot_core::event::{
    Bill, Facts, HaltWhy, HoldWhy, MachineFault, Outcome, RunSpec, TaskEntry,
};
use autopilot_core::flow::Flow;
use autopilot_core::flow::review::ReviewIssue;
use autopilot_core::guard::{
    self, Change, ChangedLine, GuardRules, LeakForm, LeakPlace, SecretLeak, Severity, secret,
};
use autopilot_core::id::Micros;
use autopilot_core::input::{Ask, AttemptWord};
use autopilot_core::limit::{Limits, ReviewGate, YardstickChanges};
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::three_runs::{AcceptedTest, OpenTest, OpenTestKind};
use std::collections::{BTreeSet, VecDeque};

pub struct Script {
    pub spec: RunSpec,
    pub agents: Scripted,
    pub cues: VecDeque<Cue>,
}

pub fn script(text: &str) -> Result<Script, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let head = lines.next().ok_or("the scenario is empty")?;
    let mut script =
        Script { spec: run(head)?, agents: Scripted::default(), cues: VecDeque::new() };
    script.divide(head)?;
    let mut limits = script.spec.limits.clone();
    for line in lines {
        if let Some((name, items)) = line.split_once(':') {
            script.add_items(name.trim(), items)?;
        } else if let Some(words) = line.strip_prefix("with ") {
            for word in words.split(',') {
                script.spec.switches.insert(switch(word.trim())?);
            }
        } else if let Some(words) = line.strip_prefix("without ") {
            for word in words.split(',') {
                script.spec.switches.remove(&switch(word.trim())?);
            }
        } else if let Some(words) = line.strip_prefix("limit ") {
            for words in words.split(',') {
                limit(&mut limits, words.trim())?;
            }
            script.spec.limits = limits.clone();
        } else {
            for words in line.split(';') {
                let cue = cue(words.trim(), &mut limits)?;
                script.cues.push_back(cue);
            }
        }
    }
    Ok(script)
}

fn run(head: &str) -> Result<RunSpec, String> {
    let (flow, names) = head.split_once(' ').ok_or_else(|| format!("`{head}` names no task"))?;
    let flow = match flow {
        "queue" => Flow::Queue,
        "task" | "together" => Flow::Task,
        "plan" => Flow::Plan,
        "goal" => Flow::Goal,
        other => return Err(format!("`{other}` is no flow")),
    };
    let mut tasks = Vec::new();
    if matches!(flow, Flow::Task | Flow::Queue) {
        for words in names.split(';') {
            tasks.push(task(words)?.0);
        }
    }
    Ok(RunSpec {
        id: "run".into(),
        flow,
        title: "a scenario".into(),
        source: "tasks/".into(),
        started_by: "a person".into(),
        base_branch: "main".into(),
        base: "b0".into(),
        branch: "autopilot/run".into(),
        switches: match flow.row().needs_tests {
            false => BTreeSet::from([Switch::HasTests]),
            true => BTreeSet::from([Switch::Review, Switch::Uat]),
        },
        limits: Limits::default(),
        config: "c".into(),
        red_base_allowed: false,
        holdout: None,
        options: Default::default(),
        whole: TaskEntry::default(),
        plan: None,
        tasks,
    })
}

/// `b after a, expand, priority 2, paths src docs, by own, model m, in big`, and what it is brought by: the run if
/// nothing is said.
fn task(words: &str) -> Result<(TaskEntry, String), String> {
    let mut parts = words.split(',').map(str::trim);
    let head = parts.next().unwrap_or_default();
    let (name, first) = head.split_once(' ').unwrap_or((head, ""));
    let mut task = TaskEntry { name: name.to_owned(), ..TaskEntry::default() };
    let mut above = String::new();
    for part in std::iter::once(first).chain(parts).filter(|part| !part.is_empty()) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match words[..] {
            ["after", ref needs @ ..] => task.depends_on = owned(needs),
            ["paths", ref paths @ ..] => task.paths = owned(paths),
            ["priority", n] => task.priority = n.parse().map_err(|_| format!("`{n}`?"))?,
            ["expand"] => task.expand = true,
            ["in", parent] => above = parent.to_owned(),
            ["by", agent] => task.by.agent = Some(agent.to_owned()),
            ["model", model] => task.by.model = Some(model.to_owned()),
            _ => return Err(format!("`{part}` says nothing of a task")),
        }
    }
    Ok((task, above))
}

impl Script {
    /// The tasks of a plan, by what brings them, or the steps of a workflow.
    fn divide(&mut self, head: &str) -> Result<(), String> {
        if let Some(names) = head.strip_prefix("goal ") {
            for words in names.split(';') {
                self.agents.steps.push(task(words.trim())?.0);
            }
            count_urgency(&mut self.agents.steps);
        }
        let Some(names) = head.strip_prefix("plan ") else { return Ok(()) };
        for words in names.split(';') {
            let (task, above) = task(words.trim())?;
            self.agents.planned.entry(above).or_default().push(task);
        }
        self.agents.planned.values_mut().for_each(|tasks| count_urgency(tasks));
        Ok(())
    }

    /// A task that mends has a name before it exists.
    fn has(&self, name: &str) -> bool {
        let mut planned = self.agents.planned.values().flatten().chain(&self.spec.tasks);
        let mut brought = self.agents.lines.values().flatten().flat_map(|line| &line.brings);
        let is_step = |task: &TaskEntry| {
            let rest = name.strip_prefix(task.name.as_str()).unwrap_or("?");
            rest.is_empty() || rest.strip_prefix("-i").is_some_and(|n| number(n).is_ok())
        };
        name.starts_with("mend-")
            || self.agents.steps.iter().any(is_step)
            || planned.any(|task| task.name == name)
            || brought.any(|tasks| tasks.iter().any(|task| task.name == name))
    }

    fn add_items(&mut self, name: &str, items: &str) -> Result<(), String> {
        let name = match name {
            "run" => "",
            name if self.has(name) => name,
            name => return Err(format!("no task `{name}`")),
        };
        for words in items.split(',') {
            let line = item(words.trim())?;
            self.agents.lines.entry(name.to_owned()).or_default().push_back(line);
        }
        Ok(())
    }
}

/// `criterion:2`, `command:tests`, `src/a.rs:1` or `nothing`.
fn issue(severity: &str, cited: &str) -> Result<ReviewIssue, String> {
    let severity = match severity {
        "blocker" => Severity::Blocker,
        "major" => Severity::Major,
        "minor" => Severity::Minor,
        other => return Err(format!("`{other}` is no severity")),
    };
    // Words that sound like evidence are none.
    let message = "the latest test fails an acceptance criterion".to_owned();
    let mut issue = ReviewIssue {
        severity,
        message,
        fix: "do it".to_owned(),
        file: None,
        line: None,
        criterion: None,
        command: None,
    };
    match cited.split_once(':') {
        None if cited == "nothing" => {}
        None => return Err(format!("`{cited}` can't be cited")),
        Some(("criterion", value)) => issue.criterion = Some(number(value)?),
        Some(("command", name)) => issue.command = Some(name.to_owned()),
        Some((file, line)) => {
            (issue.file, issue.line) = (Some(file.to_owned()), Some(number(line)?));
        }
    }
    Ok(issue)
}

fn item(words: &str) -> Result<Line, String> {
    let mut rest = words.split_whitespace();
    let mut next = || rest.next().ok_or_else(|| format!("`{words}` is cut short"));
    let step = step(next()?)?;
    let ending = match next()? {
        "ok" | "approves" | "done" => Ending::Ok,
        "fails" | "objects" | "conflicts" | "unfinished" => Ending::Fails,
        "times-out" => Ending::TimesOut,
        "misconfigured" => Ending::Misconfigured,
        "leaks" => leaks(next()?)?,
        "changes" => super::change::changes(next()?)?,
        "broke" => Ending::Broke,
        "hangs" => Ending::Hangs,
        "lost" => Ending::Lost,
        "mute" => Ending::Mute,
        "quota" => Ending::Quota { ms: duration(next()?)? },
        "empty" => Ending::Away { why: HoldWhy::Quota },
        "refused" => Ending::Away { why: HoldWhy::Auth },
        "unreachable" => Ending::Away { why: HoldWhy::Outage },
        "unknown-model" => Ending::Away { why: HoldWhy::Model },
        "not-installed" => Ending::Away { why: HoldWhy::Program },
        "hindered" => Ending::Away { why: HoldWhy::Machine(MachineFault::DiskFull) },
        "git-fails" => Ending::Away { why: HoldWhy::Machine(MachineFault::Git) },
        other => return Err(format!("`{other}` is no ending")),
    };
    let mut line = Line {
        step,
        ending,
        tree: None,
        bills: Vec::new(),
        given: None,
        fingerprint: None,
        issue: None,
        brings: None,
        is_warm: false,
        open: Vec::new(),
        accepted: Vec::new(),
        map: None,
        is_begun: false,
    };
    while let Ok(word) = next() {
        match word {
            "tree" => line.tree = Some(next()?.to_owned()),
            "like" => line.fingerprint = Some(next()?.to_owned()),
            "citing" => line.issue = Some(issue(next()?, next()?)?),
            "bringing" => line.brings = Some(names(next()?)),
            "given" => line.given = Some(money(next()?)?),
            "warm" => line.is_warm = true,
            "opens" => line.open.push(open(next()?, OpenTestKind::Fails)),
            "loses" => line.open.push(open(next()?, OpenTestKind::IsGone)),
            "uncompiled" => line.open.push(open(next()?, OpenTestKind::DoesNotCompile)),
            "accepts" => {
                let (id, reason) = (next()?.to_owned(), "the task needs it".to_owned());
                line.accepted.push(AcceptedTest { id, reason });
            }
            "maps" => line.map.get_or_insert_default().add(next()?)?,
            usd => line.bills.push(money(usd)?),
        }
    }
    Ok(line)
}

fn open(id: &str, kind: OpenTestKind) -> OpenTest {
    OpenTest { id: id.to_owned(), kind, file: None }
}

/// How a step ends that finds a secret in the change, weighed as in a real one: `known` for the value
/// of a known secret, `example` for what only looks like a key, `outside` for a known value that would
/// leave the machine with its history.
fn leaks(what: &str) -> Result<Ending, String> {
    let leak = |place| vec![SecretLeak { secret: "KEY".to_owned(), form: LeakForm::Plain, place }];
    let path = || "src/a.rs".to_owned();
    let change = match what {
        "known" => {
            let place = LeakPlace::File { path: path(), line: 1 };
            Change { leaks: leak(place), ..Change::default() }
        }
        "example" => {
            let text = format!("AKIA{}", "IOSFODNN7EXAMPLE");
            let added = vec![ChangedLine { path: path(), line: 1, text }];
            Change { added, ..Change::default() }
        }
        "outside" => {
            let leaks = leak(LeakPlace::OldFile { path: path(), line: 1 });
            return Ok(if secret::withheld(&leaks).is_some() { Ending::Fails } else { Ending::Ok });
        }
        other => return Err(format!("`{other}` can't be leaked")),
    };
    let rules = GuardRules { diff_line_cap: 9, forbid_todos: true, ..GuardRules::default() };
    let findings = guard::check(&change, &rules);
    if findings.is_empty() {
        return Err(format!("the leak `{what}` was not found"));
    }
    Ok(if guard::broken_rules(&findings).is_empty() { Ending::Ok } else { Ending::Fails })
}

/// `a+b`, `b<a` for one that needs another, or `nothing`.
fn names(words: &str) -> Vec<TaskEntry> {
    let names = words.split('+').filter(|name| *name != "nothing");
    let task = |words: &str| {
        let mut names = words.split('<').map(str::to_owned);
        let name = names.next().unwrap_or_default();
        TaskEntry { name, depends_on: names.collect(), ..TaskEntry::default() }
    };
    names.map(task).collect()
}

fn step(word: &str) -> Result<Step, String> {
    let found = Step::ALL.into_iter().find(|step| step.word() == word);
    found.ok_or_else(|| format!("`{word}` is no step"))
}

fn switch(word: &str) -> Result<Switch, String> {
    match word {
        "baseline" => Ok(Switch::Baseline),
        "review" => Ok(Switch::Review),
        "uat" => Ok(Switch::Uat),
        "push" => Ok(Switch::Push),
        "pr" => Ok(Switch::Pr),
        "plan-gate" => Ok(Switch::PlanGate),
        "end-gate" => Ok(Switch::EndGate),
        "proof" => Ok(Switch::HasTests),
        "fail-fast" => Ok(Switch::FailFast),
        "spare-review" => Ok(Switch::SpareReview),
        "spare-cases" => Ok(Switch::SpareCases),
        "cold-proof" => Ok(Switch::ColdProof),
        "prove-base" => Ok(Switch::ProveBase),
        "red-green" => Ok(Switch::RedGreen),
        "three-runs" => Ok(Switch::ThreeRuns),
        "whole-review" => Ok(Switch::WholeReview),
        other => Err(format!("`{other}` is no switch")),
    }
}

fn limit(limits: &mut Limits, words: &str) -> Result<(), String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    match words[..] {
        ["workers", n] => limits.workers_max = count(n)?,
        ["effects", n] => limits.effects_max = count(n)?,
        ["overlaps", "wait"] => limits.overlaps_wait = true,
        ["overlaps", "go"] => limits.overlaps_wait = false,
        ["rounds", n] => limits.rounds_max = count(n)?,
        ["rounds", "below", n] => limits.rounds_below_max = Some(count(n)?),
        ["lifetime", n] => limits.rounds_lifetime_max = count(n)?,
        ["retries", of, n] => {
            limits.retries.insert(step(of)?, count(n)?);
        }
        ["broken", n] => limits.retries_max = count(n)?,
        ["interruptions", n] => limits.interruptions_max = count(n)?,
        ["wait", time] => limits.wait_quota_max_ms = duration(time)?,
        ["usd", n] => limits.usd_max = Some(money(n)?),
        ["usd", "per", "task", n] => limits.usd_per_task_max = Some(money(n)?),
        ["wall", time] => limits.wall_max_ms = Some(duration(time)?),
        ["same", n] => limits.same_failures_max = count(n)?,
        ["no-ops", n] => limits.no_ops_max = count(n)?,
        ["lanes", of, ref names @ ..] => {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            limits.lanes.insert(step(of)?, names);
        }
        ["agent", of, ref names @ ..] => {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            limits.agents.insert(of.to_owned(), names);
        }
        ["yardstick", policy] => {
            let known = YardstickChanges::ALL.into_iter().find(|known| known.row() == &policy);
            limits.yardstick_changes = known.ok_or_else(|| format!("`{policy}`?"))?;
        }
        ["review", "required"] => limits.review = ReviewGate::Required,
        ["review", "evidence"] => limits.review = ReviewGate::Evidence,
        ["review", "advisory"] => limits.review = ReviewGate::Advisory,
        _ => return Err(format!("`{}` is no limit", words.join(" "))),
    }
    Ok(())
}

fn cue(words: &str, limits: &mut Limits) -> Result<Cue, String> {
    let (what, when) = if let Some((what, place)) = words.split_once(" during ") {
        let (task, step) = place_of(place)?;
        (what, Some(When::During(task, step)))
    } else if let Some((what, place)) = words.split_once(" after ") {
        let (task, step) = place_of(place)?;
        (what, Some(When::After(task, step)))
    } else {
        (words, None)
    };
    let halt = |why, now| Act::Ask(Ask::Halt { why, now });
    let review = |on| Act::Ask(Ask::Switch { switch: Switch::Review, on, by: "a person".into() });
    let parts: Vec<&str> = what.split_whitespace().collect();
    let act = match parts[..] {
        ["crash"] => Act::Crash,
        ["boot"] => Act::Boot,
        ["short", of] => Act::Room(Some(of.to_owned())),
        ["room"] => Act::Room(None),
        ["approve"] => Act::Ask(answer(false)),
        ["reject"] => Act::Ask(answer(true)),
        ["reject", "silently"] => {
            Act::Ask(Ask::Reject { by: "a person".into(), why: String::new() })
        }
        ["look"] => Act::Look,
        ["stop"] => halt(HaltWhy::Stop, false),
        ["stop", "now"] => halt(HaltWhy::Stop, true),
        ["pause"] => halt(HaltWhy::Pause, false),
        ["resume"] => Act::Ask(Ask::Resume),
        ["retry", "run"] => Act::Ask(Ask::Retry { task: String::new() }),
        ["retry", task] => Act::Ask(Ask::Retry { task: task.into() }),
        ["continue", task] => Act::Continue { task: task.into(), said: 1 },
        ["continue", task, "again"] => Act::Continue { task: task.into(), said: 2 },
        ["skip", "run"] => Act::Ask(Ask::Skip { task: String::new() }),
        ["skip", task] => Act::Ask(Ask::Skip { task: task.into() }),
        ["waive", "review"] => review(false),
        ["want", "review"] => review(true),
        ["set", ..] => {
            limit(limits, &parts[1..].join(" "))?;
            Act::Ask(Ask::Limit(Box::new(limits.clone())))
        }
        ["late", task, of, said] => late(task, step(of)?, said)?,
        _ => return Err(format!("`{what}` is nothing that can happen")),
    };
    let when = match (when, &act) {
        (Some(when), _) => when,
        (None, Act::Ask(Ask::Halt { .. })) => When::Next,
        (None, _) => When::Rest,
    };
    Ok(Cue { when, act })
}

fn late(task: &str, step: Step, said: &str) -> Result<Act, String> {
    let word = match said {
        "ok" => AttemptWord::Ended { outcome: Outcome::Passed, facts: Box::new(Facts::default()) },
        "broke" => AttemptWord::Ended {
            outcome: Outcome::Broke { why: "late".into() },
            facts: Box::default(),
        },
        usd => AttemptWord::Bill(Bill { usd: money(usd)?, ..Bill::default() }),
    };
    let task = if task == "run" { "" } else { task };
    Ok(Act::Late { task: task.to_owned(), step, word })
}

fn place_of(words: &str) -> Result<(Option<String>, Step), String> {
    let (task, of) = match words.trim().rsplit_once(' ') {
        Some((task, of)) => (Some(task.trim().to_owned()), of),
        None => (None, words.trim()),
    };
    let task = task.map(|task| if task == "run" { String::new() } else { task });
    Ok((task, step(of)?))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn count(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn money(word: &str) -> Result<Micros, String> {
    let usd = word.trim_start_matches('$').parse().map_err(|_| format!("`{word}` is no price"))?;
    Ok(Micros::from_usd(usd))
}

fn duration(word: &str) -> Result<u64, String> {
    let (digits, unit) = word.split_at(word.len().saturating_sub(1));
    let unit_ms = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("`{word}` is no duration")),
    };
    Ok(number(digits)? * unit_ms)
}

//! `autopilot show`: a run or a task in full, with the evidence, from the records.

mod goal;

use super::past::{Named, Past, Told};
use super::{Done, done};
use crate::cli::{Global, Show};
use crate::terminal;
use autopilot_core::event::{Outcome, Record};
use autopilot_core::flow::Flow;
use autopilot_core::state::Task;
use autopilot_host::escape::one_line;
use autopilot_view::history::{RunHistory, Tried, history};
use autopilot_view::sessions::{Session, is_current, sessions};
use autopilot_view::{self as view, state_json};
use goal::Goal;
use serde_json::{Value, json};
use std::fmt::Write;

pub fn show(global: &Global, args: &Show) -> Done {
    let past = Past::must(global)?;
    let named = past.named(args.id.as_deref())?;
    let (told, only) = match &named {
        Named::Run(told) => (told, None),
        Named::Task(told, id) => (told, Some(told.state.task(*id))),
    };
    let records = past.records(&told.run.id)?;
    let history = history(&records);
    let current = current(told, &records);
    let redactor = past.redactor(&told.state);
    let is_goal = told.state.run.flow == Flow::Goal && only.is_none();
    let goal = is_goal.then(|| Goal::of(&past, told, &history, &records));
    if global.json {
        let mut object = object(told, only, &history, &current);
        if let (Value::Object(fields), Some(Value::Object(more))) =
            (&mut object, goal.map(|goal| goal.object()))
        {
            fields.extend(more);
        }
        redactor.redact_json(&mut object);
        terminal::json(&object);
        return done();
    }
    if let Some(goal) = goal {
        let text = format!("{}{}", of_run(told, &history), goal.text());
        terminal::say(&redactor.redact(text.trim_end()));
        return done();
    }
    let mut text = match only {
        Some(_) => String::new(),
        None => of_run(told, &history),
    };
    for task in told.state.tasks.iter().filter(|task| is_shown(task, only, &history)) {
        text.push_str(&of_task(task, &history));
        for session in current.iter().filter(|session| session.task == task.id) {
            let of = (session.step.word(), one_line(&session.id));
            let _ = writeln!(text, "  {} is in session {} now", of.0, of.1);
        }
    }
    terminal::say(&redactor.redact(text.trim_end()));
    done()
}

/// The sessions the steps were in last.
fn current(told: &Told, records: &[Record]) -> Vec<Session> {
    let all = sessions(&told.run.id, records);
    let is_current = |session: &&Session| is_current(session, &all, &told.state);
    all.iter().filter(is_current).cloned().collect()
}

/// The root is shown when it did something itself.
fn is_shown(task: &Task, only: Option<&Task>, history: &RunHistory) -> bool {
    match only {
        Some(only) => only.id == task.id,
        None => task.parent.is_some() || history.of_task(task.id).next().is_some(),
    }
}

fn of_run(told: &Told, history: &RunHistory) -> String {
    let run = &told.state.run;
    let mut text = format!("run {}  {}  {}\n", told.run.id, told.word(), one_line(&told.run.title));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10}{}", one_line(value));
    };
    row("flow", run.flow.word());
    row("source", &run.source);
    row("begun by", &run.started_by);
    row("started", &run.started_at.rfc3339());
    row("branch", &format!("{} from {} at {}", run.branch, run.base_branch, short(&run.base)));
    row("worked", &view::duration(run.active_ms));
    let spent = run.spent;
    row(
        "cost",
        &format!(
            "{} ({} tokens in, {} out)",
            view::money::cost(spent),
            spent.tokens_in,
            spent.tokens_out
        ),
    );
    if let Some(why) = told.state.root().and_then(view::failure) {
        row("failed", &why.to_string());
    }
    for remark in history.remarks.iter().filter(|remark| remark.task.is_none()) {
        let _ = writeln!(text, "  {}  {}", remark.at.rfc3339(), one_line(&remark.text));
    }
    text
}

fn of_task(task: &Task, history: &RunHistory) -> String {
    let name = if task.parent.is_some() { task.name() } else { "run" };
    let (word, title) = (view::task_word(task), one_line(&task.spec.title));
    let mut text = format!("\ntask {name}  {word}  {title}\n");
    if let Some(why) = view::failure(task) {
        let _ = writeln!(text, "  failed: {}", one_line(&why.to_string()));
    }
    let bill = task.spent.bill;
    let _ = writeln!(
        text,
        "  {} iterations, {} attempts, {}, {} ({} tokens in, {} out)",
        task.round,
        task.spent.attempts,
        view::duration(task.spent.work_ms),
        bill.usd,
        bill.tokens_in,
        bill.tokens_out,
    );
    for (what, commit) in [("base", &task.base), ("tree", &task.tree), ("commit", &task.commit)] {
        if let Some(commit) = commit {
            let _ = writeln!(text, "  {what} {commit}");
        }
    }
    let mut round = 0;
    for tried in history.of_task(task.id) {
        if tried.round != round {
            round = tried.round;
            let _ = writeln!(text, "  iteration {round}");
        }
        text.push_str(&of_attempt(tried));
    }
    for remark in history.remarks_on(task.id) {
        let _ = writeln!(text, "  {}  {}", remark.at.rfc3339(), one_line(&remark.text));
    }
    text
}

fn of_attempt(tried: &Tried) -> String {
    let (facts, id) = (&tried.facts, tried.id.to_string());
    let mut parts = vec![outcome(tried)];
    parts.extend(facts.exit.map(|code| format!("exit {code}")));
    parts.extend(facts.signal.map(|signal| format!("signal {signal}")));
    if tried.ended.is_some() {
        parts.push(view::duration(facts.ms));
    }
    if tried.bill.usd.0 > 0 {
        parts.push(tried.bill.usd.to_string());
    }
    parts.extend(
        facts.verdict.map(|verdict| format!("{}, {} issues", verdict.word(), facts.issues)),
    );
    parts.extend(facts.tree.as_deref().map(|tree| format!("tree {}", short(tree))));
    parts.extend(facts.commit.as_deref().map(|commit| format!("commit {}", short(commit))));
    let mut text = format!("    {id:<8} {:<12} {}\n", tried.step.word(), parts.join(", "));
    let files = [("log", &facts.log), ("artifact", &facts.artifact)];
    for (what, path) in files.into_iter().filter_map(|(what, path)| Some((what, path.as_ref()?))) {
        let _ = writeln!(text, "      {what}: {}", one_line(&state_json::in_root(path)));
    }
    if let Some(used) = facts.used.as_ref().and_then(|used| used.line()) {
        let _ = writeln!(text, "      used: {}", one_line(&used));
    }
    for note in &facts.notes {
        let _ = writeln!(text, "      note: {}", one_line(note));
    }
    text
}

fn outcome(tried: &Tried) -> String {
    let Some((_, outcome)) = &tried.ended else { return "running".to_owned() };
    match outcome {
        Outcome::Failed { why } | Outcome::Broke { why } | Outcome::Skipped { why } => {
            format!("{}: {}", word(outcome), one_line(why))
        }
        Outcome::Quota { until } => format!("no quota until {}", until.rfc3339()),
        Outcome::Away { why, text, .. } => format!("{}: {text}", why.word()),
        Outcome::Passed => view::passed_word(tried.step, &tried.facts).to_owned(),
        Outcome::Lost | Outcome::Revoked => word(outcome).to_owned(),
    }
}

pub fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed { .. } => "failed",
        Outcome::Broke { .. } => "broke",
        Outcome::Lost => "interrupted",
        Outcome::Quota { .. } => "quota",
        Outcome::Away { .. } => "away",
        Outcome::Revoked => "ended",
        Outcome::Skipped { .. } => "skipped",
    }
}

fn object(told: &Told, only: Option<&Task>, history: &RunHistory, current: &[Session]) -> Value {
    let name = |task: &Task| task.parent.is_some().then(|| task.name().to_owned());
    let is_wanted = |id| only.is_none_or(|only| only.id == id);
    let attempts = history.attempts.iter().filter(|tried| is_wanted(tried.task));
    let remarks = history.remarks.iter().filter(|remark| match (only, remark.task) {
        (None, _) => true,
        (Some(only), task) => task == Some(only.id),
    });
    json!({
        "run": state_json::state_json(&told.state),
        "state": told.word(),
        "task": only.map(|task| task.name()),
        "cost_usd": told.state.run.spent.usd.usd(),
        "attempts": attempts.map(|tried| attempt(tried, name(told.state.task(tried.task))))
            .collect::<Vec<_>>(),
        "sessions": current.iter().filter(|session| is_wanted(session.task)).map(|session| json!({
            "task": name(told.state.task(session.task)),
            "step": session.step.word(),
            "session": session.id,
            "attempt": session.attempt.to_string(),
        })).collect::<Vec<_>>(),
        "remarks": remarks.map(|remark| json!({
            "at": remark.at.rfc3339(),
            "task": remark.task.and_then(|id| name(told.state.task(id))),
            "text": remark.text,
        })).collect::<Vec<_>>(),
    })
}

fn attempt(tried: &Tried, task: Option<String>) -> Value {
    let facts = &tried.facts;
    let why = match &tried.ended {
        Some((_, Outcome::Failed { why } | Outcome::Broke { why } | Outcome::Skipped { why })) => {
            Some(why)
        }
        Some((_, Outcome::Away { text, .. })) => Some(text),
        Some((_, Outcome::Passed | Outcome::Lost | Outcome::Quota { .. } | Outcome::Revoked))
        | None => None,
    };
    json!({
        "id": tried.id.to_string(),
        "task": task,
        "step": tried.step.word(),
        "iteration": tried.round,
        "started_at": tried.started.rfc3339(),
        "ended_at": tried.ended.as_ref().map(|(at, _)| at.rfc3339()),
        "outcome": tried.ended.as_ref().map(|(_, outcome)| word(outcome)),
        "why": why,
        "exit_code": facts.exit,
        "signal": facts.signal,
        "duration": facts.ms as f64 / 1000.0,
        "log_path": facts.log.as_deref().map(state_json::in_root),
        "artifact_path": facts.artifact.as_deref().map(state_json::in_root),
        "verdict": facts.verdict.map(|verdict| verdict.word()),
        "issues_count": facts.issues,
        "base": facts.base,
        "tree": facts.tree,
        "commit": facts.commit,
        "cost_usd": tried.bill.usd.usd(),
        "tokens_in": tried.bill.tokens_in,
        "tokens_out": tried.bill.tokens_out,
        "used": facts.used.as_deref().map(state_json::used),
        "excused": facts.excused,
        "notes": facts.notes,
    })
}

fn short(name: &str) -> &str {
    name.get(..12).unwrap_or(name)
}

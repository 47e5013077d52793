//! Executors that play the lines of a scenario.

use super::coverage::ScriptedMap;
use super::{Play, Scene, planner, whole, workflow};
use crate::audit::table::is_serial;
use autopilot_core::coverage::{CoverageCheck, CoverageVerdict};
use autopilot_core::event::{Bill, Facts, HoldWhy, Outcome, StepAnswer, TaskEntry, Verdict};
use autopilot_core::flow::Flow;
use autopilot_core::flow::review::{ReviewAnswer, ReviewGround, ReviewIssue, weigh_issues};
use autopilot_core::id::Micros;
use autopilot_core::input::AttemptWord;
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;
use autopilot_core::three_runs::{AcceptedTest, OpenTest};
use autopilot_core::wanted::Want;
use std::collections::{BTreeMap, VecDeque};

/// A line of a scenario: the step it is for, how it ends, what it makes and costs.
#[derive(Clone, Debug)]
pub struct Line {
    pub step: Step,
    pub ending: Ending,
    pub tree: Option<String>,
    /// Cumulative bills, one after another.
    pub bills: Vec<Micros>,
    /// What it may spend at most, as far as it was said.
    pub given: Option<Micros>,
    pub fingerprint: Option<String>,
    /// The one issue a reviewer names.
    pub issue: Option<ReviewIssue>,
    /// The tasks it brings, where it is not for the script to say.
    pub brings: Option<Vec<TaskEntry>>,
    /// It did not start from nothing.
    pub is_warm: bool,
    /// The tests of the base that it leaves open.
    pub open: Vec<OpenTest>,
    /// The tests that it accepts by name.
    pub accepted: Vec<AcceptedTest>,
    /// The tests that it says cover which criterion.
    pub map: Option<ScriptedMap>,
    /// Somebody has begun to play it.
    pub is_begun: bool,
}

impl Line {
    /// What a step does of which nothing is written.
    fn plain(step: Step) -> Line {
        Line {
            step,
            ending: Ending::Ok,
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
            is_begun: true,
        }
    }

    /// The yes or no in it, where there is one.
    fn done(&self) -> Option<bool> {
        match self.ending {
            Ending::Ok => Some(true),
            Ending::Fails => Some(false),
            Ending::TimesOut
            | Ending::Misconfigured
            | Ending::Broke
            | Ending::Hangs
            | Ending::Lost
            | Ending::Quota { .. }
            | Ending::Away { .. }
            | Ending::Mute => None,
        }
    }
}

impl Line {
    /// What the controller makes of a map of tests. One that is mute maps nothing, and one that lies is
    /// not believed.
    fn covers(&self, outcome: &Outcome) -> Option<Box<CoverageCheck>> {
        let is_covered = *outcome == Outcome::Passed && self.ending != Ending::Mute;
        let is_over = matches!(outcome, Outcome::Passed | Outcome::Failed { .. });
        let verdict = match is_covered {
            true => CoverageVerdict::Covered,
            false => CoverageVerdict::Uncovered,
        };
        is_over.then(|| Box::new(CoverageCheck { verdict, ..CoverageCheck::default() }))
    }
}

/// What a completion says, or a review, which is weighed as a real one is.
fn answer_of(line: &Line, done: bool, task: &Task, state: &State) -> StepAnswer {
    if line.step == Step::Completion {
        return StepAnswer::Completion { done };
    }
    let (answer, ground) = review_of(line, done, task);
    answer.said(&weigh_issues(state.run.limits.review, &answer, &ground))
}

/// A review and what it can cite: two criteria, tests that failed if they did, and a change of the first
/// line of `src/<task>.rs`.
fn review_of(line: &Line, done: bool, task: &Task) -> (ReviewAnswer, ReviewGround) {
    let answer = ReviewAnswer {
        verdict: if done { Verdict::Approve } else { Verdict::RequestChanges },
        summary: String::new(),
        issues: line.issue.iter().cloned().collect(),
        accepted_tests: line.accepted.clone(),
    };
    let ground = ReviewGround {
        criteria: 2,
        failed_commands: task
            .has_failed(Step::Validate)
            .then(|| "tests".to_owned())
            .into_iter()
            .collect(),
        changed_lines: [(format!("src/{}.rs", task.name()), 1)].into(),
        ..ReviewGround::default()
    };
    (answer, ground)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Ok,
    Fails,
    /// What is configured can't be done at all.
    Misconfigured,
    Broke,
    Hangs,
    Lost,
    Quota {
        ms: u64,
    },
    Away {
        why: HoldWhy,
    },
    /// A reviewer's answer without a verdict.
    Mute,
    /// Ended at its own time limit, which is a failure of the step.
    TimesOut,
}

const STEP_MS: u64 = 10_000;
const HANG_MS: u64 = 1_800_000;

#[derive(Debug, Default)]
pub struct Scripted {
    /// By the name of the task; the run has none.
    pub lines: BTreeMap<String, VecDeque<Line>>,
    /// What each schedule brings, by the name of what it divides.
    pub planned: BTreeMap<String, Vec<TaskEntry>>,
    /// The steps of every workflow that is made; later ones have names of their own.
    pub steps: Vec<TaskEntry>,
}

impl Scripted {
    pub(super) fn played(&mut self, name: &str, step: Step) {
        if let Some(lines) = self.lines.get_mut(name) {
            lines.pop_front_if(|line| line.step == step);
        }
    }

    /// What comes with the end of a step that may bring tasks.
    fn brought(&self, line: &Line, now: &Task, state: &State) -> Vec<TaskEntry> {
        let of_whole = matches!(line.step, Step::Validate | Step::WholeReview | Step::Uat)
            && state.run.flow == Flow::Plan;
        let of_proof = line.step == Step::Prove && state.run.flow != Flow::Goal;
        let mends = now.parent.is_none() && (of_whole || of_proof);
        match &line.brings {
            Some(brings) => brings.clone(),
            None if line.step == Step::Schedule => {
                self.planned.get(now.name()).cloned().unwrap_or_default()
            }
            None if line.step == Step::Workflow => workflow::again(&self.steps, now.round),
            None if mends => vec![planner::mending_task(state)],
            None => Vec::new(),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other steps show nothing of their own")]
    pub(super) fn play(&mut self, scene: &Scene<'_>) -> Play {
        let Want { task, step, .. } = scene.want;
        let now = scene.state.task(task);
        let next = self.lines.get_mut(now.name()).and_then(|lines| lines.front_mut());
        let line = match next.filter(|line| line.step == step) {
            Some(line) => {
                line.is_begun = true;
                line.clone()
            }
            None => Line::plain(step),
        };
        let tasks = self.brought(&line, now, scene.state);
        let (open, accepted) = (line.open.clone(), line.accepted.clone());
        let mut facts = Facts { tasks, open, accepted, warm: line.is_warm, ..Facts::default() };
        let mut outcome = match line.ending {
            Ending::Ok | Ending::Mute => Outcome::Passed,
            Ending::Fails => Outcome::Failed { why: format!("{step} said no") },
            Ending::Misconfigured => Outcome::Misconfigured { why: "no such command".into() },
            Ending::TimesOut => Outcome::Failed { why: "it ran into its time limit".into() },
            Ending::Broke => Outcome::Broke { why: "exit status 1".into() },
            Ending::Hangs => Outcome::Broke { why: "silent and idle: killed".into() },
            Ending::Lost => Outcome::Lost,
            Ending::Quota { ms } => Outcome::Quota { until: scene.clock.plus_ms(STEP_MS + ms) },
            Ending::Away { why } => {
                Outcome::Away { why, text: "it is not there".into(), until: None }
            }
        };
        match step {
            Step::Build | Step::Fix if outcome == Outcome::Passed => {
                let usual = || format!("{}{}", now.name(), now.round);
                facts.tree = Some(line.tree.clone().unwrap_or_else(usual));
            }
            // What a step that failed has made is kept as well.
            Step::WorkflowStep if matches!(outcome, Outcome::Passed | Outcome::Failed { .. }) => {
                let usual = || format!("{}{}", now.name(), now.round);
                facts.tree = Some(line.tree.clone().unwrap_or_else(usual));
            }
            Step::Validate => {
                facts.tree = now.tree.clone();
                let usual = || format!("{}-{}", now.name(), now.round);
                facts.fingerprint = Some(line.fingerprint.clone().unwrap_or_else(usual));
                let refused = whole::refusal(scene, &facts.open).filter(|_| now.parent.is_none());
                if let (Outcome::Passed, Some(why)) = (&outcome, refused) {
                    outcome = Outcome::Failed { why };
                }
            }
            Step::WholeReview => {
                facts.fingerprint = line.fingerprint.clone();
                if let Some(done) = line.done() {
                    facts.said = Some(answer_of(&line, done, now, scene.state));
                    let (answer, ground) = review_of(&line, done, now);
                    outcome = whole::outcome(scene, &answer, &ground);
                }
            }
            Step::Coverage => facts.coverage = line.covers(&outcome),
            Step::Review | Step::Completion => {
                facts.fingerprint = line.fingerprint.clone();
                facts.said = line.done().map(|done| answer_of(&line, done, now, scene.state));
            }
            _ => {}
        }
        let (outcome, facts) = match &line.map {
            Some(map) => map.weighed(now, scene.state),
            None => (outcome, facts),
        };
        let given = line.given.map(|given| (0, AttemptWord::Given(given)));
        let bills = line.bills.iter().enumerate().map(|(place, usd)| {
            let bill = Bill { usd: *usd, ..Bill::default() };
            (1_000 * (place as u64 + 1), AttemptWord::Bill(bill))
        });
        Play {
            ms: match line.ending {
                Ending::Hangs | Ending::TimesOut => HANG_MS,
                Ending::Ok
                | Ending::Fails
                | Ending::Misconfigured
                | Ending::Broke
                | Ending::Lost
                | Ending::Quota { .. }
                | Ending::Away { .. }
                | Ending::Mute => STEP_MS,
            },
            words: given.into_iter().chain(bills).collect(),
            has_effect: is_serial(step) && outcome == Outcome::Passed,
            outcome,
            facts,
            faults: Vec::new(),
        }
    }
}

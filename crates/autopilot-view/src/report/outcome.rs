//! The outcome of a run in plain words: what was proven, and what was not.

use super::words::ReportLine;
use super::{PageSource, ReportFacts, Tone};
use crate::{
    ExitWord, LastProof, Standing, awaited, count, doubts, excused, failure, headline, leaves,
    let_pass, money, nothing_built, says_how_to_continue, still_shown, waivers,
};
use autopilot_core::event::{Outcome as Ended, TaskEnd, Verdict};
use autopilot_core::state::{Shown, State, Task};
use autopilot_core::step::Step;
use std::collections::BTreeMap;

/// The most lines in each list.
const LINES_MAX: usize = 60;

/// The outcome section of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportOutcome {
    pub tone: Tone,
    pub word: &'static str,
    pub sentence: ReportLine,
    /// The facts that the controller itself has proven.
    pub proven: Vec<ReportLine>,
    /// What a person should look at before merging, the worst first.
    pub doubts: Vec<ReportLine>,
    /// The claims of agents, the skipped checks and the failures.
    pub unproven: Vec<ReportLine>,
}

/// The outcome of a run.
pub(super) fn outcome(source: &PageSource<'_>) -> ReportOutcome {
    let PageSource { state, known, words, .. } = source;
    let (tone, word) = match (known.standing, ExitWord::of(state)) {
        (Standing::Live { .. }, _) => (Tone::Busy, "running"),
        (Standing::Interrupted, _) => (Tone::Worse, "interrupted"),
        (Standing::Abandoned, _) => (Tone::Worse, "abandoned"),
        (Standing::Rests, _) | (_, ExitWord::Paused) => (Tone::Waits, "paused"),
        (_, ExitWord::Done) if nothing_built(state).is_some() => {
            (Tone::Waits, "done, but nothing was built")
        }
        (_, ExitWord::Done) => (Tone::Good, "done"),
        (_, ExitWord::Failed) => (Tone::Bad, "failed"),
        (_, ExitWord::NotConverged) => (Tone::Bad, "not finished within the limits"),
        (_, ExitWord::Misconfigured) => (Tone::Bad, "not started: the configuration has to change"),
        (_, ExitWord::PushFailed) => (Tone::Bad, "done, but not pushed"),
    };
    let (mut proven, mut unproven) = (Vec::new(), Vec::new());
    match state.run.flow.has_iterations() {
        true => of_whole(state, &mut proven, &mut unproven),
        false => of_tasks(state, &mut proven, &mut unproven),
    }
    last_word(state, &mut proven, &mut unproven);
    left_out(state, &mut unproven);
    for list in [&mut proven, &mut unproven] {
        let more = list.len().saturating_sub(LINES_MAX);
        if more > 0 {
            list.truncate(LINES_MAX);
            list.push(format!("and {more} more of the same kind"));
        }
    }
    ReportOutcome {
        tone,
        word,
        sentence: words.line(&sentence(state, known)),
        doubts: words.lines(doubts(state).iter().map(|standing| standing.sentence())),
        proven: words.lines(&proven),
        unproven: words.lines(&unproven),
    }
}

fn sentence(state: &State, known: &ReportFacts<'_>) -> String {
    match known.standing {
        Standing::Live { pid } => format!(
            "The run is still going (process {pid}, {}). This page shows its state at {}; write the \
             report again for an update.",
            headline(state),
            known.now.rfc3339()
        ),
        Standing::Interrupted => {
            "The process of the run died. Everything recorded so far is kept; continue with \
             `autopilot resume`."
                .to_owned()
        }
        Standing::Abandoned => {
            "The run was given up for another one. Its work is kept: `autopilot recover`."
                .to_owned()
        }
        Standing::Rests => rests(state),
        Standing::Over => over(state),
    }
}

fn rests(state: &State) -> String {
    if let Some(halt) = &state.run.halt {
        let rest = match says_how_to_continue(halt) {
            true => String::new(),
            false => format!(" Continue with {}.", money::continue_command(state)),
        };
        return format!("The run is halted: {}.{rest}", halt.why);
    }
    match awaited(state) {
        Some(what) => format!(
            "The run is waiting for a person to approve {what}: `autopilot approve` or `autopilot reject \"why\"`."
        ),
        None => "The run is stopped. Continue with `autopilot resume`.".to_owned(),
    }
}

fn over(state: &State) -> String {
    let has_iterations = state.run.flow.has_iterations();
    match state.end() {
        Some(TaskEnd::Closed | TaskEnd::Skipped { .. }) if has_iterations => {
            let rounds = state.root().map_or(0, |root| root.round);
            let how = if excused(state).is_some() {
                "according to the reviewer: the controller's checks fail as they did on the base, and \
                 only new failures counted"
            } else if is_validated(state) {
                "and the controller's own validation of the result passed"
            } else {
                "according to the reviewer alone: nothing was proven"
            };
            format!("The goal was met in {}, {how}.", count(rounds as usize, "iteration"))
        }
        Some(TaskEnd::Closed | TaskEnd::Skipped { .. }) => {
            if let Some(why) = nothing_built(state) {
                return format!("Nothing is proven: {why}.");
            }
            let all = leaves(state).count();
            let closed = leaves(state).filter(|task| task.is_closed()).count();
            let how = match excused(state) {
                Some(_) => {
                    "; the controller's checks fail as they did on the base, and only new failures \
                     counted"
                }
                None => "",
            };
            format!("{closed} of {} done{how}.", count(all, "task"))
        }
        Some(TaskEnd::Failed { why }) => {
            format!("The run failed: {why}. All work is kept.")
        }
        None => "The run has not started.".to_owned(),
    }
}

fn is_validated(state: &State) -> bool {
    let shown = still_shown(state, Step::Validate);
    shown.is_some_and(|shown| shown.outcome == Ended::Passed)
}

fn of_whole(state: &State, proven: &mut Vec<String>, unproven: &mut Vec<String>) {
    let Some(root) = state.root() else { return };
    let old = |step: Step| root.last(step).filter(|_| still_shown(state, step).is_none());
    if let Some(shown) = old(Step::Validate) {
        unproven.push(format!(
            "The result has changed since the controller validated it in iteration {}.",
            shown.round
        ));
    }
    match still_shown(state, Step::Validate).map(|shown| (&shown.outcome, shown.round)) {
        Some((Ended::Passed, round)) => match excused(state) {
            None => proven.push(format!(
                "The controller ran its validation itself on the integrated result of iteration \
                 {round}, and it passed."
            )),
            Some(what) => unproven.push(as_on_the_base(
                &format!("The controller's validation of iteration {round}"),
                &what,
            )),
        },
        Some((Ended::Failed { why }, round)) => {
            unproven.push(format!("The controller's validation failed in iteration {round}: {why}"))
        }
        Some(_) | None if root.skipped.contains_key(&Step::Validate) => {}
        None if old(Step::Validate).is_some() => {}
        Some(_) | None => unproven.push("The result was not validated.".to_owned()),
    }
    let said = still_shown(state, Step::Completion);
    match said.and_then(|shown| Some((shown.facts.verdict()?, shown.round))) {
        Some((Verdict::Approve, round)) => unproven.push(format!(
            "That the goal is met is the reviewer's claim (iteration {round}); see below."
        )),
        Some((Verdict::RequestChanges, round)) => {
            unproven
                .push(format!("The reviewer said in iteration {round} that the goal is not met."));
        }
        None => match old(Step::Completion) {
            Some(shown) => unproven.push(format!(
                "No reviewer has said that the goal is met since the result changed; the last \
                 verdict is from iteration {}.",
                shown.round
            )),
            None => unproven.push("No reviewer has said yet that the goal is met.".to_owned()),
        },
    }
}

/// What the result was proven from, where a gate did not start from nothing.
fn last_word(state: &State, proven: &mut Vec<String>, unproven: &mut Vec<String>) {
    let Some(proof) = LastProof::of(state) else { return };
    let list = match proof {
        LastProof::Cold => proven,
        LastProof::Due | LastProof::WarmOnly | LastProof::Unended | LastProof::Refuted => unproven,
    };
    list.push(format!("Proof: {}.", proof.sentence()));
}

fn of_tasks(state: &State, proven: &mut Vec<String>, unproven: &mut Vec<String>) {
    let closed: Vec<&Task> = leaves(state).filter(|task| task.is_closed()).collect();
    let passed = |step: Step| {
        let passed = |task: &&&Task| task.last(step).is_some_and(is_green);
        closed.iter().filter(passed).count()
    };
    let all = count(closed.len(), "closed task");
    let (validated, accepted) = (passed(Step::Validate), passed(Step::Uat));
    if validated > 0 {
        proven.push(format!("Validation by the controller passed for {validated} of {all}."));
    }
    if accepted > 0 {
        proven.push(format!("Acceptance run by the controller passed for {accepted} of {all}."));
    }
    for (what, names) in red(&closed) {
        let of = format!("Validation by the controller of {}", names.join(", "));
        unproven.push(as_on_the_base(&of, &what));
    }
    let approved = |task: &&&Task| {
        let verdict = task.last(Step::Review).and_then(|shown| shown.facts.verdict());
        verdict == Some(Verdict::Approve)
    };
    let approved = closed.iter().filter(approved).count();
    if approved > 0 {
        proven.push(format!("Another agent approved {approved} of {all}."));
    }
    for (step, what) in [(Step::Validate, "Validation"), (Step::Uat, "Acceptance")] {
        let shown = state.root().and_then(|root| root.last(step));
        match shown.map(|shown| &shown.outcome) {
            Some(Ended::Passed) => match shown.and_then(let_pass) {
                None => proven.push(format!("{what} of the whole passed.")),
                Some(red) => unproven.push(as_on_the_base(&format!("{what} of the whole"), &red)),
            },
            Some(Ended::Failed { why }) => {
                unproven.push(format!("{what} of the whole failed: {why}"))
            }
            Some(_) | None => {}
        }
    }
    match still_shown(state, Step::WholeReview).and_then(|shown| shown.facts.verdict()) {
        Some(Verdict::Approve) => {
            proven.push("Another agent approved the result as a whole.".to_owned());
        }
        Some(Verdict::RequestChanges) => {
            unproven.push("The reviewer of the result as a whole asked for changes.".to_owned());
        }
        None => {}
    }
    for task in leaves(state).filter(|task| !task.is_closed()) {
        let why = failure(task).map(|why| format!(": {why}")).unwrap_or_default();
        unproven.push(format!("{}: {}{why}", task.name(), crate::task_word(task)));
    }
}

fn is_green(shown: &Shown) -> bool {
    shown.outcome == Ended::Passed && let_pass(shown).is_none()
}

/// The tasks with excused failures, by those failures.
fn red<'a>(closed: &[&'a Task]) -> BTreeMap<String, Vec<&'a str>> {
    let mut red: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for task in closed {
        if let Some(what) = task.last(Step::Validate).and_then(let_pass) {
            red.entry(what).or_default().push(task.name());
        }
    }
    red
}

fn as_on_the_base(of: &str, what: &str) -> String {
    format!(
        "{of} did not pass: {what}, as on the base; only new failures counted (--allow-red-base), \
         and there was none."
    )
}

/// Adds the skipped and waived checks.
fn left_out(state: &State, unproven: &mut Vec<String>) {
    let base = state.root().and_then(|root| root.last(Step::Preflight));
    if let Some(what) = base.and_then(let_pass) {
        unproven.push(format!(
            "On the base, before any change, {what}; the run was allowed to start anyway."
        ));
    } else if state.run.red_base_allowed && base.is_none_or(|shown| !is_green(shown)) {
        unproven.push("The run was allowed to start although tests fail on its base.".to_owned());
    }
    for by in waivers(state) {
        unproven.push(format!("The review was switched off by {by}."));
    }
    for task in &state.tasks {
        let name = if task.parent.is_some() { task.name() } else { "The run" };
        for (step, why) in &task.skipped {
            if step.row().judges {
                unproven.push(format!("{name}: {step} skipped: {why}"));
            }
        }
    }
}

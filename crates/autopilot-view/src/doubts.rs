//! What a person should look at before merging, collected from everything that the run's results and
//! settings show. Every surface tells this list.

use super::{LastProof, name_list, unproven, waivers};
use autopilot_core::doubt::{DOUBTS_MAX, Doubt, DoubtKind, ranked};
use autopilot_core::event::TaskEnd;
use autopilot_core::flow::merging::keeps_earlier_result;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::Step;
use autopilot_core::three_runs;
use std::collections::BTreeMap;

/// The heading under which doubts are told.
pub const LOOK: &str = "Look at this before you merge";

/// The doubts that a screen has room for; every one is in STATUS.md and in `status --json`.
const LINES_MAX: usize = 20;

/// A doubt that the current result still raises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingDoubt {
    /// The names of the tasks whose results raise it; empty for the run as a whole.
    pub tasks: Vec<String>,
    pub doubt: Doubt,
}

impl StandingDoubt {
    /// The doubt in one sentence, with the tasks that it is about.
    pub fn sentence(&self) -> String {
        if self.tasks.is_empty() {
            return self.doubt.text.clone();
        }
        format!("{}: {}", name_list(&self.tasks), self.doubt.text)
    }
}

/// Returns the doubts about what the run has merged and what is still at work, the worst first.
pub fn doubts(state: &State) -> Vec<StandingDoubt> {
    let mut by_text: BTreeMap<Doubt, Vec<String>> = BTreeMap::new();
    for doubt in about_the_whole(state) {
        by_text.entry(doubt).or_default();
    }
    // What the run as a whole shows is told also where it failed.
    let is_out = |task: &&Task| {
        task.parent.is_some() && (super::failure(task).is_some() || is_left_out(task))
    };
    for task in state.tasks.iter().filter(|task| !is_out(task)) {
        let waived = waived(task).filter(|_| waivers(state).is_empty());
        let policy = state.run.limits.yardstick_changes;
        let open = three_runs::doubts_of(policy, task);
        for doubt in results(task).chain(open).chain(waived) {
            let tasks = by_text.entry(doubt).or_default();
            tasks.extend(task.parent.is_some().then(|| task.name().to_owned()));
        }
    }
    let told = ranked(by_text.keys().cloned().collect());
    let standing = |doubt: Doubt| StandingDoubt {
        tasks: by_text.get(&doubt).cloned().unwrap_or_default(),
        doubt,
    };
    told.into_iter().take(DOUBTS_MAX).map(standing).collect()
}

/// Returns the doubts as lines for a terminal, with their heading; nothing where there are none.
pub fn doubt_lines(state: &State) -> Vec<String> {
    let doubts = doubts(state);
    if doubts.is_empty() {
        return Vec::new();
    }
    let told = doubts.iter().take(LINES_MAX).map(|standing| format!("  - {}", standing.sentence()));
    let more = doubts.len().saturating_sub(LINES_MAX);
    let more = (more > 0).then(|| format!("  and {more} more, in STATUS.md"));
    [format!("{LOOK}:")].into_iter().chain(told).chain(more).collect()
}

/// Returns the doubts about one task.
pub fn doubts_of(state: &State, task: &Task) -> Vec<StandingDoubt> {
    let is_it = |standing: &StandingDoubt| match task.parent {
        None => standing.tasks.is_empty(),
        Some(_) => standing.tasks.iter().any(|name| name == task.name()),
    };
    doubts(state).into_iter().filter(is_it).collect()
}

/// A task that was skipped has brought nothing.
fn is_left_out(task: &Task) -> bool {
    matches!(task.status, Status::Settled(TaskEnd::Skipped { .. }))
}

/// What the results of the current round tell; those of earlier rounds were repaired since.
fn results(task: &Task) -> impl Iterator<Item = Doubt> {
    let is_earlier = keeps_earlier_result(task);
    // The base is looked at once, whatever rounds follow.
    let counts = move |step: Step| match is_earlier || step == Step::Preflight {
        true => task.last(step),
        false => task.shown(step),
    };
    task.results
        .keys()
        .filter_map(move |step| counts(*step))
        .flat_map(|shown| &shown.facts.doubts)
        .cloned()
}

/// The review that was waived for a task.
fn waived(task: &Task) -> Option<Doubt> {
    let why = task.skipped.get(&Step::Review)?;
    Some(Doubt::new(DoubtKind::WaivedGate, format!("the review was skipped: {why}")))
}

fn about_the_whole(state: &State) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    let new = |kind, text: String| Doubt::new(kind, text);
    if let Some(why) = unproven(state) {
        doubts
            .push(new(DoubtKind::NoProof, format!("the result as a whole was not proven: {why}")));
    }
    for by in waivers(state) {
        let text = format!("the review was skipped while {by} was there");
        doubts.push(new(DoubtKind::WaivedGate, text));
    }
    doubts.extend(unmet_goal(state));
    doubts.extend(LastProof::of(state).and_then(of_last_proof));
    doubts.extend(older_rules(state).into_iter().map(|text| new(DoubtKind::WeakProof, text)));
    doubts
}

/// What speaks against the judge of a goal who says that it is met: steps of the last round that failed,
/// and a branch on which nothing is.
fn unmet_goal(state: &State) -> Vec<Doubt> {
    let is_judged = state.run.flow.row().iterations_max.is_some()
        && state.run.switches.contains(&Switch::ThreeRuns)
        && matches!(state.end(), Some(TaskEnd::Closed));
    let Some(root) = state.root().filter(|_| is_judged) else { return Vec::new() };
    let is_last = |task: &&Task| task.parent.is_some() && task.of_round == root.round;
    let told = |task: &Task| {
        let why = super::failure(task)?;
        let name = task.name();
        let text =
            format!("the judge says that the goal is met, and its step `{name}` failed: {why}");
        Some(Doubt::new(DoubtKind::Claim, text))
    };
    let mut doubts: Vec<Doubt> = state.tasks.iter().filter(is_last).filter_map(told).collect();
    if state.run.tip.as_ref().is_none_or(|tip| *tip == state.run.base) {
        let text = "the judge says that the goal is met, and nothing was changed";
        doubts.push(Doubt::new(DoubtKind::Claim, text));
    }
    doubts
}

/// What a run that began under an older version is not proven by. It keeps the rules it began with.
fn older_rules(state: &State) -> Vec<String> {
    let (switches, flow) = (&state.run.switches, state.run.flow);
    let has_tests = flow.row().needs_tests || switches.contains(&Switch::HasTests);
    if !has_tests || switches.contains(&Switch::ThreeRuns) {
        return Vec::new();
    }
    let three_runs = Switch::ThreeRuns.why_skipped().to_owned();
    [three_runs].into_iter().chain(super::unreviewed(state).map(str::to_owned)).collect()
}

fn of_last_proof(proof: LastProof) -> Option<Doubt> {
    let kind = match proof {
        LastProof::Cold | LastProof::Due => return None,
        LastProof::WarmOnly | LastProof::Unended => DoubtKind::WarmProof,
        LastProof::Refuted => DoubtKind::RefutedProof,
    };
    Some(Doubt::new(kind, proof.sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportFacts, html, page};
    use crate::{Standing, pull_request, state_json, status_md};
    use autopilot_core::event::{Facts, Failure, Outcome};
    use autopilot_core::flow::Flow;
    use autopilot_core::id::{AttemptId, TaskId, Time};
    use autopilot_core::state::Shown;
    use std::collections::BTreeMap;

    fn shown(round: u32, doubts: Vec<Doubt>) -> Shown {
        let facts = Facts { doubts, ..Facts::default() };
        let id = AttemptId { seq: 1, place: 0 };
        Shown { id, round, at: Time(0), outcome: Outcome::Passed, facts }
    }

    fn task(id: u32, name: &str, doubts: Vec<Doubt>) -> Task {
        let mut task = Task {
            id: TaskId(id),
            parent: Some(TaskId::ROOT),
            round: 2,
            status: Status::Settled(TaskEnd::Closed),
            results: [(Step::Validate, shown(2, doubts))].into(),
            ..Task::default()
        };
        name.clone_into(&mut task.spec.name);
        task
    }

    fn state(tasks: Vec<Task>) -> State {
        let root = Task { id: TaskId::ROOT, ..Task::default() };
        let mut state = State::default();
        state.run.switches = [Switch::ThreeRuns].into();
        state.tasks = [root].into_iter().chain(tasks).collect();
        state
    }

    fn odd(text: &str) -> Doubt {
        Doubt::new(DoubtKind::OddChange, text)
    }

    fn told(state: &State) -> Vec<String> {
        doubts(state).iter().map(StandingDoubt::sentence).collect()
    }

    /// Every surface that is made of the state alone.
    fn surfaces(state: &State) -> [(&'static str, String); 5] {
        let known = ReportFacts {
            standing: Standing::Over,
            now: Time(0),
            goal: None,
            change: None,
            calls: Vec::new(),
            ways: BTreeMap::new(),
            version: "1",
            read: &|_| None,
            clean: &|text| text.to_owned(),
        };
        let sent = pull_request::PullRequestFacts {
            prefix: "",
            remote: "origin",
            goal: "",
            checks: BTreeMap::new(),
            unpriced: &[],
        };
        [
            ("terminal", doubt_lines(state).join("\n")),
            ("STATUS.md", status_md::status_md(state)),
            ("state.json", state_json::state_json(state).to_string()),
            ("report", html(&page(state, &[], &known))),
            ("pull request", pull_request::pull_request(state, &sent).body),
        ]
    }

    #[test]
    fn a_goal_that_is_met_over_failed_steps_or_nothing_says_so() {
        let mut failed = task(1, "one", Vec::new());
        failed.status = Status::Settled(TaskEnd::Failed { why: Failure::Rounds { rounds: 1 } });
        failed.of_round = 2;
        let mut state = state(vec![failed]);
        state.run.flow = Flow::Goal;
        state.run.base = "b".to_owned();
        state.run.tip = Some("b".to_owned());
        assert_eq!(told(&state), [""; 0], "the goal is not met yet");
        state.tasks[0].status = Status::Settled(TaskEnd::Closed);
        state.tasks[0].round = 2;
        assert_eq!(
            told(&state),
            [
                "the judge says that the goal is met, and its step `one` failed: did not converge in 1 iteration",
                "the judge says that the goal is met, and nothing was changed",
            ]
        );
        // A later round has made it good.
        state.tasks[0].round = 3;
        state.run.tip = Some("c".to_owned());
        assert_eq!(told(&state), [""; 0]);
    }

    #[test]
    fn a_run_under_an_older_rule_says_what_it_was_not_proven_by() {
        let mut state = state(vec![]);
        assert_eq!(told(&state), Vec::<String>::new());
        state.run.switches.remove(&Switch::ThreeRuns);
        assert_eq!(
            told(&state),
            ["the run began before tests of the base were run over the change"]
        );
        state.run.flow = autopilot_core::flow::Flow::Plan;
        let unreviewed = "the run began before the results of plans were reviewed as a whole";
        assert_eq!(told(&state)[1..], [unreviewed]);
        state.run.switches.insert(Switch::ThreeRuns);
        assert_eq!(told(&state), Vec::<String>::new(), "its configuration does without the review");
        state.run.switches.remove(&Switch::ThreeRuns);
        state.run.flow = autopilot_core::flow::Flow::Goal;
        assert_eq!(told(&state), Vec::<String>::new(), "a goal without tests is told as unproven");
    }

    #[test]
    fn every_kind_of_doubt_is_told_on_every_surface() {
        let text = |kind: DoubtKind| format!("about {}", kind.row().replace('_', " "));
        let all = DoubtKind::ALL.map(|kind| Doubt::new(kind, text(kind)));
        let state = state(vec![task(1, "a", all.to_vec())]);
        assert_eq!(told(&state), DoubtKind::ALL.map(|kind| format!("a: {}", text(kind))));
        for (name, told) in surfaces(&state) {
            for kind in DoubtKind::ALL {
                assert!(told.contains(&text(kind)), "{kind:?} is not in {name}: {told}");
            }
            assert!(told.contains(LOOK) || name == "state.json", "{name}: {told}");
        }
    }

    #[test]
    fn a_list_that_has_nothing_in_it_is_not_there() {
        let state = state(vec![task(1, "a", Vec::new())]);
        assert_eq!(told(&state), [""; 0]);
        for (name, told) in surfaces(&state) {
            let is_empty =
                !told.contains(LOOK) || told.contains("nothing beyond the change itself");
            assert!(is_empty, "{name}: {told}");
        }
    }

    #[test]
    fn what_was_repaired_or_is_not_in_the_result_is_told_no_more() {
        let mut repaired = task(1, "a", Vec::new());
        repaired.results.insert(Step::Build, shown(1, vec![odd("of the first round")]));
        let mut failed = task(2, "b", vec![odd("of a failed task")]);
        let why = Failure::Rounds { rounds: 3 };
        failed.status = Status::Settled(TaskEnd::Failed { why });
        let mut left_out = task(3, "c", vec![odd("of a skipped task")]);
        let why = autopilot_core::event::Skip::Asked;
        left_out.status = Status::Settled(TaskEnd::Skipped { why });
        assert_eq!(told(&state(vec![repaired, failed, left_out])), [""; 0]);
    }

    #[test]
    fn one_doubt_about_several_tasks_is_told_once() {
        let names = ["a", "b", "c", "d"];
        let tasks = names.iter().enumerate();
        let tasks = tasks.map(|(at, name)| task(at as u32 + 1, name, vec![odd("no sandbox")]));
        let state = state(tasks.collect());
        assert_eq!(told(&state), ["a, b, c and 1 more: no sandbox"]);
        assert_eq!(doubts_of(&state, &state.tasks[4]).len(), 1);
        assert_eq!(doubts_of(&state, &state.tasks[0]), []);
    }

    #[test]
    fn a_screen_has_room_for_some_and_says_how_many_there_are() {
        let many = (0..LINES_MAX + 3).map(|at| odd(&format!("{at:02}"))).collect();
        let lines = doubt_lines(&state(vec![task(1, "a", many)]));
        assert_eq!(lines.len(), LINES_MAX + 2);
        assert_eq!(lines[LINES_MAX + 1], "  and 3 more, in STATUS.md");
    }

    #[test]
    fn waived_and_missing_proofs_of_the_whole_are_told() {
        let mut waived = task(1, "a", Vec::new());
        waived.skipped.insert(Step::Review, "a person switched the review off".to_owned());
        let mut state = state(vec![waived]);
        assert_eq!(told(&state), ["a: the review was skipped: a person switched the review off"]);
        state.run.reviews_waived_by.push("the file AUTOPILOT_SKIP_REVIEW".to_owned());
        let by = "the review was skipped while the file AUTOPILOT_SKIP_REVIEW was there";
        assert_eq!(told(&state), [by]);
        state.run.seeds.is_used = true;
        state.run.tip = Some("tip".to_owned());
        assert_eq!(doubts(&state).last().map(|last| last.doubt.kind), Some(DoubtKind::WarmProof));
    }
}

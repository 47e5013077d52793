//! The last word on a run, prepared: a tree that becomes the result if its task is approved is proven
//! from nothing before it is merged. The proof may run beside the task's other steps.

use crate::event::Outcome;
use crate::id::TaskId;
use crate::pipeline::{Switch, When};
use crate::state::{State, Status, Task};
use crate::step::Step;

/// A proof from nothing that should run beside the steps of its task, or of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofAhead {
    pub task: TaskId,
    /// The tree of the task; for the run, the tip of its branch.
    pub of: String,
    /// The proof's own step has not come yet, so it may still be started beside another.
    pub may_begin: bool,
}

/// Whether the tree of a task is proven from nothing before it is merged: it becomes the result, and
/// nothing in its round has said no.
pub fn is_due(state: &State, task: &Task) -> bool {
    becomes_the_result(state, task) && task.pipeline.weigh(state, task).reasons.is_empty()
}

/// Whether what is merged is proven from nothing although the run fails, because some of its tasks have:
/// it is on the run's branch, and a person may use it.
pub fn is_owed(state: &State, whole: &Task) -> bool {
    let run = &state.run;
    let has_stage = whole.parent.is_none() && whole.pipeline.place(Step::Prove).is_some();
    has_stage && run.switches.contains(&Switch::ColdProof) && run.seeds.is_used && run.tip.is_some()
}

/// The proof that should run beside other steps now. There is at most one: a task's while all others
/// have ended, the run's when all have.
pub fn ahead(state: &State) -> Option<ProofAhead> {
    let of_run = || of_run(state, state.root()?);
    let proof = state.tasks.iter().find_map(|task| of_task(state, task)).or_else(of_run)?;
    let is_wanted = match &state.run.halt {
        None => true,
        // A step that is under way ends before the run stops.
        Some(halt) => !halt.now && !proof.may_begin,
    };
    is_wanted.then_some(proof)
}

fn of_task(state: &State, task: &Task) -> Option<ProofAhead> {
    task.pipeline.stages().iter().find(|stage| stage.when == When::LastWord)?;
    let may_begin = may_begin_after(task, Step::Validate)?;
    let of = task.tree.clone().filter(|_| becomes_the_result(state, task))?;
    Some(ProofAhead { task: task.id, of, may_begin })
}

fn of_run(state: &State, root: &Task) -> Option<ProofAhead> {
    let may_begin = may_begin_after(root, root.pipeline.children()?)?;
    let is_asked = state.run.switches.contains(&Switch::ColdProof);
    let trust = state.run.seeds;
    let of = state.run.tip.clone().filter(|_| is_asked && trust.is_used && !trust.is_refuted)?;
    Some(ProofAhead { task: root.id, of, may_begin })
}

/// Whether a proof may still begin, for a task that is past a step, has heard no no since, and has the
/// proof before it or under way.
fn may_begin_after(task: &Task, step: Step) -> Option<bool> {
    let place = |step| task.pipeline.place(step);
    let (first, proof, now) = (place(step)?, place(Step::Prove)?, place(task.step()?)?);
    let since = task.pipeline.stages().get(first + 1..now)?;
    let is_no = |step| task.shown(step).is_some_and(|shown| shown.outcome.failure().is_some());
    let is_refused = since.iter().any(|stage| is_no(stage.step));
    let is_under_way = now == proof && matches!(task.status, Status::Running { .. });
    let is_wanted = now > first && (now < proof || is_under_way) && !is_refused;
    is_wanted.then_some(now < proof)
}

/// Whether the run's result will be exactly what this task has built, if it is approved, and was proven
/// over a seed alone. Where work was merged before, a no could be the fault of that, so the whole is
/// proven when all is merged.
fn becomes_the_result(state: &State, task: &Task) -> bool {
    let run = &state.run;
    let is_asked = run.switches.contains(&Switch::ColdProof);
    let is_warm = task
        .shown(Step::Validate)
        .is_some_and(|shown| shown.outcome == Outcome::Passed && shown.facts.warm);
    let is_first = run.tip.is_none() && task.base.as_ref() == Some(&run.base);
    is_asked && is_warm && is_first && others(state, task).all(Task::is_settled)
}

/// The tasks besides this one and those that it is a part of.
fn others<'a>(state: &'a State, task: &'a Task) -> impl Iterator<Item = &'a Task> {
    let mut above = vec![task.id];
    let mut parent = task.parent;
    while let Some(id) = parent {
        above.push(id);
        parent = state.task(id).parent;
    }
    state.tasks.iter().filter(move |other| !above.contains(&other.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Facts, Halt, HaltWhy, TaskEnd};
    use crate::flow::Pipeline;
    use crate::id::{AttemptId, Time};
    use crate::state::Shown;

    fn shown(outcome: Outcome, warm: bool) -> Shown {
        let facts = Facts { warm, ..Facts::default() };
        Shown { id: AttemptId { seq: 1, place: 0 }, round: 1, at: Time(0), outcome, facts }
    }

    fn at(step: Step) -> Status {
        Status::Running { step, attempt: AttemptId { seq: 2, place: 0 } }
    }

    /// A run with one task under review, whose validation was warm, and one that has ended.
    fn state() -> State {
        let mut state = State::default();
        state.run.switches.insert(Switch::ColdProof);
        state.run.base = "base".to_owned();
        let child = |id| Task { id: TaskId(id), parent: Some(TaskId::ROOT), ..Task::default() };
        let reviewed = Task {
            pipeline: Pipeline::Paired,
            base: Some("base".to_owned()),
            tree: Some("tree".to_owned()),
            round: 1,
            status: at(Step::Review),
            results: [(Step::Validate, shown(Outcome::Passed, true))].into(),
            ..child(1)
        };
        let ended = Task { status: Status::Settled(TaskEnd::Closed), ..child(2) };
        state.tasks = vec![Task { id: TaskId::ROOT, ..Task::default() }, reviewed, ended];
        state
    }

    fn after(change: impl FnOnce(&mut State)) -> Option<bool> {
        let mut state = state();
        change(&mut state);
        ahead(&state).map(|proof| proof.may_begin)
    }

    #[test]
    fn only_a_warm_tree_that_will_be_the_result_is_proven_ahead() {
        assert_eq!(after(|_| {}), Some(true));
        assert_eq!(after(|state| state.run.switches.clear()), None, "no last word is due");
        let tip = |state: &mut State| state.run.tip = Some("tip".to_owned());
        assert_eq!(after(tip), None, "work of another task is in it");
        assert_eq!(after(|state| state.run.base = "other".to_owned()), None, "it began elsewhere");
        assert_eq!(after(|state| state.tasks[2].status = Status::Open), None, "one is to come");
        assert_eq!(after(|state| state.tasks[1].round = 2), None, "it is of an earlier round");
        let cold = |state: &mut State| {
            state.tasks[1].results.values_mut().for_each(|shown| shown.facts.warm = false);
        };
        assert_eq!(after(cold), None, "it is proven from nothing already");
    }

    #[test]
    fn a_proof_ahead_lives_from_the_review_to_the_end_of_its_own_step() {
        let status = |status| after(|state| state.tasks[1].status = status);
        for step in [Step::UatGenerate, Step::Uat] {
            assert_eq!(status(at(step)), Some(true), "{step}");
            assert_eq!(status(Status::At { step }), Some(true), "{step}");
        }
        assert_eq!(status(at(Step::Prove)), Some(false), "it is not begun twice");
        assert_eq!(status(Status::At { step: Step::Prove }), None, "its attempt has ended");
        for step in [Step::Validate, Step::Fix, Step::Merge] {
            assert_eq!(status(at(step)), None, "{step}");
        }
        assert_eq!(status(Status::Settled(TaskEnd::Closed)), None);
    }

    #[test]
    fn the_whole_is_proven_beside_the_steps_that_follow_its_tasks() {
        let whole = |change: fn(&mut State)| {
            after(|state| {
                let root = &mut state.tasks[0];
                (root.pipeline, root.round, root.status) = (Pipeline::Plan, 1, at(Step::Uat));
                state.tasks[1].status = Status::Settled(TaskEnd::Closed);
                (state.run.tip, state.run.seeds.is_used) = (Some("tip".to_owned()), true);
                change(state);
            })
        };
        assert_eq!(whole(|_| {}), Some(true));
        assert_eq!(whole(|state| state.tasks[0].status = at(Step::Prove)), Some(false));
        assert_eq!(whole(|state| state.tasks[0].status = at(Step::Tasks)), None);
        assert_eq!(whole(|state| state.tasks[0].status = at(Step::Push)), None);
        assert_eq!(whole(|state| state.run.seeds.is_used = false), None, "all is proven already");
        assert_eq!(whole(|state| state.run.seeds.is_refuted = true), None, "so is this");
        assert_eq!(whole(|state| state.run.tip = None), None, "nothing was merged");
        assert_eq!(whole(|state| state.run.switches.clear()), None);
        let no = |state: &mut State| {
            let no = shown(Outcome::Failed { why: "red".to_owned() }, false);
            state.tasks[0].results.insert(Step::Validate, no);
        };
        assert_eq!(whole(no), None, "it will be repaired first");
    }

    #[test]
    fn what_a_failed_run_has_merged_over_seeds_is_proven_all_the_same() {
        let owed = |change: fn(&mut State)| {
            let mut state = state();
            state.tasks[0].pipeline = Pipeline::Queue;
            (state.run.tip, state.run.seeds.is_used) = (Some("tip".to_owned()), true);
            change(&mut state);
            is_owed(&state, &state.tasks[0])
        };
        assert!(owed(|_| {}));
        assert!(!owed(|state| state.run.tip = None), "nothing was merged");
        assert!(!owed(|state| state.run.seeds.is_used = false), "all is proven already");
        assert!(!owed(|state| state.run.switches.clear()), "nobody wants it");
        assert!(!owed(|state| state.tasks[0].pipeline = Pipeline::Expand), "it is a part of a run");
    }

    #[test]
    fn a_no_or_a_stop_ends_a_proof_ahead() {
        let no = |state: &mut State| {
            let no = Outcome::Failed { why: "changes".to_owned() };
            state.tasks[1].results.insert(Step::Review, shown(no, false));
            state.tasks[1].status = at(Step::Uat);
        };
        assert_eq!(after(no), None);
        let halted = |step, now| {
            after(|state| {
                state.run.halt = Some(Halt { why: HaltWhy::Stop, now });
                state.tasks[1].status = at(step);
            })
        };
        assert_eq!(halted(Step::Review, false), None);
        assert_eq!(halted(Step::Prove, false), Some(false), "the step that runs comes to its end");
        assert_eq!(halted(Step::Prove, true), None);
    }
}

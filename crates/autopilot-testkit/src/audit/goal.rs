//! Goals: what a workflow, its steps and the word on its completion may lead to, told apart from
//! the tables of the code under test.
//!
//! A step is worked on once and never alone decides about the run; what was left out was left out
//! because of a failure and a wish to hear of it at once; reached is what somebody called so and the
//! tests showed of just what was delivered.

use super::books::{Books, Entry, Kind, Place};
use super::rule::{Kept, kept};
use autopilot_core::event::{Event, Outcome, Record, TaskEntry, Verdict};
use autopilot_core::flow::RoundReason;
use autopilot_core::id::TaskId;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

/// The workflow that comes with a no is what is done next; nothing of it is lost.
pub(super) fn next_is_kept(brought: &[TaskEntry], record: Option<&Record>) -> Kept {
    let events = || record.iter().flat_map(|record| &record.events);
    let says_no = |event: &Event| {
        matches!(event, Event::AttemptEnded { step: Step::Completion, outcome, .. }
            if matches!(outcome, Outcome::Failed { .. }))
    };
    if !events().any(says_no) {
        return Ok(());
    }
    let came = |spec: &TaskEntry| {
        events().any(|event| matches!(event, Event::TaskAdded { spec: it, .. } if **it == *spec))
    };
    let lost = brought.iter().find(|spec| !came(spec));
    kept(lost.is_none(), || {
        format!("S1: {} of the next workflow was thrown away", lost.map_or("", |spec| &spec.name))
    })
}

fn says_yes(whole: &Entry) -> bool {
    matches!(whole.proof.get(&Step::Completion),
        Some((Outcome::Passed, facts)) if facts.verdict() == Some(Verdict::Approve))
}

impl Books {
    fn fails_fast(&self) -> bool {
        self.switches.contains(&Switch::FailFast)
    }

    /// Whether what depends on it may begin.
    pub(super) fn is_met(&self, need: &Entry) -> bool {
        let is_weighed_later = need.kind == Kind::Session && !self.fails_fast();
        need.place.satisfies() || is_weighed_later && need.place == Place::Failed
    }

    /// Whether this end is one that steps may come with.
    pub(super) fn iteration_comes(
        &self,
        record: &Record,
        task: TaskId,
        step: Step,
        outcome: &Outcome,
    ) -> Result<bool, String> {
        let comes = record
            .events
            .iter()
            .any(|event| matches!(event, Event::TaskAdded { parent, .. } if *parent == Some(task)));
        let is_made = step == Step::Workflow && *outcome == Outcome::Passed;
        kept(!is_made || comes, || "I6: a workflow without steps counts".to_owned())?;
        let is_next = step == Step::Completion && matches!(outcome, Outcome::Failed { .. });
        Ok(is_made || is_next)
    }

    /// Whether a step that is gone to begins another iteration: after a workflow that can't be
    /// worked on, after a no, and after a yes that the tests contradict. With steps at hand the
    /// iteration is theirs.
    pub(super) fn goes_back_for_the_goal(&self, before: &Entry, to: Step) -> bool {
        match (before.place.step(), to) {
            (
                Some(Step::Workflow | Step::Completion | Step::Decide | Step::Prove),
                Step::Workflow,
            ) => true,
            (Some(Step::Completion), Step::Tasks) => !self.is_open_before(before),
            // Re-opened after its last iteration has failed it goes on with the next.
            (None, Step::Workflow) => before.failed_round == before.round,
            // Unless it is re-opened for the sake of an earlier step.
            (None, Step::Tasks) => {
                let mut open = self.steps_of(before).filter(|step| !step.place.is_settled());
                open.next().is_some() && !self.is_open_before(before)
            }
            (Some(_) | None, _) => false,
        }
    }

    fn steps_of<'a>(&'a self, whole: &'a Entry) -> impl Iterator<Item = &'a Entry> {
        whole.children.iter().map(|child| &self.tasks[child.index()])
    }

    /// Whether a step of this iteration or an earlier one is not over.
    pub(super) fn is_open_before(&self, whole: &Entry) -> bool {
        self.steps_of(whole).any(|step| step.iteration <= whole.round && !step.place.is_settled())
    }

    /// Whether there are steps of the iteration it is in that were not dropped.
    fn has_steps(&self, whole: &Entry) -> bool {
        let dropped = Place::SkippedFor(TaskId::ROOT);
        self.steps_of(whole).any(|step| step.iteration == whole.round && step.place != dropped)
    }

    /// A person continues a step: one that was begun, and nothing else meanwhile.
    pub(super) fn continued(&mut self, task: TaskId) -> Kept {
        let entry = self.entry(task)?;
        let name = entry.name.clone();
        kept(entry.kind == Kind::Session && entry.attempts > 0, || {
            format!("S1: {name} is continued and never was begun")
        })?;
        let is_free = matches!(entry.place, Place::Open | Place::At(_) | Place::Waiting(_));
        kept(is_free, || format!("I4: {name} is continued while it is worked on"))?;
        entry.continued += 1;
        entry.is_continued = true;
        self.focus = Some(task);
        Ok(())
    }

    /// Only what was brought for an iteration that did not begin.
    pub(super) fn may_be_dropped(&self, step: &Entry) -> Kept {
        let round = step.parent.map_or(0, |parent| self.tasks[parent.index()].round);
        kept(step.kind == Kind::Session && step.iteration > round, || {
            format!("S1: {} was dropped and its iteration has begun", step.name)
        })
    }

    /// Re-opened it goes to its steps only where there are any to look at.
    pub(super) fn may_go_to_its_steps(&self, whole: &Entry) -> Kept {
        let is_open = self.steps_of(whole).any(|task| !task.place.is_settled());
        kept(is_open || self.has_steps(whole), || {
            "S1: the run goes on in an iteration without steps".to_owned()
        })
    }

    /// Nobody is asked about an iteration before all its steps are over, and nothing is decided
    /// without tests where there are any.
    pub(super) fn may_be_assessed(&self, whole: &Entry, step: Step) -> Kept {
        let mut children = whole.children.iter().map(|child| &self.tasks[child.index()]);
        let open = children.find(|task| !task.place.is_settled());
        kept(open.is_none(), || {
            format!("S1: {step} comes before {} is over", open.map_or("", |task| &task.name))
        })?;
        // An iteration without steps shows nothing, unless a person had an earlier step done again.
        kept(self.has_steps(whole) || whole.is_given_again, || {
            format!("S1: {step} comes in an iteration without steps")
        })?;
        let is_tested = whole.proof.contains_key(&Step::Validate) || whole.left_out(Step::Validate);
        kept(step == Step::Validate || is_tested, || format!("I6: {step} comes without tests"))
    }

    /// Somebody said so, and the tests passed on what is on the branch now.
    pub(super) fn goal_is_reached(&self, whole: &Entry) -> Kept {
        kept(says_yes(whole), || "I6: nobody said that the goal is reached".to_owned())?;
        let is_proven = match self.switches.contains(&Switch::HasTests) {
            true => whole.did(Step::Validate) && whole.validated == self.merged,
            false => whole.left_out(Step::Validate) || whole.did(Step::Validate),
        };
        kept(is_proven, || "I6: the tests did not pass on what is delivered".to_owned())?;
        self.is_accounted_for(whole)?;
        self.is_covered(whole)
    }

    /// A yes that is not believed: the tests are against it, and that is on the record.
    pub(super) fn is_overruled_rightly(&self, whole: &Entry) -> Kept {
        kept(self.goal_is_reached(whole).is_err(), || {
            "I7: the run lost an iteration although the goal was reached".to_owned()
        })?;
        kept(whole.overruled > 0 || !says_yes(whole), || {
            "I6: a yes was overruled off the record".to_owned()
        })
    }

    /// The next iteration hears why there is one.
    pub(super) fn says_why(&self, task: TaskId, reasons: &[RoundReason]) -> Kept {
        let entry = &self.tasks[task.index()];
        let Some(at) = entry.place.step().filter(|_| entry.kind == Kind::Goal) else {
            return Ok(());
        };
        if at == Step::Decide && !says_yes(entry) {
            return kept(!reasons.is_empty(), || "S1: nothing is carried on".to_owned());
        }
        let shown_by = if at == Step::Decide { Step::Validate } else { at };
        let words = match entry.proof.get(&shown_by) {
            Some((Outcome::Failed { why }, _)) => Some(why),
            Some(_) | None => None,
        };
        let is_judged = self.is_accounted_for(entry).and_then(|()| self.is_covered(entry));
        if at == Step::Decide && is_judged.is_err() && words.is_none() {
            return kept(!reasons.is_empty(), || "S1: nothing is carried on".to_owned());
        }
        let says = |reason: &RoundReason| reason.step == shown_by && Some(&reason.text) == words;
        kept(reasons.iter().any(says), || format!("S1: what {shown_by} said is not carried on"))
    }

    /// Only what its session made is merged.
    pub(super) fn is_worked(&self, entry: &Entry, tree: &str) -> Kept {
        let fixed = entry.proof.get(&Step::Fix);
        let worked = matches!(fixed.or_else(|| entry.proof.get(&Step::WorkflowStep)),
            Some((Outcome::Passed, facts)) if facts.tree.as_deref() == Some(tree));
        kept(worked, || format!("I6: {tree} of {} is not what its session made", entry.name))
    }

    /// A step is left out only for a failure it depends on, and only where that was wished.
    pub(super) fn is_left_out_rightly(&self, entry: &Entry, by: TaskId) -> Kept {
        let failed = self.tasks[by.index()].place == Place::Failed;
        let depends = self.depends(entry, by);
        kept(self.fails_fast() && failed && depends, || {
            format!("S1: {} is left out for nothing", entry.name)
        })
    }

    fn depends(&self, entry: &Entry, on: TaskId) -> bool {
        entry.needs.iter().any(|need| *need == on || self.depends(&self.tasks[need.index()], on))
    }
}

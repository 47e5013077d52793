//! Whether a task may move to a step, round and proof included.

use super::books::{Books, Entry, Kind, Place};
use super::rule::{Kept, kept};
use super::table;
use autopilot_core::event::{Outcome, Verdict};
use autopilot_core::flow::Flow;
use autopilot_core::id::TaskId;
use autopilot_core::limit::ReviewGate;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

impl Books {
    pub(super) fn moved(&mut self, task: TaskId, step: Step, round: u32) -> Kept {
        let before = self.entry(task)?.clone();
        let from = before.place.step();
        let legal = match before.kind {
            Kind::Given => table::root(from),
            Kind::Planned => table::plan(from),
            Kind::Divided => table::divided(from),
            Kind::Paired => table::paired(from),
            // Back to its steps because a person continues one of them.
            Kind::Goal if step == Step::Tasks && self.is_open_before(&before) => &[Step::Tasks],
            Kind::Goal => table::goal(from),
            Kind::Session if before.is_continued && step == Step::WorkflowStep => {
                &[Step::WorkflowStep]
            }
            // What was refused is done again: a repair could leave it as it is.
            Kind::Session if from.is_none() && before.said_no(Step::WorkflowStep) => {
                &[Step::WorkflowStep]
            }
            Kind::Session => table::session(from),
        };
        kept(!before.place.is_settled() && legal.contains(&step), || {
            format!("I9: {} went from {:?} to {step}", before.name, before.place)
        })?;
        if from.is_none() && !before.is_continued {
            self.may_open(task, step, &before)?;
        }
        if step == Step::AcceptTests {
            self.may_ask_about_tests(&before)?;
        }
        if step == Step::Coverage {
            self.may_map_tests(&before)?;
        }
        if step == Step::Merge {
            self.is_proven(task, before.tree.as_deref().unwrap_or_default())?;
        }
        let is_next = round == before.round + 1;
        kept(round == before.round || is_next, || "I9: a round was left out".to_owned())?;
        match before.kind {
            Kind::Paired | Kind::Session
                if matches!(step, Step::Build | Step::WorkflowStep | Step::Fix) =>
            {
                let is_asked = from.is_none() || before.is_continued;
                kept(is_next || before.rounds_ever + 1 == round || is_asked, || {
                    format!("I9: {} repeats round {round}", before.name)
                })?;
                // What is said in a round that is under way begins none.
                if is_next || !before.is_continued {
                    self.may_begin_a_round(&before)?;
                }
                let entry = self.entry(task)?;
                entry.proof.clear();
                entry.waived.clear();
            }
            Kind::Paired | Kind::Session => {}
            Kind::Given | Kind::Planned | Kind::Divided | Kind::Goal => {
                self.whole_moves(&before, from, step, is_next)?;
                if is_next {
                    let entry = self.entry(task)?;
                    entry.proof.clear();
                    entry.waived.clear();
                }
            }
        }
        let entry = self.entry(task)?;
        let is_again = !is_next && from != Some(Step::Workflow);
        if is_again && step == Step::Tasks && entry.kind == Kind::Goal {
            entry.is_given_again = true;
            entry.failed_round = 0;
            entry.finished.clear();
        } else if is_next {
            entry.is_given_again = false;
        }
        if is_next {
            entry.broke_here.clear();
            entry.finished.clear();
        }
        entry.round = round;
        entry.place = Place::At(step);
        Ok(())
    }

    pub(super) fn may_begin_a_round(&self, before: &Entry) -> Kept {
        let limits = &self.limits;
        kept(before.rounds < limits.rounds_of(before.parent.is_none()), || {
            format!("I7: {} begins more rounds than it may", before.name)
        })?;
        kept(before.rounds_ever < limits.rounds_lifetime_max, || {
            format!("I7: {} lives longer than it may", before.name)
        })
    }

    /// What stands behind a step of a run, or of a task that is divided.
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing has to come before the others")]
    pub(super) fn whole_moves(
        &self,
        before: &Entry,
        from: Option<Step>,
        step: Step,
        is_next: bool,
    ) -> Kept {
        let name = &before.name;
        let goes_back = match (from, step) {
            _ if before.kind == Kind::Goal => self.goes_back_for_the_goal(before, step),
            (Some(Step::ApprovePlan), Step::Plan) => true,
            (Some(Step::Validate | Step::WholeReview | Step::Uat | Step::Prove), Step::Tasks) => {
                true
            }
            (Some(_) | None, _) => false,
        };
        kept(goes_back == is_next, || format!("I7: {name} goes from {from:?} to {step} for free"))?;
        if is_next {
            kept(before.failed_round == before.round, || {
                format!("I7: round {} of {name} failed off the record", before.round)
            })?;
            self.may_begin_a_round(before)?;
        }
        match step {
            Step::Schedule => {
                kept(before.did(Step::Plan), || format!("I6: nobody planned {name}"))?;
                let agreed = before.did(Step::ApprovePlan) || before.left_out(Step::ApprovePlan);
                kept(before.kind == Kind::Divided || agreed, || "I6: unapproved".to_owned())
            }
            Step::Push | Step::PullRequest => self.whole_is_proven(before),
            Step::Tasks if before.kind == Kind::Goal && from.is_none() => {
                self.may_go_to_its_steps(before)
            }
            Step::Validate | Step::Coverage | Step::Completion | Step::Decide
                if before.kind == Kind::Goal =>
            {
                self.may_be_assessed(before, step)
            }
            _ => Ok(()),
        }
    }

    /// All tasks are in, and since the last of them the whole was proven and looked at.
    pub(super) fn whole_is_proven(&self, whole: &Entry) -> Kept {
        let children = || whole.children.iter().map(|child| &self.tasks[child.index()]);
        // Of a goal whoever says that it is reached has weighed what failed.
        let is_over = |task: &Entry| match whole.kind {
            Kind::Goal => task.place.is_settled(),
            Kind::Given | Kind::Planned | Kind::Divided | Kind::Paired | Kind::Session => {
                task.place.satisfies()
            }
        };
        kept(!whole.children.is_empty() && children().all(is_over), || {
            format!("I9: {} goes on over open tasks", whole.name)
        })?;
        if whole.kind == Kind::Goal {
            self.goal_is_reached(whole)?;
        }
        let open = self.tasks[1..].iter().find(|task| !task.place.is_settled());
        kept(whole.parent.is_some() || open.is_none(), || {
            format!("I9: the run goes on over {}", open.map_or("", |task| &task.name))
        })?;
        if whole.kind == Kind::Planned {
            kept(whole.did(Step::Validate), || "I6: the whole is not validated".to_owned())?;
            let accepted =
                matches!(whole.proof.get(&Step::Uat), Some((Outcome::Skipped { .. }, _)))
                    || whole.did(Step::Uat)
                    || whole.left_out(Step::Uat);
            kept(accepted, || "I6: the whole is not accepted".to_owned())?;
            self.whole_is_reviewed(whole)?;
            self.is_accounted_for(whole)?;
        }
        if whole.kind != Kind::Divided {
            let is_asked = self.switches.contains(&Switch::ColdProof);
            let is_proven = match (is_asked, self.is_warm) {
                (true, true) => whole.did(Step::Prove) && whole.proven == self.merged,
                (true, false) => whole.left_out(Step::Prove) || whole.did(Step::Prove),
                (false, _) => !whole.did(Step::Prove) && !whole.left_out(Step::Prove),
            };
            kept(is_proven, || "I6: the result is not proven from nothing".to_owned())?;
            let agreed = whole.did(Step::ApproveResult) || whole.left_out(Step::ApproveResult);
            kept(agreed, || "I6: nobody agreed to the whole".to_owned())?;
        }
        Ok(())
    }

    /// Where a plan is reviewed as a whole, somebody has agreed to what all its tasks make together.
    fn whole_is_reviewed(&self, whole: &Entry) -> Kept {
        let is_asked = self.switches.contains(&Switch::WholeReview);
        let agrees = match (whole.proof.get(&Step::WholeReview), self.limits.review) {
            (None, _) => whole.left_out(Step::WholeReview) || !is_asked,
            (Some((Outcome::Skipped { .. }, _)), _) => true,
            (Some(_), ReviewGate::Advisory) => true,
            (Some((_, facts)), ReviewGate::Required) => facts.verdict() == Some(Verdict::Approve),
            (Some((_, facts)), ReviewGate::Evidence) => facts.blocking() == 0,
        };
        kept(agrees, || "I6: nobody agreed to the whole result".to_owned())?;
        let is_out = !whole.proof.contains_key(&Step::WholeReview);
        kept(is_asked || is_out, || "I6: the whole is reviewed unasked".to_owned())
    }

    pub(super) fn may_open(&self, task: TaskId, step: Step, before: &Entry) -> Kept {
        let Some(parent) = before.parent else { return Ok(()) };
        kept(self.tasks[parent.index()].place == Place::At(Step::Tasks), || {
            format!("I9: {} begins before its time", before.name)
        })?;
        // Re-opened for the sake of a task below it, it had begun long ago.
        let goes_on = step == Step::Tasks;
        kept(goes_on || self.unmet(before).is_none(), || {
            format!("I9: {} begins before what it needs", before.name)
        })?;
        let mut others = self.tasks.iter().enumerate().skip(1);
        let is_alone = !others.any(|(at, other)| at != task.index() && other.place.is_under_way());
        kept(is_alone || self.flow != Some(Flow::Queue), || {
            format!("I9: {} begins beside another task of the queue", before.name)
        })
    }

    /// Whether a setting saves a step: a review after a failed validation, cases that nothing runs.
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is spared")]
    fn is_spared(&mut self, task: TaskId, step: Step) -> Result<bool, String> {
        let (review, cases) = (Switch::SpareReview, Switch::SpareCases);
        let [spares_review, spares_cases, runs_cases] =
            [review, cases, Switch::Uat].map(|switch| self.switches.contains(&switch));
        let is_waived = !self.switches.contains(&Switch::Review);
        let policy = self.limits.yardstick_changes;
        let is_cold = !self.is_warm && self.switches.contains(&Switch::ColdProof);
        let before = self.entry(task)?.clone();
        let has_nothing_to_map = self.has_nothing_to_map(&before);
        let entry = self.entry(task)?;
        Ok(match step {
            Step::Prove => is_cold,
            Step::Coverage => has_nothing_to_map,
            Step::Review => spares_review && entry.said_no(Step::Validate),
            // Reviews that a person waives are waived for the whole as well, unless tests of the base
            // need somebody to accept them.
            Step::WholeReview => is_waived && !entry.has_open_tests(policy),
            Step::UatGenerate => {
                spares_cases && !runs_cases && !entry.spec.switches.contains(&Switch::Uat)
            }
            _ => false,
        })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is switched")]
    pub(super) fn stage_skipped(&mut self, task: TaskId, step: Step) -> Kept {
        if self.is_spared(task, step)? {
            self.entry(task)?.waived.insert(step);
            return Ok(());
        }
        let switch = match step {
            Step::Preflight => Switch::Baseline,
            Step::Review => Switch::Review,
            Step::Uat => Switch::Uat,
            Step::Push => Switch::Push,
            Step::PullRequest => Switch::Pr,
            Step::ApprovePlan => Switch::PlanGate,
            Step::ApproveResult => Switch::EndGate,
            Step::Validate => Switch::HasTests,
            _ => return Err(format!("I6: {step} can't be switched off")),
        };
        let is_on =
            self.switches.contains(&switch) || self.entry(task)?.spec.switches.contains(&switch);
        kept(!is_on, || format!("I6: {step} was skipped and is on"))?;
        self.entry(task)?.waived.insert(step);
        Ok(())
    }
}

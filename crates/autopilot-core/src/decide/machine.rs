//! The state machine: reads a pipeline's table and moves a task along it. It names no flow.

use super::RecordDraft;
use crate::coverage;
use crate::event::{Event, Failure, HaltWhy, RoundMark, Skip, TaskEnd};
use crate::flow::RoundReason;
use crate::id::TaskId;
use crate::last_word;
use crate::pipeline::{ALL_COLD, ChildOrder, Else, Failing, Sparing, Stage, Switch, When, Work};
use crate::rail;
use crate::state::{Status, Task};
use crate::step::Step;
use crate::three_runs;

impl RecordDraft<'_> {
    /// Moves a task to the stage after its current one.
    pub(super) fn advance(&mut self, task: TaskId) {
        let now = self.state.task(task);
        let Some(place) = now.step().and_then(|step| now.pipeline.place(step)) else { return };
        let round = now.round;
        // Past its tasks with a failure among them, it was only there for what has been merged.
        if let Some(failed) = self.failed_children(task).filter(|_| now.is_past_children()) {
            return self.fail(task, Failure::Children { failed });
        }
        self.enter(task, place + 1, round);
    }

    /// Enters the first stage from `place` on whose condition holds; past the last, the task closes.
    pub(super) fn enter(&mut self, task: TaskId, place: usize, round: u32) {
        let stages = self.state.task(task).pipeline.stages();
        for stage in stages.iter().skip(place) {
            if !self.is_taken(task, stage, round) {
                continue;
            }
            self.emit(Event::TaskMoved { task, step: stage.step, round });
            match stage.work {
                Work::Slot | Work::Serial | Work::Person => return,
                Work::Children(order, _) => return self.open_children(task, order),
                Work::Decide => {
                    if !self.weigh(task, stage) {
                        return;
                    }
                }
            }
        }
        self.settle(task, TaskEnd::Closed);
    }

    fn is_taken(&mut self, task: TaskId, stage: &Stage, round: u32) -> bool {
        let is_due = self.is_due(task, stage, round);
        let spared = stage.spared.filter(|_| is_due).and_then(|spared| self.spares(task, spared));
        let Some(why) = spared else { return is_due };
        self.emit(Event::StageSkipped { task, step: stage.step, why: why.to_owned() });
        false
    }

    /// The reason for which a stage is saved now, if there is one.
    fn spares(&self, task: TaskId, spared: Sparing) -> Option<&'static str> {
        let now = self.state.task(task);
        let is_on = |switch: Switch| self.state.is_on(switch, now);
        match spared {
            Sparing::AfterNo(switch, step) => {
                let said_no =
                    now.shown(step).is_some_and(|shown| shown.outcome.failure().is_some());
                (is_on(switch) && said_no).then(|| switch.why_skipped())
            }
            Sparing::Without(switch, other) => {
                (is_on(switch) && !is_on(other)).then(|| switch.why_skipped())
            }
            Sparing::Waived(switch) => {
                let is_needed = three_runs::waits_for_judge(&self.state.run, now);
                (!is_on(switch) && !is_needed).then(|| switch.why_skipped())
            }
            Sparing::NothingToCover => coverage::nothing_to_cover(now),
            Sparing::AllCold => (!self.state.run.seeds.is_used).then_some(ALL_COLD),
        }
    }

    fn is_due(&mut self, task: TaskId, stage: &Stage, round: u32) -> bool {
        match stage.when {
            When::Always => true,
            When::FirstRound => round == 1,
            When::LaterRounds => round > 1 && !self.is_begun_anew(task, round),
            When::Silently(switch) => self.state.is_on(switch, self.state.task(task)),
            When::LastWord => last_word::is_due(self.state, self.state.task(task)),
            When::TestsAreOpen => three_runs::asks_a_person(
                self.state.run.limits.yardstick_changes,
                self.state.task(task),
            ),
            When::On(switch) => {
                let on = self.state.is_on(switch, self.state.task(task));
                if !on {
                    let why = self.why_off(switch, task).to_owned();
                    self.emit(Event::StageSkipped { task, step: stage.step, why });
                }
                on
            }
        }
    }

    /// Whether a first-round stage was repeated in this round because a person asked for it.
    fn is_begun_anew(&self, task: TaskId, round: u32) -> bool {
        let now = self.state.task(task);
        let mut first = now.pipeline.stages().iter().filter(|s| s.when == When::FirstRound);
        first.any(|stage| now.last(stage.step).is_some_and(|shown| shown.round == round))
    }

    /// The reason for a skipped stage: the run may do it once for all tasks.
    fn why_off(&self, switch: Switch, task: TaskId) -> &'static str {
        let mut above = self.state.task(task).parent;
        while let Some(parent) = above {
            let parent = self.state.task(parent);
            if parent.spec.switches.contains(&switch) {
                return "done once for the whole run";
            }
            above = parent.parent;
        }
        switch.why_skipped()
    }

    /// Whether the round is good; if not, starts the next round or ends the task.
    fn weigh(&mut self, task: TaskId, stage: &Stage) -> bool {
        let now = self.state.task(task);
        let weighed = now.pipeline.weigh(self.state, now);
        if let Some(why) = weighed.overruled {
            self.emit(Event::Overruled { task, why });
        }
        if weighed.reasons.is_empty() {
            return true;
        }
        match stage.fails {
            Else::Again(step) => self.next_round(task, weighed.reasons, step),
            Else::Fail | Else::Note | Else::FixBy(_) | Else::Next { .. } => {
                let why = weighed.reasons[0].text.clone();
                self.fail(task, Failure::Refused { step: stage.step, why });
            }
        }
        false
    }

    pub(super) fn next_round(&mut self, task: TaskId, reasons: Vec<RoundReason>, again: Step) {
        let now = self.state.task(task);
        let round = now.round;
        let mark = RoundMark { tree: now.tree.clone(), failure: self.failure_mark(task, &reasons) };
        self.emit(Event::RoundFailed { task, round, reasons, mark });
        let now = self.state.task(task);
        let limits = &self.state.run.limits;
        if let Some(rail) = rail::tripped(&now.marks, now.spent.rounds_lived, limits) {
            self.emit(Event::RailTripped { task, rail: rail.clone() });
            return self.fail(task, Failure::Rail { rail });
        }
        let used = now.rounds_used();
        if used >= limits.rounds_of(now.parent.is_none()) {
            return self.fail(task, Failure::Rounds { rounds: used });
        }
        let place = now.pipeline.place(again).unwrap_or(0);
        self.enter(task, place, round + 1);
    }

    /// The text by which the rails compare failures: the fingerprint of a step, else its reason.
    fn failure_mark(&self, task: TaskId, reasons: &[RoundReason]) -> String {
        let task = self.state.task(task);
        let one = |reason: &RoundReason| {
            let seen = task.shown(reason.step).and_then(|shown| shown.facts.fingerprint.clone());
            format!("{}:{}", reason.step, seen.unwrap_or_else(|| reason.text.clone()))
        };
        reasons.iter().map(one).collect::<Vec<_>>().join(";")
    }

    pub(super) fn fail(&mut self, task: TaskId, why: Failure) {
        if self.state.task(task).talk.stands.is_some() {
            return self.end_turn(task, why.to_string());
        }
        self.settle(task, TaskEnd::Failed { why });
    }

    pub(super) fn settle(&mut self, task: TaskId, end: TaskEnd) {
        let is_all = self.state.run.focus == Some(task);
        self.settle_among_others(task, end);
        if is_all {
            self.halt(HaltWhy::Continued, false);
        }
    }

    fn settle_among_others(&mut self, task: TaskId, end: TaskEnd) {
        let failed = matches!(end, TaskEnd::Failed { .. });
        self.emit(Event::TaskSettled { task, end });
        let Some(parent) = self.state.task(task).parent else { return };
        let Some(Work::Children(order, failing)) =
            self.state.task(parent).stage().map(|stage| stage.work)
        else {
            return;
        };
        if failed {
            match failing {
                Failing::Stop => self.skip_unopened(parent, task),
                Failing::Independent => self.skip_dependants(task),
                Failing::Assess if self.state.is_failing_fast() => self.skip_dependants(task),
                Failing::Assess => {}
            }
        }
        match order {
            ChildOrder::OneByOne => self.open_children(parent, order),
            // Only dependants can have waited for this task; looking at all siblings would cost the
            // square of their number.
            ChildOrder::Parallel => {
                for dependant in self.state.task(task).dependants.clone() {
                    self.open(dependant);
                }
                self.close_children(parent);
            }
        }
    }

    fn skip_unopened(&mut self, parent: TaskId, by: TaskId) {
        for child in self.state.task(parent).children.clone() {
            if self.state.task(child).status == Status::Open {
                let end = TaskEnd::Skipped { why: Skip::Stopped { by } };
                self.emit(Event::TaskSettled { task: child, end });
            }
        }
    }

    fn skip_dependants(&mut self, by: TaskId) {
        let mut blocked = self.state.task(by).dependants.clone();
        while let Some(task) = blocked.pop() {
            if self.state.task(task).status == Status::Open {
                let end = TaskEnd::Skipped { why: Skip::Blocked { by } };
                self.emit(Event::TaskSettled { task, end });
                blocked.extend(self.state.task(task).dependants.iter().copied());
            }
        }
    }

    /// Opens the children whose turn it is; when all have settled, the parent advances.
    pub(super) fn open_children(&mut self, parent: TaskId, order: ChildOrder) {
        let children = self.state.task(parent).children.clone();
        let one_by_one = order == ChildOrder::OneByOne;
        let mut is_full =
            one_by_one && children.iter().any(|child| self.state.task(*child).is_under_way());
        for child in children {
            if is_full {
                break;
            }
            is_full |= self.open(child) && one_by_one;
        }
        self.close_children(parent);
    }

    /// Opens a task if all its dependencies are met; it may have been re-opened before.
    fn open(&mut self, task: TaskId) -> bool {
        let now = self.state.task(task);
        let is_its_turn = now.status == Status::Open && now.needs == 0;
        if is_its_turn {
            self.reenter(task);
        }
        is_its_turn
    }

    /// Opens a task, for the first time or again. An effect that broke is tried again, existing work
    /// is repaired, refused work is done again, and the tasks it has brought are continued; without
    /// any of these it starts from the beginning. Tasks given with the run are no sign that earlier stages were done.
    pub(super) fn reenter(&mut self, task: TaskId) {
        let now = self.state.task(task);
        let has_brought = now.pipeline.stages().iter().any(|stage| stage.spawns.is_some());
        let (round, has_tasks) = self.round_with_tasks(task);
        let below = now.pipeline.children().filter(|_| has_brought && has_tasks);
        if let Some(place) = below.and_then(|step| now.pipeline.place(step)) {
            self.enter(task, place, round);
        } else if let Some(step) = now.broken_effect() {
            // The work is good and may even be merged already: the effect finds its own trace.
            self.emit(Event::TaskMoved { task, step, round });
        } else if let Some(step) = now.pipeline.continues_at().filter(|step| now.has_failed(*step))
        {
            // The work was not accepted, so there is nothing to repair yet.
            let round = round + u32::from(now.tree.is_some());
            self.emit(Event::TaskMoved { task, step, round });
        } else if now.tree.is_some() {
            let place = now.pipeline.place(now.pipeline.reopens_at()).unwrap_or(0);
            self.enter(task, place, round + 1);
        } else {
            self.enter(task, 0, round);
        }
    }

    /// The round in which a re-opened task continues, and whether that round has tasks. Open tasks of
    /// the next round start that round.
    pub(super) fn round_with_tasks(&self, task: TaskId) -> (u32, bool) {
        let now = self.state.task(task);
        if !now.pipeline.has_tasks_by_round() {
            return (now.round, !now.children.is_empty());
        }
        let is_next = |child: &TaskId| {
            let child = self.state.task(*child);
            child.of_round > now.round && !child.is_settled()
        };
        if now.children.iter().any(is_next) {
            return (now.round + 1, true);
        }
        (now.round, self.has_tasks_of(task, now.round))
    }

    pub(super) fn has_tasks_of(&self, task: TaskId, round: u32) -> bool {
        let mut children = self.state.task(task).children.iter();
        children.any(|child| self.state.task(*child).of_round == round)
    }

    fn close_children(&mut self, parent: TaskId) {
        let now = self.state.task(parent);
        let Some(Work::Children(..)) = now.stage().map(|stage| stage.work) else { return };
        if now.unsettled > 0 {
            return;
        }
        if now.children.is_empty() {
            let why = "it has no tasks".to_owned();
            let step = now.step().unwrap_or(Step::Tasks);
            return self.fail(parent, Failure::Refused { step, why });
        }
        match self.failed_children(parent) {
            None => self.advance(parent),
            Some(_) if last_word::is_owed(self.state, now) => {
                let round = now.round;
                self.emit(Event::TaskMoved { task: parent, step: Step::Prove, round });
            }
            Some(failed) => self.fail(parent, Failure::Children { failed }),
        }
    }

    /// How many children of a task have failed, if those that are not done are a failure of it.
    fn failed_children(&self, parent: TaskId) -> Option<u32> {
        let now = self.state.task(parent);
        let failing = now.pipeline.stages().iter().find_map(|stage| match stage.work {
            Work::Children(_, failing) => Some(failing),
            Work::Slot | Work::Serial | Work::Person | Work::Decide => None,
        });
        let ends = || now.children.iter().filter_map(|child| self.state.task(*child).end());
        let is_good =
            |end: &TaskEnd| matches!(end, TaskEnd::Closed | TaskEnd::Skipped { why: Skip::Asked });
        let is_failure = failing? != Failing::Assess && !ends().all(is_good);
        // A task that was blocked or stopped has not failed itself.
        let failed = ends().filter(|end| matches!(end, TaskEnd::Failed { .. })).count() as u32;
        is_failure.then_some(failed)
    }
}

impl Task {
    /// Whether the task has started and is not over.
    pub(super) fn is_under_way(&self) -> bool {
        self.step().is_some()
    }

    /// The effect of the controller, such as a merge, that broke last.
    fn broken_effect(&self) -> Option<Step> {
        let is_effect = |step: &Step| {
            let mut stages = self.pipeline.stages().iter();
            stages.any(|stage| stage.step == *step && stage.work == Work::Serial)
        };
        self.broken_at.filter(is_effect).filter(|_| self.pipeline.children().is_none())
    }

    /// Whether the task is at an effect of the controller, such as a merge.
    pub(super) fn is_at_an_effect(&self) -> bool {
        self.stage().is_some_and(|stage| stage.work == Work::Serial)
    }
}

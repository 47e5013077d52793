//! What people ask for. Asking for what already is changes nothing.

use super::Draft;
use crate::event::{End, Event, Facts, Failure, Outcome, Skip};
use crate::id::TaskId;
use crate::input::Ask;
use crate::pipeline::Work;
use crate::state::Status;

impl Draft<'_> {
    pub(super) fn asked(&mut self, ask: Ask) {
        match ask {
            Ask::Halt { why, now } => self.halt(why, now),
            Ask::Resume => {
                if self.state.run.halt.is_some() || self.state.run.focus.is_some() {
                    self.go_on();
                }
            }
            Ask::Retry { task } => self.retry(&task),
            Ask::Continue { task, words } => self.go_on_with(&task, *words),
            Ask::Skip { task } => self.skip(&task),
            Ask::Approve { by, answer } => self.approve(&by, answer),
            Ask::Reject { by, why } => self.reject(&by, &why),
            Ask::Limit(limits) => {
                if self.state.run.limits != *limits {
                    self.emit(Event::LimitsChanged { limits, config: None, model: None });
                }
            }
            Ask::Models { limits, config, model } => {
                if self.state.run.config != config {
                    self.emit(Event::LimitsChanged { limits, config: Some(config), model });
                }
            }
            Ask::Switch { switch, on, by } => {
                if self.state.run.switches.contains(&switch) != on {
                    self.emit(Event::Switched { switch, on, by });
                }
            }
        }
    }

    pub(super) fn go_on(&mut self) {
        self.emit(Event::Resumed);
        self.free_all();
    }

    fn approve(&mut self, by: &str, answer: Option<String>) {
        let Some((id, _)) = self.state.gate() else { return };
        let notes = vec![format!("approved by {by}")];
        self.end(id, Outcome::Passed, Box::new(Facts { answer, notes, ..Facts::default() }));
    }

    fn reject(&mut self, by: &str, why: &str) {
        let Some((id, _)) = self.state.gate() else { return };
        let why = format!("rejected by {by}: {why}");
        self.end(id, Outcome::Failed { why }, Box::default());
    }

    /// Re-opens a task that did not close, what it blocked, and the run around it.
    fn retry(&mut self, name: &str) {
        let Some(task) = self.state.named(name).map(|task| task.id) else { return };
        let retriable = match &self.state.task(task).status {
            // Nothing is gained by it until one of the tasks below is retried.
            Status::Settled(End::Failed { why: Failure::Children { .. } }) => false,
            // Its round was never begun and is not now.
            Status::Settled(End::Skipped { why: Skip::Dropped }) => false,
            Status::Settled(End::Failed { .. } | End::Skipped { .. }) => true,
            Status::Settled(End::Closed)
            | Status::Open
            | Status::At { .. }
            | Status::Running { .. }
            | Status::Waiting { .. } => false,
        };
        if !retriable || !self.may_reopen(task) {
            return;
        }
        let again = self.after_its_last_round(task);
        self.emit(Event::TaskReopened { task });
        self.reopen_blocked(task);
        if task == TaskId::ROOT {
            return match again {
                Some(place) => self.enter(task, place, self.state.task(task).round + 1),
                None => self.reenter(task),
            };
        }
        self.reopen_above(task);
        self.open_siblings(task);
    }

    /// Opens what may begin now, beside it and beside what is around it. In a queue a task waits its
    /// turn, and one that is re-opened before the run has reached its tasks waits for that.
    fn open_siblings(&mut self, task: TaskId) {
        let Some(parent) = self.state.task(task).parent else { return };
        match self.state.task(parent).stage().map(|stage| stage.work) {
            Some(Work::Children(order, _)) => self.open_children(parent, order),
            Some(Work::Slot | Work::Serial | Work::Person | Work::Decide) | None => {}
        }
        self.open_siblings(parent);
    }

    /// Not while what it needs has failed, nor when the run has gone on past its tasks and is about
    /// to publish them, nor beyond the rounds of a lifetime, nor without money of its own.
    fn may_reopen(&self, task: TaskId) -> bool {
        let now = self.state.task(task);
        let lived = now.spent.rounds_lived >= self.state.run.limits.rounds_lifetime_max;
        let can_be = !self.state.is_behind(task) && !lived && self.blocker(task).is_none();
        can_be && !self.has_spent_its_own(task)
    }

    /// The failure that keeps a task from ever beginning, if there is one.
    fn blocker(&self, task: TaskId) -> Option<TaskId> {
        let needs = &self.state.task(task).spec.depends_on;
        let needs = needs.iter().filter_map(|name| self.state.named(name));
        let mut unmet = needs.filter(|need| self.state.is_dead_end(need.id));
        unmet.find_map(|need| match &need.status {
            Status::Settled(End::Failed { .. }) => Some(need.id),
            Status::Settled(End::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } }) => {
                Some(*by)
            }
            Status::Settled(End::Closed | End::Skipped { why: Skip::Asked | Skip::Dropped })
            | Status::Open
            | Status::At { .. }
            | Status::Running { .. }
            | Status::Waiting { .. } => None,
        })
    }

    pub(super) fn is_under_way(&self, task: TaskId) -> bool {
        match self.state.task(task).status {
            Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => true,
            Status::Open | Status::Settled(_) => false,
        }
    }

    pub(super) fn reopen_blocked(&mut self, by: TaskId) {
        for id in 0..self.state.tasks.len() {
            let task = TaskId(id as u32);
            let was_blocked = match &self.state.task(task).status {
                Status::Settled(End::Skipped {
                    why: Skip::Blocked { by: who } | Skip::Stopped { by: who },
                }) => *who == by,
                Status::Settled(End::Closed | End::Failed { .. } | End::Skipped { .. })
                | Status::Open
                | Status::At { .. }
                | Status::Running { .. }
                | Status::Waiting { .. } => false,
            };
            if was_blocked {
                self.emit(Event::TaskReopened { task });
                // Another failure may stand in its way as well.
                if let Some(by) = self.blocker(task) {
                    let end = End::Skipped { why: Skip::Blocked { by } };
                    self.emit(Event::TaskSettled { task, end });
                }
            }
        }
    }

    fn reopen_above(&mut self, task: TaskId) {
        let Some(parent) = self.state.task(task).parent else { return };
        if !self.state.task(parent).is_settled() {
            return;
        }
        self.emit(Event::TaskReopened { task: parent });
        self.reopen_blocked(parent);
        // From above, so that nobody goes on inside of what has not.
        self.reopen_above(parent);
        let now = self.state.task(parent);
        if let Some(step) = now.pipeline.children() {
            let round = now.round;
            self.emit(Event::TaskMoved { task: parent, step, round });
        }
        self.drop_unbegun(parent);
    }

    /// Where a task goes on that lost its last round and has nothing for the next: such a round is
    /// not looked at again, the next one begins.
    fn after_its_last_round(&self, task: TaskId) -> Option<usize> {
        let now = self.state.task(task);
        let is_lost = match &now.status {
            Status::Settled(End::Failed { why }) => match why {
                Failure::Rounds { .. } | Failure::Rail { .. } => true,
                Failure::Refused { .. }
                | Failure::Broke { .. }
                | Failure::Interrupted { .. }
                | Failure::Money { .. }
                | Failure::Children { .. } => false,
            },
            Status::Settled(End::Closed | End::Skipped { .. })
            | Status::Open
            | Status::At { .. }
            | Status::Running { .. }
            | Status::Waiting { .. } => false,
        };
        let has_next = self.round_with_tasks(task).0 > now.round;
        now.pipeline.place(now.pipeline.next().filter(|_| is_lost && !has_next)?)
    }

    /// Work that exists is repaired, work that was refused is done again, tasks it has brought are gone on with; where there is nothing
    /// the task begins anew. Tasks that were given say nothing of what was done before them.
    pub(super) fn reenter(&mut self, task: TaskId) {
        let now = self.state.task(task);
        let has_brought = now.pipeline.stages().iter().any(|stage| stage.spawns.is_some());
        let (round, has_tasks) = self.round_with_tasks(task);
        let below = now.pipeline.children().filter(|_| has_brought && has_tasks);
        if let Some(place) = below.and_then(|step| now.pipeline.place(step)) {
            self.enter(task, place, round);
        } else if let Some(step) = now.pipeline.continues_at().filter(|step| now.has_failed(*step))
        {
            // What it did was not taken, so there is nothing yet that could be repaired.
            let round = round + u32::from(now.tree.is_some());
            self.emit(Event::TaskMoved { task, step, round });
        } else if now.tree.is_some() {
            let place = now.pipeline.place(now.pipeline.reopens_at()).unwrap_or(0);
            self.enter(task, place, round + 1);
        } else {
            self.enter(task, 0, round);
        }
    }

    fn skip(&mut self, name: &str) {
        let Some(now) = self.state.named(name) else { return };
        let (task, parent) = (now.id, now.parent);
        if parent.is_none() || self.is_left_out(parent) {
            return;
        }
        match now.status.clone() {
            Status::Settled(End::Closed | End::Skipped { why: Skip::Asked | Skip::Dropped }) => {
                return;
            }
            Status::Settled(End::Skipped { .. } | End::Failed { .. })
                if self.state.is_behind(task) =>
            {
                return;
            }
            Status::Settled(End::Skipped { .. } | End::Failed { .. }) => {
                self.emit(Event::TaskReopened { task });
                self.reopen_blocked(task);
                self.reopen_above(task);
            }
            // The effect may have happened already; nobody can say of it that it was left out.
            Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. }
                if self.is_acting(task) =>
            {
                return;
            }
            Status::Running { .. } => self.revoke(task),
            Status::Open | Status::At { .. } | Status::Waiting { .. } => {}
        }
        self.settle(task, End::Skipped { why: Skip::Asked });
        self.stop_below(task, task);
    }

    /// It is left out with what is around it; to say so once more must not re-open that.
    fn is_left_out(&self, above: Option<TaskId>) -> bool {
        above.map(|task| self.state.task(task)).is_some_and(|task| {
            matches!(task.status, Status::Settled(End::Skipped { .. }))
                || self.is_left_out(task.parent)
        })
    }

    /// Ends what is below a task that is left out. It is said of them who stopped them, so that
    /// they go on with it when it is re-opened.
    fn stop_below(&mut self, task: TaskId, by: TaskId) {
        for child in self.state.task(task).children.clone() {
            if self.state.task(child).is_settled() {
                continue;
            }
            self.revoke(child);
            let end = End::Skipped { why: Skip::Stopped { by } };
            self.emit(Event::TaskSettled { task: child, end });
            self.stop_below(child, by);
        }
    }

    fn revoke(&mut self, task: TaskId) {
        if let Status::Running { step, attempt } = self.state.task(task).status {
            let (outcome, facts) = (Outcome::Revoked, Box::default());
            self.emit(Event::AttemptEnded { id: attempt, task, step, outcome, facts });
        }
    }

    /// Whether it, or a task below it, is at an effect that has begun.
    fn is_acting(&self, task: TaskId) -> bool {
        let now = self.state.task(task);
        let runs = matches!(now.status, Status::Running { .. });
        runs && self.is_at_an_effect(task)
            || now.children.iter().any(|child| self.is_acting(*child))
    }

    pub(super) fn is_at_an_effect(&self, task: TaskId) -> bool {
        self.state.task(task).stage().is_some_and(|stage| stage.work == Work::Serial)
    }
}

impl Failure {
    /// A push that failed leaves finished work behind: exit code 12.
    pub fn is_push(&self) -> bool {
        match self {
            Failure::Refused { step, .. } | Failure::Broke { step, .. } => {
                step.row().leaves_machine
            }
            Failure::Rounds { .. }
            | Failure::Rail { .. }
            | Failure::Interrupted { .. }
            | Failure::Money { .. }
            | Failure::Children { .. } => false,
        }
    }
}

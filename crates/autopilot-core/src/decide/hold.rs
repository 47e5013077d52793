//! Holding accounts, freeing them, and the tasks that wait for them meanwhile.

use super::RecordDraft;
use crate::config::WorkBy;
use crate::event::{Event, HaltWhy, HoldWhy, Outcome, THIS_MACHINE};
use crate::id::{AttemptId, TaskId, Time};
use crate::limit::account_of;
use crate::state::{LaneState, LiveAttempt, State};
use crate::step::Step;
use std::collections::BTreeSet;

/// The longest hold of an account whose vendor named no time.
const PAUSE_MAX_MS: u64 = 15 * 60_000;
const OUTAGE_MS: u64 = 30_000;
const QUOTA_UNKNOWN_MS: u64 = 60_000;
/// A log-in may be under way in another window; after one more try a person is needed.
const AUTH_MS: u64 = 20_000;
/// The first pause after a fault of the machine, which is doubled with each fault in a row.
const MACHINE_MS: u64 = 1_000;
/// The number of faults of the machine in a row after which a person is needed.
const MACHINE_TRIPS_MAX: u32 = 6;
/// The shortest hold, because a vendor whose clock is behind ours names a time that is over.
const QUOTA_MIN_MS: u64 = 1_000;
/// The spread that keeps runs with a shared account from all returning in the same second.
const SPREAD_MAX_MS: u64 = 1_000;

/// The lane states found so far, while one decision looks at many tasks.
#[derive(Default)]
pub(super) struct Doors(Vec<(Known, LaneState)>);

/// The key of a lane state. The lane is part of it if the work must continue on its first lane.
type Known = (Step, WorkBy, Option<u32>);

impl Doors {
    pub(super) fn of(&mut self, state: &State, task: TaskId) -> Option<&LaneState> {
        let now = state.task(task);
        let step = now.step()?;
        // Only the agent that had a session knows the conversation.
        let (by, lane) = (now.by(step), now.words.as_ref().map(|words| words.lane));
        let is_it = |known: &Known| known.0 == step && known.1 == *by && known.2 == lane;
        let place = match self.0.iter().position(|(known, _)| is_it(known)) {
            Some(place) => place,
            None => {
                self.0.push(((step, by.clone(), lane), state.door_by(step, by, lane)));
                self.0.len() - 1
            }
        };
        self.0.get(place).map(|(.., door)| door)
    }
}

impl RecordDraft<'_> {
    /// The hold that follows from an attempt's end, if one does. Attempts that were running when the
    /// account was held report the same trouble; only those started later count as another trip.
    pub(super) fn trip(
        &self,
        id: AttemptId,
        live: &LiveAttempt,
        outcome: &Outcome,
    ) -> Option<Event> {
        let (why, given, text) = match outcome {
            Outcome::Quota { until } => (HoldWhy::Quota, Some(*until), ""),
            Outcome::Away { why, until, text } => (*why, *until, text.as_str()),
            Outcome::Passed
            | Outcome::Failed { .. }
            | Outcome::Misconfigured { .. }
            | Outcome::Broke { .. }
            | Outcome::Lost
            | Outcome::Revoked
            | Outcome::Skipped { .. } => return None,
        };
        let lane = self.state.lane_of(live);
        let account = match why {
            HoldWhy::Quota | HoldWhy::Auth | HoldWhy::Program => account_of(&lane),
            // Another model of the same account may be available.
            HoldWhy::Outage | HoldWhy::Model => &lane,
            HoldWhy::Machine(_) => THIS_MACHINE,
        };
        let known = self.state.run.accounts.get(account);
        let trips = match known {
            Some(known) if known.why == why || account == THIS_MACHINE => {
                let is_new = known.held.is_none() && known.probe == Some(id);
                known.trips + u32::from(is_new)
            }
            Some(_) | None => 1,
        };
        let is_hopeless = self.state.task(live.task).spent.hindered
            >= self.state.run.limits.interruptions_max
            && account == THIS_MACHINE;
        let until = self.release(why, given, trips, account).filter(|_| !is_hopeless);
        if let Some(hold) = known.and_then(|known| known.held.as_ref())
            && hold.until.is_none_or(|held| until.is_some_and(|until| until <= held))
        {
            return None;
        }
        let guess = until
            .is_some_and(|until| given.is_none_or(|given| until > given.plus_ms(SPREAD_MAX_MS)));
        let (account, text) = (account.to_owned(), text.to_owned());
        Some(Event::AccountHeld { account, until, why, text, trips, guess })
    }

    /// The time at which an account may be tried again; none if only a person can help.
    fn release(
        &self,
        why: HoldWhy,
        given: Option<Time>,
        trips: u32,
        account: &str,
    ) -> Option<Time> {
        let pause = |first_ms: u64, trips: u32| {
            let doubled = first_ms << trips.saturating_sub(1).min(10);
            self.now.plus_ms(doubled.min(PAUSE_MAX_MS))
        };
        match (why, given) {
            (HoldWhy::Quota, None) => Some(pause(QUOTA_UNKNOWN_MS, trips)),
            (HoldWhy::Quota, Some(given)) => {
                let given = given.plus_ms(self.spread_ms(account));
                let least = match trips {
                    0 | 1 => self.now.plus_ms(QUOTA_MIN_MS),
                    again => pause(QUOTA_UNKNOWN_MS, again - 1),
                };
                Some(given.max(least))
            }
            (HoldWhy::Outage, given) => Some(pause(OUTAGE_MS, trips)).max(given),
            (HoldWhy::Auth | HoldWhy::Program, _) if trips <= 1 => Some(self.now.plus_ms(AUTH_MS)),
            (HoldWhy::Machine(_), _) if trips <= MACHINE_TRIPS_MAX => {
                Some(pause(MACHINE_MS, trips))
            }
            (HoldWhy::Auth | HoldWhy::Program | HoldWhy::Model | HoldWhy::Machine(_), _) => None,
        }
    }

    /// A delay that differs between runs and is always the same for one run and account.
    fn spread_ms(&self, account: &str) -> u64 {
        let bytes = self.state.run.id.bytes().chain(account.bytes());
        let mixed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        mixed % (SPREAD_MAX_MS + 1)
    }

    pub(super) fn free_due(&mut self) {
        let now = self.now;
        self.free(|until| until.is_some_and(|until| until <= now));
    }

    /// Frees accounts held too far into the future, after the clock was set back.
    pub(super) fn free_beyond(&mut self, wait_max_ms: u64) {
        let beyond = self.now.plus_ms(wait_max_ms.max(PAUSE_MAX_MS));
        self.free(|until| until.is_some_and(|until| until > beyond));
    }

    /// Frees all accounts and ends all waits, because a person resumed the run.
    pub(super) fn free_all(&mut self) {
        self.free(|_| true);
        for task in self.state.waiting().collect::<Vec<_>>() {
            self.emit(Event::WaitEnded { task });
        }
    }

    fn free(&mut self, is_over: impl Fn(Option<Time>) -> bool) {
        let over = self.state.holds().filter(|(_, _, hold)| is_over(hold.until));
        let over: Vec<String> = over.map(|(account, ..)| account.to_owned()).collect();
        for account in over {
            self.emit(Event::AccountFreed { account });
        }
    }

    /// Lets the next tasks wait for their held accounts, as many as there are free workers. If
    /// nothing runs and nothing will by itself, the run is halted.
    pub(super) fn wait_for_accounts(&mut self) {
        if self.state.run.accounts.is_empty() {
            return;
        }
        let Stranded { waits, given_up } = self.stranded();
        for event in waits {
            self.emit(event);
        }
        let given_up = self.machine_given_up().or(given_up);
        let goes_on = self.state.is_at_work() || self.state.waiting().len() > 0;
        if let Some(why) = given_up.filter(|_| !goes_on) {
            self.halt(why, false);
        }
    }

    /// The reason for a halt if the machine is held until a person helps.
    fn machine_given_up(&self) -> Option<HaltWhy> {
        match self.state.machine_door() {
            LaneState::Held { account, why, text, until: None, .. } => {
                Some(HaltWhy::Away { account, hold: why, text })
            }
            LaneState::Held { .. } | LaneState::Probed | LaneState::Open { .. } => None,
        }
    }

    fn stranded(&self) -> Stranded {
        let limits = &self.state.run.limits;
        let busy = self.state.slots_live() as usize + self.state.waiting().len();
        let line_max = (limits.workers_max as usize).saturating_sub(busy);
        let mut doors = Doors::default();
        let mut waits: Vec<(String, Event)> = Vec::new();
        let mut given_up: Option<HaltWhy> = None;
        let mut left: BTreeSet<String> = BTreeSet::new();
        for task in self.state.ready() {
            if !self.is_in_focus(task) || self.is_in_the_way(task) {
                continue;
            }
            let Some(LaneState::Held { account, why, text, until, guess }) =
                doors.of(self.state, task)
            else {
                continue;
            };
            let now = self.state.task(task);
            let Some((step, until)) = now.step().zip(*until) else {
                let (account, text) = (account.clone(), text.clone());
                given_up.get_or_insert(HaltWhy::Away { account, hold: *why, text });
                continue;
            };
            // If one task has waited long enough for an account, the others do not start to wait for
            // it: they would do so one after the other.
            if now.spent.waited_ms + until.since_ms(self.now) > limits.wait_quota_max_ms {
                given_up = Some(HaltWhy::Quota { until, guess: *guess });
                left.insert(account.clone());
            } else if waits.len() < line_max {
                let (of, account) = (account.clone(), account.clone());
                let (why, guess) = (*why, *guess);
                waits.push((of, Event::WaitBegan { task, step, until, account, why, guess }));
            }
        }
        waits.retain(|(account, _)| !left.contains(account));
        Stranded { waits: waits.into_iter().map(|(_, event)| event).collect(), given_up }
    }
}

/// The consequences for tasks whose accounts are all held.
struct Stranded {
    waits: Vec<Event>,
    /// The reason for a halt if nothing else runs.
    given_up: Option<HaltWhy>,
}

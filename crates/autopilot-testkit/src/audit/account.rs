//! Who may be asked to work: holds, probes and waits, counted apart from the code under test.
//!
//! FAULTS A16 and A17: what an account refuses one task it refuses all of them; one attempt finds out
//! whether it is back, nothing but waiting time is spent, and the run rests only when waiting does
//! not help.

use super::books::{Books, Entry, Place};
use super::rule::{Kept, kept};
use super::table;
use autopilot_core::config::WorkBy;
use autopilot_core::event::{Event, HaltWhy, HoldWhy, Outcome, Record, THIS_MACHINE};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::limit::Limits;
use autopilot_core::step::Step;
use std::collections::BTreeMap;

/// The longest pause nobody but us has set.
const PAUSE_MAX_MS: u64 = 900_000;
/// What may be added to a time somebody named.
const SPREAD_MAX_MS: u64 = 1_000;
/// How often in a row the machine is tried again, and the longest pause before that.
const MACHINE_TRIES: u32 = 6;
const MACHINE_PAUSE_MAX_MS: u64 = 32_000;

/// An account, or a model of one, that was held and has not been seen to work since.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    /// Some while it is held; the time is when that ends by itself.
    pub held: Option<Option<Time>>,
    /// Who was started on it since it was freed.
    pub probe: Option<AttemptId>,
    /// Times in a row that somebody was refused log-in, or that the machine was at fault.
    pub refused: u32,
}

/// What was known of accounts before a record.
pub(super) struct Before {
    doubts: BTreeMap<String, Doubt>,
    limits: Limits,
}

impl Before {
    pub(super) fn of(books: &Books) -> Before {
        Before { doubts: books.doubts.clone(), limits: books.limits.clone() }
    }
}

/// What a step's lanes look like.
enum Way {
    Open(u32),
    /// Somebody finds out.
    Asked,
    Held(Option<Time>),
}

impl Books {
    pub fn lane(&self, task: TaskId, step: Step, lane: u32) -> String {
        name_of(&self.limits, self.own(task, step), step, lane)
    }

    /// What the task itself says of who does the step: only of its own work.
    fn own(&self, task: TaskId, step: Step) -> Option<&WorkBy> {
        let is_its_work = matches!(step, Step::Build | Step::Fix | Step::WorkflowStep);
        self.tasks.get(task.index()).map(|entry| &entry.spec.by).filter(|_| is_its_work)
    }

    fn ways(&self, task: TaskId, step: Step) -> Way {
        let count = list_of(&self.limits, self.own(task, step), step).map_or(1, Vec::len) as u32;
        let mut asked = false;
        let mut soonest: Option<Time> = None;
        for at in 0..count {
            let lane = self.lane(task, step, at);
            let account = lane.split('/').next().unwrap_or_default().to_owned();
            let names = [THIS_MACHINE, &account, &lane];
            let doubts: Vec<&Doubt> =
                names.iter().filter_map(|name| self.doubts.get(*name)).collect();
            let holds: Vec<Option<Time>> = doubts.iter().filter_map(|doubt| doubt.held).collect();
            if holds.is_empty() && doubts.iter().all(|doubt| doubt.probe.is_none()) {
                return Way::Open(at);
            }
            if holds.is_empty() {
                asked = true;
            } else if holds.iter().all(Option::is_some) {
                let frees = holds.into_iter().flatten().max();
                soonest = [soonest, frees].into_iter().flatten().min();
            }
        }
        if asked { Way::Asked } else { Way::Held(soonest) }
    }

    /// Whether the machine is neither held nor being tried.
    pub fn machine_is_open(&self) -> bool {
        let machine = self.doubts.get(THIS_MACHINE);
        machine.is_none_or(|doubt| doubt.held.is_none() && doubt.probe.is_none())
    }

    pub fn may_be_done(&self, task: TaskId, step: Step) -> bool {
        matches!(self.ways(task, step), Way::Open(_))
    }

    /// An attempt begins: nobody is asked who is held, and of those in doubt only one is.
    pub fn lane_taken(&mut self, id: AttemptId, task: TaskId, step: Step, lane: u32) -> Kept {
        if table::is_serial(step) {
            kept(self.machine_is_open(), || format!("A17: {step} begins on a held machine"))?;
            if let Some(doubt) = self.doubts.get_mut(THIS_MACHINE) {
                doubt.probe = Some(id);
            }
        }
        if !table::is_slot(step) {
            return kept(lane == 0, || format!("C28: {step} takes lane {lane}"));
        }
        let name = self.lane(task, step, lane);
        match self.ways(task, step) {
            Way::Open(best) => kept(best == lane, || {
                let first = self.lane(task, step, best);
                format!("C28: {step} begins with {name}, {first} comes first")
            })?,
            Way::Asked => return Err(format!("A17: {step} begins with {name} while it is probed")),
            Way::Held(_) => return Err(format!("A16: {step} begins with {name}, which is held")),
        }
        let account = name.split('/').next().unwrap_or_default().to_owned();
        for name in [THIS_MACHINE, &account, &name] {
            if let Some(doubt) = self.doubts.get_mut(name) {
                doubt.probe = Some(id);
            }
        }
        Ok(())
    }

    pub fn lane_left(&mut self, id: AttemptId, outcome: &Outcome) {
        let agent_works = matches!(outcome, Outcome::Passed | Outcome::Failed { .. });
        let is_ours = matches!(outcome, Outcome::Away { why: HoldWhy::Machine(_), .. });
        let is_over = !matches!(outcome, Outcome::Lost | Outcome::Revoked);
        self.doubts.retain(|name, doubt| {
            let works = if name == THIS_MACHINE { is_over && !is_ours } else { agent_works };
            let is_probe = doubt.probe == Some(id);
            doubt.probe = doubt.probe.filter(|probe| *probe != id);
            !(is_probe && works && doubt.held.is_none())
        });
    }

    /// Every hold has its cause in the same record, and every cause its hold.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event holds or frees an account")]
    pub(super) fn holds_have_causes(&self, record: &Record, before: &Before) -> Kept {
        let freed_by_a_person = record.events.contains(&Event::Resumed);
        let boots = record.events.iter().any(|event| matches!(event, Event::Booted { .. }));
        let mut refusals: Vec<(String, HoldWhy, Option<Time>)> = Vec::new();
        for event in &record.events {
            match event {
                Event::AttemptEnded { id, task, step, outcome, .. } => {
                    let lane = self.lane_by.get(id).copied().unwrap_or(0);
                    let name = name_of(&before.limits, self.own(*task, *step), *step, lane);
                    refusals.extend(refused(&name, outcome));
                }
                Event::AccountHeld { account, until, why, .. } => {
                    let cause =
                        refusals.iter().find(|(name, cause, _)| name == account && cause == why);
                    let Some((_, _, given)) = cause else {
                        return Err(format!("A16: {account} is held without a cause"));
                    };
                    self.is_fair(record.at, account, *why, *given, *until)?;
                }
                Event::AccountFreed { account } => {
                    let held = before.doubts.get(account).and_then(|doubt| doubt.held);
                    let Some(until) = held else {
                        return Err(format!("A16: {account} is freed and was not held"));
                    };
                    let longest =
                        record.at.plus_ms(before.limits.wait_quota_max_ms.max(PAUSE_MAX_MS));
                    let is_over = until.is_some_and(|until| until <= record.at);
                    let clock = boots && until.is_some_and(|until| until > longest);
                    kept(is_over || clock || freed_by_a_person, || {
                        format!("A16: {account} is freed before its time")
                    })?;
                }
                _ => {}
            }
        }
        for (account, _, given) in refusals {
            let held = self.doubts.get(&account).and_then(|doubt| doubt.held);
            kept(held.is_some(), || format!("A16: {account} refused and is not held"))?;
            let early = held.flatten().zip(given).is_some_and(|(until, given)| until < given);
            kept(!early, || format!("A16: {account} is asked before it said"))?;
        }
        Ok(())
    }

    /// Nobody rests longer than was said or than we ever pause.
    fn is_fair(
        &self,
        at: Time,
        account: &str,
        why: HoldWhy,
        given: Option<Time>,
        until: Option<Time>,
    ) -> Kept {
        let longest = at.plus_ms(PAUSE_MAX_MS).max(given.unwrap_or(at).plus_ms(SPREAD_MAX_MS));
        let refused = self.doubts.get(account).map_or(0, |doubt| doubt.refused);
        let is_fair = match (why, until) {
            (HoldWhy::Quota | HoldWhy::Outage, Some(until)) => until > at && until <= longest,
            (HoldWhy::Auth | HoldWhy::Program, Some(until)) => {
                refused <= 1 && until > at && until <= at.plus_ms(20_000)
            }
            (HoldWhy::Auth | HoldWhy::Program, None) => refused > 1,
            (HoldWhy::Machine(_), Some(until)) => {
                refused <= MACHINE_TRIES && until > at && until <= at.plus_ms(MACHINE_PAUSE_MAX_MS)
            }
            (HoldWhy::Machine(_), None) => {
                let often = |entry: &Entry| entry.hindered > self.limits.interruptions_max;
                refused > MACHINE_TRIES || self.tasks.iter().any(often)
            }
            (HoldWhy::Model, None) => true,
            (HoldWhy::Quota | HoldWhy::Outage, None) | (HoldWhy::Model, Some(_)) => false,
        };
        kept(is_fair, || format!("A16: {account} is held until {until:?} for {why:?} at {at:?}"))
    }

    pub fn held(&mut self, account: &str, until: Option<Time>, why: HoldWhy, trips: u32) {
        let doubt = self.doubts.entry(account.to_owned()).or_default();
        doubt.held = Some(until);
        doubt.refused = match why {
            HoldWhy::Auth | HoldWhy::Program | HoldWhy::Machine(_) => trips,
            HoldWhy::Quota | HoldWhy::Outage | HoldWhy::Model => 0,
        };
    }

    pub fn freed(&mut self, account: &str) {
        if let Some(doubt) = self.doubts.get_mut(account) {
            doubt.held = None;
        }
    }

    /// A task waits only when nobody can do its step, until the first of them may be asked again.
    pub fn waits_rightly(&self, task: TaskId, step: Step, until: Time) -> Kept {
        match self.ways(task, step) {
            Way::Held(Some(frees)) => {
                kept(frees == until, || format!("C28: {step} waits until {until:?}, not {frees:?}"))
            }
            Way::Held(None) => Err(format!("C28: {step} waits for what does not come")),
            Way::Open(_) | Way::Asked => Err(format!("C28: {step} waits although it could go on")),
        }
    }

    /// The run rests for want of somebody only where nothing goes on and waiting does not help.
    pub fn rests_rightly(&self, why: &HaltWhy) -> Kept {
        let at_work = self.live.values().any(|(_, step)| !table::is_gate(*step));
        let waiting = self.tasks.iter().any(|task| matches!(task.place, Place::Waiting(_)));
        let idle = !at_work && !waiting;
        let some = |is: &dyn Fn(TaskId, &Entry, Step) -> bool| {
            let mut tasks = self.tasks.iter().enumerate();
            tasks.any(|(at, task)| match task.place {
                Place::At(step) => table::is_slot(step) && is(TaskId(at as u32), task, step),
                Place::Open
                | Place::Running(..)
                | Place::Waiting(_)
                | Place::Closed
                | Place::SkippedByAsk
                | Place::SkippedFor(_)
                | Place::Failed => false,
            })
        };
        match why {
            HaltWhy::Away { .. } => {
                let machine = self.doubts.get(THIS_MACHINE).and_then(|doubt| doubt.held);
                let lost = machine == Some(None)
                    || some(&|id, _, step| matches!(self.ways(id, step), Way::Held(None)));
                kept(idle && lost, || format!("A17: the run rests although it could go on: {why}"))
            }
            HaltWhy::Quota { .. } => {
                let late = some(&|id, task, step| match self.ways(id, step) {
                    Way::Held(Some(until)) => {
                        let longer = until.since_ms(self.now);
                        task.waited_ms + longer > self.limits.wait_quota_max_ms
                    }
                    Way::Held(None) | Way::Open(_) | Way::Asked => false,
                });
                kept(idle && late, || format!("C28: the run rests although it may wait: {why}"))
            }
            HaltWhy::Money { .. } => {
                let is_gone = self.limits.usd_max.is_some_and(|max| self.spent() >= max.0);
                kept(is_gone, || format!("I7: the run rests although it has money: {why}"))
            }
            HaltWhy::Stop
            | HaltWhy::Pause
            | HaltWhy::Continued
            | HaltWhy::Wall
            | HaltWhy::Host { .. } => Ok(()),
        }
    }

    /// Somebody works, waits for a time that comes, or is asked.
    pub fn something_goes_on(&self) -> Kept {
        let waiting = self.tasks.iter().any(|task| matches!(task.place, Place::Waiting(_)));
        let machine = self.doubts.get(THIS_MACHINE).and_then(|doubt| doubt.held).flatten();
        kept(waiting || machine.is_some() || !self.live.is_empty(), || {
            "I9: nothing goes on and nobody rests".to_owned()
        })
    }
}

fn list_of<'a>(limits: &'a Limits, own: Option<&WorkBy>, step: Step) -> Option<&'a Vec<String>> {
    match own.and_then(|by| by.agent.as_ref()) {
        Some(name) => limits.agents.get(name),
        None => limits.lanes.get(&step),
    }
}

fn name_of(limits: &Limits, own: Option<&WorkBy>, step: Step, lane: u32) -> String {
    let list = list_of(limits, own, step);
    let found = list.and_then(|lanes| lanes.get(lane as usize)).cloned();
    let named = own.and_then(|by| by.agent.clone());
    let name = found.unwrap_or_else(|| named.unwrap_or_else(|| step.word().to_owned()));
    let Some(model) = own.and_then(|by| by.model.as_ref()) else { return name };
    // In these runs every account has a kind of its own.
    let first = list.and_then(|lanes| lanes.first()).unwrap_or(&name);
    if *first == name {
        format!("{}/{model}", name.split('/').next().unwrap_or_default())
    } else {
        name
    }
}

/// What an attempt's end says of its account, or of the model it used.
fn refused(lane: &str, outcome: &Outcome) -> Option<(String, HoldWhy, Option<Time>)> {
    let account = lane.split('/').next().unwrap_or_default();
    match outcome {
        Outcome::Quota { until } => Some((account.to_owned(), HoldWhy::Quota, Some(*until))),
        Outcome::Away { why, until, .. } => {
            let held = match why {
                HoldWhy::Quota | HoldWhy::Auth | HoldWhy::Program => account,
                HoldWhy::Outage | HoldWhy::Model => lane,
                HoldWhy::Machine(_) => THIS_MACHINE,
            };
            Some((held.to_owned(), *why, *until))
        }
        Outcome::Passed
        | Outcome::Failed { .. }
        | Outcome::Misconfigured { .. }
        | Outcome::Broke { .. }
        | Outcome::Lost
        | Outcome::Revoked
        | Outcome::Skipped { .. } => None,
    }
}

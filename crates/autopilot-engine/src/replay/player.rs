//! Gives each question its recorded answer, and lets attempts end in the order they ended in then:
//! who is merged first decides what others meet.

use crate::job::Metadata;
use autopilot_agents::ExitFacts;
use autopilot_core::step::Step;
use camino::Utf8PathBuf;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A question that was asked, and what is kept of it.
#[derive(Clone, Debug)]
pub struct Played {
    pub dir: Utf8PathBuf,
    /// Which of the agents that may do the step it was.
    pub lane: u32,
    pub exit: ExitFacts,
    /// What the agent made of its worktree, as objects of the recording's hub.
    pub worktree: Option<(String, String)>,
}

impl Played {
    pub fn new(dir: Utf8PathBuf, said: &Metadata, worktree: Option<(String, String)>) -> Played {
        let exit = ExitFacts {
            code: said.exit,
            signal: said.signal,
            timed_out: said.timed_out,
            stuck: said.stuck,
            lingered: said.lingered,
        };
        Played { dir, lane: said.lane, exit, worktree }
    }

    /// By which our own executable says again what the agent said.
    pub fn args(&self) -> Vec<String> {
        vec![super::COMMAND.to_owned(), self.dir.to_string()]
    }
}

pub struct Player {
    /// The hub whose objects the recording names.
    pub hub: autopilot_host::git::Hub,
    /// Names of agents that steps of workflows asked for and got. None of them is started, so none
    /// needs to be there.
    pub adapters: BTreeSet<String>,
    inner: Mutex<PlayerInner>,
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct PlayerInner {
    turns: BTreeMap<(String, Step), VecDeque<Played>>,
    /// Ends that are still to come, oldest first.
    order: VecDeque<(u64, String, Step)>,
    /// Places in that order of those who wait to end.
    waiting: Vec<u64>,
    live: usize,
    /// Answers of attempts that have not ended. Whoever was cut short then was asked again.
    taken: BTreeMap<(String, Step), Vec<Played>>,
    ended: usize,
    /// Ends after which a person came, oldest first.
    visits: VecDeque<usize>,
    /// It was said that the next of them is now.
    is_announced: bool,
}

impl PlayerInner {
    /// Whatever is under way was cut short then, and ends no more.
    fn is_visited(&self) -> bool {
        self.visits.front().is_some_and(|after| *after <= self.ended)
    }
}

impl Player {
    pub fn new(
        hub: autopilot_host::git::Hub,
        adapters: BTreeSet<String>,
        turns: BTreeMap<(String, Step), VecDeque<Played>>,
        order: Vec<(String, Step)>,
        visits: Vec<usize>,
    ) -> Player {
        let order = (0..).zip(order).map(|(place, (task, step))| (place, task, step)).collect();
        let inner = PlayerInner { turns, order, visits: visits.into(), ..PlayerInner::default() };
        Player { hub, adapters, inner: Mutex::new(inner), moved: watch::channel(0).0 }
    }

    /// The next answer that was recorded for this step of this task.
    pub fn next(&self, task: &str, step: Step) -> Option<Played> {
        let key = (task.to_owned(), step);
        let mut inner = self.inner();
        let next = inner.turns.get_mut(&key)?.pop_front()?;
        inner.taken.entry(key).or_default().push(next.clone());
        Some(next)
    }

    /// Whether a person came now, and all that was under way was cut short. Said once.
    pub fn is_visited(&self) -> bool {
        let mut inner = self.inner();
        inner.is_visited() && !std::mem::replace(&mut inner.is_announced, true)
    }

    /// What the person came for goes on from here.
    pub fn go_on(&self) {
        let mut inner = self.inner();
        inner.visits.pop_front();
        inner.is_announced = false;
        drop(inner);
        self.moved.send_modify(|count| *count += 1);
    }

    pub fn ended(&self) -> usize {
        self.inner().ended
    }

    /// Something ended then that has not ended now.
    pub fn has_more(&self) -> bool {
        !self.inner().order.is_empty()
    }

    pub fn began(&self) {
        self.inner().live += 1;
    }

    /// Returns when it is this attempt's turn to end. Where the two runs have parted ways, and all
    /// wait for something that will not come, the earliest goes on.
    pub async fn end(&self, task: &str, step: Step) {
        let Some(place) = self.arrive(task, step) else { return };
        let key = (task.to_owned(), step);
        let mut moved = self.moved.subscribe();
        while !self.may_end(place) {
            // The sender lives as long as this.
            let _never = moved.changed().await;
        }
        self.leave(place);
        self.inner().taken.remove(&key);
    }

    /// For an attempt that was ended by somebody: what it was answered is for whoever comes next.
    pub fn gave_up(&self, task: &str, step: Step) {
        let key = (task.to_owned(), step);
        let mut inner = self.inner();
        inner.live -= 1;
        let left = inner
            .order
            .iter()
            .find(|(place, of, at)| of == task && *at == step && inner.waiting.contains(place))
            .map(|(place, ..)| *place);
        inner.waiting.retain(|place| Some(*place) != left);
        for played in inner.taken.remove(&key).unwrap_or_default().into_iter().rev() {
            inner.turns.entry(key.clone()).or_default().push_front(played);
        }
        drop(inner);
        self.moved.send_modify(|count| *count += 1);
    }

    fn arrive(&self, task: &str, step: Step) -> Option<u64> {
        let mut inner = self.inner();
        let is_taken = |inner: &PlayerInner, place: u64| inner.waiting.contains(&place);
        let found = inner
            .order
            .iter()
            .find(|(place, of, at)| of == task && *at == step && !is_taken(&inner, *place))
            .map(|(place, ..)| *place);
        match found {
            Some(place) => inner.waiting.push(place),
            None => inner.live -= 1,
        }
        drop(inner);
        self.moved.send_modify(|count| *count += 1);
        found
    }

    fn may_end(&self, place: u64) -> bool {
        let inner = self.inner();
        if inner.is_visited() {
            return false;
        }
        let is_next = inner.order.front().is_some_and(|(first, ..)| *first == place);
        let is_earliest = inner.waiting.iter().min() == Some(&place);
        is_next || inner.waiting.len() >= inner.live && is_earliest
    }

    fn leave(&self, place: u64) {
        let mut inner = self.inner();
        inner.order.retain(|(other, ..)| *other != place);
        inner.waiting.retain(|other| *other != place);
        inner.live -= 1;
        inner.ended += 1;
        drop(inner);
        self.moved.send_modify(|count| *count += 1);
    }

    fn inner(&self) -> MutexGuard<'_, PlayerInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

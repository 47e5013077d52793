//! Gives each question its recorded answer, and ends attempts in the recorded order: the order of
//! merges decides what later attempts find.

use crate::job::Metadata;
use autopilot_agents::ExitFacts;
use autopilot_core::id::AttemptId;
use autopilot_core::step::Step;
use camino::Utf8PathBuf;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A recorded question.
#[derive(Clone, Debug)]
pub struct Played {
    pub dir: Utf8PathBuf,
    /// The position of the agent among those that may do the step.
    pub lane: u32,
    /// The session that the question continued.
    pub resumed: Option<String>,
    pub exit: ExitFacts,
    /// The agent's change to its worktree, as objects in the recording's hub.
    pub worktree: Option<(String, String)>,
}

impl Played {
    /// A question from its metadata.
    pub fn new(dir: Utf8PathBuf, said: &Metadata, worktree: Option<(String, String)>) -> Played {
        let resumed = said.resumed.clone();
        Played { dir, lane: said.lane, resumed, exit: said.exit, worktree }
    }

    /// The arguments with which Autopilot's own executable repeats the answer.
    pub fn args(&self) -> Vec<String> {
        vec![super::COMMAND.to_owned(), self.dir.to_string()]
    }
}

/// Plays back a recorded run.
pub struct Player {
    /// The hub with the objects that the recording names.
    pub hub: autopilot_host::git::Hub,
    /// The agents that workflow steps named. None of them is started, so none needs to be
    /// installed.
    pub adapters: BTreeSet<String>,
    inner: Mutex<PlayerInner>,
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct PlayerInner {
    turns: BTreeMap<(String, Step), VecDeque<Played>>,
    /// The recorded ends that have not come yet, oldest first.
    order: VecDeque<(u64, String, Step)>,
    /// The positions in that order of attempts that wait to end.
    waiting: Vec<u64>,
    live: usize,
    /// The attempt that ended last, until the loop has recorded its end and started what follows.
    unsettled: Option<AttemptId>,
    /// The answers of attempts that have not ended. An attempt that was interrupted was asked
    /// again.
    taken: BTreeMap<(String, Step), Vec<Played>>,
    ended: usize,
    /// The numbers of ends after which a person intervened, oldest first.
    visits: VecDeque<usize>,
    /// The next intervention was announced already.
    is_announced: bool,
}

impl PlayerInner {
    /// Returns whether a person intervenes now, so that attempts under way do not end any more.
    fn is_visited(&self) -> bool {
        self.visits.front().is_some_and(|after| *after <= self.ended)
    }

    /// The position of the next end of this step that is waited for, or that nobody waits for yet.
    fn place(&self, task: &str, step: Step, is_waited_for: bool) -> Option<u64> {
        let mut ends = self.order.iter().filter(|(_, of, at)| of == task && *at == step);
        let found = ends.find(|(place, ..)| self.waiting.contains(place) == is_waited_for);
        found.map(|(place, ..)| *place)
    }
}

impl Player {
    /// A player of these answers, ends and interventions.
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

    /// Takes the next recorded answer for this step of this task.
    pub fn next(&self, task: &str, step: Step) -> Option<Played> {
        let key = (task.to_owned(), step);
        let mut inner = self.inner();
        let next = inner.turns.get_mut(&key)?.pop_front()?;
        inner.taken.entry(key).or_default().push(next.clone());
        Some(next)
    }

    /// The session that the next recorded answer for this step continued.
    pub fn resumed(&self, task: &str, step: Step) -> Option<String> {
        let key = (task.to_owned(), step);
        self.inner().turns.get(&key)?.front()?.resumed.clone()
    }

    /// Returns once per intervention that a person intervened here and interrupted all attempts.
    pub fn is_visited(&self) -> bool {
        let mut inner = self.inner();
        inner.is_visited() && !std::mem::replace(&mut inner.is_announced, true)
    }

    /// Continues after an intervention.
    pub fn go_on(&self) {
        self.change(|inner| {
            inner.visits.pop_front();
            inner.is_announced = false;
        });
    }

    /// The number of attempts that have ended.
    pub fn ended(&self) -> usize {
        self.inner().ended
    }

    /// Returns whether the recording has ends that have not come yet.
    pub fn has_more(&self) -> bool {
        !self.inner().order.is_empty()
    }

    /// Counts an attempt that started.
    pub fn began(&self) {
        self.inner().live += 1;
    }

    /// Returns when it is this attempt's turn to end: the end before it is settled, so that what it
    /// started found the branch as it was. When the runs differ and every attempt waits for an end
    /// that will not come, the earliest one goes on.
    pub async fn end(&self, id: AttemptId, task: &str, step: Step) {
        let Some(place) = self.arrive(task, step) else { return };
        let key = (task.to_owned(), step);
        let mut moved = self.moved.subscribe();
        while !self.may_end(place) {
            // The sender lives as long as this.
            let _never = moved.changed().await;
        }
        self.leave(id, place);
        self.inner().taken.remove(&key);
    }

    /// Takes note that the end of an attempt is recorded, and that what follows from it has started.
    pub fn settled(&self, id: AttemptId) {
        self.change(|inner| {
            inner.unsettled.take_if(|ended| *ended == id);
        });
    }

    /// Returns the answers of an attempt that was cancelled, for the next attempt.
    pub fn gave_up(&self, task: &str, step: Step) {
        let key = (task.to_owned(), step);
        self.change(|inner| {
            inner.live -= 1;
            let left = inner.place(task, step, true);
            inner.waiting.retain(|place| Some(*place) != left);
            for played in inner.taken.remove(&key).unwrap_or_default().into_iter().rev() {
                inner.turns.entry(key.clone()).or_default().push_front(played);
            }
        });
    }

    fn arrive(&self, task: &str, step: Step) -> Option<u64> {
        self.change(|inner| {
            let found = inner.place(task, step, false);
            match found {
                Some(place) => inner.waiting.push(place),
                None => inner.live -= 1,
            }
            found
        })
    }

    fn may_end(&self, place: u64) -> bool {
        let inner = self.inner();
        if inner.is_visited() || inner.unsettled.is_some() {
            return false;
        }
        let is_next = inner.order.front().is_some_and(|(first, ..)| *first == place);
        let is_earliest = inner.waiting.iter().min() == Some(&place);
        is_next || inner.waiting.len() >= inner.live && is_earliest
    }

    fn leave(&self, id: AttemptId, place: u64) {
        self.change(|inner| {
            inner.unsettled = Some(id);
            inner.order.retain(|(other, ..)| *other != place);
            inner.waiting.retain(|other| *other != place);
            inner.live -= 1;
            inner.ended += 1;
        });
    }

    /// Changes what is known, and tells the attempts that wait.
    fn change<T>(&self, work: impl FnOnce(&mut PlayerInner) -> T) -> T {
        let done = work(&mut self.inner());
        self.moved.send_modify(|count| *count += 1);
        done
    }

    fn inner(&self) -> MutexGuard<'_, PlayerInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_host::git::{Hub, UserRepo};
    use std::future::Future;
    use std::path::Path;
    use std::process::Command;
    use std::task::{Context, Poll, Waker};

    fn hub(dir: &Path) -> Hub {
        let by = ["-c", "user.name=a", "-c", "user.email=a@b", "-C"];
        for words in [
            &["init", "--quiet", "-b", "main"][..],
            &["commit", "--allow-empty", "--quiet", "-m", "a"],
        ] {
            let made = Command::new("git").args(by).arg(dir).args(words).status().unwrap();
            assert!(made.success(), "git {words:?}");
        }
        Hub::open(&dir.join("state"), &UserRepo::examine(dir, "main", &[]).unwrap()).unwrap()
    }

    fn poll(future: &mut std::pin::Pin<Box<impl Future<Output = ()>>>) -> Poll<()> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_end_waits_until_what_follows_from_the_end_before_it_has_started() {
        let dir = tempfile::tempdir().unwrap();
        let ends = ["top", "lone"].map(|task| (task.to_owned(), Step::Merge)).to_vec();
        let (adapters, turns) = (BTreeSet::new(), BTreeMap::new());
        let player = Player::new(hub(dir.path()), adapters, turns, ends, Vec::new());
        let id = |place| AttemptId { seq: 1, place };
        player.began();
        player.began();
        let mut lone = Box::pin(player.end(id(1), "lone", Step::Merge));
        assert_eq!(poll(&mut lone), Poll::Pending, "the other end is the first");
        let mut top = Box::pin(player.end(id(0), "top", Step::Merge));
        assert_eq!(poll(&mut top), Poll::Ready(()));
        assert_eq!(poll(&mut lone), Poll::Pending, "nothing has started yet after the first end");
        player.settled(id(1));
        assert_eq!(poll(&mut lone), Poll::Pending, "that was another attempt");
        player.settled(id(0));
        assert_eq!(poll(&mut lone), Poll::Ready(()));
    }
}

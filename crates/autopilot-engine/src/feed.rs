//! Publishes a working run to any number of subscribers: terminal, dashboard, files.
//!
//! Records arrive in order, each once and without a gap, from any starting number: from memory
//! while a subscriber keeps up, from the journal when it does not. Transient items (output,
//! notices) are kept per subscriber up to a limit and counted beyond it. Publishing never waits for
//! a subscriber, and a stalled one costs no more memory than that limit.

mod follower;
mod growth;
mod seat;

pub use follower::AtWork;
pub use growth::GrowthWatch;

use crate::store::{self, StoreError};
use autopilot_agents::AgentEvent;
use autopilot_core::event::Record;
use autopilot_core::id::TaskId;
use autopilot_core::step::Step;
use autopilot_journal::JournalHistory;
use follower::JournalFollower;
use seat::SubscriberSeat;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Records kept in memory for subscribers that are a little behind.
pub const RING_RECORDS_MAX: usize = 1024;
/// Records read at a time for a subscriber that is further behind.
const BATCH_RECORDS_MAX: usize = 256;

/// Live, transient output: shown once and never replayed.
#[derive(Clone, Debug)]
pub enum Sight {
    /// An agent did or said something.
    Agent(AgentEvent),
    /// A line an agent or a command printed.
    Output {
        /// The line, redacted.
        text: String,
    },
    /// A step has been silent for longer than expected.
    Suspect {
        /// How long the step has been silent.
        silent: Duration,
    },
}

/// One item that a subscriber receives.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// A record became durable.
    Record(Arc<Record>),
    /// A step showed transient output.
    Sight {
        /// The task it belongs to.
        task: TaskId,
        /// The step of that task.
        step: Step,
        /// The transient output.
        sight: Arc<Sight>,
    },
    /// A message about the run itself that is not an event.
    Notice(Arc<str>),
    /// The number of transient items left out here because the subscriber was too slow.
    Missed(u64),
}

/// The answer to a subscriber that asks for more.
#[derive(Clone, Debug)]
pub enum FeedNews {
    /// The next item.
    Item(FeedItem),
    /// Nothing arrived within the wait.
    Quiet,
    /// Every item was delivered and the feed has ended.
    Ended,
}

/// The transient items a subscriber receives besides the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SightLevel {
    /// No transient items.
    Nothing,
    /// Notices, and warnings about silent steps.
    Notices,
    /// The output of agents and commands too.
    Output,
}

/// Opens the journal for a subscriber that has fallen behind the records in memory.
pub type JournalOpener =
    Arc<dyn Fn() -> Result<Box<dyn JournalHistory + Send>, StoreError> + Send + Sync>;

/// The publishing side of the feed of one run. A clone publishes to the same subscribers.
#[derive(Clone)]
pub struct RunFeed {
    shared: Arc<FeedShared>,
}

struct FeedShared {
    run: String,
    journal: JournalOpener,
    board: Mutex<FeedBoard>,
    news: Condvar,
    bell: Notify,
    wants_output: AtomicBool,
}

struct FeedBoard {
    /// The newest records, without a gap, up to `last`.
    ring: VecDeque<Arc<Record>>,
    /// The number of the newest record that was published.
    last: u64,
    seats: BTreeMap<u64, SubscriberSeat>,
    seats_given: u64,
    has_ended: bool,
}

impl RunFeed {
    /// The feed of a run whose records up to `last` are in the journal already.
    pub fn new(run: &str, last: u64, journal: JournalOpener) -> RunFeed {
        let board = FeedBoard {
            ring: VecDeque::new(),
            last,
            seats: BTreeMap::new(),
            seats_given: 0,
            has_ended: false,
        };
        let shared = FeedShared {
            run: run.to_owned(),
            journal,
            board: Mutex::new(board),
            news: Condvar::new(),
            bell: Notify::new(),
            wants_output: AtomicBool::new(false),
        };
        RunFeed { shared: Arc::new(shared) }
    }

    /// Subscribes from the record `from_seq` on: those that are written first, then live ones.
    pub fn subscribe(&self, from_seq: u64, level: SightLevel) -> Subscription {
        let mut board = self.shared.lock();
        board.seats_given += 1;
        let seat = board.seats_given;
        board.seats.insert(seat, SubscriberSeat::new(level));
        self.shared.note_wishes(&board);
        drop(board);
        let source = Source::Live { shared: Arc::clone(&self.shared), seat, history: None };
        Subscription { next: from_seq.max(1), backlog: VecDeque::new(), source }
    }

    /// Publishes a durable record. Records must come in order.
    pub fn publish(&self, record: Record) {
        let mut board = self.shared.lock();
        board.last = record.seq;
        board.ring.push_back(Arc::new(record));
        if board.ring.len() > RING_RECORDS_MAX {
            board.ring.pop_front();
        }
        self.shared.tell(board);
    }

    /// Publishes transient output; subscribers without room for it miss it.
    pub fn show(&self, task: TaskId, step: Step, sight: Sight) {
        let level = match &sight {
            Sight::Agent(_) | Sight::Output { .. } => SightLevel::Output,
            Sight::Suspect { .. } => SightLevel::Notices,
        };
        // Most runs print a lot while nobody watches.
        if level == SightLevel::Output && !self.shared.wants_output.load(Ordering::Relaxed) {
            return;
        }
        self.offer(level, &FeedItem::Sight { task, step, sight: Arc::new(sight) });
    }

    /// Publishes a message about the run itself that is not an event.
    pub fn notice(&self, text: &str) {
        self.offer(SightLevel::Notices, &FeedItem::Notice(text.into()));
    }

    /// Ends the feed: subscribers receive the remaining items and then the end.
    pub fn end(&self) {
        let mut board = self.shared.lock();
        board.has_ended = true;
        self.shared.tell(board);
    }

    fn offer(&self, level: SightLevel, item: &FeedItem) {
        let mut board = self.shared.lock();
        let after = board.last;
        for seat in board.seats.values_mut() {
            seat.offer(level, after, item);
        }
        self.shared.tell(board);
    }
}

impl FeedShared {
    fn lock(&self) -> MutexGuard<'_, FeedBoard> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, board: MutexGuard<'_, FeedBoard>) {
        drop(board);
        self.news.notify_all();
        self.bell.notify_waiters();
    }

    fn note_wishes(&self, board: &FeedBoard) {
        let wanted = board.seats.values().any(|seat| seat.level == SightLevel::Output);
        self.wants_output.store(wanted, Ordering::Relaxed);
    }
}

/// One subscriber's position in the records of a run.
pub struct Subscription {
    /// The number of the record that is delivered next.
    next: u64,
    /// Records read from the journal and not delivered yet.
    backlog: VecDeque<Arc<Record>>,
    source: Source,
}

enum Source {
    /// A run of this process.
    Live { shared: Arc<FeedShared>, seat: u64, history: Option<Box<dyn JournalHistory + Send>> },
    /// A run of any process, followed through the journal.
    Journal(JournalFollower),
}

/// The result of looking for the next item in memory.
enum BoardLook {
    News(FeedNews),
    /// The records up to this one are no longer in memory.
    Behind {
        last: u64,
    },
}

impl Subscription {
    /// Follows a run of any process through its journal, which `growth` watches, without transient
    /// items. The subscription ends when no process works on the run and all records were delivered.
    pub fn of_journal(
        history: Box<dyn JournalHistory + Send>,
        run: &str,
        from_seq: u64,
        at_work: AtWork,
        growth: GrowthWatch,
    ) -> Subscription {
        let source = Source::Journal(JournalFollower::new(history, run, at_work, growth));
        Subscription { next: from_seq.max(1), backlog: VecDeque::new(), source }
    }

    /// Returns the next item, waiting at most `wait`.
    pub fn take(&mut self, wait: Duration) -> Result<FeedNews, StoreError> {
        let until = Instant::now() + wait;
        loop {
            match self.look(until)? {
                BoardLook::News(news) => return Ok(news),
                BoardLook::Behind { last } => {
                    if !self.read_behind(last)? {
                        return Ok(FeedNews::Ended);
                    }
                }
            }
        }
    }

    /// Returns the next item, however long it takes. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<FeedNews, StoreError> {
        loop {
            let bell = match &self.source {
                Source::Live { shared, .. } => Some(Arc::clone(shared)),
                Source::Journal(_) => None,
            };
            let rung = bell.as_ref().map(|shared| shared.bell.notified());
            let mut rung = std::pin::pin!(rung);
            // Listen before looking, so that nothing arrives unnoticed in between.
            if let Some(rung) = rung.as_mut().as_pin_mut() {
                rung.enable();
            }
            match self.take(Duration::ZERO)? {
                FeedNews::Quiet => {}
                news @ (FeedNews::Item(_) | FeedNews::Ended) => return Ok(news),
            }
            match rung.as_pin_mut() {
                Some(rung) => rung.await,
                None => tokio::time::sleep(follower::ASYNC_LOOK_EVERY).await,
            }
        }
    }

    fn look(&mut self, until: Instant) -> Result<BoardLook, StoreError> {
        let (shared, seat) = match &mut self.source {
            Source::Live { shared, seat, .. } => (Arc::clone(shared), *seat),
            Source::Journal(follower) => {
                if self.backlog.is_empty() && !follower.read(self.next, until, &mut self.backlog)? {
                    return Ok(BoardLook::News(FeedNews::Ended));
                }
                let news = self.pop_backlog().map_or(FeedNews::Quiet, FeedNews::Item);
                return Ok(BoardLook::News(news));
            }
        };
        let mut board = shared.lock();
        loop {
            if let Some(item) = board.due(seat, self.next) {
                return Ok(BoardLook::News(FeedNews::Item(item)));
            }
            if let Some(item) = self.pop_backlog() {
                return Ok(BoardLook::News(FeedNews::Item(item)));
            }
            if board.last >= self.next {
                let Some(record) = board.kept(self.next) else {
                    return Ok(BoardLook::Behind { last: board.last });
                };
                self.next += 1;
                return Ok(BoardLook::News(FeedNews::Item(FeedItem::Record(record))));
            }
            if board.has_ended {
                return Ok(BoardLook::News(FeedNews::Ended));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(BoardLook::News(FeedNews::Quiet));
            }
            let waited = shared.news.wait_timeout(board, left);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn pop_backlog(&mut self) -> Option<FeedItem> {
        let record = self.backlog.pop_front()?;
        self.next = record.seq + 1;
        Some(FeedItem::Record(record))
    }

    /// Reads records that memory no longer holds; false when the journal lacks them too.
    fn read_behind(&mut self, last: u64) -> Result<bool, StoreError> {
        let Source::Live { shared, history, .. } = &mut self.source else { return Ok(true) };
        let journal = match history {
            Some(journal) => journal,
            None => history.insert((shared.journal)()?),
        };
        let count = usize::try_from(last - self.next).unwrap_or(usize::MAX).saturating_add(1);
        for record in journal.read(&shared.run, self.next, count.min(BATCH_RECORDS_MAX))? {
            self.backlog.push_back(Arc::new(store::decode(&record)?));
        }
        Ok(!self.backlog.is_empty())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Source::Live { shared, seat, .. } = &self.source {
            let mut board = shared.lock();
            board.seats.remove(seat);
            shared.note_wishes(&board);
        }
    }
}

impl FeedBoard {
    /// The next transient item shown before the record `next`, or after the newest record.
    fn due(&mut self, seat: u64, next: u64) -> Option<FeedItem> {
        self.seats.get_mut(&seat)?.due(next)
    }

    fn kept(&self, seq: u64) -> Option<Arc<Record>> {
        let first = self.ring.front()?.seq;
        let at = usize::try_from(seq.checked_sub(first)?).ok()?;
        self.ring.get(at).cloned()
    }
}

#[cfg(test)]
mod tests;

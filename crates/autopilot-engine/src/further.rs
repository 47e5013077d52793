//! Continues an agent session outside the loop of its run: with the same agent, sandbox, limits and
//! cost records, but without any decision about the run.

use crate::again::again;
use crate::clock::now;
use crate::feed::{FeedItem, FeedNews, RunFeed, Sight, SightLevel};
use crate::flag::Flag;
use crate::host::EngineHost;
use crate::inbox::{self, InboxAnswer, InboxFailure, InboxRequest, LimitChange};
use crate::job::further::{Further, Furthered};
use crate::job::{Cancel, Context, Job, JobError, Workshop};
use crate::place::StatePaths;
use crate::run_process::{self, JobGround, Machine, OpenedRepository, RunProcessError};
use crate::signal::{LoopSignal, Teller};
use crate::store::{self, StoreError};
use crate::workspace::{self, WorkspaceError};
use autopilot_core::decide::{MoneyGone, money_gone, owe, reserve};
use autopilot_core::event::{Bill, HaltWhy, Record, SessionTotal};
use autopilot_core::id::Micros;
use autopilot_core::input::{Ask, AttemptWord};
use autopilot_core::state::State;
use autopilot_core::wanted::Want;
use autopilot_host::git::Hub;
use autopilot_journal::{Appender, SqliteJournal, Writer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Maximum number of entries queued for the journal's writer.
const WRITER_QUEUE_MAX: usize = 64;
/// The lock holder's name while a session is continued; no run has this name.
const HOLDER: &str = "(a session)";

/// The session to continue, and a person's prompt.
pub struct SessionRequest {
    pub run: String,
    /// The attempt that had the session.
    pub want: Want,
    pub ask: Further,
    pub limits: LimitChange,
}

/// How a continued turn ended and what it cost.
pub struct TurnEnded {
    pub done: Result<Furthered, JobError>,
    pub bill: Bill,
    /// Set when a person or a limit on money stopped the turn.
    pub stopped: Option<Stopped>,
}

/// Why a continued turn was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    ByPerson,
    ByMoney(MoneyGone),
}

/// Continues a session with one turn. `see` receives what the agent does meanwhile.
pub fn go_on(
    opened: OpenedRepository,
    wish: SessionRequest,
    machine: Machine,
    mut see: impl FnMut(&Sight),
) -> Result<TurnEnded, RunProcessError> {
    let OpenedRepository { place, repo, config } = opened;
    run_process::make_room(&place, &mut |_: &str| {})?;
    let lock = workspace::lock(&place, HOLDER)?;
    let mut journal = workspace::journal(&place)?;
    let mut state = store::load(&journal, &wish.run).map_err(WorkspaceError::from)?;
    if !state.has_begun() {
        return Err(WorkspaceError::NoRun(wish.run).into());
    }
    run_process::sweep_leftovers(&place, &wish.run, &mut |_: &str| {});
    let epoch = workspace::take_lease(&mut journal, &wish.run, &machine.holder)?;
    run_process::collect_arrears(&mut journal, epoch, &mut state, &place, &config)?;
    run_process::settle_ended(&mut journal, epoch, &mut state)?;
    run_process::remove_homes(&place);
    let hub = again(|| Hub::open(place.state.as_std_path(), &repo));
    let hub = hub.map_err(WorkspaceError::from)?;
    let workshop = Workshop::new(repo, hub, &config.worktrees);
    // The slot is reused, so work that an interrupted run left in it is saved first.
    workshop.rescue_all(&workshop.repo.base_tip).map_err(WorkspaceError::from)?;
    let ground = JobGround::new(place.clone(), config, workshop, machine, None, &mut |_| {})?;
    let ended = EngineHost::new()?
        .block_on(async { turn(place, ground, journal, epoch, state, wish, &mut see).await });
    drop(lock);
    ended
}

async fn turn(
    place: StatePaths,
    ground: JobGround,
    journal: SqliteJournal,
    epoch: u64,
    state: State,
    wish: SessionRequest,
    see: &mut impl FnMut(&Sight),
) -> Result<TurnEnded, RunProcessError> {
    let store = |error| RunProcessError::Workspace(WorkspaceError::Store(StoreError::from(error)));
    let writer = Writer::start(Box::new(journal), WRITER_QUEUE_MAX, Box::new(|_| {}));
    let writer = writer.map_err(store)?;
    let appender = writer.appender();
    let (sender, mut signals) = mpsc::unbounded_channel();
    let feed = RunFeed::new(&wish.run, state.seq, workspace::opener(&place));
    let mut shown = feed.subscribe(state.seq + 1, SightLevel::Output);
    let teller = Teller::new(sender, feed);
    let texts = store::Texts::new(appender.clone());
    let context: Arc<Context> = Arc::new(ground.context(texts, teller));
    let cancel = Cancel::default();
    // Nobody can send messages to this agent; the question is its only input.
    let (_voice, ears) = mpsc::channel(1);
    let mut job = Job::new(&state, wish.want, context, cancel.clone(), ears);
    job.run.limits = wish.limits.applied_to(&job.run.limits);
    let mut ledger = Ledger {
        before: state.bill_of(wish.want.id),
        limits: job.run.limits.clone(),
        epoch,
        appender,
        want: wish.want,
        state,
    };
    let mut stopped = None;
    let done = {
        let mut work = std::pin::pin!(job.further_limited(&wish.ask));
        let mut hands = hands()?;
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                done = &mut work => break done,
                Some(signal) = signals.recv() => {
                    if let Some(gone) = ledger.hear(signal)?
                        && stopped.is_none()
                    {
                        stopped = Some(Stopped::ByMoney(gone));
                        cancel.now();
                    }
                }
                Ok(news) = shown.next() => tell(news, see),
                Some(()) = hands.recv() => {
                    stopped.get_or_insert(Stopped::ByPerson);
                    cancel.now();
                }
                _ = look.tick() => {
                    if is_told_to_stop(&place) {
                        stopped.get_or_insert(Stopped::ByPerson);
                        cancel.now();
                    }
                }
            }
        }
    };
    while let Ok(news @ FeedNews::Item(_)) = shown.take(Duration::ZERO) {
        tell(news, see);
    }
    let (bill, total) = job.owed();
    ledger.owe(bill, total)?;
    ledger.reserve(Micros(0))?;
    writer.close().map_err(store)?;
    Ok(TurnEnded { done, bill, stopped })
}

fn tell(news: FeedNews, see: &mut impl FnMut(&Sight)) {
    if let FeedNews::Item(FeedItem::Sight { sight, .. }) = news {
        see(&sight);
    }
}

/// Whether a message or the stop file asks this process to stop. The file is meant for this
/// process, as it holds the lock, and is removed once it is seen. Every message is answered.
fn is_told_to_stop(place: &StatePaths) -> bool {
    let mut is_told = Flag::Stop.raised(place).is_some();
    if is_told {
        let _stays = Flag::Stop.lower(place);
    }
    for (reply_to, message) in inbox::take(place) {
        let answer = match message.map(|message| message.request) {
            Ok(InboxRequest::Asks { asks, .. }) if asks.iter().all(is_stop) => {
                is_told = true;
                InboxAnswer::Done { text: "stopping the agent of the session".to_owned() }
            }
            Ok(_) => InboxAnswer::Failed(InboxFailure::OutsideRun),
            Err(failure) => InboxAnswer::Failed(failure),
        };
        // A sender whose answer can't be written gives up by itself.
        let _asker_gives_up = reply_to.send(&answer);
    }
    is_told
}

fn is_stop(ask: &Ask) -> bool {
    matches!(ask, Ask::Halt { why: HaltWhy::Stop, .. })
}

fn hands() -> Result<mpsc::Receiver<()>, RunProcessError> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, hands) = mpsc::channel(4);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut stream = signal(kind).map_err(RunProcessError::Runtime)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() && sender.send(()).await.is_ok() {}
        });
    }
    autopilot_host::interrupt::hand_over();
    Ok(hands)
}

/// Records what the turn costs, in addition to what its attempt has cost already.
struct Ledger {
    before: Bill,
    limits: autopilot_core::limit::Limits,
    epoch: u64,
    appender: Appender,
    want: Want,
    state: State,
}

impl Ledger {
    /// Records a signal from the job, and returns the limit that is used up, if any.
    fn hear(&mut self, signal: LoopSignal) -> Result<Option<MoneyGone>, RunProcessError> {
        match signal {
            LoopSignal::Heard { word: AttemptWord::Bill(bill), .. } => self.owe(bill, None)?,
            LoopSignal::Heard { word: AttemptWord::Counted { bill, total }, .. } => {
                self.owe(bill, Some(total))?;
            }
            LoopSignal::Vowed { word, kept, .. } => {
                if let AttemptWord::Given(usd) = word {
                    self.reserve(usd)?;
                }
                let _job_is_gone = kept.send(());
            }
            LoopSignal::Heard {
                word: AttemptWord::Session(_) | AttemptWord::Given(_) | AttemptWord::Ended { .. },
                ..
            }
            | LoopSignal::Durable { .. }
            | LoopSignal::JournalFailed { .. }
            | LoopSignal::CutShort
            | LoopSignal::Interrupt => {}
        }
        Ok(money_gone(&self.state, &self.limits, self.want.task))
    }

    fn owe(&mut self, bill: Bill, total: Option<Box<SessionTotal>>) -> Result<(), RunProcessError> {
        let of = (self.want.id, self.want.task);
        let record = owe(&mut self.state, of, self.before.plus(bill), total, now());
        self.append(record)
    }

    /// Records what is reserved for the turn before it can be spent, and nothing once it has ended.
    fn reserve(&mut self, usd: Micros) -> Result<(), RunProcessError> {
        let record = reserve(&mut self.state, (self.want.id, self.want.task), usd, now());
        self.append(record)
    }

    fn append(&mut self, record: Option<Record>) -> Result<(), RunProcessError> {
        let store = |error| RunProcessError::Workspace(WorkspaceError::Store(error));
        let Some(record) = record else { return Ok(()) };
        let entry = store::encode(&self.state.run.id, self.epoch, &record).map_err(store)?;
        self.appender.append_now(vec![entry]).map_err(|error| store(error.into()))
    }
}

//! The loop of a run with its I/O: one owner of the state, and messages to it.
//!
//! Inputs are judged at once, their records go to the writer thread, and only durable records are
//! shown and acted upon. There is no other path to start, stop or end anything.

use crate::admission;
use crate::cause::chain;
use crate::clock::now;
use crate::feed::{RunFeed, SightLevel};
use crate::job::{self, Cancel, Context};
use crate::place::StatePaths;
use crate::signal::{LoopSignal, Teller};
use crate::store::{self, SNAPSHOT_EVERY, StoreError};
use crate::views::{FileKeeper, Views};
use autopilot_core::decide::Refusal;
use autopilot_core::event::{HaltWhy, Record, TaskEnd};
use autopilot_core::id::AttemptId;
use autopilot_core::input::{Ask, Input};
use autopilot_core::pilot::{Pilot, PilotOrder};
use autopilot_core::state::State;
use autopilot_core::wanted::Want;
use autopilot_host::fail;
use autopilot_host::git::GitError;
use autopilot_host::interrupt;
use autopilot_journal::{Appender, JournalEntry, Writer, WriterNotice};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

mod people;
mod proof;

use people::Ears;
use proof::RunningProof;

/// How often the views are written, the flag files are checked and time passes; a person is
/// promised one second.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often the machine is checked for room for more workers.
const ROOM_EVERY: Duration = Duration::from_secs(2);
/// Maximum number of records queued for the journal's writer.
const WRITER_QUEUE_MAX: usize = 1024;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The last look at the branches of a run before it is called done. It returns what a person must
/// know.
pub type DoneCheck = Box<dyn Fn(&State) -> Result<Vec<String>, GitError> + Send + Sync>;

/// Why a run's loop failed.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    #[error("cannot start the thread that writes the files")]
    Files(#[source] std::io::Error),
    #[error("the run can't be called done: its branches could not be checked")]
    NotChecked(#[source] GitError),
}

/// Why nothing more is recorded.
enum RecordingEnd {
    Journal(BoxedError),
    NotChecked(GitError),
}

impl RecordingEnd {
    fn cause(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            RecordingEnd::Journal(error) => &**error,
            RecordingEnd::NotChecked(error) => error,
        }
    }
}

/// The loop of one run.
pub struct Shell {
    pub place: StatePaths,
    pilot: Pilot,
    run: String,
    epoch: u64,
    writer: Writer,
    appender: Appender,
    signals: mpsc::UnboundedReceiver<LoopSignal>,
    sender: mpsc::UnboundedSender<LoopSignal>,
    context: Arc<Context>,
    jobs: JoinSet<AttemptId>,
    cancels: BTreeMap<AttemptId, Cancel>,
    /// Channels to the agents that work now.
    voices: BTreeMap<AttemptId, mpsc::Sender<job::Spoken>>,
    files: FileKeeper,
    feed: RunFeed,
    /// Jobs that wait until the record with this number is durable.
    vows: Vec<(u64, oneshot::Sender<()>)>,
    /// The proof that runs, or ran, beside the steps of its task.
    proof: Option<RunningProof>,
    ears: Ears,
    interrupts: u32,
    snapshot_at: u64,
    wait: WaitPolicy,
    room_looked: Option<Instant>,
    check: DoneCheck,
    recording_ended: Option<RecordingEnd>,
}

/// The conditions under which the process waits instead of ending.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitPolicy {
    pub paused: bool,
    /// A person is asked and nothing else can be done.
    pub asked: bool,
}

/// The parts of a shell. The caller holds the lock and has cleaned up.
pub struct ShellParts {
    pub place: StatePaths,
    pub run: String,
    pub epoch: u64,
    pub state: State,
    pub journal: Box<dyn autopilot_journal::Journal + Send>,
    pub feed: RunFeed,
    /// Every record so far: a dead process may not have written the files for the last ones.
    pub known: Vec<Record>,
    pub check: DoneCheck,
}

impl Shell {
    /// `context` is built from the jobs' connections to the loop: the store of texts and the
    /// signals.
    pub fn new(
        parts: ShellParts,
        wait: WaitPolicy,
        context: impl FnOnce(store::Texts, Teller) -> Context,
    ) -> Result<Shell, ShellError> {
        let (sender, signals) = mpsc::unbounded_channel();
        let told = sender.clone();
        let writer = Writer::start(
            parts.journal,
            WRITER_QUEUE_MAX,
            Box::new(move |notice| {
                fail::point("journal.durable");
                // The loop may have ended, and then nobody needs the notice.
                let _gone = told.send(match notice {
                    WriterNotice::Durable { seq, .. } => LoopSignal::Durable { seq },
                    WriterNotice::Failed { error } => LoopSignal::JournalFailed { error },
                });
            }),
        )
        .map_err(StoreError::from)?;
        let appender = writer.appender();
        let teller = Teller::new(sender.clone(), parts.feed.clone());
        let context = Arc::new(context(store::Texts::new(appender.clone()), teller));
        let views = Views::of_run(&context);
        let follow = parts.feed.subscribe(parts.state.seq + 1, SightLevel::Nothing);
        let files = FileKeeper::start(views, follow, parts.state.clone(), parts.known)
            .map_err(ShellError::Files)?;
        Ok(Shell {
            snapshot_at: parts.state.seq,
            pilot: Pilot::resume(parts.state),
            place: parts.place,
            run: parts.run,
            epoch: parts.epoch,
            writer,
            appender,
            signals,
            sender,
            context,
            jobs: JoinSet::new(),
            cancels: BTreeMap::new(),
            voices: BTreeMap::new(),
            files,
            feed: parts.feed,
            vows: Vec::new(),
            proof: None,
            ears: Ears::default(),
            interrupts: 0,
            wait,
            room_looked: None,
            check: parts.check,
            recording_ended: None,
        })
    }

    /// The store for texts that the first record will name.
    pub fn texts(&self) -> store::Texts {
        store::Texts::new(self.appender.clone())
    }

    /// Hears the first inputs of a boot, each made durable before the next, and then works until
    /// the run ends or pauses.
    pub async fn work(mut self, first: Vec<Input>) -> Result<State, ShellError> {
        for input in first {
            let was_done = self.is_called_done();
            match self.pilot.hear(input, now()) {
                Ok(Some(record)) => {
                    self.check_done(was_done).map_err(ShellError::NotChecked)?;
                    let entry = store::encode(&self.run, self.epoch, &record)?;
                    self.appender.append_now(vec![entry]).map_err(StoreError::from)?;
                }
                Err(refusal) if !refusal.is_already_so() => {
                    self.feed.notice(&refusal.to_string());
                }
                Ok(None) | Err(_) => {}
            }
        }
        self.listen_for_interrupts()?;
        self.open_inbox()?;
        let mut look = tokio::time::interval(fail::look_every(LOOK_EVERY));
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_done() {
            tokio::select! {
                Some(signal) = self.signals.recv() => self.take(signal)?,
                Some(ended) = self.jobs.join_next(), if !self.jobs.is_empty() => self.joined(ended),
                told = self.ears.arrival() => self.arrived(told)?,
                _ = look.tick() => self.look()?,
            }
        }
        self.finish().await
    }

    fn is_done(&self) -> bool {
        let idle = self.jobs.is_empty();
        if self.recording_ended.is_some() {
            return idle;
        }
        let settled = self.pilot.settled();
        let is_paused = settled.run.halt.as_ref().is_some_and(|halt| halt.why == HaltWhy::Pause);
        let is_asked = settled.run.halt.is_none() && settled.gate().is_some();
        let waits = self.wait.paused && is_paused || self.wait.asked && is_asked;
        self.pilot.is_over() && idle && !waits
    }

    fn take(&mut self, signal: LoopSignal) -> Result<(), ShellError> {
        match signal {
            LoopSignal::Durable { seq } => self.durable(seq),
            LoopSignal::JournalFailed { error } => self.journal_failed(error),
            LoopSignal::Heard { want, word } => {
                self.hear(Input::Heard { id: want.id, task: want.task, word })?;
            }
            LoopSignal::Vowed { want, word, kept } => {
                let heard = self.hear(Input::Heard { id: want.id, task: want.task, word })?;
                // Dropped when there is no record, which tells the waiting job so.
                self.vows.extend(heard.map(|seq| (seq, kept)));
            }
            LoopSignal::Interrupt => self.interrupt()?,
            LoopSignal::CutShort => {
                self.hear(Input::Asked(Ask::Halt { why: HaltWhy::Stop, now: true }))?;
            }
        }
        Ok(())
    }

    /// The number of the resulting record. A refused input leaves none.
    fn hear(&mut self, input: Input) -> Result<Option<u64>, ShellError> {
        Ok(self.judge(input)?.unwrap_or_default())
    }

    /// Judges an input and returns its record number, or the refusal of an ask.
    fn judge(&mut self, input: Input) -> Result<Result<Option<u64>, Refusal>, ShellError> {
        if self.recording_ended.is_some() {
            return Ok(Ok(None));
        }
        let was_done = self.is_called_done();
        let record = match self.pilot.hear(input, now()) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Ok(None)),
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Err(error) = self.check_done(was_done) {
            let text = chain(&error);
            self.feed.notice(&format!(
                "the run is not called done, and rests: {text}; when that is mended, `autopilot \
                 resume` completes it"
            ));
            self.end_recording(RecordingEnd::NotChecked(error));
            return Ok(Ok(None));
        }
        let entry = store::encode(&self.run, self.epoch, &record)?;
        if let Err(error) = self.appender.submit(entry) {
            self.journal_failed(error);
            return Ok(Ok(None));
        }
        Ok(Ok(Some(record.seq)))
    }

    fn is_called_done(&self) -> bool {
        self.pilot.ahead().end() == Some(&TaskEnd::Closed)
    }

    /// Checks the branches before a record is written that calls the run done. Until then nobody has
    /// been told, and a process that dies here leaves a run that is not.
    fn check_done(&self, was_done: bool) -> Result<(), GitError> {
        if was_done || !self.is_called_done() {
            return Ok(());
        }
        // What the evidence is made of must be readable; a journal that fails is told by the record.
        let _told_later = self.appender.append_now(Vec::new());
        let notices = tokio::task::block_in_place(|| (self.check)(self.pilot.ahead()))?;
        notices.iter().for_each(|text| self.feed.notice(text));
        Ok(())
    }

    fn durable(&mut self, seq: u64) {
        let orders = self.pilot.durable(seq);
        if self.pilot.settled().end().is_some() {
            fail::point("end.durable");
        }
        self.obey(orders);
        self.reconcile_proof();
        for (_, kept) in self.vows.extract_if(.., |(at, _)| *at <= seq) {
            let _job_is_gone = kept.send(());
        }
        self.give_answers();
        self.snapshot();
    }

    fn obey(&mut self, orders: Vec<PilotOrder>) {
        for order in orders {
            match order {
                PilotOrder::Tell(record) => self.feed.publish(record),
                PilotOrder::Start(want) => self.start(want),
                PilotOrder::End(id) => {
                    if let Some(cancel) = self.cancels.get(&id) {
                        cancel.now();
                    }
                }
            }
        }
    }

    fn start(&mut self, want: Want) {
        // The outcome could not be recorded, so the attempt would start again without end. A
        // resumed run wants it again.
        if self.recording_ended.is_some() {
            return;
        }
        let state = self.pilot.settled();
        let cancel = Cancel::default();
        let (voice, ears) = mpsc::channel(job::SPOKEN_MAX);
        let context = Arc::clone(&self.context);
        let job = job::Job::new(state, want, context, cancel.clone(), ears);
        self.cancels.insert(want.id, cancel);
        self.voices.insert(want.id, voice);
        let sender = self.sender.clone();
        let player = self.context.player.clone();
        player.iter().for_each(|player| player.began());
        // A starting step must find the files of the steps before it.
        let written = self.files.written(self.pilot.settled().seq);
        self.jobs.spawn(async move {
            written.await;
            let word = job.run().await;
            // The loop outlives its jobs; a closed channel means the process is going down.
            let Some(player) = player else {
                let _gone = sender.send(LoopSignal::Heard { want, word });
                return want.id;
            };
            let (kept, recorded) = oneshot::channel();
            let _gone = sender.send(LoopSignal::Vowed { want, word, kept });
            if player.is_visited() {
                let _gone = sender.send(LoopSignal::CutShort);
            }
            // The end may have left no record, and is settled all the same.
            let _no_record = recorded.await;
            want.id
        });
    }

    /// Forgets a job that ended; its word was sent earlier, so it is heard first.
    fn joined(&mut self, ended: Result<AttemptId, tokio::task::JoinError>) {
        while let Ok(signal) = self.signals.try_recv() {
            if let Err(error) = self.take(signal) {
                self.journal_failed(error);
            }
        }
        match ended {
            Ok(id) => {
                self.cancels.remove(&id);
                self.voices.remove(&id);
                self.pilot.gone(id);
                // The next step of the task may be durable already and wait only for this.
                let orders = self.pilot.catch_up();
                self.obey(orders);
                self.context.player.iter().for_each(|player| player.settled(id));
            }
            Err(error) => self.journal_failed(format!("internal: a step panicked: {error}")),
        }
    }

    fn look(&mut self) -> Result<(), ShellError> {
        if self.recording_ended.is_some() {
            return Ok(());
        }
        self.look_at_flags()?;
        if self.ears.must_look() {
            self.hear_inbox()?;
        }
        self.look_at_room()?;
        self.hear(Input::Tick)?;
        Ok(())
    }

    /// Limits the workers on a machine that is nearly full: many would fail, fewer get through.
    fn look_at_room(&mut self) -> Result<(), ShellError> {
        if self.room_looked.is_some_and(|at| at.elapsed() < ROOM_EVERY) {
            return Ok(());
        }
        self.room_looked = Some(Instant::now());
        let workers = self.pilot.ahead().slots_live();
        let short = admission::short(&self.place, &self.context.config.orchestrator, workers);
        self.hear(Input::Room { short })?;
        Ok(())
    }

    fn listen_for_interrupts(&self) -> Result<(), ShellError> {
        use tokio::signal::unix::{SignalKind, signal};
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let mut stream = signal(kind).map_err(ShellError::Signals)?;
            let sender = self.sender.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() && sender.send(LoopSignal::Interrupt).is_ok() {}
            });
        }
        interrupt::hand_over();
        Ok(())
    }

    /// Stops everything when nothing more can be recorded.
    fn journal_failed(&mut self, error: impl Into<BoxedError>) {
        let error = error.into();
        if self.recording_ended.is_none() {
            let text = chain(&*error);
            self.feed.notice(&format!("the journal can't be written, so the run stops: {text}"));
        }
        self.end_recording(RecordingEnd::Journal(error));
    }

    /// Stops everything; what is not recorded happens again when the run is resumed.
    fn end_recording(&mut self, why: RecordingEnd) {
        if self.recording_ended.is_none() {
            self.recording_ended = Some(why);
            self.vows.clear();
        }
        self.give_answers();
        for cancel in self.cancels.values() {
            cancel.now();
        }
    }

    fn snapshot(&mut self) {
        let state = self.pilot.settled();
        if state.seq < self.snapshot_at + SNAPSHOT_EVERY {
            return;
        }
        self.snapshot_at = state.seq;
        if let Some(entry) = store::snapshot(state, self.epoch) {
            // A snapshot is a cache: without it the next start only reads more records.
            let _not_cached = self.appender.submit(entry);
        }
    }

    async fn finish(self) -> Result<State, ShellError> {
        let state = self.pilot.settled().clone();
        self.feed.end();
        self.files.close().await;
        if self.recording_ended.is_none() {
            let outcome = state.end().map(|_| autopilot_view::run_word(&state).to_owned());
            let run = self.run.clone();
            let mut last = vec![JournalEntry::End { run, epoch: self.epoch, outcome }];
            last.extend(store::snapshot(&state, self.epoch));
            self.appender.append_now(last).map_err(StoreError::from)?;
            self.writer.close().map_err(StoreError::from)?;
        }
        match self.recording_ended {
            None => Ok(state),
            Some(RecordingEnd::NotChecked(error)) => Err(ShellError::NotChecked(error)),
            Some(RecordingEnd::Journal(error)) => {
                Err(ShellError::Store(StoreError::Stopped(error)))
            }
        }
    }
}

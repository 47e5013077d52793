//! One process that is talked with: its lines in, our words out, and what it costs.

use super::artifact::ExecRecorder;
use super::billing::CostDoubt;
use super::{Job, lend, start_gate};
use crate::feed::Sight;
use autopilot_agents::{
    Act, AgentEnding, AgentEvent, AgentMessage, AgentOutcome, Cause, Conversation, Deaf, ExitFacts,
    HeardLine, Odd, OutputStream, session_id,
};
use autopilot_core::config::Mode;
use autopilot_core::input::AttemptWord;
use autopilot_host::exec::Control;
use autopilot_host::turnstile::Turnstile;
use camino::Utf8Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

/// An agent that was told that nothing more comes has this long to end by itself.
const LINGER: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(5);
/// Before its time is over an agent is asked to stop, because one that is killed never tells what it
/// has cost.
const WINDING_UP: Duration = Duration::from_secs(5);

/// What somebody wants to tell a running agent, and how they learn whether it was heard.
#[derive(Debug)]
pub struct Spoken {
    pub wish: AgentMessage,
    pub heard: tokio::sync::oneshot::Sender<Result<(), Deaf>>,
}

/// Where a job hears what is to be told to its agent.
pub type Ears = tokio::sync::Mutex<mpsc::Receiver<Spoken>>;

/// What is still to be said to one agent or done for it; one that lets it come to more is ended.
const ACTS_MAX: usize = 4096;
/// Sessions one process may name; a real one names one, or two when it goes on elsewhere.
const SESSIONS_MAX: u32 = 8;
/// Words on their way to one agent.
pub const SPOKEN_MAX: usize = 16;

pub struct Talk<'a> {
    job: &'a Job,
    exec: &'a ExecRecorder,
    /// Where its files are.
    dir: &'a Utf8Path,
    conversation: Mutex<Box<dyn Conversation>>,
    /// Kept while it starts.
    starting: Mutex<Option<Turnstile>>,
    acts: mpsc::Sender<Act>,
    to_do: tokio::sync::Mutex<mpsc::Receiver<Act>>,
    /// It asks for more than it takes in.
    flooded: Notify,
    is_flooded: AtomicBool,
    /// It has spent more than it was given.
    overspent: Notify,
    /// It was asked to stop because its time is over.
    is_out_of_time: AtomicBool,
    /// A model was seen to answer.
    is_answered: AtomicBool,
    ended: AtomicBool,
    /// Sessions it has named.
    sessions: AtomicU32,
}

impl<'a> Talk<'a> {
    pub fn new(
        job: &'a Job,
        exec: &'a ExecRecorder,
        dir: &'a Utf8Path,
        conversation: Box<dyn Conversation>,
        starting: Option<Turnstile>,
    ) -> Talk<'a> {
        let (acts, to_do) = mpsc::channel(ACTS_MAX);
        let (conversation, starting) = (Mutex::new(conversation), Mutex::new(starting));
        let to_do = tokio::sync::Mutex::new(to_do);
        Talk {
            job,
            exec,
            dir,
            conversation,
            starting,
            acts,
            to_do,
            flooded: Notify::new(),
            is_flooded: AtomicBool::new(false),
            overspent: Notify::new(),
            is_out_of_time: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            sessions: AtomicU32::new(0),
        }
    }

    pub fn line(&self, out: OutputStream, line: &str, cut: bool) {
        if out == OutputStream::Out {
            self.has_started();
        }
        let heard = self.conversation().line(out, line, cut);
        self.take(heard);
    }

    /// Says what the conversation and people want said, until the process has ended.
    pub async fn speak(&self, pipe: Option<pipe::Sender>, process: &Control, timeout: Duration) {
        let mut pipe = pipe;
        let mut to_do = self.to_do.lock().await;
        let mut ears = self.job.ears.lock().await;
        let first = self.conversation().begin();
        self.take(first);
        let mut started = std::pin::pin!(tokio::time::sleep(start_gate::HELD_MAX));
        let mut is_held = true;
        let mut late = std::pin::pin!(tokio::time::sleep(timeout - winding_up(timeout)));
        let mut is_in_time = true;
        loop {
            tokio::select! {
                Some(act) = to_do.recv() => match act {
                    Act::Say(line) => {
                        if let Some(pipe) = &mut pipe {
                            let line = format!("{line}\n");
                            tokio::select! {
                                // It may have ended; its end tells more than this error could.
                                _gone = pipe.write_all(line.as_bytes()) => {}
                                () = self.flooded.notified() => process.kill(),
                            }
                        }
                    }
                    Act::Close => {
                        pipe = None;
                        break;
                    }
                    Act::ReadFile { id, path, first_line, lines_max } => {
                        let text = lend::read(self.dir, &path, first_line, lines_max);
                        let heard = self.conversation().file(id, text);
                        self.take(heard);
                    }
                    Act::WriteFile { id, path, text } => {
                        let written = lend::write(self.dir, &path, &text).map(|()| String::new());
                        let heard = self.conversation().file(id, written);
                        self.take(heard);
                    }
                },
                Some(spoken) = ears.recv() => self.tell(spoken),
                () = self.overspent.notified() => process.terminate(GRACE),
                () = &mut late, if is_in_time => {
                    self.wind_up();
                    is_in_time = false;
                }
                () = &mut started, if is_held => {
                    self.has_started();
                    is_held = false;
                }
            }
        }
        drop(pipe);
        tokio::select! {
            () = tokio::time::sleep(LINGER) => {}
            () = self.overspent.notified() => {}
        }
        self.ended.store(true, Ordering::Relaxed);
        process.terminate(GRACE);
    }

    /// It would not end by itself after its answer.
    pub fn was_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// It was asked to stop because its time is over.
    pub fn is_out_of_time(&self) -> bool {
        self.is_out_of_time.load(Ordering::Relaxed)
    }

    fn wind_up(&self) {
        let heard = self.conversation().wish(AgentMessage::Interrupt);
        // Who does not listen is ended by a signal when the time is over.
        if let Ok(heard) = heard {
            self.is_out_of_time.store(true, Ordering::Relaxed);
            self.take(heard);
        }
    }

    /// The next of its kind may start.
    fn has_started(&self) {
        *self.starting.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn tell(&self, spoken: Spoken) {
        let answer = self.conversation().wish(spoken.wish);
        let answer = answer.map(|heard| self.take(heard));
        // Whoever asked may have left.
        let _gone = spoken.heard.send(answer);
    }

    fn take(&self, heard: HeardLine) {
        // A figure that comes with the result is the last one; it is told with the end.
        let is_last = heard.events.iter().any(|event| matches!(event, AgentEvent::Result { .. }));
        for event in heard.events {
            self.job.notice(&event);
            match &event {
                AgentEvent::Session { id } if !session_id::is_safe(id) => {}
                AgentEvent::Session { .. }
                    if self.sessions.fetch_add(1, Ordering::Relaxed) >= SESSIONS_MAX => {}
                AgentEvent::Session { id } => {
                    let id = self.job.clean(id);
                    self.job.billing().opened(&id);
                    self.job.say(AttemptWord::Session(id));
                }
                AgentEvent::Usage(_) if is_last => {}
                AgentEvent::Usage(usage) => {
                    let owed = self.job.billing().hear(usage);
                    self.job.say(owed);
                    if self.job.billing().excess().is_some() {
                        self.overspent.notify_one();
                    }
                }
                AgentEvent::Text { .. }
                | AgentEvent::Thought { .. }
                | AgentEvent::ToolCall { .. }
                | AgentEvent::ToolResult { .. }
                | AgentEvent::FileChange { .. } => {
                    self.is_answered.store(true, Ordering::Relaxed);
                }
                AgentEvent::Permission { .. }
                | AgentEvent::RateLimit { .. }
                | AgentEvent::Notice { .. }
                | AgentEvent::Steer { .. }
                | AgentEvent::Result { .. } => {}
            }
            if matches!(event, AgentEvent::Steer { .. }) {
                self.job.told.fetch_add(1, Ordering::Relaxed);
            }
            let event = self.job.clean_event(event);
            self.exec.event(&event);
            self.job.show(Sight::Agent(event));
        }
        for act in heard.acts {
            // An agent that asks and asks and never reads would cost memory without end.
            if self.acts.try_send(act).is_err() {
                self.is_flooded.store(true, Ordering::Relaxed);
                self.flooded.notify_one();
            }
        }
    }

    pub fn finish(self, exit: ExitFacts) -> AgentEnding {
        let unheard = std::mem::replace(&mut *self.conversation(), Box::new(Silence));
        let mut ending = unheard.finish(exit);
        if ending.outcome == AgentOutcome::Interrupted
            && let Some(forced) = exit.forced().filter(|_| exit.timed_out)
        {
            ending.outcome = forced;
        }
        if self.is_flooded.load(Ordering::Relaxed) && ending.outcome != AgentOutcome::Success {
            ending.outcome = AgentOutcome::broke(Cause::Other, flooded());
        }
        let excess = self.job.billing().excess();
        if let Some((given, spent)) = excess
            && ending.outcome != AgentOutcome::Success
        {
            let why = format!("it was given {given} and has spent {spent}");
            ending.outcome = AgentOutcome::broke(Cause::Budget, why);
        }
        // It becomes an argument when the session is resumed.
        if ending.session.as_deref().is_some_and(|id| !session_id::is_safe(id)) {
            ending.session = None;
            let why = "what it calls its session is no name of one";
            ending.outcome = AgentOutcome::broke(Cause::Session, why);
        }
        let session = ending.session.as_deref().map(|session| self.job.clean(session));
        let worked = self.worked(&ending.outcome);
        self.job.billing().end(ending.usage.as_ref(), session.as_deref(), worked);
        ending
    }

    /// Who was turned away before any model answered has cost nothing, as far as anybody knows.
    fn worked(&self, outcome: &AgentOutcome) -> CostDoubt {
        if self.job.agent_config().mode == Mode::Script {
            return CostDoubt::Scripted;
        }
        let is_turned_away = match outcome {
            AgentOutcome::Auth { .. }
            | AgentOutcome::Outage { .. }
            | AgentOutcome::Quota { .. } => true,
            AgentOutcome::Broke { cause, .. } => {
                matches!(cause, Cause::Model | Cause::Startup | Cause::Session | Cause::Request)
            }
            AgentOutcome::Success | AgentOutcome::Interrupted => false,
        };
        if is_turned_away && !self.is_answered.load(Ordering::Relaxed) {
            CostDoubt::No
        } else {
            CostDoubt::Perhaps
        }
    }

    fn conversation(&self) -> MutexGuard<'_, Box<dyn Conversation>> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Short times are not spent on their end.
fn winding_up(timeout: Duration) -> Duration {
    WINDING_UP.min(timeout / 4)
}

fn flooded() -> String {
    format!("it asked for more than it took answers to: the limit is {ACTS_MAX} at once")
}

/// What is left when a conversation has ended.
struct Silence;

impl Conversation for Silence {
    fn line(&mut self, _: OutputStream, _: &str, _: bool) -> HeardLine {
        HeardLine::default()
    }

    fn finish(self: Box<Self>, _: ExitFacts) -> AgentEnding {
        AgentEnding {
            outcome: AgentOutcome::Interrupted,
            answer: String::new(),
            structured: None,
            session: None,
            usage: None,
            odd: Odd::default(),
        }
    }
}

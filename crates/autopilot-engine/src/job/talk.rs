//! A conversation with one agent process: its output, our messages, and its cost.

use super::artifact::ExecRecorder;
use super::billing::CostDoubt;
use super::slot_dir::SlotDir;
use super::{Job, lend, start_gate};
use crate::feed::Sight;
use autopilot_agents::{
    Act, AgentEnding, AgentEvent, AgentMessage, AgentOutcome, AgentUsage, Cause, Conversation,
    Deaf, ExitFacts, HeardLine, OutputStream, session_id,
};
use autopilot_core::config::Mode;
use autopilot_core::input::AttemptWord;
use autopilot_host::exec::Control;
use autopilot_host::turnstile::Turnstile;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

/// The time an agent has to exit after it was told that no more input comes.
const LINGER: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(5);
/// An agent is asked to stop this long before its time limit, because a killed agent never reports
/// its cost.
const WINDING_UP: Duration = Duration::from_secs(5);

/// A message to a running agent, with the channel for its answer.
#[derive(Debug)]
pub struct Spoken {
    pub wish: AgentMessage,
    pub heard: tokio::sync::oneshot::Sender<Result<(), Deaf>>,
}

/// The channel through which a job receives messages for its agent.
pub type Ears = tokio::sync::Mutex<mpsc::Receiver<Spoken>>;

/// Maximum number of pending messages and actions for one agent; beyond it, the agent is killed.
const ACTS_MAX: usize = 4096;
/// Maximum number of sessions one process may name; a real agent names one or two.
const SESSIONS_MAX: u32 = 8;
/// Maximum number of messages on their way to one agent.
pub const SPOKEN_MAX: usize = 16;

/// The conversation with one agent process.
pub struct Talk<'a> {
    job: &'a Job,
    exec: &'a ExecRecorder,
    /// The directory of the conversation's files.
    dir: &'a SlotDir,
    conversation: Mutex<Box<dyn Conversation>>,
    state: Mutex<TalkState>,
    acts: mpsc::Sender<Act>,
    to_do: tokio::sync::Mutex<mpsc::Receiver<Act>>,
    /// Signals that the agent requests more than it reads.
    flooded: Notify,
    /// Signals that the agent has spent more than its allowance.
    overspent: Notify,
    began: Instant,
}

/// What has happened in a conversation so far; nothing of it excludes anything else.
#[derive(Default)]
struct TalkState {
    /// Held while the agent starts.
    starting: Option<Turnstile>,
    /// The agent requested more than it read.
    is_flooded: bool,
    /// The agent was asked to stop because its time is over.
    is_out_of_time: bool,
    /// A model has answered.
    is_answered: bool,
    /// The agent was ended because it did not exit after its answer.
    was_ended: bool,
    /// The number of sessions the agent has named.
    sessions: u32,
}

impl<'a> Talk<'a> {
    /// A conversation for one question.
    pub fn new(
        job: &'a Job,
        exec: &'a ExecRecorder,
        dir: &'a SlotDir,
        conversation: Box<dyn Conversation>,
        starting: Option<Turnstile>,
    ) -> Talk<'a> {
        let (acts, to_do) = mpsc::channel(ACTS_MAX);
        Talk {
            job,
            exec,
            dir,
            conversation: Mutex::new(conversation),
            state: Mutex::new(TalkState { starting, ..TalkState::default() }),
            acts,
            to_do: tokio::sync::Mutex::new(to_do),
            flooded: Notify::new(),
            overspent: Notify::new(),
            began: Instant::now(),
        }
    }

    /// Handles a line of the agent's output.
    pub fn line(&self, out: OutputStream, line: &str, cut: bool) {
        if out == OutputStream::Out {
            self.let_next_start();
        }
        let heard = self.conversation().line(out, line, cut);
        self.take(heard);
    }

    /// Sends the conversation's and people's messages until the process has ended.
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
                                // The process may have ended, and its exit says more than this
                                // error could.
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
                        self.lent(id, lend::read(self.dir, &path, first_line, lines_max));
                    }
                    Act::WriteFile { id, path, text } => {
                        let written = lend::write(self.dir, &path, &text);
                        self.lent(id, written.map(|()| String::new()));
                    }
                },
                Some(spoken) = ears.recv() => self.tell(spoken),
                () = self.overspent.notified() => process.terminate(GRACE),
                () = &mut late, if is_in_time => {
                    self.wind_up();
                    is_in_time = false;
                }
                () = &mut started, if is_held => {
                    self.let_next_start();
                    is_held = false;
                }
            }
        }
        drop(pipe);
        tokio::select! {
            () = tokio::time::sleep(LINGER) => {}
            () = self.overspent.notified() => {}
        }
        self.state().was_ended = true;
        process.terminate(GRACE);
    }

    /// Returns whether the agent was killed because it did not exit after its answer.
    pub fn was_ended(&self) -> bool {
        self.state().was_ended
    }

    /// Returns whether the agent was asked to stop because its time is over.
    pub fn is_out_of_time(&self) -> bool {
        self.state().is_out_of_time
    }

    fn wind_up(&self) {
        let heard = self.conversation().wish(AgentMessage::Interrupt);
        // An agent that takes no messages is stopped by a signal at the time limit.
        if let Ok(heard) = heard {
            self.state().is_out_of_time = true;
            self.take(heard);
        }
    }

    /// Lets the next agent of this kind start.
    fn let_next_start(&self) {
        self.state().starting = None;
    }

    fn lent(&self, id: u64, done: Result<String, String>) {
        let heard = self.conversation().file(id, done);
        self.take(heard);
    }

    fn tell(&self, spoken: Spoken) {
        let answer = self.conversation().wish(spoken.wish);
        let answer = answer.map(|heard| self.take(heard));
        // The sender may be gone.
        let _gone = spoken.heard.send(answer);
    }

    fn take(&self, heard: HeardLine) {
        // Figures that come with the result are the final ones and are reported with the end.
        let is_last = heard.events.iter().any(|event| matches!(event, AgentEvent::Result { .. }));
        for event in heard.events {
            self.job.notice(&event);
            match &event {
                AgentEvent::Session { id } => self.opened(id),
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
                | AgentEvent::FileChange { .. } => self.state().is_answered = true,
                AgentEvent::Steer { .. } => self.job.seen().told += 1,
                AgentEvent::Permission { .. }
                | AgentEvent::RateLimit { .. }
                | AgentEvent::Notice { .. }
                | AgentEvent::Result { .. } => {}
            }
            let event = self.job.clean_event(event);
            self.exec.event(&event);
            self.job.show(Sight::Agent(event));
        }
        for act in heard.acts {
            // An agent that keeps asking and never reads would use memory without end.
            if self.acts.try_send(act).is_err() {
                self.state().is_flooded = true;
                self.flooded.notify_one();
            }
        }
    }

    fn opened(&self, session: &str) {
        if !session_id::is_safe(session) {
            return;
        }
        let mut state = self.state();
        state.sessions = state.sessions.saturating_add(1);
        if state.sessions > SESSIONS_MAX {
            return;
        }
        drop(state);
        let id = self.job.clean(session);
        self.job.billing().opened(&id);
        self.job.note_session(&id, &self.dir.seen);
        self.job.say(AttemptWord::Session(id));
    }

    /// Ends the conversation and returns how the agent ended. `kept` is asked for the usage in the
    /// session's files if the agent did not tell all of it.
    pub fn finish(
        self,
        exit: ExitFacts,
        kept: impl FnOnce(Option<&str>) -> Option<AgentUsage>,
    ) -> AgentEnding {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let conversation = self.conversation.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut ending = conversation.finish(exit);
        if ending.outcome == AgentOutcome::Interrupted && exit.timed_out {
            ending.outcome = exit.forced().unwrap_or(AgentOutcome::Interrupted);
        }
        if state.is_flooded && ending.outcome != AgentOutcome::Success {
            let why = format!(
                "it sent more requests than it read answers to: the limit is {ACTS_MAX} at once"
            );
            ending.outcome = AgentOutcome::broke(Cause::Other, why);
        }
        let excess = self.job.billing().excess();
        if let Some((given, spent)) = excess
            && ending.outcome != AgentOutcome::Success
        {
            let why = format!("it was allowed {given} and has spent {spent}");
            ending.outcome = AgentOutcome::broke(Cause::Budget, why);
        }
        // The id becomes an argument when the session is resumed.
        if ending.session.as_deref().is_some_and(|id| !session_id::is_safe(id)) {
            ending.session = None;
            let why = "its session id is not valid";
            ending.outcome = AgentOutcome::broke(Cause::Session, why);
        }
        let is_told = ending.usage.as_ref().is_some_and(|usage| !usage.is_partial);
        if !is_told && self.job.agent_config().mode != Mode::Script {
            ending.usage = kept(ending.session.as_deref()).or(ending.usage);
        }
        let session = ending.session.as_deref().map(|session| self.job.clean(session));
        let doubt = if self.job.agent_config().mode == Mode::Script {
            CostDoubt::Scripted
        } else if !state.is_answered && is_turned_away(&ending.outcome) {
            CostDoubt::No
        } else {
            CostDoubt::Perhaps
        };
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.job.billing().end(ending.usage.as_ref(), session.as_deref(), doubt, ms);
        ending
    }

    fn state(&self) -> MutexGuard<'_, TalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn conversation(&self) -> MutexGuard<'_, Box<dyn Conversation>> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time to stop an agent early; short limits have less of it.
fn winding_up(timeout: Duration) -> Duration {
    WINDING_UP.min(timeout / 4)
}

/// Whether the outcome says that the agent was turned away. If no model answered before, that has
/// cost nothing, as far as is known.
fn is_turned_away(outcome: &AgentOutcome) -> bool {
    match outcome {
        AgentOutcome::Auth { .. } | AgentOutcome::Outage { .. } | AgentOutcome::Quota { .. } => {
            true
        }
        AgentOutcome::Broke { cause, .. } => {
            matches!(cause, Cause::Model | Cause::Startup | Cause::Session | Cause::Request)
        }
        AgentOutcome::Success | AgentOutcome::Interrupted => false,
    }
}

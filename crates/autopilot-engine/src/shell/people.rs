//! Handles what people want from a run while the loop works on it: messages in the inbox, each of
//! which gets an answer, and the flag files.
//!
//! The inbox is read when something arrives. The flag files are polled: anybody may create them, in
//! directories that come and go.

use super::{Shell, ShellError, now};
use crate::flag::Flag;
use crate::inbox::{
    self, InboxAnswer, InboxFailure, InboxMessage, InboxRequest, LimitChange, ReplyAddress,
};
use crate::job;
use crate::place::StatePaths;
use autopilot_agents::{AgentMessage, Deaf};
use autopilot_core::decide::rehearse;
use autopilot_core::event::HaltWhy;
use autopilot_core::id::TaskId;
use autopilot_core::input::{Ask, Input};
use autopilot_core::pipeline::Switch;
use autopilot_host::dir_watch::Arrivals;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How long a job may take to pass a message on to its agent.
const HEARING_MAX: Duration = Duration::from_secs(5);

/// The inbox of a run, and the answers that wait until what they report is durable.
#[derive(Default)]
pub(super) struct Ears {
    /// `None` where the kernel can't report arrivals, so that the inbox is polled.
    arrivals: Option<Arrivals>,
    answers: Vec<(u64, ReplyAddress, InboxAnswer)>,
    /// Whether a pause file was seen: only the pause that it asked for ends when it is gone.
    saw_pause_file: bool,
}

impl Ears {
    /// Waits until something has arrived; forever where the kernel can't report it.
    pub async fn arrival(&self) -> std::io::Result<()> {
        match &self.arrivals {
            Some(arrivals) => arrivals.next().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether the inbox must be polled.
    pub fn must_look(&self) -> bool {
        self.arrivals.is_none()
    }

    fn listen(&mut self, place: &StatePaths) -> std::io::Result<()> {
        self.arrivals = None;
        inbox::create(place).map_err(std::io::Error::other)?;
        self.arrivals = Some(Arrivals::new(place.inbox().as_std_path())?);
        Ok(())
    }
}

impl Shell {
    /// Starts watching the inbox and reads the messages that are there already.
    pub(super) fn open_inbox(&mut self) -> Result<(), ShellError> {
        if let Err(error) = self.ears.listen(&self.place) {
            self.feed.notice(&format!("cannot watch the inbox ({error}); polling it instead"));
        }
        self.hear_inbox()
    }

    pub(super) fn arrived(&mut self, told: std::io::Result<()>) -> Result<(), ShellError> {
        match told {
            Ok(()) => self.hear_inbox(),
            Err(_) => self.open_inbox(),
        }
    }

    pub(super) fn hear_inbox(&mut self) -> Result<(), ShellError> {
        for (reply_to, message) in inbox::take(&self.place) {
            let request = match message {
                Ok(InboxMessage { run: Some(asked), .. }) if asked != self.run => {
                    Err(InboxFailure::OtherRun { own: self.run.clone(), asked })
                }
                Ok(message) => Ok(message.request),
                Err(failure) => Err(failure),
            };
            match request {
                Ok(InboxRequest::Asks { limits, asks }) => {
                    let answer = self.asked(&limits, asks)?;
                    self.answer_when_durable(reply_to, answer);
                }
                Ok(InboxRequest::Tell { task, text }) => {
                    self.tell_agent(reply_to, task, AgentMessage::Message(text));
                }
                Ok(InboxRequest::Interrupt { task }) => {
                    self.tell_agent(reply_to, task, AgentMessage::Interrupt);
                }
                Err(failure) => self.answer_when_durable(reply_to, InboxAnswer::Failed(failure)),
            }
        }
        self.give_answers();
        Ok(())
    }

    /// Carries out all of the asks, or none.
    fn asked(&mut self, limits: &LimitChange, asks: Vec<Ask>) -> Result<InboxAnswer, ShellError> {
        if let Some(ended) = &self.recording_ended {
            return Ok(unwritable(ended.cause()));
        }
        let ahead = self.pilot.ahead();
        let asks: Vec<Ask> = limits.ask(&ahead.run.limits).into_iter().chain(asks).collect();
        if asks.len() > 1
            && let Err(refusal) = rehearse(ahead, asks.iter().cloned().map(Input::Asked), now())
        {
            return Ok(InboxAnswer::Refused(refusal));
        }
        let mut answer = InboxAnswer::Unchanged { text: "the message has no request".to_owned() };
        for ask in asks {
            let text = ask.carried_out();
            answer = match self.judge(Input::Asked(ask))? {
                Ok(_) => InboxAnswer::Done { text },
                Err(refusal) if refusal.is_already_so() => {
                    InboxAnswer::Unchanged { text: refusal.to_string() }
                }
                Err(refusal) => return Ok(InboxAnswer::Refused(refusal)),
            };
        }
        Ok(answer)
    }

    /// Sends an answer once the state it reports is durable; a refusal reports a state too.
    fn answer_when_durable(&mut self, reply_to: ReplyAddress, answer: InboxAnswer) {
        self.ears.answers.push((self.pilot.ahead().seq, reply_to, answer));
    }

    pub(super) fn give_answers(&mut self) {
        let (seq, failed) = (self.pilot.settled().seq, self.recording_ended.as_ref());
        let is_due = |at: u64| at <= seq || failed.is_some();
        for (at, reply_to, answer) in self.ears.answers.extract_if(.., |(at, ..)| is_due(*at)) {
            let answer = match failed.filter(|_| at > seq) {
                Some(ended) => unwritable(ended.cause()),
                None => answer,
            };
            // A sender whose answer can't be written gives up by itself.
            let _asker_gives_up = reply_to.send(&answer);
        }
    }

    /// Passes a person's message to an agent, and the answer back. A message changes no state by
    /// itself, so it is not an event; the agent's own record has it.
    fn tell_agent(&mut self, reply_to: ReplyAddress, task: String, wish: AgentMessage) {
        let settled = self.pilot.settled();
        let is_it = |id: TaskId| match settled.task(id).parent {
            Some(_) => settled.task(id).name() == task,
            None => task == "run",
        };
        let live = settled.live.iter().find(|(_, live)| is_it(live.task));
        let voice = live.and_then(|(id, _)| self.voices.get(id)).cloned();
        tokio::spawn(async move {
            let heard = match voice {
                Some(voice) => say(voice, wish).await,
                None => Err(InboxFailure::NoAgent { task }),
            };
            let answer = match heard {
                Ok(()) => InboxAnswer::Done { text: "sent to the agent".to_owned() },
                Err(failure) => InboxAnswer::Failed(failure),
            };
            // A sender whose answer can't be written gives up by itself.
            let _asker_gives_up = tokio::task::spawn_blocking(move || reply_to.send(&answer)).await;
        });
    }

    pub(super) fn look_at_flags(&mut self) -> Result<(), ShellError> {
        if Flag::Stop.raised(&self.place).is_some() {
            let now = Flag::Stop.is_urgent(&self.place);
            self.hear(Input::Asked(Ask::Halt { why: HaltWhy::Stop, now }))?;
        } else if Flag::Pause.raised(&self.place).is_some() {
            self.ears.saw_pause_file = true;
            self.hear(Input::Asked(Ask::Halt { why: HaltWhy::Pause, now: false }))?;
        } else if self.wait.paused && std::mem::take(&mut self.ears.saw_pause_file) {
            self.hear(Input::Asked(Ask::Unpause))?;
        }
        if let Some(path) = Flag::SkipReview.raised(&self.place) {
            let by = path.to_string();
            self.hear(Input::Asked(Ask::Switch { switch: Switch::Review, on: false, by }))?;
        } else if !self.pilot.ahead().run.switches.contains(&Switch::Review) {
            // The review is waived only while the file exists.
            let by = format!("{} is gone", Flag::SkipReview.file_name());
            self.hear(Input::Asked(Ask::Switch { switch: Switch::Review, on: true, by }))?;
        }
        Ok(())
    }

    pub(super) fn interrupt(&mut self) -> Result<(), ShellError> {
        self.interrupts += 1;
        let now = self.interrupts > 1;
        let how = if now {
            "stopping now"
        } else {
            "stopping after the current step; interrupt again to stop now"
        };
        self.feed.notice(how);
        self.hear(Input::Asked(Ask::Halt { why: HaltWhy::Stop, now }))?;
        Ok(())
    }
}

fn unwritable(error: impl ToString) -> InboxAnswer {
    InboxAnswer::Failed(InboxFailure::Journal { error: error.to_string() })
}

/// Passes a message to a job and waits for its agent's answer.
async fn say(voice: mpsc::Sender<job::Spoken>, wish: AgentMessage) -> Result<(), InboxFailure> {
    let (heard, answer) = oneshot::channel();
    let sent = voice.try_send(job::Spoken { wish, heard });
    sent.map_err(|_full| InboxFailure::Deaf(Deaf::Full))?;
    // A step without an agent never answers.
    match tokio::time::timeout(HEARING_MAX, answer).await {
        Ok(Ok(answer)) => answer.map_err(InboxFailure::Deaf),
        Ok(Err(_)) => Err(InboxFailure::Deaf(Deaf::Over)),
        Err(_) => Err(InboxFailure::NoListener),
    }
}

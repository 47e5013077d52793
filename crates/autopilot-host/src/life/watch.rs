//! The watch over one running agent: it passes the agent's output on, and ends the agent when its
//! time is over or it is stuck.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::patience::{Limits, Patience, Step};
use super::sample::{Look, Sample, ticks_before};
use crate::exec::{Child, Control, Exit, Heard};
use crate::output::Line;

/// The slack for a tool that begins just before the line that announces it is read.
const TOOL_SLACK: Duration = Duration::from_secs(2);

/// The settings of a watch.
#[derive(Debug, Clone)]
pub struct Watch {
    /// The limits on time and silence.
    pub limits: Limits,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// The directory in which the agent works; its writes are a sign of life.
    pub dir: Option<PathBuf>,
    /// How many entries of the directory may be looked at.
    pub entries_max: usize,
}

/// An event on the way; none of them is an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A line of output.
    Line(Line),
    /// The agent may be stuck.
    Suspect { idle: Duration, evidence: String },
    /// A suspected agent moves again or has spoken.
    Cleared,
    /// The agent was stopped by a signal. It was continued if `resumed`; that happens once.
    Stopped { resumed: bool },
}

/// The way in which a watched agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The agent ended by itself or was ended by somebody else.
    Exited(Exit),
    /// The watch ended the agent because its time was over.
    TimedOut(Exit),
    /// The watch ended the agent because it was stuck.
    Stuck { evidence: String, exit: Exit },
}

impl Ended {
    /// Returns how the process ended.
    pub fn exit(&self) -> &Exit {
        match self {
            Ended::Exited(exit) | Ended::TimedOut(exit) | Ended::Stuck { exit, .. } => exit,
        }
    }
}

enum Reason {
    TimedOut,
    Stuck(String),
}

/// Stays with the agent to its end.
pub async fn watch(
    mut child: Child,
    control: &Control,
    watch: &Watch,
    mut notice: impl FnMut(Notice),
) -> Ended {
    let started = Instant::now();
    let mut patience = Patience::new(watch.limits);
    let mut reason: Option<Reason> = None;
    // The due time is fixed in advance: output must not put the next tick off.
    let mut due = started + patience.pause();
    loop {
        tokio::select! {
            heard = child.next() => match heard {
                Heard::Line(line) => notice(Notice::Line(line)),
                Heard::Stopped { resumed } => {
                    notice(Notice::Stopped { resumed });
                    if !resumed && reason.is_none() {
                        let evidence = String::from("stopped by a signal again after it was continued");
                        control.terminate(watch.grace);
                        reason = Some(Reason::Stuck(evidence));
                    }
                }
                Heard::Ended(exit) => return ended(exit, reason),
            },
            () = tokio::time::sleep_until(due), if reason.is_none() => {
                let mut step = patience.tick(started.elapsed(), child.progress().bytes());
                if step == Step::Look {
                    step = patience.judge(look(&child, watch, started).await);
                }
                match step {
                    Step::Wait | Step::Look => {}
                    Step::Suspect { idle, evidence } => notice(Notice::Suspect { idle, evidence }),
                    Step::Cleared => notice(Notice::Cleared),
                    Step::Stuck { evidence } => reason = Some(Reason::Stuck(evidence)),
                    Step::TimedOut => reason = Some(Reason::TimedOut),
                }
                if reason.is_some() {
                    control.terminate(watch.grace);
                }
                due = Instant::now() + patience.pause();
            }
        }
    }
}

fn ended(exit: Exit, reason: Option<Reason>) -> Ended {
    match reason {
        None => Ended::Exited(exit),
        Some(Reason::TimedOut) => Ended::TimedOut(exit),
        Some(Reason::Stuck(evidence)) => Ended::Stuck { evidence, exit },
    }
}

/// Takes a sample on a thread that may block, because reading `/proc` and the directory may take a
/// while.
async fn look(child: &Child, watch: &Watch, started: Instant) -> Sample {
    let root = child.agent().pid;
    let silence = child.progress().last().elapsed() + TOOL_SLACK;
    let tools_since = ticks_before(silence);
    let (dir, entries_max) = (watch.dir.clone(), watch.entries_max);
    let at_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let sample = move || {
        let look = Look { root, dir: dir.as_deref(), entries_max, tools_since };
        Sample::take(look, at_ms)
    };
    tokio::task::spawn_blocking(sample).await.unwrap_or_default()
}

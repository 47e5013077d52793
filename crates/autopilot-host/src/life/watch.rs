//! The watch over one running agent: it passes the agent's output on, and ends the agent when its
//! time is over or it is stuck.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::patience::{PatienceStep, SilencePatience, WatchLimits};
use super::sample::{LifeSample, Look, ticks_before};
use crate::exec::{Child, ChildWord, Control, Exit};
use crate::output::OutputLine;

/// The slack for a tool that begins just before the line that announces it is read.
const TOOL_SLACK: Duration = Duration::from_secs(2);

/// The settings of a watch.
#[derive(Debug, Clone)]
pub struct LifeWatch {
    /// The limits on time and silence.
    pub limits: WatchLimits,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// The directory in which the agent works; its writes are a sign of life.
    pub dir: Option<PathBuf>,
    /// How many entries of the directory may be looked at.
    pub entries_max: usize,
}

/// An event on the way; none of them is an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchNotice {
    /// A line of output.
    Line(OutputLine),
    /// The agent may be stuck.
    Suspect { idle: Duration, evidence: String },
    /// A suspected agent moves again or has spoken.
    Cleared,
    /// The agent was stopped by a signal. It was continued if `resumed`; that happens once.
    Stopped { resumed: bool },
}

/// The way in which a watched agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// The agent ended by itself or was ended by somebody else.
    Exited(Exit),
    /// The watch ended the agent because its time was over.
    TimedOut(Exit),
    /// The watch ended the agent because it was stuck.
    Stuck { evidence: String, exit: Exit },
}

impl WatchEnd {
    /// Returns how the process ended.
    pub fn exit(&self) -> &Exit {
        match self {
            WatchEnd::Exited(exit) | WatchEnd::TimedOut(exit) | WatchEnd::Stuck { exit, .. } => {
                exit
            }
        }
    }
}

enum EndReason {
    TimedOut,
    Stuck(String),
}

/// Stays with the agent to its end.
pub async fn watch(
    mut child: Child,
    control: &Control,
    watch: &LifeWatch,
    mut notice: impl FnMut(WatchNotice),
) -> WatchEnd {
    let started = Instant::now();
    let mut patience = SilencePatience::new(watch.limits);
    let mut reason: Option<EndReason> = None;
    // The due time is fixed in advance: output must not put the next tick off.
    let mut due = started + patience.pause();
    loop {
        tokio::select! {
            heard = child.next() => match heard {
                ChildWord::Line(line) => notice(WatchNotice::Line(line)),
                ChildWord::Stopped { resumed } => {
                    notice(WatchNotice::Stopped { resumed });
                    if !resumed && reason.is_none() {
                        let evidence = String::from("stopped by a signal again after it was continued");
                        control.terminate(watch.grace);
                        reason = Some(EndReason::Stuck(evidence));
                    }
                }
                ChildWord::Ended(exit) => return ended(exit, reason),
            },
            () = tokio::time::sleep_until(due), if reason.is_none() => {
                let mut step = patience.tick(started.elapsed(), child.progress().bytes());
                if step == PatienceStep::Look {
                    step = patience.judge(look(&child, watch, started).await);
                }
                match step {
                    PatienceStep::Wait | PatienceStep::Look => {}
                    PatienceStep::Suspect { idle, evidence } => notice(WatchNotice::Suspect { idle, evidence }),
                    PatienceStep::Cleared => notice(WatchNotice::Cleared),
                    PatienceStep::Stuck { evidence } => reason = Some(EndReason::Stuck(evidence)),
                    PatienceStep::TimedOut => reason = Some(EndReason::TimedOut),
                }
                if reason.is_some() {
                    control.terminate(watch.grace);
                }
                due = Instant::now() + patience.pause();
            }
        }
    }
}

fn ended(exit: Exit, reason: Option<EndReason>) -> WatchEnd {
    match reason {
        None => WatchEnd::Exited(exit),
        Some(EndReason::TimedOut) => WatchEnd::TimedOut(exit),
        Some(EndReason::Stuck(evidence)) => WatchEnd::Stuck { evidence, exit },
    }
}

/// Takes a sample on a thread that may block, because reading `/proc` and the directory may take a
/// while.
async fn look(child: &Child, watch: &LifeWatch, started: Instant) -> LifeSample {
    let root = child.agent().pid;
    let silence = child.progress().last().elapsed() + TOOL_SLACK;
    let tools_since = ticks_before(silence);
    let (dir, entries_max) = (watch.dir.clone(), watch.entries_max);
    let at_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let sample = move || {
        let look = Look { root, dir: dir.as_deref(), entries_max, tools_since };
        LifeSample::take(look, at_ms)
    };
    tokio::task::spawn_blocking(sample).await.unwrap_or_default()
}

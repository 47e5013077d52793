//! The watch over one running agent: passes its words on and ends it when its time or hope is over.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::patience::{Limits, Patience, Step};
use super::sample::{Look, Sample, ticks_before};
use crate::exec::{Child, Control, Exit, Heard};
use crate::output::Line;

/// Slack for a tool that begins just before the line that announces it is read.
const TOOL_SLACK: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct Watch {
    pub limits: Limits,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Where the agent works; its writes are a sign of life.
    pub dir: Option<PathBuf>,
    pub entries_max: usize,
}

/// What happens on the way; nothing of it is an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Line(Line),
    Suspect { idle: Duration, evidence: String },
    Cleared,
    Stopped { resumed: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Exited(Exit),
    TimedOut(Exit),
    Stuck { evidence: String, exit: Exit },
}

impl Ended {
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
    // A time, not a pause: output must not put the next tick off.
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

/// Reading `/proc` and the directory may take a while, so it happens on a thread that may block.
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

//! The controller's side of one supervisor: carries wishes to it and hears its reports.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::process::SupervisorProcess;
use super::wire::{self, LaunchFailure, SupervisorCommand, SupervisorReport, WireLines};
use super::{Exit, adopted};
use crate::fail;
use crate::proc::{self, ProcessIdentity};
use crate::register::{ProcessRegister, RegisterEntry, RegisteredTree};

/// How many notices may wait for the owner; more are dropped, for they only repeat.
pub const NOTICES_MAX: usize = 8;

/// How long a supervisor may take beyond the grace before it counts as stuck and is killed itself.
/// It must be longer than the supervisor's own limit on killing.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);

/// The wish of the handles' holders for a running agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessControl {
    Run,
    Terminate(Duration),
    Kill,
}

impl ProcessControl {
    /// Takes over `other` if it is more urgent; returns whether it did.
    pub fn raise(&mut self, other: ProcessControl) -> bool {
        let urgent = match (*self, other) {
            (_, ProcessControl::Run) | (ProcessControl::Kill, _) => false,
            (ProcessControl::Run | ProcessControl::Terminate(_), ProcessControl::Kill)
            | (ProcessControl::Run, ProcessControl::Terminate(_)) => true,
            (ProcessControl::Terminate(now), ProcessControl::Terminate(new)) => new < now,
        };
        if urgent {
            *self = other;
        }
        urgent
    }
}

/// The controller's connection to one supervisor.
pub struct Attendant {
    stream: UnixStream,
    supervisor: SupervisorProcess,
    supervisor_start: u64,
    wishes: watch::Receiver<ProcessControl>,
    notices: mpsc::Sender<bool>,
    /// A pipe that is closed when nothing of the tree is left; the output ends then.
    gone: OwnedFd,
    register: Option<ProcessRegister>,
    entry: Option<RegisterEntry>,
    lines: WireLines,
    reports: VecDeque<SupervisorReport>,
}

/// The reason why the program of a supervisor does not run.
pub enum StartFault {
    /// The supervisor said why.
    Failed(LaunchFailure),
    /// The supervisor died without a word.
    Died,
    /// The tree could not be registered, so the program was not let run.
    Register(io::Error),
}

impl Attendant {
    pub fn new(
        stream: UnixStream,
        supervisor: SupervisorProcess,
        wishes: watch::Receiver<ProcessControl>,
        notices: mpsc::Sender<bool>,
        gone: OwnedFd,
        register: Option<ProcessRegister>,
    ) -> Attendant {
        let pid = supervisor.id();
        let supervisor_start =
            pid.and_then(proc::read).map_or(u64::MAX, |process| process.id.start_time);
        let (lines, reports) = (WireLines::default(), VecDeque::new());
        Attendant {
            stream,
            supervisor,
            supervisor_start,
            wishes,
            notices,
            gone,
            register,
            entry: None,
            lines,
            reports,
        }
    }

    /// Returns the supervisor's process.
    pub fn supervisor(&self) -> ProcessIdentity {
        let pid = self.supervisor.id().unwrap_or(0);
        ProcessIdentity { pid, start_time: self.supervisor_start }
    }

    /// Registers the tree before its program may run, and waits until it does.
    pub async fn started(&mut self) -> Result<ProcessIdentity, StartFault> {
        loop {
            match self.reports.pop_front() {
                Some(SupervisorReport::Held(tree)) => self.let_run(&tree).await?,
                Some(SupervisorReport::Started { agent }) => return Ok(agent),
                Some(SupervisorReport::Failed(failure)) => {
                    self.supervisor.wait().await;
                    self.strike(0);
                    return Err(StartFault::Failed(failure));
                }
                Some(
                    SupervisorReport::Stopped { .. }
                    | SupervisorReport::Exited { .. }
                    | SupervisorReport::Gone { .. },
                ) => {}
                None if self.hear().await => {}
                None => {
                    self.supervisor.wait().await;
                    let left = adopted::sweep_later(self.supervisor_start).await;
                    self.strike(left);
                    return Err(StartFault::Died);
                }
            }
        }
    }

    async fn let_run(&mut self, tree: &RegisteredTree) -> Result<(), StartFault> {
        fail::point("process.held");
        if let Some(register) = &self.register {
            match register.enter(tree) {
                Ok(entry) => self.entry = Some(entry),
                Err(error) => {
                    // The held process dies with its supervisor, and this one inherits it.
                    self.supervisor.kill().await;
                    adopted::sweep_later(self.supervisor_start).await;
                    return Err(StartFault::Register(error));
                }
            }
        }
        fail::point("process.registered");
        // If this cannot be written the supervisor is gone, which the next read shows.
        let _ = self.stream.write_all(&wire::line(&SupervisorCommand::Go)).await;
        Ok(())
    }

    /// Strikes the tree out of the register, unless processes of it are left.
    fn strike(&mut self, left: u32) {
        if let Some(entry) = self.entry.take_if(|_| left == 0) {
            entry.strike();
        }
    }

    /// Gives up on a supervisor that never answered. Its agent may have stopped it.
    pub async fn abandon(mut self) {
        self.supervisor.kill().await;
        let left = adopted::sweep_later(self.supervisor_start).await;
        self.strike(left);
    }

    /// Stays with the supervisor to its end and returns how the agent ended, without its output.
    pub async fn attend(mut self) -> Exit {
        let mut ending = Exit::lost();
        let mut deadline: Option<Instant> = None;
        let mut wishes_open = true;
        loop {
            while let Some(report) = self.reports.pop_front() {
                self.note(report, &mut ending);
            }
            let wishes = &mut self.wishes;
            let mut buffer = [0; 1024];
            tokio::select! {
                read = self.stream.read(&mut buffer) => match read {
                    Ok(count) if count > 0 => self.reports.extend(self.lines.push(&buffer[..count])),
                    Ok(_) | Err(_) => break,
                },
                changed = wishes.changed(), if wishes_open => match changed {
                    Ok(()) => {
                        let wish = *self.wishes.borrow_and_update();
                        deadline = self.ask(wish).await.or(deadline);
                    }
                    // No handle is left; the owner has said what it wanted.
                    Err(_) => wishes_open = false,
                },
                () = sleep_until(deadline) => {
                    // A stopped supervisor does not hear us, but nothing survives its death.
                    self.supervisor.start_kill();
                    deadline = None;
                }
            }
        }
        self.supervisor.wait().await;
        if ending.supervisor_lost || ending.survivors > 0 {
            ending.survivors = adopted::sweep_later(self.supervisor_start).await;
        }
        self.strike(ending.survivors);
        drop(self.gone);
        ending
    }

    /// Reads more reports; false when the supervisor has closed the connection.
    async fn hear(&mut self) -> bool {
        let mut buffer = [0; 1024];
        match self.stream.read(&mut buffer).await {
            Ok(count) if count > 0 => {
                self.reports.extend(self.lines.push(&buffer[..count]));
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    fn note(&mut self, report: SupervisorReport, ending: &mut Exit) {
        match report {
            SupervisorReport::Held(_)
            | SupervisorReport::Started { .. }
            | SupervisorReport::Failed(_) => {}
            SupervisorReport::Stopped { resumed } => {
                let _ = self.notices.try_send(resumed);
            }
            SupervisorReport::Exited { code, signal } => {
                (ending.code, ending.signal) = (code, signal)
            }
            SupervisorReport::Gone { leaked, survivors } => {
                (ending.leaked, ending.survivors) = (leaked, survivors);
                ending.supervisor_lost = false;
            }
        }
    }

    /// Passes the wish on and returns when patience with the supervisor ends.
    async fn ask(&mut self, wish: ProcessControl) -> Option<Instant> {
        let (command, grace) = match wish {
            ProcessControl::Run => return None,
            ProcessControl::Terminate(grace) => {
                let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                (SupervisorCommand::Terminate { grace_ms }, grace)
            }
            ProcessControl::Kill => (SupervisorCommand::Kill, Duration::ZERO),
        };
        // An agent may have stopped its supervisor. Until we wait for it, its number is its own.
        if let Some(pid) = self.supervisor.id() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
        // If the command cannot be written the supervisor is gone, which the next read shows.
        let _ = self.stream.write_all(&wire::line(&command)).await;
        Instant::now().checked_add(grace.saturating_add(ANSWER_TIME_MAX))
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_only_becomes_more_urgent() {
        let seconds = |n| ProcessControl::Terminate(Duration::from_secs(n));
        let mut wish = ProcessControl::Run;
        assert!(wish.raise(seconds(5)) && !wish.raise(seconds(9)) && wish.raise(seconds(1)));
        assert!(
            wish.raise(ProcessControl::Kill)
                && !wish.raise(seconds(1))
                && !wish.raise(ProcessControl::Run)
        );
        assert_eq!(wish, ProcessControl::Kill);
    }
}

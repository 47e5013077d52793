//! Running agents and commands: each has a supervisor, and no process is left when it is over.
//!
//! The supervisor is our own executable (`autopilot __exec`, [`main`]), copied from a process that
//! has started already ([`process`]). It ends its whole
//! process tree when asked, when its agent ends, and when this process dies in any way. If the
//! supervisor itself is killed, this process inherits the rest of the tree and ends it
//! ([`adopted`]).

pub mod adopted;
mod attend;
mod child;
pub(crate) mod limit;
mod process;
mod supervisor;
mod tree;
mod wire;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};

use crate::output::{self, Progress};
use crate::redact::Redactor;
use crate::register::{self, ProcessRegister};
use crate::sandbox;
use attend::{Attendant, ProcessControl, StartFault};
pub use child::{Child, ChildWord, Exit};
pub use supervisor::main;
pub(crate) use supervisor::{probe_layer, probe_namespaces};
pub(crate) use tree::kill_round;
pub(crate) use wire::OsText;
pub use wire::{LaunchFailure, LaunchStage, ProcessLimits};

/// The argument by which our executable knows that it is a supervisor.
pub const ARGUMENT: &str = "__exec";

/// How long a supervisor may take to report that the agent has started.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// The capacity of an output pipe; less would make a chatty agent wait for us.
const PIPE_BYTES: i32 = 256 * 1024;

/// A program to run, with its limits. Nothing of our own environment is passed on.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, looked for on the PATH of `env` when it has no slash.
    pub program: OsString,
    /// The arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The whole environment of the program.
    pub env: BTreeMap<OsString, OsString>,
    /// The directory in which the program starts.
    pub cwd: PathBuf,
    /// The program's input.
    pub stdin: ProcessStdin,
    /// The kernel's limits on the program and everything it starts.
    pub limits: ProcessLimits,
    /// The sandbox in which the program runs.
    pub sandbox: sandbox::SandboxPlan,
    /// The time between TERM and KILL when the supervisor itself is asked to end.
    pub grace: Duration,
    /// How long processes that outlive the agent may take to finish by themselves.
    pub drain: Duration,
    /// Where the output is logged and how much of it is kept.
    pub output: output::OutputSettings,
    /// The redaction of the output that is logged or kept.
    pub redactor: Arc<Redactor>,
    /// The program that supervises this one.
    pub supervisor: Supervisor,
    /// Where the process tree is entered before the program may run.
    pub register: Option<ProcessRegister>,
}

impl Launch {
    /// Makes a launch without arguments, environment, input, logs, redaction or sandbox.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Launch {
        Launch {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: cwd.into(),
            stdin: ProcessStdin::Null,
            limits: ProcessLimits { oom_score_adj: Some(500), ..ProcessLimits::default() },
            sandbox: sandbox::SandboxPlan::Off,
            grace: Duration::from_secs(5),
            drain: Duration::from_millis(500),
            output: output::OutputSettings::default(),
            redactor: Arc::new(Redactor::none()),
            supervisor: Supervisor::default(),
            register: None,
        }
    }
}

/// The input of a program.
#[derive(Debug, Clone, Default)]
pub enum ProcessStdin {
    /// No input: the program reads from `/dev/null`.
    #[default]
    Null,
    /// These bytes, after which the pipe is closed, so that no agent waits for more.
    Bytes(Vec<u8>),
    /// A pipe that stays open for [`Child::take_input`].
    Open,
}

/// The command that starts a supervisor: our own executable, unless a test binary stands in for it.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// The executable.
    pub program: PathBuf,
    /// The arguments by which it knows that it is a supervisor.
    pub args: Vec<OsString>,
}

impl Default for Supervisor {
    fn default() -> Supervisor {
        // This path names the same executable even after an upgrade has replaced the file.
        Supervisor { program: "/proc/self/exe".into(), args: vec![ARGUMENT.into()] }
    }
}

/// The reason why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A pipe, a socket or a thread for the program could not be had.
    #[error("cannot {what} for `{}`", program.display())]
    Prepare { what: &'static str, program: OsString, source: io::Error },
    /// The supervisor's executable could not be started.
    #[error("cannot start the supervisor `{supervisor}`")]
    Supervisor { supervisor: PathBuf, source: io::Error },
    /// The supervisor could not start the program.
    #[error("cannot start `{}`: {}", program.display(), failure.message)]
    Start { program: OsString, failure: LaunchFailure },
    /// The process tree could not be registered, so the program was not let run.
    #[error("cannot register the processes of `{}` in `{register}`", program.display())]
    Register { program: OsString, register: PathBuf, source: io::Error },
    /// The supervisor ended without a report.
    #[error("the supervisor of `{}` exited before starting it", program.display())]
    Died { program: OsString },
    /// The supervisor sent no report in time and was killed.
    #[error("the supervisor of `{}` did not answer within {} s", program.display(), START_TIME_MAX.as_secs())]
    Deaf { program: OsString },
}

/// The handle by which anybody can ask for the end of a running program, as often as wanted.
#[derive(Debug, Clone)]
pub struct Control {
    wish: watch::Sender<ProcessControl>,
}

impl Control {
    /// Sends TERM now and KILL when `grace` is over. A later call can only shorten the grace.
    pub fn terminate(&self, grace: Duration) {
        self.wish.send_if_modified(|wish| wish.raise(ProcessControl::Terminate(grace)));
    }

    /// Kills the whole process tree at once.
    pub fn kill(&self) {
        self.wish.send_if_modified(|wish| wish.raise(ProcessControl::Kill));
    }
}

/// Starts the program and waits until it runs, or returns the reason why it does not.
pub async fn spawn(launch: Launch) -> Result<(Control, Child), SpawnError> {
    adopted::become_subreaper();
    let prepare = |what| {
        let program = launch.program.clone();
        move |source| SpawnError::Prepare { what, program, source }
    };
    let (stdout, agent_stdout) = output_pipe().map_err(prepare("open the output pipe"))?;
    let (stderr, agent_stderr) = output_pipe().map_err(prepare("open the output pipe"))?;
    let (gone, gone_writer) = io::pipe().map_err(prepare("open the output pipe"))?;
    let (agent_stdin, input) = stdin_pipe(&launch.stdin).map_err(prepare("open the input pipe"))?;
    let order = order(&launch).map_err(prepare("write the launch order"))?;
    let (ours, supervisor) = process::start(&launch.supervisor).map_err(|source| {
        SpawnError::Supervisor { supervisor: launch.supervisor.program.clone(), source }
    })?;
    process::hand_over_launch(&ours, [&order, &agent_stdin, &agent_stdout, &agent_stderr])
        .map_err(prepare("hand over the launch order"))?;
    drop((order, agent_stdin, agent_stdout, agent_stderr));

    ours.set_nonblocking(true).map_err(prepare("open the control socket"))?;
    let stream =
        tokio::net::UnixStream::from_std(ours).map_err(prepare("open the control socket"))?;
    let (wish, wishes) = watch::channel(ProcessControl::Run);
    let (notices, heard) = mpsc::channel(attend::NOTICES_MAX);
    let register = launch.register.clone();
    let mut attendant =
        Attendant::new(stream, supervisor, wishes, notices, gone_writer.into(), register);
    let agent = match tokio::time::timeout(START_TIME_MAX, attendant.started()).await {
        Ok(answer) => answer.map_err(|fault| not_started(&launch, fault))?,
        Err(_) => {
            attendant.abandon().await;
            return Err(SpawnError::Deaf { program: launch.program });
        }
    };

    let progress = Arc::new(Progress::default());
    let (lines_sender, lines) = mpsc::channel(output::BATCHES_MAX);
    let (captured_sender, captured) = oneshot::channel();
    let pipes = output::Pipes { stdout, stderr, gone: gone.into() };
    let pump = {
        let (settings, redactor, progress) =
            (launch.output.clone(), launch.redactor.clone(), progress.clone());
        move || {
            let kept = output::pump(pipes, &settings, &redactor, &progress, lines_sender);
            // If the owner has gone, nobody waits for the captured output.
            let _ = captured_sender.send(kept);
        }
    };
    std::thread::Builder::new()
        .name("output".into())
        .spawn(pump)
        .map_err(prepare("start the output thread"))?;
    let control = Control { wish };
    let input = match launch.stdin {
        ProcessStdin::Null => None,
        ProcessStdin::Bytes(bytes) => {
            feed(input, bytes);
            None
        }
        ProcessStdin::Open => input,
    };
    let supervisor = attendant.supervisor();
    let ending = tokio::spawn(attendant.attend());
    let parts =
        child::ChildParts { agent, supervisor, lines, heard, captured, ending, progress, input };
    Ok((control.clone(), Child::new(parts, control)))
}

fn not_started(launch: &Launch, fault: StartFault) -> SpawnError {
    let program = launch.program.clone();
    match fault {
        StartFault::Failed(failure) => SpawnError::Start { program, failure },
        StartFault::Died => SpawnError::Died { program },
        StartFault::Register(source) => {
            let register = launch.register.as_ref().map(|register| register.dir().to_owned());
            SpawnError::Register { program, register: register.unwrap_or_default(), source }
        }
    }
}

/// Writes the prompt and closes the pipe, at the latest when every reader is gone.
fn feed(input: Option<pipe::Sender>, bytes: Vec<u8>) {
    if let Some(mut input) = input {
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            // An agent may end, or close its stdin, without having read the whole prompt.
            let _ = input.write_all(&bytes).await;
        });
    }
}

/// Returns the executable that `program` names, searched as the agent's own PATH and directory say.
pub fn find(program: &OsStr, path: &OsStr, cwd: &Path) -> Option<PathBuf> {
    let runs = |candidate: &PathBuf| {
        candidate.is_file()
            && nix::unistd::access(candidate, nix::unistd::AccessFlags::X_OK).is_ok()
    };
    if Path::new(program).components().count() > 1 || Path::new(program).is_absolute() {
        return Some(cwd.join(program)).filter(runs);
    }
    std::env::split_paths(path).map(|dir| cwd.join(dir).join(program)).find(runs)
}

/// Writes the launch order into a memory file.
fn order(launch: &Launch) -> io::Result<OwnedFd> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let order = wire::LaunchOrder {
        controller_pid: nix::unistd::getpid().as_raw(),
        program: (&launch.program).into(),
        args: launch.args.iter().map(Into::into).collect(),
        env: launch.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: launch.cwd.clone(),
        limits: launch.limits.clone(),
        sandbox: launch.sandbox.clone(),
        grace_ms: millis(launch.grace),
        drain_ms: millis(launch.drain),
        mark: register::new_mark(),
    };
    let memory = memfd_create(c"launch", MFdFlags::MFD_CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&serde_json::to_vec(&order)?)?;
    Ok(file.into())
}

/// Makes a pipe. Our end of it does not block, the agent's end does.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    let reader = nonblocking(reader.into())?;
    // The kernel may refuse a larger pipe to a user with many; the ordinary size works too.
    let _ = nix::fcntl::fcntl(&reader, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    Ok((reader, writer.into()))
}

fn stdin_pipe(stdin: &ProcessStdin) -> io::Result<(OwnedFd, Option<pipe::Sender>)> {
    match stdin {
        ProcessStdin::Null => Ok((std::fs::File::open("/dev/null")?.into(), None)),
        ProcessStdin::Bytes(_) | ProcessStdin::Open => {
            let (reader, writer) = io::pipe()?;
            let writer = nonblocking(writer.into())?;
            Ok((reader.into(), Some(pipe::Sender::from_owned_fd(writer)?)))
        }
    }
}

pub(crate) fn nonblocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(fd)
}

#[cfg(test)]
pub(crate) mod tests;

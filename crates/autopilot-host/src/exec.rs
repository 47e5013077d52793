//! Running agents and commands: one supervisor each, and nobody left when it is over.
//!
//! The supervisor is a copy of our own executable (`autopilot __exec`, [`main`]). It ends its whole
//! tree when asked, when its agent ends, and when this process dies in any way. If the supervisor
//! itself is killed, this process inherits what is left and ends it ([`adopted`]).

pub mod adopted;
mod attend;
mod child;
mod limit;
mod supervisor;
mod tree;
pub mod wire;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};

use crate::output::{self, Progress};
use crate::redact::Redactor;
use crate::sandbox;
use attend::{Attendant, Wish};
pub use child::{Child, Exit, Heard};
pub use supervisor::main;
pub(crate) use tree::kill_round;
pub use wire::{Limits, Stage};

/// The argument by which our executable knows that it is a supervisor.
pub const ARGUMENT: &str = "__exec";

/// How long a supervisor may take to report that the agent has started.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// Room of an output pipe; less would make a chatty agent wait for us.
const PIPE_BYTES: i32 = 256 * 1024;

/// What to run and under which limits. Nothing of our own environment is passed on.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Looked for on the PATH of `env` when it has no slash.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
    pub cwd: PathBuf,
    pub stdin: Stdin,
    pub limits: Limits,
    pub sandbox: sandbox::Plan,
    /// Time between TERM and KILL when the supervisor itself is asked to end.
    pub grace: Duration,
    /// How long processes that outlive the agent may take to finish by themselves.
    pub drain: Duration,
    pub output: output::Settings,
    pub redactor: Arc<Redactor>,
    pub supervisor: Supervisor,
}

impl Launch {
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Launch {
        Launch {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: cwd.into(),
            stdin: Stdin::Null,
            limits: Limits { oom_score_adj: Some(500), ..Limits::default() },
            sandbox: sandbox::Plan::Off,
            grace: Duration::from_secs(5),
            drain: Duration::from_millis(500),
            output: output::Settings::default(),
            redactor: Arc::new(Redactor::none()),
            supervisor: Supervisor::default(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub enum Stdin {
    #[default]
    Null,
    /// Written, then closed, so that no agent waits for more.
    Bytes(Vec<u8>),
    /// Kept open for [`Child::take_input`].
    Open,
}

/// How to start a supervisor: our own executable, unless a test binary stands in for it.
#[derive(Debug, Clone)]
pub struct Supervisor {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl Default for Supervisor {
    fn default() -> Supervisor {
        // By this name it is the same executable even after an upgrade has replaced the file.
        Supervisor { program: "/proc/self/exe".into(), args: vec![ARGUMENT.into()] }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot {what} for `{}`", program.display())]
    Prepare { what: &'static str, program: OsString, source: io::Error },
    #[error("cannot start the supervisor `{supervisor}`")]
    Supervisor { supervisor: PathBuf, source: io::Error },
    #[error("cannot start `{}`: {message}", program.display())]
    Start { program: OsString, stage: Stage, message: String, errno: Option<i32> },
    #[error("the supervisor of `{}` ended before it had started it", program.display())]
    Died { program: OsString },
    #[error("the supervisor of `{}` did not answer within {} s", program.display(), START_TIME_MAX.as_secs())]
    Deaf { program: OsString },
}

impl SpawnError {
    /// Whether the same launch may succeed later: no process, descriptor or memory was free.
    pub fn is_temporary(&self) -> bool {
        let errno = match self {
            SpawnError::Prepare { source, .. } | SpawnError::Supervisor { source, .. } => {
                source.raw_os_error()
            }
            SpawnError::Start { errno, .. } => *errno,
            SpawnError::Died { .. } | SpawnError::Deaf { .. } => return true,
        };
        const LATER: [i32; 4] = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
        errno.is_some_and(|errno| LATER.contains(&errno))
    }
}

/// The handle: asks for the end, from anywhere and as often as wanted.
#[derive(Debug, Clone)]
pub struct Control {
    wish: watch::Sender<Wish>,
}

impl Control {
    /// TERM now, KILL when `grace` is over. A later call can only shorten the grace.
    pub fn terminate(&self, grace: Duration) {
        self.wish.send_if_modified(|wish| wish.raise(Wish::Terminate(grace)));
    }

    pub fn kill(&self) {
        self.wish.send_if_modified(|wish| wish.raise(Wish::Kill));
    }
}

/// Starts the launch and waits until the agent runs, or gives the reason why it does not.
pub async fn spawn(launch: Launch) -> Result<(Control, Child), SpawnError> {
    adopted::become_subreaper();
    let prepare = |what| {
        let program = launch.program.clone();
        move |source| SpawnError::Prepare { what, program, source }
    };
    let (ours, theirs) = UnixStream::pair().map_err(prepare("open the control socket"))?;
    let (stdout, agent_stdout) = output_pipe().map_err(prepare("open the output pipe"))?;
    let (stderr, agent_stderr) = output_pipe().map_err(prepare("open the output pipe"))?;
    let (gone, gone_writer) = io::pipe().map_err(prepare("open the output pipe"))?;
    let (agent_stdin, input) = stdin_pipe(&launch.stdin).map_err(prepare("open the input pipe"))?;
    let order = order(&launch).map_err(prepare("write the order"))?;
    hand_over(&ours, [&order, &agent_stdin, &agent_stdout, &agent_stderr])
        .map_err(prepare("hand over the order"))?;
    drop((order, agent_stdin, agent_stdout, agent_stderr));

    let supervisor = start_supervisor(&launch.supervisor, theirs).map_err(|source| {
        SpawnError::Supervisor { supervisor: launch.supervisor.program.clone(), source }
    })?;
    ours.set_nonblocking(true).map_err(prepare("open the control socket"))?;
    let stream =
        tokio::net::UnixStream::from_std(ours).map_err(prepare("open the control socket"))?;
    let (wish, wishes) = watch::channel(Wish::Run);
    let (notices, heard) = mpsc::channel(attend::NOTICES_MAX);
    let mut attendant = Attendant::new(stream, supervisor, wishes, notices, gone_writer.into());
    let agent = match tokio::time::timeout(START_TIME_MAX, attendant.started()).await {
        Ok(answer) => answer.map_err(|reason| reason.into_error(launch.program.clone()))?,
        Err(_) => {
            attendant.abandon().await;
            return Err(SpawnError::Deaf { program: launch.program });
        }
    };

    let progress = Arc::new(Progress::new());
    let (lines_sender, lines) = mpsc::channel(output::BATCHES_MAX);
    let (captured_sender, captured) = oneshot::channel();
    let pipes = output::Pipes { stdout, stderr, gone: gone.into() };
    let pump = {
        let (settings, redactor, progress) =
            (launch.output.clone(), launch.redactor.clone(), progress.clone());
        move || {
            let kept = output::pump(pipes, &settings, &redactor, &progress, lines_sender);
            // Nobody waits for it when the owner has gone.
            let _ = captured_sender.send(kept);
        }
    };
    std::thread::Builder::new()
        .name("output".into())
        .spawn(pump)
        .map_err(prepare("start the output thread"))?;
    let control = Control { wish };
    let input = match launch.stdin {
        Stdin::Null => None,
        Stdin::Bytes(bytes) => {
            feed(input, bytes);
            None
        }
        Stdin::Open => input,
    };
    let ending = tokio::spawn(attendant.attend());
    let parts = child::Parts { agent, lines, heard, captured, ending, progress, input };
    Ok((control.clone(), Child::new(parts, control)))
}

/// Writes the prompt and closes the pipe. It ends at the latest when every reader is gone.
fn feed(input: Option<pipe::Sender>, bytes: Vec<u8>) {
    if let Some(mut input) = input {
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            // An agent may end, or close its stdin, without having read it all.
            let _ = input.write_all(&bytes).await;
        });
    }
}

/// The executable that `program` names, searched as the agent's own PATH and directory say.
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

fn start_supervisor(
    supervisor: &Supervisor,
    control: UnixStream,
) -> io::Result<tokio::process::Child> {
    // No `pre_exec` here: it would cost a full fork of this process instead of a vfork.
    tokio::process::Command::new(&supervisor.program)
        .args(&supervisor.args)
        .arg0("autopilot")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(control)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

fn order(launch: &Launch) -> io::Result<OwnedFd> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let order = wire::Order {
        controller_pid: nix::unistd::getpid().as_raw(),
        program: (&launch.program).into(),
        args: launch.args.iter().map(Into::into).collect(),
        env: launch.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: launch.cwd.clone(),
        limits: launch.limits.clone(),
        sandbox: launch.sandbox.clone(),
        grace_ms: millis(launch.grace),
        drain_ms: millis(launch.drain),
    };
    let memory = memfd_create(c"launch", MFdFlags::MFD_CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&serde_json::to_vec(&order)?)?;
    Ok(file.into())
}

fn hand_over(control: &UnixStream, fds: [&OwnedFd; 4]) -> io::Result<()> {
    let raw = fds.map(AsRawFd::as_raw_fd);
    let rights = [ControlMessage::ScmRights(&raw)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<UnixAddr>(control.as_raw_fd(), &[IoSlice::new(b"L")], &rights, flags, None)?;
    Ok(())
}

/// Our end, which does not block, and the agent's, which does.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    let reader = nonblocking(reader.into())?;
    // The kernel may refuse a larger pipe to a user with many; the ordinary size works too.
    let _ = nix::fcntl::fcntl(&reader, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    Ok((reader, writer.into()))
}

fn stdin_pipe(stdin: &Stdin) -> io::Result<(OwnedFd, Option<pipe::Sender>)> {
    match stdin {
        Stdin::Null => Ok((std::fs::File::open("/dev/null")?.into(), None)),
        Stdin::Bytes(_) | Stdin::Open => {
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

//! The one builder of git command lines: scrubbed environment, no hooks, no prompts, a deadline.
//!
//! Invariant: no other file of this crate spawns git.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::error::{FailureOutlook, GitError};
use super::object::Oid;
use super::pump::{Drained, StderrTail, drain, end_group};
use super::running;
use crate::patience::{self, CutShort};

/// The deadline of local commands; those that move many objects set their own.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The deadline of commands that copy history between object stores.
pub(crate) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(1800);
const STDOUT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The reason why a command of git, gh or ssh failed. Each names the operation and the program.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no `git` in an absolute directory of PATH.
    #[error("git is not on PATH; install git")]
    NoGit,
    /// The process could not be started or waited for.
    #[error("{called} could not be run")]
    Spawn { called: String, source: io::Error },
    /// The command reported a failure.
    #[error("{called} failed with {status}: {stderr}")]
    Failed { called: String, status: CommandStatus, stderr: String },
    /// The command missed its deadline and was killed.
    #[error("{called} did not finish within {} s: {stderr}", after.as_secs())]
    TimedOut { called: String, after: Duration, stderr: String },
    /// The caller did not want the result any more, and the command was killed.
    #[error("{called} was cancelled")]
    Unwanted { called: String },
    /// The command printed more than is kept in memory.
    #[error("{called} printed more than {bytes_max} bytes")]
    TooLong { called: String, bytes_max: usize },
}

impl CommandError {
    /// Returns what the failure means for trying again.
    pub(crate) fn outlook(&self) -> FailureOutlook {
        match self {
            CommandError::TimedOut { .. } => FailureOutlook::CutShort(CutShort::OutOfTime),
            CommandError::Unwanted { .. } => FailureOutlook::CutShort(CutShort::Unwanted),
            CommandError::NoGit => FailureOutlook::Stays,
            CommandError::Spawn { .. }
            | CommandError::Failed { .. }
            | CommandError::TooLong { .. } => FailureOutlook::MayPass,
        }
    }

    /// Returns whether the command was ended from outside, so that trying again is no use.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self.outlook(), FailureOutlook::CutShort(_))
    }
}

/// The unsuccessful end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// The command ended by itself.
    Code(i32),
    /// A signal ended the command.
    Signal(i32),
}

impl std::fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandStatus::Code(code) => write!(f, "exit code {code}"),
            CommandStatus::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The result of a finished command.
#[derive(Debug)]
pub struct Output {
    called: String,
    /// The exit status, which may be a failure.
    pub status: ExitStatus,
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// The last bytes of stderr, lossily decoded and trimmed.
    pub stderr: String,
}

impl Output {
    /// Returns the exit code; `None` when a signal ended the command.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails unless the exit code is one of these.
    pub(crate) fn expect_code(self, codes: &[i32]) -> Result<Output, CommandError> {
        let status = match (self.code(), self.status.signal()) {
            (Some(code), _) if codes.contains(&code) => return Ok(self),
            (Some(code), _) => CommandStatus::Code(code),
            (None, signal) => CommandStatus::Signal(signal.unwrap_or_default()),
        };
        Err(CommandError::Failed { called: self.called, status, stderr: self.stderr })
    }
}

/// A git command line in the making. `operation` completes "cannot …" in error messages.
#[derive(Debug)]
pub struct GitCommand {
    operation: String,
    program: Option<PathBuf>,
    config: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    inherit: Inherit,
    cwd: Option<PathBuf>,
    stdin: Option<Vec<u8>>,
    stdin_file: Option<File>,
    timeout: Duration,
}

/// The part of our environment that a command gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inherit {
    /// None of the user's environment but PATH.
    Nothing,
    /// The user's environment and configuration, without variables that point git at another
    /// repository.
    User,
}

impl GitCommand {
    /// Makes a command on `git_dir` alone: its own config is the only one read.
    pub fn isolated(operation: impl Into<String>, git_dir: &Path) -> Self {
        Self::bare_minimum(operation).env("GIT_DIR", git_dir)
    }

    /// Makes a command without a repository (`--version`, `init`).
    pub fn bare_minimum(operation: impl Into<String>) -> Self {
        let mut git = Self::blank(operation.into(), Inherit::Nothing);
        for (key, value) in [
            ("core.hooksPath", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("core.excludesFile", "/dev/null"),
            ("core.attributesFile", "/dev/null"),
            ("core.alternateRefsCommand", "true"),
            ("core.logAllRefUpdates", "false"),
            ("core.filesRefLockTimeout", "5000"),
            ("core.packedRefsTimeout", "5000"),
            ("advice.addEmbeddedRepo", "false"),
            ("commit.gpgSign", "false"),
            ("protocol.allow", "never"),
        ] {
            git = git.config(key, value);
        }
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("HOME", "/nonexistent")
    }

    /// Makes a command in the user's repository with the user's own configuration and credentials.
    pub fn as_user(operation: impl Into<String>, dir: &Path) -> Self {
        Self::blank(operation.into(), Inherit::User)
            .config("core.hooksPath", "/dev/null")
            .config("core.fsmonitor", "false")
            .cwd(dir)
    }

    /// Makes a command of another program of the user's (gh), under the same rules of deadline and
    /// output.
    pub(crate) fn program_as_user(operation: &str, program: &Path, dir: &Path) -> Self {
        let mut git = Self::as_user(operation, dir);
        git.config.clear();
        git.program = Some(program.to_owned());
        git
    }

    fn blank(operation: String, inherit: Inherit) -> Self {
        Self {
            operation,
            program: None,
            config: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            inherit,
            cwd: None,
            stdin: None,
            stdin_file: None,
            timeout: TIMEOUT,
        }
        .config("gc.auto", "0")
        .config("maintenance.auto", "false")
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_PAGER", "cat")
        .env("GIT_EDITOR", "false")
    }

    /// Sets the working tree and runs the command in it.
    pub fn work_tree(self, dir: &Path) -> Self {
        self.env("GIT_WORK_TREE", dir).cwd(dir)
    }

    /// Sets the index file.
    pub fn index(self, file: &Path) -> Self {
        self.env("GIT_INDEX_FILE", file)
    }

    /// Makes the objects of these directories readable, beside the repository's own.
    pub fn also_objects(self, dirs: &[&Path]) -> Self {
        let mut list = OsString::new();
        for dir in dirs {
            if !list.is_empty() {
                list.push(":");
            }
            list.push(quoted_for_list(dir));
        }
        if list.is_empty() { self } else { self.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", list) }
    }

    /// Sets a configuration value for this command only.
    pub fn config(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        let mut pair = OsString::from(key);
        pair.push("=");
        pair.push(value);
        self.config.push(pair);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Sets the directory in which the command runs.
    pub fn cwd(mut self, dir: &Path) -> Self {
        self.cwd = Some(dir.to_owned());
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    pub(crate) fn stdin_file(mut self, file: File) -> Self {
        self.stdin_file = Some(file);
        self
    }

    /// Sets the deadline.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs to the end; any exit status is an answer.
    pub fn run(self) -> Result<Output, CommandError> {
        self.run_unless(&|| false)
    }

    /// Runs to the end or until `unwanted`, which is called many times a second, returns true: then
    /// git and its children are killed.
    pub fn run_unless(self, unwanted: &dyn Fn() -> bool) -> Result<Output, CommandError> {
        let mut stdout = Vec::new();
        let mut too_long = false;
        let mut take = |bytes: &[u8]| {
            if stdout.len() + bytes.len() > STDOUT_BYTES_MAX {
                too_long = true;
                return ControlFlow::Break(());
            }
            stdout.extend_from_slice(bytes);
            ControlFlow::Continue(())
        };
        let output = self.pump(Stdio::piped(), unwanted, &mut take)?;
        if too_long {
            let (called, bytes_max) = (output.called, STDOUT_BYTES_MAX);
            return Err(CommandError::TooLong { called, bytes_max });
        }
        Ok(Output { stdout, ..output })
    }

    /// Runs to the end and fails unless the exit code is 0. Returns stdout.
    pub fn ok(self) -> Result<Vec<u8>, CommandError> {
        Ok(self.run()?.expect_code(&[0])?.stdout)
    }

    /// Returns the first line of the answer, decoded lossily.
    pub fn line(self) -> Result<String, CommandError> {
        let out = self.ok()?;
        let line = out.split(|b| *b == b'\n').next().unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// Returns the object name on the first line of the answer.
    pub fn oid(self) -> Result<Oid, GitError> {
        Oid::parse(&self.line()?)
    }

    /// Hands stdout to `sink` as it comes; `Break` ends git early and is not an error. Returns stderr.
    pub fn stream(
        self,
        sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<String, CommandError> {
        let mut cut = false;
        let output = self.pump(Stdio::piped(), &|| false, &mut |bytes| {
            let flow = sink(bytes);
            cut |= flow.is_break();
            flow
        })?;
        if cut { Ok(output.stderr) } else { Ok(output.expect_code(&[0])?.stderr) }
    }

    /// Sends stdout straight into a file, without a copy in memory.
    pub(crate) fn write_to(self, file: File) -> Result<(), CommandError> {
        let nothing = &mut |_: &[u8]| ControlFlow::Continue(());
        self.pump(Stdio::from(file), &|| false, nothing)?.expect_code(&[0]).map(drop)
    }

    /// Begins a message about this command: the operation, the program and its first argument.
    fn called(&self) -> String {
        let program = self.program.as_deref().and_then(Path::file_name).unwrap_or("git".as_ref());
        let words = [program].into_iter().chain(self.args.first().map(OsString::as_os_str));
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        format!("cannot {}: `{}`", self.operation, words.join(" "))
    }

    /// Runs to the end and hands stdout to `sink`; the output that is returned has none of it.
    fn pump(
        mut self,
        stdout: Stdio,
        unwanted: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Output, CommandError> {
        let called = self.called();
        let began = Instant::now();
        match patience::cut_short() {
            None => {}
            Some(CutShort::Unwanted) => return Err(CommandError::Unwanted { called }),
            Some(CutShort::OutOfTime) => {
                let stderr = "the time for it was over before it began".to_owned();
                return Err(CommandError::TimedOut { called, after: Duration::ZERO, stderr });
            }
        }
        let spawn_error = |source| CommandError::Spawn { called: called.clone(), source };
        let stdin = self.take_stdin().map_err(spawn_error)?;
        let mut command = self.command()?;
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let (mut child, _listed) = running::spawn(&mut command).map_err(spawn_error)?;
        let deadline = began + self.timeout;
        let mut tail = StderrTail::default();
        let ended = drain(&mut child, deadline, unwanted, sink, &mut tail);
        if !matches!(ended, Ok(Drained::Ended)) {
            end_group(&mut child);
        }
        let status = child.wait().map_err(spawn_error)?;
        let stderr = tail.text();
        match ended.map_err(spawn_error)? {
            Drained::Ended | Drained::Cut => {
                Ok(Output { called, status, stdout: Vec::new(), stderr })
            }
            Drained::Late => Err(CommandError::TimedOut { called, after: began.elapsed(), stderr }),
            Drained::Unwanted => Err(CommandError::Unwanted { called }),
        }
    }

    /// Opens the input as a file in memory: a pipe would need a second thread to never block, and a
    /// temporary directory may be missing.
    fn take_stdin(&mut self) -> io::Result<Stdio> {
        if let Some(file) = self.stdin_file.take() {
            return Ok(Stdio::from(file));
        }
        let Some(bytes) = self.stdin.take() else { return Ok(Stdio::null()) };
        let mut file = File::from(memfd_create(c"git-stdin", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(&bytes)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Stdio::from(file))
    }

    fn command(&self) -> Result<Command, CommandError> {
        let mut command = match &self.program {
            Some(program) => Command::new(program),
            None => Command::new(git_program()?),
        };
        command.process_group(0);
        match self.inherit {
            Inherit::Nothing => {
                command.env_clear();
                command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
                command.env("TMPDIR", std::env::temp_dir());
            }
            Inherit::User => {
                for name in POINTS_ELSEWHERE {
                    command.env_remove(name);
                }
            }
        }
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        if let Some(dir) = &self.cwd {
            command.current_dir(dir);
        }
        for pair in &self.config {
            command.arg("-c").arg(pair);
        }
        command.args(&self.args);
        Ok(command)
    }
}

/// Variables that would make a user's command act on another repository or index.
const POINTS_ELSEWHERE: [&str; 15] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG",
];

/// Returns the path of git, resolved once against absolute PATH entries, so that a `.` in PATH
/// can't find a planted `git`.
fn git_program() -> Result<&'static Path, CommandError> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(|| find_program("git")).as_deref().ok_or(CommandError::NoGit)
}

/// Finds a program in the absolute directories of PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    find_program_on(&std::env::var_os("PATH")?, name)
}

/// Finds a program in the absolute directories of this PATH, so that a `.` in it can't find a
/// planted program.
pub(crate) fn find_program_on(path: &OsStr, name: &str) -> Option<PathBuf> {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Quotes a path for a list of directories. Git reads an entry that starts with a double quote as a
/// C-quoted string; so any path can be given.
fn quoted_for_list(dir: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = dir.as_os_str().as_bytes();
    if !bytes.iter().any(|b| matches!(b, b':' | b'"' | b'\\' | b'\n')) {
        return dir.as_os_str().to_owned();
    }
    let mut out = vec![b'"'];
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(*b"\\n"),
            other => out.push(other),
        }
    }
    out.push(b'"');
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests;

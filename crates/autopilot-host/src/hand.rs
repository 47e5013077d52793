//! The actions of a scripted agent: what it does to its own worktree and to itself.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file, making the directories above it.
pub fn write(path: &Path, content: &str) -> io::Result<()> {
    make_parent(path)?;
    std::fs::write(path, content)
}

/// Appends to a file, making it and the directories above it.
pub fn append(path: &Path, content: &str) -> io::Result<()> {
    make_parent(path)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(content.as_bytes())
}

/// Copies a file, making the directories above it.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    make_parent(to)?;
    std::fs::copy(from, to).map(|_bytes| ())
}

/// Removes a file; one that does not exist is fine.
pub fn delete(path: &Path) -> io::Result<()> {
    crate::dir::remove_file(path).map(|_was_there| ())
}

/// Runs a line in the shell, with our own output as its output. Returns its exit code, if it has
/// one.
pub fn shell(line: &str) -> io::Result<Option<i32>> {
    std::process::Command::new("/bin/sh").arg("-c").arg(line).status().map(|status| status.code())
}

/// Sends a signal to this process.
pub fn signal_self(number: i32) -> io::Result<()> {
    let signal = nix::sys::signal::Signal::try_from(number).map_err(io::Error::from)?;
    nix::sys::signal::raise(signal).map_err(io::Error::from)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// A plain child process that shares our terminal: another autopilot, started by the demo.
#[derive(Debug)]
pub struct Started {
    child: std::process::Child,
}

/// Starts a program with extra environment variables and no input.
pub fn start(
    program: &Path,
    args: &[&str],
    dir: &Path,
    env: &[(&str, &str)],
) -> io::Result<Started> {
    let child = std::process::Command::new(program)
        .args(args)
        .current_dir(dir)
        .envs(env.iter().copied())
        .stdin(std::process::Stdio::null())
        .spawn()?;
    Ok(Started { child })
}

impl Started {
    /// Returns the process number of the child.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the child by SIGKILL, so that it gets no chance to tidy up.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_status| ())
    }

    /// Returns whether the child has ended, without waiting.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        self.child.try_wait().map(|status| status.is_some())
    }

    /// Waits for the child. Returns its exit code, if it has one.
    pub fn wait(&mut self) -> io::Result<Option<i32>> {
        self.child.wait().map(|status| status.code())
    }
}

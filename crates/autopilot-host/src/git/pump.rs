//! Reading a child's two pipes at once, with a deadline and bounded memory.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::patience::{self, CutShort};

/// How much of the end of stderr is kept.
const STDERR_TAIL_MAX: usize = 8 * 1024;
/// How long a descendant (an ssh master) may keep our pipe open after git itself has ended.
const DRAIN: Duration = Duration::from_millis(500);
const POLL_SLICE: Duration = Duration::from_millis(50);
/// How long git may take to remove its lock files before it is killed.
pub(super) const END_GRACE: Duration = Duration::from_millis(300);

/// The way in which reading a child's output ended.
pub(super) enum Drained {
    Ended,
    Cut,
    Late,
    /// The caller did not want the answer any more.
    Unwanted,
}

/// Reads both pipes until the child has ended, `sink` breaks, the deadline is over or `unwanted`
/// returns true. The patience of the caller's task counts as well.
pub(super) fn drain(
    child: &mut Child,
    deadline: Instant,
    unwanted: &dyn Fn() -> bool,
    sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    tail: &mut StderrTail,
) -> io::Result<Drained> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut ended_at: Option<Instant> = None;
    while out.is_some() || err.is_some() {
        let now = Instant::now();
        if now >= deadline {
            return Ok(Drained::Late);
        }
        if let Some(cut) = cut_short(unwanted) {
            return Ok(cut);
        }
        if ended_at.is_some_and(|at| now - at > DRAIN) {
            return Ok(Drained::Ended);
        }
        let (out_ready, err_ready) = ready(out.as_ref(), err.as_ref(), deadline - now)?;
        if out_ready && let Some(pipe) = &mut out {
            match read_some(pipe, &mut buffer)? {
                0 => out = None,
                n => {
                    if sink(buffer.get(..n).unwrap_or_default()).is_break() {
                        return Ok(Drained::Cut);
                    }
                }
            }
        }
        if err_ready && let Some(pipe) = &mut err {
            match read_some(pipe, &mut buffer)? {
                0 => err = None,
                n => tail.push(buffer.get(..n).unwrap_or_default()),
            }
        }
        if !out_ready && !err_ready && ended_at.is_none() && child.try_wait()?.is_some() {
            ended_at = Some(Instant::now());
        }
    }
    wait_until(child, deadline, unwanted)
}

/// Waits for the child's end. Both pipes are closed, so git is as good as gone; only a misbehaving
/// one is waited for.
fn wait_until(
    child: &mut Child,
    deadline: Instant,
    unwanted: &dyn Fn() -> bool,
) -> io::Result<Drained> {
    let mut pause = Duration::from_micros(200);
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            return Ok(Drained::Late);
        }
        if let Some(cut) = cut_short(unwanted) {
            return Ok(cut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(POLL_SLICE);
    }
    Ok(Drained::Ended)
}

fn cut_short(unwanted: &dyn Fn() -> bool) -> Option<Drained> {
    match patience::cut_short() {
        Some(CutShort::Unwanted) => Some(Drained::Unwanted),
        Some(CutShort::OutOfTime) => Some(Drained::Late),
        None => unwanted().then_some(Drained::Unwanted),
    }
}

fn ready<A: AsFd, B: AsFd>(
    out: Option<&A>,
    err: Option<&B>,
    left: Duration,
) -> io::Result<(bool, bool)> {
    let mut fds = Vec::with_capacity(2);
    fds.extend(out.map(|p| PollFd::new(p.as_fd(), PollFlags::POLLIN)));
    fds.extend(err.map(|p| PollFd::new(p.as_fd(), PollFlags::POLLIN)));
    let slice = left.min(POLL_SLICE);
    let wait = PollTimeout::try_from(slice).unwrap_or(PollTimeout::ZERO);
    match poll(&mut fds, wait) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut hit = fds.iter().map(|fd| fd.revents().is_some_and(|r| !r.is_empty()));
    let out_ready = out.is_some() && hit.next().unwrap_or(false);
    let err_ready = err.is_some() && hit.next().unwrap_or(false);
    Ok((out_ready, err_ready))
}

fn read_some(pipe: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match pipe.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Ends git and its own children (ssh, index-pack), which are in its group: asked first, so that they
/// take their lock files with them, then killed.
pub(super) fn end_group(child: &mut Child) {
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let signal = |signal| {
        if let Ok(group) = group {
            let _ended_already = killpg(group, signal);
        }
    };
    signal(Signal::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < END_GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(Signal::SIGKILL);
    let _ended_already = child.kill();
}

/// The last bytes of stderr.
#[derive(Default)]
pub(super) struct StderrTail(Vec<u8>);

impl StderrTail {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(STDERR_TAIL_MAX);
        self.0.drain(..over);
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_kept_to_its_tail() {
        let mut tail = StderrTail::default();
        tail.push(&vec![b'a'; STDERR_TAIL_MAX]);
        tail.push(b"end");
        assert_eq!(tail.0.len(), STDERR_TAIL_MAX);
        assert!(tail.text().ends_with("end"));
    }
}

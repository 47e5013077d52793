//! The output of an agent at a bounded cost: a log up to a cap, lines for the parser, and the end
//! for prompts and people. Output that is logged or kept is redacted. The parser's lines are not,
//! because a pattern may hide half of their syntax; whoever shows or keeps a part of them redacts
//! that part.

mod log;
mod ring;
mod split;

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc;

use crate::escape;
use crate::redact::{self, Redactor};
use log::Log;
pub use log::LogEnd;
use ring::Ring;
use split::Splitter;

const CHUNK_BYTES: usize = 64 * 1024;

/// How many batches of lines may wait for the parser; then the agent has to wait.
pub const BATCHES_MAX: usize = 2;

/// How long the pipes may still deliver bytes after every process of the tree is gone.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// Where output is logged and how much of it is kept.
#[derive(Debug, Clone)]
pub struct OutputSettings {
    /// The file to which stdout is appended, if any.
    pub stdout_log: Option<PathBuf>,
    /// The file to which stderr is appended, if any.
    pub stderr_log: Option<PathBuf>,
    /// The most bytes written to each log.
    pub log_bytes_max: u64,
    /// The longest line the parser gets; of a longer one it gets the head.
    pub line_bytes_max: usize,
    /// How much of the end of stdout is kept to find an answer in.
    pub text_bytes_max: usize,
    /// How much of the end of stderr is kept.
    pub errors_bytes_max: usize,
}

impl Default for OutputSettings {
    fn default() -> OutputSettings {
        OutputSettings {
            stdout_log: None,
            stderr_log: None,
            log_bytes_max: 256 << 20,
            line_bytes_max: 4 << 20,
            text_bytes_max: 4 << 20,
            errors_bytes_max: 256 << 10,
        }
    }
}

/// The stream a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line for the parser, without its end and not redacted. Empty lines are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    /// The stream it came from.
    pub source: OutputSource,
    /// The text; invalid UTF-8 is replaced.
    pub text: String,
    /// Whether the line was longer than allowed and this is only its head.
    pub cut: bool,
}

/// The output that is kept after the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The kept part of stdout.
    pub stdout: KeptOutput,
    /// The kept part of stderr.
    pub stderr: KeptOutput,
}

/// The kept part of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptOutput {
    /// How many bytes were printed in all.
    pub bytes: u64,
    /// The end of the stream, as far as it was kept; raw but for redaction and invalid UTF-8.
    pub text: String,
    /// Whether the log is complete.
    pub log: LogEnd,
}

impl KeptOutput {
    /// Returns the last lines for a prompt or a person: without terminal sequences, with a bounded
    /// size.
    pub fn tail(&self, lines_max: usize, bytes_max: usize) -> String {
        tail(&self.text, lines_max, bytes_max)
    }
}

/// Returns the last lines of `text`, harmless to show. A line that does not fit loses its head.
pub fn tail(text: &str, lines_max: usize, bytes_max: usize) -> String {
    // The text is cut before escaping, so that a huge text is not escaped whole for its last lines.
    let plain = escape::plain(end_of(text, bytes_max));
    let plain = plain.trim_end();
    let start = memchr::memrchr_iter(b'\n', plain.as_bytes())
        .nth(lines_max.saturating_sub(1))
        .map_or(0, |at| at + 1);
    let lines = if lines_max == 0 { "" } else { &plain[start..] };
    end_of(lines, bytes_max).to_owned()
}

fn end_of(text: &str, bytes_max: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// How much output there is and when the last of it came; shared with whoever watches for silence.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    bytes: AtomicU64,
    last_ms: AtomicU64,
}

impl Progress {
    /// Returns how many bytes have come so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the time of the last byte, or of the start.
    pub fn last(&self) -> Instant {
        self.since + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    fn heard(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes.fetch_add(count, Ordering::Relaxed);
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }
}

impl Default for Progress {
    /// Begins now, without output.
    fn default() -> Progress {
        Progress { since: Instant::now(), bytes: AtomicU64::new(0), last_ms: AtomicU64::new(0) }
    }
}

/// The pipes with an agent's output.
pub struct Pipes {
    /// Our end of the agent's stdout.
    pub stdout: OwnedFd,
    /// Our end of the agent's stderr.
    pub stderr: OwnedFd,
    /// A pipe whose other end is closed when every process of the tree is gone.
    pub gone: OwnedFd,
}

/// Reads both pipes to their end. It blocks and needs a separate thread.
pub fn pump(
    pipes: Pipes,
    settings: &OutputSettings,
    redactor: &Redactor,
    progress: &Arc<Progress>,
    lines: mpsc::Sender<Vec<OutputLine>>,
) -> Captured {
    let mut out = Channel::new(OutputSource::Stdout, pipes.stdout, settings, redactor);
    let mut err = Channel::new(OutputSource::Stderr, pipes.stderr, settings, redactor);
    let mut lines = Some(lines);
    let mut gone_at: Option<Instant> = None;
    let mut buffer = vec![0; CHUNK_BYTES];
    while out.is_open() || err.is_open() {
        if gone_at.is_none() {
            wait(&out, &err, &pipes.gone);
            gone_at = is_closed(&pipes.gone).then(Instant::now);
        }
        let mut heard = 0;
        for channel in [&mut out, &mut err] {
            let count = channel.read(&mut buffer);
            if count > 0 {
                progress.heard(count);
                send(&mut lines, channel.take(&buffer[..count]));
            }
            heard += count;
        }
        // A stranger who was given the pipe may hold it open, or fill it, for ever.
        if gone_at.is_some_and(|at| heard == 0 || at.elapsed() > DRAIN_TIME_MAX) {
            break;
        }
    }
    for channel in [&mut out, &mut err] {
        send(&mut lines, channel.finish());
    }
    Captured { stdout: out.keep(), stderr: err.keep() }
}

fn wait(out: &Channel<'_>, err: &Channel<'_>, gone: &OwnedFd) {
    let mut fds = vec![PollFd::new(gone.as_fd(), PollFlags::POLLIN)];
    for pipe in [&out.pipe, &err.pipe].into_iter().flatten() {
        fds.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
    }
    let _ = poll(&mut fds, PollTimeout::NONE);
}

fn is_closed(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

fn send(lines: &mut Option<mpsc::Sender<Vec<OutputLine>>>, batch: Vec<OutputLine>) {
    if batch.is_empty() {
        return;
    }
    // A parser that has gone does not end the log.
    if lines.as_ref().is_some_and(|lines| lines.blocking_send(batch).is_err()) {
        *lines = None;
    }
}

/// One of the two pipes with everything that is done to its bytes.
struct Channel<'a> {
    source: OutputSource,
    pipe: Option<std::fs::File>,
    bytes: u64,
    redaction: redact::RedactedStream<'a>,
    clean: Vec<u8>,
    log: Log,
    ring: Ring,
    splitter: Splitter,
}

impl<'a> Channel<'a> {
    fn new(
        source: OutputSource,
        pipe: OwnedFd,
        settings: &OutputSettings,
        redactor: &'a Redactor,
    ) -> Self {
        let (path, kept) = match source {
            OutputSource::Stdout => (&settings.stdout_log, settings.text_bytes_max),
            OutputSource::Stderr => (&settings.stderr_log, settings.errors_bytes_max),
        };
        Channel {
            source,
            pipe: Some(std::fs::File::from(pipe)),
            bytes: 0,
            redaction: redactor.stream(),
            clean: Vec::new(),
            log: Log::open(path.as_deref(), settings.log_bytes_max),
            ring: Ring::new(kept),
            splitter: Splitter::new(settings.line_bytes_max),
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads the bytes that are there now; 0 when there are none or no more will come.
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => return count,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => self.pipe = None,
        }
        0
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<OutputLine> {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut clean = std::mem::take(&mut self.clean);
        clean.clear();
        self.redaction.push(bytes, &mut clean);
        self.keep_clean(&clean);
        self.clean = clean;
        let split = self.splitter.push(bytes);
        split.into_iter().map(|(text, cut)| self.line(text, cut)).collect()
    }

    fn finish(&mut self) -> Vec<OutputLine> {
        let mut clean = Vec::new();
        self.redaction.finish(&mut clean);
        self.keep_clean(&clean);
        let last = self.splitter.finish();
        last.map(|(text, cut)| self.line(text, cut)).into_iter().collect()
    }

    fn keep_clean(&mut self, clean: &[u8]) {
        self.log.write(clean);
        self.ring.push(clean);
    }

    fn line(&self, text: String, cut: bool) -> OutputLine {
        OutputLine { source: self.source, text, cut }
    }

    fn keep(self) -> KeptOutput {
        KeptOutput { bytes: self.bytes, text: self.ring.into_text(), log: self.log.end() }
    }
}

#[cfg(test)]
mod tests;

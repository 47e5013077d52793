//! Standard error behind a bounded queue and a separate thread: a terminal that stops reading
//! (Ctrl-S, a pager, a pipe nobody reads) must not block a run or use unbounded memory.

use autopilot_view::count;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Limits of the queue; beyond either, the oldest texts are dropped so that the newest are seen.
const TEXTS_MAX: usize = 4096;
const BYTES_MAX: usize = 1024 * 1024;
/// How long to wait at the end for a reader that reads nothing, and for one that is slow.
const STUCK_MAX: Duration = Duration::from_secs(1);
const SLOW_MAX: Duration = Duration::from_secs(10);

static QUEUE: Mutex<TextQueue> = Mutex::new(TextQueue::new());
static CHANGED: Condvar = Condvar::new();
static WRITER: OnceLock<bool> = OnceLock::new();

struct TextQueue {
    texts: VecDeque<String>,
    bytes: usize,
    /// The number of texts dropped since the last one written.
    missed: u64,
    /// Whether the writer is writing a text.
    writing: bool,
    /// The number of texts written so far.
    written: u64,
    /// The value of `written` when `flush` last gave up on the reader.
    stuck_at: Option<u64>,
}

impl TextQueue {
    const fn new() -> TextQueue {
        TextQueue {
            texts: VecDeque::new(),
            bytes: 0,
            missed: 0,
            writing: false,
            written: 0,
            stuck_at: None,
        }
    }

    fn push(&mut self, text: String) {
        self.bytes += text.len();
        self.texts.push_back(text);
        while self.texts.len() > TEXTS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.texts.pop_front() else { break };
            self.bytes -= oldest.len();
            self.missed += 1;
        }
    }

    fn pop(&mut self) -> Option<String> {
        let text = self.texts.pop_front()?;
        self.bytes -= text.len();
        Some(match std::mem::take(&mut self.missed) {
            0 => text,
            missed => format!("… not shown: {}\n{text}", count(missed as usize, "line")),
        })
    }

    fn is_idle(&self) -> bool {
        self.texts.is_empty() && !self.writing
    }
}

fn queue() -> MutexGuard<'static, TextQueue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues a text for standard error.
pub fn push(text: String) {
    let runs = *WRITER.get_or_init(|| {
        std::thread::Builder::new().name("terminal".into()).spawn(write_all).is_ok()
    });
    if !runs {
        write(&text);
        return;
    }
    queue().push(text);
    CHANGED.notify_all();
}

/// Waits until every text is written, or until the reader turns out not to read.
pub fn flush() {
    if WRITER.get() != Some(&true) {
        return;
    }
    let began = Instant::now();
    let mut queue = queue();
    let (mut seen, mut since) = (queue.written, began);
    while !queue.is_idle() && queue.stuck_at != Some(queue.written) {
        if queue.written != seen {
            (seen, since) = (queue.written, Instant::now());
        }
        let left = STUCK_MAX.saturating_sub(since.elapsed());
        if left.is_zero() || began.elapsed() > SLOW_MAX {
            // The next flush does not wait for this reader, unless it has read something since.
            queue.stuck_at = Some(queue.written);
            return;
        }
        let waited = CHANGED.wait_timeout(queue, left);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn write_all() {
    let mut queue = queue();
    loop {
        let Some(text) = queue.pop() else {
            queue = CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        queue.writing = true;
        drop(queue);
        write(&text);
        queue = self::queue();
        queue.writing = false;
        queue.written += 1;
        CHANGED.notify_all();
    }
}

fn write(text: &str) {
    // A reader that has gone away is not an error.
    let _closed = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_texts_stay_and_the_others_are_counted() {
        let mut queue = TextQueue::new();
        for n in 0..TEXTS_MAX + 3 {
            queue.push(format!("{n}\n"));
        }
        assert_eq!(queue.texts.len(), TEXTS_MAX);
        assert_eq!(queue.pop().unwrap(), "… not shown: 3 lines\n3\n");
        assert_eq!(queue.pop().unwrap(), "4\n");
    }

    #[test]
    fn long_texts_count_by_their_bytes() {
        let mut queue = TextQueue::new();
        for _ in 0..10 {
            queue.push("x".repeat(BYTES_MAX / 4));
        }
        assert!(queue.bytes <= BYTES_MAX && queue.texts.len() == 4);
        while queue.pop().is_some() {}
        assert_eq!((queue.bytes, queue.missed), (0, 0));
    }
}

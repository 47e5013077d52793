//! The last lines of a stream, in bounded memory.

use std::collections::VecDeque;

/// The number of lines that are kept.
pub const LINES_MAX: usize = 40;
/// The longest line that is kept whole.
pub const LINE_BYTES_MAX: usize = 400;

/// The end of a stream, long enough to tell a person why a program gave up.
#[derive(Debug, Clone, Default)]
pub struct LastLines {
    lines: VecDeque<String>,
}

impl LastLines {
    /// Adds a line; blank lines are dropped.
    pub fn push(&mut self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(crate::event::clip(line, LINE_BYTES_MAX));
    }

    /// Whether no line was kept.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All kept lines.
    pub fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The last `count` lines.
    pub fn last(&self, count: usize) -> String {
        let skip = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skip).map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_each_of_them_short() {
        let mut tail = LastLines::default();
        for n in 0..LINES_MAX + 5 {
            tail.push(&format!("line {n}"));
            tail.push("");
        }
        assert_eq!(tail.text().lines().count(), LINES_MAX);
        assert!(tail.text().starts_with("line 5\n"));
        assert_eq!(tail.last(1), format!("line {}", LINES_MAX + 4));
        tail.push(&"x".repeat(10 * LINE_BYTES_MAX));
        assert!(tail.last(1).len() < LINE_BYTES_MAX + 40);
    }
}

//! A reader of unified diffs that takes them as git prints them, and keeps no more than its limits
//! allow.

use super::change::ChangeLimits;

/// The longest line that is looked at as a whole.
const LOOKED_AT_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of watched lines that are kept beyond the other limits.
const WATCHED_BYTES_MAX: usize = 32 * 1024 * 1024;

const CUT: &str = "\n[diff cut here: the rest is longer than the limit]\n";

/// A line that was added or removed. Paths are bytes, text is lossy and cut to its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFact {
    /// The path of the file.
    pub path: Vec<u8>,
    /// The line number, in the new file for an added line, in the old one for a removed line.
    pub number: u64,
    /// The line without its mark.
    pub text: String,
}

/// The part of a diff that was kept.
pub(crate) struct PatchRead {
    pub text: String,
    pub text_cut: bool,
    pub added: Vec<LineFact>,
    pub removed: Vec<LineFact>,
    pub lines_cut: bool,
    pub lines_unread: bool,
    pub inserted_bytes: u64,
    pub deleted_bytes: u64,
}

/// The diff read so far.
pub(crate) struct PatchReader {
    limits: ChangeLimits,
    text: Vec<u8>,
    text_cut: bool,
    /// The unfinished line, cut to a length that holds any header.
    line: Vec<u8>,
    /// The length of the unfinished line, with what was cut.
    line_bytes: u64,
    read_bytes: u64,
    old_path: Vec<u8>,
    new_path: Vec<u8>,
    hunk: Hunk,
    added: Vec<LineFact>,
    removed: Vec<LineFact>,
    lines_cut: bool,
    lines_unread: bool,
    watched_bytes: usize,
    inserted_bytes: u64,
    deleted_bytes: u64,
}

/// The lines of the current hunk that are still to come, and their numbers.
#[derive(Default)]
struct Hunk {
    old_left: u64,
    new_left: u64,
    old_number: u64,
    new_number: u64,
}

impl PatchReader {
    pub fn new(limits: ChangeLimits) -> Self {
        Self {
            limits,
            text: Vec::new(),
            text_cut: false,
            line: Vec::new(),
            line_bytes: 0,
            read_bytes: 0,
            old_path: Vec::new(),
            new_path: Vec::new(),
            hunk: Hunk::default(),
            added: Vec::new(),
            removed: Vec::new(),
            lines_cut: false,
            lines_unread: false,
            watched_bytes: 0,
            inserted_bytes: 0,
            deleted_bytes: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.read_bytes += bytes.len() as u64;
        let room = self.limits.diff_bytes_max.saturating_sub(self.text.len());
        self.text_cut |= bytes.len() > room;
        self.text.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        let mut parts = bytes.split(|b| *b == b'\n');
        self.extend_line(parts.next().unwrap_or_default());
        for part in parts {
            self.end_line();
            self.extend_line(part);
        }
    }

    /// Returns whether the rest is not read.
    pub fn full(&mut self) -> bool {
        let is_full = self.read_bytes > self.limits.read_bytes_max;
        self.lines_unread |= is_full;
        is_full
    }

    pub fn finish(mut self) -> PatchRead {
        self.end_line();
        let mut text = String::from_utf8_lossy(&self.text).into_owned();
        if self.text_cut {
            text.push_str(CUT);
        }
        PatchRead {
            text,
            text_cut: self.text_cut,
            added: self.added,
            removed: self.removed,
            lines_cut: self.lines_cut,
            lines_unread: self.lines_unread,
            inserted_bytes: self.inserted_bytes,
            deleted_bytes: self.deleted_bytes,
        }
    }

    fn extend_line(&mut self, part: &[u8]) {
        self.line_bytes += part.len() as u64;
        let room = LOOKED_AT_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let bytes = std::mem::take(&mut self.line_bytes);
        let (mark, rest) = line.split_first().map_or((b' ', [].as_slice()), |(m, r)| (*m, r));
        if self.hunk.old_left == 0 && self.hunk.new_left == 0 {
            self.header(&line);
            return;
        }
        self.lines_unread |= bytes > line.len() as u64 && matches!(mark, b'+' | b'-');
        match mark {
            b'+' => {
                self.inserted_bytes += bytes;
                let number = self.hunk.new_number;
                self.keep(PatchSide::New, number, rest);
                self.hunk.new_number += 1;
                self.hunk.new_left = self.hunk.new_left.saturating_sub(1);
            }
            b'-' => {
                self.deleted_bytes += bytes;
                let number = self.hunk.old_number;
                self.keep(PatchSide::Old, number, rest);
                self.hunk.old_number += 1;
                self.hunk.old_left = self.hunk.old_left.saturating_sub(1);
            }
            b'\\' => {}
            _ => {
                self.hunk.old_number += 1;
                self.hunk.new_number += 1;
                self.hunk.old_left = self.hunk.old_left.saturating_sub(1);
                self.hunk.new_left = self.hunk.new_left.saturating_sub(1);
            }
        }
    }

    fn header(&mut self, line: &[u8]) {
        if let Some(name) = line.strip_prefix(b"--- ") {
            self.old_path = path_of(name, b"a/");
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.new_path = path_of(name, b"b/");
        } else if line.starts_with(b"@@ ")
            && let Some(hunk) = read_hunk(line)
        {
            self.hunk = hunk;
        }
    }

    fn keep(&mut self, side: PatchSide, number: u64, text: &[u8]) {
        let (list, path) = match side {
            PatchSide::New => (&mut self.added, &self.new_path),
            PatchSide::Old => (&mut self.removed, &self.old_path),
        };
        let is_beyond = list.len() >= self.limits.lines_max;
        let is_long = text.len() > self.limits.line_bytes_max;
        let mut kept = String::from_utf8_lossy(text);
        if (is_beyond || is_long) && (self.limits.watched)(&kept) {
            self.watched_bytes += text.len() + path.len();
            if self.watched_bytes <= WATCHED_BYTES_MAX {
                list.push(LineFact { path: path.clone(), number, text: kept.into_owned() });
                return;
            }
            self.lines_unread = true;
        }
        if is_beyond {
            self.lines_cut = true;
            return;
        }
        if is_long {
            kept = String::from_utf8_lossy(&text[..self.limits.line_bytes_max]);
        }
        list.push(LineFact { path: path.clone(), number, text: kept.into_owned() });
    }
}

#[derive(Clone, Copy)]
enum PatchSide {
    Old,
    New,
}

/// Reads `@@ -a,b +c,d @@`; a count that is left out is one.
fn read_hunk(line: &[u8]) -> Option<Hunk> {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split(' ').skip(1);
    let range = |word: &str| -> Option<(u64, u64)> {
        let (start, count) = word.get(1..)?.split_once(',').unwrap_or((word.get(1..)?, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let (old_number, old_left) = range(words.next()?)?;
    let (new_number, new_left) = range(words.next()?)?;
    Some(Hunk { old_left, new_left, old_number, new_number })
}

/// Returns the path of a `---`/`+++` line. Git ends a name that contains a blank with a tab and
/// quotes odd ones.
fn path_of(name: &[u8], prefix: &[u8]) -> Vec<u8> {
    let name = name.strip_suffix(b"\t").unwrap_or(name);
    let name = match name.strip_prefix(b"\"").and_then(|n| n.strip_suffix(b"\"")) {
        Some(quoted) => unquote(quoted),
        None => name.to_vec(),
    };
    name.strip_prefix(prefix).map(<[u8]>::to_vec).unwrap_or(name)
}

fn unquote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'v') => out.push(11),
            Some(b'f') => out.push(12),
            Some(b'r') => out.push(b'\r'),
            Some(digit @ b'0'..=b'3') => {
                let rest = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                let value = rest.iter().fold(digit - b'0', |sum, d| {
                    sum.wrapping_mul(8).wrapping_add(d.wrapping_sub(b'0'))
                });
                out.push(value);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(patch: &str, limits: ChangeLimits, step: usize) -> PatchRead {
        let mut reader = PatchReader::new(limits);
        for chunk in patch.as_bytes().chunks(step) {
            reader.push(chunk);
        }
        reader.finish()
    }

    #[test]
    fn watched_lines_are_kept_past_every_limit_and_bytes_are_counted() {
        let limits = ChangeLimits {
            lines_max: 1,
            line_bytes_max: 3,
            watched: |text| text.contains("mark"),
            ..ChangeLimits::default()
        };
        let patch = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,3 @@\n+one\n+two\n+the mark\n";
        let read = read(patch, limits, 4);
        let added: Vec<(u64, &str)> =
            read.added.iter().map(|line| (line.number, line.text.as_str())).collect();
        assert_eq!(added, [(1, "one"), (3, "the mark")]);
        assert!(read.lines_cut && !read.lines_unread);
        assert_eq!((read.inserted_bytes, read.deleted_bytes), (4 + 4 + 9, 0));
    }

    #[test]
    fn a_line_too_long_to_be_looked_at_is_counted_and_said() {
        let long = "x".repeat(2 * LOOKED_AT_BYTES_MAX);
        let patch = format!("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+{long}\n");
        let read = read(&patch, ChangeLimits::default(), 4096);
        assert!(read.lines_unread);
        assert_eq!(read.inserted_bytes, 1 + 2 * LOOKED_AT_BYTES_MAX as u64);
        let limits = ChangeLimits { read_bytes_max: 10, ..ChangeLimits::default() };
        let mut reader = PatchReader::new(limits);
        reader.push(patch.as_bytes());
        assert!(reader.full() && reader.finish().lines_unread);
    }

    const PATCH: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n same\n--- old\n\
+++ new\n+more\n\\ No newline at end of file\ndiff --git \"a/\\303\\244\" \"b/\\303\\244\"\n--- /dev/null\n\
+++ \"b/\\303\\244\"\n@@ -0,0 +1 @@\n+only\n";

    #[test]
    fn lines_that_look_like_headers_are_lines() {
        for step in [1, 7, 4096] {
            let read = read(PATCH, ChangeLimits::default(), step);
            let added: Vec<(&[u8], u64, &str)> =
                read.added.iter().map(|l| (l.path.as_slice(), l.number, l.text.as_str())).collect();
            assert_eq!(
                added,
                [(b"x".as_slice(), 2, "++ new"), (b"x", 3, "more"), ("ä".as_bytes(), 1, "only")]
            );
            assert_eq!(read.removed.len(), 1);
            assert_eq!((read.removed[0].number, read.removed[0].text.as_str()), (2, "-- old"));
            assert_eq!(read.text, PATCH);
        }
    }

    #[test]
    fn every_limit_holds_and_is_marked() {
        let limits = ChangeLimits {
            diff_bytes_max: 40,
            lines_max: 1,
            line_bytes_max: 3,
            ..ChangeLimits::default()
        };
        let read = read(PATCH, limits, 5);
        assert!(read.text_cut && read.text.ends_with(CUT) && read.text.len() == 40 + CUT.len());
        assert!(read.lines_cut);
        assert_eq!((read.added.len(), read.added[0].text.as_str()), (1, "++ "));
    }
}

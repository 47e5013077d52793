//! Splitting output into lines for the parser; of an over-long line only the head is kept.

/// The line that is arriving.
pub struct Splitter {
    line: Vec<u8>,
    line_bytes_max: usize,
    /// Set when the head of the line was returned already and the rest is skipped.
    skipping: bool,
}

impl Splitter {
    /// Makes a splitter for lines of at most so many bytes.
    pub fn new(line_bytes_max: usize) -> Splitter {
        Splitter { line: Vec::new(), line_bytes_max, skipping: false }
    }

    /// Adds bytes and returns the lines that are complete now, each with whether it was cut.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<(String, bool)> {
        let mut lines = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.add(&bytes[..end], &mut lines);
            bytes = &bytes[end + 1..];
            if !std::mem::take(&mut self.skipping) {
                lines.extend(self.take(false));
            }
        }
        self.add(bytes, &mut lines);
        lines
    }

    /// Returns the last line, if the output did not end with a line end.
    pub fn finish(&mut self) -> Option<(String, bool)> {
        self.take(false)
    }

    fn add(&mut self, part: &[u8], lines: &mut Vec<(String, bool)>) {
        if self.skipping {
            return;
        }
        let room = self.line_bytes_max - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        if part.len() > room {
            lines.extend(self.take(true));
            self.skipping = true;
            // The room of a huge line is not kept for the small ones that follow.
            self.line = Vec::new();
        }
    }

    fn take(&mut self, cut: bool) -> Option<(String, bool)> {
        let end =
            if self.line.ends_with(b"\r") && !cut { self.line.len() - 1 } else { self.line.len() };
        let text = String::from_utf8_lossy(&self.line[..end]).into_owned();
        self.line.clear();
        (!text.is_empty()).then_some((text, cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]], max: usize) -> Vec<(String, bool)> {
        let mut splitter = Splitter::new(max);
        let mut lines: Vec<_> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
        lines.extend(splitter.finish());
        lines
    }

    #[test]
    fn lines_do_not_depend_on_the_pieces() {
        let text = b"one\r\n\ntwo\nlonger than ten\nthree";
        let expected = split(&[text], 10);
        assert_eq!(
            expected,
            [("one", false), ("two", false), ("longer tha", true), ("three", false)]
                .map(|(text, cut)| (text.to_owned(), cut))
        );
        for at in 0..=text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]], 10), expected, "cut at {at}");
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole() {
        assert_eq!(split(&[b"0123456789\n"], 10), [("0123456789".to_owned(), false)]);
    }

    #[test]
    fn a05_nul_and_invalid_bytes_become_valid_text() {
        assert_eq!(split(&[b"a\0b\xff\n"], 10), [("a\0b\u{fffd}".to_owned(), false)]);
    }

    #[test]
    fn an_endless_line_costs_its_limit() {
        let mut splitter = Splitter::new(1000);
        for _ in 0..1000 {
            splitter.push(&[b'x'; 100]);
            assert!(splitter.line.len() <= 1000);
        }
    }
}

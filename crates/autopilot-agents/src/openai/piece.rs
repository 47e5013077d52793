//! The few letters that a model gives at a time, joined into lines.
//!
//! A line ends where the text's own line ends, so that no word is split over two of them: secrets
//! are hidden line by line.

/// The longest text without a line end that is held back.
pub const PIECE_BYTES_MAX: usize = 8 * 1024;

/// The text that waits for the end of its line.
#[derive(Debug, Default)]
pub struct Pieces {
    held: String,
}

impl Pieces {
    /// Adds `text` and returns the whole lines that are ready to be printed.
    pub fn push(&mut self, text: &str) -> Option<String> {
        let lines_end = text.rfind('\n').map(|at| self.held.len() + at + 1);
        self.held.push_str(text);
        let end = match lines_end {
            Some(end) => end,
            None if self.held.len() < PIECE_BYTES_MAX => return None,
            None => {
                let space = self.held.rfind(char::is_whitespace).filter(|at| *at > 0);
                space.unwrap_or(self.held.len())
            }
        };
        let rest = self.held.split_off(end);
        Some(std::mem::replace(&mut self.held, rest))
    }

    /// Takes the rest, at the end of the answer.
    pub fn take(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.held)).filter(|held| !held.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_ends_where_a_line_does() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.push("one "), None);
        assert_eq!(pieces.push("line\ntwo\nthr").as_deref(), Some("one line\ntwo\n"));
        assert_eq!(pieces.push("ee"), None);
        assert_eq!(pieces.take().as_deref(), Some("three"));
        assert_eq!(pieces.take(), None);
    }

    #[test]
    fn a_text_without_lines_is_cut_between_its_words_and_nothing_is_lost() {
        for word in ["word ", "é", "a\u{2003}"] {
            let whole = word.repeat(3 * PIECE_BYTES_MAX / word.len());
            let mut pieces = Pieces::default();
            let mut said = String::new();
            for letter in whole.chars() {
                let mut bytes = [0; 4];
                if let Some(piece) = pieces.push(letter.encode_utf8(&mut bytes)) {
                    assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES_MAX + 4);
                    said.push_str(&piece);
                }
            }
            said.push_str(&pieces.take().unwrap_or_default());
            assert_eq!(said, whole);
        }
    }
}

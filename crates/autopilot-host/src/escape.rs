//! Untrusted text made harmless for terminals, Markdown and prompts: characters that act become
//! visible.

use std::borrow::Cow;
use std::fmt::Write;

/// Makes text of many lines harmless: line ends and tabs stay, every other character that acts
/// becomes an escape to read.
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |character| matches!(character, '\n' | '\t'))
}

/// Makes text harmless for a place of one line, such as a title or a file name: line ends and tabs
/// become escapes too.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Makes text harmless for a line of Markdown: characters of Markdown and HTML are escaped as well.
pub fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in one_line(text).chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '-' | '!'
            | '|' | '~' | '@' | ':' => {
                safe.push('\\');
                safe.push(character);
            }
            character => safe.push(character),
        }
    }
    safe
}

/// Makes text harmless for prompts: colours, cursor movements and terminal commands are taken out,
/// all other characters that act made visible.
pub fn plain(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['\u{1b}', '\u{9b}', '\u{9d}']) {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[sequence_length(rest)..];
    }
    kept.push_str(rest);
    visible(&kept.replace("\r\n", "\n")).into_owned()
}

/// Returns the length of the terminal sequence at the start of `text`; that of the introducer alone
/// if the sequence is unfinished.
fn sequence_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let introducer = characters.next().map_or(0, |(_, character)| character.len_utf8());
    let kind = match text.chars().next() {
        Some('\u{9b}') => Some('['),
        Some('\u{9d}') => Some(']'),
        _ => characters.next().map(|(_, character)| character),
    };
    match kind {
        Some('[') => characters
            .find(|(_, character)| !matches!(character, ' '..='?'))
            .filter(|(_, character)| matches!(character, '@'..='~'))
            .map_or(introducer, |(at, _)| at + 1),
        // OSC, DCS, SOS, PM and APC end with BEL or the string terminator.
        Some(']' | 'P' | 'X' | '^' | '_') => match text.find(['\u{7}', '\u{9c}', '\n']) {
            Some(end) if !text[end..].starts_with('\n') => {
                let terminator = text[..end].find("\u{1b}\\").map(|at| at + 2);
                let bell = end + text[end..].chars().next().map_or(0, char::len_utf8);
                terminator.unwrap_or(bell)
            }
            _ => text
                .find("\u{1b}\\")
                .filter(|at| !text[..*at].contains('\n'))
                .map_or(introducer, |at| at + 2),
        },
        Some('\u{20}'..='\u{7e}') => introducer + 1,
        _ => introducer,
    }
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|character| acts(character) && !keep(character)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            character if !acts(character) || keep(character) => safe.push(character),
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            '\0'..='\u{7f}' => {
                let _ = write!(safe, "\\x{:02x}", u32::from(character));
            }
            character => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
            }
        }
    }
    Cow::Owned(safe)
}

/// Percent-encodes bytes as RFC 3986 does, with these sixteen digits.
pub(crate) fn percent(bytes: &[u8], digits: &[u8; 16]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            encoded.extend([b'%', digits[high], digits[low]].map(char::from));
        }
    }
    encoded
}

/// Returns whether a character does something other than appear.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction: marks, embeddings, overrides, isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators, invisible operators, byte order mark.
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            // Deprecated formatting, interlinear annotation, tags that spell hidden ASCII.
            | '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a06_terminal_commands_become_text() {
        for hostile in [
            "\u{1b}]52;c;ZXZpbA==\u{7}",
            "\u{1b}]8;;http://evil\u{1b}\\click\u{1b}]8;;\u{1b}\\",
            "\u{1b}[2J\u{1b}[31mred",
            "\u{9b}31m",
            "a\u{8}\u{8}b\u{7f}",
            "safe\rEVIL",
            "\u{202e}txt.exe",
            "\u{e0041}",
        ] {
            for safe in [visible(hostile).into_owned(), one_line(hostile).into_owned()] {
                assert!(!safe.chars().any(acts), "{safe:?}");
            }
            assert!(!plain(hostile).chars().any(acts));
            assert!(!markdown(hostile).chars().any(acts));
        }
        assert_eq!(visible("\u{1b}[31mred"), "\\x1b[31mred");
        assert_eq!(visible("\u{202e}x"), "\\u{202e}x");
    }

    #[test]
    fn ordinary_text_is_untouched() {
        let text = "Zeile 1\n\tÄ 日本語 👩‍👩‍👧 → ok";
        assert!(matches!(visible(text), Cow::Borrowed(_)));
        assert_eq!(one_line("a\nb\tc"), "a\\nb\\tc");
    }

    #[test]
    fn plain_takes_sequences_out_whole() {
        assert_eq!(plain("\u{1b}[1;31merror\u{1b}[0m: x\r\n"), "error: x\n");
        assert_eq!(plain("a\u{1b}]0;title\u{7}b"), "ab");
        assert_eq!(plain("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b"), "alinkb");
        assert_eq!(plain("\u{9b}31mred"), "red");
        assert_eq!(plain("\u{1b}(Bx"), "Bx");
    }

    #[test]
    fn an_unfinished_sequence_does_not_swallow_the_text_after_it() {
        assert_eq!(plain("a\u{1b}]0;never ended\nnext"), "a]0;never ended\nnext");
        assert_eq!(plain("a\u{1b}[12"), "a[12");
        assert_eq!(plain("a\u{1b}"), "a");
        assert_eq!(plain("a\u{1b}[3\u{e9}x"), "a[3\u{e9}x");
    }

    #[test]
    fn markdown_has_no_markup_left() {
        assert_eq!(markdown("<b>[x](y)`z`|"), "&lt;b&gt;\\[x\\]\\(y\\)\\`z\\`\\|");
        assert_eq!(markdown("a\n# b"), "a\\\\n\\# b");
    }
}

//! Small languages inside configuration values: durations, paths and command lines.

use std::time::Duration;

/// Parses `90s`, `30m`, `6h` or `1d`; the error says what to write.
pub fn duration(text: &str) -> Result<Duration, String> {
    let help = || format!("`{text}` is not a valid duration; use e.g. `90m` or `6h`");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().map_err(|_| help())?;
    let unit = match text[digits..].trim() {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(help()),
    };
    match number.checked_mul(unit) {
        Some(0) => Err(format!("`{text}` is not a positive duration; leave it out for no limit")),
        Some(seconds) if seconds <= SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        Some(_) | None => Err(format!("`{text}` is longer than a year; leave it out for no limit")),
    }
}

/// The longest duration; nothing we wait for takes longer, and larger numbers overflow clocks.
pub(super) const SECONDS_MAX: u64 = 366 * 24 * 60 * 60;

/// The reason why a path can't be used inside the repository; `None` if it can.
pub fn path_fault(path: &str) -> Option<String> {
    let why = if path.trim().is_empty() {
        "is empty; write a path inside the repository".to_owned()
    } else if path.starts_with('/') || path.starts_with('~') || has_drive(path) {
        "is not inside the repository; write it relative to the repository's root".to_owned()
    } else if path.contains('\\') {
        "has backslashes; write `/` between the parts".to_owned()
    } else if path.split('/').any(|part| part == "..") {
        "goes up with `..`; write it relative to the repository's root".to_owned()
    } else if path.chars().any(char::is_control) {
        "has a control character; remove it".to_owned()
    } else if path.split('/').next() == Some(".git") {
        "is inside `.git`, which is never part of a change".to_owned()
    } else {
        return None;
    };
    Some(format!("path `{}` {why}", path.escape_debug()))
}

fn has_drive(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':'
}

/// Splits a command line into words without a shell: quotes group, a backslash takes the next
/// character as it is. The error names what is not closed.
pub(super) fn words(command: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let open = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err("a quote is not closed"),
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => {
                            open.push(chars.next().ok_or("a quote is not closed")?);
                        }
                        Some(inside) => open.push(inside),
                    }
                }
            }
            '\\' => {
                let next = chars.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        for (text, seconds) in [("30s", 30), ("90m", 5_400), ("6h", 21_600), ("1d", 86_400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "6", "h", "-1h", "6 hours", "1.5h", "0s", "99999999999999999999d", "é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_stay_inside_the_repository() {
        for path in ["src", "src/a b.rs", "./src/", "a..b/c", "src/**/*.rs"] {
            assert_eq!(path_fault(path), None, "{path}");
        }
        for path in ["", "/etc", "~/x", "../x", "a/../b", "C:\\x", "a\\b", "a\0", ".git/hooks"] {
            assert!(path_fault(path).is_some(), "{path}");
        }
    }

    #[test]
    fn words_are_split_without_a_shell() {
        let split = |text| words(text).unwrap();
        assert_eq!(split("a  'b c' \"d \\\" e\" f\\ g"), ["a", "b c", "d \" e", "f g"]);
        assert_eq!(split("x ''"), ["x", ""]);
        assert_eq!(words("a 'b"), Err("a quote is not closed"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (duration(&text), path_fault(&text), words(&text));
        }
    }
}

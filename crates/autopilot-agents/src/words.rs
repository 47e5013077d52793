//! Splits a command of the configuration into words, without a shell.
//!
//! Quotes and backslashes group and escape as people expect of a shell; nothing is expanded, and
//! `#`, `$`, `;`, `|` and the like are plain characters.

/// A reason why a command cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    #[error("cannot split command `{command}` into words: the quote {quote} is never closed")]
    UnclosedQuote { command: String, quote: char },
    #[error("cannot split command `{command}` into words: it ends with a backslash")]
    TrailingBackslash { command: String },
    #[error("cannot split command `{command}` into words: it is empty")]
    Empty { command: String },
}

/// Splits a command into its words. The list is never empty: a command without a program is an
/// error.
pub fn split(command: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                quoted(command, &mut chars, word, '\'')?;
            }
            '"' => {
                let word = word.get_or_insert_default();
                quoted(command, &mut chars, word, '"')?;
            }
            '\\' => {
                let next = chars
                    .next()
                    .ok_or_else(|| WordsError::TrailingBackslash { command: command.to_owned() })?;
                word.get_or_insert_default().push(next);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err(WordsError::Empty { command: command.to_owned() });
    }
    Ok(words)
}

/// Reads up to the closing quote. Inside double quotes a backslash escapes only a quote or itself,
/// so that Windows paths and regular expressions survive; inside single quotes it escapes nothing.
fn quoted(
    command: &str,
    chars: &mut std::str::Chars<'_>,
    word: &mut String,
    quote: char,
) -> Result<(), WordsError> {
    while let Some(c) = chars.next() {
        if c == quote {
            return Ok(());
        }
        let escaped = chars.as_str().chars().next().filter(|next| matches!(next, '"' | '\\'));
        match escaped {
            Some(next) if c == '\\' && quote == '"' => {
                chars.next();
                word.push(next);
            }
            Some(_) | None => word.push(c),
        }
    }
    Err(WordsError::UnclosedQuote { command: command.to_owned(), quote })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_people_expect() {
        let table = [
            ("agent", vec!["agent"]),
            ("  ./my agent\t--x ", vec!["./my", "agent", "--x"]),
            (r#"a "b c" 'd "e"' f\ g"#, vec!["a", "b c", "d \"e\"", "f g"]),
            (r#"a "" ''"#, vec!["a", "", ""]),
            (r#"a "q\"q" "b\nc" 'x\y'"#, vec!["a", "q\"q", "b\\nc", "x\\y"]),
            ("a # $HOME ; b | c", vec!["a", "#", "$HOME", ";", "b", "|", "c"]),
            (r#"pre"fix ed"post"#, vec!["prefix edpost"]),
        ];
        for (command, words) in table {
            assert_eq!(split(command).unwrap(), words, "{command}");
        }
    }

    #[test]
    fn a_command_that_cannot_be_split_says_why() {
        assert!(split("a 'b").unwrap_err().to_string().ends_with("the quote ' is never closed"));
        assert!(split("a \"b").unwrap_err().to_string().contains("quote \""));
        assert!(split("a \\").unwrap_err().to_string().ends_with("ends with a backslash"));
        assert!(split("  ").unwrap_err().to_string().ends_with("into words: it is empty"));
    }
}

//! Whether the text of a task accounts for a change of a test. The text is written by a person or a
//! planner, never by the builder.

use super::OpenTest;
use crate::guard::{asks_to_change, asks_to_remove};
use crate::rows::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The shortest word that counts as asked for wherever it stands in the task. Shorter ones and numbers
/// stand in every text, so they have to be quoted there.
const WORD_CHARS_MIN: usize = 3;

rows! {
/// How a task accounts for a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
AskedChange -> &'static str {
    /// The task asks for what was done to the test.
    Text: "the task asks for it",
    /// The paths that the task may change name the file of the test, and nothing more.
    Paths: "its Allowed Paths name the file",
}}

/// The lines of a file that a change removes and adds.
#[derive(Clone, Debug, Default)]
pub struct ChangedText<'a> {
    pub removed: Vec<&'a str>,
    pub added: Vec<&'a str>,
}

/// The way in which a task accounts for a test, if it does. `lines` is what the change does to the file
/// of the test.
pub fn accounts(
    test: &OpenTest,
    task: &str,
    allowed_paths: &[String],
    lines: &ChangedText<'_>,
) -> Option<AskedChange> {
    let file = test.file.as_deref().unwrap_or(&test.id);
    let by_text = asks_to_remove(task, file)
        || asks_to_change(task, file)
        || names_test(task, test)
        || is_asked_rewriting(task, lines);
    if by_text {
        return Some(AskedChange::Text);
    }
    let is_it = |path: &String| path.trim_start_matches("./") == file;
    allowed_paths.iter().any(is_it).then_some(AskedChange::Paths)
}

/// Whether the task asks for a change of this test by its own name.
fn names_test(task: &str, test: &OpenTest) -> bool {
    let name = super::last_name(&test.id);
    asks_to_change(task, &test.id) || name != test.id && asks_to_change(task, name)
}

/// Whether the change only writes into the file what the task asks for: each new line stands for an old
/// one, and differs from it only by words that the task has.
fn is_asked_rewriting(task: &str, lines: &ChangedText<'_>) -> bool {
    let trimmed = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let (mut removed, added) = (trimmed(&lines.removed), trimmed(&lines.added));
    if added.is_empty() || added.len() != removed.len() {
        return false;
    }
    let asked = AskedWords::of(task);
    added.iter().all(|line| {
        let new = tokens(line);
        let at = removed.iter().position(|old| asked.allows(&tokens(old), &new));
        at.map(|at| removed.swap_remove(at)).is_some()
    })
}

/// The words of a task that may stand in a test from now on.
struct AskedWords<'a> {
    task: &'a str,
    words: BTreeSet<&'a str>,
    /// The text between backticks or quotation marks.
    quoted: Vec<&'a str>,
}

impl<'a> AskedWords<'a> {
    fn of(task: &'a str) -> AskedWords<'a> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words = task.split(|c| !is_word(c)).filter(|word| {
            word.chars().count() >= WORD_CHARS_MIN && word.contains(char::is_alphabetic)
        });
        let quoted = ['`', '"', '\'']
            .into_iter()
            .flat_map(|mark| task.split(mark).skip(1).step_by(2))
            .filter(|text| !text.contains('\n'))
            .collect();
        AskedWords { task, words: words.collect(), quoted }
    }

    /// Whether a line differs from another one by what the task asks for, and by something at all.
    fn allows(&self, old: &[LineToken<'_>], new: &[LineToken<'_>]) -> bool {
        old.len() == new.len()
            && old.iter().zip(new).all(|(old, new)| old == new || self.has(old, new))
    }

    fn has(&self, old: &LineToken<'_>, new: &LineToken<'_>) -> bool {
        match (old, new) {
            (LineToken::Text(old), LineToken::Text(new)) => self.has_text(old, new),
            (LineToken::Word(_), LineToken::Word(new)) => {
                self.words.contains(new) || self.is_quoted(new)
            }
            (LineToken::Text(_) | LineToken::Word(_) | LineToken::Sign(_), _) => false,
        }
    }

    /// Whether the new text stands in the task, or each word by which it differs does.
    fn has_text(&self, old: &str, new: &str) -> bool {
        let is_whole = new.chars().count() >= WORD_CHARS_MIN && self.task.contains(new);
        if is_whole || self.is_quoted(new) {
            return true;
        }
        let (old, new) = (tokens(old), tokens(new));
        !old.is_empty() && self.allows(&old, &new)
    }

    fn is_quoted(&self, word: &str) -> bool {
        let is_there =
            |text: &&str| tokens(text).contains(&LineToken::Word(word)) || **text == *word;
        !word.is_empty() && self.quoted.iter().any(is_there)
    }
}

/// A part of a line of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineToken<'a> {
    /// A name or a number.
    Word(&'a str),
    /// The text of a string.
    Text(&'a str),
    Sign(char),
}

fn tokens(line: &str) -> Vec<LineToken<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            found.push(LineToken::Word(&rest[..end]));
            rest = &rest[end..];
            continue;
        }
        let after = &rest[first.len_utf8()..];
        let end = matches!(first, '"' | '\'' | '`').then(|| string_end(after, first)).flatten();
        rest = match end {
            Some(end) => {
                found.push(LineToken::Text(&after[..end]));
                &after[end + first.len_utf8()..]
            }
            None => {
                if !first.is_whitespace() {
                    found.push(LineToken::Sign(first));
                }
                after
            }
        };
    }
    found
}

/// The end of a string that begins here, at its closing mark.
fn string_end(text: &str, mark: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == mark && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::super::OpenTestKind;
    use super::*;

    fn told(task: &str, allowed: &[&str], removed: &[&str], added: &[&str]) -> Option<AskedChange> {
        let test = OpenTest {
            id: "tests/test_greet.py::test_hello".to_owned(),
            kind: OpenTestKind::Fails,
            file: Some("tests/test_greet.py".to_owned()),
        };
        let allowed: Vec<String> = allowed.iter().map(|path| (*path).to_owned()).collect();
        let lines = ChangedText { removed: removed.to_vec(), added: added.to_vec() };
        accounts(&test, task, &allowed, &lines)
    }

    #[test]
    fn a_task_accounts_for_a_test_that_it_asks_to_change_by_name() {
        for task in [
            "Update test_hello for the new greeting",
            "Change tests/test_greet.py::test_hello to expect a comma",
            "Delete tests/test_greet.py",
            "Rewrite `test_greet.py` with fixtures",
            "Adapt tests/test_greet.py",
        ] {
            assert_eq!(told(task, &[], &["a"], &["b"]), Some(AskedChange::Text), "{task}");
        }
        for task in [
            "Say goodbye",
            "tests/test_greet.py must still pass",
            "Do not change test_hello",
            "Keep test_hello as it is",
            "Make test_hello pass",
            "Change test_hello_world",
            "Update greet.py",
        ] {
            assert_eq!(told(task, &[], &["a"], &["b"]), None, "{task}");
        }
    }

    #[test]
    fn allowed_paths_account_for_a_file_that_they_name_and_for_no_directory() {
        let paths = |path| told("Say goodbye", &[path], &["a"], &["b"]);
        assert_eq!(paths("tests/test_greet.py"), Some(AskedChange::Paths));
        assert_eq!(paths("./tests/test_greet.py"), Some(AskedChange::Paths));
        for path in ["tests/", "tests/**", "*.py", "**", "test_greet.py"] {
            assert_eq!(paths(path), None, "{path}");
        }
    }

    #[test]
    fn expected_values_change_as_the_task_asks() {
        let task =
            "`greet Ada` prints `Goodbye, Ada!` and add is called plus; the total is `42`.\n";
        for (old, new) in [
            ("assert greet() == \"Hello, Ada!\"", "assert greet() == \"Goodbye, Ada!\""),
            ("expect(greet()).toBe('Hello, Ada!')", "expect(greet()).toBe('Goodbye, Ada!')"),
            ("    assert add(1, 2) == 3", "    assert plus(1, 2) == 3"),
            ("from calc import add", "from calc import plus"),
            ("assert total() == 41", "assert total() == 42"),
            ("test \"$(greet)\" = \"Hello Ada\"", "test \"$(greet)\" = \"Goodbye Ada\""),
        ] {
            assert_eq!(told(task, &[], &[old], &[new]), Some(AskedChange::Text), "{new}");
        }
        for (old, new) in [
            ("assert greet() == \"Hello\"", "assert True"),
            ("assert greet() == \"Hello\"", "assert greet()"),
            ("assert greet() == \"Hello\"", "assert greet() != \"Hello\""),
            ("assert total() == 41", "assert total() == 40"),
            ("assert add(1, 2) == 3", "assert add(1, 2) == 4"),
            ("assert greet() == \"Hello\"", "assert greet() == \"\""),
            ("assert greet() == \"Hello\"", "assert greet() in \"Hello\""),
        ] {
            assert_eq!(told(task, &[], &[old], &[new]), None, "{new}");
        }
        let removed = ["assert a() == \"Hello\"", "assert b() == 1"];
        let added = ["assert a() == \"Goodbye\""];
        assert_eq!(told(task, &[], &removed, &added), None, "an assertion is gone");
        assert_eq!(told(task, &[], &[], &[]), None, "nothing was rewritten");
    }
}

//! Refuses new markers of unfinished work (TODO, FIXME, XXX) on added lines, unless the line was
//! only moved. In a document, in the data of a test, where the task itself is about such words, and
//! where it reads like an ordinary word of a comment, a marker is told.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::finding::visible;
use super::moved::new_lines;
use super::text::{TextKind, comment_of};
use super::{Change, ChangedLine, Finding, FindingSource, Severity};

pub(super) fn check(change: &Change, task: &str) -> Vec<Finding> {
    let task = task.to_lowercase();
    let is_topic = ["todo", "to-do", "fixme", "xxx"].iter().any(|word| task.contains(word));
    let mut told = BTreeSet::new();
    new_lines(change, |line| marker(&line.path, &line.text).is_some())
        .into_iter()
        .filter_map(|line| {
            let marker = marker(&line.path, &line.text)?;
            let severity = marker.severity(TextKind::of(&line.path), is_topic);
            // A document about such words has many of them; one line of it is enough to know.
            if severity != Severity::Blocker && !told.insert(line.path.as_str()) {
                return None;
            }
            let message = format!("new {}: `{}`", marker.word, excerpt(&line.text));
            let fix = "do it now, or remove the comment";
            let found = Finding::new(FindingSource::Todo, severity, message, fix);
            Some(found.in_file(&line.path).at_line(line.line))
        })
        .collect()
}

/// A marker on a line.
#[derive(Debug, PartialEq, Eq)]
struct Marker {
    word: String,
    place: MarkerPlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkerPlace {
    /// A comment begins with it and what it announces, as `// TODO: later`.
    Head,
    /// It stands in a comment, in code or in a string.
    Inside,
    /// It stands in a comment as an ordinary word may, as in `// the title of each todo: text`.
    Word,
}

impl Marker {
    fn severity(&self, kind: TextKind, is_topic: bool) -> Severity {
        match (kind, self.place) {
            (TextKind::Document | TextKind::Data, _) => Severity::Minor,
            (TextKind::Code, MarkerPlace::Inside | MarkerPlace::Word) if is_topic => {
                Severity::Minor
            }
            (TextKind::Code, MarkerPlace::Word) => Severity::Major,
            (TextKind::Code, MarkerPlace::Head | MarkerPlace::Inside) => Severity::Blocker,
        }
    }
}

struct MarkerPatterns {
    /// In capitals, anywhere.
    shouted: Regex,
    /// In capitals at the beginning of a comment, with any suffix.
    opening: Regex,
    /// In any case, as a heading: `todo:`, `fixme(x)`, `Todo2 -`, or all of a comment.
    heading: Regex,
    /// In any case, as the first word of a comment, and the plural as its heading.
    first: Regex,
    /// In any case, at the beginning of a clause of a comment, with what makes a marker of it.
    clause: Regex,
    /// The same anywhere in a comment.
    inside: Regex,
    /// Rust's own macro, which fails when it is reached.
    macro_call: Regex,
}

fn patterns() -> Option<&'static MarkerPatterns> {
    static ALL: LazyLock<Option<MarkerPatterns>> = LazyLock::new(|| {
        let of = |pattern: &str| Regex::new(pattern).ok();
        Some(MarkerPatterns {
            shouted: of(r"\b(TODO|FIXME)(?:_?[0-9]+)?\b")?,
            opening: of(
                r"^[\W_]*((?:TODO|FIXME|TO-DO|FIX-ME)(?:[0-9_][0-9A-Za-z_]*|[a-z]+)?|XXX[0-9]*\b[^-])",
            )?,
            heading: of(r"(?i)^[\W_]*((?:to-?do|fix-?me|xxx)_?[0-9]*)(?:\s*[:(]|\s+-|\W*$)")?,
            first: of(
                r"(?i)^[\W_]*((?:to-?do|fix-?me|xxx)_?[0-9]*)(?:[\s\[!@=]|s_?[0-9]*(?:\s*[:(\[!@=]|\s+-|\W*$))",
            )?,
            clause: of(
                r"(?i)(?:[,;.!?)]\s+|[@(\[<])((?:todo|fixme|xxx)[0-9]*)\s*(?::|\([^()]*\))",
            )?,
            inside: of(r"(?i)(?:^|[\s@(\[<])((?:todo|fixme|xxx)[0-9]*)\s*(?::|\([^()]*\))")?,
            macro_call: of(r"\b(todo|unimplemented)!\s*[(\[{]")?,
        })
    });
    ALL.as_ref()
}

fn marker(path: &str, line: &str) -> Option<Marker> {
    let patterns = patterns()?;
    // Wide and decorated letters are written as what they look like.
    let line = if line.is_ascii() { Cow::Borrowed(line) } else { line.nfkc().collect() };
    let found = |pattern: &Regex, text: &str, place| {
        let word = pattern.captures(text)?.get(1)?.as_str().trim().to_owned();
        let is_shouted = !word.contains(char::is_lowercase);
        let place = match place {
            MarkerPlace::Word if is_shouted => MarkerPlace::Inside,
            MarkerPlace::Head | MarkerPlace::Inside | MarkerPlace::Word => place,
        };
        Some(Marker { word, place })
    };
    let opens = |pattern: &Regex, text: &str| {
        let end = pattern.captures(text)?.get(1)?.end();
        let is_head = text[end..].trim_start().starts_with([':', '(']);
        found(pattern, text, if is_head { MarkerPlace::Head } else { MarkerPlace::Inside })
    };
    let comment = match TextKind::of(path) {
        TextKind::Document => Some(line.as_ref()),
        TextKind::Code | TextKind::Data => comment_of(path, &line),
    };
    let in_comment = comment.and_then(|text| {
        [&patterns.heading, &patterns.opening]
            .into_iter()
            .find_map(|pattern| opens(pattern, text))
            .or_else(|| found(&patterns.clause, text, MarkerPlace::Inside))
    });
    let as_word = || {
        let text = comment?;
        found(&patterns.inside, text, MarkerPlace::Word).or_else(|| {
            // A document may begin a sentence with the word.
            let first = TextKind::of(path) != TextKind::Document;
            first.then(|| found(&patterns.first, text, MarkerPlace::Word)).flatten()
        })
    };
    let is_rust = path.ends_with(".rs");
    // What blocks comes before what is told.
    in_comment
        .or_else(|| found(&patterns.shouted, &line, MarkerPlace::Inside))
        .or_else(|| is_rust.then(|| found(&patterns.macro_call, &line, MarkerPlace::Head))?)
        .or_else(as_word)
}

/// The added lines, without those for which an equal line was removed.
pub(super) fn not_moved<'a>(
    added: impl Iterator<Item = &'a ChangedLine>,
    removed: impl Iterator<Item = &'a ChangedLine>,
) -> Vec<&'a ChangedLine> {
    let mut gone = BTreeMap::<&str, usize>::new();
    for line in removed {
        *gone.entry(line.text.trim()).or_default() += 1;
    }
    added
        .filter(|line| match gone.get_mut(line.text.trim()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        })
        .collect()
}

pub(super) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS_MAX: usize = 100;
    let text = text.trim();
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((at, _)) => visible(&format!("{}…", &text[..at])),
        None => visible(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, line: u64, text: &str) -> ChangedLine {
        ChangedLine { path: path.into(), line, text: text.into() }
    }

    /// What is found on one added line: `blocker`, `minor` or nothing.
    fn found(path: &str, text: &str, task: &str) -> Option<Severity> {
        let change = Change { added: vec![line(path, 1, text)], ..Change::default() };
        check(&change, task).first().map(|found| found.severity)
    }

    #[test]
    fn markers_block_in_any_case_and_with_suffixes() {
        for (path, text) in [
            ("a.rs", "// TODO: later"),
            ("a.rs", "// todo: later"),
            ("a.rs", "// TODO later"),
            ("a.rs", "// Todo"),
            ("a.rs", "// fixme(x)"),
            ("a.rs", "// see XXX: later"),
            ("a.rs", "// each todo: TODO add the title"),
            ("a.rs", "todo!() // todo later"),
            ("a.rs", "//todo"),
            ("a.rs", "// FIXME(x) later"),
            ("a.rs", "// fixme (ada): later"),
            ("a.rs", "// XXX2 later"),
            ("a.rs", "// xxx: later"),
            ("a.rs", "// TODO2"),
            ("a.rs", "// TODO_ada later"),
            ("a.rs", "// TODOs: later"),
            ("a.rs", "// TO-DO: later"),
            ("a.rs", "/// @todo: later"),
            ("a.rs", " * TODO later"),
            ("a.rs", "let a = 1; // works, todo: make it right"),
            ("a.rs", "return 1 /* FIXME */;"),
            ("a.rs", "todo!()"),
            ("a.rs", "    unimplemented!(\"later\")"),
            ("a.rs", "// \u{ff34}\u{ff2f}\u{ff24}\u{ff2f}: later"),
            ("a.rs", "panic!(\"TODO\")"),
            ("a.py", "x = 1  # todo(ada): later"),
            ("a.py", "    # Fixme - later"),
            ("a.py", "    \"\"\"todo: say what it does\"\"\""),
            ("a.sh", "# todo"),
            ("a.sql", "select 1 -- todo: where"),
            ("a.html", "<!-- todo: text -->"),
            ("Makefile", "# Todo: install"),
        ] {
            assert_eq!(found(path, text, ""), Some(Severity::Blocker), "{path}: {text}");
        }
    }

    #[test]
    fn the_words_of_a_product_are_no_markers() {
        for (path, text) in [
            ("a.rs", "let todos = TODOS;"),
            ("a.rs", "let todo = Todo::new();"),
            ("a.rs", "// the todo list is sorted"),
            ("a.rs", "todo: String,"),
            ("a.rs", "*todo = 1;"),
            ("a.rs", "// mastodon: x"),
            ("a.js", "const todo = { todo: 'x' };"),
            ("a.js", "get('/todo/1');"),
            ("a.css", "#todo { color: red }"),
            ("a.sh", "mktemp /tmp/a.XXXXXX"),
            ("a.sh", "# XXX-XX-XXXX is the form of a number"),
            ("a.md", "Every todo is shown."),
        ] {
            assert_eq!(found(path, text, ""), None, "{path}: {text}");
        }
    }

    #[test]
    fn what_reads_like_an_ordinary_word_of_a_comment_is_told() {
        let topic = "Add a list of todos";
        for (path, text) in [
            ("a.ts", "// delete todo (soft delete)"),
            ("a.ts", "// each todo: title"),
            ("a.ts", " * todos: Todo[]"),
            ("a.ts", "// Todo item component"),
            ("a.ts", "// Todo el código"),
            ("a.rs", "// todo later"),
            ("a.rs", "// todo[0] is the first"),
            ("a.rs", "// fixme later"),
        ] {
            assert_eq!(found(path, text, ""), Some(Severity::Major), "{path}: {text}");
            assert_eq!(found(path, text, topic), Some(Severity::Minor), "{path}: {text}");
        }
    }

    #[test]
    fn a_document_a_fixture_and_a_string_of_the_task_s_topic_are_told() {
        let topic = "Show TODO comments of a repository";
        for (path, text, task, severity) in [
            ("docs/a.md", "TODO: write this", "", Severity::Minor),
            ("notes.txt", "- todo: buy milk", "", Severity::Minor),
            ("tests/fixtures/a.rs", "// TODO: x", "", Severity::Minor),
            ("a.rs", "let text = \"// TODO: x\";", topic, Severity::Minor),
            ("a.rs", "let text = \"// TODO: x\";", "", Severity::Blocker),
            ("a.rs", "// todo list of a person", topic, Severity::Minor),
            ("a.rs", "// TODO: count them", topic, Severity::Blocker),
            ("a.rs", "// todo: count them", topic, Severity::Blocker),
            ("a.rs", "todo!()", topic, Severity::Blocker),
            ("a.rs", "// fixme(x): count", topic, Severity::Blocker),
            ("a.rs", "// TODO (ada) count", topic, Severity::Blocker),
            ("a.rs", "// TODO comments are counted", topic, Severity::Minor),
            ("a.rs", "// TODO comments are counted", "", Severity::Blocker),
            ("a.rs", "// Todo", topic, Severity::Minor),
            ("a.rs", "// done, todo: the title", topic, Severity::Minor),
            ("a.rs", "// done, todo: the title", "", Severity::Blocker),
        ] {
            assert_eq!(found(path, text, task), Some(severity), "{path}: {text}");
        }
    }

    #[test]
    fn a_marker_is_not_exchanged_for_one_that_was_removed() {
        let new = |added: &[(&str, u64, &str)], removed: &[(&str, u64, &str)]| {
            let of = |lines: &[(&str, u64, &str)]| {
                lines.iter().map(|(path, at, text)| line(path, *at, text)).collect()
            };
            let change = Change { added: of(added), removed: of(removed), ..Change::default() };
            check(&change, "").len()
        };
        // The same words at another place are another promise.
        assert_eq!(new(&[("a.rs", 9, "// TODO")], &[("a.rs", 1, "// TODO")]), 1);
        assert_eq!(new(&[("b.rs", 1, "// TODO")], &[("a.rs", 1, "// TODO")]), 1);
        assert_eq!(new(&[("a.rs", 1, "// TODO: b")], &[("a.rs", 1, "// TODO: a")]), 1);
        // Indented anew, moved with what it belongs to, or known by its own words.
        assert_eq!(new(&[("a.rs", 1, "    // TODO")], &[("a.rs", 1, "// TODO")]), 0);
        let (add, was) = ("pub fn add() {", "// TODO");
        assert_eq!(
            new(&[("b.rs", 1, add), ("b.rs", 2, was)], &[("a.rs", 7, add), ("a.rs", 8, was)]),
            0
        );
        let own = "// TODO: take the zone from the account";
        assert_eq!(new(&[("b.rs", 1, own)], &[("a.rs", 7, own)]), 0);
        assert_eq!(new(&[("b.rs", 1, own), ("c.rs", 1, own)], &[("a.rs", 7, own)]), 1);
        // A bracket beside it shows no move.
        assert_eq!(
            new(&[("b.rs", 1, "{"), ("b.rs", 2, was)], &[("a.rs", 7, "{"), ("a.rs", 8, was)]),
            1
        );
    }
}

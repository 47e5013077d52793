//! Finds names and lines of code that are not what they look like, and names that another file
//! system or reader takes for the name of another file.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::visible;
use super::letter::{Oddity, is_normal, look, mixed_word, odd_char, spelled};
use super::text::{TextKind, comment_of, is_generated};
use super::todo::not_moved;
use super::{
    Change, ChangedFile, ChangedLine, FileStatus, Finding, FindingSource, SameName, Severity,
};

pub(super) fn check(change: &Change, task: &str) -> Vec<Finding> {
    let topic = TextTopic::of(task);
    let mut findings: Vec<Finding> = change
        .files
        .iter()
        .filter(|file| is_new_name(file))
        .flat_map(|file| topic.name(&file.path))
        .collect();
    findings.extend(change.same_names.iter().map(|same| topic.same_name(same)));
    findings.extend(topic.lines(change));
    findings
}

/// Whether a change brings the path.
pub(super) fn is_new_name(file: &ChangedFile) -> bool {
    match file.status {
        FileStatus::Added | FileStatus::Renamed | FileStatus::Copied => true,
        FileStatus::Modified
        | FileStatus::Deleted
        | FileStatus::TypeChanged
        | FileStatus::Unmerged => false,
    }
}

/// The new paths that are taken for another one of the tree where case and the form of a letter do
/// not count, or by a reader. A directory that is spelled in two ways counts once.
pub fn same_names<'a>(files: &[ChangedFile], tree: impl Iterator<Item = &'a str>) -> Vec<SameName> {
    let mut new = BTreeMap::<String, BTreeSet<&str>>::new();
    for path in files.iter().filter(|file| is_new_name(file)).map(|file| file.path.as_str()) {
        for part in parts(path) {
            new.entry(look(part)).or_default().insert(part);
        }
    }
    let mut found = BTreeMap::new();
    if new.is_empty() {
        return Vec::new();
    }
    // A directory that another file of the tree has in the same spelling is not new.
    let brought: BTreeSet<&str> =
        files.iter().filter(|file| is_new_name(file)).map(|file| file.path.as_str()).collect();
    let tree: Vec<&str> = tree.filter(|path| !brought.contains(path)).collect();
    let known: BTreeSet<&str> = tree.iter().flat_map(|path| parts(path)).collect();
    let all = brought.iter().flat_map(|path| parts(path)).chain(known.iter().copied());
    for other in all {
        let Some(alike) = new.get(&look(other)) else { continue };
        for path in alike.iter().filter(|path| **path != other && !known.contains(**path)) {
            // Of two new ones, the second is told.
            if known.contains(other) || other < *path {
                found.entry((*path).to_owned()).or_insert_with(|| other.to_owned());
            }
        }
    }
    found.into_iter().map(|(path, other)| SameName { path, other }).collect()
}

/// A path and each directory above it.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(move |end| &path[..end]).filter(|part| !part.is_empty())
}

/// What the task says of letters and names.
struct TextTopic<'a> {
    task: &'a str,
    /// The task is about such characters.
    is_letters: bool,
}

impl<'a> TextTopic<'a> {
    fn of(task: &'a str) -> TextTopic<'a> {
        const WORDS: &[&str] = &[
            "bidi",
            "confusable",
            "homoglyph",
            "invisible",
            "look-alike",
            "lookalike",
            "nfc",
            "right-to-left",
            "rtl",
            "unicode",
            "zero-width",
            "zero width",
        ];
        let lower = task.to_lowercase();
        TextTopic { task, is_letters: WORDS.iter().any(|word| lower.contains(word)) }
    }

    /// The findings about a new path.
    fn name(&self, path: &str) -> Option<Finding> {
        let is_named = self.is_letters || self.task.contains(path);
        let what = if let Some((c, oddity)) = odd_char(path) {
            format!("the name holds {} ({})", seen(oddity), spelled(&c.to_string()))
        } else if let Some(word) = mixed_word(path) {
            let word = spelled(word);
            format!("the name holds a letter that looks like a Latin one: `{word}`")
        } else if !is_normal(path) {
            let message = "the name is in an unusual form (not NFC), which some systems change";
            let fix = "write it with composed characters";
            let found = Finding::new(FindingSource::Unicode, Severity::Major, message, fix);
            return Some(found.in_file(path));
        } else {
            return None;
        };
        let severity = if is_named { Severity::Major } else { Severity::Blocker };
        let fix = "rename the file with plain letters";
        Some(Finding::new(FindingSource::Unicode, severity, what, fix).in_file(path))
    }

    fn same_name(&self, same: &SameName) -> Finding {
        let severity = match self.is_letters || self.task.contains(&same.path) {
            true => Severity::Major,
            false => Severity::Blocker,
        };
        let message = format!(
            "the name can't be told from `{}` where case, the form of letters or look-alikes do not count",
            visible(&same.other)
        );
        let fix = "choose another name, or change the file that is there";
        Finding::new(FindingSource::Unicode, severity, message, fix).in_file(&same.path)
    }

    /// The findings about new lines: one for each file and oddity, at its first line.
    fn lines(&self, change: &Change) -> Vec<Finding> {
        let is_odd = |line: &&ChangedLine| odd_line(line).is_some();
        let new =
            not_moved(change.added.iter().filter(is_odd), change.removed.iter().filter(is_odd));
        let mut first = BTreeMap::<(&str, Oddity), (OddLine, &ChangedLine)>::new();
        for line in new {
            let Some(odd) = odd_line(line) else { continue };
            let of_file = first.entry((line.path.as_str(), odd.oddity)).or_insert((odd, line));
            // The first line that is odd in code says more than an earlier one that is not.
            if let Some(odd) = odd_line(line)
                && of_file.0.is_light()
                && !odd.is_light()
            {
                *of_file = (odd, line);
            }
        }
        first.into_values().map(|(odd, line)| self.line(&odd, line)).collect()
    }

    fn line(&self, odd: &OddLine, line: &ChangedLine) -> Finding {
        let kind = if odd.is_generated { TextKind::Data } else { TextKind::of(&line.path) };
        let is_harmless = odd.in_comment && odd.oddity == Oddity::LookAlike;
        let severity = match kind {
            TextKind::Code if is_harmless => Severity::Minor,
            TextKind::Code if !self.is_letters && !self.task.contains(&odd.text) => {
                Severity::Blocker
            }
            TextKind::Code | TextKind::Data => Severity::Major,
            TextKind::Document => match odd.oddity {
                Oddity::Direction | Oddity::Invisible => Severity::Major,
                Oddity::LookAlike => Severity::Minor,
            },
        };
        let message = format!("the line holds {}: `{}`", seen(odd.oddity), spelled(&odd.text));
        let fix = "write it with plain letters, or as an escape such as `\\u{202e}`";
        let found = Finding::new(FindingSource::Unicode, severity, message, fix);
        found.in_file(&line.path).at_line(line.line)
    }
}

fn seen(oddity: Oddity) -> &'static str {
    match oddity {
        Oddity::Direction => "a character that turns the direction of writing",
        Oddity::Invisible => "a character that nobody sees",
        Oddity::LookAlike => "a letter that looks like another one",
    }
}

/// What is odd about a line.
struct OddLine {
    oddity: Oddity,
    /// The character or the word.
    text: String,
    in_comment: bool,
    /// A tool that writes the file leaves such characters in it.
    is_generated: bool,
}

impl OddLine {
    fn is_light(&self) -> bool {
        self.in_comment || self.is_generated
    }
}

/// Whether tools leave the character in files that they write.
fn is_left_by_tools(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{feff}')
}

fn odd_line(line: &ChangedLine) -> Option<OddLine> {
    if line.text.is_ascii() {
        return None;
    }
    // A mark of the encoding may begin a file.
    let text = line.text.strip_prefix('\u{feff}').filter(|_| line.line == 1).unwrap_or(&line.text);
    // What a tool leaves in its file must not hide what else is there.
    let of_tool = is_generated(&line.path) && text.contains(is_left_by_tools);
    let rest = of_tool.then(|| text.replace(is_left_by_tools, ""));
    let text = match &rest {
        Some(rest) if odd_char(rest).is_some() || mixed_word(rest).is_some() => rest,
        Some(_) | None => text,
    };
    let (oddity, found) = match odd_char(text) {
        Some(('\u{ad}', _)) if TextKind::of(&line.path) == TextKind::Document => return None,
        Some((c, oddity)) => (oddity, c.to_string()),
        None => (Oddity::LookAlike, mixed_word(text)?.to_owned()),
    };
    let comment = comment_of(&line.path, text);
    let code = comment.map_or(text, |comment| &text[..text.len() - comment.len()]);
    let in_comment = match oddity {
        Oddity::LookAlike => mixed_word(code).is_none(),
        Oddity::Direction | Oddity::Invisible => odd_char(code).is_none(),
    };
    let is_generated = is_generated(&line.path) && found.chars().all(is_left_by_tools);
    Some(OddLine { oddity, text: found, in_comment, is_generated })
}

#[cfg(test)]
mod tests {
    use super::super::FileMode;
    use super::*;

    fn file(path: &str, status: FileStatus) -> ChangedFile {
        ChangedFile {
            path: path.into(),
            status,
            old_path: None,
            link_target: None,
            mode: FileMode::Regular,
            binary: false,
        }
    }

    fn of_line(path: &str, text: &str, task: &str) -> Option<Severity> {
        let line = ChangedLine { path: path.into(), line: 1, text: text.into() };
        let change = Change { added: vec![line], ..Change::default() };
        check(&change, task).first().map(|found| found.severity)
    }

    #[test]
    fn lines_that_are_not_what_they_look_like_block_in_code() {
        use Severity::{Blocker, Major, Minor};
        for (path, text, task, severity) in [
            ("a.rs", "if a { /* \u{202e} } */", "", Some(Blocker)),
            ("a.rs", "let a\u{200b} = 1;", "", Some(Blocker)),
            ("a.rs", "if p\u{430}ss { }", "", Some(Blocker)),
            ("a.py", "x = '\u{2067}y'", "", Some(Blocker)),
            ("a.py", "x = '\u{2067}y'", "Show right-to-left text", Some(Major)),
            ("a.rs", "// p\u{430}ss", "", Some(Minor)),
            ("de.json", "{\"a\": \"b\u{200b}\"}", "", Some(Major)),
            ("web/a.min.js", "s='\u{feff}'+'\u{200b}'", "", Some(Major)),
            ("vendor/a.js", "s='\u{feff}'", "", Some(Major)),
            ("dist/a.js", "s='\u{200b}'", "", Some(Major)),
            ("dist/a.js", "s='\u{3164}'", "", Some(Blocker)),
            ("dist/a.js", "s='\u{feff}\u{202e}'", "", Some(Blocker)),
            ("dist/a.js", "s='\u{feff}'; p\u{430}ss()", "", Some(Blocker)),
            ("src/a.js", "s='\u{feff}'", "", Some(Blocker)),
            ("a.md", "b\u{202e}", "", Some(Major)),
            ("a.md", "p\u{430}ss", "", Some(Minor)),
            ("a.md", "Donau\u{ad}dampf", "", None),
            ("a.rs", "\u{feff}fn main() {}", "", None),
            ("a.rs", "let größe = \"Привет, שלום 👩\u{200d}💻\";", "", None),
            ("a.rs", "let c = '\\u{202e}';", "", None),
        ] {
            assert_eq!(of_line(path, text, task), severity, "{path}: {text:?}");
        }
    }

    #[test]
    fn what_a_tool_leaves_hides_no_later_line() {
        let line =
            |line, text: &str| ChangedLine { path: "dist/a.js".into(), line, text: text.into() };
        let added = vec![line(2, "s='\u{feff}'"), line(3, "s='\u{3164}'")];
        let found = check(&Change { added, ..Change::default() }, "");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Blocker));
    }

    #[test]
    fn an_odd_line_that_was_moved_is_not_new() {
        let line = |path: &str| ChangedLine { path: path.into(), line: 1, text: "p\u{430}".into() };
        let (added, removed) = (vec![line("a.rs")], vec![line("b.rs")]);
        assert!(check(&Change { added, removed, ..Change::default() }, "").is_empty());
    }

    #[test]
    fn names_that_are_not_what_they_look_like_block() {
        use Severity::{Blocker, Major};
        for (path, task, severity) in [
            ("src/p\u{430}ss.rs", "", Some(Blocker)),
            ("src/a\u{200b}.rs", "", Some(Blocker)),
            ("src/a\u{202e}sr.b", "", Some(Blocker)),
            ("src/p\u{430}ss.rs", "Add src/p\u{430}ss.rs", Some(Major)),
            ("docs/cafe\u{301}.md", "", Some(Major)),
            ("docs/caf\u{e9}.md", "", None),
            ("docs/Привет.md", "", None),
            ("src/Δx.jl", "", None),
        ] {
            let change = Change { files: vec![file(path, FileStatus::Added)], ..Change::default() };
            let found = check(&change, task).first().map(|found| found.severity);
            assert_eq!(found, severity, "{path:?}");
        }
        let old = file("src/p\u{430}ss.rs", FileStatus::Modified);
        assert!(check(&Change { files: vec![old], ..Change::default() }, "").is_empty());
    }

    #[test]
    fn a_new_name_that_another_one_is_taken_for_is_found() {
        let same = |new: &[&str], tree: &[&str]| -> Vec<(String, String)> {
            let files: Vec<ChangedFile> =
                new.iter().map(|path| file(path, FileStatus::Added)).collect();
            let tree = tree.iter().chain(new).copied();
            same_names(&files, tree).into_iter().map(|same| (same.path, same.other)).collect()
        };
        let one = |path: &str, other: &str| vec![(path.to_owned(), other.to_owned())];
        assert_eq!(same(&["a/Config.py"], &["a/config.py"]), one("a/Config.py", "a/config.py"));
        assert_eq!(same(&["\u{441}opy.py"], &["copy.py"]), one("\u{441}opy.py", "copy.py"));
        assert_eq!(same(&["e\u{301}"], &["\u{e9}"]), one("e\u{301}", "\u{e9}"));
        assert_eq!(same(&["Src/b.rs"], &["src/a.rs"]), one("Src", "src"));
        assert_eq!(same(&["a.rs", "A.rs"], &[]), one("a.rs", "A.rs"));
        for (new, tree) in [
            (&["a/b.rs"][..], &["a/a.rs", "b.rs"][..]),
            // The two directories were there before.
            (&["Src/b.rs"], &["src/a.rs", "Src/a.rs"]),
        ] {
            assert_eq!(same(new, tree), [], "{new:?}");
        }
        let same_names = vec![SameName { path: "A".into(), other: "a".into() }];
        let change = Change { same_names, ..Change::default() };
        assert_eq!(check(&change, "")[0].severity, Severity::Blocker);
        assert_eq!(check(&change, "Add A")[0].severity, Severity::Major);
    }
}

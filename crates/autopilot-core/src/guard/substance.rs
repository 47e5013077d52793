//! Refuses a change that only looks like one: empty files, white space and file modes. Where the
//! task asks for just that, it is a change.

use super::text::TextKind;
use super::{
    Change, ChangedFile, ChangedLine, FileMode, FileStatus, Finding, FindingSource, Severity,
};

pub(super) fn check(change: &Change, task: &str) -> Option<Finding> {
    let is_void = !change.files.is_empty()
        && change.unread_files == 0
        && change.files.iter().all(|file| is_void(change, file))
        && !is_asked(change, task);
    is_void.then(|| {
        let message = "the change adds nothing: it has only empty files, white space or file modes";
        let fix = "do what the task asks for; if nothing is to be done, say so in `notes`";
        Finding::new(FindingSource::Substance, Severity::Blocker, message, fix)
    })
}

/// Whether nothing in this file says or does anything else than before.
fn is_void(change: &Change, file: &ChangedFile) -> bool {
    let is_plain = match file.status {
        FileStatus::Added | FileStatus::Modified | FileStatus::Deleted => !file.binary,
        FileStatus::Renamed
        | FileStatus::Copied
        | FileStatus::TypeChanged
        | FileStatus::Unmerged => false,
    };
    let is_file = matches!(file.mode, FileMode::Regular | FileMode::Executable);
    let keep = |lines: &[ChangedLine]| said(lines, file);
    // White space has a meaning in texts and values.
    let is_text = TextKind::of(&file.path) != TextKind::Code && !keep(&change.added).is_empty();
    is_plain && is_file && keep(&change.added) == keep(&change.removed) && !is_text
}

/// The text of the changed lines of a file without white space, except where it parts words and
/// where the indentation has a meaning.
fn said(lines: &[ChangedLine], file: &ChangedFile) -> String {
    let mut said = String::new();
    for line in lines.iter().filter(|line| line.path == file.path) {
        let words = line.text.split_whitespace();
        let depth = line.text.len() - line.text.trim_start().len();
        if is_indented(&file.path) && depth > 0 && depth < line.text.len() {
            said.push_str(&line.text[..depth]);
        }
        for word in words {
            if said.ends_with(char::is_alphanumeric) && word.starts_with(char::is_alphanumeric) {
                said.push(' ');
            }
            said.push_str(word);
        }
    }
    said
}

fn is_indented(path: &str) -> bool {
    const EXTENSIONS: &[&str] =
        &["coffee", "fs", "haml", "hs", "mk", "nim", "pug", "py", "pyi", "sass", "yaml", "yml"];
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    EXTENSIONS.contains(&extension) || name == "makefile"
}

/// Whether the task asks for white space, modes or empty files, or names each file that comes or
/// goes.
fn is_asked(change: &Change, task: &str) -> bool {
    const WORDS: &[&str] = &[
        "blank",
        "chmod",
        "empty",
        "executable",
        "format",
        "indent",
        "line ending",
        "newline",
        "permission",
        "placeholder",
        "prettier",
        "rustfmt",
        "space",
        "style",
        "tabs",
    ];
    let task = task.to_lowercase();
    let names = |file: &ChangedFile| {
        let path = file.path.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        matches!(file.status, FileStatus::Added | FileStatus::Deleted) && task.contains(&name)
    };
    WORDS.iter().any(|word| task.contains(word)) || change.files.iter().all(names)
}

#[cfg(test)]
mod tests {
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

    fn is_refused(
        status: FileStatus,
        path: &str,
        added: &[&str],
        removed: &[&str],
        task: &str,
    ) -> bool {
        let lines = |texts: &[&str]| {
            let line = |(number, text): (u64, &&str)| ChangedLine {
                path: path.into(),
                line: number,
                text: (*text).into(),
            };
            (1..).zip(texts).map(line).collect()
        };
        let change = Change {
            files: vec![file(path, status)],
            added: lines(added),
            removed: lines(removed),
            ..Change::default()
        };
        check(&change, task).is_some()
    }

    #[test]
    fn what_changes_nothing_is_no_change() {
        use FileStatus::{Added, Deleted, Modified};
        for (status, path, added, removed, task, refused) in [
            (Added, "a.rs", &[][..], &[][..], "Say done", true),
            (Added, "a.rs", &["", "  "], &[], "Say done", true),
            (Deleted, "a.rs", &[], &[], "Say done", true),
            (Modified, "a.rs", &[], &[], "Say done", true),
            (Modified, "a.rs", &["  f(a, b)"], &["f(a,b)"], "Say done", true),
            (Modified, "a.rs", &["f(a,", "b c)"], &["f(a, b", "c)"], "Say done", true),
            (Modified, "a.rs", &["f(\"Login\")"], &["f(\"Log in\")"], "Say done", false),
            (Modified, "a.html", &["the backend"], &["the back end"], "Say done", false),
            (Modified, "a.md", &["a", "b"], &["a b"], "Say done", false),
            (Modified, "a.json", &["{ \"a\": 1 }"], &["{\"a\":1}"], "Say done", false),
            (Added, "a.md", &["", " "], &[], "Say done", true),
            (Deleted, "src/.gitkeep", &[], &[], "Remove src/.gitkeep", false),
            (Deleted, "src/.gitkeep", &[], &[], "Say done", true),
            (Modified, "a.py", &["return 1  "], &["return 1"], "Say done", true),
            (Modified, "a.py", &["    return 1"], &["return 1"], "Say done", false),
            (Modified, "a.yml", &["  a: 1"], &["a: 1"], "Say done", false),
            (Modified, "a.rs", &["f(b)"], &["f(a)"], "Say done", false),
            (Deleted, "a.rs", &[], &["f(a)"], "Say done", false),
            (Added, "pkg/__init__.py", &[], &[], "Add pkg/__init__.py", false),
            (Added, "py.typed", &[], &[], "Add an empty marker", false),
            (Modified, "run.sh", &[], &[], "Make run.sh executable", false),
            (Modified, "run.sh", &[], &[], "Say done in run.sh", true),
            (Modified, "a.rs", &["  f()"], &["f()"], "Format the code", false),
        ] {
            assert_eq!(is_refused(status, path, added, removed, task), refused, "{path} {added:?}");
        }
    }

    #[test]
    fn one_file_of_substance_is_enough() {
        let mut change =
            Change { files: vec![file("a.rs", FileStatus::Added)], ..Change::default() };
        assert!(check(&change, "").is_some());
        change.files.push(ChangedFile { binary: true, ..file("a.png", FileStatus::Added) });
        assert!(check(&change, "").is_none());
        change.files[1] = file("b.rs", FileStatus::Renamed);
        assert!(check(&change, "").is_none());
        assert!(check(&Change::default(), "").is_none(), "an empty change is another rule's");
    }
}

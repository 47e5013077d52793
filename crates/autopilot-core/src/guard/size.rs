//! Checks the size of a change: its lines, the bytes of its text, and whether all of it was read.

use super::finding::visible;
use super::text::TextKind;
use super::{Change, ChangedFile, Finding, FindingSource, Severity};

/// The bytes that a change may have for each line of its cap: three times the longest line of most
/// styles, so that text put on few long lines is counted as well.
const BYTES_PER_LINE_MAX: u64 = 240;

pub(super) fn check(change: &Change, cap: u64) -> Vec<Finding> {
    let mut findings: Vec<Finding> = diff_cap(change, cap).into_iter().collect();
    findings.extend(unread(change));
    findings.extend(change.files.iter().filter_map(hidden_text));
    findings
}

/// Checks the numbers of lines and bytes; names the files with the most of them.
fn diff_cap(change: &Change, cap: u64) -> Option<Finding> {
    let lines = change.insertions.saturating_add(change.deletions);
    let bytes = change.inserted_bytes.saturating_add(change.deleted_bytes);
    let bytes_max = cap.saturating_mul(BYTES_PER_LINE_MAX);
    let said = if lines > cap {
        let (added, removed) = (change.insertions, change.deletions);
        format!("the change has {lines} lines ({added} added, {removed} removed); the cap is {cap}")
    } else if bytes > bytes_max {
        format!(
            "the change has {} KiB of text; the cap of {cap} lines stands for at most {} KiB",
            bytes.div_ceil(1024),
            bytes_max / 1024
        )
    } else {
        return None;
    };
    let fix = "undo changes that the task does not ask for, or split the task";
    let message = format!("{said}{}", heaviest(change));
    Some(Finding::new(FindingSource::DiffCap, Severity::Blocker, message, fix))
}

fn heaviest(change: &Change) -> String {
    let mut weights = std::collections::BTreeMap::<&str, u64>::new();
    for line in change.added.iter().chain(&change.removed) {
        *weights.entry(&line.path).or_default() += 1;
    }
    let mut heaviest: Vec<(&str, u64)> = weights.into_iter().collect();
    heaviest.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let named: Vec<String> =
        heaviest.iter().take(3).map(|(path, lines)| format!("{} {lines}", visible(path))).collect();
    if named.is_empty() { String::new() } else { format!("; most in {}", named.join(", ")) }
}

/// Says what no rule has looked at.
fn unread(change: &Change) -> Option<Finding> {
    if change.unread_files > 0 {
        let files = change.unread_files;
        let message = format!("the change has {files} more files than can be checked");
        let fix = "split the task, or leave generated files out";
        return Some(Finding::new(FindingSource::DiffCap, Severity::Blocker, message, fix));
    }
    change.has_unread_lines.then(|| {
        let message = "parts of the change are too long to be checked line by line";
        let fix = "look at its longest files";
        Finding::new(FindingSource::DiffCap, Severity::Major, message, fix)
    })
}

/// Reports a program in whose text git sees no lines, such as one with a zero byte: nobody reads it
/// in the diff.
fn hidden_text(file: &ChangedFile) -> Option<Finding> {
    const PROGRAMS: &[&str] = &[
        "bash", "c", "cc", "cpp", "cs", "css", "ex", "exs", "go", "h", "hpp", "html", "java", "js",
        "jsx", "kt", "lua", "mjs", "php", "pl", "py", "rb", "rs", "scala", "sh", "sql", "swift",
        "toml", "ts", "tsx", "vue", "yaml", "yml",
    ];
    let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_program = PROGRAMS.contains(&extension.to_lowercase().as_str());
    (file.binary && is_program && TextKind::of(&file.path) == TextKind::Code).then(|| {
        let message = "git takes this program for binary, so its lines are not shown in the diff";
        let fix = "write it as plain text";
        Finding::new(FindingSource::DiffCap, Severity::Major, message, fix).in_file(&file.path)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{FileMode, FileStatus};
    use super::*;

    #[test]
    fn bytes_count_as_well_as_lines() {
        for (lines, bytes, is_found) in [
            (1, 5_000_000, true),
            (1, 100_000, false),
            (800, 800 * 100, false),
            (800, 800 * 240, false),
            (800, 800 * 240 + 1, true),
            (801, 801, true),
        ] {
            let change = Change { insertions: lines, inserted_bytes: bytes, ..Change::default() };
            let found = check(&change, 800);
            assert_eq!(!found.is_empty(), is_found, "{lines} lines of {bytes} bytes: {found:?}");
        }
        let removed = Change { deletions: 1, deleted_bytes: 5_000_000, ..Change::default() };
        assert!(check(&removed, 800)[0].message.contains("4883 KiB of text"));
    }

    #[test]
    fn what_was_not_read_is_said() {
        let files = Change { unread_files: 3, ..Change::default() };
        assert_eq!(check(&files, 800)[0].severity, Severity::Blocker);
        let lines = Change { has_unread_lines: true, ..Change::default() };
        assert_eq!(check(&lines, 800)[0].severity, Severity::Major);
    }

    #[test]
    fn a_program_without_lines_is_told() {
        let found = |path: &str, binary| {
            let file = ChangedFile {
                path: path.into(),
                status: FileStatus::Added,
                old_path: None,
                link_target: None,
                mode: FileMode::Regular,
                binary,
            };
            hidden_text(&file).is_some()
        };
        assert!(found("src/a.py", true));
        assert!(!found("src/a.py", false) && !found("logo.png", true));
        assert!(!found("tests/fixtures/utf16.js", true));
    }
}

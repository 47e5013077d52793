//! Guards: what a change must not do, checked on its facts and never on anyone's word for them.
//!
//! The same change gives the same findings in the same order.

mod conflict;
pub mod diff;
pub mod finding;
pub mod path;
mod repository;
mod test_code;
mod todo;

use serde::{Deserialize, Serialize};

pub use finding::{FINDINGS_MAX, Finding, Severity, Source, report};
pub use path::is_denied;
pub use test_code::is_test_path;

/// A change against its base: the whole of it, with staged and untracked files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub files: Vec<ChangedFile>,
    pub insertions: u64,
    pub deletions: u64,
    pub added: Vec<Line>,
    pub removed: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    pub path: String,
    pub status: Status,
    /// Where a renamed or copied file was.
    pub old_path: Option<String>,
    /// What a symbolic link points to, as it is written.
    pub link_target: Option<String>,
    pub mode: FileMode,
    pub binary: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Added,
    Modified,
    Deleted,
    Renamed,
    Copied,
    TypeChanged,
    Unmerged,
}

/// Of the new side; of the old one when the file is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    Regular,
    Executable,
    Symlink,
    Gitlink,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub path: String,
    pub line: u64,
    pub text: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Empty: everywhere but the denied.
    pub allowed_paths: &'a [String],
    pub deny_paths: &'a [String],
    pub diff_line_cap: u64,
    pub forbid_todos: bool,
}

pub fn check(change: &Change, rules: &Rules<'_>) -> Vec<Finding> {
    let mut findings = path::check(&change.files, rules.allowed_paths, rules.deny_paths);
    findings.extend(repository::check(&change.files, rules.allowed_paths));
    findings.extend(conflict::check(change));
    findings.extend(diff_cap(change, rules.diff_line_cap));
    if rules.forbid_todos {
        findings.extend(todo::check(change));
    }
    findings.extend(test_code::check(change));
    finding::limited(findings)
}

/// Insertions and deletions together; names the files that weigh most.
fn diff_cap(change: &Change, cap: u64) -> Option<Finding> {
    let total = change.insertions.saturating_add(change.deletions);
    if total <= cap {
        return None;
    }
    let mut weights = std::collections::BTreeMap::<&str, u64>::new();
    for line in change.added.iter().chain(&change.removed) {
        *weights.entry(&line.path).or_default() += 1;
    }
    let mut heaviest: Vec<(&str, u64)> = weights.into_iter().collect();
    heaviest.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let named: Vec<String> = heaviest
        .iter()
        .take(3)
        .map(|(path, lines)| format!("{} {lines}", finding::visible(path)))
        .collect();
    let most =
        if named.is_empty() { String::new() } else { format!("; most in {}", named.join(", ")) };
    Some(Finding::new(
        Source::DiffCap,
        Severity::Blocker,
        format!(
            "the change has {total} lines ({} added, {} removed), the cap is {cap}{most}",
            change.insertions, change.deletions
        ),
        "undo what the task does not ask for, or split the task",
    ))
}

#[cfg(test)]
mod tests;

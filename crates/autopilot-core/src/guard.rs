//! Guards: rules that a change must keep, checked on its facts and never on anyone's word for them.
//!
//! The same change gives the same findings in the same order.

mod conflict;
pub mod finding;
pub mod path;
mod repository;
pub mod secret;
pub mod secret_value;
mod test_code;
mod todo;

use serde::{Deserialize, Serialize};

pub use finding::{FINDINGS_MAX, Finding, FindingSource, Severity, broken_rules, doubts, report};
pub use path::is_denied;
pub use secret::{LeakForm, LeakPlace, SecretLeak};
pub use test_code::is_test_path;

/// A whole change against its base, with staged and untracked files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub files: Vec<ChangedFile>,
    pub insertions: u64,
    pub deletions: u64,
    /// The added lines, with their numbers in the new files.
    pub added: Vec<ChangedLine>,
    /// The removed lines, with their numbers in the old files.
    pub removed: Vec<ChangedLine>,
    /// The known secrets whose values the change holds.
    #[serde(default)]
    pub leaks: Vec<SecretLeak>,
}

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    pub path: String,
    pub status: FileStatus,
    /// The path that a renamed or copied file had before.
    pub old_path: Option<String>,
    /// The target of a symbolic link, as it is written.
    pub link_target: Option<String>,
    pub mode: FileMode,
    /// Whether git takes the file for binary.
    pub binary: bool,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
    Renamed,
    Copied,
    TypeChanged,
    Unmerged,
}

/// The kind of a file on the new side, or on the old one if the file is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    Regular,
    Executable,
    Symlink,
    /// A submodule or nested repository.
    Gitlink,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    pub path: String,
    pub line: u64,
    pub text: String,
}

/// The rules that hold for a change.
#[derive(Debug, Clone, Copy)]
pub struct GuardRules<'a> {
    /// The paths that may be changed; empty for all but the denied ones.
    pub allowed_paths: &'a [String],
    pub deny_paths: &'a [String],
    /// The number of lines that may be added and removed together.
    pub diff_line_cap: u64,
    /// Whether new TODO and FIXME lines are refused.
    pub forbid_todos: bool,
}

/// Checks a change and returns the findings, the most severe ones first.
pub fn check(change: &Change, rules: &GuardRules<'_>) -> Vec<Finding> {
    let mut findings = secret::check(change);
    findings.extend(path::check(&change.files, rules.allowed_paths, rules.deny_paths));
    findings.extend(repository::check(&change.files, rules.allowed_paths));
    findings.extend(conflict::check(change));
    findings.extend(diff_cap(change, rules.diff_line_cap));
    if rules.forbid_todos {
        findings.extend(todo::check(change));
    }
    findings.extend(test_code::check(change));
    finding::limited(findings)
}

/// Checks the number of inserted and deleted lines; names the files with the most of them.
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
        FindingSource::DiffCap,
        Severity::Blocker,
        format!(
            "the change has {total} lines ({} added, {} removed); the cap is {cap}{most}",
            change.insertions, change.deletions
        ),
        "undo changes that the task does not ask for, or split the task",
    ))
}

#[cfg(test)]
mod tests;

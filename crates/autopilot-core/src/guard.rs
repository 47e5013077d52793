//! Guards: rules that a change must keep, checked on its facts and never on anyone's word for them.
//!
//! The same change gives the same findings in the same order.

mod asked;
mod command_file;
mod conflict;
pub mod finding;
mod letter;
mod link;
mod moved;
pub mod path;
mod repository;
pub mod secret;
pub mod secret_value;
mod size;
mod substance;
mod test_aware;
mod test_code;
mod text;
mod todo;
mod unicode;
mod work_file;

use regex::Regex;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

pub use asked::{asks_to_change, asks_to_remove};
pub use command_file::command_file;
pub use finding::{
    FINDINGS_MAX, Finding, FindingEffect, FindingSource, Severity, broken_rules, doubts, noted,
    report,
};
pub use link::{LinkSides, TreeLinks};
pub use path::is_denied;
pub use secret::{LeakForm, LeakPlace, SecretLeak};
pub use test_code::is_test_path;
pub use unicode::same_names;

/// A whole change against its base, with staged and untracked files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub files: Vec<ChangedFile>,
    pub insertions: u64,
    pub deletions: u64,
    /// The bytes of the added lines, and of the removed ones.
    #[serde(default)]
    pub inserted_bytes: u64,
    #[serde(default)]
    pub deleted_bytes: u64,
    /// The number of changed files that are not in `files`.
    #[serde(default)]
    pub unread_files: usize,
    /// Whether lines that the rules look for may have been missed.
    #[serde(default)]
    pub has_unread_lines: bool,
    /// The added lines, with their numbers in the new files.
    pub added: Vec<ChangedLine>,
    /// The removed lines, with their numbers in the old files.
    pub removed: Vec<ChangedLine>,
    /// The new paths that can be taken for another one of the tree.
    #[serde(default)]
    pub same_names: Vec<SameName>,
    /// The symbolic links of both trees, if the change touches one.
    #[serde(default)]
    pub links: LinkSides,
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
    /// A submodule or nested repository; also what takes the place of one.
    Gitlink,
}

/// A new path that can be taken for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameName {
    pub path: String,
    pub other: String,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    pub path: String,
    pub line: u64,
    pub text: String,
}

/// The rules that hold for a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct GuardRules<'a> {
    /// The paths that may be changed; empty for all but the denied ones.
    pub allowed_paths: &'a [String],
    pub deny_paths: &'a [String],
    /// The number of lines that may be added and removed together.
    pub diff_line_cap: u64,
    /// Whether new TODO and FIXME lines are refused.
    pub forbid_todos: bool,
    /// The text of the task: what it asks for is no fault of the change.
    pub task: &'a str,
    /// The task and plan files of the run, as paths in the repository.
    pub task_files: &'a [String],
}

/// Checks a change and returns the findings, the most severe ones first.
pub fn check(change: &Change, rules: &GuardRules<'_>) -> Vec<Finding> {
    let mut findings = secret::check(change);
    findings.extend(path::check(&change.files, rules.allowed_paths, rules.deny_paths));
    findings.extend(link::check(change));
    findings.extend(repository::check(&change.files, rules.allowed_paths));
    findings.extend(unicode::check(change, rules.task));
    findings.extend(work_file::check(&change.files, rules));
    findings.extend(conflict::check(change, rules.task));
    findings.extend(size::check(change, rules.diff_line_cap));
    findings.extend(substance::check(change, rules.task));
    if rules.forbid_todos {
        findings.extend(todo::check(change, rules.task));
    }
    findings.extend(test_code::check(change, rules.task));
    findings.extend(test_aware::check(change, rules.task));
    finding::limited(findings)
}

/// Whether a line must be read however long the change or the line is: a rule may have to say
/// something about it.
pub fn is_watched(line: &str) -> bool {
    static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)to-?do|fix-?me|xxx|unimplemented!|^<<<<<<<|^>>>>>>>").ok()
    });
    !line.is_ascii() || WORDS.as_ref().is_none_or(|words| words.is_match(line))
}

#[cfg(test)]
mod tests;

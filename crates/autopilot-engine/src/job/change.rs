//! A change as git sees it, in the words of the guards.

use super::workshop::blocking;
use super::{Job, JobError};
use autopilot_core::guard::{self, ChangedFile, FileMode, Finding, Line, Rules, Status};
use autopilot_core::task_file::TaskSpec;
use autopilot_host::git::{Change, ChangeLimits, ChangedPath, LineFact, Oid, Status as GitStatus};

impl Job {
    /// The whole change of the task: base to the tree that was captured.
    pub(super) async fn change(&self) -> Result<Change, JobError> {
        let missing = || JobError::Internal("there is no work to look at".to_owned());
        let base = Oid::parse(self.task.base.as_deref().ok_or_else(missing)?)?;
        let tree = Oid::parse(self.task.tree.as_deref().ok_or_else(missing)?)?;
        let hub = self.context.workshop.hub.clone();
        blocking(move || Change::between(&hub, &base, &tree, &ChangeLimits::default())).await
    }

    pub(super) fn guard(&self, change: &Change, spec: &TaskSpec) -> Vec<Finding> {
        let config = &self.context.config;
        let mut denied = config.safety.deny_paths.clone();
        denied.extend(spec.deny_paths.iter().cloned());
        let rules = Rules {
            allowed_paths: &spec.allowed_paths,
            deny_paths: &denied,
            diff_line_cap: config.rounds.diff_line_cap,
            forbid_todos: config.safety.forbid_todos,
        };
        guard::check(&in_guard_words(change), &rules)
    }
}

fn in_guard_words(change: &Change) -> guard::Change {
    guard::Change {
        files: change.paths.iter().map(changed_file).collect(),
        insertions: change.insertions,
        deletions: change.deletions,
        added: change.added.iter().map(line).collect(),
        removed: change.removed.iter().map(line).collect(),
    }
}

fn changed_file(path: &ChangedPath) -> ChangedFile {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    ChangedFile {
        path: text(&path.path),
        status: match path.status {
            GitStatus::Added => Status::Added,
            GitStatus::Modified => Status::Modified,
            GitStatus::Deleted => Status::Deleted,
            GitStatus::Renamed => Status::Renamed,
            GitStatus::Copied => Status::Copied,
            GitStatus::TypeChanged => Status::TypeChanged,
        },
        old_path: path.old_path.as_ref().map(text),
        link_target: path.link_target.as_ref().map(text),
        mode: mode(if path.status == GitStatus::Deleted { path.old_mode } else { path.new_mode }),
        binary: path.binary,
    }
}

fn mode(mode: u32) -> FileMode {
    match mode {
        0o120_000 => FileMode::Symlink,
        0o160_000 => FileMode::Gitlink,
        0o100_755 => FileMode::Executable,
        _ => FileMode::Regular,
    }
}

fn line(fact: &LineFact) -> Line {
    Line {
        path: String::from_utf8_lossy(&fact.path).into_owned(),
        line: fact.number,
        text: fact.text.clone(),
    }
}

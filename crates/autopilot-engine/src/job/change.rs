//! A git change in the words of the guards.

use super::own_work::blocking;
use super::workshop::Workshop;
use super::{Context, Job, JobError};
use crate::leak;
use autopilot_core::command_line::has_word;
use autopilot_core::flow::FlowInput;
use autopilot_core::guard::{
    self, ChangedFile, ChangedLine, FileMode, FileStatus, Finding, GuardRules, LinkSides, SameName,
    TreeLinks,
};
use autopilot_core::prompt::BuildRules;
use autopilot_core::state::Task;
use autopilot_core::task_file::TaskSpec;
use autopilot_host::git::{
    ChangedPath, GitChange, GitError, Hub, LineFact, Oid, PathStatus, links_of, list_paths,
};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a binary file that count as one line against the limit of lines.
const BYTES_PER_LINE: u64 = 80;
/// The paths of a tree that new names are compared with.
const TREE_PATHS_MAX: usize = 500_000;
/// The mode of a submodule, as git writes it.
const SUBMODULE: u32 = 0o160_000;
/// The symbolic links of a tree that are followed.
const LINKS_MAX: usize = 10_000;

impl Job {
    /// The commit that a gate checks.
    pub(super) fn commit(&self) -> Result<Oid, JobError> {
        let missing = JobError::Internal("there is no commit to check");
        Ok(Oid::parse(self.task.commit.as_deref().ok_or(missing)?)?)
    }

    pub(super) fn base(&self) -> Result<Oid, JobError> {
        Ok(Oid::parse(self.task.base.as_deref().unwrap_or(&self.run.base))?)
    }

    /// The whole change of the task, from its base to the captured tree.
    pub(super) fn change(&self) -> Result<Arc<GitChange>, JobError> {
        let missing = || JobError::Internal("there is no work to check");
        let base = Oid::parse(self.task.base.as_deref().ok_or_else(missing)?)?;
        let tree = Oid::parse(self.task.tree.as_deref().ok_or_else(missing)?)?;
        blocking(|| self.context.workshop.change(&base, &tree))
    }

    /// The guards' findings about work on top of `base`.
    pub(super) fn findings_in(
        &self,
        base: &Oid,
        tree: &Oid,
        spec: &TaskSpec,
    ) -> Result<Vec<Finding>, JobError> {
        let change = blocking(|| self.context.workshop.change(base, tree))?;
        self.guard(&change, spec)
    }

    pub(super) fn guard(
        &self,
        change: &GitChange,
        spec: &TaskSpec,
    ) -> Result<Vec<Finding>, JobError> {
        let Context { workshop: Workshop { hub, .. }, border, .. } = &*self.context;
        let leaks = blocking(|| border.leaks_in_change(hub, &change.base_tree, &change.tree))?;
        let rules = BuildRules::of(&self.context.config, spec);
        let mut facts =
            guard::Change { leaks: leak::in_guard_words(&leaks), ..in_guard_words(change) };
        facts.same_names = blocking(|| same_names(hub, change, &facts.files))?;
        facts.links = blocking(|| link_sides(hub, change))?;
        let mut findings =
            guard::check(&facts, &GuardRules { task_files: &self.task_files()?, ..rules.guards() });
        findings.extend(self.touched_commands(change, spec));
        Ok(findings)
    }

    /// The task and plan files of the run, as paths in the repository.
    fn task_files(&self) -> Result<Vec<String>, JobError> {
        let state = self.state()?;
        let root = &self.context.workshop.repo.root;
        let in_repository = |task: &Task| {
            let path = Path::new(&task.spec.source);
            Some(path.strip_prefix(root).unwrap_or(path).to_str()?.to_owned())
        };
        Ok(match state.run.flow.row().input {
            FlowInput::TaskFiles | FlowInput::PlanFile => {
                state.tasks.iter().filter_map(in_repository).filter(|it| !it.is_empty()).collect()
            }
            FlowInput::Text => Vec::new(),
        })
    }

    /// Findings about changed files that a gate's command names: such a change also changes the
    /// gate, so the reviewer must see it.
    fn touched_commands(&self, change: &GitChange, spec: &TaskSpec) -> Vec<Finding> {
        let commands = self.context.config.commands.all(&spec.commands);
        let task = spec.text();
        let mut findings = Vec::new();
        for path in &change.paths {
            let file = path.display();
            for (name, line) in &commands {
                if has_word(line, &file) {
                    let allowed = &spec.allowed_paths;
                    findings.push(guard::command_file(&file, name, &task, allowed));
                }
            }
        }
        findings
    }
}

/// The new paths of a change that can be taken for others of its tree.
fn same_names(
    hub: &Hub,
    change: &GitChange,
    files: &[ChangedFile],
) -> Result<Vec<SameName>, GitError> {
    let has_new = change.paths.iter().any(|path| {
        matches!(path.status, PathStatus::Added | PathStatus::Renamed | PathStatus::Copied)
    });
    if !has_new {
        return Ok(Vec::new());
    }
    let listing = list_paths(hub, &change.tree, TREE_PATHS_MAX)?;
    Ok(guard::same_names(files, listing.paths.iter().map(String::as_str)))
}

/// The symbolic links before and after a change; none if it touches none.
fn link_sides(hub: &Hub, change: &GitChange) -> Result<LinkSides, GitError> {
    if !change.paths.iter().any(ChangedPath::touches_link) {
        return Ok(LinkSides::default());
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let links = |tree: &Oid| -> Result<(TreeLinks, bool), GitError> {
        let listing = links_of(hub, tree, LINKS_MAX)?;
        let links = listing.links.into_iter().map(|(path, target)| (text(path), text(target)));
        Ok((links.collect(), listing.is_cut))
    };
    let ((base, base_is_cut), (head, head_is_cut)) =
        (links(&change.base_tree)?, links(&change.tree)?);
    Ok(LinkSides { base, head, are_cut: base_is_cut || head_is_cut })
}

pub(super) fn in_guard_words(change: &GitChange) -> guard::Change {
    guard::Change {
        files: change.paths.iter().map(changed_file).collect(),
        insertions: change.insertions + change.binary_bytes / BYTES_PER_LINE,
        deletions: change.deletions,
        inserted_bytes: change.inserted_bytes,
        deleted_bytes: change.deleted_bytes,
        unread_files: change.paths_left_out,
        has_unread_lines: change.lines_unread,
        added: change.added.iter().map(line).collect(),
        removed: change.removed.iter().map(line).collect(),
        same_names: Vec::new(),
        links: LinkSides::default(),
        leaks: Vec::new(),
    }
}

fn changed_file(path: &ChangedPath) -> ChangedFile {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    ChangedFile {
        path: text(&path.path),
        status: match path.status {
            PathStatus::Added => FileStatus::Added,
            PathStatus::Modified => FileStatus::Modified,
            PathStatus::Deleted => FileStatus::Deleted,
            PathStatus::Renamed => FileStatus::Renamed,
            PathStatus::Copied => FileStatus::Copied,
            PathStatus::TypeChanged => FileStatus::TypeChanged,
        },
        old_path: path.old_path.as_ref().map(text),
        link_target: path.link_target.as_ref().map(text),
        mode: mode(told_mode(path)),
        binary: path.binary,
    }
}

/// The mode that tells what became of a path: the old one of a path that is gone, or was a submodule.
fn told_mode(path: &ChangedPath) -> u32 {
    let is_gone = path.status == PathStatus::Deleted;
    if is_gone || path.old_mode == SUBMODULE { path.old_mode } else { path.new_mode }
}

fn mode(mode: u32) -> FileMode {
    match mode {
        0o120_000 => FileMode::Symlink,
        SUBMODULE => FileMode::Gitlink,
        0o100_755 => FileMode::Executable,
        _ => FileMode::Regular,
    }
}

fn line(fact: &LineFact) -> ChangedLine {
    ChangedLine {
        path: String::from_utf8_lossy(&fact.path).into_owned(),
        line: fact.number,
        text: fact.text.clone(),
    }
}

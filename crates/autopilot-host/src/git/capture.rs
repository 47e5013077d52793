//! The capture of an agent's work from a slot into the hub: its files as a tree, its commits as a
//! checked pack. Nothing in the slot is executed, and its `.git` is read as plain files only.

mod commits;
mod measure;
mod set_aside;
mod submodules;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::command::{CommandError, CommandStatus, TRANSFER_TIMEOUT};
use super::commit::{NewCommit, TASK, trailers, write_commit};
use super::disposable;
use super::error::{GitError, OnFile};
use super::hub::{AGENTS_COMMITS, ExpectedRef};
use super::index_file::{IndexFile, has_content};
use super::name::ref_component;
use super::object::Oid;
use super::slot::{Slot, SlotNote};
use super::sweep::{loosen, remove_tree};
use super::tree_file::FileDifference;
use crate::fail;
use crate::patience::{self, CutShort};
pub(crate) use measure::MeasuredFiles;
use measure::NestedFiles;
pub use measure::{CaptureCaps, Oversize};
pub use set_aside::OVERSIZE;

/// One try of a step of a task, after which commits, merges and salvage refs are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptName<'a> {
    /// The name of the task.
    pub task: &'a str,
    /// The id of the attempt, unique in its run.
    pub id: &'a str,
}

impl AttemptName<'_> {
    /// Returns the ref that keeps the work of this attempt.
    pub fn salvage_ref(&self) -> String {
        format!("refs/autopilot/salvage/{}/{}", ref_component(self.task), ref_component(self.id))
    }

    fn commits_prefix(&self) -> String {
        format!("{AGENTS_COMMITS}{}/{}", ref_component(self.task), ref_component(self.id))
    }
}

/// The facts of a capture.
#[derive(Clone, Debug)]
pub struct CaptureRequest<'a> {
    /// The attempt that worked in the slot.
    pub attempt: AttemptName<'a>,
    /// The commit the slot was prepared with.
    pub base: &'a Oid,
    /// The time of the salvage commit, in seconds since 1970.
    pub now: i64,
}

/// A fact about the slot that a guard must know and that the tree alone does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// There is a repository inside the slot. Its files are in the tree as plain files; no gitlink
    /// is.
    NestedRepository { path: Vec<u8> },
    /// Git could not read some files even after permissions were repaired; the tree lacks them.
    Unreadable { reason: String },
    /// The agent made commits that are broken or malformed; the files they led to are in the tree.
    CommitsNotTaken { reason: String },
    /// The agent removed or replaced its `.git`.
    GitDirectoryGone,
    /// There are more refs and reflog entries than are looked at.
    TooManyRefs,
    /// The new and changed files are more than is taken. What was left out is at `kept`.
    Oversize { what: Box<Oversize>, kept: PathBuf },
    /// Files in the directory of a submodule were changed, which is in the tree as it was. The ref
    /// `kept` holds all files as they were found.
    SubmoduleEdited { path: Vec<u8>, files: Vec<Vec<u8>>, kept: String },
    /// New files, such as a build leaves, are in the directory of a submodule whose own files are as they
    /// were. The tree does not have them; the ref `kept` does.
    SubmoduleLittered { path: Vec<u8>, files: Vec<Vec<u8>>, kept: String },
    /// A commit that the agent made names another commit of a submodule, which is in the tree as it
    /// was.
    SubmoduleMoved { path: Vec<u8> },
    /// The files could not be read in the time there was. The whole worktree is at `kept`.
    OutOfTime { kept: PathBuf },
}

/// How much of a path that is too long is told.
const PATH_CHARS_TOLD_MAX: usize = 80;

/// The agent's work as the hub now holds it.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The files of the slot.
    pub tree: Oid,
    /// The files of the slot with those of its submodules, where somebody has edited the latter.
    pub with_submodules: Option<Oid>,
    /// The salvage commit that holds the tree, unless the tree is the base's own.
    pub commit: Option<Oid>,
    /// The ref that keeps the salvage commit.
    pub salvage_ref: String,
    /// Whether something was saved that no ref held before.
    pub newly_saved: bool,
    /// The commits that the agent made itself, newest first, kept reachable in the hub.
    pub agent_commits: Vec<Oid>,
    /// The commit that the agent's HEAD was at.
    pub agent_head: Option<Oid>,
    /// The ref that the agent's HEAD is on; `None` when it is detached.
    pub agent_head_ref: Option<String>,
    /// Whether the agent has stashed something.
    pub agent_stashed: bool,
    /// Whether the agent changed its `.git/config` or added hooks. They run nowhere; this is for
    /// the record.
    pub git_settings_changed: bool,
    /// The facts that a guard must know.
    pub violations: Vec<Violation>,
}

/// A tree of the slot's files as they are.
pub(crate) struct TreeSnapshot {
    pub tree: Oid,
    /// The files with those of submodules, where somebody has edited the latter.
    pub with_submodules: Option<Oid>,
    pub violations: Vec<Violation>,
}

impl Slot {
    /// Takes all files that git does not ignore, and the agent's own commits, into the hub.
    pub fn capture(&self, request: &CaptureRequest<'_>) -> Result<Capture, GitError> {
        if !self.is_dir() {
            return Err(GitError::SlotMissing { path: self.dir.clone() });
        }
        fs::create_dir_all(&self.own).on("create", &self.own)?;
        let TreeSnapshot { tree, with_submodules, mut violations } = match self.take_files(request)
        {
            Ok(snapshot) => snapshot,
            Err(GitError::Oversize(what)) => return self.set_aside(request, Some(what)),
            Err(error) => match patience::cut_short() {
                // Trying again would take as long again.
                Some(CutShort::OutOfTime) => return self.set_aside(request, None),
                Some(CutShort::Unwanted) | None => return Err(error),
            },
        };
        // First of all the files: commits of the agent's own can take longer than there is time.
        let (commit, saved) = self.salvage(request, &tree)?;
        let found = disposable::read(&self.dir);
        let taken = self.take_commits(request, found.as_ref(), &mut violations)?;
        violations.extend(self.moved_submodules(request, found.as_ref())?);
        let found = found.unwrap_or_default();
        Ok(Capture {
            tree,
            with_submodules,
            commit,
            salvage_ref: request.attempt.salvage_ref(),
            newly_saved: saved || taken.newly_saved,
            agent_commits: taken.commits,
            agent_head: found.head,
            agent_head_ref: found.head_ref,
            agent_stashed: found.stash,
            git_settings_changed: self.settings_changed(),
            violations,
        })
    }

    /// Takes the files that git does not ignore into the hub. Files that are too large for that are
    /// moved out of the way first.
    fn take_files(&self, request: &CaptureRequest<'_>) -> Result<TreeSnapshot, GitError> {
        let note = self.note();
        let safe = note.as_ref().map(|note| &note.safe_tree);
        let candidates: Vec<&Oid> = safe.into_iter().chain([request.base]).collect();
        if let Some(tree) = self.untouched_tree(&candidates)? {
            return Ok(TreeSnapshot { tree, with_submodules: None, violations: Vec::new() });
        }
        let (index, filled) = (self.scratch_index()?, self.hub().expanded(request.base)?);
        let measured = MeasuredFiles::NewAndChanged;
        let first = self.snapshot_tree(&index, measured, &filled);
        let mut snapshot = match first {
            Err(GitError::Oversize(what)) if !what.is_whole() => {
                let kept = self.move_aside(request, &index, &what.left_out)?;
                let mut rest = self.snapshot_tree(&index, measured, &filled)?;
                rest.violations.push(Violation::Oversize { what, kept });
                rest
            }
            Err(error @ GitError::Oversize(_)) => return Err(error),
            Err(error) if error.is_cut_short() => return Err(error),
            Err(_) => {
                // The index is only a cache; one cut short by a crash costs reading every file.
                remove_tree(&index)?;
                let again = self.snapshot_tree(&index, measured, &filled);
                again.map_err(GitError::of_worktree)?
            }
            Ok(snapshot) => snapshot,
        };
        snapshot.tree = self.without_renormalised(&index, &filled, snapshot.tree)?;
        // The next look at the slot begins with what this one has read.
        let captured = self.captured_index();
        if index.exists() {
            fs::rename(&index, &captured).on("keep", &captured)?;
        }
        self.without_submodules(request, snapshot)
    }

    /// Makes a copy of the index, so that each capture starts from the prepared state. The copy
    /// keeps the original's time: git rereads files that changed in the very second the index was
    /// written, and would trust them if the copy looked younger.
    fn scratch_index(&self) -> Result<PathBuf, GitError> {
        let (from, to) = (self.index(), self.own.join("capture.index"));
        remove_tree(&to)?;
        remove_tree(&self.own.join("capture.index.lock"))?;
        if from.exists() {
            copy_with_time(&from, &to)?;
        }
        Ok(to)
    }

    /// Writes the slot's files as a tree, nested repositories as plain files, unless they are more
    /// than is taken.
    pub(crate) fn snapshot_tree(
        &self,
        index: &Path,
        measured: MeasuredFiles,
        base: &Oid,
    ) -> Result<TreeSnapshot, GitError> {
        let mut violations = Vec::new();
        let survey = self.survey(index, measured)?;
        if let Some(oversize) = survey.over(self.pools.caps) {
            return Err(GitError::Oversize(Box::new(oversize)));
        }
        // What git did not list is as the index has it.
        if !(survey.is_empty() && measured == MeasuredFiles::NewAndChanged) {
            self.add_all(index, &survey.nested, &mut violations)?;
        }
        for nested in survey.nested {
            self.add_nested(index, nested.files)?;
            violations.push(Violation::NestedRepository { path: nested.path });
        }
        let tree = self.write_tree(index, base)?;
        Ok(TreeSnapshot { tree, with_submodules: None, violations })
    }

    /// Writes the files of an index as a tree. Git does it where it would refuse a file, and where
    /// it would keep directories of the base that nobody writes like that any more.
    fn write_tree(&self, index: &Path, base: &Oid) -> Result<Oid, GitError> {
        let hub = self.hub();
        let written = IndexFile::read(index, hub.name_bytes())
            .map(|index| index.files())
            .filter(|files| hub.writes_like(base) && hub.has_all(files))
            .and_then(|files| hub.write_trees(&files));
        match written {
            Some(tree) => Ok(tree),
            None => {
                hub.git_in("write the tree of the slot", &self.dir, index).arg("write-tree").oid()
            }
        }
    }

    /// Restores the form of files that nobody changed. Git writes a file it reads again in the form
    /// its attributes ask for; one that was committed in another form and not changed since goes
    /// back to the form it has in the base.
    fn without_renormalised(&self, index: &Path, base: &Oid, tree: Oid) -> Result<Oid, GitError> {
        if self.hub().tree_of(base)? == tree {
            return Ok(tree);
        }
        let git = |operation: &str| self.hub().git_in(operation, &self.dir, index);
        let mut restored = Vec::new();
        for FileDifference { path, old, new } in self.hub().differences(base, &tree)? {
            let (Some((old_mode, old)), Some((new_mode, new))) = (old, new) else { continue };
            let is_file = matches!(old_mode, 0o100_644 | 0o100_755);
            if old_mode != new_mode || !is_file || self.is_as_on_disk(&path, &new) {
                continue;
            }
            let read = git("read a file of the base").args(["cat-file", "blob", old.as_str()]).ok();
            // Nobody writes text of that size for line ends to matter; it stays as it was taken.
            if matches!(read, Err(CommandError::TooLong { .. })) {
                continue;
            }
            let blob = read?;
            let again = git("write a file in the form of today")
                .args(["hash-object", "--stdin", "--path"])
                .arg(OsString::from_vec(path.clone()))
                .stdin(blob)
                .oid()?;
            if again == new {
                restored.extend_from_slice(format!("{old_mode:o} {old}\t").as_bytes());
                restored.extend_from_slice(&path);
                restored.push(0);
            }
        }
        if restored.is_empty() {
            return Ok(tree);
        }
        git("keep the form of files nobody changed")
            .args(["update-index", "-z", "--index-info"])
            .stdin(restored)
            .ok()?;
        git("write the tree of the slot").arg("write-tree").oid()
    }

    /// Returns whether git took a file as it is on the disk, byte by byte. Its form is then the one
    /// that somebody gave it, unless a filter of the user's has a say in that.
    fn is_as_on_disk(&self, path: &[u8], taken: &Oid) -> bool {
        let path = self.dir.join(OsStr::from_bytes(path));
        let found = path.symlink_metadata();
        !self.hub().has_filters() && found.is_ok_and(|met| has_content(&path, &met, taken))
    }

    fn add_all(
        &self,
        index: &Path,
        nested: &[NestedFiles],
        violations: &mut Vec<Violation>,
    ) -> Result<(), GitError> {
        let add = |more: &[&str]| {
            self.hub()
                .git_in("take the files of the slot", &self.dir, index)
                .args(["add", "-A"])
                .args(more)
                .args(["--", "."])
                .args(nested.iter().map(|nested| {
                    OsString::from_vec([b":(exclude,literal)".as_slice(), &nested.path].concat())
                }))
                .timeout(TRANSFER_TIMEOUT)
                .run()?
                .expect_code(&[0])
        };
        match add(&[]) {
            // A directory that git can't open is left out with no more than a warning.
            Ok(done) if done.stderr.is_empty() => return Ok(()),
            Err(error) if error.is_cut_short() => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        let too_long = loosen(&self.dir)?;
        if let Some(first) = too_long.first() {
            let first = first.strip_prefix(&self.dir).unwrap_or(first).to_string_lossy();
            let begins: String = first.chars().take(PATH_CHARS_TOLD_MAX).collect();
            let reason = format!("a path is too long to be read; it begins with `{begins}`");
            violations.push(Violation::Unreadable { reason });
        }
        remove_tree(&index.with_extension("index.lock"))?;
        let Err(first) = add(&[]) else { return Ok(()) };
        if first.is_cut_short() {
            return Err(first.into());
        }
        match add(&["--ignore-errors"]) {
            // Git exits with 1 when some files were left out and with 128 when it gave up.
            Ok(_) => {}
            Err(CommandError::Failed { status: CommandStatus::Code(1), .. }) => {}
            Err(other) => return Err(other.into()),
        }
        violations.push(Violation::Unreadable { reason: first.to_string() });
        Ok(())
    }

    /// Adds the files of a nested repository as plain files.
    fn add_nested(&self, index: &Path, files: Vec<u8>) -> Result<(), GitError> {
        self.hub()
            .git_in("take the files of a nested repository", &self.dir, index)
            .args(["update-index", "--add", "-z", "--stdin"])
            .stdin(files)
            .timeout(TRANSFER_TIMEOUT)
            .ok()?;
        Ok(())
    }

    /// Keeps the tree under the attempt's salvage ref, unless another ref holds it already.
    fn salvage(
        &self,
        request: &CaptureRequest<'_>,
        tree: &Oid,
    ) -> Result<(Option<Oid>, bool), GitError> {
        let hub = self.hub();
        let name = request.attempt.salvage_ref();
        let old = hub.resolve(&name)?;
        if let Some(commit) = &old
            && hub.tree_of(commit)? == *tree
        {
            self.remember(request, tree)?;
            return Ok((old, false));
        }
        let safe = self.note().map(|note| note.safe_tree);
        if *tree == hub.tree_of(request.base)? || safe.as_ref() == Some(tree) {
            return Ok((None, false));
        }
        // The work that this attempt left here before stays reachable as a second parent.
        let parents: Vec<Oid> = [request.base.clone()].into_iter().chain(old.clone()).collect();
        let AttemptName { task, id } = request.attempt;
        let message = trailers(&format!("Salvage of {task} {id}"), &[(TASK, task)]);
        let (parents, identity, now) = (&*parents, &self.pools.identity, request.now);
        let new = NewCommit { tree, parents, message: &message, identity, now };
        let commit = write_commit(hub, &new)?;
        hub.set_ref(&name, &commit, ExpectedRef::of(&old))?;
        fail::point("salvage.done");
        self.remember(request, tree)?;
        Ok((Some(commit), true))
    }

    fn remember(&self, request: &CaptureRequest<'_>, tree: &Oid) -> Result<(), GitError> {
        self.write_note(&SlotNote {
            task: request.attempt.task.to_owned(),
            attempt: request.attempt.id.to_owned(),
            base: request.base.clone(),
            safe_tree: tree.clone(),
        })
    }

    fn settings_changed(&self) -> bool {
        let git = self.dir.join(".git");
        let hooks =
            fs::read_dir(git.join("hooks")).is_ok_and(|mut entries| entries.next().is_some());
        let planted = git.join("info/attributes").symlink_metadata().is_ok();
        let as_given = fs::read(self.own.join("git-config")).ok();
        let config = git.join("config");
        let plain = config.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() < 1024 * 1024);
        hooks || planted || !plain || fs::read(config).ok() != as_given
    }
}

/// Makes a copy that is as old as the original.
pub(crate) fn copy_with_time(from: &Path, to: &Path) -> Result<(), GitError> {
    fs::copy(from, to).on("copy", from)?;
    let modified = from.metadata().and_then(|meta| meta.modified()).on("inspect", from)?;
    let file = fs::File::options().write(true).open(to).on("open", to)?;
    file.set_modified(modified).on("set the time of", to)
}

//! Filling a layer with a commit: only what differs from the seed's tree is deleted and written.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};

use super::error::{ColdReason, OnPath, WarmError};
use super::layer::{GateLayer, LayerKind, WrittenFile};
use super::mark::{TreeMarks, path_of};
use crate::dir;
use crate::git::command::TRANSFER_TIMEOUT;
use crate::git::tree_file::SUBMODULE;
use crate::git::{GitError, Oid};

const ATTRIBUTES: &str = ".gitattributes";

/// What filling a layer did, by paths from the top of the worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerFill {
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// The files that the commit no longer has. What the base built of them may still be in the
    /// seed.
    pub deleted: Vec<PathBuf>,
}

/// A path that differs between two trees.
struct TreeDifference {
    path: PathBuf,
    old_mode: u32,
    /// The mode in the wanted tree; 0 if it does not have the path.
    new_mode: u32,
}

pub(super) fn fill(layer: &mut GateLayer, commit: &Oid) -> Result<LayerFill, WarmError> {
    let hub = layer.store.slots.hub.clone();
    let wanted = hub.tree_of(commit)?;
    let differences = between(layer, &wanted)?;
    check(layer, &differences)?;
    let is_gone = |difference: &&TreeDifference| difference.new_mode == 0;
    let deleted: Vec<PathBuf> =
        differences.iter().filter(is_gone).map(|found| found.path.clone()).collect();
    let written: Vec<&TreeDifference> =
        differences.iter().filter(|found| found.new_mode != 0).collect();
    let tree = layer.tree_outside();
    dir::create(&tree).at("create", &tree)?;
    delete(layer, &tree, &deleted, &written)?;
    layer.marks.remove(&deleted);
    if !written.is_empty() {
        let index = layer.index()?;
        let list: Vec<u8> = written
            .iter()
            .flat_map(|found| [found.path.as_os_str().as_bytes(), b"\0"].concat())
            .collect();
        let git = |words: &str| hub.git_in(format!("{words} {commit}"), &tree, &index);
        git("read")
            .args(["read-tree", wanted.as_str()])
            .timeout(TRANSFER_TIMEOUT)
            .ok()
            .map_err(GitError::from)?;
        git("write the files of")
            .args(["checkout-index", "-f", "-z", "--stdin"])
            .stdin(list)
            .timeout(TRANSFER_TIMEOUT)
            .ok()
            .map_err(GitError::from)?;
    }
    let mut paths = Vec::new();
    for found in written {
        let mark = layer.marks.read_written(&tree, &found.path, found.new_mode)?;
        layer.marks.insert(found.path.clone(), mark);
        layer.written.insert(found.path.clone(), WrittenFile::default());
        paths.push(found.path.clone());
    }
    Ok(LayerFill { written: paths, deleted })
}

/// Lists what differs between the seed's tree and the wanted one. A rename is a deletion and a new
/// file.
fn between(layer: &GateLayer, wanted: &Oid) -> Result<Vec<TreeDifference>, WarmError> {
    let base = &layer.seed.seal().tree;
    let differences = layer.store.slots.hub.differences(base, wanted)?.into_iter();
    let mode = |facts: Option<(u32, Oid)>| facts.map_or(0, |(mode, _)| mode);
    Ok(differences
        .map(|found| TreeDifference {
            path: path_of(&found.path),
            old_mode: mode(found.old),
            new_mode: mode(found.new),
        })
        .collect())
}

/// Refuses what a layer can't give as a new worktree would.
fn check(layer: &GateLayer, differences: &[TreeDifference]) -> Result<(), WarmError> {
    let seed_tree = super::room::RoomPaths::below(&layer.seed.root()).tree;
    for TreeDifference { path, old_mode, new_mode } in differences {
        let path = path.clone();
        if *old_mode == SUBMODULE || *new_mode == SUBMODULE {
            return Err(WarmError::GoCold(ColdReason::Submodule { path }));
        }
        if path.file_name().is_some_and(|name| name == ATTRIBUTES) {
            return Err(WarmError::GoCold(ColdReason::Attributes { path }));
        }
        if *old_mode == 0
            && let Some(path) = untracked_on_the_way(&layer.marks, &seed_tree, &path)
        {
            return Err(WarmError::GoCold(ColdReason::BuildOutput { path }));
        }
    }
    Ok(())
}

/// Returns what the seed has at a path, or on the way to it, that its commit does not have.
fn untracked_on_the_way(marks: &TreeMarks, seed_tree: &Path, path: &Path) -> Option<PathBuf> {
    let mut way: Vec<&Path> = path.ancestors().filter(|part| *part != Path::new("")).collect();
    way.reverse();
    for part in way {
        if marks.file(part).is_some() {
            // A tracked file or link, which this commit turns into a directory.
            return None;
        }
        if !marks.has_dir(part) {
            let is_there = seed_tree.join(part).symlink_metadata().is_ok();
            return is_there.then(|| part.to_path_buf());
        }
    }
    // The path is a directory in the seed: the file takes its place, with all that was in it.
    None
}

/// Deletes files. A directory in which the wanted tree has nothing goes as a whole, with what the
/// build left in it: a new worktree would not have it.
fn delete(
    layer: &GateLayer,
    tree: &Path,
    deleted: &[PathBuf],
    written: &[&TreeDifference],
) -> Result<(), WarmError> {
    let mut left = layer.marks.clone();
    left.remove(deleted);
    for found in written {
        let mark = super::mark::FileMark { mode: found.new_mode, digest: String::new() };
        left.insert(found.path.clone(), mark);
    }
    let mut doomed = BTreeSet::new();
    for path in deleted {
        let is_empty = |dir: &&Path| **dir != *Path::new("") && !left.has_dir(dir);
        // The ancestors come from the innermost to the outermost.
        let outermost = path.ancestors().skip(1).filter(is_empty).last();
        doomed.insert(outermost.unwrap_or(path).to_path_buf());
    }
    for path in doomed {
        let full = tree.join(&path);
        let is_taken = left.file(&path).is_some() || left.has_dir(&path);
        match layer.kind {
            LayerKind::Reflink | LayerKind::Copy => {
                dir::remove(&full).at("delete", &full)?;
            }
            // What is written in its place hides what the seed has there.
            LayerKind::Overlay if is_taken => {}
            LayerKind::Overlay => {
                if let Some(parent) = full.parent() {
                    dir::create(parent).at("create", parent)?;
                }
                white_out(&full).at("delete", &full)?;
            }
        }
    }
    Ok(())
}

/// Makes the mark by which an overlay takes a path of the lower directory for deleted. It needs no
/// privilege.
pub(super) fn white_out(path: &Path) -> std::io::Result<()> {
    Ok(mknod(path, SFlag::S_IFCHR, Mode::empty(), 0)?)
}

/// Returns whether no directory on the way to a path is a link.
pub(super) fn is_reached_without_links(root: &Path, path: &Path) -> bool {
    let mut dirs = path.ancestors().skip(1);
    dirs.all(|dir| fs::symlink_metadata(root.join(dir)).is_ok_and(|met| met.is_dir()))
}

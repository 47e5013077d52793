//! Comparing the tracked files of a room or a layer with what they must be, by content.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::error::{OnPath, WarmError};
use super::layer::{GateLayer, LayerKind, WrittenFile};
use super::mark::{FileMark, TreeMarks};
use crate::dir::open_up;
use crate::patience;

/// What commands did to tracked files, by paths from the top of the worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerDifferences {
    /// The tracked files that differ from the commit by content, mode or kind, or are gone.
    pub changed: Vec<PathBuf>,
    /// The files of the change that were written or dated during the command and are now as before.
    /// A build in between may have taken them for unchanged, and used what the base built.
    pub touched: Vec<PathBuf>,
}

impl LayerDifferences {
    /// Returns whether no tracked file was changed or touched.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.touched.is_empty()
    }
}

/// Returns the tracked files that differ in a plain directory.
pub(super) fn of_tree(marks: &TreeMarks, tree: &Path) -> Result<Vec<PathBuf>, WarmError> {
    let mut walk = TreeWalk { marks, seen: BTreeSet::new(), changed: BTreeSet::new() };
    walk.plain(tree)?;
    let gone = marks.files().map(|(path, _)| path).filter(|path| !walk.seen.contains(*path));
    walk.changed.extend(gone.cloned().collect::<Vec<_>>());
    Ok(walk.changed.into_iter().collect())
}

pub(super) fn of_layer(layer: &GateLayer) -> Result<LayerDifferences, WarmError> {
    let tree = layer.tree_outside();
    let changed = match layer.kind {
        LayerKind::Overlay => of_upper(layer, &tree)?,
        LayerKind::Reflink | LayerKind::Copy => of_tree(&layer.marks, &tree)?,
    };
    let mut touched = Vec::new();
    for (path, written) in &layer.written {
        let full = tree.join(path);
        if changed.contains(path) || layer.marks.file(path).is_none() {
            continue;
        }
        let met = full.symlink_metadata().at("look at", &full)?;
        if WrittenFile::of(&met) != *written {
            touched.push(path.clone());
        }
    }
    Ok(LayerDifferences { changed, touched })
}

/// Returns the tracked files that differ, by what is in an overlay's upper directory. What is not
/// there is as the seed has it, unless a mark above it hides that.
fn of_upper(layer: &GateLayer, tree: &Path) -> Result<Vec<PathBuf>, WarmError> {
    let marks = &layer.marks;
    let mut walk = TreeWalk { marks, seen: BTreeSet::new(), changed: BTreeSet::new() };
    let hidden = walk.upper(tree)?;
    let mut gone: Vec<PathBuf> = Vec::new();
    for dir in &hidden {
        gone.extend(marks.within(dir).filter(|path| !walk.seen.contains(*path)).cloned());
    }
    gone.extend(layer.written.keys().filter(|path| !walk.seen.contains(*path)).cloned());
    walk.changed.extend(gone);
    Ok(walk.changed.into_iter().collect())
}

/// A walk over the directories of tracked files. It never follows a link.
struct TreeWalk<'a> {
    marks: &'a TreeMarks,
    seen: BTreeSet<PathBuf>,
    changed: BTreeSet<PathBuf>,
}

impl TreeWalk<'_> {
    fn plain(&mut self, tree: &Path) -> Result<(), WarmError> {
        let Ok(met) = tree.symlink_metadata() else { return Ok(()) };
        if !met.is_dir() {
            return Ok(());
        }
        let mut pending = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            for (path, met) in entries(tree, &dir)? {
                if met.is_dir() && self.marks.has_dir(&path) {
                    pending.push(path);
                } else {
                    self.compare(tree, path, &met)?;
                }
            }
        }
        Ok(())
    }

    /// Walks over an upper directory. Returns the paths at and below which the seed is hidden.
    fn upper(&mut self, tree: &Path) -> Result<Vec<PathBuf>, WarmError> {
        let mut hidden = Vec::new();
        // Without any upper directory the seed's is seen as it is.
        let Ok(met) = tree.symlink_metadata() else { return Ok(hidden) };
        if !met.is_dir() {
            return Ok(vec![PathBuf::new()]);
        }
        let mut pending = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            if is_opaque(&tree.join(&dir)).at("look at", &tree.join(&dir))? {
                hidden.push(dir.clone());
            }
            for (path, met) in entries(tree, &dir)? {
                if met.is_dir() && self.marks.has_dir(&path) {
                    pending.push(path);
                } else if is_whiteout(&met) || self.marks.has_dir(&path) {
                    hidden.push(path);
                } else {
                    self.compare(tree, path, &met)?;
                }
            }
        }
        Ok(hidden)
    }

    fn compare(&mut self, tree: &Path, path: PathBuf, met: &fs::Metadata) -> Result<(), WarmError> {
        let Some(wanted) = self.marks.file(&path) else { return Ok(()) };
        let full = tree.join(&path);
        if FileMark::read(&full, met).at("read", &full)? != *wanted {
            self.changed.insert(path.clone());
        }
        self.seen.insert(path);
        Ok(())
    }
}

fn entries(tree: &Path, dir: &Path) -> Result<Vec<(PathBuf, fs::Metadata)>, WarmError> {
    let full = tree.join(dir);
    // A command may have taken our permission to look into it.
    open_up(&full).at("make readable", &full)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(&full).at("read", &full)? {
        patience::check().at("read", &full)?;
        let entry = entry.at("read", &full)?;
        let path = entry.path();
        let met = path.symlink_metadata().at("look at", &path)?;
        found.push((dir.join(entry.file_name()), met));
    }
    Ok(found)
}

fn is_whiteout(met: &fs::Metadata) -> bool {
    met.file_type().is_char_device() && met.rdev() == 0
}

/// Returns whether a directory of an upper layer hides everything that the lower one has there.
pub(super) fn is_opaque(dir: &Path) -> io::Result<bool> {
    const OPAQUE: &std::ffi::CStr = c"user.overlay.opaque";
    // A command may have taken our permission to look at it.
    open_up(dir)?;
    Ok(attribute(dir, OPAQUE)?.as_deref() == Some(b"y"))
}

fn attribute(path: &Path, name: &std::ffi::CStr) -> io::Result<Option<Vec<u8>>> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut value = [0_u8; 64];
    // SAFETY: path, name and value outlive the call, and the length is that of the value.
    let length = unsafe {
        libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    match usize::try_from(length) {
        Ok(length) => Ok(value.get(..length).map(<[u8]>::to_vec)),
        Err(_) => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENODATA | libc::EOPNOTSUPP)) => {
                Ok(None)
            }
            error => Err(error),
        },
    }
}

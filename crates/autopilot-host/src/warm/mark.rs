//! The marks of tracked files: kind, mode and a digest of the content as it is on disk.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{OnPath, WarmError};
use crate::git::tree_file::{SUBMODULE, TreeFile};
use crate::git::{Hub, Oid};
use crate::patience;

/// The modes of git: a file, one that can be executed and a link.
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_000;

/// What a tracked file must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileMark {
    /// The mode as git writes it; 0 for what git does not track or nobody can read.
    pub mode: u32,
    /// The digest of the content, or of a link's target.
    pub digest: String,
}

impl FileMark {
    /// Reads the mark of an entry that was looked at without following links.
    pub fn read(path: &Path, met: &Metadata) -> io::Result<FileMark> {
        patience::check()?;
        if met.is_symlink() {
            let target = fs::read_link(path)?;
            let digest = hex(Sha256::digest(target.as_os_str().as_bytes()));
            return Ok(FileMark { mode: LINK, digest });
        }
        let bits = met.permissions().mode();
        if !met.is_file() || bits & 0o400 == 0 {
            return Ok(FileMark { mode: 0, digest: String::new() });
        }
        let mut file = fs::File::open(path)?;
        let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
        }
        let mode = if bits & 0o100 == 0 { FILE } else { PROGRAM };
        Ok(FileMark { mode, digest: hex(hasher.finalize()) })
    }
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tracked files of a tree and the directories that they imply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TreeMarks {
    files: BTreeMap<PathBuf, FileMark>,
    dirs: HashSet<PathBuf>,
}

impl TreeMarks {
    /// Reads the marks of a commit's files, with those of its submodules, which the controller has just
    /// written below `root`.
    pub fn of(hub: &Hub, commit: &Oid, root: &Path) -> Result<TreeMarks, WarmError> {
        let mut marks = TreeMarks::default();
        for TreeFile { path, mode, .. } in hub.files_of(&hub.expanded(commit)?)? {
            if mode != SUBMODULE {
                let path = path_of(&path);
                let mark = marks.read_written(root, &path, mode)?;
                marks.insert(path, mark);
            }
        }
        Ok(marks)
    }

    /// Reads the mark of a file that git has just written, and fails if it is not what git was to
    /// write.
    pub fn read_written(&self, root: &Path, path: &Path, mode: u32) -> Result<FileMark, WarmError> {
        let full = root.join(path);
        let met = full.symlink_metadata().at("look at", &full)?;
        let mark = FileMark::read(&full, &met).at("read", &full)?;
        if mark.mode == mode {
            return Ok(mark);
        }
        let source = io::Error::other(format!("git wrote mode {:o} for {mode:o}", mark.mode));
        Err(WarmError::File { what: "use", path: full, source })
    }

    pub fn insert(&mut self, path: PathBuf, mark: FileMark) {
        self.dirs.extend(path.ancestors().skip(1).map(Path::to_path_buf));
        self.files.insert(path, mark);
    }

    /// Removes files, and the directories in which no tracked file is left.
    pub fn remove<'a>(&mut self, paths: impl IntoIterator<Item = &'a PathBuf>) {
        for path in paths {
            self.files.remove(path);
        }
        let dirs = self.files.keys().flat_map(|path| path.ancestors().skip(1));
        self.dirs = dirs.map(Path::to_path_buf).collect();
    }

    pub fn file(&self, path: &Path) -> Option<&FileMark> {
        self.files.get(path)
    }

    /// Returns whether a tracked file is below this directory.
    pub fn has_dir(&self, path: &Path) -> bool {
        self.dirs.contains(path)
    }

    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &FileMark)> {
        self.files.iter()
    }

    /// Returns the tracked files at a path and below it.
    pub fn within<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        let from = self.files.range(path.to_path_buf()..);
        from.map(|(file, _)| file).take_while(move |file| file.starts_with(path))
    }
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_path_is_found_and_its_neighbours_are_not() {
        let mut marks = TreeMarks::default();
        for path in ["a", "a-b", "a/b", "a/c/d", "ab", "b"] {
            marks.insert(path.into(), FileMark { mode: FILE, digest: String::new() });
        }
        let within: Vec<_> = marks.within(Path::new("a")).collect();
        assert_eq!(within, [Path::new("a"), Path::new("a/b"), Path::new("a/c/d")]);
        marks.remove(&["a/c/d".into()]);
        assert!(marks.has_dir(Path::new("a")) && !marks.has_dir(Path::new("a/c")));
    }
}

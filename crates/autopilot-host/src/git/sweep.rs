//! Deleting files that an agent left in a slot, without ever following a link out of it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::{GitError, OnFile};
use crate::dir::{self, add_mode, open_up};
use crate::patience;

/// The paths of a commit, as bytes, with the directories they imply.
pub(crate) struct Tracked {
    files: HashSet<Vec<u8>>,
    dirs: HashSet<Vec<u8>>,
}

impl Tracked {
    /// Takes the paths of files.
    pub fn of<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut tracked = Self { files: HashSet::new(), dirs: HashSet::new() };
        for path in paths {
            for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
                tracked.dirs.insert(path.get(..at).unwrap_or_default().to_vec());
            }
            tracked.files.insert(path.to_vec());
        }
        tracked
    }

    /// Returns whether a tracked file is below this directory.
    pub fn has_dir(&self, path: &Path) -> bool {
        self.dirs.contains(path.as_os_str().as_bytes())
    }

    /// Returns whether this path is a tracked file.
    pub fn has_file(&self, path: &Path) -> bool {
        self.files.contains(path.as_os_str().as_bytes())
    }

    /// Returns the paths of the tracked files.
    pub fn files(&self) -> impl Iterator<Item = &[u8]> {
        self.files.iter().map(Vec::as_slice)
    }
}

/// Removes everything below `root` that is neither tracked nor in `keep` (relative paths). A
/// tracked path with another kind of file at it (a link for a directory, a pipe for a file) is
/// removed too.
pub(crate) fn sweep(
    root: &Path,
    tracked: &Tracked,
    keep: &HashSet<PathBuf>,
) -> Result<(), GitError> {
    let mut pending = vec![PathBuf::new()];
    while let Some(dir) = pending.pop() {
        let full = root.join(&dir);
        open_up(&full).on("make writable", &full)?;
        for entry in fs::read_dir(&full).on("read", &full)? {
            patience::check().on("clear", root)?;
            let entry = entry.on("read", &full)?;
            let path = dir.join(entry.file_name());
            let kind = entry.file_type().on("inspect", &entry.path())?;
            if kind.is_dir() {
                if tracked.has_dir(&path) {
                    pending.push(path);
                } else if !keep.contains(&path) {
                    remove_tree(&entry.path())?;
                }
            } else if !(tracked.has_file(&path) && (kind.is_file() || kind.is_symlink())) {
                fs::remove_file(entry.path()).on("remove", &entry.path())?;
            }
        }
    }
    Ok(())
}

/// Removes every file, link and directory below `root` whose path is wanted, and every link and file in
/// the place of a tracked directory. Our `.git` is left alone.
pub(crate) fn withdraw(
    root: &Path,
    tracked: &Tracked,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<(), GitError> {
    let mut pending = vec![PathBuf::new()];
    while let Some(dir) = pending.pop() {
        let full = root.join(&dir);
        open_up(&full).on("make writable", &full)?;
        for entry in fs::read_dir(&full).on("read", &full)? {
            patience::check().on("search", root)?;
            let entry = entry.on("read", &full)?;
            let path = dir.join(entry.file_name());
            if path == Path::new(".git") {
                continue;
            }
            let is_dir = entry.file_type().on("inspect", &entry.path())?.is_dir();
            if is_wanted(&path.to_string_lossy()) || !is_dir && tracked.has_dir(&path) {
                remove_tree(&entry.path())?;
            } else if is_dir {
                pending.push(path);
            }
        }
    }
    Ok(())
}

/// Removes a file, a link or a whole directory; a missing one is fine.
pub(crate) fn remove_tree(path: &Path) -> Result<(), GitError> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(()) };
    if !meta.is_dir() {
        return fs::remove_file(path).on("remove", path);
    }
    dir::remove(path).on("remove", path)
}

/// Restores our access to every directory and file below `root` that an agent made unreadable.
/// Returns the directories that can't be read all the same, because their path is too long.
pub(crate) fn loosen(root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let mut pending = vec![root.to_owned()];
    let mut too_long = Vec::new();
    while let Some(dir) = pending.pop() {
        let opened = open_up(&dir).and_then(|()| fs::read_dir(&dir));
        if opened.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENAMETOOLONG)) {
            too_long.push(dir);
            continue;
        }
        for entry in opened.on("make readable", &dir)? {
            patience::check().on("make readable", root)?;
            let entry = entry.on("read", &dir)?;
            let path = entry.path();
            let kind = entry.file_type().on("inspect", &path)?;
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() {
                match add_mode(&path, 0o600) {
                    Err(error) if error.raw_os_error() == Some(libc::ENAMETOOLONG) => {
                        too_long.push(path);
                    }
                    changed => changed.on("make readable", &path)?,
                }
            }
        }
    }
    Ok(too_long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_tracked_and_kept_paths_survive_and_links_are_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (root, outside) = (temp.path().join("slot"), temp.path().join("outside"));
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("precious"), "x").unwrap();
        fs::write(root.join("src/a"), "").unwrap();
        fs::write(root.join("src/b"), "").unwrap();
        fs::write(root.join("target/o"), "").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(&outside, root.join("lib")).unwrap();
        fs::create_dir_all(root.join("locked/in")).unwrap();
        fs::write(root.join("locked/in/f"), "").unwrap();
        for dir in ["locked/in", "locked", "src"] {
            fs::set_permissions(root.join(dir), fs::Permissions::from_mode(0o500)).unwrap();
        }
        let tracked = Tracked::of([b"src/a".as_slice(), b"lib/x"].into_iter());
        sweep(&root, &tracked, &HashSet::from([PathBuf::from("target")])).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["src", "target"]);
        assert!(root.join("src/a").exists() && !root.join("src/b").exists());
        assert!(outside.join("precious").exists());
    }
}

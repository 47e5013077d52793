//! The files of a directory of held-out tests: read once, kept as a copy, and laid over a worktree in
//! which no program runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::dir;

/// The directories of repositories, which are no tests.
const GIT: &str = ".git";
const OWNER_RUNS: u32 = 0o100;

/// One held-out file. It is of few bytes, and the controller keeps it in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldOutFile {
    /// Its path from the top of the directory, and of the worktree that it is laid over.
    pub path: String,
    pub is_program: bool,
    pub content: Vec<u8>,
}

/// The limits of a directory of held-out tests.
#[derive(Debug, Clone, Copy)]
pub struct HeldOutLimits {
    pub files_max: usize,
    pub file_bytes_max: u64,
    pub bytes_max: u64,
}

/// Why a directory of held-out tests can't be read.
#[derive(Debug, thiserror::Error)]
pub enum HeldOutError {
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{file}` {why}")]
    Odd { file: String, why: &'static str },
    #[error("`{file}` is too large")]
    LargeFile { file: String },
    #[error("there are too many files, or too many bytes in them")]
    TooLarge,
}

impl HeldOutError {
    fn read(path: &Path) -> impl FnOnce(io::Error) -> HeldOutError {
        let path = path.to_owned();
        |source| HeldOutError::Read { path, source }
    }
}

/// Reads all files of a directory, in the order of their paths. A link to a file in the directory is read
/// as that file.
pub fn read(dir: &Path, limits: &HeldOutLimits) -> Result<Vec<HeldOutFile>, HeldOutError> {
    let root = dir.canonicalize().map_err(HeldOutError::read(dir))?;
    let (mut pending, mut files, mut bytes) = (vec![PathBuf::new()], Vec::new(), 0_u64);
    while let Some(below) = pending.pop() {
        let full = root.join(&below);
        for entry in fs::read_dir(&full).map_err(HeldOutError::read(&full))? {
            let entry = entry.map_err(HeldOutError::read(&full))?;
            if entry.file_name() == GIT {
                continue;
            }
            let (path, met) = (below.join(entry.file_name()), entry.file_type());
            if met.map_err(HeldOutError::read(&entry.path()))?.is_dir() {
                pending.push(path);
                continue;
            }
            let file = one(&root, &path, limits)?;
            bytes = bytes.saturating_add(file.content.len() as u64);
            files.push(file);
            if files.len() > limits.files_max || bytes > limits.bytes_max {
                return Err(HeldOutError::TooLarge);
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn one(root: &Path, path: &Path, limits: &HeldOutLimits) -> Result<HeldOutFile, HeldOutError> {
    let shown = path.to_string_lossy().into_owned();
    let odd = |why| Err(HeldOutError::Odd { file: shown.clone(), why });
    let Some(name) = path.to_str() else { return odd("has a name that is not UTF-8") };
    let full = root.join(path);
    let Ok(real) = full.canonicalize() else { return odd("is a link that leads nowhere") };
    if !real.starts_with(root)
        || real.components().any(|part| part == Component::Normal(GIT.as_ref()))
    {
        return odd("is a link that leads out of the directory");
    }
    let met = real.metadata().map_err(HeldOutError::read(&full))?;
    if met.is_dir() {
        return odd("is a link to a directory");
    }
    if !met.is_file() {
        return odd("is no plain file");
    }
    if met.len() > limits.file_bytes_max {
        return Err(HeldOutError::LargeFile { file: shown });
    }
    let mut content = Vec::new();
    let opened = fs::File::open(&real).map_err(HeldOutError::read(&full))?;
    let read = opened.take(limits.file_bytes_max + 1).read_to_end(&mut content);
    read.map_err(HeldOutError::read(&full))?;
    if content.len() as u64 > limits.file_bytes_max {
        return Err(HeldOutError::LargeFile { file: shown });
    }
    let is_program = met.permissions().mode() & OWNER_RUNS != 0;
    Ok(HeldOutFile { path: name.to_owned(), is_program, content })
}

/// Keeps a copy of the files in a directory that is whole or does not exist.
pub fn keep(files: &[HeldOutFile], dir: &Path) -> io::Result<()> {
    if dir.exists() {
        return Ok(());
    }
    let made = dir.with_extension("new");
    dir::remove(&made)?;
    dir::create_private(&made)?;
    lay_over(files, &made)?;
    dir::move_to(&made, dir)
}

/// Lays the files over a worktree. What is in their place, or on the way to it, goes; no link is
/// followed.
pub fn lay_over(files: &[HeldOutFile], tree: &Path) -> io::Result<()> {
    for file in files {
        let path = Path::new(&file.path);
        let mut full = tree.to_owned();
        for part in path.parent().into_iter().flat_map(Path::components) {
            full.push(part);
            if !full.symlink_metadata().is_ok_and(|met| met.is_dir()) {
                dir::remove(&full)?;
                fs::create_dir(&full)?;
            }
        }
        let full = tree.join(path);
        dir::remove(&full)?;
        let mode = if file.is_program { 0o755 } else { 0o644 };
        let options = fs::OpenOptions::new().write(true).create_new(true).mode(mode).to_owned();
        io::Write::write_all(&mut options.open(&full)?, &file.content)?;
    }
    Ok(())
}

/// Takes the files from a worktree again.
pub fn take_away(files: &[HeldOutFile], tree: &Path) -> io::Result<()> {
    files
        .iter()
        .filter(|file| is_reached(tree, &file.path))
        .try_for_each(|file| dir::remove(&tree.join(&file.path)))
}

/// Returns the files that a worktree no longer has as they were laid over it.
pub fn changed(files: &[HeldOutFile], tree: &Path) -> Vec<PathBuf> {
    let is_same = |file: &&HeldOutFile| {
        let full = tree.join(&file.path);
        let met = full.symlink_metadata();
        let is_plain = met.is_ok_and(|met| {
            let is_program = met.permissions().mode() & OWNER_RUNS != 0;
            met.is_file() && is_program == file.is_program && met.len() == file.content.len() as u64
        });
        is_plain
            && is_reached(tree, &file.path)
            && fs::read(&full).is_ok_and(|content| content == file.content)
    };
    files.iter().filter(|file| !is_same(file)).map(|file| PathBuf::from(&file.path)).collect()
}

/// Whether no directory on the way to a file is a link.
fn is_reached(tree: &Path, path: &str) -> bool {
    let mut dirs = Path::new(path).ancestors().skip(1);
    dirs.all(|dir| fs::symlink_metadata(tree.join(dir)).is_ok_and(|met| met.is_dir()))
}

/// Returns the paths of the worktree that the files do not replace.
pub fn not_covered(files: &[HeldOutFile], paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let laid: BTreeSet<&Path> = files.iter().map(|file| Path::new(&file.path)).collect();
    let is_covered = |path: &Path| {
        path.ancestors().any(|part| laid.contains(part))
            || laid.range(path..).next().is_some_and(|next| next.starts_with(path))
    };
    paths.into_iter().filter(|path| !is_covered(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const LIMITS: HeldOutLimits =
        HeldOutLimits { files_max: 3, file_bytes_max: 100, bytes_max: 150 };

    fn dir() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn file(path: &str, text: &str) -> HeldOutFile {
        HeldOutFile { path: path.to_owned(), is_program: false, content: text.into() }
    }

    fn put(dir: &Path, path: &str, text: &str) {
        let full = dir.join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
    }

    #[test]
    fn files_are_read_in_the_order_of_their_paths_and_links_stay_inside() {
        let dir = dir();
        put(dir.path(), "b/c.sh", "c");
        put(dir.path(), "a.sh", "a");
        put(dir.path(), ".git/config", "x");
        symlink("b/c.sh", dir.path().join("d.sh")).unwrap();
        let read = read(dir.path(), &LIMITS).unwrap();
        assert_eq!(read, [file("a.sh", "a"), file("b/c.sh", "c"), file("d.sh", "c")]);
    }

    #[test]
    fn what_is_no_file_of_the_directory_is_refused() {
        let said = |prepare: &dyn Fn(&Path)| {
            let dir = dir();
            prepare(dir.path());
            read(dir.path(), &LIMITS).unwrap_err().to_string()
        };
        for (target, why) in [
            ("/etc/hostname", "leads out"),
            ("../x", "leads nowhere"),
            (".", "to a directory"),
            (".git/config", "leads out"),
        ] {
            let told = said(&|dir| {
                put(dir, ".git/config", "x");
                symlink(target, dir.join("l")).unwrap();
            });
            assert!(told.contains("`l`") && told.contains(why), "{target}: {told}");
        }
        let told = said(&|dir| put(dir, "big", &"x".repeat(101)));
        assert_eq!(told, "`big` is too large");
        let told = said(&|dir| (0..4).for_each(|n| put(dir, &n.to_string(), "x")));
        assert!(told.contains("too many files"), "{told}");
        let told = said(&|dir| (0..2).for_each(|n| put(dir, &n.to_string(), &"x".repeat(80))));
        assert!(told.contains("too many files"), "{told}");
        let told = said(&|dir| fs::remove_dir(dir).unwrap());
        assert!(told.contains("cannot read"), "{told}");
    }

    #[test]
    fn files_are_laid_over_what_is_there_and_follow_no_link() {
        let (tree, outside) = (dir(), dir());
        put(tree.path(), "t/a.sh", "old");
        put(tree.path(), "f", "a file");
        symlink(outside.path(), tree.path().join("l")).unwrap();
        let files = [file("f/x", "1"), file("l/y", "2"), file("t/a.sh", "new")];
        lay_over(&files, tree.path()).unwrap();
        assert_eq!(changed(&files, tree.path()), Vec::<PathBuf>::new());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(tree.path().join("t/a.sh")).unwrap(), "new");
        put(tree.path(), "t/a.sh", "NEW");
        fs::remove_dir_all(tree.path().join("l")).unwrap();
        symlink(outside.path(), tree.path().join("l")).unwrap();
        put(outside.path(), "y", "2");
        assert_eq!(changed(&files, tree.path()), [Path::new("l/y"), Path::new("t/a.sh")]);
        take_away(&files, tree.path()).unwrap();
        assert!(!tree.path().join("f/x").exists() && outside.path().join("y").exists());
    }

    #[test]
    fn tracked_files_in_the_way_are_not_compared() {
        let files = [file("a/b", ""), file("c", "")];
        let paths = ["a", "a/b", "a/b/c", "a/c", "b", "c", "c/d", "cc"].map(PathBuf::from).to_vec();
        let left = ["a/c", "b", "cc"].map(PathBuf::from);
        assert_eq!(not_covered(&files, paths), left);
    }

    #[test]
    fn a_copy_is_whole_or_missing() {
        let dir = dir();
        let (to, files) = (dir.path().join("copy"), [file("a/b", "x")]);
        put(dir.path(), "copy.new/left", "by a dead process");
        keep(&files, &to).unwrap();
        keep(&[file("other", "y")], &to).unwrap();
        assert_eq!(read(&to, &LIMITS).unwrap(), files);
        assert_eq!(dir::names(dir.path()).unwrap(), ["copy"]);
    }
}

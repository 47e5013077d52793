//! Which paths stay visible below a directory that is covered.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the named paths below `dir`, without those below another one: they come with it.
pub fn outermost_below(dir: &Path, named: &[PathBuf]) -> BTreeSet<PathBuf> {
    let below: BTreeSet<&PathBuf> = named.iter().filter(|path| is_below(path, dir)).collect();
    let within = |path: &PathBuf| below.iter().any(|other| is_below(path, other));
    below.iter().filter(|path| !within(path)).map(|path| PathBuf::clone(path)).collect()
}

/// Returns the entries of `dir` in which there is a named path.
pub fn entries_with(dir: &Path, named: &[PathBuf]) -> BTreeSet<PathBuf> {
    let entry = |path: &PathBuf| {
        let first = path.strip_prefix(dir).ok()?.components().next()?;
        Some(dir.join(first))
    };
    named.iter().filter_map(entry).collect()
}

/// Returns whether `path` is in `dir` or in one of its subdirectories, and is not `dir` itself.
pub fn is_below(path: &Path, dir: &Path) -> bool {
    path != dir && path.starts_with(dir)
}

/// Returns each path as it was given and as it is without links, as far as it exists.
pub fn both_ways(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for path in paths.into_iter().filter(|path| path.is_absolute()) {
        found.extend(path.canonicalize());
        if path.symlink_metadata().is_ok() {
            found.insert(path);
        }
    }
    found.into_iter().collect()
}

/// Returns the mount points of a table such as `/proc/self/mountinfo`.
pub fn mount_points(table: &str) -> BTreeSet<PathBuf> {
    const POINT: usize = 4;
    table.lines().filter_map(|line| line.split(' ').nth(POINT)).map(unescaped).collect()
}

/// Undoes the kernel's writing of spaces and the like as `\040`.
fn unescaped(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(meant) if *byte == b'\\' => {
                plain.push(meant);
                at += 4;
            }
            Some(_) | None => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_outermost_paths_below_a_directory_are_kept() {
        let named = ["/s/a/deep", "/s/a", "/s", "/sa", "/s/b/c", "/"].map(PathBuf::from);
        assert_eq!(outermost_below(Path::new("/s"), &named), set(&["/s/a", "/s/b/c"]));
    }

    #[test]
    fn an_entry_is_kept_whole_when_something_in_it_is_named() {
        let named = ["/tmp/x/repo", "/tmp/x", "/tmp", "/tmpx/y", "/tmp/z/1/2"].map(PathBuf::from);
        assert_eq!(entries_with(Path::new("/tmp"), &named), set(&["/tmp/x", "/tmp/z"]));
    }

    #[test]
    fn mount_points_are_read_with_their_spaces() {
        let table =
            "22 1 8:1 / / rw - ext4 /dev/sda rw\n23 22 0:5 /a /mnt/my\\040disk rw - x y z\n";
        assert_eq!(mount_points(table), set(&["/", "/mnt/my disk"]));
    }
}

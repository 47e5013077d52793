//! Files of the worktree that an agent reads and writes through us.
//!
//! We are not in its sandbox, so nothing outside the worktree may be reached: neither by a name nor
//! by a link it has planted.

use crate::cause::chain;
use autopilot_host::file::Dir;
use camino::Utf8Path;

const FILE_BYTES_MAX: u64 = 8 << 20;

/// The text, or `lines_max` lines of it from `first_line` on, which is counted from 1.
pub fn read(
    worktree: &Utf8Path,
    path: &str,
    first_line: Option<u32>,
    lines_max: Option<u32>,
) -> Result<String, String> {
    let relative = inside(worktree, path)?;
    let bytes = Dir::open(worktree.as_std_path())
        .and_then(|dir| dir.read_capped(relative.as_std_path(), FILE_BYTES_MAX))
        .map_err(|error| chain(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("`{path}` is not text"))?;
    if first_line.is_none() && lines_max.is_none() {
        return Ok(text);
    }
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let skipped = first_line.map_or(0, |line| number(line).saturating_sub(1));
    let taken = lines_max.map_or(usize::MAX, number);
    Ok(text.split_inclusive('\n').skip(skipped).take(taken).collect())
}

pub fn write(worktree: &Utf8Path, path: &str, text: &str) -> Result<(), String> {
    let relative = inside(worktree, path)?;
    Dir::open(worktree.as_std_path())
        .and_then(|dir| dir.rewrite(relative.as_std_path(), text.as_bytes()))
        .map_err(|error| chain(&error))
}

fn inside<'a>(worktree: &Utf8Path, path: &'a str) -> Result<&'a Utf8Path, String> {
    let path = Utf8Path::new(path);
    path.strip_prefix(worktree).map_err(|_| format!("`{path}` is outside the worktree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let path = root.join("sub/a.txt");
        write(root, path.as_str(), "one\ntwo\nthree").unwrap();
        let read = |first, max| read(root, path.as_str(), first, max).unwrap();
        assert_eq!(read(None, None), "one\ntwo\nthree");
        assert_eq!(read(Some(2), None), "two\nthree");
        assert_eq!(read(Some(2), Some(1)), "two\n");
        assert_eq!(read(Some(0), Some(1)), "one\n");
        assert_eq!(read(Some(9), Some(u32::MAX)), "");
    }

    #[test]
    fn nothing_outside_is_lent_and_a_missing_file_is_said_to_be_missing() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        std::fs::write(root.join("binary"), [0xff, 0xfe]).unwrap();
        let why = |path: &str| read(root, path, None, None).unwrap_err();
        let below = |name: &str| root.join(name).into_string();
        assert!(why("/etc/hostname").contains("outside"));
        assert!(why(&below("etc/hostname")).contains("symbolic link"));
        assert!(why(&below("../x")).contains("not a path to a file inside"));
        assert!(why(&below("missing")).contains("No such file"));
        assert!(why(&below("no/where")).contains("No such file"));
        assert!(why(&below("binary")).contains("not text"));
        assert!(write(root, "/etc/autopilot", "x").unwrap_err().contains("outside"));
        assert!(write(root, &below("etc/autopilot"), "x").unwrap_err().contains("symbolic link"));
    }
}

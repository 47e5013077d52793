//! Reads and writes files of the worktree on behalf of an agent.
//!
//! Autopilot is outside the agent's sandbox, so nothing outside the worktree may be reached:
//! neither by a name nor by a link the agent has planted. The agent names files by the path at which it
//! sees the worktree, which may be another one outside.

use super::slot_dir::SlotDir;
use crate::cause::chain;
use autopilot_host::file::Dir;
use camino::Utf8Path;

const FILE_BYTES_MAX: u64 = 8 << 20;

/// The text of a file, or `lines_max` lines of it from `first_line` on, counted from 1.
pub fn read(
    worktree: &SlotDir,
    path: &str,
    first_line: Option<u32>,
    lines_max: Option<u32>,
) -> Result<String, String> {
    let relative = inside(worktree, path)?;
    let bytes = Dir::open(worktree.real.as_std_path())
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

/// Writes a file of the worktree.
pub fn write(worktree: &SlotDir, path: &str, text: &str) -> Result<(), String> {
    let relative = inside(worktree, path)?;
    Dir::open(worktree.real.as_std_path())
        .and_then(|dir| dir.rewrite(relative.as_std_path(), text.as_bytes()))
        .map_err(|error| chain(&error))
}

fn inside<'a>(worktree: &SlotDir, path: &'a str) -> Result<&'a Utf8Path, String> {
    worktree.inside(path).ok_or_else(|| format!("`{path}` is outside the worktree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worktree in a new directory, and the same seen at another path.
    fn worktrees() -> (tempfile::TempDir, [SlotDir; 2]) {
        let root = tempfile::tempdir().unwrap();
        let real = Utf8Path::from_path(root.path()).unwrap().join("s0");
        std::fs::create_dir(&real).unwrap();
        let seen = "/state/work/tree".into();
        (root, [SlotDir::as_it_is(real.clone()), SlotDir { real, seen, caches: None }])
    }

    #[test]
    fn lines_are_counted_from_one() {
        let (_root, worktrees) = worktrees();
        for tree in worktrees {
            let path = tree.seen.join("sub/a.txt");
            write(&tree, path.as_str(), "one\ntwo\nthree").unwrap();
            assert!(tree.real.join("sub/a.txt").exists());
            let read = |first, max| read(&tree, path.as_str(), first, max).unwrap();
            assert_eq!(read(None, None), "one\ntwo\nthree");
            assert_eq!(read(Some(2), None), "two\nthree");
            assert_eq!(read(Some(2), Some(1)), "two\n");
            assert_eq!(read(Some(0), Some(1)), "one\n");
            assert_eq!(read(Some(9), Some(u32::MAX)), "");
        }
    }

    #[test]
    fn nothing_outside_is_lent_and_a_missing_file_is_said_to_be_missing() {
        let (root, worktrees) = worktrees();
        std::fs::write(root.path().join("x"), "outside").unwrap();
        let real = &worktrees[0].real;
        std::os::unix::fs::symlink("/etc", real.join("etc")).unwrap();
        std::fs::write(real.join("binary"), [0xff, 0xfe]).unwrap();
        for tree in &worktrees {
            let why = |path: &str| read(tree, path, None, None).unwrap_err();
            let below = |name: &str| tree.seen.join(name).into_string();
            assert!(why("/etc/hostname").contains("outside"));
            assert!(why(&below("etc/hostname")).contains("symbolic link"));
            assert!(why(&below("../x")).contains("not a path to a file inside"));
            assert!(why(&below("missing")).contains("No such file"));
            assert!(why(&below("no/where")).contains("No such file"));
            assert!(why(&below("binary")).contains("not text"));
            assert!(write(tree, "/etc/autopilot", "x").unwrap_err().contains("outside"));
            let linked = write(tree, &below("etc/autopilot"), "x").unwrap_err();
            assert!(linked.contains("symbolic link"), "{linked}");
            assert!(write(tree, &below("../y"), "x").is_err());
        }
        let by_its_real_path = read(&worktrees[1], real.join("binary").as_str(), None, None);
        assert!(by_its_real_path.unwrap_err().contains("outside"));
    }
}

//! The files below a directory that were written while a program ran.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most entries that are looked at, and the most directories within each other.
const ENTRIES_MAX: usize = 200_000;
const DEPTH_MAX: usize = 40;

/// The plain files below some directories that a rule chose, and how each of them was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMarks(BTreeMap<PathBuf, (u64, u64, i64, i64)>);

impl FileMarks {
    /// Looks at the files below `root` whose path relative to it `is_wanted`. No link is followed, and
    /// what can't be read is left out.
    pub fn below(root: &Path, is_wanted: &dyn Fn(&str) -> bool) -> FileMarks {
        let mut marks = FileMarks::default();
        let (mut open, mut seen) = (vec![(PathBuf::new(), 0)], 0);
        while let Some((dir, depth)) = open.pop() {
            let Ok(entries) = fs::read_dir(root.join(&dir)) else { continue };
            for entry in entries.flatten() {
                seen += 1;
                if seen > ENTRIES_MAX {
                    return marks;
                }
                let (path, Ok(met)) = (dir.join(entry.file_name()), entry.metadata()) else {
                    continue;
                };
                if met.is_dir() && depth < DEPTH_MAX && entry.file_name() != ".git" {
                    open.push((path, depth + 1));
                } else if met.is_file() && path.to_str().is_some_and(is_wanted) {
                    let mark = (met.ino(), met.len(), met.ctime(), met.ctime_nsec());
                    marks.0.insert(path, mark);
                }
            }
        }
        marks
    }

    /// Returns the files that were not there before, or not as they are now.
    pub fn written_since<'a>(&'a self, before: &'a FileMarks) -> impl Iterator<Item = &'a Path> {
        let is_new = |(path, mark): &(&PathBuf, &_)| before.0.get(*path) != Some(mark);
        self.0.iter().filter(is_new).map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_since_is_new_and_no_link_is_followed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        fs::create_dir_all(root.join("out/deep")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        for name in ["out/old.xml", "out/deep/again.xml", ".git/x.xml"] {
            fs::write(root.join(name), "1").unwrap();
        }
        let wanted = |path: &str| path.ends_with(".xml");
        let before = FileMarks::below(root, &wanted);
        fs::write(root.join("out/deep/again.xml"), "22").unwrap();
        fs::write(root.join("new.xml"), "").unwrap();
        fs::write(root.join("new.txt"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link.xml")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        let after = FileMarks::below(root, &wanted);
        let new: Vec<&Path> = after.written_since(&before).collect();
        assert_eq!(new, [Path::new("new.xml"), Path::new("out/deep/again.xml")]);
    }
}

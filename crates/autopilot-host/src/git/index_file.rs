//! The index of a slot, read as a file: it says what the files were when git wrote or read them last,
//! so that a slot nobody has touched since is known without asking git.
//!
//! Invariant: a doubt is an answer that git gives. What is said here holds by git's own rules, or by
//! stricter ones.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::disposable::open_plain;
use super::loose;
use super::object::Oid;
use super::tree_file::{SUBMODULE, TreeFile};
use crate::{fail, patience};

/// The largest index that is read here.
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
const HEAD_BYTES: usize = 12;
/// The bytes of an entry before the object's name.
const STAT_BYTES: usize = 40;
const LINK: u32 = 0o120_000;
const PROGRAM: u32 = 0o100_755;

/// The files in an index.
pub(super) struct IndexFile {
    entries: BTreeMap<Vec<u8>, IndexEntry>,
    /// When the index was written. A file that is as young may have been changed afterwards.
    written: (u32, u32),
}

struct IndexEntry {
    mode: u32,
    oid: Oid,
    stat: FileStat,
}

/// What tells that a file was not written since, each cut to 32 bits as in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStat {
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    user: u32,
    group: u32,
    bytes: u32,
}

/// What is found beside the files of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherFiles {
    /// They count as a change.
    Count,
    /// They were looked at before.
    Ignored,
}

impl IndexFile {
    /// Reads an index; `None` when there is none, or when only git knows what it means.
    pub fn read(path: &Path, name_bytes: usize) -> Option<IndexFile> {
        if fail::is_git_alone() {
            return None;
        }
        let index = IndexFile::with_submodules(path, name_bytes)?;
        let has_any = index.entries.values().any(|entry| entry.mode == SUBMODULE);
        (!has_any).then_some(index)
    }

    /// Reads an index that may have submodules, of which only git knows whether they are untouched.
    pub fn with_submodules(path: &Path, name_bytes: usize) -> Option<IndexFile> {
        let meta = path.symlink_metadata().ok()?;
        if !meta.is_file() || meta.len() > INDEX_BYTES_MAX {
            return None;
        }
        let entries = parse(&fs::read(path).ok()?, name_bytes)?;
        Some(IndexFile { entries, written: FileStat::of(&meta).modified })
    }

    /// Returns the files as a tree would have them.
    pub fn files(&self) -> Vec<TreeFile> {
        let file = |(path, entry): (&Vec<u8>, &IndexEntry)| TreeFile {
            path: path.clone(),
            mode: entry.mode,
            oid: entry.oid.clone(),
        };
        self.entries.iter().map(file).collect()
    }

    /// Returns whether the index has exactly these files, which are in the order of their paths.
    pub fn is_of(&self, files: &[TreeFile]) -> bool {
        self.entries.len() == files.len()
            && self.entries.iter().zip(files).all(|((path, entry), file)| {
                *path == file.path && entry.mode == file.mode && entry.oid == file.oid
            })
    }

    /// Returns whether the files below `root` certainly are those of the index. `.git` at the top
    /// does not count.
    pub fn is_certainly_at(&self, root: &Path, others: OtherFiles) -> bool {
        self.walk(root, others) == Some(self.entries.len())
    }

    /// Returns how many files of the index are as they were; `None` at the first doubt.
    fn walk(&self, root: &Path, others: OtherFiles) -> Option<usize> {
        let mut same = 0;
        let mut pending = vec![Vec::new()];
        while let Some(dir) = pending.pop() {
            patience::check().ok()?;
            for entry in fs::read_dir(root.join(OsStr::from_bytes(&dir))).ok()? {
                let entry = entry.ok()?;
                let name = entry.file_name();
                let path = match dir.is_empty() {
                    true if name == ".git" => continue,
                    true => name.as_bytes().to_vec(),
                    false => [&*dir, b"/", name.as_bytes()].concat(),
                };
                if entry.file_type().ok()?.is_dir() {
                    if others == OtherFiles::Count || self.has_dir(&path) {
                        pending.push(path);
                    }
                } else if let Some(known) = self.entries.get(&path) {
                    self.is_same(known, &entry.path()).then_some(())?;
                    same += 1;
                } else if others == OtherFiles::Count {
                    return None;
                }
            }
        }
        Some(same)
    }

    fn has_dir(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        let first = self.entries.range(below.clone()..).next();
        first.is_some_and(|(path, _)| path.starts_with(&below))
    }

    fn is_same(&self, known: &IndexEntry, path: &Path) -> bool {
        let Ok(meta) = path.symlink_metadata() else { return false };
        FileStat::of(&meta) == known.stat
            && mode_of(&meta) == Some(known.mode)
            // By another name it can be changed where nobody looks.
            && (meta.is_symlink() || meta.nlink() == 1)
            // As young as the index: looks the same even if it was written again.
            && (known.stat.modified < self.written || has_content(path, &meta, &known.oid))
    }
}

/// Returns the mode by which git would take a file.
pub(super) fn mode_of(meta: &Metadata) -> Option<u32> {
    if meta.is_symlink() {
        return Some(LINK);
    }
    let is_program = meta.mode() & 0o100 != 0;
    meta.is_file().then_some(if is_program { PROGRAM } else { 0o100_644 })
}

/// Returns whether a file has the content of this object, byte by byte.
pub(super) fn has_content(path: &Path, meta: &Metadata, oid: &Oid) -> bool {
    let digits = oid.as_str().len();
    if meta.is_symlink() {
        let target = fs::read_link(path).ok();
        let target = target.as_ref().map(|target| target.as_os_str().as_bytes());
        return target.and_then(|bytes| loose::blob_name(bytes, digits)).as_ref() == Some(oid);
    }
    open_plain(path)
        .is_some_and(|file| loose::blob_name_of(file, meta.len(), digits).as_ref() == Some(oid))
}

impl FileStat {
    fn of(meta: &Metadata) -> FileStat {
        let cut = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default();
        let signed = |value: i64| cut(value.cast_unsigned());
        FileStat {
            changed: (signed(meta.ctime()), signed(meta.ctime_nsec())),
            modified: (signed(meta.mtime()), signed(meta.mtime_nsec())),
            inode: cut(meta.ino()),
            user: meta.uid(),
            group: meta.gid(),
            bytes: cut(meta.size()),
        }
    }
}

/// Reads the versions 2 and 3 without flags that change what an entry means.
fn parse(bytes: &[u8], name_bytes: usize) -> Option<BTreeMap<Vec<u8>, IndexEntry>> {
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    if bytes.get(..4)? != b"DIRC" || !matches!(number(4)?, 2 | 3) {
        return None;
    }
    let mut entries = BTreeMap::new();
    let mut at = HEAD_BYTES;
    for _ in 0..number(8)? {
        let oid = Oid::of_bytes(bytes.get(at + STAT_BYTES..at + STAT_BYTES + name_bytes)?);
        let name_at = at + STAT_BYTES + name_bytes + 2;
        // A stage, a flag of another version, or a file that is assumed unchanged.
        if bytes.get(name_at - 2)? & 0xf0 != 0 {
            return None;
        }
        let end = name_at + memchr::memchr(0, bytes.get(name_at..)?)?;
        let mode = number(at + 24)?;
        let stat = FileStat {
            changed: (number(at)?, number(at + 4)?),
            modified: (number(at + 8)?, number(at + 12)?),
            inode: number(at + 20)?,
            user: number(at + 28)?,
            group: number(at + 32)?,
            bytes: number(at + 36)?,
        };
        entries.insert(bytes.get(name_at..end)?.to_vec(), IndexEntry { mode, oid, stat });
        // Filled up with one to eight zero bytes.
        at += (end - at) / 8 * 8 + 8;
    }
    // Extensions follow, and the digest. One with a small letter must be understood.
    while at + name_bytes < bytes.len() {
        if bytes.get(at)?.is_ascii_lowercase() {
            return None;
        }
        at += 8 + usize::try_from(number(at + 4)?).ok()?;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::command::GitCommand;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    struct IndexBed {
        temp: tempfile::TempDir,
    }

    impl IndexBed {
        fn new() -> IndexBed {
            let bed = IndexBed { temp: tempfile::tempdir().unwrap() };
            let init = GitCommand::bare_minimum("make a repository");
            init.args(["init", "-q", "--bare"]).arg(bed.git_dir()).ok().unwrap();
            fs::create_dir_all(bed.root().join("dir/deep")).unwrap();
            fs::write(bed.root().join("a"), "a\n").unwrap();
            fs::write(bed.root().join("dir/b"), "b\n").unwrap();
            fs::write(bed.root().join("dir/deep/program"), "c\n").unwrap();
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(bed.root().join("dir/deep/program"), executable).unwrap();
            symlink("a", bed.root().join("link")).unwrap();
            bed
        }

        fn root(&self) -> std::path::PathBuf {
            let root = self.temp.path().join("work");
            fs::create_dir_all(&root).unwrap();
            root
        }

        fn git_dir(&self) -> std::path::PathBuf {
            self.temp.path().join("r.git")
        }

        fn git(&self, words: &[&str]) -> Vec<u8> {
            let git = GitCommand::isolated("work", &self.git_dir()).work_tree(&self.root());
            git.index(&self.temp.path().join("index")).args(words.to_vec()).ok().unwrap()
        }

        fn index(&self) -> IndexFile {
            IndexFile::read(&self.temp.path().join("index"), 20).unwrap()
        }

        fn is_untouched(&self, index: &IndexFile) -> bool {
            index.is_certainly_at(&self.root(), OtherFiles::Count)
        }
    }

    #[test]
    fn an_index_is_read_as_git_reads_it() {
        let bed = IndexBed::new();
        bed.git(&["add", "-A"]);
        let staged = String::from_utf8(bed.git(&["ls-files", "-s", "-z"])).unwrap();
        let told: String = bed
            .index()
            .files()
            .iter()
            .map(|file| {
                let path = String::from_utf8_lossy(&file.path).into_owned();
                format!("{:06o} {} 0\t{path}\0", file.mode, file.oid)
            })
            .collect();
        assert_eq!(told, staged);
        assert!(bed.is_untouched(&bed.index()));
        assert!(bed.index().is_of(&bed.index().files()));
    }

    #[test]
    fn whatever_is_done_to_the_files_is_noticed() {
        type Touch = fn(&Path);
        let touches: [(&str, Touch); 8] = [
            ("new", |root| fs::write(root.join("dir/new"), "").unwrap()),
            ("gone", |root| fs::remove_file(root.join("a")).unwrap()),
            ("longer", |root| fs::write(root.join("a"), "longer\n").unwrap()),
            ("as long", |root| fs::write(root.join("a"), "x\n").unwrap()),
            ("mode", |root| {
                fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("link", |root| {
                fs::remove_file(root.join("link")).unwrap();
                symlink("b", root.join("link")).unwrap();
            }),
            ("directory as a link", |root| {
                fs::rename(root.join("dir"), root.join("../elsewhere")).unwrap();
                symlink("../elsewhere", root.join("dir")).unwrap();
            }),
            ("as long and as old", |root| {
                let file = root.join("a");
                let old = file.metadata().unwrap().modified().unwrap();
                fs::write(&file, "y\n").unwrap();
                fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
            }),
        ];
        for (what, touch) in touches {
            let bed = IndexBed::new();
            bed.git(&["add", "-A"]);
            let index = bed.index();
            assert!(bed.is_untouched(&index), "{what}");
            touch(&bed.root());
            assert!(!bed.is_untouched(&index), "{what}");
        }
    }

    #[test]
    fn a_file_as_young_as_the_index_is_read() {
        let bed = IndexBed::new();
        let future = SystemTime::now() + Duration::from_secs(1000);
        let file = fs::File::options().write(true).open(bed.root().join("a")).unwrap();
        file.set_modified(future).unwrap();
        bed.git(&["add", "-A"]);
        let mut index = bed.index();
        assert!(bed.is_untouched(&index), "its content is the same");
        index.entries.get_mut(b"a".as_slice()).unwrap().oid = Oid::parse(&"1".repeat(40)).unwrap();
        assert!(!bed.is_untouched(&index), "and is compared");
    }

    #[test]
    fn other_files_count_unless_they_were_looked_at() {
        let bed = IndexBed::new();
        bed.git(&["add", "-A"]);
        let index = bed.index();
        fs::create_dir(bed.root().join("target")).unwrap();
        fs::create_dir(bed.root().join(".git")).unwrap();
        fs::write(bed.root().join(".git/config"), "").unwrap();
        assert!(bed.is_untouched(&index), "an empty directory and the agent's own git");
        fs::write(bed.root().join("target/o"), "").unwrap();
        assert!(!bed.is_untouched(&index));
        assert!(index.is_certainly_at(&bed.root(), OtherFiles::Ignored));
        fs::remove_file(bed.root().join("dir/b")).unwrap();
        assert!(!index.is_certainly_at(&bed.root(), OtherFiles::Ignored));
    }

    #[test]
    fn an_index_that_only_git_understands_is_left_to_git() {
        let bed = IndexBed::new();
        bed.git(&["add", "-A"]);
        let path = bed.temp.path().join("index");
        for flag in [
            &["update-index", "--assume-unchanged", "a"][..],
            &["update-index", "--skip-worktree", "a"],
            &["update-index", "--index-version", "4"],
        ] {
            let before = fs::read(&path).unwrap();
            bed.git(flag);
            assert!(IndexFile::read(&path, 20).is_none(), "{flag:?}");
            fs::write(&path, before).unwrap();
        }
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(IndexFile::read(&path, 20).is_none(), "an index cut short");
    }
}

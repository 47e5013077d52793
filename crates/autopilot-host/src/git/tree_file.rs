//! The files of trees, read in this process: of a new commit only the directories that changed are
//! read, the others are remembered.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::commit::CommitHead;
use super::error::GitError;
use super::hub::Hub;
use super::loose::{self, ObjectKind};
use super::object::Oid;

/// How many entries of directories are remembered; beyond that they are read again.
const ENTRIES_KNOWN_MAX: usize = 400_000;
pub(super) const DIRECTORY: u32 = 0o040_000;
/// The mode of a submodule.
pub(crate) const SUBMODULE: u32 = 0o160_000;
/// The modes of files that git writes today; it still reads others.
const MODES: [u32; 4] = [0o100_644, 0o100_755, 0o120_000, SUBMODULE];
/// How deep directories are followed here. An agent can make them as deep as it likes.
const DEPTH_MAX: usize = 256;

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeFile {
    /// The path from the top of the repository.
    pub path: Vec<u8>,
    /// The mode, as git writes it.
    pub mode: u32,
    /// The content; of a submodule, its commit.
    pub oid: Oid,
}

/// A file that two trees do not have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDifference {
    /// The path from the top of the repository.
    pub path: Vec<u8>,
    /// The mode and the content in the first tree, if it has the path.
    pub old: Option<(u32, Oid)>,
    /// The mode and the content in the second tree, if it has the path.
    pub new: Option<(u32, Oid)>,
}

/// The directories that were read, by the name of their tree.
#[derive(Debug, Default)]
pub(super) struct KnownTrees {
    dirs: BTreeMap<Oid, Arc<Vec<TreeEntry>>>,
    entries: usize,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(super) struct TreeEntry {
    pub name: Vec<u8>,
    pub mode: u32,
    pub oid: Oid,
}

impl KnownTrees {
    fn learn(&mut self, tree: Oid, entries: Arc<Vec<TreeEntry>>) {
        if self.entries + entries.len() > ENTRIES_KNOWN_MAX {
            *self = KnownTrees::default();
        }
        self.entries += entries.len();
        self.dirs.insert(tree, entries);
    }
}

impl Hub {
    /// Returns the files of a commit or tree, in the order of their paths.
    pub(crate) fn files_of(&self, commit: &Oid) -> Result<Vec<TreeFile>, GitError> {
        let root = self.tree_of(commit)?;
        let mut files = Vec::new();
        if self.walk(&root, 0, &mut Vec::new(), &mut files).is_some() {
            return Ok(files);
        }
        self.learn_by_git(&root)
    }

    /// Returns the files that differ between two commits or trees, in the order of their paths. A
    /// rename is a deletion and a new file.
    pub(crate) fn differences(
        &self,
        old: &Oid,
        new: &Oid,
    ) -> Result<Vec<FileDifference>, GitError> {
        let (old, new) = (self.tree_of(old)?, self.tree_of(new)?);
        let mut found = Vec::new();
        match self.compare((Some(&old), Some(&new)), 0, &mut Vec::new(), &mut found) {
            Some(()) => {
                // A file sorts before its name as a directory, and not always next to it.
                found.sort_by(|one, other| one.path.cmp(&other.path));
                Ok(found)
            }
            None => self.compare_by_git(&old, &new),
        }
    }

    /// Adds the differences between two directories, of which one may be missing. What both have in
    /// common is not read. `None` when a directory is neither remembered nor loose, or is too deep.
    fn compare(
        &self,
        (old, new): (Option<&Oid>, Option<&Oid>),
        depth: usize,
        path: &mut Vec<u8>,
        found: &mut Vec<FileDifference>,
    ) -> Option<()> {
        if old == new {
            return Some(());
        }
        if depth > DEPTH_MAX {
            return None;
        }
        let entries = |tree: Option<&Oid>| match tree {
            Some(tree) => self.entries_of(tree),
            None => Some(Arc::default()),
        };
        let (before, after) = (entries(old)?, entries(new)?);
        let mut names: BTreeMap<&[u8], [Option<&TreeEntry>; 2]> = BTreeMap::new();
        for (side, entries) in [before.iter(), after.iter()].into_iter().enumerate() {
            for entry in entries {
                *names.entry(&entry.name).or_default().get_mut(side)? = Some(entry);
            }
        }
        for (name, [old, new]) in names {
            let dir = |entry: Option<&TreeEntry>| {
                entry.filter(|entry| entry.mode == DIRECTORY).map(|entry| entry.oid.clone())
            };
            let file = |entry: Option<&TreeEntry>| {
                let entry = entry.filter(|entry| entry.mode != DIRECTORY);
                entry.map(|entry| (entry.mode, entry.oid.clone()))
            };
            let len = path.len();
            path.extend_from_slice(name);
            if file(old) != file(new) {
                let (old, new) = (file(old), file(new));
                found.push(FileDifference { path: path.clone(), old, new });
            }
            path.push(b'/');
            self.compare((dir(old).as_ref(), dir(new).as_ref()), depth + 1, path, found)?;
            path.truncate(len);
        }
        Some(())
    }

    fn compare_by_git(&self, old: &Oid, new: &Oid) -> Result<Vec<FileDifference>, GitError> {
        let listing = self
            .git(format!("compare {} with {}", old.short(), new.short()))
            .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--full-index"])
            .args([old.as_str(), new.as_str()])
            .ok()?;
        let mut found = Vec::new();
        let mut fields = listing.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        while let (Some(facts), Some(path)) = (fields.next(), fields.next()) {
            // `:100644 100755 <old> <new> M`, with zeros for what is not there.
            let text = String::from_utf8_lossy(facts).into_owned();
            let words: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
            let side = |mode: usize| -> Option<Option<(u32, Oid)>> {
                let oid = Oid::parse(words.get(mode + 2)?).ok()?;
                let mode = u32::from_str_radix(words.get(mode)?, 8).ok()?;
                Some((mode != 0).then_some((mode, oid)))
            };
            let (Some(old), Some(new)) = (side(0), side(1)) else {
                return Err(GitError::Unreadable { what: "list of changes".into(), text });
            };
            found.push(FileDifference { path: path.to_vec(), old, new });
        }
        Ok(found)
    }

    /// Writes the trees of these files, which are in the order of their paths, and returns the root.
    /// `None` where git has to do it.
    pub(super) fn write_trees(&self, files: &[TreeFile]) -> Option<Oid> {
        let first = files.first()?;
        let digits = first.oid.as_str().len();
        self.write_dir(files, 0, 0, digits)
    }

    /// Returns whether the trees of a commit, written again from its files, would be the same.
    pub(super) fn writes_like(&self, commit: &Oid) -> bool {
        let (Ok(files), Ok(tree)) = (self.files_of(commit), self.tree_of(commit)) else {
            return false;
        };
        files.iter().all(|file| MODES.contains(&file.mode))
            && self.write_trees(&files) == Some(tree)
    }

    fn write_dir(
        &self,
        files: &[TreeFile],
        depth: usize,
        skipped: usize,
        digits: usize,
    ) -> Option<Oid> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut entries: Vec<TreeEntry> = Vec::new();
        let mut rest = files;
        while let Some(file) = rest.first() {
            let below = file.path.get(skipped..)?;
            let Some(slash) = memchr::memchr(b'/', below) else {
                entries.push(TreeEntry {
                    name: below.to_vec(),
                    mode: file.mode,
                    oid: file.oid.clone(),
                });
                rest = rest.get(1..)?;
                continue;
            };
            let prefix = file.path.get(..=skipped + slash)?;
            let count = rest.iter().take_while(|file| file.path.starts_with(prefix)).count();
            let oid = self.write_dir(rest.get(..count)?, depth + 1, prefix.len(), digits)?;
            entries.push(TreeEntry { name: below.get(..slash)?.to_vec(), mode: DIRECTORY, oid });
            rest = rest.get(count..)?;
        }
        self.write_entries(entries, digits)
    }

    /// Writes a directory with these entries, which are in git's order.
    pub(super) fn write_entries(&self, entries: Vec<TreeEntry>, digits: usize) -> Option<Oid> {
        let mut content = Vec::new();
        for TreeEntry { name, mode, oid } in &entries {
            if name.is_empty() {
                return None;
            }
            content.extend_from_slice(format!("{mode:o} ").as_bytes());
            content.extend_from_slice(name);
            content.push(0);
            content.extend_from_slice(&oid.to_bytes());
        }
        let tree = loose::name(ObjectKind::Tree, &content, digits)?;
        let mut known = self.known_trees.lock().unwrap_or_else(PoisonError::into_inner);
        if known.dirs.contains_key(&tree) {
            return Some(tree);
        }
        let written = loose::write(self.dir(), ObjectKind::Tree, &content, digits).ok()?;
        known.learn(written.clone(), Arc::new(entries));
        Some(written)
    }

    /// Adds the files of a tree; `None` when a directory is neither remembered nor loose, or is too
    /// deep.
    fn walk(
        &self,
        tree: &Oid,
        depth: usize,
        path: &mut Vec<u8>,
        files: &mut Vec<TreeFile>,
    ) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        for entry in self.entries_of(tree)?.iter() {
            let len = path.len();
            path.extend_from_slice(&entry.name);
            if entry.mode == DIRECTORY {
                path.push(b'/');
                self.walk(&entry.oid, depth + 1, path, files)?;
            } else {
                let (mode, oid) = (entry.mode, entry.oid.clone());
                files.push(TreeFile { path: path.clone(), mode, oid });
            }
            path.truncate(len);
        }
        Some(())
    }

    /// Returns the entries of a directory, if it is remembered or loose.
    pub(super) fn entries_of(&self, tree: &Oid) -> Option<Arc<Vec<TreeEntry>>> {
        let known = self.known_trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = known.dirs.get(tree) {
            return Some(Arc::clone(entries));
        }
        drop(known);
        let content = loose::read(self.dir(), tree, ObjectKind::Tree)?;
        let entries = Arc::new(parse(&content, tree.as_str().len() / 2)?);
        let mut known = self.known_trees.lock().unwrap_or_else(PoisonError::into_inner);
        known.learn(tree.clone(), Arc::clone(&entries));
        Some(entries)
    }

    /// Asks git for the files of a tree, and remembers all its directories.
    fn learn_by_git(&self, root: &Oid) -> Result<Vec<TreeFile>, GitError> {
        let listing = self
            .git(format!("list the files of {root}"))
            .args(["ls-tree", "-r", "-t", "-z", "--full-tree", root.as_str()])
            .ok()?;
        let mut files = Vec::new();
        // The entries of each directory, by its path.
        let mut dirs: BTreeMap<Vec<u8>, (Oid, Vec<TreeEntry>)> = BTreeMap::new();
        dirs.insert(Vec::new(), (root.clone(), Vec::new()));
        for line in listing.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let TreeFile { path, mode, oid } = parse_listed(line)?;
            let cut = memchr::memrchr(b'/', &path);
            let (parent, name) = match cut {
                Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..)),
                None => (b"".as_slice(), Some(&*path)),
            };
            let name = name.unwrap_or_default().to_vec();
            if let Some((_, entries)) = dirs.get_mut(parent) {
                entries.push(TreeEntry { name, mode, oid: oid.clone() });
            }
            if mode == DIRECTORY {
                dirs.insert(path, (oid, Vec::new()));
            } else {
                files.push(TreeFile { path, mode, oid });
            }
        }
        let mut known = self.known_trees.lock().unwrap_or_else(PoisonError::into_inner);
        for (tree, entries) in dirs.into_values() {
            known.learn(tree, Arc::new(entries));
        }
        Ok(files)
    }
}

/// Returns whether nothing of this name is at the top of a commit that has a file of its own, as its
/// tree does.
pub(super) fn surely_lacks_top(git_dir: &Path, commit: &Oid, name: &str) -> bool {
    let entries = || {
        let head = CommitHead::read(&loose::read(git_dir, commit, ObjectKind::Commit)?)?;
        let content = loose::read(git_dir, &head.tree, ObjectKind::Tree)?;
        parse(&content, commit.as_str().len() / 2)
    };
    entries().is_some_and(|all| all.iter().all(|entry| entry.name != name.as_bytes()))
}

/// Reads the content of a tree: entries of `<mode> <name>`, a zero byte and the object's name. A mode
/// in the form of old tools, which begins with a zero, is left to git.
fn parse(content: &[u8], name_bytes: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let space = memchr::memchr(b' ', rest)?;
        let mode = std::str::from_utf8(rest.get(..space)?).ok().filter(|m| !m.starts_with('0'))?;
        let mode = u32::from_str_radix(mode, 8).ok()?;
        rest = rest.get(space + 1..)?;
        let end = memchr::memchr(0, rest)?;
        let name = rest.get(..end)?.to_vec();
        let oid = Oid::of_bytes(rest.get(end + 1..end + 1 + name_bytes)?);
        entries.push(TreeEntry { name, mode, oid });
        rest = rest.get(end + 1 + name_bytes..)?;
    }
    Some(entries)
}

/// Reads `<mode> <kind> <object>\t<path>` of `ls-tree`.
pub(super) fn parse_listed(line: &[u8]) -> Result<TreeFile, GitError> {
    let parsed = || {
        let tab = memchr::memchr(b'\t', line)?;
        let mut words = std::str::from_utf8(line.get(..tab)?).ok()?.split(' ');
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let oid = Oid::parse(words.nth(1)?).ok()?;
        Some(TreeFile { path: line.get(tab + 1..)?.to_vec(), mode, oid })
    };
    parsed().ok_or_else(|| {
        let text = String::from_utf8_lossy(line).into_owned();
        GitError::Unreadable { what: "listing".into(), text }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::git::command::GitCommand;
    use crate::git::repo::UserRepo;
    use std::fs;

    /// A hub of a repository with files in directories whose names sort in odd ways.
    pub(in crate::git) fn hub() -> (tempfile::TempDir, Hub) {
        let temp = tempfile::tempdir().unwrap();
        let user = temp.path().join("user");
        for (path, text) in [("a-b", "1"), ("a/b", "2"), ("a/c/d", "3"), ("a.b", "4"), ("ab", "5")]
        {
            fs::create_dir_all(user.join(path).parent().unwrap()).unwrap();
            fs::write(user.join(path), text).unwrap();
        }
        let git = |words: &[&str]| {
            let git = GitCommand::as_user("prepare", &user);
            let git = git.config("user.name", "Ada").config("user.email", "a@b");
            git.args(words.to_vec()).ok().unwrap();
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "first"]);
        // Packed, so that git is asked for them.
        git(&["repack", "-q", "-a", "-d"]);
        let repo = UserRepo::examine(&user, "main", &[]).unwrap();
        let hub = Hub::open(&temp.path().join("state"), &repo).unwrap();
        (temp, hub)
    }

    fn listed(hub: &Hub, tree: &Oid) -> String {
        let listed = hub.git("list").args(["ls-tree", "-r", "-z", "--full-tree", tree.as_str()]);
        String::from_utf8(listed.ok().unwrap()).unwrap()
    }

    fn told(files: &[TreeFile]) -> String {
        let line = |TreeFile { path, mode, oid }: &TreeFile| {
            format!("{mode:06o} blob {oid}\t{}\0", String::from_utf8_lossy(path))
        };
        files.iter().map(line).collect()
    }

    #[test]
    fn trees_are_read_and_written_as_git_does_it() {
        let (_temp, hub) = hub();
        let base = hub.tips().unwrap().remove(0);
        let mut files = hub.files_of(&base).unwrap();
        assert_eq!(told(&files), listed(&hub, &base));
        assert_eq!(hub.write_trees(&files), Some(hub.tree_of(&base).unwrap()));
        let blob = loose::write(hub.dir(), ObjectKind::Blob, b"new", 40).unwrap();
        files.retain(|file| file.path != b"a/b");
        for file in files.iter_mut().filter(|file| file.path == b"a/c/d") {
            file.oid = blob.clone();
        }
        files.push(TreeFile { path: b"a/c/e.f/g".to_vec(), mode: 0o100_755, oid: blob });
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let tree = hub.write_trees(&files).unwrap();
        assert_eq!(told(&files), listed(&hub, &tree));
        hub.git("check").args(["fsck", "--strict", "--no-dangling"]).ok().unwrap();
        // Somebody else reads them anew.
        assert_eq!(Hub::clone(&hub).files_of(&tree).unwrap(), files);
        // A file where there was a directory, and a directory where there was a file.
        let blob = files[0].oid.clone();
        let turned = ["a", "a-b/x", "a.b"].map(|path| TreeFile {
            path: path.into(),
            mode: 0o100_644,
            oid: blob.clone(),
        });
        let turned = hub.write_trees(&turned).unwrap();
        for (one, other) in [(&base, &tree), (&tree, &base), (&tree, &tree), (&tree, &turned)] {
            let found = hub.differences(one, other).unwrap();
            let (one, other) = (hub.tree_of(one).unwrap(), hub.tree_of(other).unwrap());
            assert_eq!(found, hub.compare_by_git(&one, &other).unwrap(), "{one} {other}");
        }
        let found = hub.differences(&base, &tree).unwrap().into_iter();
        let found: Vec<String> =
            found.map(|found| String::from_utf8(found.path).unwrap()).collect();
        assert_eq!(found, ["a/b", "a/c/d", "a/c/e.f/g"]);
    }

    #[test]
    fn a_name_that_is_not_at_the_top_is_surely_lacking_where_the_tree_can_be_read() {
        let (_temp, hub) = hub();
        let packed = hub.tips().unwrap().remove(0);
        assert!(!surely_lacks_top(hub.dir(), &packed, "nowhere"), "git has to be asked");
        let tree = hub.write_trees(&hub.files_of(&packed).unwrap()[1..]).unwrap();
        let text = format!("tree {tree}\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\nx");
        let write = |text: &str| loose::write(hub.dir(), ObjectKind::Commit, text.as_bytes(), 40);
        let commit = write(&text).unwrap();
        assert!(surely_lacks_top(hub.dir(), &commit, "nowhere"));
        assert!(!surely_lacks_top(hub.dir(), &commit, "a"));
    }

    #[test]
    fn directories_that_are_too_deep_are_left_to_git() {
        let (_temp, hub) = hub();
        let blob = loose::write(hub.dir(), ObjectKind::Blob, b"new", 40).unwrap();
        let at = |path: Vec<u8>| TreeFile { path, mode: 0o100_644, oid: blob.clone() };
        let deepest = [b"d/".repeat(DEPTH_MAX), b"f".to_vec()].concat();
        let tree = hub.write_trees(&[at(deepest.clone())]).unwrap();
        assert_eq!(hub.files_of(&tree).unwrap(), [at(deepest.clone())]);
        let deeper = [b"d/".as_slice(), &*deepest].concat();
        assert_eq!(hub.write_trees(&[at(deeper.clone())]), None);
        // One that somebody else made.
        let content = [b"40000 d\0".as_slice(), &tree.to_bytes()].concat();
        let above = loose::write(hub.dir(), ObjectKind::Tree, &content, 40).unwrap();
        assert!(hub.walk(&above, 0, &mut Vec::new(), &mut Vec::new()).is_none());
        assert_eq!(hub.files_of(&above).unwrap(), [at(deeper.clone())]);
        let base = hub.tips().unwrap().remove(0);
        let mut found = Vec::new();
        assert!(hub.compare((None, Some(&above)), 0, &mut Vec::new(), &mut found).is_none());
        let found = hub.differences(&base, &above).unwrap();
        assert!(found.iter().any(|found| found.path == deeper), "{found:?}");
    }

    #[test]
    fn a_tree_that_is_nowhere_is_an_error() {
        let (_temp, hub) = hub();
        assert!(hub.files_of(&Oid::parse(&"1".repeat(40)).unwrap()).is_err());
    }

    #[test]
    fn a_tree_that_is_cut_short_is_not_read() {
        let mut content = b"100644 a\0".to_vec();
        content.extend([7; 20]);
        assert_eq!(parse(&content, 20).unwrap().len(), 1);
        content.pop();
        assert!(parse(&content, 20).is_none());
        assert!(parse(b"100644", 20).is_none());
        let old = [b"040000 a\0".as_slice(), &[7; 20]].concat();
        assert!(parse(&old, 20).is_none(), "a mode that git writes no more");
    }
}

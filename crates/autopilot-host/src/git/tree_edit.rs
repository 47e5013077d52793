//! Single files of trees, looked up and replaced in this process: only the directories on the way to a
//! file are read and written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::hub::Hub;
use super::object::Oid;
use super::tree_file::{DIRECTORY, TreeEntry};
use crate::fail;

/// The mode of a plain file.
const FILE: u32 = 0o100_644;

impl Hub {
    /// Returns the content of the plain file at a path of a tree, if there is one. `None` outside says
    /// nothing: git has to be asked.
    pub(super) fn plain_file(&self, tree: &Oid, path: &str) -> Option<Option<Oid>> {
        if fail::is_git_alone() {
            return None;
        }
        let (mut at, mut names) = (tree.clone(), path.split('/').peekable());
        while let Some(name) = names.next() {
            let entries = self.entries_of(&at)?;
            let Some(entry) = entries.iter().find(|entry| entry.name == name.as_bytes()) else {
                return Some(None);
            };
            match (names.peek().is_some(), entry.mode) {
                (true, DIRECTORY) => at = entry.oid.clone(),
                (false, FILE) => return Some(Some(entry.oid.clone())),
                (true | false, _) => return Some(None),
            }
        }
        None
    }

    /// Writes a tree with these plain files beside those that it has, or instead of the ones at the
    /// same paths. `None` where git has to do it.
    pub(super) fn with_plain_files<'a>(
        &self,
        tree: Option<&Oid>,
        files: impl Iterator<Item = (&'a str, &'a Oid)>,
    ) -> Option<Oid> {
        if fail::is_git_alone() {
            return None;
        }
        let files: Vec<(&str, &Oid)> = files.collect();
        let digits = files.first()?.1.as_str().len();
        self.with_files_below(tree, &files, digits)
    }

    fn with_files_below(
        &self,
        tree: Option<&Oid>,
        files: &[(&str, &Oid)],
        digits: usize,
    ) -> Option<Oid> {
        let before = tree.map_or_else(|| Some(Arc::default()), |tree| self.entries_of(tree))?;
        let mut entries: Vec<TreeEntry> = before.to_vec();
        let mut below: BTreeMap<&str, Vec<(&str, &Oid)>> = BTreeMap::new();
        let mut new: Vec<TreeEntry> = Vec::new();
        for (path, oid) in files {
            match path.split_once('/') {
                Some((dir, rest)) => below.entry(dir).or_default().push((rest, *oid)),
                None => new.push(TreeEntry {
                    name: path.as_bytes().to_vec(),
                    mode: FILE,
                    oid: (*oid).clone(),
                }),
            }
        }
        for (dir, files) in below {
            let known = entries.iter().find(|entry| entry.name == dir.as_bytes());
            // A file in the way of a directory is a matter for git.
            let known = known.map(|entry| (entry.mode == DIRECTORY).then_some(&entry.oid));
            let known = known.map_or(Some(None), |dir| dir.map(Some))?;
            let oid = self.with_files_below(known, &files, digits)?;
            new.push(TreeEntry { name: dir.as_bytes().to_vec(), mode: DIRECTORY, oid });
        }
        for entry in new {
            match entries.iter_mut().find(|known| known.name == entry.name) {
                Some(known) if known.mode == entry.mode => known.oid = entry.oid,
                Some(_) => return None,
                None => entries.push(entry),
            }
        }
        // A directory sorts as if its name ended with a slash.
        entries.sort_by_cached_key(|TreeEntry { name, mode, .. }| {
            let slash: &[u8] = if *mode == DIRECTORY { b"/" } else { b"" };
            [name.as_slice(), slash].concat()
        });
        self.write_entries(entries, digits)
    }
}

#[cfg(test)]
mod tests {
    use crate::git::loose::{self, ObjectKind};
    use crate::git::tree_file::tests::hub;

    #[test]
    fn a_file_is_put_where_git_would_put_it() {
        let (_temp, hub) = hub();
        let blob = loose::write(hub.dir(), ObjectKind::Blob, b"new", 40).unwrap();
        let base = hub.tips().unwrap().remove(0);
        let base = hub.tree_of(&base).unwrap();
        // The directories of the base are packed until git has listed them.
        hub.files_of(&base).unwrap();
        let paths = ["a/b", "a/e/f", "a-c", "aa", "a0/x", "new"];
        let put = hub.with_plain_files(Some(&base), paths.iter().map(|path| (*path, &blob)));
        let put = put.unwrap();
        let index = hub.dir().join("index-of-test");
        let git = |words: &[&str]| hub.git("ask").index(&index).args(words.to_vec());
        git(&["read-tree", base.as_str()]).ok().unwrap();
        let lines: String = paths.iter().map(|path| format!("100644 {blob}\t{path}\0")).collect();
        git(&["update-index", "--add", "-z", "--index-info"]).stdin(lines).ok().unwrap();
        assert_eq!(git(&["write-tree"]).oid().unwrap(), put);
        for path in paths {
            assert_eq!(hub.plain_file(&put, path), Some(Some(blob.clone())), "{path}");
        }
        for nothing in ["nowhere", "a/nowhere", "a", "new/x"] {
            assert_eq!(hub.plain_file(&put, nothing), Some(None), "{nothing}");
        }
        // From nothing, and in the way of each other.
        let alone = hub.with_plain_files(None, [("x/y", &blob)].into_iter()).unwrap();
        assert_eq!(hub.plain_file(&alone, "x/y"), Some(Some(blob.clone())));
        assert_eq!(hub.with_plain_files(Some(&put), [("new/x", &blob)].into_iter()), None);
        assert_eq!(hub.with_plain_files(Some(&put), [("a", &blob)].into_iter()), None);
    }
}

//! The paths of a commit with the texts of chosen files, for rules that read a whole tree.

use super::command::GitCommand;
use super::error::GitError;
use super::object::Oid;
use super::skill::read;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The limits on what is read of a tree.
#[derive(Clone, Copy, Debug)]
pub struct TextLimits {
    /// The most paths that are listed.
    pub paths_max: usize,
    /// The largest file; a longer one is not read.
    pub bytes_max: usize,
    /// The most bytes of all files together.
    pub all_bytes_max: usize,
}

/// The paths of a commit, and the texts of some of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeTexts {
    pub paths: BTreeSet<String>,
    pub texts: BTreeMap<String, String>,
    /// A limit left paths or texts out.
    pub is_cut: bool,
}

/// Lists the paths of a commit and reads the plain files that are wanted by their paths.
pub fn tree_texts(
    git_dir: &Path,
    commit: &Oid,
    is_wanted: &dyn Fn(&str) -> bool,
    limits: TextLimits,
) -> Result<TreeTexts, GitError> {
    let listed = GitCommand::isolated("list the files of the base", git_dir)
        .args(["ls-tree", "-r", "-z", "-l", "--full-tree", commit.as_str()])
        .ok()?;
    let mut found = TreeTexts::default();
    let (mut names, mut wanted) = (Vec::new(), Vec::new());
    let mut room = limits.all_bytes_max;
    for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        if found.paths.len() == limits.paths_max {
            found.is_cut = true;
            break;
        }
        let entry = String::from_utf8_lossy(entry);
        let Some((facts, path)) = entry.split_once('\t') else { continue };
        found.paths.insert(path.to_owned());
        let facts: Vec<&str> = facts.split_whitespace().collect();
        let [mode, _, oid, size] = facts.as_slice() else { continue };
        let Ok(size) = size.parse::<usize>() else { continue };
        if !matches!(*mode, "100644" | "100755") || !is_wanted(path) {
            continue;
        }
        if size > limits.bytes_max || size > room {
            found.is_cut = true;
            continue;
        }
        room -= size;
        names.push(path.to_owned());
        wanted.push(((*oid).to_owned(), size));
    }
    let texts = read(git_dir, &wanted)?;
    let named = names.into_iter().zip(texts);
    found.texts =
        named.filter_map(|(name, bytes)| Some((name, String::from_utf8(bytes).ok()?))).collect();
    Ok(found)
}

//! Submodules of the user's repository: the commits that a tree names are looked for in the user's own
//! objects, and nowhere else.
//!
//! Invariant: nothing is fetched, and no text of a tree decides what is read. `.gitmodules` is never
//! looked at: an object has the name that the tree asks for, wherever it is found.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::command::{GitCommand, TRANSFER_TIMEOUT};
use super::disposable::open_plain;
use super::error::GitError;
use super::object::Oid;
use super::repo::{RepoRefusal, UserRepo, named_filters};
use super::tree_file::{SUBMODULE, TreeFile, parse_listed};

/// How deep submodules may lie in each other.
pub(super) const NESTED_MAX: usize = 32;
/// The directories that are looked at in search of the repositories of submodules.
const DIRECTORIES_MAX: usize = 20_000;
/// The most bytes of a file that only names a directory.
const POINTER_BYTES_MAX: u64 = 16 * 1024;

/// Where the objects of the user's submodules may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModulePlaces {
    common_dir: PathBuf,
    /// The tops of the working trees.
    roots: Vec<PathBuf>,
}

/// A submodule whose files the user has.
#[derive(Clone, Debug)]
pub(super) struct FoundModule {
    /// The path and the commit.
    pub link: TreeFile,
    /// The tree of the commit.
    pub tree: Oid,
    /// The object directories to look into.
    pub stores: Vec<PathBuf>,
}

impl ModulePlaces {
    /// Returns the places around a repository, and the tops of its other working trees.
    pub fn around(common_dir: &Path, root: Option<&Path>) -> ModulePlaces {
        let mut roots: Vec<PathBuf> = root.map(Path::to_owned).into_iter().collect();
        if common_dir.file_name() == Some(OsStr::new(".git")) {
            roots.extend(common_dir.parent().map(Path::to_owned));
        }
        for worktree in dirs_in(&common_dir.join("worktrees")) {
            let own = pointer(&worktree.join("gitdir"), "");
            roots.extend(own.and_then(|git| git.parent().map(Path::to_owned)));
        }
        let mut seen = BTreeSet::new();
        roots.retain(|root| seen.insert(root.clone()));
        ModulePlaces { common_dir: common_dir.to_owned(), roots }
    }

    /// Returns the places around the user's repository.
    pub fn of(repo: &UserRepo) -> ModulePlaces {
        ModulePlaces::around(&repo.common_dir, Some(&repo.root))
    }

    /// Returns the object directories in which the submodule at a path may have its commits: those of
    /// all repositories that git keeps for submodules, and of one that lies in a working tree.
    pub fn stores(&self, path: &[u8]) -> Result<Vec<PathBuf>, GitError> {
        let path = plain_path(path)?;
        let mut found = Vec::new();
        let mut left = DIRECTORIES_MAX;
        add_modules(&self.common_dir.join("modules"), &mut left, &mut found);
        for worktree in dirs_in(&self.common_dir.join("worktrees")) {
            add_modules(&worktree.join("modules"), &mut left, &mut found);
        }
        let git_dirs = self.roots.iter().filter_map(|root| git_dir_at(&root.join(&path)));
        for git_dir in git_dirs {
            found.push(git_dir.join("objects"));
            add_modules(&git_dir.join("modules"), &mut left, &mut found);
        }
        let mut seen = BTreeSet::new();
        found.retain(|store| store.is_dir() && seen.insert(store.clone()));
        Ok(found)
    }

    /// Returns the tree of the commit that a tree names at a path, found by a command that reads these
    /// stores beside its own objects.
    pub fn tree_of(
        git: GitCommand,
        stores: &[PathBuf],
        link: &TreeFile,
        top: &[u8],
    ) -> Result<Oid, GitError> {
        let stores: Vec<&Path> = stores.iter().map(PathBuf::as_path).collect();
        let out = git
            .also_objects(&stores)
            .args(["rev-parse", "--quiet", "--verify", "--end-of-options"])
            .arg(format!("{}^{{tree}}", link.oid))
            .run()?;
        match out.code() {
            Some(0) => Oid::from_bytes(out.stdout.trim_ascii()),
            Some(_) => Err(missing(link, top).into()),
            None => {
                Err(out.expect_code(&[0]).err().map_or(missing(link, top).into(), GitError::from))
            }
        }
    }

    /// Returns the submodules of a commit and their own ones. One whose commit the user does not have is
    /// refused.
    pub fn check(&self, commit: &Oid) -> Result<Vec<FoundModule>, GitError> {
        let git = || GitCommand::isolated("look for submodules", &self.common_dir);
        let links = links_in(git(), &[], commit, b"")?.into_iter();
        let mut pending: Vec<(Vec<TreeFile>, TreeFile)> =
            links.map(|link| (Vec::new(), link)).collect();
        let mut found = Vec::new();
        while let Some((mut around, link)) = pending.pop() {
            if around.len() >= NESTED_MAX {
                return Err(too_deep(&link.path).into());
            }
            let stores = self.stores(&link.path)?;
            let top = around.first().unwrap_or(&link);
            let tree = ModulePlaces::tree_of(git(), &stores, &link, &top.path)?;
            let prefix = [&*link.path, b"/"].concat();
            let nested = links_in(git(), &stores, &tree, &prefix);
            let nested = nested.map_err(|error| incomplete(&link, error))?;
            around.push(link.clone());
            pending.extend(nested.into_iter().map(|link| (around.clone(), link)));
            found.push(FoundModule { link, tree, stores });
        }
        Ok(found)
    }
}

impl FoundModule {
    /// Returns the content filters that the submodule's own attributes name, with the files that do.
    pub fn filters(&self, git: GitCommand) -> Result<Vec<(String, String)>, GitError> {
        let stores: Vec<&Path> = self.stores.iter().map(PathBuf::as_path).collect();
        let prefix = format!("{}/", String::from_utf8_lossy(&self.link.path));
        let named = named_filters(git.also_objects(&stores), &self.tree, &prefix);
        named.map_err(|error| incomplete(&self.link, error))
    }
}

/// Lists the submodules of a commit or tree, each with its path below `prefix`.
pub(super) fn links_in(
    git: GitCommand,
    stores: &[PathBuf],
    tree: &Oid,
    prefix: &[u8],
) -> Result<Vec<TreeFile>, GitError> {
    let stores: Vec<&Path> = stores.iter().map(PathBuf::as_path).collect();
    let listing = git
        .also_objects(&stores)
        .args(["ls-tree", "-r", "-z", "--full-tree", tree.as_str()])
        .timeout(TRANSFER_TIMEOUT)
        .ok()?;
    let lines = listing.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
    lines
        .map(|line| {
            let link = parse_listed(line)?;
            Ok(TreeFile { path: [prefix, &*link.path].concat(), ..link })
        })
        .collect()
}

/// Returns whether a file of a tree is a submodule.
pub(super) fn is_link(file: &TreeFile) -> bool {
    file.mode == SUBMODULE
}

/// Refuses a submodule whose commit the user does not have.
fn missing(link: &TreeFile, top: &[u8]) -> RepoRefusal {
    RepoRefusal::SubmoduleMissing {
        path: String::from_utf8_lossy(&link.path).into_owned(),
        top: String::from_utf8_lossy(top).into_owned(),
        commit: link.oid.short().to_owned(),
    }
}

/// Refuses a submodule of which objects are missing. A git that was cut short has not said that.
pub(super) fn incomplete(link: &TreeFile, error: impl Into<GitError>) -> GitError {
    let error = error.into();
    if error.is_cut_short() {
        return error;
    }
    let path = String::from_utf8_lossy(&link.path).into_owned();
    RepoRefusal::SubmoduleIncomplete { path }.into()
}

pub(super) fn too_deep(path: &[u8]) -> RepoRefusal {
    RepoRefusal::SubmodulePath { path: String::from_utf8_lossy(path).into_owned() }
}

/// Returns the path of a submodule, unless it leads out of the working tree or into a `.git`. Git
/// writes no such tree, but others can.
pub(super) fn plain_path(path: &[u8]) -> Result<PathBuf, GitError> {
    let is_plain = path
        .split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"));
    match is_plain {
        true => Ok(PathBuf::from(OsStr::from_bytes(path))),
        false => Err(too_deep(path).into()),
    }
}

/// Adds the object directories of the repositories below a directory `modules`. The name of a submodule
/// may have slashes, and its repository has such a directory of its own.
fn add_modules(dir: &Path, left: &mut usize, found: &mut Vec<PathBuf>) {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for dir in dirs_in(&dir) {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let is_repository = dir.join("HEAD").is_file() && dir.join("objects").is_dir();
            pending.push(if is_repository { dir.join("modules") } else { dir.clone() });
            if is_repository {
                found.push(dir.join("objects"));
            }
        }
    }
}

/// Returns the directories in a directory, but no links to some.
fn dirs_in(dir: &Path) -> Vec<PathBuf> {
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = entries.filter(is_dir).map(|entry| entry.path()).collect();
    dirs.sort();
    dirs
}

/// Returns the git directory of the working tree at a path: its own one, or the one that it names.
fn git_dir_at(top: &Path) -> Option<PathBuf> {
    let own = top.join(".git");
    let own = if own.is_dir() { own } else { pointer(&own, "gitdir: ")? };
    // A linked working tree of the submodule shares the objects of another one.
    Some(pointer(&own.join("commondir"), "").unwrap_or(own))
}

/// Reads a file that names a directory.
fn pointer(file: &Path, before: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    open_plain(file)?.take(POINTER_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let named = bytes.strip_prefix(before.as_bytes())?.trim_ascii_end();
    (!named.is_empty()).then(|| file.parent().map(|dir| dir.join(OsStr::from_bytes(named))))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_is_no_submodule() {
        for path in ["lib", "a/b c", "..lib", "a/.github", "a/...", "lib.git"] {
            assert_eq!(plain_path(path.as_bytes()).unwrap(), Path::new(path));
        }
        for path in
            ["", "..", "../lib", "a/../../lib", "/lib", "a//b", "a/", "./a", "a/.git", ".GIT/x"]
        {
            let refused = plain_path(path.as_bytes()).unwrap_err();
            let told = RepoRefusal::SubmodulePath { path: path.to_owned() };
            assert!(matches!(refused, GitError::Refused(found) if found == told), "{path}");
        }
    }
}

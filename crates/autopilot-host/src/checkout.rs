//! Finding the checkout around a directory without starting git, so that `status` can answer within
//! milliseconds.

use crate::git::state::{StateEnv, state_dir};
use std::fs;
use std::path::{Path, PathBuf};

/// A working tree and the git directory behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The top level of the working tree.
    pub root: PathBuf,
    /// The git directory that all worktrees of the repository share.
    pub common_dir: PathBuf,
}

/// Returns the checkout that holds `dir`, if there is one.
pub fn find(dir: &Path) -> Option<Checkout> {
    let dir = dir.canonicalize().ok()?;
    dir.ancestors().find_map(|root| {
        let git = root.join(".git");
        let meta = git.metadata().ok()?;
        let git_dir = if meta.is_dir() { git } else { linked(&git)? };
        let common_dir = common(&git_dir);
        common_dir.join("HEAD").is_file().then(|| Checkout { root: root.to_owned(), common_dir })
    })
}

impl Checkout {
    /// Returns the state directory of this repository, if it has been given one.
    pub fn state(&self, env: &StateEnv) -> Option<PathBuf> {
        let id = fs::read_to_string(self.common_dir.join("autopilot/id")).ok()?;
        let id = id.trim();
        let ours = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        ours.then(|| state_dir(env, id)).flatten()
    }
}

/// Reads a `.git` file, which names the git directory of a linked worktree.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    file.parent()?.join(target).canonicalize().ok()
}

fn common(git_dir: &Path) -> PathBuf {
    let named = fs::read_to_string(git_dir.join("commondir")).ok();
    named
        .and_then(|path| git_dir.join(path.trim()).canonicalize().ok())
        .unwrap_or_else(|| git_dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(dir: &Path, args: &[&str]) {
        let done = Command::new("git").current_dir(dir).args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn a_checkout_is_found_from_below_and_through_a_linked_worktree() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let main = root.join("main");
        fs::create_dir_all(main.join("a/b")).unwrap();
        git(&main, &["init", "-q"]);
        git(
            &main,
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "x",
            ],
        );
        git(&main, &["worktree", "add", "-q", "../linked"]);
        let common_dir = main.join(".git");
        let from_below = Checkout { root: main.clone(), common_dir: common_dir.clone() };
        assert_eq!(find(&main.join("a/b")), Some(from_below));
        assert_eq!(
            find(&root.join("linked")),
            Some(Checkout { root: root.join("linked"), common_dir })
        );
        assert_eq!(find(&root), None);
    }
}

//! A fresh checkout of one commit in a directory of its own, for a proof outside of a run.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::GitCommand;
use super::error::{GitError, OnFile};
use super::object::Oid;
use super::submodule::{ModulePlaces, incomplete, plain_path};
use super::sweep::remove_tree;

/// Writes the files of a commit and of its submodules into an empty directory, with a repository that
/// borrows the objects of another one. No setting, hook or filter of that one is used.
pub fn fresh_checkout(git_dir: &Path, commit: &Oid, dir: &Path) -> Result<(), GitError> {
    let format = GitCommand::isolated("read the object format", git_dir)
        .args(["rev-parse", "--show-object-format"])
        .line()?;
    GitCommand::bare_minimum("make a fresh checkout")
        .args(["init", "-q", "--template="])
        .arg(format!("--object-format={format}"))
        .arg(dir)
        .ok()?;
    let own = dir.join(".git");
    let (info, mut line) = (own.join("objects/info"), git_dir.join("objects").into_os_string());
    line.push("\n");
    fs::create_dir_all(&info).on("create", &info)?;
    let alternates = info.join("alternates");
    fs::write(&alternates, line.as_encoded_bytes()).on("write", &alternates)?;
    let git = || GitCommand::isolated("make a fresh checkout", &own).work_tree(dir);
    git().args(["update-ref", "--no-deref", "HEAD", commit.as_str()]).ok()?;
    git().args(["read-tree", "--reset", "-u", commit.as_str()]).ok()?;
    let index = own.join("submodule.index");
    for module in ModulePlaces::around(git_dir, None).check(commit)? {
        let top = dir.join(plain_path(&module.link.path)?);
        fs::create_dir_all(&top).on("create", &top)?;
        remove_tree(&index)?;
        let stores: Vec<&Path> = module.stores.iter().map(PathBuf::as_path).collect();
        GitCommand::isolated("fill a submodule", &own)
            .work_tree(&top)
            .index(&index)
            .also_objects(&stores)
            .args(["read-tree", "--reset", "-u", module.tree.as_str()])
            .ok()
            .map_err(|error| incomplete(&module.link, error))?;
    }
    remove_tree(&index)
}

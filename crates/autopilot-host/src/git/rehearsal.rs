//! A repository in which a run is played again: the commit it began from, and nothing of the
//! user's.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::command::{GitCommand, TRANSFER_TIMEOUT};
use super::error::{GitError, OnFile};
use super::hub::Hub;
use super::identity::CommitIdentity;
use super::object::Oid;

/// Makes `dir` a repository whose branch `branch` is at `base`, checked out.
pub fn make_rehearsal(
    hub: &Hub,
    base: &Oid,
    branch: &str,
    identity: &CommitIdentity,
    dir: &Path,
) -> Result<(), GitError> {
    GitCommand::bare_minimum("create a repository for the replay")
        .args(["init", "-q"])
        .arg(format!("--initial-branch={branch}"))
        .arg(dir)
        .ok()?;
    let git_dir = dir.join(".git");
    let at = |operation: &str| GitCommand::isolated(operation, &git_dir).work_tree(dir);
    for (key, value) in [
        ("user.name", identity.name.as_str()),
        ("user.email", identity.email.as_str()),
        ("receive.denyCurrentBranch", "ignore"),
    ] {
        at("set up a repository for the replay").args(["config", key, value]).ok()?;
    }
    hub.git("copy the commit that the run started from")
        .config("protocol.file.allow", "always")
        .args(["push", "-q", "--no-verify"])
        .arg(dir)
        .arg(format!("{base}:refs/heads/{branch}"))
        .timeout(TRANSFER_TIMEOUT)
        .ok()?;
    lend_submodules(hub, base, &git_dir)?;
    at("check out the commit that the run started from").args(["reset", "-q", "--hard"]).ok()?;
    Ok(())
}

/// Lets the repository read the objects of the user's submodules, as if it had them itself.
fn lend_submodules(hub: &Hub, base: &Oid, git_dir: &Path) -> Result<(), GitError> {
    let stores = hub.submodule_stores(base)?;
    if stores.is_empty() {
        return Ok(());
    }
    let module = git_dir.join("modules/all");
    let info = module.join("objects/info");
    fs::create_dir_all(&info).on("create", &info)?;
    let mut lines = OsString::new();
    for store in stores {
        lines.push(store);
        lines.push("\n");
    }
    let files = [(info.join("alternates"), lines), (module.join("HEAD"), "none\n".into())];
    for (path, text) in files {
        fs::write(&path, text.as_encoded_bytes()).on("write", &path)?;
    }
    Ok(())
}

/// Applies the change between two trees of the hub to the files in `dir`.
pub fn apply_change(hub: &Hub, from: &str, to: &str, dir: &Path) -> Result<(), GitError> {
    // The names were read from a file; anything but an object id could be an option.
    let (from, to) = (Oid::parse(from)?, Oid::parse(to)?);
    let patch = hub
        .git("read a recorded change")
        .args(["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", from.as_str(), to.as_str()])
        .timeout(TRANSFER_TIMEOUT)
        .ok()?;
    if patch.is_empty() {
        return Ok(());
    }
    hub.git("repeat a recorded change")
        .work_tree(dir)
        .cwd(dir)
        .args(["apply", "--whitespace=nowarn", "-"])
        .stdin(patch)
        .ok()?;
    Ok(())
}

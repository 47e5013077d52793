//! A branch as files, for when it can't be pushed: a patch for `git apply` and a bundle for `git
//! fetch`.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::TRANSFER_TIMEOUT;
use super::error::{GitError, OnFile};
use super::hub::Hub;
use super::object::Oid;

/// The files that hold a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifacts {
    /// The patch.
    pub patch: PathBuf,
    /// The bundle; `None` when the branch has no commits of its own, because git makes no empty
    /// bundle.
    pub bundle: Option<PathBuf>,
}

/// Writes `<stem>.patch` and `<stem>.bundle` of `base..head`. The bundle names the branch.
pub fn write_artifacts(
    hub: &Hub,
    dir: &Path,
    stem: &str,
    base: &Oid,
    head: &Oid,
    branch: &str,
) -> Result<Artifacts, GitError> {
    fs::create_dir_all(dir).on("create", dir)?;
    let patch = dir.join(format!("{stem}.patch"));
    let temp = tempfile::NamedTempFile::new_in(dir).on("create a file in", dir)?;
    hub.git(format!("write `{}`", patch.display()))
        .args([
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
        ])
        .args(["--no-renames", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"])
        .args([base.as_str(), head.as_str()])
        .timeout(TRANSFER_TIMEOUT)
        .write_to(temp.reopen().on("open", temp.path())?)?;
    persist(temp, &patch)?;
    let bundle = write_bundle(hub, dir, stem, base, head, branch)?;
    Ok(Artifacts { patch, bundle })
}

fn write_bundle(
    hub: &Hub,
    dir: &Path,
    stem: &str,
    base: &Oid,
    head: &Oid,
    branch: &str,
) -> Result<Option<PathBuf>, GitError> {
    let name = format!("refs/heads/{branch}");
    if hub.is_ancestor(head, base)? || hub.resolve(&name)?.as_ref() != Some(head) {
        return Ok(None);
    }
    let bundle = dir.join(format!("{stem}.bundle"));
    let temp = tempfile::NamedTempFile::new_in(dir).on("create a file in", dir)?;
    hub.git(format!("write `{}`", bundle.display()))
        .args(["bundle", "create", "-q", "-", &name])
        .arg(format!("^{base}"))
        .timeout(TRANSFER_TIMEOUT)
        .write_to(temp.reopen().on("open", temp.path())?)?;
    persist(temp, &bundle)?;
    Ok(Some(bundle))
}

fn persist(temp: tempfile::NamedTempFile, path: &Path) -> Result<(), GitError> {
    temp.as_file().sync_all().on("sync", path)?;
    temp.persist(path).map_err(|error| error.error).on("replace", path)?;
    Ok(())
}

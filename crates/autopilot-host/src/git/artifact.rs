//! A branch as files, for when it can't be pushed: a patch for `git apply` and a bundle for `git
//! fetch`.

use std::fs;
use std::path::{Path, PathBuf};

use super::border::Border;
use super::command::{GitCommand, TRANSFER_TIMEOUT};
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
    border: &Border,
) -> Result<Artifacts, GitError> {
    border.pass(hub, head, std::slice::from_ref(base), branch)?;
    fs::create_dir_all(dir).on("create", dir)?;
    let write = |ending: &str, git: &dyn Fn(GitCommand) -> GitCommand| {
        let path = dir.join(format!("{stem}.{ending}"));
        let temp = tempfile::NamedTempFile::new_in(dir).on("create a file in", dir)?;
        git(hub.git(format!("write `{}`", path.display())))
            .timeout(TRANSFER_TIMEOUT)
            .write_to(temp.reopen().on("open", temp.path())?)?;
        temp.as_file().sync_all().on("sync", &path)?;
        temp.persist(&path).map_err(|error| error.error).on("replace", &path)?;
        Ok::<_, GitError>(path)
    };
    let patch = write("patch", &|git| {
        git.args(["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff"])
            .args(["--no-textconv", "--no-renames", "--no-color"])
            .args(["--src-prefix=a/", "--dst-prefix=b/", base.as_str(), head.as_str()])
    })?;
    let name = format!("refs/heads/{branch}");
    if hub.is_ancestor(head, base)? || hub.resolve(&name)?.as_ref() != Some(head) {
        return Ok(Artifacts { patch, bundle: None });
    }
    let bundle = write("bundle", &|git| {
        git.args(["bundle", "create", "-q", "-", &name]).arg(format!("^{base}"))
    })?;
    Ok(Artifacts { patch, bundle: Some(bundle) })
}

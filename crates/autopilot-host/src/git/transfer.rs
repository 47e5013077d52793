//! Copying history from one object store to another, as a pack that is checked on arrival.
//!
//! There is no `fetch` and no `upload-pack`: both sides are named by directory, so no config of the
//! sending side can run anything and no remote protocol is involved.

use std::io::{Seek, SeekFrom};
use std::path::Path;

use super::command::{GitCommand, TRANSFER_TIMEOUT};
use super::error::{GitError, OnFile};
use super::object::Oid;

/// The source of objects: a trusted git directory, and more object directories to read beside it.
pub(crate) struct ObjectSource<'a> {
    pub git_dir: &'a Path,
    pub objects: Vec<&'a Path>,
}

/// How strictly arriving objects are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectCheck {
    /// Every object must hash to its name and every link must be there.
    Connected,
    /// Every object must also be well-formed by fsck's rules: for objects an agent made.
    Strict,
}

/// A guard that holds the arrived pack against a concurrent gc until the refs that need it are
/// written.
pub(crate) struct KeptPack(Option<std::path::PathBuf>);

impl Drop for KeptPack {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Copies the objects that `wants` reach and `target` lacks. Tips the target already has cost one
/// look-up.
pub(crate) fn transfer(
    source: &ObjectSource<'_>,
    target: &Path,
    wants: &[Oid],
    haves: &[Oid],
    check: ObjectCheck,
) -> Result<KeptPack, GitError> {
    let haves = existing(from(source, "find common history"), haves)?;
    transfer_known(source, target, wants, &haves, check)
}

/// The same for tips that the source has for certain.
pub(crate) fn transfer_known(
    source: &ObjectSource<'_>,
    target: &Path,
    wants: &[Oid],
    haves: &[Oid],
    check: ObjectCheck,
) -> Result<KeptPack, GitError> {
    let revs = wants.iter().map(|want| format!("{want}\n"));
    let revs: String = revs.chain(haves.iter().map(|have| format!("^{have}\n"))).collect();
    // Beside the pack that git makes of it: the temporary directory may be missing or small.
    let temp = target.join("objects");
    let mut pack = tempfile::tempfile_in(&temp).on("create a file in", &temp)?;
    let writer = pack.try_clone().on("use", &temp)?;
    from(source, "pack history")
        .args(["pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "-q"])
        .stdin(revs)
        .timeout(TRANSFER_TIMEOUT)
        .write_to(writer)?;
    pack.seek(SeekFrom::Start(0)).on("read", &temp)?;
    let strict = match check {
        ObjectCheck::Connected => None,
        ObjectCheck::Strict => Some("--strict"),
    };
    let answer = GitCommand::isolated("check and store history", target)
        .args(["index-pack", "--stdin", "--fix-thin", "--keep=autopilot"])
        .args(strict)
        .stdin_file(pack)
        .timeout(TRANSFER_TIMEOUT)
        .line()?;
    let kept = answer
        .strip_prefix("keep\t")
        .map(|hash| target.join("objects/pack").join(format!("pack-{}.keep", hash.trim())));
    Ok(KeptPack(kept))
}

fn from(source: &ObjectSource<'_>, operation: &str) -> GitCommand {
    GitCommand::isolated(operation, source.git_dir).also_objects(&source.objects)
}

/// Returns those of these objects that the repository of `git` has.
pub(crate) fn existing(git: GitCommand, oids: &[Oid]) -> Result<Vec<Oid>, GitError> {
    Ok(typed(git, oids)?.into_iter().map(|(oid, _)| oid).collect())
}

/// Returns the objects that exist, with their types.
pub(crate) fn typed(git: GitCommand, oids: &[Oid]) -> Result<Vec<(Oid, String)>, GitError> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let ask: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
    let out = git
        .args(["cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer"])
        .stdin(ask)
        .ok()?;
    let text = String::from_utf8_lossy(&out);
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, kind)| matches!(*kind, "commit" | "tag" | "tree" | "blob"))
        .map(|(oid, kind)| Ok((Oid::parse(oid)?, kind.to_owned())))
        .collect()
}

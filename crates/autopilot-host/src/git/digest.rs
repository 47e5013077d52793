//! Fingerprints: of a change, to bind a verdict to it; of a user's repository, to prove that we
//! left it alone.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::{GitError, OnFile};
use super::object::Oid;
use super::repo::UserRepo;

pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the fingerprint of a change, made of both ends, which determine every byte of its diff.
pub fn change_digest(base_tree: &Oid, tree: &Oid) -> String {
    hex_digest(format!("{base_tree}\0{tree}").as_bytes())
}

/// Returns the fingerprint of everything of the user's that must not change: config, hooks, HEAD,
/// index, refs (but ours), stash, reflogs, and every file of the working tree with its times.
pub fn user_digest(repo: &UserRepo, ours: &dyn Fn(&str) -> bool) -> Result<String, GitError> {
    let mut hasher = Sha256::new();
    for name in
        ["config", "HEAD", "index", "info", "hooks", "logs/HEAD", "logs/refs/stash", "ORIG_HEAD"]
    {
        hash_path(&mut hasher, &repo.common_dir.join(name))?;
    }
    for name in ["FETCH_HEAD", "shallow", "worktrees", "MERGE_HEAD", "objects/info"] {
        hash_path(&mut hasher, &repo.common_dir.join(name))?;
    }
    for (name, oid) in repo.refs("refs/")?.into_iter().filter(|(name, _)| !ours(name)) {
        hasher.update(format!("{name} {oid}\n"));
    }
    for entry in sorted(&repo.root)? {
        if entry != repo.common_dir {
            hash_path(&mut hasher, &entry)?;
        }
    }
    Ok(hex(&hasher.finalize()))
}

fn hash_path(hasher: &mut Sha256, path: &Path) -> Result<(), GitError> {
    hasher.update(path.as_os_str().as_bytes());
    let Ok(meta) = path.symlink_metadata() else {
        hasher.update(b"\0absent\0");
        return Ok(());
    };
    hasher.update(format!("\0{:o} {}\0", meta.mode(), meta.ino()));
    if meta.is_dir() {
        for entry in sorted(path)? {
            hash_path(hasher, &entry)?;
        }
    } else if meta.is_symlink() {
        hasher.update(fs::read_link(path).on("read", path)?.as_os_str().as_bytes());
    } else if meta.is_file() {
        hasher.update(format!("{}.{}", meta.mtime(), meta.mtime_nsec()));
        hasher.update(fs::read(path).on("read", path)?);
    }
    Ok(())
}

fn sorted(dir: &Path) -> Result<Vec<std::path::PathBuf>, GitError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).on("read", dir)? {
        paths.push(entry.on("read", dir)?.path());
    }
    paths.sort();
    Ok(paths)
}

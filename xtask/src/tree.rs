//! A copy of the workspace's sources, as they are in the working tree, for experiments on them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{self, Failure, failed_to};

const SOURCES: &[&str] =
    &["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml", ".cargo", "crates", "xtask"];

/// Makes `copy` equal to the sources under `root`. A file that is equal already keeps its
/// modification time, so the copy builds incrementally.
pub fn copy_sources(root: &Path, copy: &Path) -> Result<(), Failure> {
    let mut listing = Command::new("git");
    listing.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]);
    let names = step::output_of(listing.args(SOURCES).current_dir(root))?;
    let wanted: BTreeSet<PathBuf> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        // A deleted file is listed until its deletion is committed.
        .filter(|name| root.join(name).is_file())
        .collect();
    for name in &wanted {
        let from = root.join(name);
        let bytes = fs::read(&from).map_err(failed_to(format!("read `{}`", from.display())))?;
        write(&copy.join(name), &bytes)?;
    }
    remove_others(copy, copy, &wanted)
}

/// Writes `bytes` unless they are there already.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed_to(format!("create `{}`", parent.display())))?;
    }
    fs::write(path, bytes).map_err(failed_to(format!("write `{}`", path.display())))
}

fn remove_others(copy: &Path, dir: &Path, wanted: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let listing = fs::read_dir(dir).map_err(failed_to(format!("list `{}`", dir.display())))?;
    for path in listing.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            remove_others(copy, &path, wanted)?;
        } else if path.strip_prefix(copy).is_ok_and(|name| !wanted.contains(name)) {
            fs::remove_file(&path).map_err(failed_to(format!("remove `{}`", path.display())))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(Command::new("git").arg("init").arg("-q").arg(root).status().unwrap().success());
        fs::create_dir_all(root.join("crates/a/target")).unwrap();
        fs::write(root.join("Cargo.toml"), "[workspace]").unwrap();
        fs::write(root.join(".gitignore"), "target").unwrap();
        fs::write(root.join("crates/a/lib.rs"), "one").unwrap();
        fs::write(root.join("crates/a/target/junk"), "junk").unwrap();
        dir
    }

    #[test]
    fn the_copy_has_the_sources_and_nothing_ignored() {
        let (root, copy) = (repository(), tempfile::tempdir().unwrap());
        copy_sources(root.path(), copy.path()).unwrap();
        assert_eq!(fs::read_to_string(copy.path().join("crates/a/lib.rs")).unwrap(), "one");
        assert!(copy.path().join("Cargo.toml").is_file());
        assert!(!copy.path().join("crates/a/target/junk").exists());
    }

    #[test]
    fn a_second_copy_repairs_mutated_files_and_drops_removed_ones() {
        let (root, copy) = (repository(), tempfile::tempdir().unwrap());
        copy_sources(root.path(), copy.path()).unwrap();
        let manifest = copy.path().join("Cargo.toml");
        let before = fs::metadata(&manifest).unwrap().modified().unwrap();
        fs::write(copy.path().join("crates/a/lib.rs"), "mutated").unwrap();
        fs::write(copy.path().join("crates/a/old.rs"), "removed since").unwrap();
        copy_sources(root.path(), copy.path()).unwrap();
        assert_eq!(fs::read_to_string(copy.path().join("crates/a/lib.rs")).unwrap(), "one");
        assert!(!copy.path().join("crates/a/old.rs").exists());
        assert_eq!(fs::metadata(&manifest).unwrap().modified().unwrap(), before);
    }
}

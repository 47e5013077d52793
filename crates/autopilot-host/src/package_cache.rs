//! Filling package caches that programs may be using at the same moment.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{Mode, SFlag, fstatat};

use crate::{dir, patience};

const DIRECTORY: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);

/// Copies into a cache whatever it lacks of another, and leaves alone what it has. Each missing file or
/// directory is copied to `spare`, a path on the same file system that nobody else uses, and appears as a
/// whole. No link in the cache is followed, whoever puts one there meanwhile.
pub fn fill(from: &Path, cache: &Path, spare: &Path) -> io::Result<()> {
    dir::remove(spare)?;
    dir::create_private(spare)?;
    let into = open(cache, DIRECTORY, Mode::empty())?;
    CacheFill { spare, copied: 0 }.level(from, &into)?;
    dir::remove(spare)
}

struct CacheFill<'a> {
    spare: &'a Path,
    copied: u64,
}

impl CacheFill<'_> {
    fn level(&mut self, from: &Path, into: &OwnedFd) -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            patience::check()?;
            let entry = entry?;
            let (name, source) = (entry.file_name(), entry.path());
            match fstatat(into, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => self.whole(&source, into)?,
                Err(errno) => return Err(errno.into()),
                Ok(met) => {
                    let is_dir =
                        SFlag::from_bits_truncate(met.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
                    if !is_dir || !entry.file_type()?.is_dir() {
                        continue;
                    }
                    // Whoever uses the cache may have put something else there, or closed it.
                    if let Ok(below) = openat(into, name.as_os_str(), DIRECTORY, Mode::empty()) {
                        self.level(&source, &below)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn whole(&mut self, source: &Path, into: &OwnedFd) -> io::Result<()> {
        let met = source.symlink_metadata()?;
        let Some(name) = source.file_name() else { return Ok(()) };
        let copy = self.spare.join(self.copied.to_string());
        self.copied += 1;
        if met.is_dir() {
            dir::copy(source, &copy)?;
        } else if met.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(source)?, &copy)?;
        } else if met.is_file() {
            fs::copy(source, &copy)?;
        } else {
            return Ok(());
        }
        let moved = renameat2(AT_FDCWD, &copy, into, name, RenameFlags::RENAME_NOREPLACE);
        match moved {
            // Somebody else was faster, or has closed the directory to everybody.
            Ok(()) | Err(Errno::EEXIST | Errno::EACCES | Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(root: &Path, path: &str) -> String {
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| error.kind().to_string())
    }

    #[test]
    fn what_a_cache_lacks_is_copied_and_what_it_has_stays() {
        let temp = tempfile::tempdir().unwrap();
        let [from, cache, spare] = ["from", "cache", "spare"].map(|name| temp.path().join(name));
        put(&from, "cargo/registry/src/a-1.0/lib.rs", "a");
        put(&from, "cargo/registry/src/b-1.0/lib.rs", "b");
        put(&from, "npm/index", "base");
        put(&cache, "cargo/registry/src/a-1.0/lib.rs", "agent");
        put(&cache, "npm/more", "agent");
        put(&spare, "left", "by a killed process");
        fill(&from, &cache, &spare).unwrap();
        assert_eq!(read(&cache, "cargo/registry/src/a-1.0/lib.rs"), "agent");
        assert_eq!(read(&cache, "cargo/registry/src/b-1.0/lib.rs"), "b");
        assert_eq!(
            (read(&cache, "npm/index"), read(&cache, "npm/more")),
            ("base".into(), "agent".into())
        );
        assert!(!spare.exists());
        fs::write(cache.join("npm/index"), "changed").unwrap();
        assert_eq!(read(&from, "npm/index"), "base", "the two share nothing");
    }

    #[test]
    fn a_link_that_an_agent_put_into_its_cache_leads_nowhere() {
        let temp = tempfile::tempdir().unwrap();
        let [from, cache, outside] =
            ["from", "cache", "outside"].map(|name| temp.path().join(name));
        put(&from, "cargo/registry/x", "x");
        put(&from, "npm/y", "y");
        put(&outside, "precious", "");
        fs::create_dir_all(&cache).unwrap();
        symlink(&outside, cache.join("cargo")).unwrap();
        fill(&from, &cache, &temp.path().join("spare")).unwrap();
        assert_eq!(read(&cache, "npm/y"), "y");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }
}

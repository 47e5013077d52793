//! Copying a seed where the kernel mounts no overlay: with all times, modes and hard links, by which
//! build tools know their output again.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::error::{OnPath, WarmError};
use crate::patience;

/// The way in which the bytes of a file get into its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyWay {
    /// The copy shares the blocks; an error where the file system can't.
    Clone,
    /// The bytes are written again, where the kernel does not share the blocks of its own accord.
    Bytes,
}

/// Copies a directory, a file or a link to a path that does not exist yet.
pub(super) fn copy_entry(from: &Path, to: &Path) -> Result<(), WarmError> {
    let met = from.symlink_metadata().at("look at", from)?;
    match met.is_dir() {
        true => copy_room(from, to, CopyWay::Bytes),
        false => copy_file(from, to, &met, CopyWay::Bytes).at("copy", from),
    }
}

/// Copies the directory of a seed to a path that does not exist yet.
pub(super) fn copy_room(from: &Path, to: &Path, way: CopyWay) -> Result<(), WarmError> {
    let mut linked: HashMap<u64, PathBuf> = HashMap::new();
    let mut dirs = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(dir) = pending.pop() {
        let (source, target) = (from.join(&dir), to.join(&dir));
        let met = source.symlink_metadata().at("look at", &source)?;
        fs::DirBuilder::new().mode(0o700).create(&target).at("create", &target)?;
        for entry in fs::read_dir(&source).at("read", &source)? {
            patience::check().at("copy", &source)?;
            let name = entry.at("read", &source)?.file_name();
            let (source, target) = (source.join(&name), target.join(&name));
            let met = source.symlink_metadata().at("look at", &source)?;
            if met.is_dir() {
                pending.push(dir.join(&name));
                continue;
            }
            if met.nlink() > 1 && met.is_file() {
                if let Some(first) = linked.get(&met.ino()) {
                    fs::hard_link(first, &target).at("link", &target)?;
                    continue;
                }
                linked.insert(met.ino(), target.clone());
            }
            copy_file(&source, &target, &met, way).at("copy", &source)?;
        }
        dirs.push((target, met));
    }
    // A directory gets its time when nothing more is written to it.
    for (dir, met) in dirs.into_iter().rev() {
        fs::set_permissions(&dir, met.permissions()).at("set the mode of", &dir)?;
        date_as(&dir, &met).at("date", &dir)?;
    }
    Ok(())
}

fn copy_file(source: &Path, target: &Path, met: &fs::Metadata, way: CopyWay) -> io::Result<()> {
    if met.is_symlink() {
        symlink(fs::read_link(source)?, target)?;
        return date_as(target, met);
    }
    if !met.is_file() {
        return Ok(());
    }
    let mut input = File::open(source)?;
    let mode = met.permissions().mode();
    let mut options = File::options();
    let mut output = options.write(true).create_new(true).mode(0o600).open(target)?;
    match way {
        CopyWay::Clone => clone_file(&input, &output)?,
        CopyWay::Bytes => {
            io::copy(&mut input, &mut output)?;
        }
    }
    output.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
    drop(output);
    date_as(target, met)
}

/// Makes `output` share the blocks of `input`.
pub(super) fn clone_file(input: &File, output: &File) -> io::Result<()> {
    // SAFETY: a call without pointers.
    let done = unsafe { libc::ioctl(output.as_raw_fd(), libc::FICLONE, input.as_raw_fd()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn date_as(path: &Path, met: &fs::Metadata) -> io::Result<()> {
    let accessed = TimeSpec::new(met.atime(), met.atime_nsec());
    let modified = TimeSpec::new(met.mtime(), met.mtime_nsec());
    let flags = UtimensatFlags::NoFollowSymlink;
    Ok(utimensat(nix::fcntl::AT_FDCWD, path, &accessed, &modified, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_times_modes_and_links_of_its_original() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("a"), temp.path().join("b"));
        fs::create_dir_all(from.join("deep/empty")).unwrap();
        fs::write(from.join("deep/one"), "1").unwrap();
        fs::hard_link(from.join("deep/one"), from.join("two")).unwrap();
        symlink("deep/one", from.join("link")).unwrap();
        fs::set_permissions(from.join("two"), fs::Permissions::from_mode(0o751)).unwrap();
        fs::set_permissions(from.join("deep/empty"), fs::Permissions::from_mode(0o500)).unwrap();
        copy_room(&from, &to, CopyWay::Bytes).unwrap();
        for path in ["", "deep", "deep/empty", "deep/one", "two", "link"] {
            let facts = |root: &Path| {
                let met = root.join(path).symlink_metadata().unwrap();
                (met.mode(), met.mtime(), met.mtime_nsec(), met.nlink())
            };
            assert_eq!(facts(&from), facts(&to), "{path}");
        }
        fs::write(to.join("two"), "2").unwrap();
        assert_eq!(fs::read_to_string(to.join("deep/one")).unwrap(), "2");
        assert_eq!(fs::read_to_string(from.join("two")).unwrap(), "1");
    }
}

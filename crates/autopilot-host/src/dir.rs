//! Directories and whole files, for places where symbolic links are no danger. Where they are, use
//! [`crate::file`].

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const OWNER_ONLY: u32 = 0o700;
/// The permission bits of the group and of everybody else.
const OTHERS: u32 = 0o077;

/// Makes a directory and those above it; one that exists is fine.
pub fn create(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Makes a directory and those above it for its owner only, as for prompts and answers; one that
/// exists is fine and keeps its permissions.
pub fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path)
}

/// Closes a directory of ours that was open to others. A directory that does not exist, is a link
/// or belongs to somebody else stays as it is.
pub fn make_private(path: &Path) -> io::Result<()> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let dir = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(dir) => dir,
        Err(error) => {
            const NOT_OURS: [i32; 4] = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::EACCES];
            let is_fine = error.raw_os_error().is_some_and(|code| NOT_OURS.contains(&code));
            return if is_fine { Ok(()) } else { Err(error) };
        }
    };
    let found = dir.metadata()?;
    let mode = found.permissions().mode() & 0o7777;
    if found.uid() != nix::unistd::geteuid().as_raw() || mode & OTHERS == 0 {
        return Ok(());
    }
    dir.set_permissions(fs::Permissions::from_mode(mode & !OTHERS))
}

/// Makes a private directory that must not exist yet; false if it does.
pub fn create_new(path: &Path) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(OWNER_ONLY).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a hard link to a file, or a copy of it where the file system has no hard links.
pub fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_no_links| fs::copy(from, to).map(|_bytes| ()))
}

/// Returns the names in a directory, sorted; none if the directory does not exist.
pub fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        // We give no file a name that is not UTF-8.
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Removes a file; false if it did not exist.
pub fn remove_file(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a directory with all its contents, without following links. Directories that are closed
/// to writing (some package caches are) are opened first.
///
/// Ends early, with the rest left in place, when the caller's patience does. The depth has no limit: directories are brought up one level after the other, so neither the
/// stack nor the number of open files nor the length of a path sets one.
pub fn remove(path: &Path) -> io::Result<()> {
    let gone = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
    };
    match path.symlink_metadata() {
        Err(error) => return gone(error),
        Ok(met) if !met.is_dir() => return fs::remove_file(path),
        Ok(_) => {}
    }
    let mut brought_up = 0_u64;
    while empty_once(path, &mut brought_up)? {}
    fs::remove_dir(path).or_else(gone)
}

/// Removes the entries of `path`; the contents of its directories take their place. False when
/// there were no entries.
fn empty_once(path: &Path, brought_up: &mut u64) -> io::Result<bool> {
    let mut found = false;
    for entry in opened(path)? {
        crate::patience::check()?;
        let entry = entry?;
        found = true;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
            continue;
        }
        for below in opened(&entry.path())? {
            crate::patience::check()?;
            let below = below?;
            if below.file_type()?.is_dir() {
                // An empty directory can be removed whatever its own permissions are.
                if fs::remove_dir(below.path()).is_ok() {
                    continue;
                }
                // A directory must be open to writing itself before it can be moved.
                open_up(&below.path())?;
                *brought_up += 1;
                fs::rename(below.path(), unused(path, brought_up))?;
            } else {
                fs::remove_file(below.path())?;
            }
        }
        fs::remove_dir(entry.path())?;
    }
    Ok(found)
}

/// Returns a path below `path` that does not exist yet.
fn unused(path: &Path, brought_up: &mut u64) -> PathBuf {
    loop {
        let name = path.join(format!(".removed-{brought_up}"));
        if name.symlink_metadata().is_err() {
            return name;
        }
        *brought_up += 1;
    }
}

fn opened(path: &Path) -> io::Result<fs::ReadDir> {
    open_up(path)?;
    fs::read_dir(path)
}

/// Gives the owner all permissions on a directory.
pub(crate) fn open_up(path: &Path) -> io::Result<()> {
    add_mode(path, OWNER_ONLY)
}

/// Adds permissions; a link gets none. Only called on what no agent can replace any more.
pub(crate) fn add_mode(path: &Path, bits: u32) -> io::Result<()> {
    let meta = path.symlink_metadata()?;
    let mode = meta.permissions().mode();
    if meta.is_symlink() || mode & bits == bits {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode | bits))
}

/// Copies a directory with all its contents, links as links. Every file becomes a separate file
/// (with shared blocks where the file system can), so that writing to the copy can't reach the
/// original.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        crate::patience::check()?;
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Moves a directory to a place of the same file system where there is none.
pub fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Returns the last bytes of a file.
pub fn read_tail(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_nothing_with_its_original() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("a"), temp.path().join("b"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/f"), "one").unwrap();
        std::os::unix::fs::symlink("deep/f", from.join("link")).unwrap();
        copy(&from, &to).unwrap();
        fs::write(to.join("deep/f"), "two").unwrap();
        assert_eq!(fs::read_to_string(from.join("deep/f")).unwrap(), "one");
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("deep/f"));
    }

    #[test]
    fn what_was_closed_to_writing_is_removed_all_the_same() {
        let temp = tempfile::tempdir().unwrap();
        let closed = temp.path().join("cache/module");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("f"), "").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        remove(&temp.path().join("cache")).unwrap();
        assert!(!temp.path().join("cache").exists());
        remove(&temp.path().join("cache")).unwrap();
    }

    #[test]
    fn what_is_private_is_its_owners_alone_and_nothing_else_is_touched() {
        let temp = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let deep = temp.path().join("a/b");
        create_private(&deep).unwrap();
        create_private(&deep).unwrap();
        assert_eq!((mode(&deep), mode(&temp.path().join("a"))), (0o700, 0o700));
        let open = temp.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let (link, file) = (temp.path().join("link"), temp.path().join("file"));
        std::os::unix::fs::symlink(&open, &link).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        for path in [&link, &file, &temp.path().join("none")] {
            make_private(path).unwrap();
        }
        assert_eq!((mode(&open), mode(&file)), (0o755, 0o644));
        make_private(&open).unwrap();
        assert_eq!(mode(&open), 0o700);
    }

    #[test]
    fn the_tail_of_a_file_is_its_last_bytes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("f");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_tail(&path, 3).unwrap(), b"789");
        assert_eq!(read_tail(&path, 99).unwrap(), b"0123456789");
        assert!(remove_file(&path).unwrap());
        assert!(!remove_file(&path).unwrap());
    }

    #[test]
    fn however_deep_it_is_it_is_removed() {
        use nix::fcntl::{OFlag, open, openat};
        use nix::sys::stat::{Mode, mkdirat};
        let temp = tempfile::tempdir().unwrap();
        let deep = temp.path().join("deep");
        fs::create_dir(&deep).unwrap();
        let mut fd = open(&deep, OFlag::O_DIRECTORY, Mode::empty()).unwrap();
        // The path becomes far longer than a path may be.
        for _ in 0..5000 {
            mkdirat(&fd, "directory", Mode::S_IRWXU).unwrap();
            fd = openat(&fd, "directory", OFlag::O_DIRECTORY, Mode::empty()).unwrap();
        }
        fs::write(deep.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", deep.join("directory/etc")).unwrap();
        fs::create_dir(deep.join("directory/.removed-1")).unwrap();
        fs::set_permissions(deep.join("directory"), fs::Permissions::from_mode(0o500)).unwrap();
        remove(&deep).unwrap();
        assert!(!deep.exists() && Path::new("/etc").exists());
        remove(&deep).unwrap();
    }
}

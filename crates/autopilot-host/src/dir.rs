//! Directories and whole files where no link may lead elsewhere matters less than being there.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const OWNER_ONLY: u32 = 0o700;
/// What a mode lets the group and everybody else do.
const OTHERS: u32 = 0o077;

/// Makes a directory and those above it; one that is there is fine.
pub fn create(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// The same for what only its owner may look into, such as prompts and what was answered.
pub fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path)
}

/// Closes a directory of ours that was made open to others. One that is not there, is a link or is
/// somebody else's stays as it is.
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

/// Makes a private directory that must not be there yet; false if it is.
pub fn create_new(path: &Path) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(OWNER_ONLY).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A second name for a file, or a copy of it where the file system has no such thing.
pub fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_no_links| fs::copy(from, to).map(|_bytes| ()))
}

/// The names in a directory, sorted; none if it is not there.
pub fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        // What is not text is nothing of ours.
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Removes a file; one that is not there is fine.
pub fn remove_file(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a directory with all that is in it, without following links. Directories that their
/// maker has closed to writing (some package caches are) are opened first.
///
/// However deep it is: directories are brought up one level after the other, so neither the stack
/// nor the number of open files nor the length of a path sets a limit.
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

/// Removes what is directly in `path`; what is in the directories there takes their place. False
/// when there was nothing.
fn empty_once(path: &Path, brought_up: &mut u64) -> io::Result<bool> {
    let mut found = false;
    for entry in opened(path)? {
        let entry = entry?;
        found = true;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
            continue;
        }
        for below in opened(&entry.path())? {
            let below = below?;
            if below.file_type()?.is_dir() {
                // An empty one goes, whoever made it.
                if fs::remove_dir(below.path()).is_ok() {
                    continue;
                }
                // To be moved it must be open to writing itself.
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

fn open_up(path: &Path) -> io::Result<()> {
    let mode = path.symlink_metadata()?.permissions().mode();
    if mode & OWNER_ONLY == OWNER_ONLY {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(OWNER_ONLY))
}

/// Copies a directory with all that is in it, links as links. Every file is a file of its own
/// (shared blocks where the file system can), so that writing to the copy can't reach the original.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
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

/// The last bytes of a file.
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
        // Far longer than a path may be.
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

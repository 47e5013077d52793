//! Files that survive a crash and are not led astray: atomic replacement, durable appends, capped
//! reads. No symbolic link is followed below the directory that was opened.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

/// The reason why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused the operation.
    #[error("cannot {what} `{path}`")]
    Failed { what: &'static str, path: PathBuf, source: io::Error },
    /// A symbolic link is where a file or directory of ours should be.
    #[error("refusing to use `{path}`: it is, or leads through, a symbolic link")]
    Link { path: PathBuf },
    /// The path is empty, absolute, or leads out of the directory.
    #[error("`{path}` is not a path to a file inside its directory")]
    Name { path: PathBuf },
    /// The file is longer than the caller wants to read.
    #[error("`{path}` is larger than {bytes_max} bytes")]
    TooLarge { path: PathBuf, bytes_max: u64 },
}

/// Replaces a file as a whole: after a crash there is either the old content or the new.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let (dir, name) = split(path)?;
    Dir::open(dir)?.write_atomic(Path::new(name), bytes)
}

/// The same for a file that is written again soon: nothing waits for the disk.
pub fn write_passing(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let (dir, name) = split(path)?;
    Dir::open(dir)?.write_passing(Path::new(name), bytes, None)
}

/// Removes temporary files that dead processes left in a directory and `depth` directories below it.
/// A file whose writer lives is left alone. Returns how many were removed; what can't be read is
/// passed over.
pub fn sweep_temporary(root: &Path, depth: usize) -> usize {
    let mut removed = 0;
    let mut pending = vec![(root.to_owned(), depth)];
    while let Some((dir, depth)) = pending.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth > 0 {
                pending.push((entry.path(), depth - 1));
            }
            let name = entry.file_name();
            let writer = name.to_str().and_then(temporary_writer).filter(|_| kind.is_file());
            if writer.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
                removed += usize::from(std::fs::remove_file(entry.path()).is_ok());
            }
        }
    }
    removed
}

/// Returns the process that wrote a temporary file, by its name: `.<name>.<pid>.<clock>.<count>.tmp`
/// for files, `<name>.<pid>-<count>.tmp` (and its logs) for a database.
fn temporary_writer(name: &str) -> Option<u32> {
    let logs = ["-wal", "-shm", "-journal"];
    let name = logs.iter().find_map(|log| name.strip_suffix(log)).unwrap_or(name);
    let name = name.strip_suffix(".tmp")?;
    let mut parts = name.rsplit('.');
    let (last, clock) = (parts.next()?, parts.next()?);
    if let Some((pid, count)) = last.split_once('-') {
        return count.parse::<u32>().ok().and(pid.parse().ok());
    }
    let pid = parts.next().filter(|_| name.starts_with('.'))?;
    let is_ours = last.parse::<u64>().is_ok() && u128::from_str_radix(clock, 16).is_ok();
    pid.parse().ok().filter(|_| is_ours)
}

/// Opens a file for appending, creating it if needed.
pub fn append(path: &Path) -> Result<Append, FileError> {
    let (dir, name) = split(path)?;
    Dir::open(dir)?.append(Path::new(name))
}

/// Reads the whole file, unless it is larger than `bytes_max`.
pub fn read_capped(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    // A pipe in place of the file must not make us wait.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let fd = open(path, flags, Mode::empty()).map_err(io::Error::from);
    read_up_to(fd.map_err(failed("read", path))?.into(), path, bytes_max)
}

fn read_up_to(file: File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed("read", path))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
        return Err(FileError::TooLarge { path: path.into(), bytes_max });
    }
    Ok(bytes)
}

/// A directory held open: renaming or replacing it later does not matter.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

/// The beginning and the end of a file that may be long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The beginning, or the whole file if it is short.
    pub head: Vec<u8>,
    /// The end, without bytes that are in the beginning.
    pub tail: Vec<u8>,
    /// The length of the whole file.
    pub bytes: u64,
}

/// When the content of a new file is synced to the disk.
#[derive(Clone, Copy)]
enum Sync {
    Now,
    Later,
}

impl Dir {
    /// Opens a directory. The last part of `path` must not be a symbolic link.
    pub fn open(path: &Path) -> Result<Dir, FileError> {
        let fd = open(path, DIRECTORY, Mode::empty());
        Ok(Dir {
            fd: fd.map_err(|errno| refused(errno, "open directory", path))?,
            path: path.into(),
        })
    }

    /// Returns the path by which the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below this one; missing parts are created, symbolic links refused.
    pub fn below(&self, relative: &Path) -> Result<Dir, FileError> {
        let path = self.path.join(relative);
        let mut reached = self.path.clone();
        let mut fd = self.fd.try_clone().map_err(failed("open directory", &path))?;
        for part in relative.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                    return Err(FileError::Name { path: path.clone() });
                }
            };
            match mkdirat(&fd, name, Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(refused(errno, "create directory", &path)),
            }
            reached.push(name);
            fd = openat(&fd, name, DIRECTORY, Mode::empty())
                .map_err(|errno| refused(errno, "open directory", &reached))?;
        }
        Ok(Dir { fd, path })
    }

    /// Replaces the file at `relative` as a whole.
    pub fn write_atomic(&self, relative: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let (dir, name) = self.around(relative)?;
        dir.swap_in(name, bytes, Sync::Now, None)?;
        dir.sync()
    }

    /// Opens the directory of the file at `relative`; returns it with the name of the file.
    fn around<'a>(&self, relative: &'a Path) -> Result<(Dir, &'a OsStr), FileError> {
        let (parent, name) = split(relative)?;
        let parent = if parent == Path::new(".") { Path::new("") } else { parent };
        Ok((self.below(parent)?, name))
    }

    /// Replaces the file at `relative` and gives it these permissions; at no time does it have
    /// wider ones.
    pub fn write_with_mode(
        &self,
        relative: &Path,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), FileError> {
        let (dir, name) = self.around(relative)?;
        dir.swap_in(name, bytes, Sync::Now, Some(mode & 0o7777))?;
        dir.sync()
    }

    /// The same for a file that nobody misses after a loss of power, such as one in a directory that
    /// is removed with its attempt: nothing waits for the disk.
    pub fn write_passing(
        &self,
        relative: &Path,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<(), FileError> {
        let (dir, name) = self.around(relative)?;
        dir.swap_in(name, bytes, Sync::Later, mode.map(|mode| mode & 0o7777))
    }

    /// Replaces the file at `relative`; an executable file stays executable.
    pub fn rewrite(&self, relative: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let runnable = self.look(relative).ok().and_then(|file| file.metadata().ok());
        let mode =
            runnable.map(|found| found.permissions()).filter(|mode| mode.mode() & 0o111 != 0);
        self.write_atomic(relative, bytes)?;
        let Some(mode) = mode else { return Ok(()) };
        let path = self.path.join(relative);
        self.look(relative)?.set_permissions(mode).map_err(failed("make executable", &path))
    }

    /// Reads the whole plain file at `relative`, unless it is larger than `bytes_max`.
    pub fn read_capped(&self, relative: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let (file, _) = self.look_at_plain(relative)?;
        read_up_to(file, &self.path.join(relative), bytes_max)
    }

    /// Returns the names in the directory that are UTF-8, at most `names_max`.
    pub fn names(&self, names_max: usize) -> Result<Vec<String>, FileError> {
        let held = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let entries = std::fs::read_dir(held).map_err(failed("list", &self.path))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.take(names_max).collect();
        names.sort();
        Ok(names)
    }

    /// Returns when the plain file at `relative` was last written.
    pub fn written_at(&self, relative: &Path) -> Result<SystemTime, FileError> {
        let (file, _) = self.look_at_plain(relative)?;
        let time = file.metadata().and_then(|found| found.modified());
        time.map_err(failed("look at", &self.path.join(relative)))
    }

    /// Reads the beginning and the end of the plain file at `relative`; a file of at most
    /// `head_max` bytes is all in the beginning.
    pub fn read_ends(
        &self,
        relative: &Path,
        head_max: u64,
        tail_max: u64,
    ) -> Result<Ends, FileError> {
        let (mut file, bytes) = self.look_at_plain(relative)?;
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let mut read = || {
            Read::by_ref(&mut file).take(head_max).read_to_end(&mut head)?;
            let rest = bytes.saturating_sub(head.len() as u64);
            if rest > 0 {
                file.seek(io::SeekFrom::Start(bytes.saturating_sub(tail_max.min(rest))))?;
                Read::by_ref(&mut file).take(tail_max).read_to_end(&mut tail)?;
            }
            Ok(())
        };
        read().map_err(failed("read", &self.path.join(relative)))?;
        Ok(Ends { head, tail, bytes })
    }

    /// Opens the plain file at `relative` for reading; returns it with its length.
    fn look_at_plain(&self, relative: &Path) -> Result<(File, u64), FileError> {
        let file = self.look(relative)?;
        let length = file.metadata().and_then(|found| match found.is_file() {
            true => Ok(found.len()),
            false => Err(io::Error::other("not a regular file")),
        });
        Ok((file, length.map_err(failed("read", &self.path.join(relative)))?))
    }

    /// Opens the file at `relative` for reading; nothing is created and no link followed.
    fn look(&self, relative: &Path) -> Result<File, FileError> {
        let path = self.path.join(relative);
        let mut fd = self.fd.try_clone().map_err(failed("read", &path))?;
        let mut reached = self.path.clone();
        let mut parts = relative.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(FileError::Name { path }) };
            reached.push(name);
            let plain = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            let flags = if parts.peek().is_some() { DIRECTORY } else { plain };
            fd = openat(&fd, name, flags, Mode::empty())
                .map_err(|errno| refused(errno, "read", &reached))?;
        }
        Ok(File::from(fd))
    }

    /// Replaces many files of this directory, each as a whole. Their names are made durable
    /// together and their contents are not: only for files that are made again after a crash.
    pub fn write_many(&self, files: &[(String, String)]) -> Result<(), FileError> {
        for (name, text) in files {
            if split(Path::new(name))?.0 != Path::new(".") {
                return Err(FileError::Name { path: self.path.join(name) });
            }
            self.swap_in(name.as_ref(), text.as_bytes(), Sync::Later, None)?;
        }
        self.sync()
    }

    /// Makes a symbolic link in this directory, unless the name is already taken.
    pub fn link(&self, name: &str, target: &Path) -> Result<(), FileError> {
        if split(Path::new(name))?.0 != Path::new(".") {
            return Err(FileError::Name { path: self.path.join(name) });
        }
        match symlinkat(target, &self.fd, name) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(errno) => Err(refused(errno, "create link", &self.path.join(name))),
        }
    }

    fn swap_in(
        &self,
        name: &OsStr,
        bytes: &[u8],
        sync: Sync,
        mode: Option<u32>,
    ) -> Result<(), FileError> {
        let path = self.path.join(name);
        let temporary = self.temporary_name(name);
        let written = self.write_new(&temporary, bytes, sync, mode).and_then(|()| {
            crate::fail::point("file.written");
            renameat(&self.fd, temporary.as_os_str(), &self.fd, name).map_err(io::Error::from)
        });
        if let Err(source) = written {
            // A temporary file left behind is found by its name; the error that matters is the
            // first.
            let _ = unlinkat(&self.fd, temporary.as_os_str(), UnlinkatFlags::NoRemoveDir);
            return Err(FileError::Failed { what: "write", path, source });
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), FileError> {
        let synced = nix::unistd::fsync(self.fd.as_fd()).map_err(io::Error::from);
        synced.map_err(failed("sync directory", &self.path))
    }

    fn write_new(
        &self,
        name: &Path,
        bytes: &[u8],
        sync: Sync,
        mode: Option<u32>,
    ) -> io::Result<()> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let first = Mode::from_bits_truncate(if mode.is_some() { 0o600 } else { 0o666 });
        let mut file = File::from(openat(&self.fd, name, flags, first)?);
        file.write_all(bytes)?;
        if let Some(mode) = mode {
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        match sync {
            Sync::Now => file.sync_all(),
            Sync::Later => Ok(()),
        }
    }

    /// Returns a name unlike that of any other writer, also one in another thread or from before a
    /// crash.
    fn temporary_name(&self, name: &OsStr) -> PathBuf {
        use std::sync::atomic::{AtomicU64, Ordering};
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let clock = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let pid = std::process::id();
        PathBuf::from(format!(".{}.{pid}.{clock:x}.{count}.tmp", name.to_string_lossy()))
    }

    /// Opens the file at `relative` for appending, creating it if needed.
    pub fn append(&self, relative: &Path) -> Result<Append, FileError> {
        let (dir, name) = self.around(relative)?;
        let path = dir.path.join(name);
        let flags = OFlag::O_WRONLY
            | OFlag::O_CREAT
            | OFlag::O_APPEND
            | OFlag::O_NOFOLLOW
            | OFlag::O_CLOEXEC;
        let fd = openat(&dir.fd, name, flags, Mode::from_bits_truncate(0o666))
            .map_err(|errno| refused(errno, "open", &path))?;
        Ok(Append { file: File::from(fd), path })
    }
}

/// A file that is open for appending only.
#[derive(Debug)]
pub struct Append {
    file: File,
    path: PathBuf,
}

impl Append {
    /// Appends the bytes, without waiting for the disk.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(failed("append to", &self.path))
    }

    /// Appends the bytes and waits for the disk. After an error here nothing may be assumed about
    /// the content.
    pub fn write_durable(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.write(bytes)?;
        self.file.sync_data().map_err(failed("sync", &self.path))
    }
}

const DIRECTORY: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);

/// Splits a path into its directory, `.` if it names none, and its last part.
fn split(path: &Path) -> Result<(&Path, &OsStr), FileError> {
    let name = path.file_name().ok_or_else(|| FileError::Name { path: path.into() })?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((parent.unwrap_or(Path::new(".")), name))
}

/// Names the operation and the path of an error of the system.
fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Failed { what, path: path.into(), source }
}

/// Turns an error of the system into ours, telling symbolic links from other failures.
fn refused(errno: Errno, what: &'static str, path: &Path) -> FileError {
    let is_link = errno == Errno::ELOOP
        || errno == Errno::ENOTDIR && path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if is_link {
        FileError::Link { path: path.into() }
    } else {
        FileError::Failed { what, path: path.into(), source: errno.into() }
    }
}

#[cfg(test)]
mod tests;

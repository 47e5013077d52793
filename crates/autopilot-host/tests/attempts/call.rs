//! System calls as they are: what the C library would refuse or emulate is not tried here.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;

/// Makes a system call by its number.
macro_rules! sys {
    ($call:expr $(, $arg:expr)* $(,)?) => {{
        // SAFETY: what the pointers among the arguments name outlives the call.
        nix::errno::Errno::result(unsafe { libc::syscall($call $(, $crate::call::CallWord::word($arg))*) })
    }};
}
pub(crate) use sys;

/// An argument of a system call. The kernel reads all of its register, so a narrow number is
/// widened first.
pub trait CallWord {
    fn word(self) -> libc::c_long;
}

macro_rules! words {
    ($($number:ty),*) => { $(
        impl CallWord for $number {
            fn word(self) -> libc::c_long {
                self as libc::c_long
            }
        }
    )* };
}
words!(i32, u32, i64, u64, usize);

impl<T> CallWord for *const T {
    fn word(self) -> libc::c_long {
        self.expose_provenance() as libc::c_long
    }
}

impl<T> CallWord for *mut T {
    fn word(self) -> libc::c_long {
        self.expose_provenance() as libc::c_long
    }
}

pub fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Returns the error number of an error of the operating system.
pub fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or_else(|| panic!("not of the system: {error}")))
}

pub trait ErrnoResult<T> {
    /// Keeps the error number only.
    fn plain(self) -> Result<T, Errno>;
}

impl<T> ErrnoResult<T> for io::Result<T> {
    fn plain(self) -> Result<T, Errno> {
        self.map_err(|error| errno(&error))
    }
}

/// A call that the kernel finds faulty only after it has asked who makes it: with one of these
/// errors it was let through, and did no harm.
pub fn past<T>(result: Result<T, Errno>, faulty: &[Errno]) -> Result<(), Errno> {
    match result {
        Ok(_) => Ok(()),
        Err(errno) if faulty.contains(&errno) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Opens a file for reading and writing, as it is.
pub fn open(path: &Path, flags: i32) -> Result<File, Errno> {
    let access = flags & libc::O_ACCMODE;
    File::options()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .custom_flags(flags & !libc::O_ACCMODE)
        .open(path)
        .plain()
}

/// Overwrites the beginning of a file with one byte.
pub fn overwrite(path: &Path) -> Result<(), Errno> {
    use std::io::Write;
    open(path, libc::O_WRONLY)?.write_all(b"#").plain()
}

/// Writes back into a setting of the kernel what it says.
pub fn rewrite(path: &str) -> Result<(), Errno> {
    let text = std::fs::read(path).plain()?;
    std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, &text))
        .plain()
}

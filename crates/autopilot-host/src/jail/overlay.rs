//! The mount of a throw-away layer over a directory that stays as it is.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::mount::{NO_DEVICES, NO_SETUID};

const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_FLAG: libc::c_uint = 0;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// Makes the overlay, attached nowhere yet.
///
/// The attributes of `user.overlay` need no privilege (`userxattr`), and nothing in a layer that is
/// thrown away has to reach the disk (`volatile`). The directories are named by descriptors: a path
/// with a comma or a colon needs no escape, and the table of mounts inside tells no path of ours.
pub fn make(lower: &Path, upper: &Path, work: &Path) -> io::Result<OwnedFd> {
    let dirs = [("lowerdir", lower), ("upperdir", upper), ("workdir", work)];
    // They stay open until the file system is made, which may be when their names are looked up.
    let dirs: Vec<_> =
        dirs.into_iter().map(|(key, path)| Ok((key, open(path)?))).collect::<io::Result<_>>()?;
    // SAFETY: the name is a C string.
    let context = unsafe { libc::syscall(libc::SYS_fsopen, c"overlay".as_ptr(), FSOPEN_CLOEXEC) };
    let context = owned(context)?;
    for (key, dir) in &dirs {
        let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
        configure(&context, FSCONFIG_SET_STRING, Some(key), Some(&path))?;
    }
    configure(&context, FSCONFIG_SET_STRING, Some("index"), Some("off"))?;
    configure(&context, FSCONFIG_SET_FLAG, Some("userxattr"), None)?;
    configure(&context, FSCONFIG_SET_FLAG, Some("volatile"), None)?;
    configure(&context, FSCONFIG_CMD_CREATE, None, None)?;
    let attributes = NO_SETUID | NO_DEVICES;
    // SAFETY: a call without pointers.
    let tree = unsafe {
        libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, attributes)
    };
    owned(tree)
}

/// Takes the lock of an upper directory, which lasts until the file is closed.
pub fn lock(upper: &Path) -> io::Result<OwnedFd> {
    let dir = open(upper)?;
    match dir.try_lock() {
        Ok(()) => Ok(dir.into()),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "another jail uses it"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(path)
}

fn configure(
    context: &OwnedFd,
    command: libc::c_uint,
    key: Option<&str>,
    value: Option<&str>,
) -> io::Result<()> {
    let text = |part: Option<&str>| part.map(std::ffi::CString::new).transpose();
    let (key, value) = (text(key)?, text(value)?);
    let pointer = |part: &Option<std::ffi::CString>| {
        part.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
    };
    // SAFETY: both texts are C strings, or absent, and outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            command,
            pointer(&key),
            pointer(&value),
            0,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

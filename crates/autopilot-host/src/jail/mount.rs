//! The mount calls of the kernel that a jail is built with.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::mount::{MsFlags, mount};

const OPEN_TREE_CLONE: libc::c_uint = 1;
const AT_RECURSIVE: libc::c_uint = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

/// Attributes of a mount, as `mount_setattr` takes them.
pub const READ_ONLY: u64 = 1;
pub const NO_SETUID: u64 = 2;
pub const NO_DEVICES: u64 = 4;

/// The mounts that a change of attributes reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MountReach {
    One,
    AllBelow,
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Returns a copy of what is at `path`, with all mounts below it, attached nowhere yet.
pub fn copy_tree(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::O_CLOEXEC.cast_unsigned();
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    let fd = i32::try_from(checked(fd)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts a copied tree on top of `at`, which must be of the same kind. A link there isn't followed.
pub fn attach(tree: &OwnedFd, at: &Path) -> io::Result<()> {
    let at = c_path(at)?;
    // SAFETY: both paths are C strings that outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            at.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    checked(done).map(|_| ())
}

/// Sets and clears attributes of the mount at `path`, which must be the root of a mount.
pub fn change(path: &Path, reach: MountReach, set: u64, clear: u64) -> io::Result<()> {
    let path = c_path(path)?;
    let wanted = MountAttributes { set, clear, propagation: 0, user_namespace: 0 };
    let flags = if reach == MountReach::AllBelow { AT_RECURSIVE } else { 0 };
    // SAFETY: path and attributes outlive the call, and the size is that of the attributes.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<MountAttributes>(),
        )
    };
    checked(done).map(|_| ())
}

/// Mounts an empty file system in memory at `at`.
pub fn memory(at: &Path, options: &str) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some(options))?)
}

/// Mounts the terminals of this mount namespace alone at `at`.
pub fn terminals(at: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = "newinstance,ptmxmode=0666,mode=620";
    Ok(mount(Some("devpts"), at, Some("devpts"), flags, Some(options))?)
}

/// Mounts the process table of this PID namespace at `at`.
pub fn processes(at: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    Ok(mount(Some("proc"), at, Some("proc"), flags, None::<&str>)?)
}

/// Cuts every mount off from the namespace it was copied from, in both directions.
pub fn make_private() -> io::Result<()> {
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    Ok(mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)?)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

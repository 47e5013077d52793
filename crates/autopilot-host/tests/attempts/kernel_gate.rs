//! Attempts on the kernel by its files, its other call interfaces and its keyrings.

use std::path::PathBuf;

use nix::errno::Errno;

use crate::call::{ErrnoResult, rewrite, sys};
use crate::scene::Scene;
use crate::table::{ABSENT, Alone, AttemptRow, Expected, FILTERED, Layer, refused, row};

const SEALED: [Expected; 4] = [
    refused(Layer::ReadOnlyMount, Errno::EROFS),
    refused(Layer::LandlockPath, Errno::EACCES),
    refused(Layer::Kernel, Errno::EACCES),
    refused(Layer::Kernel, Errno::EACCES),
];

pub const ROWS: &[AttemptRow] = &[
    row("sysctl", "change a setting of the kernel (`/proc/sys`)", sysctl, SEALED)
        .inside()
        .of_root(),
    row(
        "core-pattern",
        "name a program that the kernel starts (`core_pattern`)",
        core_pattern,
        SEALED,
    )
    .inside()
    .of_root(),
    row("drop-caches", "empty the page cache (`/proc/sys/vm/drop_caches`)", drop_caches, SEALED)
        .inside()
        .of_root(),
    row("sysfs", "change a setting of the kernel (`/sys`)", sysfs, SEALED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row(
        "cgroup",
        "make a control group (`/sys/fs/cgroup`)",
        cgroup,
        [
            refused(Layer::ReadOnlyMount, Errno::EROFS),
            refused(Layer::LandlockPath, Errno::EACCES),
            refused(Layer::ReadOnlyMount, Errno::EROFS),
            refused(Layer::LandlockPath, Errno::EACCES),
        ],
    )
    .alone(Alone::Varies, Alone::Fails),
    row("key-user", "leave a key in the user's keyring", user_key, FILTERED).heir(find_key),
    row("key-session", "join a session keyring (`keyctl`)", session_key, FILTERED).inside(),
    row("key-request", "ask for a key (`request_key`)", request_key, FILTERED).inside(),
    row("calls-ring", "have the kernel make calls past the filter (`io_uring`)", ring, ABSENT)
        .inside(),
    row("calls-32-bit", "use the 32-bit interface of the kernel", calls_32, ABSENT)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
    row("calls-x32", "use the x32 interface of the kernel", calls_x32, ABSENT)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
];

fn sysctl(_: &Scene) -> Result<(), Errno> {
    rewrite("/proc/sys/kernel/hostname")
}

fn core_pattern(_: &Scene) -> Result<(), Errno> {
    rewrite("/proc/sys/kernel/core_pattern")
}

/// Opens the file; whatever is written there is a command.
fn drop_caches(_: &Scene) -> Result<(), Errno> {
    std::fs::OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches").plain().map(drop)
}

fn sysfs(_: &Scene) -> Result<(), Errno> {
    rewrite("/sys/class/net/lo/mtu")
}

fn cgroup(scene: &Scene) -> Result<(), Errno> {
    std::fs::create_dir(control_groups().join(&scene.mark)).plain()
}

/// Returns the root of the control groups.
pub fn control_groups() -> PathBuf {
    let root = PathBuf::from("/sys/fs/cgroup");
    let unified = root.join("unified");
    if unified.exists() { unified } else { root }
}

const USER_KEYRING: i32 = -4;

fn user_key(scene: &Scene) -> Result<(), Errno> {
    let name = std::ffi::CString::new(scene.mark.as_str()).unwrap();
    let (kind, name) = (c"user".as_ptr(), name.as_ptr());
    sys!(libc::SYS_add_key, kind, name, b"#".as_ptr(), 1, USER_KEYRING).map(drop)
}

/// Looks for the key that [`user_key`] leaves.
pub fn find_key(scene: &Scene) -> Result<(), Errno> {
    const SEARCH: i32 = 10;
    let name = std::ffi::CString::new(scene.mark.as_str()).unwrap();
    let (kind, name) = (c"user".as_ptr(), name.as_ptr());
    sys!(libc::SYS_keyctl, SEARCH, USER_KEYRING, kind, name, 0).map(drop)
}

/// Removes it.
pub fn remove_key(scene: &Scene) {
    const SEARCH: i32 = 10;
    const UNLINK: i32 = 9;
    let name = std::ffi::CString::new(scene.mark.as_str()).unwrap();
    let (kind, name) = (c"user".as_ptr(), name.as_ptr());
    if let Ok(key) = sys!(libc::SYS_keyctl, SEARCH, USER_KEYRING, kind, name, 0) {
        let _ = sys!(libc::SYS_keyctl, UNLINK, key, USER_KEYRING);
    }
}

fn session_key(_: &Scene) -> Result<(), Errno> {
    const JOIN_SESSION: i32 = 1;
    sys!(libc::SYS_keyctl, JOIN_SESSION, std::ptr::null::<u8>()).map(drop)
}

/// A key that does not exist, and no program that could make it.
fn request_key(_: &Scene) -> Result<(), Errno> {
    let nobody = std::ptr::null::<u8>();
    let result = sys!(libc::SYS_request_key, c"user".as_ptr(), c"no-such-key".as_ptr(), nobody, 0);
    crate::call::past(result, &[Errno::ENOKEY])
}

/// Calls by way of a ring, `socket` among them, are not seen by a filter.
fn ring(_: &Scene) -> Result<(), Errno> {
    let parameters = [0u64; 15];
    sys!(libc::SYS_io_uring_setup, 1, parameters.as_ptr()).map(drop)
}

/// Asks for the process number by the way of 32-bit programs.
#[cfg(target_arch = "x86_64")]
fn calls_32(_: &Scene) -> Result<(), Errno> {
    const GETPID: i32 = 20;
    let result: i32;
    // SAFETY: the call takes no arguments and changes one register.
    unsafe { std::arch::asm!("int 0x80", inlateout("eax") GETPID => result) };
    if result > 0 { Ok(()) } else { Err(Errno::from_raw(-result)) }
}

#[cfg(target_arch = "x86_64")]
fn calls_x32(_: &Scene) -> Result<(), Errno> {
    const X32: libc::c_long = 0x4000_0000;
    sys!(X32 + libc::SYS_getpid).map(drop)
}

/// Other processors have one interface.
#[cfg(not(target_arch = "x86_64"))]
fn calls_32(_: &Scene) -> Result<(), Errno> {
    Err(Errno::ENOSYS)
}

#[cfg(not(target_arch = "x86_64"))]
fn calls_x32(_: &Scene) -> Result<(), Errno> {
    Err(Errno::ENOSYS)
}

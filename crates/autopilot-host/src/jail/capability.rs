//! The capabilities of root, of which a program in a jail has none.

use std::io;

/// More than any kernel has; it refuses the numbers that it does not know.
const CAPABILITIES_MAX: libc::c_ulong = 64;

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilitySet {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Takes every capability out of every set of the calling thread, and forbids it to gain any.
pub fn drop_all() -> io::Result<()> {
    // SAFETY: calls without pointers. The bounding set can be emptied only by those who have
    // something to lose; for the others it is enough that they can gain nothing.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for capability in 0..CAPABILITIES_MAX {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
    }
    let header = CapabilityHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let none = [CapabilitySet { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: header and sets have the layout of version 3 and outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(nix::sys::prctl::set_no_new_privs()?)
}

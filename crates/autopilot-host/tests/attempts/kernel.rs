//! Attempts on the clock, the kernel and its devices, by system calls.

use nix::errno::Errno;

use crate::call::{c, past, sys};
use crate::scene::Scene;
use crate::table::{Alone, AttemptRow, FILTERED, POWERLESS, row};

/// Each call, if the kernel accepts it, changes nothing: a hole in the jail does no harm.
pub const ROWS: &[AttemptRow] = &[
    row("clock-set", "set the clock (`clock_settime`)", set_clock, FILTERED).inside().of_root(),
    row("clock-set-day", "set the clock (`settimeofday`)", set_day, FILTERED).inside().of_root(),
    row("clock-adjust", "adjust the clock (`adjtimex`)", adjust, FILTERED).inside().of_root(),
    row("clock-adjust-new", "adjust the clock (`clock_adjtime`)", adjust_clock, FILTERED)
        .inside()
        .of_root(),
    row("hostname", "rename the machine (`sethostname`)", hostname, POWERLESS).inside().of_root(),
    row("reboot", "restart the machine (`reboot`)", reboot, FILTERED).inside().of_root(),
    row("kexec", "load another kernel (`kexec_load`)", kexec, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row("module-load", "load a kernel module (`init_module`)", load_module, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row("module-remove", "remove a kernel module (`delete_module`)", remove_module, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row("bpf", "load programs and maps into the kernel (`bpf`)", bpf, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
    row("perf", "measure the kernel and others (`perf_event_open`)", perf, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
    row("userfaultfd", "answer page faults of the kernel (`userfaultfd`)", userfault, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
    row("swap-on", "swap to a file (`swapon`)", swap_on, FILTERED).inside().of_root(),
    row("swap-off", "stop swapping (`swapoff`)", swap_off, FILTERED).inside().of_root(),
    row("accounting", "account for processes (`acct`)", accounting, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row("quota", "control disk quotas (`quotactl`)", quota, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
    row("ports-some", "reach hardware by its ports (`ioperm`)", some_ports, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row("ports-all", "reach hardware by all ports (`iopl`)", all_ports, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
    row("kernel-messages", "read the kernel's messages (`syslog`)", messages, FILTERED)
        .inside()
        .alone(Alone::Works, Alone::Varies),
];

fn set_clock(_: &Scene) -> Result<(), Errno> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    sys!(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, &raw mut now)?;
    sys!(libc::SYS_clock_settime, libc::CLOCK_REALTIME, &raw const now).map(drop)
}

fn set_day(_: &Scene) -> Result<(), Errno> {
    let mut now = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let no_zone = std::ptr::null_mut::<u8>();
    sys!(libc::SYS_gettimeofday, &raw mut now, no_zone)?;
    sys!(libc::SYS_settimeofday, &raw const now, no_zone).map(drop)
}

/// Sets the length of a tick to what it is.
fn tick() -> libc::timex {
    // SAFETY: all zeros is a valid request, which changes nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    timex.modes = libc::ADJ_TICK;
    timex.tick = 10_000;
    timex
}

fn adjust(_: &Scene) -> Result<(), Errno> {
    let mut timex = tick();
    sys!(libc::SYS_adjtimex, &raw mut timex).map(drop)
}

fn adjust_clock(_: &Scene) -> Result<(), Errno> {
    let mut timex = tick();
    sys!(libc::SYS_clock_adjtime, libc::CLOCK_REALTIME, &raw mut timex).map(drop)
}

fn hostname(_: &Scene) -> Result<(), Errno> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let name = name.trim_end();
    sys!(libc::SYS_sethostname, name.as_ptr(), name.len()).map(drop)
}

/// The kernel looks at these words after it has asked for the privilege, and finds them wrong.
fn reboot(_: &Scene) -> Result<(), Errno> {
    past(sys!(libc::SYS_reboot, 0, 0, 0, 0), &[Errno::EINVAL])
}

/// Flags that no kernel has, looked at after the privilege.
fn kexec(_: &Scene) -> Result<(), Errno> {
    let nothing = std::ptr::null::<u8>();
    past(sys!(libc::SYS_kexec_load, 0, 0, nothing, 0xf0u64), &[Errno::EINVAL])
}

fn load_module(_: &Scene) -> Result<(), Errno> {
    let result = sys!(libc::SYS_init_module, b"#".as_ptr(), 1, c"".as_ptr());
    past(result, &[Errno::ENOEXEC])
}

fn remove_module(_: &Scene) -> Result<(), Errno> {
    let result = sys!(libc::SYS_delete_module, c"no_such_module".as_ptr(), libc::O_NONBLOCK);
    past(result, &[Errno::ENOENT])
}

/// An array of one number.
fn bpf(_: &Scene) -> Result<(), Errno> {
    const CREATE_MAP: i32 = 0;
    const ARRAY: u32 = 2;
    let mut request = [0u32; 32];
    request[..4].copy_from_slice(&[ARRAY, 4, 4, 1]);
    sys!(libc::SYS_bpf, CREATE_MAP, request.as_ptr(), size_of_val(&request)).map(drop)
}

/// Counts the page faults of all processes on the first processor.
fn perf(_: &Scene) -> Result<(), Errno> {
    const SOFTWARE: u32 = 1;
    const BYTES: u32 = 128;
    const PAGE_FAULTS: u32 = 2;
    let mut request = [0u32; 32];
    request[..3].copy_from_slice(&[SOFTWARE, BYTES, PAGE_FAULTS]);
    sys!(libc::SYS_perf_event_open, request.as_ptr(), -1, 0, -1, 0).map(drop)
}

fn userfault(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_userfaultfd, libc::O_CLOEXEC).map(drop)
}

/// A file without the signature of a swap file.
fn swap_on(scene: &Scene) -> Result<(), Errno> {
    let path = scene.slot.join("swap");
    std::fs::write(&path, [0; 8192]).unwrap();
    let path = c(&path);
    past(sys!(libc::SYS_swapon, path.as_ptr(), 0), &[Errno::EINVAL])
}

fn swap_off(scene: &Scene) -> Result<(), Errno> {
    let path = scene.slot.join("swap");
    std::fs::write(&path, [0; 8192]).unwrap();
    let path = c(&path);
    past(sys!(libc::SYS_swapoff, path.as_ptr()), &[Errno::EINVAL])
}

/// A directory, which can't be written to.
fn accounting(scene: &Scene) -> Result<(), Errno> {
    let path = c(&scene.slot);
    past(sys!(libc::SYS_acct, path.as_ptr()), &[Errno::EISDIR, Errno::EACCES])
}

/// Writes all quotas to their disks, which anybody may ask for.
fn quota(_: &Scene) -> Result<(), Errno> {
    const SYNC: libc::c_uint = 0x80_0001 << 8;
    let all = std::ptr::null::<libc::c_char>();
    sys!(libc::SYS_quotactl, SYNC, all, 0, all).map(drop)
}

#[cfg(target_arch = "x86_64")]
fn some_ports(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_ioperm, 0x80, 1, 1).map(drop)
}

#[cfg(target_arch = "x86_64")]
fn all_ports(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_iopl, 3).map(drop)
}

/// Other processors have no ports, and the kernel no such call.
#[cfg(not(target_arch = "x86_64"))]
fn some_ports(_: &Scene) -> Result<(), Errno> {
    Err(Errno::EPERM)
}

#[cfg(not(target_arch = "x86_64"))]
fn all_ports(_: &Scene) -> Result<(), Errno> {
    Err(Errno::EPERM)
}

fn messages(_: &Scene) -> Result<(), Errno> {
    const READ_ALL: i32 = 3;
    let mut buffer = [0u8; 64];
    sys!(libc::SYS_syslog, READ_ALL, buffer.as_mut_ptr(), buffer.len()).map(drop)
}

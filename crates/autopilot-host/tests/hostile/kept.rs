//! What a jail keeps with and without namespaces.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::ExitCode;

use crate::world::*;

pub fn capabilities() {
    let script = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; \
                  echo descriptors $(ls /proc/self/fd); id -u";
    let said = said(shell(script));
    // The fourth is the directory that `ls` itself reads.
    assert!(said.contains("descriptors 0 1 2 3\n"), "{said}");
    let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
    for line in sets.map(|set| format!("{set}:\t0000000000000000\n")) {
        assert!(said.contains(&line), "{line} is not in {said}");
    }
    // Without privileges and without a user namespace nobody may empty it, nor use it.
    if is_root() || fence() == Fence::Jail {
        assert!(said.contains("CapBnd:\t0000000000000000\n"), "{said}");
    }
    assert!(said.contains("NoNewPrivs:\t1\n") && said.contains("Seccomp:\t2\n"), "{said}");
    assert!(said.ends_with(&format!("\n{}\n", nix::unistd::geteuid())), "{said}");
}

type SystemCall = fn() -> i64;

/// The calls that are tried, with the error that is expected in a jail with and without namespaces.
const CALLS: &[(&str, SystemCall, Option<i32>, Option<i32>)] = &[
    ("mknod of a disk", mknod_disk, Some(libc::EPERM), Some(libc::EPERM)),
    ("mknod of a pipe", mknod_pipe, None, None),
    ("limit of init", || limit(1), Some(libc::EPERM), Some(libc::EPERM)),
    ("own limit", || limit(0), None, None),
    ("keyring", || call(libc::SYS_keyctl, [0, -3, 1, 0]), Some(libc::EPERM), Some(libc::EPERM)),
    ("mount", || call(libc::SYS_mount, [0; 4]), Some(libc::EPERM), Some(libc::EPERM)),
    ("fsopen", || call(libc::SYS_fsopen, [0; 4]), Some(libc::ENOSYS), Some(libc::ENOSYS)),
    ("bpf", || call(libc::SYS_bpf, [0; 4]), Some(libc::EPERM), Some(libc::EPERM)),
    ("clock", || call(libc::SYS_clock_settime, [0; 4]), Some(libc::EPERM), Some(libc::EPERM)),
    ("setns", || call(libc::SYS_setns, [0; 4]), Some(libc::EPERM), Some(libc::EPERM)),
    ("typing", || call(libc::SYS_ioctl, [0, 0x5412, 0, 0]), Some(libc::EPERM), Some(libc::EPERM)),
    ("vsock", || call(libc::SYS_socket, [40, 1, 0, 0]), Some(libc::EPERM), Some(libc::EPERM)),
    ("semaphores", semaphores, None, Some(libc::ENOSYS)),
    ("niceness by number", || niceness(std::process::id()), None, Some(libc::EPERM)),
    ("own niceness", || niceness(0), None, None),
    ("a call of x32", || call(0x4000_0000 + 39, [0; 4]), Some(libc::ENOSYS), Some(libc::ENOSYS)),
];

fn call(number: i64, args: [i64; 4]) -> i64 {
    // SAFETY: calls that are refused, or whose pointers are null.
    unsafe { libc::syscall(number, args[0], args[1], args[2], args[3]) }
}

fn mknod(name: &str, mode: libc::mode_t) -> i64 {
    let path = std::ffi::CString::new(format!("{name}-{}", std::process::id())).unwrap();
    // SAFETY: the path outlives the call.
    unsafe { libc::mknod(path.as_ptr(), mode, libc::makedev(8, 0)).into() }
}

fn mknod_disk() -> i64 {
    mknod("disk", libc::S_IFBLK | 0o600)
}

fn mknod_pipe() -> i64 {
    mknod("pipe", libc::S_IFIFO | 0o600)
}

fn limit(pid: i32) -> i64 {
    let seconds = libc::rlimit { rlim_cur: 1000, rlim_max: 1000 };
    // SAFETY: the limit outlives the call, and the old one is not asked for.
    unsafe { libc::prlimit(pid, libc::RLIMIT_CPU, &raw const seconds, std::ptr::null_mut()).into() }
}

fn niceness(pid: u32) -> i64 {
    call(libc::SYS_setpriority, [0, pid.into(), 19, 0])
}

fn semaphores() -> i64 {
    call(libc::SYS_semget, [libc::IPC_PRIVATE.into(), 1, 0o600, 0])
}

/// Tries every call and tells how it went.
pub fn try_calls() -> ExitCode {
    for (name, attempt, _, _) in CALLS {
        let went = if attempt() < 0 { io::Error::last_os_error().raw_os_error() } else { None };
        println!("{name}: {went:?}");
    }
    ExitCode::SUCCESS
}

pub fn calls() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch("/proc/self/exe", &["__calls"]);
    launch.cwd = dir.path().into();
    launch.sandbox = sandbox_plan(&[dir.path()]);
    let said = said(launch);
    for (name, _, with, without) in CALLS {
        let expected = if fence() == Fence::Jail { with } else { without };
        let line = format!("{name}: {expected:?}\n");
        assert!(said.contains(&line), "{line} is not in\n{said}");
    }
}

const KEY: i32 = 0x0a17_0000;

fn key() -> i32 {
    KEY + i32::try_from(nix::unistd::geteuid().as_raw() % 1000).unwrap()
}

fn memory(flags: i32) -> i32 {
    // SAFETY: a call without pointers.
    unsafe { libc::shmget(key(), 4096, flags) }
}

/// Leaves shared memory behind, under a number that the next program would know.
pub fn leave_memory() -> ExitCode {
    println!("{}", if memory(libc::IPC_CREAT | 0o600) < 0 { "refused" } else { "made" });
    ExitCode::SUCCESS
}

pub fn shared_memory() {
    let expected = if fence() == Fence::Jail { "made\n" } else { "refused\n" };
    assert_eq!(said(launch("/proc/self/exe", &["__memory"])), expected);
    assert!(memory(0) < 0, "it is seen outside of the jail");
}

pub fn abstract_sockets() {
    let name = format!("autopilot-test-{}", mark());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\n\
         try:\n s.connect('\\0{name}')\n print('connected')\n\
         except PermissionError: print('refused')\n"
    );
    assert_eq!(said(launch("python3", &["-c", &script])), "refused\n");
}

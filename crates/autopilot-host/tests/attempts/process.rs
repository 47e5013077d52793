//! Attempts on processes that are not the jail's: the controller, and a stranger of the same user.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;

use crate::call::{ErrnoResult, open, sys};
use crate::file::reads_secret;
use crate::scene::{SECRET, Scene};
use crate::table::{Alone, AttemptRow, Expected, FILTERED, Layer, Promise, both, refused, row};

const UNSEEN: Expected = refused(Layer::PidNamespace, Errno::ESRCH);
const NO_FILE: Expected = refused(Layer::PidNamespace, Errno::ENOENT);
const FILTER: Expected = refused(Layer::Seccomp, Errno::EPERM);
const SCOPE: Expected = refused(Layer::LandlockScope, Errno::EPERM);
const UNTRACEABLE: Expected = refused(Layer::LandlockTrace, Errno::EACCES);

pub const ROWS: &[AttemptRow] = &[
    row(
        "kill-controller",
        "send the controller a signal (`kill`)",
        kill_controller,
        both(UNSEEN, SCOPE),
    ),
    row(
        "tgkill-controller",
        "send a thread of the controller a signal (`tgkill`)",
        tgkill_controller,
        both(UNSEEN, SCOPE),
    ),
    row("kill-stranger", "kill another program of the user's", kill_stranger, both(UNSEEN, SCOPE)),
    row(
        "pidfd-stranger",
        "kill another program by a descriptor (`pidfd_send_signal`)",
        pidfd_stranger,
        both(UNSEEN, SCOPE),
    ),
    row(
        "signal-init",
        "send process 1, or the jail's init, a signal",
        signal_init,
        [SCOPE, SCOPE, SCOPE, refused(Layer::Kernel, Errno::EPERM)],
    )
    .inside()
    .of_root(),
    row(
        "owner-signal",
        "have the kernel signal the controller (`F_SETOWN`)",
        owner_signal,
        both(UNSEEN, Expected::Private(Layer::LandlockScope)),
    ),
    row(
        "trace-controller",
        "trace the controller (`ptrace`)",
        trace_controller,
        both(UNSEEN, FILTER),
    )
    .inside()
    .alone(Alone::Works, Alone::Varies),
    row(
        "trace-stranger",
        "trace another program of the user's",
        trace_stranger,
        both(UNSEEN, FILTER),
    )
    .inside()
    .alone(Alone::Works, Alone::Varies),
    row(
        "trace-init",
        "trace process 1, or the jail's init",
        trace_init,
        both(refused(Layer::LandlockTrace, Errno::EPERM), FILTER),
    )
    .inside()
    .alone(Alone::Untried, Alone::Untried),
    row(
        "memory-read",
        "read the controller's memory (`process_vm_readv`)",
        memory_read,
        both(UNSEEN, FILTER),
    )
    .inside()
    .alone(Alone::Works, Alone::Varies),
    row(
        "memory-write",
        "write to the controller's memory (`process_vm_writev`)",
        memory_write,
        both(UNSEEN, FILTER),
    )
    .alone(Alone::Works, Alone::Varies),
    row(
        "process-list",
        "see which programs the user runs",
        list_processes,
        both(NO_FILE, Expected::Through),
    )
    .promise(Promise::WithNamespaces)
    .inside(),
    row(
        "memory-file",
        "read the controller's memory by `/proc/N/mem`",
        memory_file,
        both(NO_FILE, UNTRACEABLE),
    )
    .inside()
    .alone(Alone::Works, Alone::Varies),
    row(
        "environment",
        "read the controller's environment (`/proc/N/environ`)",
        environment,
        [NO_FILE, refused(Layer::NoCapability, Errno::EACCES), NO_FILE, UNTRACEABLE],
    )
    .inside(),
    row(
        "pidfd-getfd",
        "take a descriptor of the controller (`pidfd_getfd`)",
        take_descriptor,
        both(UNSEEN, refused(Layer::LandlockTrace, Errno::EPERM)),
    )
    .alone(Alone::Works, Alone::Varies),
    row(
        "limit-controller",
        "end the controller by a limit (`prlimit` of `RLIMIT_CPU`)",
        limit_controller,
        FILTERED,
    ),
    row("renice-stranger", "renice another program", renice, both(UNSEEN, FILTER)),
    row(
        "renice-user",
        "renice all programs of the user",
        renice_all,
        both(Expected::Private(Layer::PidNamespace), FILTER),
    )
    .alone(Alone::Untried, Alone::Untried),
    row(
        "affinity-stranger",
        "bind another program to one processor",
        affinity,
        both(UNSEEN, FILTER),
    ),
    row(
        "ioprio-stranger",
        "change another program's priority at the disk",
        io_priority,
        both(UNSEEN, FILTER),
    ),
    row(
        "scheduler-stranger",
        "change another program's way of being scheduled",
        scheduler,
        both(UNSEEN, FILTER),
    ),
    row(
        "oom-controller",
        "make the controller the first to die when memory runs out",
        oom,
        both(NO_FILE, refused(Layer::LandlockPath, Errno::EACCES)),
    ),
];

fn kill_controller(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_kill, scene.controller, libc::SIGUSR1).map(drop)
}

fn tgkill_controller(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_tgkill, scene.controller, scene.controller, libc::SIGUSR1).map(drop)
}

fn kill_stranger(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_kill, scene.stranger, libc::SIGKILL).map(drop)
}

/// A signal that does nothing to a process that is not stopped.
fn signal_init(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_kill, 1, libc::SIGCONT).map(drop)
}

fn pidfd(process: i32) -> Result<OwnedFd, Errno> {
    let fd = sys!(libc::SYS_pidfd_open, process, 0)?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()) })
}

fn pidfd_stranger(scene: &Scene) -> Result<(), Errno> {
    let fd = pidfd(scene.stranger)?;
    let no_details = std::ptr::null::<u8>();
    let (fd, signal) = (fd.as_raw_fd(), libc::SIGKILL);
    sys!(libc::SYS_pidfd_send_signal, fd, signal, no_details, 0).map(drop)
}

/// Makes the controller the owner of a socket, whose input is told by a signal.
fn owner_signal(scene: &Scene) -> Result<(), Errno> {
    use std::io::Write;
    const SET_SIGNAL: i32 = 10;
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().plain()?;
    let fd = ours.as_raw_fd();
    sys!(libc::SYS_fcntl, fd, libc::F_SETOWN, scene.controller)?;
    sys!(libc::SYS_fcntl, fd, SET_SIGNAL, libc::SIGUSR1)?;
    sys!(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_ASYNC)?;
    theirs.write_all(b"#").plain()
}

/// Seizes, which does not stop; the end of this process lets go.
fn trace(process: i32) -> Result<(), Errno> {
    sys!(libc::SYS_ptrace, libc::PTRACE_SEIZE, process, 0, 0).map(drop)
}

fn trace_controller(scene: &Scene) -> Result<(), Errno> {
    trace(scene.controller)
}

fn trace_stranger(scene: &Scene) -> Result<(), Errno> {
    trace(scene.stranger)
}

fn transfer(scene: &Scene, call: libc::c_long, buffer: &mut [u8]) -> Result<(), Errno> {
    let ours = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let there = std::ptr::with_exposed_provenance_mut(scene.secret_address);
    let theirs = libc::iovec { iov_base: there, iov_len: buffer.len() };
    sys!(call, scene.controller, &raw const ours, 1, &raw const theirs, 1, 0).map(drop)
}

fn trace_init(_: &Scene) -> Result<(), Errno> {
    trace(1)
}

fn memory_read(scene: &Scene) -> Result<(), Errno> {
    let mut buffer = vec![0; scene.secret_bytes];
    transfer(scene, libc::SYS_process_vm_readv, &mut buffer)?;
    assert_eq!(buffer, SECRET.as_bytes(), "it was not the secret that was read");
    Ok(())
}

fn memory_write(scene: &Scene) -> Result<(), Errno> {
    let mut byte = *b"#";
    transfer(scene, libc::SYS_process_vm_writev, &mut byte)
}

fn memory_file(scene: &Scene) -> Result<(), Errno> {
    use std::os::unix::fs::FileExt;
    let file = open(Path::new(&format!("/proc/{}/mem", scene.controller)), libc::O_RDONLY)?;
    let mut buffer = vec![0; scene.secret_bytes];
    file.read_exact_at(&mut buffer, u64::try_from(scene.secret_address).unwrap()).plain()?;
    assert_eq!(buffer, SECRET.as_bytes(), "it was not the secret that was read");
    Ok(())
}

fn list_processes(scene: &Scene) -> Result<(), Errno> {
    let line = std::fs::read(format!("/proc/{}/cmdline", scene.stranger)).plain()?;
    assert!(line.starts_with(b"cat"), "it was not the stranger that was seen");
    Ok(())
}

fn environment(scene: &Scene) -> Result<(), Errno> {
    reads_secret(Path::new(&format!("/proc/{}/environ", scene.controller)))
}

fn take_descriptor(scene: &Scene) -> Result<(), Errno> {
    let fd = pidfd(scene.controller)?;
    let taken = sys!(libc::SYS_pidfd_getfd, fd.as_raw_fd(), scene.inherited_fd, 0)?;
    sys!(libc::SYS_write, taken, b"#".as_ptr(), 1).map(drop)
}

/// A limit that is seen and never reached.
fn limit_controller(scene: &Scene) -> Result<(), Errno> {
    let limit = [10_000_000u64; 2];
    let old = std::ptr::null::<u8>();
    let which = libc::RLIMIT_CPU;
    sys!(libc::SYS_prlimit64, scene.controller, which, limit.as_ptr(), old).map(drop)
}

/// Returns how nice this process is.
fn nice() -> Result<libc::c_long, Errno> {
    // The kernel answers with twenty for a nice value of zero, so that no answer is an error.
    Ok(20 - sys!(libc::SYS_getpriority, libc::PRIO_PROCESS, 0)?)
}

fn renice(scene: &Scene) -> Result<(), Errno> {
    let nicer = nice()? + 1;
    sys!(libc::SYS_setpriority, libc::PRIO_PROCESS, scene.stranger, nicer).map(drop)
}

/// The kernel tells of the last process that it could not renice, although it has reniced others.
fn renice_all(_: &Scene) -> Result<(), Errno> {
    let user = nix::unistd::getuid().as_raw();
    let nicer = nice()? + 1;
    let result = sys!(libc::SYS_setpriority, libc::PRIO_USER, user, nicer);
    if nice()? == nicer { Ok(()) } else { result.map(drop) }
}

fn affinity(scene: &Scene) -> Result<(), Errno> {
    let first = 1u64;
    let bytes = size_of_val(&first);
    sys!(libc::SYS_sched_setaffinity, scene.stranger, bytes, &raw const first).map(drop)
}

/// The idle class.
fn io_priority(scene: &Scene) -> Result<(), Errno> {
    const PROCESS: i32 = 1;
    const IDLE: i32 = 3 << 13;
    sys!(libc::SYS_ioprio_set, PROCESS, scene.stranger, IDLE).map(drop)
}

fn scheduler(scene: &Scene) -> Result<(), Errno> {
    let priority = 0i32;
    let (process, way) = (scene.stranger, libc::SCHED_BATCH);
    sys!(libc::SYS_sched_setscheduler, process, way, &raw const priority).map(drop)
}

fn oom(scene: &Scene) -> Result<(), Errno> {
    std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{}/oom_score_adj", scene.controller))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"900"))
        .plain()
}

//! Attempts to leave something that a later attempt or gate would find, or to outlive one's end.

use std::path::Path;

use nix::errno::Errno;

use crate::call::{ErrnoResult, sys};
use crate::scene::{SECRET, Scene};
use crate::table::{Alone, AttemptRow, Expected, Layer, Promise, all, both, refused, row};

const OWN: Expected = Expected::Private(Layer::IpcNamespace);
const ABSENT: Expected = refused(Layer::Seccomp, Errno::ENOSYS);
const OWN_PLACE: Expected = Expected::Private(Layer::MountNamespace);
const LANDLOCK: Expected = refused(Layer::LandlockPath, Errno::EACCES);
const ENDED: [Expected; 4] = all(Expected::Private(Layer::Supervisor));

pub const ROWS: &[AttemptRow] = &[
    row("shm-left", "leave System V shared memory", leave_memory, both(OWN, ABSENT))
        .heir(find_memory),
    row("sem-left", "leave System V semaphores", leave_semaphore, both(OWN, ABSENT))
        .heir(find_semaphore),
    row("msg-left", "leave a System V message queue", leave_queue, both(OWN, ABSENT))
        .heir(find_queue),
    row("mq-left", "leave a POSIX message queue", leave_posix_queue, both(LANDLOCK, ABSENT))
        .heir(find_posix_queue),
    row(
        "shm-of-user",
        "read System V shared memory of the user's",
        read_memory,
        both(refused(Layer::IpcNamespace, Errno::ENOENT), ABSENT),
    )
    .inside(),
    row("dev-shm-left", "leave a file in `/dev/shm`", leave_in_shm, both(OWN_PLACE, LANDLOCK))
        .heir(find_in_shm),
    row(
        "dev-shm-of-user",
        "write to shared memory of the user's in `/dev/shm`",
        write_shm,
        both(refused(Layer::MountNamespace, Errno::ENOENT), LANDLOCK),
    ),
    row(
        "dev-shm-read",
        "read it",
        read_shm,
        both(refused(Layer::MountNamespace, Errno::ENOENT), Expected::Through),
    )
    .promise(Promise::WithNamespaces)
    .inside(),
    row("tmp-left", "leave a file in `/tmp`", leave_in_tmp, both(OWN_PLACE, LANDLOCK))
        .heir(find_in_tmp),
    row(
        "tmp-read",
        "read what other programs keep in `/tmp`",
        read_tmp,
        both(refused(Layer::MountNamespace, Errno::ENOENT), Expected::Through),
    )
    .promise(Promise::WithNamespaces)
    .inside(),
    row("var-tmp-left", "leave a file in `/var/tmp`", leave_in_var_tmp, both(OWN_PLACE, LANDLOCK))
        .heir(find_in_var_tmp),
    row("daemon", "leave a daemon behind (`setsid`, two forks)", daemon, ENDED)
        .alone(Alone::Supervised, Alone::Supervised),
    row("daemon-stubborn", "leave a process that ignores every signal it can", stubborn, ENDED)
        .alone(Alone::Supervised, Alone::Supervised),
    row("many", "leave two hundred processes", many, ENDED)
        .alone(Alone::Supervised, Alone::Supervised),
];

const CREATE: i32 = libc::IPC_CREAT | 0o666;
const BYTES: usize = 4096;

fn leave_memory(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_shmget, scene.key, BYTES, CREATE).map(drop)
}

pub fn find_memory(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_shmget, scene.key, 0, 0).map(drop)
}

fn leave_semaphore(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_semget, scene.key, 1, CREATE).map(drop)
}

pub fn find_semaphore(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_semget, scene.key, 0, 0).map(drop)
}

fn leave_queue(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_msgget, scene.key, CREATE).map(drop)
}

pub fn find_queue(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_msgget, scene.key, 0).map(drop)
}

/// The kernel takes the name without its slash.
fn open_posix_queue(scene: &Scene, flags: i32) -> Result<(), Errno> {
    let name = crate::call::c(Path::new(&scene.mark));
    let ordinary = std::ptr::null::<u8>();
    let fd = sys!(libc::SYS_mq_open, name.as_ptr(), flags, 0o666, ordinary)?;
    sys!(libc::SYS_close, fd).map(drop)
}

fn leave_posix_queue(scene: &Scene) -> Result<(), Errno> {
    open_posix_queue(scene, libc::O_CREAT | libc::O_RDWR)
}

pub fn find_posix_queue(scene: &Scene) -> Result<(), Errno> {
    open_posix_queue(scene, libc::O_RDONLY)
}

/// The key of the segment that the controller has.
pub fn key_of_user(scene: &Scene) -> i32 {
    scene.key + 1
}

fn read_memory(scene: &Scene) -> Result<(), Errno> {
    let segment = sys!(libc::SYS_shmget, key_of_user(scene), 0, 0)?;
    let at = sys!(libc::SYS_shmat, segment, 0, libc::SHM_RDONLY)?;
    let at = std::ptr::with_exposed_provenance::<u8>(usize::try_from(at).unwrap());
    // SAFETY: the segment has a page and stays attached.
    let text = unsafe { std::slice::from_raw_parts(at, SECRET.len()) };
    assert_eq!(text, SECRET.as_bytes(), "it was not the secret that was read");
    Ok(())
}

fn leave(scene: &Scene, place: usize) -> Result<(), Errno> {
    std::fs::write(&scene.left_files()[place], "#").plain()
}

fn find(scene: &Scene, place: usize) -> Result<(), Errno> {
    std::fs::metadata(&scene.left_files()[place]).plain().map(drop)
}

fn leave_in_tmp(scene: &Scene) -> Result<(), Errno> {
    leave(scene, 0)
}

fn read_tmp(scene: &Scene) -> Result<(), Errno> {
    crate::file::reads_secret(&scene.other_tmp.join("draft"))
}

fn find_in_tmp(scene: &Scene) -> Result<(), Errno> {
    find(scene, 0)
}

fn leave_in_var_tmp(scene: &Scene) -> Result<(), Errno> {
    leave(scene, 1)
}

fn find_in_var_tmp(scene: &Scene) -> Result<(), Errno> {
    find(scene, 1)
}

fn leave_in_shm(scene: &Scene) -> Result<(), Errno> {
    leave(scene, 2)
}

fn find_in_shm(scene: &Scene) -> Result<(), Errno> {
    find(scene, 2)
}

fn write_shm(scene: &Scene) -> Result<(), Errno> {
    crate::call::overwrite(&scene.shared_memory_of_user())
}

fn read_shm(scene: &Scene) -> Result<(), Errno> {
    crate::file::reads_secret(&scene.shared_memory_of_user())
}

/// Forks; the copy does `act` and sleeps for longer than the test. What it holds open of ours is
/// closed, so that nobody waits for it.
fn fork_off(act: fn()) -> Result<(), Errno> {
    const SLEEP_SECONDS: u32 = 600;
    // SAFETY: this process has a single thread, and the copy only makes system calls.
    match Errno::result(unsafe { libc::fork() })? {
        0 => {
            act();
            // SAFETY: calls without pointers.
            unsafe {
                libc::close_range(0, u32::MAX, 0);
                libc::sleep(SLEEP_SECONDS);
                libc::_exit(0)
            }
        }
        _ => Ok(()),
    }
}

fn daemon(_: &Scene) -> Result<(), Errno> {
    fork_off(|| {
        // SAFETY: calls without pointers, in a copy with a single thread.
        unsafe {
            libc::setsid();
            if libc::fork() != 0 {
                libc::_exit(0);
            }
        }
    })
}

fn stubborn(_: &Scene) -> Result<(), Errno> {
    fork_off(|| {
        // SAFETY: calls without pointers, in a copy with a single thread.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, 0);
            for signal in 1..libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    })
}

fn many(_: &Scene) -> Result<(), Errno> {
    const MANY: usize = 200;
    (0..MANY).try_for_each(|_| fork_off(|| ()))
}

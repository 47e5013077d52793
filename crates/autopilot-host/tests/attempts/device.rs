//! Attempts on devices, and on terminals of the user.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::errno::Errno;

use crate::call::{ErrnoResult, c, open, sys};
use crate::scene::Scene;
use crate::table::{Alone, AttemptRow, Expected, FILTERED, Layer, Promise, both, refused, row};

const UNSEEN: Expected = refused(Layer::MountNamespace, Errno::ENOENT);
const LANDLOCK: Expected = refused(Layer::LandlockPath, Errno::EACCES);

/// A device that belongs to root.
const OF_ROOT: [Expected; 4] = [UNSEEN, LANDLOCK, UNSEEN, refused(Layer::Kernel, Errno::EACCES)];

pub const ROWS: &[AttemptRow] = &[
    row("mknod-block", "make the node of a disk (`mknod b`)", make_disk, FILTERED)
        .inside()
        .of_root(),
    row("mknod-char", "make the node of the memory (`mknod c`)", make_memory, FILTERED)
        .inside()
        .of_root(),
    row("disk-open", "open a disk for writing", open_disk, OF_ROOT).inside().of_root(),
    row("kernel-log", "write to `/dev/kmsg`", kernel_log, OF_ROOT).inside().of_root(),
    // Its mode, and so whether a plain user may open it, differs between machines.
    row("fuse", "open `/dev/fuse` to serve a file system", fuse, both(UNSEEN, LANDLOCK))
        .alone(Alone::Works, Alone::Varies)
        .inside(),
    row(
        "terminal-write",
        "write to the user's terminal (`/dev/pts/N`)",
        terminal,
        both(UNSEEN, Expected::Through),
    )
    .promise(Promise::WithNamespaces),
    row("terminal-type", "type into a terminal (`TIOCSTI`)", type_in, FILTERED)
        .inside()
        .alone(Alone::Varies, Alone::Varies),
];

fn make_node(scene: &Scene, kind: libc::mode_t, device: libc::dev_t) -> Result<(), Errno> {
    let path = scene.slot.join("node");
    let name = c(&path);
    sys!(libc::SYS_mknodat, libc::AT_FDCWD, name.as_ptr(), kind | 0o600, device)?;
    std::fs::remove_file(path).plain()
}

fn make_disk(scene: &Scene) -> Result<(), Errno> {
    make_node(scene, libc::S_IFBLK, libc::makedev(7, 0))
}

fn make_memory(scene: &Scene) -> Result<(), Errno> {
    make_node(scene, libc::S_IFCHR, libc::makedev(1, 1))
}

fn open_disk(scene: &Scene) -> Result<(), Errno> {
    open(&scene.disk, libc::O_WRONLY).map(drop)
}

fn kernel_log(scene: &Scene) -> Result<(), Errno> {
    let mut file = open(Path::new("/dev/kmsg"), libc::O_WRONLY)?;
    file.write_all(scene.mark.as_bytes()).plain()
}

fn fuse(_: &Scene) -> Result<(), Errno> {
    open(Path::new("/dev/fuse"), libc::O_RDWR).map(drop)
}

fn terminal(scene: &Scene) -> Result<(), Errno> {
    let mut file = open(&scene.terminal, libc::O_WRONLY | libc::O_NOCTTY)?;
    file.write_all(b"#\n").plain()
}

/// Types into a terminal of its own; the call is the same for one that it inherited.
fn type_in(_: &Scene) -> Result<(), Errno> {
    let terminal = nix::pty::openpty(None, None)?;
    let fd = terminal.slave.as_raw_fd();
    sys!(libc::SYS_ioctl, fd, libc::TIOCSCTTY, 0)?;
    let result = sys!(libc::SYS_ioctl, fd, libc::TIOCSTI, b"#".as_ptr()).map(drop);
    // Closing it would hang up on this process before it has said how it went.
    std::mem::forget(terminal);
    result
}

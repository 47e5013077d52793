//! Attempts on mounts and namespaces.

use std::os::fd::AsRawFd;
use std::path::Path;

use nix::errno::Errno;

use crate::call::{c, open, past, sys};
use crate::scene::Scene;
use crate::table::{ABSENT, Alone, AttemptRow, FILTERED, Layer, POWERLESS, both, refused, row};

pub const ROWS: &[AttemptRow] = &[
    row("mount", "mount a file system", memory, FILTERED).inside().of_root(),
    row("mount-bind", "mount a directory over another", bind, FILTERED).inside().of_root(),
    row("remount", "make a read-only mount writable again", remount, FILTERED).inside().of_root(),
    row("umount", "unmount what covers a directory", unmount, FILTERED).of_root(),
    row("pivot-root", "change the root of all (`pivot_root`)", pivot, FILTERED).inside().of_root(),
    row("chroot", "change the own root (`chroot`)", change_root, POWERLESS).inside().of_root(),
    row("mount-new", "mount by the newer calls (`fsopen`)", open_system, ABSENT).inside().of_root(),
    row("mount-move", "copy and move mounts (`open_tree`, `move_mount`)", copy_tree, ABSENT)
        .inside()
        .of_root(),
    row("mount-attributes", "change attributes of mounts (`mount_setattr`)", attributes, ABSENT)
        .inside()
        .of_root(),
    row(
        "unshare-mount",
        "make a user namespace of one's own and mount in it",
        unshare_mount,
        FILTERED,
    )
    .inside()
    .alone(Alone::Varies, Alone::Varies),
    row(
        "setns-controller",
        "enter the controller's namespaces (`setns`)",
        enter_controller,
        both(
            refused(Layer::PidNamespace, Errno::ENOENT),
            refused(Layer::LandlockTrace, Errno::EACCES),
        ),
    )
    .inside()
    .of_root(),
    row(
        "setns-init",
        "enter the namespaces of process 1",
        enter_init,
        [
            refused(Layer::LandlockTrace, Errno::EACCES),
            refused(Layer::LandlockTrace, Errno::EACCES),
            refused(Layer::LandlockTrace, Errno::EACCES),
            refused(Layer::Kernel, Errno::EACCES),
        ],
    )
    .inside()
    .alone(Alone::Varies, Alone::Fails),
    row("setns-own", "call `setns` at all", enter_own, FILTERED).inside().of_root(),
];

fn mount(from: &Path, at: &Path, kind: &str, flags: libc::c_ulong) -> Result<(), Errno> {
    let (from, at, kind) = (c(from), c(at), c(Path::new(kind)));
    let none = std::ptr::null::<libc::c_char>();
    sys!(libc::SYS_mount, from.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, none).map(drop)
}

fn own_dir(scene: &Scene) -> std::path::PathBuf {
    let dir = scene.slot.join("mount");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn memory(scene: &Scene) -> Result<(), Errno> {
    let dir = own_dir(scene);
    mount(Path::new("tmpfs"), &dir, "tmpfs", 0)?;
    let _ = nix_unmount(&dir);
    Ok(())
}

fn bind(scene: &Scene) -> Result<(), Errno> {
    let dir = own_dir(scene);
    mount(&scene.outside, &dir, "none", libc::MS_BIND)?;
    let _ = nix_unmount(&dir);
    Ok(())
}

/// Remounts the directory that is a mount in every setting.
fn remount(scene: &Scene) -> Result<(), Errno> {
    mount(Path::new("none"), &scene.mounted, "none", libc::MS_REMOUNT | libc::MS_BIND)
}

fn unmount(scene: &Scene) -> Result<(), Errno> {
    nix_unmount(&scene.mounted)
}

fn nix_unmount(at: &Path) -> Result<(), Errno> {
    let at = c(at);
    sys!(libc::SYS_umount2, at.as_ptr(), libc::MNT_DETACH).map(drop)
}

/// Names a root that does not exist, which the kernel sees after it has asked for the privilege.
fn pivot(_: &Scene) -> Result<(), Errno> {
    let nowhere = c"/no/such/root".as_ptr();
    past(sys!(libc::SYS_pivot_root, nowhere, nowhere), &[Errno::ENOENT])
}

fn change_root(scene: &Scene) -> Result<(), Errno> {
    let dir = c(&scene.slot);
    sys!(libc::SYS_chroot, dir.as_ptr()).map(drop)
}

fn open_system(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0).map(drop)
}

fn copy_tree(scene: &Scene) -> Result<(), Errno> {
    const CLONE: libc::c_uint = 1;
    let dir = c(&scene.outside);
    sys!(libc::SYS_open_tree, libc::AT_FDCWD, dir.as_ptr(), CLONE).map(drop)
}

fn attributes(scene: &Scene) -> Result<(), Errno> {
    let dir = c(&scene.mounted);
    let nothing = [0u64; 4];
    let (at, bytes) = (libc::AT_FDCWD, size_of_val(&nothing));
    sys!(libc::SYS_mount_setattr, at, dir.as_ptr(), 0, nothing.as_ptr(), bytes).map(drop)
}

fn unshare_mount(scene: &Scene) -> Result<(), Errno> {
    let dir = own_dir(scene);
    sys!(libc::SYS_unshare, libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    mount(Path::new("tmpfs"), &dir, "tmpfs", 0)
}

fn enter(process: &str) -> Result<(), Errno> {
    let file = open(&Path::new("/proc").join(process).join("ns/mnt"), libc::O_RDONLY)?;
    sys!(libc::SYS_setns, file.as_raw_fd(), libc::CLONE_NEWNS).map(drop)
}

fn enter_controller(scene: &Scene) -> Result<(), Errno> {
    enter(&scene.controller.to_string())
}

fn enter_init(_: &Scene) -> Result<(), Errno> {
    enter("1")
}

fn enter_own(_: &Scene) -> Result<(), Errno> {
    enter("self")
}

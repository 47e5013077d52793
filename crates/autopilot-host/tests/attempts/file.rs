//! Attempts on files that the jail does not let be written.

use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs as unix;
use std::path::Path;

use nix::errno::Errno;

use crate::call::{ErrnoResult, c, open, overwrite, sys};
use crate::scene::{SECRET, Scene};
use crate::table::{
    Alone, AttemptRow, Expected, Layer, Promise, TrialUser, UNWRITABLE, all, both, refused, row,
};

const OTHER_MOUNT: Expected = refused(Layer::ReadOnlyMount, Errno::EXDEV);
const READ_ONLY: Expected = refused(Layer::ReadOnlyMount, Errno::EROFS);
const LANDLOCK: Expected = refused(Layer::LandlockPath, Errno::EACCES);
const UNTRACEABLE: Expected = refused(Layer::LandlockTrace, Errno::EACCES);
const UNSEEN: Expected = refused(Layer::PidNamespace, Errno::ENOENT);

pub const ROWS: &[AttemptRow] = &[
    row("file-write", "write to a file of the user's", write, UNWRITABLE),
    row("file-truncate", "truncate it", truncate, UNWRITABLE),
    row("file-create", "create a file beside it", create, UNWRITABLE),
    row("file-unlink", "remove it", unlink, UNWRITABLE),
    row("file-rename", "rename it", rename, UNWRITABLE),
    row("file-steal", "move it into the worktree", steal, both(OTHER_MOUNT, LANDLOCK)),
    row("file-exchange", "swap it with a file of one's own", exchange, both(OTHER_MOUNT, LANDLOCK)),
    row("dir-create", "make a directory outside", make_dir, UNWRITABLE),
    row("dir-remove", "remove a directory outside", remove_dir, UNWRITABLE),
    row("fifo-create", "make a named pipe outside", make_fifo, UNWRITABLE),
    row("link-out", "hard-link an own file to a name outside", link_out, UNWRITABLE),
    row(
        "link-in",
        "hard-link a file from outside into the worktree and write to it",
        link_in,
        both(OTHER_MOUNT, refused(Layer::LandlockPath, Errno::EXDEV)),
    ),
    row(
        "symlink-through",
        "write through a symbolic link in the worktree",
        through_link,
        UNWRITABLE,
    ),
    row("symlink-out", "make a symbolic link outside", symlink_out, UNWRITABLE),
    row("tmpfile-link", "give a nameless file a name outside (`O_TMPFILE`)", tmpfile, UNWRITABLE),
    row(
        "file-chmod",
        "change the mode of a file outside",
        chmod,
        both(READ_ONLY, Expected::Through),
    )
    .promise(Promise::WithNamespaces),
    row(
        "file-chown",
        "change its owner or group",
        chown,
        [READ_ONLY, refused(Layer::NoCapability, Errno::EPERM), READ_ONLY, Expected::Through],
    )
    .promise(Promise::WithNamespaces),
    row("file-utimes", "change its times", utimes, both(READ_ONLY, Expected::Through))
        .promise(Promise::WithNamespaces),
    row("file-xattr", "set an extended attribute on it", xattr, both(READ_ONLY, Expected::Through))
        .promise(Promise::WithNamespaces),
    row("file-acl", "set an access control list on it", acl, both(READ_ONLY, Expected::Through))
        .promise(Promise::WithNamespaces),
    row(
        "file-flags",
        "set a flag of it (`chattr +d`)",
        nodump,
        both(READ_ONLY, refused(Layer::Seccomp, Errno::EPERM)),
    ),
    row(
        "file-immutable",
        "make it immutable (`chattr +i`)",
        immutable,
        both(READ_ONLY, refused(Layer::Seccomp, Errno::EPERM)),
    )
    .of_root(),
    row("proc-self-root", "write to it by `/proc/self/root`", self_root, UNWRITABLE),
    row(
        "proc-1-root",
        "write to it by `/proc/1/root`",
        init_root,
        [UNTRACEABLE, UNTRACEABLE, UNTRACEABLE, refused(Layer::Kernel, Errno::EACCES)],
    )
    .alone(Alone::Varies, Alone::Fails),
    row(
        "proc-controller-root",
        "write to it by the controller's `/proc/N/root`",
        controller_root,
        both(UNSEEN, UNTRACEABLE),
    ),
    row(
        "proc-controller-cwd",
        "write to it by the controller's `/proc/N/cwd`",
        controller_cwd,
        both(UNSEEN, UNTRACEABLE),
    ),
    row(
        "proc-controller-fd",
        "write by a descriptor of the controller (`/proc/N/fd`)",
        controller_fd,
        both(UNSEEN, UNTRACEABLE),
    ),
    row(
        "open-by-handle",
        "open it by a file handle, past all directories",
        by_handle,
        both(refused(Layer::Seccomp, Errno::EPERM), refused(Layer::Seccomp, Errno::EPERM)),
    )
    .of_root(),
    row("pipe-write", "write into a named pipe of another program", write_pipe, all(LANDLOCK)),
    row("file-lock", "hold a lock on a file of the user's (`flock`)", lock, all(Expected::Through))
        .promise(Promise::No)
        .inside(),
    row(
        "hidden-read",
        "read other attempts' worktrees and the journal",
        hidden_read,
        both(refused(Layer::Masked, Errno::ENOENT), Expected::Through),
    )
    .promise(Promise::WithNamespaces)
    .inside(),
    row(
        "home-read",
        "read the user's own files",
        home_read,
        both(Expected::Through, Expected::Through),
    )
    .promise(Promise::No)
    .inside(),
];

fn write(scene: &Scene) -> Result<(), Errno> {
    overwrite(&scene.precious())
}

fn truncate(scene: &Scene) -> Result<(), Errno> {
    let path = c(&scene.precious());
    sys!(libc::SYS_truncate, path.as_ptr(), 0).map(drop)
}

fn create(scene: &Scene) -> Result<(), Errno> {
    fs::write(scene.outside.join("new"), "#").plain()
}

fn unlink(scene: &Scene) -> Result<(), Errno> {
    fs::remove_file(scene.precious()).plain()
}

fn rename(scene: &Scene) -> Result<(), Errno> {
    fs::rename(scene.precious(), scene.outside.join("renamed")).plain()
}

fn steal(scene: &Scene) -> Result<(), Errno> {
    fs::rename(scene.precious(), scene.slot.join("stolen")).plain()
}

fn exchange(scene: &Scene) -> Result<(), Errno> {
    let (own, theirs) = (c(&own_file(scene)), c(&scene.precious()));
    let here = libc::AT_FDCWD;
    let flags = libc::RENAME_EXCHANGE;
    sys!(libc::SYS_renameat2, here, own.as_ptr(), here, theirs.as_ptr(), flags).map(drop)
}

fn make_dir(scene: &Scene) -> Result<(), Errno> {
    fs::create_dir(scene.outside.join("new")).plain()
}

fn remove_dir(scene: &Scene) -> Result<(), Errno> {
    fs::remove_dir(scene.outside.join("empty")).plain()
}

fn make_fifo(scene: &Scene) -> Result<(), Errno> {
    let path = c(&scene.outside.join("pipe"));
    sys!(libc::SYS_mknodat, libc::AT_FDCWD, path.as_ptr(), libc::S_IFIFO | 0o600, 0).map(drop)
}

fn link_out(scene: &Scene) -> Result<(), Errno> {
    fs::hard_link(own_file(scene), scene.outside.join("linked")).plain()
}

fn link_in(scene: &Scene) -> Result<(), Errno> {
    let link = scene.slot.join("link-in");
    fs::hard_link(scene.precious(), &link).plain()?;
    overwrite(&link)
}

fn through_link(scene: &Scene) -> Result<(), Errno> {
    let link = scene.slot.join("symlink");
    let _ = fs::remove_file(&link);
    unix::symlink(scene.precious(), &link).plain()?;
    overwrite(&link)
}

fn symlink_out(scene: &Scene) -> Result<(), Errno> {
    unix::symlink("/etc/passwd", scene.outside.join("symlink")).plain()
}

fn tmpfile(scene: &Scene) -> Result<(), Errno> {
    let file = open(&scene.slot, libc::O_RDWR | libc::O_TMPFILE)?;
    let from = c(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())));
    let to = c(&scene.outside.join("named"));
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    sys!(libc::SYS_linkat, here, from.as_ptr(), here, to.as_ptr(), follow).map(drop)
}

fn chmod(scene: &Scene) -> Result<(), Errno> {
    let path = c(&scene.precious());
    sys!(libc::SYS_fchmodat, libc::AT_FDCWD, path.as_ptr(), 0o777).map(drop)
}

/// Root tries another owner; a plain user may only name the owner and the group that it has.
fn chown(scene: &Scene) -> Result<(), Errno> {
    let (user, group) = match TrialUser::here() {
        TrialUser::Root => (1, 1),
        TrialUser::Plain => (u32::MAX, nix::unistd::getegid().as_raw()),
    };
    let path = c(&scene.precious());
    sys!(libc::SYS_fchownat, libc::AT_FDCWD, path.as_ptr(), user, group, 0).map(drop)
}

impl TrialUser {
    /// Returns the user as whom this process runs.
    pub fn here() -> TrialUser {
        if nix::unistd::geteuid().is_root() { TrialUser::Root } else { TrialUser::Plain }
    }
}

fn utimes(scene: &Scene) -> Result<(), Errno> {
    let path = c(&scene.precious());
    let times = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
    sys!(libc::SYS_utimensat, libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0).map(drop)
}

fn set_attribute(scene: &Scene, name: &str, value: &[u8]) -> Result<(), Errno> {
    let (path, name) = (c(&scene.precious()), CString::new(name).unwrap());
    let bytes = value.len();
    sys!(libc::SYS_setxattr, path.as_ptr(), name.as_ptr(), value.as_ptr(), bytes, 0).map(drop)
}

fn xattr(scene: &Scene) -> Result<(), Errno> {
    set_attribute(scene, "user.attempt", b"#")
}

/// An access control list in the kernel's own form: a version, then tag, rights and id of each
/// entry. This one gives the user all rights.
fn acl(scene: &Scene) -> Result<(), Errno> {
    const NOBODY: u32 = u32::MAX;
    let user = nix::unistd::geteuid().as_raw();
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, NOBODY), (2, 7, user), (4, 4, NOBODY), (16, 7, NOBODY), (32, 4, NOBODY)];
    let mut value = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(rights.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    set_attribute(scene, "system.posix_acl_access", &value)
}

fn set_flags(scene: &Scene, flags: libc::c_int) -> Result<(), Errno> {
    let file = open(&scene.precious(), libc::O_RDONLY)?;
    sys!(libc::SYS_ioctl, file.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags).map(drop)
}

fn nodump(scene: &Scene) -> Result<(), Errno> {
    const NODUMP: libc::c_int = 0x40;
    set_flags(scene, NODUMP)
}

fn immutable(scene: &Scene) -> Result<(), Errno> {
    const IMMUTABLE: libc::c_int = 0x10;
    set_flags(scene, IMMUTABLE)
}

fn by_root_of(scene: &Scene, process: &str) -> Result<(), Errno> {
    let inner = scene.precious();
    let inner = inner.strip_prefix("/").unwrap();
    overwrite(&Path::new("/proc").join(process).join("root").join(inner))
}

fn self_root(scene: &Scene) -> Result<(), Errno> {
    by_root_of(scene, "self")
}

fn init_root(scene: &Scene) -> Result<(), Errno> {
    by_root_of(scene, "1")
}

fn controller_root(scene: &Scene) -> Result<(), Errno> {
    by_root_of(scene, &scene.controller.to_string())
}

/// The controller's working directory is the one outside.
fn controller_cwd(scene: &Scene) -> Result<(), Errno> {
    overwrite(Path::new(&format!("/proc/{}/cwd/precious", scene.controller)))
}

fn controller_fd(scene: &Scene) -> Result<(), Errno> {
    overwrite(Path::new(&format!("/proc/{}/fd/{}", scene.controller, scene.inherited_fd)))
}

fn by_handle(scene: &Scene) -> Result<(), Errno> {
    const HANDLE_BYTES: u32 = 128;
    let path = c(&scene.precious());
    let mut handle = [0u32; 2 + 32];
    handle[0] = HANDLE_BYTES;
    let mut mount = 0i32;
    let (at, handle) = (libc::AT_FDCWD, handle.as_mut_ptr());
    sys!(libc::SYS_name_to_handle_at, at, path.as_ptr(), handle, &raw mut mount, 0)?;
    let dir = open(&scene.outside, libc::O_RDONLY)?;
    let fd = sys!(libc::SYS_open_by_handle_at, dir.as_raw_fd(), handle, libc::O_WRONLY)?;
    sys!(libc::SYS_write, fd, b"#".as_ptr(), 1).map(drop)
}

fn write_pipe(scene: &Scene) -> Result<(), Errno> {
    let mut pipe = open(&scene.pipe(), libc::O_WRONLY | libc::O_NONBLOCK)?;
    pipe.write_all(b"#").plain()
}

/// Takes no more than a descriptor for reading.
fn lock(scene: &Scene) -> Result<(), Errno> {
    let file = open(&scene.precious(), libc::O_RDONLY)?;
    sys!(libc::SYS_flock, file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB).map(drop)
}

fn hidden_read(scene: &Scene) -> Result<(), Errno> {
    reads_secret(&scene.hidden.join("journal"))
}

fn home_read(scene: &Scene) -> Result<(), Errno> {
    reads_secret(&scene.home.join("key"))
}

pub fn reads_secret(path: &Path) -> Result<(), Errno> {
    let text = fs::read(path).plain()?;
    let found = text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    if found { Ok(()) } else { Err(Errno::ENOENT) }
}

fn own_file(scene: &Scene) -> std::path::PathBuf {
    let path = scene.slot.join("own");
    fs::File::create(&path).and_then(|mut file| file.write_all(b"own")).unwrap();
    path
}

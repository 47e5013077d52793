//! The ground of a test: a directory on a file system that can do what the test needs, and a toolchain
//! that its user can read.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use autopilot_host::warm::LayerKind;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// The variables by which a copy of this binary knows its ground.
const BASE: &str = "WARM_TEST_BASE";
const TOOLCHAIN: &str = "WARM_TEST_TOOLCHAIN";

/// The number of the plain user; on most systems it is `nobody`.
const PLAIN_USER: u32 = 65534;

/// The user of a test: whoever runs the tests, or one without privileges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TestUser {
    Own,
    Plain,
}

impl TestUser {
    pub fn suffix(self) -> &'static str {
        match self {
            TestUser::Own => "",
            TestUser::Plain => "_as_a_plain_user",
        }
    }
}

/// The file system of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GroundKind {
    /// That of this machine.
    Disk,
    /// One whose files can share blocks.
    Btrfs,
}

impl GroundKind {
    pub fn of(kind: LayerKind) -> GroundKind {
        match kind {
            LayerKind::Overlay | LayerKind::Copy => GroundKind::Disk,
            LayerKind::Reflink => GroundKind::Btrfs,
        }
    }
}

pub fn is_prepared() -> bool {
    std::env::var_os(BASE).is_some()
}

/// A new directory on the ground.
pub fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::var_os(BASE).unwrap()).unwrap()
}

pub fn toolchain() -> PathBuf {
    PathBuf::from(std::env::var_os(TOOLCHAIN).unwrap())
}

/// Prepares a ground and runs the test on it, in a copy of this process.
pub fn run_on(kind: GroundKind, user: TestUser, name: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    let temp = if is_root {
        // Not in `/tmp`, of which a jail has its own.
        tempfile::Builder::new().prefix("warm-").tempdir_in("/var/lib").unwrap()
    } else {
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    };
    let root = temp.path();
    let (base, toolchain) = (root.join("base"), root.join("toolchain"));
    fs::create_dir(&base).unwrap();
    fs::create_dir(&toolchain).unwrap();
    // Dropped before `temp`, also when something below panics.
    let _mounts = TestMounts([base.clone(), toolchain.clone()]);
    let sysroot = sysroot();
    let mut command = Command::new("/proc/self/exe");
    command.args([name, "--exact"]).current_dir("/").stdin(Stdio::null());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env(BASE, &base);
    command.env("HOME", &base).env(TOOLCHAIN, if is_root { &toolchain } else { &sysroot });
    if let Some(kills) = std::env::var_os(crate::crash::KILLS_ASKED) {
        command.env(crate::crash::KILLS_ASKED, kills);
    }
    if is_root {
        fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some(&sysroot), &toolchain, none, MsFlags::MS_BIND, none).unwrap();
        let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(none, &toolchain, none, read_only, none).unwrap();
        if kind == GroundKind::Btrfs {
            mount_btrfs(root, &base);
        }
        if user == TestUser::Plain {
            chown(&base, Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
            command.uid(PLAIN_USER).gid(PLAIN_USER);
        }
    } else {
        assert!(kind == GroundKind::Disk, "root has to mount the file system of this test");
    }
    command.status().unwrap().success()
}

/// Unmounts what a test has mounted below its temporary directory. Removing that directory would
/// otherwise remove what is mounted there, and the toolchain is the developer's own.
struct TestMounts([PathBuf; 2]);

impl Drop for TestMounts {
    fn drop(&mut self) {
        for place in &self.0 {
            let _not_mounted = nix::mount::umount2(place, nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

fn mount_btrfs(root: &Path, at: &Path) {
    let image = root.join("image");
    fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
    let run = |program: &str, args: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(args).output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
    };
    run("mkfs.btrfs", &["-q".as_ref(), image.as_ref()]);
    run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), at.as_ref()]);
}

fn sysroot() -> PathBuf {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

//! Attempts to gain privileges, or to shed the rules of the jail.

use std::process::Command;

use nix::errno::Errno;

use crate::call::{ErrnoResult, c, overwrite, sys};
use crate::scene::Scene;
use crate::table::{
    Alone, AttemptRow, Expected, FILTERED, Layer, POWERLESS, Promise, TrialUser, UNWRITABLE, all,
    both, refused, row,
};

pub const ROWS: &[AttemptRow] = &[
    row(
        "setuid-program",
        "become root by a setuid program",
        setuid_program,
        all(refused(Layer::NoNewPrivileges, Errno::EPERM)),
    )
    .inside(),
    row(
        "setuid-left",
        "leave a setuid program in the worktree",
        leave_setuid,
        all(Expected::Through),
    )
    .promise(Promise::No)
    .inside(),
    row(
        "setuid",
        "become another user (`setuid`)",
        set_user,
        both(
            refused(Layer::UserNamespace, Errno::EINVAL),
            refused(Layer::NoCapability, Errno::EPERM),
        ),
    )
    .inside()
    .of_root(),
    row("capability", "raise a capability (`capset`)", raise, POWERLESS).inside().of_root(),
    row("capability-ambient", "raise an ambient capability", raise_ambient, POWERLESS)
        .inside()
        .of_root(),
    row(
        "no-new-privs",
        "shed `no_new_privs`",
        shed,
        all(refused(Layer::NoNewPrivileges, Errno::EINVAL)),
    )
    .inside(),
    row(
        "landlock-relax",
        "allow oneself more by Landlock rules of one's own",
        relax_landlock,
        UNWRITABLE,
    ),
    row("seccomp-relax", "allow oneself more by a filter of one's own", relax_seccomp, FILTERED)
        .inside(),
    row("limit-raise", "raise a hard limit of one's own", raise_limit, POWERLESS)
        .inside()
        .alone(Alone::Varies, Alone::Fails),
];

/// The word by which the setuid copy of this binary tells what it has become.
pub const WHO: &str = "__who";

/// Tells whether this process has become root or has a capability.
pub fn who() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() != 0
}

fn setuid_program(scene: &Scene) -> Result<(), Errno> {
    let status = Command::new(&scene.setuid).arg(WHO).status().unwrap();
    if status.success() { Ok(()) } else { Err(Errno::EPERM) }
}

/// It has the rights of the user, for whoever can reach it.
fn leave_setuid(scene: &Scene) -> Result<(), Errno> {
    use std::os::unix::fs::PermissionsExt;
    let path = scene.slot.join("setuid");
    std::fs::write(&path, "").plain()?;
    let name = c(&path);
    sys!(libc::SYS_fchmodat, libc::AT_FDCWD, name.as_ptr(), 0o4755)?;
    let mode = std::fs::metadata(&path).plain()?.permissions().mode();
    if mode & libc::S_ISUID == 0 { Err(Errno::EPERM) } else { Ok(()) }
}

fn set_user(_: &Scene) -> Result<(), Errno> {
    let other = match TrialUser::here() {
        TrialUser::Root => 1,
        TrialUser::Plain => 0,
    };
    sys!(libc::SYS_setuid, other).map(drop)
}

const RAISED: u32 = 10;

/// Asks for the capability to bind low ports, which does no harm.
fn raise(_: &Scene) -> Result<(), Errno> {
    let header = [0x2008_0522u32, 0];
    let bit = 1 << RAISED;
    let sets = [bit, bit, bit, 0, 0, 0];
    sys!(libc::SYS_capset, header.as_ptr(), sets.as_ptr()).map(drop)
}

/// An ambient capability must be inheritable first, which root can make it.
fn raise_ambient(scene: &Scene) -> Result<(), Errno> {
    let _ = raise(scene);
    let (what, how) = (libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE);
    sys!(libc::SYS_prctl, what, how, RAISED, 0, 0).map(drop)
}

fn shed(_: &Scene) -> Result<(), Errno> {
    let result = sys!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
    let is_set = sys!(libc::SYS_prctl, libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)? == 1;
    if is_set { result.map(drop) } else { Ok(()) }
}

fn relax_landlock(scene: &Scene) -> Result<(), Errno> {
    use landlock::{ABI, Access, AccessFs, PathBeneath, PathFd};
    use landlock::{Ruleset, RulesetAttr, RulesetCreatedAttr};
    let everything = AccessFs::from_all(ABI::V1);
    let root = PathFd::new("/").unwrap();
    let rules = Ruleset::default().handle_access(everything).unwrap().create().unwrap();
    let rules = rules.add_rule(PathBeneath::new(root, everything)).unwrap();
    rules.restrict_self().unwrap();
    overwrite(&scene.precious())
}

/// Puts a filter that allows everything in force, and makes a call that was refused before.
fn relax_seccomp(_: &Scene) -> Result<(), Errno> {
    const SET_FILTER: u32 = 1;
    const JOIN_SESSION: i32 = 1;
    let allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let mut steps = [allow];
    let program = libc::sock_fprog { len: 1, filter: steps.as_mut_ptr() };
    sys!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)?;
    sys!(libc::SYS_seccomp, SET_FILTER, 0, &raw const program)?;
    sys!(libc::SYS_keyctl, JOIN_SESSION, std::ptr::null::<u8>()).map(drop)
}

fn raise_limit(_: &Scene) -> Result<(), Errno> {
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)?;
    let more = [hard, hard + 1];
    let old = std::ptr::null::<u8>();
    sys!(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, more.as_ptr(), old).map(drop)
}

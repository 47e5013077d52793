//! The table of attempts: what is tried from inside a jail, what is promised, and what stops it.
//!
//! The table in `docs/security.md` is written from this one.

use nix::errno::Errno;

use crate::scene::Scene;
use crate::{device, file, kernel, kernel_gate, left, mount, network, privilege, process, socket};

/// The settings in which every attempt is made, in the order of [`AttemptRow::expected`].
pub const SETTINGS: [Setting; 4] = [
    Setting { user: TrialUser::Root, jail: TrialJail::Namespaces },
    Setting { user: TrialUser::Root, jail: TrialJail::Bare },
    Setting { user: TrialUser::Plain, jail: TrialJail::Namespaces },
    Setting { user: TrialUser::Plain, jail: TrialJail::Bare },
];

/// The settings without a jail, in the order of [`AttemptRow::alone`].
pub const CONTROLS: [Setting; 2] = [
    Setting { user: TrialUser::Root, jail: TrialJail::None },
    Setting { user: TrialUser::Plain, jail: TrialJail::None },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub user: TrialUser,
    pub jail: TrialJail,
}

/// The user as whom the controller and the jailed program run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialUser {
    Root,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialJail {
    /// The whole jail.
    Namespaces,
    /// The jail of a machine that gives no namespaces.
    Bare,
    /// No jail: shows that the attempt is a real one.
    None,
}

/// One attempt.
pub struct AttemptRow {
    pub id: &'static str,
    pub what: &'static str,
    pub promise: Promise,
    pub proof: Proof,
    pub act: TrialAct,
    /// A later program that looks for what the attempt left.
    pub heir: Option<TrialAct>,
    pub needs: TrialNeed,
    pub expected: [Expected; 4],
    pub alone: [Alone; 2],
}

pub type TrialAct = fn(&Scene) -> Result<(), Errno>;

/// What the product says about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Stopped in every jail.
    Always,
    /// Stopped where the kernel gives namespaces.
    WithNamespaces,
    /// Not stopped; told, so that nobody relies on it.
    No,
}

/// Where it is seen whether an attempt succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Outside: files, processes, sockets and the like are as before. What the program says counts
    /// only for the layer.
    Outside,
    /// Inside: what it read, or a call that the kernel accepted.
    Inside,
}

/// What an attempt needs of its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialNeed {
    Nothing,
    NetworkOff,
    /// The other program opens its socket when the jailed one already runs.
    LateSocket,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Refused with this error by this layer.
    Refused(Layer, Errno),
    /// Accepted, and seen by nobody outside because of this layer.
    Private(Layer),
    /// It succeeds.
    Through,
}

/// What happens without a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    Works,
    /// The kernel refuses it to this user anyway.
    Fails,
    /// It depends on settings of the kernel.
    Varies,
    /// The supervisor stops it without a jail too.
    Supervised,
    /// It would disturb the machine.
    Untried,
}

/// What stops an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    MountNamespace,
    PidNamespace,
    IpcNamespace,
    NetworkNamespace,
    UserNamespace,
    ReadOnlyMount,
    Masked,
    LandlockPath,
    LandlockScope,
    LandlockTrace,
    Seccomp,
    NoCapability,
    NoNewPrivileges,
    NothingInherited,
    Supervisor,
    /// Not the jail: the kernel refuses it to this user in any case.
    Kernel,
}

impl Layer {
    pub fn words(self) -> &'static str {
        match self {
            Layer::MountNamespace => "mount namespace",
            Layer::PidNamespace => "PID namespace",
            Layer::IpcNamespace => "IPC namespace",
            Layer::NetworkNamespace => "network namespace",
            Layer::UserNamespace => "user namespace",
            Layer::ReadOnlyMount => "read-only mount",
            Layer::Masked => "masked",
            Layer::LandlockPath => "Landlock path",
            Layer::LandlockScope => "Landlock scope",
            Layer::LandlockTrace => "Landlock tracing rule",
            Layer::Seccomp => "seccomp",
            Layer::NoCapability => "no capabilities",
            Layer::NoNewPrivileges => "no_new_privs",
            Layer::NothingInherited => "nothing inherited",
            Layer::Supervisor => "supervisor",
            Layer::Kernel => "file permissions",
        }
    }

    /// Returns the errors with which this layer can refuse. An error of another kind means that
    /// the table names the wrong layer.
    fn errors(self) -> &'static [Errno] {
        match self {
            Layer::MountNamespace => &[Errno::ENOENT, Errno::EXDEV],
            Layer::PidNamespace => &[Errno::ESRCH, Errno::ENOENT],
            Layer::IpcNamespace => &[Errno::ENOENT],
            Layer::NetworkNamespace => &[Errno::ECONNREFUSED, Errno::ENETUNREACH],
            Layer::UserNamespace => &[Errno::EINVAL],
            Layer::ReadOnlyMount => &[Errno::EROFS, Errno::EXDEV],
            Layer::Masked => &[Errno::ENOENT, Errno::ECONNREFUSED],
            Layer::LandlockPath => &[Errno::EACCES, Errno::EXDEV],
            Layer::LandlockScope => &[Errno::EPERM],
            Layer::LandlockTrace => &[Errno::EACCES, Errno::EPERM],
            Layer::Seccomp => &[Errno::EPERM, Errno::ENOSYS],
            Layer::NoCapability => &[Errno::EPERM, Errno::EACCES],
            Layer::NoNewPrivileges => &[Errno::EPERM, Errno::EINVAL],
            Layer::NothingInherited => &[Errno::EBADF, Errno::ENXIO],
            Layer::Supervisor => &[],
            Layer::Kernel => &[Errno::EPERM, Errno::EACCES, Errno::ENOENT],
        }
    }
}

/// Makes a row of an attempt that is stopped in every jail, is seen outside, and works without one.
pub const fn row(
    id: &'static str,
    what: &'static str,
    act: TrialAct,
    expected: [Expected; 4],
) -> AttemptRow {
    AttemptRow {
        id,
        what,
        promise: Promise::Always,
        proof: Proof::Outside,
        act,
        heir: None,
        needs: TrialNeed::Nothing,
        expected,
        alone: [Alone::Works, Alone::Works],
    }
}

impl AttemptRow {
    pub const fn promise(self, promise: Promise) -> AttemptRow {
        AttemptRow { promise, ..self }
    }

    /// The program itself tells whether it succeeded.
    pub const fn inside(self) -> AttemptRow {
        AttemptRow { proof: Proof::Inside, ..self }
    }

    pub const fn heir(self, heir: TrialAct) -> AttemptRow {
        AttemptRow { heir: Some(heir), ..self }
    }

    pub const fn needs(self, needs: TrialNeed) -> AttemptRow {
        AttemptRow { needs, ..self }
    }

    pub const fn alone(self, root: Alone, user: Alone) -> AttemptRow {
        AttemptRow { alone: [root, user], ..self }
    }

    /// Only root could do it without a jail.
    pub const fn of_root(self) -> AttemptRow {
        self.alone(Alone::Works, Alone::Fails)
    }
}

/// The same for root and for a plain user.
pub const fn both(namespaces: Expected, bare: Expected) -> [Expected; 4] {
    [namespaces, bare, namespaces, bare]
}

/// The same in every setting.
pub const fn all(expected: Expected) -> [Expected; 4] {
    [expected; 4]
}

pub const fn refused(layer: Layer, errno: Errno) -> Expected {
    Expected::Refused(layer, errno)
}

/// Refused by the filter of system calls, everywhere.
pub const FILTERED: [Expected; 4] = all(refused(Layer::Seccomp, Errno::EPERM));

/// Refused by the filter as a call that does not exist, everywhere.
pub const ABSENT: [Expected; 4] = all(refused(Layer::Seccomp, Errno::ENOSYS));

/// Refused for want of a capability, everywhere.
pub const POWERLESS: [Expected; 4] = all(refused(Layer::NoCapability, Errno::EPERM));

/// A change of a file outside.
pub const UNWRITABLE: [Expected; 4] =
    both(refused(Layer::ReadOnlyMount, Errno::EROFS), refused(Layer::LandlockPath, Errno::EACCES));

/// Returns all attempts, in the order of the documentation.
pub fn rows() -> Vec<&'static AttemptRow> {
    [
        file::ROWS,
        device::ROWS,
        mount::ROWS,
        kernel::ROWS,
        kernel_gate::ROWS,
        process::ROWS,
        left::ROWS,
        socket::ROWS,
        network::ROWS,
        privilege::ROWS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The fewest attempts that the table may have.
const ROWS_MIN: usize = 60;

/// The table promises nothing that it doesn't expect, and names layers that can give its errors.
pub fn is_consistent() {
    let rows = rows();
    assert!(rows.len() >= ROWS_MIN, "{} attempts", rows.len());
    let mut ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rows.len(), "two attempts have the same id");
    for row in &rows {
        for (setting, expected) in SETTINGS.iter().zip(row.expected) {
            let whole = setting.jail == TrialJail::Namespaces;
            let promised = match row.promise {
                Promise::Always => true,
                Promise::WithNamespaces => whole,
                Promise::No => false,
            };
            assert!(!promised || expected != Expected::Through, "{} in {setting:?}", row.id);
            if let Expected::Refused(layer, errno) = expected {
                assert!(layer.errors().contains(&errno), "{}: {layer:?} and {errno}", row.id);
            }
            let needs_namespace = match expected {
                Expected::Refused(layer, _) | Expected::Private(layer) => layer.is_of_namespaces(),
                Expected::Through => false,
            };
            assert!(whole || !needs_namespace, "{} in {setting:?}", row.id);
        }
        let is_open = row.expected.contains(&Expected::Through);
        let told = row.promise == Promise::Always || is_open;
        assert!(told, "{} is stopped everywhere; promise it", row.id);
        let works = row.alone.iter().any(|alone| *alone != Alone::Fails);
        assert!(works, "{} never works, so it shows nothing", row.id);
    }
}

impl Layer {
    fn is_of_namespaces(self) -> bool {
        match self {
            Layer::MountNamespace
            | Layer::PidNamespace
            | Layer::IpcNamespace
            | Layer::NetworkNamespace
            | Layer::UserNamespace
            | Layer::ReadOnlyMount
            | Layer::Masked => true,
            Layer::LandlockPath
            | Layer::LandlockScope
            | Layer::LandlockTrace
            | Layer::Seccomp
            | Layer::NoCapability
            | Layer::NoNewPrivileges
            | Layer::NothingInherited
            | Layer::Supervisor
            | Layer::Kernel => false,
        }
    }
}

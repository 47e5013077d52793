//! The sandbox of agents and commands: they read everything and write only where allowed.
//!
//! The jail (see [`crate::jail`]) needs no privilege and no other program; bubblewrap is a sandbox of
//! its own. One that was asked for by name and cannot start is an error, never a silent run without
//! it.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use serde::{Deserialize, Serialize};

use crate::exec::{self, Supervisor};
use crate::jail::{JailNetwork, JailPlan, NamespaceProbe};

/// The newest interface whose rights we name; older kernels enforce the part they know.
const ABI_KNOWN: ABI = ABI::V6;

/// First Landlock interface that keeps signals inside the sandbox.
const ABI_SCOPES_SIGNALS: i32 = 6;

/// Devices that ordinary programs open for writing. Not `/dev/shm`: it is one directory for all, so
/// what one attempt leaves there could make the next one's proof pass.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// The sandbox that the configuration asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostSandboxMode {
    /// Landlock, else bubblewrap, else none with a notice.
    #[default]
    Auto,
    /// Landlock, or an error.
    Landlock,
    /// Bubblewrap, or an error.
    Bwrap,
    /// No sandbox.
    Off,
}

/// The sandbox of one launch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxPlan {
    /// No sandbox.
    #[default]
    Off,
    /// The jail: namespaces where the kernel gives them, Landlock, a filter of system calls.
    Jail(JailPlan),
    /// Bubblewrap, with the paths that may be written.
    Bwrap { program: PathBuf, write: Vec<PathBuf> },
}

/// The sandboxes this machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The version of the kernel's Landlock interface, if it has one.
    pub landlock_abi: Option<i32>,
    /// Whether the kernel gives the namespaces of which a whole jail is made.
    pub namespaces: NamespaceProbe,
    /// A bubblewrap that was seen to start a program.
    pub bwrap: Option<PathBuf>,
}

/// The sandbox that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxChoice {
    /// The sandbox of a launch.
    pub plan: SandboxPlan,
    /// A message for a person, for example that there is no sandbox here.
    pub notice: Option<String>,
}

/// The reason why a sandbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The kernel has no Landlock.
    #[error("sandbox mode `landlock` is configured, but this kernel does not support Landlock")]
    NoLandlock,
    /// No bubblewrap was found that can start a program.
    #[error("sandbox mode `bwrap` is configured, but no working `bwrap` was found on PATH")]
    NoBwrap,
    /// Only namespaces can take the network away.
    #[error("`sandbox.network: off` is configured, but {why}")]
    NoNetwork { why: String },
    /// The kernel refused the rules.
    #[error("cannot prepare the Landlock sandbox")]
    Rules { source: landlock::RulesetError },
    /// A path that should be writable could not be opened.
    #[error("cannot allow writing to `{path}` in the sandbox")]
    Path { path: PathBuf, source: landlock::PathFdError },
    /// The kernel enforces none of the rules.
    #[error("the kernel accepted the Landlock sandbox but does not enforce it")]
    NotEnforced,
}

/// Finds out what this machine offers. `path` is the PATH to find bubblewrap on; `supervisor` makes
/// a jail once, because only that proves that it can.
pub fn probe(path: &OsStr, supervisor: &Supervisor) -> Probe {
    let landlock_abi = landlock_abi();
    let namespaces = match landlock_abi {
        Some(_) => exec::probe_namespaces(path, supervisor),
        None => NamespaceProbe::Refused { why: String::from("no Landlock in this kernel") },
    };
    Probe { landlock_abi, namespaces, bwrap: working_bwrap(path) }
}

impl Probe {
    /// Returns whether this kernel's Landlock keeps signals inside the sandbox.
    pub fn scopes_signals(&self) -> bool {
        self.landlock_abi.is_some_and(|abi| abi >= ABI_SCOPES_SIGNALS)
    }

    /// Returns one sentence for `doctor`.
    pub fn sentence(&self) -> String {
        let landlock = match self.landlock_abi {
            Some(abi) if self.scopes_signals() => format!("Landlock (interface {abi})"),
            Some(abi) => {
                format!("Landlock (interface {abi}, too old to keep signals and sockets inside)")
            }
            None => String::from("no Landlock in this kernel"),
        };
        let jail = match (&self.namespaces, self.landlock_abi) {
            (NamespaceProbe::Given, Some(_)) => " and namespaces",
            (NamespaceProbe::Refused { .. }, _) | (_, None) => "",
        };
        let bwrap = match &self.bwrap {
            Some(program) => format!("bubblewrap at `{}`", program.display()),
            None => String::from("no working bubblewrap on PATH"),
        };
        format!("{landlock}{jail}; {bwrap}")
    }

    /// Returns what the jail does not keep where the kernel refuses namespaces: for all this it has
    /// no other rule.
    pub fn gap(&self) -> Option<String> {
        self.landlock_abi?;
        match &self.namespaces {
            NamespaceProbe::Given => None,
            NamespaceProbe::Refused { why } => Some(format!(
                "This machine refuses namespaces ({why}), so agents and commands can still change \
                 mode, owner, times and attributes of your files, connect to path sockets of other \
                 programs (Docker, D-Bus), write to your terminals, and see all processes and \
                 everybody's temporary files; worktrees are not hidden from each other, and \
                 `sandbox.sockets` has nothing to restrict. Allow unprivileged user namespaces \
                 (`sysctl kernel.unprivileged_userns_clone=1`, or \
                 `kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu) to close this"
            )),
        }
    }

    /// Chooses a plan. Writable paths that do not exist are left out, since no rule can name them.
    /// Of bubblewrap's plan only the writable paths are taken; it is a sandbox of its own.
    pub fn choose(
        &self,
        mode: HostSandboxMode,
        mut jail: JailPlan,
    ) -> Result<SandboxChoice, SandboxError> {
        jail.write.retain(|path| path.exists());
        jail.namespaces = self.namespaces == NamespaceProbe::Given;
        let network = jail.network;
        let landlock = self.landlock_abi.is_some();
        let plan = match (mode, &self.bwrap) {
            (HostSandboxMode::Off, _) => SandboxPlan::Off,
            (HostSandboxMode::Landlock | HostSandboxMode::Auto, _) if landlock => {
                SandboxPlan::Jail(jail)
            }
            (HostSandboxMode::Landlock, _) => return Err(SandboxError::NoLandlock),
            (HostSandboxMode::Bwrap | HostSandboxMode::Auto, Some(program)) => {
                SandboxPlan::Bwrap { program: program.clone(), write: jail.write }
            }
            (HostSandboxMode::Bwrap, None) => return Err(SandboxError::NoBwrap),
            (HostSandboxMode::Auto, None) => SandboxPlan::Off,
        };
        if network == JailNetwork::Off {
            match (&plan, &self.namespaces) {
                (SandboxPlan::Jail(_), NamespaceProbe::Given) => {}
                (SandboxPlan::Jail(_), NamespaceProbe::Refused { why }) => {
                    let why = format!("this machine refuses the namespaces it needs: {why}");
                    return Err(SandboxError::NoNetwork { why });
                }
                (SandboxPlan::Off | SandboxPlan::Bwrap { .. }, _) => {
                    let why = String::from("only the sandbox modes `auto` and `landlock` have it");
                    return Err(SandboxError::NoNetwork { why });
                }
            }
        }
        let notice = (mode == HostSandboxMode::Auto && plan == SandboxPlan::Off)
            .then(|| format!("agents run without a sandbox: {}", self.sentence()));
        Ok(SandboxChoice { plan, notice })
    }
}

/// Returns rules that are ready to be enforced by [`enforce`] in the process that becomes the
/// agent.
pub fn prepare(write: &[PathBuf]) -> Result<RulesetCreated, SandboxError> {
    let rules = |source| SandboxError::Rules { source };
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))
        .map_err(rules)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(ABI_KNOWN))
        .map_err(rules)?
        .scope(Scope::from_all(ABI_KNOWN))
        .map_err(rules)?
        .create()
        .map_err(rules)?;
    let devices = DEVICES.iter().map(PathBuf::from).filter(|path| path.exists());
    for path in write.iter().cloned().chain(devices) {
        let access = allowed(&path);
        let fd = PathFd::new(&path).map_err(|source| SandboxError::Path { path, source })?;
        ruleset = ruleset.add_rule(PathBeneath::new(fd, access)).map_err(rules)?;
    }
    Ok(ruleset)
}

/// Puts the calling thread, and all it starts from now on, into the sandbox.
pub fn enforce(ruleset: RulesetCreated) -> Result<(), SandboxError> {
    let status = ruleset.restrict_self().map_err(|source| SandboxError::Rules { source })?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(SandboxError::NotEnforced),
    }
}

fn allowed(path: &Path) -> BitFlags<AccessFs> {
    let write = AccessFs::from_write(ABI_KNOWN);
    if path.is_dir() { write } else { write & AccessFs::from_file(ABI_KNOWN) }
}

/// Returns the arguments of bubblewrap before the agent's own program and arguments.
pub fn bwrap_args(write: &[PathBuf], cwd: &Path, status_fd: RawFd) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"].map(OsString::from).to_vec();
    for path in write {
        args.extend([OsString::from("--bind"), path.into(), path.into()]);
    }
    // The sandbox's own process table comes last, so that no bind of a parent directory can cover
    // it.
    args.extend(["--unshare-pid", "--proc", "/proc", "--die-with-parent"].map(OsString::from));
    args.extend([OsString::from("--json-status-fd"), status_fd.to_string().into()]);
    args.extend([OsString::from("--chdir"), cwd.into(), OsString::from("--")]);
    args
}

/// Returns the inner process that bubblewrap names on its status descriptor, once it has done so.
pub fn bwrap_inner(status: &str) -> Option<i32> {
    let values = serde_json::Deserializer::from_str(status).into_iter::<serde_json::Value>();
    let pid = values.map_while(Result::ok).find_map(|value| value.get("child-pid")?.as_i64())?;
    i32::try_from(pid).ok()
}

fn landlock_abi() -> Option<i32> {
    const VERSION: u32 = 1;
    // SAFETY: with the version flag the kernel reads no memory of ours.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION)
    };
    i32::try_from(abi).ok().filter(|abi| *abi > 0)
}

/// Finds a bubblewrap and starts it once: many distributions ship it but forbid user namespaces, so
/// only a start proves that it works.
fn working_bwrap(path: &OsStr) -> Option<PathBuf> {
    let program = exec::find(OsStr::new("bwrap"), path, Path::new("/"))?;
    let status = std::process::Command::new(&program)
        .args(["--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--", "true"])
        .env_clear()
        .env("PATH", path)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    status.is_ok_and(|status| status.success()).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Probe =
        Probe { landlock_abi: None, namespaces: NamespaceProbe::Given, bwrap: None };

    #[test]
    fn a_sandbox_asked_for_by_name_is_never_left_out() {
        assert!(matches!(
            NOTHING.choose(HostSandboxMode::Landlock, JailPlan::default()),
            Err(SandboxError::NoLandlock)
        ));
        assert!(matches!(
            NOTHING.choose(HostSandboxMode::Bwrap, JailPlan::default()),
            Err(SandboxError::NoBwrap)
        ));
    }

    #[test]
    fn auto_takes_landlock_then_bubblewrap_then_none_with_a_notice() {
        let bwrap = Some(PathBuf::from("/usr/bin/bwrap"));
        let both = Probe { landlock_abi: Some(6), bwrap: bwrap.clone(), ..NOTHING };
        assert!(matches!(
            both.choose(HostSandboxMode::Auto, JailPlan::default()).unwrap().plan,
            SandboxPlan::Jail(_)
        ));
        let second = Probe { bwrap, ..NOTHING };
        assert!(matches!(
            second.choose(HostSandboxMode::Auto, JailPlan::default()).unwrap().plan,
            SandboxPlan::Bwrap { .. }
        ));
        let none = NOTHING.choose(HostSandboxMode::Auto, JailPlan::default()).unwrap();
        assert_eq!(none.plan, SandboxPlan::Off);
        assert_eq!(
            none.notice.unwrap(),
            "agents run without a sandbox: no Landlock in this kernel; no working bubblewrap on PATH"
        );
        assert_eq!(NOTHING.choose(HostSandboxMode::Off, JailPlan::default()).unwrap().notice, None);
    }

    #[test]
    fn paths_that_do_not_exist_are_left_out() {
        let probe = Probe { landlock_abi: Some(6), ..NOTHING };
        let write = vec![PathBuf::from("/tmp"), PathBuf::from("/no/such/place")];
        let wanted = JailPlan { write, ..JailPlan::default() };
        let plan = probe.choose(HostSandboxMode::Landlock, wanted).unwrap().plan;
        let write = vec![PathBuf::from("/tmp")];
        let kept = JailPlan { write, namespaces: true, ..JailPlan::default() };
        assert_eq!(plan, SandboxPlan::Jail(kept));
    }

    #[test]
    fn an_old_kernel_is_told_apart() {
        let old = Probe { landlock_abi: Some(3), ..NOTHING };
        assert!(!old.scopes_signals());
        assert!(old.sentence().contains("too old to keep signals"));
    }

    #[test]
    fn what_is_not_kept_without_namespaces_is_told_with_the_reason() {
        assert_eq!(NOTHING.gap(), None);
        let whole = Probe { landlock_abi: Some(6), ..NOTHING };
        assert_eq!(whole.gap(), None);
        assert!(whole.sentence().starts_with("Landlock (interface 6) and namespaces;"));
        let namespaces = NamespaceProbe::Refused { why: String::from("EPERM") };
        let told = Probe { namespaces, ..whole }.gap().unwrap();
        for part in ["(EPERM)", "mode, owner, times", "Docker", "terminals", "userns"] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn a_network_that_cannot_be_taken_away_is_an_error() {
        let off = JailPlan { network: JailNetwork::Off, ..JailPlan::default() };
        let whole = Probe { landlock_abi: Some(6), ..NOTHING };
        assert!(whole.choose(HostSandboxMode::Auto, off.clone()).is_ok());
        let namespaces = NamespaceProbe::Refused { why: String::from("EPERM") };
        let fallback = Probe { namespaces, ..whole.clone() };
        for (probe, mode) in [
            (&fallback, HostSandboxMode::Auto),
            (&whole, HostSandboxMode::Off),
            (&NOTHING, HostSandboxMode::Auto),
        ] {
            let refused = probe.choose(mode, off.clone());
            assert!(matches!(refused, Err(SandboxError::NoNetwork { .. })), "{refused:?}");
        }
    }

    #[test]
    fn bubblewrap_binds_everything_read_only_and_the_given_paths_writable() {
        let args = bwrap_args(&[PathBuf::from("/slot")], Path::new("/slot/src"), 7);
        let text: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert_eq!(
            text.join(" "),
            "--ro-bind / / --dev-bind /dev /dev --bind /slot /slot --unshare-pid --proc /proc \
             --die-with-parent --json-status-fd 7 --chdir /slot/src --"
        );
    }

    #[test]
    fn the_inner_pid_is_read_from_the_status_lines() {
        let status = "{ \"child-pid\": 4711,\n \"mnt-namespace\": 1 }\n{ \"exit-code\": 0 }\n";
        assert_eq!(bwrap_inner(status), Some(4711));
        assert_eq!(bwrap_inner("{ \"child-p"), None);
    }
}

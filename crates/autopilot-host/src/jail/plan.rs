//! The plan of a jail: plain data that the controller writes and the supervisor carries out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The jail of one launch. Everything can be read unless it is hidden, and only `write` written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JailPlan {
    /// The paths that may be written. Each must exist.
    pub write: Vec<PathBuf>,
    /// Paths that are covered by something empty: other attempts' worktrees, the journal. What
    /// `write` and `show` name below them stays visible. One that does not exist is left out.
    #[serde(default)]
    pub hide: Vec<PathBuf>,
    /// Paths that stay visible, read-only, below `hide` and below `/tmp`, `/run` and `/dev`.
    #[serde(default)]
    pub show: Vec<PathBuf>,
    /// The sockets of other programs that the jail lets through.
    #[serde(default)]
    pub sockets: Vec<PathBuf>,
    /// The network that programs in the jail see.
    #[serde(default)]
    pub network: JailNetwork,
    /// The directory that appears as `/tmp` and `/var/tmp`; in memory if there is none.
    #[serde(default)]
    pub tmp: Option<PathBuf>,
    /// Further mounts, made in this order. One may be written if `write` names its place or a
    /// directory above it.
    #[serde(default)]
    pub mounts: Vec<JailMount>,
    /// Whether the kernel gives us namespaces. Without them the jail is made of Landlock and a
    /// filter of system calls, and `hide`, `tmp`, `mounts` and `sockets` can't be kept.
    #[serde(default)]
    pub namespaces: bool,
}

/// The network that programs in a jail see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JailNetwork {
    /// The machine's network.
    #[default]
    Open,
    /// A loopback interface of the jail's own and nothing else.
    Off,
}

/// A mount that a jail has besides its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JailMount {
    /// The directory or file `from` appears at `at`, which must exist and be of the same kind.
    Bind { from: PathBuf, at: PathBuf },
    /// The directory `lower` appears at `at`, and what is written there goes to `upper`. `work` is
    /// an empty directory beside `upper`. A second jail with the same `upper` is refused while the
    /// first lives: the kernel itself would let both write.
    Overlay { lower: PathBuf, upper: PathBuf, work: PathBuf, at: PathBuf },
}

impl JailMount {
    /// Returns the path at which the mount appears.
    pub fn at(&self) -> &PathBuf {
        match self {
            JailMount::Bind { at, .. } | JailMount::Overlay { at, .. } => at,
        }
    }
}

/// The answer of the kernel to the question for namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceProbe {
    /// A program was seen to run in a whole jail.
    Given,
    /// The jail could not be made, for this reason.
    Refused { why: String },
}

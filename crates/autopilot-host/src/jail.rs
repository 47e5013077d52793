//! The jail in which agents and commands run: namespaces and mounts, no capability, Landlock and a
//! filter of system calls.
//!
//! Where the kernel gives no namespaces the jail is Landlock and the filter.

mod build;
mod capability;
mod mount;
mod overlay;
mod plan;
mod seccomp;
mod socket;
mod view;

pub use plan::{JailMount, JailNetwork, JailPlan, NamespaceProbe};

pub(crate) use build::{build, seal_processes};
pub(crate) use capability::drop_all;
pub(crate) use overlay::lock as lock_upper;
pub(crate) use seccomp::CallFilters;
pub(crate) use view::both_ways;

/// Returns variables that programs need to cope with a jail. Nobody in it can give a file to another
/// user, and `tar` tries to when it is root.
pub fn variables() -> &'static [(&'static str, &'static str)] {
    if nix::unistd::geteuid().is_root() { &[("TAR_OPTIONS", "--no-same-owner")] } else { &[] }
}

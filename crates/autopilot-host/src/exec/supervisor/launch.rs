//! The start of a program by its supervisor, in the sandbox that the order names.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command as Program;

use super::entry::{self, Confinement, EntryParent, ProgramEntry};
use super::hold::ProgramHold;
use super::init::{self, JailInit};
use crate::exec::nonblocking;
use crate::exec::wire::{LaunchFailure, LaunchOrder, LaunchStage, OsText};
use crate::proc::{self, ProcessIdentity};
use crate::sandbox::{self, SandboxPlan};

/// The child of the supervisor that stands for the tree.
pub(super) enum TreeRoot {
    /// The program itself.
    Program,
    /// Bubblewrap, with the pipe on which it reports.
    Bwrap(File),
    /// The init of a jail.
    Init(JailInit),
}

/// Starts the program with its three standard descriptors, once `hold` lets it. Returns its process and the child that
/// stands for its tree.
pub(super) fn start(
    order: &LaunchOrder,
    stdio: [OwnedFd; 3],
    hold: Option<ProgramHold>,
) -> Result<(ProcessIdentity, TreeRoot), LaunchFailure> {
    if let Some(error) = missing_directory(order) {
        let mut failed = LaunchFailure::at(LaunchStage::Directory, error);
        failed.message = format!("`{}`: {}", order.cwd.display(), failed.message);
        return Err(failed);
    }
    match &order.sandbox {
        SandboxPlan::Off => {
            let parts = EntryParts { hold, ..EntryParts::default() };
            direct(entry::program(order), order, stdio, parts)
        }
        SandboxPlan::Jail(plan) if plan.namespaces => {
            let (agent, init) = init::start(order, plan, stdio, hold.as_ref())?;
            Ok((agent, TreeRoot::Init(init)))
        }
        SandboxPlan::Jail(plan) => {
            let confinement = Confinement::new(&plan.write, plan.namespaces)?;
            let parts = EntryParts { hold, confinement: Some(confinement), kept: None };
            direct(entry::program(order), order, stdio, parts)
        }
        SandboxPlan::Bwrap { program, write } => {
            let failed = |error| LaunchFailure::at(LaunchStage::Sandbox, error);
            let (reader, writer) = io::pipe().map_err(failed)?;
            let writer = OwnedFd::from(writer);
            let status = File::from(nonblocking(reader.into()).map_err(failed)?);
            let mut bwrap = Program::new(program);
            bwrap.args(sandbox::bwrap_args(write, &order.cwd, writer.as_raw_fd()));
            bwrap.arg(order.program.os()).args(order.args.iter().map(OsText::os));
            let parts = EntryParts { hold, kept: Some(writer), confinement: None };
            let (agent, _) = direct(bwrap, order, stdio, parts)?;
            Ok((agent, TreeRoot::Bwrap(status)))
        }
    }
}

/// Returns why the directory of the program can't be entered. One that only a mount of its jail brings
/// is looked for in the jail.
fn missing_directory(order: &LaunchOrder) -> Option<io::Error> {
    let is_mounted = match &order.sandbox {
        SandboxPlan::Jail(plan) if plan.namespaces => {
            plan.mounts.iter().any(|mount| order.cwd.starts_with(mount.at()))
        }
        SandboxPlan::Jail(_) | SandboxPlan::Off | SandboxPlan::Bwrap { .. } => false,
    };
    if is_mounted { None } else { std::fs::read_dir(&order.cwd).err() }
}

/// The parts of an entry that differ between sandboxes.
#[derive(Default)]
struct EntryParts {
    hold: Option<ProgramHold>,
    confinement: Option<Confinement>,
    /// A descriptor that the program keeps.
    kept: Option<OwnedFd>,
}

/// Starts the program as a child of this process.
fn direct(
    program: Program,
    order: &LaunchOrder,
    stdio: [OwnedFd; 3],
    parts: EntryParts,
) -> Result<(ProcessIdentity, TreeRoot), LaunchFailure> {
    let parent = EntryParent::Supervisor(nix::unistd::getpid());
    let EntryParts { hold, confinement, kept } = parts;
    let limits = order.limits.clone();
    let entry = ProgramEntry { parent, hold, kept, limits, confinement };
    let pid = entry::spawn(program, order, stdio, entry)?;
    // An unreaped child always has its entry, also when it has ended already.
    let start_time = proc::read(pid).map_or(0, |process| process.id.start_time);
    Ok((ProcessIdentity { pid, start_time }, TreeRoot::Program))
}

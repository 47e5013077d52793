//! The hold on a process that is about to become the program, until the controller has registered
//! its tree.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use crate::exec::limit;
use crate::exec::wire::{
    LaunchFailure, LaunchStage, SupervisorCommand, SupervisorReport, WireLines, line,
};
use crate::proc::{self, ProcessIdentity};
use crate::register::RegisteredTree;

/// A supervisor that has marked itself, and its line to the controller.
pub(super) struct ProgramHold {
    control: UnixStream,
    table: String,
    supervisor: ProcessIdentity,
    mark: Option<u64>,
}

impl ProgramHold {
    /// Marks this process, which passes the mark on to everything below it.
    pub fn new(control: &UnixStream, mark: u64) -> Result<ProgramHold, LaunchFailure> {
        let failed = |error| LaunchFailure::at(LaunchStage::Supervisor, error);
        Ok(ProgramHold {
            control: control.try_clone().map_err(failed)?,
            table: proc::table_name(),
            supervisor: own_identity().map_err(failed)?,
            mark: limit::mark(mark),
        })
    }

    /// Waits until the controller has registered the tree. Nobody else reads from the line
    /// meanwhile: where the program itself waits, the supervisor waits for the program.
    pub fn wait(&self, program: ProcessIdentity) -> io::Result<()> {
        let ProgramHold { table, supervisor, mark, .. } = self;
        let (table, supervisor, mark) = (table.clone(), *supervisor, *mark);
        let tree = RegisteredTree { table, supervisor, program, mark };
        let mut control = &self.control;
        control.write_all(&line(&SupervisorReport::Held(tree)))?;
        let mut lines = WireLines::default();
        loop {
            let mut byte = [0];
            control.read_exact(&mut byte)?;
            match lines.push::<SupervisorCommand>(&byte).first() {
                None => {}
                Some(SupervisorCommand::Go) => return Ok(()),
                Some(SupervisorCommand::Terminate { .. } | SupervisorCommand::Kill) => {
                    return Err(io::Error::other("it was ended before it began"));
                }
            }
        }
    }
}

/// Returns this process as the outermost process table names it.
pub(super) fn own_identity() -> io::Result<ProcessIdentity> {
    let found = proc::read(nix::unistd::getpid().as_raw()).map(|process| process.id);
    found.ok_or_else(|| io::Error::other("`/proc` can't be read"))
}

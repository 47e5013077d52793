//! The question whether this machine gives the namespaces of a jail, answered by making one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::launch::{self, TreeRoot};
use crate::exec::Supervisor;
use crate::exec::wire::{LaunchOrder, OsText, ProcessLimits};
use crate::jail::{JailNetwork, JailPlan, NamespaceProbe};
use crate::sandbox::SandboxPlan;

/// The argument by which a supervisor knows that it is only to try.
pub(super) const ARGUMENT: &str = "--probe";

/// Asks a supervisor to run a program in a jail, once in the life of this process.
pub fn namespaces(path: &OsStr, supervisor: &Supervisor) -> NamespaceProbe {
    static ANSWER: OnceLock<NamespaceProbe> = OnceLock::new();
    ANSWER.get_or_init(|| ask(path, supervisor)).clone()
}

fn ask(path: &OsStr, supervisor: &Supervisor) -> NamespaceProbe {
    let refused = |why: String| NamespaceProbe::Refused { why };
    let output = Command::new(&supervisor.program)
        .args(&supervisor.args)
        .arg(ARGUMENT)
        .env_clear()
        .env("PATH", path)
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match output {
        Err(error) => refused(format!("cannot start `{}`: {error}", supervisor.program.display())),
        Ok(output) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| refused(format!("the try ended with {}", output.status))),
    }
}

/// Runs a program in a jail and prints the answer.
pub(super) fn main() -> io::Result<()> {
    let answer = match attempt() {
        Ok(()) => NamespaceProbe::Given,
        Err(why) => NamespaceProbe::Refused { why },
    };
    io::stdout().write_all(&serde_json::to_vec(&answer)?)
}

fn attempt() -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let network = JailNetwork::Off;
    let order = LaunchOrder {
        controller_pid: nix::unistd::getppid().as_raw(),
        program: OsText::Utf8(String::from("true")),
        args: Vec::new(),
        env: vec![(OsText::Utf8(String::from("PATH")), (&path).into())],
        cwd: "/".into(),
        limits: ProcessLimits::default(),
        sandbox: SandboxPlan::Jail(JailPlan { network, namespaces: true, ..JailPlan::default() }),
        grace_ms: 0,
        drain_ms: 0,
        mark: 0,
    };
    let null = || File::options().read(true).write(true).open("/dev/null").map(Into::into);
    let stdio = [null(), null(), null()].into_iter().collect::<io::Result<Vec<_>>>();
    let stdio = stdio.map_err(|error| error.to_string())?.try_into();
    let stdio = stdio.map_err(|_| String::from("cannot open `/dev/null`"))?;
    match launch::start(&order, stdio, None) {
        Err(failure) => Err(failure.message),
        Ok((_, TreeRoot::Init(init))) if init.await_success() => Ok(()),
        Ok(_) => Err(String::from("`true` failed in it")),
    }
}

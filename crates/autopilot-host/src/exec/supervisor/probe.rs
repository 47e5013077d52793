//! The questions whether this machine gives the namespaces of a jail, and a layer in it, answered by
//! making one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::launch::{self, TreeRoot};
use crate::exec::Supervisor;
use crate::exec::wire::{LaunchOrder, OsText, ProcessLimits};
use crate::jail::{JailNetwork, JailPlan, NamespaceProbe};
use crate::sandbox::SandboxPlan;

/// The argument by which a supervisor knows that it is only to try.
pub(super) const ARGUMENT: &str = "--probe";

/// The argument by which a supervisor knows that it is to try a layer in the directory that follows.
pub(super) const LAYER_ARGUMENT: &str = "--probe-layer";

/// Asks a supervisor to run a program in a jail, once in the life of this process.
pub fn namespaces(path: &OsStr, supervisor: &Supervisor) -> NamespaceProbe {
    static ANSWER: OnceLock<NamespaceProbe> = OnceLock::new();
    ANSWER.get_or_init(|| ask(path, supervisor, &[OsStr::new(ARGUMENT)])).clone()
}

/// Asks a supervisor to run a program over the layer that [`crate::warm`] has prepared in `dir`.
pub fn layer(path: &OsStr, supervisor: &Supervisor, dir: &Path) -> NamespaceProbe {
    ask(path, supervisor, &[OsStr::new(LAYER_ARGUMENT), dir.as_os_str()])
}

fn ask(path: &OsStr, supervisor: &Supervisor, words: &[&OsStr]) -> NamespaceProbe {
    let refused = |why: String| NamespaceProbe::Refused { why };
    let output = Command::new(&supervisor.program)
        .args(&supervisor.args)
        .args(words)
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
pub(super) fn main(layer: Option<&Path>) -> io::Result<()> {
    let network = JailNetwork::Off;
    let tried = match layer {
        None => attempt("true", JailPlan { network, ..JailPlan::default() }),
        Some(dir) => {
            let (plan, script) = crate::warm::layer_trial(dir);
            attempt(&script, plan)
        }
    };
    let answer = match tried {
        Ok(()) => NamespaceProbe::Given,
        Err(why) => NamespaceProbe::Refused { why },
    };
    io::stdout().write_all(&serde_json::to_vec(&answer)?)
}

fn attempt(script: &str, plan: JailPlan) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let words = ["-c", script].map(|word| OsText::Utf8(word.to_owned()));
    let order = LaunchOrder {
        controller_pid: nix::unistd::getppid().as_raw(),
        program: OsText::Utf8(String::from("sh")),
        args: words.into(),
        env: vec![(OsText::Utf8(String::from("PATH")), (&path).into())],
        cwd: "/".into(),
        limits: ProcessLimits::default(),
        sandbox: SandboxPlan::Jail(JailPlan { namespaces: true, ..plan }),
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
        Ok(_) => Err(format!("`{script}` failed in it")),
    }
}

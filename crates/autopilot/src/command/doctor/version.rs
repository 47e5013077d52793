//! The version of an agent's program, asked for under supervision and with a deadline.

use crate::exit::{CommandFailure, OrFailed};
use autopilot_host::exec::{self, Launch, Supervisor};
use autopilot_host::jail::JailPlan;
use autopilot_host::sandbox::{self, HostSandboxMode, SandboxPlan};
use camino::Utf8Path;
use std::time::Duration;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const VERSION_CHARS_MAX: usize = 80;
/// The environment variables without which a program may not start.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "LC_ALL"];

/// The first line that the program prints for `--version`, or why there is none.
pub fn of(program: &Utf8Path) -> Result<String, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_failed("cannot start the runtime")?;
    let text = runtime.block_on(ask(program))?;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let version: String = line.trim().chars().take(VERSION_CHARS_MAX).collect();
    if version.is_empty() { Err(CommandFailure::failed("it prints nothing")) } else { Ok(version) }
}

/// A sandbox that lets nothing be written: some agents make folders in the user's home when they
/// are asked for their version.
fn read_only() -> SandboxPlan {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let probe = sandbox::probe(&path, &Supervisor::default());
    let chosen = probe.choose(HostSandboxMode::Auto, JailPlan::default());
    chosen.map_or(SandboxPlan::Off, |chosen| chosen.plan)
}

async fn ask(program: &Utf8Path) -> Result<String, CommandFailure> {
    let mut launch = Launch::new(program.as_str(), "/");
    launch.args = vec!["--version".into()];
    launch.env =
        PASSED.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))).collect();
    launch.grace = Duration::from_secs(1);
    launch.sandbox = read_only();
    let (control, child) = exec::spawn(launch).await.map_err(CommandFailure::failed)?;
    let exit = match tokio::time::timeout(ANSWER_TIME_MAX, child.wait()).await {
        Ok(exit) => exit,
        Err(_late) => {
            control.kill();
            let late = format!("no answer within {} s", ANSWER_TIME_MAX.as_secs());
            return Err(CommandFailure::failed(late));
        }
    };
    if exit.is_zero() {
        return Ok(exit.output.stdout.text.clone());
    }
    let said = exit.output.stderr.tail(1, VERSION_CHARS_MAX);
    let code = exit.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit {code}"));
    Err(CommandFailure::failed(if said.is_empty() { code } else { format!("{code}: {said}") }))
}

//! The version an agent's executable tells, asked under supervision and with a deadline.

use autopilot_host::exec::{self, Launch};
use camino::Utf8Path;
use std::time::Duration;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const VERSION_CHARS_MAX: usize = 80;
/// What a program needs to start at all.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "LC_ALL"];

pub fn of(program: &Utf8Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let text = runtime.block_on(ask(program))?;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let version: String = line.trim().chars().take(VERSION_CHARS_MAX).collect();
    if version.is_empty() { Err("it says nothing".to_owned()) } else { Ok(version) }
}

async fn ask(program: &Utf8Path) -> Result<String, String> {
    let mut launch = Launch::new(program.as_str(), "/");
    launch.args = vec!["--version".into()];
    launch.env =
        PASSED.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))).collect();
    launch.grace = Duration::from_secs(1);
    let (control, child) =
        exec::spawn(launch).await.map_err(|error| autopilot_engine::cause::chain(&error))?;
    let exit = match tokio::time::timeout(ANSWER_TIME_MAX, child.wait()).await {
        Ok(exit) => exit,
        Err(_late) => {
            control.kill();
            return Err(format!("no answer within {} s", ANSWER_TIME_MAX.as_secs()));
        }
    };
    if exit.is_zero() {
        return Ok(exit.output.stdout.text.clone());
    }
    let said = exit.output.stderr.tail(1, VERSION_CHARS_MAX);
    let code = exit.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit {code}"));
    Err(if said.is_empty() { code } else { format!("{code}: {said}") })
}

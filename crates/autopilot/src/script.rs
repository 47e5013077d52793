//! `autopilot __script <file>`: the scripted agent as a real process, for the demo and for tests.

use crate::terminal;
use autopilot_agents::script::{Action, Script, ScriptPlace};
use autopilot_host::{file, hand};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

const SCRIPT_BYTES_MAX: u64 = 1 << 20;
const PROMPT_BYTES_MAX: u64 = 16 << 20;

/// Plays the script that the first argument names.
pub fn play(args: &[OsString]) -> Result<u8, String> {
    let path = args.first().ok_or("the path of the script is missing")?;
    let path = Path::new(path);
    let in_script = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = file::read_capped(path, SCRIPT_BYTES_MAX).map_err(|error| in_script(&error))?;
    let script =
        Script::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| in_script(&error))?;
    let mut prompt = String::new();
    // The prompt is needed only for rules about its text, and one that is not text matches none.
    let _binary = io::stdin().take(PROMPT_BYTES_MAX).read_to_string(&mut prompt);
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let number = |name: &str| variable(name).parse().unwrap_or(1);
    let (step, task) = (variable("AUTOPILOT_STEP"), variable("AUTOPILOT_TASK_ID"));
    let actions = script
        .play(ScriptPlace {
            step: &step,
            task: &task,
            iteration: number("AUTOPILOT_ITERATION"),
            attempt: number("AUTOPILOT_TRY"),
            prompt: &prompt,
        })
        .map_err(|error| in_script(&error))?;
    for action in actions {
        if let Some(code) = act(action).map_err(|error| in_script(&error))? {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Does one action and prints what is to be said of it; returns the exit code if the action is to
/// exit.
fn act(action: &Action) -> io::Result<Option<u8>> {
    match action {
        Action::Write(files) => {
            files.iter().try_for_each(|(path, text)| hand::write(Path::new(path), text))?;
        }
        Action::Append(files) => {
            files.iter().try_for_each(|(path, text)| hand::append(Path::new(path), text))?;
        }
        Action::Delete(path) => hand::delete(Path::new(path))?,
        Action::Run(command) => {
            hand::shell(command)?;
        }
        Action::SleepMs(ms) => std::thread::sleep(Duration::from_millis(*ms)),
        Action::Hang(true) => loop {
            std::thread::park();
        },
        Action::Exit(code) => return Ok(Some(*code)),
        Action::Signal(signal) => hand::signal_self(signal.number())?,
        Action::Hang(false)
        | Action::Say(_)
        | Action::Answer(_)
        | Action::CostUsd(_)
        | Action::Tokens(_)
        | Action::Session(_)
        | Action::Fail(_) => {}
    }
    for said in action.said() {
        terminal::put(&format!("{}\n", said.line()));
    }
    Ok(None)
}

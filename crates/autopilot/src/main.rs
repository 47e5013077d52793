//! `autopilot`: the command line over the engine. Only this crate prints and chooses exit codes.

mod api;
mod bare;
#[allow(rustdoc::invalid_html_tags, reason = "the docs of arguments are their help texts")]
mod cli;
mod command;
mod exit;
mod replay;
mod script;
mod terminal;

use autopilot_host::interrupt;
use exit::OrFailed;
use std::process::ExitCode;

/// The exit code when a script or a recording can't be played; it differs from an agent's own failure.
const CANNOT_PLAY: u8 = 70;

fn main() -> ExitCode {
    // Supervisors and the built-in agents are this same executable; they must start quickly.
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == autopilot_host::exec::ARGUMENT => {
            let rest: Vec<_> = args.collect();
            return code(autopilot_host::exec::main(&rest));
        }
        Some(first) if first == autopilot_agents::script::COMMAND => {
            return played(script::play(&args.collect::<Vec<_>>()));
        }
        Some(first) if first == autopilot_agents::openai::COMMAND => {
            let code = api::main();
            terminal::flush();
            return code;
        }
        Some(first) if first == autopilot_engine::replay::COMMAND => {
            return played(replay::play(&args.collect::<Vec<_>>()));
        }
        Some(_) | None => {}
    }
    let cli = match bare::parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let json = cli.global.json;
    if let Err(error) = interrupt::guard().or_failed("cannot listen for signals") {
        return exit::report(&error, json);
    }
    let code = match command::execute(cli) {
        Ok(code) => exit::unless_lost(code, json),
        Err(error) => exit::report(&error, json),
    };
    terminal::flush();
    code
}

/// The exit code of an agent that was played, or the one that says that it could not be.
fn played(played: Result<u8, String>) -> ExitCode {
    let code = played.unwrap_or_else(|error| {
        terminal::error(&error);
        CANNOT_PLAY
    });
    terminal::flush();
    ExitCode::from(code)
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code.clamp(0, 255)).unwrap_or(1))
}

//! Attempts to break out of the jail, each made for real, as root and as a plain user, with and
//! without namespaces. Whether one succeeded is seen from outside.
//!
//! This binary runs copies of itself: as the controller of a setting (`__runner`), as its
//! supervisors (`__exec`) and as the jailed program of one attempt (`__attempt`). It has its own
//! runner, which understands `--list`, `--exact` and a filter. `--write-docs` writes the table of
//! `docs/security.md`; the variable `AUTOPILOT_ATTEMPT` names the only attempt to make.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]
#![allow(clippy::expect_used, reason = "a test fails where something is missing")]
#![allow(clippy::panic, reason = "a test fails where something is missing")]
#![allow(clippy::print_stdout, reason = "the runner reports to the terminal")]

#[path = "attempts/call.rs"]
mod call;
#[path = "attempts/device.rs"]
mod device;
#[path = "attempts/document.rs"]
mod document;
#[path = "attempts/file.rs"]
mod file;
#[path = "attempts/kernel.rs"]
mod kernel;
#[path = "attempts/kernel_gate.rs"]
mod kernel_gate;
#[path = "attempts/left.rs"]
mod left;
#[path = "attempts/mount.rs"]
mod mount;
#[path = "attempts/network.rs"]
mod network;
#[path = "attempts/outside.rs"]
mod outside;
#[path = "attempts/privilege.rs"]
mod privilege;
#[path = "attempts/process.rs"]
mod process;
#[path = "attempts/runner.rs"]
mod runner;
#[path = "attempts/scene.rs"]
mod scene;
#[path = "attempts/settings.rs"]
mod settings;
#[path = "attempts/socket.rs"]
mod socket;
#[path = "attempts/table.rs"]
mod table;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

const TESTS: &[(&str, fn())] = &[
    ("as_root_with_namespaces", settings::as_root_with_namespaces),
    ("as_root_without_namespaces", settings::as_root_without_namespaces),
    ("as_a_user_with_namespaces", settings::as_a_user_with_namespaces),
    ("as_a_user_without_namespaces", settings::as_a_user_without_namespaces),
    ("without_a_jail_as_root", settings::without_a_jail_as_root),
    ("without_a_jail_as_a_user", settings::without_a_jail_as_a_user),
    ("the_table_is_consistent", table::is_consistent),
    ("the_documentation_has_the_table", document::has_the_table),
];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|arg| arg.to_str()) {
        Some(autopilot_host::exec::ARGUMENT) => {
            let code = autopilot_host::exec::main(&args);
            return ExitCode::from(u8::try_from(code).unwrap_or(1));
        }
        Some(privilege::WHO) => return ExitCode::from(u8::from(!privilege::who())),
        Some(runner::ATTEMPT) => runner::act(&args[1..]),
        Some(runner::RUNNER) => runner::main(args[1].to_str().unwrap()),
        Some("--write-docs") => document::write(),
        _ => return run(&args.iter().filter_map(|arg| arg.to_str()).collect::<Vec<_>>()),
    }
    ExitCode::SUCCESS
}

fn run(args: &[&str]) -> ExitCode {
    let exact = args.contains(&"--exact");
    // A runner asks for the list with `--format terse`; the word is not a filter.
    let is_word = |place: usize| place > 0 && args[place - 1] == "--format";
    let filters: Vec<&&str> = args
        .iter()
        .enumerate()
        .filter(|(place, arg)| !arg.starts_with('-') && !is_word(*place))
        .map(|(_, arg)| arg)
        .collect();
    let wanted = |name: &str| {
        filters.is_empty()
            || filters
                .iter()
                .any(|filter| if exact { name == **filter } else { name.contains(**filter) })
    };
    let chosen = TESTS.iter().filter(|(name, _)| wanted(name) && !args.contains(&"--ignored"));
    let mut failed = 0;
    for (name, test) in chosen {
        if args.contains(&"--list") {
            println!("{name}: test");
            continue;
        }
        let started = Instant::now();
        let passed = std::panic::catch_unwind(test).is_ok();
        let verdict = if passed { "ok" } else { "FAILED" };
        println!("test {name} ... {verdict} ({} ms)", started.elapsed().as_millis());
        failed += u8::from(!passed);
    }
    ExitCode::from(failed.min(1))
}

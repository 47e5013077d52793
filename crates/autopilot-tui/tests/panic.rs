//! A panic while the terminal is ours: what it says can be read, and the terminal is as before.
#![allow(clippy::unwrap_used, clippy::panic, clippy::exit, reason = "a test file")]

#[path = "../../autopilot/tests/pty/terminal.rs"]
mod terminal;

use autopilot_tui::tty::Tty;
use std::process::Command;
use terminal::Terminal;

const CHILD: &str = "AUTOPILOT_TEST_PANICS";

/// Played by the other test in a process of its own; by itself it does nothing.
#[test]
fn takes_the_terminal_and_panics() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let held = Tty::take().unwrap();
    let elsewhere = std::thread::spawn(|| panic!("a step went wrong"));
    assert!(elsewhere.join().is_err());
    assert!(!held.is_ours(), "whoever draws must notice");
    // Still held: the panic alone has given the terminal back.
    std::process::exit(7);
}

#[test]
fn a_panic_on_any_thread_gives_the_terminal_back_before_it_speaks() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["takes_the_terminal_and_panics", "--exact", "--nocapture"]).env(CHILD, "1");
    let (code, after) = Terminal::start(command, 80, 24).end();
    assert_eq!(code, Some(7), "{after}");
    assert!(after.contains("a step went wrong"), "{after}");
}

//! The only place that prints. Control characters in texts from files and agents are escaped here.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the terminal")]

pub mod lines;
mod queue;
pub mod watching;

use autopilot_host::escape;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

pub use queue::flush;

/// The first error at which text for standard output was lost.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a line for people or scripts on standard output.
pub fn say(text: &str) {
    put(&format!("{}\n", escape::visible(text)));
}

/// Prints our own text or data as it is.
pub fn put(text: &str) {
    flush();
    raw(text.as_bytes());
}

/// Prints bytes for another program, such as a patch, exactly as they are.
pub fn raw(bytes: &[u8]) {
    let mut out = io::stdout();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    // A reader that has gone away (`| head`) is not an error.
    if let Err(error) = written.or_else(unless_closed) {
        let _known = LOST.set(error);
    }
}

/// Forgives a write to a reader that has gone away.
pub fn unless_closed(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// Returns the error at which text for standard output was lost, if any was.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Prints progress and remarks on standard error, so that the output stays clean for scripts. Never
/// waits.
pub fn note(text: &str) {
    queue::push(format!("{}\n", escape::visible(text)));
}

/// Prints an error message.
pub fn error(text: &str) {
    let mark = if stderr_has_color() { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    queue::push(format!("{mark} {}\n", escape::visible(text)));
}

/// Prints what to do about an error.
pub fn hint(text: &str) {
    let mark = if stderr_has_color() { "\u{1b}[1;36mhelp:\u{1b}[0m" } else { "help:" };
    queue::push(format!("{mark} {}\n", escape::visible(text)));
}

/// Prints a value as JSON.
pub fn json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| "null".to_owned());
    put(&format!("{text}\n"));
}

/// Rings the bell of the terminal.
pub fn bell() {
    if std::io::stderr().is_terminal() {
        queue::push("\u{7}".to_owned());
    }
}

/// Asks a yes-or-no question; Enter alone means yes.
pub fn confirm(question: &str) -> bool {
    note(&format!("{question} [Y/n]"));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    read.is_ok_and(|bytes| bytes > 0) && (answer.is_empty() || answer == "y" || answer == "yes")
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether standard output is a terminal on which colours are wanted.
pub fn stdout_has_color() -> bool {
    stdout_is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn stderr_has_color() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A heading, if there is one, and rows, with columns aligned to their widest cell.
pub fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let heading = heading.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.is_empty()) {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

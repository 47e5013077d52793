//! `autopilot logs`: the logs of the controller, the agents and the commands.

use super::{Done, done, past, place};
use crate::cli::{self, Global, Logs};
use crate::exit::{self, CommandFailure};
use crate::terminal;
use autopilot_agents::telling;
use autopilot_engine::job::EVENTS;
use autopilot_engine::query::log::{LogSelection, LogStream, list, read_from};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeMap;

/// Prints logs, and follows them with `--follow`.
pub fn logs(global: &Global, args: &Logs) -> Done {
    let wanted = selection(global, args)?;
    if global.json {
        if args.follow {
            return Err(CommandFailure::usage("--json lists the log files and can't follow them")
                .hint("leave out --json or --follow"));
        }
        terminal::json(&list(&wanted));
        return done();
    }
    let mut printed = Printed::default();
    let mut growth = wanted.growth();
    loop {
        // The state is read before the logs, so that their last lines are not missed.
        let over = !args.follow || !is_live(global)?;
        for (path, heading) in wanted.files() {
            path.parent().into_iter().for_each(|dir| growth.add(dir));
            printed.print(&path, heading.as_deref(), args.tail, over, wanted.about.as_deref());
        }
        if over {
            return finish(&printed, &wanted, args.task.as_deref());
        }
        growth.wait(growth.every());
    }
}

fn finish(printed: &Printed, wanted: &LogSelection, task: Option<&str>) -> Done {
    if printed.offsets.is_empty() {
        let of = task.map(|task| format!(" by {task}")).unwrap_or_default();
        terminal::note(&format!("nothing logged yet{of} in {}", wanted.logs));
    }
    done()
}

fn is_live(global: &Global) -> Result<bool, CommandFailure> {
    let Some(archive) = past::open(global)?.1 else { return Ok(false) };
    Ok(archive.newest()?.is_some_and(|known| known.is_live()))
}

fn selection(global: &Global, args: &Logs) -> Result<LogSelection, CommandFailure> {
    let stream = args.stream.map(stream);
    if args.task.is_none() && matches!(stream, None | Some(LogStream::Controller)) {
        // The file is worth reading also where the journal is not.
        if let Err(failure) = past::open(global) {
            exit::warn(&failure);
        }
        return Ok(LogSelection::controller(&place(global)?.0, None));
    }
    // A list of the files names the raw ones.
    let raw = args.raw || global.json;
    Ok(LogSelection::of(&past::must(global)?, args.task.as_deref(), stream, raw)?)
}

fn stream(asked: cli::LogStreamArg) -> LogStream {
    match asked {
        cli::LogStreamArg::Controller => LogStream::Controller,
        cli::LogStreamArg::Builder => LogStream::Builder,
        cli::LogStreamArg::Reviewer => LogStream::Reviewer,
        cli::LogStreamArg::Validation => LogStream::Validation,
    }
}

/// How far each file has been printed, and which was printed last.
#[derive(Default)]
struct Printed {
    offsets: BTreeMap<Utf8PathBuf, u64>,
    last: Option<Utf8PathBuf>,
}

impl Printed {
    /// Prints the new text of a file; only whole lines while the file may still grow.
    fn print(
        &mut self,
        path: &Utf8Path,
        heading: Option<&str>,
        tail: Option<usize>,
        whole: bool,
        about: Option<&str>,
    ) {
        let known = self.offsets.get(path).copied();
        let Ok((from, bytes)) = read_from(path, known.unwrap_or(0)) else { return };
        let end = match (whole, bytes.iter().rposition(|byte| *byte == b'\n')) {
            (true, _) => bytes.len(),
            (false, Some(place)) => place + 1,
            (false, None) => 0,
        };
        self.offsets.insert(path.to_owned(), from + end as u64);
        let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default());
        let text = match about {
            Some(task) => lines_about(&text, task),
            None if path.file_name() == Some(EVENTS) => telling::transcript(&text),
            None => text.to_string(),
        };
        let text = match (known, tail) {
            (None, Some(lines)) => last_lines(&text, lines),
            (None, None) | (Some(_), _) => &text,
        };
        if text.is_empty() {
            return;
        }
        if let Some(heading) = heading.filter(|_| self.last.as_deref() != Some(path)) {
            let gap = if self.last.is_some() { "\n" } else { "" };
            terminal::say(&format!("{gap}{heading}"));
        }
        if known.is_none() && from > 0 {
            terminal::say(&format!("… {from} bytes before this are in {path}"));
        }
        self.last = Some(path.to_owned());
        terminal::say(text.strip_suffix('\n').unwrap_or(text));
    }
}

/// The lines of the controller's log about a task: a time, the task's name and a colon.
fn lines_about(text: &str, task: &str) -> String {
    let tells = |line: &&str| {
        let said = line.split_once(' ').map(|(_, said)| said);
        said.and_then(|said| said.strip_prefix(task)).is_some_and(|rest| rest.starts_with(':'))
    };
    text.lines().filter(tells).map(|line| format!("{line}\n")).collect()
}

fn last_lines(text: &str, lines: usize) -> &str {
    if lines == 0 {
        return "";
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    let from = body.rmatch_indices('\n').nth(lines - 1).map_or(0, |(place, _)| place + 1);
    text.get(from..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_text() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb\nc", 1), "c");
        assert_eq!(last_lines("a\n", 9), "a\n");
        assert_eq!(last_lines("a\n", 0), "");
    }

    #[test]
    fn the_controllers_lines_about_a_task() {
        let log = "T run x begins\nT a: building\nT ab: building\nT a: DONE\n";
        assert_eq!(lines_about(log, "a"), "T a: building\nT a: DONE\n");
    }
}

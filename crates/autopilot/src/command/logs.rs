//! `autopilot logs`: what the controller, the agents and the commands have written.

mod name;

use super::past::{Past, Standing, Told};
use super::{Done, done, place};
use crate::cli::{Global, LogStream, Logs};
use crate::exit::Failure;
use crate::terminal::{self, lines};
use autopilot_core::id::Time;
use autopilot_engine::job::{EVENTS, Metadata};
use autopilot_engine::place::Place;
use autopilot_engine::recorded::{RecordedExec, RecordedRun};
use camino::{Utf8Path, Utf8PathBuf};
use name::LogName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(250);
/// Of a longer log only the end is printed, and said so.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// A clock may have been set back a little between two processes.
const CLOCK_SLACK_MS: u64 = 2_000;

pub fn logs(global: &Global, args: &Logs) -> Done {
    let wanted = Wanted::of(global, args)?;
    if global.json {
        if args.follow {
            return Err(Failure::usage("--json lists the log files and can't follow them")
                .help("leave out --json or --follow"));
        }
        terminal::json(&list(&wanted));
        return done();
    }
    let mut printed = Printed::default();
    loop {
        // Asked before reading: what is written after the end would be missed otherwise.
        let over = !args.follow || !is_live(global)?;
        for (path, heading) in wanted.files() {
            printed.print(&path, heading.as_deref(), args.tail, over, wanted.about.as_deref());
        }
        if over {
            return finish(&printed, &wanted);
        }
        std::thread::sleep(POLL);
    }
}

/// The files themselves, for programs that read them.
fn list(wanted: &Wanted) -> Value {
    let one = |path: Utf8PathBuf| {
        let file = path.file_name()?;
        let name = LogName::parse(file);
        Some(json!({
            "path": format!(".autopilot/logs/{file}"),
            "bytes": path.metadata().ok()?.len(),
            "stream": name.as_ref().map_or("controller", |name| name.stream.as_str()),
            "task": name.as_ref().map(|name| &name.task),
            "step": name.as_ref().map(|name| name.step.word()),
            "attempt": name.as_ref().map(|name| name.attempt.to_string()),
            "is_errors": name.as_ref().is_some_and(|name| name.is_errors),
        }))
    };
    let files = wanted.files().into_iter();
    json!({ "logs": files.filter_map(|(path, _)| one(path)).collect::<Vec<_>>() })
}

fn finish(printed: &Printed, wanted: &Wanted) -> Done {
    if printed.offsets.is_empty() {
        terminal::note(&format!("nothing logged yet in {}", wanted.logs));
    }
    done()
}

fn is_live(global: &Global) -> Result<bool, Failure> {
    let Some(past) = Past::open(global)?.1 else { return Ok(false) };
    let newest = past.newest()?;
    Ok(newest.is_some_and(|told| matches!(told.standing(), Standing::Live { .. })))
}

/// Which files are asked for.
struct Wanted {
    logs: Utf8PathBuf,
    /// Nothing means the controller's own log.
    steps: Option<Steps>,
    /// Lines of the controller's log that tell of this task.
    about: Option<String>,
}

struct Steps {
    task: Option<String>,
    stream: Option<LogStream>,
    /// Logs of an earlier run of the same task are older than this.
    since: String,
    /// Where agents' logs are kept as events, if they are to be shown in words.
    recorded: Option<RecordedRun>,
}

impl Wanted {
    fn of(global: &Global, args: &Logs) -> Result<Wanted, Failure> {
        // Whoever lists the files wants the files.
        let raw = args.raw || global.json;
        let controller =
            |place: Place, about| Wanted { logs: place.views().join("logs"), steps: None, about };
        let Some(task) = &args.task else {
            return match args.stream {
                None | Some(LogStream::Controller) => Ok(controller(place(global)?.0, None)),
                Some(stream) => {
                    let past = Past::must(global)?;
                    let told = past.run(None)?;
                    Ok(Wanted::steps(&past.place, &told, None, Some(stream), raw))
                }
            };
        };
        let past = Past::must(global)?;
        let (told, id) = past.task(task)?;
        let name = told.state.task(id).name().to_owned();
        match args.stream {
            Some(LogStream::Controller) => Ok(controller(past.place, Some(name))),
            stream => Ok(Wanted::steps(&past.place, &told, Some(name), stream, raw)),
        }
    }

    fn steps(
        place: &Place,
        told: &Told,
        task: Option<String>,
        stream: Option<LogStream>,
        raw: bool,
    ) -> Wanted {
        let since = since(Time(told.run.created_at_ms));
        let recorded = RecordedRun::open(&place.views(), &told.run.id).ok().filter(|_| !raw);
        let steps = Some(Steps { task, stream, since, recorded });
        Wanted { logs: place.views().join("logs"), steps, about: None }
    }

    /// Each file with the heading it is announced by, in the order they were begun.
    fn files(&self) -> Vec<(Utf8PathBuf, Option<String>)> {
        let Some(steps) = &self.steps else {
            return vec![(self.logs.join("controller.log"), None)];
        };
        let Ok(entries) = self.logs.read_dir_utf8() else { return Vec::new() };
        let mut found: Vec<LogFile> = entries
            .filter_map(|entry| LogFile::of(entry.ok()?.path()))
            .filter(|file| steps.want(&file.name))
            .collect();
        found.sort_by_key(|file| (file.name.at.clone(), file.name.attempt, file.path.clone()));
        let events = steps.recorded.as_ref().map(events_of).unwrap_or_default();
        let heading = |file: LogFile| {
            let shown = format!(".autopilot/logs/{}", file.path.file_name().unwrap_or_default());
            let heading = file.name.heading(&shown);
            match events.get(&file.log()) {
                // What it said there is among its events.
                Some(_) if file.name.is_errors => None,
                Some(events) => Some((events.clone(), Some(heading))),
                None => Some((file.path, Some(heading))),
            }
        };
        found.into_iter().filter_map(heading).collect()
    }
}

/// The events of each agent's log, by the log's file name.
fn events_of(run: &RecordedRun) -> BTreeMap<String, Utf8PathBuf> {
    let one = |(exec, said): (RecordedExec, Metadata)| {
        let log = said.log.rsplit('/').next()?.to_owned();
        Some((log, run.dir(&exec).join(EVENTS)))
    };
    run.newest_first().into_iter().flatten().filter_map(one).collect()
}

/// The newest log of a task of a run that began then; `run` for the run itself.
pub fn newest_of(place: &Place, task: &str, began: Time) -> Option<Utf8PathBuf> {
    let steps =
        Steps { task: Some(task.to_owned()), stream: None, since: since(began), recorded: None };
    let steps = Some(steps);
    let wanted = Wanted { logs: place.views().join("logs"), steps, about: None };
    wanted.files().pop().map(|(path, _)| path)
}

/// The end of a file, at most so many bytes, from the beginning of a line on.
pub fn end_of(path: &Utf8Path, bytes_max: u64) -> std::io::Result<String> {
    let length = path.metadata()?.len();
    let (from, bytes) = read_from(path, length.saturating_sub(bytes_max))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if from > 0 => rest.to_owned(),
        Some(_) | None => text,
    })
}

struct LogFile {
    path: Utf8PathBuf,
    name: LogName,
}

impl LogFile {
    fn of(path: &Utf8Path) -> Option<LogFile> {
        let name = LogName::parse(path.file_name()?)?;
        // An empty log, as most of standard error are, has nothing to say.
        let has_text = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0);
        has_text.then(|| LogFile { path: path.to_owned(), name })
    }

    /// The name of the log it belongs to.
    fn log(&self) -> String {
        self.path.file_name().unwrap_or_default().replace(".err.log", ".log")
    }
}

impl Steps {
    fn want(&self, name: &LogName) -> bool {
        self.task.as_ref().is_none_or(|task| *task == name.task)
            && self.stream.is_none_or(|stream| name.is_of(stream))
            && name.at >= self.since
    }
}

fn since(started: Time) -> String {
    let at = Time(started.0 - CLOCK_SLACK_MS as i64).rfc3339();
    at.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// How far each file has been printed, and which came last.
#[derive(Default)]
struct Printed {
    offsets: BTreeMap<Utf8PathBuf, u64>,
    last: Option<Utf8PathBuf>,
}

impl Printed {
    /// Prints what is new. While a log may still grow, only whole lines.
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
            None if path.file_name() == Some(EVENTS) => in_words(&text),
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

/// What a file holds from an offset on, at most its end; and where that begins.
fn read_from(path: &Utf8Path, offset: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    // A log that became shorter was begun anew.
    let from = if offset > length { 0 } else { offset };
    let from = from.max(length.saturating_sub(LOG_BYTES_MAX));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok((from, bytes))
}

/// What an agent did, without the shape its vendor gives it.
fn in_words(events: &str) -> String {
    let events = events.lines().filter_map(|line| serde_json::from_str(line).ok());
    events.filter_map(|event| lines::in_words(&event)).map(|text| format!("{text}\n")).collect()
}

/// Lines of the controller's log: a time, then the task's name and a colon.
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
    fn only_the_end_of_a_huge_log_is_read_and_growth_from_where_it_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("l")).unwrap();
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(read_from(&path, 4).unwrap(), (4, b"two\n".to_vec()));
        assert_eq!(read_from(&path, 99).unwrap(), (0, b"one\ntwo\n".to_vec()));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(LOG_BYTES_MAX + 10).unwrap();
        let (from, bytes) = read_from(&path, 0).unwrap();
        assert_eq!((from, bytes.len() as u64), (10, LOG_BYTES_MAX));
    }

    #[test]
    fn the_controllers_lines_about_a_task() {
        let log = "T run x begins\nT a: building\nT ab: building\nT a: DONE\n";
        assert_eq!(lines_about(log, "a"), "T a: building\nT a: DONE\n");
    }

    #[test]
    fn logs_of_a_run_begin_with_it() {
        assert_eq!(since(Time(1_767_268_802_000)), "20260101T120000Z");
    }
}

//! The log files of the controller, the agents and the commands, and the ends of these files.

mod name;

pub use name::LogName;

use super::{KnownRun, QueryError, RunArchive};
use crate::feed::GrowthWatch;
use crate::job::{EVENTS, Metadata};
use crate::place::StatePaths;
use crate::recorded::{RecordedExec, RecordedRun};
use autopilot_agents::telling;
use autopilot_core::fingerprint::failure_excerpt;
use autopilot_core::id::Time;
use autopilot_host::escape;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

/// Maximum number of bytes read from the end of a log.
pub const LOG_BYTES_MAX: u64 = 64 << 20;
/// The name of the run itself among the tasks whose logs are selected.
const THE_RUN: &str = "run";
/// Maximum number of bytes searched for the reason of a failure.
const REASON_BYTES_MAX: u64 = 256 * 1024;
/// A clock may have been set back a little between two processes.
const CLOCK_SLACK_MS: u64 = 2_000;

/// The stream whose logs are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    Controller,
    Builder,
    Reviewer,
    Validation,
}

/// A selection of log files.
pub struct LogSelection {
    pub logs: Utf8PathBuf,
    /// The steps whose logs are selected; `None` means the controller's log.
    steps: Option<Steps>,
    /// The task that the selected lines of the controller's log mention.
    pub about: Option<String>,
}

struct Steps {
    task: Option<String>,
    stream: Option<LogStream>,
    /// The start of the run: older logs are of an earlier run of the same task.
    since: String,
    /// The recorded events of agents, if their logs are to be shown as readable text.
    recorded: Option<RecordedRun>,
}

impl LogSelection {
    /// The logs of a stream, of a task, or of both; without either, the controller's log. `raw`
    /// leaves agents' output in the vendors' formats.
    pub fn of(
        archive: &RunArchive,
        task: Option<&str>,
        stream: Option<LogStream>,
        raw: bool,
    ) -> Result<LogSelection, QueryError> {
        let place = &archive.place;
        if task.is_none() && stream.is_none() {
            return Ok(LogSelection::controller(place, None));
        }
        let (known, name) = match task {
            None => (archive.run(None)?, None),
            Some(task) => match archive.task(task) {
                Ok((known, id)) => {
                    let name = known.state.task(id).name().to_owned();
                    (known, Some(name))
                }
                Err(QueryError::Unknown { .. }) if task == THE_RUN => {
                    (archive.run(None)?, Some(THE_RUN.to_owned()))
                }
                Err(error) => return Err(error),
            },
        };
        Ok(match stream {
            Some(LogStream::Controller) => LogSelection::controller(place, name),
            Some(_) | None => LogSelection::steps(place, &known, name, stream, raw),
        })
    }

    /// The controller's log, or the lines of it that mention a task.
    pub fn controller(place: &StatePaths, about: Option<String>) -> LogSelection {
        LogSelection { logs: place.views().join("logs"), steps: None, about }
    }

    fn steps(
        place: &StatePaths,
        known: &KnownRun,
        task: Option<String>,
        stream: Option<LogStream>,
        raw: bool,
    ) -> LogSelection {
        let since = since(Time(known.run.created_at_ms));
        let recorded = RecordedRun::open(&place.views(), &known.run.id).ok().filter(|_| !raw);
        let steps = Some(Steps { task, stream, since, recorded });
        LogSelection { logs: place.views().join("logs"), steps, about: None }
    }

    /// A watch of the directories in which files are selected.
    pub fn growth(&self) -> GrowthWatch {
        let events = self.steps.as_ref().and_then(|steps| steps.recorded.as_ref());
        let dirs = events.map(|run| run.path.as_path()).into_iter().chain([self.logs.as_path()]);
        GrowthWatch::of(dirs)
    }

    /// Each file with its heading, oldest first.
    pub fn files(&self) -> Vec<(Utf8PathBuf, Option<String>)> {
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
                // The events include what the agent wrote to standard error.
                Some(_) if file.name.is_errors => None,
                Some(turn) => {
                    let session = turn.continued.as_ref();
                    let continued = session.map(|id| format!(", continued session {id}"));
                    let heading = format!("{heading}{}", continued.unwrap_or_default());
                    Some((turn.events.clone(), Some(heading)))
                }
                None => Some((file.path, Some(heading))),
            }
        };
        found.into_iter().filter_map(heading).collect()
    }
}

/// The recording of one turn of an agent.
struct RecordedTurn {
    /// The file with its events.
    events: Utf8PathBuf,
    /// The session that it continued.
    continued: Option<String>,
}

/// The selected files, as `logs --json` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct LogList {
    pub logs: Vec<ListedLog>,
}

/// One log file; the controller's log belongs to no task.
#[derive(Clone, Debug, Serialize)]
pub struct ListedLog {
    pub path: String,
    pub bytes: u64,
    pub stream: String,
    pub task: Option<String>,
    pub step: Option<&'static str>,
    pub attempt: Option<String>,
    pub is_errors: bool,
}

/// Lists the selected files.
pub fn list(selection: &LogSelection) -> LogList {
    let one = |path: Utf8PathBuf| {
        let file = path.file_name()?;
        let name = LogName::parse(file);
        Some(ListedLog {
            path: format!(".autopilot/logs/{file}"),
            bytes: path.metadata().ok()?.len(),
            step: name.as_ref().map(|name| name.step.word()),
            attempt: name.as_ref().map(|name| name.attempt.to_string()),
            is_errors: name.as_ref().is_some_and(|name| name.is_errors),
            stream: name.as_ref().map_or("controller", |name| &name.stream).to_owned(),
            task: name.map(|name| name.task),
        })
    };
    let files = selection.files().into_iter();
    LogList { logs: files.filter_map(|(path, _)| one(path)).collect() }
}

/// The events file of each agent's log, by the log's file name.
fn events_of(run: &RecordedRun) -> BTreeMap<String, RecordedTurn> {
    let one = |(exec, said): (RecordedExec, Metadata)| {
        let log = said.log.rsplit('/').next()?.to_owned();
        let events = run.dir(&exec).join(EVENTS);
        Some((log, RecordedTurn { events, continued: said.resumed }))
    };
    run.newest_first().into_iter().flatten().filter_map(one).collect()
}

/// The newest log of a task of a run, by the run's id and start, and its heading: the recorded events
/// where an agent wrote it. `run` means the run itself.
pub fn newest_of(
    place: &StatePaths,
    task: &str,
    (run, began): (&str, Time),
) -> Option<(Utf8PathBuf, String)> {
    let recorded = RecordedRun::open(&place.views(), run).ok();
    let steps =
        Some(Steps { task: Some(task.to_owned()), stream: None, since: since(began), recorded });
    let selection = LogSelection { logs: place.views().join("logs"), steps, about: None };
    let (path, heading) = selection.files().pop()?;
    let heading = heading.unwrap_or_default();
    Some((path, heading.trim_matches(['=', '<', '>', ' ']).to_owned()))
}

/// The recorded events of the agent that wrote a log, by the log's path in the journal.
pub fn events_of_log(place: &StatePaths, run: &str, log: &str) -> Option<Utf8PathBuf> {
    let recorded = RecordedRun::open(&place.views(), run).ok()?;
    Some(events_of(&recorded).remove(log.rsplit('/').next()?)?.events)
}

/// The lines of a failed attempt's log that say what failed: what was asserted, or an agent's last
/// words.
pub fn reason_lines(place: &StatePaths, run: &str, log: &str, lines_max: usize) -> Vec<String> {
    let events = events_of_log(place, run, log);
    let is_agent = events.is_some();
    let path = events.unwrap_or_else(|| place.views().join(log));
    let text = readable_end(place, &path, REASON_BYTES_MAX).unwrap_or_default();
    let text = escape::plain(&text);
    if !is_agent {
        return failure_excerpt(&text, lines_max);
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(lines_max);
    lines.iter().skip(from).map(|line| line.replace('\t', "    ")).collect()
}

/// The end of a log as a person reads it: an agent's events in words, anything else as it is, with
/// paths relative to the worktree.
pub fn readable_end(
    place: &StatePaths,
    path: &Utf8Path,
    bytes_max: u64,
) -> std::io::Result<String> {
    let text = end_of(path, bytes_max)?;
    let text = match path.file_name() == Some(EVENTS) {
        true => telling::transcript(&text),
        false => text,
    };
    Ok(place.relative(&text))
}

/// The end of a file, at most `bytes_max`, starting at the beginning of a line.
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
        // Empty logs, as most logs of standard error are, are left out.
        let has_text = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0);
        has_text.then(|| LogFile { path: path.to_owned(), name })
    }

    /// The file name of the standard-output log this file belongs to.
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

/// Reads a file from an offset on, but only its end if that is long; returns the actual offset too.
pub fn read_from(path: &Utf8Path, offset: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    // A log that became shorter was started again.
    let from = if offset > length { 0 } else { offset };
    let from = from.max(length.saturating_sub(LOG_BYTES_MAX));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok((from, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn logs_of_a_run_begin_with_it() {
        assert_eq!(since(Time(1_767_268_802_000)), "20260101T120000Z");
    }
}

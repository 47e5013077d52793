//! `autopilot task list`: lists the task files with the result of each in its last run.

use super::super::done;
use super::super::past;
use super::{Done, Global, Read, dir, files, lint, read};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::task_file::task_id;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::RunArchive;
use autopilot_host::escape::one_line;
use autopilot_view as view;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most runs that are searched for the last one of each task, newest first.
const RUNS_SEARCHED_MAX: usize = 200;
/// The most characters of a title, so that each row fits on a line.
const TITLE_CHARS_MAX: usize = 60;

#[derive(Serialize)]
struct ListedFile {
    id: String,
    title: String,
    path: Utf8PathBuf,
    last_status: Option<&'static str>,
    last_run: Option<String>,
    faults: Vec<String>,
}

/// The word for a task in its last run, and that run.
type LastResult = (&'static str, String);

/// Prints the list.
pub fn list(global: &Global, given: Option<&Utf8PathBuf>) -> Done {
    let (place, past) = past::open(global)?;
    let dir = dir(global, given)?;
    let paths =
        if dir.symlink_metadata().is_ok() || given.is_some() { files(&dir)? } else { Vec::new() };
    let last = match &past {
        Some(past) => last_of(past, &place, &paths)?,
        None => BTreeMap::new(),
    };
    let listed: Vec<ListedFile> =
        paths.into_iter().map(|path| told(last.get(&path).cloned(), path)).collect();
    if global.json {
        terminal::json(&listed);
    } else if listed.is_empty() {
        terminal::say(&format!(
            "no task files in {dir}; `autopilot task new \"Title\"` writes one"
        ));
    } else {
        let heading = ["id", "last", "file", "title"];
        terminal::say(terminal::table(&heading, listed.iter().map(row)).trim_end());
        let faulty = listed.iter().filter(|task| !task.faults.is_empty()).count();
        if faulty > 0 {
            terminal::note(&format!("{faulty} with faults; `autopilot task lint` names them"));
        }
    }
    done()
}

fn told(last: Option<LastResult>, path: Utf8PathBuf) -> ListedFile {
    let findings = lint::findings_in(&path);
    let faults = findings.iter().filter(|f| f.is_fault()).map(lint::LintFinding::text).collect();
    let (id, title) = match read(&path) {
        Read::Parsed(parsed, _) => (parsed.spec.id, parsed.spec.title),
        Read::Faulty(_) | Read::Unreadable(_) => (task_id(&path), String::new()),
    };
    let (last_status, last_run) = last.unzip();
    ListedFile { id, title, path, last_status, last_run, faults }
}

/// The last result of each file; by path, because another task may have had the same name.
fn last_of(
    past: &RunArchive,
    place: &StatePaths,
    paths: &[Utf8PathBuf],
) -> Result<BTreeMap<Utf8PathBuf, LastResult>, CommandFailure> {
    let root = place.root.canonicalize_utf8().unwrap_or_else(|_| place.root.clone());
    let source = |path: &Utf8Path| {
        let real = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
        real.strip_prefix(&root).map(Utf8Path::to_owned).unwrap_or(real).into_string()
    };
    let of_source: BTreeMap<String, &Utf8PathBuf> =
        paths.iter().map(|path| (source(path), path)).collect();
    let mut open: BTreeSet<&String> = of_source.keys().collect();
    let mut last = BTreeMap::new();
    for run in past.runs(RUNS_SEARCHED_MAX)? {
        if open.is_empty() {
            break;
        }
        let told = past.tell(run)?;
        for task in view::leaves(&told.state) {
            if open.remove(&task.spec.source)
                && let Some(path) = of_source.get(&task.spec.source)
            {
                let word = view::task_word(task);
                last.insert((*path).clone(), (word, told.run.id.clone()));
            }
        }
    }
    Ok(last)
}

fn row(task: &ListedFile) -> Vec<String> {
    let title: String = if task.faults.is_empty() || !task.title.is_empty() {
        task.title.chars().take(TITLE_CHARS_MAX).collect()
    } else {
        "-".to_owned()
    };
    let faults = match task.faults.len() {
        0 => String::new(),
        1 => " (1 fault)".to_owned(),
        many => format!(" ({many} faults)"),
    };
    vec![
        one_line(&task.id).into_owned(),
        task.last_status.unwrap_or("-").to_owned(),
        one_line(task.path.as_str()).into_owned(),
        format!("{}{faults}", one_line(&title)),
    ]
}

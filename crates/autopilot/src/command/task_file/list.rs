//! `autopilot task list`: lists the task files with the result of each in its last run.

use super::super::done;
use super::super::past;
use super::{Done, Global, Read, dir, files, lint, read};
use crate::cli::TaskList;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::task_file::task_id;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::RunArchive;
use autopilot_host::escape::one_line;
use autopilot_view as view;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most runs that are searched for the last one of each task, newest first.
const RUNS_SEARCHED_MAX: usize = 200;
/// The most characters of a title, so that each row fits on a line.
const TITLE_CHARS_MAX: usize = 60;

struct ListedFile {
    id: String,
    title: String,
    path: Utf8PathBuf,
    faults: Vec<String>,
    last: Option<Last>,
}

#[derive(Clone)]
struct Last {
    word: &'static str,
    run: String,
}

/// Prints the list.
pub fn list(global: &Global, args: &TaskList) -> Done {
    let (place, past) = past::open(global)?;
    let dir = dir(global, args.dir.as_ref())?;
    let paths = if dir.symlink_metadata().is_ok() || args.dir.is_some() {
        files(&dir)?
    } else {
        Vec::new()
    };
    let last = match &past {
        Some(past) => last_of(past, &place, &paths)?,
        None => BTreeMap::new(),
    };
    let listed: Vec<ListedFile> =
        paths.into_iter().map(|path| told(last.get(&path).cloned(), path)).collect();
    if global.json {
        terminal::json(&Value::Array(listed.iter().map(object).collect()));
    } else if listed.is_empty() {
        terminal::say(&format!(
            "no task files in {dir}; `autopilot task new \"Title\"` writes one"
        ));
    } else {
        let heading = ["id", "last", "file", "title"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> =
            std::iter::once(heading).chain(listed.iter().map(row)).collect();
        terminal::say(terminal::table(&rows).trim_end());
        let faulty = listed.iter().filter(|task| !task.faults.is_empty()).count();
        if faulty > 0 {
            terminal::note(&format!("{faulty} with faults; `autopilot task lint` names them"));
        }
    }
    done()
}

fn told(last: Option<Last>, path: Utf8PathBuf) -> ListedFile {
    let findings = lint::findings_in(&path);
    let faults = findings.iter().filter(|f| f.is_fault()).map(lint::LintFinding::text).collect();
    let (id, title) = match read(&path) {
        Read::Parsed(parsed, _) => (parsed.spec.id, parsed.spec.title),
        Read::Faulty(_) | Read::Unreadable(_) => (task_id(&path), String::new()),
    };
    ListedFile { id, title, path, faults, last }
}

/// The last result of each file; by path, because another task may have had the same name.
fn last_of(
    past: &RunArchive,
    place: &StatePaths,
    paths: &[Utf8PathBuf],
) -> Result<BTreeMap<Utf8PathBuf, Last>, CommandFailure> {
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
                last.insert((*path).clone(), Last { word, run: told.run.id.clone() });
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
        task.last.as_ref().map_or("-", |last| last.word).to_owned(),
        one_line(task.path.as_str()).into_owned(),
        format!("{}{faults}", one_line(&title)),
    ]
}

fn object(task: &ListedFile) -> Value {
    json!({
        "id": task.id,
        "title": task.title,
        "path": task.path,
        "last_status": task.last.as_ref().map(|last| last.word),
        "last_run": task.last.as_ref().map(|last| &last.run),
        "faults": task.faults,
    })
}

//! The HTML report of a run: reads what the view needs and writes the page.

use crate::begin::PlanBody;
use crate::job::{OUTPUT, PROMPT, execs_of};
use crate::place::StatePaths;
use crate::recorded::{RecordedExec, RecordedRun};
use crate::store;
use crate::views::{ensure, exec_of, open_goal_dir};
use autopilot_core::event::Record;
use autopilot_core::flow::{FlowFiles, FlowInput};
use autopilot_core::id::Time;
use autopilot_core::state::{State, Task};
use autopilot_host::file::{Dir, FileError};
use autopilot_host::git::ref_component;
use autopilot_host::redact::Redactor;
use autopilot_host::{dir, escape};
use autopilot_journal::JournalHistory;
use autopilot_view::Standing;
use autopilot_view::history::history;
use autopilot_view::report::{
    AgentCall, CALLS_MAX, Excerpt, ReportFacts, ResumeWay, TaskChoice, attempts, html, page,
};
use autopilot_view::sessions::session_of;
use camino::Utf8PathBuf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The file name of the report.
pub const FILE: &str = "report.html";

/// More is read than is shown, so that a secret at the cut is still recognized.
const HEAD_BYTES_MAX: u64 = 96 * 1024;
const TAIL_BYTES_MAX: u64 = 32 * 1024;
/// Beyond this many questions, only those of the shown tasks are opened, by their names.
const EXECS_READ_MAX: usize = 4_000;
/// Only the owner may read what agents said, as in `.autopilot`.
const PRIVATE_MODE: u32 = 0o600;

/// Parts of the report that only the caller knows.
pub struct ReportGiven {
    pub standing: Standing,
    pub now: Time,
    /// The change of the branch in one line; none where there is no branch.
    pub change: Option<String>,
    /// How to resume each session.
    pub ways: BTreeMap<String, ResumeWay>,
}

/// The HTML page about a run.
pub fn of_run(
    place: &StatePaths,
    history: &dyn JournalHistory,
    state: &State,
    records: &[Record],
    given: ReportGiven,
    redactor: &Redactor,
) -> String {
    let read = |hash: &str| store::text(history, hash).ok();
    // Redact again after removing control characters: one may have stood inside a secret.
    let clean = |text: &str| redactor.redact(&escape::plain(&redactor.redact(text))).into_owned();
    let known = ReportFacts {
        standing: given.standing,
        now: given.now,
        goal: goal(state, &read),
        change: given.change,
        calls: calls(place, state, records),
        ways: given.ways,
        version: env!("CARGO_PKG_VERSION"),
        read: &read,
        clean: &clean,
    };
    html(&page(state, records, &known))
}

/// Writes the report beside the other files of the run.
pub fn write(place: &StatePaths, state: &State, text: &str) -> Result<Utf8PathBuf, FileError> {
    let dir = match state.run.flow.row().files {
        FlowFiles::RunDirectory => open_goal_dir(place, &state.run)?,
        FlowFiles::None | FlowFiles::Plan => {
            let views = place.views();
            let at = views.join(execs_of(&state.run.id));
            let made = ensure(&views).and_then(|()| dir::create_private(at.as_std_path()));
            made.map_err(|source| FileError::Failed {
                what: "create directory",
                path: at.clone().into(),
                source,
            })?;
            Dir::open(views.as_std_path())?.below(Path::new(&execs_of(&state.run.id)))?
        }
    };
    dir.write_with_mode(Path::new(FILE), text.as_bytes(), PRIVATE_MODE)?;
    let path = dir.path().join(FILE);
    Ok(Utf8PathBuf::from_path_buf(path)
        .unwrap_or_else(|path| path.to_string_lossy().into_owned().into()))
}

/// The author's text of a plan or goal; the title of a run of task files says enough.
fn goal(state: &State, read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    match state.run.flow.row().input {
        FlowInput::TaskFiles => None,
        FlowInput::PlanFile | FlowInput::Text => {
            let body: PlanBody = serde_json::from_str(&read(&state.root()?.spec.body)?).ok()?;
            Some(body.text).filter(|text| !text.trim().is_empty())
        }
    }
}

/// The questions of the shown attempts, in order.
fn calls(place: &StatePaths, state: &State, records: &[Record]) -> Vec<AgentCall> {
    let choice = TaskChoice::of(state);
    let history = history(records);
    let shown = choice.tasks.iter().flat_map(|id| attempts(&history.attempts, *id).0);
    let shown: BTreeSet<String> = shown.map(|tried| tried.id.to_string()).collect();
    let Ok(run) = RecordedRun::open(&place.views(), &state.run.id) else { return Vec::new() };
    let mut execs = run.execs().unwrap_or_default();
    if execs.len() > EXECS_READ_MAX {
        let tasks: BTreeSet<String> =
            choice.tasks.iter().map(|id| label(state.task(*id))).collect();
        execs.retain(|exec| belongs_to(&exec.name, &tasks));
    }
    let call = |exec: &RecordedExec| {
        let said = run.metadata(exec).ok()?;
        shown.contains(&said.attempt).then(|| {
            let session = session_of(&state.run.id, &said.attempt, said.session.as_deref());
            let text = |file: &str| excerpt(run.views(), &run.file(exec, file));
            let (prompt, output) = (text(PROMPT), text(OUTPUT));
            let duration_ms = said.duration_ms;
            let path = format!(".autopilot/{}/{}", run.base, exec.name);
            let exec = exec_of(exec.number, &exec.name, path, said);
            AgentCall { exec, duration_ms, session, prompt, output }
        })
    };
    execs.iter().filter_map(call).take(CALLS_MAX).collect()
}

fn label(task: &Task) -> String {
    ref_component(task.label())
}

/// `exec-012-parser-build` belongs to the task `parser`.
fn belongs_to(name: &str, tasks: &BTreeSet<String>) -> bool {
    let label = name.splitn(3, '-').nth(2).unwrap_or_default();
    label.match_indices('-').any(|(at, _)| tasks.contains(&label[..at]))
}

/// The beginning of a file; a missing file is empty.
fn excerpt(views: &Dir, file: &str) -> Excerpt {
    let path = Some(format!(".autopilot/{file}"));
    let Ok(mut ends) = views.read_ends(Path::new(file), HEAD_BYTES_MAX, TAIL_BYTES_MAX) else {
        return Excerpt { path, ..Excerpt::default() };
    };
    if (ends.head.len() + ends.tail.len()) as u64 == ends.bytes {
        ends.head.append(&mut ends.tail);
    }
    Excerpt {
        head: String::from_utf8_lossy(&ends.head).into_owned(),
        tail: String::from_utf8_lossy(&ends.tail).into_owned(),
        bytes: ends.bytes,
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_question_says_whose_it_is() {
        let tasks: BTreeSet<String> = ["parser-two", "run"].map(str::to_owned).into();
        assert!(belongs_to("exec-012-parser-two-build", &tasks));
        assert!(belongs_to("exec-1000-run-uat_generate", &tasks));
        assert!(!belongs_to("exec-012-parser-build", &tasks));
        assert!(!belongs_to("exec-012-other-parser-two-build", &tasks));
    }
}

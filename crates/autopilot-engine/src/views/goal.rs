//! `runs/autopilot/<run-id>/` in the checkout: the progress of a run towards a goal, for people and
//! other programs.
//!
//! `manifest.json` and `<run-id>.json` are written whenever something ended, so that a killed
//! process leaves a readable run. Questions and answers are in `.autopilot/artifacts`; each
//! `exec-NNN-label` beside the two files is a relative symbolic link to its directory there.

use super::plan::Bodies;
use crate::job::Metadata;
use crate::place::StatePaths;
use crate::recorded::RecordedRun;
use autopilot_core::event::{Event, Record};
use autopilot_core::flow::FlowFiles;
use autopilot_core::state::{Run, State};
use autopilot_core::workflow::StepUsage;
use autopilot_host::file::{Dir, FileError};
use autopilot_host::git::ref_component;
use autopilot_host::redact::Redactor;
use autopilot_view::manifest::{
    ExecEntry, IterationHistory, MANIFEST_FILE, ManifestSetting, RUNS_DIR, manifest, run_state,
};
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Everything in the directory is generated.
const IGNORE: &str = "*\n";
/// Only the owner may read what agents said, as in `.autopilot`.
const PRIVATE_MODE: u32 = 0o600;

/// The directory for the files of a run towards a goal; no other code builds this path.
pub fn goal_dir(place: &StatePaths, run: &Run) -> Utf8PathBuf {
    place.root.join(runs_dir(run)).join(ref_component(&run.id))
}

/// The parent directory of a run's files, relative to the checkout or absolute.
fn runs_dir(run: &Run) -> &str {
    run.options.out.as_deref().unwrap_or(RUNS_DIR)
}

/// Opens the directory of a run for writing and creates it if it is missing; no symbolic link may
/// lead out of it.
pub fn open_goal_dir(place: &StatePaths, run: &Run) -> Result<Dir, FileError> {
    let name = ref_component(&run.id);
    let Some(out) = &run.options.out else {
        let runs = Dir::open(place.root.as_std_path())?.below(Path::new(RUNS_DIR))?;
        keep_out_of_git(&runs)?;
        return runs.below(Path::new(&name));
    };
    let runs = if Path::new(out).is_absolute() {
        // The directory may have been removed meanwhile; if it can't be created, opening it says
        // why.
        let _opened_next = autopilot_host::dir::create(Path::new(out));
        Dir::open(Path::new(out))?
    } else {
        Dir::open(place.root.as_std_path())?.below(Path::new(out))?
    };
    let dir = runs.below(Path::new(&name))?;
    // Only this directory gets a `.gitignore`: its parent may hold other files of the user.
    keep_out_of_git(&dir)?;
    Ok(dir)
}

fn keep_out_of_git(dir: &Dir) -> Result<(), FileError> {
    if dir.path().join(".gitignore").symlink_metadata().is_ok() {
        return Ok(());
    }
    dir.write_atomic(Path::new(".gitignore"), IGNORE.as_bytes())
}

/// The relative path from the directory of a run to a path in the checkout, for a link.
fn from_goal_dir(place: &StatePaths, run: &Run, path: &str) -> Utf8PathBuf {
    let runs = Utf8Path::new(runs_dir(run));
    if runs.is_absolute() {
        return place.root.join(path);
    }
    let is_part = |part: &Utf8Component<'_>| matches!(part, Utf8Component::Normal(_));
    let depth = runs.components().filter(is_part).count() + 1;
    Utf8PathBuf::from("../".repeat(depth)).join(path)
}

/// The files of a run towards a goal.
pub struct GoalFiles {
    bodies: Bodies,
    setting: ManifestSetting,
    history: IterationHistory,
    /// Questions that have ended and do not change any more.
    over: BTreeMap<String, ExecEntry>,
    linked: BTreeSet<String>,
    /// Something ended that is not in the files yet.
    is_due: bool,
}

impl GoalFiles {
    /// Files that read task specifications from `bodies`.
    pub fn new(bodies: Bodies, setting: ManifestSetting) -> GoalFiles {
        GoalFiles {
            bodies,
            setting,
            history: IterationHistory::default(),
            over: BTreeMap::new(),
            linked: BTreeSet::new(),
            is_due: false,
        }
    }

    /// Notes what a record changes in the files.
    pub fn record(&mut self, record: &Record, state: &State) {
        if state.run.flow.row().files != FlowFiles::RunDirectory {
            return;
        }
        self.history.record(record);
        self.is_due |= record.events.iter().any(|event| {
            matches!(
                event,
                Event::AttemptEnded { .. } | Event::TaskSettled { .. } | Event::RoundFailed { .. }
            )
        });
    }

    /// Returns whether the files must be written now: a starting step must find the result of the
    /// step before it.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Writes the files.
    pub fn write(&mut self, place: &StatePaths, state: &State, redactor: &Redactor) {
        let is_wanted = state.run.flow.row().files == FlowFiles::RunDirectory;
        if !is_wanted || !state.has_begun() {
            return;
        }
        // The next write tries again; the journal has everything meanwhile.
        let _again = self.write_all(place, state, redactor);
        self.is_due = false;
    }

    fn write_all(
        &mut self,
        place: &StatePaths,
        state: &State,
        redactor: &Redactor,
    ) -> Result<(), FileError> {
        let name = ref_component(&state.run.id);
        let dir = open_goal_dir(place, &state.run)?;
        let execs = self.execs(place, state);
        for exec in &execs {
            if self.linked.insert(exec.path.clone()) || !dir.path().join(dir_name(exec)).exists() {
                let target = from_goal_dir(place, &state.run, &exec.path);
                dir.link(dir_name(exec), target.as_std_path())?;
            }
        }
        let read = |hash: &str| (self.bodies)(hash);
        let files = [
            (format!("{name}.json"), run_state(state, &self.history, &self.setting, &read)),
            (
                MANIFEST_FILE.to_owned(),
                manifest(state, &self.history, &self.setting, &execs, &read),
            ),
        ];
        for (name, mut value) in files {
            redactor.redact_json(&mut value);
            let text = format!("{value:#}\n");
            dir.write_with_mode(Path::new(&name), text.as_bytes(), PRIVATE_MODE)?;
        }
        Ok(())
    }

    /// The questions by number. A question that is just being opened is listed by the next write.
    fn execs(&mut self, place: &StatePaths, state: &State) -> Vec<ExecEntry> {
        let Ok(run) = RecordedRun::open(&place.views(), &state.run.id) else { return Vec::new() };
        let mut found = Vec::new();
        for recorded in run.execs().unwrap_or_default() {
            if let Some(over) = self.over.get(&recorded.name) {
                found.push(over.clone());
                continue;
            }
            let Ok(said) = run.metadata(&recorded) else { continue };
            let path = format!(".autopilot/{}/{}", run.base, recorded.name);
            let exec = exec(recorded.number, &recorded.name, path, said);
            if exec.ended_at.is_some() {
                self.over.insert(recorded.name, exec.clone());
            }
            found.push(exec);
        }
        found
    }
}

/// A question's entry in the manifest, from its metadata.
pub fn exec(number: u32, name: &str, path: String, said: Metadata) -> ExecEntry {
    let label = name.splitn(3, '-').nth(2).unwrap_or_default().to_owned();
    let usage = said.usage.map(|usage| StepUsage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    });
    ExecEntry {
        number,
        label,
        path,
        task: said.task,
        step: said.step,
        round: said.round,
        attempt: said.attempt,
        agent: said.agent,
        model: said.model,
        session: said.session,
        status: said.status,
        started_at: said.started_at,
        ended_at: said.ended_at,
        usage,
        cost_usd: said.cost_usd,
    }
}

fn dir_name(exec: &ExecEntry) -> &str {
    exec.path.rsplit('/').next().unwrap_or_default()
}

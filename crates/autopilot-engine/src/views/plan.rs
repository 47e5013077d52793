//! `.autopilot/plan/`: the current graph and a file per task, written as they change.
//!
//! Creating ten thousand files takes seconds, so they are written in batches beside the work; a run
//! that ends writes the rest.

use autopilot_core::event::{Event, Record};
use autopilot_core::flow::FlowFiles;
use autopilot_core::id::TaskId;
use autopilot_core::plan::TaskBody;
use autopilot_core::state::State;
use autopilot_host::file::Dir;
use autopilot_host::redact::Redactor;
use autopilot_view::plan_files::{self, FileKey};
use camino::Utf8Path;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Task files written in one batch while the run is in progress.
const FILES_MAX: usize = 512;

/// Reads the specification of a task by its hash.
pub type Bodies = Box<dyn Fn(&str) -> Option<String> + Send>;

/// The plan files of one run.
pub struct PlanFiles {
    bodies: Bodies,
    dirty: BTreeSet<TaskId>,
    written: BTreeMap<TaskId, FileKey>,
    /// The existing files may belong to another run.
    is_foreign: bool,
}

impl PlanFiles {
    /// Files that read task specifications from `bodies`.
    pub fn new(bodies: Bodies) -> PlanFiles {
        PlanFiles { bodies, dirty: BTreeSet::new(), written: BTreeMap::new(), is_foreign: false }
    }

    /// Marks everything to be written again, as a resumed run's files may be missing or old.
    pub fn all(&mut self, state: &State) {
        self.dirty = state.tasks.iter().map(|task| task.id).collect();
    }

    /// Marks the files that a record changes.
    pub fn record(&mut self, record: &Record, state: &State) {
        for event in &record.events {
            self.is_foreign |= matches!(event, Event::RunStarted { .. });
            let Some(task) = event.moved_task() else { continue };
            self.dirty.insert(task);
            // Tasks that depend on this one are blocked by fewer or more tasks.
            if let Event::TaskSettled { .. } | Event::TaskReopened { .. } = event {
                self.dirty.extend(state.task(task).dependants.iter().copied());
            }
        }
    }

    /// Writes a batch; returns whether there is more to write.
    pub fn write(&mut self, views: &Utf8Path, state: &State, redactor: &Redactor) -> bool {
        self.write_some(views, state, redactor, FILES_MAX)
    }

    fn write_some(
        &mut self,
        views: &Utf8Path,
        state: &State,
        redactor: &Redactor,
        files_max: usize,
    ) -> bool {
        if std::mem::take(&mut self.is_foreign) {
            // Files of an earlier run would be mistaken for this run's.
            let _stays = autopilot_host::dir::remove(views.join("plan").as_std_path());
        }
        if state.run.flow.row().files != FlowFiles::Plan || state.tasks.len() < 2 {
            self.dirty.clear();
            return false;
        }
        if self.dirty.is_empty() {
            return false;
        }
        // The next batch tries again what can't be written now.
        let _again = self.write_batch(views, state, redactor, files_max);
        !self.dirty.is_empty()
    }

    /// Writes everything that is left in one batch, because waiting for the disk after each of many
    /// batches takes noticeably long.
    pub fn close(&mut self, views: &Utf8Path, state: &State, redactor: &Redactor) {
        let _given_up = self.write_some(views, state, redactor, usize::MAX);
    }

    fn write_batch(
        &mut self,
        views: &Utf8Path,
        state: &State,
        redactor: &Redactor,
        files_max: usize,
    ) -> Result<(), std::io::Error> {
        super::ensure(views)?;
        autopilot_host::dir::create_private(views.join("plan").as_std_path())?;
        let is_first = self.written.is_empty();
        let dir = Dir::open(views.as_std_path()).map_err(std::io::Error::other)?;
        let tasks = dir.below(Path::new("plan/tasks")).map_err(std::io::Error::other)?;
        let mut files = Vec::new();
        let mut done = Vec::new();
        for id in &self.dirty {
            if files.len() == files_max {
                break;
            }
            let task = state.task(*id);
            let key = plan_files::file_key(state, task);
            done.push((*id, key));
            if task.parent.is_none() || self.written.get(id) == Some(&key) {
                continue;
            }
            let body = (self.bodies)(&task.spec.body);
            let body = body.and_then(|text| serde_json::from_str::<TaskBody>(&text).ok());
            let text = plan_files::task_file(state, task, &body.unwrap_or_default());
            files.push((plan_files::task_file_name(task), redactor.redact(&text).into_owned()));
        }
        tasks.write_many(&files).map_err(std::io::Error::other)?;
        for (id, key) in done {
            self.dirty.remove(&id);
            self.written.insert(id, key);
        }
        // The graph is written with the first batch, because people want it at once, and with the
        // last.
        if self.dirty.is_empty() || is_first {
            let mut graph = plan_files::task_graph(state);
            redactor.redact_json(&mut graph);
            let text = serde_json::to_string_pretty(&graph)?;
            let path = Path::new("plan").join(plan_files::GRAPH_FILE);
            dir.write_atomic(&path, format!("{text}\n").as_bytes())
                .map_err(std::io::Error::other)?;
        }
        Ok(())
    }
}

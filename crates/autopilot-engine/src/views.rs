//! The files that people and scripts read, kept current from settled state.
//!
//! These files are never read back to decide. A failure here is reported once and does not stop the
//! run: a deleted `.autopilot` is created again at the next write.

mod goal;
mod keeper;
mod plan;

pub(crate) use goal::exec as exec_of;
pub use goal::{goal_dir, open_goal_dir};
pub use keeper::FileKeeper;

use crate::cause::chain;
use crate::job::Context;
use crate::place::StatePaths;
use crate::signal::Teller;
use autopilot_core::config::Role;
use autopilot_core::event::Record;
use autopilot_core::id::Time;
use autopilot_core::state::State;
use autopilot_host::file::{self, Append, FileError};
use autopilot_host::redact::Redactor;
use autopilot_host::{dir, escape};
use autopilot_view::manifest::ManifestSetting;
use autopilot_view::{notes, progress, state_json, status_md};
use camino::Utf8PathBuf;
use goal::GoalFiles;
use plan::{Bodies, PlanFiles};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time between two writes of the files while a run is busy.
const WRITE_EVERY: Duration = Duration::from_millis(200);
/// The pause between two writes, as a multiple of the time the last write took.
const WORK_PER_WRITE: u32 = 10;
/// How long files may take to be written before they are called out of date.
const FRESH_WITHIN_MS: u64 = 3_000;
/// The largest `state.json` that is compared with the journal.
const STATE_BYTES_MAX: u64 = 256 << 20;
/// Bytes at the end of the release notes that are searched for entries already written.
const NOTES_TAIL_BYTES_MAX: u64 = 64 << 20;

/// How a file is replaced, and how a line is added to one: waiting for the disk or not.
type WriteWith = fn(&Path, &[u8]) -> Result<(), FileError>;
type AppendWith = fn(&mut Append, &[u8]) -> Result<(), FileError>;

/// The files of one run.
pub struct Views {
    place: StatePaths,
    redactor: Arc<Redactor>,
    dirty: bool,
    written: Option<Instant>,
    noted: Option<BTreeSet<String>>,
    plan: PlanFiles,
    goal: GoalFiles,
    /// The pause until the next write: a large run's files take longer to write.
    pause: Duration,
    signals: Teller,
    /// The files could not be written the last time.
    is_stale: bool,
}

/// Folders of prompts, answers and output, readable by their owner only. `.autopilot` itself is not
/// private, as the configuration in it is shared.
pub const PRIVATE: [&str; 5] = ["artifacts", "diagnostics", "logs", "plan", "uat"];

/// The `.gitignore` of `.autopilot`.
pub const IGNORE: &str = "# Written by autopilot: everything here is derived, except what a team shares.\n\
*\n!.gitignore\n!config.yml\n!review_schema.json\n!plan_schema.json\n";

impl Views {
    /// The files of the run that these jobs belong to.
    pub fn of_run(context: &Arc<Context>) -> Views {
        Views {
            place: context.place.clone(),
            redactor: Arc::clone(&context.redactor),
            dirty: true,
            written: None,
            noted: None,
            plan: PlanFiles::new(bodies(context)),
            goal: GoalFiles::new(bodies(context), setting(context)),
            pause: WRITE_EVERY,
            signals: context.signals.clone(),
            is_stale: false,
        }
    }

    /// Notes what a record changes in the files.
    pub fn record(&mut self, record: &Record, state: &State) {
        self.dirty = true;
        let mut log = String::new();
        for event in &record.events {
            if let Some(line) = progress::line(event, state) {
                let text = self.clean(&line.text);
                log.push_str(&format!("{} {}\n", record.at.rfc3339(), escape::one_line(&text)));
            }
        }
        if !log.is_empty() {
            let path = self.place.views().join("logs/controller.log");
            self.append(path, &log, Append::write);
        }
        self.note(notes::entries(record, state));
        self.plan.record(record, state);
        self.goal.record(record, state);
        self.flush(state);
    }

    /// Looks at all records again at boot: a crash may have come between a record and its entry.
    pub fn catch_up(&mut self, records: &[Record]) {
        let mut state = State::default();
        for record in records {
            state.apply_record(record);
            self.goal.record(record, &state);
            self.note(notes::entries(record, &state));
        }
        self.plan.all(&state);
    }

    /// Writes what changed, unless the last write was a moment ago.
    pub fn flush(&mut self, state: &State) {
        let recent = self.written.is_some_and(|at| at.elapsed() < self.pause);
        if self.goal.is_due() || self.dirty && !recent {
            self.write(state);
        }
    }

    /// Writes everything that is left when the run ends.
    pub fn close(&mut self, state: &State) {
        self.write_with(state, file::write_atomic);
        self.plan.close(&self.place.views(), state, &self.redactor);
    }

    /// Writes the files of a run that goes on, which writes them again.
    fn write(&mut self, state: &State) {
        self.write_with(state, file::write_passing);
    }

    fn write_with(&mut self, state: &State, write: WriteWith) {
        let began = Instant::now();
        self.dirty = self.plan.write(&self.place.views(), state, &self.redactor);
        self.goal.write(&self.place, state, &self.redactor);
        let json = serde_json::to_string_pretty(&state_object(state, &self.redactor));
        let json = json.unwrap_or_default();
        let status = escape::visible(&self.clean(&status_md::status_md(state))).into_owned();
        let views = self.place.views();
        let mut failed = None;
        for (name, text) in [("state.json", json), ("STATUS.md", status)] {
            // The journal holds the truth meanwhile.
            let written = ensure(&views).and_then(|()| {
                write(views.join(name).as_std_path(), format!("{text}\n").as_bytes())
                    .map_err(std::io::Error::other)
            });
            failed = failed.or(written.err());
        }
        self.dirty |= failed.is_some();
        self.tell_stale(failed);
        self.pause = WRITE_EVERY.max(began.elapsed() * WORK_PER_WRITE);
        self.written = Some(Instant::now());
    }

    /// Tells once that the files can't be written, and once that they are again.
    fn tell_stale(&mut self, failed: Option<std::io::Error>) {
        let was_stale = std::mem::replace(&mut self.is_stale, failed.is_some());
        match failed {
            Some(error) if !was_stale => self.signals.notice(&format!(
                "the files in `{}` can't be written and are out of date ({}); `autopilot status` \
                 shows how the run stands",
                self.place.views(),
                chain(&error)
            )),
            None if was_stale => {
                self.signals.notice(&format!("the files in `{}` are current", self.place.views()));
            }
            Some(_) | None => {}
        }
    }

    /// Appends entries to the release notes, none of them twice: a crash may have come after the
    /// write and before the next record.
    fn note(&mut self, entries: Vec<notes::NoteEntry>) {
        if entries.is_empty() {
            return;
        }
        let path = self.place.views().join("RELEASE_NOTES_RUNNING.md");
        let noted = self.noted.get_or_insert_with(|| keys(&path));
        let fresh: Vec<_> = entries.into_iter().filter(|e| noted.insert(e.key.clone())).collect();
        let mut text = String::new();
        for entry in fresh {
            let clean = self.clean(&entry.text);
            text.push_str(&format!("<!-- {} -->\n{}", entry.key, escape::visible(&clean)));
        }
        if !text.is_empty() {
            autopilot_host::fail::point("notes.due");
            // They are looked for at a boot, and not made again for a run that has ended.
            self.append(path, &text, Append::write_durable);
        }
    }

    fn append(&self, path: Utf8PathBuf, text: &str, write: AppendWith) {
        let Some(parent) = path.parent() else { return };
        // A log that can't be written must not stop the run, and there is nowhere else to report
        // it.
        let _lost = ensure(&self.place.views())
            .and_then(|()| dir::create_private(parent.as_std_path()))
            .and_then(|()| {
                let mut log = file::append(path.as_std_path()).map_err(std::io::Error::other)?;
                write(&mut log, text.as_bytes()).map_err(std::io::Error::other)
            });
    }

    fn clean(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }
}

/// Reads the specifications of tasks as views show them.
fn bodies(context: &Arc<Context>) -> Bodies {
    let context = Arc::clone(context);
    Box::new(move |hash| context.text(hash).ok())
}

/// The agents of workflow steps and their directories, for the manifest.
fn setting(context: &Context) -> ManifestSetting {
    let agent = context.config.agent(Role::Builder);
    ManifestSetting {
        cwd: context.place.root.to_string(),
        adapter: agent.mode.word().to_owned(),
        model: agent.model.clone(),
    }
}

/// The object in `state.json`, which commands also print, with each value redacted.
pub fn state_object(state: &State, redactor: &Redactor) -> serde_json::Value {
    let mut object = state_json::state_json(state);
    redactor.redact_json(&mut object);
    object
}

/// A sentence about `state.json` if it does not show the run as it is. Only for people: nothing is
/// decided by it. Files are given `FRESH_WITHIN` to be written.
pub fn stale(place: &StatePaths, state: &State, now: Time) -> Option<String> {
    let path = place.views().join("state.json");
    if now.since_ms(state.run.moved_at) < FRESH_WITHIN_MS {
        return None;
    }
    let read = file::read_capped(path.as_std_path(), STATE_BYTES_MAX).ok();
    let shown = read.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let Some(shown) = shown else {
        return Some(format!("`{path}` is missing or can't be read"));
    };
    let is_current = shown["run_id"] == state.run.id.as_str()
        && shown["last_transition_at"] == state.run.moved_at.rfc3339();
    let at = shown["last_transition_at"].as_str().unwrap_or("an unknown time");
    (!is_current).then(|| {
        format!("the files in `{}` are out of date: they show the run at {at}", place.views())
    })
}

/// Creates `.autopilot` with the file that keeps it out of commits.
pub fn ensure(views: &camino::Utf8Path) -> std::io::Result<()> {
    let ignore = views.join(".gitignore");
    if ignore.symlink_metadata().is_ok() {
        return Ok(());
    }
    dir::create(views.as_std_path())?;
    file::write_atomic(ignore.as_std_path(), IGNORE.as_bytes()).map_err(std::io::Error::other)
}

/// Checks that `.autopilot` is writable: logs go there too, so nothing could run without it.
pub fn prove_writable(views: &camino::Utf8Path) -> std::io::Result<()> {
    let probe = views.join(".writable");
    ensure(views)?;
    for folder in PRIVATE {
        dir::make_private(views.join(folder).as_std_path())?;
    }
    file::write_atomic(probe.as_std_path(), b"").map_err(std::io::Error::other)?;
    dir::remove_file(probe.as_std_path()).map(|_was_there| ())
}

fn keys(path: &camino::Utf8Path) -> BTreeSet<String> {
    let tail = dir::read_tail(path.as_std_path(), NOTES_TAIL_BYTES_MAX).unwrap_or_default();
    String::from_utf8_lossy(&tail)
        .lines()
        .filter_map(|line| line.strip_prefix("<!-- ")?.strip_suffix(" -->").map(str::to_owned))
        .collect()
}

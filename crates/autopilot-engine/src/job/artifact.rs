//! The recording of every question to an agent: `artifacts/<run>/exec-NNN-<label>/`.
//!
//! `events.jsonl` grows while the agent works, so that others can watch it. No decision is made
//! from these files: they are for people, for replays, and for the last cost that an attempt
//! reported before its controller was killed.

use super::{Job, JobError};
use autopilot_agents::{AgentEnding, AgentEvent, AgentOutcome, ExitFacts};
use autopilot_core::config::AgentConfig;
use autopilot_host::file::Append;
use autopilot_host::git::ref_component;
use autopilot_host::{dir, file};
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of questions in one run.
const EXECS_MAX: u32 = 100_000;

/// The file with the prompt of a question.
pub const PROMPT: &str = "prompt.txt";
/// The file with the agent's final answer.
pub const OUTPUT: &str = "output.txt";
/// The file with the agent's events.
pub const EVENTS: &str = "events.jsonl";
/// The file with the question's metadata.
pub const METADATA: &str = "metadata.json";
/// The file with the change of the agent's worktree.
pub const WORKTREE: &str = "worktree.json";
/// The file with the agent's raw standard output.
pub const STDOUT: &str = "stdout.log";
/// The file with the agent's raw standard error.
pub const STDERR: &str = "stderr.log";

/// The directory of a run's questions, relative to `.autopilot`.
pub fn execs_of(run: &str) -> String {
    format!("artifacts/{}", ref_component(run))
}

/// Records one question while it is asked.
pub struct ExecRecorder {
    /// The directory of the question, relative to `.autopilot`.
    pub name: String,
    path: Utf8PathBuf,
    events: Mutex<Option<Append>>,
    /// Bytes of events that may still be written.
    room: AtomicU64,
    began: jiff::Timestamp,
}

/// The content of `metadata.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    pub run: String,
    pub task: String,
    pub step: String,
    pub round: u32,
    pub attempt: String,
    pub agent: String,
    /// The position of the agent among those that may do the step.
    pub lane: u32,
    pub model: Option<String>,
    pub session: Option<String>,
    pub resumed: Option<String>,
    pub started_at: String,
    /// `None` while the question is asked, and forever if the process died.
    pub ended_at: Option<String>,
    pub duration_ms: Option<u64>,
    pub status: Option<String>,
    pub outcome: Option<AgentOutcome>,
    #[serde(flatten)]
    pub exit: ExitFacts,
    pub usage: Option<UsageSaid>,
    /// The cost of this question alone, if the agent reported it.
    pub cost_usd: Option<f64>,
    /// The log of raw output, relative to `.autopilot`.
    pub log: String,
}

/// The token counts an agent reported.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UsageSaid {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
}

/// The agent's change to its worktree, as objects of the hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorktreeChange {
    pub from: String,
    pub to: String,
}

impl ExecRecorder {
    /// The time at which the question was asked, in RFC 3339.
    pub fn began(&self) -> String {
        self.began.to_string()
    }

    /// Appends an event to `events.jsonl`.
    pub fn event(&self, event: &AgentEvent) {
        let Ok(line) = serde_json::to_string(event) else { return };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, room) = (line.len() as u64 + 1, self.room.load(Ordering::Relaxed));
        let line = match room.checked_sub(bytes) {
            Some(left) => {
                self.room.store(left, Ordering::Relaxed);
                line
            }
            None if room == 0 => return,
            None => {
                self.room.store(0, Ordering::Relaxed);
                let text = "further events were not kept".to_owned();
                serde_json::to_string(&AgentEvent::Notice { text }).unwrap_or_default()
            }
        };
        if let Some(file) = events.as_mut()
            && file.write(format!("{line}\n").as_bytes()).is_err()
        {
            // More important writes report a full disk; nothing may follow half a line.
            *events = None;
        }
    }
}

impl Job {
    /// Opens the next free number; a number is never used twice, whatever crashed in between.
    pub(super) fn open_exec(&self, prompt: &str) -> Result<ExecRecorder, JobError> {
        let views = self.context.place.views();
        let base = execs_of(&self.run.id);
        let parent = views.join(&base);
        crate::views::ensure(&views)
            .and_then(|()| dir::create_private(parent.as_std_path()))
            .map_err(JobError::directory("create", &parent))?;
        // Two attempts at once must not find the same number free.
        let _alone = self.context.numbering.lock().unwrap_or_else(PoisonError::into_inner);
        let names =
            dir::names(parent.as_std_path()).map_err(JobError::directory("read", &parent))?;
        let task = self.task.label();
        let label = ref_component(&format!("{task}-{}", self.want.step.row().runs_as));
        let last = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
        for number in last + 1..EXECS_MAX {
            let name = format!("{base}/exec-{number:03}-{label}");
            let path = views.join(&name);
            let is_new = dir::create_new(path.as_std_path())
                .map_err(JobError::directory("create", &path))?;
            if !is_new {
                continue;
            }
            file::write_atomic(path.join(PROMPT).as_std_path(), prompt.as_bytes())?;
            let events = file::append(path.join(EVENTS).as_std_path())?;
            self.seen().execs.push(path.clone());
            let events = Mutex::new(Some(events));
            let room = AtomicU64::new(self.context.config.logging.output_bytes_max);
            return Ok(ExecRecorder { name, path, events, room, began: jiff::Timestamp::now() });
        }
        Err(JobError::TooManyQuestions { max: EXECS_MAX })
    }

    /// Writes `metadata.json` as far as it is known, and links the raw output.
    pub(super) fn describe_exec(
        &self,
        exec: &ExecRecorder,
        config: &AgentConfig,
        log: &str,
        resumed: Option<&str>,
        ended: Option<(&AgentEnding, &super::process::ProcessResult)>,
    ) -> Result<(), JobError> {
        let mut said = Metadata {
            run: self.run.id.clone(),
            task: self.task.name().to_owned(),
            step: self.want.step.row().runs_as.to_owned(),
            round: self.task.round,
            attempt: self.want.id.to_string(),
            agent: config.mode.word().to_owned(),
            lane: self.want.lane,
            model: config.model.clone(),
            session: resumed.map(str::to_owned),
            resumed: resumed.map(str::to_owned),
            started_at: exec.began.to_string(),
            log: log.to_owned(),
            ..Metadata::default()
        };
        if let Some((ending, ran)) = ended {
            let now = jiff::Timestamp::now();
            let ms = now.as_millisecond().saturating_sub(exec.began.as_millisecond());
            // Vendors count over the whole session; the bill has what this question added.
            let turn = ending.usage.as_ref().map(|_| self.billing().last_turn());
            said.session = ending.session.clone().or(said.session);
            said.ended_at = Some(now.to_string());
            said.duration_ms = u64::try_from(ms).ok();
            let is_good = ending.outcome == AgentOutcome::Success;
            said.status = Some(if is_good { "succeeded" } else { "failed" }.to_owned());
            said.outcome = Some(ending.outcome.clone());
            said.exit = ran.exit;
            said.cost_usd = turn.filter(|turn| turn.is_complete()).map(|turn| turn.usd.usd());
            said.usage = turn.map(|turn| UsageSaid {
                input_tokens: turn.tokens_in,
                output_tokens: turn.tokens_out,
                cached_tokens: turn.cached,
            });
            self.write_view(&format!("{}/{OUTPUT}", exec.name), &ending.answer)?;
            self.keep_output(exec, log);
        }
        let text = self.clean_json(&said)?;
        self.write_clean(&format!("{}/{METADATA}", exec.name), &text)?;
        Ok(())
    }

    fn keep_output(&self, exec: &ExecRecorder, log: &str) {
        if !self.context.config.logging.record {
            return;
        }
        let log = self.context.place.views().join(log);
        for (from, to) in [(log.clone(), STDOUT), (log.with_extension("err.log"), STDERR)] {
            // The log itself stays where it is; only a replay misses the second name.
            let _only_there =
                dir::link_or_copy(from.as_std_path(), exec.path.join(to).as_std_path());
        }
    }

    /// Records for every question of this attempt how its worktree changed.
    pub(super) fn note_worktree(&self, from: &str, to: &str) -> Result<(), JobError> {
        let change = WorktreeChange { from: from.to_owned(), to: to.to_owned() };
        let text = serde_json::to_string(&change).map_err(JobError::Json)?;
        let execs = self.seen().execs.clone();
        for path in execs {
            super::process::write_plain(&path.join(WORKTREE), &text)?;
        }
        Ok(())
    }
}

/// The number of `exec-012-label`.
pub fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix("exec-")?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back_from_names() {
        assert_eq!(number_of("exec-012-parser-build"), Some(12));
        assert_eq!(number_of("exec-1000-run-plan"), Some(1000));
        assert_eq!(number_of("exec-x-build"), None);
        assert_eq!(number_of("something"), None);
    }
}

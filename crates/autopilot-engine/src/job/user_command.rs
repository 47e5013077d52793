//! The user's own commands, run by the controller on a committed tree. Only their exit codes prove
//! anything.

use super::gate_site::CommandSite;
use super::own_work::blocking;
use super::process::{JobProgram, ProcessResult};
use super::reporter::Asking;
use super::workshop::{For, Workshop};
use super::{Job, JobError};
use crate::environment::{self, GateRoom, VERSION_BYTES_MAX, Variables};
use autopilot_agents::ExitFacts;
use autopilot_core::evidence::SeenCommand;
use autopilot_core::fingerprint::{failing_tests, failure_fingerprint, sha256_hex};
use autopilot_core::flaky::FirstTry;
use autopilot_core::holdout::{HOLDOUT, HeldOutRun};
use autopilot_core::id::AttemptId;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::test_report::TestReport;
use autopilot_host::file;
use autopilot_host::git::has_path;
use camino::{Utf8Path, Utf8PathBuf};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The name of the formatter's check, which fails when there is something to format.
pub const FORMAT: &str = "format";
/// The shortest time limit of a command: enough to start it and report a timeout.
const TIME_MIN: Duration = Duration::from_millis(100);

/// The largest log of which a digest is kept.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// One command that was run.
pub struct CommandCheck {
    pub name: &'static str,
    pub line: String,
    pub ran: ProcessResult,
    pub log: String,
    /// The SHA-256 of the log.
    pub log_sha256: Option<String>,
    /// The formatter's check changed tracked files.
    pub changed: bool,
    /// The tracked files that another command changed.
    pub rewrote: Vec<PathBuf>,
    pub ms: u64,
    /// The failure before, when the command was run once more on the same tree.
    pub first_try: Option<FirstTry>,
    /// The command ran over a seed.
    pub is_warm: bool,
    /// The tests by the report of their runner.
    pub report: Option<Box<TestReport>>,
    /// What asks runners for their reports was at work.
    pub was_asked: bool,
    /// What is told of a run over the held-out files; the rest has nothing of it.
    pub holdout: Option<Box<HeldOutRun>>,
}

impl CommandCheck {
    /// Returns whether the command passed; it has not if it ended amid its tests.
    pub fn passed(&self) -> bool {
        let rewrites = self.changed && self.name == FORMAT;
        self.ran.exit.code == Some(0)
            && !self.ran.exit.timed_out
            && !self.ran.exit.stuck
            && !rewrites
            && self.incomplete().is_none()
    }

    fn incomplete(&self) -> Option<String> {
        self.report.as_ref()?.incomplete(None)
    }

    /// Returns whether the command passed and left what it proves as it was.
    pub fn is_clean(&self) -> bool {
        self.passed() && self.rewrote.is_empty()
    }

    /// Takes down which tracked files the command has changed.
    pub fn has_changed(&mut self, files: Vec<PathBuf>) {
        match self.name == FORMAT {
            true => self.changed = !files.is_empty(),
            false => self.rewrote = files,
        }
    }

    /// The failure as a sentence: `tests failed with exit code 1`.
    pub fn failure(&self) -> String {
        if let Some(run) = &self.holdout {
            return run.sentence();
        }
        if self.changed && self.name == FORMAT && self.ran.exit.code == Some(0) {
            return "format would change files".to_owned();
        }
        let was_ended = self.ran.exit.timed_out || self.ran.exit.stuck;
        if let Some(how) = self.incomplete().filter(|_| self.ran.exit.code == Some(0) && !was_ended)
        {
            return format!("{} {how}", self.name);
        }
        let how = match (
            self.ran.exit.timed_out,
            self.ran.exit.stuck,
            self.ran.exit.code,
            self.ran.exit.signal,
        ) {
            (true, ..) => "ran into the time limit".to_owned(),
            (_, true, ..) => "hung without a sign of life".to_owned(),
            (_, _, Some(code), _) => format!("failed with exit code {code}"),
            (_, _, None, Some(signal)) => format!("was killed by signal {signal}"),
            (_, _, None, None) => "ended without an exit code".to_owned(),
        };
        format!("{} {how}", self.name)
    }

    /// The result as it is kept.
    pub fn seen(&self) -> SeenCommand {
        let text = &self.ran.text;
        SeenCommand {
            name: self.name.to_owned(),
            command: match self.holdout {
                Some(_) => format!("{} (with the held-out tests)", self.line),
                None => self.line.clone(),
            },
            exit_code: self.ran.exit.code,
            output: self.ran.tail.clone(),
            log: self.log.clone(),
            log_sha256: self.log_sha256.clone(),
            failing: failing_tests(text),
            mark: (!text.trim().is_empty()).then(|| failure_fingerprint(text)),
            changed: self.changed,
            rewrote: self.rewrote.iter().map(|path| path.display().to_string()).collect(),
            warm: self.is_warm,
            ended: self.ran.exit.code.is_some() && !self.ran.exit.timed_out && !self.ran.exit.stuck,
            ms: Some(self.ms),
            first_try: self.first_try.clone(),
            report: self.report.clone(),
            holdout: self.holdout.clone(),
        }
    }

    /// The result of a run over the held-out files, reduced to what may be told of it.
    pub fn without_output(self, run: HeldOutRun, log: String, sha256: String) -> CommandCheck {
        let text = run.lines().join("\n");
        // The exit code and a signal are the program's to choose.
        let code = i32::from(!run.passed());
        let exit = ExitFacts {
            code: Some(code),
            signal: None,
            timed_out: false,
            stuck: false,
            lingered: false,
        };
        CommandCheck {
            ran: ProcessResult { exit, tail: text, text: String::new(), notes: Vec::new() },
            log,
            log_sha256: Some(sha256),
            changed: false,
            rewrote: Vec::new(),
            first_try: None,
            report: None,
            was_asked: false,
            holdout: Some(Box::new(run)),
            ..self
        }
    }
}

/// The commands that prove a change, tests first.
pub fn validation(job: &Job, spec: Option<&TaskSpec>) -> Vec<(&'static str, String)> {
    job.context.config.commands.validation(spec.map(|spec| &spec.commands))
}

/// The acceptance command of a task.
pub fn uat(job: &Job, spec: &TaskSpec) -> Option<String> {
    spec.commands.uat.clone().or_else(|| job.context.config.commands.uat.clone())
}

impl Job {
    /// The rest of the step's time.
    pub(super) fn timeout(&self) -> Duration {
        self.time_left(self.began)
    }

    pub(super) fn time_left(&self, since: Instant) -> Duration {
        let limit = self.time_limit.get().copied().unwrap_or_else(|| self.usual_limit());
        limit.saturating_sub(since.elapsed()).max(TIME_MIN)
    }

    /// The configured time limit for such a step.
    pub(super) fn usual_limit(&self) -> Duration {
        let step = self.want.step;
        let agent = step.role().map(|_| self.agent_config());
        self.context.config.timeout_by(step, agent)
    }

    /// The attempt's name in refs. Attempts of two runs may have the same number, but must not
    /// share a ref.
    pub(super) fn id_for_refs(&self, id: AttemptId) -> String {
        format!("{}-{id}", self.run.id)
    }

    pub(super) fn name_for_refs(&self) -> &str {
        self.task.label()
    }

    fn is_secret_variable(&self, name: &str) -> bool {
        autopilot_host::redact::is_secret_name(name)
            || environment::key_variables(&self.context.config).any(|key| key == name)
    }

    /// The variables of a gate's commands, without ports. `room` is its own where it has one.
    pub(super) fn gate_variables(&self, room: Option<&GateRoom>) -> Variables {
        let usual = self.gate_room();
        let ours = &self.context.variables;
        let is_secret = |name: &str| self.is_secret_variable(name);
        let room = room.unwrap_or(&usual);
        let mut variables = environment::of_gate(ours, is_secret, room, |path| path.exists());
        variables.extend(self.versions_above().clone());
        variables
    }

    /// The versions that version managers take in the user's checkout by files that no commit has.
    fn versions_above(&self) -> &Variables {
        self.context.workshop.versions.get_or_init(|| {
            let Workshop { hub, repo, .. } = &self.context.workshop;
            let root = &self.context.place.root;
            let read = |path: &Utf8Path| {
                let bytes = file::read_capped(path.as_std_path(), VERSION_BYTES_MAX).ok()?;
                String::from_utf8(bytes).ok()
            };
            let mut chosen = environment::chosen_versions(&self.context.variables, root, read);
            // A file of the commit is there for the manager to read.
            chosen.retain(|version| match version.file.strip_prefix(root) {
                Ok(name) => !has_path(hub, &repo.base_tip, name.as_str()).unwrap_or(true),
                Err(_above) => true,
            });
            chosen.into_iter().map(|one| (one.variable.to_owned(), one.value)).collect()
        })
    }

    pub(super) async fn command(
        &self,
        (name, line): (&'static str, &str),
        site: &CommandSite,
        timeout: Duration,
        asking: Asking,
    ) -> Result<CommandCheck, JobError> {
        let mut variables = match site.purpose {
            For::Agent => {
                let ours = &self.context.variables;
                let mut variables =
                    environment::of_command(ours, |name| self.is_secret_variable(name));
                self.add_identity(&mut variables, None);
                variables
            }
            For::Proof => {
                let mut variables =
                    self.gate_variables(site.room.as_ref().map(|room| &room.inside));
                self.context.workshop.ports.name(self.want.id, &mut variables);
                variables
            }
        };
        let asked = self.ask_runners((name, line), site, asking, &mut variables)?;
        let is_held_out = name == HOLDOUT;
        let log = match is_held_out {
            true => self.private_log(name)?,
            false => self.log_name(&format!("validation_{name}")),
        };
        let program = JobProgram {
            program: Utf8PathBuf::from("/bin/sh"),
            args: vec!["-c".to_owned(), line.to_owned()],
            variables,
            dir: site.dir.clone(),
            stdin: autopilot_host::exec::ProcessStdin::Null,
            log: log.clone(),
            timeout,
            purpose: site.purpose,
            write: Vec::new(),
            room: site.room.clone(),
        };
        let show = |_, line: &str, _| {
            if !is_held_out {
                self.show_output(line);
            }
        };
        let began = Instant::now();
        let ran = self.run_spoken_to(program, show, async |_, _| {}).await?;
        // Without the log there is no digest of it; the exit code is the proof.
        let kept = self.context.place.views().join(&log);
        let kept = file::read_capped(kept.as_std_path(), LOG_BYTES_MAX).ok();
        let report =
            asked.map(|asked| blocking(|| Ok::<_, JobError>(asked.report(&ran)))).transpose()?;
        let (report, was_asked) = report.unwrap_or_default();
        Ok(CommandCheck {
            name,
            line: line.to_owned(),
            ran,
            log,
            log_sha256: kept.map(|bytes| sha256_hex(&bytes)),
            changed: false,
            rewrote: Vec::new(),
            is_warm: false,
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            first_try: None,
            report: report.map(Box::new),
            was_asked,
            holdout: None,
        })
    }
}

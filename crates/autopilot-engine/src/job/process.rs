//! Runs one program under supervision: sandboxed, limited, watched, logged and redacted.

use super::gate_site::CommandRoom;
use super::room::caches_below;
use super::shortage::ShortageWatch;
use super::slot_dir::SlotDir;
use super::workshop::For;
use super::{Context, Job, JobError};
use crate::environment::Variables;
use crate::exposure;
use crate::feed::Sight;
use crate::run_process::room::trouble as machine_trouble;
use autopilot_agents::{ExitFacts, OutputStream};
use autopilot_core::config::{SandboxMode, SandboxNetwork};
use autopilot_core::warmth::{self, StateFence};
use autopilot_host::exec::{self, Launch, ProcessStdin, Supervisor};
use autopilot_host::jail::{self, JailNetwork, JailPlan};
use autopilot_host::life::{self, LifeWatch, Threshold, WatchEnd, WatchLimits, WatchNotice};
use autopilot_host::output::{self, OutputSource, tail};
use autopilot_host::sandbox::{self, SandboxChoice, SandboxError};
use autopilot_host::{dir, file};
use camino::{Utf8Path, Utf8PathBuf};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::unix::pipe;

/// Time between the terminate signal and the kill signal.
const GRACE: Duration = Duration::from_secs(5);
const TAIL_BYTES_MAX: usize = 64 * 1024;
/// Files that are checked for changes as a sign of life.
const WATCHED_ENTRIES_MAX: usize = 20_000;

/// A program to run for a job.
pub struct JobProgram {
    pub program: Utf8PathBuf,
    pub args: Vec<String>,
    pub variables: Variables,
    pub dir: SlotDir,
    pub stdin: ProcessStdin,
    /// The log file, relative to `.autopilot`.
    pub log: String,
    pub timeout: Duration,
    /// Whether an agent or a gate needs it, which decides what it may write and see.
    pub purpose: For,
    /// Writable paths besides its directory, its room, the caches and the configured paths.
    pub write: Vec<Utf8PathBuf>,
    /// The room of a gate's command, where it has one at a path of its own.
    pub room: Option<CommandRoom>,
}

/// The result of a program.
pub struct ProcessResult {
    pub exit: ExitFacts,
    /// The last lines, with control characters removed.
    pub tail: String,
    /// All kept output, in which the names of failing tests are found.
    pub text: String,
    pub notes: Vec<String>,
}

impl Job {
    /// Runs a program. `voice` writes to its stdin and may ask for its end.
    pub(super) async fn run_spoken_to(
        &self,
        program: JobProgram,
        mut on_line: impl FnMut(OutputStream, &str, bool),
        voice: impl AsyncFnOnce(Option<pipe::Sender>, &exec::Control),
    ) -> Result<ProcessResult, JobError> {
        let timeout = program.timeout;
        let seen = program.room.as_ref().map(|room| room.seen.clone());
        let dir = seen.unwrap_or_else(|| program.dir.real.clone().into_std_path_buf());
        let (control, mut child) = exec::spawn(self.launch(program)?).await?;
        let input = child.take_input();
        let config = &self.context.config.rounds;
        let watch = LifeWatch {
            limits: WatchLimits {
                timeout,
                silent: Duration::from_secs(config.stuck_no_output_sec),
                waiting: Duration::from_secs(config.stuck_waiting_sec),
                threshold: Threshold::default(),
            },
            grace: GRACE,
            dir: Some(dir),
            entries_max: WATCHED_ENTRIES_MAX,
        };
        let shortage = ShortageWatch::begin(self.context.place.clone());
        let stopped = AtomicBool::new(false);
        let mut watching = std::pin::pin!(life::watch(child, &control, &watch, |notice| {
            match notice {
                WatchNotice::Line(line) => {
                    let stream = match line.source {
                        OutputSource::Stdout => OutputStream::Out,
                        OutputSource::Stderr => OutputStream::Err,
                    };
                    on_line(stream, &line.text, line.cut);
                }
                WatchNotice::Suspect { idle, .. } => self.show(Sight::Suspect { silent: idle }),
                WatchNotice::Stopped { .. } => stopped.store(true, Ordering::Relaxed),
                WatchNotice::Cleared => {}
            }
        }));
        let mut speaking = std::pin::pin!(async {
            voice(input, &control).await;
            // When there is nothing more to say, keep waiting for the program.
            std::future::pending::<()>().await
        });
        let ended = tokio::select! {
            ended = &mut watching => ended,
            () = &mut speaking => watching.await,
            () = self.cancel.asked() => {
                control.kill();
                watching.await
            }
        };
        if ended.exit().supervisor_lost {
            return Err(JobError::Supervisor);
        }
        if ended.exit().code != Some(0) {
            // A moment later the machine may be well again.
            let trouble = machine_trouble(&self.context.place).or_else(|| shortage.lately());
            self.seen().trouble = trouble;
        }
        Ok(self.ran(&ended, stopped.load(Ordering::Relaxed)))
    }

    fn ran(&self, ended: &WatchEnd, stopped: bool) -> ProcessResult {
        let exit = ended.exit();
        let lines = self.context.config.logging.tail_lines_max as usize;
        let both = match (exit.output.stdout.text.is_empty(), exit.output.stderr.text.is_empty()) {
            (true, _) => exit.output.stderr.text.clone(),
            (false, true) => exit.output.stdout.text.clone(),
            (false, false) => format!("{}\n{}", exit.output.stdout.text, exit.output.stderr.text),
        };
        let mut notes = Vec::new();
        if exit.leaked > 0 {
            notes.push(format!("ended processes it left behind ({})", exit.leaked));
        }
        if exit.survivors > 0 {
            notes.push(format!("{} of its processes could not be ended", exit.survivors));
        }
        if let WatchEnd::Stuck { evidence, .. } = ended {
            notes.push(format!("stuck: {evidence}"));
        }
        if stopped {
            notes.push("it was stopped by a signal and continued".to_owned());
        }
        let exit = ExitFacts {
            code: exit.code,
            signal: exit.signal,
            timed_out: matches!(ended, WatchEnd::TimedOut(_)),
            stuck: matches!(ended, WatchEnd::Stuck { .. }),
            lingered: false,
        };
        ProcessResult { exit, tail: tail(&both, lines, TAIL_BYTES_MAX), text: both, notes }
    }

    fn launch(&self, program: JobProgram) -> Result<Launch, JobError> {
        let views = self.context.place.views();
        let log = views.join(&program.log);
        crate::views::ensure(&views)
            .and_then(|()| dir::create_private(views.join("logs").as_std_path()))
            .map_err(JobError::directory("create the directory of", &log))?;
        let mut env = program.variables;
        if program.purpose == For::Agent {
            env.insert("PWD".to_owned(), program.dir.seen.to_string());
        }
        let mut write = Vec::new();
        let mut tmp = None;
        if program.room.is_none() {
            let room = self.room(program.purpose)?;
            tmp = room.last().map(|tmp| tmp.clone().into_std_path_buf());
            write.push(program.dir.seen.clone());
            write.extend(room);
        }
        write.extend(program.write);
        if program.purpose == For::Proof || self.is_sandboxed()? {
            let caches = match &program.room {
                Some(room) => caches_below(&room.inside.caches),
                None => self.caches(program.purpose)?,
            };
            for (name, cache) in caches {
                let cache = program.dir.cache_seen(cache);
                env.insert(name.to_owned(), cache.to_string());
                if program.room.is_none() && program.dir.caches.is_none() {
                    write.push(cache);
                }
            }
            // Outside of the jail nothing is below the path at which they are seen.
            write.extend(program.dir.caches.iter().map(|caches| caches.seen.clone()));
            for (name, value) in jail::variables() {
                env.entry((*name).to_owned()).or_insert((*value).to_owned());
            }
        }
        write.extend(self.context.config.sandbox.write.iter().map(Utf8PathBuf::from));
        let write: Vec<PathBuf> = write.into_iter().map(Utf8PathBuf::into_std_path_buf).collect();
        let mut jail = self.jail(program.purpose, write, tmp);
        match &program.room {
            Some(room) => room.put_into(&mut jail),
            None => program.dir.put_into(&mut jail),
        }
        let choice = self.context.sandbox_for(jail)?;
        let (state, paths) = (&self.context.place.state, &self.context.config.sandbox.write);
        if warmth::exposes_seeds(state_fence(&choice.plan, state, paths)) {
            exposure::mark(&self.context.place)?;
        }
        let errors = log.with_extension("err.log");
        Ok(Launch {
            args: program.args.iter().map(Into::into).collect(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            stdin: program.stdin,
            sandbox: choice.plan,
            grace: GRACE,
            output: output::OutputSettings {
                stdout_log: Some(log.into_std_path_buf()),
                stderr_log: Some(errors.into_std_path_buf()),
                log_bytes_max: self.context.config.logging.output_bytes_max,
                ..output::OutputSettings::default()
            },
            redactor: Arc::clone(&self.context.redactor),
            supervisor: Supervisor {
                program: self.context.own.clone().into_std_path_buf(),
                args: vec![exec::ARGUMENT.into()],
            },
            register: Some(self.context.place.processes()),
            ..Launch::new(program.program.as_str(), program.dir.seen.as_std_path())
        })
    }

    /// Returns whether programs will run in Autopilot's sandbox.
    pub(super) fn is_sandboxed(&self) -> Result<bool, JobError> {
        let choice = self.context.sandbox_for(JailPlan::default())?;
        Ok(choice.plan != sandbox::SandboxPlan::Off)
    }

    pub(super) fn show_output(&self, line: &str) {
        self.show(Sight::Output { text: self.clean(line) });
    }
}

impl Context {
    /// The sandbox that the configuration asks for, with this jail where it is one.
    pub fn sandbox_for(&self, jail: JailPlan) -> Result<SandboxChoice, SandboxError> {
        self.sandbox.choose(sandbox_mode(self.config.sandbox.mode), jail)
    }
}

/// Returns what keeps a program in this sandbox from the state directory. With namespaces the directory
/// is covered, whatever the program may write.
fn state_fence(plan: &sandbox::SandboxPlan, state: &Utf8Path, write: &[String]) -> StateFence {
    match plan {
        sandbox::SandboxPlan::Off => StateFence::None,
        sandbox::SandboxPlan::Jail(plan) if plan.namespaces => StateFence::Closed,
        sandbox::SandboxPlan::Jail(_) | sandbox::SandboxPlan::Bwrap { .. } => {
            match write.iter().any(|path| state.starts_with(path)) {
                true => StateFence::Pierced,
                false => StateFence::Closed,
            }
        }
    }
}

/// The network of a jail that the configuration asks for.
pub fn jail_network(network: SandboxNetwork) -> JailNetwork {
    match network {
        SandboxNetwork::Open => JailNetwork::Open,
        SandboxNetwork::Off => JailNetwork::Off,
    }
}

/// The sandbox that the configuration asks for.
pub fn sandbox_mode(mode: SandboxMode) -> sandbox::HostSandboxMode {
    match mode {
        SandboxMode::Auto => sandbox::HostSandboxMode::Auto,
        SandboxMode::Landlock => sandbox::HostSandboxMode::Landlock,
        SandboxMode::Bwrap => sandbox::HostSandboxMode::Bwrap,
        SandboxMode::Off => sandbox::HostSandboxMode::Off,
    }
}

/// Writes a file that an agent's launch needs, such as a schema.
pub fn write_plain(path: &Utf8Path, content: &str) -> Result<(), JobError> {
    if let Some(parent) = path.parent() {
        dir::create_private(parent.as_std_path()).map_err(JobError::directory("create", parent))?;
    }
    Ok(file::write_atomic(path.as_std_path(), content.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_host::sandbox::SandboxPlan;

    #[test]
    fn without_namespaces_a_path_around_the_state_lets_programs_in() {
        let jail = |namespaces| SandboxPlan::Jail(JailPlan { namespaces, ..JailPlan::default() });
        let fence = |plan: &SandboxPlan, write: &str| {
            state_fence(plan, "/home/u/.local/state/x".into(), &[write.to_owned()])
        };
        assert_eq!(fence(&jail(false), "/home/u"), StateFence::Pierced);
        assert_eq!(fence(&jail(false), "/home/u/code"), StateFence::Closed);
        assert_eq!(fence(&jail(true), "/home/u"), StateFence::Closed);
        assert_eq!(fence(&SandboxPlan::Off, "/srv"), StateFence::None);
    }
}

//! Executes one attempt: from the wanted step in the settled state to its recorded outcome.
//!
//! A job has no policy. It reports what it saw, and the core decides what that means.

mod agent;
mod ahead;
mod artifact;
mod asking;
mod base_record;
mod base_seed;
mod billing;
mod build;
mod builder_turn;
mod change;
mod conflict;
mod coverage;
mod error;
mod evidence;
pub mod fault;
pub mod further;
mod gate_record;
mod gate_site;
mod goal;
mod holdout;
mod home;
mod left_session;
mod lend;
mod mend;
mod merge;
pub mod opening;
mod own_work;
mod plan;
mod process;
mod prove;
mod pull_request;
mod push;
mod reporter;
mod review;
mod room;
mod shortage;
mod skill;
mod slot_dir;
mod slot_seed;
mod start_gate;
mod talk;
mod three_runs;
mod train;
mod uat;
mod until;
mod usage;
mod user_command;
mod validate;
mod violation;
mod warm_gate;
mod whole_review;
mod workshop;

pub use agent::{agent_of, find_program};
pub use ahead::PreparedProof;
pub use artifact::{
    EVENTS, METADATA, Metadata, OUTPUT, PROMPT, STDERR, STDOUT, WORKTREE, WorktreeChange, execs_of,
    number_of,
};
pub use billing::{Billing, PriceList};
pub use error::JobError;
pub(crate) use home::put_back_left;
pub use left_session::keep_left;
pub(crate) use left_session::session_files_of;
pub use process::{jail_network, sandbox_mode};
pub(crate) use room::caches_below;
pub use skill::Kit;
pub use talk::{Ears, SPOKEN_MAX, Spoken};
pub(crate) use usage::{count_resumed_in, session_usage_in};
pub use workshop::Workshop;

use crate::begin::PlanBody;
use crate::environment::Variables;
use crate::feed::Sight;
use crate::place::StatePaths;
use crate::purse::Purse;
use crate::replay::Player;
use crate::run_process::room::trouble as machine_trouble;
use crate::signal::Teller;
use crate::store::{self, StoreError, Texts, text};
use autopilot_core::config::{AgentConfig, Config, Role};
use autopilot_core::event::{Facts, MachineFault, Outcome};
use autopilot_core::id::Time;
use autopilot_core::input::AttemptWord;
use autopilot_core::state::{Run, State, Task};
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::wanted::Want;
use autopilot_host::git::Border;
use autopilot_host::redact::Redactor;
use autopilot_journal::SqliteReader;
use autopilot_view as view;
use camino::Utf8PathBuf;
use own_work::blocking;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{mpsc, watch};

/// Everything the jobs of a run share.
pub struct Context {
    pub place: StatePaths,
    pub config: Config,
    pub workshop: Workshop,
    pub redactor: Arc<Redactor>,
    /// The redactor of what is sent to agents.
    pub prompt_redactor: Redactor,
    /// The check of everything that leaves the hub.
    pub border: Arc<Border>,
    pub variables: Variables,
    /// Autopilot's own executable, which is also the supervisor and the scripted agent.
    pub own: Utf8PathBuf,
    pub sandbox: autopilot_host::sandbox::Probe,
    pub texts: Texts,
    pub history: Mutex<SqliteReader>,
    pub signals: Teller,
    /// Plays back recorded answers when a run is replayed.
    pub player: Option<Arc<Player>>,
    /// Held while the number of a new question is chosen.
    pub numbering: Mutex<()>,
    /// The money of the run that is promised to attempts at work.
    pub purse: Purse,
    /// The proof that runs beside the steps of a task.
    pub prepared: PreparedProof,
}

impl Context {
    /// Reads a text from the journal by its hash.
    pub fn text(&self, hash: &str) -> Result<String, StoreError> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        text(&*history, hash)
    }
}

/// Tells a job that its result is no longer wanted.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    sender: Arc<watch::Sender<Option<Instant>>>,
}

impl Cancel {
    /// Cancels the job.
    pub fn now(&self) {
        self.sender.send_if_modified(|at| {
            let is_first = at.is_none();
            at.get_or_insert_with(Instant::now);
            is_first
        });
    }

    /// Returns whether the job was cancelled.
    pub fn is_asked(&self) -> bool {
        self.sender.borrow().is_some()
    }

    /// Returns whether the job was cancelled at least this long ago.
    pub fn is_asked_for(&self, time: std::time::Duration) -> bool {
        self.sender.borrow().is_some_and(|at| at.elapsed() >= time)
    }

    /// Waits until the job is cancelled.
    pub async fn asked(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives as long as `self`, so this wait can't fail.
        let _never = receiver.wait_for(Option::is_some).await;
    }
}

/// The number of workers that could spend money at the same time.
fn workers(state: &State) -> u32 {
    let ready = u32::try_from(state.ready().count()).unwrap_or(u32::MAX);
    state.slots_live().saturating_add(ready).min(state.run.limits.workers_max)
}

/// One attempt at a step, with everything it needs.
pub struct Job {
    pub want: Want,
    pub run: Run,
    pub task: Task,
    /// The configuration of the agent for the step, with its fallbacks.
    pub agent: AgentConfig,
    /// The name of the parent task, unless that is the run itself.
    pub parent: String,
    /// The hash of the results on the untouched base.
    pub base_evidence: Option<String>,
    pub context: Arc<Context>,
    pub cancel: Cancel,
    pub seen: Mutex<AgentsSeen>,
    pub billing: Mutex<billing::Billing>,
    pub ears: Ears,
    /// Workers that are or could be busy, this one included.
    pub workers: u32,
    /// When the attempt started in this process: the step's time limit covers everything it does.
    pub began: Instant,
    /// When the attempt started by the journal, also before a restart.
    pub since: Time,
    /// The time limit that a workflow set for this step.
    pub time_limit: Arc<std::sync::OnceLock<std::time::Duration>>,
}

/// What was seen of an attempt's agents so far.
#[derive(Debug, Default)]
pub struct AgentsSeen {
    pub deeds: autopilot_core::skill::Deeds,
    /// The number of messages a person sent to them.
    pub told: u32,
    /// The directories of the questions they were asked.
    pub execs: Vec<Utf8PathBuf>,
    /// The directories in the home of the last agent that make up its sessions.
    pub session_parts: Vec<std::path::PathBuf>,
    /// The recorded change was made in the worktree, in a replay.
    pub is_change_repeated: bool,
    /// The session that was opened last.
    pub session: Option<String>,
    /// What was wrong with the machine when a program failed.
    pub trouble: Option<(MachineFault, String)>,
    /// What a person should know of how their slots were filled.
    pub of_slots: Vec<String>,
}

/// The outcome of an attempt and the facts it found.
pub type Done = (Outcome, Facts);

impl Job {
    /// A job for an attempt of the settled state.
    pub fn new(
        state: &State,
        want: Want,
        context: Arc<Context>,
        cancel: Cancel,
        ears: mpsc::Receiver<Spoken>,
    ) -> Job {
        let task = state.task(want.task).clone();
        let role = want.step.role().unwrap_or(Role::Builder);
        let parent = task.parent.map(|parent| state.task(parent).name().to_owned());
        let baseline = state.root().and_then(|root| root.last(Step::Preflight));
        let since = state.live.get(&want.id).map_or(state.run.moved_at, |live| live.since);
        Job {
            want,
            since,
            run: state.run.clone(),
            agent: context.config.agent_by(role, task.by(want.step)),
            task,
            parent: parent.unwrap_or_default(),
            base_evidence: baseline.and_then(|shown| shown.facts.answer.clone()),
            context,
            cancel,
            seen: Mutex::default(),
            billing: Mutex::default(),
            ears: tokio::sync::Mutex::new(ears),
            workers: workers(state),
            began: Instant::now(),
            time_limit: Arc::default(),
        }
    }

    /// Runs the attempt to its end and returns the word for the loop.
    pub async fn run(self) -> AttemptWord {
        let Some(player) = self.context.player.clone() else { return self.attempt().await };
        let (name, cancel) = (self.task.label().to_owned(), self.cancel.clone());
        let (id, step) = (self.want.id, self.want.step);
        let word = self.attempt().await;
        tokio::select! {
            biased;
            () = cancel.asked() => player.gave_up(&name, step),
            () = player.end(id, &name, step) => {}
        }
        word
    }

    async fn attempt(mut self) -> AttemptWord {
        let limits = self.own_work();
        let step = async {
            self.look_at_whole()?;
            self.step_with_ports().await
        };
        let done = limits.clone().scope(step).await;
        let (outcome, mut facts) = match done {
            Ok((outcome, facts)) => {
                let trouble = self.seen().trouble.take();
                let trouble = trouble.or_else(|| machine_trouble(&self.context.place));
                (fault::unless_the_machine(outcome, trouble), facts)
            }
            Err(error) => (fault::outcome(&error, &self.context.place), Facts::default()),
        };
        let (bill, total) = self.billing().owed();
        self.context.purse.settle(self.want.id, bill);
        facts.notes.extend(self.billing().note());
        (facts.bill, facts.total) = (Some(bill), total);
        facts.notes.append(&mut self.seen().of_slots);
        self.leave_home();
        limits.scope(async { self.remove_leftovers() }).await;
        facts.ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match self.seen().told {
            0 => {}
            1 => facts.notes.push("a person sent its agent a message".to_owned()),
            times => facts.notes.push(format!("a person sent its agent {times} messages")),
        }
        let outcome = self.redacted(outcome);
        facts.notes = facts.notes.iter().map(|note| self.clean(note)).collect();
        // A cancelled attempt says nothing about the work.
        let outcome = if self.cancel.is_asked() { Outcome::Revoked } else { outcome };
        AttemptWord::Ended { outcome, facts: Box::new(facts) }
    }

    /// Removes temporary files, as far as there is time: the next boot removes the rest.
    fn remove_leftovers(&self) {
        for path in [self.scratch(), self.gate_root()] {
            let _next_boot = own_work::saving(|| {
                let removed = autopilot_host::dir::remove(path.as_std_path());
                removed.map_err(JobError::directory("remove", &path))
            });
        }
    }

    async fn step_with_ports(&self) -> Result<Done, JobError> {
        let count = self.context.config.worktrees.ports;
        let _held = self.context.workshop.ports.lease(self.want.id, count)?;
        self.step().await
    }

    /// For the run itself, the work under test is the tip of its branch.
    fn look_at_whole(&mut self) -> Result<(), JobError> {
        if self.task.parent.is_some() || self.want.step == Step::Preflight {
            return Ok(());
        }
        let tip = self.tip()?;
        let tree = blocking(|| self.context.workshop.hub.tree_of(&tip))?;
        self.task.base = Some(self.run.base.clone());
        self.task.commit = Some(tip.to_string());
        self.task.tree = Some(tree.to_string());
        Ok(())
    }

    async fn step(&self) -> Result<Done, JobError> {
        match self.want.step {
            Step::Preflight => self.preflight().await,
            Step::Plan => self.plan().await,
            Step::Schedule => self.schedule(),
            Step::Workflow => self.workflow().await,
            Step::WorkflowStep => self.workflow_step().await,
            Step::Completion => self.completion().await,
            Step::Build | Step::Fix => self.build().await,
            Step::Validate => self.validate().await,
            Step::Coverage => self.coverage().await,
            Step::Review => self.review().await,
            Step::WholeReview => self.whole_review().await,
            Step::UatGenerate => self.uat_generate().await,
            Step::Uat => self.uat().await,
            Step::Prove if self.task.parent.is_some() => self.prove_task().await,
            Step::Prove => self.prove_from_nothing().await,
            Step::Merge => self.merge().await,
            Step::Push => blocking(|| self.push()),
            Step::PullRequest => blocking(|| self.pull_request()),
            Step::Tasks
            | Step::Decide
            | Step::ApprovePlan
            | Step::ApproveResult
            | Step::AcceptTests => Err(JobError::NoJob { step: self.want.step }),
        }
    }

    fn seen(&self) -> MutexGuard<'_, AgentsSeen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of the whole run by now. Reading it takes time in a large run, so it is only for
    /// steps that ask about other tasks.
    fn state(&self) -> Result<State, JobError> {
        let history = self.context.history.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(store::load(&*history, &self.run.id)?)
    }

    /// The names that a new task can't have, each with a word on its task.
    fn taken_names(&self) -> Result<BTreeMap<String, String>, JobError> {
        let state = self.state()?;
        let tasks = state.tasks.iter().filter(|task| task.parent.is_some());
        let word = |task: &Task| (task.name().to_owned(), view::task_word(task).to_owned());
        Ok(tasks.map(word).collect())
    }

    /// The task's specification as it was when the run started.
    fn spec(&self) -> Result<TaskSpec, JobError> {
        self.body(&self.task.spec.body)
    }

    /// Reads a specification by its hash, in the form in which it was kept.
    fn body<T: serde::de::DeserializeOwned>(&self, hash: &str) -> Result<T, JobError> {
        serde_json::from_str(&self.context.text(hash)?).map_err(JobError::Spec)
    }

    /// The specification of the whole run, with the text a person wrote.
    fn whole(&self) -> Result<PlanBody, JobError> {
        let missing = JobError::Internal("there is no run");
        self.body(&self.state()?.root().ok_or(missing)?.spec.body)
    }

    fn clean(&self, text: &str) -> String {
        self.context.redactor.redact(text).into_owned()
    }

    /// The text of a prompt without secrets.
    fn clean_for_agent(&self, text: &str) -> String {
        self.context.prompt_redactor.redact(text).into_owned()
    }

    /// JSON with redacted values; redacting the text as a whole could break the JSON.
    fn clean_json(&self, value: &impl serde::Serialize) -> Result<String, JobError> {
        let mut value = serde_json::to_value(value).map_err(JobError::Json)?;
        self.context.redactor.redact_json(&mut value);
        serde_json::to_string_pretty(&value).map_err(JobError::Json)
    }

    fn redacted(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Failed { why } => Outcome::Failed { why: self.clean(&why) },
            Outcome::Misconfigured { why } => Outcome::Misconfigured { why: self.clean(&why) },
            Outcome::Broke { why } => Outcome::Broke { why: self.clean(&why) },
            Outcome::Skipped { why } => Outcome::Skipped { why: self.clean(&why) },
            Outcome::Away { why, text, until } => {
                Outcome::Away { why, text: self.clean(&text), until }
            }
            Outcome::Passed | Outcome::Lost | Outcome::Quota { .. } | Outcome::Revoked => outcome,
        }
    }

    fn say(&self, word: AttemptWord) {
        self.context.signals.say(self.want, word);
    }

    fn show(&self, sight: Sight) {
        self.context.signals.show(self.want, sight);
    }

    /// Redacts a text, writes it to a view's file and returns the path relative to `.autopilot`.
    fn write_view(&self, path: &str, text: &str) -> Result<String, JobError> {
        self.write_clean(path, &self.clean(text))
    }

    /// Writes an already redacted text to a view's file and returns the path relative to
    /// `.autopilot`.
    fn write_clean(&self, path: &str, text: &str) -> Result<String, JobError> {
        let views = self.context.place.views();
        let full = views.join(path);
        crate::views::ensure(&views).map_err(JobError::directory("create", &views))?;
        process::write_plain(&full, text)?;
        Ok(path.to_owned())
    }

    /// `claude_code_20260101T120000Z_task_12.0`: sorted by time, told apart by attempt. What an
    /// attempt runs a second time within a second has `claude_code_2`.
    fn log_name(&self, stream: &str) -> String {
        let at = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        let end = format!(
            "{at}_{}_{}_{}.log",
            self.task.label(),
            self.want.step.row().runs_as,
            self.want.id
        );
        let views = self.context.place.views();
        let mut names = (1..).map(|time| match time {
            1 => format!("logs/{stream}_{end}"),
            time => format!("logs/{stream}_{time}_{end}"),
        });
        names.find(|name| !views.join(name).exists()).unwrap_or_default()
    }
}

//! One turn of an agent: prompt in, events while it works, a judged ending out.

use super::process::{Program, Ran};
use super::talk::Talk;
use super::until;
use super::workshop::blocking;
use super::{Job, JobError};
use crate::environment::{self, Identity, Variables};
use crate::replay::Played;
use autopilot_agents::answer::{self, Answer, Fault};
use autopilot_agents::{
    Access, Agent, AgentEvent, Ask, Cause, Ending, Exchange, ExitFacts, Expected, LaunchPlan,
    McpServer, Network, Outcome as AgentOutcome, Program as AgentProgram, Sandbox, Schema,
    Settings, Stdin as AgentStdin, Transport,
};
use autopilot_core::config::{Agent as AgentConfig, McpServer as ServerConfig, Mode, Role};
use autopilot_core::event::{Facts, HoldWhy, Outcome};
use autopilot_core::id::{Micros, Time};
use autopilot_core::step::Step;
use autopilot_host::exec::{Control, Stdin};
use autopilot_host::file;
use autopilot_host::git::apply_change;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;
use std::time::Duration;

const SCHEMA_BYTES_MAX: u64 = 1 << 20;
const LOGIN_LOOK_EVERY: Duration = Duration::from_millis(250);

/// What is asked of an agent in one attempt.
pub struct Question<'a> {
    pub prompt: String,
    pub dir: &'a Utf8Path,
    pub access: Access,
    /// JSON Schema of the answer and the file that holds it.
    pub schema: Option<(&'a str, Utf8PathBuf)>,
    pub session: Option<String>,
    /// Directories it may write besides its own.
    pub write: Vec<Utf8PathBuf>,
}

/// What became of it.
pub struct Turn {
    pub ending: Ending,
    pub ran: Ran,
    pub log: String,
}

pub fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::ClaudeCodeCli => "claude_code_cli",
        Mode::CodexCli => "codex_cli",
        Mode::Acp => "acp",
        Mode::Command => "command",
        Mode::OpenaiApi => "openai_api",
        Mode::Script => "script",
    }
}

/// The agent a configuration describes; relative paths are of the checkout.
pub fn agent_of(config: &AgentConfig, root: &Utf8Path) -> Result<Agent, JobError> {
    let script = config.script.as_ref().map(|path| root.join(path));
    // An address in the file is one of the file, however it is written there.
    let of_file = (config.mode == Mode::OpenaiApi)
        .then(|| config.env.get(autopilot_agents::openai::BASE_URL_VARIABLE))
        .flatten();
    Agent::new(Settings {
        mode: mode_word(config.mode),
        executable: config.executable.as_deref(),
        command: config.command.as_deref(),
        script: script.as_deref(),
        model: config.model.as_deref(),
        base_url: config.base_url.as_ref().or(of_file).map(String::as_str),
        api_key_env: config.api_key_env.as_deref(),
        api: config.api,
    })
    .map_err(|error| JobError::Setup(error.to_string()))
}

impl Job {
    pub(super) fn role(&self) -> Role {
        self.want.step.role().unwrap_or(Role::Builder)
    }

    /// The agent that was chosen for this attempt.
    pub(super) fn agent_config(&self) -> &AgentConfig {
        self.agent.candidate(self.want.lane)
    }

    /// Asks, and once more if the answer can't be read: the second time only for the answer.
    pub(super) async fn answered<T: Answer>(
        &self,
        question: Question<'_>,
    ) -> Result<Answered<T>, JobError> {
        self.answered_by(question, |ending, own| answer::read::<T>(ending, own)).await
    }

    /// The same for an answer that must also keep to rules no schema can say. `read` finds all that
    /// is wrong with it at once, because it is asked for only once more.
    pub(super) async fn answered_by<T>(
        &self,
        question: Question<'_>,
        read: impl Fn(&Ending, Option<&answer::Schema>) -> Result<T, Vec<Fault>>,
    ) -> Result<Answered<T>, JobError> {
        let dir = question.dir.to_owned();
        let (access, schema) = (question.access, question.schema.clone());
        let first = self.turn(&question).await?;
        if first.ending.outcome != AgentOutcome::Success {
            return Ok(Answered::without(first, Vec::new()));
        }
        let own = self.own_schema()?;
        let faults = match read(&first.ending, own.as_ref()) {
            Ok(read) => {
                return Ok(Answered { answer: Some(read), ..Answered::without(first, Vec::new()) });
            }
            Err(faults) => faults,
        };
        if self.cancel.is_asked() {
            return Ok(Answered::without(first, faults));
        }
        let repaired = Some(faults.len());
        let asked = schema.as_ref().map_or("", |(json, _)| *json);
        let prompt = format!(
            "{}\nWhat you said was:\n{}\n",
            answer::repair_prompt(&faults, asked),
            autopilot_agents::event::clip(&self.clean(&first.ending.answer), 16 * 1024)
        );
        let session = first.ending.session.clone();
        let said =
            Exchange { prompt: question.prompt.clone(), answer: first.ending.answer.clone() };
        let again = Question { prompt, dir: &dir, access, schema, session, write: question.write };
        let mut second = self.turn_after(&again, &[said]).await?;
        second.ran.notes.splice(0..0, first.ran.notes);
        let read = read(&second.ending, own.as_ref());
        let (answer, faults) = match (second.ending.outcome == AgentOutcome::Success, read) {
            (true, Ok(read)) => (Some(read), Vec::new()),
            (true, Err(faults)) => (None, faults),
            (false, _) => (None, Vec::new()),
        };
        Ok(Answered { answer, turn: second, faults, repaired })
    }

    /// A schema the user has edited holds in addition to ours.
    fn own_schema(&self) -> Result<Option<answer::Schema>, JobError> {
        // The user's schemas are of plans and reviews.
        if !matches!(self.want.step, Step::Plan | Step::Review) {
            return Ok(None);
        }
        let Some(path) = &self.agent_config().schema_path else {
            return Ok(None);
        };
        let path = self.context.place.root.join(path);
        // Ours holds in any case; one that is there must be read.
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let bytes = file::read_capped(path.as_std_path(), SCHEMA_BYTES_MAX)
            .map_err(|error| JobError::Setup(crate::cause::chain(&error)))?;
        let text = String::from_utf8_lossy(&bytes);
        let schema = answer::Schema::parse(path.as_str(), &text)
            .map_err(|error| JobError::Setup(error.to_string()))?;
        Ok(Some(schema))
    }

    pub(super) async fn turn(&self, question: &Question<'_>) -> Result<Turn, JobError> {
        self.turn_after(question, &[]).await
    }

    /// `earlier` is what was said in the question's session.
    pub(super) async fn turn_after(
        &self,
        question: &Question<'_>,
        earlier: &[Exchange],
    ) -> Result<Turn, JobError> {
        let played = self.recorded()?;
        let lane = played.as_ref().map_or(self.want.lane, |played| played.lane);
        let config = self.agent.candidate(lane).clone();
        self.watch_deeds(config.mode);
        let agent = agent_of(&config, &self.context.place.root)?;
        let prompt = self.clean(&question.prompt);
        let cleaned: Vec<Exchange> = earlier
            .iter()
            .map(|said| Exchange {
                prompt: self.clean(&said.prompt),
                answer: self.clean(&said.answer),
            })
            .collect();
        let schema = question.schema.as_ref();
        let sandboxed = self.is_sandboxed()?;
        let servers = mcp_servers(&config)?;
        let max_usd = self.open_bill(&config, question.session.as_deref()).await?;
        let ask = Ask {
            prompt: &prompt,
            cwd: question.dir,
            model: config.model.as_deref(),
            effort: config.effort.as_deref(),
            args: &config.args,
            schema: schema.map(|(json, path)| Schema { path, json }),
            session: question.session.as_deref(),
            earlier: &cleaned,
            access: match (question.access, config.r#unsafe) {
                (Access::Edit, true) => Access::Unsafe,
                (access, _) => access,
            },
            allowed_tools: &config.allowed_tools,
            network: if config.network { Network::On } else { Network::Off },
            sandbox: if sandboxed { Sandbox::Ours } else { Sandbox::None },
            max_usd,
            fork: false,
            disallowed_tools: &config.disallowed_tools,
            max_turns: config.max_turns,
            system_prompt: config.system_prompt.as_deref(),
            mcp_servers: &servers,
            fs: config.fs,
        };
        let plan = agent.launch(&ask);
        let stream = self.stream_word(&config);
        let log = self.log_name(stream);
        let exec = self.open_exec(&prompt)?;
        let resumed_from = question.session.as_deref();
        self.describe_exec(&exec, &config, &log, resumed_from, None)?;
        for (path, content) in &plan.files {
            super::process::write_plain(path, content)?;
        }
        let mut variables = self.agent_variables(&agent, &config, &plan, question);
        let mut untaken = BTreeSet::new();
        let mut home = self.home(&agent, &mut variables, resumed_from)?;
        let conversation = agent.conversation(Expected::from(&ask));
        let starting = self.wait_to_start(&agent).await;
        // Whoever was let in before may have renewed the login.
        untaken.extend(home.put_back());
        let talk = Talk::new(self, &exec, question.dir, conversation, starting);
        let (dir, write) = match agent {
            // It asks a server, and needs nothing of the worktree.
            Agent::OpenAi(_) => (self.scratch(), Vec::new()),
            Agent::ClaudeCode { .. }
            | Agent::Codex { .. }
            | Agent::Acp { .. }
            | Agent::Command { .. }
            | Agent::Script { .. } => {
                (question.dir.to_owned(), self.writable(question, home.writable()))
            }
        };
        let timeout = self.timeout();
        let program = Program {
            program: match &played {
                Some(_) => self.context.own.clone(),
                None => self.program_path(&plan)?,
            },
            args: played.as_ref().map_or_else(|| plan.args.clone(), Played::args),
            variables,
            dir,
            stdin: match &plan.stdin {
                AgentStdin::Whole(bytes) if bytes.is_empty() => Stdin::Null,
                AgentStdin::Whole(bytes) => Stdin::Bytes(bytes.clone()),
                AgentStdin::Open => Stdin::Open,
            },
            log: log.clone(),
            timeout,
            write: Some(write),
        };
        let hear = |out, line: &str, cut| talk.line(out, line, cut);
        let speak = async |pipe, end: &Control| talk.speak(pipe, end, timeout).await;
        let ran = {
            let mut running = std::pin::pin!(self.run_spoken_to(program, hear, speak));
            let mut look = tokio::time::interval(LOGIN_LOOK_EVERY);
            loop {
                tokio::select! {
                    ran = &mut running => break ran,
                    // Others need a renewed login now: the old one may be worth nothing any more.
                    _ = look.tick() => untaken.extend(home.put_back()),
                }
            }
        };
        untaken.extend(home.put_back());
        let mut ran = ran?;
        ran.notes.extend(untaken);
        ran.lingered = talk.was_ended();
        let was_ended_in_time = !ran.timed_out;
        ran.timed_out |= talk.is_out_of_time();
        if let Some(played) = played {
            self.repeat_change(&played, question.dir).await?;
            (ran.code, ran.signal) = (played.exit.code, played.exit.signal);
            (ran.timed_out, ran.stuck) = (played.exit.timed_out, played.exit.stuck);
            ran.lingered = played.exit.lingered;
        }
        let exit = ExitFacts {
            code: ran.code,
            signal: ran.signal,
            timed_out: ran.timed_out,
            stuck: ran.stuck,
            lingered: ran.lingered,
        };
        let ending = talk.finish(exit);
        // It was done before it heard that it should stop.
        if ending.outcome == AgentOutcome::Success && was_ended_in_time {
            ran.timed_out = false;
        }
        ran.notes.extend(self.keep_session(&home, ending.session.as_deref()));
        self.describe_exec(&exec, &config, &log, resumed_from, Some((&ending, &ran)))?;
        Ok(Turn { ending, ran, log })
    }

    /// Where a run is played again, what its agent said then takes the agent's place, whichever of
    /// the agents it was.
    fn recorded(&self) -> Result<Option<Played>, JobError> {
        let Some(player) = &self.context.player else { return Ok(None) };
        let name = self.name_in_recording();
        let played = player.next(&name, self.want.step).ok_or_else(|| {
            let step = self.want.step;
            JobError::Setup(format!("the recording has no further answer of {name} at {step}"))
        })?;
        Ok(Some(played))
    }

    async fn repeat_change(&self, played: &Played, dir: &Utf8Path) -> Result<(), JobError> {
        let Some((player, (from, to))) = self.context.player.as_ref().zip(played.worktree.clone())
        else {
            return Ok(());
        };
        let (hub, dir) = (player.hub.clone(), dir.to_owned());
        blocking(move || apply_change(&hub, &from, &to, dir.as_std_path())).await
    }

    /// Log files are named after the stream; the first document names the builder's.
    fn stream_word(&self, config: &AgentConfig) -> &'static str {
        match (self.role(), config.mode) {
            (Role::Builder, Mode::ClaudeCodeCli) => "claude_code",
            (Role::Builder, _) => "builder",
            (Role::Reviewer, _) => "reviewer",
            (Role::Planner, _) => "planner",
        }
    }

    fn program_path(&self, plan: &LaunchPlan) -> Result<Utf8PathBuf, JobError> {
        match &plan.program {
            AgentProgram::Own => Ok(self.context.own.clone()),
            AgentProgram::Named(name) => {
                let path = self.context.variables.get("PATH").map(String::as_str).unwrap_or("");
                find_program(name, path, &self.context.place.root).ok_or_else(|| {
                    JobError::Setup(format!("the executable `{name}` was not found"))
                })
            }
        }
    }

    fn agent_variables(
        &self,
        agent: &Agent,
        config: &AgentConfig,
        plan: &LaunchPlan,
        question: &Question<'_>,
    ) -> Variables {
        let ours = &self.context.variables;
        let mut variables = environment::for_agent(ours, agent, config, plan);
        let schema = question.schema.as_ref().map(|(_, path)| path.as_str());
        self.add_identity(&mut variables, schema);
        variables
    }

    pub(super) fn add_identity(&self, variables: &mut Variables, schema: Option<&str>) {
        let attempt = self.want.id.to_string();
        let who = Identity {
            run: &self.run.id,
            task: self.task.name(),
            parent: &self.kin.parent,
            attempt,
            try_number: self.task.spent.tries.max(1),
            iteration: self.task.round,
            step: self.want.step.row().runs_as,
            schema,
        };
        environment::identify(variables, &who);
        self.context.workshop.ports.name(self.want.id, variables);
        let scratch = self.scratch();
        variables.insert("TMPDIR".to_owned(), scratch.to_string());
    }

    pub(super) fn scratch(&self) -> Utf8PathBuf {
        self.context.place.scratch(&format!("{}-{}", self.run.id, self.want.id))
    }

    fn writable(&self, question: &Question<'_>, own: Vec<Utf8PathBuf>) -> Vec<Utf8PathBuf> {
        let mut write = vec![question.dir.to_owned(), self.scratch()];
        write.extend(own);
        write.extend(self.context.config.sandbox.write.iter().map(Utf8PathBuf::from));
        write.extend(question.write.iter().cloned());
        write
    }

    /// The decoder was given what the agent said; nobody else is.
    pub(super) fn clean_event(&self, event: AgentEvent) -> AgentEvent {
        let clean = |text: String| self.clean(&text);
        match event {
            AgentEvent::Text { text } => AgentEvent::Text { text: clean(text) },
            AgentEvent::Thought { text } => AgentEvent::Thought { text: clean(text) },
            AgentEvent::ToolCall { id, name, summary } => {
                AgentEvent::ToolCall { id: clean(id), name: clean(name), summary: clean(summary) }
            }
            AgentEvent::ToolResult { id, ok, summary } => {
                AgentEvent::ToolResult { id: clean(id), ok, summary: clean(summary) }
            }
            AgentEvent::FileChange { path, kind } => {
                AgentEvent::FileChange { path: clean(path), kind }
            }
            AgentEvent::Permission { tool, granted, reason } => {
                AgentEvent::Permission { tool: clean(tool), granted, reason: clean(reason) }
            }
            AgentEvent::Session { id } => AgentEvent::Session { id: clean(id) },
            AgentEvent::Notice { text } => AgentEvent::Notice { text: clean(text) },
            AgentEvent::Steer { text } => AgentEvent::Steer { text: clean(text) },
            AgentEvent::Result { ok, text } => AgentEvent::Result { ok, text: clean(text) },
            AgentEvent::Usage(_) | AgentEvent::RateLimit { .. } => event,
        }
    }

    /// What an ending that is no success means for the attempt.
    pub(super) fn judged(&self, ending: &Ending) -> Outcome {
        let why = match &ending.outcome {
            AgentOutcome::Success => "its answer could not be read".to_owned(),
            // It kept to what the run had left: nothing is wrong with it or the work.
            AgentOutcome::Broke { cause: Cause::Budget, .. }
                if self.money_left() == Some(Micros(0)) =>
            {
                return Outcome::Revoked;
            }
            AgentOutcome::Broke { cause: Cause::Model, why } => {
                return away(HoldWhy::Model, why);
            }
            AgentOutcome::Broke { why, .. } => why.clone(),
            AgentOutcome::Auth { why } => return away(HoldWhy::Auth, why),
            AgentOutcome::Outage { why } => return away(HoldWhy::Outage, why),
            AgentOutcome::Interrupted => "it was interrupted".to_owned(),
            AgentOutcome::Quota { until_unix: Some(unix), .. } => {
                return Outcome::Quota { until: Time(unix.saturating_mul(1000)) };
            }
            AgentOutcome::Quota { until_unix: None, why } => {
                return match until::told(why, &jiff::Zoned::now()) {
                    Some(until) => Outcome::Quota { until },
                    None => away(HoldWhy::Quota, why),
                };
            }
        };
        Outcome::Broke { why }
    }

    pub(super) fn facts_of(&self, turn: &Turn) -> Result<Facts, JobError> {
        let mut facts = Facts {
            exit: turn.ran.code,
            signal: turn.ran.signal,
            log: Some(turn.log.clone()),
            tail: Some(self.context.texts.put(&turn.ran.tail)?),
            ..Facts::default()
        };
        facts.notes.extend(turn.ran.notes.iter().cloned());
        Ok(facts)
    }
}

/// Nothing is wrong with the work; whoever would do it is not there.
fn away(why: HoldWhy, text: &str) -> Outcome {
    Outcome::Away { why, text: text.to_owned(), until: None }
}

pub struct Answered<T> {
    pub answer: Option<T>,
    pub turn: Turn,
    pub faults: Vec<Fault>,
    /// Faults of the first answer, if there was a second.
    pub repaired: Option<usize>,
}

impl<T> Answered<T> {
    fn without(turn: Turn, faults: Vec<Fault>) -> Answered<T> {
        Answered { answer: None, turn, faults, repaired: None }
    }

    /// Why there is no answer, if there is none.
    pub fn outcome(&self, job: &Job) -> Outcome {
        let outcome = job.judged(&self.turn.ending);
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        if let Outcome::Broke { why } = &outcome
            && !faults.is_empty()
        {
            return Outcome::Broke { why: format!("{why}: {}", faults.join("; ")) };
        }
        outcome
    }
}

/// A configuration that does without such servers has none given to its agent.
fn mcp_servers(config: &AgentConfig) -> Result<Vec<McpServer>, JobError> {
    if !config.skill_policy.use_mcp {
        return Ok(Vec::new());
    }
    let server = |(name, server): (&String, &ServerConfig)| {
        let transport = match server {
            ServerConfig::Command { command, args, env } => {
                let words = autopilot_agents::words::split(command);
                let mut words = words
                    .map_err(|error| JobError::Setup(format!("MCP server {name}: {error}")))?
                    .into_iter();
                Transport::Stdio {
                    command: words.next().unwrap_or_default(),
                    args: words.chain(args.iter().cloned()).collect(),
                    env: env.clone().into_iter().collect(),
                }
            }
            ServerConfig::Url { url } => Transport::Http { url: url.clone() },
        };
        Ok(McpServer { name: name.clone(), transport })
    };
    config.mcp_servers.iter().map(server).collect()
}

/// A program by its name in PATH, or by its path relative to the checkout.
pub fn find_program(name: &str, path: &str, root: &Utf8Path) -> Option<Utf8PathBuf> {
    let found = autopilot_host::exec::find(name.as_ref(), path.as_ref(), root.as_std_path())?;
    Utf8PathBuf::from_path_buf(found).ok()
}

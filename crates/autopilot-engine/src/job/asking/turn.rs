//! One turn of an agent: prepare, talk, close.

use super::Question;
use super::meaning::session_end;
use crate::environment::{self, Variables};
use crate::job::agent::{agent_of, find_program, mcp_servers};
use crate::job::artifact::ExecRecorder;
use crate::job::home::Home;
use crate::job::own_work::blocking;
use crate::job::process::{JobProgram, ProcessResult, write_plain};
use crate::job::slot_dir::SlotDir;
use crate::job::talk::Talk;
use crate::job::workshop::For;
use crate::job::{Job, JobError};
use crate::replay::Played;
use autopilot_agents::{
    Access, Agent, AgentEnding, AgentOutcome, Conversation, Exchange, LaunchPlan, LaunchProgram,
    LaunchRequest, LaunchSandbox, LaunchSchema, LaunchStdin, Network,
};
use autopilot_core::config::{AgentConfig, Mode, Role};
use autopilot_core::event::{AnsweringAgent, SessionEnd};
use autopilot_host::exec::{Control, LaunchStage, ProcessStdin, SpawnError};
use autopilot_host::git::apply_change;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;
use std::time::Duration;

const LOGIN_LOOK_EVERY: Duration = Duration::from_millis(250);

/// The result of one turn.
pub struct AgentTurn {
    pub ending: AgentEnding,
    pub ran: ProcessResult,
    pub log: String,
    pub by: AnsweringAgent,
}

impl AgentTurn {
    /// The meaning of the turn's ending for its session.
    pub fn session_end(&self) -> SessionEnd {
        session_end(&self.ending.outcome)
    }
}

/// An agent that is ready to start, and the files its turn is recorded in.
struct Prepared {
    agent: Agent,
    config: AgentConfig,
    plan: LaunchPlan,
    variables: Variables,
    exec: ExecRecorder,
    log: String,
    /// The recorded answer, when the run is replayed.
    played: Option<Played>,
}

impl Job {
    pub(in crate::job) async fn turn(
        &self,
        question: &Question<'_>,
    ) -> Result<AgentTurn, JobError> {
        self.seen().session = None;
        let (ready, mut home, conversation) = self.prepare(question).await?;
        let starting = self.wait_to_start(ready.config.mode).await;
        let talk = Talk::new(self, &ready.exec, question.dir, conversation, starting);
        let ran = match self.talk(&talk, question, &ready, &mut home).await {
            Ok(ran) => ran,
            Err(error) => {
                // Whatever ended the process, the conversation is kept.
                let session = self.seen().session.clone();
                let dir = &question.dir.seen;
                let _told_by_the_error = self.keep_session(&home, session.as_deref(), dir);
                return Err(error);
            }
        };
        self.close(question, &ready, &home, talk, ran)
    }

    async fn prepare(
        &self,
        question: &Question<'_>,
    ) -> Result<(Prepared, Home, Box<dyn Conversation>), JobError> {
        let played = self.recorded()?;
        let lane = played.as_ref().map_or(self.want.lane, |played| played.lane);
        let config = self.agent.candidate(lane).clone();
        self.watch_deeds(config.mode);
        let agent = agent_of(&config, &self.context.place.root)?;
        let session = question.session.as_deref();
        let max_usd = self.open_bill(&config, session).await?;
        let (plan, conversation) = self.launch_plan(&agent, &config, question, max_usd)?;
        let log = self.log_name(self.stream_word(&config));
        let exec = self.open_exec(&self.clean(&question.prompt))?;
        self.describe_exec(&exec, &config, &log, session, None)?;
        for (path, content) in &plan.files {
            write_plain(path, content)?;
        }
        let mut variables = environment::for_agent(&self.context.variables, &agent, &config, &plan);
        let schema = question.schema.as_ref().map(|(_, path)| path.as_str());
        self.add_identity(&mut variables, schema);
        let home = self.home(&agent, &mut variables, session, question.access)?;
        self.bill_from_count(&home, session, &exec.began());
        let ready = Prepared { agent, config, plan, variables, exec, log, played };
        Ok((ready, home, conversation))
    }

    /// The agent's process and the decoder of its output.
    fn launch_plan(
        &self,
        agent: &Agent,
        config: &AgentConfig,
        question: &Question<'_>,
        max_usd: Option<f64>,
    ) -> Result<(LaunchPlan, Box<dyn Conversation>), JobError> {
        let sandbox = if self.is_sandboxed()? { LaunchSandbox::Ours } else { LaunchSandbox::None };
        let clean = |said: &Exchange| Exchange {
            prompt: self.clean_for_agent(&said.prompt),
            answer: self.clean_for_agent(&said.answer),
        };
        let schema = question.schema.clone();
        let ask = LaunchRequest {
            prompt: self.clean_for_agent(&question.prompt),
            cwd: question.dir.seen.clone(),
            model: config.model.clone(),
            effort: config.effort.clone(),
            args: config.args.clone(),
            schema: schema.map(|(json, path)| LaunchSchema { path, json: json.to_owned() }),
            session: question.session.clone(),
            earlier: question.earlier.iter().map(clean).collect(),
            access: match (question.access, config.r#unsafe) {
                (Access::Edit, true) => Access::Unsafe,
                (access, _) => access,
            },
            allowed_tools: config.allowed_tools.clone(),
            network: if config.network { Network::On } else { Network::Off },
            sandbox,
            max_usd,
            disallowed_tools: config.disallowed_tools.clone(),
            max_turns: config.max_turns,
            system_prompt: config.system_prompt.clone(),
            mcp_servers: mcp_servers(config)?,
            fs: config.fs,
        };
        Ok((agent.launch(&ask), agent.conversation(ask)))
    }

    /// Runs the agent until its process has ended.
    async fn talk(
        &self,
        talk: &Talk<'_>,
        question: &Question<'_>,
        ready: &Prepared,
        home: &mut Home,
    ) -> Result<ProcessResult, JobError> {
        // An agent that started before this one may have renewed the login.
        let mut untaken: BTreeSet<String> = home.put_back().into_iter().collect();
        let program = self.program(question, ready, home)?;
        let timeout = program.timeout;
        let hear = |out, line: &str, cut| talk.line(out, line, cut);
        let speak = async |pipe, end: &Control| talk.speak(pipe, end, timeout).await;
        let ran = {
            let mut running = std::pin::pin!(self.run_spoken_to(program, hear, speak));
            let mut look = tokio::time::interval(LOGIN_LOOK_EVERY);
            loop {
                tokio::select! {
                    ran = &mut running => break ran,
                    // Others need a renewed login now: the old one may have become invalid.
                    _ = look.tick() => untaken.extend(home.put_back()),
                }
            }
        };
        untaken.extend(home.put_back());
        let mut ran = ran.map_err(program_gone)?;
        ran.notes.extend(untaken);
        Ok(ran)
    }

    fn program(
        &self,
        question: &Question<'_>,
        ready: &Prepared,
        home: &Home,
    ) -> Result<JobProgram, JobError> {
        let (dir, write) = match ready.agent {
            // This agent asks a server and needs nothing from the worktree.
            Agent::OpenAi(_) => (SlotDir::as_it_is(self.scratch()), Vec::new()),
            Agent::ClaudeCode { .. }
            | Agent::Codex { .. }
            | Agent::Acp { .. }
            | Agent::Command { .. }
            | Agent::Script { .. } => (question.dir.clone(), home.writable()),
        };
        let (program, args) = match &ready.played {
            Some(played) => (self.context.own.clone(), played.args()),
            None => (self.program_path(&ready.plan)?, ready.plan.args.clone()),
        };
        Ok(JobProgram {
            program,
            args,
            variables: ready.variables.clone(),
            dir,
            stdin: match &ready.plan.stdin {
                LaunchStdin::Whole(bytes) if bytes.is_empty() => ProcessStdin::Null,
                LaunchStdin::Whole(bytes) => ProcessStdin::Bytes(bytes.clone()),
                LaunchStdin::Open => ProcessStdin::Open,
            },
            log: ready.log.clone(),
            timeout: self.timeout(),
            purpose: For::Agent,
            write,
            room: None,
        })
    }

    /// Judges the ending, and keeps the answer and the session.
    fn close(
        &self,
        question: &Question<'_>,
        ready: &Prepared,
        home: &Home,
        talk: Talk<'_>,
        mut ran: ProcessResult,
    ) -> Result<AgentTurn, JobError> {
        ran.exit.lingered = talk.was_ended();
        let was_ended_in_time = !ran.exit.timed_out;
        ran.exit.timed_out |= talk.is_out_of_time();
        if let Some(played) = &ready.played {
            // The recorded change is that of the whole attempt, however many turns it had.
            if !std::mem::replace(&mut self.seen().is_change_repeated, true) {
                self.repeat_change(played, &question.dir.real)?;
            }
            ran.exit = played.exit;
        }
        let began = ready.exec.began();
        let ending = talk.finish(ran.exit, |session| self.session_usage(home, session, &began));
        // The agent finished before it noticed the request to stop.
        if ending.outcome == AgentOutcome::Success && was_ended_in_time {
            ran.exit.timed_out = false;
        }
        let opened = self.seen().session.clone();
        let session = ending.session.as_deref().or(opened.as_deref());
        ran.notes.extend(self.keep_session(home, session, &question.dir.seen));
        let Prepared { exec, config, log, .. } = ready;
        self.describe_exec(exec, config, log, question.session.as_deref(), Some((&ending, &ran)))?;
        let by = AnsweringAgent {
            role: self.role().word().to_owned(),
            mode: config.mode.word().to_owned(),
            model: config.model.clone(),
        };
        Ok(AgentTurn { ending, ran, log: log.clone(), by })
    }

    /// The recorded answer that replaces the agent in a replay, whichever agent gave it.
    fn recorded(&self) -> Result<Option<Played>, JobError> {
        let Some(player) = &self.context.player else { return Ok(None) };
        let (name, step) = (self.task.label().to_owned(), self.want.step);
        let played = player.next(&name, step);
        played.map(Some).ok_or(JobError::NotRecorded { name, step })
    }

    fn repeat_change(&self, played: &Played, dir: &Utf8Path) -> Result<(), JobError> {
        match (&self.context.player, &played.worktree) {
            (Some(player), Some((from, to))) => {
                blocking(|| apply_change(&player.hub, from, to, dir.as_std_path()))
            }
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// The stream's name in the names of log files.
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
            LaunchProgram::Own => Ok(self.context.own.clone()),
            LaunchProgram::Named(name) => {
                let path = self.context.variables.get("PATH").map(String::as_str).unwrap_or("");
                let found = find_program(name, path, &self.context.place.root);
                found.ok_or_else(|| JobError::NoProgram { name: name.clone() })
            }
        }
    }
}

/// The error of an agent that could not be started because its program, or the interpreter of that,
/// is gone since it was found: the agent waits for it, and the task does not pay.
fn program_gone(error: JobError) -> JobError {
    if let JobError::Spawn(SpawnError::Start { program, failure }) = &error
        && failure.stage == LaunchStage::Program
        && failure.errno == Some(libc::ENOENT)
    {
        return JobError::NoProgram { name: program.to_string_lossy().into_owned() };
    }
    error
}

//! The agent of a configuration: how it is built, configured and found.

use super::{Job, JobError};
use crate::environment::Variables;
use autopilot_agents::{Agent, AgentEvent, AgentSettings, LaunchServer, Transport};
use autopilot_core::config::{AgentConfig, McpServer, Mode, Role};
use camino::{Utf8Path, Utf8PathBuf};

/// The agent a configuration describes; relative paths are relative to the checkout.
pub fn agent_of(config: &AgentConfig, root: &Utf8Path) -> Result<Agent, JobError> {
    let script = config.script.as_ref().map(|path| root.join(path));
    // An address in the agent's `env` section counts as its `base_url`.
    let of_file = (config.mode == Mode::OpenaiApi)
        .then(|| config.env.get(autopilot_agents::openai::BASE_URL_VARIABLE))
        .flatten();
    Ok(Agent::new(AgentSettings {
        mode: config.mode,
        executable: config.executable.as_deref(),
        command: config.command.as_deref(),
        script: script.as_deref(),
        model: config.model.as_deref(),
        base_url: config.base_url.as_ref().or(of_file).map(String::as_str),
        api_key_env: config.api_key_env.as_deref(),
        api: config.api,
    })?)
}

impl Job {
    pub(super) fn role(&self) -> Role {
        self.want.step.role().unwrap_or(Role::Builder)
    }

    /// The configuration of the agent that was chosen for this attempt.
    pub(super) fn agent_config(&self) -> &AgentConfig {
        self.agent.candidate(self.want.lane)
    }

    /// Adds the variables that tell every agent and command which attempt it works for.
    pub(super) fn add_identity(&self, variables: &mut Variables, schema: Option<&str>) {
        let identity = [
            ("AUTOPILOT_RUN_ID", self.run.id.clone()),
            ("AUTOPILOT_TASK_ID", self.task.name().to_owned()),
            ("AUTOPILOT_PARENT_TASK_ID", self.parent.clone()),
            ("AUTOPILOT_ATTEMPT", self.want.id.to_string()),
            ("AUTOPILOT_TRY", self.task.spent.tries.max(1).to_string()),
            ("AUTOPILOT_ITERATION", self.task.round.to_string()),
            ("AUTOPILOT_STEP", self.want.step.row().runs_as.to_owned()),
            ("TMPDIR", self.scratch().into_string()),
        ];
        let schema = schema.map(|path| ("AUTOPILOT_SCHEMA", path.to_owned()));
        let pairs = identity.into_iter().chain(schema);
        variables.extend(pairs.map(|(name, value)| (name.to_owned(), value)));
        self.context.workshop.ports.name(self.want.id, variables);
    }

    pub(super) fn scratch(&self) -> Utf8PathBuf {
        self.context.place.scratch(&format!("{}-{}", self.run.id, self.want.id))
    }

    /// Redacts an agent's event; only the decoder sees the original output. Paths in the worktree are
    /// told as a person knows them.
    pub(super) fn clean_event(&self, mut event: AgentEvent) -> AgentEvent {
        for text in event.texts_mut() {
            *text = self.context.place.without_place(&self.clean(text));
        }
        event
    }
}

/// The MCP servers for an agent; none where the configuration turns them off.
pub(super) fn mcp_servers(config: &AgentConfig) -> Result<Vec<LaunchServer>, JobError> {
    if !config.skill_policy.use_mcp {
        return Ok(Vec::new());
    }
    let server = |(name, server): (&String, &McpServer)| {
        let transport = match server {
            McpServer::Command { command, args, env } => {
                let words = autopilot_agents::words::split(command);
                let failed = |source| JobError::McpServer { name: name.clone(), source };
                let mut words = words.map_err(failed)?.into_iter();
                Transport::Stdio {
                    command: words.next().unwrap_or_default(),
                    args: words.chain(args.iter().cloned()).collect(),
                    env: env.clone().into_iter().collect(),
                }
            }
            McpServer::Url { url } => Transport::Http { url: url.clone() },
        };
        Ok(LaunchServer { name: name.clone(), transport })
    };
    config.mcp_servers.iter().map(server).collect()
}

/// Finds a program by its name in PATH, or by its path relative to the checkout.
pub fn find_program(name: &str, path: &str, root: &Utf8Path) -> Option<Utf8PathBuf> {
    let found = autopilot_host::exec::find(name.as_ref(), path.as_ref(), root.as_std_path())?;
    Utf8PathBuf::from_path_buf(found).ok()
}

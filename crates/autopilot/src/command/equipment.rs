//! Looks for the programs of the configured agents on this machine.

use autopilot_agents::installed::LoginState;
use autopilot_agents::{Agent, LaunchProgram, LaunchRequest};
use autopilot_core::config::{AgentChoice, AgentConfig, AgentPresence, Config, KINDS, Mode, Role};
use autopilot_engine::begin::address_ready;
use autopilot_engine::job::{agent_of, find_program};
use autopilot_host::agent_home::LOGIN_BYTES_MAX;
use autopilot_host::file;
use camino::{Utf8Path, Utf8PathBuf};

/// A configured agent and its program.
pub struct Equipped {
    /// The setting that names the agent: `builder`, `builder.fallback[0]` or `agents.fast`.
    pub role: String,
    /// Only tasks that name the agent need it.
    pub is_optional: bool,
    pub mode: &'static str,
    pub program: FoundAgent,
    /// The agent itself, if its settings are complete.
    pub agent: Option<Agent>,
    pub login: LoginState,
}

/// Where an agent's program is.
pub enum FoundAgent {
    /// Autopilot's own executable plays the agent.
    Own,
    /// Autopilot's own executable asks this model.
    Model(String),
    At(Utf8PathBuf),
    Nowhere(String),
}

impl Equipped {
    /// Why the agent can't be used, if it can't.
    pub fn missing(&self) -> Option<&str> {
        match &self.program {
            FoundAgent::Nowhere(why) => Some(why),
            FoundAgent::Own | FoundAgent::Model(_) | FoundAgent::At(_) => None,
        }
    }
}

/// The agents of all roles and of the `agents` section.
pub fn agents(config: &Config, root: &Utf8Path) -> Vec<Equipped> {
    let path = std::env::var("PATH").unwrap_or_default();
    let planner = (Role::Planner, "planner");
    // A planner with the reviewer's program needs no row of its own.
    let other =
        config.planner.mode != config.reviewer.mode || config.planner.mode == Mode::OpenaiApi;
    [(Role::Builder, "builder"), (Role::Reviewer, "reviewer")]
        .into_iter()
        .chain(other.then_some(planner))
        .flat_map(|(role, name)| {
            let of_place = move |(place, agent)| (name_of(name, place), agent);
            config.candidates(role).enumerate().map(of_place)
        })
        .map(|(role, agent)| (role, agent, false))
        .chain(named(config))
        .map(|(role, agent, is_optional)| {
            let program = find(agent, &role, &path, root);
            let known = agent_of(agent, root).ok();
            let login = known.as_ref().map_or(LoginState::Unknown, |known| login(known, agent));
            Equipped { role, is_optional, mode: agent.mode.word(), program, agent: known, login }
        })
        .collect()
}

/// Whether an agent is logged in, with the variables that its settings add.
fn login(agent: &Agent, settings: &AgentConfig) -> LoginState {
    let variable =
        |name: &str| settings.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    let read = |path: &Utf8Path| {
        let bytes = file::read_capped(path.as_std_path(), LOGIN_BYTES_MAX).ok()?;
        String::from_utf8(bytes).ok()
    };
    agent.login(&variable, &read)
}

/// The agents for a repository without a configuration, and a sentence about each kind that is not
/// used.
pub fn choice(root: &Utf8Path) -> (AgentChoice, Vec<String>) {
    let path = std::env::var("PATH").unwrap_or_default();
    let present = KINDS.map(|(name, mode)| (name, mode, presence(mode, &path, root)));
    let of = |mode: Mode| {
        let found = present.iter().find(|(_, known, _)| *known == mode);
        found.map_or(AgentPresence::NotInstalled, |(.., presence)| *presence)
    };
    let choice = AgentChoice::of(of(Mode::ClaudeCodeCli), of(Mode::CodexCli));
    if present.iter().all(|(.., presence)| *presence == AgentPresence::NotInstalled) {
        let names = present.map(|(name, ..)| name).join(" and ");
        let why = format!("only a default: no agent was found, {names} are not installed");
        return (choice, vec![why]);
    }
    let is_used = |mode: Mode| Role::ALL.iter().any(|role| choice.mode(*role) == mode);
    let left = present.iter().filter(|(_, mode, _)| !is_used(*mode));
    let told = left.map(|(name, _, presence)| format!("{name} is {}", presence.word()));
    (choice, told.collect())
}

fn presence(mode: Mode, path: &str, root: &Utf8Path) -> AgentPresence {
    let settings = AgentConfig { mode, ..AgentConfig::default() };
    let Ok(agent) = agent_of(&settings, root) else { return AgentPresence::NotInstalled };
    match (find(&settings, "builder", path, root), login(&agent, &settings)) {
        (FoundAgent::Nowhere(_), _) => AgentPresence::NotInstalled,
        (_, LoginState::LoggedOut(_)) => AgentPresence::NotLoggedIn,
        (_, LoginState::LoggedIn(_) | LoginState::Unknown) => AgentPresence::Ready,
    }
}

/// The agents that the user has named in `agents`.
fn named(config: &Config) -> impl Iterator<Item = (String, &AgentConfig, bool)> {
    config.agents.iter().flat_map(|(name, agent)| {
        let section = format!("agents.{name}");
        let of_place = move |(place, agent)| (name_of(&section, place), agent, true);
        agent.candidates().enumerate().map(of_place)
    })
}

fn name_of(section: &str, place: usize) -> String {
    match place.checked_sub(1) {
        None => section.to_owned(),
        Some(place) => format!("{section}.fallback[{place}]"),
    }
}

fn find(config: &AgentConfig, name: &str, path: &str, root: &Utf8Path) -> FoundAgent {
    let agent = match agent_of(config, root) {
        Ok(agent) => agent,
        Err(error) => return FoundAgent::Nowhere(error.to_string()),
    };
    if let Agent::Script { file } = &agent
        && !file.is_file()
    {
        return FoundAgent::Nowhere(format!("the script `{file}` does not exist"));
    }
    match address_ready(&agent, config) {
        Ok(Some(model)) if matches!(agent, Agent::OpenAi(_)) => return FoundAgent::Model(model),
        Ok(_) => {}
        Err(fault) => return FoundAgent::Nowhere(fault.to_string()),
    }
    let plan = agent.launch(&LaunchRequest::new("", root));
    match plan.program {
        LaunchProgram::Own => FoundAgent::Own,
        LaunchProgram::Named(program) => match find_program(&program, path, root) {
            Some(path) => FoundAgent::At(path),
            None => FoundAgent::Nowhere(nowhere(&agent, &program, name)),
        },
    }
}

fn nowhere(agent: &Agent, program: &str, role: &str) -> String {
    let get = match agent {
        Agent::ClaudeCode { .. } => "npm install -g @anthropic-ai/claude-code",
        Agent::Codex { .. } => "npm install -g @openai/codex",
        Agent::Acp { .. } | Agent::Command { .. } => {
            return format!(
                "`{program}` was not found; check `{role}.command` in .autopilot/config.yml"
            );
        }
        Agent::OpenAi(_) | Agent::Script { .. } => return format!("`{program}` was not found"),
    };
    format!(
        "`{program}` was not found; install it ({get}), set `{role}.executable` to its path, or \
         choose another `{role}.mode` in .autopilot/config.yml"
    )
}

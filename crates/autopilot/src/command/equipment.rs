//! Looks for the programs of the configured agents on this machine.

use autopilot_agents::{Agent, LaunchProgram, LaunchRequest};
use autopilot_core::config::{AgentConfig, Config, Mode, Role};
use autopilot_engine::begin::address_ready;
use autopilot_engine::job::{agent_of, find_program};
use camino::{Utf8Path, Utf8PathBuf};

/// A configured agent and its program.
pub struct Equipped {
    /// The setting that names the agent: `builder`, `builder.fallback[0]` or `agents.fast`.
    pub role: String,
    /// Only tasks that name the agent need it.
    pub is_optional: bool,
    pub mode: &'static str,
    pub program: FoundAgent,
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
            Equipped { role, is_optional, mode: agent.mode.word(), program }
        })
        .collect()
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

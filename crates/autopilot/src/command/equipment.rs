//! The agents of a configuration as programs of this machine: found or not.

use autopilot_agents::openai::{BASE_URL_VARIABLE, Model};
use autopilot_agents::{Agent, Ask, Program};
use autopilot_core::config::{Agent as AgentConfig, Config, Role};
use autopilot_engine::job::{agent_of, find_program, mode_word};
use autopilot_host::model_api::{Address, BASE_DEFAULT};
use camino::{Utf8Path, Utf8PathBuf};

pub struct Equipped {
    pub role: &'static str,
    pub mode: &'static str,
    pub program: Found,
}

pub enum Found {
    /// Our own executable plays it.
    Own,
    /// Our own executable asks a model; in words.
    Model(String),
    At(Utf8PathBuf),
    Nowhere(String),
}

impl Equipped {
    pub fn missing(&self) -> Option<&str> {
        match &self.program {
            Found::Nowhere(why) => Some(why),
            Found::Own | Found::Model(_) | Found::At(_) => None,
        }
    }
}

/// The agents that the flows of today use.
pub fn agents(config: &Config, root: &Utf8Path) -> Vec<Equipped> {
    let path = std::env::var("PATH").unwrap_or_default();
    [(Role::Builder, "builder"), (Role::Reviewer, "reviewer")]
        .into_iter()
        .map(|(role, name)| {
            let mode = mode_word(config.agent(role).mode);
            Equipped { role: name, mode, program: find(config, role, name, &path, root) }
        })
        .collect()
}

fn find(config: &Config, role: Role, name: &str, path: &str, root: &Utf8Path) -> Found {
    let agent = match agent_of(config.agent(role), root) {
        Ok(agent) => agent,
        Err(error) => return Found::Nowhere(error.to_string()),
    };
    if let Agent::Script { file } = &agent
        && !file.is_file()
    {
        return Found::Nowhere(format!("the script `{file}` does not exist"));
    }
    if let Agent::OpenAi(model) = &agent {
        return reachable(model, config.agent(role));
    }
    let plan = agent.launch(&Ask::new("", root));
    match plan.program {
        Program::Own => Found::Own,
        Program::Named(program) => match find_program(&program, path, root) {
            Some(path) => Found::At(path),
            None => Found::Nowhere(nowhere(&agent, &program, name)),
        },
    }
}

/// Whether there is all that asking needs; nobody is asked.
fn reachable(model: &Model, config: &AgentConfig) -> Found {
    let variable = |name: &str| {
        let own = config.env.get(name).cloned().or_else(|| std::env::var(name).ok());
        own.filter(|value| !value.trim().is_empty())
    };
    let base = model.base_url.clone().or_else(|| variable(BASE_URL_VARIABLE));
    let base = base.as_deref().unwrap_or(BASE_DEFAULT);
    let address = match Address::parse(base) {
        Ok(address) => address,
        Err(why) => return Found::Nowhere(format!("the base address of its model {why}")),
    };
    let (key, name) = (&model.key_env, &model.name);
    match variable(key) {
        Some(_) => Found::Model(format!("{name} at {address}, key from {key}")),
        None if address.is_local() => Found::Model(format!("{name} at {address}, without a key")),
        None => Found::Nowhere(format!(
            "there is no key for {address}: set the environment variable `{key}`, or name another \
             as `api_key_env` in .autopilot/config.yml"
        )),
    }
}

fn nowhere(agent: &Agent, program: &str, role: &str) -> String {
    let get = match agent {
        Agent::ClaudeCode { .. } => "npm install -g @anthropic-ai/claude-code",
        Agent::Codex { .. } => "npm install -g @openai/codex",
        Agent::Command { .. } => {
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

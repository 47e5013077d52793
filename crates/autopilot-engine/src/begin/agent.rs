//! Checks before a run starts that its agents can be started and can connect.

use super::BeginError;
use crate::job::{agent_of, find_program};
use crate::place::StatePaths;
use autopilot_agents::openai::{BASE_URL_VARIABLE, Model};
use autopilot_agents::{Agent, LaunchPlan, LaunchProgram};
use autopilot_core::config::{AgentConfig, Config, Mode, Role};
use autopilot_core::flow::Flow;
use autopilot_host::model_api::{ApiAddress, BASE_DEFAULT};

/// Checks that the executable of every agent the run needs is installed.
pub fn check_agents(
    config: &Config,
    place: &StatePaths,
    path: &str,
    flow: Flow,
) -> Result<Vec<(Role, LaunchPlan)>, BeginError> {
    let mut plans = Vec::new();
    for role in flow.roles() {
        let name = role.word();
        for settings in config.candidates(role) {
            let failed = |reason| BeginError::Agent { role: name, reason };
            let plan = check_agent(settings, name, place, path).map_err(failed)?;
            plans.push((role, plan));
        }
    }
    Ok(plans)
}

/// Checks that one agent can be started and can connect.
pub(super) fn check_agent(
    settings: &AgentConfig,
    name: &str,
    place: &StatePaths,
    path: &str,
) -> Result<LaunchPlan, String> {
    let agent = agent_of(settings, &place.root).map_err(|error| error.to_string())?;
    if let Agent::Script { file } = &agent
        && !file.is_file()
    {
        return Err(format!("the script `{file}` does not exist"));
    }
    address_ready(&agent, settings)?;
    let plan = agent.launch(&autopilot_agents::LaunchRequest::new("", &place.root));
    if let LaunchProgram::Named(program) = &plan.program
        && find_program(program, path, &place.root).is_none()
    {
        let mode = settings.mode.word();
        let key = match settings.mode {
            Mode::Acp | Mode::Command => "command",
            Mode::ClaudeCodeCli | Mode::CodexCli | Mode::OpenaiApi | Mode::Script => "executable",
        };
        return Err(format!(
            "the executable `{program}` of mode {mode} was not found; install it, or set \
             `{name}.{key}` in .autopilot/config.yml"
        ));
    }
    Ok(plan)
}

/// Checks that an agent with its own address or key has everything it needs to connect, and returns
/// a sentence for it.
pub fn address_ready(agent: &Agent, settings: &AgentConfig) -> Result<Option<String>, String> {
    let gateway = match agent {
        Agent::OpenAi(model) => return model_ready(model, settings).map(Some),
        Agent::ClaudeCode { gateway, .. } | Agent::Codex { gateway, .. } => gateway,
        Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => return Ok(None),
    };
    let Some(base) = &gateway.base_url else {
        return match &gateway.key_env {
            Some(key) if variable(settings, key).is_none() => Err(unset(key)),
            Some(key) => Ok(Some(format!("key from {key}"))),
            None => Ok(None),
        };
    };
    let address =
        ApiAddress::parse(base).map_err(|why| format!("its base URL can't be used: it {why}"))?;
    let key = gateway.key_env.as_deref();
    key_ready(&address, key, settings).map(|key| Some(format!("at {address}, {key}")))
}

fn variable(settings: &AgentConfig, name: &str) -> Option<String> {
    let own = settings.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    own.filter(|value| !value.trim().is_empty())
}

fn unset(key: &str) -> String {
    format!(
        "its `api_key_env` is `{key}`, and this environment variable is not set: export it, or \
         name another in .autopilot/config.yml"
    )
}

/// Checks that the key for an address is set; `key` is the variable that may be sent there.
fn key_ready(
    address: &ApiAddress,
    key: Option<&str>,
    settings: &AgentConfig,
) -> Result<String, String> {
    match key {
        Some(key) if variable(settings, key).is_some() => Ok(format!("key from {key}")),
        Some(key) if settings.api_key_env.is_some() => {
            Err(format!("there is no key for {address}: {}", unset(key)))
        }
        Some(_) | None if address.is_local() => Ok("without a key".to_owned()),
        Some(key) => Err(format!(
            "there is no key for {address}: set the environment variable `{key}`, or name another \
             as `api_key_env` in .autopilot/config.yml"
        )),
        None => Err(format!(
            "no key is configured for {address}, and your own is only for its vendor: set \
             `api_key_env` in .autopilot/config.yml to the variable that holds the key"
        )),
    }
}

/// Says which model is asked at which address, if its settings are complete. Makes no connection.
fn model_ready(model: &Model, settings: &AgentConfig) -> Result<String, String> {
    let variable = |name: &str| variable(settings, name);
    let base = model.base_url.clone().or_else(|| variable(BASE_URL_VARIABLE));
    let base = base.as_deref().unwrap_or(BASE_DEFAULT);
    let address =
        ApiAddress::parse(base).map_err(|why| format!("its base URL can't be used: it {why}"))?;
    let key = key_ready(&address, model.key_variable(), settings)?;
    Ok(format!("{} at {address}, {key}", model.name))
}

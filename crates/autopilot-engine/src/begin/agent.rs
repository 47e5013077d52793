//! Checks before a run starts that its agents can be started and can connect.

use super::BeginError;
use crate::job::{JobError, agent_of, find_program};
use crate::place::StatePaths;
use autopilot_agents::openai::{BASE_URL_VARIABLE, Model};
use autopilot_agents::{Agent, LaunchPlan, LaunchProgram};
use autopilot_core::config::{AgentConfig, Config, Mode, Role};
use autopilot_core::flow::Flow;
use autopilot_host::model_api::{ApiAddress, BASE_DEFAULT};
use camino::Utf8PathBuf;

/// Why an agent can't be started or can't connect.
#[derive(Debug, thiserror::Error)]
pub enum AgentFault {
    #[error(transparent)]
    Settings(#[from] JobError),
    #[error("the script `{0}` does not exist")]
    NoScript(Utf8PathBuf),
    #[error(
        "the executable `{program}` of mode {} was not found; install it, or set `{setting}` in \
         .autopilot/config.yml", mode.word()
    )]
    NoProgram { program: String, mode: Mode, setting: String },
    /// The fault completes the sentence "it …".
    #[error("its base URL can't be used: it {0}")]
    BadAddress(&'static str),
    #[error("{}{}", no_key(address), unset(key))]
    KeyUnset { address: Option<ApiAddress>, key: String },
    #[error(
        "{}set the environment variable `{key}`, or name another as `api_key_env` in \
         .autopilot/config.yml", no_key(&Some(address.clone()))
    )]
    NoKey { address: ApiAddress, key: String },
    #[error(
        "no key is configured for {0}, and your own is only for its vendor: set `api_key_env` in \
         .autopilot/config.yml to the variable that holds the key"
    )]
    NoKeyName(ApiAddress),
}

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
            let failed = |source| BeginError::Agent { role: name, source };
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
) -> Result<LaunchPlan, AgentFault> {
    let agent = agent_of(settings, &place.root)?;
    if let Agent::Script { file } = &agent
        && !file.is_file()
    {
        return Err(AgentFault::NoScript(file.clone()));
    }
    address_ready(&agent, settings)?;
    let plan = agent.launch(&autopilot_agents::LaunchRequest::new("", &place.root));
    if let LaunchProgram::Named(program) = &plan.program
        && find_program(program, path, &place.root).is_none()
    {
        let key = match settings.mode {
            Mode::Acp | Mode::Command => "command",
            Mode::ClaudeCodeCli | Mode::CodexCli | Mode::OpenaiApi | Mode::Script => "executable",
        };
        let (program, setting) = (program.clone(), format!("{name}.{key}"));
        return Err(AgentFault::NoProgram { program, mode: settings.mode, setting });
    }
    Ok(plan)
}

/// Checks that an agent with its own address or key has everything it needs to connect, and returns
/// a sentence for it.
pub fn address_ready(agent: &Agent, settings: &AgentConfig) -> Result<Option<String>, AgentFault> {
    let gateway = match agent {
        Agent::OpenAi(model) => return model_ready(model, settings).map(Some),
        Agent::ClaudeCode { gateway, .. } | Agent::Codex { gateway, .. } => gateway,
        Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => return Ok(None),
    };
    let Some(base) = &gateway.base_url else {
        return match &gateway.key_env {
            Some(key) if variable(settings, key).is_none() => {
                Err(AgentFault::KeyUnset { address: None, key: key.clone() })
            }
            Some(key) => Ok(Some(format!("key from {key}"))),
            None => Ok(None),
        };
    };
    let address = ApiAddress::parse(base).map_err(AgentFault::BadAddress)?;
    let key = gateway.key_env.as_deref();
    key_ready(&address, key, settings).map(|key| Some(format!("at {address}, {key}")))
}

fn variable(settings: &AgentConfig, name: &str) -> Option<String> {
    let own = settings.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    own.filter(|value| !value.trim().is_empty())
}

fn no_key(address: &Option<ApiAddress>) -> String {
    address.as_ref().map(|at| format!("there is no key for {at}: ")).unwrap_or_default()
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
) -> Result<String, AgentFault> {
    match key {
        Some(key) if variable(settings, key).is_some() => Ok(format!("key from {key}")),
        Some(key) if settings.api_key_env.is_some() => {
            Err(AgentFault::KeyUnset { address: Some(address.clone()), key: key.to_owned() })
        }
        Some(_) | None if address.is_local() => Ok("without a key".to_owned()),
        Some(key) => Err(AgentFault::NoKey { address: address.clone(), key: key.to_owned() }),
        None => Err(AgentFault::NoKeyName(address.clone())),
    }
}

/// Says which model is asked at which address, if its settings are complete. Makes no connection.
fn model_ready(model: &Model, settings: &AgentConfig) -> Result<String, AgentFault> {
    let variable = |name: &str| variable(settings, name);
    let base = model.base_url.clone().or_else(|| variable(BASE_URL_VARIABLE));
    let base = base.as_deref().unwrap_or(BASE_DEFAULT);
    let address = ApiAddress::parse(base).map_err(AgentFault::BadAddress)?;
    let key = key_ready(&address, model.key_variable(), settings)?;
    Ok(format!("{} at {address}, {key}", model.name))
}

//! The seam to every agent: the kinds of agents, and how each is launched and decoded.

use autopilot_core::config::{API_KEY_ENV, Api, Mode};
use camino::{Utf8Path, Utf8PathBuf};

use crate::acp::{self, AcpConversation};
use crate::claude::{self, ClaudeConversation};
use crate::codex::{self, CodexConversation};
use crate::command::{self, CommandConversation};
use crate::conversation::Conversation;
use crate::gateway::{Gateway, GatewayWay, is_withheld};
use crate::launch::{LaunchPlan, LaunchRequest};
use crate::openai::{self, Model, OpenAiConversation};
use crate::script::{self, ScriptConversation};
use crate::words::{self, WordsError};

/// A configured agent whose settings were checked: launching it can no longer fail for want of a
/// setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code, run as a command line program.
    ClaudeCode { executable: String, gateway: Gateway },
    /// Codex, run as a command line program.
    Codex { executable: String, gateway: Gateway },
    /// Any agent that speaks the Agent Client Protocol.
    Acp {
        /// The program and its arguments; never empty.
        words: Vec<String>,
    },
    /// Any program that reads a prompt from stdin and prints its answer.
    Command {
        /// The program and its arguments; never empty.
        words: Vec<String>,
    },
    /// A model behind an OpenAI-compatible API; it answers and edits nothing.
    OpenAi(Model),
    /// The scripted agent, which plays the rules of a file.
    Script { file: Utf8PathBuf },
}

/// The keys of an agent's configuration that choose its kind and how it is started.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentSettings<'a> {
    pub mode: Mode,
    /// The name or path of the vendor's program, in place of the usual one.
    pub executable: Option<&'a str>,
    /// The command line of an `acp` or `command` agent.
    pub command: Option<&'a str>,
    /// The file of rules of a `script` agent.
    pub script: Option<&'a Utf8Path>,
    pub model: Option<&'a str>,
    /// The address of the model, in place of the vendor's.
    pub base_url: Option<&'a str>,
    /// The name of the environment variable that holds the API key.
    pub api_key_env: Option<&'a str>,
    /// The API that an `openai_api` agent's server speaks.
    pub api: Api,
}

/// A reason why a configured agent cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("mode {mode} needs the key `{key}`")]
    MissingKey { mode: &'static str, key: &'static str },
    #[error(transparent)]
    Words(#[from] WordsError),
}

/// The stream of the process that a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    Out,
    Err,
}

impl Agent {
    /// Checks that the keys the mode needs are there.
    pub fn new(settings: AgentSettings<'_>) -> Result<Self, AgentError> {
        let executable = |default: &str| settings.executable.unwrap_or(default).to_owned();
        let missing = |key| AgentError::MissingKey { mode: settings.mode.word(), key };
        let words = || -> Result<Vec<String>, AgentError> {
            Ok(words::split(settings.command.ok_or(missing("command"))?)?)
        };
        let gateway = Gateway {
            base_url: settings.base_url.map(str::to_owned),
            key_env: settings.api_key_env.map(str::to_owned),
        };
        match settings.mode {
            Mode::ClaudeCodeCli => {
                Ok(Agent::ClaudeCode { executable: executable("claude"), gateway })
            }
            Mode::CodexCli => Ok(Agent::Codex { executable: executable("codex"), gateway }),
            Mode::Acp => Ok(Agent::Acp { words: words()? }),
            Mode::Command => Ok(Agent::Command { words: words()? }),
            Mode::OpenaiApi => Ok(Agent::OpenAi(Model {
                base_url: gateway.base_url,
                key_env: gateway.key_env,
                api: settings.api,
                name: settings.model.ok_or(missing("model"))?.to_owned(),
            })),
            Mode::Script => {
                let file = settings.script.ok_or(missing("script"))?.to_owned();
                Ok(Agent::Script { file })
            }
        }
    }

    /// Returns the process that puts `ask` to this agent.
    pub fn launch(&self, ask: &LaunchRequest) -> LaunchPlan {
        match self {
            Agent::ClaudeCode { executable, gateway } => claude::launch(executable, gateway, ask),
            Agent::Codex { executable, gateway } => codex::launch(executable, gateway, ask),
            Agent::Acp { words } => acp::launch(words, ask),
            Agent::Command { words } => command::launch(words, ask),
            Agent::OpenAi(model) => openai::launch(model, ask),
            Agent::Script { file } => script::launch(file, ask),
        }
    }

    /// Returns the decoder for the output of the process that puts `ask` to this agent. It keeps
    /// the question: an agent is sent its prompt and held to its settings while it works.
    pub fn conversation(&self, ask: LaunchRequest) -> Box<dyn Conversation> {
        match self {
            Agent::ClaudeCode { .. } => Box::new(ClaudeConversation::new(ask)),
            Agent::Codex { .. } => Box::new(CodexConversation::new(ask)),
            Agent::Acp { .. } => Box::new(AcpConversation::new(ask)),
            Agent::Command { .. } => Box::new(CommandConversation::default()),
            Agent::OpenAi(_) => Box::new(OpenAiConversation::default()),
            Agent::Script { .. } => Box::new(ScriptConversation::default()),
        }
    }

    /// The prefixes of the environment variables that this agent inherits from the user.
    pub fn vendor_env_prefixes(&self) -> &'static [&'static str] {
        match self {
            Agent::ClaudeCode { .. } => &["ANTHROPIC_", "CLAUDE_"],
            Agent::Codex { .. } => &["OPENAI_", "CODEX_"],
            Agent::OpenAi(_) => &["OPENAI_"],
            // The program has no known vendor: `env_pass` names the variables that it needs.
            Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => &[],
        }
    }

    /// Whether the agent must not inherit the variable `name` of the user's environment. With
    /// another address or key configured, the user's own variables would lead elsewhere, or would
    /// show the user's key to whoever is at that address.
    pub fn withholds(&self, name: &str) -> bool {
        match self {
            Agent::ClaudeCode { gateway, .. } => is_withheld(name, gateway.way()),
            Agent::Codex { gateway, .. } => {
                gateway.base_url.is_some() && codex::OWN_WAY.contains(&name)
            }
            Agent::OpenAi(model) => model.key_variable().is_none() && name == API_KEY_ENV,
            Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => false,
        }
    }

    /// The address and the key with which the agent reaches its model; only some agents can be told
    /// others than their own.
    pub fn way(&self) -> GatewayWay {
        match self {
            Agent::ClaudeCode { gateway, .. } | Agent::Codex { gateway, .. } => gateway.way(),
            Agent::OpenAi(_) | Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => {
                GatewayWay::Own
            }
        }
    }

    /// The variable of the user's environment that holds this agent's key, and the name under which
    /// the agent looks for it.
    pub fn key_variable(&self) -> Option<(&str, &str)> {
        match self {
            Agent::ClaudeCode { gateway, .. } => {
                gateway.key_env.as_deref().map(|key| (key, claude::key_name(key)))
            }
            Agent::Codex { gateway, .. } => gateway.key_env.as_deref().map(|key| (key, key)),
            Agent::OpenAi(model) => model.key_variable().map(|key| (key, key)),
            Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => None,
        }
    }

    /// Whether a later launch can resume the session of an earlier one.
    pub fn keeps_sessions(&self) -> bool {
        match self {
            Agent::ClaudeCode { .. }
            | Agent::Codex { .. }
            | Agent::Acp { .. }
            | Agent::OpenAi(_) => true,
            Agent::Command { .. } | Agent::Script { .. } => false,
        }
    }
}

/// Whether an agent of this mode accepts messages from a person while it works.
pub fn listens(mode: Mode) -> bool {
    match mode {
        Mode::ClaudeCodeCli | Mode::Acp => true,
        Mode::CodexCli | Mode::Command | Mode::OpenaiApi | Mode::Script => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mode: Mode) -> AgentSettings<'static> {
        AgentSettings { mode, ..AgentSettings::default() }
    }

    #[test]
    fn who_is_said_to_listen_does_and_nobody_else() {
        for mode in Mode::ALL {
            let command = Some("agent");
            let script = Some(camino::Utf8Path::new("/agents.yml"));
            let given = AgentSettings { command, script, model: Some("m"), ..settings(mode) };
            let agent = Agent::new(given).unwrap();
            let mut conversation = agent.conversation(LaunchRequest::new("p", "/slot".into()));
            let answer = conversation.wish(crate::AgentMessage::Message("hello".into()));
            assert_eq!(answer != Err(crate::Deaf::Always), listens(mode), "{mode:?}");
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = Agent::new(settings(Mode::Command)).unwrap_err().to_string();
        assert_eq!(error, "mode command needs the key `command`");
        let error = Agent::new(settings(Mode::Acp)).unwrap_err().to_string();
        assert_eq!(error, "mode acp needs the key `command`");
        let error = Agent::new(settings(Mode::Script)).unwrap_err().to_string();
        assert_eq!(error, "mode script needs the key `script`");
        let error = Agent::new(settings(Mode::OpenaiApi)).unwrap_err().to_string();
        assert_eq!(error, "mode openai_api needs the key `model`");
        let empty = AgentSettings { command: Some(" "), ..settings(Mode::Command) };
        assert!(Agent::new(empty).unwrap_err().to_string().contains("it is empty"));
    }

    #[test]
    fn the_executable_of_the_configuration_is_used() {
        let named =
            AgentSettings { executable: Some("/opt/claude"), ..settings(Mode::ClaudeCodeCli) };
        assert_eq!(
            Agent::new(named).unwrap(),
            Agent::ClaudeCode { executable: "/opt/claude".into(), gateway: Gateway::default() }
        );
        assert_eq!(
            Agent::new(settings(Mode::CodexCli)).unwrap(),
            Agent::Codex { executable: "codex".into(), gateway: Gateway::default() }
        );
    }
}

//! Agents by name: those of the roles, the built-in kinds, and the user's own; and the options of a
//! goal's command line that change them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::nearest::nearest;
use super::{AgentConfig, Config, Mode, Role, read};

/// The number of agents that the user may name.
pub const AGENTS_MAX: usize = 64;
/// The longest name of an agent.
pub const AGENT_NAME_CHARS_MAX: usize = 64;

/// The kinds of agents that have a name without any configuration.
pub const KINDS: [(&str, Mode); 2] = [("claude", Mode::ClaudeCodeCli), ("codex", Mode::CodexCli)];

/// The agent and the model that a task names for its work, in place of the default ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkBy {
    /// One of [`Config::adapters`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model, in place of the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl WorkBy {
    /// Whether the task leaves the choice to the configuration.
    pub fn is_anybody(&self) -> bool {
        self.agent.is_none() && self.model.is_none()
    }
}

/// The options of a command line that override the configuration file. They stay with the run,
/// whatever the file says later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The name of the agent that does everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// The model of every agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether agents work without their own permission checks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub r#unsafe: bool,
    /// The directory for the files of the run: below the checkout, or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
}

/// A name that means no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no adapter `{name}`")]
pub struct UnknownAdapter {
    pub name: String,
    /// The names that do.
    pub known: BTreeSet<String>,
}

impl UnknownAdapter {
    /// The next step for the user: the likely name, and all known ones.
    pub fn help(&self) -> String {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let meant = nearest(&self.name, known.iter().copied());
        let meant = meant.map(|known| format!("did you mean `{known}`? ")).unwrap_or_default();
        format!(
            "{meant}known adapters: {}; define your own under `agents` in .autopilot/config.yml",
            known.join(", ")
        )
    }
}

impl AgentConfig {
    /// The agent and its fallbacks in the order of preference; never empty.
    pub fn candidates(&self) -> impl Iterator<Item = &AgentConfig> {
        std::iter::once(self).chain(&self.fallback)
    }

    /// The agent of a lane; the preferred one if the list has become shorter meanwhile.
    pub fn candidate(&self, lane: u32) -> &AgentConfig {
        self.candidates().nth(lane as usize).unwrap_or(self)
    }

    /// Returns the agent with another model. Fallbacks of the same kind with the same model get it
    /// too; another kind would not know it, and another model was chosen for its own sake.
    #[must_use]
    pub fn with_model(&self, model: &str) -> AgentConfig {
        let mut agent = self.clone();
        let follows = |other: &AgentConfig| other.mode == self.mode && other.model == self.model;
        for fallback in agent.fallback.iter_mut().filter(|fallback| follows(fallback)) {
            fallback.model = Some(model.to_owned());
        }
        agent.model = Some(model.to_owned());
        agent
    }
}

impl Config {
    /// The agent of a name: a role's, one that the user named, or the first of a kind that a role
    /// uses, else that kind without settings. The agent has the tools to change files.
    pub fn adapter(&self, name: &str) -> Option<AgentConfig> {
        let mut agent = match Role::ALL.into_iter().find(|role| role.word() == name) {
            Some(role) => self.agent(role).clone(),
            None => match self.agents.get(name) {
                Some(agent) => agent.clone(),
                None => self.of_kind(KINDS.iter().find(|(kind, _)| *kind == name)?.1),
            },
        };
        // An agent of a role that only reads was given no tools to work with.
        agent.fallback.iter_mut().for_each(read::able);
        read::able(&mut agent);
        Some(agent)
    }

    /// The names that [`Config::adapter`] knows.
    pub fn adapters(&self) -> BTreeSet<String> {
        reserved().map(str::to_owned).chain(self.agents.keys().cloned()).collect()
    }

    /// The agent that does a step of this role for a task, with its fallbacks.
    pub fn agent_by(&self, role: Role, by: &WorkBy) -> AgentConfig {
        let named = by.agent.as_deref().and_then(|name| self.adapter(name));
        let agent = named.unwrap_or_else(|| self.agent(role).clone());
        match &by.model {
            Some(model) => agent.with_model(model),
            None => agent,
        }
    }

    /// Returns this configuration with the options of a command line applied.
    pub fn with_options(&self, options: &Options) -> Result<Config, UnknownAdapter> {
        let mut config = self.clone();
        let before = KINDS.map(|(name, mode)| (name, mode, self.adapter(name)));
        if let Some(name) = &options.adapter {
            let unknown = || UnknownAdapter { name: name.clone(), known: self.adapters() };
            let agent = self.adapter(name).ok_or_else(unknown)?;
            Role::ALL.into_iter().for_each(|role| *config.agent_mut(role) = agent.clone());
        }
        if let Some(model) = &options.model {
            for role in Role::ALL {
                let agent = config.agent(role).with_model(model);
                *config.agent_mut(role) = agent;
            }
            // The options mean the named agent wherever its name is used.
            if let Some(named) =
                options.adapter.as_ref().and_then(|name| config.agents.get_mut(name))
            {
                *named = config.builder.clone();
            }
        }
        if options.adapter.is_some() || options.r#unsafe {
            // The settings of a kind that no role uses any more are still the user's.
            for (name, mode, agent) in before {
                let is_lost = !config.of_roles().any(|agent| agent.mode == mode);
                if let Some(agent) = agent.filter(|_| is_lost) {
                    config.agents.entry(name.to_owned()).or_insert(agent);
                }
            }
        }
        if options.r#unsafe {
            let Config { builder, reviewer, planner, agents, .. } = &mut config;
            for agent in [builder, reviewer, planner].into_iter().chain(agents.values_mut()) {
                agent.r#unsafe = true;
                agent.fallback.iter_mut().for_each(|agent| agent.r#unsafe = true);
            }
        }
        Ok(config)
    }

    fn of_kind(&self, mode: Mode) -> AgentConfig {
        let known = self.of_roles().find(|agent| agent.mode == mode).cloned();
        known.unwrap_or_else(|| read::of_kind(mode))
    }

    fn of_roles(&self) -> impl Iterator<Item = &AgentConfig> {
        Role::ALL.into_iter().flat_map(|role| self.candidates(role))
    }
}

/// The names that a user cannot give to an agent.
pub(super) fn reserved() -> impl Iterator<Item = &'static str> {
    Role::ALL.map(Role::word).into_iter().chain(KINDS.into_iter().map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = "commands: { tests: t }\n";

    fn config(text: &str) -> Config {
        match Config::parse(&format!("{MINIMAL}{text}")) {
            Ok((config, _)) => config,
            Err(faults) => panic!("{faults}"),
        }
    }

    fn faults(text: &str) -> String {
        Config::parse(&format!("{MINIMAL}{text}")).unwrap_err().to_string()
    }

    fn options(adapter: Option<&str>, model: Option<&str>) -> Options {
        let [adapter, model] = [adapter, model].map(|name| name.map(str::to_owned));
        Options { adapter, model, ..Options::default() }
    }

    #[test]
    fn agents_of_the_users_own_have_all_the_keys_of_an_agent() {
        let config = config(
            "agents:\n  fast: { mode: codex_cli, model: small, timeout_sec: 7, env: { A: b },\n    \
             fallback: [{ model: other }, { mode: claude_code_cli }] }\n",
        );
        let fast = config.adapter("fast").unwrap();
        assert_eq!((fast.mode, fast.model.as_deref()), (Mode::CodexCli, Some("small")));
        let modes: Vec<Mode> = fast.candidates().map(|agent| agent.mode).collect();
        assert_eq!(modes, [Mode::CodexCli, Mode::CodexCli, Mode::ClaudeCodeCli]);
        assert_eq!(fast.candidate(1).model.as_deref(), Some("other"));
        assert_eq!(fast.candidate(2).allowed_tools, ["Read", "Edit", "Bash"]);
        let known: Vec<String> = config.adapters().into_iter().collect();
        assert_eq!(known, ["builder", "claude", "codex", "fast", "planner", "reviewer"]);
        assert_eq!(config.all_agents().count(), 6);
    }

    #[test]
    fn faults_of_named_agents_are_told_with_their_place() {
        for (text, fault) in [
            (
                "agents:\n  fast: { mode: codex_cli, modell: x }\n",
                "line 3, column 28: unknown key `modell` in `agents.fast`; did you mean `model`?",
            ),
            (
                "agents:\n  fast: { model: x }\n",
                "line 3, column 3: `agents.fast.mode` is missing; write one of claude_code_cli",
            ),
            (
                "agents:\n  Codex: { mode: codex_cli }\n",
                "line 3, column 3: the name `codex` is reserved; choose another name for \
                 `agents.Codex`",
            ),
            ("agents:\n  acp: { mode: acp, command: x }\n", "the name `acp` is reserved"),
            ("agents:\n  reviewer: { mode: codex_cli }\n", "the name `reviewer` is reserved"),
            (
                "agents:\n  \"a b\": { mode: codex_cli }\n",
                "`a b` is not a valid agent name; use 1 to",
            ),
            ("agents:\n  -x: { mode: codex_cli }\n", "`-x` is not a valid agent name"),
            ("agents:\n  a/b: { mode: codex_cli }\n", "`a/b` is not a valid agent name"),
            (
                "agents: { api: { mode: openai_api, model: m } }\n",
                "`agents.api.mode: openai_api` can't edit files",
            ),
            (
                "agents: { x: { mode: command } }\n",
                "`agents.x.mode: command` requires `agents.x.command`",
            ),
            ("agents: [codex]\n", "`agents` is a list; write `name: { … }` lines"),
            (
                "agents: { x: { mode: codex_cli, fallback: [{ max_turns: 1 }] } }\n",
                "`agents.x.fallback.max_turns` has no effect with mode codex_cli",
            ),
        ] {
            let said = faults(text);
            assert!(said.contains(fault), "{text}\n{fault}\n{said}");
        }
        let long = "x".repeat(AGENT_NAME_CHARS_MAX);
        assert_eq!(
            config(&format!("agents: {{ {long}: {{ mode: codex_cli }} }}\n")).agents.len(),
            1
        );
        assert!(
            faults(&format!("agents: {{ {long}x: {{ mode: codex_cli }} }}\n"))
                .contains("not a valid agent name")
        );
        let many = |count: usize| {
            let lines = (0..count).map(|n| format!("  a{n}: {{ mode: codex_cli }}\n"));
            format!("agents:\n{}", lines.collect::<String>())
        };
        assert_eq!(config(&many(AGENTS_MAX)).agents.len(), AGENTS_MAX);
        let said = faults(&many(AGENTS_MAX + 1));
        assert!(said.contains("`agents` has 65 entries; write at most 64"), "{said}");
    }

    #[test]
    fn without_named_agents_a_configuration_is_what_it_was() {
        let text = serde_json::to_string(&config("")).unwrap();
        assert!(!text.contains("\"agents\""), "the digest of a pinned configuration would change");
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config(""));
    }

    #[test]
    fn a_kind_is_the_first_of_it_that_a_role_has() {
        let config = config(
            "builder: { mode: codex_cli, model: b }\nreviewer: { mode: claude_code_cli, model: r }\n",
        );
        assert_eq!(config.adapter("codex").unwrap().model.as_deref(), Some("b"));
        let claude = config.adapter("claude").unwrap();
        assert_eq!(claude.model.as_deref(), Some("r"));
        assert_eq!(
            claude.allowed_tools,
            ["Read", "Edit", "Bash"],
            "a reviewer has no tools to edit"
        );
        assert_eq!(config.adapter("nobody"), None);
    }

    #[test]
    fn the_adapter_of_the_command_line_is_everybody_and_the_others_keep_their_settings() {
        let file = config(
            "builder: { mode: claude_code_cli, executable: ./mine, model: b }\n\
             agents: { fast: { mode: codex_cli, model: f } }\n",
        );
        let config = file.with_options(&options(Some("fast"), Some("m"))).unwrap();
        for role in [Role::Builder, Role::Reviewer, Role::Planner] {
            let agent = config.agent(role);
            assert_eq!((agent.mode, agent.model.as_deref()), (Mode::CodexCli, Some("m")));
        }
        assert_eq!(config.adapter("fast").unwrap().model.as_deref(), Some("m"));
        let claude = config.adapter("claude").unwrap();
        assert_eq!(claude.executable.as_deref(), Some("./mine"));
        assert_eq!(claude.model.as_deref(), Some("b"));
        let unknown = file.with_options(&options(Some("fats"), None)).unwrap_err();
        assert_eq!(unknown.to_string(), "there is no adapter `fats`");
        assert!(
            unknown.help().starts_with("did you mean `fast`? known adapters: builder,"),
            "{}",
            unknown.help()
        );
        let out = Options { out: Some("x".into()), ..Options::default() };
        assert_eq!(file.with_options(&out).unwrap(), file);
    }

    #[test]
    fn unsafe_is_for_every_agent_a_step_may_name() {
        let text = "agents: { fast: { mode: script, script: x, fallback: [{ script: y }] } }\n\
                    reviewer: { mode: claude_code_cli }\nplanner: { mode: claude_code_cli }\n";
        let options = Options { r#unsafe: true, ..Options::default() };
        let config = config(text).with_options(&options).unwrap();
        for name in config.adapters() {
            let agent = config.adapter(&name).unwrap();
            assert!(agent.candidates().all(|agent| agent.r#unsafe), "{name}");
        }
    }

    #[test]
    fn another_model_is_followed_by_the_same_kind_with_the_same_model_only() {
        let config = config(
            "builder: { model: big, fallback: [{ env: { A: b } }, { model: small }, { mode: \
             codex_cli }] }\n",
        );
        let by = WorkBy { agent: None, model: Some("new".into()) };
        let agent = config.agent_by(Role::Builder, &by);
        let models: Vec<Option<&str>> = agent.candidates().map(|a| a.model.as_deref()).collect();
        assert_eq!(models, [Some("new"), Some("new"), Some("small"), None]);
        let gone = WorkBy { agent: Some("gone".into()), model: None };
        assert_eq!(config.agent_by(Role::Builder, &gone), config.builder, "of an older file");
    }
}

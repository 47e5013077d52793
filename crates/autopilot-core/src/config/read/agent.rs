//! Reads the section of one agent.

use std::collections::BTreeMap;

use super::section::{ConfigSection, is_variable};
use crate::config::adapter::{AGENT_NAME_CHARS_MAX, AGENTS_MAX, reserved};
use crate::config::text::SECONDS_MAX;
use crate::config::{
    API_KEY_ENV, AgentConfig, Api, FALLBACK_MAX, McpServer, Mode, SessionPolicy, SkillPolicy,
};
use crate::step::Role;

pub(super) fn read(top: &mut ConfigSection<'_>, role: Role) -> AgentConfig {
    top.inner(role.word(), |s| whole(s, role, &defaults(role)))
}

/// Reads the agents that the user has named. Steps of workflows change files, so these agents are
/// checked like a builder.
pub(super) fn named(top: &mut ConfigSection<'_>) -> BTreeMap<String, AgentConfig> {
    let agents = top.named("agents", |s| {
        name(s);
        if !s.has("mode") {
            let (section, modes) = (s.path_name(), Mode::ALL.map(Mode::word).join(", "));
            let text = format!("`{section}.mode` is missing; write one of {modes}");
            s.fault_at(s.place(), text);
        }
        whole(s, Role::Builder, &defaults(Role::Builder))
    });
    let agents = agents.unwrap_or_default();
    if agents.len() > AGENTS_MAX {
        let count = agents.len();
        top.fault_of("agents", format!("has {count} entries; write at most {AGENTS_MAX}"));
    }
    agents
}

/// Checks a name, which is written in command lines and workflows and must mean one agent only.
fn name(s: &ConfigSection<'_>) {
    let name = s.path_name().strip_prefix("agents.").unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_plain)
        && name.len() <= AGENT_NAME_CHARS_MAX;
    if !is_name {
        let text = format!(
            "`{name}` is not a valid agent name; use 1 to {AGENT_NAME_CHARS_MAX} of a-z, A-Z, 0-9, \
             `-` and `_`, starting with a letter"
        );
        s.fault_at(s.place(), text);
    }
    let mut taken = reserved().chain(Mode::ALL.map(Mode::word));
    if let Some(taken) = taken.find(|taken| taken.eq_ignore_ascii_case(name)) {
        let text =
            format!("the name `{taken}` is reserved; choose another name for `agents.{name}`");
        s.fault_at(s.place(), text);
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Reads an agent with its fallbacks.
fn whole(s: &mut ConfigSection<'_>, role: Role, or: &AgentConfig) -> AgentConfig {
    let agent = keys(s, role, or);
    let fallback = s.items("fallback", |s| {
        let base = if s.has("mode") { other_kind(role, &agent) } else { agent.clone() };
        keys(s, role, &base)
    });
    if fallback.len() > FALLBACK_MAX {
        let count = fallback.len();
        s.fault_of("fallback", format!("has {count} entries; write at most {FALLBACK_MAX}"));
    }
    AgentConfig { fallback, ..agent }
}

/// Reads the keys of one agent; keys that are not given are taken from `or`.
fn keys(s: &mut ConfigSection<'_>, role: Role, or: &AgentConfig) -> AgentConfig {
    let place = s.address("base_url");
    // A key is meant for the address that it was given with.
    let is_elsewhere = place.is_some() && place != or.base_url;
    let inherited = or.api_key_env.clone().filter(|_| !is_elsewhere);
    let or = or.clone();
    let agent = AgentConfig {
        mode: s.choice("mode", &Mode::ALL, Mode::row, or.mode),
        command: s.command("command").or(or.command),
        script: s.path("script").or(or.script),
        model: s.filled("model").or(or.model),
        effort: s.filled("effort").or(or.effort),
        args: s.words("args").unwrap_or(or.args),
        env: s.environment("env").unwrap_or(or.env),
        env_pass: s.variables("env_pass").unwrap_or(or.env_pass),
        executable: s.filled("executable").or(or.executable),
        timeout_sec: s.given_number("timeout_sec", 1..=SECONDS_MAX).or(or.timeout_sec),
        max_usd: s.some_money("max_usd").or(or.max_usd),
        schema_path: s.path("schema_path").or(or.schema_path),
        allowed_tools: s.words("allowed_tools").unwrap_or(or.allowed_tools),
        skill_policy: s.inner("skill_policy", |s| skill_policy(s, or.skill_policy)),
        network: s.flag("network", or.network),
        fallback: Vec::new(),
        base_url: place.or(or.base_url),
        api_key_env: api_key_env(s).or(inherited),
        api: s.choice("api", &Api::ALL, Api::row, or.api),
        mcp_servers: mcp_servers(s).unwrap_or(or.mcp_servers),
        system_prompt: s.filled("system_prompt").or(or.system_prompt),
        max_turns: s.given_number("max_turns", 1..=10_000).or(or.max_turns),
        disallowed_tools: s.words("disallowed_tools").unwrap_or(or.disallowed_tools),
        r#unsafe: s.flag("unsafe", or.r#unsafe),
        fs: s.flag("fs", or.fs),
        session: session(s, role, or.session),
    };
    needs(s, &agent);
    useless(s, &agent);
    unkept(s, &agent);
    key_needs_address(s, &agent);
    address_in_env(s, &agent);
    writes(s, role, agent.mode);
    agent
}

/// A kind of agent without any settings.
pub fn of_kind(mode: Mode) -> AgentConfig {
    let like = if mode == Mode::ClaudeCodeCli { Role::Builder } else { Role::Planner };
    AgentConfig { mode, schema_path: None, ..defaults(like) }
}

/// Gives an agent without allowed tools those of a builder.
pub fn able(agent: &mut AgentConfig) {
    if agent.allowed_tools.is_empty() {
        agent.allowed_tools = defaults(Role::Builder).allowed_tools;
    }
}

fn defaults(role: Role) -> AgentConfig {
    let (mode, schema, allowed_tools): (_, _, &[&str]) = match role {
        Role::Builder => (Mode::ClaudeCodeCli, None, &["Read", "Edit", "Bash"]),
        Role::Reviewer => (Mode::CodexCli, Some(".autopilot/review_schema.json"), &[]),
        Role::Planner => (Mode::CodexCli, Some(".autopilot/plan_schema.json"), &[]),
    };
    AgentConfig {
        mode,
        schema_path: schema.map(str::to_owned),
        allowed_tools: allowed_tools.iter().map(|&tool| tool.to_owned()).collect(),
        skill_policy: SkillPolicy {
            detect_skills: true,
            allow_upscale: true,
            use_mcp: true,
            max_subagents: 4,
            require_skill_plan: true,
        },
        network: true,
        ..AgentConfig::default()
    }
}

/// The base of a fallback of another kind. It keeps the settings that hold for the work, whoever
/// does it: a tool or network that was forbidden to the first must not be free to the second.
fn other_kind(role: Role, first: &AgentConfig) -> AgentConfig {
    AgentConfig {
        timeout_sec: first.timeout_sec,
        max_usd: first.max_usd,
        schema_path: first.schema_path.clone(),
        allowed_tools: first.allowed_tools.clone(),
        disallowed_tools: first.disallowed_tools.clone(),
        skill_policy: first.skill_policy,
        network: first.network,
        session: first.session,
        system_prompt: first.system_prompt.clone(),
        ..defaults(role)
    }
}

/// Reads `session`, which only builders have: whoever judges is always asked in a new session.
fn session(s: &mut ConfigSection<'_>, role: Role, or: SessionPolicy) -> SessionPolicy {
    if s.has("session") && role != Role::Builder {
        let role = role.word();
        s.fault_of("session", format!("is for builders; a {role} always gets a new session"));
    }
    s.choice("session", &SessionPolicy::ALL, SessionPolicy::row, or)
}

fn skill_policy(s: &mut ConfigSection<'_>, or: SkillPolicy) -> SkillPolicy {
    SkillPolicy {
        detect_skills: s.flag("detect_skills", or.detect_skills),
        allow_upscale: s.flag("allow_upscale", or.allow_upscale),
        use_mcp: s.flag("use_mcp", or.use_mcp),
        max_subagents: s.number("max_subagents", 0..=64, or.max_subagents),
        require_skill_plan: s.flag("require_skill_plan", or.require_skill_plan),
    }
}

fn api_key_env(s: &mut ConfigSection<'_>) -> Option<String> {
    let name = s.filled("api_key_env")?;
    if !is_variable(&name) {
        // The value is not shown: it may be the key itself.
        let text = format!(
            "is not a valid environment variable name; write the name, as in `{API_KEY_ENV}`, and \
             keep the key in the environment"
        );
        s.fault_of("api_key_env", text);
    }
    Some(name)
}

/// Reads `mcp_servers`; `None` if the key is not there.
fn mcp_servers(s: &mut ConfigSection<'_>) -> Option<BTreeMap<String, McpServer>> {
    let servers = s.named("mcp_servers", mcp_server)?;
    // The name of a server becomes part of the names of its tools.
    for name in servers.keys().filter(|name| name.is_empty() || !name.chars().all(is_plain)) {
        let text = format!("`{name}` is not a valid MCP server name; use a-z, 0-9, `_` and `-`");
        s.fault("mcp_servers", text);
    }
    Some(servers)
}

fn mcp_server(s: &mut ConfigSection<'_>) -> McpServer {
    let (url, command) = (s.address("url"), s.command("command"));
    let args = s.words("args").unwrap_or_default();
    let env = s.environment("env").unwrap_or_default();
    match (command, url) {
        (Some(command), None) => McpServer::Command { command, args, env },
        (None, Some(url)) => {
            if let Some(key) = ["args", "env"].iter().find(|key| s.has(key)) {
                s.fault_of(key, "has no effect with `url`; remove it");
            }
            McpServer::Url { url }
        }
        (command, url) => {
            let (why, section) =
                (if command.is_some() { "both" } else { "neither" }, s.path_name());
            let text = format!("`{section}` has {why} of `command` and `url`; write one of them");
            s.fault("command", text);
            McpServer::Url { url: url.unwrap_or_default() }
        }
    }
}

/// Reports a key that the mode requires and that is missing.
fn needs(s: &ConfigSection<'_>, agent: &AgentConfig) {
    let (key, is_given, example) = match agent.mode {
        Mode::Command => ("command", agent.command.is_some(), "./my-agent.sh"),
        Mode::Acp => ("command", agent.command.is_some(), "opencode acp"),
        Mode::Script => ("script", agent.script.is_some(), "agents.yml"),
        Mode::OpenaiApi => ("model", agent.model.is_some(), "gpt-5.5"),
        Mode::ClaudeCodeCli | Mode::CodexCli => return,
    };
    if !is_given {
        let (section, mode) = (s.path_name(), agent.mode.word());
        let text = format!(
            "`{section}.mode: {mode}` requires `{section}.{key}`, as in `{key}: \"{example}\"`"
        );
        s.fault("mode", text);
    }
}

/// Reports a key without an address: Codex may have any address in its own settings, and the key is
/// for none of them.
fn key_needs_address(s: &ConfigSection<'_>, agent: &AgentConfig) {
    if let (Mode::CodexCli, Some(_), None) = (agent.mode, &agent.api_key_env, &agent.base_url) {
        let section = s.path_name();
        let text = format!("requires `{section}.base_url`, the address that the key is for");
        s.fault_of("api_key_env", text);
    }
}

/// Reports an address among the variables, because it would be sent the user's own key.
fn address_in_env(s: &ConfigSection<'_>, agent: &AgentConfig) {
    let variable = match agent.mode {
        Mode::ClaudeCodeCli => "ANTHROPIC_BASE_URL",
        Mode::CodexCli => "OPENAI_BASE_URL",
        Mode::OpenaiApi | Mode::Acp | Mode::Command | Mode::Script => return,
    };
    if s.has("env") && agent.env.contains_key(variable) {
        let section = s.path_name();
        let text = format!(
            "sets {variable}; write the address as `{section}.base_url`, and the variable that \
             holds its key as `{section}.api_key_env`"
        );
        s.fault_of("env", text);
    }
}

/// Reports keys that would be accepted and never used.
fn useless(s: &ConfigSection<'_>, agent: &AgentConfig) {
    let kept = KeptSettings::by(agent.mode);
    let keys = [
        ("base_url", agent.base_url.is_some() && !kept.address),
        ("api_key_env", agent.api_key_env.is_some() && !kept.address),
        ("api", agent.api != Api::Auto && agent.mode != Mode::OpenaiApi),
        ("mcp_servers", !agent.mcp_servers.is_empty() && !kept.mcp),
        ("fs", agent.fs && agent.mode != Mode::Acp),
        ("effort", s.has("effort") && !kept.effort),
        ("max_turns", s.has("max_turns") && agent.mode != Mode::ClaudeCodeCli),
        ("allowed_tools", s.has("allowed_tools") && agent.mode != Mode::ClaudeCodeCli),
        (
            "disallowed_tools",
            s.has("disallowed_tools") && !agent.disallowed_tools.is_empty() && !kept.tools,
        ),
        ("network", s.has("network") && !agent.network && !kept.network),
    ];
    for (key, _) in keys.iter().filter(|(_, useless)| *useless) {
        let mode = agent.mode.word();
        s.fault_of(key, format!("has no effect with mode {mode}; remove it"));
    }
}

/// The settings that an agent of a mode enforces.
struct KeptSettings {
    /// Covers `base_url` and `api_key_env`.
    address: bool,
    mcp: bool,
    effort: bool,
    /// Covers `disallowed_tools`.
    tools: bool,
    /// Covers `network: false`.
    network: bool,
    /// Whether the agent has tools to forbid.
    has_tools: bool,
}

impl KeptSettings {
    fn by(mode: Mode) -> KeptSettings {
        let (cli, acp, api) = match mode {
            Mode::ClaudeCodeCli | Mode::CodexCli => (true, false, false),
            Mode::Acp => (false, true, false),
            Mode::OpenaiApi => (false, false, true),
            Mode::Command | Mode::Script => (false, false, false),
        };
        KeptSettings {
            address: cli || api,
            mcp: cli || acp,
            effort: cli || acp || api,
            tools: mode == Mode::ClaudeCodeCli || acp,
            // A model behind an API has no tools, so none that reach the network.
            network: cli || acp || api,
            has_tools: !api,
        }
    }
}

/// Reports a restriction of the first agent that a fallback of another kind would not enforce.
fn unkept(s: &ConfigSection<'_>, agent: &AgentConfig) {
    let kept = KeptSettings::by(agent.mode);
    let keys = [
        (
            "disallowed_tools",
            !agent.disallowed_tools.is_empty() && !kept.tools && kept.has_tools,
            "disallowed_tools: []",
        ),
        ("network", !agent.network && !kept.network, "network: true"),
    ];
    for (key, _, free) in keys.iter().filter(|(key, unkept, _)| *unkept && !s.has(key)) {
        let (section, mode) = (s.path_name(), agent.mode.word());
        let message = format!(
            "`{section}` (mode {mode}) can't enforce `{key}` of the agent it replaces; \
             write `{free}` here to allow that, or use another mode"
        );
        s.fault("mode", message);
    }
}

/// Reports a builder that cannot edit: the answer of a model changes no file.
fn writes(s: &ConfigSection<'_>, role: Role, mode: Mode) {
    if let (Role::Builder, Mode::OpenaiApi) = (role, mode) {
        let section = s.path_name();
        let text = "can't edit files; use it for planner and reviewer";
        s.fault("mode", format!("`{section}.mode: openai_api` {text}"));
    }
}

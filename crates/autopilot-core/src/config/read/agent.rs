//! Reads the section of one agent.

use std::collections::BTreeMap;

use super::is_http;
use super::section::{ConfigReader, ConfigSection};
use crate::config::adapter::{AGENT_NAME_CHARS_MAX, AGENTS_MAX, reserved};
use crate::config::text::SECONDS_MAX;
use crate::config::{API_KEY_ENV, AgentConfig, Api, FALLBACK_MAX, McpServer, Mode, SkillPolicy};
use crate::step::Role;

const APIS: &[(&str, Api)] =
    &[("auto", Api::Auto), ("responses", Api::Responses), ("chat", Api::Chat)];

pub(super) fn read(r: &mut ConfigReader, top: &mut ConfigSection<'_>, role: Role) -> AgentConfig {
    top.inner(r, section(role), |r, s| whole(r, s, role, &defaults(role)))
}

/// Reads the agents that the user has named. Steps of workflows change files, so these agents are
/// checked like a builder.
pub(super) fn named(
    r: &mut ConfigReader,
    top: &mut ConfigSection<'_>,
) -> BTreeMap<String, AgentConfig> {
    let place = top.place_of("agents");
    let agents = top.named(r, "agents", |r, s| {
        name(r, s);
        if !s.has("mode") {
            let (section, modes) = (s.path_name(), Mode::ALL.map(Mode::word).join(", "));
            let text = format!("`{section}.mode` is missing; write one of {modes}");
            r.fault(s.place(), text);
        }
        whole(r, s, Role::Builder, &defaults(Role::Builder))
    });
    if agents.len() > AGENTS_MAX {
        let count = agents.len();
        r.fault(place, format!("`agents` has {count} entries; write at most {AGENTS_MAX}"));
    }
    agents.into_iter().collect()
}

/// Checks a name, which is written in command lines and workflows and must mean one agent only.
fn name(r: &mut ConfigReader, s: &ConfigSection<'_>) {
    let name = s.path_name().strip_prefix("agents.").unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(plain)
        && name.len() <= AGENT_NAME_CHARS_MAX;
    if !is_name {
        r.fault(
            s.place(),
            format!(
                "`{name}` is not a valid agent name; use 1 to {AGENT_NAME_CHARS_MAX} of a-z, A-Z, \
                 0-9, `-` and `_`, starting with a letter"
            ),
        );
    }
    let mut taken = reserved().chain(Mode::ALL.map(Mode::word));
    if let Some(taken) = taken.find(|taken| taken.eq_ignore_ascii_case(name)) {
        r.fault(
            s.place(),
            format!("the name `{taken}` is reserved; choose another name for `agents.{name}`"),
        );
    }
}

/// Reads an agent with its fallbacks.
fn whole(
    r: &mut ConfigReader,
    s: &mut ConfigSection<'_>,
    role: Role,
    or: &AgentConfig,
) -> AgentConfig {
    let agent = keys(r, s, role, or);
    let place = s.place_of("fallback");
    let fallback = s.items(r, "fallback", |r, s| {
        let base = if s.has("mode") { other_kind(role, &agent) } else { agent.clone() };
        keys(r, s, role, &base)
    });
    if fallback.len() > FALLBACK_MAX {
        let (section, count) = (s.path_name(), fallback.len());
        r.fault(
            place,
            format!("`{section}.fallback` has {count} entries; write at most {FALLBACK_MAX}"),
        );
    }
    AgentConfig { fallback, ..agent }
}

/// Reads the keys of one agent; keys that are not given are taken from `or`.
fn keys(
    r: &mut ConfigReader,
    s: &mut ConfigSection<'_>,
    role: Role,
    or: &AgentConfig,
) -> AgentConfig {
    let place = address(r, s, "base_url");
    // A key is meant for the address that it was given with.
    let is_elsewhere = place.is_some() && place != or.base_url;
    let inherited = or.api_key_env.clone().filter(|_| !is_elsewhere);
    let agent = AgentConfig {
        mode: s.choice(r, "mode", &Mode::ALL.map(|mode| (mode.word(), mode)), or.mode),
        command: s.command(r, "command").or_else(|| or.command.clone()),
        script: s.path(r, "script").or_else(|| or.script.clone()),
        model: s.filled(r, "model").or_else(|| or.model.clone()),
        effort: s.filled(r, "effort").or_else(|| or.effort.clone()),
        args: s.words(r, "args", &strs(&or.args)),
        env: env(r, s).unwrap_or_else(|| or.env.clone()),
        env_pass: variables(r, s, "env_pass", &or.env_pass),
        executable: s.filled(r, "executable").or_else(|| or.executable.clone()),
        timeout_sec: s.given_number(r, "timeout_sec", 1..=SECONDS_MAX).or(or.timeout_sec),
        max_usd: s.some_money(r, "max_usd").or(or.max_usd),
        schema_path: s.path(r, "schema_path").or_else(|| or.schema_path.clone()),
        allowed_tools: s.words(r, "allowed_tools", &strs(&or.allowed_tools)),
        skill_policy: s.inner(r, "skill_policy", |r, s| skill_policy(r, s, or.skill_policy)),
        network: s.flag(r, "network", or.network),
        fallback: Vec::new(),
        base_url: place.or_else(|| or.base_url.clone()),
        api_key_env: api_key_env(r, s).or(inherited),
        api: s.choice(r, "api", APIS, or.api),
        mcp_servers: mcp_servers(r, s).unwrap_or_else(|| or.mcp_servers.clone()),
        system_prompt: s.filled(r, "system_prompt").or_else(|| or.system_prompt.clone()),
        max_turns: s.given_number(r, "max_turns", 1..=10_000).or(or.max_turns),
        disallowed_tools: s.words(r, "disallowed_tools", &strs(&or.disallowed_tools)),
        r#unsafe: s.flag(r, "unsafe", or.r#unsafe),
        fs: s.flag(r, "fs", or.fs),
    };
    needs(r, s, &agent);
    useless(r, s, &agent);
    unkept(r, s, &agent);
    key_needs_address(r, s, &agent);
    address_in_env(r, s, &agent);
    writes(r, s, role, agent.mode);
    agent
}

fn section(role: Role) -> &'static str {
    match role {
        Role::Builder => "builder",
        Role::Reviewer => "reviewer",
        Role::Planner => "planner",
    }
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
        command: None,
        script: None,
        model: None,
        effort: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        env_pass: Vec::new(),
        executable: None,
        timeout_sec: None,
        max_usd: None,
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
        fallback: Vec::new(),
        base_url: None,
        api_key_env: None,
        api: Api::Auto,
        mcp_servers: BTreeMap::new(),
        system_prompt: None,
        max_turns: None,
        disallowed_tools: Vec::new(),
        r#unsafe: false,
        fs: false,
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
        system_prompt: first.system_prompt.clone(),
        ..defaults(role)
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn skill_policy(r: &mut ConfigReader, s: &mut ConfigSection<'_>, or: SkillPolicy) -> SkillPolicy {
    SkillPolicy {
        detect_skills: s.flag(r, "detect_skills", or.detect_skills),
        allow_upscale: s.flag(r, "allow_upscale", or.allow_upscale),
        use_mcp: s.flag(r, "use_mcp", or.use_mcp),
        max_subagents: s.number(r, "max_subagents", 0..=64, or.max_subagents),
        require_skill_plan: s.flag(r, "require_skill_plan", or.require_skill_plan),
    }
}

/// Reads `env`; `None` if the key is not there.
fn env(r: &mut ConfigReader, s: &mut ConfigSection<'_>) -> Option<BTreeMap<String, String>> {
    let given = s.has("env");
    let pairs = s.pairs(r, "env");
    for (name, _, place) in pairs.iter().filter(|(name, ..)| !is_variable(name)) {
        r.fault(*place, format!("`{name}` is not a valid environment variable name"));
    }
    given.then(|| pairs.into_iter().map(|(name, value, _)| (name, value)).collect())
}

fn variables(
    r: &mut ConfigReader,
    s: &mut ConfigSection<'_>,
    key: &'static str,
    or: &[String],
) -> Vec<String> {
    let given = s.has(key);
    let names = s.variables(r, key);
    if given { names } else { or.to_vec() }
}

fn address(r: &mut ConfigReader, s: &mut ConfigSection<'_>, key: &'static str) -> Option<String> {
    let place = s.place_of(key);
    let url = s.filled(r, key)?;
    if !is_http(&url) {
        let section = s.path_name();
        r.fault(place, format!("`{section}.{key}` is `{url}`; write `https://…`"));
    }
    Some(url)
}

fn api_key_env(r: &mut ConfigReader, s: &mut ConfigSection<'_>) -> Option<String> {
    let place = s.place_of("api_key_env");
    let name = s.filled(r, "api_key_env")?;
    if !is_variable(&name) {
        // The value is not shown: it may be the key itself.
        r.fault(
            place,
            format!(
                "`{}.api_key_env` is not a valid environment variable name; write the name, as in \
                 `{API_KEY_ENV}`, and keep the key in the environment",
                s.path_name()
            ),
        );
    }
    Some(name)
}

/// Reads `mcp_servers`; `None` if the key is not there.
fn mcp_servers(
    r: &mut ConfigReader,
    s: &mut ConfigSection<'_>,
) -> Option<BTreeMap<String, McpServer>> {
    let given = s.has("mcp_servers");
    let place = s.place_of("mcp_servers");
    let servers = s.named(r, "mcp_servers", mcp_server);
    // The name of a server becomes part of the names of its tools.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    for (name, _) in servers.iter().filter(|(name, _)| name.is_empty() || !name.chars().all(plain))
    {
        r.fault(
            place,
            format!("`{name}` is not a valid MCP server name; use a-z, 0-9, `_` and `-`"),
        );
    }
    given.then(|| servers.into_iter().collect())
}

fn mcp_server(r: &mut ConfigReader, s: &mut ConfigSection<'_>) -> McpServer {
    let place = s.place_of("command");
    let url = address(r, s, "url");
    let command = s.command(r, "command");
    let (args, env) = (s.words(r, "args", &[]), env(r, s).unwrap_or_default());
    let section = s.path_name().to_owned();
    match (command, url) {
        (Some(command), None) => McpServer::Command { command, args, env },
        (None, Some(url)) => {
            if let Some(key) = ["args", "env"].iter().find(|key| s.has(key)) {
                let place = s.place_of(key);
                r.fault(place, format!("`{section}.{key}` has no effect with `url`; remove it"));
            }
            McpServer::Url { url }
        }
        (command, url) => {
            let why = if command.is_some() { "both" } else { "neither" };
            r.fault(
                place,
                format!("`{section}` has {why} of `command` and `url`; write one of them"),
            );
            McpServer::Url { url: url.unwrap_or_default() }
        }
    }
}

pub(super) fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Reports a key that the mode requires and that is missing.
fn needs(r: &mut ConfigReader, s: &ConfigSection<'_>, agent: &AgentConfig) {
    let (mode, key, example) = match agent.mode {
        Mode::Command if agent.command.is_none() => ("command", "command", "./my-agent.sh"),
        Mode::Acp if agent.command.is_none() => ("acp", "command", "opencode acp"),
        Mode::Script if agent.script.is_none() => ("script", "script", "agents.yml"),
        Mode::OpenaiApi if agent.model.is_none() => ("openai_api", "model", "gpt-5.5"),
        Mode::ClaudeCodeCli
        | Mode::CodexCli
        | Mode::OpenaiApi
        | Mode::Acp
        | Mode::Command
        | Mode::Script => return,
    };
    let section = s.path_name();
    r.fault(
        s.place_of("mode"),
        format!(
            "`{section}.mode: {mode}` requires `{section}.{key}`, as in `{key}: \"{example}\"`"
        ),
    );
}

/// Reports a key without an address: Codex may have any address in its own settings, and the key is
/// for none of them.
fn key_needs_address(r: &mut ConfigReader, s: &ConfigSection<'_>, agent: &AgentConfig) {
    let (Mode::CodexCli, Some(_), None) = (agent.mode, &agent.api_key_env, &agent.base_url) else {
        return;
    };
    let section = s.path_name();
    r.fault(
        s.place_of("api_key_env"),
        format!(
            "`{section}.api_key_env` requires `{section}.base_url`, the address that the key is for"
        ),
    );
}

/// Reports an address among the variables, because it would be sent the user's own key.
fn address_in_env(r: &mut ConfigReader, s: &ConfigSection<'_>, agent: &AgentConfig) {
    let variable = match agent.mode {
        Mode::ClaudeCodeCli => "ANTHROPIC_BASE_URL",
        Mode::CodexCli => "OPENAI_BASE_URL",
        Mode::OpenaiApi | Mode::Acp | Mode::Command | Mode::Script => return,
    };
    if s.has("env") && agent.env.contains_key(variable) {
        let section = s.path_name();
        r.fault(
            s.place_of("env"),
            format!(
                "`{section}.env` sets {variable}; write the address as `{section}.base_url`, and the \
                 variable that holds its key as `{section}.api_key_env`"
            ),
        );
    }
}

/// Reports keys that would be accepted and never used.
fn useless(r: &mut ConfigReader, s: &ConfigSection<'_>, agent: &AgentConfig) {
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
        let section = s.path_name();
        r.fault(
            s.place_of(key),
            format!("`{section}.{key}` has no effect with mode {mode}; remove it"),
        );
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
fn unkept(r: &mut ConfigReader, s: &ConfigSection<'_>, agent: &AgentConfig) {
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
        r.fault(s.place_of("mode"), message);
    }
}

/// Reports a builder that cannot edit: the answer of a model changes no file.
fn writes(r: &mut ConfigReader, s: &ConfigSection<'_>, role: Role, mode: Mode) {
    let (Role::Builder, Mode::OpenaiApi) = (role, mode) else { return };
    r.fault(
        s.place_of("mode"),
        format!(
            "`{}.mode: openai_api` can't edit files; use it for planner and reviewer",
            s.path_name()
        ),
    );
}

//! The environment variables of agents and commands: those they need, and no secrets of others.

mod gate;
pub mod reporter;
mod user_tool;

pub use gate::{GateRoom, is_of_session, kept_from_gates, of_gate, user_home};
pub use user_tool::{VERSION_BYTES_MAX, chosen_versions, python_path_files};

use autopilot_agents::{Agent, LaunchPlan};
use autopilot_core::config::{API_KEY_ENV, AgentConfig, Config, McpServer};
use std::collections::BTreeMap;

/// Environment variables by name.
pub type Variables = BTreeMap<String, String>;

/// Variables that any program needs to run and to reach the network.
const NEEDED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
];

/// Prefixes of further needed variables: the locale settings.
const NEEDED_PREFIXES: &[&str] = &["LC_"];

/// Prefixes of variables that nothing inherits: Autopilot's, git's and the dynamic loader's.
const WITHHELD_PREFIXES: &[&str] = &["AUTOPILOT_", "GIT_", "LD_"];

/// The variables an agent starts with. Where the configuration names another address or key, the
/// user's own are left out.
pub fn for_agent(
    ours: &Variables,
    agent: &Agent,
    config: &AgentConfig,
    plan: &LaunchPlan,
) -> Variables {
    let mut variables = of_agent(ours, agent.vendor_env_prefixes(), &config.env_pass);
    let is_named = |name: &str| config.env_pass.iter().any(|passed| passed == name);
    variables.retain(|name, _| !agent.withholds(name) || is_named(name));
    variables.extend(plan.env.iter().cloned());
    if let Some((variable, name)) = agent.key_variable()
        && let Some(key) = ours.get(variable)
    {
        variables.insert(name.to_owned(), key.clone());
    }
    variables.extend(config.env.clone());
    variables
}

/// The inherited variables of an agent: the needed ones, its vendor's, and those in `env_pass`.
pub fn of_agent(ours: &Variables, vendor_prefixes: &[&str], pass: &[String]) -> Variables {
    let wanted = |name: &str| {
        NEEDED.contains(&name)
            || starts(name, NEEDED_PREFIXES)
            || starts(name, vendor_prefixes)
            || pass.iter().any(|passed| passed == name)
    };
    inherited(ours, wanted)
}

/// The inherited variables of the user's own commands: everything but secrets, because these
/// commands run code that an agent wrote.
pub fn of_command(ours: &Variables, is_secret: impl Fn(&str) -> bool) -> Variables {
    inherited(ours, |name| !is_secret(name))
}

fn inherited(ours: &Variables, wanted: impl Fn(&str) -> bool) -> Variables {
    let ours = ours.iter().filter(|(name, _)| wanted(name) && !starts(name, WITHHELD_PREFIXES));
    ours.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The names of variables that hold API keys according to the configuration.
pub fn key_variables(config: &Config) -> impl Iterator<Item = &str> {
    config.all_agents().filter_map(|agent| agent.api_key_env.as_deref()).chain([API_KEY_ENV])
}

/// Variables that the configuration sets for, or passes on to, agents and their MCP servers.
pub fn given(config: &Config, ours: &Variables) -> Vec<(String, String)> {
    let mut given = Vec::new();
    for agent in config.all_agents() {
        given.extend(agent.env.clone());
        let passed = agent.env_pass.iter().filter_map(|name| ours.get_key_value(name));
        given.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
        for server in agent.mcp_servers.values() {
            match server {
                McpServer::Command { env, .. } => given.extend(env.clone()),
                McpServer::Url { url } => given.push((String::new(), url.clone())),
            }
        }
    }
    given
}

fn starts(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Variables {
        let pairs = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "sk-1"),
            ("GITHUB_TOKEN", "gh"),
            ("AUTOPILOT_TOKEN", "ours"),
            ("GIT_DIR", "/elsewhere"),
            ("DATABASE_URL", "postgres://x"),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn names(variables: &Variables) -> Vec<&str> {
        variables.keys().map(String::as_str).collect()
    }

    #[test]
    fn an_agent_gets_its_vendors_variables_and_no_other_secret() {
        let given = of_agent(&ours(), &["ANTHROPIC_"], &[]);
        assert_eq!(names(&given), ["ANTHROPIC_API_KEY", "LC_ALL", "PATH"]);
        let given = of_agent(&ours(), &[], &["DATABASE_URL".into(), "AUTOPILOT_TOKEN".into()]);
        assert_eq!(names(&given), ["DATABASE_URL", "LC_ALL", "PATH"]);
    }

    #[test]
    fn a_command_gets_everything_but_secrets() {
        let secret = |name: &str| name.contains("TOKEN") || name.contains("KEY");
        assert_eq!(names(&of_command(&ours(), secret)), ["DATABASE_URL", "LC_ALL", "PATH"]);
    }

    /// The variables an agent section with these keys gets from an environment full of keys.
    fn given(keys: &str) -> Variables {
        let text = format!("commands: {{ tests: t }}\nreviewer: {{ {keys} }}\n");
        let (config, _) = Config::parse(&text).unwrap();
        let config = config.reviewer;
        let agent = crate::job::agent_of(&config, "/root".into()).unwrap();
        let plan = agent.launch(&autopilot_agents::LaunchRequest::new("", "/root".into()));
        let ours = [
            ("ANTHROPIC_API_KEY", "own-1"),
            ("ANTHROPIC_AUTH_TOKEN", "own-2"),
            ("ANTHROPIC_BASE_URL", "http://own"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "own-3"),
            ("OPENAI_API_KEY", "own-4"),
            ("CODEX_API_KEY", "own-5"),
            ("OPENAI_BASE_URL", "http://own"),
            ("GATEWAY_KEY", "gate"),
        ];
        let ours = ours.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        for_agent(&ours.collect(), &agent, &config, &plan)
    }

    fn has_own(variables: &Variables) -> bool {
        variables.values().any(|value| value.contains("own"))
    }

    #[test]
    fn another_address_gets_the_named_key_and_none_of_the_users_own() {
        let address = "base_url: 'https://g.example', api_key_env: GATEWAY_KEY";
        let claude = given(&format!("mode: claude_code_cli, {address}"));
        assert_eq!(claude["ANTHROPIC_BASE_URL"], "https://g.example");
        assert_eq!(claude["ANTHROPIC_API_KEY"], "gate");
        let codex = given(&format!("mode: codex_cli, {address}"));
        assert_eq!(codex["GATEWAY_KEY"], "gate");
        let api = given(&format!("mode: openai_api, model: m, {address}"));
        assert_eq!(api["GATEWAY_KEY"], "gate");
        assert!(!has_own(&claude) && !has_own(&codex), "{claude:?} {codex:?}");

        let keyless = "base_url: 'http://127.0.0.1:1'";
        let claude = given(&format!("mode: claude_code_cli, {keyless}"));
        assert_eq!(claude["ANTHROPIC_API_KEY"], "none");
        let codex = given(&format!("mode: codex_cli, {keyless}"));
        assert!(!has_own(&claude) && !has_own(&codex), "{claude:?} {codex:?}");
        let api = given(&format!("mode: openai_api, model: m, {keyless}"));
        assert!(!api.contains_key("OPENAI_API_KEY"), "{api:?}");
    }

    #[test]
    fn another_key_alone_takes_the_place_of_the_users_own() {
        let claude = given("mode: claude_code_cli, api_key_env: GATEWAY_KEY");
        assert_eq!(claude["ANTHROPIC_API_KEY"], "gate");
        assert_eq!(claude["ANTHROPIC_BASE_URL"], "http://own");
        assert!(!claude.contains_key("ANTHROPIC_AUTH_TOKEN"), "{claude:?}");
        assert_eq!(given("mode: claude_code_cli")["ANTHROPIC_API_KEY"], "own-1");
        assert_eq!(given("mode: codex_cli")["CODEX_API_KEY"], "own-5");
        // A token that `api_key_env` names is sent as a token.
        let named =
            "mode: claude_code_cli, base_url: 'http://h', api_key_env: ANTHROPIC_AUTH_TOKEN";
        let claude = given(named);
        assert_eq!(claude["ANTHROPIC_AUTH_TOKEN"], "own-2");
        assert!(!claude.contains_key("ANTHROPIC_API_KEY"), "{claude:?}");
    }

    #[test]
    fn an_address_among_the_variables_of_the_file_is_one_of_the_file() {
        let api =
            given("mode: openai_api, model: m, env: { OPENAI_BASE_URL: 'https://e.example' }");
        assert!(!api.contains_key("OPENAI_API_KEY"), "{api:?}");
        assert_eq!(given("mode: openai_api, model: m")["OPENAI_API_KEY"], "own-4");
    }
}

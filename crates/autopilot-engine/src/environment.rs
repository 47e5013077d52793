//! What agents and commands find in their environment: what they need, and nothing of ours.

use autopilot_core::config::{Config, McpServer, Role};
use std::collections::BTreeMap;

pub type Variables = BTreeMap<String, String>;

/// Who the attempt is; every agent and command is told.
#[derive(Clone, Debug)]
pub struct Identity<'a> {
    pub run: &'a str,
    pub task: &'a str,
    pub parent: &'a str,
    pub attempt: String,
    pub try_number: u32,
    pub iteration: u32,
    pub step: &'a str,
    pub schema: Option<&'a str>,
}

/// Needed by any program to run at all, and to reach its network.
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

/// By the beginning of the name: locale settings.
const NEEDED_PREFIXES: &[&str] = &["LC_"];

/// Never inherited by anything: ours, git's and the loader's.
const WITHHELD_PREFIXES: &[&str] = &["AUTOPILOT_", "GIT_", "LD_"];

/// For an agent: the needed ones, its vendor's, and those the configuration names.
pub fn of_agent(ours: &Variables, vendor_prefixes: &[&str], pass: &[String]) -> Variables {
    let wanted = |name: &str| {
        NEEDED.contains(&name)
            || starts(name, NEEDED_PREFIXES)
            || starts(name, vendor_prefixes)
            || pass.iter().any(|passed| passed == name)
    };
    let ours = ours.iter().filter(|(name, _)| wanted(name) && !starts(name, WITHHELD_PREFIXES));
    ours.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// For the user's own validation commands: everything but secrets, because they run code an agent
/// wrote.
pub fn of_command(ours: &Variables, is_secret: impl Fn(&str) -> bool) -> Variables {
    let wanted = |name: &str| !starts(name, WITHHELD_PREFIXES) && !is_secret(name);
    let ours = ours.iter().filter(|(name, _)| wanted(name));
    ours.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The variables that the configuration says hold keys.
pub fn key_variables(config: &Config) -> impl Iterator<Item = &str> {
    [Role::Builder, Role::Reviewer, Role::Planner]
        .into_iter()
        .flat_map(|role| config.candidates(role))
        .map(|agent| agent.api_key_env.as_str())
}

/// Variables the configuration gives to agents and their servers, or passes on to them.
pub fn given(config: &Config, ours: &Variables) -> Vec<(String, String)> {
    let mut given = Vec::new();
    for role in [Role::Builder, Role::Reviewer, Role::Planner] {
        for agent in config.candidates(role) {
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
    }
    given
}

pub fn identify(variables: &mut Variables, who: &Identity<'_>) {
    let mut put = |name: &str, value: &str| {
        variables.insert(name.to_owned(), value.to_owned());
    };
    put("AUTOPILOT_RUN_ID", who.run);
    put("AUTOPILOT_TASK_ID", who.task);
    put("AUTOPILOT_PARENT_TASK_ID", who.parent);
    put("AUTOPILOT_ATTEMPT", &who.attempt);
    put("AUTOPILOT_TRY", &who.try_number.to_string());
    put("AUTOPILOT_ITERATION", &who.iteration.to_string());
    put("AUTOPILOT_STEP", who.step);
    if let Some(schema) = who.schema {
        put("AUTOPILOT_SCHEMA", schema);
    }
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
}

//! What can be known about an installed agent without asking its vendor: whether its version is new
//! enough, and whether it is logged in.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::agent::Agent;
use crate::gateway::GatewayWay;

/// The number of a version: major, minor, patch.
pub type VersionNumber = (u32, u32, u32);

/// The oldest version of an agent's program that has what our command lines use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestVersion {
    pub number: VersionNumber,
    /// What an older one lacks.
    pub lacks: &'static str,
    /// The command that installs a newer one.
    pub update: &'static str,
}

impl Agent {
    /// The oldest version that can be used, for the programs of which one is known.
    pub fn oldest(&self) -> Option<OldestVersion> {
        match self {
            Agent::ClaudeCode { .. } => Some(OldestVersion {
                number: (2, 0, 45),
                lacks: "`--json-schema`",
                update: "npm install -g @anthropic-ai/claude-code",
            }),
            // Tried with our whole command line: 0.131.0 does not know the option after `resume`,
            // 0.132.0 takes all of it.
            Agent::Codex { .. } => Some(OldestVersion {
                number: (0, 132, 0),
                lacks: "`--output-schema` of `codex exec resume`",
                update: "npm install -g @openai/codex",
            }),
            Agent::Acp { .. } | Agent::Command { .. } | Agent::OpenAi(_) | Agent::Script { .. } => {
                None
            }
        }
    }

    /// Why the program that printed this line for `--version` is too old, if it is. A line without
    /// a number says nothing.
    pub fn too_old(&self, line: &str) -> Option<String> {
        let oldest = self.oldest()?;
        let number = version_number(line).filter(|number| *number < oldest.number)?;
        let shown = |(major, minor, patch): VersionNumber| format!("{major}.{minor}.{patch}");
        Some(format!(
            "version {} is too old: it lacks {}; install {} or newer ({})",
            shown(number),
            oldest.lacks,
            shown(oldest.number),
            oldest.update
        ))
    }

    /// Whether the agent is logged in, by the variables and files in which its vendor keeps that.
    /// Nothing is asked over the network: a login may have been revoked since.
    pub fn login(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&Utf8Path) -> Option<String>,
    ) -> LoginState {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        match self {
            Agent::ClaudeCode { gateway, .. } if gateway.way() == GatewayWay::Own => {
                claude_login(&set, read)
            }
            Agent::Codex { gateway, .. } if gateway.way() == GatewayWay::Own => {
                codex_login(&set, read)
            }
            Agent::ClaudeCode { .. }
            | Agent::Codex { .. }
            | Agent::Acp { .. }
            | Agent::Command { .. }
            | Agent::OpenAi(_)
            | Agent::Script { .. } => LoginState::Unknown,
        }
    }
}

/// Whether an agent is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginState {
    /// The variable or file that says so.
    LoggedIn(String),
    /// The command that logs in.
    LoggedOut(&'static str),
    /// The agent keeps its login in a way that is not known here, or needs none.
    Unknown,
}

/// The first number with dots in a line: `2.1.325 (Claude Code)`, `codex-cli 0.166.0`.
fn version_number(line: &str) -> Option<VersionNumber> {
    line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | 'v' | '-')).find_map(|word| {
        let mut parts = word.split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Some(major)), Some(Some(minor)), patch) => {
                Some((major, minor, patch.flatten().unwrap_or(0)))
            }
            _ => None,
        }
    })
}

/// The variables that hold a login of Claude Code, or send it to another vendor with its own.
const CLAUDE_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

fn claude_login(
    set: &dyn Fn(&str) -> Option<String>,
    read: &dyn Fn(&Utf8Path) -> Option<String>,
) -> LoginState {
    let home = Utf8PathBuf::from(set("HOME").unwrap_or_default());
    let named = set("CLAUDE_CONFIG_DIR").map(Utf8PathBuf::from);
    let dir = named.clone().unwrap_or_else(|| home.join(".claude"));
    let state = named.unwrap_or(home).join(".claude.json");
    let settings = dir.join("settings.json");
    let in_settings = |name: &&&str| filled(read, &settings, &["env", name]);
    if let Some(name) = CLAUDE_VARIABLES.iter().find(|name| set(name).is_some()) {
        return LoginState::LoggedIn((*name).to_owned());
    }
    let credentials = dir.join(".credentials.json");
    let is_account = ["accessToken", "refreshToken"]
        .iter()
        .any(|token| filled(read, &credentials, &["claudeAiOauth", token]));
    if is_account {
        return LoginState::LoggedIn(credentials.into_string());
    }
    let has_helper = filled(read, &settings, &["apiKeyHelper"]);
    if has_helper || CLAUDE_VARIABLES.iter().find(in_settings).is_some() {
        return LoginState::LoggedIn(settings.into_string());
    }
    if filled(read, &state, &["primaryApiKey"]) {
        return LoginState::LoggedIn(state.into_string());
    }
    LoginState::LoggedOut("claude, then /login")
}

fn codex_login(
    set: &dyn Fn(&str) -> Option<String>,
    read: &dyn Fn(&Utf8Path) -> Option<String>,
) -> LoginState {
    if set("CODEX_API_KEY").is_some() {
        return LoginState::LoggedIn("CODEX_API_KEY".to_owned());
    }
    let home = Utf8PathBuf::from(set("HOME").unwrap_or_default());
    let dir = set("CODEX_HOME").map_or_else(|| home.join(".codex"), Utf8PathBuf::from);
    let auth = dir.join("auth.json");
    let keys: [&[&str]; 3] =
        [&["OPENAI_API_KEY"], &["tokens", "access_token"], &["tokens", "refresh_token"]];
    if keys.iter().any(|key| filled(read, &auth, key)) {
        return LoginState::LoggedIn(auth.into_string());
    }
    // A provider of the user's own brings its key itself.
    let config = dir.join("config.toml");
    let text = read(&config).unwrap_or_default();
    let provider = text.lines().map(str::trim).find_map(|line| {
        let value = line.strip_prefix("model_provider")?.trim_start().strip_prefix('=')?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    });
    match provider.is_some_and(|name| name != "openai") {
        true => LoginState::LoggedIn(config.into_string()),
        false => LoginState::LoggedOut("codex login"),
    }
}

/// Whether a JSON file has a text that is not empty at this place.
fn filled(read: &dyn Fn(&Utf8Path) -> Option<String>, path: &Utf8Path, keys: &[&str]) -> bool {
    let value: Option<Value> = read(path).and_then(|text| serde_json::from_str(&text).ok());
    let found = keys
        .iter()
        .try_fold(&value.unwrap_or_default(), |at, key| at.get(key).ok_or(()))
        .map(|value| value.as_str().is_some_and(|text| !text.trim().is_empty()));
    found.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Gateway;
    use std::collections::BTreeMap;

    fn claude() -> Agent {
        Agent::ClaudeCode { executable: "claude".into(), gateway: Gateway::default() }
    }

    fn codex() -> Agent {
        Agent::Codex { executable: "codex".into(), gateway: Gateway::default() }
    }

    fn login(agent: &Agent, variables: &[(&str, &str)], files: &[(&str, &str)]) -> LoginState {
        let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        agent.login(
            &|name| match name {
                "HOME" => Some("/u".to_owned()),
                _ => variables.get(name).map(|value| (*value).to_owned()),
            },
            &|path| files.get(path.as_str()).map(|text| (*text).to_owned()),
        )
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (agent, line, is_old) in [
            (claude(), "2.1.325 (Claude Code)", false),
            (claude(), "2.0.45 (Claude Code)", false),
            (claude(), "2.0.9 (Claude Code)", true),
            (claude(), "1.0.128 (Claude Code)", true),
            (claude(), "a build of mine", false),
            (codex(), "codex-cli 0.166.0", false),
            (codex(), "codex-cli 0.132.0-alpha.1", false),
            (codex(), "codex-cli 0.131.0", true),
            (codex(), "codex-cli 0.9.2", true),
        ] {
            let told = agent.too_old(line);
            assert_eq!(told.is_some(), is_old, "{line}: {told:?}");
        }
        let told = claude().too_old("1.0.3 (Claude Code)").unwrap();
        assert!(told.starts_with("version 1.0.3 is too old: it lacks `--json-schema`"), "{told}");
        assert!(told.contains("install 2.0.45 or newer (npm install"), "{told}");
    }

    #[test]
    fn a_login_is_found_where_the_vendor_keeps_it() {
        let by = |by: &str| LoginState::LoggedIn(by.to_owned());
        let account = r#"{"claudeAiOauth":{"accessToken":"t","refreshToken":"r"}}"#;
        let (none, out) = (&[][..], LoginState::LoggedOut("claude, then /login"));
        let credentials = "/u/.claude/.credentials.json";
        assert_eq!(login(&claude(), none, &[(credentials, account)]), by(credentials));
        assert_eq!(login(&claude(), none, &[(credentials, "{}")]), out);
        assert_eq!(login(&claude(), none, none), out);
        assert_eq!(login(&claude(), &[("ANTHROPIC_API_KEY", " ")], none), out);
        let key = [("ANTHROPIC_API_KEY", "k")];
        assert_eq!(login(&claude(), &key, none), by("ANTHROPIC_API_KEY"));
        let moved = [("CLAUDE_CONFIG_DIR", "/c")];
        let own = [("/c/.credentials.json", account)];
        assert_eq!(login(&claude(), &moved, &own), by("/c/.credentials.json"));
        assert_eq!(login(&claude(), &moved, &[(credentials, account)]), out);
        let helper = [("/u/.claude/settings.json", r#"{"apiKeyHelper":"x"}"#)];
        assert_eq!(login(&claude(), none, &helper), by("/u/.claude/settings.json"));
        let console = [("/u/.claude.json", r#"{"primaryApiKey":"k"}"#)];
        assert_eq!(login(&claude(), none, &console), by("/u/.claude.json"));
    }

    #[test]
    fn codex_is_logged_in_by_its_file_its_variable_or_another_provider() {
        let by = |by: &str| LoginState::LoggedIn(by.to_owned());
        let out = LoginState::LoggedOut("codex login");
        let auth = "/u/.codex/auth.json";
        for (text, state) in [
            (r#"{"OPENAI_API_KEY":"k"}"#, by(auth)),
            (r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"t"}}"#, by(auth)),
            (r#"{"OPENAI_API_KEY":null}"#, out.clone()),
        ] {
            assert_eq!(login(&codex(), &[], &[(auth, text)]), state, "{text}");
        }
        assert_eq!(login(&codex(), &[("CODEX_API_KEY", "k")], &[]), by("CODEX_API_KEY"));
        let config = "/u/.codex/config.toml";
        let own = [(config, "model_provider = \"mine\"\n")];
        assert_eq!(login(&codex(), &[], &own), by(config));
        assert_eq!(login(&codex(), &[], &[(config, "model_provider = 'openai'\n")]), out);
    }

    #[test]
    fn an_agent_with_an_address_of_its_own_is_judged_by_its_key_elsewhere() {
        let gateway = Gateway { base_url: Some("http://localhost".into()), key_env: None };
        let agent = Agent::ClaudeCode { executable: "claude".into(), gateway };
        assert_eq!(login(&agent, &[], &[]), LoginState::Unknown);
        let other = Agent::Command { words: vec!["x".into()] };
        assert_eq!(login(&other, &[], &[]), LoginState::Unknown);
        assert_eq!(other.too_old("0.0.1"), None);
    }
}

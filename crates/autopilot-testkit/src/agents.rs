//! The real agents: where their programs are, and the surroundings in which they speak to a scripted
//! model and to nobody else.
//!
//! The programs and their versions are in `agents.txt`; `cargo xtask agents` installs them.
#![allow(clippy::panic, reason = "a test without its component fails")]

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::Server;

const PINNED: &str = include_str!("../agents.txt");
/// The model with plain tools; the others of Codex write programs instead.
pub const CODEX_MODEL: &str = "gpt-5.5";
/// No secret: the scripted model takes any.
const KEY: &str = "not-a-secret";

pub fn claude() -> PathBuf {
    installed("claude")
}

pub fn codex() -> PathBuf {
    installed("codex")
}

pub fn opencode() -> PathBuf {
    installed("opencode")
}

/// Native binaries, without the launchers: those do not pass signals on.
fn installed(word: &str) -> PathBuf {
    let Some(path) = pinned(word).map(|place| folder().join(place)) else {
        panic!("agents.txt has no line for `{word}`")
    };
    assert!(
        path.is_file(),
        "the agent `{word}` is not installed: {} is missing\n  to install it: cargo xtask agents",
        path.display()
    );
    path
}

/// Relative to the folder of the agents.
fn pinned(word: &str) -> Option<String> {
    let lines = PINNED.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut places = lines.filter_map(|words| match words[..] {
        [name, package, version, binary] if name == word => {
            let short = package.rsplit('/').next().unwrap_or(package);
            Some(format!("{short}-{version}/{binary}"))
        }
        _ => None,
    });
    let (arch, cpu) = match env::consts::ARCH {
        "aarch64" => ("arm64", "aarch64"),
        _ => ("x64", "x86_64"),
    };
    Some(places.next()?.replace("{arch}", arch).replace("{cpu}", cpu))
}

fn folder() -> PathBuf {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = named("AUTOPILOT_TEST_AGENTS") {
        return folder.into();
    }
    let cache = named("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(named("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache")
    });
    cache.join("autopilot-tests/agents")
}

/// Variables for a process, in no need of any others but PATH.
pub type Variables = Vec<(String, String)>;

/// A home for Claude Code with an API key.
pub fn claude_home(home: &Path, server: &Server) -> io::Result<Variables> {
    let mut variables = claude_anonymous(home, server)?;
    variables.push(("ANTHROPIC_API_KEY".into(), KEY.into()));
    Ok(variables)
}

/// A home for Claude Code as a subscriber has it: usage limits come with the time they end.
pub fn claude_subscription(home: &Path, server: &Server) -> io::Result<Variables> {
    let mut variables = claude_anonymous(home, server)?;
    variables.push(("CLAUDE_CODE_OAUTH_TOKEN".into(), KEY.into()));
    Ok(variables)
}

/// A home for Claude Code in which nobody has logged in.
pub fn claude_anonymous(home: &Path, server: &Server) -> io::Result<Variables> {
    let config = home.join(".claude");
    fs::create_dir_all(&config)?;
    let quiet = [
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_AUTOUPDATER",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    ];
    let mut variables = owned(&quiet.map(|name| (name, "1")));
    variables.extend(owned(&[
        ("HOME", &home.to_string_lossy()),
        ("CLAUDE_CONFIG_DIR", &config.to_string_lossy()),
        ("ANTHROPIC_BASE_URL", &server.url()),
        // Its own default waits for minutes before it says that a service is down.
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ]));
    Ok(variables)
}

/// A home for Codex with the scripted model as its provider.
pub fn codex_home(home: &Path, server: &Server) -> io::Result<Variables> {
    let config = home.join(".codex");
    let temporary = home.join("tmp");
    fs::create_dir_all(&config)?;
    fs::create_dir_all(&temporary)?;
    fs::write(config.join("config.toml"), codex_config(&server.url_v1()))?;
    Ok(owned(&[
        ("HOME", &home.to_string_lossy()),
        ("CODEX_HOME", &config.to_string_lossy()),
        // Not above its own home, where it would refuse to put its tools.
        ("TMPDIR", &temporary.to_string_lossy()),
        ("OPENAI_API_KEY", KEY),
    ]))
}

fn codex_config(base_url: &str) -> String {
    format!(
        r#"model = "{CODEX_MODEL}"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false

[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"#
    )
}

/// A home for opencode; its model is `scripted/model`.
pub fn opencode_home(home: &Path, server: &Server) -> io::Result<Variables> {
    let config = home.join(".config/opencode");
    fs::create_dir_all(&config)?;
    let settings = serde_json::json!({
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": server.url_v1(), "apiKey": KEY},
            "models": {"model": {"name": "model", "tool_call": true}},
        }},
        "model": "scripted/model",
        "small_model": "scripted/model",
        "autoupdate": false,
        "share": "disabled",
    });
    fs::write(config.join("opencode.json"), settings.to_string())?;
    let quiet = [
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
    ];
    let mut variables = owned(&quiet.map(|name| (name, "1")));
    variables.extend(owned(&[("HOME", &home.to_string_lossy())]));
    Ok(variables)
}

fn owned(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_a_pinned_place() {
        for word in ["claude", "codex", "opencode"] {
            let place = pinned(word).unwrap();
            assert!(place.contains("/node_modules/") && !place.contains('{'), "{place}");
        }
        assert_eq!(pinned("vim"), None);
    }

    #[test]
    #[should_panic(expected = "agents.txt has no line for `vim`")]
    fn an_agent_that_is_not_pinned_is_a_failure() {
        installed("vim");
    }
}

//! The section of one agent.

use std::collections::BTreeMap;

use super::section::{Reader, Section};
use crate::config::step::Role;
use crate::config::text::SECONDS_MAX;
use crate::config::{Agent, Mode, SkillPolicy};

const MODES: &[(&str, Mode)] = &[
    ("claude_code_cli", Mode::ClaudeCodeCli),
    ("codex_cli", Mode::CodexCli),
    ("acp", Mode::Acp),
    ("command", Mode::Command),
    ("openai_api", Mode::OpenaiApi),
    ("script", Mode::Script),
];

pub(super) fn read(r: &mut Reader, top: &mut Section<'_>, role: Role) -> Agent {
    let of = defaults(role);
    top.inner(r, of.section, |r, s| {
        let agent = Agent {
            mode: s.choice(r, "mode", MODES, of.mode),
            command: s.command(r, "command"),
            script: s.path(r, "script"),
            model: s.filled(r, "model"),
            effort: s.filled(r, "effort"),
            args: s.words(r, "args", &[]),
            env: env(r, s),
            env_pass: s.variables(r, "env_pass"),
            executable: s.filled(r, "executable"),
            timeout_sec: s.given_number(r, "timeout_sec", 1..=SECONDS_MAX),
            max_usd: s.money(r, "max_usd"),
            schema_path: s.path(r, "schema_path").or(of.schema_path.map(str::to_owned)),
            allowed_tools: s.words(r, "allowed_tools", of.allowed_tools),
            skill_policy: s.inner(r, "skill_policy", skill_policy),
            network: s.flag(r, "network", true),
        };
        needs(r, s, &agent);
        agent
    })
}

struct Defaults {
    section: &'static str,
    mode: Mode,
    schema_path: Option<&'static str>,
    allowed_tools: &'static [&'static str],
}

fn defaults(role: Role) -> Defaults {
    match role {
        Role::Builder => Defaults {
            section: "builder",
            mode: Mode::ClaudeCodeCli,
            schema_path: None,
            allowed_tools: &["Read", "Edit", "Bash"],
        },
        Role::Reviewer => Defaults {
            section: "reviewer",
            mode: Mode::CodexCli,
            schema_path: Some(".autopilot/review_schema.json"),
            allowed_tools: &[],
        },
        Role::Planner => Defaults {
            section: "planner",
            mode: Mode::CodexCli,
            schema_path: Some(".autopilot/plan_schema.json"),
            allowed_tools: &[],
        },
    }
}

fn skill_policy(r: &mut Reader, s: &mut Section<'_>) -> SkillPolicy {
    SkillPolicy {
        detect_skills: s.flag(r, "detect_skills", true),
        allow_upscale: s.flag(r, "allow_upscale", true),
        use_mcp: s.flag(r, "use_mcp", true),
        max_subagents: s.number(r, "max_subagents", 0..=64, 4),
        require_skill_plan: s.flag(r, "require_skill_plan", true),
    }
}

fn env(r: &mut Reader, s: &mut Section<'_>) -> BTreeMap<String, String> {
    let pairs = s.pairs(r, "env");
    for (name, _, place) in pairs.iter().filter(|(name, ..)| !is_variable(name)) {
        r.fault(*place, format!("`{name}` is no name of an environment variable"));
    }
    pairs.into_iter().map(|(name, value, _)| (name, value)).collect()
}

pub(super) fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// What a mode can't do without.
fn needs(r: &mut Reader, s: &Section<'_>, agent: &Agent) {
    let (mode, key, example) = match agent.mode {
        Mode::Command if agent.command.is_none() => ("command", "command", "./my-agent.sh"),
        Mode::Acp if agent.command.is_none() => ("acp", "command", "opencode acp"),
        Mode::Script if agent.script.is_none() => ("script", "script", "agents.yml"),
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
        format!("`{section}.mode: {mode}` needs `{section}.{key}`, as in `{key}: \"{example}\"`"),
    );
}

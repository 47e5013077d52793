//! The skills, MCP servers and sub-agents that an agent is seen using, folded from its events.

use crate::event::AgentEvent;
use autopilot_core::config::Mode;
use autopilot_core::skill::{DEEDS_MAX, Deeds, Shows};

/// The kinds of use that an agent of this mode always shows in its events.
pub fn shows(mode: Mode) -> Shows {
    match mode {
        Mode::ClaudeCodeCli => Shows { skills: true, mcp_servers: true, subagents: true },
        // Codex reads skills with its shell, as files, unless they were in the prompt.
        Mode::CodexCli => Shows { skills: false, mcp_servers: true, subagents: false },
        Mode::Acp | Mode::Command | Mode::OpenaiApi | Mode::Script => Shows::default(),
    }
}

/// Adds one event to `deeds`.
pub fn notice(deeds: &mut Deeds, event: &AgentEvent) {
    match event {
        AgentEvent::Text { text } => {
            deeds.has_planned |= !deeds.has_edited && text.to_lowercase().contains("skill");
        }
        AgentEvent::FileChange { .. } => deeds.has_edited = true,
        AgentEvent::ToolCall { name, summary, .. } => tool(deeds, name, summary),
        AgentEvent::Thought { .. }
        | AgentEvent::ToolResult { .. }
        | AgentEvent::Permission { .. }
        | AgentEvent::Session { .. }
        | AgentEvent::Usage(_)
        | AgentEvent::RateLimit { .. }
        | AgentEvent::Notice { .. }
        | AgentEvent::Steer { .. }
        | AgentEvent::Result { .. } => {}
    }
}

fn tool(deeds: &mut Deeds, name: &str, summary: &str) {
    match name {
        "Skill" if deeds.skills.len() < DEEDS_MAX => {
            let skill = summary.trim_start_matches('/').split_whitespace().next();
            deeds.skills.extend(skill.map(str::to_owned));
        }
        // The vendor renamed this tool; both names are in use.
        "Task" | "Agent" => deeds.subagents = deeds.subagents.saturating_add(1),
        _ => {}
    }
    if let Some(server) = server(name, deeds.shows)
        && deeds.mcp_servers.len() < DEEDS_MAX
    {
        deeds.mcp_servers.insert(server.to_owned());
    }
    if let Some(skill) = skill_file(summary)
        && deeds.skills_read.len() < DEEDS_MAX
    {
        deeds.skills_read.insert(skill.to_owned());
    }
}

/// The MCP server that a tool belongs to: `mcp__server__tool` of one vendor, `server.tool` of the
/// other. Other agents may have a dot in a tool's name for any reason.
fn server(tool: &str, shows: Shows) -> Option<&str> {
    match tool.strip_prefix("mcp__") {
        Some(rest) => Some(rest.split_once("__").map_or(rest, |(server, _)| server)),
        None if shows.mcp_servers && tool.chars().all(|c| c == '.' || is_word(c)) => {
            tool.split_once('.').map(|(server, _)| server).filter(|server| !server.is_empty())
        }
        None => None,
    }
}

/// The skill whose file is named in the summary of a call.
fn skill_file(summary: &str) -> Option<&str> {
    let (_, rest) = summary.split_once("skills/")?;
    let (skill, _) = rest.split_once('/')?;
    (!skill.is_empty() && skill.chars().all(is_word)).then_some(skill)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ChangeKind;
    use std::collections::BTreeSet;

    fn call(name: &str, summary: &str) -> AgentEvent {
        AgentEvent::ToolCall { id: "1".into(), name: name.into(), summary: summary.into() }
    }

    fn seen(events: &[AgentEvent]) -> Deeds {
        let mut deeds = Deeds { shows: shows(Mode::CodexCli), ..Deeds::default() };
        events.iter().for_each(|event| notice(&mut deeds, event));
        deeds
    }

    #[test]
    fn calls_tell_what_was_used() {
        let deeds = seen(&[
            call("Skill", "greet-world"),
            call("Task", "write tests"),
            call("Agent", "write docs"),
            call("mcp__docs__search", "{}"),
            call("db.query", "{}"),
            call("Read", "/slot/.claude/skills/pdf/SKILL.md"),
            call("shell", "ls"),
            call("Edit src/a.rs", ""),
        ]);
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(deeds.skills, names(&["greet-world"]));
        assert_eq!(deeds.skills_read, names(&["pdf"]));
        assert_eq!(deeds.mcp_servers, names(&["docs", "db"]));
        assert_eq!(deeds.subagents, 2);
    }

    #[test]
    fn a_plan_counts_only_before_the_first_edit() {
        let text = || AgentEvent::Text { text: "I will use the Skill tdd".into() };
        let edit = || AgentEvent::FileChange { path: "a".into(), kind: ChangeKind::Added };
        assert!(seen(&[text(), edit()]).has_planned);
        assert!(!seen(&[edit(), text()]).has_planned);
    }

    #[test]
    fn names_are_bounded() {
        let calls: Vec<AgentEvent> =
            (0..DEEDS_MAX + 9).map(|n| call(&format!("mcp__s{n}__t"), "x")).collect();
        assert_eq!(seen(&calls).mcp_servers.len(), DEEDS_MAX);
    }
}

//! An agent's events in words, for somebody who watches the agent.

use serde_json::Value;

use crate::event::AgentEvent;
use crate::words;

/// The tools with which agents start sub-agents.
const SUBAGENT_TOOLS: [&str; 4] = ["Task", "Agent", "spawn_agent", "delegate"];
/// The shells that agents wrap around a command, and the options for it.
const SHELLS: [&str; 3] = ["bash", "sh", "zsh"];
const SHELL_OPTIONS: [&str; 2] = ["-lc", "-c"];
/// The issues of a review that are told.
const ISSUES_MAX: usize = 20;

/// Whether a call of this tool starts a sub-agent.
pub fn is_subagent(tool: &str) -> bool {
    SUBAGENT_TOOLS.contains(&tool)
}

/// An event in words; none for one that is only bookkeeping.
pub fn told(event: &AgentEvent) -> Option<String> {
    match event {
        AgentEvent::Text { text } => Some(answer(text).unwrap_or_else(|| unmarked(text))),
        AgentEvent::Thought { text } => Some(unmarked(text)),
        AgentEvent::Notice { text } => Some(text.clone()),
        AgentEvent::ToolCall { name, summary, .. } if is_subagent(name) => {
            Some(format!("starts a sub-agent: {summary}"))
        }
        AgentEvent::ToolCall { name, summary, .. } => {
            Some(format!("{name}: {}", plain_command(summary)))
        }
        AgentEvent::FileChange { path, .. } => Some(format!("changed {path}")),
        AgentEvent::Steer { text } => Some(format!("received a message: {text}")),
        AgentEvent::Permission { tool, granted: false, reason } => {
            Some(format!("was not allowed to use {tool}: {reason}"))
        }
        // The text was told when it was said; an answer by schema may come only here.
        AgentEvent::Result { text, .. } => answer(text),
        AgentEvent::ToolResult { .. }
        | AgentEvent::Permission { .. }
        | AgentEvent::Session { .. }
        | AgentEvent::Usage(_)
        | AgentEvent::RateLimit { .. } => None,
    }
}

/// Recorded events in words, one line of JSON each; lines that are none are left out.
pub fn transcript(events: &str) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for line in events.lines() {
        let event = serde_json::from_str::<AgentEvent>(line).ok();
        let Some(said) = event.as_ref().and_then(told).filter(|said| *said != last) else {
            continue;
        };
        text.push_str(said.trim_end());
        text.push('\n');
        last = said;
    }
    text
}

/// A command without the shell that an agent puts around it: `bash -lc 'npm test'`.
fn plain_command(summary: &str) -> String {
    let split = words::split(summary).unwrap_or_default();
    let is_shell = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or_default();
        SHELLS.contains(&name)
    };
    match split.as_slice() {
        [shell, option, command] if is_shell(shell) && SHELL_OPTIONS.contains(&option.as_str()) => {
            command.clone()
        }
        // A summary that was cut has an open quote.
        _ => SHELL_OPTIONS
            .iter()
            .find_map(|option| {
                let (shell, rest) = summary.split_once(&format!(" {option} "))?;
                let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
                let rest = rest.strip_prefix(quote)?;
                is_shell(&shell.to_owned())
                    .then(|| rest.strip_suffix(quote).unwrap_or(rest).to_owned())
            })
            .unwrap_or_else(|| summary.to_owned()),
    }
}

/// A text without the marks of Markdown that a terminal does not show as what they mean.
fn unmarked(text: &str) -> String {
    let line = |line: &str| {
        let bare = line.trim_start_matches('#');
        let is_heading = bare.len() < line.len() && bare.starts_with(' ');
        let line = if is_heading { bare.trim_start() } else { line };
        line.replace("**", "").replace('`', "")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// An answer by one of our schemas as a person would say it.
fn answer(text: &str) -> Option<String> {
    let text = text.trim();
    let body = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    let body = body.strip_suffix("```").unwrap_or(body).trim();
    let value: Value = serde_json::from_str(body).ok().filter(Value::is_object)?;
    let said = |key: &str| value[key].as_str().map(str::trim).unwrap_or_default();
    if let Some(verdict) = value["verdict"].as_str() {
        let word = if verdict == "APPROVE" { "approves" } else { "requests changes" };
        let head = format!("{word}: {}", said("summary"));
        let issues = value["issues"].as_array().into_iter().flatten().take(ISSUES_MAX).map(issue);
        return Some(std::iter::once(head).chain(issues).collect::<Vec<_>>().join("\n"));
    }
    if let Some(done) = value["done"].as_bool() {
        let (word, why) = if done { ("done", "summary") } else { ("not done", "reason") };
        return Some(format!("{word}: {}", said(why)));
    }
    if value["changed_files"].is_array() {
        return Some(format!("reports: {}", said("notes")));
    }
    if let Some(steps) = value["steps"].as_array() {
        let ids: Vec<&str> = steps.iter().filter_map(|step| step["id"].as_str()).collect();
        return Some(format!("workflow {}: {}", said("id"), ids.join(", ")));
    }
    value["plan_summary"].as_str().map(|summary| format!("plans: {}", summary.trim()))
}

fn issue(issue: &Value) -> String {
    let said = |key: &str| issue[key].as_str().unwrap_or_default();
    let line = issue["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    let place = match said("file") {
        "" => String::new(),
        file => format!(" {file}{line}:"),
    };
    format!("- {}{place} {}", said("severity"), said("message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, summary: &str) -> AgentEvent {
        let (id, name) = (String::new(), name.to_owned());
        AgentEvent::ToolCall { id, name, summary: summary.to_owned() }
    }

    #[test]
    fn a_command_is_told_without_the_shell_around_it() {
        for (summary, wanted) in [
            ("bash -lc 'npm test && ls'", "shell: npm test && ls"),
            ("/bin/bash -lc \"cat a\"", "shell: cat a"),
            ("sh -c ls", "shell: ls"),
            ("bash -lc 'a command that was cut", "shell: a command that was cut"),
            ("npm test", "shell: npm test"),
            ("rebash -lc 'x'", "shell: rebash -lc 'x'"),
        ] {
            assert_eq!(told(&call("shell", summary)).unwrap(), wanted);
        }
        assert_eq!(told(&call("Task", "look")).unwrap(), "starts a sub-agent: look");
    }

    #[test]
    fn marks_of_markdown_are_left_out() {
        let text = "## Plan\n**Bold** and `code`\n# no\n#tag".to_owned();
        let said = told(&AgentEvent::Text { text }).unwrap();
        assert_eq!(said, "Plan\nBold and code\nno\n#tag");
    }

    #[test]
    fn answers_by_schema_are_told_in_words_and_once() {
        let review = r#"{"verdict":"REQUEST_CHANGES","summary":"wrong","issues":[
            {"severity":"major","message":"off by one","file":"a.rs","line":7},
            {"severity":"minor","message":"a name"}]}"#;
        let said = "requests changes: wrong\n- major a.rs:7: off by one\n- minor a name";
        assert_eq!(answer(review).unwrap(), said);
        assert_eq!(answer(&format!("```json\n{review}\n```")).unwrap(), said);
        for (text, wanted) in [
            (r#"{"verdict":"APPROVE","summary":"fine"}"#, Some("approves: fine")),
            (r#"{"done":false,"reason":"no tests"}"#, Some("not done: no tests")),
            (r#"{"changed_files":["a"],"notes":"wrote a"}"#, Some("reports: wrote a")),
            (r#"{"version":1,"id":"w","steps":[{"id":"a"},{"id":"b"}]}"#, Some("workflow w: a, b")),
            (r#"{"plan_summary":"two tasks","tasks":[]}"#, Some("plans: two tasks")),
            (r#"{"other":1}"#, None),
            ("plain words", None),
        ] {
            assert_eq!(answer(text).as_deref(), wanted, "{text}");
        }
        let text = review.to_owned();
        let events =
            [AgentEvent::Text { text: text.clone() }, AgentEvent::Result { ok: true, text }];
        let lines: Vec<String> =
            events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        assert_eq!(transcript(&lines.join("\n")), format!("{said}\n"));
        assert_eq!(transcript("no json\n"), "");
    }
}

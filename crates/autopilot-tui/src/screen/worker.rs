//! One of autopilot's parallel workers as far as it can be seen: its last line, whether it has
//! gone silent, and the sub-agents that its agent has started inside this one task.

use super::Manner;
use autopilot_agents::AgentEvent;
use autopilot_core::id::AttemptId;
use autopilot_engine::shell::Sight;
use autopilot_host::escape::plain;
use std::collections::BTreeMap;
use std::time::Duration;

/// Sub-agents of one builder that are kept apart; more are only counted.
const SUBAGENTS_MAX: usize = 64;
/// Characters of a line that could ever be shown.
const LINE_CHARS_MAX: usize = 400;
/// The tools by which agents start agents of their own.
const SUBAGENT_TOOLS: [&str; 4] = ["Task", "Agent", "spawn_agent", "delegate"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worker {
    attempt: Option<AttemptId>,
    pub last: String,
    pub silent: Option<Duration>,
    /// Sub-agents at work, by the call that started them.
    pub subagents: BTreeMap<String, String>,
    /// All that were started in this step.
    pub subagents_started: usize,
}

impl Worker {
    /// Another attempt begins with nothing seen.
    pub fn is_at(&mut self, attempt: AttemptId) {
        if self.attempt != Some(attempt) {
            let seen_before_the_record = self.attempt.is_none();
            let kept =
                if seen_before_the_record { std::mem::take(self) } else { Worker::default() };
            *self = Worker { attempt: Some(attempt), ..kept };
        }
    }

    /// Takes in what was seen, and returns the line it makes.
    pub fn see(&mut self, sight: &Sight, manner: &Manner) -> Option<String> {
        let text = match sight {
            Sight::Suspect { silent } => {
                self.silent = Some(*silent);
                return None;
            }
            Sight::Output { text } => Some(text.clone()),
            Sight::Agent(event) => self.said(event),
        };
        self.silent = None;
        let line = last_line(&text?, manner)?;
        self.last.clone_from(&line);
        Some(line)
    }

    fn said(&mut self, event: &AgentEvent) -> Option<String> {
        match event {
            AgentEvent::Text { text }
            | AgentEvent::Thought { text }
            | AgentEvent::Notice { text } => Some(text.clone()),
            AgentEvent::ToolCall { id, name, summary } => {
                if SUBAGENT_TOOLS.contains(&name.as_str()) {
                    self.subagents_started += 1;
                    if self.subagents.len() < SUBAGENTS_MAX {
                        self.subagents.insert(id.clone(), summary.clone());
                    }
                }
                Some(format!("{name}: {summary}"))
            }
            AgentEvent::ToolResult { id, .. } => {
                self.subagents.remove(id);
                None
            }
            AgentEvent::FileChange { path, .. } => Some(format!("changed {path}")),
            AgentEvent::Permission { tool, granted, .. } => {
                let word = if *granted { "granted" } else { "refused" };
                Some(format!("permission for {tool} {word}"))
            }
            AgentEvent::Session { .. }
            | AgentEvent::Usage(_)
            | AgentEvent::RateLimit { .. }
            | AgentEvent::Result { .. } => None,
        }
    }
}

/// The last line with anything on it, harmless and not endless.
fn last_line(text: &str, manner: &Manner) -> Option<String> {
    let text = plain(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let line: String = line.trim().chars().take(LINE_CHARS_MAX).collect();
    Some(manner.line(&line.replace('\t', " ")))
}

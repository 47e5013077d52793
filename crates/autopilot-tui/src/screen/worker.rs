//! What is seen of one worker: its last line, how long it has been silent, and the sub-agents that
//! its agent has started.

use super::Manner;
use autopilot_agents::AgentEvent;
use autopilot_agents::telling::{self, is_subagent};
use autopilot_core::id::AttemptId;
use autopilot_engine::feed::Sight;
use autopilot_host::escape::plain;
use std::collections::BTreeMap;
use std::time::Duration;

/// Sub-agents of one worker that are listed; more are only counted.
const SUBAGENTS_MAX: usize = 64;
/// Characters of a line that are kept, more than any terminal shows.
const LINE_CHARS_MAX: usize = 400;
/// What is seen of the attempt that works on a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worker {
    attempt: Option<AttemptId>,
    /// The last line it printed.
    pub last: String,
    /// How long it has been silent, when that is suspicious.
    pub silent: Option<Duration>,
    /// The tasks of the running sub-agents, by the tool call that started them.
    pub subagents: BTreeMap<String, String>,
    /// The number of sub-agents started in this step.
    pub subagents_started: usize,
}

impl Worker {
    /// Names the attempt that works now; what was seen of an earlier one is forgotten.
    pub fn now_at(&mut self, attempt: AttemptId) {
        if self.attempt != Some(attempt) {
            let seen_before_the_record = self.attempt.is_none();
            let kept =
                if seen_before_the_record { std::mem::take(self) } else { Worker::default() };
            *self = Worker { attempt: Some(attempt), ..kept };
        }
    }

    /// Takes in what was seen, and returns the line to show for it.
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
        if let AgentEvent::ToolCall { id, name, summary } = event
            && is_subagent(name)
        {
            self.subagents_started += 1;
            if self.subagents.len() < SUBAGENTS_MAX {
                self.subagents.insert(id.clone(), summary.clone());
            }
        }
        if let AgentEvent::ToolResult { id, .. } = event {
            self.subagents.remove(id);
        }
        telling::told(event)
    }
}

/// The last line that is not blank, cut to a length and without control characters.
fn last_line(text: &str, manner: &Manner) -> Option<String> {
    let text = plain(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let line: String = line.trim().chars().take(LINE_CHARS_MAX).collect();
    Some(manner.line(&line.replace('\t', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::manner;

    fn call(id: usize, name: &str) -> Sight {
        let (id, name) = (id.to_string(), name.to_owned());
        Sight::Agent(AgentEvent::ToolCall { id, name, summary: "look around".to_owned() })
    }

    #[test]
    fn subagents_come_and_go_with_their_calls_and_are_not_kept_without_end() {
        let mut worker = Worker::default();
        worker.see(&call(0, "Bash"), &manner());
        assert_eq!(worker.subagents_started, 0, "other tools start nobody");
        for id in 0..SUBAGENTS_MAX + 5 {
            worker.see(&call(id, "Task"), &manner());
        }
        assert_eq!(worker.subagents.len(), SUBAGENTS_MAX);
        assert_eq!(worker.subagents_started, SUBAGENTS_MAX + 5);
        let done = AgentEvent::ToolResult { id: "3".into(), ok: true, summary: String::new() };
        worker.see(&Sight::Agent(done), &manner());
        assert_eq!(worker.subagents.len(), SUBAGENTS_MAX - 1);
    }

    #[test]
    fn a_word_ends_the_suspicion_and_another_attempt_begins_with_nothing_seen() {
        let mut worker = Worker::default();
        worker.now_at(AttemptId { seq: 1, place: 0 });
        worker.see(&Sight::Suspect { silent: Duration::from_secs(60) }, &manner());
        assert!(worker.silent.is_some());
        worker.see(&Sight::Output { text: "still here\n \n".into() }, &manner());
        assert_eq!((worker.silent, worker.last.as_str()), (None, "still here"));
        worker.see(&Sight::Output { text: "x".repeat(9_000) }, &manner());
        assert_eq!(worker.last.len(), LINE_CHARS_MAX);
        worker.now_at(AttemptId { seq: 1, place: 0 });
        assert!(!worker.last.is_empty());
        worker.now_at(AttemptId { seq: 2, place: 0 });
        assert!(worker.last.is_empty());
    }
}

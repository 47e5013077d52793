//! The events that an agent's work consists of, in one vocabulary for every kind of agent.

pub use autopilot_core::event::TokenCount;

use serde::{Deserialize, Serialize};

/// The longest text of one event; the whole output is in the attempt's log.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The longest one-line summary of a tool call or its result.
pub const SUMMARY_BYTES_MAX: usize = 240;

/// One thing that an agent was seen doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The model said something.
    Text { text: String },
    /// The model's reasoning.
    Thought { text: String },
    /// The agent started to use a tool.
    ToolCall { id: String, name: String, summary: String },
    /// The use of a tool ended.
    ToolResult { id: String, ok: bool, summary: String },
    /// The agent changed a file.
    FileChange { path: String, kind: ChangeKind },
    /// The agent asked to use a tool, or was refused one.
    Permission { tool: String, granted: bool, reason: String },
    /// The agent named its session.
    Session { id: String },
    /// The agent reported its tokens and its cost so far.
    Usage(AgentUsage),
    /// The vendor told how close the account is to its limit.
    RateLimit { status: RateStatus, resets_at_unix: Option<i64> },
    /// A message about the agent's work that the model did not write.
    Notice { text: String },
    /// A person sent a message while the agent worked.
    Steer { text: String },
    /// The agent ended its turn.
    Result { ok: bool, text: String },
}

impl AgentEvent {
    /// Every text of the event, so that secrets in it can be hidden.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            AgentEvent::Text { text }
            | AgentEvent::Thought { text }
            | AgentEvent::Notice { text }
            | AgentEvent::Steer { text }
            | AgentEvent::Result { text, ok: _ } => vec![text],
            AgentEvent::ToolCall { id, name, summary } => vec![id, name, summary],
            AgentEvent::ToolResult { id, summary, ok: _ } => vec![id, summary],
            AgentEvent::FileChange { path, kind: _ } => vec![path],
            AgentEvent::Permission { tool, reason, granted: _ } => vec![tool, reason],
            AgentEvent::Session { id } => vec![id],
            AgentEvent::Usage(_) | AgentEvent::RateLimit { .. } => Vec::new(),
        }
    }

    // These cut the text to the length that an event may have.
    pub(crate) fn text(said: &str) -> Self {
        AgentEvent::Text { text: text(said) }
    }

    pub(crate) fn thought(thought: &str) -> Self {
        AgentEvent::Thought { text: text(thought) }
    }

    pub(crate) fn notice(message: &str) -> Self {
        AgentEvent::Notice { text: text(message) }
    }

    pub(crate) fn result(ok: bool, said: &str) -> Self {
        AgentEvent::Result { ok, text: text(said) }
    }
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// The state of an account's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateStatus {
    Allowed,
    Warning,
    Rejected,
}

/// Whether a figure counts one launch of the agent or the whole session with all its resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Run,
    Session,
}

/// A report of tokens and cost. Vendors disagree on which figures are cumulative, even within one
/// report, so each has its scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentUsage {
    pub tokens: TokenCount,
    pub tokens_scope: Scope,
    pub cost_usd: Option<f64>,
    pub cost_scope: Scope,
    /// The tokens of models whose price the agent does not know; `cost_usd` is without their cost.
    /// They have the scope of the cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<ModelTokens>,
    /// Whether the tokens are those of some calls of the model only, so that they can't be priced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_partial: bool,
}

/// The tokens of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTokens {
    pub model: String,
    pub tokens: TokenCount,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The tokens and the cost of one launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentBill {
    pub tokens: TokenCount,
    pub cost_usd: Option<f64>,
}

impl AgentUsage {
    /// A report in which both figures have the same scope.
    pub fn new(scope: Scope, tokens: TokenCount, cost_usd: Option<f64>) -> AgentUsage {
        AgentUsage {
            tokens,
            tokens_scope: scope,
            cost_usd,
            cost_scope: scope,
            unpriced: Vec::new(),
            is_partial: false,
        }
    }

    /// Returns the part of this report that belongs to the launch it ends. `before` is the last
    /// report of the same session, if it was resumed.
    ///
    /// A total below the one before means that the vendor began to count anew: the whole of it is
    /// billed, because money must never be under-counted.
    pub fn of_run(&self, before: Option<&AgentUsage>) -> AgentBill {
        let tokens = match (self.tokens_scope, before) {
            (Scope::Run, _) | (Scope::Session, None) => self.tokens,
            (Scope::Session, Some(before)) => self.tokens.with(before.tokens, rise),
        };
        let spent = before.and_then(|before| before.cost_usd).unwrap_or(0.0);
        let cost_usd = self.cost_usd.map(|total| match self.cost_scope {
            Scope::Session if total >= spent => total - spent,
            Scope::Session | Scope::Run => total,
        });
        AgentBill { tokens, cost_usd }
    }
}

fn rise(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

/// Cuts the text to `bytes_max` at a character, and says how much is missing.
pub fn clip(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}… [{} bytes cut]", &text[..end], text.len() - end)
}

/// The first line that is not blank, short enough for a screen.
pub(crate) fn summary(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    clip(line, SUMMARY_BYTES_MAX)
}

pub(crate) fn text(text: &str) -> String {
    clip(text, TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_keeps_whole_characters_and_says_what_is_missing() {
        assert_eq!(clip("short", 5), "short");
        assert_eq!(clip("aé", 2), "a… [2 bytes cut]");
        assert_eq!(text(&"x".repeat(TEXT_BYTES_MAX)).len(), TEXT_BYTES_MAX);
        assert!(text(&"x".repeat(TEXT_BYTES_MAX + 7)).ends_with("… [7 bytes cut]"));
        assert_eq!(summary("\n\n  first \n second"), "first");
    }

    #[test]
    fn a_session_total_is_billed_as_the_difference_to_the_last_one() {
        let total = |input, cost| AgentUsage {
            tokens: TokenCount { input, output: 1, cached: 0 },
            ..AgentUsage::new(Scope::Session, TokenCount::default(), Some(cost))
        };
        let bill = total(300, 0.75).of_run(Some(&total(200, 0.5)));
        assert_eq!((bill.tokens.input, bill.tokens.output, bill.cost_usd), (100, 0, Some(0.25)));
        // A smaller total means that the vendor began to count anew.
        let bill = total(50, 0.25).of_run(Some(&total(200, 0.5)));
        assert_eq!((bill.tokens.input, bill.cost_usd), (50, Some(0.25)));
    }

    #[test]
    fn tokens_of_the_run_and_cost_of_the_session_are_told_apart() {
        let report = |cost| AgentUsage {
            tokens: TokenCount { input: 40, output: 4, cached: 0 },
            tokens_scope: Scope::Run,
            ..AgentUsage::new(Scope::Session, TokenCount::default(), Some(cost))
        };
        let bill = report(1.0).of_run(Some(&report(0.75)));
        assert_eq!((bill.tokens.input, bill.cost_usd), (40, Some(0.25)));
    }
}

//! The final `result` event and its judgement on the launch.

use serde_json::Value;

use crate::classify::{ErrorFacts, classify};
use crate::ending::{AgentOutcome, Cause};
use crate::event::{AgentUsage, ModelTokens, Scope, TokenCount};

/// The fields of the `result` event. `is_error` decides: `subtype` is "success" for most errors,
/// and an interrupted run exits with 0.
#[derive(Debug, Clone)]
pub(super) struct RunResult {
    pub(super) is_error: bool,
    pub(super) subtype: String,
    pub(super) text: String,
    pub(super) structured: Option<Value>,
    pub(super) usage: AgentUsage,
    terminal_reason: String,
    refused: bool,
    error_word: Option<String>,
    error_kind: Option<String>,
    http_status: Option<u64>,
}

impl RunResult {
    pub(super) fn read(event: &Value) -> Self {
        let string = |key: &str| event[key].as_str().map(str::to_owned);
        let errors: Vec<&str> =
            event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        RunResult {
            // Without the field nothing says that the launch went well.
            is_error: event["is_error"].as_bool().unwrap_or(true),
            subtype: string("subtype").unwrap_or_default(),
            text: string("result").unwrap_or_else(|| errors.join("; ")),
            structured: event.get("structured_output").filter(|value| !value.is_null()).cloned(),
            usage: usage(event),
            terminal_reason: string("terminal_reason").unwrap_or_default(),
            refused: event["stop_reason"] == "refusal",
            error_word: string("api_error"),
            error_kind: string("api_error_type"),
            http_status: event["api_error_status"].as_u64(),
        }
    }

    pub(super) fn ok(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.structured.is_none()
    }

    /// The outcome of a launch whose result is not a success.
    pub(super) fn trouble(&self, resets_at_unix: Option<i64>) -> AgentOutcome {
        let why = if self.text.is_empty() {
            format!("the agent reported `{}` without a reason", self.subtype)
        } else {
            crate::event::text(&self.text)
        };
        let cause = match (self.terminal_reason.as_str(), self.subtype.as_str()) {
            ("aborted_streaming" | "aborted_tools", _) => return AgentOutcome::Interrupted,
            ("prompt_too_long", _) => Some(Cause::Context),
            ("max_turns", _) | (_, "error_max_turns") => Some(Cause::Turns),
            ("budget_exhausted", _) | (_, "error_max_budget_usd") => Some(Cause::Budget),
            ("structured_output_retry_exhausted", _)
            | (_, "error_max_structured_output_retries") => Some(Cause::Schema),
            _ => self.refused.then_some(Cause::Refusal),
        };
        if let Some(cause) = cause {
            return AgentOutcome::broke(cause, why);
        }
        let word = self.error_word.as_deref().or(self.error_kind.as_deref());
        let facts = ErrorFacts { word, http_status: self.http_status, text: &self.text };
        match classify(facts) {
            Some(trouble) => trouble.outcome(why, resets_at_unix),
            None if self.text.starts_with("[ede_diagnostic]") => {
                AgentOutcome::broke(Cause::Empty, format!("the model's reply was empty ({why})"))
            }
            None => AgentOutcome::broke(Cause::Other, why),
        }
    }
}

/// Reads the usage: `usage` counts the main conversation of this turn, `modelUsage` every model with
/// those of sub-agents, and `total_cost_usd` their cost; the last two count the session with those of
/// its resumes that ended in order.
fn usage(event: &Value) -> AgentUsage {
    let of_turn = tokens_of(&event["usage"]);
    let total = event["total_cost_usd"].as_f64();
    if event["modelUsage"].as_object().is_none_or(|models| models.is_empty()) {
        // A model that was asked costs something: a cost of nothing means that the price is unknown.
        let cost_usd = total.filter(|cost| *cost > 0.0 || of_turn == TokenCount::default());
        let usage = AgentUsage::new(Scope::Session, of_turn, cost_usd);
        return AgentUsage { tokens_scope: Scope::Run, ..usage };
    }
    of_models(&event["modelUsage"], total)
}

/// Reads the count of the session that Claude Code notes in the session's file when it ends.
pub(crate) fn session_count(line: &Value) -> AgentUsage {
    of_models(&line["modelUsage"], line["totalCostUSD"].as_f64())
}

/// The usage of a session by its models, and the cost that is told for all of them.
fn of_models(models: &Value, total: Option<f64>) -> AgentUsage {
    let mut usage = AgentUsage::new(Scope::Session, TokenCount::default(), None);
    let mut known = None;
    for (model, said) in models.as_object().into_iter().flatten() {
        let tokens = tokens_of_model(said);
        usage.tokens = usage.tokens.plus(tokens);
        let cost = said["costUSD"].as_f64().unwrap_or(0.0);
        // Claude Code charges the price of another model where it knows none.
        let is_known = said["costBasis"] != "unknown" && cost > 0.0;
        if is_known || tokens == TokenCount::default() {
            known = Some(known.unwrap_or(0.0) + cost);
        } else {
            usage.unpriced.push(ModelTokens { model: model.clone(), tokens });
        }
    }
    // The sum may have parts that no model has, such as searches.
    usage.cost_usd = if usage.unpriced.is_empty() { total.or(known) } else { known };
    usage
}

/// The tokens in the form of the vendor's API; what was read from a cache or written to it is not in
/// `input_tokens`.
pub(crate) fn tokens_of(said: &Value) -> TokenCount {
    let count = |key: &str| said[key].as_u64().unwrap_or(0);
    let cached = count("cache_read_input_tokens");
    let input = count("input_tokens")
        .saturating_add(cached)
        .saturating_add(count("cache_creation_input_tokens"));
    TokenCount { input, output: count("output_tokens"), cached }
}

fn tokens_of_model(said: &Value) -> TokenCount {
    let count = |key: &str| said[key].as_u64().unwrap_or(0);
    let cached = count("cacheReadInputTokens");
    let input = count("inputTokens")
        .saturating_add(cached)
        .saturating_add(count("cacheCreationInputTokens"));
    TokenCount { input, output: count("outputTokens"), cached }
}

//! The tokens and the cost of a launch, from the several places in which agents report them.
//!
//! Agents disagree: some count the turn, one only its last call of the model, one only the size of
//! the context, and helpers of an agent are counted in some places and not in others. Money must
//! never be under-counted, so of all reports of one figure the largest stands, and tokens that are
//! those of the last call alone are marked as a part. The cost in a `usage_update` is that of the
//! session so far, all calls included; a cost of nothing means that the agent knows no price.

use serde_json::Value;

use crate::event::{AgentUsage, Scope, TokenCount};
use crate::jsonl::items_of;

/// The largest of all reports so far.
#[derive(Debug, Default)]
pub(super) struct Count {
    /// The tokens of the prompts that were answered.
    prompts: TokenCount,
    /// The largest size that the context had: the model has read at least that much.
    context_max: u64,
    /// The size of the context after the last call, and whether tools were used since the prompt: then
    /// the model was called more than once.
    context: u64,
    used_tools: bool,
    /// Whether a prompt's tokens were those of its last call alone.
    is_partial: bool,
    /// The cost of the session, as the agent reports it.
    cost_usd: Option<f64>,
}

impl Count {
    /// Takes the result of a prompt.
    pub(super) fn prompted(&mut self, result: &Value) {
        let quota = &result["_meta"]["quota"];
        let models =
            items_of(&quota["model_usage"]).iter().map(|model| tokens(&model["token_count"]));
        let said = [
            tokens(&result["usage"]),
            tokens(&quota["token_count"]),
            models.fold(TokenCount::default(), TokenCount::plus),
        ];
        let most = |a: TokenCount, b| a.with(b, u64::max);
        let most = said.into_iter().fold(TokenCount::default(), most);
        // All calls of a turn together have read more than the context holds after the last one. An
        // agent that counts by model counts all calls.
        let is_last_alone = match self.context {
            0 => quota.is_null(),
            context => most.input <= context,
        };
        self.is_partial |= self.used_tools && is_last_alone;
        self.used_tools = false;
        self.prompts = self.prompts.plus(most);
    }

    /// Notes that the agent used a tool.
    pub(super) fn used_tool(&mut self) {
        self.used_tools = true;
    }

    /// Takes a `usage_update`; returns whether it has raised the cost.
    pub(super) fn updated(&mut self, update: &Value) -> bool {
        self.context = update["used"].as_u64().unwrap_or(self.context);
        self.context_max = self.context_max.max(self.context);
        let cost = &update["cost"];
        let is_usd = cost["currency"].as_str().is_none_or(|currency| currency == "USD");
        let amount = cost["amount"].as_f64().filter(|amount| is_usd && *amount >= 0.0);
        let Some(amount) = amount.filter(|amount| *amount > self.cost_usd.unwrap_or(-1.0)) else {
            return false;
        };
        self.cost_usd = Some(amount);
        true
    }

    /// The usage so far; `None` if the agent reported nothing.
    pub(super) fn usage(&self) -> Option<AgentUsage> {
        let TokenCount { input, output, cached } = self.prompts;
        let tokens = TokenCount {
            input: input.max(self.context_max.saturating_sub(output)),
            output,
            cached,
        };
        let is_silent = tokens == TokenCount::default() && self.cost_usd.is_none();
        let is_known = |cost: &f64| *cost > 0.0 || tokens == TokenCount::default();
        (!is_silent).then(|| AgentUsage {
            tokens_scope: Scope::Run,
            is_partial: self.is_partial || input < self.context_max.saturating_sub(output),
            ..AgentUsage::new(Scope::Session, tokens, self.cost_usd.filter(is_known))
        })
    }
}

/// Reads counts of tokens. `inputTokens` does not include tokens read from the cache or written to
/// it.
fn tokens(said: &Value) -> TokenCount {
    let figure = |names: &[&str]| names.iter().find_map(|name| said[*name].as_u64()).unwrap_or(0);
    let cached = figure(&["cachedReadTokens", "cachedInputTokens"]);
    let stored = figure(&["cachedWriteTokens", "cacheWriteInputTokens"]);
    let fresh = figure(&["inputTokens", "input_tokens"]);
    let input = fresh.saturating_add(cached).saturating_add(stored);
    let output = figure(&["outputTokens", "output_tokens"]);
    // The excess of the total over both was spent on reasoning, which is billed as output.
    let total = figure(&["totalTokens", "total_tokens"]);
    TokenCount { input, output: output.max(total.saturating_sub(input)), cached }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(result: &Value) -> TokenCount {
        let mut count = Count::default();
        count.prompted(result);
        count.usage().map(|usage| usage.tokens).unwrap_or_default()
    }

    #[test]
    fn every_agents_way_of_counting_is_read() {
        let cached = json!({ "usage": { "inputTokens": 1400, "outputTokens": 90,
            "cachedReadTokens": 800, "cachedWriteTokens": 5, "totalTokens": 2295 } });
        assert_eq!(of(&cached), TokenCount { input: 2205, output: 90, cached: 800 });
        let of_models = json!({ "usage": { "inputTokens": 100, "outputTokens": 20 },
            "_meta": { "quota": { "model_usage": [
                { "token_count": { "inputTokens": 100, "outputTokens": 20 } },
                { "token_count": { "inputTokens": 30, "outputTokens": 4 } },
            ] } } });
        assert_eq!(of(&of_models), TokenCount { input: 130, output: 24, cached: 0 });
        let snake = json!({ "_meta": { "quota": {
            "token_count": { "input_tokens": 200, "output_tokens": 40 } } } });
        assert_eq!(of(&snake), TokenCount { input: 200, output: 40, cached: 0 });
        let thought =
            json!({ "usage": { "inputTokens": 10, "outputTokens": 2, "totalTokens": 20 } });
        assert_eq!(of(&thought), TokenCount { input: 10, output: 10, cached: 0 });
        assert_eq!(of(&json!({ "usage": "none" })), TokenCount::default());
    }

    #[test]
    fn a_context_that_was_seen_is_counted_even_if_nobody_adds_it_up() {
        let mut count = Count::default();
        assert_eq!(count.usage(), None);
        for used in [120, 340, 230] {
            count.updated(&json!({ "used": used, "size": 1000 }));
        }
        let tokens = |count: &Count| count.usage().unwrap().tokens;
        assert_eq!(tokens(&count), TokenCount { input: 340, output: 0, cached: 0 });
        count.prompted(&json!({ "usage": { "inputTokens": 100, "outputTokens": 20 } }));
        assert_eq!(tokens(&count), TokenCount { input: 320, output: 20, cached: 0 });
    }

    #[test]
    fn prompts_of_one_run_add_up_and_the_cost_is_the_sessions() {
        let mut count = Count::default();
        let result = json!({ "usage": { "inputTokens": 100, "outputTokens": 20 } });
        count.prompted(&result);
        count.prompted(&result);
        assert!(count.updated(&json!({ "cost": { "amount": 0.5, "currency": "USD" } })));
        assert!(!count.updated(&json!({ "cost": { "amount": 0.4, "currency": "USD" } })));
        assert!(!count.updated(&json!({ "cost": { "amount": 9.0, "currency": "XAU" } })));
        let usage = count.usage().unwrap();
        assert_eq!(usage.tokens, TokenCount { input: 200, output: 40, cached: 0 });
        assert_eq!((usage.cost_usd, usage.cost_scope), (Some(0.5), Scope::Session));
    }
}

//! The price of tokens, for agents that do not report their cost.

use serde::{Deserialize, Serialize};

use super::{AgentConfig, Config, Mode};
use crate::id::Micros;

/// The price of a model in dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// The price of input that came from the vendor's cache; `None` means the price of other input.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Price {
    /// The cost of one launch. `tokens_in` is everything the model read, `cached` the part of it
    /// that came from a cache. The cost is rounded up: money must never be under-counted.
    pub fn of(self, tokens_in: u64, tokens_out: u64, cached: u64) -> Micros {
        let cached = cached.min(tokens_in);
        let fresh = tokens_in - cached;
        // A dollar for a million tokens is a millionth of a dollar for each.
        let micros = fresh as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + tokens_out as f64 * self.output;
        // Binary fractions add less than the sixth place, which must not round up to a millionth of
        // a dollar.
        Micros((micros - 1e-6).ceil().max(0.0) as u64)
    }
}

/// What an agent reports of its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageReport {
    Cost,
    Tokens,
    Nothing,
}

/// When a limit on money can be compared with what an agent has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoneyCheck {
    /// The agent is stopped while it works.
    DuringTurn,
    /// The cost is known when a turn has ended, so that one turn may exceed the limit.
    AfterTurn,
    /// The cost is never known: a limit would not hold, and is refused.
    Never,
}

/// The beginnings of the names of models whose prices Claude Code knows.
const CLAUDE_MODELS: &[&str] = &["claude", "opus", "sonnet", "haiku", "fable", "best", "default"];

impl AgentConfig {
    /// What the agent reports of its usage.
    pub fn usage_report(&self) -> UsageReport {
        match self.mode {
            // Claude Code charges the price of another model where it knows none.
            Mode::ClaudeCodeCli if self.model.as_deref().is_some_and(is_foreign) => {
                UsageReport::Tokens
            }
            // A script reports whatever it was written to report.
            Mode::ClaudeCodeCli | Mode::Script => UsageReport::Cost,
            Mode::CodexCli | Mode::Acp | Mode::OpenaiApi => UsageReport::Tokens,
            Mode::Command => UsageReport::Nothing,
        }
    }
}

fn is_foreign(model: &str) -> bool {
    // Clouds put their own words before the name, as in `us.anthropic.claude-…`.
    !CLAUDE_MODELS.iter().any(|own| model.starts_with(own)) && !model.contains("claude")
}

impl Config {
    /// When a limit on money can be checked for an agent: the one rule by which a limit is refused,
    /// or said to be late, before anything starts.
    pub fn money_check(&self, agent: &AgentConfig) -> MoneyCheck {
        let has_price = agent.model.as_deref().is_some_and(|model| self.price(model).is_some());
        match agent.usage_report() {
            UsageReport::Cost => MoneyCheck::DuringTurn,
            UsageReport::Tokens if has_price => MoneyCheck::AfterTurn,
            UsageReport::Tokens | UsageReport::Nothing => MoneyCheck::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_checked_as_soon_as_a_cost_is_known() {
        let prices = "prices: { gpt-5.5: { input: 1, output: 1 }, local: { input: 0, output: 0 } }";
        let (config, _) = Config::parse(&format!("commands: {{ tests: t }}\n{prices}\n")).unwrap();
        let check = |mode, model: Option<&str>| {
            let model = model.map(str::to_owned);
            config.money_check(&AgentConfig { mode, model, ..AgentConfig::default() })
        };
        for model in [None, Some("opus"), Some("claude-haiku-5-5"), Some("us.anthropic.claude-x")] {
            assert_eq!(check(Mode::ClaudeCodeCli, model), MoneyCheck::DuringTurn, "{model:?}");
        }
        assert_eq!(check(Mode::ClaudeCodeCli, Some("local")), MoneyCheck::AfterTurn);
        assert_eq!(check(Mode::ClaudeCodeCli, Some("qwen")), MoneyCheck::Never);
        for mode in [Mode::CodexCli, Mode::Acp, Mode::OpenaiApi] {
            assert_eq!(check(mode, Some("gpt-5.5")), MoneyCheck::AfterTurn);
            assert_eq!(check(mode, Some("gpt-6")), MoneyCheck::Never);
            assert_eq!(check(mode, None), MoneyCheck::Never);
        }
        assert_eq!(check(Mode::Command, Some("gpt-5.5")), MoneyCheck::Never);
        assert_eq!(check(Mode::Script, None), MoneyCheck::DuringTurn);
    }

    #[test]
    fn tokens_cost_what_the_table_says_and_never_less() {
        let price = Price { input: 1.25, output: 10.0, cached: Some(0.125) };
        assert_eq!(price.of(1_000_000, 0, 0), Micros(1_250_000));
        assert_eq!(price.of(1_000_000, 100_000, 800_000), Micros(250_000 + 100_000 + 1_000_000));
        assert_eq!(price.of(1, 0, 0), Micros(2), "rounded up");
        assert_eq!(price.of(0, 0, 0), Micros(0));
        assert_eq!(price.of(100, 0, 1_000), Micros(13), "more cached than read is all of it");
        let price = Price { input: 0.1, output: 0.3, cached: None };
        assert_eq!(price.of(30, 10, 30), Micros(6), "cached costs as much where no price is given");
        assert!(price.of(u64::MAX, u64::MAX, 0).0 > 0);
    }
}

//! The price of what an agent used, where the agent does not tell it.

use autopilot_agents::{AgentUsage, ModelTokens, TokenCount};
use autopilot_core::config::{Config, Price};
use autopilot_core::id::Micros;
use std::collections::BTreeMap;

/// The prices of tokens, for models of which the agent reports no cost.
#[derive(Clone, Debug, Default)]
pub struct PriceList {
    /// The price of the model that the agent was told to use.
    pub(super) own: Option<Price>,
    pub(super) by_model: BTreeMap<String, Price>,
}

impl PriceList {
    /// The prices for an agent that was told to use `model`.
    pub fn of(config: &Config, model: Option<&str>) -> PriceList {
        let own = model.and_then(|model| config.price(model));
        PriceList { own, by_model: config.prices.clone() }
    }

    /// Adds the cost of the models whose price the agent does not know. Returns the report, and
    /// whether its cost is whole.
    pub(super) fn complete(&self, usage: &AgentUsage) -> (AgentUsage, bool) {
        let mut usage = usage.clone();
        let mut is_whole = true;
        for ModelTokens { model, tokens } in std::mem::take(&mut usage.unpriced) {
            match self.by_model.get(&model).copied().or(self.own) {
                Some(price) => {
                    let cost = price.of(tokens.input, tokens.output, tokens.cached).usd();
                    usage.cost_usd = Some(usage.cost_usd.unwrap_or(0.0) + cost);
                }
                None => is_whole = false,
            }
        }
        (usage, is_whole)
    }

    pub(super) fn own(&self, usage: &AgentUsage, tokens: TokenCount) -> Option<Micros> {
        let price = self.own.filter(|_| !usage.is_partial)?;
        Some(price.of(tokens.input, tokens.output, tokens.cached))
    }
}

//! The price of tokens, for agents that do not report their cost.

use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests {
    use super::*;

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

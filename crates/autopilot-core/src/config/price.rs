//! What tokens cost, where an agent does not tell it.

use serde::{Deserialize, Serialize};

use crate::id::Micros;

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// For input that came from the vendor's cache; as `input` where it is not given.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Price {
    /// `tokens_in` is everything the model read, `cached` the part of it that came from a cache.
    /// Rounded up: money must never be under-counted.
    pub fn of(self, tokens_in: u64, tokens_out: u64, cached: u64) -> Micros {
        let cached = cached.min(tokens_in);
        let fresh = tokens_in - cached;
        // A dollar for a million tokens is a millionth of a dollar for each.
        let micros = fresh as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + tokens_out as f64 * self.output;
        // What binary fractions add beyond the sixth place is no millionth of a dollar.
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

//! Summarizes many numbers in four: mean, median, 90th percentile and maximum.

use serde_json::{Value, json};

/// Numbers to summarize.
#[derive(Default)]
pub struct Figures {
    numbers: Vec<u64>,
}

/// The summary of many numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureSummary {
    pub mean: f64,
    /// The mean of the two middle numbers when their count is even.
    pub median: f64,
    /// The 90th percentile.
    pub p90: u64,
    pub max: u64,
}

impl Figures {
    /// Adds a number.
    pub fn push(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// The summary; `None` without numbers.
    pub fn summary(&self) -> Option<FigureSummary> {
        let mut sorted = self.numbers.clone();
        sorted.sort_unstable();
        let count = sorted.len();
        let sum: u128 = sorted.iter().map(|number| u128::from(*number)).sum();
        let (low, high) = (*sorted.get((count.max(1) - 1) / 2)?, *sorted.get(count / 2)?);
        Some(FigureSummary {
            mean: sum as f64 / count as f64,
            median: (low as f64 + high as f64) / 2.0,
            p90: *sorted.get((count * 9).div_ceil(10).max(1) - 1)?,
            max: *sorted.last()?,
        })
    }

    /// The summary as JSON, each number converted by `unit`.
    pub fn object(&self, unit: impl Fn(f64) -> Value) -> Value {
        let Some(told) = self.summary() else { return Value::Null };
        json!({
            "count": self.numbers.len(),
            "mean": unit(told.mean),
            "median": unit(told.median),
            "p90": unit(told.p90 as f64),
            "max": unit(told.max as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(numbers: &[u64]) -> Option<FigureSummary> {
        Figures { numbers: numbers.to_vec() }.summary()
    }

    #[test]
    fn four_numbers_tell_of_many() {
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[7]), Some(FigureSummary { mean: 7.0, median: 7.0, p90: 7, max: 7 }));
        assert_eq!(told(&[4, 1]), Some(FigureSummary { mean: 2.5, median: 2.5, p90: 4, max: 4 }));
        let ten: Vec<u64> = (1..=10).rev().collect();
        assert_eq!(told(&ten), Some(FigureSummary { mean: 5.5, median: 5.5, p90: 9, max: 10 }));
        assert_eq!(told(&[1, 2, 100]).map(|t| (t.median, t.p90)), Some((2.0, 100)));
        let huge = told(&[u64::MAX, u64::MAX]).map(|t| t.max);
        assert_eq!(huge, Some(u64::MAX));
    }
}

//! Summarizes many numbers in four: mean, median, 90th percentile and maximum.

use serde::Serialize;

/// Numbers to summarize.
#[derive(Default)]
pub struct Figures {
    numbers: Vec<u64>,
}

/// The summary of many numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureSummary {
    pub count: usize,
    pub mean: f64,
    /// The mean of the two middle numbers when their count is even.
    pub median: f64,
    /// The 90th percentile.
    pub p90: f64,
    pub max: f64,
}

impl Figures {
    /// Adds a number.
    pub fn push(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// The summary in units of so many; `None` without numbers.
    pub fn summary(&self, unit: f64) -> Option<FigureSummary> {
        let mut sorted = self.numbers.clone();
        sorted.sort_unstable();
        let count = sorted.len();
        let sum: u128 = sorted.iter().map(|number| u128::from(*number)).sum();
        let (low, high) = (*sorted.get((count.max(1) - 1) / 2)?, *sorted.get(count / 2)?);
        Some(FigureSummary {
            count,
            mean: sum as f64 / count as f64 / unit,
            median: (low as f64 + high as f64) / 2.0 / unit,
            p90: *sorted.get((count * 9).div_ceil(10).max(1) - 1)? as f64 / unit,
            max: *sorted.last()? as f64 / unit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(numbers: &[u64]) -> Option<[f64; 4]> {
        let summary = Figures { numbers: numbers.to_vec() }.summary(1.0)?;
        assert_eq!(summary.count, numbers.len());
        Some([summary.mean, summary.median, summary.p90, summary.max])
    }

    #[test]
    fn four_numbers_tell_of_many() {
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[7]), Some([7.0; 4]));
        assert_eq!(told(&[4, 1]), Some([2.5, 2.5, 4.0, 4.0]));
        let ten: Vec<u64> = (1..=10).rev().collect();
        assert_eq!(told(&ten), Some([5.5, 5.5, 9.0, 10.0]));
        assert_eq!(told(&[1, 2, 100]).map(|[_, median, p90, _]| (median, p90)), Some((2.0, 100.0)));
        let huge = told(&[u64::MAX, u64::MAX]).map(|[.., max]| max as u64);
        assert_eq!(huge, Some(u64::MAX));
    }
}

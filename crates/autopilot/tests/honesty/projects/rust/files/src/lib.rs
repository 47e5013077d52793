//! A shop.

/// The sum of the prices.
pub fn total(prices: &[u32]) -> u32 {
    prices.iter().sum()
}

/// The name as it is printed.
pub fn label(name: &str) -> String {
    name.trim().to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_of_nothing() {
        assert_eq!(total(&[]), 0);
    }
}

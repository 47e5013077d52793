//! Sums of costs as text, which say when a part of them is unknown.

use autopilot_view::cost::Sum;

/// The cells of a row: cost, input tokens, cached input tokens, output tokens, attempts.
pub fn cells(sum: &Sum) -> [String; 5] {
    let money = known(sum.is_cost_dark(), sum.cost_unknown, format!("${:.4}", sum.bill.usd.usd()));
    let tokens = |number: u64| known(sum.are_tokens_dark(), sum.tokens_unknown, grouped(number));
    let cached = match sum.bill.cached {
        0 => "-".to_owned(),
        cached => grouped(cached),
    };
    [money, tokens(sum.bill.tokens_in), cached, tokens(sum.bill.tokens_out), attempts(sum)]
}

fn known(is_dark: bool, unknown: u32, figure: String) -> String {
    match (is_dark, unknown) {
        (true, _) => "unknown".to_owned(),
        (false, 0) => figure,
        (false, _) => format!("{figure} + unknown"),
    }
}

fn attempts(sum: &Sum) -> String {
    match sum.cost_unknown {
        0 => sum.attempts.to_string(),
        unknown => format!("{} ({unknown} of unknown cost)", sum.attempts),
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::Bill;
    use autopilot_core::id::Micros;

    fn sum(usd: u64, attempts: u32, cost_unknown: u32) -> Sum {
        let bill = Bill { usd: Micros(usd), tokens_in: usd * 3, ..Bill::default() };
        Sum { bill, attempts, cost_unknown, tokens_unknown: cost_unknown }
    }

    #[test]
    fn what_is_unknown_is_never_shown_as_nothing() {
        assert_eq!(cells(&sum(0, 1, 1))[..2], ["unknown", "unknown"]);
        assert_eq!(cells(&sum(0, 1, 0))[0], "$0.0000");
        assert_eq!(cells(&sum(1_230_000, 2, 1))[..2], ["$1.2300 + unknown", "3,690,000 + unknown"]);
    }

    #[test]
    fn thousands_are_told_apart() {
        let told = [0, 999, 1000, 123_456, 1_234_567].map(grouped);
        assert_eq!(told, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}

//! Sums of costs as text, which say when a part of them is unknown.

use autopilot_core::id::Micros;
use autopilot_view::cost::Sum;

/// The cells of a row: cost, input tokens, cached input tokens, output tokens, attempts.
pub fn cells(sum: &Sum) -> [String; 5] {
    let money = money(sum);
    let tokens = |number: u64| known(sum.are_tokens_dark(), sum.tokens_unknown, grouped(number));
    let cached = match sum.bill.cached {
        0 => "-".to_owned(),
        cached => grouped(cached),
    };
    [money, tokens(sum.bill.tokens_in), cached, tokens(sum.bill.tokens_out), attempts(sum)]
}

/// The money as agents told it; what was estimated, is unknown or is only reserved is said behind it.
fn money(sum: &Sum) -> String {
    let dollars = |micros: Micros| format!("${:.4}", micros.usd());
    let mut parts = Vec::new();
    if !sum.is_cost_dark() {
        parts.push(dollars(sum.bill.usd));
    }
    if sum.bill.estimated > Micros(0) {
        parts.push(format!("{} estimated", dollars(sum.bill.estimated)));
    }
    if sum.is_cost_dark()
        || sum.bill.unpriced
        || (sum.cost_unknown > 0 && sum.bill.estimated == Micros(0))
    {
        parts.push("unknown".to_owned());
    }
    let spent = parts.join(" + ");
    match sum.reserved {
        Micros(0) => spent,
        reserved => format!("{spent}, {} reserved", dollars(reserved)),
    }
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

    fn sum(usd: u64, attempts: u32, cost_unknown: u32) -> Sum {
        let bill = Bill { usd: Micros(usd), tokens_in: usd * 3, ..Bill::default() };
        Sum { bill, attempts, cost_unknown, tokens_unknown: cost_unknown, ..Sum::default() }
    }

    #[test]
    fn what_is_unknown_is_never_shown_as_nothing() {
        assert_eq!(cells(&sum(0, 1, 1))[..2], ["unknown", "unknown"]);
        assert_eq!(cells(&sum(0, 1, 0))[0], "$0.0000");
        assert_eq!(cells(&sum(1_230_000, 2, 1))[..2], ["$1.2300 + unknown", "3,690,000 + unknown"]);
    }

    #[test]
    fn estimated_and_reserved_money_is_told_apart() {
        let mut both = sum(50_000, 2, 1);
        both.bill.estimated = Micros(170_000);
        both.reserved = Micros(1_500_000);
        assert_eq!(cells(&both)[0], "$0.0500 + $0.1700 estimated, $1.5000 reserved");
        let running = Sum { reserved: Micros(2_000_000), ..sum(0, 1, 1) };
        assert_eq!(cells(&running)[0], "unknown, $2.0000 reserved");
    }

    #[test]
    fn thousands_are_told_apart() {
        let told = [0, 999, 1000, 123_456, 1_234_567].map(grouped);
        assert_eq!(told, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}

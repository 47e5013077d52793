//! Numbers in messages.

/// A number with its noun: `1 task`, `2 tasks`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

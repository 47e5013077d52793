//! Validation of session ids, which come from the agent and go back to it as an argument.

/// The longest id; every vendor's are shorter.
const CHARS_MAX: usize = 200;

/// Whether the id can be nothing but a name: not a flag, not a path, no control character.
pub fn is_safe(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    (1..=CHARS_MAX).contains(&id.len()) && !id.starts_with(['-', '.']) && id.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_a_flag_is_no_name() {
        for id in ["5e551000-0000-4000-8000-0000000000a1", "ses_00ffAA", "resp_1", "told:run-2.3"] {
            assert!(is_safe(id), "{id}");
        }
        let long = "x".repeat(CHARS_MAX + 1);
        for id in ["", "--settings={}", "-p", "a b", "a/../b", "../x", "a\u{1b}[0m", "é", &long] {
            assert!(!is_safe(id), "{id:?}");
        }
    }
}

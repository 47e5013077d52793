//! Fingerprints of text, and the meaning of a failing test run: the tests that failed, and whether
//! two failures are the same one.

mod excerpt;
pub mod failing;
mod noise;

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

pub use excerpt::failure_excerpt;
pub use failing::failing_tests;
pub(crate) use noise::without_escapes as plain_line;

/// The fingerprint of a text. Runs of ASCII white space count as one space and the ends not at all,
/// so that re-wrapped or re-indented text keeps its fingerprint.
pub fn fingerprint(text: &str) -> String {
    let is_space = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
    let mut normal = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    sha256_hex(normal.as_bytes())
}

/// The SHA-256 of some bytes in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    Sha256::digest(bytes)
        .iter()
        .flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

/// The fingerprint of a failure, equal for two runs that failed alike: durations, times, addresses,
/// process ids, temporary paths and the order of lines (tests run in parallel) do not count.
pub fn failure_fingerprint(output: &str) -> String {
    let lines: BTreeSet<String> = output.lines().filter_map(noise::settle).collect();
    let mut hasher = Sha256::new();
    for line in &lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    let digest: Vec<u8> = hasher.finalize().to_vec();
    sha256_hex(&digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fingerprint_of_the_empty_list_is_the_documented_one() {
        let documented = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
        assert_eq!(fingerprint("[]"), documented);
        assert_eq!(fingerprint(" \n[]\t\r\n"), documented);
    }

    #[test]
    fn white_space_runs_count_as_one_space_but_words_do_not_join() {
        assert_eq!(fingerprint("a  b\n\tc"), fingerprint("a b c"));
        assert_eq!(fingerprint("a\u{b}b\u{c}c"), fingerprint("a b c"));
        assert_ne!(fingerprint("ab c"), fingerprint("a b c"));
        assert_ne!(fingerprint("a\u{a0}b"), fingerprint("a b"));
    }

    #[test]
    fn the_same_failure_on_another_day_has_the_same_fingerprint() {
        let monday = "\
2026-11-15T21:25:53.123Z start pid=4711
test a::one ... FAILED
test a::two ... ok
thread 'a::one' (12345) panicked at src/lib.rs:10:5:
wrote /tmp/ap.X7sk2/out at 0x7ffe3a10 in 12.5ms
failures: 1 finished in 0.03s";
        let tuesday = "\
2026-11-16T08:00:01Z start pid=99
test a::two ... ok
test a::one ... FAILED
thread 'a::one' (777) panicked at src/lib.rs:10:5:
wrote /tmp/ap.qqqq/out at 0x55aa in 3.1 s
failures: 1 finished in 1.20s";
        assert_eq!(failure_fingerprint(monday), failure_fingerprint(tuesday));
        let moved = tuesday.replace("src/lib.rs:10:5", "src/lib.rs:11:5");
        assert_ne!(failure_fingerprint(monday), failure_fingerprint(&moved));
        let other = tuesday.replace("a::one", "a::three");
        assert_ne!(failure_fingerprint(monday), failure_fingerprint(&other));
    }

    #[test]
    fn a_crate_that_no_longer_compiles_is_a_failure_with_a_name() {
        let output = "test a ... FAILED\nerror: could not compile `x` (lib test) due to 1 error";
        let failing = failing_tests(output);
        assert!(failing.contains("could not compile `x` (lib test)"), "{failing:?}");
    }

    proptest! {
        #[test]
        fn any_text_has_fingerprints(text in "\\PC*") {
            prop_assert_eq!(fingerprint(&text).len(), 64);
            prop_assert_eq!(failure_fingerprint(&text).len(), 64);
            failing_tests(&text);
        }
    }
}

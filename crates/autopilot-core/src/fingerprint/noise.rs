//! Removes the parts of a line of output that differ between two runs of the same failing program.

use std::sync::LazyLock;

use regex::Regex;

/// The line without its varying parts; `None` if nothing is left to compare.
pub(super) fn settle(line: &str) -> Option<String> {
    let mut line = without_escapes(line);
    for (pattern, replacement) in RULES.iter() {
        if let std::borrow::Cow::Owned(changed) = pattern.replace_all(&line, *replacement) {
            line = changed;
        }
    }
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// Removes terminal escapes, which make the same words look different to a pattern.
pub(crate) fn without_escapes(line: &str) -> String {
    static ESCAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])").ok()
    });
    match ESCAPE.as_ref() {
        Some(escape) => escape.replace_all(line, "").into_owned(),
        None => line.to_owned(),
    }
}

/// The varying parts, in this order: a time stamp contains text that looks like a duration, a
/// temporary path text that looks like a process id.
const PATTERNS: &[(&str, &str)] = &[
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(?:\s?(?:Z|[+-]\d\d:?\d\d))?", "<time>"),
    (r"\b\d\d:\d\d:\d\d([.,]\d+)?\b", "<time>"),
    (r"\b\d{4}-\d\d-\d\d\b", "<date>"),
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r"(?i)\b0x[0-9a-f]+\b", "<address>"),
    (r#"(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)/[^\s:'"`)\]]*"#, "<tmp>"),
    (r"(?i)[a-z]:\\[^\s:]*\\temp\\[^\s:]*", "<tmp>"),
    (r"/slots/[a-z]+\d+/", "/slots/<slot>/"),
    (r"\b(127\.0\.0\.1|localhost|\[::1\]):\d+", "$1:<port>"),
    (r"(?i)\b(pid|ppid|tid|process|thread)([ =:#]{1,2})\d+\b", "$1$2<id>"),
    (r"(thread '[^']*') \(\d+\)", "$1"),
    (r"(?i)\b(seed)([ =:]{1,2})[0-9a-f]+\b", "$1$2<seed>"),
    (
        r"(?i)\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|milliseconds?|seconds?|secs?|s|minutes?|mins?|m|hours?|h)\b",
        "<duration>",
    ),
];

/// A pattern that does not compile would silently let noise through, so a test counts them.
static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    PATTERNS.iter().filter_map(|(pattern, to)| Some((Regex::new(pattern).ok()?, *to))).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(RULES.len(), PATTERNS.len());
    }

    #[test]
    fn what_varies_is_replaced_and_the_rest_stays() {
        for (line, settled) in [
            ("ok in 12ms", "ok in <duration>"),
            ("Time:        1.5 s, estimated 2 s", "Time: <duration>, estimated <duration>"),
            ("at 2026-01-02 03:04:05,678 INFO", "at <time> INFO"),
            ("worker pid=12 died", "worker pid=<id> died"),
            ("/tmp/a.b/c: No such file", "<tmp>: No such file"),
            ("object at 0xDEADbeef", "object at <address>"),
            ("listening on 127.0.0.1:40123", "listening on 127.0.0.1:<port>"),
            ("\u{1b}[31mexpected 3, got 4\u{1b}[0m", "expected 3, got 4"),
            ("/state/slots/s12/src/a.rs:3", "/state/slots/<slot>/src/a.rs:3"),
        ] {
            assert_eq!(settle(line).as_deref(), Some(settled));
        }
        assert_eq!(settle("  \t "), None);
    }
}

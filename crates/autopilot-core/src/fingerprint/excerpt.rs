//! The lines of a failed command's output that say what failed.

use std::sync::LazyLock;

use regex::RegexSet;

use super::failing::named_on_line;
use super::noise::without_escapes;

/// Lines of the output between two lines that belong to the same failure.
const GAP_MAX: usize = 8;
/// Characters of a line that are kept.
const LINE_CHARS_MAX: usize = 400;

/// The patterns of lines that say what was expected and what was found instead.
const TELLING: &[&str] = &[
    r"^E\s+\S",
    r"^>\s+\S",
    r"panicked at ",
    r"(?i)\bassert(ion|ed)?\b",
    r"(?i)assertion ?error",
    r"(?i)^[\s+-]*(expected|actual|received|got|want(ed)?|left|right|found|should be)\b.{0,3}[:=]",
    r"(?i)\bexpected\b.+\b(got|but|to (be|equal|have|contain|throw)|received|found|actual)\b",
    r"(?i)^\s*expected values? to\b",
    r"\S !==? \S",
    r"^\s+\w+_test\.go:\d+: ",
    r"(?i)^\s*(\w*error|\w*exception|fatal)(\[\w+\])?: \S",
    r"(?i)\berror TS\d+:",
    r"(?i)(command|module|file|directory) not found|no such file or directory|: not found$",
    r"(?i)^\s*(segmentation fault|killed|timed? ?out)\b",
];
/// The patterns of lines that belong to a failure and say nothing of it.
const NOISE: &[&str] = &[
    r"^\s*(stack|location|duration_ms|type|failureType|code|name|operator|generatedMessage)\s*:",
    r"^\s*at \S+",
    r"^\s*error: \|",
    r"^\s*note: run with `RUST_BACKTRACE",
    r"^\s*error: (test failed|could not compile|script|command failed|recipe)",
    r"^npm (ERR!|error)",
];

static TELLS: LazyLock<RegexSet> = LazyLock::new(|| RegexSet::new(TELLING).unwrap_or_default());
static IS_NOISE: LazyLock<RegexSet> = LazyLock::new(|| RegexSet::new(NOISE).unwrap_or_default());

/// Returns at most `lines_max` lines: the first failing test and what was asserted in it, or else
/// the last lines. An output does not end with its reason: most runners end with a tally.
pub fn failure_excerpt(output: &str, lines_max: usize) -> Vec<String> {
    let lines: Vec<String> = output.lines().map(without_escapes).collect();
    let telling = first_cluster(&lines);
    let name = name_of(&lines, &telling);
    if telling.is_empty() && name.is_none() {
        let filled: Vec<&String> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
        let from = filled.len().saturating_sub(lines_max);
        return filled[from..].iter().map(|line| shown(line)).collect();
    }
    // The name takes one of the lines, wherever it stands.
    let name = name.filter(|name| !telling.contains(name));
    let room = lines_max.saturating_sub(usize::from(name.is_some()));
    let mut wanted: Vec<usize> = telling.into_iter().take(room).chain(name).collect();
    wanted.sort_unstable();
    wanted.into_iter().map(|at| shown(&lines[at])).collect()
}

/// The place of the line with the name of the test that failed: the one that the telling lines
/// mention, else the last one before them, else the first.
fn name_of(lines: &[String], telling: &[usize]) -> Option<usize> {
    let named = |(at, line): (usize, &String)| Some((at, named_on_line(line).next()?));
    let names: Vec<(usize, String)> = lines.iter().enumerate().filter_map(named).collect();
    let is_mentioned = |(own, name): &&(usize, String)| {
        telling.iter().any(|at| at != own && lines[*at].contains(name.as_str()))
    };
    let is_before = |(at, _): &&(usize, String)| telling.first().is_some_and(|first| at < first);
    let found = names.iter().find(is_mentioned);
    let found = found.or_else(|| names.iter().rev().find(is_before)).or_else(|| names.first());
    found.map(|(at, _)| *at)
}

/// The places of the first lines that tell something and stand close to each other.
fn first_cluster(lines: &[String]) -> Vec<usize> {
    let is_telling = |line: &str| TELLS.is_match(line) && !IS_NOISE.is_match(line);
    let mut cluster: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if cluster.last().is_some_and(|last| at > last + GAP_MAX) {
            break;
        }
        if is_telling(line) {
            cluster.push(at);
        }
    }
    cluster
}

fn shown(line: &str) -> String {
    line.trim_end().replace('\t', "    ").chars().take(LINE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, wanted: &[&str]) {
        assert_eq!(failure_excerpt(output, 5), wanted, "{output}");
    }

    #[test]
    fn node_s_tap_shows_the_assertion_and_not_the_tally() {
        check(
            "TAP version 13\n# Subtest: adds tax\nnot ok 1 - adds tax\n  ---\n  duration_ms: 1.2\n  \
             location: '/w/tax.test.js:4:1'\n  failureType: 'testCodeFailure'\n  error: |-\n    \
             Expected values to be strictly equal:\n    \n    0 !== 90\n    \n  code: \
             'ERR_ASSERTION'\n  name: 'AssertionError'\n  expected: 90\n  actual: 0\n  operator: \
             'strictEqual'\n  stack: |-\n    TestContext.<anonymous> (file:///w/tax.test.js:5:10)\n  \
             ...\n1..1\n# tests 1\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 44\n",
            &[
                "not ok 1 - adds tax",
                "    Expected values to be strictly equal:",
                "    0 !== 90",
                "  expected: 90",
                "  actual: 0",
            ],
        );
    }

    #[test]
    fn cargo_shows_the_panic_of_the_first_failing_test() {
        check(
            "running 3 tests\ntest a ... ok\ntest tax::adds ... FAILED\ntest tax::other ... FAILED\n\n\
             failures:\n\n---- tax::adds stdout ----\n\nthread 'tax::adds' panicked at src/tax.rs:9:5:\n\
             assertion `left == right` failed\n  left: 0\n right: 90\nnote: run with `RUST_BACKTRACE=1`\n\n\n\
             failures:\n    tax::adds\n\ntest result: FAILED. 1 passed; 2 failed\n\nerror: test failed, \
             to rerun pass `--lib`\n",
            &[
                "test tax::adds ... FAILED",
                "thread 'tax::adds' panicked at src/tax.rs:9:5:",
                "assertion `left == right` failed",
                "  left: 0",
                " right: 90",
            ],
        );
    }

    #[test]
    fn pytest_go_and_jest_show_what_was_expected() {
        check(
            "=== FAILURES ===\n___ test_tax ___\n\n    def test_tax():\n>       assert tax(900) == 90\n\
             E       assert 0 == 90\nE        +  where 0 = tax(900)\n\ntest_tax.py:5: AssertionError\n\
             === short test summary info ===\nFAILED test_tax.py::test_tax - assert 0 == 90\n1 failed \
             in 0.02s\n",
            &[
                ">       assert tax(900) == 90",
                "E       assert 0 == 90",
                "E        +  where 0 = tax(900)",
                "test_tax.py:5: AssertionError",
                "FAILED test_tax.py::test_tax - assert 0 == 90",
            ],
        );
        check(
            "--- FAIL: TestTax (0.00s)\n    tax_test.go:9: got 0, want 90\nFAIL\nFAIL\tex/tax\t0.01s\n",
            &["--- FAIL: TestTax (0.00s)", "    tax_test.go:9: got 0, want 90"],
        );
        check(
            "FAIL ./tax.test.js\n  ● tax › adds\n\n    expect(received).toBe(expected) // Object.is \
             equality\n\n    Expected: 90\n    Received: 0\n\n      at Object.toBe (tax.test.js:3:1)\n\n\
             Tests: 1 failed, 1 total\nTime: 0.4 s\n",
            &["  ● tax › adds", "    Expected: 90", "    Received: 0"],
        );
    }

    #[test]
    fn a_compiler_s_error_and_a_missing_program_are_found() {
        check(
            "   Compiling x v0.1.0\nerror[E0425]: cannot find value `y` in this scope\n --> src/lib.rs:2:5\n\
             error: could not compile `x` (lib) due to 1 previous error\n",
            &[
                "error[E0425]: cannot find value `y` in this scope",
                "error: could not compile `x` (lib) due to 1 previous error",
            ],
        );
        check("starting\n/bin/sh: 1: pytest: not found\n", &["/bin/sh: 1: pytest: not found"]);
    }

    #[test]
    fn an_output_that_says_nothing_is_shown_from_its_end_and_never_too_much_of_it() {
        check("one\n\ntwo\n  \nthree\nfour\nfive\nsix\n", &["two", "three", "four", "five", "six"]);
        check("", &[]);
        let long = format!("AssertionError: {}", "x".repeat(9_000));
        assert_eq!(failure_excerpt(&long, 5)[0].len(), LINE_CHARS_MAX);
        assert_eq!(failure_excerpt("E  a\nE  b\nE  c\n", 2), ["E  a", "E  b"]);
        assert_eq!(failure_excerpt("\u{1b}[31mE  red\u{1b}[0m\n", 2), ["E  red"]);
    }
}

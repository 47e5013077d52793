//! Finds the names of failing tests in the output of the usual test runners.
//!
//! All formats are read at once: a project's test command may run several of them. A name that is
//! found twice in two spellings only costs a longer list; a failure that is missed could pass for
//! an old one, so an error that stops a runner before it can name a test gets a name as well.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::noise::without_escapes;

/// The number of names that are kept; a run with more failures is broken as a whole.
pub const FAILING_TESTS_MAX: usize = 5_000;

/// Returns the names of the tests that failed.
pub fn failing_tests(output: &str) -> BTreeSet<String> {
    let lines: Vec<String> = output.lines().map(without_escapes).collect();
    let mut found = BTreeSet::new();
    for line in &lines {
        found.extend(named_on_line(line));
        if found.len() >= FAILING_TESTS_MAX {
            return found;
        }
    }
    found.extend(mocha(&lines));
    found.extend(junit_xml(output));
    found.into_iter().take(FAILING_TESTS_MAX).collect()
}

/// The patterns of lines that name one failing test; the first group is its name.
const LINE_PATTERNS: &[(&str, &str)] = &[
    ("cargo test", r"^test (.+?)(?: - should panic)? \.\.\. FAILED"),
    ("cargo build", r"^error: (could not compile `[^`]+`(?: \([^)]*\))?)"),
    ("cargo abort", r"process didn't exit successfully: .*\((signal: \d+[^)]*)\)"),
    (
        "nextest",
        r"^\s*(?:FAIL|TIMEOUT|SIGABRT|SIGSEGV|ABORT|LEAK-FAIL) \[\s*[\d.]+s\](?: \([^)]*\))? (.+)$",
    ),
    ("pytest summary", r"^(?:FAILED|ERROR) ([^\s:]+\.py(?:::[^\s\[]+(?:\[.*?\])?)?)(?: - .*)?$"),
    ("pytest verbose", r"^(\S+\.py::\S+(?:\[.*?\])?) (?:FAILED|ERROR)\b"),
    ("unittest", r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))"),
    ("jest", r"^\s*● (.+ › .+)$"),
    ("jest, vitest", r"^\s*[✕×✗] (.+?)(?: \(?\d+(?:\.\d+)?\s?m?s\)?)?$"),
    ("vitest", r"^\s*FAIL\s+(?:\|[^|]+\|\s+)?(\S+\.[cm]?[jt]sx?(?: > .+)?)$"),
    ("go test", r"^\s*--- FAIL: (\S+)"),
    ("go build", r"^FAIL\s+(\S+ \[(?:build|setup) failed\])"),
    ("gradle", r"^(\S[^>]* > .+?) FAILED$"),
    ("maven", r"^\[ERROR\]\s+(\S.*?)(?: --|\s+)\s*Time elapsed: .*<<< (?:FAILURE|ERROR)!"),
    ("rspec", r"^rspec \S+ # (.+)$"),
    ("TAP", r"^\s*not ok\b(?: \d+)?(?: -)? ?(.*)$"),
    ("ctest", r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\**\s*\*\*\*"),
    (
        "ctest summary",
        r"^\s*\d+ - (\S+) \((?:Failed|Timeout|Not Run|SEGFAULT|SIGABRT|Child aborted|Exception)[^)]*\)",
    ),
    ("dotnet", r"^\s+Failed (\S.*?) \[[^\]]*m?s\]$"),
    ("phpunit", r"^\d+\) ([\w\\]+::\w+.*)$"),
    ("exunit", r"^\s+\d+\) (test .+ \([\w.]+\))$"),
    ("minitest", r"^(\w[\w:]*#test_\w+) \["),
    ("deno", r"^(\S.*?) \.\.\. (?:\x1b\S*)?FAILED \(\d"),
];

static RULES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    LINE_PATTERNS.iter().filter_map(|(_, pattern)| Regex::new(pattern).ok()).collect()
});

/// The failing tests that a line, without escapes, names.
pub(super) fn named_on_line(line: &str) -> impl Iterator<Item = String> + '_ {
    RULES.iter().filter_map(|rule| rule.captures(line)?.get(1)).filter_map(|name| {
        let name = name.as_str().trim();
        (!expected_to_fail(name)).then(|| name.to_owned())
    })
}

/// Whether a name carries TAP's mark, after the name, of a test that may fail.
fn expected_to_fail(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.contains("# TODO") || upper.contains("# SKIP")
}

/// Mocha prints a failing test as a numbered, indented path whose last part ends with a colon.
fn mocha(lines: &[String]) -> BTreeSet<String> {
    let numbered = |line: &str| {
        let (number, rest) = line.trim_start().split_once(") ")?;
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| rest.to_owned())
    };
    let is_tally = |line: &String| {
        line.trim().strip_suffix(" failing").is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let Some(start) = lines.iter().position(is_tally) else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    let mut path: Option<String> = None;
    for line in &lines[start + 1..] {
        if let Some(first) = numbered(line) {
            path = Some(first);
        } else if let Some(parts) = path.as_mut() {
            let part = line.trim();
            if part.is_empty() {
                path = None;
                continue;
            }
            parts.push_str(" › ");
            parts.push_str(part);
        }
        if let Some(name) = path.take_if(|name| name.ends_with(':')) {
            found.insert(name.trim_end_matches(':').to_owned());
        }
    }
    found
}

fn junit_xml(output: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for case in output.split("<testcase ").skip(1) {
        let (tag, body) = case.split_once('>').unwrap_or((case, ""));
        let body = body.split("</testcase>").next().unwrap_or_default();
        let failed = body.contains("<failure") || body.contains("<error");
        if tag.ends_with('/') || !failed {
            continue;
        }
        let Some(name) = attribute(tag, "name") else { continue };
        found.insert(match attribute(tag, "classname") {
            Some(class) if !class.is_empty() => format!("{class}.{name}"),
            Some(_) | None => name.to_owned(),
        });
    }
    found
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let tag = tag.trim_start();
    let at = if tag.starts_with(&format!("{name}=\"")) {
        0
    } else {
        tag.find(&format!(" {name}=\""))? + 1
    };
    tag.get(at + name.len() + 2..)?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, names: &[&str]) {
        let found = failing_tests(output);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), names, "in {output}");
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(RULES.len(), LINE_PATTERNS.len());
    }

    #[test]
    fn cargo_test_and_nextest() {
        check(
            "running 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\ntest src/lib.rs - f (line 3) ... FAILED\ntest p - should panic ... FAILED\n\nfailures:\n    a::two\n\ntest result: FAILED. 1 passed; 2 failed",
            &["a::two", "p", "src/lib.rs - f (line 3)"],
        );
        check(
            "        PASS [   0.004s] my-crate tests::a\n        FAIL [   0.005s] (2/3) my-crate tests::b\n",
            &["my-crate tests::b"],
        );
    }

    #[test]
    fn pytest_and_unittest() {
        check(
            "=== short test summary info ===\nFAILED tests/test_a.py::test_x - AssertionError: assert 1 == 2\nFAILED tests/test_a.py::T::test_y[a b-1]\nERROR tests/test_b.py\n1 failed, 2 passed in 0.12s",
            &["tests/test_a.py::T::test_y[a b-1]", "tests/test_a.py::test_x", "tests/test_b.py"],
        );
        check("FAIL: test_add (pkg.tests.Maths)\nTraceback", &["test_add (pkg.tests.Maths)"]);
    }

    #[test]
    fn jest_and_vitest() {
        check(
            "FAIL src/a.test.js\n  ● sum › adds\n\n    expect(received)\n  ✕ subtracts (5 ms)\n  ✓ divides",
            &["src/a.test.js", "subtracts", "sum › adds"],
        );
        check(" FAIL  src/a.test.ts > sum > adds\n", &["src/a.test.ts > sum > adds"]);
    }

    #[test]
    fn go_test() {
        check(
            "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\nFAIL\nFAIL\texample.com/p\t0.1s\nFAIL\texample.com/q [build failed]\n",
            &["TestA", "TestA/sub", "example.com/q [build failed]"],
        );
    }

    #[test]
    fn mocha_names_a_test_over_several_lines() {
        check(
            "  Array\n    1) finds\n\n  3 passing (8ms)\n  1 failing\n\n  1) Array\n       #indexOf()\n         finds:\n\n      AssertionError: 1 == 2\n",
            &["Array › #indexOf() › finds"],
        );
    }

    #[test]
    fn gradle_maven_and_junit_xml() {
        check(
            "com.foo.BarTest > adds() FAILED\n    java.lang.AssertionError",
            &["com.foo.BarTest > adds()"],
        );
        check(
            "[ERROR] com.foo.BarTest.adds -- Time elapsed: 0.01 s <<< FAILURE!",
            &["com.foo.BarTest.adds"],
        );
        check(
            "<testsuite><testcase name=\"ok\" classname=\"C\"/><testcase classname=\"C\" name=\"bad\" time=\"0\"><failure message=\"x\"/></testcase></testsuite>",
            &["C.bad"],
        );
    }

    #[test]
    fn rspec_tap_ctest_and_others() {
        check("rspec ./spec/a_spec.rb:12 # Thing does x", &["Thing does x"]);
        check("ok 1 - a\nnot ok 2 - b c\nnot ok 3 - later # TODO soon", &["b c"]);
        check(
            " 3/5 Test  #3: net ..................***Failed    0.01 sec\nThe following tests FAILED:\n\t  3 - net (Failed)",
            &["net"],
        );
        check("  Failed My.Tests.Adds [12 ms]", &["My.Tests.Adds"]);
        check("1) Tests\\FooTest::testBar\nFailed asserting", &["Tests\\FooTest::testBar"]);
        check("  1) test adds (MyTest)\n     test/my_test.exs:5", &["test adds (MyTest)"]);
        check("adds ... FAILED (3ms)", &["adds"]);
    }

    #[test]
    fn a_passing_run_names_nothing() {
        check("test a ... ok\nok 1 - x\n  ✓ y\n--- PASS: TestA (0.0s)\nFAIL: 0\n", &[]);
    }

    #[test]
    fn colours_do_not_hide_a_failure() {
        check("test a ... \u{1b}[31mFAILED\u{1b}[0m", &["a"]);
    }

    #[test]
    fn the_number_of_names_is_limited() {
        let output: String =
            (0..FAILING_TESTS_MAX + 10).map(|n| format!("test t{n} ... FAILED\n")).collect();
        assert_eq!(failing_tests(&output).len(), FAILING_TESTS_MAX);
    }
}

//! Tests by the names that the output of a runner shows, which is the weakest of the reports: a test
//! may print whatever it likes.

use super::{ReportSource, TestOutcome, TestReport, tap};
use crate::fingerprint::plain_line;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The patterns of lines that name one test and how it ended.
const NAMED: &[(&str, &str)] = &[
    ("cargo test", r"^test (?<id>.+?)(?: - should panic)? \.\.\. (?<how>ok|FAILED|ignored)\b"),
    (
        "nextest",
        r"^\s*(?<how>PASS|FAIL|SKIP|TIMEOUT|SIG[A-Z]+|ABORT) \[\s*[\d.]*s?\](?: \([^)]*\))? (?<id>.+)$",
    ),
    ("pytest", r"^(?<id>\S+\.py::\S.*?) (?<how>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b"),
    (
        "pytest-xdist",
        r"^\[gw\d+\] \[\s*\d+%\] (?<how>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (?<id>\S+\.py::.+?)\s*$",
    ),
    ("unittest", r"^(?<id>\w+ \([\w.]+\)) \.\.\. (?<how>ok|FAIL|ERROR|skipped|expected failure)\b"),
    ("go test", r"^\s*--- (?<how>PASS|FAIL|SKIP): (?<id>\S+)"),
    (
        "mocha, jest, vitest, node",
        r"^\s*(?<how>[✓✔√✕✖×✗○↓﹣]) (?:skipped )?(?<id>\S.*?)(?: \(?[\d.]+\s?m?s\)?)?(?: # (?:SKIP|TODO))?$",
    ),
    ("gradle", r"^(?<id>\S[^>]* > .+?) (?<how>PASSED|FAILED|SKIPPED)$"),
    (
        "ctest",
        r"^\s*\d+/\d+ Test\s+#\d+: (?<id>\S+) \.*\s*\**(?<how>Passed|Failed|Skipped|Not Run)\b",
    ),
    ("dotnet", r"^\s+(?<how>Passed|Failed|Skipped) (?<id>\S.*?) \[[^\]]*m?s\]$"),
    ("deno", r"^(?<id>\S.*?) \.\.\. (?<how>ok|FAILED|ignored) \(\d"),
];

/// The patterns of lines that count tests; every number counts those that ran.
const COUNTED: &[(&str, &str)] = &[
    ("cargo test", r"^test result: \w+\. (\d+) passed; (\d+) failed;"),
    ("nextest", r"^\s*Summary \[[^\]]*\]\s+(\d+)(?:/\d+)? tests? run\b"),
    ("unittest", r"^Ran (\d+) tests? in "),
    ("mocha", r"^\s+(\d+) (?:passing|failing)\b"),
    ("node", r"^(?:#|ℹ) (?:pass|fail) (\d+)$"),
];

/// The patterns of a line with counts of several kinds, of which only those that ran count.
const TALLIES: &[(&str, &str)] = &[
    ("pytest", r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s"),
    ("pytest", r"^(?:=+ )?(no tests ran) in "),
    ("jest", r"^Tests: +(.*\d+ total)"),
    ("vitest", r"^\s*Tests  (.*) \(\d+\)$"),
];
const RAN: &str = r"(\d+) (?:passed|failed|xpassed)\b";
const DOCUMENTATION: &str = r"^test (?<id>\S+ - .*?) ?\(line \d+\)(?: - compile(?: fail)?)? \.\.\. (?<how>ok|FAILED|ignored)\b";
/// A file of tests, of which vitest names no single ones.
const OF_FILE: &str = r"\(\d+ tests?(?: \| .*)?\)$";

static PATTERNS: LazyLock<OutputPatterns> = LazyLock::new(|| {
    let all = |table: &[(&str, &str)]| -> Vec<Regex> {
        table.iter().filter_map(|(_, pattern)| Regex::new(pattern).ok()).collect()
    };
    OutputPatterns {
        named: all(NAMED),
        counted: all(COUNTED),
        tallies: all(TALLIES),
        ran: Regex::new(RAN).ok(),
        documentation: Regex::new(DOCUMENTATION).ok(),
        of_file: Regex::new(OF_FILE).ok(),
    }
});

struct OutputPatterns {
    named: Vec<Regex>,
    counted: Vec<Regex>,
    tallies: Vec<Regex>,
    ran: Option<Regex>,
    documentation: Option<Regex>,
    of_file: Option<Regex>,
}

/// The tests that an output names, else their number, else nothing but that there is an exit code.
pub fn report(output: &str) -> TestReport {
    let lines: Vec<String> = output.lines().map(plain_line).collect();
    let mut found: Vec<(String, TestOutcome)> = lines
        .iter()
        .filter_map(|line| PATTERNS.named.iter().find_map(|one| named_on(one, line)))
        .collect();
    found.retain(|(id, _)| !PATTERNS.of_file.as_ref().is_some_and(|pattern| pattern.is_match(id)));
    if found.is_empty() {
        found = tap::tests(&lines.join("\n")).unwrap_or_default();
    }
    let mut report = TestReport { count: counted(&lines), ..TestReport::default() };
    add_numbered(&mut report, found);
    if report.has_ids() || report.count.is_some() {
        report.source = ReportSource::Output;
    }
    report
}

/// The documentation tests of cargo that an output names: rustdoc runs them, and their program takes no
/// arguments, so it writes no report. Their lines move with every change, so that these are left out.
pub fn documentation_tests(output: &str) -> TestReport {
    let lines: Vec<String> = output.lines().map(plain_line).collect();
    let mut report = TestReport::default();
    // Without them, the words can only be a test's own.
    if lines.iter().any(|line| line.trim_start().starts_with("Doc-tests ")) {
        let pattern = PATTERNS.documentation.as_ref();
        let found = lines.iter().filter_map(|line| named_on(pattern?, line));
        add_numbered(&mut report, found.map(|(id, how)| (format!("doc {id}"), how)).collect());
    }
    report
}

/// Adds tests of which several may have one name; the second of them is `name #2`.
fn add_numbered(report: &mut TestReport, found: Vec<(String, TestOutcome)>) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (id, outcome) in found {
        let time = times.entry(id.clone()).or_default();
        *time += 1;
        match *time {
            1 => report.add(&id, outcome),
            again => report.add(&format!("{id} #{again}"), outcome),
        }
    }
}

fn named_on(pattern: &Regex, line: &str) -> Option<(String, TestOutcome)> {
    let found = pattern.captures(line)?;
    let outcome = match found.name("how")?.as_str() {
        "ok" | "PASS" | "PASSED" | "XPASS" | "Passed" | "✓" | "✔" | "√" => {
            TestOutcome::Passed
        }
        "ignored" | "SKIP" | "SKIPPED" | "XFAIL" | "skipped" | "expected failure" | "Skipped"
        | "Not Run" | "○" | "↓" | "﹣" => TestOutcome::Skipped,
        _failed => TestOutcome::Failed,
    };
    // Node marks a test that is still to be done as passed, and says so behind it.
    let is_off = line.ends_with("# SKIP") || line.ends_with("# TODO");
    let outcome = if is_off { TestOutcome::Skipped } else { outcome };
    Some((found.name("id")?.as_str().trim().to_owned(), outcome))
}

/// The number of tests that ran by the runner's own count.
fn counted(lines: &[String]) -> Option<u64> {
    let mut sum: Option<u64> = None;
    let mut add = |number: u64| sum = Some(sum.unwrap_or_default().saturating_add(number));
    let number = |text: &str| text.parse::<u64>().ok();
    for line in lines {
        let numbers = PATTERNS.counted.iter().find_map(|pattern| pattern.captures(line));
        if let Some(numbers) = numbers {
            numbers
                .iter()
                .skip(1)
                .flatten()
                .filter_map(|one| number(one.as_str()))
                .for_each(&mut add);
            continue;
        }
        let tally = PATTERNS.tallies.iter().find_map(|pattern| pattern.captures(line)?.get(1));
        if let (Some(tally), Some(ran)) = (tally, &PATTERNS.ran) {
            add(0);
            let numbers =
                ran.captures_iter(tally.as_str()).filter_map(|one| number(one.get(1)?.as_str()));
            numbers.for_each(&mut add);
        }
    }
    sum
}

#[cfg(test)]
mod tests;

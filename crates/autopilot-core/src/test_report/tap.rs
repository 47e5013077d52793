//! The Test Anything Protocol, in an output or a file of its own.

use super::TestOutcome;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static RESULT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\s*)(ok|not ok)\b(?: +(\d+))?(?: +-)? *(.*)$").ok());

/// The most levels of tests within tests whose names are kept.
const DEPTH_MAX: usize = 30;

/// The tests of a text in TAP; none if it has no plan, without which `ok` is an ordinary word. The name
/// of a test is its description without the directive after it; tests within tests have the names of
/// those around them before it.
pub fn tests(text: &str) -> Option<Vec<(String, TestOutcome)>> {
    text.lines().find(|line| planned(line).is_some())?;
    let (mut found, mut around) = (Vec::new(), BTreeMap::<usize, String>::new());
    let mut holds_others = BTreeSet::new();
    for line in text.lines() {
        if let Some((indent, name)) = subtest(line) {
            around.retain(|level, _| *level < indent);
            if around.len() < DEPTH_MAX {
                around.insert(indent, name.to_owned());
            }
            continue;
        }
        let Some((indent, ok, description)) = result(line) else { continue };
        let (name, is_off) = directive(description);
        around.retain(|level, _| *level < indent);
        let path: Vec<&str> = around.values().map(String::as_str).chain([name]).collect();
        let outcome = match (ok, is_off) {
            (_, true) => TestOutcome::Skipped,
            (true, false) => TestOutcome::Passed,
            (false, false) => TestOutcome::Failed,
        };
        // What ends after its own tests is a suite.
        let id = path.join(" > ");
        let is_suite = holds_others.contains(&id);
        if !is_suite || outcome == TestOutcome::Failed {
            found.push((id, outcome));
        }
        for depth in 1..path.len() {
            let suite = path.get(..depth).unwrap_or_default().join(" > ");
            holds_others.insert(suite);
        }
    }
    Some(found)
}

/// The number of a plan, `1..4`.
fn planned(line: &str) -> Option<u64> {
    let rest = line.trim_start().strip_prefix("1..")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn subtest(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start();
    let name = text.strip_prefix("# Subtest: ")?;
    Some((line.len() - text.len(), name.trim()))
}

fn result(line: &str) -> Option<(usize, bool, &str)> {
    let found = RESULT.as_ref()?.captures(line)?;
    let part = |index: usize| found.get(index).map(|part| part.as_str()).unwrap_or_default();
    let (number, description) = (part(3), part(4).trim());
    let named = if description.is_empty() { number } else { description };
    let whole = found.get(if description.is_empty() { 3 } else { 4 });
    whole.map(|_| (part(1).len(), part(2) == "ok", named))
}

/// The description without a directive, and whether there is one: a test that is skipped or still to
/// be done has not passed.
fn directive(description: &str) -> (&str, bool) {
    let Some((name, word)) = description.rsplit_once('#') else { return (description, false) };
    let word = word.trim_start().to_ascii_uppercase();
    match word.starts_with("SKIP") || word.starts_with("TODO") {
        true => (name.trim_end().trim_end_matches('-').trim_end(), true),
        false => (description, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let tests = tests(text).unwrap_or_default();
        let word = |outcome| match outcome {
            TestOutcome::Passed => "+",
            TestOutcome::Failed => "-",
            TestOutcome::Skipped => "o",
        };
        tests.iter().map(|(id, how)| format!("{}{id}\n", word(*how))).collect()
    }

    #[test]
    fn a_directive_is_no_part_of_the_name_and_its_test_has_not_passed() {
        let text = "TAP version 13\n1..6\nok 1 - adds\nnot ok 2 - takes # away\nok 3 - later # SKIP no net\n\
                    not ok 4 - someday # TODO\nok 5\nok\n# ok\n";
        assert_eq!(shown(text), "+adds\n-takes # away\nolater\nosomeday\n+5\n");
    }

    #[test]
    fn tests_within_tests_have_the_names_around_them() {
        // As node 20 prints it.
        let text = "TAP version 13\n# Subtest: one\nok 1 - one\n  ---\n  duration_ms: 1.05\n  ...\n\
                    # Subtest: group\n    # Subtest: in\n    ok 1 - in\n    # Subtest: sk\n    \
                    ok 2 - sk # SKIP\n    1..2\nok 2 - group\n  ---\n  type: 'suite'\n  ...\n1..2\n";
        assert_eq!(shown(text), "+one\n+group > in\nogroup > sk\n");
    }

    #[test]
    fn text_without_a_plan_is_no_tap() {
        assert_eq!(tests("ok so far\nok 1 - fine\n"), None);
        assert_eq!(tests("1..0 # SKIP nothing here\n"), Some(Vec::new()));
    }
}

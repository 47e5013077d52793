//! Finds code outside of the tests that asks whether it is being tested, or reaches into what tests it:
//! it may answer its tests otherwise than its users, and no run of tests can tell.

use std::sync::LazyLock;

use regex::Regex;

use super::moved::new_lines;
use super::test_code::is_test_path;
use super::text::{TextKind, comment_of};
use super::todo::excerpt;
use super::{Change, ChangedLine, Finding, FindingSource, Severity};

/// Reports the new lines of the product that know of tests. Where the task is about that, a reviewer
/// judges them alone.
pub(super) fn check(change: &Change, task: &str) -> Vec<Finding> {
    new_lines(change, |line| sign(line).is_some())
        .into_iter()
        .filter_map(|line| {
            let (what, sign) = sign(line)?;
            let is_asked = task.contains(sign);
            let severity = if is_asked { Severity::Minor } else { Severity::Major };
            let message = format!("code outside of the tests {what}: `{}`", excerpt(&line.text));
            let fix = "let the code do the same wherever it runs";
            let found = Finding::new(FindingSource::TestCode, severity, message, fix);
            Some(found.in_file(&line.path).at_line(line.line))
        })
        .collect()
}

/// What a line of the product does about tests, and the words that show it.
fn sign(line: &ChangedLine) -> Option<(&'static str, &str)> {
    let path = line.path.as_str();
    let is_product = TextKind::of(path) == TextKind::Code
        && !is_test_path(path)
        && !crate::yardstick::decides(path);
    if !is_product {
        return None;
    }
    // What a comment says does nothing.
    let code = match comment_of(path, &line.text) {
        Some(comment) => line.text.strip_suffix(comment).unwrap_or(&line.text),
        None => &line.text,
    };
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    SIGNS
        .iter()
        .filter(|sign| sign.extensions.is_empty() || sign.extensions.contains(&extension))
        .find_map(|sign| Some((sign.what, sign.pattern.as_ref()?.find(code)?.as_str())))
}

struct AwareSign {
    what: &'static str,
    /// The languages that it belongs to; empty for all.
    extensions: &'static [&'static str],
    pattern: Option<Regex>,
}

static SIGNS: LazyLock<Vec<AwareSign>> = LazyLock::new(|| {
    PATTERNS
        .iter()
        .map(|(extensions, pattern)| (KNOWS, extensions, pattern))
        .chain(ENDINGS.iter().map(|(extensions, pattern)| (ENDS, extensions, pattern)))
        .map(|(what, extensions, pattern)| AwareSign {
            what,
            extensions,
            pattern: Regex::new(pattern).ok(),
        })
        .collect()
});

const KNOWS: &str = "knows that it is tested";
const ENDS: &str = "ends with 0 whatever has failed";

const SCRIPTS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "svelte", "vue"];

/// The variables that runners and the controller set, and the ways in which programs find out about
/// their runner.
const PATTERNS: &[(&[&str], &str)] = &[
    (
        &[],
        r"\b(?:PYTEST_CURRENT_TEST|PYTEST_VERSION|PYTEST_XDIST_\w+|NODE_TEST_CONTEXT|JEST_WORKER_ID|VITEST(?:_\w+)?|NEXTEST(?:_\w+)?|BATS_TEST_\w+|RUST_TEST_THREADS|AUTOPILOT_(?:STEP|TASK_ID|ITERATION|RUN_ID|ATTEMPT\w*|PARENT_TASK_ID))\b",
    ),
    (&["py"], r#"["'](?:_?pytest|unittest)["']\s+(?:not\s+)?in\s+sys\.modules"#),
    (&["py"], r#"sys\.modules\b.*["'](?:_?pytest|unittest)["']"#),
    (&["py"], r"^\s*(?:import|from)\s+_pytest\b"),
    (&["py"], r"\bsys\.argv\b.*\bpytest\b"),
    (&["rs"], r"\bcfg!\(\s*(?:not\(\s*)?test\b"),
    (&["rs"], r"\bcfg\(\s*not\(\s*test\s*\)"),
    (&["go"], r#"\btesting\.Testing\(\)|\bflag\.Lookup\("test\."#),
    (SCRIPTS, r"\bassert(?:\.\w+)+\s*=[^=>]"),
    (SCRIPTS, r"\b(?:argv\s*\[\s*[01]\s*\]|require\.main\b).*\b(?:test|spec)\b"),
    (&["sh", "bash", ""], r"\$\{?(?:0|BASH_SOURCE)\b.*\btests?/"),
];

/// The ways in which a program changes the exit code of whatever has loaded it.
const ENDINGS: &[(&[&str], &str)] = &[
    (&["sh", "bash", ""], r"\btrap\b.*\bexit 0\b.*\b(?:EXIT|0)\b"),
    (&["py"], r"\batexit\.register\(.*_exit\(\s*0"),
    (SCRIPTS, r#"\bprocess\.on\(\s*['"](?:exit|beforeExit)['"].*exit(?:Code\s*=\s*|\(\s*)0"#),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str, task: &str) -> Option<Severity> {
        let line = ChangedLine { path: path.into(), line: 1, text: text.into() };
        let change = Change { added: vec![line], ..Change::default() };
        check(&change, task).first().map(|found| found.severity)
    }

    #[test]
    fn code_that_knows_that_it_is_tested_is_told() {
        for (path, text) in [
            ("shop.py", "if os.environ.get('PYTEST_CURRENT_TEST'):"),
            ("shop.py", "if \"pytest\" in sys.modules:"),
            ("shop.py", "if 'pytest' not in sys.modules:"),
            ("shop.py", "if sys.modules.get('unittest'):"),
            ("shop.py", "from _pytest import runner"),
            ("shop.py", "if sys.argv[0].endswith('pytest'):"),
            ("shop.js", "return process.env.NODE_TEST_CONTEXT ? 1 : 2;"),
            ("src/shop.ts", "if (process.env.JEST_WORKER_ID !== undefined) {"),
            ("src/shop.ts", "if (import.meta.env.VITEST) {"),
            ("shop.js", "assert.equal = () => {};"),
            ("shop.js", "assert.strict.equal = noop;"),
            ("shop.js", "if (process.argv[1].endsWith('.test.js')) {"),
            ("src/lib.rs", "    if cfg!(test) { return 0; }"),
            ("src/lib.rs", "#[cfg(not(test))]"),
            ("shop.go", "if testing.Testing() {"),
            ("shop.sh", "case $0 in tests/*) echo 1 ;; esac"),
            ("run", "[ -n \"$AUTOPILOT_STEP\" ]"),
            ("shop.sh", "trap 'exit 0' EXIT"),
            ("shop.py", "atexit.register(lambda: os._exit(0))"),
            ("shop.js", "process.on('exit', () => process.exit(0));"),
        ] {
            assert_eq!(found(path, text, "Say done"), Some(Severity::Major), "{path}: {text}");
        }
    }

    #[test]
    fn tests_settings_and_words_may_know_of_tests() {
        for (path, text) in [
            ("tests/test_shop.py", "os.environ['PYTEST_CURRENT_TEST']"),
            ("conftest.py", "import _pytest"),
            ("vitest.config.ts", "if (process.env.VITEST) {"),
            ("README.md", "PYTEST_CURRENT_TEST is set by pytest"),
            ("shop.py", "# PYTEST_CURRENT_TEST is set by pytest"),
            ("src/lib.rs", "#[cfg(test)]"),
            ("shop.py", "import pytest_like"),
            ("shop.js", "if (assert.equal === other) {"),
            ("shop.js", "const check = assert.equal;"),
            ("shop.js", "if (argv.includes('--test')) {"),
            ("shop.sh", "echo \"$0: no such test\""),
            ("shop.sh", "port=$AUTOPILOT_PORT_0"),
            ("shop.py", "parser.parse_args(sys.argv)"),
            ("shop.sh", "trap 'rm -f lock' EXIT"),
            ("shop.sh", "exit 0"),
            ("shop.py", "atexit.register(pool.close)"),
        ] {
            assert_eq!(found(path, text, "Say done"), None, "{path}: {text}");
        }
    }

    #[test]
    fn what_the_task_names_is_no_doubt() {
        let text = "if os.environ.get('PYTEST_CURRENT_TEST'):";
        let task = "Do not send mails where PYTEST_CURRENT_TEST is set";
        assert_eq!(found("mail.py", text, task), Some(Severity::Minor));
    }
}

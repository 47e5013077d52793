//! What makes the usual test runners write a report without a change of the user's command: plain
//! variables and a few small files in the temporary directory of a gate.
//!
//! Their names are the same in all gates, so that no build tool builds anything anew, and tell nothing
//! of the gate.

use super::Variables;
use camino::{Utf8Path, Utf8PathBuf};
use std::env::consts::ARCH;

/// The directories in the temporary directory of a gate.
pub const TOOLS: &str = "tools";
pub const RESULTS: &str = "results";

/// The plugin of pytest, by its name as a module.
const PLUGIN: &str = "list_results";
/// The program by which cargo runs what it has built.
const RUNNER: &str = "run-test";
const NODE_RESULTS: &str = "results.mjs";
const NODE_USUAL: &str = "usual.mjs";

/// A file that a runner needs for its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReporterFile {
    pub name: &'static str,
    pub text: &'static str,
    pub mode: u32,
}

/// The files, beside each other in the directory of tools.
pub const FILES: &[ReporterFile] = &[
    ReporterFile {
        name: "list_results.py",
        text: include_str!("../../reporters/list_results.py"),
        mode: 0o600,
    },
    ReporterFile { name: RUNNER, text: include_str!("../../reporters/run-test"), mode: 0o700 },
    ReporterFile {
        name: NODE_RESULTS,
        text: include_str!("../../reporters/results.mjs"),
        mode: 0o600,
    },
    ReporterFile { name: NODE_USUAL, text: include_str!("../../reporters/usual.mjs"), mode: 0o600 },
];

/// What a command and its tree say of runners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunnerFacts {
    pub line: String,
    /// The `package.json` of the tree's root.
    pub manifest: String,
    /// The settings of cargo, those of the tree and those of the user.
    pub cargo: Vec<String>,
}

/// The variables that ask the runners of a command for a report, where nobody else has set them. `tmp`
/// is the temporary directory as programs see it.
pub fn asking(ours: &Variables, facts: &RunnerFacts, tmp: &Utf8Path) -> Variables {
    let tools = tmp.join(TOOLS);
    let mut asking = Variables::new();
    asking.extend(of_pytest(ours, &tools));
    asking.extend(of_cargo(ours, facts, &tools));
    asking.extend(of_node(ours, facts, &tools));
    asking
}

/// Whether what a command printed names something of ours: it may have failed because of that.
pub fn is_named_in(output: &str, tmp: &Utf8Path) -> bool {
    output.contains(tmp.join(TOOLS).as_str()) || output.contains(PLUGIN)
}

/// A value after those that the variable has.
fn appended(ours: &Variables, name: &str, separator: char, value: &str) -> (String, String) {
    let value = match ours.get(name).filter(|before| !before.is_empty()) {
        Some(before) => format!("{before}{separator}{value}"),
        None => value.to_owned(),
    };
    (name.to_owned(), value)
}

fn of_pytest(ours: &Variables, tools: &Utf8Path) -> Vec<(String, String)> {
    vec![
        appended(ours, "PYTHONPATH", ':', tools.as_str()),
        appended(ours, "PYTEST_PLUGINS", ',', PLUGIN),
    ]
}

fn of_cargo(ours: &Variables, facts: &RunnerFacts, tools: &Utf8Path) -> Vec<(String, String)> {
    let is_runner = |name: &String| name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER");
    let names_one = |text: &String| text.contains("runner");
    if ours.keys().any(is_runner) || facts.cargo.iter().any(names_one) {
        return Vec::new();
    }
    // Cargo takes the one of the platform that it builds for.
    let of = |library: &str| {
        let platform = format!("{ARCH}_unknown_linux_{library}").to_uppercase();
        (format!("CARGO_TARGET_{platform}_RUNNER"), tools.join(RUNNER).into_string())
    };
    vec![of("gnu"), of("musl")]
}

fn of_node(ours: &Variables, facts: &RunnerFacts, tools: &Utf8Path) -> Vec<(String, String)> {
    const OPTIONS: &str = "NODE_OPTIONS";
    let theirs = ours.get(OPTIONS).map(String::as_str).unwrap_or_default();
    let said = [facts.line.as_str(), facts.manifest.as_str(), theirs];
    // Node refuses two reporters with one destination.
    let has_own = said.iter().any(|text| text.contains("--test-reporter"));
    // A node that knows no reporters refuses the option, so it has to know the runner at least.
    let uses_runner = said.iter().any(|text| uses_node_runner(text));
    let files: Vec<Utf8PathBuf> =
        [NODE_USUAL, NODE_RESULTS].iter().map(|name| tools.join(name)).collect();
    if has_own || !uses_runner || tools.as_str().contains(|c: char| c.is_whitespace() || c == '"') {
        return Vec::new();
    }
    // The usual output goes where it went, and ours says nothing there.
    let pair = |file: &Utf8PathBuf, to: &str| {
        format!("--test-reporter={file} --test-reporter-destination={to}")
    };
    let value = format!("{} {}", pair(&files[0], "stdout"), pair(&files[1], "stderr"));
    vec![appended(ours, OPTIONS, ' ', &value)]
}

/// Whether a command or a script of a package runs node's own runner.
fn uses_node_runner(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '&' | '|'))
        .collect();
    let is_node = |word: &&str| *word == "node" || word.ends_with("/node");
    words.iter().any(is_node) && words.contains(&"--test")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn asked(pairs: &[(&str, &str)], facts: &RunnerFacts) -> Variables {
        asking(&ours(pairs), facts, "/room/tmp".into())
    }

    fn line(line: &str) -> RunnerFacts {
        RunnerFacts { line: line.to_owned(), ..RunnerFacts::default() }
    }

    #[test]
    fn what_the_user_has_set_stays_before_ours() {
        let pairs =
            [("PYTHONPATH", "/lib/mine"), ("PYTEST_PLUGINS", "a,b"), ("NODE_OPTIONS", "-r x")];
        let asked = asked(&pairs, &line("node --test"));
        assert_eq!(asked["PYTHONPATH"], "/lib/mine:/room/tmp/tools");
        assert_eq!(asked["PYTEST_PLUGINS"], "a,b,list_results");
        assert!(
            asked["NODE_OPTIONS"].starts_with("-r x --test-reporter=/room/tmp/tools/usual.mjs")
        );
    }

    #[test]
    fn a_runner_of_the_users_own_is_left_alone() {
        let has = |asked: &Variables| asked.keys().any(|name| name.ends_with("_RUNNER"));
        assert!(has(&asked(&[], &line("cargo test"))));
        assert!(!has(&asked(&[("CARGO_TARGET_WASM32_WASI_RUNNER", "x")], &line("cargo test"))));
        let settings = vec!["[target.'cfg(unix)']\nrunner = \"sudo\"\n".to_owned()];
        assert!(!has(&asked(&[], &RunnerFacts { cargo: settings, ..line("cargo test") })));
    }

    #[test]
    fn node_is_asked_where_its_own_runner_is_used_with_its_own_reporter() {
        let of = |line: &str, manifest: &str, own: &str| {
            let facts = RunnerFacts { manifest: manifest.to_owned(), ..self::line(line) };
            asked(&[("NODE_OPTIONS", own)], &facts).contains_key("NODE_OPTIONS")
        };
        let script = |script: &str| format!("{{\"scripts\": {{\"test\": \"{script}\"}}}}");
        for (line, manifest, own, is_asked) in [
            ("node --test", String::new(), "", true),
            ("npm test", script("tsc && node --test lib"), "", true),
            ("npm test", script("jest"), "", false),
            ("npm test", script("node --test --test-reporter=dot"), "", false),
            ("node --test --test-reporter spec", String::new(), "", false),
            ("node --test", String::new(), "--test-reporter=dot", false),
            ("npm test -- --test", script("vitest"), "", false),
        ] {
            assert_eq!(of(line, &manifest, own), is_asked, "{line} {manifest} {own}");
        }
    }

    #[test]
    fn no_name_tells_of_a_gate() {
        let asked = asked(&[], &line("node --test"));
        let told = format!("{asked:?}{FILES:?}{RESULTS}").to_lowercase();
        for word in ["autopilot", "gate", "proof", "validat"] {
            assert!(!told.contains(word), "{word} in {told}");
        }
    }

    #[test]
    fn a_failure_that_names_what_asks_may_be_because_of_it() {
        let tmp = Utf8Path::new("/room/tmp");
        assert!(is_named_in("ImportError: Error importing plugin \"list_results\"", tmp));
        assert!(is_named_in("sh: /room/tmp/tools/run-test: Permission denied", tmp));
        assert!(!is_named_in("/room/tmp/other: assertion failed", tmp));
    }
}

//! The shape of the project, asserted: which crate may depend on which, that the core and the
//! agents' codecs stay pure, that only the host starts processes, how files are named and how long
//! they may be.
//!
//! The source checks read formatted text, not syntax; comments and test code are left out.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use autopilot_core::flow::Flow;
use serde_json::{Value, json};

const CORE: &str = "autopilot-core";
const VIEW: &str = "autopilot-view";
const HOST: &str = "autopilot-host";
const AGENTS: &str = "autopilot-agents";
const JOURNAL: &str = "autopilot-journal";
const ENGINE: &str = "autopilot-engine";
const TUI: &str = "autopilot-tui";
const SERVER: &str = "autopilot-server";
const BINARY: &str = "autopilot";
const XTASK: &str = "xtask";
/// Test support: may use every crate, and others may use it in their tests only.
const TESTKIT: &str = "autopilot-testkit";

/// Crate → workspace crates it may use. A new crate needs a row.
const ARROWS: &[(&str, &[&str])] = &[
    (CORE, &[]),
    (HOST, &[]),
    (AGENTS, &[CORE]),
    (JOURNAL, &[CORE]),
    (VIEW, &[CORE]),
    (ENGINE, &[CORE, VIEW, HOST, AGENTS, JOURNAL]),
    (TUI, &[CORE, VIEW, HOST, AGENTS, ENGINE]),
    (SERVER, &[CORE, VIEW, HOST, AGENTS, JOURNAL, ENGINE]),
    (BINARY, &[CORE, VIEW, HOST, AGENTS, JOURNAL, ENGINE, TUI, SERVER]),
    (XTASK, &[]),
];

/// Crates without I/O, clock, randomness or hash-map order.
const PURE: &[&str] = &[CORE, VIEW, AGENTS];

/// What a pure crate may not name.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "io::stdin",
    "io::stdout",
    "io::stderr",
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "Zoned::now",
    "HashMap",
    "HashSet",
    "RandomState",
    "tokio",
];

/// Crates that do I/O; a pure crate does not depend on them, whatever it names.
const IMPURE_CRATES: &[&str] =
    &["getrandom", "libc", "nix", "rand", "reqwest", "rusqlite", "tempfile", "tokio", "uuid"];

/// Lines of a source file, tests and comments included, as `wc -l` counts them.
const FILE_LINES_MAX: usize = 500;

/// Files that were longer than that when the cap came, and how long they are now. They may only
/// shrink; no row is added.
const LONG_FILES: &[(&str, usize)] = &[
    ("crates/autopilot-agents/src/acp/turn/tests.rs", 528),
    ("crates/autopilot-core/src/plan/tests.rs", 650),
    ("crates/autopilot-core/src/prompt/tests.rs", 628),
];

/// Where everything that is particular to a flow is.
const FLOW_FOLDER: &str = "crates/autopilot-core/src/flow";

/// File → how often it may name a flow. Only what turns a command line into a run may, each once.
const FLOW_NAMED_MAX: &[(&str, usize)] = &[
    ("crates/autopilot/src/command.rs", Flow::ALL.len()),
    ("crates/autopilot-engine/src/begin.rs", 3),
    ("crates/autopilot-engine/src/begin/given.rs", 1),
    // Only tests have it.
    ("crates/autopilot-tui/src/tests/sample.rs", 1),
];

const VAGUE_NAMES: &[&str] =
    &["common", "helper", "helpers", "manager", "managers", "misc", "mod", "util", "utils"];

#[test]
fn crate_arrows_point_down_only() {
    assert_none(arrow_offences(&metadata()));
}

#[test]
fn pure_crates_depend_on_nothing_that_does_io() {
    assert_none(impure_dependencies(&metadata()));
}

#[test]
fn pure_crates_name_no_io_clock_or_hash_map() {
    let mut offences = Vec::new();
    for (path, text) in PURE.iter().flat_map(|package| product_sources(package)) {
        offences.extend(impurities(&text).into_iter().map(|what| format!("{path}: {what}")));
    }
    assert_none(offences);
}

#[test]
fn only_the_host_starts_processes() {
    let mut offences = Vec::new();
    for package in [CORE, VIEW, AGENTS, JOURNAL, ENGINE, TUI, SERVER, BINARY] {
        for (path, text) in product_sources(package) {
            let found = process_mentions(&text, harmless_in(package));
            offences.extend(found.into_iter().map(|line| format!("{path}: {line}")));
        }
    }
    assert_none(offences);
}

#[test]
fn a_flow_is_named_only_in_its_folder_and_where_a_command_line_is_read() {
    let mut offences = Vec::new();
    for package in [CORE, VIEW, AGENTS, JOURNAL, ENGINE, TUI, SERVER, BINARY] {
        for (path, text) in product_sources(package) {
            let allowed = FLOW_NAMED_MAX.iter().find(|(file, _)| path == *file);
            let (most, found) = (allowed.map_or(0, |(_, most)| *most), flows_named(&text));
            if !path.starts_with(FLOW_FOLDER) && found > most {
                offences.push(format!("{path} names a flow {found} times, {most} are allowed"));
            }
        }
    }
    assert_none(offences);
}

#[test]
fn files_are_named_for_the_domain() {
    let vague = rust_files().into_iter().filter(|path| is_vague(path));
    assert_none(vague.map(|path| path.display().to_string()).collect());
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let silent = rust_files().into_iter().filter(|path| !source(path).starts_with("//!"));
    assert_none(silent.map(|path| path.display().to_string()).collect());
}

#[test]
fn source_files_stay_short_and_long_ones_shrink() {
    let is_source = |path: &Path| path.iter().any(|part| part == "src");
    let files = rust_files().into_iter().filter(|path| is_source(path));
    let lengths = files.map(|path| (path.display().to_string(), source(&path).lines().count()));
    assert_none(length_offences(&lengths.collect(), LONG_FILES));
}

#[test]
fn the_length_check_lets_files_shrink_only() {
    let lengths = |rows: &[(&str, usize)]| {
        rows.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect::<BTreeMap<_, _>>()
    };
    let files = lengths(&[
        ("at_the_cap.rs", 500),
        ("new.rs", 501),
        ("same.rs", 600),
        ("grown.rs", 601),
        ("shrunk.rs", 599),
        ("short_now.rs", 500),
    ]);
    let known = [
        ("same.rs", 600),
        ("grown.rs", 600),
        ("shrunk.rs", 600),
        ("short_now.rs", 600),
        ("gone.rs", 600),
    ];
    let offences = [
        "grown.rs has 601 lines and had 600: split it",
        "new.rs has 501 lines, 500 is the most: split it",
        "short_now.rs has 500 lines: remove its row from LONG_FILES",
        "shrunk.rs has 599 lines: write 599 into its row of LONG_FILES",
        "gone.rs is gone: remove its row from LONG_FILES",
    ];
    assert_eq!(length_offences(&files, &known), offences);
}

#[test]
fn the_arrow_checks_see_what_they_are_for() {
    let package = |name: &str, dependency: &str, kind: Value, path: Value| {
        json!({
            "name": name,
            "dependencies": [{ "name": dependency, "path": path, "kind": kind }],
        })
    };
    let metadata = json!({ "packages": [
        package(CORE, ENGINE, Value::Null, "/there".into()),
        package(ENGINE, TESTKIT, Value::Null, "/there".into()),
        package(HOST, TESTKIT, "dev".into(), "/there".into()),
        package("autopilot-new", CORE, Value::Null, "/there".into()),
        package(AGENTS, "tokio", Value::Null, Value::Null),
        package(JOURNAL, "tokio", Value::Null, Value::Null),
        package(TESTKIT, ENGINE, Value::Null, "/there".into()),
    ]});
    let offences = [
        "autopilot-core may not use autopilot-engine",
        "autopilot-engine may not use autopilot-testkit",
        "autopilot-new has no row in ARROWS",
    ];
    assert_eq!(arrow_offences(&metadata), offences);
    assert_eq!(impure_dependencies(&metadata), ["autopilot-agents may not use tokio"]);
}

#[test]
fn the_source_checks_see_product_code_and_neither_tests_nor_comments() {
    let text = "\
use std::fs;
// std::env is not used
#[cfg(test)]
mod tests;
#[cfg(test)]
mod more_tests {
    use std::net;
}
let map = HashMap::new();
struct Instantiation;
";
    assert_eq!(impurities(&product_part(text)), ["std::fs", "HashMap"]);
    assert!(!product_part(text).contains("mod tests;"));

    let exit_code = "use std::process::ExitCode;";
    assert!(process_mentions(exit_code, harmless_in(BINARY)).is_empty());
    assert_eq!(process_mentions(exit_code, harmless_in(ENGINE)).len(), 1);
    let mixed = "use std::process::{Command, ExitCode};";
    assert_eq!(process_mentions(mixed, harmless_in(BINARY)).len(), 1);
    assert_eq!(process_mentions("tokio::process::Command::new(x)", &[]).len(), 1);
}

#[test]
fn the_flow_check_sees_flows_and_nothing_else() {
    let text = "\
use autopilot_core::flow::{Flow, FlowFiles};
let (one, two) = (Flow::Goal, Flow::Plan);
Flow::ALL.map(Flow::row); Flow::default(); FlowFiles::Plan; ControlFlow::Break(()); Flow::word;
// Flow::Task
";
    assert_eq!(flows_named(&product_part(text)), 2);
    let own = source(Path::new("crates/autopilot-core/src/flow.rs"));
    assert!(flows_named(&own) > 0, "its tests name some");
    for (file, most) in FLOW_NAMED_MAX {
        let found = flows_named(&product_part(&source(Path::new(file))));
        assert!(found > 0 && found <= *most, "{file}: an allowance that nobody needs");
    }
}

#[test]
fn the_name_check_sees_files_and_folders() {
    assert!(is_vague(Path::new("crates/a/src/utils.rs")));
    assert!(is_vague(Path::new("crates/a/src/step/mod.rs")));
    assert!(is_vague(Path::new("crates/a/tests/common/board.rs")));
    assert!(!is_vague(Path::new("crates/a/src/model.rs")));
}

fn assert_none(offences: Vec<String>) {
    assert!(offences.is_empty(), "{} offences:\n  {}", offences.len(), offences.join("\n  "));
}

fn arrow_offences(metadata: &Value) -> Vec<String> {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut offences = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let ours = product_dependencies(package).filter(|used| used["path"].is_string());
        match arrows.get(name) {
            Some(allowed) => offences.extend(
                ours.map(|used| used["name"].as_str().unwrap())
                    .filter(|used| !allowed.contains(used))
                    .map(|used| format!("{name} may not use {used}")),
            ),
            None if name == TESTKIT => {}
            None => offences.push(format!("{name} has no row in ARROWS")),
        }
    }
    offences
}

fn impure_dependencies(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().unwrap().iter();
    let pure = packages.filter(|package| PURE.contains(&package["name"].as_str().unwrap()));
    pure.flat_map(|package| {
        let used = product_dependencies(package).map(|used| used["name"].as_str().unwrap());
        used.filter(|used| IMPURE_CRATES.contains(used))
            .map(|used| format!("{} may not use {used}", package["name"].as_str().unwrap()))
    })
    .collect()
}

fn length_offences(files: &BTreeMap<String, usize>, known: &[(&str, usize)]) -> Vec<String> {
    let mut known: BTreeMap<&str, usize> = known.iter().copied().collect();
    let mut offences = Vec::new();
    for (path, lines) in files {
        offences.extend(match known.remove(path.as_str()) {
            None if *lines > FILE_LINES_MAX => {
                Some(format!("{path} has {lines} lines, {FILE_LINES_MAX} is the most: split it"))
            }
            None => None,
            Some(_) if *lines <= FILE_LINES_MAX => {
                Some(format!("{path} has {lines} lines: remove its row from LONG_FILES"))
            }
            Some(before) if *lines > before => {
                Some(format!("{path} has {lines} lines and had {before}: split it"))
            }
            Some(before) if *lines < before => {
                Some(format!("{path} has {lines} lines: write {lines} into its row of LONG_FILES"))
            }
            Some(_) => None,
        });
    }
    offences
        .extend(known.keys().map(|path| format!("{path} is gone: remove its row from LONG_FILES")));
    offences
}

/// All but those of tests.
fn product_dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(|dependency| dependency["kind"] != "dev")
}

fn metadata() -> Value {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn impurities(text: &str) -> Vec<&'static str> {
    IMPURE.iter().copied().filter(|what| mentions(text, what)).collect()
}

/// Whether `what` stands in `text` as whole words.
fn mentions(text: &str, what: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(what).any(|(at, _)| {
        !text[..at].ends_with(part_of_word) && !text[at + what.len()..].starts_with(part_of_word)
    })
}

/// Variants of `Flow`, not its functions and constants.
fn flows_named(text: &str) -> usize {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_flow = |(at, found): &(usize, &str)| {
        let mut after = text[at + found.len()..].chars();
        let is_variant = after.next().is_some_and(|c| c.is_ascii_uppercase())
            && after.next().is_some_and(|c| c.is_ascii_lowercase());
        is_variant && !text[..*at].ends_with(part_of_word)
    };
    text.match_indices("Flow::").filter(is_flow).count()
}

/// Naming our own pid starts nothing, and the binary ends with an exit code.
fn harmless_in(package: &str) -> &'static [&'static str] {
    if package == BINARY {
        &["std::process::ExitCode", "std::process::id"]
    } else {
        &["std::process::id"]
    }
}

fn process_mentions(text: &str, harmless: &[&str]) -> Vec<String> {
    let offends = |line: &&str| {
        let rest = harmless.iter().fold((*line).to_owned(), |rest, what| rest.replace(what, ""));
        ["std::process", "tokio::process", "process::Command"]
            .iter()
            .any(|what| rest.contains(what))
    };
    text.lines().filter(offends).map(|line| line.trim().to_owned()).collect()
}

/// The sources of a crate that go into the product, by path.
fn product_sources(package: &str) -> Vec<(String, String)> {
    let dir = Path::new("crates").join(package).join("src");
    let mine = rust_files().into_iter().filter(|path| path.starts_with(&dir));
    mine.filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"))
        .map(|path| (path.display().to_string(), product_part(&source(&path))))
        .collect()
}

/// The text without comments and without the items under `#[cfg(test)]`.
fn product_part(text: &str) -> String {
    let mut lines = text.lines();
    let mut product = String::new();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code == "#[cfg(test)]" {
            let indent = &line[..line.len() - code.len()];
            let item = lines.next().unwrap_or_default();
            if item.ends_with('{') {
                let end = format!("{indent}}}");
                lines.by_ref().find(|line| *line == end);
            }
        } else if !code.starts_with("//") {
            product.push_str(line);
            product.push('\n');
        }
    }
    product
}

fn is_vague(path: &Path) -> bool {
    let names = path.iter().filter_map(|part| Path::new(part).file_stem()?.to_str());
    names.into_iter().any(|name| VAGUE_NAMES.contains(&name))
}

/// Every Rust file of the workspace, relative to its root.
fn rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for top in ["crates", "xtask"] {
        collect(&root().join(top), &mut files);
    }
    files.sort();
    files.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let built = path.ends_with("target") || path.ends_with("node_modules");
        if path.is_dir() && !built {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn source(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

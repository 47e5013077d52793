//! The same verdicts whatever gates are laid over the base's build with: an overlay, a copy that shares
//! blocks, a whole copy, nothing. A real build tool, and the ways to mislead it.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

#[path = "warm/ground.rs"]
mod ground;

use ground::{Machine, STALE, agents, cargo_stage, shell_stage};

/// A change on the two crates, and the verdict on it.
struct CargoCase {
    what: &'static str,
    build: &'static str,
    /// The command of the gate.
    tests: &'static str,
    /// The gates where layers are overlays.
    gates: &'static str,
}

const TESTS: &str = "cargo test --offline -q";
/// An example that is run first, and the base's binary that is run then.
const EXAMPLE_FIRST: &str =
    "cargo run --offline -q --example date && cargo run --offline -q | grep -qx 2";
const RED: &str = "preflight- say-done.validate+! say-done.validate-!";
const RED_AT_ONCE: &str = "preflight- say-done.validate-! say-done.validate-!";

const CARGO_CASES: &[CargoCase] = &[
    CargoCase {
        what: "an honest mistake",
        build: "sed -i 's/+ 1/+ 2/' src/lib.rs",
        tests: TESTS,
        gates: RED,
    },
    CargoCase {
        what: "a mistake in what everything depends on",
        build: "sed -i 's/    1/    7/' steady/src/lib.rs",
        tests: TESTS,
        gates: RED,
    },
    CargoCase {
        what: "an example that dates the changed binary back, so that the base's is run",
        build: "sed -i 's/calc::two()/3/' src/main.rs; cat > examples/date.rs <<'X'\n\
                fn main() {\n    let file = std::fs::File::options().write(true).open(\"src/main.rs\");\n    \
                let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(978307200);\n    \
                file.unwrap().set_modified(old).unwrap();\n}\nX",
        tests: EXAMPLE_FIRST,
        gates: RED_AT_ONCE,
    },
    CargoCase {
        what: "a binary of the base whose source is gone",
        build: "git rm -q src/main.rs",
        tests: "cargo test --offline -q && [ \"$(target/debug/calc)\" = 2 ]",
        gates: RED_AT_ONCE,
    },
    CargoCase {
        what: "a module that is gone",
        build: "git rm -q steady/src/lib.rs",
        tests: TESTS,
        gates: RED_AT_ONCE,
    },
];

fn cargo_is_not_misled(machine: Machine) {
    for case in CARGO_CASES {
        let config = "loop: { max_iterations: 2 }\n";
        let mut stage = cargo_stage(config);
        machine.prepare(&mut stage);
        stage.config(&format!("commands: {{ tests: {:?} }}\n{config}", case.tests));
        agents(&stage, case.build, "echo >> notes.txt");
        let ended = machine.run(&stage);
        assert_eq!(ended.code, 11, "{}: {}", case.what, ended.said());
        let seen = machine.gates(&stage);
        let is_cold = machine.may_be_cold() && seen == RED_AT_ONCE;
        assert!(seen == case.gates || is_cold, "{}: {seen}", case.what);
    }
}

/// A change that only the last word is against is repaired.
fn a_stale_build_has_no_last_word(machine: Machine) {
    let mut stage = shell_stage(STALE, "");
    machine.prepare(&mut stage);
    agents(&stage, "echo broken >> app.txt", "echo start > app.txt; echo mended >> app.txt");
    let ended = machine.run(&stage).expect(0);
    ended.says(&["say-done: passed over what the base had built, but it fails from nothing"]);
    let seen = machine.gates(&stage);
    assert!(seen.starts_with("preflight- say-done.validate+ say-done.prove-!"), "{seen}");
    let way = match machine {
        Machine::Overlay => "layers over what the base built (overlay)",
        Machine::Reflink => "copies that share blocks with what the base built (reflink)",
        Machine::Copy => "whole copies of what the base built",
    };
    machine.call(&stage, &["doctor"]).says(&[way]);
}

#[test]
fn cargo_is_not_misled_over_an_overlay() {
    cargo_is_not_misled(Machine::Overlay);
}

#[test]
fn cargo_is_not_misled_over_shared_blocks() {
    if Machine::Reflink.is_there() {
        cargo_is_not_misled(Machine::Reflink);
    }
}

#[test]
fn cargo_is_not_misled_over_a_copy() {
    cargo_is_not_misled(Machine::Copy);
}

#[test]
fn a_stale_build_has_no_last_word_over_an_overlay() {
    a_stale_build_has_no_last_word(Machine::Overlay);
}

#[test]
fn a_stale_build_has_no_last_word_over_shared_blocks() {
    if Machine::Reflink.is_there() {
        a_stale_build_has_no_last_word(Machine::Reflink);
    }
}

#[test]
fn a_stale_build_has_no_last_word_over_a_copy() {
    a_stale_build_has_no_last_word(Machine::Copy);
}

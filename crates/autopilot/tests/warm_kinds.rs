//! The same verdicts whatever gates are laid over the base's build with: an overlay, a copy that shares
//! blocks, a whole copy, nothing. A real build tool, and the ways to mislead it.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

#[path = "warm/ground.rs"]
mod ground;

use autopilot_testkit::small_disk::is_root;
use autopilot_testkit::stage::{Ended, Stage};
use ground::{STALE, agents, cargo_stage, gates, shell_stage};
use std::process::Command;

/// The kinds that a machine is played to lack, and what is left.
const MACHINES: &[(&str, &str)] = &[("", "overlay"), ("overlay,reflink", "whole copy")];

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

#[test]
fn cargo_is_not_misled_whatever_gates_are_laid_over_the_build_of_the_base_with() {
    for case in CARGO_CASES {
        for (lacks, has) in MACHINES {
            let config = "loop: { max_iterations: 2 }\n";
            let mut stage = cargo_stage(config);
            stage.set("AUTOPILOT_WITHOUT_LAYERS", lacks);
            stage.config(&format!("commands: {{ tests: {:?} }}\n{config}", case.tests));
            agents(&stage, case.build, "echo >> notes.txt");
            let ended = stage.run_task();
            assert_eq!(ended.code, 11, "{}, {has}: {}", case.what, ended.said());
            let seen = gates(&stage);
            let is_cold = *has == "whole copy" && seen == RED_AT_ONCE;
            assert!(seen == case.gates || is_cold, "{}, {has}: {seen}", case.what);
        }
    }
}

#[test]
fn a_stale_build_has_no_last_word_whatever_gates_are_laid_over_it_with() {
    for (lacks, has) in MACHINES {
        let mut stage = shell_stage(STALE, "");
        stage.set("AUTOPILOT_WITHOUT_LAYERS", lacks);
        is_repaired(&stage, has, &|args| stage.run(args));
    }
}

/// A change that only the last word is against is repaired. `call` runs the program.
fn is_repaired(stage: &Stage, has: &str, call: &dyn Fn(&[&str]) -> Ended) {
    agents(stage, "echo broken >> app.txt", "echo start > app.txt; echo mended >> app.txt");
    let ended = call(&["run", "tasks/say-done.md"]).expect(0);
    ended.says(&["say-done: passed over what the base had built, but it fails from nothing"]);
    let shown = call(&["show", "--json"]).expect(0).out;
    assert!(shown.contains("\"warm\":true") || shown.contains("\"warm\": true"), "{has}: {shown}");
}

/// The program with its state directory on a file system that shares blocks between files. Only root can
/// mount one; the copies themselves are tested where there is no root in the host's tests.
#[test]
fn a_stale_build_has_no_last_word_where_layers_share_blocks_with_it() {
    if !is_root() {
        eprintln!("left out: only root can mount the file system of this test");
        return;
    }
    let mut stage = shell_stage(STALE, "");
    stage.set("AUTOPILOT_WITHOUT_LAYERS", "overlay");
    let image = stage.folder().join("image");
    std::fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
    assert!(Command::new("mkfs.btrfs").arg("-q").arg(&image).status().unwrap().success());
    std::fs::create_dir_all(stage.state()).unwrap();
    let script =
        format!("mount -o loop '{}' '{}' && exec \"$@\"", image.display(), stage.state().display());
    let call = |args: &[&str]| {
        let inner = stage.command(args);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script, "sh"]).arg(inner.get_program());
        command.args(inner.get_args()).env_clear().current_dir(stage.root());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        stage.start_command(command).wait()
    };
    is_repaired(&stage, "reflink", &call);
    call(&["doctor"]).says(&["copies that share blocks with what the base built (reflink)"]);
}

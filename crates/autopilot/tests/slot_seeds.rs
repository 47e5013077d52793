//! An agent's slot begins with what the base built, at the paths of the gate, and gives nothing back.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::outside;
use autopilot_testkit::stage::{Stage, digest_of, text};
use std::fs;
use std::path::PathBuf;

#[path = "warm/ground.rs"]
mod ground;

use ground::{agents, cargo_stage, gates, run, shell_stage};

/// Lets builders write outside of their slots, and returns a file there.
fn told_by_agents(stage: &Stage, config: &str) -> PathBuf {
    let dir = outside(stage, "");
    fs::create_dir_all(&dir).unwrap();
    stage.config(&format!("sandbox: {{ write: [\"{}\"] }}\n{config}", text(dir)));
    outside(stage, "agent")
}

fn read(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_first_build_of_an_agent_compiles_only_what_it_has_changed() {
    let stage = cargo_stage("");
    let told = told_by_agents(&stage, "commands: { tests: cargo test --offline }\n");
    let build = format!(
        "cargo build --offline -v 2> {0}; echo '// more' >> src/lib.rs; \
         cargo build --offline 2>> {0}; cargo test --offline >> {0} 2>&1",
        text(&told)
    );
    agents(&stage, &build, "true");
    run(&stage).expect(0).says(&["DONE"]);
    let told = read(&told);
    let first = told.lines().take_while(|line| !line.contains("Finished")).collect::<Vec<_>>();
    assert!(first.iter().all(|line| line.contains("Fresh")), "all is as the base built it: {told}");
    assert!(told.contains("Compiling calc") && !told.contains("Compiling steady"), "{told}");
    assert!(!told.contains("error"), "{told}");
}

/// What the base's gate installs and loads, and what an agent is to find of it.
const INSTALLS: &str = "\
[ -e .venv/pyvenv.cfg ] || python3 -m venv --without-pip .venv || exit 1
mkdir -p node_modules/kit target/debug $CARGO_HOME/registry/src/kit-1.0
echo 'module.exports = 1' > node_modules/kit/index.js
echo lib > $CARGO_HOME/registry/src/kit-1.0/lib.rs
echo \"cargo home $CARGO_HOME\"
";

#[test]
fn an_agent_finds_environments_and_packages_where_the_gate_has_them() {
    let stage = shell_stage(INSTALLS, "");
    let told = told_by_agents(&stage, "commands: { tests: sh test.sh }\n");
    let build = format!(
        "(.venv/bin/python -c 'import sys; print(sys.prefix)'; cat node_modules/kit/index.js; \
         cat $CARGO_HOME/registry/src/kit-1.0/lib.rs; echo \"cargo home $CARGO_HOME\") > {} 2>&1; \
         echo done >> app.txt",
        text(&told)
    );
    agents(&stage, &build, "true");
    run(&stage).expect(0).says(&["DONE"]);
    let told = read(&told);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.first().is_some_and(|line| line.ends_with("/work/tree/.venv")), "{told}");
    assert_eq!(lines.get(1..3), Some(&["module.exports = 1", "lib"][..]), "{told}");
    let home = lines.last().unwrap();
    assert!(home.ends_with("/work/cache/cargo"), "{told}");
    let gate = stage.texts_of("logs/validation_tests");
    assert!(gate.contains(home), "the gate has it at another path: {gate}");
}

#[test]
fn a_slot_that_was_being_filled_when_the_controller_died_is_filled_anew() {
    for point in ["slot.copied:1", "slot.filled:1", "slot.filled:2"] {
        let mut stage = shell_stage(INSTALLS, "");
        let told = told_by_agents(&stage, "commands: { tests: sh test.sh }\n");
        let build = format!(
            "ls -d .venv/pyvenv.cfg node_modules/kit/index.js target/debug > {} 2>&1; \
             echo done >> app.txt",
            text(&told)
        );
        agents(&stage, &build, "true");
        stage.set("AUTOPILOT_FAILPOINT", point);
        assert!(![0, 10, 11].contains(&run(&stage).code), "{point}: it was not killed");
        assert_eq!(read(&told), "", "{point}: the agent was started");
        stage.unset("AUTOPILOT_FAILPOINT");
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
        let wanted = ".venv/pyvenv.cfg\nnode_modules/kit/index.js\ntarget/debug\n";
        assert_eq!(read(&told), wanted, "{point}");
    }
}

/// Fails where something was planted.
const LOOKS: &str = "\
for place in target/debug node_modules/kit .venv $CARGO_HOME/registry/src/kit-1.0; do
  if [ -e $place/planted ]; then echo FAILED found $place/planted; exit 1; fi
  if grep -qs planted $place/kept; then echo FAILED changed $place/kept; exit 1; fi
  mkdir -p $place && [ -e $place/kept ] || echo kept > $place/kept
done
[ -e .venv/pyvenv.cfg ] || echo home > .venv/pyvenv.cfg
";

#[test]
fn nothing_that_an_agent_plants_in_what_it_was_given_reaches_a_gate() {
    let stage = shell_stage(LOOKS, "");
    let told = told_by_agents(&stage, "commands: { tests: sh test.sh }\n");
    let build = format!(
        "for place in target/debug node_modules/kit .venv $CARGO_HOME/registry/src/kit-1.0; do \
         cat $place/kept >> {}; echo planted >> $place/kept; echo x > $place/planted; done; \
         echo done >> app.txt",
        text(&told)
    );
    agents(&stage, &build, "true");
    run(&stage).expect(0).says(&["DONE"]);
    assert_eq!(read(&told), "kept\n".repeat(4), "the agent had it all");
    let seeds = || {
        let all = digest_of(&stage.state(), &[]).into_iter();
        all.filter(|(path, _)| path.contains("/seeds/") && path.contains("/root/"))
            .collect::<Vec<_>>()
    };
    let before = seeds();
    assert!(before.iter().any(|(path, _)| path.ends_with("target/debug/kept")), "{before:?}");
    stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0).says(&["DONE"]);
    assert_eq!(seeds(), before, "a seed has changed");
    let seen = gates(&stage);
    assert!(seen.contains("validate+") && !seen.contains('!'), "{seen}");
}

#[test]
fn what_git_would_commit_is_not_put_into_a_slot() {
    let stage = shell_stage(INSTALLS, "");
    stage.write(".gitignore", ".venv/\nleft*\n");
    stage.commit("build output is not ignored");
    let told = told_by_agents(&stage, "commands: { tests: sh test.sh }\n");
    let build = format!(
        "ls -d .venv node_modules target > {} 2>/dev/null; echo done >> app.txt",
        text(&told)
    );
    agents(&stage, &build, "true");
    run(&stage).expect(0).says(&["DONE"]);
    assert_eq!(read(&told), ".venv\n");
}

#[test]
fn whoever_wants_no_build_output_kept_gets_none_of_the_base() {
    let stage = shell_stage(INSTALLS, "");
    let config = "commands: { tests: sh test.sh }\nworktrees: { keep: never }\n";
    let told = told_by_agents(&stage, config);
    let build = format!("ls -A > {}; echo done >> app.txt", text(&told));
    agents(&stage, &build, "true");
    run(&stage).expect(0).says(&["DONE"]);
    assert!(!read(&told).contains("node_modules"), "{}", read(&told));
}

//! Whatever a build or a test of the base leaves behind, whatever a gate does to files and their times,
//! misleads no verdict: over an overlay, over a copy that shares blocks, and over a whole copy.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{PLAN_MD, plan, says, task};
use autopilot_testkit::stage::APPROVES;

#[path = "warm/ground.rs"]
mod ground;

use ground::{Machine, agents, shell_stage};

/// Makes a test of each function for each machine that has it.
macro_rules! on_each_machine {
    ($($function:ident)*) => {
        mod over_an_overlay {
            $(#[test]
            fn $function() {
                super::$function(super::Machine::Overlay);
            })*
        }
        mod over_shared_blocks {
            $(#[test]
            fn $function() {
                if super::Machine::Reflink.is_there() {
                    super::$function(super::Machine::Reflink);
                }
            })*
        }
        mod over_a_copy {
            $(#[test]
            fn $function() {
                super::$function(super::Machine::Copy);
            })*
        }
    };
}

on_each_machine! {
    what_a_test_of_the_base_left_behind_helps_no_test_of_a_change
    what_a_build_of_the_base_left_behind_has_no_last_word
    a_command_that_dates_files_of_the_change_is_run_again_from_nothing
    nothing_that_a_warm_gate_plants_reaches_another_gate
}

/// What a test of the base leaves, and where a test of the change looks for it.
const LEFT: &[(&str, &str)] = &[
    ("a file that git ignores", "left.txt"),
    ("a cache in the installed packages", "node_modules/.cache/left"),
    ("a file of another kind among compiled modules", "__pycache__/left.txt"),
    ("a directory that only looks like an environment", ".venv/left"),
    ("the directory of integration tests", "target/tmp/left"),
    ("a file at home", "$HOME/left"),
    ("a temporary file", "$TMPDIR/left"),
    ("a file in the shared cache", "$XDG_CACHE_HOME/left"),
];

fn what_a_test_of_the_base_left_behind_helps_no_test_of_a_change(machine: Machine) {
    for (what, path) in LEFT {
        let base = format!("mkdir -p \"$(dirname {path})\" && echo x > {path}\n");
        let mut stage = shell_stage(&base, "loop: { max_iterations: 2 }\n");
        let build = format!("echo '[ -e {path} ]' > checks.sh");
        agents(&stage, &build, "echo x >> notes.txt");
        machine.prepare(&mut stage);
        machine.run(&stage).expect(11);
        let seen = machine.gates(&stage);
        let wanted = "preflight- say-done.validate+! say-done.validate-!";
        assert_eq!(seen, wanted, "{what}: over the seed, and from nothing in the last round");
    }
}

/// What a build tool owns stays in a seed, so a change can lean on it; the last word is against it.
const OWNED: &[(&str, &str, &str)] = &[
    ("the output of a build", "target/debug/left", "true"),
    ("an installed package", "node_modules/left/index.js", "true"),
    ("an environment", ".venv/left", "mkdir -p .venv && echo home > .venv/pyvenv.cfg"),
];

fn what_a_build_of_the_base_left_behind_has_no_last_word(machine: Machine) {
    for (what, path, first) in OWNED {
        let base = format!("{first} && mkdir -p \"$(dirname {path})\" && echo x > {path}\n");
        let mut stage = shell_stage(&base, "");
        let build = format!("echo '[ -e {path} ]' > checks.sh");
        agents(&stage, &build, "echo true > checks.sh");
        machine.prepare(&mut stage);
        machine.run(&stage).expect(0).says(&["but it fails from nothing: tests failed"]);
        let seen = machine.gates(&stage);
        assert!(
            seen.starts_with("preflight- say-done.validate+ say-done.prove-!"),
            "{what}: {seen}"
        );
        assert!(seen.ends_with("say-done.validate- say-done.merge- prove-"), "{what}: {seen}");
    }
}

/// What a command does to the files of the change while it runs.
const MEDDLING: &[&str] = &[
    "touch -d 2001-01-01 app.txt",
    "touch -d 2099-01-01 app.txt",
    "cp app.txt copy && mv copy app.txt",
    "touch -r lib/one.sh app.txt",
];

fn a_command_that_dates_files_of_the_change_is_run_again_from_nothing(machine: Machine) {
    for line in MEDDLING {
        let mut stage = shell_stage("true\n", "");
        agents(&stage, &format!("echo more >> app.txt; echo '{line}' > checks.sh"), "true");
        machine.prepare(&mut stage);
        machine
            .run(&stage)
            .expect(0)
            .says(&["tests checked from nothing, because a command touched `app.txt`"]);
        assert_eq!(
            machine.gates(&stage),
            "preflight- say-done.validate- say-done.merge-",
            "{line}"
        );
    }
}

/// Looks in every place that a gate can write, and leaves something there if the project says so.
const PLANTS: &str = "\
for place in target/debug/.fingerprint node_modules/left .venv __pycache__ $CARGO_HOME/registry/src \
$XDG_CACHE_HOME $HOME $TMPDIR /dev/shm; do
  if [ -e $place/planted ]; then echo FAILED found $place/planted; exit 1; fi
  if [ -e plants ]; then mkdir -p $place && echo x > $place/planted || exit 1; fi
done
";

fn nothing_that_a_warm_gate_plants_reaches_another_gate(machine: Machine) {
    let wanted = plan(&[task("a", &[]), task("b", &["a"]), task("c", &["b"])]);
    let mut stage = shell_stage(PLANTS, "orchestrator: { max_workers: 1 }\n");
    stage.write("plan.md", PLAN_MD);
    let builds = "
- step: build
  do: [{ run: \"echo x > plants; echo x > $AUTOPILOT_TASK_ID.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[&says(&wanted), builds, APPROVES]);
    machine.prepare(&mut stage);
    machine.call(&stage, &["run", "plan.md"]).expect(0);
    let seen = machine.gates(&stage);
    if machine.may_be_cold() {
        assert!(seen.contains("a.validate+"), "{seen}");
        return;
    }
    assert_eq!(
        seen,
        "preflight- a.validate+ a.merge- b.validate+ b.merge- c.validate+ c.merge- validate+ prove-"
    );
}

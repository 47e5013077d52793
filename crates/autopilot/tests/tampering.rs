//! Gates that change what they prove.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage};

/// A builder that runs a line for the shell in every iteration, before `done` is said.
fn builder(line: &str) -> String {
    let line = format!("{line}; echo done >> app.txt");
    format!(
        "
- step: [build, fix]
  do: [{{ run: {line:?} }}, {{ answer: {{ changed_files: [app.txt], tests_ran: true, notes: wrote it }} }}]
"
    )
}

const TASK: &str = "# Task: Say done\n\nGoal:\n- say done\n\nAcceptance Criteria:\n- it is said\n";

fn stage(config: &str, line: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.write("tasks/say-done.md", TASK);
    stage.config(&format!("loop: {{ max_iterations: 2 }}\n{config}"));
    stage.agents(&[&builder(line), APPROVES]);
    stage
}

/// Warm gates and cold ones, and gates in slots.
const KINDS: [&str; 2] = ["", "gates: { warm: off }\n"];

#[test]
fn a_test_that_repairs_the_code_before_it_tests_it_proves_nothing() {
    let repairs = "printf 'echo repaired > app.txt\\n. ./run.sh\\n' > test.sh; echo 'cat app.txt' > run.sh; echo broken > app.txt";
    for config in KINDS {
        let stage = stage(&format!("commands: {{ tests: sh test.sh }}\n{config}"), repairs);
        let ended = stage.run_task().expect(11);
        ended.says(&["FAILED", "tests changed what it proves: app.txt"]);
    }
}

#[test]
fn what_the_setup_makes_of_tracked_files_is_not_proven() {
    // The setup is a script of the change: it writes over the tests.
    let plants = "echo 'echo exit 0 > check.sh' > setup.sh; echo 'exit 1' > check.sh";
    for config in KINDS {
        let config = format!(
            "commands: {{ tests: sh check.sh }}\nworktrees: {{ setup: sh setup.sh }}\n{config}"
        );
        let stage = stage(&config, plants);
        stage.write("setup.sh", "true\n");
        stage.write("check.sh", "true\n");
        stage.commit("a setup and a check");
        // Gates in slots can only tell it.
        let told = match config.contains("off") {
            false => "tests failed with exit code 1",
            true => "tests changed what it proves: check.sh",
        };
        stage.run_task().expect(11).says(&["FAILED", told]);
    }
}

#[test]
fn tests_that_always_write_a_tracked_file_are_no_cheat() {
    for config in KINDS {
        let stage = stage(&format!("commands: {{ tests: sh count.sh }}\n{config}"), "true");
        stage.write("count.sh", "echo ran >> count.txt\n");
        stage.write("count.txt", "ran\n");
        stage.commit("tests that count");
        let ended = stage.run_task().expect(0).says(&["DONE"]);
        assert!(!ended.said().contains("Look at this"), "{}", ended.said());
    }
}

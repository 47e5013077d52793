//! What programs without a sandbox could have changed is trusted by no later run.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{Stage, files_with, text};

#[path = "warm/ground.rs"]
mod ground;

use ground::{STALE, agents, gates, run, shell_stage};

const TOLD: &str = "what earlier runs have built of the base is not used: programs without a sandbox \
                    could have changed it";
const TAKEN: &str = "the base was not proven again";
const TESTS: &str = "commands: { tests: sh test.sh }\n";

/// A stage on which a first run has left a seed and the proof of the base, and a second one, with this
/// sandbox, has changed the seed.
fn changed_by_a_run(sandbox: impl Fn(&Stage) -> String) -> Stage {
    let stage = shell_stage(STALE, "");
    agents(&stage, "echo more >> app.txt", "true");
    run(&stage).expect(0);
    stage.config(&format!("{TESTS}sandbox: {}\n", sandbox(&stage)));
    let seeds = text(stage.state());
    let plant = format!(
        "for out in $(find {seeds} -path '*/seeds/*/target/out'); do echo planted >> $out; done; \
         echo more >> app.txt"
    );
    agents(&stage, &plant, "true");
    stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0);
    stage.config(TESTS);
    agents(&stage, "echo more >> app.txt", "true");
    stage
}

#[test]
fn a_run_without_a_sandbox_leaves_no_seed_and_no_proof_to_the_next() {
    let stage = changed_by_a_run(|_| "{ mode: off }".to_owned());
    assert!(!files_with(&stage.state(), "planted").is_empty(), "the test has changed no seed");
    let next = stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0).says(&[TOLD]);
    assert!(!next.said().contains(TAKEN), "{}", next.said());
    assert!(gates(&stage).starts_with("preflight- say-done.validate+"), "{}", gates(&stage));
    let left = files_with(&stage.state(), "planted");
    let in_seeds = left.iter().filter(|path| text(path).contains("/seeds/")).collect::<Vec<_>>();
    assert!(in_seeds.is_empty(), "{in_seeds:?}");
    // What the next run has made itself is trusted again.
    let last = stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0).says(&[TAKEN]);
    assert!(!last.said().contains(TOLD), "{}", last.said());
}

#[test]
fn where_the_state_is_covered_a_path_around_it_lets_nobody_in() {
    let open = |stage: &Stage| format!("{{ write: [\"{}\"] }}", text(stage.folder()));
    let stage = changed_by_a_run(open);
    let changed = files_with(&stage.state(), "planted");
    let in_seeds = changed.iter().filter(|path| text(path).contains("/seeds/")).count();
    assert_eq!(in_seeds, 0, "{changed:?}");
    let next = stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0).says(&[TAKEN]);
    assert!(!next.said().contains(TOLD), "{}", next.said());
}

#[test]
fn a_run_in_a_sandbox_leaves_both() {
    let stage = changed_by_a_run(|_| "{ mode: auto }".to_owned());
    let next = stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0).says(&[TAKEN]);
    assert!(!next.said().contains(TOLD), "{}", next.said());
}

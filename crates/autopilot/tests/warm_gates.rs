//! Gates over what the untouched base built: they are fast, they say so, and they never have the last
//! word.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{PLAN_MD, plan, says, task};
use autopilot_testkit::stage::APPROVES;
use serde_json::Value;

#[path = "warm/ground.rs"]
mod ground;

use ground::{STALE, agents, cargo_stage, gates, run, shell_stage};

#[test]
fn a_change_is_proven_over_what_the_base_built_and_the_result_from_nothing() {
    let stage = cargo_stage("");
    agents(&stage, "echo '// more' >> src/lib.rs", "true");
    let ended = run(&stage).expect(0);
    let proof = "proof: gates started from what the base built (warm); the result was proven once \
                 more from nothing (cold)";
    ended.says(&["DONE", proof]);
    assert_eq!(
        gates(&stage),
        "preflight- say-done.validate+ say-done.prove- say-done.merge- prove-"
    );
    let logs = stage.texts_of("logs/validation_tests");
    assert_eq!(logs.matches("Compiling steady").count(), 2, "the base and the last word: {logs}");
    assert_eq!(logs.matches("Compiling calc").count(), 3, "{logs}");
    assert_eq!(stage.status()["last_word"], "cold");
    for text in [stage.run(&["status"]).expect(0).out, stage.read(".autopilot/STATUS.md")] {
        assert!(text.contains("the result was proven once more from nothing (cold)"), "{text}");
    }
    let shown = stage.run(&["show", "say-done"]).expect(0).out;
    assert!(shown.contains("passed (warm)"), "{shown}");
    let logs = stage.run(&["logs"]).expect(0).out;
    assert!(logs.contains("say-done: validate passed (warm)"), "{logs}");
    let page = stage.run(&["report", "--out", "-"]).expect(0).out;
    assert!(page.contains("passed (warm)") && page.contains("passed (cold)"), "{page}");
}

#[test]
fn what_passes_over_the_base_and_fails_from_nothing_is_not_done_until_it_is_repaired() {
    let stage = shell_stage(STALE, "");
    agents(&stage, "echo broken >> app.txt", "echo start > app.txt; echo mended >> app.txt");
    run(&stage).expect(0).says(&[
        "note:  say-done: passed over what the base had built, but it fails from nothing: tests failed \
         with exit code 1",
        "proof: gates started from what the base built (warm); the result was proven once more from \
         nothing (cold)",
    ]);
    assert_eq!(
        gates(&stage),
        "preflight- say-done.validate+ say-done.prove-! say-done.validate- say-done.merge- prove-",
        "what fails from nothing is not merged"
    );
    let prompts = stage.texts_of("prompt");
    assert!(prompts.contains("FAILED broken"), "{prompts}");
    let shown = stage.run(&["show", "say-done"]).expect(0).out;
    let why = "checked from nothing, because what passed over the base's build has failed from nothing in this run";
    assert!(shown.contains(why), "{shown}");
}

#[test]
fn a_result_that_stays_red_from_nothing_is_never_done_nor_pushed() {
    let stage = shell_stage(STALE, "loop: { max_iterations: 1 }\n");
    let builds = "
- step: build
  task: a
  do: [{ run: \"echo broken >> app.txt\" }, { answer: { changed_files: [x], notes: x } }]
- step: build
  do: [{ run: \"echo x > $AUTOPILOT_TASK_ID.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[builds, APPROVES]);
    let task = stage.read("tasks/say-done.md");
    std::fs::remove_file(stage.path("tasks/say-done.md")).unwrap();
    for name in ["a", "b"] {
        stage.write(&format!("tasks/{name}.md"), &task);
    }
    stage.commit("two tasks");
    let remote = stage.folder().join("remote.git");
    stage.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    stage.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    let ended = stage.run(&["run", "--queue", "tasks", "--push"]);
    assert!([10, 11].contains(&ended.code), "{}", ended.said());
    let proof = "what is merged passed over what the base built (warm), and then failed from nothing \
                 (cold)";
    ended.says(&[proof, "fails from nothing since task a was merged"]);
    assert_eq!(stage.status()["last_word"], "failed");
    assert!(stage.read(".autopilot/STATUS.md").contains(proof));
    assert_eq!(stage.git_in(&remote, &["for-each-ref"]), "", "nothing was pushed");
}

#[test]
fn the_task_with_which_it_began_is_found_among_all_that_were_merged() {
    let wanted = plan(&["a", "b", "c", "d"].map(|name| task(name, &[])));
    let stage = shell_stage(STALE, "orchestrator: { max_workers: 1 }\n");
    stage.write("plan.md", PLAN_MD);
    let builds = "
- step: build
  task: proof-fix-1
  do: [{ run: \"echo start > app.txt\" }, { answer: { changed_files: [x], notes: x } }]
- step: build
  task: c
  do: [{ run: \"echo broken >> app.txt\" }, { answer: { changed_files: [x], notes: x } }]
- step: build
  do: [{ run: \"echo x > $AUTOPILOT_TASK_ID.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[&says(&wanted), builds, APPROVES]);
    stage.run(&["run", "plan.md"]).expect(0).says(&["fails from nothing since task c was merged"]);
    let prompts = stage.texts_of("proof-fix-1");
    assert!(prompts.contains("It fails since task `c` was merged."), "{prompts}");
    assert!(prompts.contains("FAILED broken"), "{prompts}");
    let gates = gates(&stage);
    assert!(gates.contains("b.merge+") && gates.contains("d.merge+"), "{gates}");
    assert!(
        gates.ends_with(
            "validate+ prove-! proof-fix-1.validate- proof-fix-1.merge- validate- prove-"
        ),
        "{gates}"
    );
}

#[test]
fn the_last_word_can_be_left_to_the_warm_gates_and_that_is_told() {
    let stage = shell_stage(STALE, "gates: { last_word: warm }\n");
    agents(&stage, "echo broken >> app.txt", "true");
    run(&stage)
        .expect(0)
        .says(&["proof: warm only: what is merged passed over what the base built"]);
    assert_eq!(gates(&stage), "preflight- say-done.validate+ say-done.merge-");
    assert_eq!(stage.status()["last_word"], "warm");
    for args in [&["status"][..], &["report", "--out", "-"][..]] {
        let told = stage.run(args).expect(0).out;
        assert!(told.contains("warm only"), "{told}");
    }
}

#[test]
fn without_warm_gates_every_gate_starts_from_nothing_and_there_is_no_last_one() {
    let stage = shell_stage(STALE, "gates: { warm: off }\nloop: { max_iterations: 1 }\n");
    agents(&stage, "echo broken >> app.txt", "true");
    run(&stage).expect(11);
    assert_eq!(gates(&stage), "preflight- say-done.validate-!");
    assert_eq!(stage.status()["last_word"], Value::Null);
    assert!(!stage.state().join("seeds").exists());
}

/// A change that build tools are known to misread, and what is said about it.
const COLD: &[(&str, &str)] = &[
    ("git rm -q lib/one.sh", "`lib/one.sh` was deleted or renamed"),
    ("git mv lib/one.sh lib/two.sh", "`lib/one.sh` was deleted or renamed"),
    ("git mv lib/one.sh lib/One.sh", "`lib/one.sh` was deleted or renamed"),
    ("git mv lib sources", "`lib/one.sh` was deleted or renamed"),
    ("rm lib/one.sh; ln -s ../app.txt lib/one.sh", "`lib/one.sh` is of another kind now"),
    ("echo '# x' >> Cargo.toml", "`Cargo.toml` is a manifest"),
    ("echo '{}' >> package.json", "`package.json` is a manifest"),
    ("echo '# x' >> setup.py", "`setup.py` is a manifest"),
    ("echo '# x' >> Cargo.lock", "`Cargo.lock` is a lock file"),
    ("echo stable > rust-toolchain", "`rust-toolchain` is the choice of a toolchain"),
    ("echo 20 > .nvmrc", "`.nvmrc` is the choice of a toolchain"),
    ("echo 'fn main() {}' > build.rs", "`build.rs` is a build script"),
    (
        "mkdir .cargo; echo '# x' > .cargo/config.toml",
        "the configuration of a test runner or compiler",
    ),
    ("echo '* text' > .gitattributes", "`.gitattributes` is a setting of the repository"),
    ("echo true >> test.sh", "a command names `test.sh`"),
];

#[test]
fn a_change_that_build_tools_misread_is_proven_from_nothing_at_once_and_told() {
    for (build, why) in COLD {
        let stage = shell_stage("true\n", "");
        agents(&stage, build, "true");
        run(&stage).expect(0).says(&["checked from nothing, because ", why]);
        assert_eq!(gates(&stage), "preflight- say-done.validate- say-done.merge-", "{build}");
        assert_eq!(stage.status()["last_word"], Value::Null, "{build}");
    }
}

#[test]
fn a_failure_that_smells_of_the_layer_costs_no_round() {
    // In an overlay a directory of the seed can't be renamed.
    let stage = shell_stage("mkdir -p target/old; echo x > target/old/x\n", "");
    let rename = "python3 -c 'import os; os.makedirs(\"target/old\", exist_ok=True); \
                  os.rename(\"target/old\", \"target/new\")'";
    agents(&stage, &format!("cat > checks.sh <<'X'\n{rename}\nX"), "true");
    run(&stage).expect(0).says(&["over what the base built, and passed from nothing"]);
    assert_eq!(gates(&stage), "preflight- say-done.validate- say-done.merge-");
    assert_eq!(stage.first_task()["iteration"], 1);
}

/// A tool in a directory of PATH, which the base's gate used, is changed by a person while the builder
/// works.
#[test]
fn a_seed_of_other_tools_is_not_used() {
    let mut stage = shell_stage("true\n", "");
    let bin = stage.folder().join("bin");
    stage.write_program("../bin/mytool", "#!/bin/sh\necho one\n");
    stage.set("PATH", &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    stage.config("commands: { tests: mytool }\n");
    let go = stage.path(".autopilot/go");
    let build =
        format!("echo more >> app.txt; while [ ! -e {} ]; do sleep 0.1; done", go.display());
    agents(&stage, &build, "true");
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    stage.write_program("../bin/mytool", "#!/bin/sh\necho one, mended\n");
    stage.write(".autopilot/go", "");
    run.wait().expect(0).says(&[
        "tests checked from nothing, because the tools or settings are no longer those that the base was built with",
    ]);
    assert_eq!(gates(&stage), "preflight- say-done.validate- say-done.merge-");
}

#[test]
fn a_seed_serves_later_runs_of_the_same_base() {
    let stage = shell_stage(STALE, "");
    agents(&stage, "echo more >> app.txt", "true");
    run(&stage).expect(0);
    let seeds = || {
        let all = autopilot_testkit::stage::files(&stage.state());
        all.into_iter().filter(|path| path.ends_with("seal.json")).collect::<Vec<_>>()
    };
    let first = seeds();
    assert_eq!(first.len(), 1, "{first:?}");
    stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0);
    assert_eq!(seeds(), first);
}

#[test]
fn a_base_that_changes_its_own_files_leaves_no_seed_and_that_is_told() {
    let stage = shell_stage("echo x >> app.txt\n", "");
    agents(&stage, "echo more > new.txt", "true");
    run(&stage).expect(0).says(&[
        "nothing was kept for warm gates: the gate of the base changed tracked files (app.txt)",
    ]);
    assert_eq!(gates(&stage), "preflight- say-done.validate- say-done.merge-");
}

#[test]
fn a_change_of_a_mode_alone_is_seen_by_a_warm_gate() {
    let checks = "[ ! -e wanted ] || [ -x lib/one.sh ] || { echo FAILED mode; exit 1; }\n";
    for (build, gates_seen) in [
        (
            "echo yes > wanted; chmod +x lib/one.sh",
            "preflight- say-done.validate+ say-done.prove- say-done.merge- prove-",
        ),
        ("echo yes > wanted", "preflight- say-done.validate+! say-done.validate-!"),
    ] {
        let stage = shell_stage(checks, "loop: { max_iterations: 2 }\n");
        agents(&stage, build, "echo x >> notes.txt");
        let ended = run(&stage);
        assert_eq!(gates(&stage), gates_seen, "{build}: {}", ended.said());
    }
}

#[test]
fn what_a_failed_run_has_merged_is_proven_from_nothing_before_it_ends() {
    let wanted = plan(&[task("a", &[]), task("b", &["a"])]);
    let checks = "! grep -q broken app.txt || { echo FAILED broken; exit 1; }\n";
    let more = "orchestrator: { max_workers: 1 }\nloop: { max_iterations: 1 }\n";
    let stage = shell_stage(checks, more);
    stage.write("plan.md", PLAN_MD);
    let builds = "
- step: build
  task: b
  do: [{ run: \"echo broken >> app.txt\" }, { answer: { changed_files: [x], notes: x } }]
- step: build
  do: [{ run: \"echo x > a.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[&says(&wanted), builds, APPROVES]);
    let ended = stage.run(&["run", "plan.md"]);
    assert!([10, 11].contains(&ended.code), "{}", ended.said());
    ended.says(&["the result was proven once more from nothing (cold)"]);
    assert_eq!(gates(&stage), "preflight- a.validate+ a.merge- b.validate-! prove-");
    assert_eq!(stage.status()["last_word"], "cold");
    let told = stage.run(&["status"]).expect(0).out;
    assert!(told.contains("proven once more from nothing"), "{told}");
}

#[test]
fn a_queue_with_a_failed_task_is_not_told_as_warm_only() {
    let checks = "! grep -q broken app.txt || { echo FAILED broken; exit 1; }\n";
    let stage = shell_stage(checks, "loop: { max_iterations: 1 }\n");
    let task = stage.read("tasks/say-done.md");
    std::fs::remove_file(stage.path("tasks/say-done.md")).unwrap();
    for name in ["a", "b", "c"] {
        stage.write(&format!("tasks/{name}.md"), &task);
    }
    stage.commit("three tasks");
    let builds = "
- step: build
  task: b
  do: [{ run: \"echo broken >> app.txt\" }, { answer: { changed_files: [x], notes: x } }]
- step: build
  do: [{ run: \"echo x > $AUTOPILOT_TASK_ID.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[builds, APPROVES]);
    let ended = stage.run(&["run", "--queue", "tasks"]);
    assert!([10, 11].contains(&ended.code), "{}", ended.said());
    ended.says(&["the result was proven once more from nothing (cold)", "1 task failed"]);
    let seen = gates(&stage);
    assert!(seen.ends_with("c.merge- prove-"), "{seen}");
    assert_eq!(stage.status()["last_word"], "cold");
}

#[test]
fn a_warm_gate_that_failed_says_so_and_tells_each_command_and_repeats_no_note() {
    let checks = "! grep -q broken app.txt || { echo FAILED one::test; exit 1; }\n";
    let stage = shell_stage(checks, "");
    stage.write("lint.sh", ". ./rules.sh\n");
    stage.write(
        "rules.sh",
        "! grep -q broken app.txt || { echo 'error: style of app.txt'; exit 1; }\n",
    );
    stage.commit("a lint");
    stage
        .config("commands: { tests: sh test.sh, lint: sh lint.sh }\nloop: { max_iterations: 3 }\n");
    agents(&stage, "echo broken >> app.txt", "echo more >> notes.txt");
    let ended = run(&stage).expect(11).says(&["one::test", "error: style of app.txt"]);
    let (_, last) = ended.out.split_once("last:  ").unwrap();
    assert!(last.contains("│ tests:") && last.contains("│ lint:"), "{last}");
    assert!(ended.said().contains("say-done: validate failed (exit 1, warm):"), "{}", ended.said());
    let shown = stage.run(&["show", "say-done"]).expect(0).out;
    assert!(shown.contains("failed (warm): "), "{shown}");
    let page = stage.run(&["report", "--out", "-"]).expect(0).out;
    assert!(page.contains("failed (warm)"), "{page}");
    let status = stage.run(&["status"]).expect(0).out;
    assert!(status.contains("│ lint:"), "{status}");
}

#[test]
fn what_is_so_in_every_round_is_told_once() {
    let stage = shell_stage("! grep -q broken app.txt\n", "loop: { max_iterations: 3 }\n");
    agents(&stage, "echo >> Cargo.toml; echo broken >> app.txt", "echo more >> notes.txt");
    let ended = run(&stage).expect(11);
    let why = "checked from nothing, because `Cargo.toml` is a manifest";
    let notes = ended.out.lines().filter(|line| line.starts_with("note:") && line.contains(why));
    assert_eq!(notes.count(), 1, "{}", ended.said());
    let told = stage.read(".autopilot/STATUS.md");
    assert_eq!(told.matches(why).count(), 1, "{told}");
    let seen = gates(&stage);
    assert!(seen.matches("validate-!").count() > 1, "several rounds: {seen}");
}

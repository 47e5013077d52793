//! Held-out tests: the controller runs them over what it proves, and no agent learns more of them than
//! the names of those that fail.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, answers, done, step, workflow};
use autopilot_testkit::plan::{self, plan, task};
use autopilot_testkit::stage::{APPROVES, Stage, files_with};
use std::fs;
use std::path::Path;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// A text that only the held-out files have. Scripts make it of its two halves.
const MARKER: &str = "the-answer-is-42";
const HELD: &str = "test \"$(sh add.sh 2 2)\" = 4 # the-answer-is-42\n";
/// A runner that prints as much of a failing test as it can.
const RUNNER: &str = "for t in tests/*.sh; do
  sh $t && echo \"test $t ... ok\" && continue
  bad=42; echo \"test $t ... FAILED\"; echo \"test $(cat $t) ... FAILED\"; cat $t >&2
done
exit ${bad:-0}
";
/// A builder that does what the visible tests ask for, and then what was asked.
const CHEATS: &str = "
- step: [build, step]
  do: [{ write: { add.sh: \"echo 3 # a sum\\n\" } }, { answer: { changed_files: [add.sh], notes: x } }]
- step: fix
  do: [{ write: { add.sh: \"echo $(($1 + $2))\\n\" } }, { answer: { changed_files: [add.sh], notes: x } }]
";
const TASK: &str = "# Task: Add\n\nGoal:\n- add.sh adds two numbers.\n\n\
Acceptance Criteria:\n- add.sh prints the sum of its arguments\n";
const TOLD: &str = "held-out test `tests/held_sum.sh` fails";

/// A project with a test that any program passes which prints 3, and one more test beside it.
fn stage(more: &str) -> Stage {
    let stage = Stage::new(BINARY);
    stage.write("add.sh", "echo 3\n");
    stage.write("test.sh", RUNNER);
    stage.write("tests/own.sh", "test \"$(sh add.sh 1 2)\" = 3\n");
    stage.commit("a sum and its test");
    stage.write("tasks/say-done.md", TASK);
    hold_out(&stage, "tests/held_sum.sh", HELD);
    stage.config(&format!(
        "commands: {{ tests: sh test.sh }}\ngates: {{ holdout: ../held }}\n\
         loop: {{ max_iterations: 3 }}\n{more}"
    ));
    stage.agents(&[CHEATS, APPROVES]);
    stage
}

fn hold_out(stage: &Stage, name: &str, text: &str) {
    let path = stage.folder().join("held").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Nothing but the held-out files, their copy and what the tests printed has the marker.
#[track_caller]
fn is_told_nowhere(stage: &Stage) {
    let is_private = |path: &Path| {
        let path = path.to_string_lossy();
        path.contains("/held/") || path.contains("/holdout/")
    };
    let mut found = files_with(stage.folder(), MARKER);
    found.retain(|path| !is_private(path));
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
    let mut repositories = vec![stage.root().join(".git")];
    let states = fs::read_dir(stage.state()).unwrap().flatten();
    repositories
        .extend(states.map(|state| state.path().join("hub.git")).filter(|hub| hub.exists()));
    assert!(repositories.len() > 1, "{repositories:?}");
    for repository in repositories {
        let listed =
            stage.git_in(&repository, &["cat-file", "--batch-all-objects", "--batch-check"]);
        for object in listed.lines().filter_map(|line| line.split(' ').next()) {
            let text = stage.git_in(&repository, &["cat-file", "-p", object]);
            assert!(!text.contains(MARKER), "{object}: {text}");
        }
    }
}

#[test]
fn a_builder_is_told_the_name_of_what_fails_and_repairs_it() {
    let stage = stage("");
    let said = stage.run_task().expect(0).says(&[TOLD]).said();
    assert!(!said.contains("Look at this") && !said.contains(MARKER), "{said}");
    let prompt = stage.texts_of("say-done-fix/prompt.txt");
    assert!(prompt.contains(TOLD), "{prompt}");
    for secret in ["add.sh 2 2", "exit code 42", "../held", "FAILED"] {
        assert!(!prompt.contains(secret), "`{secret}` is in:\n{prompt}");
    }
    let prompt = stage.texts_of("say-done-review/prompt.txt");
    assert!(prompt.contains("the held-out tests pass"), "{prompt}");
    is_told_nowhere(&stage);
    let log = files_with(&stage.state(), MARKER);
    assert!(log.iter().any(|path| path.to_string_lossy().contains("/holdout/logs/")), "{log:?}");
    let tree = stage.git(&["ls-tree", "-r", "--name-only", "autopilot/say-done"]);
    assert!(!tree.contains("held"), "{tree}");
}

/// A program that looks for the marker wherever it gets, and prints where it is.
fn spy(stage: &Stage) -> String {
    let (folder, state) = (stage.folder().display(), stage.state().display().to_string());
    format!(
        "m=the-answer; m=$m-is-42\n\
         grep -rsl -e $m {folder}\n\
         grep -rsl -e $m /dev/shm $HOME .\n\
         for p in /proc/[0-9]*; do grep -sl -e $m $p/environ $p/cmdline; grep -rsl -e $m $p/cwd/; done\n\
         ls {folder}/held/* {state}/*/holdout/*\n\
         for g in {state}/*/hub.git/objects {folder}/project/.git/objects; do\n\
           git init -q --bare x.git; echo $g > x.git/objects/info/alternates\n\
           git -C x.git cat-file --batch-all-objects --batch | grep -a -e $m; rm -rf x.git\n\
         done\n"
    )
}

#[test]
fn whoever_looks_for_the_held_out_tests_finds_nothing() {
    let stage = stage("");
    let looks = spy(&stage);
    // The look is one that finds what is there to be found.
    let first = looks.lines().take(2).collect::<Vec<_>>().join("\n");
    let seen =
        std::process::Command::new("sh").args(["-c", &first]).current_dir(stage.root()).output();
    let seen = String::from_utf8_lossy(&seen.unwrap().stdout).into_owned();
    assert!(seen.contains("/held/tests/held_sum.sh"), "{seen}");
    stage.write("look.sh", &looks);
    let gate = "[ -e tests/held_sum.sh ] || { f=$(sh look.sh 2>/dev/null); [ -z \"$f\" ] || { echo \"FOUND $f\"; exit 9; }; }\n";
    stage.write("test.sh", &format!("{gate}{RUNNER}"));
    stage.commit("tests that look around");
    let look = "    - run: \"sh look.sh > found.txt 2>/dev/null; true\"\n";
    let spies = |step: &str| format!("\n- step: {step}\n  do:\n{look}");
    let builder = format!(
        "{}    - run: \"echo 'echo 3 # a sum' > add.sh\"\n    - answer: {{ changed_files: [add.sh, found.txt], notes: x }}\n\
         {}    - run: \"echo 'echo $(($1 + $2))' > add.sh\"\n    - answer: {{ changed_files: [add.sh], notes: x }}\n",
        spies("build"),
        spies("fix"),
    );
    stage.agents(&[&builder, APPROVES]);
    stage.run_task().expect(0).says(&[TOLD]);
    assert_eq!(stage.git(&["show", "autopilot/say-done:found.txt"]), "");
    is_told_nowhere(&stage);
}

#[test]
fn code_that_prints_what_it_reads_is_not_repeated() {
    let stage = stage("");
    let prints = "
- step: [build, fix]
  do:
    - run: 'printf \"for t in tests/*; do echo test \\$(cat \\$t) ... FAILED; echo \\$(cat \\$t) ... FAILED; done; echo 3 # $AUTOPILOT_TRY$AUTOPILOT_ITERATION\\n\" > add.sh'
    - answer: { changed_files: [add.sh], notes: x }
";
    stage.agents(&[prints, APPROVES]);
    stage.write("tests/own.sh", "sh add.sh 1 2 | tail -n 1 | grep 3\n");
    hold_out(&stage, "tests/held_sum.sh", "sh add.sh 2 2; false # the-answer-is-42\n");
    stage.commit("a test that looks at the last line");
    let ended = stage.run_task().says(&[TOLD]);
    assert!(ended.code != 0 && !ended.said().contains(MARKER), "{}", ended.said());
    is_told_nowhere(&stage);
}

#[test]
fn held_out_files_that_a_command_changes_are_no_proof() {
    let stage = stage("");
    let edits = "
- step: [build, fix]
  do:
    - write: { add.sh: \"[ ! -e tests/held_sum.sh ] || echo true > tests/held_sum.sh; echo $(($1 + $2))\\n\" }
    - answer: { changed_files: [add.sh], notes: x }
";
    stage.agents(&[edits, APPROVES]);
    let ended = stage.run_task().says(&["files were changed while the held-out tests ran"]);
    assert_ne!(ended.code, 0);
    is_told_nowhere(&stage);
}

#[test]
fn a_link_in_the_way_of_a_held_out_test_leads_nowhere() {
    let stage = stage("");
    hold_out(&stage, "more/deep.sh", HELD);
    let links = "
- step: build
  do:
    - run: 'ln -s tests more; echo \"echo \\$((\\$1 + \\$2))\" > add.sh'
    - answer: { changed_files: [add.sh, more], notes: x }
";
    stage.agents(&[links, APPROVES]);
    stage.run_task().expect(0);
    is_told_nowhere(&stage);
}

#[test]
fn of_a_plan_the_whole_is_judged_and_the_repair_is_told_the_name() {
    let stage = stage("");
    stage.write("plan.md", plan::PLAN_MD);
    let builds = "
- step: [build, fix]
  task: one
  do: [{ write: { one.txt: \"x\\n\" } }, { answer: { changed_files: [one.txt], notes: x } }]
- step: [build, fix]
  task: two
  do: [{ write: { two.txt: \"x\\n\" } }, { answer: { changed_files: [two.txt], notes: x } }]
- step: [build, fix]
  prompt: held-out test `tests/held_sum.sh` fails
  do: [{ write: { add.sh: \"echo $(($1 + $2))\\n\" } }, { answer: { changed_files: [add.sh], notes: x } }]
";
    let plan = plan(&[task("one", &[]), task("two", &["one"])]);
    stage.agents(&[&plan::says(&plan), builds, APPROVES]);
    stage.run(&plan::RUN).expect(0).says(&[TOLD]);
    assert!(stage.texts_of("integration-fix-1-build/prompt.txt").contains(TOLD));
    assert!(!stage.texts_of("one-build/prompt.txt").contains("held"));
    is_told_nowhere(&stage);
}

#[test]
fn a_goal_is_not_met_before_the_held_out_tests_pass() {
    let stage = stage("");
    let works = "
- step: step
  task: one
  do: [{ write: { add.sh: \"echo 3 # a sum\\n\" } }, { answer: Done }]
- step: step
  task: again-i2
  do: [{ write: { add.sh: \"echo $(($1 + $2))\\n\" } }, { answer: Done }]
";
    stage.agents(&[
        &answers("workflow", 1, &workflow("w", &[step("one", &[])])),
        &answers("workflow", 2, &workflow("v", &[step("again", &[])])),
        works,
        &answers("completion", 1, &done("fine")),
        &answers("completion", 2, &done("fine")),
        APPROVES,
    ]);
    stage.run(&GOAL).expect(0).says(&[TOLD]);
    is_told_nowhere(&stage);
}

#[test]
fn in_a_queue_every_task_is_judged() {
    let stage = stage("");
    stage.write("tasks/zz-later.md", &TASK.replace("Add", "Later"));
    let builds = "
- step: [build, fix]
  task: zz-later
  do: [{ append: { later.txt: \"x\\n\" } }, { answer: { changed_files: [later.txt], notes: x } }]
";
    stage.agents(&[builds, CHEATS, APPROVES]);
    stage.run(&["run", "--queue", "tasks"]).expect(0).says(&[TOLD]);
    is_told_nowhere(&stage);
}

#[test]
fn a_run_that_is_killed_goes_on_with_the_tests_that_it_began_with() {
    let mut stage = stage("");
    stage.set("AUTOPILOT_FAILPOINT", "holdout.laid:1");
    assert_ne!(stage.run_task().code, 0);
    stage.unset("AUTOPILOT_FAILPOINT");
    hold_out(&stage, "tests/held_sum.sh", "true # the-answer-is-42\n");
    stage.run(&["resume"]).expect(0).says(&[
        "the held-out tests have changed since the run started",
        TOLD,
        "Look at this before you merge",
        "the held-out tests were changed during the run",
    ]);
    is_told_nowhere(&stage);
}

#[test]
fn directories_that_agents_can_read_are_refused() {
    let stage = stage("");
    fs::create_dir(stage.folder().join("empty")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", stage.folder().join("held/out")).unwrap();
    stage.write("inside/t.sh", "true\n");
    stage.write(".autopilot/held/t.sh", "true\n");
    for (dir, part) in [
        ("../none", "can't be read"),
        ("../empty", "has no file"),
        ("inside", "is in the checkout"),
        (".autopilot/held", "is in the checkout"),
        (".git", "is in the checkout"),
        ("..", "has the checkout"),
        ("../held", "`out` in the directory of held-out tests"),
    ] {
        stage.config(&format!("commands: {{ tests: sh test.sh }}\ngates: {{ holdout: {dir} }}\n"));
        stage.run_task().expect(78).says(&[part]);
        stage.run(&["doctor"]).says(&[part]);
    }
    let state = fs::read_dir(stage.state()).unwrap().flatten().next().unwrap().path();
    fs::create_dir_all(state.join("held")).unwrap();
    let dir = state.join("held");
    stage.config(&format!(
        "commands: {{ tests: sh test.sh }}\ngates: {{ holdout: {} }}\n",
        dir.display()
    ));
    stage.run_task().expect(78).says(&["is in the state directory"]);
    stage.config("gates: { holdout: ../held }\n");
    stage.run_task().expect(78);
    stage.config(
        "commands: { tests: sh test.sh }\ngates: { holdout: ../held }\nworktrees: { keep: always }\n",
    );
    stage.run_task().expect(78).says(&["`worktrees.keep: always`"]);
}

#[test]
fn where_nothing_hides_files_the_person_is_told() {
    let mut stage = stage("");
    stage.without_namespaces();
    stage.run_task().expect(0).says(&[
        TOLD,
        "Look at this before you merge",
        "agents could read the held-out tests",
    ]);
    stage.run(&["doctor"]).says(&["agents can read the held-out tests"]);
}

#[test]
fn the_evidence_has_the_digest_and_cannot_be_repeated_without_the_tests() {
    let stage = stage("");
    stage.run_task().expect(0);
    let branch = "refs/heads/autopilot/run-*";
    let branch = stage.git(&["for-each-ref", "--format=%(refname)", branch]);
    let note = stage.git(&["log", "-1", "--format=%N", "--notes=autopilot", &branch]);
    assert!(note.contains("heldOutSha256") && !note.contains(MARKER), "{note}");
    stage.run(&["verify"]).expect(0);
    stage.run(&["verify", "--rerun"]).expect(0).says(&["held-out tests can't be run again"]);
}

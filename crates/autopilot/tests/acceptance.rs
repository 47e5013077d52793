//! From a task to a merged branch by the real binary: what DONE means, and what does not get there.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, text};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A builder that first writes a line that breaks the tests, then the right one.
const BREAKS_THEN_FIXES: &str = "
- step: build
  do:
    - append: { app.txt: \"broken once\\n\" }
    - answer: { changed_files: [app.txt], tests_ran: true, tests_passed: true, notes: all pass }
- step: fix
  do:
    - write: { app.txt: \"start\\ndone\\n\" }
    - answer: { changed_files: [app.txt], tests_ran: true, tests_passed: true, notes: fixed }
";

/// Build output that slots keep from one attempt to the next, as long as the lock file is the same.
fn keeps_its_build_output(stage: &Stage) {
    stage.write(".gitignore", "target/\n");
    stage.write("Cargo.lock", "version = 4\n");
    stage.commit("build output");
}

#[test]
fn a_small_task_ends_done_with_the_evidence_for_it() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh, uat: grep -q done app.txt }\n");
    stage.run_task().expect(0).says(&["DONE", "git merge autopilot/run-"]);
    let state = stage.state_json();
    assert_eq!(state["current_state"], "DONE");
    let task = stage.first_task();
    assert_eq!((task["status"].as_str(), task["iteration"].as_u64()), (Some("DONE"), Some(1)));
    assert_eq!(stage.status()["cost_usd"], 0.02);
    for (step, key) in [
        ("last_build", "summary_json_path"),
        ("last_build", "log_path"),
        ("last_validate", "log_path"),
        ("last_review", "review_json_path"),
        ("last_uat_generation", "uat_cases_path"),
        ("last_uat_run", "log_path"),
    ] {
        let path = state[step][key].as_str().unwrap_or_else(|| panic!("{step}.{key}: {state:#}"));
        assert!(stage.has(path) && path.starts_with(".autopilot/"), "{step}.{key} = {path}");
    }
    assert_eq!(state["last_review"]["verdict"], "APPROVE");
    assert_eq!(state["last_validate"]["exit_code"], 0);
    assert_eq!(state["last_uat_run"]["exit_code"], 0);
    assert!(stage.read(".autopilot/STATUS.md").starts_with("# DONE: Say done"));
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    assert!(notes.contains("**say-done** DONE: Say done"), "{notes}");
    for part in ["prompt", "controller.log"] {
        assert!(!stage.views(part).is_empty(), "{part}: {:?}", stage.views(""));
    }
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn the_branch_holds_one_task_commit_and_one_merge_of_exactly_what_was_validated() {
    let stage = stage();
    stage.run_task().expect(0);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    let range = format!("main..{branch}");
    let log = stage.git(&[
        "log",
        "--topo-order",
        "--format=%P|%an|%s|%(trailers:key=Autopilot-Attempt,valueonly,separator=%x2C)",
        &range,
    ]);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    let parents = |line: &str| line.split('|').next().unwrap().split(' ').count();
    assert_eq!((parents(lines[0]), parents(lines[1])), (2, 1), "a merge, then the task: {log}");
    assert!(lines[0].contains("Merge task say-done") && lines[1].contains("Say done"), "{log}");
    assert!(lines.iter().all(|line| !line.ends_with('|')), "attempt trailers: {log}");
    let tree = |name: &str| stage.git(&["rev-parse", &format!("{name}^{{tree}}")]);
    assert_eq!(tree(&branch), tree("autopilot/say-done"));
    assert_eq!(stage.git(&["diff", "--name-only", "main", &branch]), "app.txt");
    let clone = stage.folder().join("clone");
    stage.git(&["clone", "-q", "-b", &branch, ".", &text(&clone)]);
    let tests = std::process::Command::new("sh").arg("test.sh").current_dir(&clone).output();
    assert!(tests.unwrap().status.success());
    assert_eq!(std::fs::read_to_string(clone.join("app.txt")).unwrap(), "start\ndone\n");
    stage.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_broken_test_is_seen_although_builder_and_reviewer_say_it_passes() {
    let stage = stage();
    stage.agents(&[BREAKS_THEN_FIXES, APPROVES]);
    stage.run_task().expect(0);
    let task = stage.first_task();
    assert_eq!(task["iteration"], 2, "{task:#}");
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    assert!(notes.contains("iteration 1 not good enough"), "{notes}");
    assert!(notes.contains("tests failed with exit code 1"), "{notes}");
    let told = stage.read(".autopilot/logs/controller.log");
    assert!(told.contains("overruled") || told.contains("approved although"), "{told}");
    let prompt = stage.texts_of("fix");
    assert!(prompt.contains("FAILED broken once"), "the tail is in the prompt: {prompt}");
    assert!(!stage.git(&["show", "autopilot/say-done:app.txt"]).contains("broken"));
}

#[test]
fn changes_the_reviewer_asks_for_are_made_before_it_is_done() {
    let stage = stage();
    let asks = "
- step: review
  iteration: 1
  do:
    - answer: { verdict: REQUEST_CHANGES, summary: almost, issues: [{ severity: major,
        message: the line needs a friend, fix: add a second line, file: app.txt, line: 2 }] }
";
    stage.agents(&[asks, BUILDS, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert!(stage.texts_of("fix").contains("the line needs a friend"));
}

#[test]
fn under_the_evidence_gate_only_an_issue_that_cites_evidence_costs_a_round() {
    let asks = |message: &str, line: u32| {
        format!(
            "
- step: review
  iteration: 1
  do:
    - answer: {{ verdict: REQUEST_CHANGES, summary: almost, issues: [{{ severity: major,
        message: {message}, fix: change it, file: app.txt, line: {line} }}] }}
"
        )
    };
    for (message, line, iterations) in
        [("the last line is not safe", 2, 2), ("latest naming of the test criteria", 900, 1)]
    {
        let stage = stage();
        stage.config("commands: { tests: sh test.sh }\ngates: { review: evidence }\n");
        stage.agents(&[&asks(message, line), BUILDS, APPROVES]);
        let ended = stage.run_task().expect(0);
        assert_eq!(stage.first_task()["iteration"], iterations, "{message}");
        let set_aside = "the reviewer asked for changes: almost; none of its blocker and major";
        assert_eq!(ended.out.contains(set_aside), line == 900, "{}", ended.out);
        let told = stage.run(&["show", "say-done"]).expect(0).said();
        let noted = "cites app.txt:900, which the change neither adds nor removes";
        assert_eq!(told.contains(noted), line == 900, "{told}");
    }
}

#[test]
fn a_reviewer_may_cite_a_file_by_the_path_at_which_it_reads_it() {
    let stage = stage();
    let review = r##"#!/bin/sh
cat > /dev/null
[ "$AUTOPILOT_STEP" = review ] || { echo "# Cases"; exit; }
if [ "$AUTOPILOT_ITERATION" = 1 ]; then
    echo '{"verdict":"REQUEST_CHANGES","summary":"almost","issues":[{"severity":"blocker",
        "message":"unsafe","fix":"change it","file":"'"$PWD"'/app.txt","line":2}]}'
else
    echo '{"verdict":"APPROVE","summary":"fine","issues":[]}'
fi
"##;
    stage.write_program("review.sh", review);
    stage.commit("A reviewer");
    stage.write(
        ".autopilot/config.yml",
        "repo: { base_branch: main }\nbuilder: { mode: script, script: agents.yml }\n\
         reviewer: { mode: command, command: ./review.sh }\ncommands: { tests: sh test.sh }\n\
         gates: { review: evidence }\n",
    );
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
}

#[test]
fn a_reviewer_that_fails_twice_fails_the_run_with_its_log_and_last_words() {
    let stage = stage();
    let fails = "
- step: review
  do: [{ run: \"echo the login has expired >&2\" }, { exit: 1 }]
";
    stage.agents(&[fails, BUILDS]);
    let ended = stage.run_task().expect(10).says(&["FAILED", "the login has expired"]);
    let logs = stage.views("logs/");
    let named = logs.iter().any(|log| {
        let name = log.file_name().unwrap().to_string_lossy().into_owned();
        name.contains("review") && ended.said().contains(&name)
    });
    assert!(named, "no log of the review is named in:\n{}\n{logs:?}", ended.said());
    let status = stage.read(".autopilot/STATUS.md");
    assert!(status.contains("Log: `.autopilot/logs/"), "{status}");
    assert_eq!(stage.first_task()["retries"], 2, "tried again once: {:#}", stage.first_task());
    assert_eq!(stage.git(&["branch", "--list", "autopilot/run-*"]), "", "nothing was merged");
}

#[test]
fn a_reviewer_that_fails_once_is_asked_again_and_the_run_ends_done() {
    let stage = stage();
    let fails_once = "
- step: review
  attempt: 1
  do: [{ exit: 1 }]
";
    stage.agents(&[fails_once, BUILDS, APPROVES]);
    stage.run_task().expect(0);
    let task = stage.first_task();
    assert_eq!((task["retries"].as_u64(), task["iteration"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn a_hanging_test_command_is_ended_at_its_time_limit_and_leaves_nothing_alive() {
    let stage = stage();
    stage.write("test.sh", "#!/bin/sh\ngrep -q done app.txt || exit 0\nsleep 600 & sleep 600\n");
    stage.commit("tests that hang");
    stage.config(
        "commands: { tests: sh test.sh }\n\
         loop: { max_iterations: 1, step_timeouts_sec: { validate: 2 } }\n",
    );
    stage.run_task().expect(11).says(&["time limit"]);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn an_agent_that_hangs_is_ended_as_stuck_tried_again_and_leaves_nothing_alive() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\nloop: { stuck_no_output_sec: 1 }\n");
    let hangs_once = "
- step: build
  attempt: 1
  do: [{ hang: true }]
";
    stage.agents(&[hangs_once, BUILDS, APPROVES]);
    let ended = stage.run_task().expect(0);
    assert_eq!(stage.first_task()["retries"], 1, "{:#}", stage.first_task());
    assert!(ended.err.contains("silent") || ended.err.contains("stuck"), "{}", ended.err);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn acceptance_cases_are_written_and_the_acceptance_command_runs_where_no_agent_wrote() {
    let stage = stage();
    let marks_its_slot = "
- step: [build, fix]
  do:
    - run: \"mkdir -p target; echo x > target/left-over\"
    - append: { app.txt: \"done\\n\" }
    - answer: { changed_files: [app.txt], notes: wrote it }
";
    keeps_its_build_output(&stage);
    stage.agents(&[marks_its_slot, APPROVES]);
    stage.config("commands: { tests: sh test.sh, uat: \"pwd; test ! -e target/left-over\" }\n");
    stage.run_task().expect(0);
    let cases = stage.read(".autopilot/uat/say-done_uat.md");
    assert!(cases.contains("app.txt says done"), "{cases}");
    let state = stage.state_json();
    let log = state["last_uat_run"]["log_path"].as_str().unwrap().to_owned();
    let place = stage.read(&log);
    assert!(place.contains(&text(stage.state())), "{place}");
}

#[test]
fn a_failing_acceptance_run_loops_with_its_output_and_cases_until_it_passes() {
    let stage = stage();
    let second_time = "
- step: build
  do:
    - append: { app.txt: \"nearly\\n\" }
    - answer: { changed_files: [app.txt], notes: nearly }
- step: fix
  prompt: uat says no
  do:
    - append: { app.txt: \"done\\n\" }
    - answer: { changed_files: [app.txt], notes: done }
";
    stage.agents(&[second_time, APPROVES]);
    stage.config(
        "commands: { tests: sh test.sh, uat: \"grep -q done app.txt || { echo uat says no; exit 3; }\" }\n",
    );
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
    let prompt = stage.texts_of("fix");
    assert!(prompt.contains("uat says no") && prompt.contains("app.txt says done"), "{prompt}");
}

#[test]
fn an_acceptance_run_that_never_passes_ends_at_the_last_iteration_with_11() {
    let stage = stage();
    let never = "
- step: [build, fix]
  do:
    - run: \"echo try $AUTOPILOT_ITERATION >> app.txt\"
    - answer: { changed_files: [app.txt], notes: tried }
";
    stage.agents(&[never, APPROVES]);
    stage.config(
        "commands: { tests: sh test.sh, uat: \"echo no $(wc -l < app.txt) >&2; tail -1 app.txt; false\" }\n\
         loop: { max_iterations: 2 }\n",
    );
    stage.run_task().expect(11).says(&["FAILED", "uat"]);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert_eq!(stage.git(&["branch", "--list", "autopilot/run-*"]), "");
}

#[test]
fn the_same_failure_three_times_halts_before_the_iterations_are_used_up() {
    let stage = stage();
    let stubborn = "
- step: [build, fix]
  do:
    - run: \"echo try $AUTOPILOT_ITERATION >> app.txt; echo broken >> app.txt\"
    - answer: { changed_files: [app.txt], notes: tried }
";
    stage.agents(&[stubborn, APPROVES]);
    stage.write(
        "test.sh",
        "#!/bin/sh\nif grep -q broken app.txt; then echo FAILED one; exit 1; fi\n",
    );
    stage.commit("one failure");
    stage.run_task().expect(11).says(&["the same failure 3 rounds in a row"]);
    assert_eq!(stage.first_task()["iteration"], 3);
}

#[test]
fn an_unset_acceptance_command_is_recorded_as_skipped() {
    let stage = stage();
    stage.run_task().expect(0);
    let status = stage.read(".autopilot/STATUS.md");
    assert!(status.contains("UAT skipped"), "{status}");
    assert!(stage.first_task()["skipped"]["uat"].is_string(), "{:#}", stage.first_task());
}

#[test]
fn a_waived_review_is_recorded_and_failing_tests_still_block() {
    let stage = stage();
    stage.agents(&[BREAKS_THEN_FIXES, "- step: uat_generate\n  do: [{ answer: cases }]\n"]);
    stage.write(".autopilot/AUTOPILOT_SKIP_REVIEW", "");
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "the broken round was not merged");
    let status = stage.read(".autopilot/STATUS.md");
    assert!(status.contains("REVIEW WAS SKIPPED"), "{status}");
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    assert!(notes.contains("REVIEW SKIPPED"), "{notes}");
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_for_once_more_and_then_breaks() {
    let stage = stage();
    let mute = "\n- step: review\n  do: [{ answer: I like it }]\n";
    stage.agents(&[BUILDS, mute]);
    stage.run_task().expect(10);
    let task = stage.first_task();
    assert_eq!(task["retries"], 2, "{task:#}");
    let asked = stage.texts_of("prompt").matches("JSON only").count();
    assert!(asked >= 2, "each try is repaired once: {asked}");
    assert!(stage.git(&["branch", "--list", "autopilot/run-*"]).is_empty());
}

#[test]
fn a_repaired_answer_is_taken_without_spending_a_retry() {
    let stage = stage();
    let repaired = "
- step: build
  prompt: JSON only
  do: [{ answer: { changed_files: [app.txt], notes: now in JSON } }]
- step: build
  do: [{ append: { app.txt: \"done\\n\" } }, { answer: I am done }]
";
    stage.agents(&[repaired, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["retries"], 0);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
}

#[test]
fn a_demand_for_changes_without_an_issue_is_asked_for_again() {
    let stage = stage();
    let empty = "
- step: review
  prompt: JSON only
  do: [{ answer: { verdict: APPROVE, summary: fine after all, issues: [] } }]
- step: review
  do: [{ answer: { verdict: REQUEST_CHANGES, summary: hm, issues: [] } }]
";
    stage.agents(&[empty, BUILDS, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["retries"], 0);
}

#[test]
fn a_red_base_is_refused_before_any_agent_is_paid() {
    let stage = stage();
    stage.write("app.txt", "start\nbroken before\n");
    stage.commit("red");
    stage.run_task().expect(10).says(&["--allow-red-base", "main"]);
    assert_eq!(stage.status()["cost_usd"], 0.0);
    assert!(stage.views("prompt").is_empty(), "{:?}", stage.views("prompt"));
}

#[test]
fn on_an_allowed_red_base_only_new_failures_block() {
    let stage = stage();
    stage.write("app.txt", "start\nbroken before\n");
    stage.commit("red");
    let adds_one = "
- step: build
  do: [{ append: { app.txt: \"broken anew\\n\" } }, { answer: { changed_files: [app.txt], notes: x } }]
- step: fix
  do:
    - write: { app.txt: \"start\\nbroken before\\ndone\\n\" }
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[adds_one, APPROVES]);
    stage.run(&["run", "tasks/say-done.md", "--allow-red-base"]).expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "the new failure blocked");
    let status = stage.read(".autopilot/STATUS.md");
    assert!(status.contains("as on the base"), "{status}");
}

#[test]
fn files_planted_in_the_agents_slot_do_not_make_the_tests_pass() {
    let stage = stage();
    keeps_its_build_output(&stage);
    stage
        .write("test.sh", "#!/bin/sh\n[ -e target/ok ] || ! grep -q done app.txt || [ -e real ]\n");
    stage.commit("tests that trust a cache");
    let plants = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"mkdir -p target; touch -d 2001-01-01 target/ok; sh test.sh && echo passes here\"
    - answer: { changed_files: [app.txt], tests_ran: true, tests_passed: true, notes: x }
- step: fix
  do: [{ write: { real: \"yes\\n\" } }, { answer: { changed_files: [real], notes: x } }]
";
    stage.agents(&[plants, APPROVES]);
    stage.write(
        "tasks/say-done.md",
        &stage.read("tasks/say-done.md").replace("- test.sh", "- real"),
    );
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "the planted file proved nothing");
}

#[test]
fn money_that_is_used_up_rests_the_run_and_more_money_ends_it() {
    let stage = stage();
    let dear = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - cost_usd: 0.04
    - answer: { changed_files: [app.txt], notes: x }
- step: review
  do: [{ cost_usd: 0.04 }, { answer: { verdict: APPROVE, summary: fine, issues: [] } }]
- step: uat_generate
  do: [{ cost_usd: 0.04 }, { answer: cases }]
";
    stage.agents(&[dear]);
    stage.config("commands: { tests: sh test.sh }\nbudget: { max_usd: 0.05 }\n");
    stage.run_task().expect(2).says(&["autopilot resume"]);
    assert_eq!(stage.state_json()["current_state"], "PAUSED");
    let spent = stage.status()["cost_usd"].as_f64().unwrap();
    assert!(spent <= 0.081, "one attempt may end above the limit, none may begin: {spent}");
    stage.run(&["resume"]).expect(2);
    assert_eq!(stage.status()["cost_usd"].as_f64(), Some(spent), "without money nothing begins");
    stage.run(&["resume", "--max-usd", "1"]).expect(0);
    // An attempt that was ended for want of money is made, and paid, again.
    let spent = stage.status()["cost_usd"].as_f64().unwrap();
    assert!((0.119..=0.161).contains(&spent), "{spent}");
}

#[test]
fn a_deleted_autopilot_folder_is_made_again_and_the_run_goes_on() {
    let stage = stage();
    let slow = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - sleep_ms: 1500
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[slow, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    // The run goes on writing meanwhile.
    while let Err(error) = std::fs::remove_dir_all(stage.path(".autopilot")) {
        assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty, "{error}");
    }
    run.wait().expect(0);
    assert_eq!(stage.state_json()["current_state"], "DONE");
    assert!(stage.read(".autopilot/STATUS.md").starts_with("# DONE"));
    assert!(stage.has(".autopilot/.gitignore"));
}

#[test]
fn a_task_that_is_done_can_be_run_again_and_gets_a_branch_of_its_own() {
    let stage = stage();
    stage.run_task().expect(0);
    let first = stage.state_json()["branch_name"].clone();
    stage.run_task().expect(0);
    let second = stage.state_json()["branch_name"].clone();
    assert_ne!(first, second);
    for branch in [first, second] {
        let shown = stage.git(&["show", &format!("{}:app.txt", branch.as_str().unwrap())]);
        assert_eq!(shown, "start\ndone");
    }
}

#[test]
fn any_program_can_be_the_agent() {
    let stage = stage();
    stage.write_program(
        "agent.sh",
        "#!/bin/sh\ncat > /dev/null\ncase $AUTOPILOT_STEP in\n\
         build) echo done >> app.txt; echo working; echo '{\"changed_files\":[\"app.txt\"],\"notes\":\"x\"}';;\n\
         review) echo '{\"verdict\":\"APPROVE\",\"summary\":\"fine\",\"issues\":[]}';;\n\
         *) echo '# Cases';;\nesac\n",
    );
    let agent = "{ mode: command, command: ./agent.sh }";
    stage.write(
        ".autopilot/config.yml",
        &format!(
            "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
             builder: {agent}\nreviewer: {agent}\nplanner: {agent}\n"
        ),
    );
    stage.run_task().expect(0);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
}

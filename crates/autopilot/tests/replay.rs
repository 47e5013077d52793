//! A run played again from its recording: the same decisions without any agent, and the place
//! where they differ when something has changed.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal;
use autopilot_testkit::plan::{self, RUN, plan as plan_of, task, task_with};
use autopilot_testkit::stage::{APPROVES, Stage};
use serde_json::{Value, json};
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
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

/// A run that needed a fix, and whose agents are gone.
fn recorded() -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(&[BREAKS_THEN_FIXES, APPROVES]);
    stage.run_task().expect(0);
    fs::remove_file(stage.path("agents.yml")).unwrap();
    stage
}

#[test]
fn a_run_with_a_fix_is_played_again_without_its_agents_and_decides_the_same() {
    let stage = recorded();
    let before = stage.digest();
    stage.run(&["replay"]).expect(0).says(&["all the same", "decisions about 1 task,"]);
    assert_eq!(stage.digest(), before, "the repository is only read");
    let told = stage.run(&["replay", "--json"]).expect(0);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["same"], &told["outcome"]), (&json!(true), &json!("DONE")));
    // Build, review, acceptance cases, fix, review, acceptance cases.
    assert_eq!(told["answers_played"], 6, "{told:#}");
    assert_eq!(told["differences"], json!([]));
}

#[test]
fn a_turn_that_was_killed_before_it_was_described_is_left_out() {
    let stage = recorded();
    let prompts = stage.views("-review/prompt.txt");
    let base = prompts.first().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let cut = base.join("exec-999-say-done-build");
    fs::create_dir(&cut).unwrap();
    fs::write(cut.join("prompt.txt"), "Do it").unwrap();
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
}

#[test]
fn another_answer_of_an_agent_shows_where_the_decisions_part() {
    let stage = recorded();
    let reviews: Vec<_> = stage.views("-review/stdout.log");
    let last = reviews.last().unwrap();
    let said = fs::read_to_string(last).unwrap();
    let other = said.replace("APPROVE", "REQUEST_CHANGES").replace(
        r#"\"issues\":[]"#,
        r#"\"issues\":[{\"severity\":\"major\",\"message\":\"no\",\"fix\":\"do\",\"file\":\"app.txt\"}]"#,
    );
    assert_ne!(said, other);
    // The log has the same file under another name.
    fs::remove_file(last).unwrap();
    fs::write(last, other).unwrap();
    let told = stage.run(&["replay"]).expect(10);
    told.says(&["say-done: the same for", "REQUEST_CHANGES", "APPROVE"]);
}

#[test]
fn other_tests_of_the_project_are_run_for_real_and_change_the_outcome() {
    let stage = Stage::new(BINARY);
    // Green only until the run has ended.
    let marker = stage.folder().join("closed");
    let tests = format!("commands: {{ tests: 'test ! -e {}' }}\n", marker.display());
    // Of other people's temporary files a gate sees what the configuration names.
    let tests = format!("{tests}sandbox: {{ write: ['{}'] }}\n", stage.folder().display());
    stage.config(&tests);
    stage.run_task().expect(0);
    stage.run(&["replay"]).expect(0);
    fs::write(&marker, "").unwrap();
    stage.run(&["replay"]).expect(10).says(&["run: the same for 0 decisions"]);
}

#[test]
fn a_plan_on_parallel_workers_is_merged_in_the_recorded_order() {
    let wanted = plan_of(&[
        task("top", &[]),
        task("left", &["top"]),
        task_with("right", &["top"], json!({ "allowed_paths": ["right.txt"] })),
        task("lone", &[]),
    ]);
    let stage = plan::stage(BINARY, &wanted);
    stage.run(&RUN).expect(0);
    let told = stage.run(&["replay", "--json"]).expect(0);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["same"], &told["tasks"]), (&json!(true), &json!(4)), "{told:#}");
}

#[test]
fn a_step_of_an_agent_that_was_never_committed_is_played_without_it() {
    let stage = Stage::new(BINARY);
    let by = |id: &str, adapter: &str| json!({ "id": id, "goal": format!("Do {id}."), "adapter": adapter });
    let first = goal::workflow("w", &[by("one", "gone"), by("two", "own")]);
    let second = goal::workflow("w", &[by("one", "own"), by("two", "scripted")]);
    stage.agents(&[
        &format!("\n- step: workflow\n  prompt: JSON only\n  do: [{{ answer: {second} }}]\n"),
        &goal::answers("workflow", 1, &first),
        &goal::answers("completion", 1, &goal::done("it is done")),
    ]);
    stage.write_program("own.sh", "#!/bin/sh\necho done >> app.txt\necho Done\n");
    stage.write(
        "scripted.yml",
        "\n- step: step\n  do: [{ write: { two.txt: two } }, { answer: Done }]\n",
    );
    let agents = "agents:\n  own: { mode: command, command: ./own.sh }\n  \
                  gone: { mode: command, command: ./gone.sh }\n  \
                  scripted: { mode: script, script: scripted.yml }\n";
    stage.config(&format!("commands: {{ tests: sh test.sh }}\n{agents}"));
    stage.run(&goal::GOAL).expect(0).says(&["DONE"]);
    for file in ["own.sh", "scripted.yml", "agents.yml"] {
        fs::remove_file(stage.path(file)).unwrap();
    }
    stage.config("commands: { tests: sh test.sh }\n");
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
    // Who could not be used then is not used now, though it is there by now.
    stage.write_program("gone.sh", "#!/bin/sh\necho Done\n");
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
}

#[test]
fn a_run_that_is_not_recorded_says_so() {
    let stage = Stage::new(BINARY);
    stage.config("commands: { tests: sh test.sh }\nlogging: { record: false }\n");
    stage.run_task().expect(0);
    stage.run(&["replay"]).expect(64).says(&["nothing is recorded", "logging.record"]);
    stage.run(&["replay", "nonsense"]).expect(64);
}

#[test]
fn every_question_is_kept_with_its_answer_and_figures() {
    let stage = Stage::new(BINARY);
    stage.run_task().expect(0);
    let dirs: Vec<String> = stage
        .views("metadata.json")
        .iter()
        .map(|path| path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let wanted =
        ["exec-001-say-done-build", "exec-002-say-done-review", "exec-003-say-done-uat_generate"];
    assert_eq!(dirs, wanted);
    let of = |name: &str| fs::read_to_string(&stage.views(name)[0]).unwrap();
    let metadata: Value = serde_json::from_str(&of("build/metadata.json")).unwrap();
    assert_eq!(metadata["status"], "succeeded");
    assert_eq!(metadata["agent"], "script");
    assert_eq!(metadata["cost_usd"], 0.01);
    assert!(metadata["duration_ms"].is_u64() && metadata["ended_at"].is_string());
    assert!(of("build/prompt.txt").contains("app.txt says done"));
    assert!(of("build/output.txt").contains("wrote it"));
    let events = of("build/events.jsonl");
    let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "result");
}

#[test]
fn what_a_fallback_said_is_played_as_its_kind_says_it_and_without_its_program() {
    let stage = Stage::new(BINARY);
    let claude = r#"#!/bin/sh
read hello; read prompt
echo done >> app.txt
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.01,"usage":{"input_tokens":1,"output_tokens":1},"result":"{\"changed_files\":[\"app.txt\"],\"notes\":\"as a stand-in\"}"}'
"#;
    stage.write_program("stand-in", claude);
    let refuses = "
- step: build
  do: [{ fail: { kind: quota, why: used up } }]
";
    stage.agents(&[refuses]);
    // Of an account of its own, which is not held with the builder's.
    stage.write("reviews.yml", APPROVES);
    stage.write(
        ".autopilot/config.yml",
        "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
         builder: { mode: script, script: agents.yml, \
         fallback: [{ mode: claude_code_cli, executable: ./stand-in }] }\n\
         reviewer: { mode: script, script: reviews.yml }\n",
    );
    stage.run_task().expect(0);
    for program in ["stand-in", "agents.yml", "reviews.yml"] {
        fs::remove_file(stage.path(program)).unwrap();
    }
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
    // The log tells it in words, and as it was printed when asked.
    let told = stage.run(&["logs", "say-done", "--stream", "builder"]).expect(0);
    assert!(!told.out.contains("\"type\":\"result\""), "{}", told.out);
    stage.run(&["logs", "say-done", "--raw"]).expect(0).says(&["\"type\":\"result\""]);
}

#[test]
fn a_skip_is_not_repeated_and_that_is_said() {
    let stage = Stage::new(BINARY);
    let breaks =
        BREAKS_THEN_FIXES.replace("write: { app.txt: \"start\\n", "append: { app.txt: \"broken\\n");
    stage.agents(&[&breaks, APPROVES]);
    assert_ne!(stage.run_task().code, 0);
    stage.run(&["skip", "say-done"]).expect(0);
    let told = stage.run(&["replay"]).expect(10);
    told.says(&[
        "not repeated: say-done was skipped by a person",
        "1 task and the run itself differ",
    ]);
}

/// A builder that leaves half of its work when it is cut short, and then does the rest.
const HALF_THEN_REST: &str = "
- step: build
  prompt: an interrupted attempt
  do:
    - append: { app.txt: \"done\\n\" }
    - answer: { changed_files: [app.txt], notes: the rest }
- step: build
  do:
    - append: { app.txt: \"half\\n\" }
    - say: half of it is there
    - run: \"sleep 600\"
";

fn replayed(stage: &Stage) -> Value {
    serde_json::from_str(&stage.run(&["replay", "--json"]).out).unwrap()
}

/// Cuts a build short when half of its work is done, and lets it be taken up.
fn taken_up(cut: impl Fn(&Stage, autopilot_testkit::stage::Started)) -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(&[HALF_THEN_REST, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("half of it is there", |stage| {
        stage.texts_of("-build/events.jsonl").contains("half of it is there")
    });
    cut(&stage, run);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    let built = stage.git(&["show", "autopilot/say-done:app.txt"]);
    assert_eq!(built.trim(), "start\nhalf\ndone", "both halves are merged");
    stage
}

#[test]
fn work_that_a_crash_cut_short_is_played_as_a_whole() {
    let stage = taken_up(|_, run| {
        run.signal("KILL");
        run.wait();
    });
    let told = replayed(&stage);
    assert_eq!((&told["same"], &told["outcome"]), (&json!(true), &json!("DONE")), "{told:#}");
    assert_eq!(told["not_repeated"], json!([]), "{told:#}");
}

#[test]
fn work_that_a_stop_cut_short_is_played_as_a_whole() {
    let stage = taken_up(|stage, run| {
        stage.run(&["stop", "--now"]).expect(0);
        run.wait().expect(2);
    });
    assert_eq!(replayed(&stage)["same"], true);
}

#[test]
fn a_retry_is_played_too() {
    let stage = Stage::new(BINARY);
    stage.config("commands: { tests: sh test.sh }\nloop: { max_iterations: 1 }\n");
    stage.agents(&[BREAKS_THEN_FIXES, APPROVES]);
    assert_eq!(stage.run_task().code, 11);
    stage.run(&["retry", "say-done"]).expect(0).says(&["DONE"]);
    let told = replayed(&stage);
    assert_eq!((&told["same"], &told["outcome"]), (&json!(true), &json!("DONE")), "{told:#}");
    assert_eq!(told["not_repeated"], json!([]), "{told:#}");
}

#[test]
fn the_same_words_over_other_files_are_not_called_the_same() {
    let stage = Stage::new(BINARY);
    stage.run_task().expect(0);
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
    // The recorded change is another one, and all tests pass with it as well.
    let path = &stage.views("-build/worktree.json")[0];
    let recorded: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let same = json!({ "from": recorded["from"], "to": recorded["from"] });
    fs::write(path, same.to_string()).unwrap();
    let told = stage.run(&["replay"]).expect(10);
    told.says(&["build passed with tree", "recorded:", "now:"]);
}

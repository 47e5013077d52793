//! A person goes on with the session of a step: `autopilot resume <session> --prompt "…"`, and then
//! `autopilot resume`. The real binary and git; the steps are worked on by a program that speaks as
//! Claude Code does and writes down what it was asked in which session.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::plan::{branch, merged};
use autopilot_testkit::stage::Stage;
use serde_json::{Value, json};
use std::path::PathBuf;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const GOAL: [&str; 2] = ["goal", "Make app.txt say done"];
const OTHERWISE: &str = "Try a different approach: \"quoted\",\nand on two lines";

/// What it does is in the file `act`; `$task`, `$resumed` and `$asked` are known there.
const CLAUDE: &str = r#"#!/bin/sh
own="$HOME/own"
while read -r asked; do case "$asked" in *'"type":"user"'*) break;; esac; done
task="$AUTOPILOT_TASK_ID"
number=$(printf '%s' "$task" | cksum | cut -c1-6)
session="0199dddd-4444-7000-8000-000000$number"
resumed=
last=
for arg in "$@"; do
  if [ "$last" = --resume ]; then resumed="$arg"; fi
  last="$arg"
done
answer="first of $task" total=0.1 code=0 gone=
mkdir -p "$CLAUDE_CONFIG_DIR/projects"; echo said >> "$CLAUDE_CONFIG_DIR/projects/$session.jsonl"
printf '{"task":"%s","resumed":"%s","asked":%s}\n' "$task" "$resumed" "$asked" >> "$own/log"
. "$own/act"
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
if [ -n "$gone" ]; then
  echo "No conversation found with session ID: $resumed" >&2
  echo '{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"total_cost_usd":0,"session_id":"'$session'","usage":{"input_tokens":0,"output_tokens":0},"errors":["No conversation found with session ID: '$resumed'"]}'
  exit 1
fi
if [ "$code" != 0 ]; then
  echo "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"session_id\":\"$session\",\"num_turns\":1,\"total_cost_usd\":$total,\"usage\":{\"input_tokens\":10,\"output_tokens\":1},\"errors\":[\"$answer\"]}"
  exit "$code"
fi
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$answer\",\"session_id\":\"$session\",\"num_turns\":1,\"total_cost_usd\":$total,\"terminal_reason\":\"completed\",\"usage\":{\"input_tokens\":100,\"output_tokens\":9},\"permission_denials\":[]}"
"#;

/// Every step leaves a file of its name; gone on with, it writes another line and says so.
const WORKS: &str = r#"
echo "$task" > "$task.txt"; grep -q done app.txt || echo done >> app.txt
if [ -n "$resumed" ]; then echo again >> "$task.txt"; answer="second of $task"; total=0.3; fi
"#;
/// The first time `bad` fails.
const FAILS: &str = r#"
if [ "$task" = bad ] && [ -z "$resumed" ]; then answer="could not do bad"; code=1; fi
"#;

fn step(id: &str, depends_on: &[&str]) -> Value {
    json!({ "id": id, "goal": format!("use the task-executor skill. Do {id}."), "dependsOn": depends_on })
}

fn workflow(id: &str, steps: &[Value]) -> Value {
    json!({ "version": 1, "id": id, "steps": steps })
}

fn answers(step: &str, more: &str, answer: &Value) -> String {
    format!("\n- step: {step}\n{more}  do: [{{ answer: {answer} }}]\n")
}

fn done() -> String {
    answers("completion", "", &json!({ "done": true, "summary": "it is" }))
}

/// Says yes only where the step was gone on with.
fn done_when_seen(text: &str) -> String {
    let seen = format!("  prompt: {text}\n");
    let yes = answers("completion", &seen, &json!({ "done": true, "summary": "now it is" }));
    let no = answers("completion", "", &json!({ "done": false, "reason": "not good yet" }));
    yes + &no
}

fn own(stage: &Stage) -> PathBuf {
    stage.folder().join("home/own")
}

fn act(stage: &Stage, parts: &[&str]) {
    std::fs::write(own(stage).join("act"), parts.concat()).unwrap();
}

fn stage(rules: &[&str], acts: &[&str]) -> Stage {
    let stage = Stage::new(BINARY);
    std::fs::create_dir_all(own(&stage)).unwrap();
    stage.write_program("../claude", CLAUDE);
    stage.agents(rules);
    act(&stage, acts);
    let config = format!(
        "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
         builder: {{ mode: claude_code_cli, executable: ../claude }}\n\
         reviewer: {{ mode: script, script: agents.yml }}\n\
         planner: {{ mode: script, script: agents.yml }}\nsandbox: {{ write: ['{}'] }}\n",
        own(&stage).display()
    );
    stage.write(".autopilot/config.yml", &config);
    stage
}

/// What was asked: task, the session it was asked in, the words.
fn asked(stage: &Stage) -> Vec<(String, String, String)> {
    let log = std::fs::read_to_string(own(stage).join("log")).unwrap_or_default();
    let entry = |line: &str| {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let content = &said["asked"]["message"]["content"];
        let text = content.as_str().or(content[0]["text"].as_str()).unwrap_or_default();
        let word = |key: &str| said[key].as_str().unwrap().to_owned();
        (word("task"), word("resumed"), text.to_owned())
    };
    log.lines().map(entry).collect()
}

fn times(stage: &Stage, task: &str) -> usize {
    asked(stage).iter().filter(|(of, ..)| of == task).count()
}

fn sessions(stage: &Stage) -> Vec<Value> {
    let said = stage.run(&["sessions", "--json"]).expect(0).out;
    let said: Value = serde_json::from_str(&said).unwrap();
    said["sessions"].as_array().unwrap().clone()
}

fn session_of(stage: &Stage, task: &str) -> String {
    let all = sessions(stage);
    let found = all.iter().find(|session| session["task"] == task && session["is_current"] == true);
    found.unwrap_or_else(|| panic!("{all:?}"))["session"].as_str().unwrap().to_owned()
}

fn cost(stage: &Stage) -> f64 {
    stage.status()["cost_usd"].as_f64().unwrap()
}

fn on_branch(stage: &Stage, file: &str) -> String {
    stage.git(&["show", &format!("{}:{file}", branch(stage))]).trim().to_owned()
}

fn run_json(stage: &Stage, name: &str) -> Value {
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let name = if name == "run" { format!("{run}.json") } else { name.to_owned() };
    serde_json::from_str(&stage.read(&format!("runs/autopilot/{run}/{name}"))).unwrap()
}

fn result_of(stage: &Stage, iteration: usize, step: &str) -> Value {
    let run = run_json(stage, "run");
    let steps = run["iterations"][iteration - 1]["steps"].as_array().unwrap().clone();
    steps.into_iter().find(|result| result["stepId"] == step).unwrap_or(Value::Null)
}

/// The newest question of a kind.
fn newest_prompt(stage: &Stage, label: &str) -> String {
    let mut all = stage.views(&format!("{label}/prompt.txt"));
    all.sort();
    std::fs::read_to_string(all.last().unwrap()).unwrap()
}

#[test]
fn a_failed_step_of_a_stopped_run_is_gone_on_with_and_then_the_run() {
    let made =
        workflow("w", &[step("bad", &[]), step("slow", &[]), step("after", &["bad", "slow"])]);
    let waits = r#"
if [ "$task" = slow ]; then while [ ! -e "$own/gate" ]; do sleep 0.1; done; fi
"#;
    let stage = stage(
        &[&answers("workflow", "", &made), &done_when_seen("second of bad")],
        &[WORKS, FAILS, waits],
    );
    let run = stage.start(&GOAL);
    stage.wait_until("bad has failed and slow is at work", |stage| {
        let tasks = stage.state_json()["tasks"].as_array().cloned().unwrap_or_default();
        let failed = tasks.iter().any(|task| task["id"] == "bad" && task["status"] == "FAILED");
        failed && times(stage, "slow") == 1
    });
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    let bad = session_of(&stage, "bad");
    let before = cost(&stage);

    let told = stage.run(&["resume", &bad, "--prompt", OTHERWISE]).expect(0);
    told.says(&["second of bad", "bad: succeeded (was failed)", "$0.2000", "`autopilot resume`"]);
    let last = asked(&stage).pop().unwrap();
    assert_eq!(last, ("bad".to_owned(), bad.clone(), OTHERWISE.to_owned()));
    assert_eq!(times(&stage, "slow"), 1, "nothing else was worked on");
    assert!((cost(&stage) - before - 0.2).abs() < 1e-9, "what the session rose by is owed");
    assert_eq!(on_branch(&stage, "bad.txt"), "bad\nagain");
    let result = result_of(&stage, 1, "bad");
    assert_eq!(
        (&result["status"], &result["outputText"]),
        (&"succeeded".into(), &"second of bad".into())
    );
    assert_eq!(stage.status()["current_state"], "PAUSED");

    std::fs::write(own(&stage).join("gate"), "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(times(&stage, "bad"), 2, "it was not repeated");
    let after = newest_prompt(&stage, "after-step");
    assert!(after.contains("second of bad") && !after.contains("could not do bad"), "{after}");
    let weighed = newest_prompt(&stage, "run-completion");
    assert!(weighed.contains("--- bad (succeeded) ---"), "{weighed}");
    assert!(!weighed.contains("could not do bad"), "{weighed}");
    assert_eq!(stage.survivors(), [""; 0]);
}

#[test]
fn what_was_left_out_after_a_failure_is_begun_and_whoever_checks_is_asked_again() {
    let made = workflow("w", &[step("bad", &[]), step("after", &["bad"]), step("beside", &[])]);
    let stage = stage(
        &[&answers("workflow", "", &made), &done_when_seen("second of bad")],
        &[WORKS, FAILS],
    );
    let args = [&GOAL[..], &["--fail-fast", "--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    assert_eq!(result_of(&stage, 1, "after")["status"], "skipped");
    stage.run(&["resume"]).expect(64).says(&["nothing to resume"]);
    let bad = session_of(&stage, "bad");
    let rehearsed = stage.run(&["resume", &bad, "--prompt", OTHERWISE, "--dry-run"]).expect(0);
    rehearsed.says(&["would continue step `bad`", &bad, "had ended", "would then begin after"]);
    assert_eq!(times(&stage, "bad"), 1, "nothing was begun");

    let told = stage.run(&["--json", "resume", &bad, "--prompt", OTHERWISE]).expect(0);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["outcome"], &told["task"]), (&"success".into(), &"bad".into()));
    assert_eq!((&told["session"], &told["answer"]), (&(*bad).into(), &"second of bad".into()));
    assert_eq!((&told["status"], &told["status_before"]), (&"succeeded".into(), &"failed".into()));
    assert_eq!(told["next"], "1 step is to be done");
    assert_eq!(stage.git(&["cat-file", "-t", told["commit"].as_str().unwrap()]), "commit");
    assert_eq!(times(&stage, "after"), 0, "only the step itself was worked on");

    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!((times(&stage, "bad"), times(&stage, "beside"), times(&stage, "after")), (2, 1, 1));
    let asked_for_after = newest_prompt(&stage, "after-step");
    for part in ["--- bad (succeeded) ---", "second of bad"] {
        assert!(asked_for_after.contains(part), "{asked_for_after}");
    }
    assert_eq!(stage.views("run-completion/prompt.txt").len(), 2);
    assert_eq!(stage.views("run-workflow/prompt.txt").len(), 1, "no other workflow was made");
    assert_eq!(result_of(&stage, 1, "after")["status"], "succeeded");
}

#[test]
fn after_the_last_iteration_a_person_grants_others() {
    let stage = stage(
        &[
            &answers("workflow", "  iteration: 1\n", &workflow("w1", &[step("one", &[])])),
            &answers("workflow", "  iteration: 2\n", &workflow("w2", &[step("two", &[])])),
            &done_when_seen("first of two"),
        ],
        &[WORKS],
    );
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    let one = session_of(&stage, "one");
    stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0).says(&["validate comes next"]);
    // It is asked again, says no again, and there is an iteration left for that.
    stage.run(&["resume", "--max-iterations", "2"]).expect(0).says(&["DONE"]);
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert_eq!(weighed.matches("second of one").count(), 1, "{weighed}");
    assert_eq!((times(&stage, "one"), times(&stage, "two-i2")), (2, 1));
}

#[test]
fn a_proposed_workflow_gives_way_to_a_second_look() {
    let next = workflow("w2", &[step("two", &[])]);
    let yes = answers(
        "completion",
        "  prompt: second of one\n",
        &json!({ "done": true, "summary": "now it is" }),
    );
    let no = json!({ "done": false, "reason": "half of it", "nextWorkflow": next });
    let stage = stage(
        &[
            &answers("workflow", "", &workflow("w1", &[step("one", &[])])),
            &yes,
            &answers("completion", "", &no),
        ],
        &[WORKS],
    );
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    let one = session_of(&stage, "one");
    stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(times(&stage, "two-i2"), 0, "what was proposed before is not done");
    let run = run_json(&stage, "run");
    assert_eq!(run["iterations"].as_array().unwrap().len(), 1, "{run}");
    assert_eq!(run["iterations"][0]["completion"]["done"], true);
}

#[test]
fn a_step_that_was_done_is_merged_once_more_and_only_once() {
    let made = workflow("w", &[step("one", &[]), step("two", &["one"])]);
    let mut stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS]);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    assert_eq!(merged(&stage), ["one", "two"]);
    let one = session_of(&stage, "one");
    // It dies when the branch has been moved and nobody has written it down.
    stage.set("AUTOPILOT_FAILPOINT", "merge.published:1");
    assert_eq!(stage.run(&["resume", &one, "--prompt", OTHERWISE]).code, -1);
    stage.unset("AUTOPILOT_FAILPOINT");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(merged(&stage), ["one", "two", "one"]);
    assert_eq!(on_branch(&stage, "one.txt"), "one\nagain");
    assert_eq!((times(&stage, "one"), times(&stage, "two")), (2, 1), "nothing is repeated");
    assert_eq!(stage.views("run-completion/prompt.txt").len(), 2, "it was asked again");
    assert!((cost(&stage) - 0.4).abs() < 1e-9, "{}", cost(&stage));
    assert_eq!(result_of(&stage, 1, "one")["outputText"], "second of one");
}

#[test]
fn a_turn_that_dies_is_taken_up_by_either_command() {
    let made = workflow("w", &[step("one", &[]), step("two", &["one"])]);
    let hangs = r#"
if [ -n "$resumed" ] && [ ! -e "$own/gate" ]; then
  echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
  touch "$own/hangs"; while true; do sleep 0.1; done
fi
"#;
    for same in [true, false] {
        let stage = stage(&[&answers("workflow", "", &made), &done()], &[hangs, WORKS]);
        stage.run(&GOAL).expect(0);
        let one = session_of(&stage, "one");
        let turn = stage.start(&["resume", &one, "--prompt", OTHERWISE]);
        stage.wait_until("it is asked", |stage| own(stage).join("hangs").exists());
        turn.signal("KILL");
        turn.wait();
        std::fs::write(own(&stage).join("gate"), "").unwrap();
        if same {
            let told = stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0);
            told.says(&["second of one"]);
            assert_eq!(stage.views("run-completion/prompt.txt").len(), 1, "and nothing else");
        }
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
        assert_eq!(merged(&stage), ["one", "two", "one"]);
        let said: Vec<(String, String)> =
            asked(&stage).into_iter().skip(2).map(|(_, session, text)| (session, text)).collect();
        let words = (one.clone(), OTHERWISE.to_owned());
        assert_eq!(said, [words.clone(), words], "the same words in the same session");
        assert!((cost(&stage) - 0.4).abs() < 1e-9, "{}", cost(&stage));
        assert_eq!(stage.survivors(), [""; 0]);
    }
}

#[test]
fn while_the_run_is_at_work_it_is_refused_and_nonsense_as_well() {
    let waits = "while [ ! -e \"$own/gate\" ]; do sleep 0.1; done\n";
    let made = workflow("w", &[step("one", &[])]);
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[waits, WORKS]);
    let run = stage.start(&GOAL);
    stage.wait_until("it works", |stage| times(stage, "one") == 1);
    let one = sessions(&stage)[1]["session"].as_str().unwrap().to_owned();
    let told = stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(10);
    told.says(&[&format!("process {}", run.pid()), "autopilot stop"]);
    std::fs::write(own(&stage).join("gate"), "").unwrap();
    run.wait().expect(0);
    let one = session_of(&stage, "one");
    let unknown = stage.run(&["resume", "nobody", "--prompt", "hm"]).expect(64);
    unknown.says(&["`nobody`", "autopilot sessions", &one]);
    stage.run(&["resume", &one, "--prompt", "  "]).expect(64).says(&["empty"]);
    assert_eq!(times(&stage, "one"), 1);
}

#[test]
fn a_session_that_is_gone_is_told_anew_what_was_said() {
    let gone = "if [ -n \"$resumed\" ]; then gone=1; fi\n";
    let anew = r#"
case "$asked" in *"Try a different"*) answer="second of $task"; total=0.05; session="0199eeee-0000-7000-8000-000000000007";; esac
"#;
    let made = workflow("w", &[step("one", &[])]);
    let stage = stage(
        &[&answers("workflow", "", &made), &done_when_seen("second of one")],
        &[WORKS, gone, anew],
    );
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    let one = session_of(&stage, "one");
    let told = stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0);
    told.says(&["second of one", "its session was gone"]);
    let all = asked(&stage);
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!((&all[1].1, &all[1].2), (&one, &OTHERWISE.to_owned()));
    let (_, session, anew) = &all[2];
    assert_eq!(session, "", "a fresh one");
    let order = ["Do one.", "first of one", OTHERWISE]
        .map(|part| anew.find(part).unwrap_or_else(|| panic!("{part}: {anew}")));
    assert!(order.is_sorted(), "{anew}");
    // From here on that is the one to go on with.
    assert_eq!(session_of(&stage, "one"), "0199eeee-0000-7000-8000-000000000007");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
}

#[test]
fn gone_on_with_twice_the_last_word_counts() {
    let twice = r#"
case "$asked" in *"a third try"*) answer="third of $task"; total=0.6;; esac
"#;
    let made = workflow("w", &[step("one", &[]), step("two", &["one"])]);
    let stage =
        stage(&[&answers("workflow", "", &made), &done_when_seen("third of one")], &[WORKS, twice]);
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    let one = session_of(&stage, "one");
    stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0).says(&["second of one"]);
    stage.run(&["resume", &one, "--prompt", "a third try"]).expect(0).says(&["third of one"]);
    assert_eq!(session_of(&stage, "one"), one);
    let (_, session, words) = asked(&stage).pop().unwrap();
    assert_eq!((session, words), (one, "a third try".to_owned()));
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    let weighed = newest_prompt(&stage, "run-completion");
    assert!(weighed.contains("third of one") && !weighed.contains("second of one"), "{weighed}");
    assert_eq!((times(&stage, "one"), times(&stage, "two")), (3, 1));
    assert!((cost(&stage) - 0.7).abs() < 1e-9, "{}", cost(&stage));
    let manifest = run_json(&stage, "manifest.json");
    let execs = manifest["execs"].as_array().unwrap();
    assert_eq!(execs.iter().filter(|exec| exec["stepId"] == "one").count(), 3, "all are kept");
}

#[test]
fn of_an_earlier_iteration_only_the_result_is_another() {
    let waits = r#"
if [ "$task" = two-i2 ]; then while [ ! -e "$own/gate" ]; do sleep 0.1; done; fi
"#;
    let stage = stage(
        &[
            &answers(
                "workflow",
                "  iteration: 1\n",
                &workflow("w1", &[step("bad", &[]), step("after", &["bad"])]),
            ),
            &answers("workflow", "  iteration: 2\n", &workflow("w2", &[step("two", &[])])),
            &done_when_seen("first of two"),
        ],
        &[WORKS, FAILS, waits],
    );
    let args = [&GOAL[..], &["--fail-fast"]].concat();
    let run = stage.start(&args);
    stage.wait_until("the second iteration works", |stage| times(stage, "two-i2") == 1);
    run.signal("KILL");
    run.wait();
    let bad = session_of(&stage, "bad");
    stage.run(&["resume", &bad, "--prompt", OTHERWISE]).expect(0).says(&["second of bad"]);
    assert_eq!(result_of(&stage, 1, "bad")["outputText"], "second of bad");
    assert_eq!(result_of(&stage, 1, "after")["status"], "skipped", "that has happened");
    assert_eq!(times(&stage, "two-i2"), 1);
    std::fs::write(own(&stage).join("gate"), "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!((times(&stage, "bad"), times(&stage, "after"), times(&stage, "two-i2")), (2, 0, 2));
    assert_eq!(on_branch(&stage, "bad.txt"), "bad\nagain");
    assert_eq!(stage.views("run-completion/prompt.txt").len(), 2);
}

#[test]
fn whoever_is_gone_on_with_learns_that_its_changes_are_not_there() {
    // What `bad` wrote before it failed, `after` has written otherwise since.
    let writes = r#"
echo "$task $resumed" > app.txt; echo more > "$task.txt"
if [ -n "$resumed" ]; then git checkout -q app.txt; answer="second of $task"; total=0.3; fi
"#;
    let made = workflow("w", &[step("bad", &[]), step("after", &["bad"])]);
    let stage = stage(
        &[&answers("workflow", "", &made), &done_when_seen("second of bad")],
        &[writes, FAILS],
    );
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    stage.run(&args).expect(11);
    let bad = session_of(&stage, "bad");
    stage.run(&["resume", &bad, "--prompt", OTHERWISE]).expect(0).says(&["second of bad"]);
    let (_, session, words) = asked(&stage).pop().unwrap();
    assert_eq!(session, bad);
    assert!(words.starts_with(OTHERWISE), "{words}");
    let told = "Your earlier changes to app.txt, bad.txt are not in your working directory";
    assert!(words.contains(told), "{words}");
    // Once what it does is in, there is nothing more to tell.
    stage.run(&["resume", &bad, "--prompt", OTHERWISE]).expect(0);
    assert_eq!(asked(&stage).pop().unwrap().2, OTHERWISE);
}

#[test]
fn a_turn_that_fails_or_is_too_dear_leaves_a_run_that_goes_on() {
    let fails = "if [ -n \"$resumed\" ]; then answer=\"no way\"; code=1; total=0.2; fi\n";
    let made = workflow("w", &[step("one", &[])]);
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS, fails]);
    stage.run(&GOAL).expect(0);
    let one = session_of(&stage, "one");
    let told = stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(10);
    let told = told.says(&["step `one`: this turn failed", "no way", "its earlier result stands"]);
    let told =
        told.says(&["one: succeeded (was succeeded)", "merged: nothing", "autopilot resume"]);
    assert!(!told.out.contains("first of one"), "that was not said now: {}", told.out);
    let result = result_of(&stage, 1, "one");
    assert_eq!(
        (&result["status"], &result["outputText"]),
        (&"succeeded".into(), &"first of one".into())
    );
    assert_eq!(on_branch(&stage, "one.txt"), "one", "nothing of the turn is merged");
    stage.run(&["show", "one"]).expect(0).says(&["its earlier result stands"]);
    let diff = stage.run(&["diff", "one"]).expect(0).out;
    assert!(diff.contains("one.txt"), "what it did is still there: {diff}");
    let told = stage.run(&["resume", &one, "--prompt", OTHERWISE, "--max-usd-per-task", "0.15"]);
    told.expect(2).says(&["of its limit of $0.15", "--max-usd-per-task"]);
    assert_eq!(times(&stage, "one"), 2, "nobody was asked");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(times(&stage, "one"), 2);
    let weighed = newest_prompt(&stage, "run-completion");
    assert!(weighed.contains("--- one (succeeded) ---"), "{weighed}");
    assert!(weighed.contains("first of one"), "{weighed}");
}

#[test]
fn a_step_that_had_failed_and_fails_once_more_has_failed() {
    let fails = "if [ \"$task\" = bad ]; then answer=\"no way $resumed\"; code=1; fi\n";
    let made = workflow("w", &[step("bad", &[])]);
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS, fails]);
    stage.run(&GOAL).expect(0);
    let bad = session_of(&stage, "bad");
    let told = stage.run(&["resume", &bad, "--prompt", OTHERWISE]).expect(10);
    told.says(&["step `bad` failed", "no way", "autopilot resume"]);
    assert_eq!(result_of(&stage, 1, "bad")["status"], "failed");
}

/// `one` is done by a program that tells nobody what it costs, `two` by one that does.
fn with_one_untold() -> Stage {
    let mut one = step("one", &[]);
    one["adapter"] = "mine".into();
    let made = workflow("w", &[one, step("two", &["one"])]);
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS]);
    stage.write_program("mine.sh", "#!/bin/sh\ncat > /dev/null\necho one >> one.txt\necho Done\n");
    let config = stage.read(".autopilot/config.yml");
    let mine = "agents: { mine: { mode: command, command: ./mine.sh } }\n";
    stage.write(".autopilot/config.yml", &format!("{config}{mine}"));
    stage.run(&GOAL).expect(0);
    stage
}

#[test]
fn a_limit_that_the_agent_of_the_step_can_not_keep_is_refused_before_it_is_asked() {
    let stage = with_one_untold();
    let (one, asked) = (session_of(&stage, "one"), stage.views("one-step/prompt.txt").len());
    let told = stage.run(&["resume", &one, "--prompt", OTHERWISE, "--max-usd", "1"]).expect(78);
    told.says(&["mine: mode command reports no cost, so the limit can't be enforced"]);
    assert_eq!(stage.views("one-step/prompt.txt").len(), asked, "nobody was asked");
    // Without a limit it goes on, and so does the run.
    stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
}

#[test]
fn a_limit_that_holds_already_may_be_raised_whoever_is_at_work() {
    let stage = with_one_untold();
    // Whoever does this step tells what it costs.
    let two = session_of(&stage, "two");
    stage.run(&["resume", &two, "--prompt", OTHERWISE, "--max-usd", "0.5"]).expect(0);
    let one = session_of(&stage, "one");
    // What this one costs nobody tells, so it is estimated.
    stage.run(&["resume", &one, "--prompt", OTHERWISE]).expect(0).says(&["estimated"]);
    stage.run(&["resume", "--max-usd", "5"]).expect(0).says(&["DONE"]);
}

#[test]
fn only_asking_leaves_the_run_alone() {
    let made = workflow("w", &[step("one", &[])]);
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS]);
    stage.run(&GOAL).expect(0);
    let one = session_of(&stage, "one");
    let tip = stage.git(&["rev-parse", &branch(&stage)]);
    stage.run(&["resume", &one, "--read-only", "--prompt", "why?"]).expect(0);
    assert_eq!(stage.git(&["rev-parse", &branch(&stage)]), tip);
    assert_eq!(result_of(&stage, 1, "one")["outputText"], "first of one");
    stage.run(&["resume"]).expect(64);
}

#[test]
fn a_run_with_it_is_played_again_and_decides_the_same() {
    let made = workflow("w", &[step("bad", &[]), step("slow", &[]), step("after", &["bad"])]);
    let waits = r#"
if [ "$task" = slow ]; then while [ ! -e "$own/gate" ]; do sleep 0.1; done; fi
"#;
    let stage = stage(
        &[&answers("workflow", "", &made), &done_when_seen("second of bad")],
        &[waits, WORKS, FAILS],
    );
    let args = [&GOAL[..], &["--fail-fast"]].concat();
    let run = stage.start(&args);
    stage.wait_until("bad has failed and slow is at work", |stage| {
        let tasks = stage.state_json()["tasks"].as_array().cloned().unwrap_or_default();
        let failed = tasks.iter().any(|task| task["id"] == "bad" && task["status"] == "FAILED");
        failed && times(stage, "slow") == 1
    });
    run.signal("KILL");
    run.wait();
    let bad = session_of(&stage, "bad");
    stage.run(&["resume", &bad, "--prompt", OTHERWISE]).expect(0);
    std::fs::write(own(&stage).join("gate"), "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    // And once more after its end.
    let slow = session_of(&stage, "slow");
    stage.run(&["resume", &slow, "--prompt", OTHERWISE]).expect(0).says(&["second of slow"]);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    let told = stage.run(&["replay", "--json"]).expect(0);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["same"], &told["outcome"]), (&true.into(), &"DONE".into()), "{told}");
    assert_eq!(told["not_repeated"], json!([]), "{told}");
}

#[test]
fn a_step_that_is_skipped_while_it_is_continued_is_not_called_unfinished() {
    let made = workflow("w", &[step("one", &[])]);
    let sleeps = "\nif [ -n \"$resumed\" ]; then sleep 600; fi\n";
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS, sleeps]);
    stage.run(&GOAL).expect(0);
    let one = session_of(&stage, "one");
    let turn = stage.start(&["resume", &one, "--prompt", OTHERWISE]);
    stage.wait_until("the agent was asked again", |stage| times(stage, "one") == 2);
    stage.run(&["skip", "one"]).expect(0);
    let told = turn.wait().expect(2);
    told.says(&[
        "step `one` was skipped before the turn ended",
        "stays merged",
        "autopilot resume",
    ]);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
}

/// The step is done, its commit is that of before, and the failure of the turn is told.
fn stands(stage: &Stage, commit: &str) {
    let one = stage.state_json()["tasks"].as_array().unwrap()[0].clone();
    assert_eq!((&one["id"], &one["status"]), (&json!("one"), &json!("DONE")), "{one:#}");
    let shown = stage.run(&["show", "one"]).expect(0).says(&["its earlier result stands"]);
    assert!(shown.out.contains(&format!("commit {commit}")), "{}", shown.out);
    assert!(on_branch(stage, "one.txt").contains("one"));
}

fn commit_of(stage: &Stage) -> String {
    let shown: Value =
        serde_json::from_str(&stage.run(&["show", "one", "--json"]).expect(0).out).unwrap();
    let attempts = shown["attempts"].as_array().unwrap().iter().rev();
    let commits = attempts.filter_map(|tried| tried["commit"].as_str());
    commits.map(str::to_owned).next().unwrap()
}

#[test]
fn a_turn_that_ends_by_its_limit_of_money_leaves_the_step_done() {
    for limit in ["--max-usd", "--max-usd-per-task"] {
        let made = workflow("w", &[step("one", &[])]);
        let dear = r#"
if [ -n "$resumed" ]; then
  echo half > half.txt
  echo '{"type":"system","subtype":"init","session_id":"'$session'","model":"m"}'
  echo '{"type":"result","subtype":"error_max_budget_usd","is_error":true,"session_id":"'$session'","num_turns":1,"total_cost_usd":0.5,"terminal_reason":"budget_exhausted","usage":{"input_tokens":10,"output_tokens":1},"errors":["Reached maximum budget"]}'
  exit 1
fi
"#;
        let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS, dear]);
        stage.run(&GOAL).expect(0);
        let (one, commit) = (session_of(&stage, "one"), commit_of(&stage));
        let told = stage.run(&["resume", &one, "--prompt", OTHERWISE, limit, "0.5"]);
        assert_ne!(told.code, 0, "{}", told.said());
        told.says(&["of its limit of $0.50", "its earlier result stands"]);
        stands(&stage, &commit);
        stage
            .run(&["resume", "--max-usd", "50", "--max-usd-per-task", "50"])
            .expect(0)
            .says(&["DONE"]);
    }
}

#[test]
fn a_turn_whose_executable_is_missing_leaves_the_step_done() {
    let made = workflow("w", &[step("one", &[])]);
    let stage = stage(&[&answers("workflow", "", &made), &done()], &[WORKS]);
    stage.run(&GOAL).expect(0);
    let (one, commit) = (session_of(&stage, "one"), commit_of(&stage));
    let program = stage.folder().join("claude");
    let aside = stage.folder().join("claude-aside");
    std::fs::rename(&program, &aside).unwrap();
    let told = stage.run(&["resume", &one, "--prompt", OTHERWISE]);
    assert_ne!(told.code, 0, "{}", told.said());
    told.says(&["its earlier result stands"]);
    stands(&stage, &commit);
    std::fs::rename(&aside, &program).unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
}

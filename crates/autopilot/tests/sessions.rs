//! `autopilot sessions` and going on with one, on runs that scripted agents really made.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Rule, Script, Server, Turn};
use autopilot_testkit::netns;
use autopilot_testkit::stage::{APPROVES, Stage, files, files_with, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const BUILDS_IN_A_SESSION: &str = "
- step: build
  do:
    - session: 0199aaaa-1111
    - append: { app.txt: \"done\\n\" }
    - cost_usd: 0.05
    - answer: { changed_files: [app.txt], notes: x }
";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn sessions(stage: &Stage, more: &[&str]) -> Value {
    let args = [&["sessions", "--json"], more].concat();
    serde_json::from_str(&stage.run(&args).expect(0).out).unwrap()
}

#[test]
fn every_session_of_a_run_is_listed_with_the_command_to_go_on() {
    let stage = stage();
    stage.agents(&[BUILDS_IN_A_SESSION, APPROVES]);
    stage.run_task().expect(0);
    let told = sessions(&stage, &[]);
    let run = told["run_id"].as_str().unwrap();
    let list = told["sessions"].as_array().unwrap();
    assert_eq!(list.len(), 3, "build, review, acceptance cases: {told}");
    let build = &list[0];
    assert_eq!(build["session"], "0199aaaa-1111");
    assert_eq!((&build["is_the_agents_own"], &build["agent"]), (&true.into(), &"script".into()));
    assert_eq!((&build["task"], &build["step"]), (&"say-done".into(), &"build".into()));
    assert_eq!((&build["iteration"], &build["state"]), (&1.into(), &"passed".into()));
    assert_eq!((&build["cost_usd"], &build["cost_complete"]), (&0.05.into(), &true.into()));
    assert_eq!(build["resume"], "autopilot resume 0199aaaa-1111 --prompt \"…\"");
    assert_eq!(build["not_resumable_because"], Value::Null);
    let review = &list[1];
    let named = format!("{run}-{}", review["attempt"].as_str().unwrap());
    assert_eq!((review["session"].as_str(), &review["step"]), (Some(&*named), &"review".into()));
    assert_eq!(review["is_the_agents_own"], false);
    // The acceptance cases told no cost.
    assert_eq!((&list[2]["cost_usd"], &list[2]["cost_complete"]), (&Value::Null, &false.into()));

    assert_eq!(sessions(&stage, &[&run[..12]])["sessions"].as_array().unwrap().len(), 3);
    let text = stage.run(&["sessions"]).expect(0);
    let text =
        text.says(&[run, "0199aaaa-1111", "say-done", "build", "$0.0500", "passed", "unknown"]);
    text.says(&["continue one: autopilot resume"]);
    stage.run(&["sessions", "nothing-like-it"]).expect(64).says(&["nothing-like-it"]);
}

#[test]
fn a_session_under_way_runs_and_one_whose_process_died_is_interrupted() {
    let stage = stage();
    let slow = "\n- step: build\n  do: [{ session: s-1 }, { run: \"sleep 30\" }]\n";
    stage.agents(&[slow, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the session is known", |stage| {
        stage.has(".autopilot/state.json")
            && sessions(stage, &[])["sessions"][0]["session"] == "s-1"
    });
    let told = sessions(&stage, &[]);
    assert_eq!(told["sessions"][0]["state"], "running");
    assert_eq!(told["sessions"][0]["resume"], Value::Null, "{told}");
    assert_eq!(told["sessions"][0]["not_resumable_because"], "at work");
    run.signal("KILL");
    run.wait();
    let told = sessions(&stage, &[]);
    assert_eq!(told["sessions"][0]["state"], "interrupted", "{told}");
    // A script keeps nothing, and it was cut short before it had said anything.
    let why = "its conversation was not kept";
    assert_eq!(told["sessions"][0]["not_resumable_because"], why, "{told}");
    let text = stage.run(&["sessions"]).expect(0).says(&["resumable", &format!("no: {why}")]);
    assert!(!text.out.contains("autopilot resume"), "{}", text.out);
    let refused = stage.run(&["resume", "s-1", "--prompt", "go on"]);
    assert!(refused.code != 0 && refused.said().contains(why), "{}", refused.said());
}

#[test]
fn without_a_run_there_is_a_next_step() {
    stage().run(&["sessions"]).expect(64).says(&["no run", "autopilot run"]);
}

/// Asked a second and a third time, it says and writes something else.
const FURTHER: &str = "
- step: build
  prompt: only look
  do: [{ write: { stray.txt: x } }, { answer: I have looked }]
- step: build
  prompt: and a third line
  do: [{ append: { app.txt: \"third\\n\" } }, { cost_usd: 0.02 }, { answer: third it is }]
- step: build
  prompt: and a second line
  do: [{ say: writing }, { append: { app.txt: \"second\\n\" } }, { cost_usd: 0.03 }, { answer: done so }]
- step: build
  prompt: take your time
  do: [{ say: thinking }, { cost_usd: 0.04 }, { hang: true }]
- step: review
  prompt: why so
  do: [{ answer: because }]
";
const BUILDS_PLAIN: &str = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - cost_usd: 0.05
    - answer: { changed_files: [app.txt], notes: x }
";

fn session_of(stage: &Stage, step: &str) -> String {
    let told = sessions(stage, &[]);
    let list = told["sessions"].as_array().unwrap();
    let found = list.iter().find(|session| session["step"] == step).unwrap();
    found["session"].as_str().unwrap().to_owned()
}

fn cost_of(stage: &Stage, step: &str) -> f64 {
    let said = stage.run(&["cost", "--json", "--by", "step"]).expect(0).out;
    let said: Value = serde_json::from_str(&said).unwrap();
    let rows = said["parts"][0]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["step"] == step).unwrap()["cost_usd"].as_f64().unwrap()
}

#[test]
fn a_turn_outside_the_run_answers_is_paid_for_and_leaves_a_branch() {
    let stage = stage();
    stage.agents(&[FURTHER, BUILDS_PLAIN, APPROVES]);
    stage.run_task().expect(0);
    let (before, run) = (stage.digest(), stage.status());
    let tip = |name: &str| stage.git(&["rev-parse", name]);
    let run_branch = run["branch_name"].as_str().unwrap().to_owned();
    let merged = tip(&run_branch);

    let build = session_of(&stage, "build");
    let said = stage.run(&["resume", &build, "--prompt", "and a second line"]).expect(0);
    let branch = format!("autopilot/session-{build}");
    let said = said.says(&["done so", "$0.0300", &branch, &format!("git merge {branch}")]);
    assert!(said.err.contains("say-done build | writing"), "{}", said.err);
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\ndone\nsecond");
    assert_eq!(stage.digest(), before, "nothing of the person's was touched");
    assert_eq!(tip(&run_branch), merged, "nothing was merged");
    assert!((cost_of(&stage, "build") - 0.08).abs() < 1e-9);
    assert_eq!(stage.status()["current_state"], run["current_state"]);

    // The next turn knows what was said and done, and goes on from there.
    let said = stage.run(&["--json", "resume", &build[..22], "--prompt", "and a third line"]);
    let last: Value = serde_json::from_str(said.expect(0).out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["outcome"], &last["answer"]), (&"success".into(), &"third it is".into()));
    assert_eq!((&last["branch_name"], &last["cost_usd"]), (&(*branch).into(), &0.02.into()));
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\ndone\nsecond\nthird");
    assert!((cost_of(&stage, "build") - 0.10).abs() < 1e-9);
    let prompts = stage.texts_of("prompt.txt");
    assert!(prompts.contains("You answered:\ndone so"), "{prompts}");

    // Whoever only judged is asked, and changes nothing.
    let review = session_of(&stage, "review");
    let said = stage.run(&["resume", &review, "--prompt", "why so?"]).expect(0);
    assert!(said.out.contains("because") && !said.out.contains("branch"), "{}", said.out);
    let said = stage.run(&["resume", &build, "--read-only", "--prompt", "only look"]).expect(0);
    said.says(&["I have looked", "although it may only read", "cost:   unknown"]);
    assert_eq!(tip(&branch), last["commit"].as_str().unwrap());
}

#[test]
fn questions_to_no_session_are_refused() {
    let stage = stage();
    stage.run(&["resume", "x-1", "--prompt", "hm"]).expect(64).says(&["no run"]);
    stage.agents(&[FURTHER, BUILDS_PLAIN, APPROVES]);
    stage.run_task().expect(0);
    let build = session_of(&stage, "build");
    let unknown = stage.run(&["resume", "no-such-session", "--prompt", "hm"]).expect(64);
    unknown.says(&["no-such-session", "autopilot sessions"]);
    let run = build.rsplit_once('-').unwrap().0;
    let several = stage.run(&["resume", run, "--prompt", "hm"]).expect(64);
    several.says(&["3 sessions begin with", &build]);
    stage.run(&["resume", &build, "--prompt", " \n"]).expect(64).says(&["empty"]);
    stage.run(&["resume", &build]).expect(64).says(&["--prompt"]);
    stage.run(&["resume", "--prompt", "hm"]).expect(64);
    stage.run(&["resume", &build, "--prompt", "hm", "--max-wall", "1h"]).expect(64);
}

#[test]
fn a_turn_is_ended_by_a_signal_and_refused_while_a_run_is_at_work() {
    let stage = stage();
    stage.agents(&[FURTHER, BUILDS_PLAIN, APPROVES]);
    stage.run_task().expect(0);
    let build = session_of(&stage, "build");
    let turn = stage.start(&["resume", &build, "--prompt", "take your time"]);
    stage.wait_until("it thinks", |_| turn.err().contains("thinking"));
    // Nobody else may work in the repository meanwhile.
    stage.task("second", "Second");
    stage.run(&["run", "tasks/second.md"]).expect(10).says(&["a session"]);
    turn.signal("INT");
    turn.wait().expect(2).says(&["stopped"]);
    assert!(stage.survivors().is_empty());
    assert!((cost_of(&stage, "build") - 0.09).abs() < 1e-9, "what was told counts");

    stage.agents(&["\n- step: build\n  do: [{ run: \"sleep 30\" }]\n", APPROVES]);
    let run = stage.start(&["run", "tasks/second.md"]);
    stage.wait_for_step("BUILD");
    let said = stage.run(&["resume", &build, "--prompt", "and a second line"]).expect(10);
    said.says(&["process"]);
    run.signal("KILL");
    run.wait();
}

/// Prints what the real one does: its cost is told over the whole session, and a session that is
/// gone is an error.
const CLAUDE: &str = r#"#!/bin/sh
read -r asked
session=0199dddd-4444-7000-8000-000000000001
total=0.2
answer='{\"changed_files\":[\"app.txt\"],\"notes\":\"x\"}'
case "$*" in *--resume*)
  if [ -e "$HOME/own/gone" ]; then
    echo "No conversation found with session ID: $session" >&2
    echo '{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"total_cost_usd":0,"session_id":"0199eeee-0000-7000-8000-000000000009","usage":{"input_tokens":0,"output_tokens":0},"errors":["No conversation found with session ID: '$session'"]}'
    exit 1
  fi
  if [ -e "$HOME/own/slow" ]; then
    echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
    echo 0.4 > "$HOME/own/total"; rm "$HOME/own/slow"; sleep 60
  fi
  total=$(cat "$HOME/own/total"); answer='it was late' ;;
*) echo done >> app.txt; mkdir -p "$CLAUDE_CONFIG_DIR/projects"; echo said > "$CLAUDE_CONFIG_DIR/projects/$session.jsonl" ;;
esac
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$answer\",\"session_id\":\"$session\",\"num_turns\":1,\"total_cost_usd\":$total,\"terminal_reason\":\"completed\",\"usage\":{\"input_tokens\":100,\"output_tokens\":9},\"permission_denials\":[]}"
"#;

const CLAUDES: &str = "0199dddd-4444-7000-8000-000000000001";

/// Its builder is that program, which looks into the directory given with it.
fn with_claude() -> (Stage, PathBuf) {
    let stage = stage();
    std::fs::create_dir_all(stage.folder().join("home/own")).unwrap();
    let home = stage.folder().join("home/own");
    std::fs::write(home.join("total"), "0.25").unwrap();
    stage.write_program("../claude", CLAUDE);
    let config = format!(
        "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
         builder: {{ mode: claude_code_cli, executable: ../claude }}\n\
         reviewer: {{ mode: script, script: agents.yml }}\nsandbox: {{ write: ['{}'] }}\n",
        home.display()
    );
    stage.write(".autopilot/config.yml", &config);
    (stage, home)
}

#[test]
fn a_session_of_the_agents_own_owes_its_rise_and_is_missed_when_it_is_gone() {
    let (stage, home) = with_claude();
    stage.run_task().expect(0);
    let id = CLAUDES;
    assert_eq!(session_of(&stage, "build"), id);
    let said = stage.run(&["resume", "0199dddd", "--prompt", "why?"]).expect(0);
    said.says(&["it was late", "$0.0500"]);
    assert!((cost_of(&stage, "build") - 0.25).abs() < 1e-9);

    // A turn that dies with its process has spent something nobody heard of; the next one's count
    // has it, and it is owed once.
    std::fs::write(home.join("slow"), "").unwrap();
    let dies = stage.start(&["resume", id, "--prompt", "think hard"]);
    stage.wait_until("it works", |_| !home.join("slow").exists());
    dies.signal("KILL");
    dies.wait();
    assert!((cost_of(&stage, "build") - 0.25).abs() < 1e-9);
    stage.run(&["resume", id, "--prompt", "and?"]).expect(0).says(&["it was late", "$0.1500"]);
    assert!((cost_of(&stage, "build") - 0.40).abs() < 1e-9);

    std::fs::write(home.join("gone"), "").unwrap();
    let said = stage.run(&["resume", id, "--prompt", "why?"]).expect(10);
    let said = said.says(&["does not know session", id, "autopilot sessions"]);
    assert!(!said.out.contains("it was late"), "{}", said.out);
    let again = stage.git(&["branch", "--list", "autopilot/session-*"]);
    assert_eq!(again, "", "nothing was changed");
}

#[test]
fn money_of_a_turn_beside_the_run_is_reserved_and_settled_after_a_kill() {
    let (stage, home) = with_claude();
    stage.run_task().expect(0);
    let before = stage.status();
    assert_eq!(
        (&before["cost_estimated_usd"], &before["cost_reserved_usd"]),
        (&0.0.into(), &0.0.into())
    );
    std::fs::write(home.join("slow"), "").unwrap();
    let dies = stage.start(&["resume", CLAUDES, "--prompt", "think hard", "--max-usd", "5"]);
    stage.wait_until("it works", |_| !home.join("slow").exists());
    assert!(stage.status()["cost_reserved_usd"].as_f64().unwrap() > 1.0, "{}", stage.status());
    dies.signal("KILL");
    dies.wait();
    assert!(stage.status()["cost_reserved_usd"].as_f64().unwrap() > 1.0, "nobody has settled it");
    let more = ["resume", CLAUDES, "--prompt", "and?", "--max-usd", "5"];
    stage.run(&more).expect(0).says(&["it was late"]);
    let after = stage.status();
    assert_eq!(after["cost_reserved_usd"], 0.0, "{after}");
    let estimated = after["cost_estimated_usd"].as_f64().unwrap();
    assert!(estimated > 0.0 && estimated < 3.0, "{after}");
}

#[test]
fn a_turn_outside_the_run_answers_a_stop_and_can_not_be_paused() {
    let (stage, home) = with_claude();
    stage.run_task().expect(0);
    std::fs::write(home.join("slow"), "").unwrap();
    let turn = stage.start(&["resume", CLAUDES, "--prompt", "think hard"]);
    stage.wait_until("it works", |_| !home.join("slow").exists());
    stage.run(&["pause"]).expect(10).says(&["continues a session", "can only be stopped"]);
    assert!(!stage.has(".autopilot/AUTOPILOT_PAUSE"));
    stage.run(&["stop"]).expect(0).says(&["stopping the agent of the session"]);
    turn.wait().expect(2).says(&["stopped"]);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"));
}

fn kept(stage: &Stage) -> Vec<PathBuf> {
    let notes = files(&stage.state()).into_iter().filter(|path| path.ends_with("session.json"));
    notes.map(|note| note.parent().unwrap().to_owned()).collect()
}

fn unused_for(session: &Path, days: u64) {
    let used = SystemTime::now() - Duration::from_secs(days * 86_400);
    let note = std::fs::File::open(session.join("session.json")).unwrap();
    note.set_modified(used).unwrap();
}

#[test]
fn an_old_session_goes_with_gc_and_whoever_asks_for_it_hears_so() {
    let (stage, _) = with_claude();
    stage.run_task().expect(0);
    let [session] = &kept(&stage)[..] else { panic!("{:?}", kept(&stage)) };
    let name = session.to_string_lossy().into_owned();
    assert!(!stage.run(&["gc"]).expect(0).out.contains(&name), "it is new");
    stage.run(&["resume", CLAUDES, "--prompt", "why?"]).expect(0).says(&["it was late"]);
    unused_for(session, 31);
    stage.run(&["gc", "--dry-run"]).expect(0).says(&["would remove session", &name]);
    assert!(session.is_dir(), "nothing was removed");
    stage.run(&["resume", CLAUDES, "--prompt", "why?"]).expect(0).says(&["it was late"]);
    assert!(!stage.run(&["gc", "--dry-run"]).expect(0).out.contains(&name), "it was used");

    unused_for(session, 31);
    stage.run(&["gc"]).expect(0).says(&["removed session", &name]);
    assert!(!session.exists());
    let told = sessions(&stage, &[]);
    assert_eq!(told["sessions"][0]["not_resumable_because"], "removed by `autopilot gc`");
    for more in [&["--dry-run"][..], &[]] {
        let args = [&["resume", CLAUDES, "--prompt", "why?"], more].concat();
        let refused = stage.run(&args).expect(10).says(&[CLAUDES, "`autopilot gc` has removed"]);
        let refused = refused.says(&["30 days", ".autopilot/artifacts/", "autopilot goal"]);
        assert!(!refused.said().contains("does not know"), "the agent was not asked");
    }
    assert!((cost_of(&stage, "build") - 0.25).abs() < 1e-9, "nothing was spent");
}

#[test]
fn of_a_run_that_is_not_over_no_session_goes_however_old_it_is() {
    let (stage, _) = with_claude();
    let waits = "\n- step: review\n  do: [{ say: looking }, { run: \"sleep 30\" }]\n";
    stage.agents(&[waits, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("REVIEW");
    run.signal("KILL");
    run.wait();
    let [session] = &kept(&stage)[..] else { panic!("{:?}", kept(&stage)) };
    unused_for(session, 400);
    let said = stage.run(&["gc"]).expect(0).says(&["kept the slots and sessions of run"]);
    assert!(session.is_dir(), "{}", said.out);
    stage.agents(&[APPROVES]);
    stage.run(&["resume"]).expect(0);
    unused_for(session, 400);
    stage.run(&["gc"]).expect(0);
    assert!(!session.exists());
}

#[test]
fn a_session_of_the_real_claude_goes_on_and_is_missed_when_its_file_is_gone() {
    let mut stage = stage();
    eprintln!("network: {}", netns::enter());
    let summary = json!({ "changed_files": ["app.txt"], "notes": "ok" });
    let script = Script::new()
        .rule(Rule::when("what did you do").turns([Turn::say("I wrote a line.")]))
        .rule(Rule::when("Say done").turns([
            Turn::call(Call::read("app.txt")),
            Turn::call(Call::edit("app.txt", "start", "start\ndone")),
            Turn::answer(summary),
        ]));
    let server = Server::start(script).unwrap();
    let home = stage.folder().join("home");
    for (name, value) in agents::claude_home(&home, &server).unwrap() {
        if name != "HOME" {
            stage.set(&name, &value);
        }
    }
    let claude = agents::claude();
    let config = format!(
        "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
         builder: {{ mode: claude_code_cli, executable: {} }}\n\
         reviewer: {{ mode: script, script: agents.yml }}\n",
        claude.display()
    );
    stage.write(".autopilot/config.yml", &config);
    stage.run_task().expect(0);
    let spent = cost_of(&stage, "build");
    let id = session_of(&stage, "build");
    let said = stage.run(&["--json", "resume", &id, "--prompt", "what did you do?"]).expect(0);
    let last: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["answer"], &last["session"]), (&"I wrote a line.".into(), &(*id).into()));
    // The vendor tells the cost of the whole session; only the rise is owed.
    let rise = last["cost_usd"].as_f64().unwrap();
    assert!(rise > 0.0 && rise < spent, "{rise} after {spent}");
    assert!((cost_of(&stage, "build") - spent - rise).abs() < 1e-9);

    for kept in files_with(&stage.state(), &id) {
        if text(&kept).contains("/sessions/") {
            std::fs::remove_file(kept).unwrap();
        }
    }
    let said = stage.run(&["resume", &id, "--prompt", "what did you do?"]).expect(10);
    said.says(&["its files are gone", &id]);
    let told = sessions(&stage, &[]);
    assert_eq!(told["sessions"][0]["resume"], Value::Null, "{told}");
    assert_eq!(told["sessions"][0]["not_resumable_because"], "its files are gone");
}

//! Journals written by 0.3.0, kept as text in `fixtures/journal-0.3.0`: they replay to the state they
//! had, commands say of them what 0.3.0 said, and they are resumed under the rules they began with.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

#[path = "journal/compare.rs"]
mod compare;
#[path = "journal/fixture.rs"]
mod fixture;

use autopilot_testkit::plan::merged_once_each;
use autopilot_testkit::stage::Stage;
use compare::{SentenceRule, differences, state_as_json};
use fixture::JournalFixture;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VERSION: &str = "journal-0.3.0";
const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const ALL: [&str; 14] = [
    "goal-continued",
    "goal-finished",
    "goal-killed",
    "goal-killed-spending",
    "plan-at-plan-gate",
    "plan-at-result-gate",
    "plan-failed",
    "plan-finished",
    "plan-killed",
    "queue-killed",
    "task-finished",
    "task-killed",
    "task-killed-merging",
    "task-killed-waiting",
];
/// A configuration under which no run of the fixtures could end well: failing tests, gates for a
/// person, one round and hardly any money. The agents stay the same.
const OTHER_RULES: &str = "repo: { base_branch: main }
commands: { tests: exit 1, uat: exit 1 }
gates: { human: three }
loop: { max_iterations: 1 }
budget: { max_usd: 0.001 }
reviewer: { mode: script, script: agents.yml }
planner: { mode: script, script: agents.yml }
";

fn restored(name: &str) -> JournalFixture {
    JournalFixture::restore(VERSION, name, BINARY)
}

#[test]
fn every_fixture_is_tested() {
    assert_eq!(fixture::names(VERSION), ALL);
}

#[test]
fn every_journal_replays_to_the_state_it_had() {
    for name in ALL {
        let fixture = JournalFixture::restore_journal(VERSION, name, BINARY);
        let now = state_as_json(&fixture.replay());
        if std::env::var_os("AUTOPILOT_WRITE_FIXTURES").is_some() {
            fixture.write("state.json", &format!("{now:#}\n"));
        }
        let then = fixture.json("state.json");
        assert_eq!(differences(&then, &now, SentenceRule::Exact), [""; 0], "{name}");
    }
}

#[test]
fn commands_say_of_tasks_and_queues_what_0_3_0_said() {
    commands_say_the_same(&["task", "queue"]);
}

#[test]
fn commands_say_of_plans_what_0_3_0_said() {
    commands_say_the_same(&["plan"]);
}

#[test]
fn commands_say_of_goals_what_0_3_0_said() {
    commands_say_the_same(&["goal"]);
}

#[track_caller]
fn commands_say_the_same(flows: &[&str]) {
    let is_of_flow = |name: &&str| flows.iter().any(|flow| name.starts_with(flow));
    for name in ALL.into_iter().filter(is_of_flow) {
        let fixture = restored(name);
        let then = fixture.json("said.json");
        let run = then["status"]["run_id"].as_str().unwrap();
        for (command, said) in then.as_object().unwrap() {
            let args = match command.as_str() {
                "status" | "runs" => vec![command, "--json"],
                _ => vec![command, run, "--json"],
            };
            let ended = fixture.stage.run(&args);
            if said.is_null() {
                assert_ne!(ended.code, 0, "{name}: {command}\n{}", ended.out);
                continue;
            }
            let now = fixture.parse(&ended.expect(0).out);
            let differ = differences(said, &now, SentenceRule::MayDiffer);
            assert_eq!(differ, [""; 0], "{name}: {command}");
        }
        people_are_told(&fixture.stage, run, &then["status"]);
    }
}

/// The same in words, and on a page that tells of every task.
#[track_caller]
fn people_are_told(stage: &Stage, run: &str, status: &Value) {
    let title = status["title"].as_str().unwrap();
    for command in ["status", "show"] {
        stage.run(&[command]).expect(0).says(&[run, title]);
    }
    let page = stage.run(&["report", run, "--out", "-"]).expect(0).says(&[run, title]).out;
    for task in status["tasks"].as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        assert!(page.contains(id), "{id} is not on the page of {run}");
    }
}

#[test]
fn a_run_that_has_ended_stays_as_it_is() {
    for name in ["goal-finished", "plan-failed", "plan-finished", "task-finished"] {
        let fixture = restored(name);
        let before = (fixture.records(), fixture.stage.status());
        fixture.stage.run(&["resume"]).expect(64).says(&["nothing to resume"]);
        assert_eq!((fixture.records(), fixture.stage.status()), before, "{name}");
    }
}

/// Takes the run up with these commands, each with its exit code, and checks that it ends DONE with
/// each of the tasks merged once, under the rules it began with.
#[track_caller]
fn ends_done(name: &str, commands: &[(&[&str], i32)], merged: &[&str]) -> JournalFixture {
    let fixture = restored(name);
    let (records, config) = (fixture.records(), fixture.pinned_config());
    let own_rules = fixture.stage.read(".autopilot/config.yml");
    let builder = own_rules.lines().find(|line| line.starts_with("builder:")).unwrap();
    fixture.stage.write(".autopilot/config.yml", &format!("{OTHER_RULES}{builder}\n"));
    for (args, code) in commands {
        fixture.stage.run(args).expect(*code);
    }
    let status = fixture.stage.status();
    assert_eq!(status["current_state"], "DONE", "{status:#}");
    merged_once_each(&fixture.stage, merged);
    let state = fixture.json("state.json");
    rules_are_kept(&state, &state_as_json(&fixture.replay()));
    assert_eq!(fixture.pinned_config(), config);
    let all = fixture.records();
    let (old, new) = all.split_at(records.len());
    assert_eq!(old, records, "records are never rewritten");
    only_known_steps_follow(&state, new);
    finished_tasks_are_kept(&fixture.json("said.json")["status"], &status);
    assert_eq!(fixture.stage.survivors(), [""; 0]);
    fixture
}

#[track_caller]
fn rules_are_kept(then: &Value, now: &Value) {
    for rule in ["flow", "base", "branch", "limits", "config", "options", "plan"] {
        let (then, now) = (&then["run"][rule], &now["run"][rule]);
        assert_eq!(differences(then, now, SentenceRule::Exact), [""; 0], "{rule}");
    }
    // Not one more either: a switch of a later version is off for a run that began without it.
    assert_eq!(then["run"]["switches"], now["run"]["switches"]);
}

/// A stage that a later version adds to a pipeline is not asked of a run that began without it.
#[track_caller]
fn only_known_steps_follow(then: &Value, records: &[String]) {
    let known = then["run"]["limits"]["retries"].as_object().unwrap();
    assert!(!records.is_empty());
    for record in records {
        let record: Value = serde_json::from_str(record).unwrap();
        let events = record["events"].as_array().unwrap();
        for step in events.iter().filter_map(|event| event["step"].as_str()) {
            assert!(known.contains_key(step), "{step} in {record}");
        }
    }
}

/// A task that was DONE has the same commit, and was not attempted again.
#[track_caller]
fn finished_tasks_are_kept(then: &Value, now: &Value) {
    let done = |status: &Value| -> BTreeMap<String, Value> {
        let tasks = status["tasks"].as_array().unwrap().iter();
        let facts = |task: &Value| json!([task["commit"], task["attempts"], task["iteration"]]);
        tasks
            .filter(|task| task["status"] == "DONE")
            .map(|task| (task["id"].as_str().unwrap().to_owned(), facts(task)))
            .collect()
    };
    let now = done(now);
    for (task, facts) in done(then) {
        assert_eq!(now.get(&task), Some(&facts), "{task}");
    }
}

const RESUMES: (&[&str], i32) = (&["resume"], 0);

#[test]
fn a_task_killed_during_a_fix_is_resumed() {
    ends_done("task-killed", &[RESUMES], &["one"]);
}

#[test]
fn a_task_killed_at_its_merge_is_merged_once() {
    let fixture = ends_done("task-killed-merging", &[RESUMES], &["one"]);
    assert_eq!(fixture.stage.views("one-build/prompt.txt").len(), 1, "built once");
}

#[test]
fn a_task_killed_while_it_waited_for_quota_is_resumed() {
    ends_done("task-killed-waiting", &[RESUMES], &["one"]);
}

#[test]
fn a_killed_queue_is_resumed_and_its_review_stays_switched_off() {
    let fixture = ends_done("queue-killed", &[RESUMES], &["one", "two"]);
    assert!(fixture.stage.views("-review/prompt.txt").is_empty());
}

#[test]
fn a_plan_killed_in_its_third_task_is_resumed() {
    let fixture = ends_done("plan-killed", &[RESUMES], &["one", "two", "three"]);
    assert_eq!(fixture.stage.views("run-plan/prompt.txt").len(), 1, "planned once");
}

#[test]
fn a_failed_plan_is_done_after_a_retry() {
    ends_done("plan-failed", &[(&["retry", "two"], 0)], &["one", "two", "three"]);
}

#[test]
fn a_plan_at_its_first_gate_waits_for_both_approvals() {
    let commands: [(&[&str], i32); 4] =
        [(&["resume"], 2), (&["approve"], 2), (&["resume"], 2), (&["approve"], 0)];
    ends_done("plan-at-plan-gate", &commands, &["one", "two", "three"]);
}

#[test]
fn a_plan_at_its_last_gate_waits_for_its_approval() {
    let commands: [(&[&str], i32); 2] = [(&["resume"], 2), (&["approve"], 0)];
    ends_done("plan-at-result-gate", &commands, &["one", "two", "three"]);
}

#[test]
fn a_goal_killed_in_a_step_is_resumed_and_proven() {
    let fixture = ends_done("goal-killed", &[RESUMES], &["one", "two"]);
    assert_eq!(fixture.stage.status()["unproven"], Value::Null);
}

#[test]
fn a_goal_killed_while_it_spent_is_charged_at_most_what_was_given() {
    let fixture = ends_done("goal-killed-spending", &[RESUMES], &["one", "two"]);
    // Two steps at 0.1 each, and what the killed one was given: it was a long time ago.
    let status = fixture.stage.status();
    assert_eq!((&status["cost_usd"], &status["cost_estimated_usd"]), (&0.2.into(), &0.5.into()));
    assert_eq!(status["cost_reserved_usd"], 0.0);
}

#[test]
fn a_goal_with_a_continued_step_is_resumed_and_stays_without_tests() {
    let fixture = ends_done("goal-continued", &[RESUMES], &["one", "two"]);
    assert!(fixture.stage.status()["unproven"].is_string());
}

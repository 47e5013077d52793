//! Accounts that are used up, not logged in or not there, by the real binary: what waits, who goes
//! on in its place, and that nothing but waiting is spent.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{
    self, RUN, TESTS, builds, configure, says, statuses_are, task as planned,
};
use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

fn in_seconds(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds
}

/// A rule by which a builder gives up.
fn gives_up(when: &str, kind: &str, until: Option<u64>) -> String {
    let until = until.map(|until| format!(", until_unix: {until}")).unwrap_or_default();
    format!(
        "\n- step: build\n  {when}\n  do: [{{ fail: {{ kind: {kind}, why: not now{until} }} }}]\n"
    )
}

/// When the attempts of a task's step began, by the names of their logs, which are also kept in the
/// archive.
fn began(stage: &Stage, task: &str) -> Vec<u64> {
    let part = format!("_{task}_build_");
    let logs = stage.views("logs").into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        let at = name.strip_prefix("builder_")?.split('_').next()?.to_owned();
        let time: jiff::civil::DateTime =
            jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", &at).ok()?;
        let seconds = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
        // An attempt has a log of each of its streams, told apart by their ends.
        let attempt: Vec<&str> = name.split_once(&part)?.1.splitn(3, '.').take(2).collect();
        Some((seconds as u64, attempt.join(".")))
    });
    let began: BTreeSet<(u64, String)> = logs.collect();
    began.into_iter().map(|(seconds, _)| seconds).collect()
}

/// Neither a round nor a try was spent on it.
fn unspent(task: &Value, attempts: u64) {
    assert_eq!(task["status"], "DONE", "{task}");
    assert_eq!((&task["iteration"], &task["retries"]), (&1.into(), &0.into()), "{task}");
    assert_eq!(task["interruptions"], 0, "{task}");
    assert!(task["attempts"].as_u64().unwrap() >= attempts, "{task}");
}

#[test]
fn a_usage_limit_is_waited_out_and_spends_neither_rounds_nor_retries() {
    let stage = Stage::new(BINARY);
    // Later than the first attempt on any machine, so that there is something to wait for.
    let until = in_seconds(8);
    stage.agents(&[&gives_up("attempt: 1", "quota", Some(until)), BUILDS, APPROVES]);
    stage.config(
        "commands: { tests: sh test.sh }\nbudget: { retries: 0 }\nloop: { max_iterations: 1 }\n",
    );
    let ended = stage.run_task().expect(0);
    ended.says(&["script has no quota until", "waiting for quota of script until", "DONE"]);
    unspent(&stage.first_task(), 2);
    let began = began(&stage, "say-done");
    assert!(began.len() == 2 && began[1] >= until, "{began:?}, {until}");
}

#[test]
fn a_fallback_works_while_the_preferred_agent_is_used_up() {
    let stage = Stage::new(BINARY);
    stage.agents(&[&gives_up("task: '*'", "quota", Some(in_seconds(3600))), APPROVES]);
    stage.write("second.yml", BUILDS);
    stage.write(
        ".autopilot/config.yml",
        "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
         builder: { mode: script, script: agents.yml, fallback: [{ script: second.yml }] }\n\
         reviewer: { mode: script, script: reviews.yml }\n",
    );
    stage.write("reviews.yml", APPROVES);
    let ended = stage.run_task().expect(0);
    ended.says(&["script has no quota until", "building (iteration 1), by script:2", "DONE"]);
    unspent(&stage.first_task(), 2);
}

#[test]
fn a_missing_fallback_is_found_before_anything_starts() {
    let stage = Stage::new(BINARY);
    stage.write(
        ".autopilot/config.yml",
        "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
         builder: { mode: script, script: agents.yml, fallback: [{ mode: command, command: nobody-has-this }] }\n\
         reviewer: { mode: script, script: agents.yml }\n",
    );
    stage.run_task().expect(78).says(&["nobody-has-this", "was not found"]);
    let doctor = stage.run(&["doctor"]);
    assert!(doctor.said().contains("nobody-has-this"), "{}", doctor.said());
}

#[test]
fn who_is_not_logged_in_rests_the_run_with_the_next_step_and_resume_goes_on() {
    let stage = Stage::new(BINARY);
    stage.agents(&[&gives_up("attempt: [1, 2]", "auth", None), BUILDS, APPROVES]);
    let ended = stage.run_task().expect(2);
    ended.says(&[
        "script is unavailable (not logged in): not now",
        "log in to that agent",
        "autopilot resume",
    ]);
    let told = stage.status();
    assert!(told["reason"].as_str().unwrap().contains("not logged in"), "{told}");
    assert_eq!(told["held_accounts"][0]["account"], "script");
    assert_eq!(stage.first_task()["attempts"], 2, "tried once more, and then no more");
    stage.run(&["resume", "--no-ui"]).expect(0);
    unspent(&stage.first_task(), 3);
}

#[test]
fn an_unknown_model_rests_the_run_at_once_and_resume_takes_the_one_the_file_names_then() {
    let stage = Stage::new(BINARY);
    stage.agents(&[&gives_up("attempt: [1, 2]", "model", None), BUILDS, APPROVES]);
    let config = stage.read(".autopilot/config.yml");
    let builder = "builder: { mode: script, script: agents.yml }";
    let with = |model: &str, more: &str| {
        let other = format!("builder: {{ mode: script, script: agents.yml, model: {model} }}");
        stage.write(".autopilot/config.yml", &format!("{}{more}", config.replace(builder, &other)));
    };
    assert!(config.contains(builder));
    with("wrong", "");
    let ended = stage.run_task().expect(2);
    let ended = ended.says(&[
        "script/wrong is unavailable (unknown model): not now",
        "name another in .autopilot/config.yml, then run `autopilot resume`",
    ]);
    // What the account says and how to go on are told once, wherever it is looked up.
    let status = stage.run(&["status"]).expect(0).out;
    for told in [ended.out, status, stage.read(".autopilot/STATUS.md")] {
        let times = |text: &str| told.matches(text).count();
        assert_eq!((times("autopilot resume"), times("unknown model")), (1, 1), "{told}");
    }
    assert_eq!(stage.first_task()["attempts"], 1);
    // Nothing but the model is taken from the file.
    with("right", "loop: { max_iterations: 1 }\nreview: { nonsense: true }\n");
    stage.run(&["resume", "--no-ui"]).expect(2).says(&["unknown model"]);
    with("right", "loop: { max_iterations: 1 }\n");
    let ended = stage.run(&["resume", "--no-ui"]).expect(0);
    ended.says(&[
        "builder.model was wrong, is right from here on, as set in config.yml",
        "the run keeps its own configuration",
        "models changed",
    ]);
    let asked = |place: usize| -> Value {
        serde_json::from_str(
            &std::fs::read_to_string(&stage.views("build/metadata.json")[place]).unwrap(),
        )
        .unwrap()
    };
    assert_eq!((&asked(1)["model"], &asked(2)["model"]), (&"wrong".into(), &"right".into()));
    // Each is told with the model it was.
    let told = stage.run(&["sessions", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let models: Vec<&Value> = told["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|session| session["step"] == "build")
        .map(|session| &session["model"])
        .collect();
    assert!(models.iter().any(|model| **model == "right"), "{told}");
}

#[test]
fn a_quota_that_comes_back_too_late_rests_the_run() {
    let stage = Stage::new(BINARY);
    stage.agents(&[&gives_up("attempt: 1", "quota", Some(in_seconds(3600))), BUILDS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nbudget: { max_wait_quota: 1m }\n");
    stage.run_task().expect(2).says(&["the quota resets at"]);
    stage.run(&["resume", "--no-ui"]).expect(0);
    unspent(&stage.first_task(), 2);
}

#[test]
fn an_end_of_a_quota_that_nobody_named_is_not_told_as_one() {
    let stage = Stage::new(BINARY);
    stage.agents(&[&gives_up("attempt: 1", "quota", None), BUILDS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nbudget: { max_wait_quota: 10s }\n");
    let rest = stage.run_task().expect(2);
    let said = rest.said();
    rest.says(&["script has no quota; reset time unknown; next try about"])
        .says(&["for an unknown time; the next try, about"]);
    assert!(!said.contains("quota until") && !said.contains("quota resets"), "{said}");
    assert_eq!(stage.status()["held_accounts"][0]["until_is_a_guess"], true);
    stage.run(&["show"]).expect(0).says(&["no quota: not now", "reset time unknown"]);
}

/// Says what the real one does at a usage limit, an hour before its end.
const CODEX: &str = r#"#!/bin/sh
cat > /dev/null
at=$(date -d '+1 hour' '+%-I:%M %p')
why="You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at $at."
echo '{"type":"thread.started","thread_id":"0199bbbb-2222-7000-8000-000000000000"}'
echo '{"type":"turn.started"}'
echo "{\"type\":\"error\",\"message\":\"$why\"}"
echo "{\"type\":\"turn.failed\",\"error\":{\"message\":\"$why\"}}"
exit 1
"#;

#[test]
fn the_time_of_the_day_at_which_codex_has_quota_again_is_understood() {
    for zone in ["UTC", "NPT-5:45"] {
        let mut stage = Stage::new(BINARY);
        stage.set("TZ", zone);
        std::fs::create_dir_all(stage.folder().join("home/.codex")).unwrap();
        stage.write_program("../codex", CODEX);
        let config = "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
            builder: { mode: codex_cli, executable: ../codex }\n\
            reviewer: { mode: script, script: agents.yml }\nbudget: { max_wait_quota: 1m }\n";
        stage.write(".autopilot/config.yml", config);
        let told_at = in_seconds(0);
        stage.run_task().expect(2).says(&["codex_cli has no quota until", "quota resets at"]);
        let held = stage.status()["held_accounts"][0].clone();
        let until: jiff::Timestamp = held["until"].as_str().unwrap().parse().unwrap();
        // Told without seconds; it is over by the end of that minute.
        let wait = until.as_second() - told_at as i64;
        assert!((3600..3700).contains(&wait), "{zone}: {held}, {wait} s");
        assert_eq!(held["until_is_a_guess"], false, "{held}");
    }
}

#[test]
fn a_kill_while_it_waits_changes_nothing_of_when_it_goes_on() {
    let stage = Stage::new(BINARY);
    let until = in_seconds(12);
    stage.agents(&[&gives_up("attempt: 1", "quota", Some(until)), BUILDS, APPROVES]);
    let started = stage.start(&["run", "tasks/say-done.md", "--no-ui"]);
    stage.wait_until("the wait for quota", |stage| {
        stage.has(".autopilot/state.json") && stage.first_task()["waits"].is_string()
    });
    // Nothing runs, so the first thing to know is what is waited for and until when.
    let told = stage.run(&["status"]).expect(0);
    assert!(told.out.starts_with("WAITING  Say done\n"), "{}", told.out);
    told.says(&["waiting for quota of script until", "script has no quota until"]);
    let reason = stage.status()["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.starts_with("waiting for quota of script until"), "{reason}");
    assert!(stage.read(".autopilot/STATUS.md").starts_with("# WAITING: Say done\n"));
    started.signal("KILL");
    let _killed: Ended = started.wait();
    stage.run(&["resume", "--no-ui"]).expect(0);
    let began = began(&stage, "say-done");
    assert!(began.len() == 2 && began[1] >= until, "{began:?}, {until}");
    unspent(&stage.first_task(), 2);
}

#[test]
fn only_who_is_at_work_meets_the_limit_of_an_account() {
    let tasks = [planned("a", &[]), planned("b", &[]), planned("c", &[])];
    let all = plan::plan(&tasks);
    let stage = plan::stage(BINARY, &all);
    let until = in_seconds(15);
    let limit = gives_up("task: a\n  attempt: 1", "quota", Some(until));
    stage.agents(&[&says(&all), &limit, &builds(&stage), APPROVES]);
    configure(&stage, &format!("{TESTS}orchestrator: {{ max_workers: 1 }}\n"));
    stage.run(&RUN).expect(0);
    statuses_are(&stage, &[("a", "DONE"), ("b", "DONE"), ("c", "DONE")]);
    assert_eq!(began(&stage, "a").len(), 2);
    for task in ["b", "c"] {
        let began = began(&stage, task);
        assert!(began.len() == 1 && began[0] >= until, "{task}: {began:?}, {until}");
    }
}

#[test]
fn an_outage_costs_no_task_a_try() {
    let tasks = [planned("a", &[]), planned("b", &[]), planned("c", &[])];
    let all = plan::plan(&tasks);
    let stage = plan::stage(BINARY, &all);
    let down = gives_up("task: '[ab]'\n  attempt: 1", "outage", None);
    stage.agents(&[&says(&all), &down, &builds(&stage), APPROVES]);
    configure(
        &stage,
        &format!("{TESTS}orchestrator: {{ max_workers: 2 }}\nbudget: {{ retries: 0 }}\n"),
    );
    stage.run(&RUN).expect(0).says(&["script is unavailable (service not available): not now"]);
    for task in stage.state_json()["tasks"].as_array().unwrap() {
        unspent(task, 1);
    }
    assert_eq!(began(&stage, "c").len(), 1, "nobody else finds out for themselves");
}

#[test]
fn who_is_not_logged_in_is_not_asked_for_every_task() {
    let tasks = ["a", "b", "c", "d"].map(|name| planned(name, &[]));
    let all = plan::plan(&tasks);
    let stage = plan::stage(BINARY, &all);
    let out = gives_up("task: '*'", "auth", None);
    stage.agents(&[&says(&all), &out, &builds(&stage), APPROVES]);
    let config = format!("{TESTS}orchestrator: {{ max_workers: 1 }}\nbudget: {{ retries: 0 }}\n");
    configure(&stage, &config);
    stage.run(&RUN).expect(2).says(&["script is unavailable (not logged in): not now"]);
    let asked = ["a", "b", "c", "d"].map(|task| began(&stage, task).len());
    assert_eq!(asked.iter().sum::<usize>(), 2, "once more to be sure, by nobody else: {asked:?}");
    stage.agents(&[&says(&all), &builds(&stage), APPROVES]);
    stage.run(&["resume", "--no-ui"]).expect(0);
    for task in stage.state_json()["tasks"].as_array().unwrap() {
        unspent(task, 1);
    }
}

/// Each role has another model in reserve, and each is away for another reason.
#[test]
fn every_role_has_those_who_stand_in_for_it_whatever_keeps_the_first_away() {
    let tasks = [planned("a", &[])];
    let all = plan::plan(&tasks);
    let stage = plan::stage(BINARY, &all);
    let away = |step: &str, kind: &str| {
        format!("\n- step: {step}\n  do: [{{ fail: {{ kind: {kind}, why: not now }} }}]\n")
    };
    let first =
        [away("plan", "auth"), away("build", "outage"), away("[review, uat_generate]", "model")];
    stage.agents(&[&first.concat()]);
    stage.write("second.yml", &[&says(&all), &builds(&stage), APPROVES].concat());
    let config = stage.read(".autopilot/config.yml");
    let scripted = "{ mode: script, script: agents.yml }";
    let listed = "{ mode: script, script: agents.yml, model: large, \
                  fallback: [{ script: second.yml, model: small }] }";
    assert_eq!(config.matches(scripted).count(), 3, "{config}");
    stage.write(".autopilot/config.yml", &config.replace(scripted, listed));
    stage.run(&RUN).expect(0).says(&["DONE"]);
    statuses_are(&stage, &[("a", "DONE")]);
    unspent(&stage.state_json()["tasks"][0], 2);
    let told = stage.run(&["sessions", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    for step in ["plan", "build", "review", "uat_generate"] {
        let of_step = |session: &&Value| session["step"] == step && session["state"] == "passed";
        let done = told["sessions"].as_array().unwrap().iter().find(of_step);
        assert_eq!(done.unwrap()["model"], "small", "{step}: {told}");
    }
}

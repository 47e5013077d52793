//! Planner, reviewer and acceptance cases by a model behind an OpenAI-compatible API: the real
//! binary, a model server on loopback, and a key that is nowhere to be read.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::model::{Fault, Request, Rule, Script, Server, Times, Turn};
use autopilot_testkit::plan::{self, plan, statuses_are, task};
use autopilot_testkit::stage::{BUILDS, Stage, files_with};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// Of a variable whose name does not say that it holds a key.
const KEY: &str = "cnry-9f2k-model-access-41z";
const VARIABLE: &str = "MODEL_ACCESS";
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Words of the prompts: of a review, of acceptance cases, of a repair.
const REVIEW: &str = "## Your verdict";
const CASES: &str = "## How to answer";
const REPAIR: &str = "could not be used";

fn approval() -> Turn {
    Turn::answer(json!({ "verdict": "APPROVE", "summary": "fine", "issues": [] })).using(900, 0, 30)
}

fn cases() -> Turn {
    Turn::say("# Cases\n1. app.txt says done\n")
}

fn likes_all() -> Script {
    Script::new().when(REVIEW, [approval()]).when(CASES, [cases()])
}

/// A model for everything but the building.
fn models(stage: &Stage, server: &Server, api: &str, more: &str) {
    let base = server.url_v1();
    let model = format!(
        "{{ mode: openai_api, model: m-1, base_url: '{base}', api: {api}, api_key_env: {VARIABLE} }}"
    );
    let config = format!(
        "repo: {{ base_branch: main }}\nbuilder: {{ mode: script, script: agents.yml }}\n\
         reviewer: {model}\nplanner: {model}\ncommands: {{ tests: sh test.sh }}\n{more}"
    );
    stage.write(".autopilot/config.yml", &config);
}

fn stage_with(server: &Server, api: &str) -> Stage {
    let mut stage = Stage::new(BINARY);
    stage.set(VARIABLE, KEY);
    stage.agents(&[BUILDS]);
    models(&stage, server, api, "");
    stage
}

#[track_caller]
fn nowhere(stage: &Stage) {
    assert_eq!(files_with(stage.folder(), KEY), Vec::<PathBuf>::new());
}

fn paths(server: &Server) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

fn about<'a>(requests: &'a [Request], words: &str) -> Vec<&'a Request> {
    requests.iter().filter(|request| request.body.to_string().contains(words)).collect()
}

/// The arguments of every process of this machine, as anybody can list them.
fn process_list() -> String {
    let mut list = String::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        list.push_str(&String::from_utf8_lossy(&words).replace('\0', " "));
        list.push('\n');
    }
    list
}

#[test]
fn a_task_is_reviewed_by_a_model_and_its_key_is_nowhere_to_be_read() {
    // A server that tells what it was given.
    let summary = format!("I was asked with {KEY}, and it is fine");
    let approval =
        json!({ "verdict": "APPROVE", "summary": summary, "issues": [], "accepted_tests": [] });
    let slow = Turn::answer(approval).after(Duration::from_secs(2));
    let server = Server::start(Script::new().when(REVIEW, [slow]).when(CASES, [cases()])).unwrap();
    let stage = stage_with(&server, "auto");
    let run = stage.start(&["run", "tasks/say-done.md", "--verbose"]);
    assert!(server.wait_for(1, WAIT_MAX), "{}", run.err());
    let list = process_list();
    assert!(list.contains("__api") && !list.contains(KEY), "{list}");
    let ended = run.wait().expect(0).says(&["DONE"]);
    assert!(!ended.said().contains(KEY), "{}", ended.said());
    let requests = server.requests();
    let reviews = about(&requests, REVIEW);
    assert_eq!(reviews.len(), 1);
    let request = reviews[0];
    assert_eq!(request.path, "/v1/responses");
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(request.body["model"], "m-1");
    assert_eq!(request.body["text"]["format"]["strict"], true);
    assert_eq!(request.body["text"]["format"]["schema"]["additionalProperties"], false);
    assert!(about(&requests, CASES)[0].body["text"].is_null(), "cases are prose");
    assert!(stage.texts_of("uat/").contains("app.txt says done"));
    nowhere(&stage);
}

#[test]
fn a_plan_is_made_and_reviewed_by_a_local_server_by_chat_and_without_a_key() {
    let the_plan = plan(&[task("one", &[]), task("two", &["one"])]);
    let script = |rule: Rule, turn: Turn| rule.turns([turn]);
    let server = Server::start(
        Script::new()
            .rule(script(Rule::when(REVIEW), approval()))
            .rule(script(Rule::when(CASES), cases()))
            .rule(script(Rule::when("Small things"), Turn::answer(the_plan.clone()))),
    )
    .unwrap();
    let stage = plan::stage(BINARY, &the_plan);
    stage.agents(&[&plan::builds(&stage)]);
    let dir = stage.folder().join("stamps");
    models(&stage, &server, "chat", &format!("sandbox: {{ write: ['{}'] }}\n", dir.display()));
    let config = stage.read(".autopilot/config.yml");
    let keyless = config.replace(&format!(", api_key_env: {VARIABLE}"), "");
    assert_ne!(config, keyless);
    stage.write(".autopilot/config.yml", &keyless);
    // Without a key: the server is on this machine.
    stage.run(&plan::RUN).expect(0).says(&["DONE"]);
    statuses_are(&stage, &[("one", "DONE"), ("two", "DONE")]);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
    let planned = &requests[0].body;
    assert_eq!(planned["response_format"]["type"], "json_schema");
    // Of each task, and of the whole.
    assert_eq!(about(&requests, REVIEW).len(), 3);
}

#[test]
fn an_answer_that_cannot_be_read_is_repaired_in_the_same_conversation() {
    for (api, path) in [("responses", "/v1/responses"), ("chat", "/v1/chat/completions")] {
        let script = Script::new()
            .when(REPAIR, [approval()])
            .when(REVIEW, [Turn::say("I approve of it.")])
            .when(CASES, [cases()]);
        let server = Server::start(script).unwrap();
        let stage = stage_with(&server, api);
        stage.run_task().expect(0);
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.path == path), "{:?}", paths(&server));
        let repairs = about(&requests, REPAIR);
        assert_eq!(repairs.len(), 1);
        let body = &repairs[0].body;
        let said = |list: &Value| list.as_array().unwrap().len();
        match api {
            "responses" => {
                assert!(body["previous_response_id"].as_str().unwrap().starts_with("resp_"));
                assert_eq!(said(&body["input"]), 1);
            }
            _ => {
                assert_eq!(said(&body["messages"]), 3);
                assert_eq!(body["messages"][1]["content"], "I approve of it.");
            }
        }
        nowhere(&stage);
    }
}

#[test]
fn what_passes_by_itself_costs_neither_a_round_nor_a_retry() {
    let busy = Fault::status(429, json!({ "error": { "code": "rate_limit_exceeded" } }))
        .header("retry-after", "1");
    let script = Script::new()
        .rule(
            Rule::when(REVIEW)
                .fails(Times::First(1), busy)
                .fails(Times::First(1), Fault::Cut)
                .fails(Times::First(1), Fault::status(500, "away"))
                .turns([approval()]),
        )
        .when(CASES, [cases()]);
    let server = Server::start(script).unwrap();
    let stage = stage_with(&server, "auto");
    stage.run_task().expect(0);
    assert_eq!(about(&server.requests(), REVIEW).len(), 4);
    assert_eq!(stage.first_task()["iteration"], 1);
    let log = stage.texts_of("logs/reviewer");
    assert!(log.contains("try") || log.contains("\"retry\""), "{log}");
}

#[test]
fn a_key_that_is_refused_is_told_with_its_variable_and_without_itself() {
    let said = json!({ "error": {
        "message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key"
    } });
    let script = Script::new().rule(Rule::when("").fails(Times::Always, Fault::status(401, said)));
    let server = Server::start(script).unwrap();
    let stage = stage_with(&server, "auto");
    // The second try, which a renewed token would need, is not waited for.
    models(&stage, &server, "auto", "budget: { max_wait_quota: 1s }\n");
    let ended = stage.run_task().expect(2);
    let ended = ended.says(&["Incorrect API key", VARIABLE]);
    assert!(!ended.said().contains(KEY), "{}", ended.said());
    nowhere(&stage);
}

#[test]
fn without_a_key_nothing_is_begun() {
    let mut stage = Stage::new(BINARY);
    let far = "{ mode: openai_api, model: m-1, base_url: 'https://models.invalid/v1', api_key_env: MODEL_ACCESS }";
    let config = format!(
        "repo: {{ base_branch: main }}\nbuilder: {{ mode: script, script: agents.yml }}\n\
         reviewer: {far}\ncommands: {{ tests: sh test.sh }}\n"
    );
    stage.write(".autopilot/config.yml", &config);
    let words = ["https://models.invalid/v1", "`MODEL_ACCESS`", "reviewer"];
    stage.run_task().expect(78).says(&words);
    assert!(!stage.has(".autopilot/state.json"));
    stage.run(&["doctor"]).expect(78).says(&words);
    stage.set(VARIABLE, KEY);
    let ended = stage.run(&["doctor"]);
    let ended = ended.says(&["m-1 at https://models.invalid/v1, key from MODEL_ACCESS"]);
    assert!(!ended.said().contains(KEY), "{}", ended.said());
}

#[test]
fn the_tests_of_the_project_do_not_get_the_key() {
    let server = Server::start(likes_all()).unwrap();
    let stage = stage_with(&server, "auto");
    let config = stage.read(".autopilot/config.yml");
    let tests = "tests: 'echo key=$MODEL_ACCESS; sh test.sh'";
    stage.write(".autopilot/config.yml", &config.replace("tests: sh test.sh", tests));
    stage.run_task().expect(0);
    let logs = stage.texts_of("logs/validation");
    assert!(logs.lines().any(|line| line == "key="), "not even redacted: {logs}");
}

#[test]
fn a_question_that_is_none_is_answered_with_a_reason() {
    let stage = Stage::new(BINARY);
    let ended = stage.run(&["__api"]).expect(1);
    let said: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&said["said"], &said["by"]), (&json!("failed"), &json!("setting")));
    assert!(said["message"].as_str().unwrap().contains("not a valid request"), "{said}");
}

//! What Codex really prints, judged by our codec: its errors, which are texts, its threads, schemas,
//! tools and signals.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "agents/turn.rs"]
mod turn;

use std::time::Duration;

use autopilot_agents::{Access, Agent, AgentOutcome, Cause, LaunchRequest, LaunchSchema};
use autopilot_testkit::agents::{self, Variables};
use autopilot_testkit::model::{Call, Fault, Rule, Script, Server, Times, Turn};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use turn::{Place, Ran, events, row};

/// Far more than the agent needs to make its request.
const REQUEST_MAX: Duration = Duration::from_secs(30);

fn codex() -> Agent {
    turn::agent("codex_cli", &agents::codex())
}

fn run(ask: &LaunchRequest, variables: &Variables) -> Ran {
    turn::run(&codex(), ask, variables)
}

/// A place, a model that follows `script`, and the variables that bring the agent to it.
fn stage(script: Script) -> (Place, Server, Variables) {
    let place = Place::new();
    let server = Server::start(script).unwrap();
    let variables = agents::codex_home(place.home().as_std_path(), &server).unwrap();
    (place, server, variables)
}

fn failing(words: &str, status: u16, kind: &str, message: &str) -> Rule {
    let error = json!({"error": {"type": kind, "code": kind, "message": message}});
    always(words, Fault::status(status, error))
}

fn always(words: &str, fault: Fault) -> Rule {
    Rule::when(words).fails(Times::Always, fault)
}

/// Asks each prompt in a thread of its own.
fn table(stage: &(Place, Server, Variables), prompts: &[&str]) -> String {
    let (place, server, variables) = stage;
    let ask = |prompt: &&str| {
        row(prompt, &run(&LaunchRequest::new(prompt, &place.repo()), variables), server)
    };
    prompts.iter().map(ask).collect::<Vec<_>>().join("\n")
}

#[test]
fn errors_of_the_account_and_the_request_are_told_apart() {
    let no_model = "The model `x` does not exist or you do not have access to it.";
    let used_up: Value = json!({"error": {
        "type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "plus", "resets_at": 4_102_444_800_u64,
    }});
    let script = Script::new()
        .rule(failing("STATUS 401", 401, "invalid_api_key", "Incorrect API key provided"))
        .rule(failing("STATUS 403", 403, "forbidden", "Country not supported"))
        .rule(failing("STATUS 404", 404, "model_not_found", no_model))
        .rule(failing("STATUS 400", 400, "invalid_request_error", "Invalid value: 'x'."))
        .rule(failing("STATUS 429", 429, "rate_limit_exceeded", "Rate limit reached"))
        .rule(failing("QUOTA", 429, "insufficient_quota", "You exceeded your current quota"))
        .rule(always("USED UP", Fault::status(429, used_up)));
    let mut stage = stage(script);
    let prompts =
        ["STATUS 401", "STATUS 403", "STATUS 404", "STATUS 400", "STATUS 429", "QUOTA", "USED UP"];
    insta::assert_snapshot!(table(&stage, &prompts), @r#"
    STATUS 401: exit 1, auth: unexpected status 401 Unauthorized: Incorrect API key provided, url: http://HOST/v1/responses
    STATUS 403: exit 1, auth: unexpected status 403 Forbidden: Country not supported, url: http://HOST/v1/responses
    STATUS 404: exit 1, broke (Model): The model `x` does not exist or you do not have access to it.
    STATUS 400: exit 1, broke (Request): {"error":{"type":"invalid_request_error","code":"invalid_request_error","message":"Invalid va
    STATUS 429: exit 1, quota: exceeded retry limit, last status: 429 Too Many Requests
    QUOTA: exit 1, quota: Quota exceeded. Check your plan and billing details.
    USED UP: exit 1, quota: You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.co
    "#);
    stage.2.retain(|(name, _)| name != "OPENAI_API_KEY");
    insta::assert_snapshot!(table(&stage, &["NO KEY"]), @"NO KEY: exit 1, auth: Missing environment variable: `OPENAI_API_KEY`.");
}

#[test]
fn troubles_of_the_service_and_the_model_are_told_apart() {
    let event = |kind: &str| Fault::error_event(kind, "no");
    let script = Script::new()
        .rule(failing("STATUS 500", 500, "server_error", "boom"))
        .rule(failing("STATUS 503", 503, "server_is_overloaded", "overloaded"))
        .rule(always("OVERLOADED", event("server_is_overloaded")))
        .rule(always("PAID OUT", event("insufficient_quota")))
        .rule(always("CONTEXT", event("context_length_exceeded")))
        .rule(always("CUT", Fault::Cut))
        .rule(always("NOTHING", Fault::Empty))
        .rule(Rule::when("ONCE").fails(Times::First(1), Fault::Cut).turns([Turn::say("at last")]))
        .when("MUTE", [Turn::default()]);
    let prompts = [
        "STATUS 500",
        "STATUS 503",
        "OVERLOADED",
        "PAID OUT",
        "CONTEXT",
        "CUT",
        "NOTHING",
        "ONCE",
        "MUTE",
    ];
    insta::assert_snapshot!(table(&stage(script), &prompts), @r#"
    STATUS 500: exit 1, outage: We’re currently experiencing high demand, which may cause temporary errors.
    STATUS 503: exit 1, outage: Selected model is at capacity. Please try a different model.
    OVERLOADED: exit 1, outage: Selected model is at capacity. Please try a different model.
    PAID OUT: exit 1, quota: Quota exceeded. Check your plan and billing details.
    CONTEXT: exit 1, broke (Context): Codex ran out of room in the model's context window. Start a new thread or clear earlier hist
    CUT: exit 1, outage: stream disconnected before completion: Transport error: network error: error decoding response body
    NOTHING: exit 1, outage: stream disconnected before completion: stream closed before response.completed
    ONCE: exit 0, success: at last
    MUTE: exit 0, broke (Empty): the agent ended without an answer and without using a tool
    "#);
}

#[test]
fn work_is_seen_as_it_happens_and_counted_at_its_end() {
    let script = Script::new().when(
        "HELLO",
        [
            Turn::say("Writing.").and_call(Call::write("hello.txt", "hello\n")).using(600, 400, 40),
            Turn::call(Call::edit("hello.txt", "hello", "bye")).thinking("Hm.").using(10, 5, 5),
            Turn::call(Call::shell("cat hello.txt; exit 3")).using(10, 5, 5),
            Turn::say("hello.txt says bye.").using(800, 400, 50),
        ],
    );
    let (place, server, variables) = stage(script);
    let ran = run(&LaunchRequest::new("HELLO", &place.repo()), &variables);
    insta::assert_snapshot!(row("HELLO", &ran, &server), @"HELLO: exit 0, success: hello.txt says bye.");
    insta::assert_snapshot!(events(&ran, &place), @r#"
    says Writing.
    calls edit: REPO/hello.txt
    gets REPO/hello.txt
    Added REPO/hello.txt
    thinks Hm.
    calls edit: REPO/hello.txt
    gets REPO/hello.txt
    Modified REPO/hello.txt
    calls shell: /bin/bash -lc 'cat hello.txt; exit 3'
    gets error bye
    says hello.txt says bye.
    "#);
    assert_eq!(place.read("hello.txt"), "bye\n");
    let usage = ran.ending.usage.unwrap();
    assert_eq!((usage.tokens.input, usage.tokens.cached, usage.tokens.output), (2230, 810, 100));
}

#[test]
fn a_reader_writes_nothing_and_the_run_goes_on() {
    let script = Script::new()
        .when("WRITE", [Turn::call(Call::write("made.txt", "x\n")), Turn::say("tried")]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let ran = run(
        &LaunchRequest { access: Access::Read, ..LaunchRequest::new("WRITE", &repo) },
        &variables,
    );
    insta::assert_snapshot!(row("WRITE", &ran, &server), @"WRITE: exit 0, success: tried");
    assert!(events(&ran, &place).contains("patch rejected"), "{}", ran.err);
    assert!(!repo.join("made.txt").exists());
}

#[test]
fn threads_go_on_and_are_missed() {
    let turn = |text: &str| [Turn::say(text).using(1000, 0, 100)];
    let script = Script::new().when("FIRST", turn("one")).when("SECOND", turn("two"));
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let first = run(&LaunchRequest::new("FIRST", &repo), &variables);
    let id = first.ending.session.clone().unwrap();
    let second = run(
        &LaunchRequest { session: Some(id.clone()), ..LaunchRequest::new("SECOND", &repo) },
        &variables,
    );
    assert_eq!(second.ending.session.as_deref(), Some(id.as_str()));
    let asked = server.requests().pop().unwrap().body["input"].to_string();
    assert!(asked.contains("FIRST") && asked.contains("SECOND"), "{asked}");
    // The count is of the thread.
    let (before, after) = (first.ending.usage.unwrap(), second.ending.usage.unwrap());
    assert_eq!((before.tokens.input, after.tokens.input), (1000, 2000));
    assert_eq!(after.of_run(Some(&before)).tokens.input, 1000);

    // The second starts a new thread and says that all is well.
    for (id, code) in [("0dca3a5f-7a4e-4f07-a3c9-0d1fb83ca4c4", 1), ("no-such-name", 0)] {
        let lost = run(
            &LaunchRequest { session: Some(id.into()), ..LaunchRequest::new("SECOND", &repo) },
            &variables,
        );
        let outcome = lost.ending.outcome;
        assert!(
            matches!(outcome, AgentOutcome::Broke { cause: Cause::Session, .. }),
            "{outcome:?}"
        );
        assert_eq!(lost.exit.code, Some(code));
    }
}

#[test]
fn a_schema_is_asked_for_and_not_enforced() {
    let script = Script::new()
        .when("JSON", [Turn::answer(json!({"ok": true}))])
        .when("PROSE", [Turn::say("all is well")]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let path = place.path().join("schema.json");
    let json = r#"{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}"#;
    let mut rows = String::new();
    for prompt in ["JSON", "PROSE"] {
        let schema = Some(LaunchSchema { path: path.clone(), json: json.to_owned() });
        let ran = run(
            &LaunchRequest { schema, access: Access::Read, ..LaunchRequest::new(prompt, &repo) },
            &variables,
        );
        rows += &format!("{}\n", row(prompt, &ran, &server));
        let format = &server.requests().pop().unwrap().body["text"]["format"];
        assert_eq!(format["schema"]["additionalProperties"], false, "{format}");
    }
    insta::assert_snapshot!(rows, @r#"
    JSON: exit 0, success: {"ok":true}
    PROSE: exit 0, success: all is well
    "#);
}

#[test]
fn a_start_that_fails_is_named() {
    let (place, server, variables) = stage(Script::new().when("WORK", [Turn::say("done")]));
    let repo = place.repo();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let flag = words(&["--no-such-flag"]);
    let provider = words(&["-c", "model_provider=nobody"]);
    let servers = [turn::dead_server()];
    let work = LaunchRequest::new("WORK", &repo);
    let mut rows = String::new();
    for (name, ask) in [
        ("flag", LaunchRequest { args: flag.to_vec(), ..work.clone() }),
        ("provider", LaunchRequest { args: provider.to_vec(), ..work.clone() }),
        ("server of tools", LaunchRequest { mcp_servers: servers.to_vec(), ..work.clone() }),
        ("model unknown to it", LaunchRequest { model: Some("unheard-of".into()), ..work.clone() }),
    ] {
        let ran = run(&ask, &variables);
        rows += &format!("{}\n", row(name, &ran, &server));
    }
    insta::assert_snapshot!(rows, @r#"
    flag: exit 2, broke (Startup): the agent exited with code 2: error: unexpected argument '--no-such-flag' found   tip: to pas
    provider: exit 1, broke (Startup): the agent exited with code 1: Error: Model provider `nobody` not found
    server of tools: exit 1, broke (Startup): the agent exited with code 1: ERROR codex_core::session: Failed to create session: required M
    model unknown to it: exit 0, success: done
    "#);
}

#[test]
fn servers_of_tools_are_called() {
    let echo =
        Call::Mcp { server: "echo".into(), tool: "echo".into(), input: json!({"text": "hi"}) };
    let script = Script::new().when("WORK", [Turn::call(echo), Turn::say("done")]);
    let (place, _server, variables) = stage(script);
    let servers = [turn::echo_server()];
    let ran = run(
        &LaunchRequest {
            mcp_servers: servers.to_vec(),
            ..LaunchRequest::new("WORK", &place.repo())
        },
        &variables,
    );
    insta::assert_snapshot!(events(&ran, &place), @r#"
    calls echo.echo: {"text":"hi"}
    gets {"content":[{"type":"text","text":"echo: hi"}],"structured_content":null}
    says done
    "#);
}

#[test]
fn a_signal_ends_the_run_and_the_thread_can_go_on() {
    let script = Script::new()
        .rule(always("SILENT", Fault::Silence))
        .when("AFTER", [Turn::say("still here")]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let mut rows = String::new();
    for (name, signal) in
        [("INT", Signal::SIGINT), ("TERM", Signal::SIGTERM), ("KILL", Signal::SIGKILL)]
    {
        let count = server.requests().len();
        let ran = turn::run_while(
            &codex(),
            &LaunchRequest::new("SILENT", &repo),
            &variables,
            |pid, _| {
                assert!(server.wait_for(count + 1, REQUEST_MAX));
                turn::signal(pid, signal);
            },
        );
        rows += &format!("{}\n", row(name, &ran, &server));
        let id = ran.ending.session.unwrap();
        let again = run(
            &LaunchRequest { session: Some(id.clone()), ..LaunchRequest::new("AFTER", &repo) },
            &variables,
        );
        assert_eq!(again.ending.outcome, AgentOutcome::Success, "{name}");
    }
    insta::assert_snapshot!(rows, @r#"
    INT: exit 1, broke (Crash): the agent exited with code 1
    TERM: signal 15, interrupted
    KILL: signal 9, broke (Crash): the agent was killed by signal 9
    "#);
}

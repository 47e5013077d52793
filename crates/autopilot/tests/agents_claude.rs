//! What Claude Code really prints, judged by our codec: each row of its success table, sessions,
//! schemas, tools, signals and what a person says while it works.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "agents/turn.rs"]
mod turn;

use std::time::Duration;

use autopilot_agents::{
    Access, Agent, AgentMessage, AgentOutcome, Cause, LaunchRequest, LaunchSchema,
};
use autopilot_testkit::agents::{self, Variables};
use autopilot_testkit::model::{Call, Fault, Rule, Script, Server, Times, Turn};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use turn::{Place, Ran, events, row};

/// Far more than the agent needs to make its request.
const REQUEST_MAX: Duration = Duration::from_secs(30);

fn claude() -> Agent {
    turn::agent("claude_code_cli", &agents::claude())
}

fn run(ask: &LaunchRequest, variables: &Variables) -> Ran {
    turn::run(&claude(), ask, variables)
}

/// A place, a model that follows `script`, and the variables that bring the agent to it.
fn stage(script: Script) -> (Place, Server, Variables) {
    let place = Place::new();
    let server = Server::start(script).unwrap();
    let variables = agents::claude_home(place.home().as_std_path(), &server).unwrap();
    (place, server, variables)
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn failing(words: &str, status: u16, kind: &str, message: &str) -> Rule {
    always(words, Fault::status(status, error(kind, message)))
}

fn always(words: &str, fault: Fault) -> Rule {
    Rule::when(words).fails(Times::Always, fault)
}

/// Asks each prompt in a session of its own.
fn table(stage: &(Place, Server, Variables), prompts: &[&str]) -> String {
    let (place, server, variables) = stage;
    let ask = |prompt: &&str| {
        row(prompt, &run(&LaunchRequest::new(prompt, &place.repo()), variables), server)
    };
    prompts.iter().map(ask).collect::<Vec<_>>().join("\n")
}

#[test]
fn errors_of_the_account_and_the_request_are_told_apart() {
    let rejected = "invalid_request_error";
    let long = "prompt is too long: 250000 tokens > 200000 maximum";
    let script = Script::new()
        .rule(failing("STATUS 401", 401, "authentication_error", "invalid x-api-key"))
        .rule(failing("STATUS 403", 403, "permission_error", "no permission for this resource"))
        .rule(failing("STATUS 404", 404, "not_found_error", "model: unheard-of"))
        .rule(failing("STATUS 400", 400, rejected, "tools.3: bad name"))
        .rule(failing("CREDIT", 400, rejected, "Your credit balance is too low."))
        .rule(failing("TOO LONG", 400, rejected, long))
        .rule(failing("STATUS 429", 429, "rate_limit_error", "This exceeds your rate limit"));
    let stage = stage(script);
    let prompts = [
        "STATUS 401",
        "STATUS 403",
        "STATUS 404",
        "STATUS 400",
        "CREDIT",
        "TOO LONG",
        "STATUS 429",
    ];
    insta::assert_snapshot!(table(&stage, &prompts), @r#"
    STATUS 401: exit 1, auth: Invalid API key · Fix external API key
    STATUS 403: exit 1, auth: Failed to authenticate. API Error: 403 no permission for this resource
    STATUS 404: exit 1, broke (Model): There's an issue with the selected model (claude-opus-5-5). It may not exist or you may not hav
    STATUS 400: exit 1, broke (Request): API Error: 400 tools.3: bad name
    CREDIT: exit 1, quota: Credit balance is too low
    TOO LONG: exit 1, broke (Context): Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is on
    STATUS 429: exit 1, quota: API Error: Request rejected (429) · This exceeds your rate limit
    "#);
}

#[test]
fn troubles_of_the_service_and_the_model_are_told_apart() {
    let overloaded = Fault::error_event("overloaded_error", "Overloaded");
    let script = Script::new()
        .rule(failing("STATUS 500", 500, "api_error", "Internal server error"))
        .rule(failing("STATUS 529", 529, "overloaded_error", "Overloaded"))
        .rule(always("EVENT", overloaded))
        .rule(always("CUT", Fault::Cut))
        .rule(always("NOTHING", Fault::Empty))
        .when("MAX TOKENS", [Turn::say("half a").stopping("max_tokens")])
        .when("REFUSAL", [Turn::say("").stopping("refusal")])
        .when("MUTE", [Turn::default()]);
    let prompts =
        ["STATUS 500", "STATUS 529", "EVENT", "CUT", "NOTHING", "MAX TOKENS", "REFUSAL", "MUTE"];
    insta::assert_snapshot!(table(&stage(script), &prompts), @r#"
    STATUS 500: exit 1, outage: API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a
    STATUS 529: exit 1, outage: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If
    EVENT: exit 1, outage: API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try aga
    CUT: exit 1, outage: API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again.
    NOTHING: exit 1, outage: API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway inter
    MAX TOKENS: exit 1, broke (OutputLimit): API Error: Claude's response exceeded the 128000 output token maximum. To configure this
    REFUSAL: exit 1, broke (Refusal): API Error: Opus 5.5's safeguards flagged this message (https://www.anthropic.com/legal/aup).
    MUTE: exit 0, broke (Empty): the agent ended without an answer and without using a tool
    "#);
}

#[test]
fn a_request_that_is_repeated_with_success_is_a_success() {
    let busy = Fault::status(429, error("rate_limit_error", "slow")).header("retry-after", "1");
    let script = Script::new()
        .rule(Rule::when("BUSY").fails(Times::First(1), busy).turns([Turn::say("at last")]))
        .rule(Rule::when("CUT").fails(Times::First(1), Fault::Cut).turns([Turn::say("at last")]));
    insta::assert_snapshot!(table(&stage(script), &["BUSY", "CUT"]), @r#"
    BUSY: exit 0, success: at last
    CUT: exit 0, success: at last
    "#);
}

#[test]
fn a_usage_limit_of_a_subscription_tells_when_it_ends() {
    const RESET: &str = "4102444800";
    let limited = Fault::status(429, error("rate_limit_error", "This exceeds your limit."))
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", RESET)
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour");
    let (place, server, with_key) = stage(Script::new().rule(always("WORK", limited)));
    let subscribed = agents::claude_subscription(place.home().as_std_path(), &server).unwrap();
    let ran = run(&LaunchRequest::new("WORK", &place.repo()), &subscribed);
    let AgentOutcome::Quota { until_unix, .. } = &ran.ending.outcome else {
        panic!("{:?}", ran.ending.outcome)
    };
    assert_eq!(*until_unix, RESET.parse().ok());
    assert!(events(&ran, &place).contains("limit Rejected until Some(4102444800)"));
    // With a key it is one more 429.
    let ran = run(&LaunchRequest::new("WORK", &place.repo()), &with_key);
    assert!(matches!(ran.ending.outcome, AgentOutcome::Quota { until_unix: None, .. }));
}

#[test]
fn work_is_seen_as_it_happens_and_counted_at_its_end() {
    let script = Script::new().when(
        "HELLO",
        [
            Turn::say("Writing.").and_call(Call::write("hello.txt", "hello\n")).using(600, 400, 40),
            Turn::call(Call::edit("hello.txt", "hello", "bye")).thinking("Hm.").using(10, 5, 5),
            Turn::say("hello.txt says bye.").using(800, 400, 50),
        ],
    );
    let (place, server, variables) = stage(script);
    let ran = run(&LaunchRequest::new("HELLO", &place.repo()), &variables);
    insta::assert_snapshot!(row("HELLO", &ran, &server), @"HELLO: exit 0, success: hello.txt says bye.");
    insta::assert_snapshot!(events(&ran, &place), @r#"
    says Writing.
    calls Write: hello.txt
    gets File created successfully at: hello.txt (file state is current in your context — no need to Read it back)
    Added hello.txt
    thinks Hm.
    calls Edit: hello.txt
    gets The file hello.txt has been updated successfully. (file state is current in your context — no need to Rea
    Modified hello.txt
    says hello.txt says bye.
    "#);
    assert_eq!(place.read("hello.txt"), "bye\n");
    let usage = ran.ending.usage.unwrap();
    assert_eq!((usage.tokens.input, usage.tokens.cached, usage.tokens.output), (2215, 805, 95));
    assert!(usage.cost_usd.unwrap() > 0.0);
}

#[test]
fn what_is_not_allowed_is_denied_and_the_run_goes_on() {
    let make = "python3 -c \"open('made.txt', 'w')\"";
    let script = Script::new()
        .when("SHELL", [Turn::call(Call::shell(make)), Turn::say("tried")])
        .when("WRITE", [Turn::call(Call::write("made.txt", "x\n")), Turn::say("tried")])
        .when("OUTSIDE", [Turn::call(Call::write("../outside.txt", "x\n")), Turn::say("tried")]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let mut seen = String::new();
    let edit = ["Read".to_owned(), "Edit".to_owned(), "Write".to_owned()];
    for ask in [
        LaunchRequest::new("SHELL", &repo),
        LaunchRequest { allowed_tools: edit.to_vec(), ..LaunchRequest::new("OUTSIDE", &repo) },
        LaunchRequest { access: Access::Read, ..LaunchRequest::new("WRITE", &repo) },
    ] {
        let ran = run(&ask, &variables);
        seen += &format!("{}\n{}\n", row(&ask.prompt, &ran, &server), events(&ran, &place));
    }
    insta::assert_snapshot!(seen, @r#"
    SHELL: exit 0, success: tried
    calls Bash: python3 -c "open('made.txt', 'w')"
    may not use Bash
    gets error Bash is not one of this agent's allowed tools
    says tried
    OUTSIDE: exit 0, success: tried
    calls Write: ../outside.txt
    may not use Write
    gets error PLACE/outside.txt is outside the worktree REPO
    says tried
    WRITE: exit 0, success: tried
    calls Write: made.txt
    gets error <tool_use_error>Error: No such tool available: Write. Write is disabled for this session, in subage
    says tried
    "#);
    assert!(!repo.join("made.txt").exists() && !place.path().join("outside.txt").exists());
    let tools = ["Bash(python3 *)".to_owned()];
    run(
        &LaunchRequest { allowed_tools: tools.to_vec(), ..LaunchRequest::new("SHELL", &repo) },
        &variables,
    );
    assert!(repo.join("made.txt").exists());
}

#[test]
fn sessions_go_on_and_are_missed() {
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
    let asked = server.requests().pop().unwrap().body["messages"].to_string();
    assert!(asked.contains("FIRST") && asked.contains("SECOND"), "{asked}");
    // Tokens and money are of the session.
    let (before, after) = (first.ending.usage.unwrap(), second.ending.usage.unwrap());
    assert_eq!(after.tokens.input, 2000);
    let bill = after.of_run(Some(&before));
    assert_eq!(bill.tokens.input, 1000);
    assert!((bill.cost_usd.unwrap() - before.cost_usd.unwrap()).abs() < 1e-9, "{bill:?}");

    for id in ["0dca3a5f-7a4e-4f07-a3c9-0d1fb83ca4c4", "no-such-name"] {
        let lost = run(
            &LaunchRequest { session: Some(id.into()), ..LaunchRequest::new("SECOND", &repo) },
            &variables,
        );
        let outcome = lost.ending.outcome;
        assert!(
            matches!(outcome, AgentOutcome::Broke { cause: Cause::Session, .. }),
            "{outcome:?}"
        );
    }
}

#[test]
fn an_answer_by_schema_is_given_left_out_or_never_right() {
    let script = Script::new()
        .when("CALLED", [Turn::answer(json!({"ok": true})), Turn::say("after")])
        .when("PROSE", [Turn::say("all is well")])
        .when("WRONG", [Turn::answer(json!({"ok": "perhaps"}))]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let path = place.path().join("schema.json");
    let json = r#"{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}"#;
    let mut rows = String::new();
    for prompt in ["CALLED", "PROSE", "WRONG"] {
        let schema = Some(LaunchSchema { path: path.clone(), json: json.to_owned() });
        let ran = run(
            &LaunchRequest { schema, access: Access::Read, ..LaunchRequest::new(prompt, &repo) },
            &variables,
        );
        let structured = ran.ending.structured.clone().unwrap_or_default();
        rows += &format!("{} [{structured}]\n", row(prompt, &ran, &server));
    }
    insta::assert_snapshot!(rows, @r#"
    CALLED: exit 0, success: {"ok":true} [{"ok":true}]
    PROSE: exit 0, success: all is well [null]
    WRONG: exit 1, broke (Schema): Failed to provide valid structured output after 5 attempts — last StructuredOutput error: Outp [null]
    "#);
}

#[test]
fn limits_of_ours_and_a_start_that_fails_are_named() {
    let costly = Turn::call(Call::read("a.txt")).using(100_000, 0, 10_000);
    let (place, server, variables) = stage(Script::new().when("WORK", [costly, Turn::say("done")]));
    let repo = place.repo();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let flag = words(&["--no-such-flag"]);
    let file = words(&["--mcp-config", "/no/such/file.json"]);
    let anonymous = agents::claude_anonymous(place.home().as_std_path(), &server).unwrap();
    let work = LaunchRequest::new("WORK", &repo);
    let mut rows = String::new();
    for (name, ask, variables) in [
        ("turns", LaunchRequest { max_turns: Some(1), ..work.clone() }, &variables),
        ("budget", LaunchRequest { max_usd: Some(0.01), ..work.clone() }, &variables),
        ("flag", LaunchRequest { args: flag.to_vec(), ..work.clone() }, &variables),
        ("file", LaunchRequest { args: file.to_vec(), ..work.clone() }, &variables),
        ("nobody", work.clone(), &anonymous),
    ] {
        let ran = run(&ask, variables);
        rows += &format!("{}\n", row(name, &ran, &server));
        // What was spent before a limit was reached is counted.
        let spent = ran.ending.usage.and_then(|usage| usage.cost_usd).unwrap_or(0.0);
        assert_eq!(spent > 0.0, matches!(name, "turns" | "budget"), "{name}: {spent}");
    }
    insta::assert_snapshot!(rows, @r#"
    turns: exit 1, broke (Turns): Reached maximum number of turns (1)
    budget: exit 1, broke (Budget): Reached maximum budget ($0.01)
    flag: exit 1, broke (Startup): the agent exited with code 1: error: unknown option '--no-such-flag'
    file: exit 1, broke (Startup): the agent exited with code 1: Error: Invalid MCP configuration: MCP config file not found: /n
    nobody: exit 1, auth: Not logged in · Please run /login
    "#);
}

#[test]
fn servers_of_tools_are_called_and_one_that_does_not_start_is_noticed() {
    let echo =
        Call::Mcp { server: "echo".into(), tool: "echo".into(), input: json!({"text": "hi"}) };
    let script = Script::new().when("WORK", [Turn::call(echo), Turn::say("done")]);
    let (place, _server, variables) = stage(script);
    let repo = place.repo();
    let servers = [turn::echo_server(), turn::dead_server()];
    let tools = ["mcp__echo".to_owned()];
    let ask = LaunchRequest {
        mcp_servers: servers.to_vec(),
        allowed_tools: tools.to_vec(),
        ..LaunchRequest::new("WORK", &repo)
    };
    insta::assert_snapshot!(events(&run(&ask, &variables), &place), @r#"
    notice MCP server dead did not start
    calls mcp__echo__echo: {"text":"hi"}
    gets echo: hi
    says done
    "#);
}

#[test]
fn a_signal_ends_the_run_and_the_session_can_go_on() {
    let wait = "touch begun; timeout 5 tail -f /dev/null";
    let script = Script::new()
        .rule(always("SILENT", Fault::Silence))
        .when("TOOL", [Turn::call(Call::shell(wait)), Turn::say("done")])
        .when("AFTER", [Turn::say("still here")]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let mut rows = String::new();
    for (name, signal) in [("INT", Signal::SIGINT), ("TERM", Signal::SIGTERM)] {
        let count = server.requests().len();
        let ran = turn::run_while(
            &claude(),
            &LaunchRequest::new("SILENT", &repo),
            &variables,
            |pid, _| {
                assert!(server.wait_for(count + 1, REQUEST_MAX));
                turn::signal(pid, signal);
            },
        );
        rows += &format!("{}\n", row(name, &ran, &server));
    }
    let tools = ["Bash".to_owned()];
    let ask = LaunchRequest { allowed_tools: tools.to_vec(), ..LaunchRequest::new("TOOL", &repo) };
    let ran = turn::run_while(&claude(), &ask, &variables, |pid, _| {
        turn::wait_for_file(&repo.join("begun"));
        turn::signal(pid, Signal::SIGKILL);
    });
    rows += &format!("{}\n", row("KILL while a tool runs", &ran, &server));
    let id = ran.ending.session.unwrap();
    let again = run(
        &LaunchRequest { session: Some(id.clone()), ..LaunchRequest::new("AFTER", &repo) },
        &variables,
    );
    rows += &row("after it", &again, &server);
    insta::assert_snapshot!(rows, @r#"
    INT: exit 0, interrupted
    TERM: exit 143, interrupted
    KILL while a tool runs: signal 9, broke (Crash): the agent was killed by signal 9
    after it: exit 0, success: still here
    "#);
}

#[test]
fn a_person_is_heard_while_it_works() {
    let wait = "touch begun; timeout 20 sh -c 'until test -e go; do sleep 0.05; done'";
    let script = Script::new()
        .rule(always("SILENT", Fault::Silence))
        .when("WORK", [Turn::call(Call::shell(wait)), Turn::say("work done")])
        .when("MORE", [Turn::call(Call::write("more.txt", "more\n")), Turn::say("more done")]);
    let (place, server, variables) = stage(script);
    let repo = place.repo();
    let ran =
        turn::run_while(&claude(), &LaunchRequest::new("SILENT", &repo), &variables, |_, ear| {
            assert!(server.wait_for(1, REQUEST_MAX));
            ear.wish(AgentMessage::Interrupt);
        });
    assert_eq!(ran.ending.outcome, AgentOutcome::Interrupted);
    let tools = ["Bash".to_owned()];
    let ask = LaunchRequest { allowed_tools: tools.to_vec(), ..LaunchRequest::new("WORK", &repo) };
    let ran = turn::run_while(&claude(), &ask, &variables, |_, ear| {
        turn::wait_for_file(&repo.join("begun"));
        ear.wish(AgentMessage::Message("MORE, please".into()));
        std::fs::write(repo.join("go"), "").unwrap();
    });
    // In the turn that runs, or in one more: that depends on which of the two it sees first.
    let seen = events(&ran, &place);
    assert!(seen.contains("is told MORE, please"), "{seen}");
    assert!(seen.ends_with("says more done"), "{seen}");
    assert_eq!(ran.ending.outcome, AgentOutcome::Success);
    assert_eq!(place.read("more.txt"), "more\n");
}

/// Settings that make it run a command when it is asked something.
fn hook(file: &camino::Utf8Path) -> String {
    let command = format!("touch {file}");
    let hooks = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    json!({ "hooks": { "UserPromptSubmit": hooks } }).to_string()
}

#[test]
fn whoever_only_looks_obeys_no_hook() {
    let (place, _server, variables) = stage(Script::new().when("LOOK", [Turn::say("seen")]));
    let (mine, theirs) = (place.path().join("mine"), place.path().join("theirs"));
    std::fs::write(place.home().join(".claude/settings.json"), hook(&mine)).unwrap();
    std::fs::create_dir(place.repo().join(".claude")).unwrap();
    std::fs::write(place.repo().join(".claude/settings.json"), hook(&theirs)).unwrap();
    let asked = |access| {
        let ran =
            run(&LaunchRequest { access, ..LaunchRequest::new("LOOK", &place.repo()) }, &variables);
        assert!(matches!(ran.ending.outcome, AgentOutcome::Success), "{:?}", ran.ending.outcome);
        (mine.exists(), theirs.exists())
    };
    assert_eq!(asked(Access::Read), (false, false));
    // They are hooks that would have run.
    assert!(asked(Access::Edit).0);
}

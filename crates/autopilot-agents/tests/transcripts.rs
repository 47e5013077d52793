//! Recorded runs of the agents, and the events and ending of each: every row of the vendors' tables.
//!
//! A transcript is the agent's stdout; a line that starts with `2> ` came on stderr.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use autopilot_agents::{
    Agent, AgentEnding, AgentEvent, AgentOutcome, AgentSettings, Conversation, ExitFacts,
    LaunchRequest, OutputStream, Scope, TokenCount,
};
use autopilot_core::config::Mode;
use proptest::prelude::*;

const CLAUDE_SESSION: &str = "5e551000-0000-4000-8000-0000000000a1";
const CODEX_THREAD: &str = "01900000-0000-7000-8000-0000000000b2";

macro_rules! transcript {
    ($name:literal) => {
        ($name, include_str!(concat!("transcripts/", $name, ".jsonl")))
    };
}

fn decoder(mode: &str, session: Option<&str>) -> Box<dyn Conversation> {
    let mode = Mode::of(mode).unwrap();
    let settings = AgentSettings {
        mode,
        command: Some("x"),
        script: Some("x".into()),
        ..AgentSettings::default()
    };
    let ask = LaunchRequest {
        session: session.map(str::to_owned),
        ..LaunchRequest::new("do it", "/slot".into())
    };
    Agent::new(settings).unwrap().conversation(ask)
}

fn play(decoder: &mut dyn Conversation, transcript: &str) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    for line in transcript.lines() {
        match line.strip_prefix("2> ") {
            Some(line) => events.extend(decoder.line(OutputStream::Err, line, false).events),
            None => events.extend(decoder.line(OutputStream::Out, line, false).events),
        }
    }
    events
}

fn run(mode: &str, transcript: &str, exit: ExitFacts) -> AgentEnding {
    let mut decoder = decoder(mode, None);
    play(&mut *decoder, transcript);
    decoder.finish(exit)
}

fn brief(ending: &AgentEnding) -> String {
    match &ending.outcome {
        AgentOutcome::Success => format!("success: {}", ending.answer.trim()),
        AgentOutcome::Broke { cause, why } => format!("broke ({cause:?}): {why}"),
        AgentOutcome::Quota { until_unix: Some(until), why } => {
            format!("quota until {until}: {why}")
        }
        AgentOutcome::Quota { until_unix: None, why } => format!("quota: {why}"),
        AgentOutcome::Auth { why } => format!("auth: {why}"),
        AgentOutcome::Outage { why } => format!("outage: {why}"),
        AgentOutcome::Interrupted => "interrupted".to_owned(),
    }
}

fn table(mode: &str, runs: &[((&str, &str), ExitFacts)]) -> String {
    let lines: Vec<String> = runs
        .iter()
        .map(|((name, transcript), exit)| {
            format!("{name}: {}", brief(&run(mode, transcript, *exit)))
        })
        .collect();
    lines.join("\n")
}

fn lines(events: &[AgentEvent]) -> String {
    events.iter().map(|e| serde_json::to_string(e).unwrap()).collect::<Vec<_>>().join("\n")
}

fn timed_out() -> ExitFacts {
    ExitFacts { timed_out: true, ..ExitFacts::signal(9) }
}

fn stuck() -> ExitFacts {
    ExitFacts { stuck: true, ..ExitFacts::signal(9) }
}

#[test]
fn claude_every_row_of_its_table() {
    let one = ExitFacts::code(1);
    let zero = ExitFacts::code(0);
    let runs = [
        (transcript!("claude-ok"), zero),
        (transcript!("claude-init-late"), zero),
        (transcript!("claude-denied"), zero),
        (transcript!("claude-schema"), zero),
        (transcript!("claude-schema-not-called"), zero),
        (transcript!("claude-401"), one),
        (transcript!("claude-403"), one),
        (transcript!("claude-404"), one),
        (transcript!("claude-400"), one),
        (transcript!("claude-credit"), one),
        (transcript!("claude-429"), one),
        (transcript!("claude-500"), one),
        (transcript!("claude-529"), one),
        (transcript!("claude-prompt-too-long"), one),
        (transcript!("claude-usage-limit"), one),
        (transcript!("claude-max-tokens"), one),
        (transcript!("claude-refusal"), one),
        (transcript!("claude-not-logged-in"), one),
        (transcript!("claude-max-turns"), one),
        (transcript!("claude-max-budget"), one),
        (transcript!("claude-schema-exhausted"), one),
        (transcript!("claude-empty"), one),
        (transcript!("claude-sigint"), zero),
        (transcript!("claude-sigint-streaming"), zero),
        (transcript!("claude-sigterm"), ExitFacts::code(143)),
        (transcript!("claude-bad-flag"), one),
        (transcript!("claude-bad-session"), one),
    ];
    insta::assert_snapshot!(table("claude_code_cli", &runs), @r#"
    claude-ok: success: The parser is in place.
    claude-init-late: success: Hello.
    claude-denied: success: I was not allowed to.
    claude-schema: success: {"ok":true}
    claude-schema-not-called: success: No tool for me.
    claude-401: auth: Invalid API key · Fix external API key
    claude-403: auth: Failed to authenticate. API Error: 403 no permission
    claude-404: broke (Model): There's an issue with the selected model (model-z).
    claude-400: broke (Request): API Error: 400 tools.0: bad name
    claude-credit: quota: Credit balance is too low
    claude-429: quota: API Error: Request rejected (429) · too many
    claude-500: outage: API Error: 500 Internal server error.
    claude-529: outage: API Error: Repeated 529 Overloaded errors.
    claude-prompt-too-long: broke (Context): Prompt is too long · the request is ~300000 tokens
    claude-usage-limit: quota until 1900003600: You've hit your 5-hour limit · resets 9pm (UTC)
    claude-max-tokens: broke (OutputLimit): API Error: the response exceeded the 9000 output token maximum.
    claude-refusal: broke (Refusal): API Error: safeguards flagged this message.
    claude-not-logged-in: auth: Not logged in · Please run /login
    claude-max-turns: broke (Turns): Reached maximum number of turns (2)
    claude-max-budget: broke (Budget): Reached maximum budget ($0.25)
    claude-schema-exhausted: broke (Schema): Failed to provide valid structured output after 5 attempts
    claude-empty: broke (Empty): the model's reply was empty ([ede_diagnostic] result_type=assistant last_content_type=none)
    claude-sigint: interrupted
    claude-sigint-streaming: interrupted
    claude-sigterm: interrupted
    claude-bad-flag: broke (Startup): the agent exited with code 1: error: unknown option '--nope'
    claude-bad-session: broke (Session): No conversation found with session ID: 5e551000-0000-4000-8000-0000000000a1
    "#);
}

#[test]
fn claude_when_result_and_exit_disagree() {
    let ok = transcript!("claude-ok");
    let open = transcript!("claude-sigterm");
    let retrying = transcript!("claude-retrying");
    let runs = [
        // An error stays an error, and success needs exit code 0, unless we ended the process.
        (transcript!("claude-401"), ExitFacts::code(0)),
        (transcript!("claude-no-verdict"), ExitFacts::code(0)),
        (ok, ExitFacts::code(1)),
        (ok, timed_out()),
        (open, ExitFacts::code(0)),
        (open, ExitFacts::code(1)),
        (open, timed_out()),
        (open, stuck()),
        (open, ExitFacts::signal(11)),
        (retrying, timed_out()),
        (retrying, ExitFacts::signal(15)),
    ];
    insta::assert_snapshot!(table("claude_code_cli", &runs), @"
    claude-401: auth: Invalid API key · Fix external API key
    claude-no-verdict: broke (Other): fine?
    claude-ok: broke (Crash): the agent reported success but exited with code 1
    claude-ok: success: The parser is in place.
    claude-sigterm: broke (Empty): no result: the agent exited with code 0
    claude-sigterm: broke (Crash): the agent exited with code 1
    claude-sigterm: broke (TimedOut): the agent hit the step's time limit
    claude-sigterm: broke (Stuck): the agent showed no sign of life
    claude-sigterm: broke (Crash): the agent was killed by signal 11
    claude-retrying: outage: retry 2 of 2 after no reply (unknown)
    claude-retrying: interrupted
    ");
}

#[test]
fn claude_events_of_a_run() {
    let mut decoder = decoder("claude_code_cli", None);
    let events = play(&mut *decoder, transcript!("claude-ok").1);
    insta::assert_snapshot!(lines(&events), @r#"
    {"event":"session","id":"5e551000-0000-4000-8000-0000000000a1"}
    {"event":"notice","text":"MCP server db did not start"}
    {"event":"thought","text":"A parser first."}
    {"event":"text","text":"I add the parser."}
    {"event":"tool_call","id":"tool_1","name":"Write","summary":"/slot/src/parse.rs"}
    {"event":"tool_result","id":"tool_1","ok":true,"summary":"Created /slot/src/parse.rs"}
    {"event":"file_change","path":"/slot/src/parse.rs","kind":"added"}
    {"event":"tool_call","id":"tool_2","name":"Edit","summary":"/slot/src/lib.rs"}
    {"event":"tool_result","id":"tool_2","ok":true,"summary":"Edited /slot/src/lib.rs"}
    {"event":"file_change","path":"/slot/src/lib.rs","kind":"modified"}
    {"event":"tool_call","id":"tool_3","name":"Bash","summary":"cargo test"}
    {"event":"tool_result","id":"tool_3","ok":false,"summary":"error: one test failed"}
    {"event":"rate_limit","status":"warning","resets_at_unix":1900000000}
    {"event":"text","text":"The parser is in place."}
    {"event":"usage","tokens":{"input":200,"output":30,"cached":60},"tokens_scope":"run","cost_usd":0.125,"cost_scope":"session"}
    {"event":"result","ok":true,"text":"The parser is in place."}
    "#);
    let ending = decoder.finish(ExitFacts::code(0));
    assert_eq!(ending.session.as_deref(), Some(CLAUDE_SESSION));
    assert_eq!(ending.odd, Default::default());
}

#[test]
fn claude_cost_is_of_the_session_and_tokens_of_the_run() {
    let ending = run("claude_code_cli", transcript!("claude-ok").1, ExitFacts::code(0));
    let mut before = ending.usage.clone().unwrap();
    before.cost_usd = Some(0.1);
    let bill = ending.usage.unwrap().of_run(Some(&before));
    assert!((bill.cost_usd.unwrap() - 0.025).abs() < 1e-9);
    assert_eq!((bill.tokens.input, bill.tokens.cached, bill.tokens.output), (200, 60, 30));
}

#[test]
fn claude_structured_output_is_there_only_if_the_model_gave_it() {
    let given = run("claude_code_cli", transcript!("claude-schema").1, ExitFacts::code(0));
    assert_eq!(given.structured, Some(serde_json::json!({ "ok": true })));
    let absent =
        run("claude_code_cli", transcript!("claude-schema-not-called").1, ExitFacts::code(0));
    assert_eq!(absent.structured, None);
}

#[test]
fn claude_a_session_that_is_another_is_noticed() {
    let mut other = decoder("claude_code_cli", Some("asked-for"));
    let events = play(&mut *other, transcript!("claude-init-late").1);
    let notice =
        format!("the agent answered in session {CLAUDE_SESSION} instead of resuming asked-for");
    assert!(events.contains(&AgentEvent::Notice { text: notice }));
    let mut same = decoder("claude_code_cli", Some(CLAUDE_SESSION));
    let events = play(&mut *same, transcript!("claude-init-late").1);
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Notice { .. })));
}

#[test]
fn codex_every_row_of_its_table() {
    let one = ExitFacts::code(1);
    let zero = ExitFacts::code(0);
    let runs = [
        (transcript!("codex-ok"), zero),
        (transcript!("codex-schema"), zero),
        (transcript!("codex-not-json"), zero),
        (transcript!("codex-401"), one),
        (transcript!("codex-404"), one),
        (transcript!("codex-400"), one),
        (transcript!("codex-429"), one),
        (transcript!("codex-quota"), one),
        (transcript!("codex-usage-limit"), one),
        (transcript!("codex-500"), one),
        (transcript!("codex-503"), one),
        (transcript!("codex-context"), one),
        (transcript!("codex-cut"), one),
        (transcript!("codex-no-key"), one),
        (transcript!("codex-new-error"), one),
        (transcript!("codex-no-network"), stuck()),
        (transcript!("codex-no-network"), timed_out()),
        (transcript!("codex-bad-resume"), one),
        (transcript!("codex-bad-flag"), ExitFacts::code(2)),
        (transcript!("codex-no-repo"), one),
        (transcript!("codex-killed"), ExitFacts::signal(15)),
        (transcript!("codex-killed"), ExitFacts::signal(9)),
        (transcript!("codex-killed"), stuck()),
        // An interrupt shows only as code 1 without a last event.
        (transcript!("codex-killed"), one),
        (transcript!("codex-killed"), zero),
        (transcript!("codex-ok"), one),
        (transcript!("codex-401"), zero),
    ];
    insta::assert_snapshot!(table("codex_cli", &runs), @r#"
    codex-ok: success: All done.
    codex-schema: success: {"ok":true}
    codex-not-json: success: not json at all
    codex-401: auth: unexpected status 401 Unauthorized: key is wrong, url: http://localhost/v1
    codex-404: broke (Model): The model `zzz` does not exist or you do not have access to it.
    codex-400: broke (Request): {"error":{"message":"Something is wrong.","type":"invalid_request_error"}}
    codex-429: quota: exceeded retry limit, last status: 429 Too Many Requests
    codex-quota: quota: Quota exceeded. Check your plan and billing details.
    codex-usage-limit: quota: You’ve hit your usage limit. Upgrade or try again at 9:32 PM.
    codex-500: outage: We’re currently experiencing high demand, which may cause temporary errors.
    codex-503: outage: Selected model is at capacity. Please try a different model.
    codex-context: broke (Context): Codex ran out of room in the model's context window. Start a new thread.
    codex-cut: outage: stream disconnected before completion: Transport error
    codex-no-key: auth: Missing environment variable: `SOME_API_KEY`.
    codex-new-error: broke (Other): The moon is in the wrong phase.
    codex-no-network: outage: Reconnecting... waiting for network (Connection failed: error sending request)
    codex-no-network: outage: Reconnecting... waiting for network (Connection failed: error sending request)
    codex-bad-resume: broke (Session): the agent exited with code 1: Error: thread/resume failed: no rollout found for thread id 01900000
    codex-bad-flag: broke (Startup): the agent exited with code 2: error: unexpected argument '--nope' found
    codex-no-repo: broke (Startup): the agent exited with code 1: Not inside a trusted directory and --skip-git-repo-check was not specified.
    codex-killed: interrupted
    codex-killed: broke (Crash): the agent was killed by signal 9
    codex-killed: broke (Stuck): the agent showed no sign of life
    codex-killed: broke (Crash): the agent exited with code 1
    codex-killed: broke (Empty): no result: the agent exited with code 0
    codex-ok: broke (Crash): the agent reported success but exited with code 1
    codex-401: auth: unexpected status 401 Unauthorized: key is wrong, url: http://localhost/v1
    "#);
}

#[test]
fn codex_events_of_a_run() {
    let mut decoder = decoder("codex_cli", None);
    let events = play(&mut *decoder, transcript!("codex-ok").1);
    insta::assert_snapshot!(lines(&events), @r#"
    {"event":"session","id":"01900000-0000-7000-8000-0000000000b2"}
    {"event":"notice","text":"Model metadata for `x` not found."}
    {"event":"thought","text":"**Look** first"}
    {"event":"text","text":"I look."}
    {"event":"tool_call","id":"item_2","name":"edit","summary":"/slot/a.rs, /slot/b.rs"}
    {"event":"tool_result","id":"item_2","ok":true,"summary":"/slot/a.rs, /slot/b.rs"}
    {"event":"file_change","path":"/slot/a.rs","kind":"added"}
    {"event":"file_change","path":"/slot/b.rs","kind":"deleted"}
    {"event":"tool_result","id":"item_3","ok":false,"summary":"/slot/c.rs"}
    {"event":"tool_call","id":"item_4","name":"shell","summary":"/bin/sh -c 'make test'"}
    {"event":"tool_result","id":"item_4","ok":false,"summary":"boom"}
    {"event":"tool_call","id":"item_5","name":"db.ask","summary":"{\"q\":1}"}
    {"event":"tool_result","id":"item_5","ok":false,"summary":"needs approval"}
    {"event":"notice","text":"Reconnecting... 1/1 (stream disconnected before completion: x)"}
    {"event":"text","text":"All done."}
    {"event":"usage","tokens":{"input":500,"output":40,"cached":200},"tokens_scope":"session","cost_usd":null,"cost_scope":"session"}
    {"event":"result","ok":true,"text":"All done."}
    "#);
    let ending = decoder.finish(ExitFacts::code(0));
    assert_eq!(ending.session.as_deref(), Some(CODEX_THREAD));
    assert_eq!(ending.odd, Default::default());
}

#[test]
fn codex_a_new_thread_instead_of_the_asked_one_is_a_failure() {
    let mut other = decoder("codex_cli", Some("asked-for"));
    play(&mut *other, transcript!("codex-schema").1);
    insta::assert_snapshot!(brief(&other.finish(ExitFacts::code(0))), @"broke (Session): Codex started a new thread (01900000-0000-7000-8000-0000000000b2) instead of resuming asked-for");
    let mut same = decoder("codex_cli", Some(CODEX_THREAD));
    play(&mut *same, transcript!("codex-schema").1);
    assert_eq!(same.finish(ExitFacts::code(0)).outcome, AgentOutcome::Success);
}

#[test]
fn codex_tokens_are_of_the_thread() {
    let usage = run("codex_cli", transcript!("codex-ok").1, ExitFacts::code(0)).usage.unwrap();
    let mut before = usage.clone();
    before.tokens.input = 300;
    let bill = usage.of_run(Some(&before));
    assert_eq!((bill.tokens.input, bill.tokens.output, bill.cost_usd), (200, 0, None));
}

#[test]
fn malformed_and_unknown_lines_are_counted_and_harm_nothing() {
    let claude = run("claude_code_cli", transcript!("claude-noise").1, ExitFacts::code(0));
    assert_eq!(brief(&claude), "success: Still here.");
    assert_eq!((claude.odd.malformed, claude.odd.unknown), (3, 4));
    let codex = run("codex_cli", transcript!("codex-noise").1, ExitFacts::code(0));
    assert_eq!(brief(&codex), "success: Fine.");
    assert_eq!((codex.odd.malformed, codex.odd.unknown), (1, 4));
}

#[test]
fn a_line_the_host_cut_is_counted_and_not_decoded() {
    let mut decoder = decoder("claude_code_cli", None);
    let result = transcript!("claude-ok").1.lines().last().unwrap();
    decoder.line(OutputStream::Out, result, true);
    let ending = decoder.finish(ExitFacts::code(0));
    assert_eq!(ending.odd.cut, 1);
    assert_ne!(ending.outcome, AgentOutcome::Success);
}

#[test]
fn what_an_agent_says_of_limits_is_not_taken_for_one() {
    // Only error channels are classified: here the model talks about rate limits, then crashes.
    let talk = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"429 Too Many Requests: rate limit"}]},"session_id":"s"}"#;
    assert_eq!(
        brief(&run("claude_code_cli", talk, ExitFacts::code(1))),
        "broke (Crash): the agent exited with code 1"
    );
}

fn any_line() -> impl Strategy<Value = String> {
    let shapes = [
        transcript!("claude-ok").1,
        transcript!("claude-noise").1,
        transcript!("claude-usage-limit").1,
        transcript!("codex-ok").1,
        transcript!("codex-401").1,
    ];
    let real: Vec<String> = shapes.concat().lines().map(str::to_owned).collect();
    let real = proptest::sample::select(real);
    // The lines are real ones, cut anywhere or with a value replaced, and random ones.
    let cut = (real.clone(), any::<proptest::sample::Index>()).prop_map(|(line, at)| {
        let at = line.floor_char_boundary(at.index(line.len() + 1));
        line[..at].to_owned()
    });
    let values = proptest::sample::select(vec!["null", "[]", "{}", "-1", "\"\"", "1e308", "true"]);
    let changed =
        (real.clone(), any::<proptest::sample::Index>(), values).prop_map(|(line, at, value)| {
            let colons: Vec<usize> = line.match_indices(':').map(|(at, _)| at).collect();
            if colons.is_empty() {
                return line;
            }
            let at = colons[at.index(colons.len())] + 1;
            let end = line[at..].find([',', '}']).map_or(line.len(), |end| at + end);
            format!("{}{value}{}", &line[..at], &line[end..])
        });
    prop_oneof![real, cut, changed, any::<String>()]
}

proptest! {
    #[test]
    fn decoders_never_panic_and_always_end(
        given in proptest::collection::vec((any_line(), any::<bool>(), any::<bool>()), 0..20),
        code in proptest::option::of(-1..300i32),
        signal in proptest::option::of(1..64i32),
        timed_out: bool,
        stuck: bool,
    ) {
        for mode in ["claude_code_cli", "codex_cli", "command", "script"] {
            let mut decoder = decoder(mode, Some("s"));
            for (line, err, truncated) in &given {
                let stream = if *err { OutputStream::Err } else { OutputStream::Out };
                for event in decoder.line(stream, line, *truncated).events {
                    let text = serde_json::to_string(&event).unwrap();
                    prop_assert!(text.len() < 8 * autopilot_agents::event::TEXT_BYTES_MAX);
                }
            }
            let lingered = false;
            decoder.finish(ExitFacts { code, signal, timed_out, stuck, lingered });
        }
    }
}

#[test]
fn the_tokens_of_claudes_subagents_are_counted_by_model() {
    let (_, text) = transcript!("claude-subagents");
    let usage = run("claude_code_cli", text, ExitFacts::code(0)).usage.unwrap();
    // Four calls of the main conversation, and three of a helper with a smaller model.
    let tokens = TokenCount { input: 6800 + 32_100, output: 350, cached: 4900 };
    assert_eq!((usage.tokens, usage.tokens_scope), (tokens, Scope::Session));
    let cost = usage.cost_usd.unwrap();
    assert!((cost - 0.023656).abs() < 1e-9 && usage.unpriced.is_empty(), "{usage:?}");
}

#[test]
fn a_cost_that_claude_calls_unknown_is_no_cost() {
    let (_, text) = transcript!("claude-cost-unknown");
    let usage = run("claude_code_cli", text, ExitFacts::code(1)).usage.unwrap();
    assert_eq!(usage.cost_usd, None, "it charged the price of another model");
    let unpriced: Vec<&str> = usage.unpriced.iter().map(|part| part.model.as_str()).collect();
    assert_eq!(unpriced, ["my-local-model"]);
    assert_eq!(usage.unpriced[0].tokens, TokenCount { input: 3400, output: 100, cached: 1400 });
    // Nothing is what no model costs.
    let free = text.replace("\"unknown\"", "\"list\"").replace("0.010280000000000001", "0");
    let usage = run("claude_code_cli", &free, ExitFacts::code(1)).usage.unwrap();
    assert_eq!((usage.cost_usd, usage.unpriced.len()), (None, 1));
}

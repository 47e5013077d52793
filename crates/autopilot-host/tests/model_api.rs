//! The client of model servers against a server over real sockets that misbehaves on order.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

#[path = "model_api/server.rs"]
mod server;

use autopilot_host::model_api::{
    ApiAddress, ApiAnswer, ApiClient, ApiEvent, ApiFailure, ApiKind, ApiLimits, ApiQuestion,
    ApiTokens, EarlierTurn, FailureKind, ask,
};
use serde_json::{Value, json};
use server::{Reply, Server, chat, responses, whole};
use std::time::{Duration, Instant};

const KEY: &str = "sk-very-secret-0001";

/// Limits short enough for a test; the waits between tries are the real ones, half a second and
/// one.
fn limits() -> ApiLimits {
    ApiLimits {
        tries_max: 3,
        idle_time_max: Duration::from_secs(30),
        answer_bytes_max: 64 << 10,
        stream_bytes_max: 1 << 20,
        ..ApiLimits::default()
    }
}

fn question(api: ApiKind) -> ApiQuestion {
    ApiQuestion {
        api,
        model: "m-1".into(),
        effort: Some("low".into()),
        instructions: Some("Be brief.".into()),
        prompt: "What is it?".into(),
        earlier: Vec::new(),
        previous: None,
        schema: Some(
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
        ),
    }
}

struct Heard {
    events: Vec<ApiEvent>,
    ended: Result<ApiAnswer, ApiFailure>,
    took: Duration,
}

impl Heard {
    /// The text that counts as the answer.
    fn text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            match event {
                ApiEvent::Text(piece) => text.push_str(piece),
                ApiEvent::Anew => text.clear(),
                ApiEvent::Thought(_)
                | ApiEvent::Usage(_)
                | ApiEvent::Retry { .. }
                | ApiEvent::RateLimit { .. }
                | ApiEvent::Notice(_) => {}
            }
        }
        text
    }

    fn retries(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, ApiEvent::Retry { .. })).count()
    }

    fn usage(&self) -> Option<ApiTokens> {
        self.events.iter().rev().find_map(|event| match event {
            ApiEvent::Usage(tokens) => Some(*tokens),
            ApiEvent::Text(_)
            | ApiEvent::Thought(_)
            | ApiEvent::Anew
            | ApiEvent::Retry { .. }
            | ApiEvent::RateLimit { .. }
            | ApiEvent::Notice(_) => None,
        })
    }

    fn failure(&self) -> &ApiFailure {
        self.ended.as_ref().unwrap_err()
    }
}

fn ask_at(base: &str, key: Option<&str>, question: &ApiQuestion, limits: ApiLimits) -> Heard {
    let address = ApiAddress::parse(base).unwrap();
    let began = Instant::now();
    let mut events = Vec::new();
    let ended = ApiClient::new(address, "MY_KEY", key, &[], None, limits)
        .and_then(|client| ask(&client, question, &mut |event| events.push(event)));
    let heard = Heard { events, ended, took: began.elapsed() };
    let all = format!("{:?} {:?}", heard.events, heard.ended);
    assert!(!all.contains(KEY), "the key is told: {all}");
    heard
}

fn asked(server: &Server, question: &ApiQuestion) -> Heard {
    ask_at(&server.base(), Some(KEY), question, limits())
}

#[test]
fn an_answer_by_responses_is_heard_in_pieces_with_what_it_used() {
    let server = Server::start(vec![Reply::Stream(responses("resp_1", &["{\"a\"", ": 1}"]))]);
    let heard = asked(&server, &question(ApiKind::Auto));
    let answer = heard.ended.clone().unwrap();
    assert_eq!(heard.text(), "{\"a\": 1}");
    assert_eq!(
        answer,
        ApiAnswer { id: Some("resp_1".into()), stored: true, model: Some("m-1".into()) }
    );
    assert_eq!(heard.usage(), Some(ApiTokens { input: 100, output: 7, cached: 40 }));
    let request = &server.asked()[0];
    assert_eq!(request.path, "/v1/responses");
    assert_eq!(request.header("authorization"), Some("Bearer sk-very-secret-0001"));
    let body = &request.body;
    assert_eq!(body["model"], "m-1");
    assert_eq!(body["stream"], true);
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["reasoning"]["effort"], "low");
    assert_eq!(body["input"], json!([{"role": "user", "content": "What is it?"}]));
    let format = &body["text"]["format"];
    assert_eq!((&format["type"], &format["strict"]), (&json!("json_schema"), &json!(true)));
    assert_eq!(format["schema"], question(ApiKind::Auto).schema.unwrap());
    assert!(!body.to_string().contains(KEY));
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start(vec![Reply::error(200, whole("resp_2", "done"))]);
    let heard = asked(&server, &question(ApiKind::Responses));
    assert_eq!((heard.text().as_str(), heard.ended.is_ok()), ("done", true));
    let message = json!({"id": "c", "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
                         "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let server = Server::start(vec![Reply::error(200, message)]);
    let heard = asked(&server, &question(ApiKind::Chat));
    assert_eq!((heard.text().as_str(), heard.ended.is_ok()), ("hi", true));
    assert_eq!(heard.usage(), Some(ApiTokens { input: 1, output: 2, cached: 0 }));
}

#[test]
fn only_the_last_message_is_the_answer() {
    let delta = |at: u64, text: &str| {
        json!({"type": "response.output_text.delta", "output_index": at, "delta": text}).to_string()
    };
    let mut events = vec![delta(0, "I look "), delta(0, "at it."), delta(2, "{}")];
    events.push(json!({"type": "response.completed", "response": whole("r", "{}")}).to_string());
    let server = Server::start(vec![Reply::Stream(events)]);
    assert_eq!(asked(&server, &question(ApiKind::Auto)).text(), "{}");
}

#[test]
fn a_local_server_without_responses_is_asked_by_chat_and_without_a_key() {
    let server = Server::start(vec![
        Reply::error(404, json!({"detail": "Not Found"})),
        Reply::Stream(chat(&["{}", " "])),
    ]);
    let heard = ask_at(&server.base(), None, &question(ApiKind::Auto), limits());
    let answer = heard.ended.clone().unwrap();
    assert_eq!(heard.text(), "{} ");
    assert_eq!((answer.id.as_deref(), answer.stored), (Some("chatcmpl-1"), false));
    assert_eq!(heard.usage(), Some(ApiTokens { input: 50, output: 3, cached: 8 }));
    assert_eq!(server.paths(), ["/v1/responses", "/v1/chat/completions"]);
    let request = &server.asked()[1];
    assert_eq!(request.header("authorization"), None);
    let body = &request.body;
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Be brief."}));
    assert_eq!(body["messages"][1], json!({"role": "user", "content": "What is it?"}));
    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
    assert_eq!(body["reasoning_effort"], "low");
    assert_eq!(heard.retries(), 0);
}

#[test]
fn a_server_that_takes_no_schema_is_asked_for_less() {
    let no = |word: &str| {
        Reply::error(400, json!({"error": {"message": format!("unsupported: {word}")}}))
    };
    let server = Server::start(vec![
        no("response_format.type json_schema"),
        no("response_format.type json_object"),
        no("stream_options"),
        Reply::Stream(chat(&["{}"])),
    ]);
    let heard = asked(&server, &question(ApiKind::Chat));
    assert_eq!((heard.text().as_str(), heard.ended.is_ok()), ("{}", true));
    let formats: Vec<Value> =
        server.asked().iter().map(|asked| asked.body["response_format"]["type"].clone()).collect();
    assert_eq!(formats, [json!("json_schema"), json!("json_object"), json!(null), json!(null)]);
    assert!(server.asked()[3].body["stream_options"].is_null());
}

#[test]
fn a_refused_key_is_asked_for_once_and_the_variable_is_named() {
    for status in [401, 403] {
        let said = json!({"error": {"message": format!("Incorrect API key provided: {KEY}."), "type": "invalid_request_error", "code": "invalid_api_key"}});
        let server = Server::start(vec![Reply::error(status, said)]);
        let heard = asked(&server, &question(ApiKind::Auto));
        let failure = heard.failure();
        assert_eq!(failure.status, Some(status));
        assert_eq!(failure.code.as_deref(), Some("invalid_api_key"));
        assert!(failure.message.contains("Incorrect API key provided: [key]."), "{failure}");
        assert!(failure.message.contains("`MY_KEY`"), "{failure}");
        assert_eq!(server.paths().len(), 1);
    }
}

#[test]
fn an_unknown_model_is_told_from_a_missing_endpoint() {
    let said = json!({"error": {"message": "The model `m-1` does not exist", "code": "model_not_found", "type": "invalid_request_error"}});
    let server = Server::start(vec![Reply::error(404, said)]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!(heard.failure().code.as_deref(), Some("model_not_found"));
    assert_eq!(server.paths(), ["/v1/responses"]);
    let nothing = || Reply::Plain(404, vec![], "404 page not found".into());
    let server = Server::start(vec![nothing(), nothing()]);
    let failure = asked(&server, &question(ApiKind::Auto)).ended.unwrap_err();
    assert!(failure.message.contains("/v1/chat/completions answered 404: 404 page"), "{failure}");
    assert!(failure.message.contains("base address"), "{failure}");
}

#[test]
fn a_short_pause_is_kept_and_then_asked_again() {
    let busy = |wait: &str| {
        let headers = vec![("Retry-After", wait.to_owned())];
        Reply::Plain(429, headers, json!({"error": {"code": "rate_limit_exceeded"}}).to_string())
    };
    let server = Server::start(vec![busy("1"), Reply::Stream(responses("r", &["ok"]))]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!((heard.text().as_str(), heard.ended.is_ok(), heard.retries()), ("ok", true, 1));
    assert!(heard.took >= Duration::from_secs(1), "{:?}", heard.took);
}

#[test]
fn a_long_pause_is_not_slept_through_but_told() {
    let now = jiff::Timestamp::now().as_second();
    let date = |seconds: i64| {
        let at = jiff::Timestamp::from_second(now + seconds).unwrap();
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap()
    };
    for wait in ["3600".to_owned(), date(3600)] {
        let headers = vec![("Retry-After", wait.clone())];
        let server = Server::start(vec![Reply::Plain(429, headers, "{}".into())]);
        let heard = asked(&server, &question(ApiKind::Auto));
        let until = heard.failure().until_unix.unwrap();
        assert!((now + 3599..now + 3630).contains(&until), "{wait}: {until} {now}");
        assert_eq!(heard.events.last(), Some(&ApiEvent::RateLimit { until_unix: Some(until) }));
        assert!(heard.took < Duration::from_secs(20), "{:?}", heard.took);
        assert_eq!(server.paths().len(), 1);
    }
}

#[test]
fn an_account_that_is_used_up_is_not_asked_again() {
    let said = json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}});
    let server = Server::start(vec![Reply::error(429, said)]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!(heard.failure().code.as_deref(), Some("insufficient_quota"));
    assert_eq!(heard.events.last(), Some(&ApiEvent::RateLimit { until_unix: None }));
    assert_eq!(server.paths().len(), 1);
}

#[test]
fn a_server_that_is_away_is_asked_again_a_few_times() {
    let away = || Reply::Plain(503, vec![], "<html>".into());
    let server = Server::start(vec![away(), Reply::Stream(responses("r", &["ok"]))]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!((heard.text().as_str(), heard.ended.is_ok()), ("ok", true));
    let server = Server::start(vec![away(), away(), away(), away()]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!(heard.failure().status, Some(503));
    assert_eq!((server.paths().len(), heard.retries()), (3, 2));
}

#[test]
fn a_stream_that_is_cut_is_begun_anew() {
    let mut half = responses("r", &["half of", " it"]);
    half.truncate(2);
    let error = json!({"type": "error", "code": "server_error", "message": "sorry"}).to_string();
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "sorry"}, "usage": {"input_tokens": 5, "output_tokens": 1}}});
    for broken in [
        Reply::Cut(half.clone()),
        Reply::Stream(half.clone()),
        Reply::Stream([half.clone(), vec![error]].concat()),
        Reply::Stream([half, vec![failed.to_string()]].concat()),
    ] {
        let server = Server::start(vec![broken, Reply::Stream(responses("r2", &["whole"]))]);
        let heard = asked(&server, &question(ApiKind::Auto));
        assert_eq!((heard.text().as_str(), heard.retries()), ("whole", 1), "{:?}", heard.ended);
        assert_eq!(heard.ended.unwrap().id.as_deref(), Some("r2"));
    }
}

#[test]
fn tokens_of_all_tries_are_counted() {
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}, "usage": {"input_tokens": 5, "output_tokens": 1}}});
    let server = Server::start(vec![
        Reply::Stream(vec![failed.to_string()]),
        Reply::Stream(responses("r", &["ok"])),
    ]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!(heard.usage(), Some(ApiTokens { input: 105, output: 8, cached: 40 }));
}

#[test]
fn a_chat_that_is_cut_is_begun_anew() {
    let mut half = chat(&["half"]);
    half.truncate(2);
    let server = Server::start(vec![Reply::Stream(half), Reply::Stream(chat(&["whole"]))]);
    let heard = asked(&server, &question(ApiKind::Chat));
    assert_eq!((heard.text().as_str(), heard.retries()), ("whole", 1));
}

#[test]
fn what_is_no_answer_of_a_model_is_said_to_be_none() {
    let page =
        || Reply::Plain(200, vec![("Content-Type", "text/html".into())], "<html>hello".into());
    let failure = asked(&Server::start(vec![page()]), &question(ApiKind::Auto)).ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreadable);
    assert!(failure.message.contains("`<html>hello`"), "{failure}");
    let server = Server::start(vec![Reply::Stream(vec!["nonsense".into(), "{".into()])]);
    let failure = asked(&server, &question(ApiKind::Auto)).ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreadable, "{failure}");
    let server = Server::start(vec![Reply::error(200, json!({"hello": 1}))]);
    let failure = asked(&server, &question(ApiKind::Chat)).ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreadable, "{failure}");
}

#[test]
fn an_answer_without_end_is_given_up() {
    for (kind, max) in [("text/event-stream", 64 << 10), ("application/json", 1 << 30)] {
        let server = Server::start(vec![Reply::Endless(kind)]);
        let limits = ApiLimits { answer_bytes_max: max, ..limits() };
        let heard = ask_at(&server.base(), Some(KEY), &question(ApiKind::Auto), limits);
        assert_eq!(heard.failure().kind, FailureKind::TooLong, "{kind}");
        server.left.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
    }
    // Events that bring no text count as well.
    let server = Server::start(vec![Reply::Endless("text/event-stream")]);
    let limits = ApiLimits { answer_bytes_max: 1 << 30, ..limits() };
    let heard = ask_at(&server.base(), Some(KEY), &question(ApiKind::Auto), limits);
    assert!(heard.failure().message.contains("more than 1048576 bytes"), "{:?}", heard.ended);
}

#[test]
fn a_server_that_falls_silent_is_not_waited_for() {
    let limits = ApiLimits { idle_time_max: Duration::from_millis(1500), ..limits() };
    let half = responses("r", &["half"])[..2].to_vec();
    for silent in [Reply::Nothing, Reply::Stalled(half)] {
        let server = Server::start(vec![silent, Reply::Stream(responses("r", &["ok"]))]);
        let heard = ask_at(&server.base(), Some(KEY), &question(ApiKind::Auto), limits);
        assert_eq!((heard.text().as_str(), heard.retries()), ("ok", 1), "{:?}", heard.ended);
        server.left.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
    }
    let server = Server::start(vec![Reply::Nothing]);
    let once = ApiLimits { tries_max: 1, ..limits };
    let heard = ask_at(&server.base(), Some(KEY), &question(ApiKind::Auto), once);
    assert_eq!(heard.failure().kind, FailureKind::Silent);
    assert!(heard.failure().message.contains("sent nothing for 1.5 s"), "{}", heard.failure());
}

#[test]
fn nobody_there_is_an_outage_told_with_the_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let heard = ask_at(&base, Some(KEY), &question(ApiKind::Auto), limits());
    assert_eq!((heard.failure().kind, heard.retries()), (FailureKind::Lost, 2));
    assert!(heard.failure().message.contains(&base), "{}", heard.failure());
}

#[test]
fn a_redirect_is_told_and_not_followed() {
    let elsewhere = Server::start(vec![]);
    let headers = vec![("Location", elsewhere.base())];
    let server = Server::start(vec![Reply::Plain(307, headers, String::new())]);
    let heard = asked(&server, &question(ApiKind::Auto));
    assert_eq!(heard.failure().status, Some(307));
    assert!(heard.failure().message.contains(&elsewhere.base()), "{}", heard.failure());
    assert!(elsewhere.asked().is_empty());
}

#[test]
fn a_conversation_goes_on_at_the_server_or_is_told_again() {
    let earlier = vec![EarlierTurn { prompt: "First?".into(), answer: "One.".into() }];
    let again = ApiQuestion { previous: Some("resp_1".into()), earlier, ..question(ApiKind::Auto) };
    let gone = json!({"error": {"message": "Previous response with id 'resp_1' not found.", "code": "previous_response_not_found"}});
    let server = Server::start(vec![
        Reply::Stream(responses("resp_2", &["known"])),
        Reply::error(400, gone.clone()),
        Reply::Stream(responses("resp_3", &["told"])),
    ]);
    assert_eq!(asked(&server, &again).text(), "known");
    assert_eq!(asked(&server, &again).text(), "told");
    let bodies: Vec<Value> = server.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies[0]["previous_response_id"], "resp_1");
    assert_eq!(bodies[0]["input"].as_array().unwrap().len(), 1);
    assert!(bodies[2]["previous_response_id"].is_null());
    assert_eq!(bodies[2]["input"][1], json!({"role": "assistant", "content": "One."}));
    let alone = ApiQuestion { earlier: Vec::new(), ..again };
    let server = Server::start(vec![Reply::error(400, gone)]);
    let failure = asked(&server, &alone).ended.unwrap_err();
    assert_eq!(failure.code.as_deref(), Some("previous_response_not_found"));
}

#[test]
fn a_model_that_stops_early_or_refuses_gives_no_answer() {
    let incomplete = |reason: &str| {
        let response = json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "output": [], "usage": {"input_tokens": 9, "output_tokens": 9}});
        Server::start(vec![Reply::Stream(vec![
            json!({"type": "response.incomplete", "response": response}).to_string(),
        ])])
    };
    let kind = |server: &Server, api| asked(server, &question(api)).failure().kind;
    assert_eq!(kind(&incomplete("max_output_tokens"), ApiKind::Auto), FailureKind::OutputLimit);
    assert_eq!(kind(&incomplete("content_filter"), ApiKind::Auto), FailureKind::Refusal);
    let refusal = json!({"type": "response.refusal.delta", "delta": "I can't."}).to_string();
    let mut done = whole("r", "");
    done["output"] =
        json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]}]);
    let done = json!({"type": "response.completed", "response": done}).to_string();
    let server = Server::start(vec![Reply::Stream(vec![refusal, done])]);
    assert_eq!(kind(&server, ApiKind::Auto), FailureKind::Refusal);
    let length =
        json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}).to_string();
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}).to_string();
    let server = Server::start(vec![Reply::Stream(vec![length, usage, "[DONE]".into()])]);
    let heard = asked(&server, &question(ApiKind::Chat));
    assert_eq!(heard.failure().kind, FailureKind::OutputLimit);
    assert_eq!(heard.usage(), Some(ApiTokens { input: 3, output: 4, cached: 0 }));
}

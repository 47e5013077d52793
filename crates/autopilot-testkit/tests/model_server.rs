//! The scripted model as its clients see it, by a client of the system.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use autopilot_testkit::model::{Call, Fault, Rule, Script, Server, Times, Turn};
use serde_json::{Value, json};

fn post(server: &Server, path: &str, body: &Value) -> (String, String) {
    let client = curl(server, path, body).wait_with_output().unwrap();
    let text = String::from_utf8(client.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

fn curl(server: &Server, path: &str, body: &Value) -> Child {
    Command::new("curl")
        .args(["-sN", "--noproxy", "*", "-H", "x-api-key: secret", "-w", "\n%{http_code}"])
        .args(["-d", &body.to_string(), &format!("{}{path}", server.url())])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn messages(texts: &[(&str, &str)]) -> Value {
    texts.iter().map(|(role, text)| json!({"role": role, "content": text})).collect()
}

fn server() -> Server {
    let work = [Turn::call(Call::shell("true")), Turn::say("Done.").using(7, 3, 5)];
    Server::start(Script::new().when("work", work)).unwrap()
}

#[test]
fn the_turn_is_chosen_by_what_the_request_shows_and_nothing_else() {
    let server = server();
    let tools = json!([{"name": "Bash"}]);
    let ask = |conversation: &[(&str, &str)]| {
        let body = json!({"model": "m", "tools": tools, "messages": messages(conversation)});
        let (status, answer) = post(&server, "/v1/messages?beta=true", &body);
        assert_eq!(status, "200", "{answer}");
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    for _ in 0..2 {
        let first = ask(&[("user", "do the work")]);
        assert_eq!(first["content"][0]["name"], "Bash");
        assert_eq!(first["stop_reason"], "tool_use");
        let second = ask(&[("user", "do the work"), ("assistant", "x"), ("user", "result")]);
        assert_eq!(second["content"][0]["text"], "Done.");
        assert_eq!(second["usage"]["cache_read_input_tokens"], 3);
    }
    let again = ask(&[("user", "work"), ("assistant", "Done."), ("user", "more work")]);
    assert_eq!(again["content"][0]["name"], "Bash");
    let requests = server.requests();
    assert_eq!((requests.len(), requests[0].path.as_str()), (5, "/v1/messages"));
    assert_eq!(requests[0].header("X-Api-Key"), Some("secret"));
    assert_eq!(requests[0].body["model"], "m");
}

#[test]
fn all_three_protocols_answer_streamed_and_plain() {
    let server = server();
    let chat = json!({"tools": [{"function": {"name": "bash"}}], "messages": messages(&[("user", "work")])});
    let responses =
        json!({"tools": [{"name": "exec_command"}], "input": messages(&[("user", "work")])});
    let anthropic = json!({"tools": [{"name": "Bash"}], "messages": messages(&[("user", "work")])});
    let table = [
        ("/v1/messages", anthropic, "\"name\":\"Bash\"", "event: message_stop"),
        ("/v1/responses", responses, "\"name\":\"exec_command\"", "event: response.completed"),
        ("/v1/chat/completions", chat, "\"name\":\"bash\"", "data: [DONE]"),
    ];
    for (path, mut body, call, end) in table {
        let (_, plain) = post(&server, path, &body);
        assert!(serde_json::from_str::<Value>(&plain).is_ok() && plain.contains(call), "{plain}");
        body["stream"] = true.into();
        let (_, streamed) = post(&server, path, &body);
        assert!(streamed.contains(call) && streamed.contains(end), "{streamed}");
    }
}

#[test]
fn calls_of_one_turn_count_once_in_a_responses_conversation() {
    let turns = [
        Turn::say("first").and_call(Call::shell("a")).and_call(Call::shell("b")),
        Turn::call(Call::shell("c")),
        Turn::say("Done."),
    ];
    let server = Server::start(Script::new().when("work", turns)).unwrap();
    let mut input = vec![json!({"type": "message", "role": "user", "content": "work"})];
    let mut seen = Vec::new();
    for _ in 0..3 {
        let body = json!({"tools": [{"name": "exec_command"}], "input": input});
        let answer: Value = serde_json::from_str(&post(&server, "/v1/responses", &body).1).unwrap();
        for item in answer["output"].as_array().unwrap() {
            seen.push(
                item["arguments"]
                    .as_str()
                    .or(item["content"][0]["text"].as_str())
                    .unwrap()
                    .to_owned(),
            );
            input.push(item.clone());
            if item["type"] == "function_call" {
                let id = &item["call_id"];
                input.push(json!({"type": "function_call_output", "call_id": id, "output": ""}));
            }
        }
    }
    assert_eq!(seen, ["first", r#"{"cmd":"a"}"#, r#"{"cmd":"b"}"#, r#"{"cmd":"c"}"#, "Done."]);
}

#[test]
fn faults_come_as_often_as_told_and_a_prompt_without_a_rule_is_an_error() {
    let limited = Fault::status(429, "slow down").header("retry-after", "7");
    let rule = Rule::when("work")
        .turns([Turn::say("Done.")])
        .fails(Times::First(1), limited)
        .fails(Times::First(1), Fault::error_event("overloaded_error", "Overloaded"))
        .fails(Times::First(1), Fault::Empty)
        .fails(Times::First(1), Fault::Cut);
    let server = Server::start(Script::new().rule(rule)).unwrap();
    let body = json!({"stream": true, "messages": messages(&[("user", "work")])});
    let ask = || post(&server, "/v1/messages", &body);
    assert_eq!(ask(), ("429".into(), "slow down".into()));
    let (status, streamed) = ask();
    assert!(status == "200" && streamed.contains("overloaded_error"), "{streamed}");
    assert!(!streamed.contains("message_stop"), "{streamed}");
    assert_eq!(ask(), ("200".into(), String::new()));
    let (_, cut) = ask();
    assert!(cut.contains("message_start") && !cut.contains("message_stop"), "{cut}");
    assert!(ask().1.contains("message_stop"));
    let other = json!({"messages": messages(&[("user", "play")])});
    let (status, why) = post(&server, "/v1/messages", &other);
    assert!(
        status == "400" && why.contains("no rule of the script fits the prompt: play"),
        "{why}"
    );
    assert_eq!(post(&server, "/v1/nothing", &other).0, "404");
}

#[test]
fn the_end_of_the_server_frees_a_client_that_waits() {
    let silent = Rule::when("work").fails(Times::Always, Fault::Silence);
    let server = Server::start(Script::new().rule(silent)).unwrap();
    let body = json!({"messages": messages(&[("user", "work")])});
    let client = curl(&server, "/v1/messages", &body);
    assert!(server.wait_for(1, Duration::from_secs(10)));
    assert!(!server.wait_for(2, Duration::from_millis(50)));
    let started = Instant::now();
    drop(server);
    let said = client.wait_with_output().unwrap();
    assert!(!said.status.success());
    assert!(started.elapsed() < Duration::from_secs(5));
}

//! Agents of the Agent Client Protocol in whole runs of the real binary: a real one, and hostile
//! ones, played by this test's own program.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Rule, Script, Server, Turn};
use autopilot_testkit::netns;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

/// Which hostile agent this program is to play.
const PLAYED: &str = "ACP_PLAYED";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn configure(stage: &Stage, builder: &str, reviewer: &str, more: &str) {
    let scripted = "{ mode: script, script: agents.yml }";
    let or_scripted = |agent: &str| if agent.is_empty() { scripted } else { agent }.to_owned();
    let text = format!(
        "repo: {{ base_branch: main }}\nbuilder: {}\nreviewer: {}\nplanner: {scripted}\n\
         commands: {{ tests: sh test.sh }}\n{more}",
        or_scripted(builder),
        or_scripted(reviewer),
    );
    stage.write(".autopilot/config.yml", &text);
}

/// Opencode as a person has it: its own settings in its own home.
fn opencode(stage: &mut Stage, script: Script) -> (Server, String) {
    eprintln!("network: {}", netns::enter());
    let server = Server::start(script).unwrap();
    let home = stage.folder().join("home");
    let mut passed = Vec::new();
    for (name, value) in agents::opencode_home(&home, &server).unwrap() {
        if name != "HOME" {
            stage.set(&name, &value);
            passed.push(name);
        }
    }
    let command = agents::opencode();
    let agent = format!(
        "{{ mode: acp, command: \"{} acp\", env_pass: [{}] }}",
        command.display(),
        passed.join(", ")
    );
    (server, agent)
}

fn summary() -> Value {
    json!({ "changed_files": ["app.txt"], "tests_ran": true, "tests_passed": true, "notes": "ok" })
}

#[test]
fn the_real_opencode_builds_a_task_with_its_own_tools_and_the_run_ends_done() {
    let mut stage = stage();
    let script = Script::new().rule(Rule::when("Say done").turns([
        Turn::call(Call::read("app.txt")),
        Turn::call(Call::edit("app.txt", "start", "start\ndone")),
        Turn::answer(summary()),
    ]));
    let (_server, agent) = opencode(&mut stage, script);
    stage.agents(&[APPROVES]);
    configure(&stage, &agent, "", "");
    stage.run_task().expect(0).says(&["DONE"]);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\ndone");
    let task = stage.first_task();
    assert_eq!((task["status"].as_str(), task["iteration"].as_u64()), (Some("DONE"), Some(1)));
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn a_session_of_the_real_opencode_goes_on_after_its_run() {
    let mut stage = stage();
    let script = Script::new()
        .rule(Rule::when("what did you do").turns([Turn::say("I wrote a line.")]))
        .rule(Rule::when("Say done").turns([
            Turn::call(Call::read("app.txt")),
            Turn::call(Call::edit("app.txt", "start", "start\ndone")),
            Turn::answer(summary()),
        ]));
    let (server, agent) = opencode(&mut stage, script);
    stage.agents(&[APPROVES]);
    configure(&stage, &agent, "", "");
    stage.run_task().expect(0).says(&["DONE"]);
    let told = stage.run(&["sessions", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let id = told["sessions"][0]["session"].as_str().unwrap();
    for _ in 0..2 {
        let said = stage.run(&["resume", id, "--prompt", "what did you do?"]).expect(0);
        said.says(&["I wrote a line."]);
    }
    let asked = server.requests();
    let last = asked.iter().rfind(|request| request.body["tools"].is_array()).unwrap();
    let heard = last.body["messages"].to_string();
    assert!(heard.contains("Edit applied successfully."), "it remembers what it did: {heard}");
    assert!(heard.contains("I wrote a line."), "and what it said since: {heard}");
}

#[test]
fn the_real_opencode_as_reviewer_may_not_write_and_is_asked_again_in_its_session() {
    let mut stage = stage();
    let verdict = json!({ "verdict": "APPROVE", "summary": "fine", "issues": [] });
    let script = Script::new()
        .rule(Rule::when("What you said was").turns([Turn::answer(verdict)]))
        .rule(
            Rule::when("user acceptance test cases")
                .turns([Turn::say("# Cases\n1. app.txt says done\n")]),
        )
        .rule(Rule::when("").turns([
            Turn::call(Call::write("app.txt", "broken by the reviewer\n")),
            Turn::say("I wrote it myself."),
        ]));
    let (server, agent) = opencode(&mut stage, script);
    stage.agents(&[BUILDS]);
    configure(&stage, "", &agent, "gates: { review: required }\n");
    let ended = stage.run_task();
    let branch = stage.state_json()["branch_name"].as_str().unwrap_or("").to_owned();
    assert_eq!(ended.code, 0, "{}\n{:#}", ended.said(), stage.state_json());
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\ndone");
    // The second question came in the session of the first.
    let requests = server.requests();
    let again = requests.iter().find(|request| {
        let body = request.body["messages"].to_string();
        request.body["tools"].is_array() && body.contains("What you said was")
    });
    assert!(again.unwrap().body["messages"].to_string().contains("rejected permission"));
}

/// An agent that is this program.
fn hostile(played: &str, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let words = "the_hostile_agent --exact --nocapture --test-threads 1";
    format!(
        "{{ mode: acp, command: \"{} {words}\", env: {{ {PLAYED}: {played} }}{more} }}",
        program.display()
    )
}

fn hostile_stage(played: &str, more: &str, rest: &str) -> Stage {
    let stage = stage();
    stage.agents(&[APPROVES]);
    configure(&stage, &hostile(played, more), "", rest);
    stage
}

#[test]
fn noise_overlapping_ids_endless_lines_and_late_requests_do_no_harm() {
    let stage = hostile_stage("noisy", "", "");
    stage.run_task().expect(0).says(&["DONE"]);
    assert_eq!(stage.first_task()["iteration"], 1);
}

#[test]
fn an_agent_that_stays_after_its_turn_is_ended_and_its_answer_stands() {
    let stage = hostile_stage("stays", "", "");
    stage.run_task().expect(0).says(&["DONE"]);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn an_agent_that_leaves_in_the_middle_of_its_turn_is_tried_again() {
    let stage = hostile_stage("leaves", "", "");
    stage.run_task().expect(0).says(&["DONE"]);
    let log = stage.read(".autopilot/logs/controller.log");
    assert!(log.contains("no result: the agent exited"), "{log}");
}

#[test]
fn an_agent_that_never_answers_runs_into_its_time_limit() {
    let stage = hostile_stage("silent", ", timeout_sec: 3", "budget: { retries: 1 }\n");
    let ended = stage.run_task();
    assert_ne!(ended.code, 0);
    let log = stage.read(".autopilot/logs/controller.log");
    assert!(log.contains("time limit"), "{log}");
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn files_are_lent_inside_the_worktree_and_nowhere_else() {
    let stage = hostile_stage("borrows", ", fs: true", "");
    stage.run_task().expect(0).says(&["DONE"]);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\ndone");
}

#[test]
fn a_person_turns_it_to_something_else_from_another_process() {
    let stage = hostile_stage("listens", "", "");
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("it begins", |stage| stage.texts_of("events.jsonl").contains("I begin"));
    stage
        .run(&["attach", "say-done", "-m", "add a line"])
        .expect(0)
        .says(&["the message was delivered"]);
    run.wait().expect(0).says(&["DONE"]);
    let events = stage.texts_of("build/events.jsonl");
    assert!(events.contains(r#"{"event":"steer","text":"add a line"}"#), "{events}");
    assert_eq!(stage.views("build/metadata.json").len(), 1, "it was one turn");
}

/// Plays an agent where it is started as one, and is no test otherwise.
#[test]
fn the_hostile_agent() {
    let Ok(played) = std::env::var(PLAYED) else { return };
    let mut agent = Hostile { lines: std::io::stdin().lock().lines() };
    // The harness has begun a line of its own.
    agent.say("");
    match played.as_str() {
        "noisy" => agent.noisy(),
        "stays" => agent.stays(),
        "leaves" => agent.leaves(),
        "silent" => agent.silent(),
        "borrows" => agent.borrows(),
        "listens" => agent.listens(),
        other => panic!("nobody plays {other}"),
    }
}

struct Hostile<L> {
    lines: L,
}

impl<L: Iterator<Item = std::io::Result<String>>> Hostile<L> {
    fn say(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // Whoever no longer listens is told nothing.
        let _deaf = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
        let _deaf = out.flush();
    }

    fn send(&self, message: &Value) {
        self.say(&message.to_string());
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Up to the prompt; its id.
    fn hello(&mut self) -> Value {
        loop {
            let request = self.next().unwrap();
            let id = request["id"].clone();
            let result = match request["method"].as_str() {
                Some("initialize") => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
                Some("session/new") => json!({ "sessionId": "s" }),
                Some("session/prompt") => return id,
                other => panic!("{other:?}"),
            };
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
    }

    fn update(&self, update: Value) {
        let params = json!({ "sessionId": "s", "update": update });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    /// Asks, and waits for the reply, which is what has no method.
    fn ask(&mut self, id: &Value, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let reply = self.next().unwrap();
            if reply.get("method").is_none() {
                assert_eq!(&reply["id"], id);
                return reply;
            }
        }
    }

    fn build(&self) {
        std::fs::write("app.txt", "start\ndone\n").unwrap();
    }

    fn answer(&self, prompt: &Value) {
        let content = json!({ "type": "text", "text": summary().to_string() });
        self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
        let result = json!({ "stopReason": "end_turn" });
        self.send(&json!({ "jsonrpc": "2.0", "id": prompt, "result": result }));
    }

    fn noisy(&mut self) {
        self.say("Welcome!\n\n[1,2]\n{\"half\":\n\u{1b}[31mred\u{1b}[0m");
        let _deaf = std::io::stdout().write_all(b"\xff\xfe\n");
        self.send(&json!({ "jsonrpc": "2.0", "method": "_x/y", "params": 1 }));
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "terminal/create", "params": {} }));
        self.send(&json!({ "jsonrpc": "2.0", "id": 99, "result": { "sessionId": "other" } }));
        // Which of the two comes first depends on who was faster.
        let (one, two) = (self.next().unwrap(), self.next().unwrap());
        let is_first = one["method"] == "initialize";
        let (initialize, refused) = if is_first { (one, two) } else { (two, one) };
        assert_eq!((&initialize["id"], &refused["id"]), (&json!(1), &json!(1)));
        assert_eq!(refused["error"]["code"], -32601);
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        let prompt = self.hello();
        let options = json!([{ "optionId": "x", "kind": "allow_once" }]);
        let wanted =
            json!({ "toolCall": { "toolCallId": "c", "kind": "edit" }, "options": options });
        // The same number as our prompt has.
        let reply = self.ask(&prompt, "session/request_permission", wanted);
        assert_eq!(reply["result"]["outcome"]["optionId"], "x");
        let long = "x".repeat(10 << 20);
        self.update(json!({ "sessionUpdate": "agent_thought_chunk", "content": { "text": long } }));
        let write = json!({ "path": "/etc/x", "content": long });
        let reply = self.ask(&json!("long"), "fs/write_text_file", write);
        assert!(reply["error"]["message"].as_str().unwrap().contains("too long"), "{reply}");
        self.build();
        self.answer(&prompt);
        self.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "fs/read_text_file",
            "params": { "path": "/etc/passwd" } }));
        self.send(
            &json!({ "jsonrpc": "2.0", "id": prompt, "result": { "stopReason": "refusal" } }),
        );
        assert!(self.next().is_none(), "nothing is said after the end");
    }

    fn stays(&mut self) {
        let prompt = self.hello();
        self.build();
        self.answer(&prompt);
        assert!(self.next().is_none());
        loop {
            std::thread::park();
        }
    }

    /// Works until it is turned to something else.
    fn listens(&mut self) {
        let prompt = self.hello();
        let content = json!({ "type": "text", "text": "I begin." });
        self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
        // What was said is whole when something else follows.
        let call =
            json!({ "toolCallId": "c", "title": "look", "kind": "read", "status": "pending" });
        let mut update = json!({ "sessionUpdate": "tool_call" });
        update.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
        self.update(update);
        let told = self.next().unwrap();
        assert_eq!(told["method"], "session/cancel", "{told}");
        let result = json!({ "stopReason": "cancelled" });
        self.send(&json!({ "jsonrpc": "2.0", "id": prompt, "result": result }));
        let told = self.next().unwrap();
        assert_eq!(told["method"], "session/prompt", "{told}");
        assert!(told["params"]["prompt"].to_string().contains("add a line"), "{told}");
        self.build();
        self.answer(&told["id"]);
    }

    fn leaves(&mut self) {
        let prompt = self.hello();
        self.build();
        if std::env::var("AUTOPILOT_TRY").as_deref() == Ok("1") {
            std::process::exit(0);
        }
        self.answer(&prompt);
    }

    fn silent(&mut self) {
        while self.next().is_some() {}
        loop {
            std::thread::park();
        }
    }

    fn borrows(&mut self) {
        let prompt = self.hello();
        let here = std::env::current_dir().unwrap();
        std::os::unix::fs::symlink("/etc", here.join("etc")).unwrap();
        let mut id = 0;
        let mut ask = |agent: &mut Self, method: &str, params: Value| {
            id += 1;
            agent.ask(&json!(id), method, params)
        };
        let path = |name: &str| here.join(name).to_string_lossy().into_owned();
        let file = json!({ "path": path("app.txt"), "line": 1, "limit": 1 });
        let read = ask(self, "fs/read_text_file", file);
        assert_eq!(read["result"]["content"], "start\n");
        let missing = ask(self, "fs/read_text_file", json!({ "path": path("none.txt") }));
        assert!(missing["error"]["message"].as_str().unwrap().contains("No such file"));
        assert!(here.ends_with("work/tree"), "the path of gates: {}", here.display());
        // The same file by its real path, which no program in the jail can know, and by a way out.
        let state = here.ancestors().nth(2).unwrap();
        let real = state.join("slots/s0/app.txt").to_string_lossy().into_owned();
        let ways_out = [path("../x"), path("../../slots/s0/app.txt"), path("../../autopilot.db")];
        let outsides = ["/etc/passwd".to_owned(), path("etc/passwd"), real];
        for outside in outsides.into_iter().chain(ways_out) {
            let read = ask(self, "fs/read_text_file", json!({ "path": outside }));
            assert!(read["error"].is_object(), "{outside}: {read}");
        }
        let file = json!({ "path": path("app.txt"), "content": "start\ndone\n" });
        let written = ask(self, "fs/write_text_file", file);
        assert_eq!(written.get("result"), Some(&Value::Null), "{written}");
        std::fs::remove_file(here.join("etc")).unwrap();
        self.answer(&prompt);
    }
}

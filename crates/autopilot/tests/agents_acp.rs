//! A real agent of the Agent Client Protocol and our codec: opencode, a scripted model, and no
//! network but loopback.
//!
//! With `AUTOPILOT_TRANSCRIPTS` set to a folder, what the agent said is written there; that is how
//! the transcripts of `autopilot-agents` are made anew for another version.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a test file; its functions are test code too"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use autopilot_agents::{
    Access, Act, Agent, AgentEnding, AgentEvent, AgentMessage, AgentOutcome, AgentSettings, Cause,
    Conversation, ExitFacts, HeardLine, LaunchRequest, Network, OutputStream,
};
use autopilot_core::config::Mode;
use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Fault, Rule, Script, Server, Times, Turn};
use autopilot_testkit::netns;
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

/// How long a turn may take on a machine that has other things to do.
const TURN_MAX: Duration = Duration::from_secs(150);
/// The agent ends by itself when its stdin does.
const EXIT_MAX: Duration = Duration::from_secs(30);

struct Scene {
    /// Holds the home and the repository.
    _folder: TempDir,
    repo: Utf8PathBuf,
    variables: agents::Variables,
    server: Server,
    agent: Agent,
}

/// Ended with the test, whatever became of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ended_already = self.0.wait();
    }
}

struct Ran {
    events: Vec<AgentEvent>,
    ending: AgentEnding,
    wrote: Vec<String>,
}

impl Scene {
    fn new(script: Script) -> Scene {
        eprintln!("network: {}", netns::enter());
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let repo = Utf8PathBuf::from_path_buf(folder.path().join("repo")).unwrap();
        std::fs::create_dir_all(&repo).unwrap();
        std::fs::write(repo.join("app.txt"), "start\n").unwrap();
        let git = Command::new("git").args(["init", "-q"]).current_dir(&repo).status().unwrap();
        assert!(git.success());
        let server = Server::start(script).unwrap();
        let variables = agents::opencode_home(&home, &server).unwrap();
        let command = format!("{} acp", agents::opencode().display());
        let settings =
            AgentSettings { mode: Mode::Acp, command: Some(&command), ..AgentSettings::default() };
        let agent = Agent::new(settings).unwrap();
        Scene { _folder: folder, repo, variables, server, agent }
    }

    fn ask(&self, prompt: &str) -> LaunchRequest {
        LaunchRequest::new(prompt, &self.repo)
    }

    fn run(&self, name: &str, ask: &LaunchRequest) -> Ran {
        self.run_with(name, ask, |_| None)
    }

    /// `wish` is asked again and again what to tell the agent.
    fn run_with(
        &self,
        name: &str,
        ask: &LaunchRequest,
        wish: impl FnMut(&Scene) -> Option<AgentMessage>,
    ) -> Ran {
        let plan = self.agent.launch(ask);
        let autopilot_agents::LaunchProgram::Named(program) = &plan.program else {
            panic!("{plan:?}")
        };
        let mut child = Command::new(program)
            .args(&plan.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.repo)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let child = Running(child);
        let (sender, lines) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let talk = Talk {
            repo: &self.repo,
            conversation: self.agent.conversation(ask.clone()),
            stdin,
            events: Vec::new(),
            wrote: Vec::new(),
            heard: Vec::new(),
        };
        let ran = talk.hold(self, &lines, wish, child, name);
        reader.join().unwrap();
        ran
    }

    /// Whether the model was asked something with these words, by a request that may use tools.
    fn was_asked(&self, words: &str) -> bool {
        let is_it = |body: &serde_json::Value| {
            body["tools"].is_array() && body["messages"].to_string().contains(words)
        };
        self.server.requests().iter().any(|request| is_it(&request.body))
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.repo.join(name)).ok()
    }
}

struct Talk<'a> {
    repo: &'a Utf8Path,
    conversation: Box<dyn Conversation>,
    stdin: Option<std::process::ChildStdin>,
    events: Vec<AgentEvent>,
    wrote: Vec<String>,
    heard: Vec<String>,
}

impl Talk<'_> {
    fn hold(
        mut self,
        scene: &Scene,
        lines: &mpsc::Receiver<String>,
        mut wish: impl FnMut(&Scene) -> Option<AgentMessage>,
        mut child: Running,
        name: &str,
    ) -> Ran {
        let began = Instant::now();
        let first = self.conversation.begin();
        self.take(first);
        loop {
            assert!(began.elapsed() < TURN_MAX, "it did not end: {:#?}", self.events);
            match lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    let heard = self.conversation.line(OutputStream::Out, &line, false);
                    self.take(heard);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some(wish) = wish(scene) {
                let heard = self.conversation.wish(wish).unwrap();
                self.take(heard);
            }
        }
        let began = Instant::now();
        let status = loop {
            assert!(began.elapsed() < EXIT_MAX, "it does not exit");
            match child.0.try_wait().unwrap() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        self.record(name);
        let exit = ExitFacts { code: status.code(), ..ExitFacts::default() };
        Ran { events: self.events, ending: self.conversation.finish(exit), wrote: self.wrote }
    }

    fn take(&mut self, heard: HeardLine) {
        self.events.extend(heard.events);
        for act in heard.acts {
            match act {
                Act::Say(line) => {
                    let stdin = self.stdin.as_mut().unwrap();
                    writeln!(stdin, "{line}").unwrap();
                }
                Act::Close => self.stdin = None,
                Act::ReadFile { id, path, .. } => {
                    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
                    let heard = self.conversation.file(id, text);
                    self.take(heard);
                }
                Act::WriteFile { id, path, text } => {
                    let written = std::fs::write(&path, text).map_err(|error| error.to_string());
                    self.wrote.push(path);
                    let heard = self.conversation.file(id, written.map(|()| String::new()));
                    self.take(heard);
                }
            }
        }
    }

    fn record(&self, name: &str) {
        let Some(folder) = std::env::var_os("AUTOPILOT_TRANSCRIPTS") else { return };
        let path = std::path::Path::new(&folder).join(format!("acp-{name}.jsonl"));
        let text = self.heard.join("\n").replace(self.repo.as_str(), "/slot") + "\n";
        std::fs::write(path, text).unwrap();
    }
}

fn permissions(ran: &Ran) -> Vec<(&str, bool)> {
    ran.events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Permission { tool, granted, .. } => Some((tool.as_str(), *granted)),
            _ => None,
        })
        .collect()
}

fn texts(ran: &Ran) -> Vec<&str> {
    ran.events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn writes(path: &str) -> [Turn; 2] {
    [Turn::call(Call::write(path, "made\n")), Turn::say("All done.")]
}

#[test]
fn it_edits_with_its_own_tools() {
    let scene = Scene::new(Script::new().when(
        "MAKE",
        [
            Turn::call(Call::read("app.txt")),
            Turn::call(Call::edit("app.txt", "start", "changed")),
            Turn::call(Call::write("new.txt", "made\n")),
            Turn::say("All done."),
        ],
    ));
    let ran = scene.run("edit", &scene.ask("MAKE it"));
    assert_eq!(ran.ending.outcome, AgentOutcome::Success, "{:#?}", ran.events);
    assert_eq!(ran.ending.answer, "All done.");
    assert_eq!(scene.text("app.txt").as_deref(), Some("changed\n"));
    assert_eq!(scene.text("new.txt").as_deref(), Some("made\n"));
    let changed: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::FileChange { path, .. } => path.rsplit('/').next(),
            _ => None,
        })
        .collect();
    assert_eq!(changed, ["app.txt", "new.txt"], "{:#?}", ran.events);
    // It asks for nothing a builder may do anyway.
    assert_eq!(permissions(&ran), []);
    let usage = ran.ending.usage.unwrap();
    assert!(usage.tokens.input >= 100 && usage.tokens.output >= 20, "{usage:?}");
    assert_eq!(ran.ending.odd, autopilot_agents::OddLines::default());
    assert!(ran.ending.session.is_some());
}

#[test]
fn a_reader_that_wants_to_write_or_to_run_something_is_refused() {
    let script = Script::new()
        .when("WRITE", writes("new.txt"))
        .when("SHELL", [Turn::call(Call::shell("echo x > shell.txt")), Turn::say("Done.")]);
    let scene = Scene::new(script);
    let ask = |prompt| LaunchRequest { access: Access::Read, ..scene.ask(prompt) };
    let ran = scene.run("refused", &ask("WRITE"));
    assert_eq!(permissions(&ran), [("write", false)], "{:#?}", ran.events);
    // A refusal ends its turn, and the turn ends well.
    assert_eq!(ran.ending.outcome, AgentOutcome::Success);
    let ran = scene.run("refused-shell", &ask("SHELL"));
    assert_eq!(permissions(&ran), [("bash", false)], "{:#?}", ran.events);
    assert_eq!((scene.text("new.txt"), scene.text("shell.txt")), (None, None));
}

#[test]
fn without_a_network_nothing_is_fetched_and_a_forbidden_tool_is_not_used() {
    let fetch = Call::tool(
        "webfetch",
        serde_json::json!({ "url": "http://127.0.0.1:9/", "format": "text" }),
    );
    let script = Script::new()
        .when("FETCH", [Turn::call(fetch), Turn::say("Done.")])
        .when("SHELL", [Turn::call(Call::shell("git push")), Turn::say("Done.")]);
    let scene = Scene::new(script);
    let ran = scene.run("offline", &LaunchRequest { network: Network::Off, ..scene.ask("FETCH") });
    assert_eq!(permissions(&ran), [("webfetch", false)], "{:#?}", ran.events);
    let rules = ["bash(git push*)".to_owned()];
    let ran = scene.run(
        "forbidden",
        &LaunchRequest { disallowed_tools: rules.to_vec(), ..scene.ask("SHELL") },
    );
    assert_eq!(permissions(&ran), [("bash", false)], "{:#?}", ran.events);
}

#[test]
fn an_interrupt_ends_the_turn() {
    let slow = Rule::when("SLOW").fails(Times::Always, Fault::Silence);
    let scene = Scene::new(Script::new().rule(slow));
    let mut told = false;
    let ran = scene.run_with("cancelled", &scene.ask("SLOW"), |scene| {
        let tell = !told && scene.was_asked("SLOW");
        told |= tell;
        tell.then_some(AgentMessage::Interrupt)
    });
    assert_eq!(ran.ending.outcome, AgentOutcome::Interrupted, "{:#?}", ran.events);
}

#[test]
fn a_message_turns_it_to_something_else() {
    let script = Script::new()
        .when("INSTEAD", writes("instead.txt"))
        .rule(Rule::when("SLOW").fails(Times::Always, Fault::Silence));
    let scene = Scene::new(script);
    let mut told = false;
    let ran = scene.run_with("steered", &scene.ask("SLOW"), |scene| {
        let tell = !told && scene.was_asked("SLOW");
        told |= tell;
        tell.then(|| AgentMessage::Message("INSTEAD of that".into()))
    });
    assert_eq!(ran.ending.outcome, AgentOutcome::Success, "{:#?}", ran.events);
    assert_eq!(
        (ran.ending.answer.as_str(), scene.text("instead.txt").as_deref()),
        ("All done.", Some("made\n"))
    );
    assert!(ran.events.contains(&AgentEvent::Steer { text: "INSTEAD of that".into() }));
}

#[test]
fn a_session_goes_on_in_another_process_and_one_that_is_gone_is_noticed() {
    let script = Script::new()
        .when("RECALL", [Turn::say("It was a banana.")])
        .when("REMEMBER", [Turn::say("I will.")]);
    let scene = Scene::new(script);
    let first = scene.run("first", &scene.ask("REMEMBER the banana"));
    let session = first.ending.session.clone().unwrap();
    let again = LaunchRequest { session: Some(session.clone()), ..scene.ask("RECALL it") };
    let second = scene.run("loaded", &again);
    assert_eq!(second.ending.outcome, AgentOutcome::Success);
    assert_eq!(second.ending.session.as_deref(), Some(session.as_str()));
    assert_eq!(texts(&second), ["It was a banana."]);
    let requests = scene.server.requests();
    let whole = requests.iter().rfind(|request| request.body["tools"].is_array()).unwrap();
    assert!(whole.body["messages"].to_string().contains("REMEMBER the banana"));

    let gone = LaunchRequest {
        session: Some("ses_00000000ffffAAAAAAAAAAAAAA".into()),
        ..scene.ask("RECALL it")
    };
    let ran = scene.run("unknown-session", &gone);
    let is_lost = matches!(ran.ending.outcome, AgentOutcome::Broke { cause: Cause::Session, .. });
    assert!(is_lost, "{:?}", ran.ending.outcome);
}

#[test]
fn files_go_through_us_where_that_is_offered() {
    let mut scene = Scene::new(Script::new().when("MAKE", writes("new.txt")));
    // It writes through its client what it was made to ask for.
    scene.variables.push(("OPENCODE_PERMISSION".into(), r#"{"edit":"ask"}"#.into()));
    let ran = scene.run("files", &LaunchRequest { fs: true, ..scene.ask("MAKE it") });
    assert_eq!(ran.ending.outcome, AgentOutcome::Success, "{:#?}", ran.events);
    assert_eq!(permissions(&ran), [("write", true)], "{:#?}", ran.events);
    assert_eq!(ran.wrote, [scene.repo.join("new.txt")]);
    assert_eq!(scene.text("new.txt").as_deref(), Some("made\n"));
}

#[test]
fn a_model_it_does_not_have_is_never_replaced_by_another() {
    let scene = Scene::new(Script::new().when("HELLO", [Turn::say("Hello.")]));
    let ran = scene.run(
        "model",
        &LaunchRequest { model: Some("scripted/model".into()), ..scene.ask("HELLO") },
    );
    assert_eq!(ran.ending.outcome, AgentOutcome::Success, "{:#?}", ran.events);
    let asked = scene.server.requests().len();
    let ran = scene.run(
        "no-model",
        &LaunchRequest { model: Some("scripted/none".into()), ..scene.ask("HELLO") },
    );
    let is_model = matches!(ran.ending.outcome, AgentOutcome::Broke { cause: Cause::Model, .. });
    assert!(is_model, "{:?}", ran.ending.outcome);
    assert_eq!(scene.server.requests().len(), asked, "nothing was asked of a model");
}

#[test]
fn errors_of_the_service_are_known_for_what_they_are() {
    let error = |status, message: &str| {
        let body = serde_json::json!({ "error": { "message": message, "type": "x" } });
        Fault::status(status, body)
    };
    let script = Script::new()
        .rule(Rule::when("KEY").fails(Times::Always, error(401, "Incorrect API key provided: x.")))
        .rule(Rule::when("GONE").fails(
            Times::Always,
            error(404, "The model `x` does not exist or you do not have access to it."),
        ));
    let scene = Scene::new(script);
    let ran = scene.run("auth", &scene.ask("KEY"));
    assert!(matches!(ran.ending.outcome, AgentOutcome::Auth { .. }), "{:?}", ran.ending.outcome);
    let ran = scene.run("gone", &scene.ask("GONE"));
    let is_model = matches!(ran.ending.outcome, AgentOutcome::Broke { cause: Cause::Model, .. });
    assert!(is_model, "{:?}", ran.ending.outcome);
}

//! One run of a real agent as a plain process: what its codec launches, and what it makes of every
//! line that comes back.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "shown when a test fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use autopilot_agents::{
    Act, Agent, AgentEnding, AgentEvent, AgentMessage, AgentOutcome, AgentSettings, Conversation,
    ExitFacts, HeardLine, LaunchPlan, LaunchProgram, LaunchRequest, LaunchServer, LaunchStdin,
    OutputStream, Transport,
};
use autopilot_core::config::Mode;
use autopilot_testkit::agents::Variables;
use autopilot_testkit::model::Server;
use autopilot_testkit::netns;
use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A run that takes longer is one that waits for something.
const RUN_MAX: Duration = Duration::from_secs(60);

/// Enough to tell what is meant; the rest of a message may name ids.
const BRIEF_CHARS_MAX: usize = 110;

pub struct Ran {
    pub ending: AgentEnding,
    pub events: Vec<AgentEvent>,
    pub out: String,
    pub err: String,
    pub exit: ExitFacts,
}

/// A folder with a home and a repository, in a network with only loopback.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let entered = netns::enter();
        println!("the agents have {entered}");
        let place = Place { dir: tempfile::tempdir().unwrap() };
        for dir in ["home", "repo"] {
            std::fs::create_dir(place.path().join(dir)).unwrap();
        }
        let git = Command::new("git").args(["init", "-q"]).current_dir(place.repo()).status();
        assert!(git.unwrap().success());
        place
    }

    pub fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).unwrap()
    }

    pub fn repo(&self) -> Utf8PathBuf {
        self.path().join("repo")
    }

    pub fn home(&self) -> Utf8PathBuf {
        self.path().join("home")
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.repo().join(file)).unwrap_or_default()
    }
}

pub fn agent(mode: &str, executable: &std::path::Path) -> Agent {
    let executable = executable.to_str();
    let mode = Mode::of(mode).unwrap();
    Agent::new(AgentSettings { mode, executable, ..AgentSettings::default() }).unwrap()
}

pub fn run(agent: &Agent, ask: &LaunchRequest, variables: &Variables) -> Ran {
    run_while(agent, ask, variables, |_, _| {})
}

enum News {
    Line(OutputStream, String),
    Wish(AgentMessage),
    EndOfStream,
}

/// What a person says to a running agent.
pub struct Ear(Sender<News>);

impl Ear {
    pub fn wish(&self, wish: AgentMessage) {
        self.0.send(News::Wish(wish)).unwrap();
    }
}

/// `meanwhile` goes on beside the run and knows the process.
pub fn run_while(
    agent: &Agent,
    ask: &LaunchRequest,
    variables: &Variables,
    meanwhile: impl FnOnce(Pid, Ear) + Send,
) -> Ran {
    let plan = agent.launch(ask);
    for (path, content) in &plan.files {
        std::fs::write(path, content).unwrap();
    }
    let mut child = start(&plan, &ask.cwd, variables);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (news, heard) = channel();
    let readers = [
        reader(child.stdout.take().unwrap(), OutputStream::Out, news.clone()),
        reader(child.stderr.take().unwrap(), OutputStream::Err, news.clone()),
    ];
    let stdin = child.stdin.take();
    let ran = thread::scope(|scope| {
        scope.spawn(move || meanwhile(pid, Ear(news)));
        let talk = Talk::begin(agent, ask, &plan, stdin);
        talk.listen(&heard, &mut child)
    });
    for reader in readers {
        reader.join().unwrap();
    }
    ran
}

fn start(plan: &LaunchPlan, cwd: &Utf8Path, variables: &Variables) -> Child {
    let LaunchProgram::Named(program) = &plan.program else { panic!("an agent of its own") };
    Command::new(program)
        .args(&plan.args)
        .current_dir(cwd)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(plan.env.iter().cloned())
        .envs(variables.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

struct Talk {
    conversation: Box<dyn Conversation>,
    stdin: Option<ChildStdin>,
    events: Vec<AgentEvent>,
    out: String,
    err: String,
}

impl Talk {
    fn begin(
        agent: &Agent,
        ask: &LaunchRequest,
        plan: &LaunchPlan,
        stdin: Option<ChildStdin>,
    ) -> Self {
        let conversation = agent.conversation(ask.clone());
        let (events, out, err) = (Vec::new(), String::new(), String::new());
        let mut talk = Talk { conversation, stdin, events, out, err };
        match &plan.stdin {
            LaunchStdin::Whole(bytes) => {
                // One that ends at once reads nothing.
                drop(talk.stdin.take().unwrap().write_all(bytes));
            }
            LaunchStdin::Open => {
                let heard = talk.conversation.begin();
                talk.take(heard);
            }
        }
        talk
    }

    fn take(&mut self, heard: HeardLine) {
        self.events.extend(heard.events);
        for act in heard.acts {
            match act {
                Act::Say(line) => {
                    let line = format!("{line}\n");
                    drop(self.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes())));
                }
                Act::Close => drop(self.stdin.take()),
                Act::ReadFile { .. } | Act::WriteFile { .. } => panic!("no agent of this kind"),
            }
        }
    }

    fn listen(mut self, heard: &Receiver<News>, child: &mut Child) -> Ran {
        let mut open = 2;
        let started = Instant::now();
        while open > 0 {
            let left = RUN_MAX.saturating_sub(started.elapsed());
            let Ok(news) = heard.recv_timeout(left) else {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the agent did not end in {RUN_MAX:?}\n{}\n{}", self.out, self.err);
            };
            match news {
                News::Line(stream, line) => self.line(stream, &line),
                News::Wish(wish) => {
                    let heard = self.conversation.wish(wish).unwrap();
                    self.take(heard);
                }
                News::EndOfStream => open -= 1,
            }
        }
        let status = child.wait().unwrap();
        let exit =
            ExitFacts { code: status.code(), signal: status.signal(), ..ExitFacts::default() };
        let ending = self.conversation.finish(exit);
        Ran { ending, events: self.events, out: self.out, err: self.err, exit }
    }

    fn line(&mut self, stream: OutputStream, line: &str) {
        let text = match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        };
        text.push_str(line);
        text.push('\n');
        let heard = self.conversation.line(stream, line, false);
        self.take(heard);
    }
}

fn reader(
    from: impl Read + Send + 'static,
    stream: OutputStream,
    news: Sender<News>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            drop(news.send(News::Line(stream, line)));
        }
        drop(news.send(News::EndOfStream));
    })
}

pub fn signal(pid: Pid, signal: Signal) {
    kill(pid, signal).unwrap();
}

/// The judgement on one line, without what differs from run to run.
pub fn brief(ran: &Ran) -> String {
    let exit = match (ran.exit.code, ran.exit.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or(0)),
    };
    let ending = &ran.ending;
    let judged = match &ending.outcome {
        AgentOutcome::Success => format!("success: {}", ending.answer.trim()),
        AgentOutcome::Broke { cause, why } => format!("broke ({cause:?}): {why}"),
        AgentOutcome::Quota { until_unix: Some(until), why } => {
            format!("quota until {until}: {why}")
        }
        AgentOutcome::Quota { until_unix: None, why } => format!("quota: {why}"),
        AgentOutcome::Auth { why } => format!("auth: {why}"),
        AgentOutcome::Outage { why } => format!("outage: {why}"),
        AgentOutcome::Interrupted => "interrupted".to_owned(),
    };
    let odd = match ending.odd {
        odd if odd == Default::default() => String::new(),
        odd => format!(" [{odd:?}]"),
    };
    let is_time = |word: &&str| word.starts_with("20") && word.ends_with('Z');
    let words: Vec<&str> = judged.split([' ', '\n']).filter(|word| !is_time(word)).collect();
    let line = words.join(" ");
    format!("{exit}, {}{odd}", line.chars().take(BRIEF_CHARS_MAX).collect::<String>().trim_end())
}

/// What was seen of the run, a line for each event, without ids and sums.
pub fn events(ran: &Ran, place: &Place) -> String {
    let shown = ran.events.iter().filter_map(|event| {
        let line = match event {
            AgentEvent::Text { text } => format!("says {text}"),
            AgentEvent::Thought { text } => format!("thinks {text}"),
            AgentEvent::ToolCall { name, summary, .. } => format!("calls {name}: {summary}"),
            AgentEvent::ToolResult { ok: true, summary, .. } => format!("gets {summary}"),
            AgentEvent::ToolResult { ok: false, summary, .. } => format!("gets error {summary}"),
            AgentEvent::FileChange { path, kind } => format!("{kind:?} {path}"),
            AgentEvent::Permission { tool, granted: true, .. } => format!("may use {tool}"),
            AgentEvent::Permission { tool, granted: false, .. } => format!("may not use {tool}"),
            AgentEvent::RateLimit { status, resets_at_unix } => {
                format!("limit {status:?} until {resets_at_unix:?}")
            }
            AgentEvent::Notice { text } => format!("notice {text}"),
            AgentEvent::Steer { text } => format!("is told {text}"),
            AgentEvent::Session { .. } | AgentEvent::Usage(_) | AgentEvent::Result { .. } => {
                return None;
            }
        };
        let line = line.replace(place.repo().as_str(), "REPO");
        let line = line.replace(place.path().as_str(), "PLACE");
        Some(line.chars().take(BRIEF_CHARS_MAX).collect::<String>())
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// Waits for what a tool makes in the repository.
pub fn wait_for_file(path: &Utf8Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < RUN_MAX, "{path} was not made");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A server of tools with one tool, `echo`.
pub fn echo_server() -> LaunchServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/echo_server.py").to_owned();
    stdio_server("echo", "python3", vec![script])
}

/// One that can't start.
pub fn dead_server() -> LaunchServer {
    stdio_server("dead", "false", Vec::new())
}

fn stdio_server(name: &str, command: &str, args: Vec<String>) -> LaunchServer {
    let transport = Transport::Stdio { command: command.to_owned(), args, env: Vec::new() };
    LaunchServer { name: name.to_owned(), transport }
}

/// A row of a table: a name for it, and the judgement.
pub fn row(name: &str, ran: &Ran, server: &Server) -> String {
    // The port is another one each time.
    let host = server.url().replace("http://", "");
    format!("{name}: {}", brief(ran).replace(&host, "HOST"))
}

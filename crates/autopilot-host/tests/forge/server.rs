//! A forge on this machine: one of three APIs over real sockets, which remembers its requests and
//! misbehaves on order.
#![allow(clippy::unwrap_used, reason = "test support: what can't be set up must fail at once")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    Github,
    Gitlab,
    Gitea,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    /// `name: value`, in small letters up to the colon.
    pub headers: Vec<String>,
    pub body: Value,
}

impl Request {
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

#[derive(Clone, Debug)]
pub struct Pull {
    pub number: u64,
    pub head: String,
    pub base: String,
    pub title: String,
    pub body: String,
    pub open: bool,
    pub from_fork: bool,
}

/// A fault that the next request meets.
#[derive(Clone, Debug)]
pub enum Fault {
    Answer {
        status: u16,
        header: &'static str,
        body: String,
    },
    /// The answer comes only after this time.
    Silence(Duration),
    /// The request is carried out, but the answer never comes.
    LostAnswer,
    /// The answer has [`ENDLESS_BYTES`].
    Endless,
}

static PIECE: [u8; 65536] = [b' '; 65536];
/// The length of an answer that nobody should read to its end.
const ENDLESS_BYTES: usize = 320 * PIECE.len();

impl Fault {
    pub fn status(status: u16, body: &str) -> Fault {
        Fault::Answer { status, header: "X-Test: 1", body: body.to_owned() }
    }
}

#[derive(Default)]
struct Inside {
    asked: Vec<Request>,
    pulls: Vec<Pull>,
    faults: VecDeque<Fault>,
}

pub struct FakeForge {
    port: u16,
    inside: Arc<Mutex<Inside>>,
}

pub const REPOSITORY: &str = "ada/engine";

impl FakeForge {
    pub fn start(flavour: Flavour) -> FakeForge {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let inside = Arc::new(Mutex::new(Inside::default()));
        let shared = Arc::clone(&inside);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(flavour, stream, &shared));
            }
        });
        FakeForge { port, inside }
    }

    pub fn api(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    pub fn next(&self, fault: Fault) {
        self.inside().faults.push_back(fault);
    }

    pub fn asked(&self) -> Vec<Request> {
        self.inside().asked.clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.inside().asked.iter().map(Request::line).collect()
    }

    pub fn pulls(&self) -> Vec<Pull> {
        self.inside().pulls.clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Vec<Pull>)) {
        change(&mut self.inside().pulls);
    }
}

fn serve(flavour: Flavour, mut stream: TcpStream, inside: &Mutex<Inside>) {
    while let Some(request) = read(&stream) {
        let fault = {
            let mut inside = inside.lock().unwrap();
            inside.asked.push(request.clone());
            inside.faults.pop_front()
        };
        let answer = || answer(flavour, &request, &mut inside.lock().unwrap().pulls);
        let (status, header, body) = match fault {
            None => {
                let (status, body) = answer();
                (status, "X-Test: 1", body.to_string())
            }
            Some(Fault::Answer { status, header, body }) => (status, header, body),
            Some(Fault::Silence(time)) => {
                std::thread::sleep(time);
                return;
            }
            Some(Fault::LostAnswer) => {
                answer();
                return;
            }
            Some(Fault::Endless) => {
                let pieces = ENDLESS_BYTES / PIECE.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS_BYTES}\r\n\r\n");
                let _gone = stream.write_all(head.as_bytes());
                let _gone = (0..pieces).try_for_each(|_| stream.write_all(&PIECE));
                return;
            }
        };
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{header}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let name = name.to_ascii_lowercase();
        if name == "content-length" {
            length = value.trim().parse().ok()?;
        }
        headers.push(format!("{name}: {}", value.trim()));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body })
}

fn answer(flavour: Flavour, request: &Request, pulls: &mut Vec<Pull>) -> (u16, Value) {
    let top = match flavour {
        Flavour::Github | Flavour::Gitea => format!("/repos/{REPOSITORY}/pulls"),
        Flavour::Gitlab => format!("/projects/{}/merge_requests", REPOSITORY.replace('/', "%2F")),
    };
    let Some(rest) = request.path.strip_prefix(&top) else {
        return (404, json!({ "message": "Not Found" }));
    };
    match (request.method.as_str(), rest) {
        ("GET", "") => (200, list(flavour, request, pulls)),
        ("POST", "") => create(flavour, request, pulls),
        ("PATCH" | "PUT", number) => change(flavour, request, number, pulls),
        _ => (405, json!({ "message": "no such thing" })),
    }
}

fn list(flavour: Flavour, request: &Request, pulls: &[Pull]) -> Value {
    let wanted = |name: &str| {
        let pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.into_iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.replace("%2F", "/").replace("%3A", ":"))
    };
    // Unless it is asked for open requests, every forge shows others too.
    let asked_open = wanted("state").is_some_and(|state| state.starts_with("open"));
    let open = pulls.iter().filter(|pull| pull.open || !asked_open);
    let found: Vec<Value> = match flavour {
        // GitHub's filter knows the owner of the head.
        Flavour::Github => open
            .filter(|pull| {
                let owner = if pull.from_fork { "eve" } else { "ada" };
                wanted("head").is_none_or(|head| head == format!("{owner}:{}", pull.head))
            })
            .map(|pull| shown(flavour, pull))
            .collect(),
        Flavour::Gitlab => open
            .filter(|pull| wanted("source_branch").is_none_or(|head| head == pull.head))
            .map(|pull| shown(flavour, pull))
            .collect(),
        Flavour::Gitea => {
            let number = |name: &str| wanted(name).unwrap().parse::<usize>().unwrap();
            let (limit, page) = (number("limit").min(2), number("page"));
            let newest: Vec<&Pull> = open.collect();
            let newest = newest.into_iter().rev();
            newest.skip((page - 1) * limit).take(limit).map(|pull| shown(flavour, pull)).collect()
        }
    };
    Value::Array(found)
}

fn create(flavour: Flavour, request: &Request, pulls: &mut Vec<Pull>) -> (u16, Value) {
    let text = |key: &str| request.body[key].as_str().unwrap().to_owned();
    let (head, base, body) = match flavour {
        Flavour::Github | Flavour::Gitea => (text("head"), text("base"), text("body")),
        Flavour::Gitlab => (text("source_branch"), text("target_branch"), text("description")),
    };
    if pulls.iter().any(|pull| pull.open && !pull.from_fork && pull.head == head) {
        return match flavour {
            Flavour::Github => (
                422,
                json!({ "message": "Validation Failed", "errors": [{
                    "message": format!("A pull request already exists for ada:{head}."),
                }] }),
            ),
            Flavour::Gitlab => {
                (409, json!({ "message": ["Another open merge request already exists"] }))
            }
            Flavour::Gitea => (409, json!({ "message": "pull request already exists" })),
        };
    }
    let number = pulls.len() as u64 + 1;
    let title = text("title");
    let pull = Pull { number, head, base, title, body, open: true, from_fork: false };
    let told = shown(flavour, &pull);
    pulls.push(pull);
    (201, told)
}

fn change(flavour: Flavour, request: &Request, number: &str, pulls: &mut [Pull]) -> (u16, Value) {
    let number: u64 = number.trim_start_matches('/').parse().unwrap();
    let pull = pulls.iter_mut().find(|pull| pull.number == number).unwrap();
    let key = if flavour == Flavour::Gitlab { "description" } else { "body" };
    if let Some(title) = request.body["title"].as_str() {
        pull.title = title.to_owned();
    }
    if let Some(body) = request.body[key].as_str() {
        pull.body = body.to_owned();
    }
    (200, shown(flavour, pull))
}

fn shown(flavour: Flavour, pull: &Pull) -> Value {
    let Pull { number, head, base, title, body, .. } = pull;
    match flavour {
        Flavour::Github | Flavour::Gitea => {
            let owner = if pull.from_fork { "eve" } else { "ada" };
            json!({
                "number": number, "title": title, "body": body,
                "html_url": format!("https://forge.example/{REPOSITORY}/pull/{number}"),
                "head": { "ref": head, "repo": { "full_name": format!("{owner}/engine") } },
                "base": { "ref": base },
            })
        }
        Flavour::Gitlab => json!({
            "iid": number, "id": number + 1000, "title": title, "description": body,
            "web_url": format!("https://forge.example/{REPOSITORY}/-/merge_requests/{number}"),
            "source_branch": head, "target_branch": base,
            "source_project_id": if pull.from_fork { 8 } else { 7 }, "target_project_id": 7,
        }),
    }
}

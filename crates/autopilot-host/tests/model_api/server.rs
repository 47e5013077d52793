//! A model server on this machine over real sockets: it sends the scripted replies one after the
//! other and remembers its requests.
#![allow(clippy::unwrap_used, reason = "test support: what can't be set up must fail at once")]

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// `name: value`, in small letters up to the colon.
    pub headers: Vec<String>,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter_map(|header| header.split_once(": "));
        found.find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

pub enum Reply {
    /// Status, headers, body.
    Plain(u16, Vec<(&'static str, String)>, String),
    /// Events, each as its data.
    Stream(Vec<String>),
    /// Events, and then the connection is gone.
    Cut(Vec<String>),
    /// A body without end.
    Endless(&'static str),
    /// No answer at all, until the client goes away.
    Nothing,
    /// Events, and then nothing.
    Stalled(Vec<String>),
}

impl Reply {
    pub fn error(status: u16, body: Value) -> Reply {
        Reply::Plain(status, vec![("Content-Type", "application/json".into())], body.to_string())
    }
}

pub struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// A message whenever a client has gone away from a reply without end.
    pub left: Mutex<Receiver<()>>,
}

impl Server {
    pub fn start(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, replies) = (Arc::clone(&asked), Mutex::new(VecDeque::from(replies)));
        let (tell, left) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else { continue };
                kept.lock().unwrap().push(request);
                let reply = replies.lock().unwrap().pop_front().unwrap_or_else(|| {
                    Reply::error(400, json!({"error": "nobody expected this request"}))
                });
                let tell = tell.clone();
                std::thread::spawn(move || give(stream, reply, &tell));
            }
        });
        Server { port, asked, left: Mutex::new(left) }
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ")?;
        let name = name.to_ascii_lowercase();
        if name == "content-length" {
            length = value.parse().ok()?;
        }
        headers.push(format!("{name}: {value}"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { path, headers, body: serde_json::from_slice(&body).ok()? })
}

fn give(mut stream: TcpStream, reply: Reply, left: &Sender<()>) {
    // A client that went away needs no more events.
    let _gone = write(&mut stream, reply, left);
}

fn write(stream: &mut TcpStream, reply: Reply, left: &Sender<()>) -> std::io::Result<()> {
    let head = |status: u16, headers: &[(&str, String)]| {
        let mut head = format!("HTTP/1.1 {status} Word\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    };
    let streamed = [("Content-Type", "text/event-stream".to_owned()), chunked()];
    match reply {
        Reply::Plain(status, mut headers, body) => {
            headers.push(("Content-Length", body.len().to_string()));
            stream.write_all(head(status, &headers).as_bytes())?;
            stream.write_all(body.as_bytes())
        }
        Reply::Stream(events) => {
            stream.write_all(head(200, &streamed).as_bytes())?;
            all(stream, &events)?;
            stream.write_all(b"0\r\n\r\n")
        }
        Reply::Cut(events) => {
            stream.write_all(head(200, &streamed).as_bytes())?;
            all(stream, &events)
        }
        Reply::Stalled(events) => {
            stream.write_all(head(200, &streamed).as_bytes())?;
            all(stream, &events)?;
            until_gone(stream, left)
        }
        Reply::Nothing => until_gone(stream, left),
        Reply::Endless(kind) => {
            stream
                .write_all(head(200, &[("Content-Type", kind.to_owned()), chunked()]).as_bytes())?;
            let piece = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "x".repeat(8000)});
            loop {
                if let Err(gone) = all(stream, &[piece.to_string()]) {
                    let _nobody_waits = left.send(());
                    return Err(gone);
                }
            }
        }
    }
}

fn chunked() -> (&'static str, String) {
    ("Transfer-Encoding", "chunked".to_owned())
}

fn all(stream: &mut TcpStream, events: &[String]) -> std::io::Result<()> {
    for event in events {
        let event = format!("data: {event}\n\n");
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
    }
    stream.flush()
}

fn until_gone(stream: &mut TcpStream, left: &Sender<()>) -> std::io::Result<()> {
    let mut byte = [0];
    let _gone = stream.read(&mut byte);
    let _nobody_waits = left.send(());
    Ok(())
}

/// The events of an answer by Responses.
pub fn responses(id: &str, pieces: &[&str]) -> Vec<String> {
    let mut events = vec![json!({"type": "response.created", "response": {"id": id}})];
    for piece in pieces {
        events
            .push(json!({"type": "response.output_text.delta", "output_index": 1, "delta": piece}));
    }
    events.push(json!({"type": "response.completed", "response": whole(id, &pieces.concat())}));
    events.iter().map(Value::to_string).collect()
}

pub fn whole(id: &str, text: &str) -> Value {
    json!({
        "id": id, "status": "completed", "model": "m-1", "store": true,
        "output": [
            {"type": "reasoning"},
            {"type": "message", "content": [{"type": "output_text", "text": text}]}
        ],
        "usage": {"input_tokens": 100, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 40}}
    })
}

/// The events of an answer by Chat Completions.
pub fn chat(pieces: &[&str]) -> Vec<String> {
    let delta = |delta: Value, finish: Value| json!({"id": "chatcmpl-1", "model": "local", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(pieces.iter().map(|piece| delta(json!({"content": piece}), Value::Null)));
    events.push(delta(json!({}), json!("stop")));
    let usage = json!({"prompt_tokens": 50, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}});
    events.push(json!({"id": "chatcmpl-1", "choices": [], "usage": usage}));
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    events
}

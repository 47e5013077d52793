//! A model that says what a script tells it to, on loopback, for the real agents to talk to.
//!
//! It speaks the protocols of the vendors (Messages, Responses, Chat Completions), streamed and
//! plain, and goes wrong on demand. It proves what an agent's program does with an answer, not what
//! the services would have answered.

mod anthropic;
mod chat;
mod http;
mod responses;
mod script;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

pub use http::Request;
pub use script::{Call, Fault, Rule, Script, Times, Tokens, Turn};

use http::{Connection, Waited};
use wire::{Reply, Wire};

/// Ends with its drop, whatever its clients are waiting for.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    serial: AtomicU64,
    ending: AtomicBool,
    requests: Mutex<Vec<Request>>,
    heard: Condvar,
    /// A handle on each open connection, to end it.
    open: Mutex<BTreeMap<u64, TcpStream>>,
}

impl Server {
    /// In the network namespace of the calling thread.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            script,
            serial: AtomicU64::new(u64::try_from(now.as_micros()).unwrap_or(0) << 8),
            ending: AtomicBool::new(false),
            requests: Mutex::default(),
            heard: Condvar::new(),
            open: Mutex::default(),
        });
        let of_acceptor = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &of_acceptor));
        Ok(Server { address, shared, acceptor: Some(acceptor) })
    }

    /// Without the version: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// As clients of the OpenAI protocols want it.
    pub fn url_v1(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// All that was asked, in the order of its arrival.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Until `count` requests have come; whether they have.
    pub fn wait_for(&self, count: usize, limit: Duration) -> bool {
        let requests = lock(&self.shared.requests);
        let waited =
            self.shared.heard.wait_timeout_while(requests, limit, |seen| seen.len() < count);
        let (requests, _) = waited.unwrap_or_else(PoisonError::into_inner);
        requests.len() >= count
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then ends the connections.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            drop(acceptor.join());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        if shared.ending.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let Ok(handle) = stream.try_clone() else { continue };
        let id = shared.serial.fetch_add(1, Ordering::SeqCst);
        lock(&shared.open).insert(id, handle);
        let shared = Arc::clone(shared);
        threads.push(thread::spawn(move || {
            // A client that goes away is none of ours to report.
            drop(serve(stream, &shared));
            if let Some(handle) = lock(&shared.open).remove(&id) {
                drop(handle.shutdown(Shutdown::Both));
            }
        }));
    }
    for handle in lock(&shared.open).values() {
        drop(handle.shutdown(Shutdown::Both));
    }
    for thread in threads {
        drop(thread.join());
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut connection = Connection::new(stream)?;
    while let Some(request) = connection.read()? {
        lock(&shared.requests).push(request.clone());
        shared.heard.notify_all();
        match answer(&mut connection, &request, shared)? {
            Then::KeepAlive => {}
            Then::Close => break,
        }
    }
    Ok(())
}

enum Then {
    KeepAlive,
    Close,
}

fn answer(connection: &mut Connection, request: &Request, shared: &Shared) -> io::Result<Then> {
    let wire = Wire::of(&request.path).filter(|_| request.method == "POST");
    let Some(wire) = wire else {
        let (status, body) = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/models") => (200, json!({"object": "list", "data": []})),
            _ => (404, json!({"error": {"type": "not_found_error", "message": "no such path"}})),
        };
        connection.whole(status, &[], &body.to_string())?;
        return Ok(Then::KeepAlive);
    };
    let seen = wire.read(&request.body);
    let Some((place, rule)) = shared.script.choose(&seen.prompts, &seen.model) else {
        let prompt = seen.prompts.last().map_or("", String::as_str);
        let why = format!("no rule of the script fits the prompt: {prompt}");
        connection.whole(400, &[], &wire.error("invalid_request_error", &why).to_string())?;
        return Ok(Then::KeepAlive);
    };
    let number = seen.turns_after[place];
    let mut turn = rule.turn(number);
    let fault = rule.fault().cloned().or_else(|| turn.fault.clone());
    if seen.tools.is_empty() && !turn.calls.iter().all(|call| matches!(call, Call::Answer(_))) {
        turn = rule.last_words();
    }
    if let Some(delay) = turn.delay
        && let Waited::Gone = connection.wait(Some(delay))?
    {
        return Ok(Then::Close);
    }
    let serial = shared.serial.fetch_add(1, Ordering::SeqCst);
    let reply = Reply { turn: &turn, seen: &seen, serial, number };
    match fault {
        None => {
            send(connection, request, wire, &reply)?;
            Ok(Then::KeepAlive)
        }
        Some(fault) => fail(connection, request, wire, &reply, &fault),
    }
}

fn send(
    connection: &mut Connection,
    request: &Request,
    wire: Wire,
    reply: &Reply<'_>,
) -> io::Result<()> {
    if !request.wants_stream() {
        return connection.whole(200, &[], &wire.whole(reply).to_string());
    }
    connection.begin_events()?;
    for event in wire.events(reply) {
        connection.event(&event)?;
    }
    connection.end_events()
}

fn fail(
    connection: &mut Connection,
    request: &Request,
    wire: Wire,
    reply: &Reply<'_>,
    fault: &Fault,
) -> io::Result<Then> {
    match fault {
        Fault::Status { status, headers, body } => {
            connection.whole(*status, headers, body)?;
            Ok(Then::KeepAlive)
        }
        Fault::ErrorEvent { kind, message } if request.wants_stream() => {
            connection.begin_events()?;
            for event in wire.events(reply).iter().take(1) {
                connection.event(event)?;
            }
            connection.event(&wire.error_event(kind, message))?;
            connection.end_events()?;
            Ok(Then::KeepAlive)
        }
        Fault::ErrorEvent { kind, message } => {
            connection.whole(500, &[], &wire.error(kind, message).to_string())?;
            Ok(Then::KeepAlive)
        }
        Fault::Cut => {
            connection.begin_events()?;
            let events = wire.events(reply);
            for event in events.iter().take(events.len() / 2) {
                connection.event(event)?;
            }
            Ok(Then::Close)
        }
        Fault::Empty => {
            connection.whole(200, &[], "")?;
            Ok(Then::KeepAlive)
        }
        Fault::Silence => {
            connection.wait(None)?;
            Ok(Then::Close)
        }
    }
}

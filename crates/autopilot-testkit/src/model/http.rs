//! As much of HTTP/1.1 as the agents' clients speak: keep-alive, bodies with a length or in chunks,
//! answers whole or as a stream of events.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

const HEAD_BYTES_MAX: u64 = 256 * 1024;
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A request as it came, secrets and all.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Null` when the body is no JSON.
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn wants_stream(&self) -> bool {
        self.body["stream"] == true
    }
}

pub(super) struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Connection { reader: BufReader::new(stream.try_clone()?), writer: stream })
    }

    /// The next request; none when the client has gone.
    pub(super) fn read(&mut self) -> io::Result<Option<Request>> {
        let Some((method, target)) = self.read_start()? else { return Ok(None) };
        let headers = self.read_headers()?;
        let header = |name: &str| {
            headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
        };
        if header("expect").is_some() {
            self.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let bytes = if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            self.read_chunks()?
        } else {
            let length = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            self.read_exactly(length)?
        };
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Some(Request { method, path, query, headers, body }))
    }

    /// Waits until the client says something more or goes away, or for the time given.
    pub(super) fn wait(&mut self, time: Option<std::time::Duration>) -> io::Result<Waited> {
        self.writer.set_read_timeout(time)?;
        let seen = self.writer.peek(&mut [0]);
        self.writer.set_read_timeout(None)?;
        match seen {
            Ok(0) => Ok(Waited::Gone),
            Ok(_) => Ok(Waited::Present),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                Ok(Waited::Present)
            }
            Err(_) => Ok(Waited::Gone),
        }
    }

    pub(super) fn whole(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        body: &str,
    ) -> io::Result<()> {
        let more: String =
            headers.iter().map(|(name, value)| format!("{name}: {}\r\n", timed(value))).collect();
        let head = format!(
            "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             {more}\r\n",
            reason(status),
            body.len()
        );
        self.writer.write_all(&[head.as_bytes(), body.as_bytes()].concat())
    }

    pub(super) fn begin_events(&mut self) -> io::Result<()> {
        self.writer.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
              cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
        )
    }

    pub(super) fn event(&mut self, event: &Event) -> io::Result<()> {
        let name = event.name.as_deref().map_or(String::new(), |name| format!("event: {name}\n"));
        let text = format!("{name}data: {}\n\n", event.data);
        self.writer.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    pub(super) fn end_events(&mut self) -> io::Result<()> {
        self.writer.write_all(b"0\r\n\r\n")
    }

    fn read_start(&mut self) -> io::Result<Option<(String, String)>> {
        let line = self.read_line()?;
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(method), Some(target)) => Ok(Some((method.to_owned(), target.to_owned()))),
            _ => Ok(None),
        }
    }

    fn read_headers(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok(headers) };
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(HEAD_BYTES_MAX).read_until(b'\n', &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line()?;
            let size = line.split(';').next().unwrap_or("").trim();
            let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
            let chunk = self.read_exactly(size)?;
            self.read_line()?;
            if chunk.is_empty() {
                return Ok(body);
            }
            body.extend(chunk);
            if body.len() as u64 > BODY_BYTES_MAX {
                return Err(io::Error::other("the body is too long"));
            }
        }
    }

    fn read_exactly(&mut self, length: u64) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(io::Error::other("the body is too long"));
        }
        let mut bytes = Vec::new();
        self.reader.by_ref().take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

pub(super) enum Waited {
    Present,
    Gone,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) name: Option<String>,
    pub(super) data: String,
}

impl Event {
    /// Named after the `type` of its data, as two of the three vendors do.
    pub(super) fn typed(data: &Value) -> Self {
        Event { name: data["type"].as_str().map(str::to_owned), data: data.to_string() }
    }

    pub(super) fn bare(data: &Value) -> Self {
        Event { name: None, data: data.to_string() }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Other",
    }
}

/// `now+3` is a time in seconds since 1970, three seconds after the reply.
fn timed(value: &str) -> String {
    let Some(seconds) = value.strip_prefix("now+").and_then(|text| text.parse::<u64>().ok()) else {
        return value.to_owned();
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs()).saturating_add(seconds).to_string()
}

//! One request to an API and its answer, whole or in events: no redirects, a limit on silence and
//! size, and a key that appears in no message.

use super::failure::one_line;
use super::retry::wanted_pause;
use super::sse::{EventTooLong, Events};
use super::{ApiAddress, ApiFailure, ApiLimits, FailureKind};
use crate::{cause, web};
use jiff::Timestamp;
use serde_json::Value;
use std::io::{self, Read};
use std::time::Duration;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};

/// How much of a server's error is read.
const ERROR_BYTES_MAX: u64 = 64 * 1024;
const CHUNK_BYTES: usize = 16 * 1024;
/// The shortest key that is hidden in messages; the letters of a shorter one stand in too many
/// words.
const SECRET_BYTES_MIN: usize = 6;

/// A key and the variable it came from.
pub struct ApiKey {
    variable: String,
    secret: String,
    header: HeaderValue,
}

impl ApiKey {
    /// Makes a key of a variable's value; `None` if the variable is not set or empty.
    pub fn new(variable: &str, value: Option<&str>) -> Result<Option<ApiKey>, ApiFailure> {
        let Some(secret) = value.map(str::trim).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let unfit = || {
            let text =
                format!("the value of `{variable}` is not a valid key: it is not plain text");
            ApiFailure::new(FailureKind::Key, text)
        };
        let mut header = HeaderValue::try_from(format!("Bearer {secret}")).map_err(|_| unfit())?;
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unfit());
        }
        header.set_sensitive(true);
        Ok(Some(ApiKey { variable: variable.to_owned(), secret: secret.to_owned(), header }))
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// A client for one API.
#[derive(Debug)]
pub struct ApiClient {
    agent: ureq::Agent,
    address: ApiAddress,
    key: Option<ApiKey>,
    headers: Vec<(HeaderName, HeaderValue)>,
    limits: ApiLimits,
}

/// A piece of a server's answer.
pub(super) enum ServerPart<'a> {
    /// The data of one event.
    Event(&'a str),
    /// The whole answer at once.
    Whole(&'a Value),
}

/// The reason why no more is read.
pub(super) enum ReadStop {
    Complete,
    Failed(ApiFailure),
}

impl From<EventTooLong> for ReadStop {
    fn from(_: EventTooLong) -> ReadStop {
        ReadStop::Failed(ApiFailure::new(
            FailureKind::TooLong,
            "one event of the answer is too long",
        ))
    }
}

impl ApiClient {
    /// Makes a client. `variable` is where the key should be; a server nearby may go without one.
    /// `headers` whose value is not valid in HTTP are left out. `certificates` is a file of
    /// certificates to trust instead of the public ones.
    pub fn new(
        address: ApiAddress,
        variable: &str,
        key: Option<&str>,
        headers: &[(&'static str, String)],
        certificates: Option<&str>,
        limits: ApiLimits,
    ) -> Result<ApiClient, ApiFailure> {
        let key = ApiKey::new(variable, key)?;
        if key.is_none() && !address.is_local() {
            let text = format!("no key for {address}: the variable `{variable}` is not set");
            return Err(ApiFailure::new(FailureKind::Key, text));
        }
        let client = web::client(address.as_str(), certificates).map_err(|error| {
            let (name, reason) = (web::CERTIFICATES_VARIABLE, cause::chain(&error));
            ApiFailure::new(FailureKind::Lost, format!("cannot use {name}: {reason}"))
        })?;
        let config = client
            .max_idle_connections(0)
            .timeout_resolve(Some(limits.connect_time_max))
            .timeout_connect(Some(limits.connect_time_max))
            .timeout_per_read(Some(limits.idle_time_max))
            .timeout_per_write(Some(limits.idle_time_max))
            .build();
        let headers = headers.iter().filter_map(|(name, value)| {
            Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
        });
        let headers = headers.collect();
        Ok(ApiClient { agent: config.new_agent(), address, key, headers, limits })
    }

    /// Returns the base address of the API.
    pub fn address(&self) -> &ApiAddress {
        &self.address
    }

    /// Returns whether the key is sent unencrypted, so that others on the network can read it.
    pub fn shows_key(&self) -> bool {
        self.key.is_some() && self.address.is_readable_by_others()
    }

    pub(super) fn limits(&self) -> &ApiLimits {
        &self.limits
    }

    /// Sends a request and calls `part` with every piece of the answer.
    pub(super) fn post(
        &self,
        path: &str,
        body: &Value,
        part: &mut dyn FnMut(ServerPart<'_>) -> Result<(), ReadStop>,
    ) -> Result<(), ApiFailure> {
        self.exchange(path, body, part).map_err(|failure| self.without_key(failure))
    }

    fn exchange(
        &self,
        path: &str,
        body: &Value,
        part: &mut dyn FnMut(ServerPart<'_>) -> Result<(), ReadStop>,
    ) -> Result<(), ApiFailure> {
        let url = format!("{}{path}", self.address);
        let request = self.request(&url, body)?;
        let response = self.agent.run(request).map_err(|error| self.broken(&url, &error))?;
        if !response.status().is_success() {
            return Err(self.refusal(&url, response));
        }
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.contains("event-stream"));
        let status = response.status().as_u16();
        let bytes = response.into_body().into_with_config().limit(u64::MAX).reader();
        let read = if is_stream {
            self.events(&url, bytes, part)
        } else {
            self.whole(&url, status, bytes, part)
        };
        match read {
            Ok(()) | Err(ReadStop::Complete) => Ok(()),
            Err(ReadStop::Failed(failure)) => Err(failure),
        }
    }

    fn request(&self, url: &str, body: &Value) -> Result<Request<Vec<u8>>, ApiFailure> {
        let mut request = Request::post(url)
            .header("Content-Type", "application/json")
            .header("Accept", "text/event-stream, application/json");
        if let Some(key) = &self.key {
            request = request.header("Authorization", key.header.clone());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value.clone());
        }
        request.body(body.to_string().into_bytes()).map_err(|error| {
            ApiFailure::new(FailureKind::Lost, format!("cannot send a request to {url}: {error}"))
        })
    }

    fn events(
        &self,
        url: &str,
        mut bytes: impl Read,
        part: &mut dyn FnMut(ServerPart<'_>) -> Result<(), ReadStop>,
    ) -> Result<(), ReadStop> {
        let mut events = Events::default();
        let mut each = |data: &str| part(ServerPart::Event(data));
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut total = 0;
        loop {
            let count = self.read(url, &mut bytes, &mut chunk)?;
            if count == 0 {
                return events.end(&mut each);
            }
            total += count as u64;
            if total > self.limits.stream_bytes_max {
                return Err(ReadStop::Failed(self.too_long(url)));
            }
            events.push(&chunk[..count], &mut each)?;
        }
    }

    /// Reads the answer of a server that does not stream although it was asked to, or does not say
    /// that it does.
    fn whole(
        &self,
        url: &str,
        status: u16,
        mut bytes: impl Read,
        part: &mut dyn FnMut(ServerPart<'_>) -> Result<(), ReadStop>,
    ) -> Result<(), ReadStop> {
        let mut all = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = self.read(url, &mut bytes, &mut chunk)?;
            if count == 0 {
                break;
            }
            all.extend_from_slice(&chunk[..count]);
            if all.len() as u64
                > self.limits.stream_bytes_max.min(super::sse::EVENT_BYTES_MAX as u64)
            {
                return Err(ReadStop::Failed(self.too_long(url)));
            }
        }
        let text = String::from_utf8_lossy(&all);
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            if !value["error"].is_null() {
                let failure = ApiFailure::refused(Some(status), url, &value, "");
                return Err(ReadStop::Failed(failure));
            }
            return part(ServerPart::Whole(&value));
        }
        if ["data:", "event:", ":"].iter().any(|start| text.trim_start().starts_with(start)) {
            let mut events = Events::default();
            let mut each = |data: &str| part(ServerPart::Event(data));
            events.push(&all, &mut each)?;
            return events.end(&mut each);
        }
        let start = one_line(&text.chars().take(80).collect::<String>());
        let said = format!("{url} did not send a model's answer; the text starts with `{start}`");
        Err(ReadStop::Failed(ApiFailure::new(FailureKind::Unreadable, said)))
    }

    fn read(&self, url: &str, bytes: &mut impl Read, chunk: &mut [u8]) -> Result<usize, ReadStop> {
        loop {
            match bytes.read(chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(ReadStop::Failed(self.broken(url, &ureq::Error::from(error))));
                }
                Ok(count) => return Ok(count),
            }
        }
    }

    fn too_long(&self, url: &str) -> ApiFailure {
        let max = self.limits.stream_bytes_max;
        ApiFailure::new(FailureKind::TooLong, format!("{url} sent more than {max} bytes"))
    }

    fn broken(&self, url: &str, error: &ureq::Error) -> ApiFailure {
        if let ureq::Error::Timeout(ureq::Timeout::PerRead | ureq::Timeout::PerWrite) = error {
            let seconds = self.limits.idle_time_max.as_secs_f32();
            let text = format!("{url} sent nothing for {seconds} s");
            return ApiFailure::new(FailureKind::Silent, text);
        }
        let why = web::in_words(error);
        ApiFailure::new(FailureKind::Lost, format!("the connection to {url} failed: {why}"))
    }

    fn refusal(&self, url: &str, response: Response<ureq::Body>) -> ApiFailure {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        // A part of the error that could not be read is left out; the status is known.
        let _part = response
            .into_body()
            .into_with_config()
            .limit(u64::MAX)
            .reader()
            .take(ERROR_BYTES_MAX)
            .read_to_end(&mut body);
        let text = String::from_utf8_lossy(&body);
        let said = serde_json::from_str(&text).unwrap_or(Value::Null);
        let mut failure = ApiFailure::refused(Some(status), url, &said, &text);
        if let Some(hint) = self.hint(status, &headers, &failure) {
            failure.message = format!("{} ({hint})", failure.message);
        }
        let now = Timestamp::now();
        failure.retry_after = wanted_pause(&headers, now);
        failure.until_unix = failure.retry_after.map(|pause| seconds_after(now, pause));
        failure
    }

    fn hint(&self, status: u16, headers: &HeaderMap, failure: &ApiFailure) -> Option<String> {
        match status {
            300..=399 => {
                let place = headers.get("location").and_then(|place| place.to_str().ok())?;
                Some(format!("moved to {}; nothing was sent there", one_line(place)))
            }
            401 | 403 => Some(match &self.key {
                Some(key) => format!("with the key from `{}`", key.variable),
                None => "without a key".to_owned(),
            }),
            404 if failure.code.is_none() && failure.error_type.is_none() => {
                Some("check the end of the base address in the server's manual".to_owned())
            }
            _ => None,
        }
    }

    /// Hides the key in a failure, because a server may repeat in an error what it was sent.
    fn without_key(&self, mut failure: ApiFailure) -> ApiFailure {
        let Some(key) = self.key.as_ref().filter(|key| key.secret.len() >= SECRET_BYTES_MIN) else {
            return failure;
        };
        let hidden = |text: &mut String| *text = text.replace(&key.secret, "[key]");
        hidden(&mut failure.message);
        failure.code.iter_mut().for_each(hidden);
        failure.error_type.iter_mut().for_each(hidden);
        failure
    }
}

fn seconds_after(now: Timestamp, pause: Duration) -> i64 {
    let pause = i64::try_from(pause.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
    now.as_second().saturating_add(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(base: &str, key: Option<&str>) -> Result<ApiClient, ApiFailure> {
        let address = ApiAddress::parse(base).unwrap();
        ApiClient::new(address, "MY_KEY", key, &[], None, ApiLimits::default())
    }

    #[test]
    fn a_far_server_needs_a_key_and_the_variable_is_named() {
        let failure = client("https://api.example.com/v1", Some(" \n")).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Key);
        assert_eq!(
            failure.to_string(),
            "no key for https://api.example.com/v1: the variable `MY_KEY` is not set"
        );
        assert!(client("http://localhost:11434/v1", None).is_ok());
    }

    #[test]
    fn what_cannot_be_a_key_is_not_repeated() {
        for value in ["sk-se\ncret", "sk-s\u{e9}cret", "two words"] {
            let failure = client("https://api.example.com", Some(value)).unwrap_err();
            assert!(failure.message.contains("`MY_KEY`"), "{failure}");
            assert!(!format!("{failure:?}").contains("cret"), "{failure:?}");
        }
        let client = client("https://api.example.com", Some("sk-secret\n")).unwrap();
        assert!(!format!("{client:?}").contains("secret"), "{client:?}");
    }

    #[test]
    fn an_error_that_repeats_the_key_loses_it() {
        let client = client("https://api.example.com", Some("sk-secret-1")).unwrap();
        let said =
            serde_json::json!({"error": {"message": "no: sk-secret-1", "code": "sk-secret-1"}});
        let failure = client.without_key(ApiFailure::refused(Some(401), "S", &said, ""));
        assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
    }
}

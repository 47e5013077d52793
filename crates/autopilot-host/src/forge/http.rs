//! One JSON request at a time to a forge's API: a deadline, a limit on the answer, no redirects,
//! and a token that appears in no message.

use super::address::ForgeKind;
use super::error::{AnswerError, ForgeError};
use crate::web::{self, NoAnswer};
use serde_json::Value;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use ureq::http::{HeaderMap, HeaderValue, Request};

pub(super) use ureq::http::Method as Verb;

/// The largest answer. A list of pull requests with long texts stays far below it.
pub(super) const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The longest message of a forge about a refusal that is repeated to a person.
const SAID_CHARS_MAX: usize = 400;
/// How often it is checked whether the answer is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A token, the header it is sent in, and the variable it came from.
pub(super) struct Token {
    pub header: &'static str,
    pub value: HeaderValue,
    pub variable: &'static str,
}

/// An HTTP client for the API of one forge.
pub(super) struct Http<'a> {
    pub agent: ureq::Agent,
    pub kind: ForgeKind,
    /// The base address, without a slash at its end.
    pub api: String,
    /// The name of the forge in messages.
    pub whom: String,
    pub token: Token,
    pub unwanted: &'a dyn Fn() -> bool,
}

struct HttpAnswer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Http<'_> {
    /// Sends a request and reads the JSON of the answer. `asked` completes "cannot …".
    pub(super) fn ask(
        &self,
        asked: &str,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ForgeError> {
        let answer = self.send(asked, verb, path, body)?;
        if !(200..300).contains(&answer.status) {
            return Err(self.refusal(asked, &answer));
        }
        serde_json::from_str(&answer.body).map_err(|error| self.unreadable(asked, error.into()))
    }

    pub(super) fn unreadable(&self, asked: &str, source: AnswerError) -> ForgeError {
        ForgeError::Unreadable { asked: asked.to_owned(), whom: self.whom.clone(), source }
    }

    /// Sends the request on a separate thread, because it can't be cancelled: a caller who does not
    /// want it any more leaves it to its deadline.
    fn send(
        &self,
        asked: &str,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
    ) -> Result<HttpAnswer, ForgeError> {
        let unreachable = |source: NoAnswer| {
            let (asked, whom) = (asked.to_owned(), self.whom.clone());
            ForgeError::Unreachable { asked, whom, source }
        };
        let failed = |error: ureq::Error| unreachable(error.into());
        let request = self.request(verb, path, body).map_err(|error| failed(error.into()))?;
        let agent = self.agent.clone();
        let (tell, told) = channel();
        std::thread::Builder::new()
            .name("forge".to_owned())
            .spawn(move || {
                // If nobody listens any more, nobody wants to know.
                let _unheard = tell.send(exchange(&agent, request));
            })
            .map_err(|error| failed(error.into()))?;
        loop {
            match told.recv_timeout(LOOK_EVERY) {
                Ok(answer) => return answer.map_err(failed),
                Err(RecvTimeoutError::Timeout) if (self.unwanted)() => {
                    return Err(ForgeError::Unwanted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(unreachable(NoAnswer::Dropped));
                }
            }
        }
    }

    fn request(
        &self,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Vec<u8>>, ureq::http::Error> {
        let mut request = Request::builder()
            .method(verb)
            .uri(format!("{}{path}", self.api))
            .header(self.token.header, self.token.value.clone())
            .header("Accept", accepted(self.kind));
        if self.kind == ForgeKind::Github {
            request = request.header("X-GitHub-Api-Version", "2022-11-28");
        }
        if body.is_some() {
            request = request.header("Content-Type", "application/json");
        }
        request.body(body.map(|value| value.to_string().into_bytes()).unwrap_or_default())
    }

    fn refusal(&self, asked: &str, answer: &HttpAnswer) -> ForgeError {
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
        let mut said = said(&answer.body);
        if (300..400).contains(&answer.status)
            && let Some(place) = header("location")
        {
            said = format!("moved to {}", one_line(place));
        }
        ForgeError::Refused {
            asked: asked.to_owned(),
            whom: self.whom.clone(),
            kind: self.kind,
            status: answer.status,
            said,
            token: self.token.variable,
            pause: header("retry-after").and_then(|n| n.parse().ok()).map(Duration::from_secs),
        }
    }
}

fn accepted(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github => "application/vnd.github+json",
        ForgeKind::Gitlab | ForgeKind::Gitea => "application/json",
    }
}

fn exchange(agent: &ureq::Agent, request: Request<Vec<u8>>) -> Result<HttpAnswer, ureq::Error> {
    // ureq sends `Content-Length: 0` with an empty body, which a GET must not have.
    let mut response = if request.body().is_empty() {
        agent.run(request.map(|_| ()))?
    } else {
        agent.run(request)?
    };
    let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).lossy_utf8(true);
    let body = answer.read_to_string()?;
    let (parts, _) = response.into_parts();
    Ok(HttpAnswer { status: parts.status.as_u16(), headers: parts.headers, body })
}

/// Returns a forge's message about a refusal: every forge has its own form for it.
fn said(body: &str) -> String {
    let mut words = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        for key in ["message", "error", "error_description", "errors"] {
            collect(&value[key], &mut words);
        }
    }
    if words.is_empty() && !body.trim_start().starts_with(['<', '{', '[']) {
        words.push(body.to_owned());
    }
    words.dedup();
    one_line(&words.join("; "))
}

fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(members) => match members.get("message") {
            Some(message) => collect(message, words),
            None => {
                for (name, value) in members {
                    let mut inner = Vec::new();
                    collect(value, &mut inner);
                    words.extend(inner.into_iter().map(|text| format!("{name}: {text}")));
                }
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a forge's words as one short line of a message.
pub(super) fn one_line(text: &str) -> String {
    web::one_line(text, SAID_CHARS_MAX)
}

/// Returns an address that a person may click on and a terminal may show.
pub(super) fn web_address(value: &Value) -> Option<String> {
    let url = value.as_str()?;
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && url.len() <= 2_000;
    (plain && (url.starts_with("https://") || url.starts_with("http://"))).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_forge_says_is_found_in_each_form() {
        let cases = [
            (
                r#"{"message":"Validation Failed","errors":[{"resource":"PullRequest","message":"No commits between a and b"}]}"#,
                "Validation Failed; No commits between a and b",
            ),
            (
                r#"{"message":["Another open merge request already exists"]}"#,
                "Another open merge request already exists",
            ),
            (r#"{"message":{"title":["is too long"]}}"#, "title: is too long"),
            (
                r#"{"error":"invalid_token","error_description":"Token was revoked."}"#,
                "invalid_token; Token was revoked.",
            ),
            ("<html>Bad gateway</html>", ""),
            ("plain\nwords\x1b[2J", "plain words [2J"),
        ];
        for (body, wanted) in cases {
            assert_eq!(said(body), wanted, "{body}");
        }
        assert_eq!(said(&"x".repeat(9_000)).chars().count(), SAID_CHARS_MAX + 1);
    }

    #[test]
    fn only_an_address_is_taken_for_one() {
        let url = |text: &str| web_address(&Value::from(text));
        assert_eq!(
            url("https://github.com/a/b/pull/1").as_deref(),
            Some("https://github.com/a/b/pull/1")
        );
        assert_eq!(url("javascript:alert(1)"), None);
        assert_eq!(url("https://a\x1b[2J"), None);
    }
}

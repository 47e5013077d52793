//! The reason why there is no answer, in the fields of the server and in words for people.

use serde_json::Value;

/// The longest message of a server that is repeated to a person.
const SAID_CHARS_MAX: usize = 600;

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The server's word for the type of the error.
    pub error_type: Option<String>,
    /// The server's word for the error itself.
    pub code: Option<String>,
    /// The reason in words for a person.
    pub message: String,
    /// How long the server wants to be left alone.
    pub retry_after: Option<std::time::Duration>,
    /// The time until which the server wants to be left alone, in seconds since 1970.
    pub until_unix: Option<i64>,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no key, or its value cannot be one.
    Key,
    /// The server answered with an error.
    Refused,
    /// The connection could not be made or broke.
    Lost,
    /// The server sent nothing for too long.
    Silent,
    /// The answer is longer than the limits allow.
    TooLong,
    /// The answer does not have the form of the API.
    Unreadable,
    /// The model stopped at its own limit.
    OutputLimit,
    /// The model refused to answer.
    Refusal,
    /// The conversation cannot be continued.
    Session,
}

/// The words of servers for errors that may be over in a moment, where no status tells it.
const PASSING: &[&str] = &[
    "server_error",
    "internal_error",
    "internal_server_error",
    "service_unavailable",
    "service_unavailable_error",
    "overloaded",
    "overloaded_error",
    "api_error",
    "timeout",
    "timeout_error",
    "rate_limit_exceeded",
    "rate_limit_error",
];

/// The words of servers for errors that only a person can end.
const USED_UP: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "usage_limit_reached",
];

impl ApiFailure {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> ApiFailure {
        ApiFailure {
            kind,
            status: None,
            error_type: None,
            code: None,
            message: message.into(),
            retry_after: None,
            until_unix: None,
        }
    }

    /// Makes a failure from a server's error: every server has its own form for it.
    pub(super) fn refused(
        status: Option<u16>,
        whom: &str,
        said: &Value,
        plain: &str,
    ) -> ApiFailure {
        let said = said.get(0).unwrap_or(said);
        let error = if said["error"].is_null() { said } else { &said["error"] };
        let word = |key: &str| error[key].as_str().map(str::to_owned);
        let mut words = Vec::new();
        for value in [error, &error["message"], &said["message"], &said["detail"]] {
            collect(value, &mut words);
        }
        words.dedup();
        let mut text = one_line(&words.join("; "));
        if text.is_empty() && !plain.trim_start().starts_with(['<', '{', '[']) {
            text = one_line(plain);
        }
        let status_word = status.map(|status| format!(" answered {status}")).unwrap_or_default();
        let says = if text.is_empty() { String::new() } else { format!(": {text}") };
        let by = if status.is_some() { "" } else { " reported an error" };
        ApiFailure {
            status,
            error_type: word("type").or_else(|| word("status")),
            code: word("code"),
            ..ApiFailure::new(FailureKind::Refused, format!("{whom}{status_word}{by}{says}"))
        }
    }

    /// Returns whether asking again may help.
    pub(super) fn may_pass(&self) -> bool {
        match self.kind {
            FailureKind::Lost | FailureKind::Silent => true,
            FailureKind::Refused if self.has_word(USED_UP) => false,
            FailureKind::Refused => match self.status {
                Some(501) => false,
                Some(408 | 409 | 429 | 500..=599) => true,
                Some(200..=299) | None => self.has_word(PASSING),
                Some(_) => false,
            },
            FailureKind::Key
            | FailureKind::TooLong
            | FailureKind::Unreadable
            | FailureKind::OutputLimit
            | FailureKind::Refusal
            | FailureKind::Session => false,
        }
    }

    pub(super) fn is_rate_limit(&self) -> bool {
        self.status == Some(429)
            || self.has_word(USED_UP)
            || self.has_word(&["rate_limit_exceeded", "rate_limit_error"])
    }

    /// Returns whether the server's code or type is one of these words.
    pub(super) fn has_word(&self, words: &[&str]) -> bool {
        [&self.code, &self.error_type]
            .into_iter()
            .flatten()
            .any(|word| words.contains(&word.as_str()))
    }

    /// Returns whether the message contains one of these words.
    pub(super) fn mentions(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words.iter().any(|word| message.contains(word))
    }
}

fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => {
            // FastAPI: one object for each parameter that is wrong.
            for item in items {
                let place = item["loc"].as_array().into_iter().flatten();
                let place: Vec<&str> = place.filter_map(Value::as_str).collect();
                let text = item["msg"].as_str().or_else(|| item.as_str()).unwrap_or_default();
                words.push(format!("{} {text}", place.join(".")).trim().to_owned());
            }
        }
        Value::Object(members) => {
            if let Some(param) = members.get("param").and_then(Value::as_str) {
                words.push(format!("`{param}`"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a server's words as one short line of a message.
pub(super) fn one_line(text: &str) -> String {
    crate::web::one_line(text, SAID_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_of_an_error_is_understood() {
        let table = [
            (
                json!({"error": {"message": "no such key", "type": "invalid_request_error", "code": "invalid_api_key", "param": null}}),
                "S answered 400: no such key | invalid_request_error | invalid_api_key",
            ),
            (
                json!({"error": {"message": "bad", "param": "text.format", "type": "x"}}),
                "S answered 400: `text.format`; bad | x | ",
            ),
            (json!({"error": "plain words"}), "S answered 400: plain words |  | "),
            (json!({"detail": "Not Found"}), "S answered 400: Not Found |  | "),
            (
                json!({"detail": [{"loc": ["body", "stream_options"], "msg": "extra", "type": "t"}]}),
                "S answered 400: body.stream_options extra |  | ",
            ),
            (
                json!([{"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}]),
                "S answered 400: slow | RESOURCE_EXHAUSTED | ",
            ),
            (json!(null), "S answered 400: said as text |  | "),
        ];
        for (said, wanted) in table {
            let failure = ApiFailure::refused(Some(400), "S", &said, "said as\ntext");
            let words = [&failure.error_type, &failure.code].map(|w| w.clone().unwrap_or_default());
            assert_eq!(format!("{failure} | {} | {}", words[0], words[1]), wanted);
        }
        let page = ApiFailure::refused(Some(502), "S", &Value::Null, "<html>Bad gateway</html>");
        assert_eq!(page.to_string(), "S answered 502");
        let long = ApiFailure::refused(None, "S", &json!({"error": "x".repeat(9_000)}), "");
        assert!(long.message.chars().count() < SAID_CHARS_MAX + 40, "{long}");
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let refused = |status: Option<u16>, code: &str| ApiFailure {
            status,
            code: Some(code.to_owned()),
            ..ApiFailure::new(FailureKind::Refused, "")
        };
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(refused(Some(status), "").may_pass(), "{status}");
        }
        for status in [301, 400, 401, 403, 404, 405, 413, 422, 501] {
            assert!(!refused(Some(status), "").may_pass(), "{status}");
        }
        assert!(!refused(Some(429), "insufficient_quota").may_pass());
        assert!(refused(None, "server_error").may_pass());
        assert!(!refused(None, "invalid_prompt").may_pass());
        assert!(ApiFailure::new(FailureKind::Lost, "").may_pass());
        assert!(!ApiFailure::new(FailureKind::TooLong, "").may_pass());
    }
}

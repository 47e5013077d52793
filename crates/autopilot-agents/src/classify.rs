//! Sorts an agent's error into the kind of trouble that it reports.
//!
//! Only the error channels of an agent are read here, never what its model says: a review that
//! discusses rate limits must not pause the account. Structured fields come before text.

use crate::ending::{AgentOutcome, Cause};

/// The kinds of trouble that a vendor reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentTrouble {
    /// The login or the key was rejected.
    Auth,
    /// A usage or billing limit was reached.
    Quota,
    /// The vendor's service cannot be reached or is overloaded.
    Outage,
    /// A trouble that spends the try.
    Broke(Cause),
}

/// The parts of an error that the agent reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorFacts<'a> {
    /// The vendor's word for the error (`authentication_error`, `usage_limit_reached`, …).
    pub word: Option<&'a str>,
    /// The HTTP status of the vendor's reply.
    pub http_status: Option<u64>,
    /// The message of the error.
    pub text: &'a str,
}

impl AgentTrouble {
    /// Returns the outcome of a launch that ended in this trouble. `until_unix` is the time at
    /// which a quota resets.
    pub fn outcome(self, why: String, until_unix: Option<i64>) -> AgentOutcome {
        match self {
            AgentTrouble::Auth => AgentOutcome::Auth { why },
            AgentTrouble::Quota => AgentOutcome::Quota { until_unix, why },
            AgentTrouble::Outage => AgentOutcome::Outage { why },
            AgentTrouble::Broke(cause) => AgentOutcome::Broke { cause, why },
        }
    }
}

/// Returns the kind of trouble that an error reports; `None` if nothing in it is known.
pub fn classify(facts: ErrorFacts<'_>) -> Option<AgentTrouble> {
    let by_word = facts.word.and_then(by_word);
    // A rejected request names its reason only in the text.
    by_word
        .or_else(|| facts.http_status.and_then(by_status))
        .or_else(|| by_text(facts.text))
        .or_else(|| {
            facts
                .http_status
                .filter(|status| *status == 400)
                .map(|_| AgentTrouble::Broke(Cause::Request))
        })
}

fn by_word(word: &str) -> Option<AgentTrouble> {
    match word {
        "authentication_error"
        | "authentication_failed"
        | "permission_error"
        | "invalid_api_key"
        | "account_deactivated" => Some(AgentTrouble::Auth),
        "usage_limit_reached"
        | "rate_limit_error"
        | "rate_limit"
        | "rate_limit_exceeded"
        | "billing_error"
        | "billing_not_active"
        | "billing_hard_limit_reached"
        | "insufficient_quota" => Some(AgentTrouble::Quota),
        "overloaded_error" | "overloaded" | "api_error" | "timeout_error" | "server_error" => {
            Some(AgentTrouble::Outage)
        }
        "not_found_error" | "model_not_found" => Some(AgentTrouble::Broke(Cause::Model)),
        "max_output_tokens" => Some(AgentTrouble::Broke(Cause::OutputLimit)),
        "prompt_too_long" | "context_length_exceeded" | "request_too_large" => {
            Some(AgentTrouble::Broke(Cause::Context))
        }
        "previous_response_not_found" => Some(AgentTrouble::Broke(Cause::Session)),
        "refusal" => Some(AgentTrouble::Broke(Cause::Refusal)),
        _ => None,
    }
}

fn by_status(status: u64) -> Option<AgentTrouble> {
    match status {
        401 | 403 => Some(AgentTrouble::Auth),
        402 | 429 => Some(AgentTrouble::Quota),
        404 => Some(AgentTrouble::Broke(Cause::Model)),
        413 => Some(AgentTrouble::Broke(Cause::Context)),
        408 | 500..=599 => Some(AgentTrouble::Outage),
        _ => None,
    }
}

/// The phrases of the vendors' programs, the more specific kinds first: "model is at capacity" is an
/// outage although it names a model, and a usage limit may mention the log-in page.
const PHRASES: &[(AgentTrouble, &str)] = &[
    (AgentTrouble::Broke(Cause::Session), "no conversation found with session id"),
    (AgentTrouble::Broke(Cause::Session), "--resume requires a valid session id"),
    (AgentTrouble::Broke(Cause::Session), "no rollout found for thread id"),
    (AgentTrouble::Broke(Cause::Context), "context window"),
    (AgentTrouble::Broke(Cause::Context), "prompt is too long"),
    (AgentTrouble::Broke(Cause::Context), "context_length_exceeded"),
    (AgentTrouble::Broke(Cause::Context), "maximum context length"),
    (AgentTrouble::Quota, "usage limit"),
    (AgentTrouble::Quota, "quota exceeded"),
    (AgentTrouble::Quota, "insufficient_quota"),
    (AgentTrouble::Quota, "exceeded your current quota"),
    (AgentTrouble::Quota, "credit balance is too low"),
    (AgentTrouble::Quota, "429 too many requests"),
    (AgentTrouble::Quota, "rate limit"),
    (AgentTrouble::Quota, "usage_limit_reached"),
    (AgentTrouble::Quota, "-hour limit"),
    (AgentTrouble::Quota, "weekly limit"),
    (AgentTrouble::Auth, "401 unauthorized"),
    (AgentTrouble::Auth, "403 forbidden"),
    (AgentTrouble::Auth, "not logged in"),
    (AgentTrouble::Auth, "please run /login"),
    (AgentTrouble::Auth, "invalid api key"),
    (AgentTrouble::Auth, "incorrect api key"),
    (AgentTrouble::Auth, "failed to authenticate"),
    (AgentTrouble::Auth, "authentication_error"),
    (AgentTrouble::Auth, "missing environment variable"),
    (AgentTrouble::Auth, "oauth token has expired"),
    (AgentTrouble::Outage, "at capacity"),
    (AgentTrouble::Outage, "high demand"),
    (AgentTrouble::Outage, "overloaded"),
    (AgentTrouble::Outage, "stream disconnected"),
    (AgentTrouble::Outage, "waiting for network"),
    (AgentTrouble::Outage, "connection refused"),
    (AgentTrouble::Outage, "connection failed"),
    (AgentTrouble::Outage, "connection error"),
    (AgentTrouble::Outage, "connection reset"),
    (AgentTrouble::Outage, "connection to the api was lost"),
    (AgentTrouble::Outage, "empty or malformed response"),
    (AgentTrouble::Outage, "error sending request"),
    (AgentTrouble::Outage, "lookup address"),
    (AgentTrouble::Outage, "internal server error"),
    (AgentTrouble::Outage, "bad gateway"),
    (AgentTrouble::Outage, "service unavailable"),
    (AgentTrouble::Outage, "gateway timeout"),
    (AgentTrouble::Outage, "unable to connect"),
    (AgentTrouble::Broke(Cause::Model), "does not exist or you do not have access"),
    (AgentTrouble::Broke(Cause::Model), "issue with the selected model"),
    (AgentTrouble::Broke(Cause::Model), "unrecognized_model"),
    (AgentTrouble::Broke(Cause::Model), "model_not_found"),
    (AgentTrouble::Broke(Cause::Model), "model is not supported"),
    (AgentTrouble::Broke(Cause::OutputLimit), "output token maximum"),
    (AgentTrouble::Broke(Cause::Refusal), "safeguards flagged"),
    (AgentTrouble::Broke(Cause::Refusal), "violate our usage polic"),
    (AgentTrouble::Broke(Cause::Request), "invalid_request_error"),
    (AgentTrouble::Broke(Cause::Request), "400 bad request"),
];

fn by_text(text: &str) -> Option<AgentTrouble> {
    let text = text.replace('’', "'").to_lowercase();
    PHRASES.iter().find(|(_, phrase)| text.contains(phrase)).map(|(trouble, _)| *trouble)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_fields_come_before_the_text() {
        let facts = ErrorFacts {
            word: Some("usage_limit_reached"),
            http_status: Some(500),
            text: "401 Unauthorized",
        };
        assert_eq!(classify(facts), Some(AgentTrouble::Quota));
        assert_eq!(classify(ErrorFacts { word: None, ..facts }), Some(AgentTrouble::Outage));
        assert_eq!(
            classify(ErrorFacts { word: None, http_status: None, ..facts }),
            Some(AgentTrouble::Auth)
        );
    }

    #[test]
    fn the_texts_of_the_programs_are_known() {
        let table = [
            ("unexpected status 401 Unauthorized: no, url: http://x", AgentTrouble::Auth),
            ("Missing environment variable: `SOME_KEY`.", AgentTrouble::Auth),
            ("Not logged in · Please run /login", AgentTrouble::Auth),
            ("exceeded retry limit, last status: 429 Too Many Requests", AgentTrouble::Quota),
            ("Quota exceeded. Check your plan and billing details.", AgentTrouble::Quota),
            ("You’ve hit your usage limit. Or try again at 9:32 PM.", AgentTrouble::Quota),
            ("You've hit your 5-hour limit · resets 9:26pm (UTC)", AgentTrouble::Quota),
            ("Credit balance is too low", AgentTrouble::Quota),
            ("We’re currently experiencing high demand, which may", AgentTrouble::Outage),
            ("Selected model is at capacity. Please try another.", AgentTrouble::Outage),
            ("stream disconnected before completion: x", AgentTrouble::Outage),
            ("Reconnecting... waiting for network (Connection failed: x)", AgentTrouble::Outage),
            (
                "The model `x` does not exist or you do not have access to it.",
                AgentTrouble::Broke(Cause::Model),
            ),
            ("There's an issue with the selected model (x).", AgentTrouble::Broke(Cause::Model)),
            (
                "Codex ran out of room in the model's context window.",
                AgentTrouble::Broke(Cause::Context),
            ),
            (
                "Prompt is too long · the request is ~250000 tokens",
                AgentTrouble::Broke(Cause::Context),
            ),
            ("Error: no rollout found for thread id 0", AgentTrouble::Broke(Cause::Session)),
            ("No conversation found with session ID: 0", AgentTrouble::Broke(Cause::Session)),
            (
                "Error: --resume requires a valid session ID or session title",
                AgentTrouble::Broke(Cause::Session),
            ),
            ("API Error: Connection to the API was lost (ECONNRESET).", AgentTrouble::Outage),
            (
                "API Error: API returned an empty or malformed response (HTTP 200)",
                AgentTrouble::Outage,
            ),
            (r#"{"error":{"type":"invalid_request_error"}}"#, AgentTrouble::Broke(Cause::Request)),
        ];
        for (text, trouble) in table {
            assert_eq!(
                classify(ErrorFacts { text, ..ErrorFacts::default() }),
                Some(trouble),
                "{text}"
            );
        }
        assert_eq!(classify(ErrorFacts { text: "something new", ..ErrorFacts::default() }), None);
    }

    #[test]
    fn a_rejected_request_is_read_by_its_text_first() {
        let rejected = |text| {
            classify(ErrorFacts {
                word: Some("invalid_request_error"),
                http_status: Some(400),
                text,
            })
        };
        assert_eq!(rejected("Credit balance is too low"), Some(AgentTrouble::Quota));
        assert_eq!(rejected("tools.3: bad name"), Some(AgentTrouble::Broke(Cause::Request)));
    }
}

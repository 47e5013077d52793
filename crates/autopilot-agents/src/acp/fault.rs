//! The judgement on an error reply: by its code where the protocol gives it a meaning, else by its
//! words.

use serde_json::Value;

use super::rpc::{self, RpcError};
use crate::classify::{AgentTrouble, ErrorFacts, classify};
use crate::ending::{AgentOutcome, Cause};
use crate::event;

/// The request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Start,
    Session,
    Prompt,
}

pub(super) fn outcome(at: At, error: &RpcError) -> AgentOutcome {
    let why = event::text(&said(error));
    let facts = ErrorFacts {
        word: error.data["errorName"].as_str().and_then(word),
        // Some agents give the status of the service as the code.
        http_status: u64::try_from(error.code).ok().filter(|code| (400..600).contains(code)),
        text: &why,
    };
    let trouble = match (error.code, classify(facts)) {
        (rpc::RESOURCE_NOT_FOUND, _) => Some(AgentTrouble::Broke(Cause::Session)),
        (rpc::AUTH_REQUIRED, None | Some(AgentTrouble::Broke(Cause::Request))) => {
            Some(AgentTrouble::Auth)
        }
        (_, None) if is_lost_session(&why) => Some(AgentTrouble::Broke(Cause::Session)),
        (_, trouble) => trouble,
    };
    if let Some(trouble) = trouble {
        return trouble.outcome(why, None);
    }
    let cause = match (at, error.code) {
        (At::Start, _) => Cause::Startup,
        // Not every agent has a code for a session that is gone.
        (At::Session, _) => Cause::Session,
        (At::Prompt, rpc::INVALID_PARAMS | rpc::METHOD_NOT_FOUND) => Cause::Request,
        (At::Prompt, _) => Cause::Other,
    };
    AgentOutcome::broke(cause, why)
}

/// The message of an error, with the details from its data.
pub(super) fn said(error: &RpcError) -> String {
    let data = &error.data;
    let more = ["details", "message", "error", "reason"].iter().find_map(|key| data[*key].as_str());
    let more = more.or(data.as_str()).filter(|more| !error.message.contains(more));
    match (error.message.is_empty(), more) {
        (false, None) => error.message.clone(),
        (false, Some(more)) => format!("{}: {more}", error.message),
        (true, Some(more)) => more.to_owned(),
        (true, None) => {
            format!("error {} {}", error.code, if data.is_null() { &Value::Null } else { data })
        }
    }
}

fn is_lost_session(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("session not found") || text.contains("unknown session")
}

/// Translates the names of one agent's errors into the words of the vendors.
fn word(name: &str) -> Option<&'static str> {
    match name {
        "ProviderAuthError" => Some("authentication_error"),
        "ProviderModelNotFoundError" => Some("model_not_found"),
        "ContextOverflowError" => Some("context_length_exceeded"),
        "MessageOutputLengthError" => Some("max_output_tokens"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(at: At, code: i64, message: &str, data: Value) -> AgentOutcome {
        outcome(at, &RpcError { code, message: message.into(), data })
    }

    #[test]
    fn codes_of_the_protocol_come_first() {
        let auth = judged(At::Prompt, -32000, "Authentication required", Value::Null);
        assert_eq!(auth, AgentOutcome::Auth { why: "Authentication required".into() });
        let gone = judged(At::Prompt, -32002, "Resource not found", json!({ "sessionId": "x" }));
        assert_eq!(gone, AgentOutcome::broke(Cause::Session, "Resource not found"));
        let status = judged(At::Prompt, 429, "Too much", Value::Null);
        assert_eq!(status, AgentOutcome::Quota { until_unix: None, why: "Too much".into() });
    }

    #[test]
    fn without_a_code_the_words_tell() {
        let internal = |text: &str| judged(At::Prompt, -32603, text, Value::Null);
        assert!(matches!(
            internal("Internal error: Incorrect API key provided"),
            AgentOutcome::Auth { .. }
        ));
        assert!(matches!(internal("Internal error: rate limit"), AgentOutcome::Quota { .. }));
        assert!(matches!(
            internal("Internal error: Unable to connect"),
            AgentOutcome::Outage { .. }
        ));
        assert_eq!(internal("Internal error"), AgentOutcome::broke(Cause::Other, "Internal error"));
        let details =
            judged(At::Prompt, -32603, "Internal error", json!({ "details": "Overloaded" }));
        assert_eq!(details, AgentOutcome::Outage { why: "Internal error: Overloaded".into() });
        let named = judged(At::Prompt, -32603, "x", json!({ "errorName": "ProviderAuthError" }));
        assert_eq!(named, AgentOutcome::Auth { why: "x".into() });
        let busy = judged(At::Prompt, -32000, "429 Too Many Requests", Value::Null);
        assert!(matches!(busy, AgentOutcome::Quota { .. }));
    }

    #[test]
    fn a_session_that_cannot_be_loaded_is_lost() {
        let lost = judged(At::Session, -32603, "Internal error: service failure", Value::Null);
        assert_eq!(lost, AgentOutcome::broke(Cause::Session, "Internal error: service failure"));
        let gone = judged(At::Prompt, -32602, "Invalid params: session not found: x", Value::Null);
        assert!(matches!(gone, AgentOutcome::Broke { cause: Cause::Session, .. }));
        let begin = judged(At::Start, -32603, "no config", Value::Null);
        assert_eq!(begin, AgentOutcome::broke(Cause::Startup, "no config"));
    }
}

//! Decodes the lines of the process into events, and judges the launch at its end.

use super::said::{ApiFailed, ApiSaid, FailedBy};
use crate::agent::OutputStream;
use crate::classify::{AgentTrouble, ErrorFacts, classify};
use crate::conversation::{Conversation, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts};
use crate::event::{AgentEvent, AgentUsage, RateStatus, Scope};
use crate::jsonl::JsonLines;

#[derive(Debug, Default)]
pub(crate) struct OpenAiConversation {
    answer: String,
    session: Option<String>,
    usage: Option<AgentUsage>,
    failed: Option<AgentOutcome>,
    lines: JsonLines,
}

impl OpenAiConversation {
    fn said(&mut self, said: ApiSaid) -> Vec<AgentEvent> {
        match said {
            ApiSaid::Text { text } => {
                self.answer.push_str(&text);
                vec![AgentEvent::text(&text)]
            }
            ApiSaid::Thought { text } => vec![AgentEvent::thought(&text)],
            ApiSaid::Anew => {
                self.answer.clear();
                Vec::new()
            }
            ApiSaid::Usage { tokens } => {
                let usage = AgentUsage::new(Scope::Run, tokens, None);
                self.usage = Some(usage.clone());
                vec![AgentEvent::Usage(usage)]
            }
            ApiSaid::Retry { number, tries_max, wait_ms, why } => {
                let text = format!("retrying in {wait_ms} ms (try {number} of {tries_max}): {why}");
                vec![AgentEvent::notice(&text)]
            }
            ApiSaid::Limit { until_unix } => vec![AgentEvent::RateLimit {
                status: RateStatus::Rejected,
                resets_at_unix: until_unix,
            }],
            ApiSaid::Notice { text } => vec![AgentEvent::notice(&text)],
            ApiSaid::Done { session, model: _ } => {
                self.session = Some(session.clone());
                self.answer = without_thoughts(std::mem::take(&mut self.answer));
                let result = AgentEvent::result(true, &self.answer);
                vec![AgentEvent::Session { id: session }, result]
            }
            ApiSaid::Failed(failed) => {
                let result = AgentEvent::result(false, &failed.message);
                self.failed = Some(judge(failed));
                vec![result]
            }
        }
    }

    fn outcome(&self, exit: &ExitFacts) -> AgentOutcome {
        match (&self.failed, &self.session) {
            (Some(outcome), _) => outcome.clone(),
            (None, Some(_)) if self.answer.trim().is_empty() => {
                AgentOutcome::broke(Cause::Empty, "the model's answer is empty")
            }
            (None, Some(_)) => self.lines.said_success(exit),
            (None, None) => self.lines.silent_end(exit, true),
        }
    }
}

impl Conversation for OpenAiConversation {
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        let said = self.lines.read(stream, line, truncated);
        said.map_or_else(|shown| shown, |said| self.said(said)).into()
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let outcome = self.outcome(&exit);
        AgentEnding {
            answer: self.answer,
            session: self.session,
            usage: self.usage,
            odd: self.lines.odd,
            ..AgentEnding::new(outcome)
        }
    }
}

/// The outcome of a failed request. The server's words for the error count first, then its status,
/// then its message.
fn judge(failed: ApiFailed) -> AgentOutcome {
    let (why, until) = (failed.message.clone(), failed.until_unix);
    match failed.by {
        FailedBy::Key => AgentOutcome::Auth { why },
        FailedBy::Setting => AgentOutcome::broke(Cause::Startup, why),
        FailedBy::Connection | FailedBy::Silence => AgentOutcome::Outage { why },
        FailedBy::Length | FailedBy::OutputLimit => AgentOutcome::broke(Cause::OutputLimit, why),
        FailedBy::Nonsense => AgentOutcome::broke(Cause::Other, why),
        FailedBy::Refusal => AgentOutcome::broke(Cause::Refusal, why),
        FailedBy::Session => AgentOutcome::broke(Cause::Session, why),
        FailedBy::Server => match trouble(&failed) {
            Some(trouble) => trouble.outcome(why, until),
            None => AgentOutcome::broke(Cause::Request, why),
        },
    }
}

fn trouble(failed: &ApiFailed) -> Option<AgentTrouble> {
    // The code tells more than the type.
    let words = [failed.code.as_deref(), failed.error_type.as_deref()];
    let by_word = words
        .into_iter()
        .flatten()
        .find_map(|word| classify(ErrorFacts { word: Some(word), ..ErrorFacts::default() }));
    let http_status = failed.status.map(u64::from);
    by_word.or_else(|| classify(ErrorFacts { word: None, http_status, text: &failed.message }))
}

/// Removes the reasoning that some local servers leave in front of the answer.
fn without_thoughts(answer: String) -> String {
    let thought = answer.trim_start().strip_prefix("<think>");
    match thought.and_then(|rest| rest.split_once("</think>")) {
        Some((_, rest)) => rest.trim_start().to_owned(),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OddLines, TokenCount};

    fn run(words: &[ApiSaid], exit: ExitFacts) -> (AgentEnding, Vec<AgentEvent>) {
        let mut talk = Box::new(OpenAiConversation::default());
        let mut events = Vec::new();
        for word in words {
            let line = word.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(&serde_json::from_str::<ApiSaid>(&line).unwrap(), word);
            events.extend(talk.line(OutputStream::Out, &line, false).events);
        }
        assert_eq!(talk.lines.odd, OddLines::default());
        (talk.finish(exit), events)
    }

    fn text(text: &str) -> ApiSaid {
        ApiSaid::Text { text: text.into() }
    }

    fn done() -> ApiSaid {
        ApiSaid::Done { session: "resp_1".into(), model: None }
    }

    #[test]
    fn an_answer_is_put_together_from_its_pieces() {
        let tokens = TokenCount { input: 5, output: 2, cached: 1 };
        let retry = ApiSaid::Retry { number: 2, tries_max: 5, wait_ms: 500, why: "away".into() };
        let words = [
            text("lost"),
            ApiSaid::Anew,
            retry,
            text("{\n"),
            text("}"),
            ApiSaid::Usage { tokens },
            done(),
        ];
        let (ending, events) = run(&words, ExitFacts::code(0));
        assert_eq!((ending.outcome, ending.answer.as_str()), (AgentOutcome::Success, "{\n}"));
        assert_eq!(ending.session.as_deref(), Some("resp_1"));
        assert_eq!(ending.usage.unwrap().of_run(None).tokens, tokens);
        let notice = AgentEvent::Notice { text: "retrying in 500 ms (try 2 of 5): away".into() };
        assert!(events.contains(&notice), "{events:?}");
        assert_eq!(events.last(), Some(&AgentEvent::Result { ok: true, text: "{\n}".into() }));
    }

    #[test]
    fn only_a_complete_answer_of_a_process_that_ended_well_is_one() {
        let (ending, _) = run(&[text("half")], ExitFacts::code(0));
        assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Empty, .. }));
        let (ending, _) = run(&[text("half")], ExitFacts::signal(9));
        assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Crash, .. }));
        let (ending, _) = run(&[text("half")], ExitFacts::signal(15));
        assert_eq!(ending.outcome, AgentOutcome::Interrupted);
        let (ending, _) = run(&[text("all"), done()], ExitFacts::code(3));
        assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Crash, .. }));
        let (ending, _) = run(&[text(" \n"), done()], ExitFacts::code(0));
        assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Empty, .. }));
        let stuck = ExitFacts { stuck: true, ..ExitFacts::default() };
        let (ending, _) = run(&[], stuck);
        assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Stuck, .. }));
    }

    #[test]
    fn thoughts_in_front_of_an_answer_are_no_part_of_it() {
        let (ending, _) =
            run(&[text("<think>\nhm {}\n</think>\n\n# Plan"), done()], ExitFacts::code(0));
        assert_eq!(ending.answer, "# Plan");
        let (ending, _) = run(&[text("a <think> b"), done()], ExitFacts::code(0));
        assert_eq!(ending.answer, "a <think> b");
    }

    fn outcome(by: FailedBy, status: u16, error_type: &str, code: &str) -> String {
        let word = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let failed = ApiFailed {
            by,
            status: Some(status).filter(|status| *status > 0),
            error_type: word(error_type),
            code: word(code),
            message: "said".into(),
            retry_after_ms: None,
            until_unix: Some(9),
        };
        let (ending, events) = run(&[ApiSaid::Failed(failed)], ExitFacts::code(1));
        assert_eq!(events, [AgentEvent::Result { ok: false, text: "said".into() }]);
        match ending.outcome {
            AgentOutcome::Broke { cause, .. } => format!("{cause:?}"),
            AgentOutcome::Quota { until_unix, .. } => format!("Quota {until_unix:?}"),
            AgentOutcome::Auth { .. } => "Auth".into(),
            AgentOutcome::Outage { .. } => "Outage".into(),
            other @ (AgentOutcome::Success | AgentOutcome::Interrupted) => format!("{other:?}"),
        }
    }

    #[test]
    fn errors_are_judged_by_their_fields() {
        let server = |status, error_type, code| outcome(FailedBy::Server, status, error_type, code);
        let table = [
            (server(401, "invalid_request_error", "invalid_api_key"), "Auth"),
            (server(401, "", ""), "Auth"),
            (server(403, "", "unsupported_country_region_territory"), "Auth"),
            (server(404, "invalid_request_error", "model_not_found"), "Model"),
            (server(404, "", ""), "Model"),
            (server(400, "invalid_request_error", "context_length_exceeded"), "Context"),
            (server(413, "", ""), "Context"),
            (server(429, "tokens", "rate_limit_exceeded"), "Quota Some(9)"),
            (server(429, "insufficient_quota", "insufficient_quota"), "Quota Some(9)"),
            (server(402, "", ""), "Quota Some(9)"),
            (server(500, "server_error", ""), "Outage"),
            (server(503, "", ""), "Outage"),
            (server(0, "", "server_error"), "Outage"),
            (server(0, "", "rate_limit_exceeded"), "Quota Some(9)"),
            (server(400, "invalid_request_error", "previous_response_not_found"), "Session"),
            (server(400, "invalid_request_error", "unknown_parameter"), "Request"),
            (server(307, "", ""), "Request"),
            (outcome(FailedBy::Key, 0, "", ""), "Auth"),
            (outcome(FailedBy::Setting, 0, "", ""), "Startup"),
            (outcome(FailedBy::Connection, 0, "", ""), "Outage"),
            (outcome(FailedBy::Silence, 0, "", ""), "Outage"),
            (outcome(FailedBy::Length, 0, "", ""), "OutputLimit"),
            (outcome(FailedBy::OutputLimit, 0, "", ""), "OutputLimit"),
            (outcome(FailedBy::Nonsense, 0, "", ""), "Other"),
            (outcome(FailedBy::Refusal, 0, "", ""), "Refusal"),
            (outcome(FailedBy::Session, 0, "", ""), "Session"),
        ];
        for (at, (judged, wanted)) in table.iter().enumerate() {
            assert_eq!(judged, wanted, "row {at}");
        }
    }

    #[test]
    fn a_limit_is_told_with_its_end() {
        let (_, events) = run(&[ApiSaid::Limit { until_unix: Some(7) }], ExitFacts::code(1));
        let limit = AgentEvent::RateLimit { status: RateStatus::Rejected, resets_at_unix: Some(7) };
        assert_eq!(events, [limit]);
    }
}

//! The way in which a question is put to a server, and the next way when the server does not accept
//! it.
//!
//! Invariant: every next way asks for less than the one before, so there is an end to them.

use super::chat::{self, ChatReader};
use super::reader::StreamReader;
use super::responses::{self, ResponsesReader};
use super::{ApiFailure, ApiKind, ApiQuestion, FailureKind};
use serde_json::Value;

/// A way to put a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApiWay {
    shape: ShapeKind,
    format: Format,
    history: HistoryWay,
    /// Whether token counts are asked for, where that is a parameter.
    usage: bool,
}

/// The API of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeKind {
    Responses,
    Chat,
}

/// How firmly the server holds the model to the schema. The prompt asks for it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Schema,
    Object,
    Plain,
}

/// How the server learns of the conversation so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryWay {
    /// The server has the conversation, and an id names it.
    Named,
    /// The conversation is sent with the question.
    Told,
}

const NO_SUCH_ENDPOINT: &[&str] = &["unexpected endpoint"];
const ABOUT_FORMAT: &[&str] = &[
    "response_format",
    "text.format",
    "json_schema",
    "json schema",
    "json_object",
    "structured output",
    "guided",
    "grammar",
];
const ABOUT_HISTORY: &[&str] = &["previous_response", "previous response"];

impl ApiWay {
    /// Returns the way that asks for the most.
    pub(super) fn first(question: &ApiQuestion) -> Result<ApiWay, ApiFailure> {
        let shape = match question.api {
            ApiKind::Auto | ApiKind::Responses => ShapeKind::Responses,
            ApiKind::Chat => ShapeKind::Chat,
        };
        let format = if question.schema.is_some() { Format::Schema } else { Format::Plain };
        let named = shape == ShapeKind::Responses && question.previous.is_some();
        if !named && question.previous.is_some() && question.earlier.is_empty() {
            return Err(no_history());
        }
        let history = if named { HistoryWay::Named } else { HistoryWay::Told };
        Ok(ApiWay { shape, format, history, usage: true })
    }

    pub(super) fn path(self) -> &'static str {
        match self.shape {
            ShapeKind::Responses => "/responses",
            ShapeKind::Chat => "/chat/completions",
        }
    }

    pub(super) fn body(self, question: &ApiQuestion) -> Value {
        match self.shape {
            ShapeKind::Responses => responses::body(question, self.format, self.history),
            ShapeKind::Chat => chat::body(question, self.format, self.usage),
        }
    }

    pub(super) fn reader(self, answer_bytes_max: usize) -> StreamReader {
        match self.shape {
            ShapeKind::Responses => {
                StreamReader::new(Box::new(ResponsesReader::default()), answer_bytes_max)
            }
            ShapeKind::Chat => StreamReader::new(Box::new(ChatReader::default()), answer_bytes_max),
        }
    }

    /// Returns the next way to try after a failure, and a notice for a person.
    pub(super) fn after(
        self,
        failure: &ApiFailure,
        question: &ApiQuestion,
    ) -> Option<(ApiWay, &'static str)> {
        if failure.kind != FailureKind::Refused {
            return None;
        }
        let can_tell = !question.earlier.is_empty();
        if self.history == HistoryWay::Named && is_about_history(failure) {
            let notice = "the server no longer has the conversation; sending it again";
            return can_tell.then_some((ApiWay { history: HistoryWay::Told, ..self }, notice));
        }
        let can_chat = question.api == ApiKind::Auto && self.shape == ShapeKind::Responses;
        if can_chat && is_no_endpoint(failure) {
            let notice = "the server has no Responses API; using Chat Completions";
            let lost = self.history == HistoryWay::Named && !can_tell;
            let next = ApiWay { shape: ShapeKind::Chat, history: HistoryWay::Told, ..self };
            return (!lost).then_some((next, notice));
        }
        if !matches!(failure.status, Some(400 | 422)) {
            return None;
        }
        if self.usage && failure.mentions(&["stream_options"]) {
            return Some((
                ApiWay { usage: false, ..self },
                "the server does not report token counts",
            ));
        }
        match self.format {
            Format::Schema if failure.mentions(ABOUT_FORMAT) => {
                let notice = "the server does not support JSON Schema; asking for any JSON object";
                Some((ApiWay { format: Format::Object, ..self }, notice))
            }
            Format::Object if failure.mentions(ABOUT_FORMAT) => {
                let notice = "the server does not enforce JSON; only the prompt asks for it";
                Some((ApiWay { format: Format::Plain, ..self }, notice))
            }
            Format::Schema | Format::Object | Format::Plain => None,
        }
    }
}

fn no_history() -> ApiFailure {
    let text = "cannot continue the conversation: neither the server nor autopilot has kept it";
    ApiFailure::new(FailureKind::Session, text)
}

fn is_about_history(failure: &ApiFailure) -> bool {
    failure.has_word(&["previous_response_not_found"])
        || (matches!(failure.status, Some(400 | 404)) && failure.mentions(ABOUT_HISTORY))
}

/// Returns whether the server lacks this API. An unknown model is a 404 as well; a server that says
/// which of the two it is is believed.
fn is_no_endpoint(failure: &ApiFailure) -> bool {
    let missing = matches!(failure.status, Some(404 | 405 | 501));
    (missing && !failure.has_word(&["model_not_found"])) || failure.mentions(NO_SUCH_ENDPOINT)
}

#[cfg(test)]
mod tests {
    use super::super::EarlierTurn;
    use super::*;
    use serde_json::json;

    fn question(api: ApiKind) -> ApiQuestion {
        ApiQuestion {
            api,
            model: "m".into(),
            effort: None,
            instructions: None,
            prompt: "p".into(),
            earlier: Vec::new(),
            previous: None,
            schema: Some(json!({})),
        }
    }

    fn refused(status: u16, message: &str, code: &str) -> ApiFailure {
        let said = json!({"error": {"message": message, "code": code}});
        ApiFailure::refused(Some(status), "S", &said, "")
    }

    #[test]
    fn a_server_without_responses_is_asked_by_chat_unless_told_otherwise() {
        let auto = question(ApiKind::Auto);
        let first = ApiWay::first(&auto).unwrap();
        for status in [404, 405, 501] {
            let (next, _) = first.after(&refused(status, "Not Found", ""), &auto).unwrap();
            assert_eq!(next.path(), "/chat/completions");
        }
        let strange = ApiFailure::refused(
            Some(200),
            "S",
            &json!({"error": "Unexpected endpoint or method. (POST /v1/responses)"}),
            "",
        );
        assert!(first.after(&strange, &auto).is_some());
        assert!(first.after(&refused(404, "no model", "model_not_found"), &auto).is_none());
        assert!(first.after(&refused(401, "", ""), &auto).is_none());
        assert!(first.after(&refused(404, "", ""), &question(ApiKind::Responses)).is_none());
    }

    #[test]
    fn less_and_less_is_asked_of_a_server_that_takes_no_schema() {
        let chat = question(ApiKind::Chat);
        let no = refused(400, "response_format type json_schema is not supported", "");
        let (second, _) = ApiWay::first(&chat).unwrap().after(&no, &chat).unwrap();
        let (third, _) = second.after(&no, &chat).unwrap();
        assert_eq!((second.format, third.format), (Format::Object, Format::Plain));
        assert_eq!(third.after(&no, &chat), None);
        let (uncounted, _) =
            third.after(&refused(422, "body.stream_options extra", ""), &chat).unwrap();
        assert!(!uncounted.usage);
        assert_eq!(third.after(&refused(400, "prompt is bad", ""), &chat), None);
    }

    #[test]
    fn a_conversation_the_server_lost_is_told_again_if_we_have_it() {
        let mut asked = ApiQuestion { previous: Some("resp_1".into()), ..question(ApiKind::Auto) };
        let gone = refused(400, "Previous response with id 'resp_1' not found.", "");
        let first = ApiWay::first(&asked).unwrap();
        assert_eq!(first.after(&gone, &asked), None);
        assert_eq!(first.after(&refused(404, "Not Found", ""), &asked), None);
        asked.earlier.push(EarlierTurn { prompt: "a".into(), answer: "b".into() });
        assert_eq!(first.after(&gone, &asked).unwrap().0.history, HistoryWay::Told);
        let lost = ApiQuestion { previous: Some("x".into()), ..question(ApiKind::Chat) };
        assert_eq!(ApiWay::first(&lost).unwrap_err().kind, FailureKind::Session);
    }
}

//! The reader of an answer, whatever the form of its events, with a limit on its length.

use super::client::{ReadStop, ServerPart};
use super::failure::one_line;
use super::{ApiAnswer, ApiEvent, ApiFailure, ApiTokens, EarlierTurn, FailureKind};
use serde_json::{Value, json};

/// The form of one API's answers.
pub(super) trait ApiShape {
    /// Reads one event of a stream.
    fn event(&mut self, event: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop>;
    /// Reads an answer that came in one piece.
    fn whole(&mut self, answer: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop>;
    /// Returns the result; `None` when the answer was not complete.
    fn end(&mut self) -> Option<Result<ApiAnswer, ApiFailure>>;
    /// Returns the tokens the server has counted so far.
    fn tokens(&self) -> Option<ApiTokens>;
}

/// The receiver of the pieces of an answer; it passes them on and counts their bytes.
pub(super) struct HeardEvents<'a> {
    hear: &'a mut dyn FnMut(ApiEvent),
    bytes: &'a mut usize,
    bytes_max: usize,
}

impl HeardEvents<'_> {
    pub(super) fn text(&mut self, text: &Value) -> Result<(), ReadStop> {
        let Some(text) = text.as_str().filter(|text| !text.is_empty()) else { return Ok(()) };
        *self.bytes += text.len();
        if *self.bytes > self.bytes_max {
            let why = format!("the model's answer is longer than {} bytes", self.bytes_max);
            return Err(ReadStop::Failed(ApiFailure::new(FailureKind::TooLong, why)));
        }
        (self.hear)(ApiEvent::Text(text.to_owned()));
        Ok(())
    }

    pub(super) fn thought(&mut self, text: &Value) {
        if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
            (self.hear)(ApiEvent::Thought(text.to_owned()));
        }
    }

    pub(super) fn anew(&mut self) {
        (self.hear)(ApiEvent::Anew);
    }

    /// Returns whether no text has come yet.
    pub(super) fn nothing_said(&self) -> bool {
        *self.bytes == 0
    }
}

/// The reader of one answer.
pub(super) struct StreamReader {
    shape: Box<dyn ApiShape>,
    bytes: usize,
    bytes_max: usize,
    /// The error of the first event that was not JSON, for a stream in which none was.
    nonsense: Option<String>,
    understood: bool,
}

impl StreamReader {
    pub(super) fn new(shape: Box<dyn ApiShape>, bytes_max: usize) -> StreamReader {
        StreamReader { shape, bytes: 0, bytes_max, nonsense: None, understood: false }
    }

    pub(super) fn part(
        &mut self,
        part: &ServerPart<'_>,
        hear: &mut dyn FnMut(ApiEvent),
    ) -> Result<(), ReadStop> {
        let mut heard = HeardEvents { hear, bytes: &mut self.bytes, bytes_max: self.bytes_max };
        match part {
            ServerPart::Whole(answer) => {
                self.understood = true;
                self.shape.whole(answer, &mut heard)
            }
            // This mark ends a stream of the Chat Completions API.
            ServerPart::Event("[DONE]") => Err(ReadStop::Complete),
            ServerPart::Event(data) => match serde_json::from_str::<Value>(data) {
                Ok(event) => {
                    self.understood = true;
                    self.shape.event(&event, &mut heard)
                }
                Err(error) => {
                    self.nonsense.get_or_insert_with(|| error.to_string());
                    Ok(())
                }
            },
        }
    }

    pub(super) fn end(&mut self) -> Result<ApiAnswer, ApiFailure> {
        if let Some(ended) = self.shape.end() {
            return ended;
        }
        if let Some(nonsense) = self.nonsense.as_ref().filter(|_| !self.understood) {
            let text = format!("the stream is not a model's answer: {nonsense}");
            return Err(ApiFailure::new(FailureKind::Unreadable, text));
        }
        let text = "the stream ended before the answer was complete";
        Err(ApiFailure::new(FailureKind::Lost, text))
    }

    pub(super) fn tokens(&self) -> Option<ApiTokens> {
        self.shape.tokens()
    }
}

/// Returns the messages of the conversation so far, and the question.
pub(super) fn conversation(earlier: &[EarlierTurn], prompt: &str) -> Vec<Value> {
    let message = |role: &str, text: &str| json!({ "role": role, "content": text });
    let turns = earlier.iter();
    let mut messages: Vec<Value> = turns
        .flat_map(|turn| [message("user", &turn.prompt), message("assistant", &turn.answer)])
        .collect();
    messages.push(message("user", prompt));
    messages
}

/// Reads the tokens a server has counted, which are under these keys.
pub(super) fn counted(usage: &Value, [input, output, details]: [&str; 3]) -> Option<ApiTokens> {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let cached = count(&usage[details]["cached_tokens"]);
    let (input, output) = (count(&usage[input]), count(&usage[output]));
    usage.is_object().then_some(ApiTokens { input, output, cached })
}

/// Makes the failure of a model that stopped at its limit.
pub(super) fn output_limit() -> ApiFailure {
    ApiFailure::new(FailureKind::OutputLimit, "the model stopped at its output limit")
}

/// Makes the failure of an answer that a filter stopped.
pub(super) fn filtered() -> ApiFailure {
    ApiFailure::new(FailureKind::Refusal, "the answer was stopped by a content filter")
}

/// Makes the failure of a model that refused, with its own words.
pub(super) fn refusal(words: &str) -> ApiFailure {
    let text = format!("the model refused to answer: {}", one_line(words));
    ApiFailure::new(FailureKind::Refusal, text)
}

pub(super) fn string(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

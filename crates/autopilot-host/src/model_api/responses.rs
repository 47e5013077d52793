//! The Responses API.

use super::client::ReadStop;
use super::reader::{
    ApiShape, HeardEvents, conversation, counted, filtered, output_limit, refusal, string,
};
use super::way::{Format, HistoryWay};
use super::{ApiAnswer, ApiFailure, ApiQuestion, ApiTokens, FailureKind};
use serde_json::{Value, json};

/// Returns the body of a request.
pub(super) fn body(question: &ApiQuestion, format: Format, history: HistoryWay) -> Value {
    let earlier = match history {
        HistoryWay::Told => question.earlier.as_slice(),
        HistoryWay::Named => &[],
    };
    let input = conversation(earlier, &question.prompt);
    let mut body = json!({ "model": question.model, "input": input, "stream": true });
    if let Some(instructions) = &question.instructions {
        body["instructions"] = json!(instructions);
    }
    if let Some(effort) = &question.effort {
        body["reasoning"] = json!({ "effort": effort });
    }
    if let Some(previous) = question.previous.as_ref().filter(|_| history == HistoryWay::Named) {
        body["previous_response_id"] = json!(previous);
    }
    match (format, &question.schema) {
        (Format::Schema, Some(schema)) => {
            body["text"] = json!({ "format": {
                "type": "json_schema", "name": "answer", "strict": true, "schema": schema
            } });
        }
        (Format::Object, Some(_)) => {
            body["text"] = json!({ "format": { "type": "json_object" } });
        }
        (Format::Plain, _) | (Format::Schema | Format::Object, None) => {}
    }
    body
}

/// The reader of an answer of the Responses API.
#[derive(Default)]
pub(super) struct ResponsesReader {
    /// The message that is being written: only the last one is the answer.
    message: Option<u64>,
    refusal: String,
    tokens: Option<ApiTokens>,
    answer: Option<ApiAnswer>,
}

impl ApiShape for ResponsesReader {
    fn event(&mut self, event: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop> {
        match event["type"].as_str() {
            Some("response.output_text.delta") => {
                let message = event["output_index"].as_u64();
                if self.message.is_some() && self.message != message {
                    heard.anew();
                }
                self.message = message;
                heard.text(&event["delta"])
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                heard.thought(&event["delta"]);
                Ok(())
            }
            Some("response.refusal.delta") => {
                self.refusal.push_str(event["delta"].as_str().unwrap_or_default());
                Ok(())
            }
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                self.whole(&event["response"], heard)
            }
            Some("error") => {
                // The fields of the error are in the event itself, with some servers in an object.
                Err(ReadStop::Failed(ApiFailure::refused(None, "the server", event, "")))
            }
            Some(_) => Ok(()),
            // A server that breaks off says so without a type.
            None if !event["error"].is_null() => {
                Err(ReadStop::Failed(ApiFailure::refused(None, "the server", event, "")))
            }
            None => Ok(()),
        }
    }

    fn whole(&mut self, response: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop> {
        let keys = ["input_tokens", "output_tokens", "input_tokens_details"];
        self.tokens = counted(&response["usage"], keys).or(self.tokens);
        if heard.nothing_said() {
            self.last_message(response, heard)?;
        }
        match response["status"].as_str() {
            Some("failed" | "cancelled") => {
                Err(ReadStop::Failed(ApiFailure::refused(None, "the server", response, "")))
            }
            Some("incomplete") => Err(match response["incomplete_details"]["reason"].as_str() {
                Some("content_filter") => ReadStop::Failed(filtered()),
                Some(_) | None => ReadStop::Failed(output_limit()),
            }),
            Some("completed") | None if !self.refusal.is_empty() && heard.nothing_said() => {
                Err(ReadStop::Failed(refusal(&self.refusal)))
            }
            Some("completed") => self.complete(response),
            None if response["output"].is_array() => self.complete(response),
            Some(_) | None => {
                let why = "the server's answer does not follow the Responses API";
                Err(ReadStop::Failed(ApiFailure::new(FailureKind::Unreadable, why)))
            }
        }
    }

    fn end(&mut self) -> Option<Result<ApiAnswer, ApiFailure>> {
        self.answer.take().map(Ok)
    }

    fn tokens(&self) -> Option<ApiTokens> {
        self.tokens
    }
}

impl ResponsesReader {
    fn complete(&mut self, response: &Value) -> Result<(), ReadStop> {
        let id = string(&response["id"]);
        // An answer is stored unless the server says otherwise.
        let stored = id.is_some() && response["store"].as_bool() != Some(false);
        self.answer = Some(ApiAnswer { id, stored, model: string(&response["model"]) });
        Err(ReadStop::Complete)
    }

    /// Passes on the last message of a response whose text did not come in pieces.
    fn last_message(
        &mut self,
        response: &Value,
        heard: &mut HeardEvents<'_>,
    ) -> Result<(), ReadStop> {
        let mut items = response["output"].as_array().into_iter().flatten();
        let Some(message) = items.rfind(|item| item["type"] == "message") else {
            return Ok(());
        };
        for part in message["content"].as_array().into_iter().flatten() {
            heard.text(&part["text"])?;
            if self.refusal.is_empty() {
                self.refusal.push_str(part["refusal"].as_str().unwrap_or_default());
            }
        }
        Ok(())
    }
}

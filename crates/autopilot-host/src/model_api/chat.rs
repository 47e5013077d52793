//! The Chat Completions API, which local servers have.

use super::client::ReadStop;
use super::reader::{
    ApiShape, HeardEvents, conversation, counted, filtered, output_limit, refusal, string,
};
use super::way::Format;
use super::{ApiAnswer, ApiFailure, ApiQuestion, ApiTokens, FailureKind};
use serde_json::{Value, json};

/// Returns the body of a request.
pub(super) fn body(question: &ApiQuestion, format: Format, usage: bool) -> Value {
    let mut messages = Vec::new();
    if let Some(instructions) = &question.instructions {
        messages.push(json!({ "role": "system", "content": instructions }));
    }
    messages.extend(conversation(&question.earlier, &question.prompt));
    let mut body = json!({ "model": question.model, "messages": messages, "stream": true });
    if usage {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(effort) = &question.effort {
        body["reasoning_effort"] = json!(effort);
    }
    match (format, &question.schema) {
        (Format::Schema, Some(schema)) => {
            body["response_format"] = json!({ "type": "json_schema", "json_schema": {
                "name": "answer", "strict": true, "schema": schema
            } });
        }
        (Format::Object, Some(_)) => {
            body["response_format"] = json!({ "type": "json_object" });
        }
        (Format::Plain, _) | (Format::Schema | Format::Object, None) => {}
    }
    body
}

/// The reader of an answer of the Chat Completions API.
#[derive(Default)]
pub(super) struct ChatReader {
    id: Option<String>,
    model: Option<String>,
    refusal: String,
    /// The result, once the answer has ended; the tokens come in a later event.
    finished: Option<Result<(), ApiFailure>>,
    tokens: Option<ApiTokens>,
}

impl ApiShape for ChatReader {
    fn event(&mut self, event: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop> {
        if !event["error"].is_null() {
            return Err(ReadStop::Failed(ApiFailure::refused(None, "the server", event, "")));
        }
        self.named(event);
        let choice = &event["choices"][0];
        self.said(&choice["delta"], heard)?;
        self.finish(choice, heard);
        Ok(())
    }

    fn whole(&mut self, answer: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop> {
        self.named(answer);
        let choice = &answer["choices"][0];
        if choice["message"].is_null() {
            let why = "the server's answer does not follow the Chat Completions API";
            return Err(ReadStop::Failed(ApiFailure::new(FailureKind::Unreadable, why)));
        }
        self.said(&choice["message"], heard)?;
        self.finish(choice, heard);
        self.finished.get_or_insert(Ok(()));
        Ok(())
    }

    fn end(&mut self) -> Option<Result<ApiAnswer, ApiFailure>> {
        let answer = ApiAnswer { id: self.id.take(), stored: false, model: self.model.take() };
        self.finished.take().map(|finished| finished.map(|()| answer))
    }

    fn tokens(&self) -> Option<ApiTokens> {
        self.tokens
    }
}

impl ChatReader {
    fn named(&mut self, event: &Value) {
        self.id = string(&event["id"]).or(self.id.take());
        self.model = string(&event["model"]).or(self.model.take());
        let keys = ["prompt_tokens", "completion_tokens", "prompt_tokens_details"];
        self.tokens = counted(&event["usage"], keys).or(self.tokens);
    }

    fn said(&mut self, message: &Value, heard: &mut HeardEvents<'_>) -> Result<(), ReadStop> {
        heard.thought(&message["reasoning_content"]);
        heard.thought(&message["reasoning"]);
        self.refusal.push_str(message["refusal"].as_str().unwrap_or_default());
        heard.text(&message["content"])
    }

    fn finish(&mut self, choice: &Value, heard: &HeardEvents<'_>) {
        let Some(reason) = choice["finish_reason"].as_str() else { return };
        self.finished = Some(match reason {
            "length" => Err(output_limit()),
            "content_filter" => Err(filtered()),
            _ if !self.refusal.is_empty() && heard.nothing_said() => Err(refusal(&self.refusal)),
            _ => Ok(()),
        });
    }
}

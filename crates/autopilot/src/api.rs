//! `autopilot __api`: a model behind an OpenAI-compatible API as a real process. It reads the request
//! from stdin and the key from the environment, and prints what the model sends line by line.

use crate::terminal;
use autopilot_agents::TokenCount;
use autopilot_agents::openai::{
    ApiFailed, ApiSaid, BASE_URL_VARIABLE, FailedBy, ModelRequest, Pieces,
};
use autopilot_core::config;
use autopilot_host::model_api::{
    self, ApiAddress, ApiAnswer, ApiClient, ApiEvent, ApiFailure, ApiKind, ApiLimits, ApiQuestion,
    BASE_DEFAULT, EarlierTurn, FailureKind,
};
use autopilot_host::web::CERTIFICATES_VARIABLE;
use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Duration;

const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// The variables, and the headers made of them, that the vendor's clients send to name the sender.
const WHO: [(&str, &str); 2] =
    [("OPENAI_ORG_ID", "openai-organization"), ("OPENAI_PROJECT_ID", "openai-project")];

/// Sends the request on stdin to the model and prints its events.
pub fn main() -> ExitCode {
    let mut mouth = Mouth::default();
    let asked = read().and_then(|request| ask(&request, &mut mouth));
    mouth.close();
    match asked {
        Ok(done) => {
            say(&done);
            ExitCode::SUCCESS
        }
        Err(failed) => {
            say(&ApiSaid::Failed(failed));
            ExitCode::FAILURE
        }
    }
}

fn read() -> Result<ModelRequest, ApiFailed> {
    let mut text = String::new();
    io::stdin()
        .take(REQUEST_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| setting(format!("cannot read the request: {error}")))?;
    serde_json::from_str(&text).map_err(|error| setting(format!("not a valid request: {error}")))
}

fn ask(request: &ModelRequest, mouth: &mut Mouth) -> Result<ApiSaid, ApiFailed> {
    if request.is_lost() {
        let text = "cannot continue the conversation: the server did not store it, and there is no \
                    local copy";
        return Err(failed(FailedBy::Session, text.to_owned()));
    }
    let client = client(request)?;
    if client.shows_key() {
        let address = client.address();
        mouth
            .hear(ApiEvent::Notice(format!("the API key is sent to {address} without encryption")));
    }
    let answer = model_api::ask(&client, &question(request), &mut |event| mouth.hear(event));
    let ApiAnswer { id, stored, model } = answer.map_err(failure)?;
    Ok(ApiSaid::Done { session: ModelRequest::session_after(id.as_deref(), stored), model })
}

fn client(request: &ModelRequest) -> Result<ApiClient, ApiFailed> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let base = request.base_url.clone().or_else(|| variable(BASE_URL_VARIABLE));
    let base = base.as_deref().unwrap_or(BASE_DEFAULT);
    let address = ApiAddress::parse(base)
        .map_err(|why| setting(format!("cannot use the base address of the model: it {why}")))?;
    let headers: Vec<(&'static str, String)> =
        WHO.into_iter().filter_map(|(name, header)| Some((header, variable(name)?))).collect();
    let key_env = request.key_env.as_deref();
    let key = key_env.and_then(variable);
    let certificates = variable(CERTIFICATES_VARIABLE);
    ApiClient::new(
        address,
        key_env.unwrap_or(config::API_KEY_ENV),
        key.as_deref(),
        &headers,
        certificates.as_deref(),
        limits(),
    )
    .map_err(failure)
}

/// The limits of the process. Longer waits are up to the engine: it knows of other tasks, other
/// agents and the money.
fn limits() -> ApiLimits {
    let (pause_max, retry_time_max) = (Duration::from_secs(30), Duration::from_secs(5 * 60));
    ApiLimits { pause_max, retry_time_max, ..ApiLimits::default() }
}

fn question(request: &ModelRequest) -> ApiQuestion {
    let turns = request.earlier.iter();
    ApiQuestion {
        api: match request.api {
            config::Api::Auto => ApiKind::Auto,
            config::Api::Responses => ApiKind::Responses,
            config::Api::Chat => ApiKind::Chat,
        },
        model: request.model.clone(),
        effort: request.effort.clone(),
        instructions: request.instructions.clone(),
        prompt: request.prompt.clone(),
        earlier: turns
            .map(|turn| EarlierTurn { prompt: turn.prompt.clone(), answer: turn.answer.clone() })
            .collect(),
        previous: request.previous().map(str::to_owned),
        schema: request.schema.clone(),
    }
}

/// Prints the model's events, with its text in lines instead of single tokens.
#[derive(Default)]
struct Mouth {
    text: Pieces,
    thought: Pieces,
}

impl Mouth {
    fn hear(&mut self, event: ApiEvent) {
        // Only text continues a text, and only a thought a thought.
        if !matches!(event, ApiEvent::Thought(_)) {
            self.end_thought();
        }
        if !matches!(event, ApiEvent::Text(_)) {
            self.end_text();
        }
        let said = match event {
            ApiEvent::Text(text) => self.text.push(&text).map(|text| ApiSaid::Text { text }),
            ApiEvent::Thought(text) => {
                self.thought.push(&text).map(|text| ApiSaid::Thought { text })
            }
            ApiEvent::Anew => Some(ApiSaid::Anew),
            ApiEvent::Usage(model_api::ApiTokens { input, output, cached }) => {
                Some(ApiSaid::Usage { tokens: TokenCount { input, output, cached } })
            }
            ApiEvent::Retry { number, tries_max, wait, why } => {
                Some(ApiSaid::Retry { number, tries_max, wait_ms: millis(wait), why })
            }
            ApiEvent::RateLimit { until_unix } => Some(ApiSaid::Limit { until_unix }),
            ApiEvent::Notice(text) => Some(ApiSaid::Notice { text }),
        };
        said.iter().for_each(say);
    }

    fn close(&mut self) {
        self.end_thought();
        self.end_text();
    }

    fn end_text(&mut self) {
        self.text.take().map(|text| ApiSaid::Text { text }).iter().for_each(say);
    }

    fn end_thought(&mut self) {
        self.thought.take().map(|text| ApiSaid::Thought { text }).iter().for_each(say);
    }
}

fn say(said: &ApiSaid) {
    terminal::put(&format!("{}\n", said.line()));
}

fn setting(message: String) -> ApiFailed {
    failed(FailedBy::Setting, message)
}

fn failed(by: FailedBy, message: String) -> ApiFailed {
    ApiFailed {
        by,
        status: None,
        error_type: None,
        code: None,
        message,
        retry_after_ms: None,
        until_unix: None,
    }
}

fn failure(failure: ApiFailure) -> ApiFailed {
    ApiFailed {
        by: match failure.kind {
            FailureKind::Key => FailedBy::Key,
            FailureKind::Refused => FailedBy::Server,
            FailureKind::Lost => FailedBy::Connection,
            FailureKind::Silent => FailedBy::Silence,
            FailureKind::TooLong => FailedBy::Length,
            FailureKind::Unreadable => FailedBy::Nonsense,
            FailureKind::OutputLimit => FailedBy::OutputLimit,
            FailureKind::Refusal => FailedBy::Refusal,
            FailureKind::Session => FailedBy::Session,
        },
        status: failure.status,
        error_type: failure.error_type,
        code: failure.code,
        message: failure.message,
        retry_after_ms: failure.retry_after.map(millis),
        until_unix: failure.until_unix,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

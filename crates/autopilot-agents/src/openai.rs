//! A model behind an OpenAI-compatible API as an agent that answers and touches nothing.
//!
//! The agent is a real process, our own binary as `__api`, so that it is supervised, sandboxed and
//! recorded like every other. The question comes as one JSON document on its stdin; the reply goes
//! out as one JSON object per line. The key is in neither: the document names the variable.

mod decode;
mod piece;
mod request;
mod said;

pub use piece::{PIECE_BYTES_MAX, Pieces};
pub use request::ModelRequest;
pub use said::{ApiFailed, ApiSaid, FailedBy};

pub(crate) use decode::OpenAiConversation;

use autopilot_core::config::{API_KEY_ENV, Api};

use crate::launch::{LaunchPlan, LaunchProgram, LaunchRequest, LaunchSchema, LaunchStdin};

/// The hidden command of our binary that asks a model.
pub const COMMAND: &str = "__api";
/// The variable that every program that asks such a model takes the address from.
pub const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
/// The address of the vendor's models; the only one that gets the usual key without being named.
pub const VENDOR_URL: &str = "https://api.openai.com/v1";

/// A model and the address of its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The address of the server; `None` takes the one in the environment, or else the vendor's
    /// own.
    pub base_url: Option<String>,
    /// The variable that holds the key, if the configuration names one.
    pub key_env: Option<String>,
    /// The API that the server speaks.
    pub api: Api,
    /// The model's name, for a question that names no other.
    pub name: String,
}

impl Model {
    /// The variable whose key is sent. The usual key goes to its vendor, or to the address that the
    /// environment names along with it, and to no other.
    pub fn key_variable(&self) -> Option<&str> {
        let is_vendors = |url: &String| url.trim_end_matches('/').eq_ignore_ascii_case(VENDOR_URL);
        match &self.key_env {
            Some(named) => Some(named),
            None => self.base_url.as_ref().is_none_or(is_vendors).then_some(API_KEY_ENV),
        }
    }
}

pub(crate) fn launch(model: &Model, ask: &LaunchRequest) -> LaunchPlan {
    let request = ModelRequest {
        base_url: model.base_url.clone(),
        key_env: model.key_variable().map(str::to_owned),
        api: model.api,
        model: ask.model.as_ref().unwrap_or(&model.name).clone(),
        effort: ask.effort.clone(),
        instructions: ask.system_prompt.clone(),
        prompt: ask.prompt.clone(),
        session: ask.session.clone(),
        earlier: if ask.session.is_some() { ask.earlier.clone() } else { Vec::new() },
        schema: ask.schema.as_ref().and_then(LaunchSchema::strict),
    };
    let stdin = LaunchStdin::Whole(request.document().into_bytes());
    LaunchPlan::new(LaunchProgram::Own, vec![COMMAND.to_owned()], stdin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Exchange;

    fn model() -> Model {
        Model {
            base_url: Some("http://127.0.0.1:11434/v1".into()),
            key_env: Some("MY_KEY".into()),
            api: Api::Auto,
            name: "m".into(),
        }
    }

    fn document(ask: &LaunchRequest) -> ModelRequest {
        let plan = launch(&model(), ask);
        assert_eq!((plan.program, plan.args), (LaunchProgram::Own, vec!["__api".to_owned()]));
        assert_eq!((plan.env, plan.files), (Vec::new(), Vec::new()));
        let LaunchStdin::Whole(bytes) = plan.stdin else { panic!("it is spoken to once") };
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn everything_is_asked_in_one_document() {
        let ask = LaunchRequest {
            effort: Some("low".into()),
            system_prompt: Some("Be brief.".into()),
            schema: Some(LaunchSchema {
                path: "/a.json".into(),
                json: r#"{"type":"object","properties":{"a":{"type":"string"}}}"#.into(),
            }),
            ..LaunchRequest::new("Review it.", "/slot".into())
        };
        let request = document(&ask);
        assert_eq!(request.prompt, "Review it.");
        assert_eq!((request.key_env.as_deref(), request.model.as_str()), (Some("MY_KEY"), "m"));
        assert_eq!(request.instructions.as_deref(), Some("Be brief."));
        let schema = request.schema.unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], serde_json::json!(["a"]));
    }

    #[test]
    fn the_usual_key_goes_to_its_vendor_and_nowhere_else() {
        let key = |base_url: Option<&str>, key_env: Option<&str>| {
            let model = Model {
                base_url: base_url.map(str::to_owned),
                key_env: key_env.map(str::to_owned),
                ..model()
            };
            model.key_variable().map(str::to_owned)
        };
        assert_eq!(key(None, None).as_deref(), Some(API_KEY_ENV));
        assert_eq!(key(Some("https://api.openai.com/v1/"), None).as_deref(), Some(API_KEY_ENV));
        for other in ["https://evil.example/v1", "http://127.0.0.1:1", "http://api.openai.com/v1"] {
            assert_eq!(key(Some(other), None), None, "{other}");
            assert_eq!(key(Some(other), Some("K")).as_deref(), Some("K"), "{other}");
        }
    }

    #[test]
    fn a_session_brings_what_was_said_before() {
        let earlier = [Exchange { prompt: "a".into(), answer: "b".into() }];
        let fresh =
            LaunchRequest { earlier: earlier.to_vec(), ..LaunchRequest::new("c", "/slot".into()) };
        assert!(document(&fresh).earlier.is_empty());
        let known = LaunchRequest { session: Some("resp_1".into()), ..fresh.clone() };
        let request = document(&known);
        assert_eq!((request.previous(), request.earlier.len()), (Some("resp_1"), 1));
        assert!(!request.is_lost());
        let told = LaunchRequest { session: Some("told:x".into()), ..fresh };
        let request = document(&told);
        assert_eq!((request.previous(), request.is_lost()), (None, false));
        let lost = LaunchRequest { earlier: vec![], ..told };
        assert!(document(&lost).is_lost());
    }
}

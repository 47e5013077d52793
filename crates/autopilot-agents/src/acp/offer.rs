//! The settings that a session offers, and those that this launch wants.

use serde_json::{Value, json};

use crate::jsonl::{items_of, text_of};
use crate::launch::{Access, LaunchRequest, LaunchSandbox};

/// One request that changes a setting, to be sent before the prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AcpSetting {
    pub what: &'static str,
    pub value: String,
    pub method: &'static str,
    pub params: Value,
}

/// The settings that are wanted and offered, and those that are wanted in vain.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WantedSettings {
    pub settings: Vec<AcpSetting>,
    /// The model, if the session offers no choice of models, and the effort, if it is not offered.
    pub not_offered: Vec<String>,
    /// The refusal if the session offers models but not this one: another model must not do the
    /// work unseen.
    pub unknown_model: Option<String>,
}

/// The modes of an agent with a sandbox of its own, in the order of preference.
///
/// Codex's sandbox does not work inside ours: every tool call would fail, and the turn succeed.
fn modes(launch: &LaunchRequest) -> &'static [&'static str] {
    match (launch.sandbox, launch.access) {
        (LaunchSandbox::Ours, _) | (LaunchSandbox::None, Access::Unsafe) => {
            &["agent-full-access", "full-access"]
        }
        (LaunchSandbox::None, Access::Read) => &["read-only"],
        (LaunchSandbox::None, Access::Edit) => &[],
    }
}

/// Compares the wishes of the launch with `session`, the reply to `session/new` or `session/load`.
pub(super) fn wanted(session: &Value, id: &str, launch: &LaunchRequest) -> WantedSettings {
    let mut wanted = WantedSettings::default();
    let mode = OfferedChoice::find(session, Topic::Mode);
    let known = mode.as_ref().and_then(|mode| {
        modes(launch).iter().find(|name| mode.values.iter().any(|value| value == *name))
    });
    if let (Some(mode), Some(name)) = (&mode, known) {
        wanted.settings.extend(mode.set(id, name));
    }
    if let Some(model) = &launch.model {
        match OfferedChoice::find(session, Topic::Model) {
            None => wanted.not_offered.push(format!("the model {model}")),
            Some(choice) => match choice.value(model) {
                Some(value) => wanted.settings.extend(choice.set(id, value)),
                None => wanted.unknown_model = Some(choice.refused(model)),
            },
        }
    }
    if let Some(effort) = &launch.effort {
        let choice = OfferedChoice::find(session, Topic::Effort);
        match choice.as_ref().and_then(|choice| choice.value(effort).map(|value| (choice, value))) {
            Some((choice, value)) => wanted.settings.extend(choice.set(id, value)),
            None => wanted.not_offered.push(format!("the effort {effort}")),
        }
    }
    wanted
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topic {
    Mode,
    Model,
    Effort,
}

impl Topic {
    fn word(self) -> &'static str {
        match self {
            Topic::Mode => "mode",
            Topic::Model => "model",
            Topic::Effort => "thought_level",
        }
    }
}

#[derive(Debug)]
struct OfferedChoice {
    topic: Topic,
    /// The id of a configuration option; without one the topic has its own method.
    option: Option<String>,
    current: String,
    values: Vec<String>,
    names: Vec<String>,
}

impl OfferedChoice {
    fn find(session: &Value, topic: Topic) -> Option<OfferedChoice> {
        let options = items_of(&session["configOptions"]);
        let is_it =
            |option: &&Value| option["category"] == topic.word() || option["id"] == topic.word();
        if let Some(option) = options.iter().find(is_it) {
            let mut listed = Vec::new();
            flatten(&option["options"], &mut listed);
            return Some(OfferedChoice::of(
                topic,
                option["id"].as_str(),
                &option["currentValue"],
                &listed,
                "value",
            ));
        }
        let (list, current, key) = match topic {
            Topic::Mode => {
                (&session["modes"]["availableModes"], &session["modes"]["currentModeId"], "id")
            }
            Topic::Model => {
                let models = &session["models"];
                (&models["availableModels"], &models["currentModelId"], "modelId")
            }
            Topic::Effort => return None,
        };
        let listed: Vec<&Value> = list.as_array()?.iter().collect();
        Some(OfferedChoice::of(topic, None, current, &listed, key))
    }

    fn of(
        topic: Topic,
        option: Option<&str>,
        current: &Value,
        listed: &[&Value],
        key: &str,
    ) -> OfferedChoice {
        let texts = |key: &str| listed.iter().map(|item| text_of(&item[key]).to_owned()).collect();
        OfferedChoice {
            topic,
            option: option.map(str::to_owned),
            current: text_of(current).to_owned(),
            values: texts(key),
            names: texts("name"),
        }
    }

    /// The offered value that `asked` names by its id or its title.
    fn value(&self, asked: &str) -> Option<&str> {
        if self.current == asked {
            return Some(&self.current);
        }
        let at = self.values.iter().position(|value| value == asked);
        let at = at.or_else(|| self.names.iter().position(|name| name.eq_ignore_ascii_case(asked)));
        Some(self.values.get(at?)?)
    }

    fn set(&self, session: &str, value: &str) -> Option<AcpSetting> {
        if self.current == value {
            return None;
        }
        let (method, params) = match (&self.option, self.topic) {
            (Some(option), _) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": option, "value": value }),
            ),
            (None, Topic::Model) => {
                ("session/set_model", json!({ "sessionId": session, "modelId": value }))
            }
            (None, Topic::Mode | Topic::Effort) => {
                ("session/set_mode", json!({ "sessionId": session, "modeId": value }))
            }
        };
        Some(AcpSetting { what: self.topic.word(), value: value.to_owned(), method, params })
    }

    fn refused(&self, model: &str) -> String {
        const NAMED_MAX: usize = 8;
        let named: Vec<&str> = self.values.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = if self.values.len() > NAMED_MAX { ", …" } else { "" };
        format!("the agent does not offer the model {model}; it offers {}{more}", named.join(", "))
    }
}

/// Flattens the options, which may come in groups.
fn flatten<'a>(options: &'a Value, into: &mut Vec<&'a Value>) {
    for option in items_of(options) {
        match option["options"].is_array() {
            true => flatten(&option["options"], into),
            false => into.push(option),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(model: Option<&str>, effort: Option<&str>, sandbox: LaunchSandbox) -> LaunchRequest {
        LaunchRequest {
            model: model.map(str::to_owned),
            effort: effort.map(str::to_owned),
            sandbox,
            ..LaunchRequest::new("", "/slot".into())
        }
    }

    fn options() -> Value {
        json!({ "configOptions": [
            { "id": "model", "category": "model", "currentValue": "m/one", "options": [
                { "value": "m/one", "name": "One" },
                { "group": "g", "options": [{ "value": "m/two", "name": "Two" }] },
            ] },
            { "id": "think", "category": "thought_level", "currentValue": "low", "options": [
                { "value": "low", "name": "Low" }, { "value": "high", "name": "High" } ] },
            "…and more",
        ] })
    }

    #[test]
    fn a_model_is_set_by_the_way_the_session_offers() {
        let two = launch(Some("m/two"), None, LaunchSandbox::None);
        let set = wanted(&options(), "s", &two).settings;
        assert_eq!(set[0].method, "session/set_config_option");
        assert_eq!(
            set[0].params,
            json!({ "sessionId": "s", "configId": "model", "value": "m/two" })
        );
        let list = json!({ "models": { "currentModelId": "a",
            "availableModels": [{ "modelId": "a" }, { "modelId": "m/two" }] } });
        let set = wanted(&list, "s", &two).settings;
        assert_eq!(set[0].method, "session/set_model");
        assert_eq!(set[0].params, json!({ "sessionId": "s", "modelId": "m/two" }));
        let by_name = launch(Some("two"), Some("high"), LaunchSandbox::None);
        let set = wanted(&options(), "s", &by_name).settings;
        assert_eq!(set.iter().map(|set| set.value.as_str()).collect::<Vec<_>>(), ["m/two", "high"]);
        let current = launch(Some("m/one"), Some("low"), LaunchSandbox::None);
        assert_eq!(wanted(&options(), "s", &current), WantedSettings::default());
    }

    #[test]
    fn what_is_asked_for_in_vain_is_said() {
        let asked = launch(Some("m/three"), Some("extreme"), LaunchSandbox::None);
        let vain = wanted(&options(), "s", &asked);
        assert_eq!(
            vain.unknown_model.as_deref(),
            Some("the agent does not offer the model m/three; it offers m/one, m/two")
        );
        assert_eq!(vain.not_offered, ["the effort extreme"]);
        let none = wanted(&Value::Null, "s", &asked);
        assert_eq!(none.not_offered, ["the model m/three", "the effort extreme"]);
        assert_eq!(none.unknown_model, None);
    }

    #[test]
    fn an_agents_own_sandbox_is_switched_off_inside_ours() {
        let modes = json!({ "modes": { "currentModeId": "auto", "availableModes": [
            { "id": "read-only" }, { "id": "auto" }, { "id": "full-access" } ] } });
        let mode = |launch: &LaunchRequest| {
            wanted(&modes, "s", launch).settings.pop().map(|set| (set.method, set.value))
        };
        let full = Some(("session/set_mode", "full-access".to_owned()));
        assert_eq!(mode(&launch(None, None, LaunchSandbox::Ours)), full);
        assert_eq!(mode(&launch(None, None, LaunchSandbox::None)), None);
        let mut reader = launch(None, None, LaunchSandbox::None);
        reader.access = Access::Read;
        assert_eq!(mode(&reader), Some(("session/set_mode", "read-only".to_owned())));
        let others = json!({ "modes": { "availableModes": [{ "id": "plan" }, { "id": "yolo" }] } });
        assert_eq!(wanted(&others, "s", &reader), WantedSettings::default());
    }
}

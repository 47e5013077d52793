//! The part of `.claude.json` that makes programs run, in a file that otherwise changes at every
//! start of the agent.

use serde_json::{Map, Value};

const KEYS: &[&str] =
    &["mcpServers", "hooks", "enabledMcpjsonServers", "enableAllProjectMcpServers", "allowedTools"];
const PROJECTS: &str = "projects";

/// What the file must hold to obey what it obeyed before; nothing if it does.
pub(super) fn put_back(before: &[u8], now: Option<&[u8]>) -> Option<Vec<u8>> {
    let earlier = object(before);
    let Some(mut current) = now.and_then(object) else {
        // Unreadable before as after: nothing obeys it.
        return (now != Some(before)).then(|| before.to_vec());
    };
    let earlier = earlier.unwrap_or_default();
    let mut is_changed = set(&earlier, &mut current);
    let none = Map::new();
    let of = |file: &Map<String, Value>| {
        file.get(PROJECTS).and_then(Value::as_object).unwrap_or(&none).clone()
    };
    let (then, mut projects) = (of(&earlier), of(&current));
    let names: Vec<String> = then.keys().chain(projects.keys()).cloned().collect();
    for name in names {
        let before = then.get(&name).and_then(Value::as_object).unwrap_or(&none);
        let mut project = match projects.get(&name) {
            Some(Value::Object(project)) => project.clone(),
            Some(_) | None => Map::new(),
        };
        if set(before, &mut project) {
            is_changed = true;
            projects.insert(name, Value::Object(project));
        }
    }
    if !is_changed {
        return None;
    }
    if !projects.is_empty() {
        current.insert(PROJECTS.to_owned(), Value::Object(projects));
    }
    serde_json::to_vec_pretty(&Value::Object(current)).ok()
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    }
}

/// Gives the keys their earlier values; whether any had another.
fn set(before: &Map<String, Value>, now: &mut Map<String, Value>) -> bool {
    let mut is_changed = false;
    for key in KEYS {
        let (earlier, current) = (before.get(*key), now.get(*key));
        if meant(earlier) == meant(current) {
            continue;
        }
        is_changed = true;
        match earlier {
            Some(value) => now.insert((*key).to_owned(), value.clone()),
            None => now.remove(*key),
        };
    }
    is_changed
}

/// An empty list means what a missing one does, and the agent writes some.
fn meant(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
    })
}

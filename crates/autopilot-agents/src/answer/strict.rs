//! Reduces a JSON Schema to the part that vendors enforce while a model writes.

use serde_json::{Map, Value, json};

/// The keywords that the vendors' strict modes accept; the others are checked by us afterwards.
const KEPT: &[&str] = &["$ref", "title", "description", "type", "enum", "const"];

/// Returns the schema as strict modes want it: no conditions, no extra members, and every member
/// required. An optional member may be null instead, and a null counts as absent when the answer is
/// read.
pub fn strict_form(schema: &Value) -> Value {
    let Some(given) = schema.as_object() else { return json!({ "type": "string" }) };
    let mut strict = Map::new();
    for (key, value) in given {
        match key.as_str() {
            key if KEPT.contains(&key) => {
                strict.insert(key.to_owned(), value.clone());
            }
            "items" => {
                strict.insert(key.clone(), strict_form(value));
            }
            "anyOf" => {
                let forms = value.as_array().into_iter().flatten().map(strict_form);
                strict.insert(key.clone(), forms.collect());
            }
            "$defs" | "definitions" => {
                let forms = value.as_object().into_iter().flatten();
                let forms = forms.map(|(name, form)| (name.clone(), strict_form(form)));
                strict.insert(key.clone(), forms.collect::<Map<_, _>>().into());
            }
            _ => {}
        }
    }
    if given.contains_key("properties") || given.get("type") == Some(&json!("object")) {
        members(given, &mut strict);
    }
    let says_something = ["type", "enum", "const", "anyOf", "$ref", "properties"];
    if !says_something.iter().any(|key| strict.contains_key(*key)) {
        strict.insert("type".into(), json!("string"));
    }
    strict.into()
}

fn members(given: &Map<String, Value>, strict: &mut Map<String, Value>) {
    let required = given.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)));
    let mut properties = Map::new();
    for (name, property) in given.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let form = strict_form(property);
        let form = if is_required(name) { form } else { or_null(form) };
        properties.insert(name.clone(), form);
    }
    let names: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
    strict.insert("properties".into(), properties.into());
    strict.insert("required".into(), names.into());
    strict.insert("additionalProperties".into(), json!(false));
}

fn or_null(mut form: Value) -> Value {
    let null = json!("null");
    if let Some(Value::Array(values)) = form.get_mut("enum") {
        values.push(Value::Null);
    }
    match form.get_mut("type") {
        Some(Value::String(one)) => {
            let both = Value::Array(vec![one.clone().into(), null]);
            form["type"] = both;
            form
        }
        Some(Value::Array(types)) => {
            if !types.contains(&null) {
                types.push(null);
            }
            form
        }
        Some(_) | None => json!({ "anyOf": [form, { "type": "null" }] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AgentAnswer, Completion, Plan, ReviewAnswer, Summary, Workflow};

    #[test]
    fn every_member_is_required_and_an_optional_one_may_be_null() {
        let schema: Value = serde_json::from_str(ReviewAnswer::SCHEMA_JSON).unwrap();
        let strict = strict_form(&schema);
        insta::assert_snapshot!(strict["properties"]["issues"]["items"], @r#"{"type":"object","properties":{"severity":{"type":"string","enum":["blocker","major","minor"]},"message":{"type":"string"},"fix":{"type":"string","description":"What to change to settle the issue"},"file":{"type":["string","null"],"description":"Path from the root of the repository"},"line":{"type":["integer","null"],"description":"A line the change adds, by its new number, or removes, by its old number"},"criterion":{"type":["integer","null"],"description":"Number of the acceptance criterion that is not met"},"command":{"type":["string","null"],"description":"Name of the check that failed"}},"required":["severity","message","fix","file","line","criterion","command"],"additionalProperties":false}"#);
        assert_eq!(strict.get("if"), None);
        assert_eq!(strict["required"], json!(["verdict", "summary", "issues", "accepted_tests"]));
    }

    #[test]
    fn the_strict_forms_are_schemas_and_know_only_strict_words() {
        let plain = [ReviewAnswer::SCHEMA_JSON, Plan::SCHEMA_JSON, Summary::SCHEMA_JSON];
        let of_goals = [Workflow::SCHEMA_JSON, Completion::SCHEMA_JSON];
        for json in plain.into_iter().chain(of_goals) {
            let strict = strict_form(&serde_json::from_str(json).unwrap());
            crate::answer::AnswerSchema::parse("strict", &strict.to_string()).unwrap();
            for word in ["minItems", "minLength", "pattern", "minimum", "\"then\"", "$schema"] {
                assert!(!strict.to_string().contains(word), "{word}");
            }
        }
    }

    #[test]
    fn odd_schemas_have_a_strict_form_too() {
        assert_eq!(strict_form(&json!(true)), json!({ "type": "string" }));
        assert_eq!(strict_form(&json!({})), json!({ "type": "string" }));
        let given = json!({ "properties": {
            "a": { "enum": ["x"] }, "b": { "type": ["string", "null"] }, "c": { "$ref": "#/$defs/c" }
        }, "$defs": { "c": { "type": "object" } } });
        insta::assert_snapshot!(strict_form(&given), @r##"{"$defs":{"c":{"type":"object","properties":{},"required":[],"additionalProperties":false}},"properties":{"a":{"anyOf":[{"enum":["x",null]},{"type":"null"}]},"b":{"type":["string","null"]},"c":{"anyOf":[{"$ref":"#/$defs/c"},{"type":"null"}]}},"required":["a","b","c"],"additionalProperties":false}"##);
    }
}

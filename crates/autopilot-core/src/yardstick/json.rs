//! Takes `package.json` and `composer.json` apart by key.

use serde_json::{Map, Value};

/// Whose the keys of a manifest in JSON are.
pub(super) struct JsonRules<'a> {
    /// Keys that belong to the yardstick with all that is in them.
    keys: &'static [&'static str],
    /// The keys under which scripts have names.
    scripts: &'static str,
    /// Keys that can change what tests show, and belong to the product.
    told: &'static [&'static str],
    /// The scripts that the commands of the configuration come to.
    reached: &'a dyn Fn(&str) -> bool,
}

const NODE_KEYS: &[&str] = &[
    "ava",
    "c8",
    "cypress",
    "eslintConfig",
    "jest",
    "karma",
    "mocha",
    "nyc",
    "playwright",
    "standard",
    "tap",
    "vitest",
    "wtr",
    "xo",
];
/// Scripts with these words in their names judge.
const SCRIPT_WORDS: &[&str] = &[
    "acceptance",
    "check",
    "ci",
    "coverage",
    "e2e",
    "eslint",
    "jest",
    "lint",
    "mocha",
    "playwright",
    "posttest",
    "pretest",
    "spec",
    "test",
    "tests",
    "tsc",
    "typecheck",
    "uat",
    "unit",
    "verify",
    "vitest",
];

impl<'a> JsonRules<'a> {
    /// The rules for a manifest of this name; `reached` tells the scripts that commands come to.
    pub(super) fn of(name: &str, reached: &'a dyn Fn(&str) -> bool) -> Option<JsonRules<'a>> {
        let (keys, told): (&[&str], &[&str]) = match name {
            "package.json" => (NODE_KEYS, &["overrides", "resolutions", "pnpm", "babel"]),
            "composer.json" => (&["autoload-dev"], &["repositories"]),
            _ => return None,
        };
        Some(JsonRules { keys, scripts: "scripts", told, reached })
    }

    fn is_script(&self, name: &str) -> bool {
        let judges = |word: &str| SCRIPT_WORDS.contains(&word);
        (self.reached)(name) || name.split([':', '-', '_', '.']).any(judges)
    }

    /// Whether a key, or one in it, belongs to the yardstick, by its values on both sides.
    fn is_own(&self, key: &str, inner: Option<&str>, values: [Option<&Value>; 2]) -> bool {
        match inner {
            None => self.keys.contains(&key),
            Some(name) if key == self.scripts => self.is_script(name),
            // A runner of tests that is a directory of the repository is written by whoever is judged.
            Some(_) if key == "devDependencies" => {
                let local = ["file:", "link:", "portal:", "./", "../"];
                let texts = values.into_iter().flatten().filter_map(Value::as_str);
                texts.into_iter().any(|text| local.iter().any(|start| text.starts_with(start)))
            }
            Some(_) => false,
        }
    }

    /// Whether a manifest has keys of the yardstick; none if it is no JSON object.
    pub(super) fn has_yardstick(&self, text: &str) -> Option<bool> {
        let manifest = object(text)?;
        Some(manifest.iter().any(|(key, value)| {
            let inner = value.as_object().into_iter().flatten();
            self.is_own(key, None, [Some(value), None])
                || self.told.contains(&key.as_str())
                || inner
                    .into_iter()
                    .any(|(name, value)| self.is_own(key, Some(name), [Some(value), None]))
        }))
    }

    /// The keys that are only told, with their values.
    pub(super) fn told(&self, text: &str) -> Vec<String> {
        let manifest = object(text).unwrap_or_default();
        let told = self.told.iter().filter_map(|key| Some((key, manifest.get(*key)?)));
        told.map(|(key, value)| format!("{key} {value}")).collect()
    }

    /// The product's keys of one text with the yardstick's of another; none if one is no JSON object.
    pub(super) fn composed(&self, code: &str, tests: &str) -> Option<String> {
        let (own, other) = (object(code)?, object(tests)?);
        let mut result = self.merged(&own, &other, None);
        for key in ["devDependencies", self.scripts] {
            let empty = Map::new();
            let of = |all: &Map<String, Value>| all.get(key).and_then(Value::as_object).cloned();
            let (inner, outer) = (of(&own), of(&other));
            if inner.is_none() && outer.is_none() {
                continue;
            }
            let inner_map = inner.as_ref().unwrap_or(&empty);
            let merged = self.merged(inner_map, outer.as_ref().unwrap_or(&empty), Some(key));
            if !(merged.is_empty() && inner.is_none()) {
                result.insert(key.to_owned(), Value::Object(merged));
            }
        }
        if result == own {
            return Some(code.to_owned());
        }
        Some(printed(code, &result))
    }

    fn merged(
        &self,
        own: &Map<String, Value>,
        other: &Map<String, Value>,
        inside: Option<&str>,
    ) -> Map<String, Value> {
        let is_own = |key: &str| {
            let values = [own.get(key), other.get(key)];
            match inside {
                None => self.is_own(key, None, values),
                Some(outer) => self.is_own(outer, Some(key), values),
            }
        };
        let mut result = Map::new();
        for (key, value) in own {
            if !is_own(key) {
                result.insert(key.clone(), value.clone());
            } else if let Some(value) = other.get(key) {
                result.insert(key.clone(), value.clone());
            }
        }
        let missing = other.iter().filter(|(key, _)| is_own(key) && !own.contains_key(*key));
        result.extend(missing.map(|(key, value)| (key.clone(), value.clone())));
        result
    }
}

fn object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text).ok()? {
        Value::Object(map) => Some(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// The object as text, with the indentation and the line end of another text.
fn printed(like: &str, object: &Map<String, Value>) -> String {
    use serde::Serialize;
    let second = like.lines().nth(1).unwrap_or_default();
    let indent = &second[..second.len() - second.trim_start().len()];
    let indent = if indent.is_empty() { "  " } else { indent };
    let mut bytes = Vec::new();
    let form = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, form);
    // Writing a map of texts to memory has no way to fail.
    let _ = object.serialize(&mut writer);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if like.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> JsonRules<'static> {
        JsonRules::of("package.json", &|name| name == "build").unwrap()
    }

    #[test]
    fn scripts_and_settings_of_tests_are_taken_from_the_other_side() {
        let base = "{\n\t\"name\": \"a\",\n\t\"scripts\": {\n\t\t\"test\": \"jest\",\n\t\t\"start\": \"node .\"\n\t},\n\t\"jest\": { \"bail\": true }\n}\n";
        let head = "{\n\t\"name\": \"b\",\n\t\"scripts\": {\n\t\t\"test\": \"exit 0\",\n\t\t\"start\": \"node b\",\n\t\t\"lint:all\": \"true\"\n\t},\n\t\"devDependencies\": {\n\t\t\"jest\": \"file:fake\",\n\t\t\"c8\": \"1\"\n\t}\n}\n";
        assert_eq!(
            node().composed(head, base).unwrap(),
            "{\n\t\"name\": \"b\",\n\t\"scripts\": {\n\t\t\"test\": \"jest\",\n\t\t\"start\": \"node b\"\n\t},\n\t\"devDependencies\": {\n\t\t\"c8\": \"1\"\n\t},\n\t\"jest\": {\n\t\t\"bail\": true\n\t}\n}\n"
        );
        for text in [base, head, "{}", "{ \"a\" : 1}"] {
            assert_eq!(node().composed(text, text).unwrap(), text);
        }
        assert_eq!(node().composed("[]", "{}"), None);
        assert_eq!(node().composed("{", "{}"), None);
    }

    #[test]
    fn a_manifest_is_the_yardsticks_by_its_keys() {
        for (text, wanted) in [
            (r#"{ "name": "jest" }"#, Some(false)),
            (r#"{ "scripts": { "start": "node .", "release": "x" } }"#, Some(false)),
            (r#"{ "scripts": { "build": "tsc" } }"#, Some(true)),
            (r#"{ "scripts": { "test:unit": "x" } }"#, Some(true)),
            (r#"{ "scripts": { "protest": "x" } }"#, Some(false)),
            (r#"{ "devDependencies": { "jest": "29" } }"#, Some(false)),
            (r#"{ "devDependencies": { "jest": "link:fake" } }"#, Some(true)),
            (r#"{ "vitest": {} }"#, Some(true)),
            (r#"{ "overrides": {} }"#, Some(true)),
            ("// no", None),
        ] {
            assert_eq!(node().has_yardstick(text), wanted, "{text}");
        }
        assert_eq!(node().told(r#"{ "overrides": { "a": "1" } }"#), [r#"overrides {"a":"1"}"#]);
        assert!(JsonRules::of("composer.json", &|_| false).is_some());
        assert!(JsonRules::of("tsconfig.json", &|_| false).is_none());
    }
}

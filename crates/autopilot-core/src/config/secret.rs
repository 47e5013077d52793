//! The settings about secrets, and warnings of secrets that were written into the file; they belong in
//! the environment.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::fault::Warning;
use super::yaml::{Value, YamlNode};
use crate::key_shape::any_key;

/// What a person says about the secrets that are found in the environment and in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretSettings {
    /// The names of variables whose values are no secrets, whatever the names say.
    pub ignore: Vec<String>,
}

impl SecretSettings {
    pub(super) fn is_default(&self) -> bool {
        *self == SecretSettings::default()
    }
}

/// Looks at every value of the file, whether its key is known or not.
pub(super) fn warnings(root: &YamlNode) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk(root, "", &mut warnings);
    warnings
}

fn walk(node: &YamlNode, key: &str, warnings: &mut Vec<Warning>) {
    match &node.value {
        Value::Scalar { text, .. } => {
            if let Some(message) = leak(key, text) {
                warnings.push(Warning::new(node.place, message));
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| walk(item, key, warnings)),
        Value::Mapping(entries) => {
            for entry in entries {
                let in_env = key == "env" || key.starts_with("env.");
                let inner = if in_env { format!("env.{}", entry.key) } else { entry.key.clone() };
                walk(&entry.node, &inner, warnings);
            }
        }
    }
}

fn leak(key: &str, text: &str) -> Option<String> {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)(key|token|secret|passw(or)?d|passphrase|credential|auth)s?$").ok()
    });
    static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&any_key()).ok());
    static URL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[a-z][a-z0-9+]*://[^/\s:@]+:[^/\s@]+@").ok());
    let matches =
        |rule: &Option<Regex>, text: &str| rule.as_ref().is_some_and(|r| r.is_match(text));
    if let Some(name) = key.strip_prefix("env.")
        && !text.is_empty()
        && !text.starts_with('$')
        && (matches(&NAME, name) || matches(&SHAPE, text))
    {
        return Some(format!(
            "`{name}` looks like a secret; export it in your shell and write `env_pass: [{name}]`"
        ));
    }
    if matches(&URL, text) {
        return Some(format!(
            "`{key}` contains a password; pass it in the environment (PGPASSWORD) or in ~/.pgpass"
        ));
    }
    matches(&SHAPE, text)
        .then(|| format!("`{key}` looks like a secret; keep secrets in the environment"))
}

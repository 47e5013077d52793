//! Reads the members of a JSON object that an agent wrote: a member of the wrong type is a fault,
//! an unknown one a warning.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::config::nearest::nearest;
use crate::plan::{Notes, PlanFaults, shown};

pub(super) struct Members<'a> {
    /// A JSON pointer to the object.
    at: String,
    given: &'a Map<String, Value>,
    keys: &'static [&'static str],
    /// The missing keys and their other spelling in the object: `depends_on` for `dependsOn`. A
    /// dependency lost over its spelling would be worse than a reading too generous.
    spelt: BTreeMap<&'static str, &'a str>,
}

impl<'a> Members<'a> {
    pub(super) fn new(
        at: impl Into<String>,
        given: &'a Map<String, Value>,
        keys: &'static [&'static str],
    ) -> Self {
        let is_missing = |key: &&&str| given.get(**key).is_none_or(Value::is_null);
        let missing = keys.iter().filter(is_missing).map(|key| (plain(key), *key));
        let missing: BTreeMap<String, &str> = missing.collect();
        let mut spelt = BTreeMap::new();
        let strange = given.keys().filter(|key| !keys.contains(&key.as_str()));
        for other in strange.filter(|key| key.len() <= SPELLING_BYTES_MAX) {
            if let Some(key) = missing.get(&plain(other)) {
                spelt.entry(*key).or_insert(other.as_str());
            }
        }
        Members { at: at.into(), given, keys, spelt }
    }

    pub(super) fn pointer(&self, key: &str) -> String {
        format!("{}/{key}", self.at)
    }

    /// Returns a member. A null counts as absent: strict schemas make models write every member.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        let given = self.given.get(key).filter(|value| !value.is_null());
        given.or_else(|| self.given.get(*self.spelt.get(key)?).filter(|value| !value.is_null()))
    }

    /// Returns the text of a member that must be there and not be blank.
    pub(super) fn needed(&self, key: &str, faults: &mut PlanFaults) -> Option<&'a str> {
        match self.get(key) {
            None => {
                faults.add(self.pointer(key), format!("`{key}` is missing"));
                None
            }
            Some(_) => {
                let text = self.text(key, faults)?;
                if text.trim().is_empty() {
                    faults.add(self.pointer(key), format!("`{key}` is empty"));
                }
                Some(text)
            }
        }
    }

    pub(super) fn text(&self, key: &str, faults: &mut PlanFaults) -> Option<&'a str> {
        let value = self.get(key)?;
        if value.as_str().is_none() {
            faults.add(self.pointer(key), format!("it is {}, not a text", kind(value)));
        }
        value.as_str()
    }

    /// Returns a list of texts; items that are no texts are faults and left out.
    pub(super) fn texts(&self, key: &str, faults: &mut PlanFaults) -> Vec<&'a str> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(items) = value.as_array() else {
            faults.add(self.pointer(key), format!("it is {}, not a list of texts", kind(value)));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (place, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) => texts.push(text),
                None => {
                    let pointer = format!("{}/{place}", self.pointer(key));
                    faults.add(pointer, format!("it is {}, not a text", kind(item)));
                }
            }
        }
        texts
    }

    /// Warns of unknown members. `whose` names the object: `the workflow`, `step `a``.
    pub(super) fn warn_of_unknown(&self, whose: &str, warnings: &mut Notes) {
        for key in self.given.keys().filter(|key| !self.keys.contains(&key.as_str())) {
            warnings.add_with(|| {
                let read_as = self.spelt.iter().find(|(_, other)| *other == key);
                let said = match (read_as, nearest(key, self.keys.iter().copied())) {
                    (Some((known, _)), _) => format!("is read as `{known}`"),
                    (None, Some(known)) => {
                        format!("is unknown and ignored; did you mean `{known}`?")
                    }
                    (None, None) => "is unknown and ignored".to_owned(),
                };
                format!("{} of {whose} {said}", shown(key))
            });
        }
    }
}

/// The longest key that may be another spelling of ours.
const SPELLING_BYTES_MAX: usize = 40;

fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads a whole number that is not negative, however it is written: 60 and 60.0 are the same in
/// JSON.
pub(super) fn whole(value: &Value) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let exact = |n: &f64| n.fract() == 0.0 && (0.0..=EXACT_MAX).contains(n);
    value.as_u64().or_else(|| value.as_f64().filter(exact).map(|n| n as u64))
}

//! A compiled JSON Schema that reports every fault of a value.

use jsonschema::Validator;
use serde_json::Value;

use super::AnswerFault;

/// A compiled JSON Schema with a name for messages.
pub struct AnswerSchema {
    name: String,
    validator: Validator,
}

/// A reason why a JSON Schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("cannot read JSON Schema `{name}`: {reason}")]
    Json { name: String, reason: String },
    #[error("cannot use JSON Schema `{name}`: {reason}")]
    Compile { name: String, reason: String },
}

impl AnswerSchema {
    /// Compiles the schema in `json`. Messages call it `name`: a file's path or a kind of answer.
    ///
    /// References to other files or addresses are errors: nothing is fetched.
    pub fn parse(name: &str, json: &str) -> Result<Self, SchemaError> {
        let value: Value = serde_json::from_str(json).map_err(|error| SchemaError::Json {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        let compiled = jsonschema::validator_for(&value);
        let validator = compiled.map_err(|error| SchemaError::Compile {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(AnswerSchema { name: name.to_owned(), validator })
    }

    /// The name under which messages mention the schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns every fault of `value` under this schema.
    pub fn faults(&self, value: &Value) -> Vec<AnswerFault> {
        let errors = self.validator.iter_errors(value);
        errors.map(|e| AnswerFault::new(e.instance_path().as_str(), e.to_string())).collect()
    }
}

impl std::fmt::Debug for AnswerSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("name", &self.name).finish_non_exhaustive()
    }
}

//! What a gate showed, kept as one text so that later prompts and people can read it.

use super::command::Check;
use super::{Job, JobError};
use autopilot_core::guard::Finding;
use autopilot_core::prompt::{Caps, Ran};
use autopilot_core::step::Step;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    pub checks: Vec<Seen>,
    pub findings: Vec<Finding>,
    /// Where the builder's account differs from what was seen.
    pub differs: Vec<String>,
}

/// One command and what the controller saw of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    pub name: String,
    pub command: String,
    pub exit_code: Option<i32>,
    pub output: String,
    pub log: String,
}

impl Seen {
    pub fn of(check: &Check) -> Seen {
        Seen {
            name: check.name.to_owned(),
            command: check.line.clone(),
            exit_code: check.ran.code,
            output: check.ran.tail.clone(),
            log: check.log.clone(),
        }
    }

    pub fn for_prompt(&self) -> Ran<'_> {
        Ran {
            name: &self.name,
            command: &self.command,
            exit_code: self.exit_code,
            output: &self.output,
        }
    }
}

impl Job {
    /// What a step showed last, this round or the one before.
    pub(super) fn evidence(&self, step: Step) -> Result<Evidence, JobError> {
        Ok(match self.answer_of(step)? {
            Some(text) => serde_json::from_str(&text).unwrap_or_default(),
            None => Evidence::default(),
        })
    }

    pub(super) fn answer_of(&self, step: Step) -> Result<Option<String>, JobError> {
        let hash = self.task.last(step).and_then(|shown| shown.facts.answer.as_ref());
        Ok(match hash {
            Some(hash) => Some(self.context.text(hash)?),
            None => None,
        })
    }

    pub(super) fn keep(&self, evidence: &Evidence) -> Result<String, JobError> {
        let text = serde_json::to_string(evidence)
            .map_err(|error| JobError::Internal(error.to_string()))?;
        Ok(self.context.texts.put(&self.clean(&text))?)
    }

    pub(super) fn caps(&self) -> Caps {
        let logging = &self.context.config.logging;
        Caps {
            prompt_bytes_max: usize::try_from(logging.prompt_bytes_max).unwrap_or(usize::MAX),
            tail_lines_max: logging.tail_lines_max as usize,
        }
    }
}

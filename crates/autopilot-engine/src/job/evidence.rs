//! What a gate showed, kept as one text so that later prompts and people can read it.

use super::command::Check;
use super::{Job, JobError};
use autopilot_core::fingerprint::{failing_tests, failure_fingerprint};
use autopilot_core::guard::Finding;
use autopilot_core::prompt::{Caps, Ran};
use autopilot_core::step::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    pub checks: Vec<Seen>,
    pub findings: Vec<Finding>,
    /// Where the builder's account differs from what was seen.
    pub differs: Vec<String>,
    /// What stood in the way of a merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// One command and what the controller saw of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    pub name: String,
    pub command: String,
    pub exit_code: Option<i32>,
    pub output: String,
    pub log: String,
    /// Names of the tests that failed, where the output tells them.
    #[serde(default)]
    pub failing: BTreeSet<String>,
    /// Of all the output, blind to times and addresses; none of an output without a word.
    #[serde(default)]
    pub mark: Option<String>,
    /// It left the files other than it found them, though it must not.
    #[serde(default)]
    pub changed: bool,
    /// It ended by itself, with an exit code.
    #[serde(default)]
    pub ended: bool,
}

impl Evidence {
    /// The checks that failed, and did not fail like this on the untouched base.
    pub fn new_failures<'a>(&'a self, base: &'a Evidence) -> impl Iterator<Item = &'a Seen> {
        let is_known = |seen: &Seen| base.checks.iter().any(|base| seen.is_as_on(base));
        self.checks.iter().filter(move |seen| seen.failed() && !is_known(seen))
    }
}

impl Seen {
    pub fn of(check: &Check) -> Seen {
        Seen {
            name: check.name.to_owned(),
            command: check.line.clone(),
            exit_code: check.ran.code,
            output: check.ran.tail.clone(),
            log: check.log.clone(),
            failing: failing_tests(&check.ran.text),
            mark: (!check.ran.text.trim().is_empty()).then(|| failure_fingerprint(&check.ran.text)),
            changed: check.changed,
            ended: check.ran.code.is_some() && !check.ran.timed_out && !check.ran.stuck,
        }
    }

    pub fn failed(&self) -> bool {
        self.exit_code != Some(0) || !self.ended || self.changed
    }

    /// Whether it fails no worse than it did on the base: the same way of ending, and either
    /// nothing but tests that failed there too, or word for word the same output.
    pub fn is_as_on(&self, base: &Seen) -> bool {
        let same_end = self.ended && base.ended && self.exit_code == base.exit_code;
        let known = !self.failing.is_empty() && self.failing.is_subset(&base.failing);
        let same_words = self.mark.is_some() && self.mark == base.mark;
        let same_rewrite = self.changed && base.changed;
        self.name == base.name && same_end && (known || same_words || same_rewrite)
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
        Ok(self.context.texts.put(&self.clean_json(evidence)?)?)
    }

    pub(super) fn caps(&self) -> Caps {
        let logging = &self.context.config.logging;
        Caps {
            prompt_bytes_max: usize::try_from(logging.prompt_bytes_max).unwrap_or(usize::MAX),
            tail_lines_max: logging.tail_lines_max as usize,
        }
    }
}

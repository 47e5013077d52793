//! What a gate showed, kept as one text so that later prompts and people can read it.

use super::user_command::CommandCheck;
use super::{Job, JobError};
use autopilot_core::fingerprint::{failing_tests, failure_fingerprint};
use autopilot_core::guard::Finding;
use autopilot_core::prompt::{Caps, RanCommand};
use autopilot_core::step::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundEvidence {
    pub checks: Vec<SeenCommand>,
    pub findings: Vec<Finding>,
    /// Where the builder's account differs from what was seen.
    pub differs: Vec<String>,
    /// What stood in the way of a merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// One command and what the controller saw of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeenCommand {
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

impl RoundEvidence {
    /// The checks that failed, and did not fail like this on the untouched base.
    pub fn new_failures<'a>(
        &'a self,
        base: &'a RoundEvidence,
    ) -> impl Iterator<Item = &'a SeenCommand> {
        self.checks.iter().filter(|seen| seen.failed() && !seen.is_known(base))
    }
}

/// What failed, told apart by what the untouched base showed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewFailures {
    pub reasons: Vec<String>,
    /// It fails on the base as well.
    pub excused: Vec<String>,
}

impl NewFailures {
    /// `failed` is what each failure is in words, and whether the base fails like it.
    pub fn of(failed: impl Iterator<Item = (String, bool)>) -> NewFailures {
        let mut failures = NewFailures::default();
        for (failure, is_known) in failed {
            let kind = if is_known { &mut failures.excused } else { &mut failures.reasons };
            kind.push(failure);
        }
        failures
    }
}

/// Where a builder's word on the tests differs from what the controller saw. It is told to the
/// reviewer and blocks nothing.
pub fn untrue_claim(tests_passed: Option<bool>, failure: Option<String>) -> Option<String> {
    let failure = failure.filter(|_| tests_passed == Some(true))?;
    Some(format!("the builder says the tests passed, but {failure}"))
}

impl SeenCommand {
    pub fn of(check: &CommandCheck) -> SeenCommand {
        SeenCommand {
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

    /// Whether the base fails like this.
    pub fn is_known(&self, base: &RoundEvidence) -> bool {
        base.checks.iter().any(|base| self.is_as_on(base))
    }

    /// Whether it fails no worse than it did on the base: the same way of ending, and either
    /// nothing but tests that failed there too, or word for word the same output.
    pub fn is_as_on(&self, base: &SeenCommand) -> bool {
        let same_end = self.ended && base.ended && self.exit_code == base.exit_code;
        let known = !self.failing.is_empty() && self.failing.is_subset(&base.failing);
        let same_words = self.mark.is_some() && self.mark == base.mark;
        let same_rewrite = self.changed && base.changed;
        self.name == base.name && same_end && (known || same_words || same_rewrite)
    }

    pub fn for_prompt(&self) -> RanCommand<'_> {
        RanCommand {
            name: &self.name,
            command: &self.command,
            exit_code: self.exit_code,
            output: &self.output,
        }
    }
}

impl Job {
    /// What a step showed last, this round or the one before.
    pub(super) fn evidence(&self, step: Step) -> Result<RoundEvidence, JobError> {
        Ok(match self.answer_of(step)? {
            Some(text) => serde_json::from_str(&text).unwrap_or_default(),
            None => RoundEvidence::default(),
        })
    }

    pub(super) fn answer_of(&self, step: Step) -> Result<Option<String>, JobError> {
        let hash = self.task.last(step).and_then(|shown| shown.facts.answer.as_ref());
        Ok(match hash {
            Some(hash) => Some(self.context.text(hash)?),
            None => None,
        })
    }

    pub(super) fn keep(&self, evidence: &RoundEvidence) -> Result<String, JobError> {
        Ok(self.context.texts.put(&self.clean_json(evidence)?)?)
    }

    pub(super) fn caps(&self) -> Caps {
        Caps::of(&self.context.config.logging)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, code: i32, failing: &[&str]) -> SeenCommand {
        SeenCommand {
            name: name.to_owned(),
            command: format!("run {name}"),
            exit_code: Some(code),
            output: String::new(),
            log: String::new(),
            failing: failing.iter().map(|test| (*test).to_owned()).collect(),
            mark: None,
            changed: false,
            ended: true,
        }
    }

    fn of(checks: Vec<SeenCommand>) -> RoundEvidence {
        RoundEvidence { checks, ..RoundEvidence::default() }
    }

    #[test]
    fn only_what_did_not_fail_on_the_base_is_new() {
        let base = of(vec![seen("tests", 1, &["a", "b"]), seen("lint", 0, &[])]);
        for (now, is_new) in [
            (seen("tests", 0, &[]), false),
            (seen("tests", 1, &["a"]), false),
            (seen("tests", 1, &["a", "c"]), true),
            (seen("tests", 2, &["a"]), true),
            (seen("lint", 1, &[]), true),
            (SeenCommand { ended: false, ..seen("tests", 1, &["a"]) }, true),
        ] {
            let shown = of(vec![now]);
            assert_eq!(shown.new_failures(&base).count(), usize::from(is_new), "{shown:?}");
        }
    }

    #[test]
    fn a_rewrite_by_the_formatter_is_excused_where_the_base_has_one() {
        let rough = || SeenCommand { changed: true, ..seen("format", 0, &[]) };
        assert_eq!(of(vec![rough()]).new_failures(&of(vec![rough()])).count(), 0);
        let neat = of(vec![seen("format", 0, &[])]);
        assert_eq!(of(vec![rough()]).new_failures(&neat).count(), 1);
    }

    #[test]
    fn failures_are_told_apart() {
        let failed = [("tests failed".to_owned(), true), ("lint failed".to_owned(), false)];
        let failures = NewFailures::of(failed.into_iter());
        assert_eq!(failures.reasons, ["lint failed"]);
        assert_eq!(failures.excused, ["tests failed"]);
    }

    #[test]
    fn a_claim_is_untrue_only_if_it_was_made_and_the_tests_failed() {
        let failure = || Some("tests failed with exit code 1".to_owned());
        let told = "the builder says the tests passed, but tests failed with exit code 1";
        assert_eq!(untrue_claim(Some(true), failure()).as_deref(), Some(told));
        for (claim, failure) in [(Some(true), None), (Some(false), failure()), (None, failure())] {
            assert_eq!(untrue_claim(claim, failure), None);
        }
    }
}

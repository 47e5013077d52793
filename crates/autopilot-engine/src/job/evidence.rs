//! The results of gates as a job keeps and reads them.

use super::user_command::CommandCheck;
use super::warm_gate::GateRun;
use super::{Job, JobError};
use autopilot_core::doubt::{Doubt, DoubtKind};
use autopilot_core::event::{Facts, FailedCommand};
use autopilot_core::evidence::{NewFailures, RoundEvidence, SeenCommand};
use autopilot_core::flaky::flaky_note;
use autopilot_core::holdout::HeldOutRun;
use autopilot_core::prompt::Caps;
use autopilot_core::step::Step;
use autopilot_core::test_report::TestTally;

impl Job {
    /// The last result of a step, from this round or the one before.
    pub(super) fn evidence(&self, step: Step) -> Result<RoundEvidence, JobError> {
        self.evidence_at(self.task.last(step).and_then(|shown| shown.facts.answer.as_deref()))
    }

    /// The results on the untouched base.
    pub(super) fn known_failures(&self) -> Result<RoundEvidence, JobError> {
        self.evidence_at(self.base_evidence.as_deref())
    }

    /// The results kept under a hash; unreadable ones are those of a gate that ran nothing.
    pub(super) fn evidence_at(&self, hash: Option<&str>) -> Result<RoundEvidence, JobError> {
        let text = hash.map(|hash| self.context.text(hash)).transpose()?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    pub(super) fn answer_of(&self, step: Step) -> Result<Option<String>, JobError> {
        let hash = self.task.last(step).and_then(|shown| shown.facts.answer.as_ref());
        Ok(hash.map(|hash| self.context.text(hash)).transpose()?)
    }

    pub(super) fn keep(&self, evidence: &RoundEvidence) -> Result<String, JobError> {
        Ok(self.context.texts.put(&self.clean_json(evidence)?)?)
    }

    /// The facts of a gate that ran commands: the tails of those that failed, and all the evidence.
    pub(super) fn facts_of_checks(
        &self,
        checks: &[CommandCheck],
        evidence: &RoundEvidence,
    ) -> Result<Facts, JobError> {
        let worst = checks.iter().find(|check| !check.passed()).or(checks.first());
        let failed = checks.iter().filter(|check| !check.passed());
        let tails: Vec<&str> = failed.map(|check| check.ran.tail.as_str()).collect();
        let tail = match tails.is_empty() {
            true => worst.map(|check| check.ran.tail.clone()).unwrap_or_default(),
            false => tails.join("\n"),
        };
        let mut failed: Vec<FailedCommand> = checks
            .iter()
            .filter(|check| !check.passed())
            .map(|check| FailedCommand { name: check.name.to_owned(), log: check.log.clone() })
            .collect();
        if failed.len() < 2 {
            failed.clear();
        }
        let note = |check: &CommandCheck| {
            let name = check.name;
            check.ran.notes.iter().map(|note| format!("{name}: {note}")).collect::<Vec<_>>()
        };
        Ok(Facts {
            exit: worst.and_then(|check| check.ran.exit.code),
            signal: worst.and_then(|check| check.ran.exit.signal),
            log: worst.map(|check| check.log.clone()),
            failed,
            tail: Some(self.context.texts.put(&tail)?),
            answer: Some(self.keep(evidence)?),
            notes: checks.iter().flat_map(note).collect(),
            ..Facts::default()
        })
    }

    /// The same, with how the commands ran.
    pub(super) fn facts_of_gate(
        &self,
        gate: &GateRun,
        evidence: &RoundEvidence,
    ) -> Result<Facts, JobError> {
        let mut facts = match &gate.taken {
            Some(taken) => Facts {
                exit: Some(0),
                log: taken.log.clone(),
                answer: Some(self.keep(evidence)?),
                ..Facts::default()
            },
            None => self.facts_of_checks(&gate.checks, evidence)?,
        };
        facts.gate = gate.mark.clone().map(Box::new);
        let tally = |seen: &SeenCommand| Some(TestTally::of(&seen.name, seen.report.as_ref()?));
        facts.tests = evidence.checks.iter().filter_map(tally).collect();
        facts.notes.extend(gate.notes.iter().cloned());
        let flaky = evidence.checks.iter().filter_map(flaky_note);
        facts.doubts.extend(flaky.map(|text| Doubt::new(DoubtKind::Flaky, text)));
        facts.doubts.extend(evidence.checks.iter().filter_map(SeenCommand::unasked));
        let held_out = evidence.checks.iter().filter_map(|seen| seen.holdout.as_deref());
        facts.doubts.extend(held_out.flat_map(HeldOutRun::doubts));
        facts.doubts.extend(gate.doubts.iter().cloned());
        Ok(Facts { warm: gate.is_warm, ..facts })
    }

    /// The failures that the untouched base does not have, and those that it has too.
    pub(super) fn new_failures(
        &self,
        checks: &[CommandCheck],
        evidence: &RoundEvidence,
    ) -> Result<NewFailures, JobError> {
        let base = self.known_failures()?;
        let failed = checks.iter().zip(&evidence.checks).filter(|(check, _)| !check.passed());
        let failed = failed.map(|(check, seen)| {
            let failure = seen.why_not_run(&base).unwrap_or_else(|| check.failure());
            match seen.is_known(&base) {
                true => (seen.excused_words(&failure), true),
                false => (failure, false),
            }
        });
        let mut failures = NewFailures::of(failed);
        failures.reasons.extend(evidence.hollow(&base));
        Ok(failures)
    }

    pub(super) fn caps(&self) -> Caps {
        Caps::of(&self.context.config.logging)
    }
}

/// The evidence of commands that were run.
pub(super) fn evidence_of(checks: &[CommandCheck]) -> RoundEvidence {
    let checks = checks.iter().map(CommandCheck::seen).collect();
    RoundEvidence { checks, ..RoundEvidence::default() }
}

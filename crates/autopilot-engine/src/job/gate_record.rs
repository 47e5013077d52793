//! The record of a run's gates: what is proven is taken from it, the order of commands is learnt from
//! it, and a command with two results on one tree is told.

use super::evidence::evidence_of;
use super::own_work::blocking;
use super::user_command::CommandCheck;
use super::warm_gate::GateRun;
use super::{Job, JobError};
use autopilot_core::doubt::{Doubt, DoubtKind};
use autopilot_core::evidence::RoundEvidence;
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::flaky::{FirstTry, flaky_gate_note};
use autopilot_core::gate_book::GateMark;
use autopilot_core::holdout::HOLDOUT;
use autopilot_core::step::Step;
use autopilot_host::git::Oid;

/// A gate that was proven by an earlier attempt.
pub struct TakenGate {
    pub evidence: RoundEvidence,
    pub log: Option<String>,
}

impl GateRun {
    /// What the commands have shown, now or when they were run.
    pub(super) fn evidence(&self) -> RoundEvidence {
        match &self.taken {
            Some(taken) => taken.evidence.clone(),
            None => evidence_of(&self.checks),
        }
    }
}

impl Job {
    /// The commands in the order in which they start.
    pub(super) fn in_order(
        &self,
        commands: Vec<(&'static str, String)>,
    ) -> Result<Vec<(&'static str, String)>, JobError> {
        let before = [self.evidence(Step::Validate)?, self.known_failures()?];
        Ok(self.context.config.rounds.gate_order.sort(commands, &before))
    }

    /// The name of a gate: everything that its verdict depends on.
    pub(super) fn gate_key(
        &self,
        commit: &Oid,
        commands: &[(&'static str, String)],
        is_warm: bool,
    ) -> Result<String, JobError> {
        let tree = blocking(|| self.context.workshop.hub.tree_of(commit))?;
        let mut grounds = Vec::new();
        for (name, line) in commands {
            grounds.push((*name, self.seed_key(line)?));
        }
        grounds.sort();
        // Other held-out tests are another gate.
        let is_held_out = commands.iter().any(|(name, _)| *name == HOLDOUT);
        let held_out = self.run.holdout.as_deref().filter(|_| is_held_out);
        let text = match held_out {
            None => serde_json::to_string(&(tree.to_string(), grounds, is_warm)),
            Some(digest) => serde_json::to_string(&(tree.to_string(), grounds, is_warm, digest)),
        };
        Ok(sha256_hex(text.map_err(JobError::Json)?.as_bytes()))
    }

    /// The gate as an earlier attempt of the run has proven it.
    pub(super) fn known_gate(
        &self,
        commit: &Oid,
        commands: &[(&'static str, String)],
        may_be_warm: bool,
    ) -> Result<Option<GateRun>, JobError> {
        for is_warm in [false, true] {
            if is_warm && !may_be_warm {
                break;
            }
            let key = self.gate_key(commit, commands, is_warm)?;
            let Some(known) = self.run.gates.proven(&key) else { continue };
            let evidence = self.evidence_at(known.mark.evidence.as_deref())?;
            if !evidence.proves(commands.len()) {
                continue;
            }
            let note = format!(
                "taken from the record: attempt {} has proven the same tree with the same commands",
                known.by
            );
            return Ok(Some(GateRun {
                is_warm: known.mark.is_warm,
                notes: vec![note],
                mark: Some(GateMark { taken: Some(known.by), ..known.mark.clone() }),
                taken: Some(TakenGate { evidence, log: known.mark.log.clone() }),
                ..GateRun::default()
            }));
        }
        Ok(None)
    }

    /// Marks a gate that was run, and tells what was flaky in it. `before` is its key from nothing
    /// when it began.
    pub(super) fn marked(
        &self,
        mut run: GateRun,
        commit: &Oid,
        commands: &[(&'static str, String)],
        before: &str,
    ) -> Result<GateRun, JobError> {
        // What changed while the commands ran, such as a tool, belongs to no result.
        if self.gate_key(commit, commands, false)? != before {
            return Ok(run);
        }
        let key = self.gate_key(commit, commands, run.is_warm)?;
        let is_green =
            run.checks.len() == commands.len() && run.checks.iter().all(CommandCheck::is_clean);
        if let Some(failed) = self.run.gates.failed(&key).filter(|_| is_green) {
            let text = flaky_gate_note(failed.mark.log.as_deref());
            run.doubts.push(Doubt::new(DoubtKind::Flaky, text));
        }
        let worst = run.checks.iter().find(|check| !check.passed()).or(run.checks.first());
        let tree = blocking(|| self.context.workshop.hub.tree_of(commit))?;
        run.mark = Some(GateMark {
            key,
            tree: Some(tree.to_string()),
            is_green,
            evidence: Some(self.keep(&run.evidence())?),
            log: worst.map(|check| check.log.clone()),
            is_warm: run.is_warm,
            taken: None,
        });
        Ok(run)
    }

    /// The result of a command that failed when it is run once more, where the configuration gives it
    /// a second try.
    pub(super) async fn second_try(
        &self,
        check: CommandCheck,
        again: impl AsyncFnOnce() -> Result<CommandCheck, JobError>,
    ) -> Result<CommandCheck, JobError> {
        let (gates, seen) = (&self.context.config.gates, check.seen());
        let base = self.known_failures()?;
        let is_due = gates.flaky.gives_second_try(&seen, &gates.known_flaky, &base);
        if !is_due || self.cancel.is_asked() {
            return Ok(check);
        }
        let mut second = again().await?;
        second.first_try = Some(FirstTry::of(&seen));
        Ok(second)
    }
}

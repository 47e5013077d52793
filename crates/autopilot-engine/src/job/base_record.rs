//! The proof of the untouched base by an earlier run, taken over while everything is as it was.

use super::base_seed::{SeedSearch, pays};
use super::gate_record::TakenGate;
use super::gate_site;
use super::own_work::blocking;
use super::warm_gate::GateRun;
use super::{Job, JobError};
use crate::base_proof::{self, BaseProof};
use crate::exposure;
use autopilot_core::evidence::SeenCommand;
use autopilot_core::pipeline::Switch;
use autopilot_host::git::Oid;
use autopilot_host::warm::{RoomPaths, SealedSeed};
use camino::Utf8PathBuf;
use std::time::Duration;

impl Job {
    /// The gate of the base as an earlier run has proven it. A base without a seed is quickly proven,
    /// or has to be proven to get one.
    pub(super) fn known_base(
        &self,
        base: &Oid,
        commands: &[(&'static str, String)],
    ) -> Result<Option<GateRun>, JobError> {
        let is_open = exposure::is_marked(&self.context.place);
        if self.run.switches.contains(&Switch::ProveBase) || is_open {
            return Ok(None);
        }
        let key = self.gate_key(base, commands, false)?;
        let Some(proof) = base_proof::find(&self.context.place, &key) else { return Ok(None) };
        if !proof.evidence.proves(commands.len()) {
            return Ok(None);
        }
        let Some(seed) = self.last_seed(&proof.evidence.checks)? else { return Ok(None) };
        // Gates from nothing need the packages that the base has loaded.
        let from = Utf8PathBuf::from_path_buf(RoomPaths::below(&seed.root()).cache);
        let from = from.map_err(|path| JobError::NotUtf8 { path })?;
        blocking(|| gate_site::copy_over(&from, &self.seed_caches()))?;
        let note = format!(
            "the base was not proven again: run {} has proven it, and nothing has changed since; \
             `--prove-base` proves it again",
            proof.run
        );
        let taken = TakenGate { evidence: proof.evidence, log: None };
        Ok(Some(GateRun { notes: vec![note], taken: Some(taken), ..GateRun::default() }))
    }

    /// The seed of the last command that has one; none if a command lacks the seed that it would pay
    /// to have.
    fn last_seed(&self, seen: &[SeenCommand]) -> Result<Option<SealedSeed>, JobError> {
        let mut last = None;
        for check in seen {
            let took = Duration::from_millis(check.ms.unwrap_or_default());
            match self.seed_of(&check.command)? {
                SeedSearch::Found(seed) => last = Some(seed),
                SeedSearch::Missing if !pays(took) => {}
                SeedSearch::Missing | SeedSearch::Outdated => return Ok(None),
            }
        }
        Ok(last)
    }

    /// Keeps the proof of a green base for the next run, which proves the base again if that fails.
    pub(super) fn keep_base(&self, run: &GateRun) {
        let Some(mark) = run.mark.as_ref().filter(|mark| mark.is_green) else { return };
        let proof =
            BaseProof { run: self.run.id.clone(), at: self.since, evidence: run.evidence() };
        let _next_time = base_proof::keep(&self.context.place, &mark.key, &proof);
    }
}

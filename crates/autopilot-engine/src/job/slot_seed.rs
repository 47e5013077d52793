//! What an agent's slot gets of what the base built, and its package caches of what the base loaded, so
//! that its first build is as short as the gate's. All of it is copied: nothing that an agent writes can
//! reach a seed, or a cache of a gate. An attempt that gets none works all the same.

use super::base_seed::SeedSearch;
use super::own_work::blocking;
use super::{Job, JobError, user_command};
use crate::cause;
use autopilot_core::warmth::{self, SlotOffer, SlotShare};
use autopilot_host::git::{Oid, PreparedSlot, Slot};
use autopilot_host::package_cache;
use autopilot_host::warm::{SealedSeed, SlotFill, SlotFilled};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

const TOO_SLOW: &str = "the agent's first build starts from nothing: copying what the base built costs \
                        more than it saves here";

impl Job {
    /// Gives an agent's slot that was just filled what the base has built and loaded, as far as that
    /// works, and notes what did not.
    pub(super) fn fill_from_seeds(&self, slot: &Slot, commit: &Oid, prepared: &PreparedSlot) {
        let filled = self.fill_caches().and_then(|()| self.fill_slot(slot, commit, prepared));
        match filled {
            Ok(()) => {}
            // It is not the work that is cut short, but what would have made it faster.
            Err(_) if self.cancel.is_asked() => {}
            Err(error) => {
                let why = cause::chain(&error);
                self.note_of_slot(format!("the agent's first build starts from nothing: {why}"));
            }
        }
    }

    fn note_of_slot(&self, note: String) {
        let notes = &mut self.seen().of_slots;
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Copies the packages that the run's base has loaded into the agents' caches, once in a process.
    fn fill_caches(&self) -> Result<(), JobError> {
        let (from, to) = (self.seed_caches(), self.agents_caches());
        if self.warm_store()?.is_none() {
            return Ok(());
        }
        let filled = &self.context.workshop.are_caches_filled;
        let mut is_filled = filled.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_filled || !from.exists() {
            return Ok(());
        }
        self.make_caches(&to)?;
        let spare = to.with_extension("new");
        blocking(|| {
            package_cache::fill(from.as_std_path(), to.as_std_path(), spare.as_std_path())
                .map_err(JobError::directory("fill", &to))
        })?;
        *is_filled = true;
        Ok(())
    }

    fn fill_slot(
        &self,
        slot: &Slot,
        commit: &Oid,
        prepared: &PreparedSlot,
    ) -> Result<(), JobError> {
        if !warmth::fills_slots(self.context.config.worktrees.keep) {
            return Ok(());
        }
        let seeds = self.seeds_for_slot()?;
        let fill = blocking(|| SlotFill::new(slot, (commit, prepared), &seeds))?;
        let Some(fill) = fill else { return Ok(()) };
        let offer = |(at, seed): (usize, &SealedSeed)| SlotOffer {
            cold: seed.cold_time(),
            laid: seed.laid_time(),
            // A name that is no text is left to the agent.
            dirs: fill.offer(at).iter().filter_map(|dir| Some(dir.to_str()?.to_owned())).collect(),
        };
        let offers: Vec<SlotOffer> = seeds.iter().enumerate().map(offer).collect();
        let shares = warmth::slot_shares(&offers);
        let share = |SlotShare { seed, dirs }: &SlotShare| {
            let cold = seeds.get(*seed).map(SealedSeed::cold_time).unwrap_or_default();
            let dirs = dirs.iter().map(PathBuf::from).collect();
            (*seed, dirs, warmth::slot_time_max(cold))
        };
        let wanted: Vec<(usize, Vec<PathBuf>, Duration)> = shares.iter().map(share).collect();
        let seen = blocking(|| fill.put(&wanted))?;
        let has_any = offers.iter().any(|offer| !offer.dirs.is_empty());
        if has_any && !seen.contains(&SlotFilled::Done) {
            self.note_of_slot(TOO_SLOW.to_owned());
        }
        Ok(())
    }

    /// The seeds of the commands that will prove this work.
    fn seeds_for_slot(&self) -> Result<Vec<SealedSeed>, JobError> {
        // Whoever plans has no specification yet.
        let spec = self.spec().ok();
        let mut seeds = Vec::new();
        for (_, line) in user_command::validation(self, spec.as_ref()) {
            match self.seed_of(&line)? {
                SeedSearch::Found(seed) => seeds.push(seed),
                SeedSearch::Missing | SeedSearch::Outdated => {}
            }
        }
        Ok(seeds)
    }
}

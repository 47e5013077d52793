//! The proof from nothing that runs beside the steps of its task. The core says which should run; it is
//! no attempt, so nothing of it is recorded before its own step takes the result.

use super::Shell;
use crate::job::{Cancel, Job};
use autopilot_core::id::AttemptId;
use autopilot_core::last_word::{self, ProofAhead};
use autopilot_core::state::Status;
use autopilot_core::step::Step;
use autopilot_core::wanted::Want;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A proof that was started, which may have ended since.
pub struct RunningProof {
    proof: ProofAhead,
    id: AttemptId,
}

impl Shell {
    /// Starts the proof that should run beside the steps of its task, and ends one that should not.
    pub(super) fn reconcile_proof(&mut self) {
        let state = self.pilot.settled();
        // A replay has the recorded steps and nothing beside them.
        let is_live = self.recording_ended.is_none() && self.context.player.is_none();
        let wanted = is_live.then(|| last_word::ahead(state)).flatten();
        let is_same = |running: &RunningProof| {
            wanted.as_ref().is_some_and(|proof| {
                (proof.task, &proof.of) == (running.proof.task, &running.proof.of)
            })
        };
        if let Some(unwanted) = self.proof.take_if(|running| !is_same(running))
            && let Some(cancel) = self.cancels.get(&unwanted.id)
        {
            cancel.now();
        }
        let Some(proof) = wanted.filter(|proof| proof.may_begin && self.proof.is_none()) else {
            return;
        };
        let task = state.task(proof.task);
        let Status::Running { attempt, .. } = task.status else { return };
        let want = Want { id: attempt.beside(), task: task.id, step: Step::Prove, lane: 0 };
        let text = format!("{}: meanwhile, the result is proven from nothing", task.label());
        let (cancel, context) = (Cancel::default(), Arc::clone(&self.context));
        let result = context.prepared.announce(proof.task, proof.of.clone());
        let job = Job::new(state, want, context, cancel.clone(), mpsc::channel(1).1);
        self.feed.notice(&text);
        self.cancels.insert(want.id, cancel);
        self.proof = Some(RunningProof { proof, id: want.id });
        self.jobs.spawn(async move {
            job.prove_ahead(result).await;
            want.id
        });
    }
}

//! The last word, prepared: what a review is about to approve is proven from nothing beside it, so that
//! the proof costs cores and not time.

use super::user_command;
use super::warm_gate::GateRun;
use super::{Cancel, Done, Job, JobError};
use autopilot_core::event::Outcome;
use autopilot_core::last_word;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::wanted::Want;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

impl Job {
    /// The review, and beside it the proof from nothing where this tree will be the result.
    pub(super) async fn review(&self) -> Result<Done, JobError> {
        let Some(ahead) = self.prover_ahead()? else { return self.judge().await };
        let stopped = async {
            self.cancel.asked().await;
            ahead.cancel.now();
            std::future::pending().await
        };
        let mut proof = pin!(async {
            tokio::select! {
                gate = ahead.prove_ahead() => gate,
                never = stopped => never,
            }
        });
        let mut proven = None;
        let judged = {
            let mut judging = pin!(self.judge());
            loop {
                tokio::select! {
                    judged = &mut judging => break judged,
                    gate = &mut proof, if proven.is_none() => proven = Some(gate),
                }
            }
        };
        // What is not approved is not the result; its proof ends here, with all it has begun.
        if !judged.as_ref().is_ok_and(|(outcome, _)| *outcome == Outcome::Passed) {
            ahead.cancel.now();
        }
        let gate = match proven {
            Some(gate) => gate,
            None => proof.await,
        };
        let (outcome, mut facts) = judged?;
        if ahead.cancel.is_asked() {
            return Ok((outcome, facts));
        }
        // A proof that was not made now is made when its turn comes.
        if let Ok(gate) = gate {
            let failures = self.new_failures(&gate.checks, &gate.evidence())?;
            let red = "fails from nothing, although it passed over what the base had built";
            facts.notes.extend(gate.notes);
            facts.notes.extend((!failures.reasons.is_empty()).then(|| red.to_owned()));
            facts.gate = gate.mark.map(Box::new);
        }
        Ok((outcome, facts))
    }

    /// A job that proves this tree from nothing, under the time limit of such a proof.
    fn prover_ahead(&self) -> Result<Option<Job>, JobError> {
        // The reviewer's programs and the proof's would share their ports.
        let has_ports = self.context.config.worktrees.ports > 0;
        let is_due = self.run.switches.contains(&Switch::ColdProof) && !has_ports;
        if !is_due || self.context.player.is_some() {
            return Ok(None);
        }
        let state = self.state()?;
        if !last_word::is_near(&state, &self.task) {
            return Ok(None);
        }
        let want = Want { step: Step::Prove, ..self.want };
        let context = Arc::clone(&self.context);
        Ok(Some(Job::new(&state, want, context, Cancel::default(), mpsc::channel(1).1)))
    }

    async fn prove_ahead(&self) -> Result<GateRun, JobError> {
        let commands = user_command::validation(self, Some(&self.spec()?));
        self.checks(&self.commit()?, commands, Instant::now()).await
    }
}

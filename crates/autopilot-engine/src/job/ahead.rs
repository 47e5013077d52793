//! The proof from nothing of what becomes the result of a run, made when its step comes or beside the
//! steps before it, so that it costs cores and not time.

use super::user_command;
use super::warm_gate::GateRun;
use super::{Done, Job, JobError};
use autopilot_core::event::Outcome;
use autopilot_core::evidence::NewFailures;
use autopilot_core::id::TaskId;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// The place where a proof that runs beside a task's steps is left for the step that needs it.
#[derive(Default)]
pub struct PreparedProof(Mutex<Option<AnnouncedProof>>);

struct AnnouncedProof {
    task: TaskId,
    /// The tree of the task; for the run, the tip of its branch.
    of: String,
    gate: oneshot::Receiver<GateRun>,
}

impl PreparedProof {
    /// Announces a proof. Its result comes by the sender, or never if it was not made.
    pub fn announce(&self, task: TaskId, of: String) -> oneshot::Sender<GateRun> {
        let (sender, gate) = oneshot::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(AnnouncedProof { task, of, gate });
        sender
    }

    /// The proof of exactly this work, once. A proof of anything else is given up.
    fn take(&self, task: TaskId, of: Option<&str>) -> Option<oneshot::Receiver<GateRun>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_it = |proof: &AnnouncedProof| proof.task == task && Some(proof.of.as_str()) == of;
        known.filter(is_it).map(|proof| proof.gate)
    }
}

impl Job {
    /// Proves the work beside its other steps and leaves the result for the step that needs it.
    pub async fn prove_ahead(mut self, result: oneshot::Sender<GateRun>) {
        let limits = self.own_work();
        let proof = async {
            self.look_at_whole()?;
            let count = self.context.config.worktrees.ports;
            let _held = self.context.workshop.ports.lease(self.want.id, count)?;
            let commands = match self.task.parent {
                Some(_) => self.commands_of_task()?,
                None => self.commands_of_all()?,
            };
            self.checks(&self.commit()?, commands, self.began).await
        };
        let gate = limits.clone().scope(proof).await;
        limits.scope(async { self.remove_leftovers() }).await;
        // A proof that was cancelled or could not be made is made when its step comes.
        if let (Ok(gate), false) = (gate, self.cancel.is_asked()) {
            let _nobody_waits = result.send(gate);
        }
    }

    /// The proof of these commands from nothing: the one that was made beside the steps before, or a
    /// new one.
    pub(super) async fn proof(
        &self,
        commands: Vec<(&'static str, String)>,
    ) -> Result<GateRun, JobError> {
        let of = match self.task.parent {
            Some(_) => self.task.tree.as_deref(),
            None => self.task.commit.as_deref(),
        };
        if let Some(prepared) = self.context.prepared.take(self.task.id, of) {
            let gate = tokio::select! {
                gate = prepared => gate.ok(),
                () = self.cancel.asked() => None,
            };
            if let Some(gate) = gate {
                return Ok(gate);
            }
        }
        self.checks(&self.commit()?, commands, self.began).await
    }

    /// The commands that prove a task by itself.
    fn commands_of_task(&self) -> Result<Vec<(&'static str, String)>, JobError> {
        Ok(self.with_holdout(user_command::validation(self, Some(&self.spec()?)), false))
    }

    /// PROVE of a task whose tree becomes the result of the run.
    pub(super) async fn prove_task(&self) -> Result<Done, JobError> {
        let gate = self.proof(self.commands_of_task()?).await?;
        let evidence = gate.evidence();
        let mut facts = self.facts_of_gate(&gate, &evidence)?;
        let NewFailures { reasons, excused } = self.new_failures(&gate.checks, &evidence)?;
        facts.excuse(excused);
        if reasons.is_empty() {
            return Ok((Outcome::Passed, facts));
        }
        facts.fingerprint = Some(super::validate::fingerprint(&gate.checks, &[]));
        let why = format!("it fails from nothing: {}", reasons.join("; "));
        facts.notes.push(format!("passed over what the base had built, but {why}"));
        Ok((Outcome::Failed { why }, facts))
    }
}

//! PUSH: pushes the run's proven branch to the remote. When that fails, the branch is left as a
//! patch and a bundle.

use super::workshop::seconds_now;
use super::{Done, Job, JobError};
use autopilot_core::event::{Facts, Outcome};
use autopilot_host::git::artifact::Artifacts;
use autopilot_host::git::push::{Hooks, Rebase};
use autopilot_host::git::{GitError, Oid, PushFailure, PushOutcome, PushRequest, push};
use std::time::Duration;

/// Delays between tries when the network fails, as many as the configuration allows.
const NETWORK_DELAYS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(9),
    Duration::from_secs(27),
    Duration::from_secs(60),
];

impl Job {
    pub(super) fn push(&self) -> Result<Done, JobError> {
        let workshop = &self.context.workshop;
        let tries = self.context.config.retries(self.want.step) as usize;
        let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let base = Oid::parse(&self.run.base)?;
        let artifacts = self.context.place.views().join("artifacts");
        let request = PushRequest {
            remote: &self.context.config.repo.remote_name,
            branch: &self.run.branch,
            base: &base,
            task: &self.artifact_name(),
            timestamp: &stamp,
            artifacts_dir: artifacts.as_std_path(),
            network_delays: &NETWORK_DELAYS[..tries.min(NETWORK_DELAYS.len())],
            timeout: self.timeout(),
            rebase: Rebase::IfAccepted,
            hooks: Hooks::Off,
            now: seconds_now(),
            border: &self.context.border,
        };
        // The pushed tree must be the proven one: a rebase makes an unproven tree, unless the
        // remote's other commits change nothing.
        let proven = self.proven_tip()?;
        let mut accept =
            |tip: &Oid| workshop.hub.tree_of(tip).is_ok_and(|tree| Some(tree) == proven);
        let unwanted = || self.cancel.is_asked();
        let pushed = match push(&workshop.hub, &workshop.repo, &request, &mut accept, &unwanted) {
            Err(GitError::Withheld { branch, why }) => {
                let why = format!("{branch} was not pushed: {why}");
                return Ok((Outcome::Failed { why }, Facts::default()));
            }
            pushed => pushed?,
        };
        match pushed {
            PushOutcome::Pushed(pushed) => {
                let mut facts =
                    Facts { commit: Some(pushed.commit.to_string()), ..Facts::default() };
                if pushed.rebased {
                    let note =
                        "rebased onto the remote's commits; the files are still the validated ones";
                    facts.notes.push(note.to_owned());
                }
                Ok((Outcome::Passed, facts))
            }
            PushOutcome::Failed(failure) => self.refused(&failure),
            PushOutcome::Unwanted => Ok((Outcome::Revoked, Facts::default())),
        }
    }

    /// The tree at the tip of the run's branch, which was validated before it was merged.
    fn proven_tip(&self) -> Result<Option<Oid>, JobError> {
        let hub = &self.context.workshop.hub;
        let tip = hub.resolve(&format!("refs/heads/{}", self.run.branch))?;
        Ok(tip.map(|tip| hub.tree_of(&tip)).transpose()?)
    }

    fn refused(&self, failure: &PushFailure) -> Result<Done, JobError> {
        let stderr = self.clean(&failure.stderr);
        let log = self.log_name("push");
        self.write_view(
            &log,
            &format!("{stderr}\n{}\n", failure.gh_auth.clone().unwrap_or_default()),
        )?;
        let mut facts = Facts {
            log: Some(log),
            tail: Some(self.context.texts.put(&stderr)?),
            artifact: Some(failure.artifacts.patch.display().to_string()),
            ..Facts::default()
        };
        facts.notes.extend(file_notes(&failure.artifacts));
        let class = format!("{:?}", failure.class).to_lowercase();
        let said = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        let why = format!("the remote refused ({class}): {said}; {}", failure.next_step);
        Ok((Outcome::Failed { why }, facts))
    }

    /// The name of artifacts; a run of one task uses the task's name.
    fn artifact_name(&self) -> String {
        let source = camino::Utf8Path::new(&self.run.source);
        match self.task.children.as_slice() {
            [_] => autopilot_core::task_file::task_id(source),
            _ => format!("run-{}", self.run.id),
        }
    }
}

/// Notes that name the patch and the bundle of a branch that could not be delivered.
pub(super) fn file_notes(files: &Artifacts) -> Vec<String> {
    let mut notes = vec![format!("patch: {}", files.patch.display())];
    notes.extend(files.bundle.as_ref().map(|bundle| format!("bundle: {}", bundle.display())));
    notes
}

//! PULL_REQUEST: opens or updates a pull request for the pushed branch. When that fails, its text
//! is left in a file, beside the patch and the bundle.

use super::push::file_notes;
use super::{Context, Done, Job, JobError};
use crate::begin::costs_unknown;
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::evidence::SeenCommand;
use autopilot_core::id::TaskId;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_host::forge::{
    self, ForgeError, ForgeRequest, How, Published, PullRequestDraft, Site,
};
use autopilot_host::git::artifact::write_artifacts;
use autopilot_host::git::{GitError, Oid, ref_component};
use autopilot_view::leaves;
use autopilot_view::pull_request::{PullRequestFacts, pull_request};
use std::collections::BTreeMap;

/// Tasks whose commands are looked up; the text has room for fewer.
const CHECKED_MAX: usize = 500;

impl Job {
    pub(super) fn pull_request(&self) -> Result<Done, JobError> {
        let draft = self.draft()?;
        let name = format!("artifacts/{}_pull_request.md", ref_component(&self.run.id));
        let text = format!("# {}\n\n{}\n", draft.title, draft.body);
        let Context { workshop, border, .. } = &*self.context;
        match border.pass_text(&workshop.hub, "the pull request", &text) {
            Ok(()) => {}
            Err(GitError::Withheld { branch, why }) => {
                let why = format!("{branch} was not opened: {why}");
                return Ok((Outcome::Failed { why }, Facts::default()));
            }
            Err(error) => return Err(error.into()),
        }
        let artifact = self.write_clean(&name, &text)?;
        let unwanted = || self.cancel.is_asked();
        let asked = ForgeRequest {
            dir: &self.context.workshop.repo.root,
            remote: &self.context.config.repo.remote_name,
            variables: &self.context.variables,
            timeout: self.timeout(),
            unwanted: &unwanted,
        };
        let tries = self.context.config.retries(self.want.step) as usize;
        let delays = &forge::DELAYS[..tries.min(forge::DELAYS.len())];
        let published = forge::choose(&asked)
            .and_then(|chosen| forge::publish(chosen.forge.as_ref(), &draft, delays, &unwanted));
        match published {
            Ok(published) => Ok((Outcome::Passed, facts_of(published, artifact))),
            Err(ForgeError::Unwanted) => Ok((Outcome::Revoked, Facts::default())),
            Err(error) => self.not_opened(&error, &draft, artifact, Site::of(&asked).ok()),
        }
    }

    /// The text of the pull request, redacted like a log because it leaves the machine.
    fn draft(&self) -> Result<PullRequestDraft, JobError> {
        let state = self.state()?;
        let config = &self.context.config;
        let known = PullRequestFacts {
            prefix: &config.github.pr_title_prefix,
            remote: &config.repo.remote_name,
            goal: &self.goal(&state)?,
            checks: self.checks_made(&state)?,
            unpriced: &costs_unknown(config, self.run.flow),
        };
        let text = pull_request(&state, &known);
        Ok(PullRequestDraft {
            head: self.run.branch.clone(),
            base: self.run.base_branch.clone(),
            title: self.clean(&text.title),
            body: self.clean(&text.body),
        })
    }

    /// The run's own goal, or that of its only task.
    fn goal(&self, state: &State) -> Result<String, JobError> {
        let mut specs = self.task.children.iter().map(|child| &state.task(*child).spec.body);
        let hash = match (self.task.spec.body.as_str(), specs.next(), specs.next()) {
            ("", Some(only), None) => only,
            (own, _, _) => own,
        };
        if hash.is_empty() {
            return Ok(String::new());
        }
        let text = self.context.text(hash)?;
        // A plan is kept as its text, a task as its parsed specification.
        Ok(serde_json::from_str::<TaskSpec>(&text).map_or(text, |spec| spec.goal))
    }

    fn checks_made(
        &self,
        state: &State,
    ) -> Result<BTreeMap<(TaskId, Step), Vec<SeenCommand>>, JobError> {
        let tasks = leaves(state).filter(|task| task.is_closed()).take(CHECKED_MAX);
        let mut checks = BTreeMap::new();
        for task in state.root().into_iter().chain(tasks) {
            for step in [Step::Preflight, Step::Validate, Step::Uat] {
                let hash = task.last(step).and_then(|shown| shown.facts.answer.as_deref());
                checks.insert((task.id, step), self.evidence_at(hash)?.checks);
            }
        }
        Ok(checks)
    }

    fn not_opened(
        &self,
        error: &ForgeError,
        draft: &PullRequestDraft,
        artifact: String,
        site: Option<Site>,
    ) -> Result<Done, JobError> {
        let said = self.clean(&crate::cause::chain(error));
        let next = error.next_step();
        let log = self.log_name("pull_request");
        self.write_view(&log, &format!("{said}\n{next}\n"))?;
        let views = self.context.place.views();
        let mut facts = Facts {
            log: Some(log),
            tail: Some(self.context.texts.put(&said)?),
            notes: vec![format!("pull request text: {}", views.join(&artifact))],
            artifact: Some(artifact),
            ..Facts::default()
        };
        facts.notes.extend(self.branch_as_files()?);
        let by_hand = match site {
            Some(site) => format!(
                "the branch is pushed; open the pull request at {}",
                site.page(&draft.base, &draft.head)
            ),
            None => "the branch is pushed".to_owned(),
        };
        Ok((Outcome::Failed { why: format!("{said}; {next}; {by_hand}") }, facts))
    }

    /// Writes the patch and bundle that a failed push also leaves.
    fn branch_as_files(&self) -> Result<Vec<String>, JobError> {
        let hub = &self.context.workshop.hub;
        let branch = &self.run.branch;
        let Some(tip) = hub.resolve(&format!("refs/heads/{branch}"))? else {
            return Ok(Vec::new());
        };
        let dir = self.context.place.views().join("artifacts");
        let base = Oid::parse(&self.run.base)?;
        let stem = ref_component(&self.run.id);
        let border = &self.context.border;
        let files = write_artifacts(hub, dir.as_std_path(), &stem, &base, &tip, branch, border)?;
        Ok(file_notes(&files))
    }
}

fn facts_of(published: Published, artifact: String) -> Facts {
    let Published { url, how, .. } = published;
    let how = match how {
        How::Opened => "opened",
        How::Updated => "updated",
        How::Unchanged => "already up to date",
    };
    Facts {
        notes: vec![format!("pull request {how}: {url}")],
        artifact: Some(artifact),
        url: Some(url),
        ..Facts::default()
    }
}

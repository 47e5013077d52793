//! REVIEW: another agent judges the change. Its verdict is one of the things that are weighed.

use super::agent::Question;
use super::evidence::Seen;
use super::workshop::For;
use super::{Done, Job, JobError};
use autopilot_agents::Access;
use autopilot_agents::answer::{Answer, Issue, Review, Severity, Verdict as Said};
use autopilot_core::event::{Outcome, Verdict};
use autopilot_core::fingerprint::fingerprint;
use autopilot_core::prompt;
use autopilot_core::step::Step;
use autopilot_host::git::Oid;

impl Job {
    pub(super) async fn review(&self) -> Result<Done, JobError> {
        let spec = self.spec()?;
        let change = self.change().await?;
        let evidence = self.evidence(Step::Validate)?;
        let ran: Vec<_> = evidence.checks.iter().map(Seen::for_prompt).collect();
        let built = if self.task.round > 1 { Step::Fix } else { Step::Build };
        let claimed = self.answer_of(built)?;
        let used = self.task.last(built).and_then(|shown| shown.facts.used.as_deref());
        let against = used.map(|used| used.against.as_slice()).unwrap_or_default();
        let differs = [&evidence.differs[..], against].concat();
        let prompt = prompt::reviewer(
            &prompt::Review {
                task: &spec,
                diff: &change.diff,
                validation: &ran,
                claimed: claimed.as_deref(),
                differs: &differs,
                findings: &evidence.findings,
                schema: Review::SCHEMA_JSON,
            },
            self.caps(),
        );
        let bench = self.bench(For::Agent, &self.commit()?, &self.base()?).await?;
        let schema = self.schema_file("review_schema.json", Review::SCHEMA_JSON)?;
        let answered = self
            .answered::<Review>(Question {
                prompt,
                dir: &bench.dir,
                access: Access::Read,
                schema: Some((Review::SCHEMA_JSON, schema)),
                session: None,
                write: Vec::new(),
            })
            .await?;
        let mut facts = self.facts_of(&answered.turn)?;
        let Some(review) = &answered.answer else {
            return Ok((answered.outcome(self), facts));
        };
        let text = self.clean_json(review)?;
        let name = format!("artifacts/{}_{}_review.json", self.task.name(), self.want.id);
        facts.artifact = Some(self.write_clean(&name, &text)?);
        facts.answer = Some(self.context.texts.put(&text)?);
        facts.issues = review.issues.len() as u64;
        facts.blocking = review.issues.iter().filter(|issue| blocks(issue)).count() as u64;
        facts.verdict = Some(match review.verdict {
            Said::Approve => Verdict::Approve,
            Said::RequestChanges => Verdict::RequestChanges,
        });
        match review.verdict {
            Said::Approve => Ok((Outcome::Passed, facts)),
            Said::RequestChanges => {
                facts.fingerprint = Some(issues_mark(&review.issues));
                let why = format!("the reviewer asks for changes: {}", review.summary);
                Ok((Outcome::Failed { why }, facts))
            }
        }
    }

    pub(super) fn commit(&self) -> Result<Oid, JobError> {
        let missing = || JobError::Internal("there is no commit to look at".to_owned());
        Ok(Oid::parse(self.task.commit.as_deref().ok_or_else(missing)?)?)
    }

    pub(super) fn base(&self) -> Result<Oid, JobError> {
        Ok(Oid::parse(self.task.base.as_deref().unwrap_or(&self.run.base))?)
    }

    /// The schema as a file an agent's own mechanism can be given.
    pub(super) fn schema_file(
        &self,
        name: &str,
        json: &str,
    ) -> Result<camino::Utf8PathBuf, JobError> {
        let path = self.context.place.state.join("schemas").join(name);
        super::process::write_plain(&path, json)?;
        Ok(path)
    }
}

/// Under the evidence gate only what rests on a failing test or an acceptance criterion blocks.
fn blocks(issue: &Issue) -> bool {
    let text = format!("{} {}", issue.message, issue.fix).to_lowercase();
    let rests = ["test", "criteri", "acceptance"].iter().any(|word| text.contains(word));
    issue.severity == Severity::Blocker && rests
}

fn issues_mark(issues: &[Issue]) -> String {
    let mut messages: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
    messages.sort_unstable();
    fingerprint(&messages.join("\n"))
}

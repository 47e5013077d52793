//! UAT_GENERATE and UAT_RUN: acceptance cases written by an agent, acceptance run by the
//! controller.

use super::asking::Question;
use super::evidence::evidence_of;
use super::mend::Mending;
use super::own_work::blocking;
use super::reporter::Asking;
use super::user_command;
use super::{Done, Job, JobError};
use autopilot_agents::AgentOutcome;
use autopilot_agents::answer::markdown;
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::evidence::rewriting;
use autopilot_core::fingerprint::failure_fingerprint;
use autopilot_core::prompt::{self, UatGenerate};
use autopilot_core::step::Step;

impl Job {
    pub(super) async fn uat_generate(&self) -> Result<Done, JobError> {
        let spec = self.spec()?;
        let change = self.change()?;
        let last_cases = self.answer_of(Step::UatGenerate)?;
        let prompt = prompt::uat_generate(
            &UatGenerate {
                task: &spec,
                diff: &change.diff,
                last_cases: last_cases.as_deref(),
                uat_dir: self.context.config.commands.uat_dir.as_deref(),
            },
            self.caps(),
        );
        let bench = self.judge_bench(&self.commit()?, &self.base()?).await?.bench;
        let turn = self.turn(&Question::reading(prompt, &bench.dir)).await?;
        let mut facts = self.facts_of(&turn)?;
        if turn.ending.outcome != AgentOutcome::Success {
            return Ok((self.judged(&turn.ending), facts));
        }
        let cases = markdown(&turn.ending.answer);
        if cases.trim().is_empty() {
            return Ok((Outcome::Broke { why: "it wrote no acceptance cases".to_owned() }, facts));
        }
        let name = format!("uat/{}_uat.md", self.file_word());
        facts.artifact = Some(self.write_view(&name, &cases)?);
        facts.answer = Some(self.context.texts.put(&self.clean(&cases))?);
        Ok((Outcome::Passed, facts))
    }

    /// The word in the names of this task's files; the acceptance of the whole run is `final`.
    fn file_word(&self) -> &str {
        if self.task.parent.is_some() { self.task.name() } else { "final" }
    }

    pub(super) async fn uat(&self) -> Result<Done, JobError> {
        let spec = self.spec()?;
        let Some(line) = user_command::uat(self, &spec) else {
            let why = "no `uat` command is configured".to_owned();
            return Ok((Outcome::Skipped { why }, Facts::default()));
        };
        let bench = self.proof_bench(&self.commit()?, self.began).await?;
        let check =
            self.command(("uat", &line), &bench.site(), self.timeout(), Asking::Nobody).await?;
        let checks = std::slice::from_ref(&check);
        let mut facts = self.facts_of_checks(checks, &evidence_of(checks))?;
        // The base is not accepted, so nobody knows whether it always does that.
        let changed = blocking(|| bench.slot.changed_files(&bench.commit))?;
        let changed: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
        let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
        facts.doubts.extend(rewriting("the acceptance", &changed));
        let name = format!("uat/{}_{}_result.log", self.file_word(), self.want.id);
        facts.artifact = Some(self.write_view(&name, &check.ran.tail)?);
        if check.passed() {
            return Ok((Outcome::Passed, facts));
        }
        facts.fingerprint = Some(failure_fingerprint(&check.ran.tail));
        facts.tree = self.task.tree.clone();
        if self.task.parent.is_none() {
            let cases = self.answer_of(Step::UatGenerate)?;
            facts.tasks.push(self.mending_task(
                &spec,
                &[&check],
                Mending::Cases(cases.as_deref()),
            )?);
        }
        let why = check.seen().why_not_run(&self.known_failures()?);
        Ok((Outcome::Failed { why: why.unwrap_or_else(|| check.failure()) }, facts))
    }
}

//! VALIDATE and PREFLIGHT: the controller runs the commands itself, on a committed tree, in a
//! directory that no agent has written to.

use super::change::in_guard_words;
use super::mend::Mending;
use super::three_runs::{RunsOrder, RunsWanted};
use super::user_command::{self, CommandCheck};
use super::{Done, Job, JobError};
use autopilot_agents::answer::{CommandRan, Summary};
use autopilot_core::claim::{BuilderClaim, ClaimScope, differences};
use autopilot_core::coverage::note_of_base;
use autopilot_core::doubt::{Doubt, DoubtKind};
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::evidence::{NewFailures, RoundEvidence, SeenCommand};
use autopilot_core::fingerprint::failure_fingerprint;
use autopilot_core::flow::merging::baseline;
use autopilot_core::guard::{Finding, broken_rules, doubts, noted};
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::test_report::lost::{LostSearch, lost_in_gate};
use autopilot_core::three_runs::{self, Accounts};
use autopilot_host::git::{GitChange, Oid};

impl Job {
    pub(super) async fn validate(&self) -> Result<Done, JobError> {
        let spec = self.spec()?;
        let commit = self.commit()?;
        // For the whole run, each task's change was checked on its own.
        let is_whole = self.task.parent.is_none();
        let change = self.change()?;
        let findings = if is_whole { Vec::new() } else { self.guard(&change, &spec)? };
        let commands = user_command::validation(self, Some(&spec));
        let commands = self.with_holdout(commands, is_whole);
        let gate = self.checks(&commit, commands.clone(), self.began).await?;
        let checks = &gate.checks;
        let mut evidence = RoundEvidence {
            differs: self.differences(checks, &change)?,
            findings,
            ..gate.evidence()
        };
        let NewFailures { mut reasons, excused } = self.new_failures(checks, &evidence)?;
        if reasons.is_empty() {
            let base = if is_whole { self.run_base()? } else { self.base()? };
            let (wanted, green) = (RunsWanted::Both, &evidence);
            let order =
                RunsOrder { base: &base, head: &commit, green, commands: &commands, wanted };
            let mut runs = self.runs_beside(&order).await?;
            if let Some(runs) = &mut runs {
                self.account(runs, &spec, &change);
            }
            evidence.three_runs = runs.map(Box::new);
        }
        let mut facts = self.facts_of_gate(&gate, &evidence)?;
        let is_green = reasons.is_empty();
        reasons.extend(self.weighed_runs(&evidence, &spec.text(), &mut facts)?);
        if is_green {
            facts.doubts.extend(self.lost_tests(&evidence, &spec.text())?);
        }
        facts.tree = self.task.tree.clone();
        let claims = evidence.differs.iter().map(|text| Doubt::new(DoubtKind::Claim, text));
        facts.doubts.extend(doubts(&evidence.findings).into_iter().chain(claims));
        facts.notes.extend(noted(&evidence.findings));
        let base = self.known_failures()?;
        let files = in_guard_words(&change).files.into_iter().map(|file| file.path).collect();
        let rewriting = evidence.checks.iter().filter_map(|seen| seen.rewriting(&base, &files));
        facts.doubts.extend(rewriting);
        facts.excuse(excused);
        if !is_whole && change.base_tree == change.tree {
            reasons.push("nothing was changed".to_owned());
        }
        reasons.extend(broken_rules(&evidence.findings));
        if reasons.is_empty() {
            return Ok((Outcome::Passed, facts));
        }
        facts.fingerprint = Some(fingerprint(checks, &evidence.findings));
        let broken = evidence.three_runs.as_ref().map(|runs| runs.unasked()).unwrap_or_default();
        let is_mended = self.task.stage().is_some_and(|stage| stage.brings(false).is_some());
        if is_whole && is_mended {
            let failed: Vec<&CommandCheck> =
                checks.iter().filter(|check| !check.is_clean()).collect();
            let mending = match failed.is_empty() {
                true => Mending::Regression(&broken),
                false => Mending::Together,
            };
            facts.tasks.push(self.mending_task(&spec, &failed, mending)?);
        }
        Ok((Outcome::Failed { why: reasons.join("; ") }, facts))
    }

    /// The doubts about tests of the base that the gate does not show any more.
    fn lost_tests(&self, evidence: &RoundEvidence, task: &str) -> Result<Vec<Doubt>, JobError> {
        // Runs of before are told what they were told then.
        if !self.run.switches.contains(&Switch::ThreeRuns) {
            return Ok(Vec::new());
        }
        Ok(lost_in_gate(&LostSearch {
            base: &self.known_failures()?,
            merged: &self.merged_evidence()?,
            green: &evidence.checks,
            runs: evidence.three_runs.as_deref(),
            task,
        }))
    }

    /// Puts what the runs beside the gate have shown into the facts. What is left open goes to whoever
    /// judges the round; where nobody does, it is a reason for a no.
    fn weighed_runs(
        &self,
        evidence: &RoundEvidence,
        task: &str,
        facts: &mut Facts,
    ) -> Result<Option<String>, JobError> {
        let Some(runs) = &evidence.three_runs else { return Ok(None) };
        let is_whole = self.task.parent.is_none();
        let mut told = runs.clone();
        if is_whole {
            // Each task was told of its own.
            let merged = self.merged_evidence()?;
            let known = merged.iter().filter_map(|gate| gate.three_runs.as_ref());
            known.for_each(|known| told.settings.retain(|file| !known.settings.contains(file)));
        }
        facts.doubts.extend(told.doubts(task));
        facts.notes.extend(three_runs::neutral_lines(runs));
        let mut open = runs.unasked();
        if is_whole {
            // Each task has accounted for its own.
            let known = self.accounted_by_tasks()?;
            open.retain(|test| !known.contains(&test.id));
        }
        let policy = self.run.limits.yardstick_changes;
        let reason = three_runs::refusal(&open, policy, Accounts::default())
            .filter(|_| !three_runs::are_weighed_later(&self.run, &self.task));
        facts.open = open;
        Ok(reason)
    }

    /// Checks that the base is green before the first agent is paid, unless a red base is allowed.
    pub(super) async fn preflight(&self) -> Result<Done, JobError> {
        let base = Oid::parse(&self.run.base)?;
        let commands = user_command::validation(self, None);
        let gate = match self.base_checks(&base, commands).await {
            Err(JobError::SetupCommand { not_run: Some(why), log, .. }) => {
                let facts = Facts { log: Some(log), ..Facts::default() };
                return Ok((Outcome::Misconfigured { why }, facts));
            }
            gate => gate?,
        };
        let checks = &gate.checks;
        let mut facts = self.facts_of_gate(&gate, &gate.evidence())?;
        facts.notes.extend(note_of_base(&self.run.switches, &gate.evidence()));
        if !self.is_sandboxed()? {
            let note = "without a sandbox, agents can write where results are tested";
            facts.doubts.push(Doubt::new(DoubtKind::NoSandbox, note));
        }
        let failed: Vec<String> =
            checks.iter().filter(|check| !check.passed()).map(CommandCheck::failure).collect();
        let not_run = checks.iter().filter_map(|check| check.seen().misconfigured()).collect();
        let run = &self.run;
        let (outcome, excused) = baseline(failed, not_run, &run.base_branch, run.red_base_allowed);
        facts.excused = excused;
        if !facts.excused.is_empty() {
            let why = facts.excused.join("; ");
            facts.notes.push(format!("the base is red ({why}); only new failures count"));
        }
        Ok((outcome, facts))
    }

    /// Differences between the builder's report and what the controller saw, for the reviewer and
    /// the person; they do not block.
    fn differences(
        &self,
        checks: &[CommandCheck],
        change: &GitChange,
    ) -> Result<Vec<String>, JobError> {
        let is_repair = self.task.shown(Step::Fix).is_some();
        let step = if is_repair { Step::Fix } else { Step::Build };
        let Some(summary) = self.report(step)? else { return Ok(Vec::new()) };
        let first = if is_repair { self.report(Step::Build)? } else { None };
        let before = first.map(|first| first.changed_files).unwrap_or_default();
        // Of several repairs or tries, only the last report is at hand.
        let is_alone = self.task.cut_short.is_empty() && self.task.broken.is_none();
        let scope = match (is_repair, self.task.round) {
            (false, 0 | 1) if is_alone => ClaimScope::Whole,
            (true, 2) if is_alone => ClaimScope::Repair(&before),
            (false | true, _) => ClaimScope::Part,
        };
        let ran = |ran: &CommandRan| (ran.cmd.clone(), ran.exit_code);
        let commands: Vec<(String, Option<i64>)> = summary.commands_ran.iter().map(ran).collect();
        let commands: Vec<(&str, Option<i64>)> =
            commands.iter().map(|(line, code)| (line.as_str(), *code)).collect();
        let claim = BuilderClaim {
            changed_files: &summary.changed_files,
            commands: &commands,
            tests_ran: summary.tests_ran,
            tests_passed: summary.tests_passed,
            scope,
        };
        let files = in_guard_words(change).files;
        let seen: Vec<SeenCommand> = checks.iter().map(CommandCheck::seen).collect();
        let failure = |seen: &SeenCommand| {
            let check = checks.iter().find(|check| check.name == seen.name);
            check.map_or_else(String::new, CommandCheck::failure)
        };
        Ok(differences(&claim, &files, &seen, failure))
    }

    /// The last report of a builder at this step; none if it could not be read.
    fn report(&self, step: Step) -> Result<Option<Summary>, JobError> {
        let text = self.answer_of(step)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

pub(super) fn fingerprint(checks: &[CommandCheck], findings: &[Finding]) -> String {
    let mut text = String::new();
    for check in checks.iter().filter(|check| !check.passed()) {
        text.push_str(check.name);
        text.push_str(&failure_fingerprint(&check.ran.tail));
    }
    for finding in findings {
        text.push_str(&finding.message);
    }
    autopilot_core::fingerprint::fingerprint(&text)
}

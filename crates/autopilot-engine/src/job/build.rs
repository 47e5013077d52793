//! BUILD and FIX: an agent works in a slot, and everything it wrote is captured in the hub.

use super::asking::{AskedQuestion, Unanswered, no_report};
use super::conflict;
use super::opening::{build_facts, work_status};
use super::own_work::blocking;
use super::reporter::Asking;
use super::skill::Kit;
use super::violation::{is_only_told, violation};
use super::workshop::{Bench, Workshop, seconds_now};
use super::{Done, Job, JobError};
use autopilot_agents::answer::Summary;
use autopilot_core::coverage;
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::flow::RoundReason;
use autopilot_core::flow::merging::failed_merge;
use autopilot_core::guard::{Finding, FindingSource, Severity, broken_rules};
use autopilot_core::holdout::HeldOutRun;
use autopilot_core::id::AttemptId;
use autopilot_core::number::count;
use autopilot_core::plan::TaskBody;
use autopilot_core::prompt::{self, Build, BuildRules, ContinuedWork, FailedChecks, Fix};
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::three_runs;
use autopilot_core::warmth::SlotUser;
use autopilot_host::git::rebase::{RebaseOutcome, carry, rebase};
use autopilot_host::git::{AttemptName, Capture, Conflicts, GitError, Oid, task_branch};

/// The commits an attempt starts from.
pub struct Start {
    /// The commit the whole change is measured against.
    pub base: Oid,
    pub commit: Oid,
    /// The commit it would have started from if no attempt had been cut short. A replay, in which
    /// none is, repeats the change from here.
    pub uncut: Oid,
    pub note: Option<String>,
    /// Conflicts between the work and the run's branch that are still in the slot's files.
    pub conflicts: Option<Conflicts>,
}

impl Job {
    pub(super) async fn build(&self) -> Result<Done, JobError> {
        let spec = self.spec()?;
        let choice = self.session_choice()?;
        let start = self.start(choice.is_continued())?;
        let bench = self.bench(SlotUser::Builder, &start.commit, &start.base).await?;
        let kit = self.kit(&spec, &start.commit)?;
        let asked = self.ask_builder(&choice, &spec, &bench, &start, &kit).await;
        let is_done = asked.as_ref().is_ok_and(AskedQuestion::ended_well);
        let captured = self.captured(&bench, &start, &spec, is_done).await;
        let AskedQuestion { mut facts, answer, .. } = asked?;
        let capture = captured?;
        facts.notes.extend(start.note.clone());
        facts.notes.extend(start.conflicts.as_ref().map(|conflicts| {
            let files = count(conflicts.paths.len() + conflicts.more, "file");
            format!("{files} conflicted with the run's branch")
        }));
        facts.notes.extend(notes_of(&capture));
        let clean = match answer {
            Ok(summary) => {
                let file = format!("artifacts/{}_{}_summary.json", self.task.name(), self.want.id);
                let text = self.keep_answer(&mut facts, &summary, Some(&file))?;
                serde_json::from_str(&text).unwrap_or(summary)
            }
            // The report is a claim that nobody believes; the work is there and is judged.
            Err(Unanswered::Faulty { faults, .. }) => {
                facts.notes.push(self.clean(&no_report(&faults)));
                Summary::default()
            }
            Err(unanswered) => return Ok((unanswered.outcome(), facts)),
        };
        let used = self.used(&clean, &kit);
        facts.notes.extend(used.against.iter().cloned());
        facts.used = (!used.is_empty()).then(|| Box::new(used));
        let against = self.weighed_change(&mut facts, &start, &capture, &spec)?;
        Ok((Outcome::weighed(&against), facts))
    }

    /// Formats and captures what an agent wrote. `is_done` says that it ended well.
    pub(super) async fn captured(
        &self,
        bench: &Bench,
        start: &Start,
        spec: &TaskSpec,
        is_done: bool,
    ) -> Result<Capture, JobError> {
        let formatted = if is_done { self.format(spec, bench).await } else { Ok(()) };
        // Capture before judging: whatever the agent wrote must be reachable.
        let capture = bench.capture(self.name_for_refs(), &self.id_for_refs(self.want.id))?;
        let hub = &self.context.workshop.hub;
        match &capture.with_submodules {
            Some(tree) => {
                let from = blocking(|| hub.expanded(&start.uncut))?;
                self.note_worktree(from.as_str(), tree.as_str())?;
            }
            None => self.note_worktree(start.uncut.as_str(), capture.tree.as_str())?,
        }
        formatted.map(|()| capture)
    }

    /// Puts the captured work into the facts, and returns what speaks against it.
    pub(super) fn weighed_change(
        &self,
        facts: &mut Facts,
        start: &Start,
        capture: &Capture,
        spec: &TaskSpec,
    ) -> Result<Vec<String>, JobError> {
        note_work(facts, start, capture);
        let (told, against): (Vec<_>, Vec<_>) =
            capture.violations.iter().partition(|found| is_only_told(found));
        facts.notes.extend(told.into_iter().map(violation));
        let mut against: Vec<String> = against.into_iter().map(violation).collect();
        // Otherwise no step looks at the change before it is merged. What only raises doubts is told
        // when the whole is judged.
        if self.task.pipeline.place(Step::Validate).is_none() {
            let found = self.findings_in(&start.base, &capture.tree, spec)?;
            against.extend(broken_rules(&found));
        }
        Ok(against)
    }

    /// The start of an attempt: the run's branch with the work so far, from the last round or from
    /// an interrupted attempt; in the session of a broken attempt, from that one too.
    pub(super) fn start(&self, in_same_session: bool) -> Result<Start, JobError> {
        let names = |ids: Vec<AttemptId>| ids.into_iter().map(|id| self.id_for_refs(id)).collect();
        let uncut: Vec<String> = names(self.task.broken_work(in_same_session).collect());
        // A replayed attempt repeats all of its recorded work, however early it was interrupted.
        if self.context.player.is_some() || self.task.cut_short.is_empty() {
            return self.start_with(&uncut);
        }
        let whole: Vec<String> = names(self.task.left_work(in_same_session).collect());
        let uncut = self.start_with(&uncut)?.commit;
        Ok(Start { uncut, ..self.start_with(&whole)? })
    }

    /// The start with the work of the first of these attempts that has left any.
    fn start_with(&self, attempts: &[String]) -> Result<Start, JobError> {
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let task = self.name_for_refs();
        let tip = self.tip()?;
        let from = |base: Oid, commit: Oid, note, conflicts| {
            let uncut = commit.clone();
            Ok(Start { base, commit, uncut, note, conflicts })
        };
        blocking(|| -> Result<Start, GitError> {
            // An attempt that was interrupted before any change left nothing; the work of the one
            // before it still counts.
            let mut adopted = None;
            for id in attempts {
                adopted = hub.resolve(&AttemptName { task, id }.salvage_ref())?;
                if adopted.is_some() {
                    break;
                }
            }
            let note = adopted.as_ref().map(|commit| {
                format!("continued the work of an interrupted attempt ({})", commit.short())
            });
            let done = self.task.commit.as_deref().map(Oid::parse).transpose()?;
            let Some(work) = adopted.or(done) else {
                return from(tip.clone(), tip, note, None);
            };
            // Ask the hub where the work is based: an interrupted attempt has recorded nothing.
            let known = self.task.base.as_deref().map(Oid::parse).transpose()?;
            let base = hub.merge_base(&work, &tip)?.or(known).unwrap_or_else(|| tip.clone());
            if base == tip {
                return from(base, work, note, None);
            }
            // Other tasks were merged meanwhile: rebase the work if git can do it alone.
            match rebase(hub, &base, &work, &tip, seconds_now())? {
                RebaseOutcome::Onto(moved) => from(tip, moved, note, None),
                // Otherwise the agent resolves the conflicts on top of the branch, so that its
                // result merges.
                RebaseOutcome::Conflict { .. } => {
                    let carried = carry(hub, &work, &tip, &repo.identity, seconds_now())?;
                    from(tip, carried.commit, note, carried.conflicts)
                }
            }
        })
    }

    /// The prompt of a build or a repair. With `since`, the agent continues its session and is told
    /// only what is new.
    pub(super) fn build_prompt(
        &self,
        spec: &TaskSpec,
        bench: &Bench,
        start: &Start,
        kit: &Kit,
        since: Option<&ContinuedWork<'_>>,
    ) -> Result<String, JobError> {
        let guidance = self.body::<TaskBody>(&self.task.spec.body)?.guidance;
        let known = kit.listed(self.skill_policy());
        let mut validation = self.evidence(Step::Validate)?;
        if self.task.reasons.iter().any(|reason| reason.step == Step::Prove) {
            // The validation passed over a seed; what failed from nothing is to be repaired.
            validation.checks = self.evidence(Step::Prove)?.checks;
        }
        let uat = self.evidence(Step::Uat)?;
        let review = self.answer_of(Step::Review)?;
        let cases = self.answer_of(Step::UatGenerate)?;
        let status = self.repo_status(bench, start);
        let rules = BuildRules::of(&self.context.config, spec);
        let build = Build {
            guidance: guidance.for_prompt(),
            last_review: review.as_deref(),
            validation: &validation.checks,
            ..build_facts(spec, self.agent_config(), &known, &status, &rules)
        };
        if self.want.step == Step::Build {
            return Ok(match since {
                Some(since) => prompt::builder_continued(&build, since, self.caps()),
                None => prompt::builder(&build, self.caps()),
            });
        }
        let integration = self.evidence(Step::Merge)?;
        let found = start.conflicts.as_ref().map(|conflicts| {
            conflict::report(conflicts, &self.run.branch, &task_branch(self.task.name()))
        });
        // The agent that continues an interrupted repair must know its conflicts.
        let failed_merge = failed_merge(&self.task);
        let known = integration.conflict.clone().filter(|_| failed_merge.is_some());
        let conflict = found.or(known.filter(|_| !self.task.cut_short.is_empty()));
        let together = failed_merge
            .filter(|_| !integration.checks.is_empty())
            .map(|why| FailedChecks { why, ran: &integration.checks });
        let mut findings = validation.findings.clone();
        findings.extend(self.other_reasons());
        findings.extend(coverage::findings_of(&self.task));
        findings.extend(three_runs::findings_of(self.run.limits.yardstick_changes, &self.task));
        let base = self.known_failures()?;
        findings.extend(validation.checks.iter().filter_map(|seen| seen.tampering_finding(&base)));
        let held_out = validation.checks.iter().filter_map(|seen| seen.holdout.as_deref());
        findings.extend(held_out.flat_map(HeldOutRun::findings));
        let fix = Fix {
            build,
            findings: &findings,
            uat: uat.checks.first(),
            uat_cases: cases.as_deref().filter(|_| !uat.checks.iter().all(|c| c.is_exit_zero())),
            conflict: conflict.as_deref(),
            together,
        };
        Ok(match since {
            Some(since) => prompt::fix_continued(&fix, since, self.caps()),
            None => prompt::fix(&fix, self.caps()),
        })
    }

    /// Findings against the last round that have no part of their own in the prompt, such as broken
    /// rules of the worktree.
    fn other_reasons(&self) -> Vec<Finding> {
        let has_part = |step| {
            matches!(step, Step::Validate | Step::Coverage | Step::Review | Step::Uat | Step::Merge)
        };
        let reasons = self.task.reasons.iter().filter(|reason| !has_part(reason.step));
        let finding = |reason: &RoundReason| {
            Finding::new(FindingSource::Repository, Severity::Blocker, reason.text.clone(), "")
        };
        reasons.map(finding).collect()
    }

    fn repo_status(&self, bench: &Bench, start: &Start) -> String {
        let branch = &self.run.base_branch;
        let mut text = work_status(self.name_for_refs(), &bench.commit, &start.base, branch);
        if bench.commit != start.base {
            text.push_str("the worktree holds the changes of the work so far\n");
        }
        if start.conflicts.is_some() {
            text.push_str("its files contain conflict markers to resolve\n");
        } else if let Some(why) = failed_merge(&self.task) {
            text.push_str(&format!(
                "the last merge failed: {why}\nthe work is now on top of the run's branch\n"
            ));
        }
        if let Some(note) = &start.note {
            text.push_str(note);
            text.push('\n');
        }
        text
    }

    /// Runs the formatter in the slot before the work is captured, because it rewrites files.
    pub(super) async fn format(&self, spec: &TaskSpec, bench: &Bench) -> Result<(), JobError> {
        let configured = &self.context.config.commands.format;
        let Some(line) = spec.commands.format.as_ref().or(configured.as_ref()) else {
            return Ok(());
        };
        // Where the base itself is not formatted, formatting would change unrelated files.
        let base = self.known_failures()?;
        let is_base_rough = base.checks.iter().any(|check| check.changed);
        if !self.cancel.is_asked() && !is_base_rough {
            // The exit code counts in validation, where nobody else can have touched anything.
            let _judged_later = self
                .command(("format", line), &bench.site(), self.timeout(), Asking::Nobody)
                .await?;
        }
        Ok(())
    }
}

/// Puts the commits and the tree of captured work into the facts.
pub(super) fn note_work(facts: &mut Facts, start: &Start, capture: &Capture) {
    facts.base = Some(start.base.to_string());
    facts.tree = Some(capture.tree.to_string());
    facts.commit = Some(capture.commit.as_ref().unwrap_or(&start.commit).to_string());
}

pub(super) fn notes_of(capture: &Capture) -> Vec<String> {
    let mut notes = Vec::new();
    if capture.git_settings_changed {
        notes
            .push("the agent changed its git configuration or hooks; they were not run".to_owned());
    }
    if capture.agent_stashed {
        notes.push("the agent stashed changes; they are kept".to_owned());
    }
    notes
}

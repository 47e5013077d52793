//! The evidence of a merged commit: who proved and judged it, and what they saw, as an in-toto
//! statement. The format is described in `docs/evidence.md`.
//!
//! Invariant: the statement is a fold of the journal as it was with the record of the merge, so
//! whoever has the journal can make it again and compare.

mod check;
mod coverage;
mod fold;
mod three_runs;
mod whole;

pub use check::{CommitFacts, EvidenceFault, differences, faults, lack_of_proof};
pub use coverage::EvidenceCriterion;
pub use fold::{EvidenceSource, MergedCommit, statement_of_merge};
pub use three_runs::{EvidenceOpenTest, EvidenceProofRun, EvidenceThreeRuns};
pub use whole::{statement_of_tip, with_whole};

use autopilot_core::doubt::DoubtKind;
use autopilot_core::event::Verdict;
use autopilot_core::id::AttemptId;
use autopilot_core::test_report::{ReportSource, TestReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The type of every in-toto statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of our predicate. Another meaning of its fields gets another name.
pub const PREDICATE_TYPE: &str = "urn:autopilot:evidence:v1";

/// A statement about one commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceStatement {
    #[serde(rename = "_type")]
    pub statement_type: String,
    pub subject: Vec<EvidenceSubject>,
    pub predicate_type: String,
    pub predicate: EvidencePredicate,
}

/// The commit that a statement is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceSubject {
    /// The branch onto which the commit was merged.
    pub name: String,
    pub digest: SubjectDigest,
}

/// The names of the commit and its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubjectDigest {
    pub git_commit: String,
    pub git_tree: String,
}

/// Everything that is said about the commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidencePredicate {
    pub run: EvidenceRun,
    /// The task whose work the commit merged; none for a commit that the controller made itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<EvidenceTask>,
    pub gates: Vec<EvidenceGate>,
    pub reviews: Vec<EvidenceReview>,
    /// The criteria of the task and the tests that cover them, where each needs one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<EvidenceCriterion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<EvidenceAcceptance>,
    pub waived: Vec<String>,
    pub doubts: Vec<EvidenceDoubt>,
    /// What is said of the whole result, on the last commit of a run that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<EvidenceWhole>,
    pub tool: EvidenceTool,
}

/// The run that made the commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRun {
    pub id: String,
    pub flow: String,
    pub branch: String,
    /// The commit at which the branch began.
    pub base: String,
    pub started_at: String,
}

/// The task whose work was merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceTask {
    pub name: String,
    pub title: String,
    pub iteration: u32,
    /// The attempt that merged.
    pub attempt: AttemptId,
    /// The task's own commit, which is the second parent of the merge, and its files.
    pub commit: String,
    pub tree: Option<String>,
    pub started_at: Option<String>,
}

/// What a gate proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// The task's own tree.
    Task,
    /// The tree as it was merged, together with what was merged before.
    Merge,
    /// The result of the whole run.
    Whole,
    /// The same once more, from nothing.
    LastWord,
    /// The acceptance run.
    Acceptance,
}

/// A gate, as the controller saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceGate {
    pub kind: EvidenceKind,
    pub attempt: AttemptId,
    /// `passed`, `failed` or `skipped`.
    pub outcome: String,
    /// The tree on which the commands ran, where it is on record.
    pub tree: Option<String>,
    /// The commands ran over what the base had built, not from nothing.
    pub warm: bool,
    /// The attempt whose verdict was taken over; none if the commands were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<AttemptId>,
    pub commands: Vec<EvidenceCommand>,
    /// The runs on other trees beside it, where the change touches what decides its verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub three_runs: Option<Box<EvidenceThreeRuns>>,
    /// Failures that the base has too.
    pub excused: Vec<String>,
    /// When the verdict was on record; a merge is on record after its note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// A command of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceCommand {
    pub name: String,
    pub command: String,
    /// None if the command did not end by itself.
    pub exit_code: Option<i32>,
    pub passed: bool,
    pub duration_ms: Option<u64>,
    pub log_sha256: Option<String>,
    /// Names of the failed tests, where the output names them.
    pub failing: Vec<String>,
    /// The tests that ran; none where no test is known and nobody counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<EvidenceTests>,
    /// The tests that failed in a first try on the same tree; none if there was no second try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Vec<String>>,
    /// The SHA-256 of the held-out files that lay over the tree; none where there were none. Without
    /// those files the command can't be run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out_sha256: Option<String>,
}

/// The most names of tests of one command in a statement, of each outcome; the rest is counted.
pub const TESTS_NAMED_MAX: usize = 2_000;

/// The tests of a command, by the report of their runner or what is as near to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceTests {
    pub source: ReportSource,
    /// The number of tests that ran.
    pub ran: Option<u64>,
    pub passed: Vec<String>,
    pub failed: Vec<String>,
    pub skipped: Vec<String>,
    /// Tests that the runner listed and did not report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreported: Vec<String>,
    /// Names that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl EvidenceTests {
    /// The tests of a report, with as many names as a statement has room for.
    pub fn of(report: &TestReport) -> Option<EvidenceTests> {
        if report.source == ReportSource::ExitCode {
            return None;
        }
        let first = |ids: &BTreeSet<String>| ids.iter().take(TESTS_NAMED_MAX).cloned().collect();
        let all = [&report.passed, &report.failed, &report.skipped, &report.unreported];
        Some(EvidenceTests {
            source: report.source,
            ran: report.ran(),
            passed: first(&report.passed),
            failed: first(&report.failed),
            skipped: first(&report.skipped),
            unreported: first(&report.unreported),
            left_out: all.iter().map(|ids| ids.len().saturating_sub(TESTS_NAMED_MAX)).sum(),
        })
    }
}

/// A review of the work by an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceReview {
    pub attempt: AttemptId,
    /// `review` or `completion`.
    pub step: String,
    pub role: String,
    /// How the agent was called, where it is on record.
    pub agent: Option<String>,
    /// The configured model; none for the agent's own choice.
    pub model: Option<String>,
    pub verdict: Option<Verdict>,
    pub issues: u64,
    /// The verdict was no, and the work was merged all the same.
    pub overruled: bool,
}

/// The acceptance of the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceAcceptance {
    pub outcome: String,
    /// Why it was skipped or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<EvidenceGate>,
}

/// What a person should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceDoubt {
    pub kind: DoubtKind,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
}

/// What is said of the whole result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceWhole {
    /// `cold` if the result was proven from nothing, else `warm` or `failed`.
    pub proof: String,
    pub gates: Vec<EvidenceGate>,
    pub reviews: Vec<EvidenceReview>,
    /// The goal and the tests that cover it, where it needs one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<EvidenceCriterion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<EvidenceAcceptance>,
    /// Who switched reviews off.
    pub waived: Vec<String>,
    pub doubts: Vec<EvidenceDoubt>,
}

/// The program that wrote the statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceTool {
    pub name: String,
    pub version: String,
}

impl EvidenceStatement {
    /// Reads the statement at the beginning of a note. People may have written below it.
    pub fn read(note: &str) -> Option<EvidenceStatement> {
        let mut values = serde_json::Deserializer::from_str(note).into_iter();
        values.next()?.ok()
    }

    /// The text of a note, and below it what others wrote into the note that is replaced.
    pub fn note(&self, before: Option<&str>) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let Some(before) = before else { return Ok(text) };
        let mut values = serde_json::Deserializer::from_str(before).into_iter::<Self>();
        let is_ours = matches!(values.next(), Some(Ok(_)));
        let others = if is_ours { before.get(values.byte_offset()..) } else { Some(before) };
        let others = others.unwrap_or_default().trim();
        if !others.is_empty() {
            text.push_str(&format!("\n{others}\n"));
        }
        Ok(text)
    }

    /// The commit and the tree that the statement is about.
    pub fn digest(&self) -> Option<&SubjectDigest> {
        self.subject.first().map(|subject| &subject.digest)
    }

    /// The criteria of the task and of the whole result.
    pub fn covered(&self) -> impl Iterator<Item = &EvidenceCriterion> {
        let whole = self.predicate.whole.iter().flat_map(|whole| &whole.coverage);
        self.predicate.coverage.iter().chain(whole)
    }

    /// Every gate of the statement, also of the whole and of the acceptance.
    pub fn gates(&self) -> impl Iterator<Item = &EvidenceGate> {
        let EvidencePredicate { gates, acceptance, whole, .. } = &self.predicate;
        let whole_gates = whole.iter().flat_map(|whole| &whole.gates);
        let accepted = acceptance.iter().filter_map(|accepted| accepted.gate.as_ref());
        let whole_accepted = whole.iter().filter_map(|whole| whole.acceptance.as_ref());
        let whole_accepted = whole_accepted.filter_map(|accepted| accepted.gate.as_ref());
        gates.iter().chain(accepted).chain(whole_gates).chain(whole_accepted)
    }
}

#[cfg(test)]
mod tests;

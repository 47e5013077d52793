//! The facts about an ended attempt, as its event holds them.

use super::{Bill, SessionTotal, TaskEntry, is_default};
use crate::coverage::CoverageCheck;
use crate::doubt::{Doubt, DoubtKind};
use crate::gate_book::GateMark;
use crate::skill::Used;
use crate::test_report::TestTally;
use crate::three_runs::{AcceptedTest, OpenTest};
use serde::{Deserialize, Deserializer, Serialize};

/// The controller's observations of an attempt. Texts are in blobs, so that events stay small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "is_default")]
    pub ms: u64,
    /// The log file, relative to the `.autopilot` directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The commands of a gate that failed, where more than one did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedCommand>,
    /// Blob: the end of the output, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// Blob: the answer that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The artifact made of the answer, relative to the `.autopilot` directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// The part of the answer that rules read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<StepAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The tip of the run's branch after a merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// The gate ran over a seed, not from nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub warm: bool,
    /// The gate that the attempt ran, or took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Box<GateMark>>,
    /// The numbers of the tests of a gate's commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestTally>,
    /// The tests of the base that the change breaks, skips or removes, and nothing accounts for yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenTest>,
    /// The tests of which a judge accepts that they fail, are skipped or are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedTest>,
    /// The tests that cover the criteria, as the controller has checked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Box<CoverageCheck>>,
    /// The failures that were excused because they occur on the base of the run as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<String>,
    /// The fingerprint of the failure, blind to times and addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The total cost of the attempt. It becomes a separate event.
    #[serde(skip)]
    pub bill: Option<Bill>,
    /// The vendor's own total for the session. It goes with the bill.
    #[serde(skip)]
    pub total: Option<Box<SessionTotal>>,
    /// The tasks that the attempt brings. They become separate events.
    #[serde(skip)]
    pub tasks: Vec<TaskEntry>,
    /// The address of the effect, such as that of a pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The skills, MCP servers and sub-agents that a build used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Box<Used>>,
    /// The agent that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<AnsweringAgent>,
    /// How the agent's last turn ended, as far as it matters to its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<SessionEnd>,
    /// What a person should look at before merging.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// Notes for a person: a claim that was not true, a leaked process that was killed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A command of a gate that failed, and its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCommand {
    pub name: String,
    /// Relative to the `.autopilot` directory.
    pub log: String,
}

impl Facts {
    /// Excuses failures that occur on the base as well, with a doubt so that nobody takes them for
    /// successes.
    pub fn excuse(&mut self, known: Vec<String>) {
        let doubt =
            |what: &String| Doubt::new(DoubtKind::RedBase, format!("{what}, as on the base"));
        self.doubts.extend(known.iter().map(doubt));
        self.excused.extend(known);
    }

    /// The yes or no of the reviewer, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.said.map(StepAnswer::verdict)
    }

    /// The number of issues that the reviewer named.
    pub fn issues(&self) -> u64 {
        match self.said {
            Some(StepAnswer::Review { issues, .. }) => issues,
            Some(StepAnswer::Completion { .. }) | None => 0,
        }
    }

    /// The number of issues that block under the evidence gate.
    pub fn blocking(&self) -> u64 {
        match self.said {
            Some(StepAnswer::Review { blocking, .. }) => blocking,
            Some(StepAnswer::Completion { .. }) | None => 0,
        }
    }
}

/// The agent behind an answer, as it was configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweringAgent {
    pub role: String,
    /// How the agent is called, such as `claude_code_cli`.
    pub mode: String,
    /// The configured model; none for the agent's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The part of an agent's answer that a rule of the tables reads. The text itself is a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAnswer {
    Review { verdict: Verdict, issues: u64, blocking: u64 },
    Completion { done: bool },
}

impl StepAnswer {
    /// The yes or no of the answer.
    pub fn verdict(self) -> Verdict {
        match self {
            StepAnswer::Review { verdict, .. } => verdict,
            StepAnswer::Completion { done: true } => Verdict::Approve,
            StepAnswer::Completion { done: false } => Verdict::RequestChanges,
        }
    }
}

/// How a turn ended, as far as it decides whether its session is of further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    Answered,
    /// The agent was stopped or turned away; nothing is wrong with the session.
    Stopped,
    Broke,
    /// The conversation has outgrown the model's context.
    Full,
    /// The model or its vendor refused to answer the conversation.
    Refused,
    /// The agent does not know the session.
    Gone,
}

/// The yes or no of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    Approve,
    RequestChanges,
}

impl Verdict {
    /// The word of the review schema.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Approve => "APPROVE",
            Verdict::RequestChanges => "REQUEST_CHANGES",
        }
    }
}

/// Reads facts as journals hold them. Version 0.3 wrote the reviewer's verdict and its counts as
/// fields of the facts themselves, and a completion as a verdict.
pub(super) fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Facts>, D::Error> {
    #[derive(Deserialize)]
    struct Stored {
        #[serde(flatten)]
        facts: Facts,
        #[serde(default)]
        verdict: Option<Verdict>,
        #[serde(default)]
        issues: u64,
        #[serde(default)]
        blocking: u64,
    }
    let Stored { mut facts, verdict, issues, blocking } = Stored::deserialize(from)?;
    let old = || Some(StepAnswer::Review { verdict: verdict?, issues, blocking });
    facts.said = facts.said.or_else(old);
    Ok(Box::new(facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Outcome};
    use crate::id::AttemptId;

    fn read(facts: &str) -> Facts {
        let text = format!(
            r#"{{"e":"attempt_ended","id":{},"task":1,"step":"review","outcome":{},"facts":{facts}}}"#,
            serde_json::to_string(&AttemptId { seq: 7, place: 0 }).unwrap(),
            serde_json::to_string(&Outcome::Passed).unwrap(),
        );
        let Event::AttemptEnded { facts, .. } = serde_json::from_str(&text).unwrap() else {
            panic!("another event");
        };
        *facts
    }

    #[test]
    fn a_verdict_of_version_0_3_is_read_as_the_answer_of_a_review() {
        let old = read(r#"{"ms":5,"verdict":"REQUEST_CHANGES","issues":3,"blocking":1}"#);
        let said = StepAnswer::Review { verdict: Verdict::RequestChanges, issues: 3, blocking: 1 };
        assert_eq!((old.ms, old.said), (5, Some(said)));
        assert_eq!((old.verdict(), old.issues(), old.blocking()), (Some(said.verdict()), 3, 1));
        assert_eq!(read(r#"{"verdict":"APPROVE"}"#).verdict(), Some(Verdict::Approve));
        assert_eq!(read("{}").verdict(), None);
    }

    #[test]
    fn what_is_written_is_read_back_alike() {
        for said in [
            StepAnswer::Review { verdict: Verdict::Approve, issues: 2, blocking: 0 },
            StepAnswer::Completion { done: true },
            StepAnswer::Completion { done: false },
        ] {
            let facts = Facts {
                said: Some(said),
                notes: vec!["a".into()],
                exit: Some(1),
                ..Facts::default()
            };
            assert_eq!(read(&serde_json::to_string(&facts).unwrap()), facts);
        }
    }
}

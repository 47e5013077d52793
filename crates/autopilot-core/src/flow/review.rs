//! A reviewer's answer, and its meaning under the configured gate.
//!
//! Invariant: nothing here looks into prose. Under the evidence gate an issue blocks by what it
//! cites, and a citation counts only if the controller itself finds what is cited.

use crate::event::{Outcome, StepAnswer, Verdict};
use crate::fingerprint::fingerprint;
use crate::guard::Severity;
use crate::limit::ReviewGate;
use crate::three_runs::AcceptedTest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The number of characters of an issue's message that a note quotes.
const MESSAGE_CHARS_MAX: usize = 80;

/// The answer of a reviewer, as its schema defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewAnswer {
    pub verdict: Verdict,
    pub summary: String,
    pub issues: Vec<ReviewIssue>,
    /// The tests of which the reviewer accepts that they fail, are skipped or are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_tests: Vec<AcceptedTest>,
}

/// One issue of a review, with the evidence it cites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewIssue {
    pub severity: Severity,
    pub message: String,
    pub fix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The acceptance criterion that is not met, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<u64>,
    /// The check that fails, by its name or its command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The facts about a change against which the controller checks citations.
#[derive(Clone, Debug, Default)]
pub struct ReviewGround {
    /// The number of the task's acceptance criteria.
    pub criteria: u64,
    /// Names and command lines of the checks that failed in this round because of the change.
    pub failed_commands: BTreeSet<String>,
    /// The lines that the change adds, by their new number, or removes, by their old one.
    pub changed_lines: BTreeSet<(String, u64)>,
    /// The change has more lines than these; of the rest only the files are known.
    pub lines_are_cut: bool,
    /// The files of the change.
    pub changed_files: BTreeSet<String>,
    /// The directory in which the reviewer sees the change.
    pub directory: String,
}

/// The issues of a review, weighed by what they cite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeighedIssues {
    /// The issues that block under the evidence gate.
    pub blocking: u64,
    /// Citations that the controller could not find, and a refusal that does not block, for a
    /// person to read.
    pub notes: Vec<String>,
    /// The sentence about a refusal that does not block.
    pub overruled: Option<String>,
}

impl ReviewAnswer {
    /// The outcome of the review step.
    pub fn outcome(&self) -> Outcome {
        match self.verdict {
            Verdict::Approve => Outcome::Passed,
            Verdict::RequestChanges => {
                Outcome::Failed { why: format!("the reviewer asks for changes: {}", self.summary) }
            }
        }
    }

    /// The part of the answer that the gate reads.
    pub fn said(&self, weighed: &WeighedIssues) -> StepAnswer {
        let (verdict, issues) = (self.verdict, self.issues.len() as u64);
        StepAnswer::Review { verdict, issues, blocking: weighed.blocking }
    }

    /// The fingerprint of a refusal, equal if the same issues are named; an approval has none.
    pub fn fingerprint(&self) -> Option<String> {
        let mut messages: Vec<&str> = self.issues.iter().map(|it| it.message.as_str()).collect();
        messages.sort_unstable();
        (self.verdict == Verdict::RequestChanges).then(|| fingerprint(&messages.join("\n")))
    }
}

/// The reason why an approval contradicts itself: it names an issue that must not be merged.
pub fn self_contradiction(review: &ReviewAnswer) -> Option<String> {
    let issue = review.issues.iter().find(|issue| issue.is_serious())?;
    let message: String = issue.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let severity = issue.severity.as_str();
    let is_approved = review.verdict == Verdict::Approve;
    is_approved
        .then(|| format!("the reviewer approved, but names a {severity} issue (“{message}”)"))
}

/// Counts the issues that block under the evidence gate: blocker and major issues that cite at least
/// one thing the controller finds itself.
pub fn weigh_issues(
    gate: ReviewGate,
    review: &ReviewAnswer,
    ground: &ReviewGround,
) -> WeighedIssues {
    let mut weighed = WeighedIssues::default();
    for issue in &review.issues {
        weighed.blocking += u64::from(issue.blocks_by_evidence(ground));
        let missing = issue.citations().filter(|cited| !cited.is_found(ground));
        // The other gates do not depend on citations.
        let noted = missing.filter(|_| gate == ReviewGate::Evidence);
        weighed.notes.extend(noted.map(|cited| {
            let message: String = issue.message.chars().take(MESSAGE_CHARS_MAX).collect();
            format!("the reviewer's issue “{message}” cites {}", cited.mistake(ground))
        }));
    }
    weighed.overruled = set_aside(gate, review, weighed.blocking);
    weighed
}

/// The sentence about a refusal that blocks nothing under the gate.
fn set_aside(gate: ReviewGate, review: &ReviewAnswer, blocking: u64) -> Option<String> {
    let why = match gate {
        ReviewGate::Evidence if blocking == 0 => {
            "none of its blocker and major issues cites evidence that was found (`gates.review: \
             evidence`)"
        }
        ReviewGate::Advisory => "reviews only advise (`gates.review: advisory`)",
        ReviewGate::Evidence | ReviewGate::Required => return None,
    };
    let is_refused = review.verdict == Verdict::RequestChanges;
    is_refused.then(|| format!("the reviewer asked for changes: {}; {why}", review.summary.trim()))
}

/// One piece of evidence that an issue cites.
enum Citation<'a> {
    Command(&'a str),
    Criterion(u64),
    Line(&'a str, u64),
}

impl ReviewIssue {
    /// Whether the issue must not be merged, in the words of its reviewer.
    fn is_serious(&self) -> bool {
        match self.severity {
            Severity::Blocker | Severity::Major => true,
            Severity::Minor => false,
        }
    }

    /// Whether the issue blocks under the evidence gate.
    pub fn blocks_by_evidence(&self, ground: &ReviewGround) -> bool {
        self.is_serious() && self.citations().any(|cited| cited.is_found(ground))
    }

    /// The citations of the issue. A file without a line says where to look and proves nothing.
    fn citations(&self) -> impl Iterator<Item = Citation<'_>> {
        let command = self.command.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let line = self.file.as_deref().zip(self.line);
        let citations = [
            command.map(Citation::Command),
            self.criterion.map(Citation::Criterion),
            line.map(|(file, line)| Citation::Line(file, line)),
        ];
        citations.into_iter().flatten()
    }
}

impl ReviewGround {
    /// The paths in the repository that a reviewer may mean: as in the diff, from the root, or as the
    /// file is called in the reviewer's own directory.
    fn spellings<'a>(&self, file: &'a str) -> impl Iterator<Item = &'a str> {
        let file = file.trim();
        let here =
            file.strip_prefix(self.directory.as_str()).filter(|_| !self.directory.is_empty());
        let here = here.and_then(|rest| rest.strip_prefix('/'));
        let prefixes = ["./", "a/", "b/"].map(|prefix| file.strip_prefix(prefix));
        [Some(file), here].into_iter().chain(prefixes).flatten()
    }
}

impl Citation<'_> {
    fn is_found(&self, ground: &ReviewGround) -> bool {
        match self {
            Citation::Command(name) => ground.failed_commands.contains(*name),
            Citation::Criterion(number) => (1..=ground.criteria).contains(number),
            Citation::Line(file, line) => ground.spellings(file).any(|file| {
                let is_known = ground.changed_files.contains(file);
                is_known && ground.lines_are_cut
                    || ground.changed_lines.contains(&(file.to_owned(), *line))
            }),
        }
    }

    fn mistake(&self, ground: &ReviewGround) -> String {
        match self {
            Citation::Command(name) => {
                format!("`{name}`, which is not a check that failed because of the change")
            }
            Citation::Criterion(number) => {
                format!("acceptance criterion {number}; the task has {}", ground.criteria)
            }
            Citation::Line(file, line) => {
                format!("{file}:{line}, which the change neither adds nor removes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground() -> ReviewGround {
        ReviewGround {
            criteria: 2,
            failed_commands: ["tests", "cargo test"].map(str::to_owned).into(),
            changed_lines: [("src/login.rs".to_owned(), 12)].into(),
            lines_are_cut: false,
            changed_files: ["src/login.rs", "big.txt"].map(str::to_owned).into(),
            directory: "/slots/s0".to_owned(),
        }
    }

    fn refused(issues: Vec<ReviewIssue>) -> ReviewAnswer {
        ReviewAnswer {
            verdict: Verdict::RequestChanges,
            summary: "almost".to_owned(),
            issues,
            accepted_tests: Vec::new(),
        }
    }

    fn approved(issues: &[ReviewIssue]) -> ReviewAnswer {
        ReviewAnswer { verdict: Verdict::Approve, ..refused(issues.to_vec()) }
    }

    fn issue(severity: Severity, message: &str) -> ReviewIssue {
        ReviewIssue {
            severity,
            message: message.to_owned(),
            fix: "change it".to_owned(),
            file: None,
            line: None,
            criterion: None,
            command: None,
        }
    }

    fn at(issue: ReviewIssue, file: &str, line: u64) -> ReviewIssue {
        ReviewIssue { file: Some(file.to_owned()), line: Some(line), ..issue }
    }

    fn running(issue: ReviewIssue, command: &str) -> ReviewIssue {
        ReviewIssue { command: Some(command.to_owned()), ..issue }
    }

    fn against(issue: ReviewIssue, criterion: u64) -> ReviewIssue {
        ReviewIssue { criterion: Some(criterion), ..issue }
    }

    #[test]
    fn an_issue_blocks_by_evidence_the_controller_finds_and_never_by_its_prose() {
        use Severity::{Blocker, Major, Minor};
        let injection = || issue(Blocker, "SQL injection in login");
        for (name, blocks, issue) in [
            ("a line of the change", true, at(injection(), "src/login.rs", 12)),
            ("the same from the root", true, at(injection(), "./src/login.rs", 12)),
            ("the same as in the diff", true, at(injection(), "b/src/login.rs", 12)),
            ("a removed line as in the diff", true, at(injection(), "a/src/login.rs", 12)),
            ("the same where it was read", true, at(injection(), "/slots/s0/src/login.rs", 12)),
            ("somewhere else", false, at(injection(), "/slots/s01/src/login.rs", 12)),
            ("a line beside the change", false, at(injection(), "src/login.rs", 13)),
            ("a file beside the change", false, at(injection(), "src/other.rs", 12)),
            ("no evidence at all", false, injection()),
            ("prose that sounds like it", false, issue(Blocker, "latest naming of the test")),
            ("acceptance in prose", false, issue(Blocker, "misses acceptance criterion 1")),
            ("a failing check by its name", true, running(injection(), "tests")),
            ("a failing check by its line", true, running(injection(), " cargo test ")),
            ("a check that did not fail", false, running(injection(), "lint")),
            ("an empty name", false, running(injection(), "  ")),
            ("the first criterion", true, against(injection(), 1)),
            ("the last criterion", true, against(injection(), 2)),
            ("a criterion too many", false, against(injection(), 3)),
            ("a criterion before the first", false, against(injection(), 0)),
            ("a major issue", true, against(issue(Major, "slow"), 1)),
            ("a minor issue", false, at(issue(Minor, "naming"), "src/login.rs", 12)),
            ("one of two citations", true, against(running(injection(), "lint"), 1)),
        ] {
            let weighed = weigh_issues(ReviewGate::Evidence, &refused(vec![issue]), &ground());
            assert_eq!(weighed.blocking, u64::from(blocks), "{name}");
        }
    }

    #[test]
    fn a_line_that_was_too_far_down_to_be_read_counts_if_its_file_is_changed() {
        let cut = ReviewGround { lines_are_cut: true, ..ground() };
        for (file, blocks) in [("big.txt", 1), ("other.txt", 0)] {
            let answer = refused(vec![at(issue(Severity::Major, "bad"), file, 70_000)]);
            assert_eq!(
                weigh_issues(ReviewGate::Evidence, &answer, &cut).blocking,
                blocks,
                "{file}"
            );
            assert_eq!(weigh_issues(ReviewGate::Evidence, &answer, &ground()).blocking, 0);
        }
    }

    #[test]
    fn a_refusal_that_blocks_nothing_is_told() {
        let told = |gate, answer: &ReviewAnswer| weigh_issues(gate, answer, &ground()).overruled;
        let vague = refused(vec![issue(Severity::Blocker, "bad")]);
        insta::assert_snapshot!(told(ReviewGate::Evidence, &vague).unwrap(), @"the reviewer asked for changes: almost; none of its blocker and major issues cites evidence that was found (`gates.review: evidence`)");
        insta::assert_snapshot!(told(ReviewGate::Advisory, &vague).unwrap(), @"the reviewer asked for changes: almost; reviews only advise (`gates.review: advisory`)");
        assert_eq!(told(ReviewGate::Required, &vague), None, "it blocks");
        let cited = refused(vec![against(issue(Severity::Blocker, "bad"), 1)]);
        assert_eq!(told(ReviewGate::Evidence, &cited), None, "it blocks");
        assert_eq!(told(ReviewGate::Advisory, &approved(&[])), None);
    }

    #[test]
    fn a_wrong_citation_is_noted_under_the_gate_that_asks_for_one() {
        let wrong = at(running(against(issue(Severity::Major, "bad"), 9), "lint"), "a.rs", 1);
        let wrong = approved(&[wrong]);
        let weighed = weigh_issues(ReviewGate::Evidence, &wrong, &ground());
        insta::assert_snapshot!(weighed.notes.join("\n"), @"
        the reviewer's issue “bad” cites `lint`, which is not a check that failed because of the change
        the reviewer's issue “bad” cites acceptance criterion 9; the task has 2
        the reviewer's issue “bad” cites a.rs:1, which the change neither adds nor removes
        ");
        for gate in [ReviewGate::Required, ReviewGate::Advisory] {
            assert_eq!(weigh_issues(gate, &wrong, &ground()).notes.len(), 0);
        }
        let right = approved(&[against(issue(Severity::Major, "bad"), 1)]);
        assert_eq!(weigh_issues(ReviewGate::Evidence, &right, &ground()).notes.len(), 0);
    }

    #[test]
    fn a_refusal_has_a_reason_and_a_mark_that_does_not_depend_on_the_order() {
        let answer = |verdict, issues: [&str; 2]| ReviewAnswer {
            accepted_tests: Vec::new(),
            verdict,
            summary: "almost".to_owned(),
            issues: issues.map(|message| issue(Severity::Major, message)).into(),
        };
        let no = answer(Verdict::RequestChanges, ["a", "b"]);
        let why = "the reviewer asks for changes: almost".to_owned();
        assert_eq!(no.outcome(), Outcome::Failed { why });
        let turned = answer(Verdict::RequestChanges, ["b", "a"]);
        assert_eq!(no.fingerprint(), turned.fingerprint());
        let other = answer(Verdict::RequestChanges, ["a", "c"]);
        assert_ne!(no.fingerprint(), other.fingerprint());
        let yes = answer(Verdict::Approve, ["a", "b"]);
        assert_eq!((yes.outcome(), yes.fingerprint()), (Outcome::Passed, None));
        let weighed = WeighedIssues { blocking: 1, ..WeighedIssues::default() };
        let said = StepAnswer::Review { verdict: Verdict::Approve, issues: 2, blocking: 1 };
        assert_eq!(yes.said(&weighed), said);
    }
}

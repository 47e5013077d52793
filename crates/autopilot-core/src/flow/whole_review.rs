//! The review of a plan's result as a whole: what its answer means, and what repairs what it asks for.
//!
//! Nothing is weighed after it, so it decides for itself: an issue that blocks under the configured gate,
//! or a test of the base that nobody accounts for, brings one more task. Every other no is overruled on
//! the record.

use super::review::{ReviewAnswer, ReviewGround, ReviewIssue};
use crate::event::{Outcome, Verdict};
use crate::limit::{ReviewGate, YardstickChanges};
use crate::three_runs::{self, Accounts, OpenTest};

/// What the answer of a whole review is judged by.
#[derive(Clone, Copy, Debug)]
pub struct WholeGround<'a> {
    pub gate: ReviewGate,
    pub yardstick_changes: YardstickChanges,
    /// What the reviewer can cite.
    pub ground: &'a ReviewGround,
    /// The tests of the base that the final validation has left open.
    pub open: &'a [OpenTest],
}

/// The meaning of a whole review.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeVerdict<'a> {
    pub outcome: Outcome,
    /// What the reviewer wants to be repaired; none where its no does not block.
    pub wanted: Option<WantedRepair<'a>>,
    /// The tests of the base for which still nobody accounts.
    pub open: Vec<OpenTest>,
    /// The sentence about an approval that something else contradicts.
    pub overruled: Option<String>,
}

/// What a reviewer who refuses a whole result wants to be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRepair<'a> {
    pub summary: &'a str,
    /// The issues that block.
    pub issues: Vec<&'a ReviewIssue>,
}

/// Judges the answer of a whole review.
pub fn judged<'a>(review: &'a ReviewAnswer, by: WholeGround<'_>) -> WholeVerdict<'a> {
    let accounts = Accounts { accepted: &review.accepted_tests, by_person: false };
    let left = three_runs::unaccounted(by.open, by.yardstick_changes, accounts);
    let unproven = three_runs::refusal(by.open, by.yardstick_changes, accounts);
    let wanted = wanted(review, by);
    let asked = wanted.as_ref().map(|wanted| match review.verdict {
        Verdict::Approve => "the reviewer approved, but named issues that block".to_owned(),
        Verdict::RequestChanges => {
            format!("the reviewer asks for changes: {}", wanted.summary.trim())
        }
    });
    let overruled = unproven.as_ref().filter(|_| review.verdict == Verdict::Approve);
    let overruled = overruled.map(|text| format!("the reviewer approved although {text}"));
    let reasons: Vec<String> = unproven.into_iter().chain(asked).collect();
    WholeVerdict {
        outcome: Outcome::weighed(&reasons),
        wanted,
        open: left.into_iter().cloned().collect(),
        overruled,
    }
}

/// What the reviewer wants to be repaired, as far as it counts under the gate.
fn wanted<'a>(review: &'a ReviewAnswer, by: WholeGround<'_>) -> Option<WantedRepair<'a>> {
    let (blocks, issues): (bool, Vec<&ReviewIssue>) = match by.gate {
        ReviewGate::Required => {
            (review.verdict != Verdict::Approve, review.issues.iter().collect())
        }
        ReviewGate::Evidence => {
            let cites = |issue: &&ReviewIssue| issue.blocks_by_evidence(by.ground);
            let issues: Vec<&ReviewIssue> = review.issues.iter().filter(cites).collect();
            (!issues.is_empty(), issues)
        }
        ReviewGate::Advisory => (false, Vec::new()),
    };
    blocks.then_some(WantedRepair { summary: &review.summary, issues })
}

impl WantedRepair<'_> {
    /// What is wrong, each with its place and how to repair it, for whoever repairs it.
    pub fn told(&self) -> String {
        let one = |issue: &&ReviewIssue| {
            let place = match (&issue.file, issue.line) {
                (Some(file), Some(line)) => format!(" ({file}:{line})"),
                (Some(file), None) => format!(" ({file})"),
                (None, _) => String::new(),
            };
            let fix = match issue.fix.trim() {
                "" => String::new(),
                fix => format!("\n  {fix}"),
            };
            let severity = issue.severity.as_str();
            format!("- {severity}: {}{place}{fix}", issue.message.trim())
        };
        let issues = self.issues.iter().map(one);
        let summary = self.summary.trim().to_owned();
        [summary].into_iter().chain(issues).collect::<Vec<_>>().join("\n")
    }

    /// What holds once it is repaired: the criteria of the plan that the issues cite, and of each other
    /// issue that it is resolved.
    pub fn acceptance(&self, criteria: &[String]) -> Vec<String> {
        let cited = |issue: &ReviewIssue| {
            let place = usize::try_from(issue.criterion?.checked_sub(1)?).ok()?;
            criteria.get(place).cloned()
        };
        let resolved = |text: &str| format!("the issue “{}” is resolved", text.trim());
        let mut acceptance: Vec<String> = Vec::new();
        for issue in &self.issues {
            let text = cited(issue).unwrap_or_else(|| resolved(&issue.message));
            if !acceptance.contains(&text) {
                acceptance.push(text);
            }
        }
        if acceptance.is_empty() {
            acceptance.push(resolved(self.summary));
        }
        acceptance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Severity;
    use crate::three_runs::{AcceptedTest, OpenTestKind};

    const REPAIRED: &str = "the issue “the cache is stale” is resolved";

    fn issue(message: &str, criterion: Option<u64>) -> ReviewIssue {
        ReviewIssue {
            severity: Severity::Major,
            message: message.to_owned(),
            fix: "mend it".to_owned(),
            file: Some("a.rs".to_owned()),
            line: Some(7),
            criterion,
            command: None,
        }
    }

    fn review(verdict: Verdict, issues: &[ReviewIssue], accepted: &[&str]) -> ReviewAnswer {
        let reason = "the plan asks for it".to_owned();
        let accepts = |id: &&str| AcceptedTest { id: (*id).to_owned(), reason: reason.clone() };
        ReviewAnswer {
            verdict,
            summary: " almost ".to_owned(),
            issues: issues.to_vec(),
            accepted_tests: accepted.iter().map(accepts).collect(),
        }
    }

    fn open(id: &str) -> OpenTest {
        OpenTest { id: id.to_owned(), kind: OpenTestKind::Fails, file: None }
    }

    /// Why it does not pass, and the number of issues and tests to repair.
    fn meaning(
        gate: ReviewGate,
        review: &ReviewAnswer,
        open: &[OpenTest],
    ) -> (Option<String>, usize, usize) {
        let ground = ReviewGround { criteria: 2, ..ReviewGround::default() };
        let yardstick_changes = YardstickChanges::Reviewed;
        let verdict =
            judged(review, WholeGround { gate, yardstick_changes, ground: &ground, open });
        let issues = verdict.wanted.map_or(0, |wanted| wanted.issues.len());
        (verdict.outcome.failure().map(str::to_owned), issues, verdict.open.len())
    }

    #[test]
    fn what_blocks_depends_on_the_gate() {
        use ReviewGate::{Advisory, Evidence, Required};
        use Verdict::{Approve, RequestChanges};
        let asks = || Some("the reviewer asks for changes: almost".to_owned());
        let both = [issue("vague", None), issue("cited", Some(2))];
        for (gate, verdict, issues, why, wanted) in [
            (Required, Approve, &both[..0], None, 0),
            (Required, RequestChanges, &both[..], asks(), 2),
            (Required, RequestChanges, &both[..0], asks(), 0),
            (Evidence, RequestChanges, &both[..], asks(), 1),
            (Evidence, RequestChanges, &both[..1], None, 0),
            (Evidence, RequestChanges, &both[..0], None, 0),
            (Advisory, RequestChanges, &both[..], None, 0),
        ] {
            let answer = review(verdict, issues, &[]);
            assert_eq!(meaning(gate, &answer, &[]), (why, wanted, 0), "{gate:?} {verdict:?}");
        }
        let torn = review(Approve, &both, &[]);
        let why = Some("the reviewer approved, but named issues that block".to_owned());
        assert_eq!(meaning(Evidence, &torn, &[]), (why, 1, 0));
    }

    #[test]
    fn a_test_of_the_base_that_nobody_accepts_is_repaired_under_every_gate() {
        let tests = [open("a"), open("b")];
        for gate in ReviewGate::ALL {
            let half = review(Verdict::Approve, &[], &["a"]);
            let (why, issues, left) = meaning(gate, &half, &tests);
            assert!(why.is_some_and(|why| why.contains("`b` fails")), "{gate:?}");
            assert_eq!((issues, left), (0, 1), "{gate:?}");
            let all = review(Verdict::Approve, &[], &["b", "a"]);
            assert_eq!(meaning(gate, &all, &tests), (None, 0, 0), "{gate:?}");
        }
        let ground = ReviewGround::default();
        let by = |yardstick_changes| WholeGround {
            gate: ReviewGate::Required,
            yardstick_changes,
            ground: &ground,
            open: &tests,
        };
        let all = review(Verdict::Approve, &[], &["b", "a"]);
        let told = judged(&all, by(YardstickChanges::Refused));
        let over = told.overruled.as_deref();
        assert!(over.is_some_and(|text| text.starts_with("the reviewer approved although tests")));
        let none = review(Verdict::Approve, &[], &[]);
        assert_eq!(judged(&none, by(YardstickChanges::Told)).outcome, Outcome::Passed);
    }

    #[test]
    fn a_repair_is_told_what_is_wrong_and_by_which_criteria_it_is_judged() {
        let issues = [
            issue("both.txt is missing", Some(2)),
            issue("and says nothing", Some(2)),
            issue("the cache is stale", Some(9)),
        ];
        let answer = review(Verdict::RequestChanges, &issues, &[]);
        let wanted =
            WantedRepair { summary: &answer.summary, issues: answer.issues.iter().collect() };
        let criteria = ["one is there".to_owned(), "both.txt joins them".to_owned()];
        assert_eq!(wanted.acceptance(&criteria), ["both.txt joins them", REPAIRED]);
        insta::assert_snapshot!(wanted.told(), @"
        almost
        - major: both.txt is missing (a.rs:7)
          mend it
        - major: and says nothing (a.rs:7)
          mend it
        - major: the cache is stale (a.rs:7)
          mend it
        ");
        let bare = WantedRepair { summary: &answer.summary, issues: Vec::new() };
        assert_eq!(bare.acceptance(&criteria), ["the issue “almost” is resolved"]);
    }
}

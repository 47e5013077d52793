//! Reviews as answers: which verdict counts, and when an approval is none.
//!
//! Only an approval is doubted. A refusal needs no proof that it was meant.

use super::{AnswerFault, AnswerSchema, Dug, FoundValue, GivenAnswer, read};
use autopilot_core::event::Verdict;
use autopilot_core::flow::review::{ReviewAnswer, self_contradiction};

/// The characters before an object that make it part of a quotation.
const QUOTES: [char; 7] = ['"', '\'', '“', '‘', '„', '«', '`'];

/// The number of words on a line that says little more than a verdict.
const VERDICT_WORDS_MAX: usize = 4;

/// A review as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReview {
    pub answer: ReviewAnswer,
    /// The reason why its approval is none.
    pub contradiction: Option<String>,
    /// The text around the answer says the opposite of it.
    pub prose: Option<String>,
}

impl ReadReview {
    /// The review that is left of an approval that contradicts itself even when asked for again.
    pub fn after_all(self) -> ReviewAnswer {
        match self.contradiction {
            None => self.answer,
            Some(why) => ReviewAnswer {
                verdict: Verdict::RequestChanges,
                summary: format!("{why}, even when asked again: {}", self.answer.summary),
                ..self.answer
            },
        }
    }
}

/// Reads a review and what speaks against its verdict. The answer must also satisfy `also`, a schema
/// the user edited.
pub fn read_review<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
) -> Result<ReadReview, Vec<AnswerFault>> {
    let given = given.into();
    let answer: ReviewAnswer = read(given, also)?;
    let said = given.said();
    let contradiction = match answer.verdict {
        Verdict::RequestChanges => None,
        Verdict::Approve => said.against_approval().or_else(|| self_contradiction(&answer)),
    };
    let prose = said.prose_against(answer.verdict);
    Ok(ReadReview { answer, contradiction, prose })
}

/// The verdicts in the text of an answer, and the text without them.
struct SaidVerdicts {
    /// The verdicts that are not part of a quotation.
    own: Vec<Verdict>,
    /// A verdict came by the agent's own schema mechanism.
    is_structured: bool,
    prose: String,
}

impl SaidVerdicts {
    fn against_approval(&self) -> Option<String> {
        if self.own.contains(&Verdict::RequestChanges) {
            let why = "the reviewer gave two verdicts that differ, APPROVE and REQUEST_CHANGES";
            return Some(why.to_owned());
        }
        let is_quoted = !self.is_structured && self.own.is_empty();
        is_quoted.then(|| "the reviewer's only verdict is part of a quotation".to_owned())
    }

    /// The sentence about prose that has only the other verdict, on a line of its own.
    fn prose_against(&self, verdict: Verdict) -> Option<String> {
        let other = match verdict {
            Verdict::Approve => Verdict::RequestChanges,
            Verdict::RequestChanges => Verdict::Approve,
        };
        let names = |text: &str, verdict: Verdict| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            text.split(|c: char| !is_part(c)).any(|word| word == verdict.word())
        };
        let is_short = |line: &str| {
            let is_word = |word: &&str| word.contains(char::is_alphanumeric);
            line.split_whitespace().filter(is_word).count() <= VERDICT_WORDS_MAX
        };
        let gives_other = self.prose.lines().any(|line| is_short(line) && names(line, other));
        (gives_other && !names(&self.prose, verdict)).then(|| {
            format!(
                "the text around the review says {}, the review itself {}",
                other.word(),
                verdict.word()
            )
        })
    }
}

impl GivenAnswer<'_> {
    fn said(&self) -> SaidVerdicts {
        let Dug { objects, .. } = super::dig(self.text).unwrap_or_default();
        let mut said = SaidVerdicts {
            own: Vec::new(),
            is_structured: self.structured.is_some(),
            prose: String::new(),
        };
        let mut at = 0;
        for found in objects.iter().filter(|found| !found.in_broken) {
            said.prose.push_str(self.text.get(at..found.start).unwrap_or_default());
            at = found.end;
            // A verdict is one, whatever else is wrong with the object that it is in.
            let verdict = found.value.get("verdict").cloned().unwrap_or_default();
            let own = serde_json::from_value::<Verdict>(verdict).ok();
            said.own.extend(own.filter(|_| !found.is_quoted(self.text)));
        }
        said.prose.push_str(self.text.get(at..).unwrap_or_default());
        said
    }
}

impl FoundValue {
    /// Whether the object is in a quoted line of Markdown, or in quotation marks. A fence quotes
    /// nothing, nor do the backticks around the last thing said: that is how answers are marked.
    pub(super) fn is_quoted(&self, text: &str) -> bool {
        let before = text.get(..self.start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_marked = before.chars().next_back().is_some_and(|last| QUOTES.contains(&last));
        let rest = text.get(self.end..).unwrap_or_default();
        let is_code = before.ends_with('`');
        let is_fence = before.ends_with("```");
        let is_last = rest.trim_matches(|c: char| c == '`' || c.is_whitespace()).is_empty();
        let is_marked = is_marked && !(is_code && (is_fence || is_last));
        is_marked || line.trim_start().starts_with('>')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const YES: &str = r#"{"verdict":"APPROVE","summary":"fine","issues":[]}"#;
    const NO: &str = r#"{"verdict":"REQUEST_CHANGES","summary":"bad","issues":
        [{"severity":"minor","message":"odd","fix":"mend"}]}"#;

    fn read(text: &str) -> ReadReview {
        read_review(text, None).unwrap()
    }

    fn against(text: &str) -> Option<String> {
        read(text).contradiction
    }

    #[test]
    fn an_approval_counts_in_prose_in_a_fence_and_when_it_is_said_twice() {
        for text in [
            YES.to_owned(),
            format!("I looked.\n```json\n{YES}\n```\n"),
            format!("First: {YES}\nAgain: {YES}"),
            format!("The tests of the builder say > 0.\n{YES}"),
            format!("> {NO}\nsays the builder, wrongly.\n{YES}"),
            format!("An old review: “{NO}”. Mine: {YES}"),
            format!("An old review: `{NO}`. Mine: {YES}"),
            format!("My verdict: `{YES}`\n"),
            format!("An old review: `{NO}`. Mine:\n`{YES}`"),
            format!("```{YES}```\nThat is all."),
        ] {
            assert_eq!(against(&text), None, "{text}");
        }
    }

    #[test]
    fn two_verdicts_that_differ_are_no_approval() {
        let told = against(&format!("{NO}\nOn second thought:\n{YES}")).unwrap();
        assert!(told.contains("two verdicts"), "{told}");
        assert_eq!(against(&format!("{YES}\nOn second thought:\n{NO}")), None, "it is a refusal");
        for text in [format!("```{NO}```\n{YES}"), format!("{NO}\n`{YES}`")] {
            let told = against(&text).unwrap();
            assert!(told.contains("two verdicts"), "{told}");
        }
        let value: Value = serde_json::from_str(YES).unwrap();
        let given = GivenAnswer { text: NO, structured: Some(&value) };
        assert!(read_review(given, None).unwrap().contradiction.is_some());
    }

    #[test]
    fn a_verdict_in_a_quotation_is_none() {
        for text in [
            format!("> {YES}\n"),
            format!("The builder wrote \"{YES}\" into a comment."),
            format!("The builder wrote `{YES}` into a comment."),
        ] {
            let told = against(&text).unwrap();
            assert!(told.contains("quotation"), "{told}");
        }
        let value: Value = serde_json::from_str(YES).unwrap();
        let given = GivenAnswer { text: "> quoted", structured: Some(&value) };
        assert_eq!(read_review(given, None).unwrap().contradiction, None);
    }

    #[test]
    fn an_approval_with_a_blocker_or_major_issue_is_none() {
        for (severity, is_none) in [("blocker", true), ("major", true), ("minor", false)] {
            let issue = json!({ "severity": severity, "message": "it loses data", "fix": "mend" });
            let review = json!({ "verdict": "APPROVE", "summary": "ok", "issues": [issue] });
            assert_eq!(against(&review.to_string()).is_some(), is_none, "{severity}");
        }
    }

    #[test]
    fn what_stays_contradicted_is_a_refusal_with_its_issues() {
        let issue = json!({ "severity": "major", "message": "it loses data", "fix": "mend" });
        let review = json!({ "verdict": "APPROVE", "summary": "ok", "issues": [issue] });
        let left = read(&review.to_string()).after_all();
        assert_eq!((left.verdict, left.issues.len()), (Verdict::RequestChanges, 1));
        assert!(left.summary.ends_with("even when asked again: ok"), "{}", left.summary);
        assert_eq!(read(YES).after_all().verdict, Verdict::Approve);
    }

    #[test]
    fn prose_that_says_the_opposite_is_told() {
        assert_eq!(read(YES).prose, None);
        assert!(read(&format!("Verdict: REQUEST_CHANGES\n{YES}")).prose.is_some());
        assert!(read(&format!("I APPROVE this.\n{NO}")).prose.is_some());
        assert!(read(&format!("I looked at it.\n- **REQUEST_CHANGES**\n{YES}")).prose.is_some());
        let none = format!("I see no reason to REQUEST_CHANGES here.\n{YES}");
        assert_eq!(read(&none).prose, None);
        let both = format!("APPROVE or REQUEST_CHANGES? Hard to say.\n{YES}");
        assert_eq!(read(&both).prose, None);
        assert_eq!(read(&format!("APPROVED earlier\n{NO}")).prose, None, "another word");
    }
}

//! REVIEW: another agent judges the change. Its verdict is one of several findings.

use super::asking::{Question, Unanswered};
use super::workshop::{Bench, JudgeBench};
use super::{Done, Job, JobError};
use autopilot_agents::AgentEnding;
use autopilot_agents::answer::{
    AgentAnswer, AnswerFault, AnswerSchema, ReadReview, ReviewAnswer, read_review,
};
use autopilot_core::doubt::{Doubt, DoubtKind};
use autopilot_core::event::Facts;
use autopilot_core::evidence::RoundEvidence;
use autopilot_core::flow::review::{ReviewGround, weigh_issues};
use autopilot_core::prompt;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_host::git::{GitChange, LineFact};

/// What came of asking a reviewer.
pub(super) enum AskedReview {
    Answered(Box<WeighedReview>),
    /// The attempt ended without a review.
    Unanswered(Box<Done>),
}

/// A reviewer's answer, and what it can cite.
pub(super) struct WeighedReview {
    pub answer: ReviewAnswer,
    pub ground: ReviewGround,
    pub facts: Facts,
}

impl Job {
    pub(super) async fn review(&self) -> Result<Done, JobError> {
        let spec = self.spec()?;
        let change = self.change()?;
        let evidence = self.evidence(Step::Validate)?;
        let built = if self.task.round > 1 { Step::Fix } else { Step::Build };
        let claimed = self.answer_of(built)?;
        let used = self.task.last(built).and_then(|shown| shown.facts.used.as_deref());
        let against = used.map(|used| used.against.as_slice()).unwrap_or_default();
        let differs = [&evidence.differs[..], against].concat();
        let JudgeBench { bench, restored } =
            self.judge_bench(&self.commit()?, &self.base()?).await?;
        let prompt = prompt::reviewer(
            &prompt::ReviewPrompt {
                task: &spec,
                diff: &change.diff,
                validation: &evidence.checks,
                claimed: claimed.as_deref(),
                differs: &differs,
                findings: &evidence.findings,
                open: self.open_tests(),
                restored: &restored,
                gate: self.run.limits.review,
                schema: ReviewAnswer::SCHEMA_JSON,
            },
            self.caps(),
        );
        let ground = ground(&spec, &evidence, &self.known_failures()?, &change);
        Ok(match self.reviewed(prompt, &bench, ground).await? {
            AskedReview::Unanswered(done) => *done,
            AskedReview::Answered(read) => (read.answer.outcome(), read.facts),
        })
    }

    /// Asks a reviewer, and weighs the issues that it names by what they cite.
    pub(super) async fn reviewed(
        &self,
        prompt: String,
        bench: &Bench,
        ground: ReviewGround,
    ) -> Result<AskedReview, JobError> {
        let question = Question::reading(prompt, &bench.dir);
        let asked = self.ask_by::<ReviewAnswer, _>(question, read_clear).await?;
        let mut facts = asked.facts;
        let (answer, prose) = match asked.answer {
            Ok(read) => (read.answer, read.prose),
            Err(unanswered) => match self.contradicted(&unanswered)? {
                Some(review) => (review, None),
                None => {
                    return Ok(AskedReview::Unanswered(Box::new((unanswered.outcome(), facts))));
                }
            },
        };
        facts.doubts.extend(prose.map(|text| Doubt::new(DoubtKind::Claim, text)));
        let file = format!("artifacts/{}_{}_review.json", self.task.label(), self.want.id);
        self.keep_answer(&mut facts, &answer, Some(&file))?;
        let ground = ReviewGround { directory: bench.dir.seen.to_string(), ..ground };
        let weighed = weigh_issues(self.run.limits.review, &answer, &ground);
        facts.said = Some(answer.said(&weighed));
        facts.accepted.clone_from(&answer.accepted_tests);
        facts.fingerprint = answer.fingerprint();
        facts.notes.extend(weighed.notes);
        let overruled = weighed.overruled.map(|text| Doubt::new(DoubtKind::Overruled, text));
        facts.doubts.extend(overruled);
        Ok(AskedReview::Answered(Box::new(WeighedReview { answer, ground, facts })))
    }

    /// The refusal that is left of a review that contradicted itself twice.
    fn contradicted(&self, unanswered: &Unanswered) -> Result<Option<ReviewAnswer>, JobError> {
        let Unanswered::Faulty { ending, .. } = unanswered else { return Ok(None) };
        let own = self.own_schema()?;
        Ok(read_review(ending.as_ref(), own.as_ref()).ok().map(ReadReview::after_all))
    }
}

/// Reads a review whose verdict is clear. An approval that contradicts itself is asked for again.
fn read_clear(
    ending: &AgentEnding,
    own: Option<&AnswerSchema>,
) -> Result<ReadReview, Vec<AnswerFault>> {
    let read = read_review(ending, own)?;
    match read.contradiction {
        None => Ok(read),
        Some(why) => Err(vec![AnswerFault::new("/verdict", why)]),
    }
}

/// The evidence a reviewer can cite. A check that also fails on the base says nothing about the
/// change.
pub(super) fn ground(
    spec: &TaskSpec,
    shown: &RoundEvidence,
    base: &RoundEvidence,
    change: &GitChange,
) -> ReviewGround {
    let failed = shown.new_failures(base);
    let lossy = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let line = |fact: &LineFact| (lossy(&fact.path), fact.number);
    ReviewGround {
        criteria: spec.acceptance.len() as u64,
        failed_commands: failed
            .flat_map(|seen| [seen.name.clone(), seen.command.clone()])
            .collect(),
        changed_lines: change.added.iter().chain(&change.removed).map(line).collect(),
        lines_are_cut: change.lines_cut,
        changed_files: change.paths.iter().map(|file| lossy(&file.path)).collect(),
        ..ReviewGround::default()
    }
}

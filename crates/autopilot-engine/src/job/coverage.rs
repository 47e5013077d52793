//! COVERAGE: another agent says which tests cover which criterion. The controller compares that with the
//! tests that it has seen fail without the change.

use super::asking::{Question, Unanswered};
use super::workshop::JudgeBench;
use super::{Done, Job, JobError};
use crate::begin::PlanBody;
use autopilot_agents::AgentEnding;
use autopilot_agents::answer::{AgentAnswer, AnswerSchema, CoverageAnswer, read, read_coverage};
use autopilot_core::coverage::{
    CoverageCheck, CoverageGround, CoverageSeen, NamedCriterion, check_coverage, coverage_doubts,
    coverage_notes, named_criteria,
};
use autopilot_core::event::Facts;
use autopilot_core::prompt::{self, CoveragePrompt};
use autopilot_core::step::Step;
use autopilot_host::git::Oid;

impl Job {
    pub(super) async fn coverage(&self) -> Result<Done, JobError> {
        let (title, criteria) = self.named_criteria()?;
        let (base, known) = (self.base()?, self.known_failures()?);
        let seen = CoverageSeen {
            green: &self.evidence(Step::Validate)?,
            base: &known,
            change_base: base.as_str(),
            run_base: &self.run.base,
        };
        let ground = CoverageGround::of(criteria, &seen);
        if let Some(check) = ground.settled() {
            return Ok(checked(check, &ground, Facts::default()));
        }
        let asked = self.ask_for_coverage(&title, &ground, &base).await?;
        let (answer, mut facts) = match asked {
            (Ok(answer), facts) => (answer, facts),
            (Err(unanswered), facts) => match mapped_after_all(&unanswered) {
                Some(answer) => (answer, facts),
                None => return Ok((unanswered.outcome(), facts)),
            },
        };
        let file = format!("artifacts/{}_{}_coverage.json", self.task.name(), self.want.id);
        self.keep_answer(&mut facts, &answer, Some(&file))?;
        Ok(checked(check_coverage(&answer, &ground), &ground, facts))
    }

    async fn ask_for_coverage(
        &self,
        title: &str,
        ground: &CoverageGround,
        base: &Oid,
    ) -> Result<(Result<CoverageAnswer, Unanswered>, Facts), JobError> {
        let change = self.change()?;
        let JudgeBench { bench, .. } = self.judge_bench(&self.commit()?, base).await?;
        let (diff, schema) = (change.diff.as_str(), CoverageAnswer::SCHEMA_JSON);
        let prompt = prompt::coverage(&CoveragePrompt { title, ground, diff, schema }, self.caps());
        let question = Question::reading(prompt, &bench.dir);
        let read =
            |ending: &AgentEnding, own: Option<&AnswerSchema>| read_coverage(ending, own, ground);
        let asked = self.ask_by::<CoverageAnswer, _>(question, read).await?;
        Ok((asked.answer, asked.facts))
    }

    /// The title of the work and its criteria by name, without secrets.
    fn named_criteria(&self) -> Result<(String, Vec<NamedCriterion>), JobError> {
        let (spec, goal) = if self.task.parent.is_none() {
            let whole: PlanBody = self.body(&self.task.spec.body)?;
            (whole.spec, whole.text)
        } else {
            let spec = self.spec()?;
            let goal = spec.goal.clone();
            (spec, goal)
        };
        let criteria = named_criteria(&spec.acceptance, &goal).into_iter();
        let clean = |it: NamedCriterion| NamedCriterion { text: self.clean(&it.text), ..it };
        Ok((self.clean(&spec.title), criteria.map(clean).collect()))
    }
}

/// The map of an answer with names that nobody knows, even when asked again: they cover nothing.
fn mapped_after_all(unanswered: &Unanswered) -> Option<CoverageAnswer> {
    match unanswered {
        Unanswered::Ended(_) => None,
        Unanswered::Faulty { ending, .. } => read(ending.as_ref(), None).ok(),
    }
}

fn checked(check: CoverageCheck, ground: &CoverageGround, facts: Facts) -> Done {
    let mut facts = facts;
    facts.notes.extend(coverage_notes(&check));
    facts.doubts.extend(coverage_doubts(ground));
    let outcome = check.outcome();
    facts.coverage = Some(Box::new(check));
    (outcome, facts)
}

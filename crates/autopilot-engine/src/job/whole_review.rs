//! WHOLE_REVIEW: a reviewer judges what all tasks of a plan make together, by the plan itself.

use super::mend::Mending;
use super::own_work::blocking;
use super::review::{AskedReview, ground};
use super::workshop::JudgeBench;
use super::{Done, Job, JobError};
use crate::begin::PlanBody;
use autopilot_agents::answer::{AgentAnswer, ReviewAnswer};
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::flow::whole_review::{WholeGround, WholeVerdict, judged};
use autopilot_core::prompt::{self, ReviewedTask, WholeReviewPrompt};
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::three_runs;
use autopilot_host::git::ChangedPath;
use autopilot_view as view;

impl Job {
    pub(super) async fn whole_review(&self) -> Result<Done, JobError> {
        let whole: PlanBody = self.body(&self.task.spec.body)?;
        let change = self.change()?;
        if change.base_tree == change.tree {
            let why = "the result is the base, so there is nothing to review".to_owned();
            return Ok((Outcome::Skipped { why }, Facts::default()));
        }
        let evidence = self.evidence(Step::Validate)?;
        let state = blocking(|| self.state())?;
        let JudgeBench { bench, restored } =
            self.judge_bench(&self.commit()?, &self.base()?).await?;
        let limits = &self.run.limits;
        let files: Vec<String> = change.paths.iter().map(ChangedPath::display).collect();
        let prompt = prompt::whole_reviewer(
            &WholeReviewPrompt {
                title: &whole.spec.title,
                plan: &whole.text,
                acceptance: &whole.spec.acceptance,
                constraints: &whole.spec.constraints,
                tasks: &self.tasks_to_review(&state)?,
                diff: &change.diff,
                files: &files,
                files_left_out: change.paths_left_out,
                validation: &evidence.checks,
                open: self.open_tests(),
                accounted: &self.accounted_tests(&state)?,
                doubts: &known_doubts(&state),
                restored: &restored,
                gate: limits.review,
                schema: ReviewAnswer::SCHEMA_JSON,
            },
            self.caps(),
        );
        let ground = ground(&whole.spec, &evidence, &self.known_failures()?, &change);
        let mut read = match self.reviewed(prompt, &bench, ground).await? {
            AskedReview::Answered(read) => *read,
            AskedReview::Unanswered(done) => return Ok(*done),
        };
        let by = WholeGround {
            gate: limits.review,
            yardstick_changes: limits.yardstick_changes,
            ground: &read.ground,
            open: self.open_tests(),
        };
        let verdict = judged(&read.answer, by);
        read.facts.notes.extend(verdict.overruled.clone());
        if let Some(mending) = mending(&verdict) {
            read.facts.tasks.push(self.mending_task(&whole.spec, &[], mending)?);
        }
        Ok((verdict.outcome, read.facts))
    }

    /// The tasks of the plan, with what each was to do and how it ended.
    fn tasks_to_review(&self, state: &State) -> Result<Vec<ReviewedTask>, JobError> {
        let reviewed = |task: &Task| {
            let spec: TaskSpec = self.body(&task.spec.body)?;
            Ok(ReviewedTask {
                name: task.name().to_owned(),
                title: task.spec.title.clone(),
                status: view::task_word(task),
                acceptance: spec.acceptance,
            })
        };
        view::leaves(state).map(reviewed).collect()
    }

    /// The tests of the base that merged tasks have changed, each with who accounts for that.
    fn accounted_tests(&self, state: &State) -> Result<Vec<String>, JobError> {
        let mut lines = Vec::new();
        for task in view::leaves(state).filter(|task| task.is_closed()) {
            let shown = task.shown(Step::Validate);
            let evidence = self.evidence_at(shown.and_then(|it| it.facts.answer.as_deref()))?;
            let Some(runs) = evidence.three_runs else { continue };
            let told = three_runs::accounted_lines(&runs, task);
            lines.extend(told.into_iter().map(|line| format!("{}: {line}", task.name())));
        }
        Ok(lines)
    }
}

/// What is known of the tasks and the whole, besides the tests that are listed with who accounts for
/// them.
fn known_doubts(state: &State) -> Vec<String> {
    let doubts = view::doubts(state);
    let others = doubts.iter().filter(|standing| standing.doubt.test.is_none());
    others.map(view::StandingDoubt::sentence).collect()
}

/// What the repair is for, if there has to be one.
fn mending<'a>(verdict: &'a WholeVerdict<'_>) -> Option<Mending<'a>> {
    match (&verdict.wanted, verdict.open.as_slice()) {
        (Some(wanted), open) => Some(Mending::Review { wanted, open }),
        (None, []) => None,
        (None, open) => Some(Mending::Regression(open)),
    }
}

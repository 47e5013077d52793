//! WORKFLOW, STEP and COMPLETION: one workflow after the other towards a goal. The controller knows
//! nothing about the work: it carries the results from one session to the next.

use super::asking::{AgentTurn, AskedQuestion, Question, Unanswered};
use super::build::{Start, note_work, notes_of};
use super::builder_turn::SessionChoice;
use super::conflict;
use super::opening::{asking_spec, with_named_skill, workflow_facts};
use super::own_work::blocking;
use super::workshop::JudgeBench;
use super::{Done, Job, JobError};
use crate::begin::{PlanBody, step_rules};
use autopilot_agents::AgentOutcome;
use autopilot_agents::answer::{AgentAnswer, completion_after_all, read_completion, read_workflow};
use autopilot_core::config::{Role, WorkBy};
use autopilot_core::event::{Outcome, TaskEntry};
use autopilot_core::evidence::SeenCommand;
use autopilot_core::flow::workflow_step;
use autopilot_core::guard::doubts;
use autopilot_core::prompt::{BuildRules, FailedChecks};
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::warmth::SlotUser;
use autopilot_core::workflow::{
    self, CheckedWorkflow, Completion, CompletionPrompt, PastStep, StepBody, StepPrompt,
    StepResult, Workflow, WorkflowPrompt, WorkflowRules, WorkflowStep, past_steps,
};
use autopilot_host::git::{ChangedPath, Conflicts, GitError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Characters of a step's goal that become its title.
const TITLE_CHARS_MAX: usize = 80;

impl Job {
    pub(super) async fn workflow(&self) -> Result<Done, JobError> {
        let goal: PlanBody = self.body(&self.task.spec.body)?;
        let tip = self.tip()?;
        let bench = self.judge_bench(&tip, &tip).await?.bench;
        let carry = self.carry()?;
        let rules = self.workflow_rules();
        let kit = self.kit(&TaskSpec::default(), &self.run_base()?)?;
        let known = autopilot_core::skill::offered(&kit.shelf);
        let facts = WorkflowPrompt {
            carry: carry.summary.as_deref(),
            refuted: carry.refuted.as_ref().map(|(why, ran)| FailedChecks { why, ran }),
            faults: &carry.faults,
            ..workflow_facts(&goal, &rules, &known)
        };
        let prompt = workflow::workflow_prompt(&facts, self.caps());
        let question = Question::reading(self.with_named_skill(prompt)?, &bench.dir);
        let read = |ending: &_, own: Option<&_>| read_workflow(ending, own, &rules);
        let AskedQuestion { mut facts, answer, repaired } =
            self.ask_by::<Workflow, _>(question, read).await?;
        facts.notes.extend(
            repaired.map(|count| format!("the first workflow had problems ({count}); asked again")),
        );
        let checked = match answer {
            Ok(checked) => checked,
            Err(unanswered) => {
                return Ok((unanswered.refused("the workflow is not valid"), facts));
            }
        };
        self.keep_answer(&mut facts, &checked.workflow, None)?;
        facts.notes.extend(checked.warnings.iter().cloned());
        facts.notes.extend(self.capped(&checked.workflow));
        facts.tasks = self.entries(&checked, self.task.round)?;
        Ok((Outcome::Passed, facts))
    }

    pub(super) async fn workflow_step(&self) -> Result<Done, JobError> {
        let body: StepBody = self.body(&self.task.spec.body)?;
        if let Some(seconds) = body.step.timeout_sec {
            // Set once: an attempt belongs to one step.
            let asked = Duration::from_secs(seconds);
            let _first = self.time_limit.set(asked.min(self.usual_limit()));
        }
        let choice = match &self.task.words {
            // The person has chosen the session.
            Some(_) => SessionChoice::Fresh(None),
            None => self.session_choice()?,
        };
        let start = self.start(choice.is_continued())?;
        let left_behind = self.left_behind(&start)?;
        let start = without_conflicts(start);
        let bench = self.bench(SlotUser::Builder, &start.commit, &start.base).await?;
        let results = self.past_results()?;
        let dependencies: Vec<&StepResult> = results.iter().map(|(_, result)| result).collect();
        let facts = StepPrompt {
            goal: &body.step.goal,
            task: &self.whole()?.text,
            dependencies: &dependencies,
            failed: self.task.last(self.want.step).and_then(|shown| shown.outcome.failure()),
            left_behind: left_behind.as_deref(),
            rules: &BuildRules::of(&self.context.config, &body.spec),
        };
        let prompt = workflow::step_prompt(&facts, self.caps());
        let kit = self.kit(&body.spec, &start.commit)?;
        let question = Question::editing(kit.give(prompt, self.caps())?, &bench.dir);
        let turn = match &self.task.words {
            Some(words) => self.turn_by(words, left_behind.as_deref(), question).await,
            None => {
                self.turn_of_step(&choice, &facts, question, &bench, (&start, &body.spec)).await
            }
        };
        let is_good = |turn: &AgentTurn| turn.ending.outcome == AgentOutcome::Success;
        let is_done = turn.as_ref().is_ok_and(is_good);
        let captured = self.captured(&bench, &start, &body.spec, is_done).await;
        let turn = turn?;
        let capture = captured?;
        let mut facts = self.facts_of(&turn)?;
        facts.notes.extend(start.note.clone());
        facts.notes.extend(notes_of(&capture));
        facts.answer = Some(self.context.texts.put(&self.clean(&turn.ending.answer))?);
        let outcome = if is_done {
            let against = self.weighed_change(&mut facts, &start, &capture, &body.spec)?;
            Outcome::weighed(&against)
        } else {
            note_work(&mut facts, &start, &capture);
            workflow_step::ended(self.judged(&turn.ending), self.named_model())
        };
        let stands = workflow_step::standing(&self.task);
        Ok(workflow_step::unless_it_stands(stands, outcome, facts))
    }

    /// A sentence for an agent whose session remembers work that is not in the directory.
    fn left_behind(&self, start: &Start) -> Result<Option<String>, JobError> {
        let Some(conflicts) = &start.conflicts else { return Ok(None) };
        let Conflicts { ours, theirs, .. } = conflicts;
        let workshop = &self.context.workshop;
        let paths = blocking(|| -> Result<Vec<String>, GitError> {
            let Some(base) = workshop.hub.merge_base(theirs, ours)? else { return Ok(Vec::new()) };
            let change = workshop.change(&base, theirs)?;
            Ok(change.paths.iter().map(ChangedPath::display).collect())
        })?;
        Ok(Some(conflict::left_behind(conflicts, &paths)))
    }

    /// The model that the workflow named for this step, if that model is in use, and its agent.
    fn named_model(&self) -> Option<(&str, &'static str)> {
        let config = self.agent_config();
        let model = self.task.by(self.want.step).model.as_deref();
        let used = model.filter(|model| config.model.as_deref() == Some(*model))?;
        Some((used, config.mode.word()))
    }

    pub(super) async fn completion(&self) -> Result<Done, JobError> {
        let goal: PlanBody = self.body(&self.task.spec.body)?;
        let tip = self.tip()?;
        let JudgeBench { bench, restored } = self.judge_bench(&tip, &tip).await?;
        let (workflow, results) = iteration(self.past_results()?, self.task.round);
        let evidence = self.evidence(Step::Validate)?;
        let base = self.run_base()?;
        let change = blocking(|| self.context.workshop.change(&base, &tip))?;
        let found = doubts(&self.guard(&change, &TaskSpec::default())?);
        let rules = self.workflow_rules();
        let uncovered = self.task.shown(Step::Coverage);
        let facts = CompletionPrompt {
            task: &goal.text,
            workflow: &workflow,
            results: &results,
            validation: &evidence.checks,
            doubts: &found,
            open: self.open_tests(),
            uncovered: uncovered.and_then(|shown| shown.outcome.failure()),
            diff: &change.diff,
            restored: &restored,
            base: Some(&self.run.base),
            rules: &rules,
            schema: Completion::SCHEMA_JSON,
        };
        let prompt = workflow::completion_prompt(&facts, self.caps());
        let question = Question::reading(self.with_named_skill(prompt)?, &bench.dir);
        let read = |ending: &_, own: Option<&_>| read_completion(ending, own, &rules);
        let AskedQuestion { mut facts, answer, .. } =
            self.ask_by::<Completion, _>(question, read).await?;
        facts.doubts.extend(found);
        let assessed = match answer {
            Ok(assessed) => assessed,
            Err(Unanswered::Ended(outcome)) => return Ok((outcome, facts)),
            // An unreadable answer means that the goal is not met.
            Err(Unanswered::Faulty { faults, ending }) => completion_after_all(&*ending, &faults),
        };
        facts.notes.extend(assessed.warnings.iter().cloned());
        self.keep_answer(&mut facts, &assessed.completion, None)?;
        facts.said = Some(assessed.completion.said());
        facts.accepted.clone_from(&assessed.completion.accepted_tests);
        if let Some(next) = assessed.next_if_not_done() {
            facts.notes.extend(self.capped(&next.workflow));
            facts.tasks = self.entries(next, self.task.round + 1)?;
        }
        Ok((assessed.completion.outcome(), facts))
    }

    fn workflow_rules(&self) -> WorkflowRules {
        if let Some(player) = &self.context.player {
            return WorkflowRules::new(player.adapters.clone());
        }
        let path = self.context.variables.get("PATH").map(String::as_str).unwrap_or_default();
        step_rules(&self.context.config, &self.run.limits, &self.context.place, path)
    }

    /// Notes about steps that ask for more time than the user allows.
    fn capped(&self, workflow: &Workflow) -> Vec<String> {
        let config = &self.context.config;
        let over = |step: &WorkflowStep| {
            let by = WorkBy { agent: step.adapter.clone(), model: step.model.clone() };
            let agent = config.agent_by(Role::Builder, &by);
            let usual = config.timeout_by(Step::WorkflowStep, Some(&agent)).as_secs();
            let asked = step.timeout_sec.filter(|asked| *asked > usual)?;
            let id = &step.id;
            Some(format!(
                "step `{id}` asks for {asked} s; the configured limit of {usual} s applies"
            ))
        };
        workflow.steps.iter().filter_map(over).collect()
    }

    /// The tasks of a workflow, each after its dependencies.
    fn entries(
        &self,
        checked: &CheckedWorkflow,
        iteration: u32,
    ) -> Result<Vec<TaskEntry>, JobError> {
        let mut taken: BTreeSet<String> = self.taken_names()?.into_keys().collect();
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        for step in &checked.workflow.steps {
            let name = free_name(workflow::task_name(&step.id, iteration), &taken);
            taken.insert(name.clone());
            names.insert(&step.id, name);
        }
        let mut entries = Vec::new();
        for at in &checked.order {
            let Some(step) = checked.workflow.steps.get(*at) else { continue };
            let title: String = step.title().chars().take(TITLE_CHARS_MAX).collect();
            let name = names.get(step.id.as_str()).cloned().unwrap_or_default();
            let spec = TaskSpec {
                id: name.clone(),
                title: title.clone(),
                goal: step.goal.clone(),
                ..TaskSpec::default()
            };
            let workflow = checked.workflow.id.clone();
            let body = StepBody { spec, step: step.clone(), iteration, workflow, place: *at };
            let needs = step.depends_on.iter();
            entries.push(TaskEntry {
                name,
                title: self.clean(&title),
                source: self.task.spec.source.clone(),
                urgency: checked.urgency.get(*at).copied().unwrap_or(0),
                body: self.context.texts.put(&self.clean_json(&body)?)?,
                depends_on: needs.filter_map(|need| names.get(need.as_str()).cloned()).collect(),
                by: WorkBy { agent: step.adapter.clone(), model: step.model.clone() },
                ..TaskEntry::default()
            });
        }
        Ok(entries)
    }

    /// The finished steps that matter to this attempt, with their results.
    fn past_results(&self) -> Result<Vec<(StepBody, StepResult)>, JobError> {
        let result = |past: PastStep| {
            let body: StepBody = self.body(&past.body)?;
            let said = past.answer.as_deref().map(|hash| self.context.text(hash)).transpose()?;
            let result = past.result(&body.step.id, said);
            Ok((body, result))
        };
        past_steps(&self.state()?, self.want).into_iter().map(result).collect()
    }

    /// The results of the iteration before, for the next workflow.
    fn carry(&self) -> Result<Carry, JobError> {
        let mut carry = Carry::default();
        if self.task.round < 2 {
            return Ok(carry);
        }
        let reasons = self.task.reasons.iter();
        let (made, weighed): (Vec<_>, Vec<_>) =
            reasons.partition(|reason| reason.step == Step::Workflow);
        carry.faults = made.iter().map(|reason| reason.text.clone()).collect();
        let mut past = self.past_results()?;
        // The newest earlier iteration that had any steps.
        past.retain(|(body, _)| body.iteration < self.task.round);
        let Some(number) = past.iter().map(|(body, _)| body.iteration).max() else {
            return Ok(carry);
        };
        let (workflow, results) = iteration(past, number);
        carry.refuted = self.refuted(number)?;
        let texts: Vec<&str> = weighed.iter().map(|reason| reason.text.as_str()).collect();
        let said = match self.completion_of(number)? {
            // The next workflow must know why a yes did not count.
            Some(said) if said.done && carry.refuted.is_none() && !texts.is_empty() => {
                said.overruled(texts.join("; "))
            }
            Some(said) => said,
            None if texts.is_empty() => Completion::not_done("the goal was not met"),
            None => Completion::not_done(texts.join("; ")),
        };
        carry.summary = Some(workflow::carry_summary(&workflow, &results, &said));
        Ok(carry)
    }

    /// The completion check's answer for an iteration.
    fn completion_of(&self, iteration: u32) -> Result<Option<Completion>, JobError> {
        let shown = self.task.last(Step::Completion).filter(|shown| shown.round == iteration);
        let Some(hash) = shown.and_then(|shown| shown.facts.answer.as_ref()) else {
            return Ok(None);
        };
        Ok(serde_json::from_str(&self.context.text(hash)?).ok())
    }

    /// Why the controller rejected the result of an iteration, and the commands it ran.
    fn refuted(&self, iteration: u32) -> Result<Option<(String, Vec<SeenCommand>)>, JobError> {
        let shown = self.task.last(Step::Validate).filter(|shown| shown.round == iteration);
        let Some(why) = shown.and_then(|shown| shown.outcome.failure()) else { return Ok(None) };
        let (shown, known) = (self.evidence(Step::Validate)?, self.known_failures()?);
        Ok(Some((why.to_owned(), shown.new_failures(&known).cloned().collect())))
    }

    /// The prompt with the skill named in its first line, if the run's base or the user has it.
    fn with_named_skill(&self, prompt: String) -> Result<String, JobError> {
        let kit = self.kit_of(self.agent_config(), &asking_spec(&prompt), &self.run_base()?)?;
        with_named_skill(prompt, &kit, self.caps())
    }
}

/// The results of one iteration that the next workflow is built from.
#[derive(Default)]
struct Carry {
    summary: Option<String>,
    refuted: Option<(String, Vec<SeenCommand>)>,
    /// Why the last workflow could not be used.
    faults: Vec<String>,
}

/// Unlike a repair, a step starts on the run's branch as it is, without conflicts, so that
/// undecided files undo nothing that others merged.
fn without_conflicts(start: Start) -> Start {
    let Some(conflicts) = &start.conflicts else { return start };
    let note = format!(
        "{}; it started without its earlier work, which is kept as {}",
        conflict::sentence(conflicts),
        conflicts.theirs.short()
    );
    let note = start.note.map_or(note.clone(), |first| format!("{first}; {note}"));
    let commit = start.base.clone();
    let uncut = commit.clone();
    Start { commit, uncut, base: start.base, note: Some(note), conflicts: None }
}

/// The workflow of an iteration and the results of its steps, in order.
fn iteration(mut past: Vec<(StepBody, StepResult)>, number: u32) -> (Workflow, Vec<StepResult>) {
    past.retain(|(body, _)| body.iteration == number);
    past.sort_by_key(|(body, _)| body.place);
    let id = past.first().map(|(body, _)| body.workflow.clone()).unwrap_or_default();
    let (steps, results) = past.into_iter().map(|(body, result)| (body.step, result)).unzip();
    (Workflow { version: workflow::VERSION, id, steps }, results)
}

/// The step's own name, made different from those that are taken.
fn free_name(first: String, taken: &BTreeSet<String>) -> String {
    let more = (2..).map(|number| format!("{first}-{number}"));
    let mut names = std::iter::once(first.clone()).chain(more);
    names.find(|name| !taken.contains(name)).unwrap_or(first)
}

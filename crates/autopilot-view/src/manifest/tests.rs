//! The files of runs told event by event.

use super::*;
use autopilot_core::event::{Bill, Failure, RoundMark, Skip, TaskEntry};
use autopilot_core::flow::{Pipeline, RoundReason};
use autopilot_core::id::{Micros, Time};
use autopilot_core::workflow::WorkflowStep;

#[derive(Default)]
struct Story {
    seq: u64,
    state: State,
    history: IterationHistory,
    texts: BTreeMap<String, String>,
}

impl Story {
    fn new() -> Story {
        let mut story = Story::default();
        story.texts.insert("goal".into(), r#"{"text":"Make it work","more":1}"#.into());
        let spec = TaskEntry { name: "run".into(), body: "goal".into(), ..TaskEntry::default() };
        story.add(TaskId::ROOT, None, Pipeline::Goal, spec);
        story.at_round(1);
        story
    }

    fn tell(&mut self, events: Vec<Event>) {
        self.seq += 1;
        let record = Record { seq: self.seq, at: Time(self.seq as i64 * 1000), events };
        self.state.apply_record(&record);
        self.history.record(&record);
        // As a process does that reads it all once more.
        self.history.record(&record);
    }

    fn add(&mut self, task: TaskId, parent: Option<TaskId>, pipeline: Pipeline, spec: TaskEntry) {
        self.tell(vec![Event::TaskAdded { task, parent, pipeline, spec: Box::new(spec) }]);
    }

    fn at_round(&mut self, round: u32) {
        let (task, step) = (TaskId::ROOT, Step::Workflow);
        self.tell(vec![Event::TaskMoved { task, step, round }]);
    }

    fn step(&mut self, id: &str, iteration: u32, place: usize, depends_on: &[&str]) -> TaskId {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let step =
            WorkflowStep { id: id.into(), depends_on: own(depends_on), ..WorkflowStep::default() };
        let workflow = format!("w{iteration}");
        let body = StepBody { step, iteration, workflow, place, ..StepBody::default() };
        let name = workflow::task_name(id, iteration);
        self.texts.insert(name.clone(), serde_json::to_string(&body).unwrap());
        let needs: Vec<String> =
            depends_on.iter().map(|on| workflow::task_name(on, iteration)).collect();
        let spec =
            TaskEntry { name: name.clone(), body: name, depends_on: needs, ..TaskEntry::default() };
        let task = TaskId(self.state.tasks.len() as u32);
        self.add(task, Some(TaskId::ROOT), Pipeline::WorkflowStep, spec);
        task
    }

    fn start(&mut self, task: TaskId, step: Step) -> AttemptId {
        let round = self.state.task(task).round.max(1);
        self.tell(vec![
            Event::TaskMoved { task, step, round },
            Event::AttemptStarted { task, step, lane: 0 },
        ]);
        AttemptId { seq: self.seq, place: 1 }
    }

    /// Says so and ends.
    fn work(&mut self, task: TaskId, answer: &str, end: TaskEnd) {
        let step = Step::WorkflowStep;
        let id = self.start(task, step);
        let session = format!("s-{}", task.0);
        let bill = Bill { usd: Micros(5), tokens_in: 7, tokens_out: 3, ..Bill::default() };
        let ended = self.ended(id, task, step, Outcome::Passed, answer, &[]);
        self.tell(vec![
            Event::SessionOpened { id, task, step, session, continued: false },
            Event::Billed { id, task, bill, total: None },
            ended,
            Event::TaskSettled { task, end },
        ]);
    }

    fn ended(
        &mut self,
        id: AttemptId,
        task: TaskId,
        step: Step,
        outcome: Outcome,
        answer: &str,
        notes: &[&str],
    ) -> Event {
        let hash = format!("blob{}", self.texts.len());
        self.texts.insert(hash.clone(), answer.to_owned());
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        let facts = Box::new(Facts { answer: Some(hash), notes, ..Facts::default() });
        Event::AttemptEnded { id, task, step, outcome, facts }
    }

    fn root(&mut self, step: Step, outcome: Outcome, answer: &str, notes: &[&str]) {
        let id = self.start(TaskId::ROOT, step);
        let ended = self.ended(id, TaskId::ROOT, step, outcome, answer, notes);
        self.tell(vec![ended]);
    }

    fn round_failed(&mut self, step: Step, text: &str) {
        let (task, round) = (TaskId::ROOT, self.state.task(TaskId::ROOT).round);
        let reasons = vec![RoundReason { step, text: text.into() }];
        // In one record with the next round, as it is decided.
        self.tell(vec![
            Event::RoundFailed { task, round, reasons, mark: RoundMark::default() },
            Event::TaskMoved { task, step: Step::Workflow, round: round + 1 },
        ]);
    }

    fn manifest(&self, execs: &[ExecEntry]) -> Value {
        let read = |hash: &str| self.texts.get(hash).cloned();
        manifest(&self.state, &self.history, &setting(), execs, &read)
    }

    fn run_state(&self) -> Value {
        let read = |hash: &str| self.texts.get(hash).cloned();
        run_state(&self.state, &self.history, &setting(), &read)
    }
}

fn setting() -> ManifestSetting {
    ManifestSetting { cwd: "/checkout".into(), adapter: "claude".into(), model: Some("big".into()) }
}

fn failed() -> TaskEnd {
    TaskEnd::Failed { why: Failure::Refused { step: Step::WorkflowStep, why: "no".into() } }
}

fn no(why: &str) -> Outcome {
    Outcome::Failed { why: why.into() }
}

/// Two iterations, of which the first has one step of each kind.
fn two_iterations() -> Story {
    let mut story = Story::new();
    story.root(Step::Workflow, Outcome::Passed, "{}", &["`colour` is not known"]);
    // Made in the order of their dependencies, told in that of the workflow.
    let bad = story.step("bad", 1, 1, &[]);
    let after = story.step("after", 1, 0, &["bad"]);
    story.work(bad, "I could not", failed());
    let why = Skip::Blocked { by: bad };
    story.tell(vec![Event::TaskSettled { task: after, end: TaskEnd::Skipped { why } }]);
    let answer = r#"{"done":false,"reason":"bad is missing"}"#;
    story.root(Step::Completion, no("not done: bad is missing"), answer, &["`x` is not known"]);
    story.round_failed(Step::Completion, "not done: bad is missing");
    let again = story.step("bad", 2, 0, &[]);
    story.work(again, "now I could", TaskEnd::Closed);
    story.step("more", 2, 1, &["bad"]);
    story
}

#[test]
fn the_graph_has_the_steps_of_all_iterations_and_what_was_said_of_them() {
    let graph = two_iterations().manifest(&[])["graph"].clone();
    let node = |id: &str, iteration: u32, step: &str, status: &str, session: &str| json!({ "id": id, "iteration": iteration, "stepId": step, "status": status, "sessionId": session });
    assert_eq!(
        graph,
        json!({
            "nodes": [
                node("after", 1, "after", "skipped", ""),
                node("bad", 1, "bad", "failed", "s-1"),
                node("bad-i2", 2, "bad", "succeeded", "s-3"),
                node("more-i2", 2, "more", "pending", ""),
            ],
            "edges": [
                { "from": "bad", "to": "after" },
                { "from": "bad-i2", "to": "more-i2" },
            ],
            "warnings": [
                "iteration 1: `colour` is not known",
                "iteration 1: `x` is not known",
                "iteration 1: not done: bad is missing",
            ],
        })
    );
}

#[test]
fn each_iteration_has_its_own_workflow_results_and_completion() {
    let state = two_iterations().run_state();
    let usage = json!({ "inputTokens": 7, "outputTokens": 3 });
    assert_eq!(
        (&state["task"], &state["adapter"], &state["model"]),
        (&"Make it work".into(), &"claude".into(), &"big".into())
    );
    assert_eq!(
        state["iterations"][0],
        json!({
            "index": 1,
            "workflow": { "version": 1, "id": "w1", "steps": [
                { "id": "after", "goal": "", "dependsOn": ["bad"] },
                { "id": "bad", "goal": "", "dependsOn": [] },
            ] },
            "steps": [
                {
                    "stepId": "after", "status": "skipped", "sessionId": "",
                    "outputText": "Skipped: dependencies failed [bad]",
                    "usage": { "inputTokens": 0, "outputTokens": 0 },
                },
                {
                    "stepId": "bad", "status": "failed", "sessionId": "s-1",
                    "outputText": "I could not", "usage": usage, "error": "step failed: no",
                },
            ],
            "completion": { "done": false, "reason": "bad is missing" },
        })
    );
    let second = &state["iterations"][1];
    assert_eq!(second["steps"].as_array().unwrap().len(), 1, "the other is not over");
    assert_eq!((&second["workflow"]["id"], &second["completion"]), (&"w2".into(), &Value::Null));
}

#[test]
fn an_iteration_without_a_workflow_and_one_that_was_overruled_say_so() {
    let mut story = Story::new();
    story.root(Step::Workflow, no("Workflow stuck: a, b, a"), "", &[]);
    story.round_failed(Step::Workflow, "Workflow stuck: a, b, a");
    story.root(Step::Completion, Outcome::Passed, r#"{"done":true,"summary":"fine"}"#, &[]);
    let why = "the reviewer said it was done although tests fail".to_owned();
    story.tell(vec![Event::Overruled { task: TaskId::ROOT, why: why.clone() }]);
    story.round_failed(Step::Validate, "tests fail");
    let end = TaskEnd::Failed { why: Failure::Rounds { rounds: 2 } };
    story.tell(vec![Event::TaskSettled { task: TaskId::ROOT, end }]);
    let iterations = story.run_state()["iterations"].clone();
    let empty = json!({ "index": 1, "workflow": null, "steps": [], "completion": null });
    assert_eq!(iterations[0], empty);
    let overruled = json!({ "done": false, "summary": "fine", "reason": why });
    assert_eq!(iterations[1]["completion"], overruled);
    let told = story.manifest(&[]);
    assert_eq!(
        told["graph"]["warnings"],
        json!([
            "iteration 1: Workflow stuck: a, b, a",
            "iteration 2: the reviewer said it was done although tests fail",
            "iteration 2: tests fail",
            "iteration 3: did not converge in 2 iterations",
        ])
    );
    assert!(told["finishedAt"].is_string(), "{told}");
}

#[test]
fn questions_are_told_with_the_step_they_were_of() {
    let mut story = two_iterations();
    let more = story.state.named("more-i2").unwrap().id;
    let live = story.start(more, Step::WorkflowStep);
    let exec = |number, task: &str, attempt: &str, status: Option<&str>| ExecEntry {
        number,
        task: task.into(),
        round: 1,
        attempt: attempt.into(),
        status: status.map(str::to_owned),
        ..ExecEntry::default()
    };
    let execs = [
        exec(1, "run", "1.0", Some("succeeded")),
        exec(2, "bad-i2", "2.0", Some("failed")),
        exec(3, "more-i2", "3.0", None),
        exec(4, "more-i2", &live.to_string(), None),
    ];
    let told = story.manifest(&execs);
    let brief: Vec<Value> = told["execs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|exec| json!([exec["number"], exec["stepId"], exec["iteration"], exec["status"]]))
        .collect();
    assert_eq!(
        Value::from(brief),
        json!([
            [1, null, 1, "succeeded"],
            [2, "bad", 2, "failed"],
            [3, "more", 2, "interrupted"],
            [4, "more", 2, "running"],
        ])
    );
    assert_eq!(told["graph"]["nodes"][3]["status"], "running");
    assert_eq!(told.get("finishedAt"), None);
}

#[test]
fn warnings_are_kept_up_to_a_limit() {
    let mut story = Story::new();
    for n in 0..WARNINGS_MAX + 10 {
        story.root(Step::Workflow, Outcome::Passed, "", &[&format!("note {n}"), "the same"]);
    }
    let warnings = &story.history.warnings;
    assert_eq!(warnings.len(), WARNINGS_MAX + 1);
    assert_eq!(warnings[WARNINGS_MAX], "further warnings were dropped");
    assert_eq!(warnings.iter().filter(|text| text.contains("the same")).count(), 1);
}

#[test]
fn a_run_that_has_only_begun_is_told_too() {
    let story = Story::new();
    let nothing = json!({ "nodes": [], "edges": [], "warnings": [] });
    assert_eq!(story.manifest(&[])["graph"], nothing);
    assert_eq!(story.run_state()["iterations"][0]["index"], 1);
}

#[test]
fn a_running_step_of_a_goal_says_what_it_does() {
    let mut story = Story::new();
    story.state.run.flow = autopilot_core::flow::Flow::Goal;
    let task = story.step("one", 1, 0, &[]);
    let now = |story: &Story| {
        let json = crate::state_json::state_json(&story.state);
        (json["tasks"][0]["state"].clone(), crate::status_md::status_md(&story.state))
    };
    for (step, word, told) in [
        (Step::WorkflowStep, "STEP", "| now | one: working on the step (iteration 1) |"),
        (Step::Fix, "FIX", "| now | one: fixing (iteration 1) |"),
        (Step::Merge, "MERGE", "| now | one: committing and merging (iteration 1) |"),
    ] {
        story.start(task, step);
        let (state, status) = now(&story);
        assert_eq!(state, word);
        assert!(status.contains(told), "{status}");
    }
}

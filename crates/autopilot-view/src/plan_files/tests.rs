//! The plan's files of runs told event by event.

use super::*;
use autopilot_core::config::yaml;
use autopilot_core::event::{Event, Facts, Failure, Outcome, Record, TaskEntry};
use autopilot_core::flow::Pipeline;
use autopilot_core::id::{AttemptId, Time};
use autopilot_core::plan::{PlanTask, body};
use autopilot_core::step::Step;
use autopilot_core::task_file;
use camino::Utf8Path;
use proptest::prelude::*;

struct Story {
    seq: u64,
    state: State,
}

impl Story {
    /// `a; b after a`
    fn new(tasks: &str) -> Story {
        let mut story = Story { seq: 0, state: State::default() };
        story.add(TaskId::ROOT, None, Pipeline::Plan, TaskEntry { name: "run".into(), ..spec("") });
        for (place, part) in tasks.split(';').enumerate() {
            let id = TaskId(place as u32 + 1);
            story.add(id, Some(TaskId::ROOT), Pipeline::Paired, spec(part));
        }
        story
    }

    fn tell(&mut self, events: Vec<Event>) {
        self.seq += 1;
        let at = Time(self.seq as i64 * 1000);
        self.state.apply_record(&Record { seq: self.seq, at, events });
    }

    fn add(&mut self, task: TaskId, parent: Option<TaskId>, pipeline: Pipeline, spec: TaskEntry) {
        self.tell(vec![Event::TaskAdded { task, parent, pipeline, spec: Box::new(spec) }]);
    }

    fn start(&mut self, name: &str) -> AttemptId {
        let task = self.task(name).id;
        let step = Step::Build;
        self.tell(vec![
            Event::TaskMoved { task, step, round: 1 },
            Event::AttemptStarted { task, step, lane: 0 },
        ]);
        AttemptId { seq: self.seq, place: 1 }
    }

    fn end(&mut self, name: &str, id: AttemptId, end: TaskEnd) {
        let (task, step) = (self.task(name).id, Step::Build);
        let outcome = Outcome::Passed;
        self.tell(vec![
            Event::AttemptEnded { id, task, step, outcome, facts: Box::<Facts>::default() },
            Event::TaskSettled { task, end },
        ]);
    }

    fn task(&self, name: &str) -> &Task {
        self.state.named(name).unwrap()
    }

    fn file(&self, name: &str) -> String {
        task_file(&self.state, self.task(name), &TaskBody::default())
    }

    fn front(&self, name: &str) -> String {
        let file = self.file(name);
        file.split("---\n").nth(1).unwrap().to_owned()
    }

    fn key(&self, name: &str) -> FileKey {
        file_key(&self.state, self.task(name))
    }
}

fn spec(part: &str) -> TaskEntry {
    let (name, after) = part.split_once(" after ").unwrap_or((part, ""));
    TaskEntry {
        name: name.trim().into(),
        title: format!("Do {}", name.trim()),
        depends_on: after.split_whitespace().map(str::to_owned).collect(),
        ..TaskEntry::default()
    }
}

const FAILED: fn() -> TaskEnd = || TaskEnd::Failed { why: Failure::Rounds { rounds: 5 } };

#[test]
fn the_graph_tells_states_batches_and_what_is_ready() {
    let mut story = Story::new("a; b after a; c after a; d after b c; e; f after e");
    let done = story.start("a");
    story.end("a", done, TaskEnd::Closed);
    story.start("b");
    let lost = story.start("e");
    story.end("e", lost, FAILED());
    let (blocked, by) = (story.task("f").id, story.task("e").id);
    let end = TaskEnd::Skipped { why: Skip::Blocked { by } };
    story.tell(vec![Event::TaskSettled { task: blocked, end }]);
    let graph = task_graph(&story.state);
    let told: Vec<String> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| format!("{} {} {}", node["id"], node["status"], node["blocked_by"]))
        .collect();
    insta::assert_snapshot!(told.join("\n").replace('"', ""), @r#"
    a DONE []
    b RUNNING []
    c PENDING []
    d PENDING [b,c]
    e FAILED []
    f BLOCKED [e]
    "#);
    insta::assert_snapshot!(graph["batches"], @r#"[["a","e"],["b","c","f"],["d"]]"#);
    insta::assert_snapshot!(graph["ready"], @r#"["c"]"#);
    insta::assert_snapshot!(graph["counts"], @r#"{"BLOCKED":1,"DONE":1,"FAILED":1,"PENDING":2,"RUNNING":1}"#);
    assert_eq!(graph["edges"][0], json!({ "from": "a", "to": "b" }));
    assert_eq!(graph["nodes"][0]["parent"], Value::Null);
    assert_eq!(graph["nodes"][0]["file"], "tasks/a.md");
}

#[test]
fn tasks_of_an_expanded_task_name_their_parent() {
    let mut story = Story::new("big");
    let parent = story.task("big").id;
    story.add(TaskId(2), Some(parent), Pipeline::Paired, spec("small"));
    let graph = task_graph(&story.state);
    assert_eq!(graph["nodes"][1]["parent"], "big");
}

#[test]
fn a_task_file_reads_as_a_task_and_says_where_it_stands() {
    let mut story = Story::new("a; b after a");
    let planned = PlanTask {
        id: "b".into(),
        title: "Do b".into(),
        goal: "Carts have sums".into(),
        acceptance_criteria: vec!["1 + 1 is 2".into()],
        allowed_paths: vec!["src/cart".into()],
        suggested_claude_skills: vec!["testing".into()],
        suggested_subagents: vec![json!({ "name": "critic", "purpose": "reads it" })],
        ..PlanTask::default()
    };
    let body = body(&planned, &task_file::TaskSpec::default());
    insta::assert_snapshot!(task_file(&story.state, story.task("b"), &body), @r#"
    ---
    id: "b"
    title: "Do b"
    status: PENDING
    depends_on: ["a"]
    blocked_by: ["a"]
    attempts: 0
    assigned_worker: null
    ---

    # Task: Do b

    Goal:
    - Carts have sums

    Acceptance Criteria:
    - 1 + 1 is 2

    Allowed Paths:
    - src/cart

    ## Suggested skills

    - testing

    ## Suggested sub-agents

    - critic (reads it)
    "#);
    let done = story.start("a");
    story.end("a", done, TaskEnd::Closed);
    story.start("b");
    insta::assert_snapshot!(story.front("b"), @r#"
    id: "b"
    title: "Do b"
    status: RUNNING
    depends_on: ["a"]
    blocked_by: []
    attempts: 1
    assigned_worker: 0
    "#);
    let text = task_file(&story.state, story.task("b"), &body);
    let read = task_file::parse(Utf8Path::new("b.md"), text.as_bytes()).unwrap();
    assert_eq!((read.spec.id.as_str(), read.spec.goal.as_str()), ("b", "Carts have sums"));
    assert_eq!(read.spec.acceptance, planned.acceptance_criteria);
    assert_eq!(read.spec.allowed_paths, planned.allowed_paths);
}

#[test]
fn a_key_changes_exactly_when_the_file_does() {
    let mut story = Story::new("a; b after a c; c; d");
    let names = ["a", "b", "c", "d"];
    let mut seen: Vec<Vec<(FileKey, String)>> = Vec::new();
    let mut look = |story: &Story| {
        seen.push(names.iter().map(|name| (story.key(name), story.file(name))).collect());
    };
    look(&story);
    let a = story.start("a");
    look(&story);
    story.tell(vec![Event::TimePassed]);
    look(&story);
    let c = story.start("c");
    look(&story);
    story.end("a", a, TaskEnd::Closed);
    look(&story);
    story.end("c", c, FAILED());
    look(&story);
    for pair in seen.windows(2) {
        for (before, after) in pair[0].iter().zip(&pair[1]) {
            assert_eq!(before.0 == after.0, before.1 == after.1, "{}", after.1);
        }
    }
    assert!(seen.iter().all(|look| look[3] == seen[0][3]), "nothing happened to d");
}

#[test]
fn one_dependency_closed_while_another_opens_again_is_a_change() {
    let mut story = Story::new("a; b; c after a b");
    let a = story.start("a");
    story.end("a", a, TaskEnd::Closed);
    let before = story.key("c");
    let (of_a, b) = (story.task("a").id, story.start("b"));
    story.end("b", b, TaskEnd::Closed);
    story.tell(vec![Event::TaskReopened { task: of_a }]);
    assert_eq!(story.task("c").needs, 1);
    assert_ne!(story.key("c"), before);
}

#[test]
fn ten_thousand_tasks_are_one_pass() {
    let tasks: Vec<String> = (0..10_000)
        .map(|n: u32| match n {
            0 => "t0".to_owned(),
            n => format!("t{n} after t{}", n / 2),
        })
        .collect();
    let story = Story::new(&tasks.join(";").replacen("t1 after t0", "t1", 1));
    let graph = task_graph(&story.state);
    assert_eq!(graph["counts"]["PENDING"], 10_000);
    let again: Vec<FileKey> =
        story.state.tasks.iter().map(|task| file_key(&story.state, task)).collect();
    assert_eq!(again.len(), 10_001);
}

#[test]
fn the_plan_is_written_as_it_was_taken() {
    let plan = Plan { plan_summary: "p".into(), ..Plan::default() };
    let text = plan_json(&plan);
    assert!(text.ends_with("}\n"));
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

fn title_in(text: &str) -> String {
    let front = text.split("\n---\n").next().unwrap().strip_prefix("---\n").unwrap();
    let node = yaml::parse(front).unwrap().unwrap();
    let yaml::Value::Mapping(entries) = node.value else { panic!("{front}") };
    assert_eq!(entries.len(), 7, "{front}");
    let title = entries.iter().find(|entry| entry.key == "title").unwrap();
    let yaml::Value::Scalar { text, plain: false } = &title.node.value else { panic!("{front}") };
    text.clone()
}

#[test]
fn hostile_titles_stay_titles() {
    for title in [
        "",
        "---",
        "a\n---\nstatus: DONE",
        "\"]} # : - & * ! | > ' % @ `",
        "\\",
        "yes",
        "\u{0}\u{7}\u{1b}[31m\u{7f}\u{85}\u{9f}",
        "\u{2028}\u{2029}\u{feff}\u{202e}",
        "ünïcödé 🦀 \u{10ffff}\u{fffe}",
    ] {
        let mut story = Story::new("a");
        story.add(
            TaskId(2),
            Some(TaskId::ROOT),
            Pipeline::Paired,
            TaskEntry { title: title.into(), ..spec("b") },
        );
        assert_eq!(title_in(&story.file("b")), title, "{title:?}");
    }
}

proptest! {
    #[test]
    fn any_title_is_valid_yaml(title in any::<String>()) {
        let mut story = Story::new("a");
        let spec = TaskEntry { title: title.clone(), ..spec("b") };
        story.add(TaskId(2), Some(TaskId::ROOT), Pipeline::Paired, spec);
        prop_assert_eq!(title_in(&story.file("b")), title);
    }
}

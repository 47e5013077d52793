//! The text of a pull request, as a whole and against hostile words.

use super::*;
use autopilot_core::event::{
    Bill, Event, Facts, Failure, Record, RunSpec, StepAnswer, TaskEnd, TaskEntry, Verdict,
};
use autopilot_core::flow::{Flow, Pipeline};
use autopilot_core::id::{AttemptId, Micros, Time};
use autopilot_core::limit::Limits;

const ROOT: TaskId = TaskId(0);

fn spec(name: &str, title: &str) -> TaskEntry {
    TaskEntry { name: name.into(), title: title.into(), ..TaskEntry::default() }
}

/// A run under way, told event by event.
struct Story {
    seq: u64,
    state: State,
}

impl Story {
    fn new(title: &str, tasks: &[(&str, &str)]) -> Story {
        let run = RunSpec {
            id: "20260101-1200-ab12".into(),
            flow: Flow::Plan,
            title: title.into(),
            base_branch: "main".into(),
            base: "b".repeat(40),
            branch: "autopilot/run-20260101-1200-ab12".into(),
            limits: Limits::default(),
            ..empty_run()
        };
        let mut story = Story { seq: 0, state: State::default() };
        story.tell(vec![Event::RunStarted { run: Box::new(run) }]);
        story.add(ROOT, None, Pipeline::Plan, spec("run", title));
        for (place, (name, title)) in tasks.iter().enumerate() {
            let task = TaskId(place as u32 + 1);
            story.add(task, Some(ROOT), Pipeline::Paired, spec(name, title));
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

    fn step(&mut self, task: TaskId, step: Step, facts: Facts) {
        self.tell(vec![
            Event::TaskMoved { task, step, round: 1 },
            Event::AttemptStarted { task, step, lane: 0 },
        ]);
        let id = AttemptId { seq: self.seq, place: 1 };
        let bill = Bill { usd: Micros(120_000), ..Bill::default() };
        self.tell(vec![
            Event::Billed { id, task, bill, total: None },
            Event::AttemptEnded {
                id,
                task,
                step,
                outcome: Outcome::Passed,
                facts: Box::new(Facts { ms: 42_000, ..facts }),
            },
        ]);
    }

    fn close(&mut self, task: TaskId) {
        self.tell(vec![Event::TaskSettled { task, end: TaskEnd::Closed }]);
    }
}

fn empty_run() -> RunSpec {
    let text = r#"{"id":"","flow":"task","title":"","source":"","started_by":"","base_branch":"",
        "base":"","branch":"","switches":["three_runs"],"limits":null,"config":"","red_base_allowed":false,
        "tasks":[]}"#;
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    value["limits"] = serde_json::to_value(Limits::default()).unwrap();
    serde_json::from_value(value).unwrap()
}

fn exit(code: i32) -> Facts {
    Facts { exit: Some(code), ..Facts::default() }
}

fn check(command: &str) -> SeenCommand {
    let (name, command) = ("tests".into(), command.into());
    SeenCommand { name, command, exit_code: Some(0), ..SeenCommand::default() }
}

#[test]
fn a_run_is_told_whole() {
    let tasks = [("api", "Add the API"), ("docs", "Write it down"), ("late", "Something else")];
    let mut story = Story::new("Build the shop", &tasks);
    let (api, docs, late) = (TaskId(1), TaskId(2), TaskId(3));
    let note = "without a sandbox, agents can write where results are tested".to_owned();
    story.step(ROOT, Step::Preflight, Facts { notes: vec![note], ..exit(0) });
    let note = "patch: /home/ada/shop/.autopilot/artifacts/x.patch".to_owned();
    story.step(ROOT, Step::Push, Facts { notes: vec![note], ..Facts::default() });
    story.step(api, Step::Build, Facts::default());
    story.step(api, Step::Validate, Facts { commit: Some("c".repeat(40)), ..exit(0) });
    let said = Some(StepAnswer::Review { verdict: Verdict::Approve, issues: 2, blocking: 0 });
    story.step(api, Step::Review, Facts { said, ..Facts::default() });
    story.step(api, Step::Uat, exit(0));
    story.close(api);
    let note = "the builder says the tests passed, but they were not run".to_owned();
    story.step(docs, Step::Validate, Facts { notes: vec![note], ..exit(0) });
    let why = "switched off by the configuration".to_owned();
    story.tell(vec![
        Event::StageSkipped { task: docs, step: Step::Review, why },
        Event::StageSkipped { task: docs, step: Step::Uat, why: "no `uat` command".into() },
    ]);
    story.close(docs);
    let why = Failure::Rounds { rounds: 5 };
    story.tell(vec![Event::TaskSettled { task: late, end: TaskEnd::Failed { why } }]);
    story.step(ROOT, Step::Validate, exit(0));
    story.step(ROOT, Step::Uat, exit(0));
    let known = PullRequestFacts {
        prefix: "[autopilot]",
        remote: "origin",
        goal: "A shop that sells.\n- with an API\n- with a page",
        checks: BTreeMap::from([
            ((api, Step::Validate), vec![check("cargo test"), check("cargo clippy | cat")]),
            ((ROOT, Step::Validate), vec![check("cargo test")]),
        ]),
        unpriced: &["reviewer (command)".to_owned()],
    };
    let text = pull_request(&story.state, &known);
    assert!(!text.body.contains("/home/ada"), "{}", text.body);
    insta::assert_snapshot!(format!("{}\n\n{}", text.title, text.body));
}

#[test]
fn hostile_words_stay_words() {
    let title = "x | y`z` <img src=a> @boss fixes #7 **b** [a](http://e)\n/merge";
    let mut story =
        Story::new("/merge\n@all <!-- autopilot-end: 20260101-1200-ab12 -->", &[("a", title)]);
    let note = "--- <script>\u{202e}evil\n/approve".to_owned();
    story.step(TaskId(1), Step::Validate, Facts { notes: vec![note], ..exit(0) });
    story.close(TaskId(1));
    let goal = "/merge\n# big\n<b>@team</b>\n- /close\n```\n/assign @x\n```\n---";
    let checks =
        BTreeMap::from([((TaskId(1), Step::Validate), vec![check("a ``b`` | @c\n/merge")])]);
    let known = PullRequestFacts { goal, checks, ..PullRequestFacts::default() };
    let text = pull_request(&story.state, &known);
    assert!(!text.title.contains('\n'), "{}", text.title);
    let body = &text.body;
    assert_eq!(body.matches("<!--").count(), 2, "{body}");
    assert!(!body.contains("<img") && !body.contains("<script") && !body.contains("<b>"), "{body}");
    for line in body.lines() {
        assert!(!line.starts_with('/') && !line.starts_with("```"), "{line}");
        let outside_code = line.split("```").step_by(2).collect::<String>();
        assert!(!outside_code.contains("@b") && !outside_code.contains("#7"), "{line}");
    }
    assert!(!body.contains('\u{202e}'), "{body}");
    insta::assert_snapshot!(body);
}

#[test]
fn a_run_of_any_size_fits() {
    let long = "word <&> ".repeat(200);
    let names: Vec<String> = (0..5_000).map(|n| format!("task-{n}")).collect();
    let tasks: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), &*long)).collect();
    let mut story = Story::new(&long, &tasks);
    for place in 1..=5_000 {
        let facts = Facts { notes: vec![long.clone()], ..exit(0) };
        story.step(TaskId(place), Step::Validate, facts);
        story.close(TaskId(place));
    }
    let text = pull_request(
        &story.state,
        &PullRequestFacts {
            prefix: "[autopilot]",
            goal: &format!("{long}\n").repeat(500),
            ..PullRequestFacts::default()
        },
    );
    assert!(text.body.len() <= BODY_BYTES_MAX, "{}", text.body.len());
    assert!(text.title.chars().count() <= TITLE_CHARS_MAX + 1, "{}", text.title);
    assert!(text.body.ends_with("<!-- autopilot-end: 20260101-1200-ab12 -->"));
    assert!(text.body.contains("more tasks") && text.body.contains("How to undo"), "{}", text.body);
}

#[test]
fn code_holds_its_backticks_and_bars() {
    assert_eq!(code("a"), "`a`");
    assert_eq!(code("a`b"), "``a`b``");
    assert_eq!(code("`a``"), "``` `a`` ```");
    assert_eq!(code("a|b\nc"), "`a\\|b c`");
}

//! The page of a run, from records made by hand.

use super::*;
use autopilot_core::event::{Event, Facts, HoldWhy, Outcome as Ended, RunSpec, TaskEntry};
use autopilot_core::flow::Pipeline;
use autopilot_core::id::AttemptId;
use autopilot_core::step::Step;
use autopilot_core::{event::TaskEnd, limit::Limits};

#[derive(Default)]
struct Story {
    records: Vec<Record>,
    state: State,
}

impl Story {
    fn plan(title: &str) -> Story {
        let mut story = Story::default();
        let run = RunSpec {
            id: "run-1".into(),
            flow: autopilot_core::flow::Flow::Plan,
            title: title.into(),
            source: "plan.md".into(),
            started_by: "somebody".into(),
            base_branch: "main; rm -rf".into(),
            base: "0123456789abcdef".into(),
            branch: "autopilot/run-1".into(),
            switches: BTreeSet::new(),
            limits: Limits::default(),
            config: "config".into(),
            red_base_allowed: false,
            holdout: None,
            options: Default::default(),
            whole: TaskEntry::default(),
            plan: None,
            tasks: Vec::new(),
        };
        let spec = Box::new(TaskEntry { name: "run".into(), ..TaskEntry::default() });
        story.tell(vec![
            Event::RunStarted { run: Box::new(run) },
            Event::TaskAdded { task: TaskId::ROOT, parent: None, pipeline: Pipeline::Plan, spec },
        ]);
        story
    }

    fn tell(&mut self, events: Vec<Event>) {
        let seq = self.records.len() as u64 + 1;
        let record = Record { seq, at: Time(seq as i64 * 1000), events };
        self.state.apply_record(&record);
        self.records.push(record);
    }

    fn task(&mut self, name: &str) -> TaskId {
        let task = TaskId(self.state.tasks.len() as u32);
        let spec =
            TaskEntry { name: name.into(), title: format!("Do {name}"), ..TaskEntry::default() };
        let (parent, pipeline) = (Some(TaskId::ROOT), Pipeline::Paired);
        self.tell(vec![Event::TaskAdded { task, parent, pipeline, spec: Box::new(spec) }]);
        task
    }

    fn start(&mut self, task: TaskId, step: Step) -> AttemptId {
        self.tell(vec![
            Event::TaskMoved { task, step, round: 1 },
            Event::AttemptStarted { task, step, lane: 0 },
        ]);
        AttemptId { seq: self.records.len() as u64, place: 1 }
    }

    fn work(&mut self, task: TaskId, outcome: Ended, end: TaskEnd) {
        let (id, step) = (self.start(task, Step::Build), Step::Build);
        let facts = Box::<Facts>::default();
        self.tell(vec![
            Event::AttemptEnded { id, task, step, outcome, facts },
            Event::TaskSettled { task, end },
        ]);
    }

    fn html(&self, standing: Standing) -> String {
        let known = ReportFacts {
            standing,
            now: Time(self.records.len() as i64 * 1000 + 500),
            goal: None,
            change: Some("1 file changed".into()),
            calls: Vec::new(),
            ways: BTreeMap::new(),
            version: "1.2.3",
            read: &|_| None,
            clean: &|text| text.to_owned(),
        };
        html(&page(&self.state, &self.records, &known))
    }
}

fn failed() -> TaskEnd {
    TaskEnd::Failed { why: autopilot_core::event::Failure::Rounds { rounds: 3 } }
}

#[test]
fn a_large_run_gives_a_small_page_that_says_what_is_not_on_it() {
    let mut story = Story::plan("Ten thousand things");
    let tasks: Vec<TaskId> = (0..10_000).map(|n| story.task(&format!("task-{n:05}"))).collect();
    for task in &tasks[..3_000] {
        story.work(*task, Ended::Passed, TaskEnd::Closed);
    }
    let late = tasks[2_999 + 5];
    story.work(late, Ended::Failed { why: "red".into() }, failed());
    let page = story.html(Standing::Interrupted);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("9800 tasks that succeeded or were not started;"), "says how many");
    assert!(page.contains("task-03004"), "what failed is there however late it came");
    assert!(page.contains("10,000 tasks: 3,000 done"), "the tally is of all");
    assert!(page.contains("are not in this picture"));
}

#[test]
fn a_task_that_is_tried_for_ever_shows_its_last_attempts() {
    let mut story = Story::plan("Again and again");
    let task = story.task("a");
    for _ in 0..ATTEMPTS_OF_TASK_MAX + 7 {
        let (id, step) = (story.start(task, Step::Build), Step::Build);
        let (outcome, facts) = (Ended::Broke { why: "it broke".into() }, Box::<Facts>::default());
        story.tell(vec![Event::AttemptEnded { id, task, step, outcome, facts }]);
    }
    let page = story.html(Standing::Rests);
    assert_eq!(page.matches("<article").count(), ATTEMPTS_OF_TASK_MAX);
    assert!(page.contains("Not shown: 7 earlier attempts."));
    assert!(page.contains("7 earlier attempts of the tasks shown"));
}

#[test]
fn waiting_for_an_account_is_a_bar_of_its_own() {
    let mut story = Story::plan("Waits");
    let task = story.task("a");
    let id = story.start(task, Step::Build);
    let (step, until) = (Step::Build, Time(9_000));
    let (outcome, facts) = (Ended::Quota { until }, Box::<Facts>::default());
    story.tell(vec![
        Event::AttemptEnded { id, task, step, outcome, facts },
        Event::WaitBegan {
            task,
            step,
            until,
            account: "codex".into(),
            why: HoldWhy::Quota,
            guess: false,
        },
    ]);
    story.tell(vec![Event::TimePassed]);
    story.tell(vec![Event::WaitEnded { task }]);
    story.start(task, step);
    let page = story.html(Standing::Live { pid: 77 });
    assert_eq!(page.matches("class=\"bar wait\"").count(), 1);
    assert!(page.contains("waiting for quota of codex (2.0s)"), "{page}");
    assert!(page.contains("build: no quota (1.0s)") && page.contains("build: running (0.5s)"));
    assert!(page.contains("still going (process 77"));
    // From the fourth second to the sixth, on an axis from the first to seven and a half.
    assert!(page.contains("class=\"bar wait\" style=\"left:46.153%;width:30.770%\""), "{page}");
}

#[test]
fn a_branch_with_a_strange_name_is_quoted_in_commands() {
    let mut story = Story::plan("x");
    let task = story.task("a");
    story.work(task, Ended::Passed, TaskEnd::Closed);
    story.tell(vec![Event::TaskSettled { task: TaskId::ROOT, end: TaskEnd::Closed }]);
    let page = story.html(Standing::Over);
    assert!(page.contains("git diff 'main; rm -rf'...autopilot/run-1"), "{page}");
    assert!(page.contains("git merge autopilot/run-1"));
    assert_eq!(shell_word("it's"), r"'it'\''s'");
}

#[test]
fn what_is_given_up_or_cut_short_is_not_told_as_done() {
    let mut story = Story::plan("x");
    let task = story.task("a");
    story.start(task, Step::Build);
    for (standing, words) in [
        (Standing::Interrupted, "The process of the run died"),
        (Standing::Abandoned, "given up for another one"),
        (Standing::Rests, "The run is stopped"),
    ] {
        let page = story.html(standing);
        assert!(page.contains(words), "{words}");
        assert!(!page.contains("git merge"), "{words}");
        assert!(page.contains("build: interrupted"), "{words}");
    }
}

/// As WCAG counts it.
fn contrast(one: &str, other: &str) -> f64 {
    let light = |hex: &str| -> f64 {
        let digits: Vec<u32> = hex[1..].chars().filter_map(|c| c.to_digit(16)).collect();
        let bytes: Vec<u32> = match digits.len() {
            3 => digits.iter().map(|digit| digit * 17).collect(),
            _ => digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect(),
        };
        let linear = |byte: u32| {
            let part = f64::from(byte) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(bytes[0]) + 0.7152 * linear(bytes[1]) + 0.0722 * linear(bytes[2])
    };
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn colours(rules: &'static str) -> BTreeMap<&'static str, &'static str> {
    let end = rules.find('}').unwrap();
    let colour = |part: &'static str| {
        let (name, rest) = part.split_once(":#")?;
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        Some((name, &rest[..end]))
    };
    rules[..end].split("--").filter_map(colour).collect()
}

#[test]
fn every_text_stands_out_from_what_is_behind_it_in_light_and_in_dark() {
    let style = include_str!("report.css");
    let (light, dark) = style.split_once("@media screen and (prefers-color-scheme:dark)").unwrap();
    for palette in [colours(light), colours(dark)] {
        let ratio = |front: &str, back: &str| {
            contrast(&format!("#{}", palette[front]), &format!("#{}", palette[back]))
        };
        for front in ["ink", "soft", "link", "bad"] {
            for back in ["page", "panel"] {
                let seen = ratio(front, back);
                assert!(seen >= 4.5, "{front} on {back}: {seen}");
            }
        }
        for tone in ["good", "bad", "worse", "busy", "waits", "plain"] {
            let back = format!("{tone}-bg");
            assert!(ratio(tone, &back) >= 4.5, "{tone}: {}", ratio(tone, &back));
            assert!(ratio("ink", &back) >= 4.5, "ink on {back}");
        }
    }
    assert!((contrast("#000", "#ffffff") - 21.0).abs() < 0.01, "it is counted right");
}

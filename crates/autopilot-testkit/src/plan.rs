//! Plans for the [`stage`](crate::stage): what a planner says, builders that leave stamps outside of
//! their worktrees, and what those stamps prove.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support: what can't be set up must fail the test at once"
)]

use crate::stage::{APPROVES, Stage, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub const PLAN_MD: &str = "# Plan: Small things\n\nGoal:\n- Every task leaves a file.\n";
pub const RUN: [&str; 2] = ["run", "plan.md"];
/// Added to the configuration by [`configure`].
pub const TESTS: &str = "commands: { tests: sh test.sh }\n";

/// A task of a plan: its builder writes a file of its name.
pub fn task(id: &str, depends_on: &[&str]) -> Value {
    json!({
        "id": id,
        "title": format!("Write {id}"),
        "goal": format!("{id}.txt is there."),
        "acceptance_criteria": [format!("{id}.txt has a line")],
        "depends_on": depends_on,
    })
}

/// The same with more members, or others.
pub fn task_with(id: &str, depends_on: &[&str], more: Value) -> Value {
    with(task(id, depends_on), more)
}

pub fn plan(tasks: &[Value]) -> Value {
    json!({ "plan_summary": "Small things", "tasks": tasks })
}

pub fn with(mut object: Value, more: Value) -> Value {
    let members = more.as_object().expect("an object").clone();
    object.as_object_mut().expect("an object").extend(members);
    object
}

/// The rule of a planner that says this. JSON is YAML.
pub fn says(answer: &Value) -> String {
    format!("\n- step: plan\n  do: [{{ answer: {answer} }}]\n")
}

/// A first answer, and the one after it was asked to repair it.
pub fn says_then(first: &Value, repaired: &Value) -> String {
    let second = format!("\n- step: plan\n  prompt: JSON only\n  do: [{{ answer: {repaired} }}]\n");
    format!("{second}{}", says(first))
}

/// A stage with a plan file, agents that follow this plan, and the usual configuration.
pub fn stage(binary: &str, plan: &Value) -> Stage {
    let stage = Stage::new(binary);
    stage.write("plan.md", PLAN_MD);
    fs::create_dir(stage.folder().join("stamps")).unwrap();
    stage.agents(&[&says(plan), &builds(&stage), APPROVES]);
    configure(&stage, TESTS);
    stage
}

/// The configuration, with leave to stamp.
pub fn configure(stage: &Stage, more: &str) {
    let dir = text(stage.folder().join("stamps"));
    stage.config(&format!("sandbox: {{ write: [\"{dir}\"] }}\n{more}"));
}

/// A file that every agent and command may write.
pub fn outside(stage: &Stage, name: &str) -> PathBuf {
    stage.folder().join("stamps").join(name)
}

/// A builder that stamps when it begins and ends, and writes a file of its task's name.
pub fn builds(stage: &Stage) -> String {
    builds_when(stage, "step: [build, fix]", "true")
}

/// The same for what the rule is for, with something to do between the stamps.
pub fn builds_when(stage: &Stage, rule: &str, between: &str) -> String {
    let log = text(outside(stage, "log"));
    let between = between.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "
- {rule}
  do:
    - run: \"echo \\\"+ $AUTOPILOT_TASK_ID\\\" >> {log}\"
    - run: \"echo $AUTOPILOT_TASK_ID $AUTOPILOT_ITERATION >> $AUTOPILOT_TASK_ID.txt\"
    - run: \"{between}\"
    - run: \"echo \\\"- $AUTOPILOT_TASK_ID\\\" >> {log}\"
    - answer: {{ changed_files: [], notes: wrote it }}
"
    )
}

/// Shell that waits until the stamps have this many lines like the pattern, or too long.
pub fn waits_for(stage: &Stage, pattern: &str, count: usize) -> String {
    let log = text(outside(stage, "log"));
    format!(
        "n=0; while [ $(grep -c -e '{pattern}' {log}) -lt {count} ] && [ $n -lt 600 ]; \
         do n=$((n+1)); sleep 0.1; done"
    )
}

/// Begin and end of builds, in the order in which they happened.
pub struct Stamps {
    pub lines: Vec<(bool, String)>,
}

impl Stamps {
    pub fn of(stage: &Stage) -> Stamps {
        let log = fs::read_to_string(outside(stage, "log")).unwrap_or_default();
        let line = |line: &str| {
            let (sign, task) = line.split_once(' ').unwrap_or_else(|| panic!("stamp `{line}`"));
            (sign == "+", task.to_owned())
        };
        Stamps { lines: log.lines().map(line).collect() }
    }

    /// The most builds that were under way at the same time.
    pub fn most_at_once(&self) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for (begins, _) in &self.lines {
            now = if *begins { now + 1 } else { now - 1 };
            most = most.max(now);
        }
        most
    }

    #[track_caller]
    fn place(&self, begins: bool, task: &str) -> usize {
        let wanted = (begins, task.to_owned());
        let found = self.lines.iter().position(|line| *line == wanted);
        found.unwrap_or_else(|| panic!("{task} has no such stamp in {:?}", self.lines))
    }

    pub fn has_begun(&self, task: &str) -> bool {
        self.lines.contains(&(true, task.to_owned()))
    }

    /// Builds of this task that have begun.
    pub fn begun(&self, task: &str) -> usize {
        self.lines.iter().filter(|line| **line == (true, task.to_owned())).count()
    }

    #[track_caller]
    pub fn is_before(&self, first: &str, then: &str) -> bool {
        self.place(false, first) < self.place(true, then)
    }

    #[track_caller]
    pub fn overlap(&self, one: &str, other: &str) -> bool {
        !self.is_before(one, other) && !self.is_before(other, one)
    }
}

/// Task → its word in `state.json`.
#[track_caller]
pub fn statuses(stage: &Stage) -> BTreeMap<String, String> {
    let state = stage.state_json();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let tasks = state["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {state:#}"));
    tasks.iter().map(|task| (word(&task["id"]), word(&task["status"]))).collect()
}

#[track_caller]
pub fn statuses_are(stage: &Stage, wanted: &[(&str, &str)]) {
    let wanted: BTreeMap<String, String> =
        wanted.iter().map(|(id, word)| ((*id).to_owned(), (*word).to_owned())).collect();
    assert_eq!(statuses(stage), wanted);
}

#[track_caller]
pub fn branch(stage: &Stage) -> String {
    stage.state_json()["branch_name"].as_str().expect("a branch").to_owned()
}

/// The tasks that were merged onto the run's branch, in order, by their merge commits.
#[track_caller]
pub fn merged(stage: &Stage) -> Vec<String> {
    let range = format!("main..{}", branch(stage));
    let log = stage.git(&[
        "log",
        "--reverse",
        "--first-parent",
        "--merges",
        "--format=%(trailers:key=Autopilot-Task,valueonly,separator=%x2C)",
        &range,
    ]);
    log.lines().map(str::to_owned).collect()
}

/// The same without regard to order: each exactly once.
#[track_caller]
pub fn merged_once_each(stage: &Stage, tasks: &[&str]) {
    let mut found = merged(stage);
    found.sort();
    let mut wanted: Vec<&str> = tasks.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "{}", stage.git(&["log", "--oneline", &branch(stage)]));
}

/// Prompts the planner was given, in order.
pub fn planner_prompts(stage: &Stage) -> Vec<String> {
    let mut files = stage.views("artifacts/");
    files.retain(|path| text(path).ends_with("-plan/prompt.txt"));
    files.sort();
    files.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

//! `autopilot graph`: runs that scripted agents really made, and plans, drawn by the real binary.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Ended, Stage};
use serde_json::{Value, json};

const LINES: &str = "
- step: build
  task: two
  do: [{ exit: 1 }]
- step: [build, fix]
  do:
    - run: \"echo $AUTOPILOT_TASK_ID >> app.txt\"
    - answer: { changed_files: [app.txt], notes: x }
";
const HOSTILE: &str = "<script>alert(1)</script> \"] --> %%{init}%% \\\" & `x`";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A queue whose second task failed.
fn queue() -> Stage {
    let stage = stage();
    std::fs::remove_file(stage.path("tasks/say-done.md")).unwrap();
    stage.task("1-one", HOSTILE);
    stage.task("2-two", "Second");
    stage.write(
        "tasks/2-two.md",
        &stage.read("tasks/2-two.md").replace("# Task", "---\nid: two\n---\n# Task"),
    );
    stage.agents(&[LINES, APPROVES]);
    stage.run(&["run", "--queue", "tasks"]).expect(10);
    stage
}

fn task(id: &str, after: &[&str]) -> Value {
    json!({
        "id": id, "title": format!("Task {id}"), "goal": "g",
        "acceptance_criteria": ["c"], "depends_on": after,
    })
}

fn plan(stage: &Stage, tasks: Vec<Value>) {
    let plan = json!({ "plan_summary": "A small plan", "tasks": tasks });
    stage.write("plan.json", &plan.to_string());
}

fn parsed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn the_newest_run_is_drawn_in_every_form_and_a_title_acts_in_none() {
    let stage = queue();
    let text = stage.run(&["graph"]).expect(0).out;
    assert!(text.contains("FAILED") && text.contains("2 tasks: 1 done, 1 failed"), "{text}");
    assert!(text.contains("✓ 1-one") && text.contains("✗ two"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours for what is no terminal: {text}");

    let data = parsed(&stage.run(&["graph", "--json"]).expect(0));
    assert_eq!(data["nodes"][0]["title"], HOSTILE);
    assert_eq!(data["nodes"][1]["status"], "failed");
    assert_eq!(data["edges"], json!([]));

    let svg = stage.run(&["graph", "--format", "svg"]).expect(0).out;
    assert!(svg.starts_with("<svg") && !svg.contains("<script"), "{svg}");
    assert_eq!(svg, stage.run(&["graph", "--format", "svg"]).expect(0).out);
    let chart = stage.run(&["graph", "--format", "mermaid"]).expect(0).out;
    assert!(chart.starts_with("flowchart LR\n") && !chart.contains("%%"), "{chart}");
    let dot = stage.run(&["graph", "--format", "dot"]).expect(0).out;
    assert!(dot.starts_with("digraph") && dot.contains("\\\\\\\" &amp;"), "{dot}");
}

#[test]
fn a_file_takes_the_form_its_name_says() {
    let stage = queue();
    let run = stage.state_json()["run_id"].as_str().unwrap().to_owned();
    for (name, begins) in [
        ("g.svg", "<svg"),
        ("g.mmd", "flowchart LR"),
        ("g.md", "```mermaid\nflowchart LR"),
        ("g.dot", "digraph"),
        ("g.json", "{"),
        ("g.txt", "run "),
    ] {
        let ended = stage.run(&["graph", &run, "--out", name]).expect(0);
        assert!(ended.out.is_empty() && ended.err.contains(name), "{ended:?}");
        assert!(stage.read(name).starts_with(begins), "{name}: {}", stage.read(name));
    }
    stage.run(&["graph", "--out", "g.xyz"]).expect(64).says(&["g.xyz", "--format"]);
    stage.run(&["graph", "--json", "-f", "svg"]).expect(64).says(&["ask for different formats"]);
    stage.run(&["graph", "--json", "-o", "g.svg"]).expect(64).says(&["ask for different formats"]);
    stage.run(&["graph", "--out", "no/where.svg"]).expect(10).says(&["no/where.svg"]);
}

#[test]
fn what_is_not_there_is_named_with_the_next_step() {
    let stage = queue();
    let mut run = stage.state_json()["run_id"].as_str().unwrap().to_owned();
    let last = if run.pop() == Some('0') { '1' } else { '0' };
    let near = format!("{run}{last}");
    stage.run(&["graph", &near]).expect(64).says(&[&near, "did you mean"]);
    stage.run(&["graph", "zzz"]).expect(64).says(&["autopilot runs"]);
    stage.run(&["graph", "--plan", "nowhere.json"]).expect(64).says(&["nowhere.json"]);
    stage.write("bad.json", "{ no json");
    stage.run(&["graph", "--plan", "bad.json"]).expect(10).says(&["bad.json", "is no plan"]);
    let fresh = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    fresh.run(&["graph"]).expect(64).says(&["no runs in this repository yet", "autopilot run"]);
}

#[test]
fn a_plan_is_drawn_by_its_levels_before_it_is_run() {
    let stage = stage();
    plan(&stage, vec![task("c", &["a", "b"]), task("a", &[]), task("b", &["a"])]);
    let text = stage.run(&["graph", "--plan", "plan.json"]).expect(0).out;
    assert!(text.contains("plan plan.json  A small plan"), "{text}");
    assert!(text.contains("level 3 of 3 (1 task)\n  · c  Task c  after a, b\n"), "{text}");
    let data = parsed(&stage.run(&["graph", "--plan", "plan.json", "--json"]).expect(0));
    let levels: Vec<u64> =
        data["nodes"].as_array().unwrap().iter().map(|n| n["level"].as_u64().unwrap()).collect();
    assert_eq!(levels, [1, 2, 3]);
}

#[test]
fn a_plan_a_run_would_refuse_is_refused_with_every_fault() {
    let stage = stage();
    plan(&stage, vec![task("a", &["b"]), task("b", &["a"]), task("../x", &[])]);
    stage.run(&["graph", "--plan", "plan.json"]).expect(10).says(&["plan.json", "../x", "a", "b"]);
}

#[test]
fn a_plan_of_ten_thousand_is_drawn_in_few_lines() {
    let stage = stage();
    stage.config(
        "commands: { tests: sh test.sh }\nplan: { max_tasks: 10000, max_fan_out: 10000 }\n",
    );
    let all = (0..10_000).map(|n| match n {
        0..10 => task(&format!("t{n}"), &[]),
        _ => task(&format!("t{n}"), &[&format!("t{}", n % 10)]),
    });
    plan(&stage, all.collect());
    let text = stage.run(&["graph", "--plan", "plan.json"]).expect(0).out;
    assert!(text.contains("… and 9,970 more") && text.lines().count() < 60, "{text}");
    let whole = stage.run(&["graph", "--plan", "plan.json", "--all"]).expect(0).out;
    assert!(whole.lines().count() > 10_000);
    stage.run(&["graph", "--plan", "plan.json", "-o", "g.svg"]).expect(0);
    assert_eq!(stage.read("g.svg").matches("marker-end").count(), 9_990);
}

//! Many workers at once, and plans as large as they may be.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test file; its functions are test code too, and tell how long things took"
)]

use autopilot_testkit::plan::{
    Stamps, TESTS, builds_when, configure, merged_once_each, plan, stage, statuses, task, waits_for,
};
use autopilot_testkit::stage::{APPROVES, Stage};
use serde_json::Value;
use std::time::Instant;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const WORKERS: usize = 40;
const TASKS: usize = 10_000;

#[test]
fn forty_workers_begin_at_once_and_all_their_tasks_are_merged() {
    let names: Vec<String> = (0..WORKERS).map(|n| format!("task-{n:02}")).collect();
    let planned = plan(&names.iter().map(|name| task(name, &[])).collect::<Vec<_>>());
    let stage = stage(BINARY, &planned);
    // Nobody goes on before all have begun.
    let all = waits_for(&stage, "^+ ", WORKERS);
    let builds = builds_when(&stage, "step: build", &all);
    stage.agents(&[&builds, APPROVES]);
    let workers = format!("orchestrator: {{ max_workers: {WORKERS}, min_free_memory_mb: 1 }}\n");
    configure(&stage, &format!("{TESTS}{workers}"));
    stage.write("given.json", &planned.to_string());
    let began = Instant::now();
    stage.run(&["run", "--from", "given.json"]).expect(0);
    eprintln!("{WORKERS} workers: {:?}", began.elapsed());
    assert_eq!(Stamps::of(&stage).most_at_once(), WORKERS);
    merged_once_each(&stage, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let state = stage.state_json();
    let tasks = state["tasks"].as_array().unwrap();
    let counted = |key: &str| tasks.iter().map(|task| task[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((counted("retries"), counted("interruptions")), (0, 0), "nothing had to be retried");
    assert!(tasks.iter().all(|task| task["iteration"] == 1));
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

/// Ten tasks that wait for nothing, and for each chains of tasks that wait for each other.
fn large() -> Value {
    let name = |n: usize| format!("task-{n:05}");
    let one = |n: usize| match n.checked_sub(100) {
        None => task(&name(n), &[]),
        Some(before) => task(&name(n), &[&name(before)]),
    };
    plan(&(0..TASKS).map(one).collect::<Vec<_>>())
}

fn timed(stage: &Stage, args: &[&str]) -> String {
    let began = Instant::now();
    let ended = stage.run(args).expect(0);
    eprintln!("{TASKS} tasks: {} {:?}", args.join(" "), began.elapsed());
    ended.out
}

#[test]
fn ten_thousand_tasks_load_show_and_begin() {
    let stage = stage(BINARY, &plan(&[task("unused", &[])]));
    let holds = builds_when(&stage, "step: build", "sleep 600");
    stage.agents(&[&holds, APPROVES]);
    stage.write("given.json", &large().to_string());
    timed(&stage, &["run", "--from", "given.json", "--plan-only"]);
    timed(&stage, &["graph", "--plan", "given.json"]);
    timed(&stage, &["status", "--json"]);
    let began = Instant::now();
    let run = stage.start(&["run", "--from", "given.json"]);
    stage.wait_until("its first tasks are built", |stage| Stamps::of(stage).lines.len() == 3);
    eprintln!("{TASKS} tasks: first builds after {:?}", began.elapsed());
    let status: Value = serde_json::from_str(&timed(&stage, &["status", "--json"])).unwrap();
    assert_eq!(status["tasks"].as_array().unwrap().len(), TASKS);
    assert_eq!(status["scheduler"]["workers_active"], 3);
    assert!(timed(&stage, &["graph"]).contains("task-00000"));
    timed(&stage, &["runs"]);
    timed(&stage, &["status"]);
    timed(&stage, &["show"]);
    for format in ["svg", "json", "dot", "mermaid"] {
        timed(&stage, &["graph", "--format", format, "--out", &format!("graph.{format}")]);
    }
    let began = Instant::now();
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    eprintln!("{TASKS} tasks: stopped after {:?}", began.elapsed());
    assert_eq!(statuses(&stage).len(), TASKS);
    assert!(stage.has(".autopilot/plan/tasks/task-09999.md"));
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
    let began = Instant::now();
    let run = stage.start(&["resume"]);
    stage.wait_until("it goes on", |stage| Stamps::of(stage).lines.len() == 6);
    eprintln!("{TASKS} tasks: builds after resume after {:?}", began.elapsed());
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
}

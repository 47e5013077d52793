//! The dashboard on a real pseudo-terminal: drawn, answering keys, and gone without a trace.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

#[path = "pty/terminal.rs"]
mod terminal;

use autopilot_testkit::plan;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use terminal::Terminal;

/// A builder that says something and takes a moment.
const SLOW: &str = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - say: thinking about app.txt
    - sleep_ms: 2500
    - answer: { changed_files: [app.txt], notes: x }
";
const ENDLESS: &str = "
- step: build
  attempt: 1
  do: [{ append: { app.txt: \"half\\n\" } }, { run: \"sleep 600\" }]
";

fn stage(builder: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.agents(&[builder, BUILDS, APPROVES]);
    stage
}

fn shown(stage: &Stage, args: &[&str]) -> Terminal {
    shown_with(stage, args, &[])
}

fn shown_with(stage: &Stage, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let mut command = stage.command(args);
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    Terminal::start(command, 100, 30)
}

fn run(stage: &Stage) -> Terminal {
    let terminal = shown(stage, &["run", "tasks/say-done.md"]);
    terminal.wait_for("builder: building");
    assert!(terminal.is_raw());
    terminal
}

fn signal(name: &str, pid: u32) {
    let pid = pid.to_string();
    assert!(
        std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap().success()
    );
}

#[test]
fn a_run_is_seen_paused_taken_up_again_and_accounted_for() {
    let stage = stage(SLOW);
    let mut terminal = run(&stage);
    terminal.wait_for("thinking about app.txt");
    for text in ["Say done", "RUNNING 1", "Workers: 1 running", "p pause"] {
        terminal.wait_for(text);
    }
    terminal.press("p");
    terminal.wait_for("pausing after the current step");
    assert!(!stage.has(".autopilot/AUTOPILOT_PAUSE"), "the run itself was asked, and answered");
    terminal.wait_for("PAUSED");
    terminal.press("l");
    terminal.wait_for(".autopilot/logs/");
    terminal.press("q");
    terminal.wait_for("paused: press p to resume");
    terminal.press("d");
    terminal.wait_for("+done");
    terminal.press("\x1b");
    terminal.wait_for("paused: press p to resume");
    terminal.press("p");
    let (code, after) = terminal.end();
    assert_eq!(code, Some(0), "{after}");
    assert!(after.contains("DONE: Say done") && after.contains("git merge"), "{after}");
    assert!(!stage.has(".autopilot/AUTOPILOT_PAUSE"));
}

#[test]
fn logs_are_told_in_words_and_a_failure_by_its_assertion_until_its_task_is_done() {
    let stage = stage("");
    let tests = "#!/bin/sh\ngrep -q done app.txt && exit 0\n[ -f started ] || exit 0\necho 'not ok 1 - \
                 adds tax'\necho '  expected: 90'\necho '  actual: 0'\nfor n in cancelled skipped todo \
                 duration_ms tests suites; do echo \"# $n 0\"; done\nexit 1\n";
    stage.write("test.sh", tests);
    stage.commit("tests that end with a tally");
    stage.write(
        "tasks/say-done.md",
        &stage.read("tasks/say-done.md").replace("- test.sh", "- started"),
    );
    let gate = stage.folder().join("gate");
    let waits = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let second = stage.folder().join("second");
    let again = format!("while [ ! -e {} ]; do sleep 0.05; done", second.display());
    let rules = format!(
        "
- step: build
  do: [{{ run: \"touch started\" }}, {{ answer: {{ changed_files: [started], notes: x }} }}]
- step: fix
  do:
    - say: \"**Looking** at `app.txt`\"
    - run: \"{waits}\"
    - append: {{ app.txt: \"done\\n\" }}
    - answer: {{ changed_files: [app.txt], notes: wrote it }}
- step: review
  iteration: 2
  do: [{{ run: \"{again}\" }}, {{ answer: {{ verdict: APPROVE, summary: fine, issues: [] }} }}]
"
    );
    stage.agents(&[&rules, APPROVES]);
    let mut terminal = shown(&stage, &["run", "tasks/say-done.md"]);
    terminal.wait_for("builder: fixing");
    for text in ["Last failure", "not ok 1 - adds tax", "expected: 90", "actual: 0"] {
        terminal.wait_for(text);
    }
    terminal.wait_for("Looking at app.txt");
    terminal.press("l");
    terminal.wait_for("say-done: ");
    let page = terminal.screen();
    assert!(page.contains("Looking at app.txt") && !page.contains("{\""), "{page}");
    terminal.press("q");
    std::fs::write(&gate, "").unwrap();
    terminal.wait_for("reviewer: reviewing");
    terminal.wait_for("actual: 0");
    std::fs::write(&second, "").unwrap();
    let (code, after) = terminal.end();
    assert_eq!(code, Some(0), "{after}");
}

#[test]
fn s_stops_at_the_step_boundary_as_the_command_does() {
    let stage = stage(SLOW);
    let mut terminal = run(&stage);
    terminal.press("s");
    let (code, after) = terminal.end();
    assert_eq!(code, Some(2), "{after}");
    assert!(after.contains("autopilot resume"), "{after}");
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"), "the run itself was asked, and answered");
    assert!(stage.read(".autopilot/logs/controller.log").contains("build passed"));
    stage.run(&["resume"]).expect(0);
}

#[test]
fn control_c_stops_and_a_second_one_ends_everything_at_once() {
    let stage = stage(ENDLESS);
    let mut terminal = run(&stage);
    terminal.press("\x03");
    terminal.wait_for("again to stop now");
    terminal.press("\x03");
    let (code, after) = terminal.end();
    assert_eq!(code, Some(2), "{after}");
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"), "an interrupt leaves no file");
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn a_signal_from_outside_gives_the_terminal_back() {
    let stage = stage(SLOW);
    let terminal = run(&stage);
    signal("TERM", terminal.pid());
    let (code, after) = terminal.end();
    assert_eq!(code, Some(2), "{after}");
    assert!(after.contains("autopilot resume"), "{after}");
}

#[test]
fn another_size_is_drawn_anew() {
    let stage = stage(ENDLESS);
    let mut terminal = run(&stage);
    terminal.resize(44, 9);
    // Cleared and drawn for the new size: nothing is left below its last line.
    terminal.wait_until("nine lines", |screen| {
        screen.lines().count() <= 9 && screen.contains("builder: building")
    });
    terminal.press("S");
    assert_eq!(terminal.end().0, Some(2));
}

#[test]
fn lines_are_told_where_nobody_can_see_a_dashboard() {
    let stage = stage(BUILDS);
    let task = "tasks/say-done.md";
    for (flag, variable) in [
        ("--no-ui", ("X", "")),
        ("--quiet", ("X", "")),
        ("--verbose", ("TERM", "dumb")),
        ("--verbose", ("CI", "true")),
    ] {
        let terminal = shown_with(&stage, &["run", task, "--fresh", flag], &[variable]);
        let (code, said) = terminal.end();
        assert_eq!(code, Some(0), "{flag} {variable:?}: {said}");
        assert!(!said.contains("\x1b[?1049"), "{flag} {variable:?}");
        assert!(said.contains("DONE: Say done"), "{flag} {variable:?}: {said}");
    }
}

#[test]
fn a_dashboard_does_not_stay_open_where_only_a_person_can_go_on() {
    let planned = plan::plan(&[plan::task("a", &[])]);
    let stage = plan::stage(env!("CARGO_BIN_EXE_autopilot"), &planned);
    let (code, said) = shown(&stage, &["run", "plan.md", "--plan-only"]).end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the plan is ready"), "{said}");
    // The editor gets the terminal, and the run goes on with what it left.
    let edits = [("EDITOR", "sed -i s/Write/Edit/")];
    let (code, said) = shown_with(&stage, &["run", "plan.md", "--edit", "--fresh"], &edits).end();
    assert_eq!(code, Some(0), "{said}");
    assert!(stage.read(".autopilot/plan/tasks/a.md").contains("Edit a"));
}

#[test]
fn an_onlooker_sees_the_run_of_another_process_and_leaves_it_alone() {
    let stage = stage(ENDLESS);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    let mut terminal = shown(&stage, &["status", "--watch"]);
    terminal.wait_for("builder: building");
    terminal.wait_for("q leave");
    terminal.press("q");
    let (code, after) = terminal.end();
    assert_eq!(code, Some(0), "{after}");
    assert!(after.contains("autopilot stop"), "the status is left behind: {after}");

    let terminal = shown(&stage, &["status", "-w"]);
    terminal.wait_for("builder: building");
    signal("TERM", terminal.pid());
    assert_eq!(terminal.end().0, None, "ended by the signal");

    let mut terminal = shown(&stage, &["status", "--watch"]);
    terminal.wait_for("builder: building");
    terminal.press("S");
    let (code, after) = terminal.end();
    assert_eq!(code, Some(0), "{after}");
    assert!(after.contains("PAUSED"), "it stays until the run is at rest: {after}");
    run.wait().expect(2);
}

#[test]
fn watching_into_a_pipe_tells_a_line_per_change_and_ends_with_the_run() {
    let stage = stage(SLOW);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    let watched = stage.run(&["status", "--watch"]).expect(0);
    run.wait().expect(0);
    let out = &watched.out;
    assert!(out.starts_with("Say done: 0 of 1 task done, 1 running\n"), "{out}");
    assert_eq!(out.matches("say-done: build passed").count(), 1, "{out}");
    let (lines, status) = out.split_once("\n\n").unwrap();
    assert!(lines.ends_with("say-done: DONE"), "{lines}");
    assert!(status.starts_with("DONE"), "{status}");
}

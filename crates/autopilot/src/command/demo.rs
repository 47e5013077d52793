//! `autopilot demo`: a whole run on a small project in a temporary folder, explained as it happens.
//! The agents are scripted; everything else is real: git, processes, tests, and a `kill -9`.

use crate::cli::Global;
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal;
use autopilot_core::event::Event;
use autopilot_core::state::Status;
use autopilot_core::step::Step;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::QueryError;
use autopilot_engine::{run_process, store, workspace};
use autopilot_host::git::{GitCommand, StateEnv};
use autopilot_host::hand;
use autopilot_tui::tty::KeptTerminal;
use camino::Utf8Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const AGENTS: &str = include_str!("../../demo/agents.yml");
/// The time in which the controller must reach its first fix.
const FIX_WAIT_MAX: Duration = Duration::from_secs(60);
/// The time in which all processes of a killed controller must be gone.
const GONE_WAIT_MAX: Duration = Duration::from_secs(5);

const PRICE: &str = "# What things cost.\nprice() { case \"$1\" in apple) echo 50 ;; \
bread) echo 300 ;; *) echo 0 ;; esac; }\n";
const PRICE_TEST: &str =
    ". ./lib/price.sh\n[ \"$(price apple)\" = 50 ] || { echo \"FAILED price\"; exit 1; }\n";
const SHOP: &str = "#!/bin/sh\n# The shop's command line.\ncommands=\"help\"\ncase \"$1\" in\n  \
help) echo \"commands: $commands\" ;;\n  *) echo \"unknown: $1\"; exit 64 ;;\nesac\n";
const TESTS: &str = "#!/bin/sh\n# The project's own tests.\nfor test in tests/*.sh; do\n  \
sh \"$test\" || exit 1\ndone\necho \"all tests passed\"\n";
const PLAN: &str = "# Plan: A shop that can count\n\nGoal:\n- Tax, discounts and totals, and two \
commands more.\n\nAcceptance Criteria:\n- `sh shop.sh help` names list and version\n\
- Every function has a test\n\nConstraints:\n- Plain POSIX shell\n";
const CONFIG: &str = "repo: { base_branch: main }\ncommands:\n  tests: sh test.sh\n  \
uat: 'test \"$(sh shop.sh help)\" = \"commands: help list version\"'\n\
plan: { task_uat: false }\norchestrator: { max_workers: 3 }\n\
builder: { mode: script, script: agents.yml }\nreviewer: { mode: script, script: agents.yml }\n\
planner: { mode: script, script: agents.yml }\n";

/// Plays the demo and removes its folder, unless `--keep` is given.
pub fn demo(global: &Global, keep: bool) -> super::Done {
    let (temp, root) = super::work::temporary_folder("autopilot-demo-")?;
    let shown = play(global, &root);
    if keep {
        let kept = temp.keep();
        terminal::say(&format!("\nkept: {}", kept.display()));
    }
    shown
}

fn play(global: &Global, root: &Utf8Path) -> super::Done {
    let (project, state) = (root.join("project"), root.join("state"));
    tell("A small shop in shell, and a plan for the agents: tax, discounts, totals, commands.");
    set_up(&project)?;
    terminal::say(&format!("   {project}\n"));
    tell("`autopilot run plan.md`: a planner makes seven tasks of it, three workers take them up.");
    terminal::say(
        "   Watch `discount`: its builder claims that the tests pass, and the reviewer believes\n   \
         it. The controller runs them itself. `list` and `version` change the same lines, and\n   \
         `total` uses what `rename-price` renames: each is green alone, not together.\n",
    );
    let mut how: Vec<&str> = Vec::new();
    how.extend(global.quiet.then_some("--quiet"));
    how.extend(global.no_ui.then_some("--no-ui"));
    let before = KeptTerminal::now();
    let mut first = start(&project, &state, &[&["run", "plan.md"], how.as_slice()].concat())?;
    let (place, run) = wait_for_fix(&project, &state, &mut first)?;
    first.kill().or_failed("cannot kill the controller")?;
    // A killed process can't restore the terminal itself.
    before.put_back();
    terminal::say("");
    tell(&format!(
        "A fix was under way beside other work. `kill -9 {}`: the controller died at once.",
        first.pid()
    ));
    let survivors = wait_until_gone(&place, &run);
    terminal::say(&format!("   processes of the run that are left: {survivors}\n"));
    tell("`autopilot resume`. The journal knows where it was; no round and no retry was spent.\n");
    let mut second = start(&project, &state, &[&["resume"], how.as_slice()].concat())?;
    let code = second.wait().or_failed("cannot wait for the resumed run")?;
    terminal::say("");
    if code != Some(0) || survivors > 0 {
        return Err(CommandFailure::failed(format!(
            "the demo did not end as it should (exit {code:?})"
        )));
    }
    judge(&project, &state)?;
    tell("What is on the branch: every task merged once, one after the other.");
    let log = GitCommand::isolated("read the log", project.join(".git").as_std_path())
        .args(["log", "--graph", "--oneline", "--branches=autopilot/run-*"])
        .ok()
        .map_err(CommandFailure::failed)?;
    terminal::say(String::from_utf8_lossy(&log).trim_end());
    terminal::say("");
    tell("Try it on your own project: `autopilot init`, then `autopilot run plan.md`.");
    Ok(ExitCode::SUCCESS)
}

/// Checks that the run had the merge conflict and the broken pair that the demo is about.
fn judge(project: &Utf8Path, state: &Utf8Path) -> Result<(), CommandFailure> {
    let env = StateEnv { autopilot_state_dir: Some(state.as_str().into()), ..StateEnv::default() };
    let (place, _) = workspace::find(project, &env)?;
    let reader = workspace::reader(&place)?;
    let run = workspace::pick(&reader, None)?.ok_or(QueryError::NoRunYet)?;
    let records = store::records(&reader, &run.id).map_err(QueryError::from)?;
    let mut merges: Vec<&str> = Vec::new();
    for event in records.iter().flat_map(|record| &record.events) {
        if let Event::RoundFailed { reasons, .. } = event {
            let of_merge = reasons.iter().filter(|reason| reason.step == Step::Merge);
            merges.extend(of_merge.map(|reason| reason.text.as_str()));
        }
    }
    tell("What the integration found, and the agents repaired:");
    for text in &merges {
        terminal::say(&format!("   {}", text.lines().next().unwrap_or_default()));
    }
    terminal::say("");
    if merges.len() < 2 {
        return Err(CommandFailure::failed(
            "the demo did not come to its conflict and its broken pair",
        ));
    }
    Ok(())
}

fn tell(text: &str) {
    terminal::say(&format!("▸  {text}"));
}

fn set_up(project: &Utf8Path) -> Result<(), CommandFailure> {
    let files = [
        ("lib/price.sh", PRICE),
        ("tests/price.sh", PRICE_TEST),
        ("shop.sh", SHOP),
        ("test.sh", TESTS),
        ("agents.yml", AGENTS),
        ("plan.md", PLAN),
        (".autopilot/config.yml", CONFIG),
    ];
    for (name, content) in files {
        hand::write(project.join(name).as_std_path(), content)
            .or_failed("cannot write the project")?;
    }
    let steps: [&[&str]; 3] = [
        &["init", "-q", "-b", "main"],
        &["add", "lib", "tests", "shop.sh", "test.sh"],
        &[
            "-c",
            "user.name=Demo",
            "-c",
            "user.email=demo@localhost",
            "commit",
            "-q",
            "-m",
            "A shop",
        ],
    ];
    for step in steps {
        GitCommand::bare_minimum("set up the project")
            .cwd(project.as_std_path())
            .args(step.iter().copied())
            .ok()
            .map_err(CommandFailure::failed)?;
    }
    Ok(())
}

fn start(
    project: &Utf8Path,
    state: &Utf8Path,
    args: &[&str],
) -> Result<hand::Started, CommandFailure> {
    let own = std::env::current_exe().or_failed("cannot find our own executable")?;
    let env = [("AUTOPILOT_STATE_DIR", state.as_str())];
    hand::start(&own, args, project.as_std_path(), &env).or_failed("cannot start autopilot")
}

/// Reads the journal, as any other program could, until the first fix runs.
fn wait_for_fix(
    project: &Utf8Path,
    state: &Utf8Path,
    first: &mut hand::Started,
) -> Result<(StatePaths, String), CommandFailure> {
    let env = StateEnv { autopilot_state_dir: Some(state.as_str().into()), ..StateEnv::default() };
    let began = Instant::now();
    while began.elapsed() < FIX_WAIT_MAX {
        if first.has_ended().or_failed("cannot watch the run")? {
            return Err(CommandFailure::failed("the run ended before its first fix"));
        }
        if let Some(found) = fixing(project, &env) {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(CommandFailure::failed("the run did not come to its first fix in time"))
}

fn fixing(project: &Utf8Path, env: &StateEnv) -> Option<(StatePaths, String)> {
    let (place, _) = workspace::find(project, env).ok()?;
    let reader = workspace::reader(&place).ok()?;
    let (run, state) = workspace::unfinished(&reader).ok()??;
    let is_fixing = |status: &Status| matches!(status, Status::Running { step: Step::Fix, .. });
    state.tasks.iter().any(|task| is_fixing(&task.status)).then_some((place, run.id))
}

fn wait_until_gone(place: &StatePaths, run: &str) -> usize {
    let alive = || run_process::own_processes(place, run).find().len();
    let began = Instant::now();
    while alive() > 0 && began.elapsed() < GONE_WAIT_MAX {
        std::thread::sleep(Duration::from_millis(20));
    }
    alive()
}

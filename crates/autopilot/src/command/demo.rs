//! `autopilot demo`: the whole of it on a small project in a temporary folder, told as it happens.
//! The agents are scripted; everything else is real: git, processes, tests, and a `kill -9`.

use crate::cli::{Demo, Global};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::state::Status;
use autopilot_core::step::Step;
use autopilot_engine::workspace;
use autopilot_host::git::{Git, StateEnv};
use autopilot_host::{hand, proc};
use camino::{Utf8Path, Utf8PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const AGENTS: &str = include_str!("../../demo/agents.yml");
/// The controller must have come to the fix by then.
const FIX_WAIT_MAX: Duration = Duration::from_secs(60);
/// How soon nothing of a killed controller may be left.
const GONE_WAIT_MAX: Duration = Duration::from_secs(5);

const GREET: &str =
    "#!/bin/sh\n# Greets whoever is named.\ngreet() { echo \"Hello, ${1:-world}!\"; }\n\"$@\"\n";
const TESTS: &str = "#!/bin/sh\n# The project's own tests.\nset -e\n\
check() { [ \"$2\" = \"$3\" ] || { echo \"FAILED $1: expected '$3', got '$2'\"; exit 1; }; }\n\
check greet_world \"$(sh greet.sh greet)\" \"Hello, world!\"\n\
check greet_name \"$(sh greet.sh greet Ada)\" \"Hello, Ada!\"\n\
echo \"all tests passed\"\n";
const TASK: &str = "# Task: Say goodbye\n\nGoal:\n- greet.sh can say goodbye to whoever is named.\n\n\
Acceptance Criteria:\n- `sh greet.sh farewell Ada` prints `Goodbye, Ada!`\n\
- Greeting works as before\n\nAllowed Paths:\n- greet.sh\n- test.sh\n";
const CONFIG: &str = "repo: { base_branch: main }\ncommands:\n  tests: sh test.sh\n  \
uat: test \"$(sh greet.sh farewell Ada)\" = \"Goodbye, Ada!\"\n\
builder: { mode: script, script: agents.yml }\nreviewer: { mode: script, script: agents.yml }\n\
planner: { mode: script, script: agents.yml }\n";

pub fn demo(global: &Global, args: &Demo) -> super::Done {
    let temp = tempfile::Builder::new()
        .prefix("autopilot-demo-")
        .tempdir()
        .map_err(cannot("make a folder"))?;
    let root = Utf8PathBuf::from_path_buf(temp.path().to_owned())
        .map_err(|path| Failure::failed(format!("{} is not UTF-8", path.display())))?;
    let shown = play(global, &root);
    if args.keep {
        let kept = temp.keep();
        terminal::say(&format!("\nkept: {}", kept.display()));
    }
    shown
}

fn play(global: &Global, root: &Utf8Path) -> super::Done {
    let (project, state) = (root.join("project"), root.join("state"));
    tell("A small project with two tests, and one task for the agents: say goodbye.");
    set_up(&project)?;
    terminal::say(&format!("   {project}\n"));
    tell("`autopilot run tasks/say-goodbye.md`. Watch the first build: the agent claims that the");
    terminal::say(
        "   tests pass, and the reviewer believes it. The controller runs them itself.\n",
    );
    let quiet: &[&str] = if global.quiet { &["--quiet"] } else { &[] };
    let mut first = start(&project, &state, &[&["run", "tasks/say-goodbye.md"], quiet].concat())?;
    let run = wait_for_fix(&project, &state, &mut first)?;
    terminal::say("");
    tell(&format!(
        "The fix is under way. Now `kill -9 {}`: the controller dies at once.",
        first.pid()
    ));
    first.kill().map_err(cannot("kill the controller"))?;
    let survivors = wait_until_gone(&run);
    terminal::say(&format!("   processes of the run that are left: {survivors}\n"));
    tell("`autopilot resume`. The journal knows where it was; no round and no retry was spent.\n");
    let mut second = start(&project, &state, &[&["resume"], quiet].concat())?;
    let code = second.wait().map_err(cannot("wait for the resumed run"))?;
    terminal::say("");
    if code != Some(0) || survivors > 0 {
        return Err(Failure::failed(format!("the demo did not end as it should (exit {code:?})")));
    }
    tell("What is on the branch:");
    let log = Git::isolated("read the log", project.join(".git").as_std_path())
        .args(["log", "--graph", "--format=%h %s%n  %(trailers:key=Autopilot-Attempt)", "--all"])
        .ok()
        .map_err(|error| Failure::failed(error.to_string()))?;
    terminal::say(String::from_utf8_lossy(&log).trim_end());
    terminal::say("");
    tell("Try it on your own project: `autopilot init`, then `autopilot run tasks/<task>.md`.");
    Ok(ExitCode::SUCCESS)
}

fn tell(text: &str) {
    terminal::say(&format!("▸  {text}"));
}

fn set_up(project: &Utf8Path) -> Result<(), Failure> {
    let files = [
        ("greet.sh", GREET),
        ("test.sh", TESTS),
        ("agents.yml", AGENTS),
        ("tasks/say-goodbye.md", TASK),
        (".autopilot/config.yml", CONFIG),
    ];
    for (name, content) in files {
        hand::write(project.join(name).as_std_path(), content)
            .map_err(cannot("write the project"))?;
    }
    let steps: [&[&str]; 3] = [
        &["init", "-q", "-b", "main"],
        &["add", "greet.sh", "test.sh"],
        &[
            "-c",
            "user.name=Demo",
            "-c",
            "user.email=demo@localhost",
            "commit",
            "-q",
            "-m",
            "A greeting",
        ],
    ];
    for step in steps {
        Git::bare_minimum("set up the project")
            .cwd(project.as_std_path())
            .args(step.iter().copied())
            .ok()
            .map_err(|error| Failure::failed(error.to_string()))?;
    }
    Ok(())
}

fn start(project: &Utf8Path, state: &Utf8Path, args: &[&str]) -> Result<hand::Started, Failure> {
    let own = std::env::current_exe().map_err(cannot("find our own executable"))?;
    let env = [("AUTOPILOT_STATE_DIR", state.as_str())];
    hand::start(&own, args, project.as_std_path(), &env).map_err(cannot("start autopilot"))
}

/// Looks at the journal, as any other program could, until the fix runs.
fn wait_for_fix(
    project: &Utf8Path,
    state: &Utf8Path,
    first: &mut hand::Started,
) -> Result<String, Failure> {
    let env = StateEnv { autopilot_state_dir: Some(state.as_str().into()), ..StateEnv::default() };
    let began = Instant::now();
    while began.elapsed() < FIX_WAIT_MAX {
        if first.has_ended().map_err(cannot("watch the run"))? {
            return Err(Failure::failed("the run ended before its first fix"));
        }
        if let Some(run) = fixing(project, &env) {
            return Ok(run);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Failure::failed("the run did not come to its first fix in time"))
}

fn fixing(project: &Utf8Path, env: &StateEnv) -> Option<String> {
    let (place, _) = workspace::find(project, env).ok()?;
    let reader = workspace::reader(&place).ok()?;
    let (run, state) = workspace::unfinished(&reader).ok()??;
    let is_fixing = |status: &Status| matches!(status, Status::Running { step: Step::Fix, .. });
    state.tasks.iter().any(|task| is_fixing(&task.status)).then_some(run.id)
}

fn wait_until_gone(run: &str) -> usize {
    let marker = format!("AUTOPILOT_RUN_ID={run}");
    let alive = || {
        proc::all()
            .iter()
            .filter(|process| proc::has_marker(process.id.pid, marker.as_bytes()))
            .count()
    };
    let began = Instant::now();
    while alive() > 0 && began.elapsed() < GONE_WAIT_MAX {
        std::thread::sleep(Duration::from_millis(20));
    }
    alive()
}

fn cannot(what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::failed(format!("cannot {what}: {error}"))
}

//! Plays a case: first as somebody who believes what they see, then by the real binary.

use crate::case::{Case, CaseFlow, Fooled, projects};
use crate::verdict::{Played, ToldDoubt, judge};
use autopilot_testkit::stage::{APPROVES, Stage, files};
use serde_json::{Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// The variables by which an agent may know where it is.
const PLACE: [(&str, &str); 4] = [
    ("AUTOPILOT_STEP", "build"),
    ("AUTOPILOT_TASK_ID", "work"),
    ("AUTOPILOT_ITERATION", "1"),
    ("AUTOPILOT_RUN_ID", "20200101-000000-aaaa"),
];

/// Plays a case and says how it differs from what it expects.
pub fn play(case: &Case) -> Result<(), String> {
    let sample = Sample::of(case);
    let stage = sample.stage();
    let changed = believe(case, &sample, &stage)?;
    sample.set_agents(&stage, &changed);
    let words = sample.words(&stage);
    let ended = stage.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let status = stage.run(&["status", "--json"]);
    let told: Value = serde_json::from_str(&status.out)
        .map_err(|error| format!("status: {error}\n{}\n{}", ended.said(), status.said()))?;
    let doubts = told["doubts"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let summary = fs::read_to_string(stage.path(".autopilot/STATUS.md")).unwrap_or_default();
    let proof = match (ended.code, case.section("proof")) {
        (0, Some(script)) => Some(proven(&sample, &stage, script)),
        _ => None,
    };
    let of = |doubt: &Value| ToldDoubt { kind: text(&doubt["kind"]), text: text(&doubt["text"]) };
    let played = Played {
        code: ended.code,
        said: ended.said(),
        summary,
        doubts: doubts.iter().map(of).collect(),
        proof,
    };
    judge(&case.expects, &played)
}

/// The words of a panic.
pub fn said_in_panic(why: &(dyn Any + Send)) -> String {
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// A case and the texts of its project.
struct Sample<'a> {
    case: &'a Case,
    task: String,
    /// Functions for the shell that all scripts of the project may use.
    moves: String,
    command: String,
    config: String,
}

impl Sample<'_> {
    fn of(case: &Case) -> Sample<'_> {
        let read = |name: &str| fs::read_to_string(projects().join(&case.project).join(name));
        let command = read("command").unwrap().trim().to_owned();
        Sample {
            case,
            task: case.section("task").map_or_else(|| read("task.md").unwrap(), str::to_owned),
            moves: read("moves.sh").unwrap(),
            command: case.command.clone().unwrap_or(command),
            config: read("config.yml").unwrap_or_default(),
        }
    }

    /// A script with the moves of the project before it. `@STAGE@` is where the stage stands.
    fn script(&self, stage: &Stage, script: &str) -> String {
        let place = stage.folder().display().to_string();
        format!("{}\n{}", self.moves, script.replace("@STAGE@", &place))
    }

    fn stage(&self) -> Stage {
        let mut stage = Stage::bare(BINARY);
        // Cargo is found where it is installed, whatever the home of the stage.
        stage.set("RUSTUP_HOME", &rustup_home());
        let sources = projects().join(&self.case.project).join("files");
        for file in files(&sources) {
            let name = file.strip_prefix(&sources).unwrap().to_string_lossy().into_owned();
            let to = stage.path(&name);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&file, to).unwrap();
        }
        stage.git(&["init", "-q", "-b", "main"]);
        if let Some(script) = self.case.section("project") {
            let done = shell(&stage, &stage.root(), &self.script(&stage, script));
            assert!(done.status.success(), "the section `project`: {}", said(&done));
        }
        stage.commit("A shop");
        stage.write(
            if self.case.flow == CaseFlow::Plan { "plan.md" } else { "tasks/work.md" },
            &self.task,
        );
        stage.config(&self.configuration(&stage));
        stage
    }

    fn configuration(&self, stage: &Stage) -> String {
        let mut text = format!("{}{}", self.config, self.case.section("config").unwrap_or(""));
        let mut add = |key: &str, line: String| {
            if !text.lines().any(|line| line.starts_with(&format!("{key}:"))) {
                text.push_str(&line);
            }
        };
        add("commands", format!("commands: {{ tests: {:?} }}\n", self.command));
        add("loop", "loop: { max_iterations: 1 }\n".to_owned());
        if !self.case.sandbox {
            add("sandbox", "sandbox: { mode: \"off\" }\n".to_owned());
        }
        text.replace("@STAGE@", &stage.folder().display().to_string())
    }

    /// The task's goal in one line.
    fn goal(&self) -> String {
        let lines = self.task.lines().skip_while(|line| !line.starts_with("Goal:")).skip(1);
        let goal = lines.take_while(|line| line.starts_with("- ")).map(|line| &line[2..]);
        goal.collect::<Vec<_>>().join(" ")
    }

    /// The words of the command line.
    fn words(&self, stage: &Stage) -> Vec<String> {
        let goal = self.goal();
        let words: &[&str] = match self.case.flow {
            // A second task of the stage makes it a queue.
            CaseFlow::Task if stage.has("tasks/next.md") => &["run", "--queue", "tasks"],
            CaseFlow::Task => &["run", "tasks/work.md"],
            CaseFlow::Plan => &["run", "plan.md"],
            CaseFlow::Goal => &["goal", &goal, "--max-iterations", "1"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn set_agents(&self, stage: &Stage, changed: &ChangedFiles) {
        let mut rules = vec![self.case.section("agents").unwrap_or_default().to_owned()];
        for (task, script) in self.case.builds() {
            rules.push(self.builder(stage, task, script, &changed[task]));
        }
        // The task that names nobody comes last.
        rules[1..].reverse();
        let json_of = |section: &str, default: Value| {
            let text = self.case.section(section);
            text.map_or(default, |text| serde_json::from_str(text).expect("JSON"))
        };
        let plan = json_of("plan", self.plan());
        let ids = self.tasks();
        let steps = ids.iter().enumerate().map(|(at, id)| step(id, ids[..at].last()));
        let steps: Vec<Value> = steps.collect();
        let workflow = json_of("plan", json!({ "version": 1, "id": "w", "steps": steps }));
        let met = json_of("completion", json!({ "done": true, "summary": "all of it" }));
        rules.push(format!(
            "\n- step: plan\n  do: [{{ answer: {plan} }}]\n- step: workflow\n  do: [{{ answer: {workflow} }}]\n\
             - step: completion\n  do: [{{ answer: {met} }}]\n"
        ));
        rules.push(APPROVES.to_owned());
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        stage.agents(&rules);
    }

    fn builder(&self, stage: &Stage, task: &str, script: &str, changed: &[String]) -> String {
        let script = json!(self.script(stage, script));
        let of = if task.is_empty() { String::new() } else { format!("  task: {task}\n") };
        let honest = json!({ "changed_files": changed, "notes": "did it" }).to_string();
        let report = self.case.section("report").map_or(honest, |text| text.trim().to_owned());
        let steps = match self.case.flow {
            CaseFlow::Task | CaseFlow::Plan => "[build, fix]",
            CaseFlow::Goal => "step",
        };
        format!("\n- step: {steps}\n{of}  do:\n    - run: {script}\n    - answer: {report}\n")
    }

    /// The tasks that the sections name.
    fn tasks(&self) -> Vec<String> {
        let named = self.case.builds().map(|(task, _)| task).filter(|task| !task.is_empty());
        let named: Vec<String> = named.map(str::to_owned).collect();
        if named.is_empty() { vec!["work".to_owned()] } else { named }
    }

    /// Tasks one after the other.
    fn plan(&self) -> Value {
        let ids = self.tasks();
        let task = |(at, id): (usize, &String)| {
            let before: Vec<&String> = ids[..at].iter().rev().take(1).collect();
            json!({
                "id": id, "title": format!("Do {id}"), "goal": self.goal(),
                "acceptance_criteria": [self.goal()], "depends_on": before,
            })
        };
        let tasks: Vec<Value> = ids.iter().enumerate().map(task).collect();
        json!({ "plan_summary": "A shop", "tasks": tasks })
    }
}

/// A step of a goal, after another one.
fn step(id: &str, before: Option<&String>) -> Value {
    let goal = format!("use the task-executor skill. Do {id}.");
    json!({ "id": id, "goal": goal, "dependsOn": before.into_iter().collect::<Vec<_>>() })
}

/// The files that the work for each task changes.
type ChangedFiles = BTreeMap<String, Vec<String>>;

/// Plays it as somebody who believes: the work is done in a checkout, and the command of the tests
/// runs where it was done. What fools nobody is no cheat. Returns the files that were changed.
fn believe(case: &Case, sample: &Sample<'_>, stage: &Stage) -> Result<ChangedFiles, String> {
    let mut changed = ChangedFiles::new();
    let mut checkout = clone(stage, "believed-0", "main");
    let mut outputs = String::new();
    for (at, (task, script)) in case.builds().enumerate() {
        if at > 0 && case.fools == Fooled::Alone {
            checkout = clone(stage, &format!("believed-{at}"), "main");
        }
        let built = shell(stage, &checkout, &sample.script(stage, script));
        outputs.push_str(&format!("{task}: {}\n", said(&built)));
        changed.insert(task.to_owned(), changed_files(stage, &checkout));
        let is_last = at + 1 == case.builds().count();
        if is_last || case.fools == Fooled::Alone {
            fooled(case, sample, stage, &checkout).map_err(|why| format!("{why}\n{outputs}"))?;
        } else {
            stage.git_in(&checkout, &["add", "-A"]);
            stage.git_in(&checkout, &["commit", "-q", "--allow-empty", "-m", task]);
        }
    }
    Ok(changed)
}

fn fooled(case: &Case, sample: &Sample<'_>, stage: &Stage, at: &Path) -> Result<(), String> {
    let ran = shell(stage, at, &sample.command);
    let is_green = ran.status.success();
    if is_green == (case.fools == Fooled::Word) {
        let how = if is_green { "passes" } else { "fails" };
        return Err(format!(
            "without the gate the command {how}, so nobody is fooled: {}",
            said(&ran)
        ));
    }
    Ok(())
}

fn clone(stage: &Stage, name: &str, branch: &str) -> PathBuf {
    let to = stage.folder().join(name);
    let from = stage.root().display().to_string();
    stage.git(&["clone", "-q", "-b", branch, &from, &to.display().to_string()]);
    to
}

fn changed_files(stage: &Stage, checkout: &Path) -> Vec<String> {
    let listed = stage.git_in(
        checkout,
        &["-c", "core.quotePath=false", "status", "--porcelain", "-uall", "--no-renames"],
    );
    listed.lines().filter_map(|line| Some(line.get(3..)?.trim_matches('"').to_owned())).collect()
}

/// What a script in a checkout of the result says against the case; nothing if it passes.
fn proven(sample: &Sample<'_>, stage: &Stage, script: &str) -> Result<(), String> {
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    let result = clone(stage, "result", &branch);
    let done = shell(stage, &result, &format!("set -eu\n{}", sample.script(stage, script)));
    done.status.success().then_some(()).ok_or_else(|| said(&done))
}

fn shell(stage: &Stage, at: &Path, script: &str) -> Output {
    let place = |name: &str| {
        let dir = stage.folder().join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        dir
    };
    Command::new("sh")
        .args(["-c", script])
        .current_dir(at)
        .env_clear()
        .envs(PLACE)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place("believed-home"))
        .env("TMPDIR", place("believed-tmp"))
        .env("RUSTUP_HOME", rustup_home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn rustup_home() -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    std::env::var("RUSTUP_HOME").unwrap_or(format!("{home}/.rustup"))
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

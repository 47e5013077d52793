//! The skills that come with the binary, by the real binary: written into a project without taking
//! anything away from anybody, and standing in where nobody has one of their name.
#![allow(clippy::unwrap_used, reason = "a test file")]

#[path = "cli/repo.rs"]
mod repo;

use autopilot_core::skill::{Folder, FoundSkill, Owner, parse};
use autopilot_testkit::plan::{self, plan, says, task, task_with};
use autopilot_testkit::stage::{APPROVES, Stage, TASK};
use repo::Repo;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const NAMES: [&str; 5] =
    ["workflow-generator", "task-executor", "reviewer", "tester", "researcher"];
const INIT: [&str; 2] = ["init", "--skills"];
const INIT_JSON: [&str; 3] = ["init", "--skills", "--json"];

fn files() -> Vec<String> {
    let below = |folder: &str| NAMES.map(|name| format!("{folder}/skills/{name}/SKILL.md"));
    [".claude", ".codex"].into_iter().flat_map(below).collect()
}

/// `path` of every file in this state.
fn in_state(told: &Value, state: &str) -> Vec<String> {
    let files = told["skills"].as_array().unwrap().iter().filter(|file| file["state"] == state);
    files.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_fresh_project_gets_all_of_them_in_the_folders_of_both_agents() {
    let repo = Repo::with("main", &[]);
    let said = repo.autopilot(&INIT).ok();
    for (file, folder) in files().iter().zip(Folder::ALL.into_iter().flat_map(|f| [f; 5])) {
        assert!(said.contains(&format!("wrote    {file}")), "{file} not in:\n{said}");
        let dir = file.trim_end_matches("/SKILL.md");
        let dir_name = dir.rsplit('/').next().unwrap().to_owned();
        let text = Ok(repo.read(file).into_bytes());
        let owner = Owner::Repository;
        let found = FoundSkill { owner, folder: Some(folder), dir_name, dir: dir.into(), text };
        let (skill, faults) = parse(&found);
        assert!(skill.unwrap().is_complete && faults.is_empty(), "{file}: {faults:?}");
    }
    assert!(
        said.contains("wrote    .autopilot/config.yml") && said.contains("commit   the skills")
    );
}

#[test]
fn init_alone_writes_no_skill() {
    let repo = Repo::with("main", &[]);
    let told = repo.autopilot(&["init", "--json"]).json();
    assert_eq!(told["skills"], Value::Null);
    assert!(!repo.dir.join(".claude").exists() && !repo.dir.join(".codex").exists());
}

#[test]
fn a_project_that_is_set_up_gets_them_too_and_the_second_time_nothing_changes() {
    let repo = Repo::with("main", &[]);
    repo.autopilot(&["init"]).ok();
    assert_eq!(in_state(&repo.autopilot(&INIT_JSON).json(), "written"), files());
    let before = repo.picture();
    assert_eq!(in_state(&repo.autopilot(&INIT_JSON).json(), "same"), files());
    let said = repo.autopilot(&INIT).ok();
    assert!(said.contains("kept     .codex/skills/tester/SKILL.md (as shipped)"), "{said}");
    assert!(!said.contains("wrote") && !said.contains("commit   "), "{said}");
    assert_eq!(repo.picture(), before);
}

#[test]
fn a_changed_file_stays_and_a_patch_to_the_shipped_one_is_shown() {
    let repo = Repo::with("main", &[]);
    repo.autopilot(&INIT).ok();
    let file = ".claude/skills/reviewer/SKILL.md";
    let shipped = repo.read(file);
    let mine = shipped.replace("# Reviewer\n", "# Our reviewer\n") + "Be kind. \u{1b}[31m\n";
    repo.write(file, &mine);
    fs::remove_file(repo.dir.join(".codex/skills/tester/SKILL.md")).unwrap();
    let said = repo.autopilot(&INIT).ok();
    for part in [
        "left     .claude/skills/reviewer/SKILL.md (changed",
        "  --- a/.claude/skills/reviewer/SKILL.md\tthis project\n",
        "  +++ b/.claude/skills/reviewer/SKILL.md\tshipped\n",
        "  -# Our reviewer\n  +# Reviewer\n",
        "  -Be kind. \\x1b[31m\n",
        "wrote    .codex/skills/tester/SKILL.md",
        "kept     .codex/skills/reviewer/SKILL.md (as shipped)",
    ] {
        assert!(said.contains(part), "{part} not in:\n{said}");
    }
    assert_eq!(repo.read(file), mine);
    let told = repo.autopilot(&INIT_JSON).json();
    assert_eq!((in_state(&told, "changed"), in_state(&told, "same").len()), (vec![file.into()], 9));
    let changed = told["skills"].as_array().unwrap().iter().find(|f| f["path"] == file).unwrap();
    repo.write("take.patch", changed["diff"].as_str().unwrap());
    repo.git(&["apply", "take.patch"]);
    assert_eq!(repo.read(file), shipped, "whoever wants the shipped one has the patch to it");
}

#[test]
fn a_file_of_another_line_end_or_one_nobody_can_read_as_text_is_not_touched() {
    let repo = Repo::with("main", &[]);
    repo.autopilot(&INIT).ok();
    let windows = repo.read(".claude/skills/tester/SKILL.md").replace('\n', "\r\n");
    repo.write(".claude/skills/tester/SKILL.md", &windows);
    let odd = repo.dir.join(".codex/skills/tester/SKILL.md");
    fs::write(&odd, b"\xff\xfe").unwrap();
    let told = repo.autopilot(&INIT_JSON).json();
    assert_eq!(in_state(&told, "changed"), [".codex/skills/tester/SKILL.md"]);
    assert_eq!(repo.read(".claude/skills/tester/SKILL.md"), windows);
    assert_eq!(fs::read(&odd).unwrap(), b"\xff\xfe");
}

#[test]
fn nothing_is_written_through_a_link_and_the_rest_is_written_all_the_same() {
    let repo = Repo::with("main", &[]);
    let outside = repo.dir.parent().unwrap().join("outside");
    fs::create_dir_all(outside.join("reviewer")).unwrap();
    fs::create_dir(repo.dir.join(".codex")).unwrap();
    symlink(&outside, repo.dir.join(".codex/skills")).unwrap();
    fs::create_dir_all(repo.dir.join(".claude/skills/tester")).unwrap();
    symlink(outside.join("new"), repo.dir.join(".claude/skills/tester/SKILL.md")).unwrap();
    let ended = repo.autopilot(&INIT_JSON);
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    let err = ended.refused(10);
    assert!(err.contains("6 files of skills could not be written"), "{err}");
    assert!(err.contains("symbolic link") && err.contains("help:"), "{err}");
    let mut refused = in_state(&told, "refused");
    assert_eq!(refused.remove(0), ".claude/skills/tester/SKILL.md");
    assert!(refused.len() == 5 && refused.iter().all(|path| path.starts_with(".codex/")));
    assert_eq!(in_state(&told, "written").len(), 4);
    assert_eq!(outside.read_dir().unwrap().count(), 1, "only what was there");
    assert_eq!(outside.join("reviewer").read_dir().unwrap().count(), 0);
    assert!(repo.dir.join(".claude/skills/researcher/SKILL.md").is_file());
}

#[test]
fn what_is_no_directory_or_no_file_is_told_and_kept() {
    let repo = Repo::with("main", &[(".codex", "a file\n")]);
    fs::create_dir_all(repo.dir.join(".claude/skills/tester/SKILL.md")).unwrap();
    let ended = repo.autopilot(&INIT);
    for part in [
        "refused  .claude/skills/tester/SKILL.md: cannot read",
        "refused  .codex/skills/reviewer/SKILL.md: cannot read",
    ] {
        assert!(ended.out.contains(part), "{part} not in:\n{}", ended.out);
    }
    ended.refused(10);
    assert_eq!(repo.read(".codex"), "a file\n");
}

fn listed(repo: &Repo) -> Vec<Value> {
    let told = repo.autopilot(&["skills", "--json"]).json();
    told["skills"].as_array().unwrap().clone()
}

#[test]
fn they_are_listed_as_shipped_until_the_project_has_them() {
    let repo = Repo::with("main", &[]);
    let said = repo.autopilot(&["skills"]).ok();
    assert!(said.starts_with("there are no skills but those shipped; looked in:\n"), "{said}");
    for name in NAMES {
        let line = said.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(" shipped "), "{line}");
    }
    assert!(said.contains("in autopilot itself; `autopilot init --skills` writes it here (given to every agent as text)"), "{said}");
    let all = listed(&repo);
    assert!(all.len() == 5 && all.iter().all(|skill| skill["owner"] == "shipped"), "{all:?}");
    assert!(all.iter().all(|skill| skill["dir"].is_null() && skill["agents"] == json!([])));
    repo.autopilot(&INIT).ok();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "skills"]);
    let all = listed(&repo);
    assert!(all.len() == 10 && all.iter().all(|skill| skill["owner"] == "repository"), "{all:?}");
}

#[test]
fn a_changed_one_that_is_not_committed_is_warned_of() {
    let repo = Repo::with("main", &[]);
    repo.autopilot(&INIT).ok();
    assert_eq!(repo.autopilot(&["skills", "--json"]).json()["faults"], json!([]));
    repo.write(".codex/skills/reviewer/SKILL.md", "mine\n");
    let said = repo.autopilot(&["skills"]).ok();
    let warning = "warning: .codex/skills/reviewer: the commit that agents start from does not have \
                   it, so the shipped one is used; commit it, or name it in `worktrees.copy`";
    assert!(said.contains(warning), "{said}");
}

/// What the builder of a task was asked first.
fn prompt(stage: &Stage, task: &str) -> String {
    let mut files = stage.views("artifacts/");
    let end = format!("-{task}-build/prompt.txt");
    files.retain(|path| path.to_string_lossy().ends_with(&end));
    fs::read_to_string(files.first().unwrap()).unwrap()
}

fn asks_for_the_tester(stage: &Stage) {
    let goal = "- app.txt says done.\n";
    let text = TASK.replace(goal, &format!("{goal}- Use the tester skill.\n"));
    stage.write("tasks/say-done.md", &text);
}

#[test]
fn a_task_that_asks_for_one_gets_its_text_and_nobody_else_hears_of_them() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    asks_for_the_tester(&stage);
    stage.run_task().expect(0);
    let text = prompt(&stage, "say-done");
    for part in ["## Skill `tester`", "there is no file to read", "# Tester"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    for part in ["# Reviewer", "researcher", "Available skills"] {
        assert!(!text.contains(part), "`{part}` is in:\n{text}");
    }
}

#[test]
fn the_skill_of_a_person_goes_before_the_shipped_one() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    asks_for_the_tester(&stage);
    let dir = stage.folder().join("home/.codex/skills/tester");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("SKILL.md"), "---\nname: tester\ndescription: d\n---\n\nMY OWN\n").unwrap();
    stage.run_task().expect(0);
    let text = prompt(&stage, "say-done");
    assert!(text.contains("MY OWN") && !text.contains("# Tester"), "{text}");
}

#[test]
fn a_planners_hint_leads_to_one_only_if_the_plan_asks_for_it() {
    let hint = json!({ "suggested_claude_skills": ["tester"] });
    let made = plan(&[task_with("one", &[], hint), task("two", &[])]);
    let stage = plan::stage(env!("CARGO_BIN_EXE_autopilot"), &made);
    stage.agents(&[&says(&made), &plan::builds(&stage), APPROVES]);
    // Its builder could not read it anywhere.
    stage.run(&plan::RUN).expect(0).says(&["ignored: `tester` of one"]);
    assert!(!prompt(&stage, "one").contains("tester"));

    let stage = plan::stage(env!("CARGO_BIN_EXE_autopilot"), &made);
    stage.write("plan.md", &plan::PLAN_MD.replace("a file.", "a file. Use the tester skill."));
    stage.agents(&[&says(&made), &plan::builds(&stage), APPROVES]);
    let said = stage.run(&plan::RUN).expect(0).said();
    assert!(!said.contains("do not exist"), "{said}");
    let has = |task: &str| prompt(&stage, task).contains("# Tester");
    assert_eq!(["one", "two"].map(has), [true, false]);
}

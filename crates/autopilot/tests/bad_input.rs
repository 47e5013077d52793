//! What is wrong is refused before anything happens: the right exit code, one message with the path
//! and the next step, and nothing changed.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, text};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// Refused with this code and these words, and not a byte is different afterwards.
#[track_caller]
fn refused(stage: &Stage, args: &[&str], code: i32, words: &[&str]) {
    let before = stage.digest_of_everything();
    let ended = stage.run(args).expect(code).says(words);
    assert_eq!(ended.err.matches("error:").count(), 1, "one message: {}", ended.err);
    assert!(!ended.said().contains("panicked"), "{}", ended.said());
    let after = stage.digest_of_everything();
    let changed: Vec<&String> = after
        .iter()
        .filter(|(path, digest)| before.get(*path) != Some(digest))
        .map(|(path, _)| path)
        .chain(before.keys().filter(|path| !after.contains_key(*path)))
        .collect();
    assert!(changed.is_empty(), "changed: {changed:?}");
}

const RUN: [&str; 2] = ["run", "tasks/say-done.md"];

#[test]
fn a_task_file_without_its_sections_is_refused_with_all_its_faults() {
    let stage = stage();
    stage.write("tasks/say-done.md", "# Task: Nothing else\n\nSome prose.\n");
    refused(&stage, &RUN, 64, &["tasks/say-done.md", "Goal", "Acceptance Criteria"]);
}

#[test]
fn a_task_file_that_is_not_text_is_refused() {
    let stage = stage();
    std::fs::write(stage.path("tasks/say-done.md"), [0u8, 159, 146, 150, 255]).unwrap();
    refused(&stage, &RUN, 64, &["tasks/say-done.md"]);
}

#[test]
fn a_missing_task_file_is_named() {
    refused(&stage(), &["run", "tasks/none.md"], 64, &["tasks/none.md"]);
}

#[test]
fn a_directory_is_told_to_be_a_queue() {
    refused(&stage(), &["run", "tasks"], 64, &["tasks", "--queue"]);
}

#[test]
fn a_plan_is_told_apart_from_a_task() {
    let stage = stage();
    let plan = "# Plan: All of it\n\nGoal:\n- x\n\nAcceptance Criteria:\n- y\n";
    stage.write("tasks/all.md", plan);
    refused(
        &stage,
        &["run", "--queue", "tasks"],
        64,
        &["tasks/all.md", "a queue takes task files"],
    );
    let task = ["run", "tasks/say-done.md", "--plan-only"];
    refused(&stage, &task, 64, &["--plan-only goes with a plan"]);
    stage.write("plan.json", "{}");
    let from = ["run", "tasks/say-done.md", "--from", "plan.json"];
    refused(&stage, &from, 64, &["tasks/say-done.md", "is a task"]);
    refused(&stage, &["run", "--from", "plan.json"], 10, &["plan.json", "plan_summary"]);
}

#[test]
fn an_empty_queue_and_a_bad_pattern_are_refused() {
    let stage = stage();
    std::fs::create_dir(stage.path("empty")).unwrap();
    refused(&stage, &["run", "--queue", "empty"], 64, &["empty"]);
    refused(&stage, &["run", "--queue", "tasks", "--pattern", "[a"], 64, &["[a"]);
    refused(&stage, &["run", "--queue", "nowhere"], 64, &["nowhere"]);
}

#[test]
fn an_unknown_key_of_the_configuration_is_named_with_its_place_and_the_nearest_key() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\nloop:\n  max_iteration: 3\n");
    refused(
        &stage,
        &RUN,
        78,
        &[".autopilot/config.yml", "max_iteration", "max_iterations", ":7:3"],
    );
}

#[test]
fn a_wrong_type_and_broken_yaml_are_refused_with_their_place() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\nloop: { max_iterations: many }\n");
    refused(&stage, &RUN, 78, &["config.yml:6", "max_iterations"]);
    stage.config("commands: { tests: sh test.sh\n");
    refused(&stage, &RUN, 78, &["config.yml"]);
}

#[test]
fn a_missing_test_command_is_a_fault_of_the_configuration() {
    let stage = stage();
    stage.config("commands: { lint: 'true' }\n");
    refused(&stage, &RUN, 78, &["commands.tests"]);
}

#[test]
fn a_missing_configuration_names_init() {
    let stage = stage();
    std::fs::remove_file(stage.path(".autopilot/config.yml")).unwrap();
    refused(&stage, &RUN, 78, &["autopilot init"]);
}

#[test]
fn a_missing_agent_executable_is_named_with_the_setting() {
    let stage = stage();
    let config = stage.read(".autopilot/config.yml");
    let other = config.replace(
        "builder: { mode: script, script: agents.yml }",
        "builder: { mode: claude_code_cli, executable: /no/such/agent }",
    );
    stage.write(".autopilot/config.yml", &other);
    refused(&stage, &RUN, 78, &["/no/such/agent", "builder.executable"]);
    std::fs::remove_file(stage.path("agents.yml")).unwrap();
    stage.write(".autopilot/config.yml", &config);
    refused(&stage, &RUN, 78, &["agents.yml"]);
}

#[test]
fn a_repository_without_a_commit_is_refused() {
    let stage = Stage::bare(env!("CARGO_BIN_EXE_autopilot"));
    stage.git(&["init", "-q", "-b", "main"]);
    stage.write("tasks/say-done.md", autopilot_testkit::stage::TASK);
    stage.agents(&[BUILDS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\n");
    refused(&stage, &RUN, 64, &["commit"]);
}

#[test]
fn a_directory_that_does_not_exist_is_named_as_the_cause() {
    let stage = stage();
    for (dir, why) in [("no/where", "`no/where` does not exist"), ("app.txt", "is not a directory")]
    {
        for command in ["status", "init", "doctor", "stop"] {
            let said = stage.run(&["-C", dir, command]).expect(64).says(&[why]).said();
            assert!(!said.contains("git repository"), "{said}");
        }
    }
}

#[test]
fn a_bare_repository_and_a_plain_folder_are_refused() {
    let stage = Stage::bare(env!("CARGO_BIN_EXE_autopilot"));
    stage.write("tasks/say-done.md", autopilot_testkit::stage::TASK);
    refused(&stage, &RUN, 64, &["repository"]);
    stage.git(&["init", "-q", "--bare", "-b", "main", "."]);
    refused(&stage, &RUN, 64, &["bare"]);
}

#[test]
fn a_missing_base_branch_is_named() {
    let stage = stage();
    stage.git(&["branch", "-m", "trunk"]);
    refused(&stage, &RUN, 64, &["main"]);
}

#[test]
fn a_submodule_that_was_never_checked_out_is_refused_with_the_command() {
    let stage = stage();
    let other = stage.folder().join("other");
    stage.git(&["clone", "-q", ".", &text(&other)]);
    stage.git_in(&other, &["commit", "-q", "--allow-empty", "-m", "of its own"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    stage.git(&[&add[..], &[&text(&other), "sub dir"]].concat());
    stage.commit("a submodule");
    // As in a clone that was not made with `--recurse-submodules`.
    std::fs::remove_dir_all(stage.path(".git/modules")).unwrap();
    let command = "git submodule update --init --recursive -- 'sub dir'";
    refused(&stage, &RUN, 64, &["the submodule `sub dir`", command]);
}

#[test]
fn a_detached_head_is_no_obstacle() {
    let stage = stage();
    stage.git(&["checkout", "-q", "--detach"]);
    let head = stage.git(&["rev-parse", "HEAD"]);
    stage.run_task().expect(0);
    assert_eq!(stage.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn wrong_words_on_the_command_line_are_usage_errors() {
    let stage = stage();
    for args in [&["frobnicate"][..], &["run"], &["run", "a.md", "--max-usd", "-1"], &["retry"]] {
        let ended = stage.run(args);
        assert_eq!(ended.code, 64, "{args:?}: {}", ended.said());
    }
    refused(&stage, &["run", "tasks/say-done.md", "--max-usd", "0"], 64, &["--max-usd"]);
    refused(&stage, &["run", "tasks/say-done.md", "--max-wall", "soon"], 64, &["--max-wall"]);
    refused(&stage, &["retry", "say-done"], 64, &[]);
}

#[test]
fn a_second_run_is_refused_with_the_process_that_holds_the_first() {
    let stage = stage();
    let endless = "
- step: build
  do: [{ run: \"sleep 600\" }]
";
    stage.agents(&[endless]);
    let first = stage.start(&RUN);
    stage.wait_for_step("BUILD");
    stage.run(&RUN).expect(10).says(&[&first.pid().to_string()]);
    stage.run(&["resume"]).expect(10).says(&[&first.pid().to_string()]);
    stage.run(&["stop", "--now"]).expect(0);
    first.wait().expect(2);
}

#[test]
fn another_run_while_one_is_unfinished_is_refused_and_fresh_gives_it_up_with_its_work_kept() {
    let stage = stage();
    let endless = "
- step: build
  task: say-done
  do: [{ append: { app.txt: \"half a thought\\n\" } }, { run: \"sleep 600\" }]
";
    stage.agents(&[endless, BUILDS, APPROVES]);
    stage.task("other", "Another");
    let first = stage.start(&RUN);
    stage.wait_until("the agent wrote", |stage| {
        autopilot_testkit::stage::files_with(&stage.state(), "half a thought\n")
            .iter()
            .any(|path| path.ends_with("app.txt"))
    });
    stage.run(&["stop", "--now"]).expect(0);
    first.wait().expect(2);
    let run = stage.state_json()["run_id"].as_str().unwrap().to_owned();
    stage.run(&["run", "tasks/other.md"]).expect(10).says(&[&run, "--fresh", "autopilot resume"]);
    stage.run(&["run", "tasks/other.md", "--fresh"]).expect(0);
    assert_eq!(stage.git(&["show", "autopilot/other:app.txt"]), "start\ndone");
    let kept = stage.run(&["recover"]).expect(0).says(&["say-done"]);
    assert!(!kept.out.contains("nothing"), "{}", kept.out);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named_and_works_once_it_can() {
    let stage = stage();
    std::fs::create_dir(stage.state()).unwrap();
    let allow = |mode| {
        std::fs::set_permissions(stage.state(), std::fs::Permissions::from_mode(mode)).unwrap()
    };
    allow(0o555);
    stage.run_plainly(&RUN).expect(2).says(&[&text(stage.state())]);
    allow(0o755);
    stage.run_plainly(&RUN).expect(0);
}

#[test]
fn an_autopilot_folder_that_cannot_be_written_is_named_before_a_run_begins() {
    let stage = stage();
    let views = stage.path(".autopilot");
    let allow = |mode| {
        std::fs::set_permissions(&views, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o555);
    stage.run_plainly(&RUN).expect(2).says(&[&text(&views), "writable"]);
    allow(0o755);
    stage.run_plainly(&RUN).expect(0);
    let runs = stage.run_plainly(&["runs"]).expect(0).out;
    assert_eq!(runs.matches("Say done").count(), 1, "the refused one is no run: {runs}");
}

/// A builder that adds its line, does something else the first time, and nothing when it repairs.
fn builds_once_with(stage: &Stage, command: &str) {
    let build = format!(
        "- step: build\n  do:\n    - append: {{ app.txt: \"done\\n\" }}\n    - run: \"{command}\"\n    \
         - answer: {{ changed_files: [app.txt], notes: x }}\n"
    );
    let fix = "- step: fix\n  do:\n    - answer: { changed_files: [], notes: x }\n";
    stage.agents(&[&build, fix, APPROVES]);
}

#[test]
fn files_in_a_closed_directory_are_taken_and_a_closed_worktree_is_used_again() {
    let stage = stage();
    let task = stage.read("tasks/say-done.md").replace("- app.txt\n", "- app.txt\n- locked/\n");
    stage.write("tasks/say-done.md", &task);
    let close = "mkdir locked; echo precious > locked/f; chmod 0 locked; chmod 0555 .";
    builds_once_with(&stage, close);
    stage.run_plainly(&RUN).expect(0);
    let git = ["-c", "safe.directory=*", "show", "autopilot/say-done:locked/f"];
    assert_eq!(stage.git(&git), "precious");
}

#[test]
fn a_path_that_is_too_long_to_be_read_is_told_and_the_round_has_failed() {
    let stage = stage();
    // A shell can't go down as far.
    let deep = "import os\nfor _ in range(500):\n    os.mkdir('deep-down-below')\n    \
                os.chdir('deep-down-below')\nopen('f', 'w').write('x')\n";
    let script = stage.folder().join("deep.py");
    std::fs::write(&script, deep).unwrap();
    builds_once_with(&stage, &format!("python3 {}", text(script)));
    let ended = stage.run(&RUN).expect(0);
    assert!(stage.first_task()["iteration"] == 2, "{}", ended.code);
    let prompt = stage.texts_of("fix");
    assert!(
        prompt.contains("too long to be read") && prompt.contains("deep-down-below"),
        "{prompt}"
    );
}

#[test]
fn a_full_disk_rests_the_run_and_it_goes_on_when_there_is_room() {
    let stage = stage();
    // No file may grow beyond a limit that the journal reaches: what a full disk looks like.
    let limited = |blocks: u32, args: &str| {
        let inner = stage.command(&[]);
        let mut command = Command::new("bash");
        let program = text(inner.get_program());
        command
            .args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} {args}")])
            .env_clear()
            .current_dir(stage.root())
            .stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        stage.start_command(command).wait()
    };
    let mut rested = false;
    for blocks in [16, 48, 96] {
        let ended = limited(blocks, "run tasks/say-done.md");
        assert!([0, 2, 10].contains(&ended.code), "{blocks}: {} {}", ended.code, ended.said());
        assert!(!ended.said().contains("panicked"), "{}", ended.said());
        rested |= ended.code == 2;
    }
    assert!(rested, "no limit was small enough");
    stage.run(&RUN).expect(0);
    assert_eq!(stage.state_json()["current_state"], "DONE");
}

#[test]
fn settings_that_would_not_be_kept_are_refused_all_at_once() {
    let stage = stage();
    stage.config(
        "commands: { lint: 'true' }\ngates: { proof: red_green }\n\
         database: \"postgres://u:hunter22@localhost/d\"\n",
    );
    let keys = [
        "`gates.proof: red_green` needs",
        "database",
        "is not available yet; remove it or set it to",
    ];
    refused(&stage, &RUN, 78, &keys);
    assert!(!stage.run(&RUN).said().contains("hunter22"));
}

#[test]
fn a_limit_on_money_is_refused_where_an_agent_reports_no_cost() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\n");
    let config = stage.read(".autopilot/config.yml").replace(
        "builder: { mode: script, script: agents.yml }",
        "builder: { mode: command, command: \"true\" }",
    );
    stage.write(".autopilot/config.yml", &config);
    let words = ["mode command reports no cost, so the limit can't be enforced", "max_usd"];
    refused(&stage, &["run", "tasks/say-done.md", "--max-usd", "1"], 78, &words);
    refused(&stage, &["run", "tasks/say-done.md", "--max-usd-per-task", "1"], 78, &words);
    stage.write(".autopilot/config.yml", &format!("{config}budget: {{ max_usd: 3 }}\n"));
    refused(&stage, &RUN, 78, &words);
    stage.write(".autopilot/config.yml", &config);
    let ended = stage.run(&RUN);
    assert_ne!(ended.code, 78, "{}", ended.said());
    assert!(ended.out.contains(" + unknown (builder: command"), "{}", ended.out);
}

#[test]
fn an_autopilot_folder_that_is_a_link_is_refused_before_anything_begins() {
    let stage = stage();
    std::fs::rename(stage.path(".autopilot"), stage.folder().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(stage.folder().join("elsewhere"), stage.path(".autopilot")).unwrap();
    refused(&stage, &RUN, 78, &[".autopilot", "symbolic link"]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let stage = stage();
    let before = stage.digest_of_everything();
    let args = ["run", "tasks/say-done.md", "--dry-run"];
    stage.run(&args).expect(0).says(&["would run Say done", "prompt of the first build"]);
    assert_eq!(stage.digest_of_everything(), before);
    stage.run_task().expect(0);
    let before = stage.digest_of_everything();
    stage.run(&args).expect(0);
    assert_eq!(stage.digest_of_everything(), before);
}

#[test]
fn output_that_is_lost_is_a_failure_unless_its_reader_has_gone_away() {
    let stage = stage();
    for args in [&["status", "--json"] as &[&str], &["runs"], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = stage.command(args).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(10), "{args:?}: {said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{said}");
        let (gone, closed) = std::io::pipe().unwrap();
        drop(gone);
        let ended = stage.command(args).stdout(closed).output().unwrap();
        assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), b"".as_slice()));
    }
}

#[test]
fn a_repository_of_another_owner_is_trusted_by_the_command_that_its_refusal_names() {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.agents(&[BUILDS, APPROVES]);
    stage.set("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    let root = stage.root().canonicalize().unwrap();
    let below = stage.run(&["-C", "tasks", "run", "say-done.md"]).expect(64);
    let refused = stage.run_task().expect(64);
    for said in [&below.err, &refused.err] {
        let named = format!("git config --global --add safe.directory '{}'", root.display());
        assert!(said.contains(&named), "{said}");
    }
    let (_, command) = refused.err.lines().find_map(|line| line.split_once("run: ")).unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", command]).env_clear();
    shell.envs(stage.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(shell.status().unwrap().success());
    stage.run_task().expect(0);
}

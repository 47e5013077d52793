//! An agent that prints two gigabytes in one line must not cost the controller memory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]

use autopilot_testkit::stage::Stage;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const MEMORY_KB_MAX: u64 = 30 * 1024;

/// Peak memory of a controller whose builder runs this line before it answers.
fn peak_kb(before_the_answer: &str) -> u64 {
    let temp = tempfile::tempdir().unwrap();
    let repo = temp.path().join("repo");
    fs::create_dir_all(repo.join(".autopilot")).unwrap();
    let agent = format!(
        "#!/bin/sh\ncat > /dev/null\ncase $AUTOPILOT_STEP in\n\
         build) {before_the_answer}\necho more > more.txt\n\
         echo '{{\"changed_files\": [\"more.txt\"], \"notes\": \"done\"}}' ;;\n\
         review) echo '{{\"verdict\": \"APPROVE\", \"summary\": \"good\", \"issues\": []}}' ;;\n\
         *) echo '1. look at more.txt' ;;\nesac\n"
    );
    fs::write(repo.join("agent.sh"), agent).unwrap();
    fs::write(repo.join("a.txt"), "a\n").unwrap();
    fs::write(
        repo.join("task.md"),
        "# Task: More\n\nGoal:\n- more\n\nAcceptance Criteria:\n- there is more\n",
    )
    .unwrap();
    fs::write(
        repo.join(".autopilot/config.yml"),
        "commands: { tests: \"test -f a.txt\" }\n\
         builder: { mode: command, command: \"sh agent.sh\" }\n\
         reviewer: { mode: command, command: \"sh agent.sh\" }\n\
         logging: { output_bytes_max: 1000000 }\n",
    )
    .unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["add", "a.txt", "agent.sh"]);
    git(&repo, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "a"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_autopilot"))
        .args(["run", "task.md", "--quiet"])
        .current_dir(&repo)
        .env("AUTOPILOT_STATE_DIR", temp.path().join("state"))
        .env("HOME", temp.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water_kb(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    let logs = fs::read_dir(repo.join(".autopilot/logs")).unwrap();
    let largest = logs.map(|entry| entry.unwrap().metadata().unwrap().len()).max().unwrap();
    assert!(largest < 1_100_000, "a log has {largest} bytes");
    peak
}

fn high_water_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn git(dir: &Path, args: &[&str]) {
    assert!(Command::new("git").current_dir(dir).args(args).status().unwrap().success());
}

#[test]
fn an_agent_that_asks_and_never_reads_is_ended_and_the_limit_named() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let asks = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Read","input":{}}}"#;
    let script = format!(
        "#!/bin/sh\nread -r asked\n\
         echo '{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}}'\n\
         yes '{asks}' | head -n 20000\nsleep 60\n"
    );
    stage.write_program("../claude", &script);
    stage.write(
        ".autopilot/config.yml",
        "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
         builder: { mode: claude_code_cli, executable: ../claude }\n\
         reviewer: { mode: script, script: agents.yml }\n",
    );
    let ended = stage.run_task().expect(10);
    ended.says(&["sent more requests than it read answers to: the limit is 4096 at once"]);
    assert!(stage.survivors().is_empty());
}

#[test]
fn two_gigabytes_in_one_line_cost_less_than_thirty_megabytes() {
    let quiet = peak_kb("true");
    let loud = peak_kb("head -c 2147483648 /dev/zero | tr '\\0' x\necho");
    assert!(quiet > 0 && loud > 0);
    assert!(loud < quiet + MEMORY_KB_MAX, "{quiet} kB without the flood, {loud} kB with it");
}

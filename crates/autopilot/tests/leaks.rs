//! The value of a known secret in a change: it goes back to the builder as a finding, the person and
//! the reviewer are told, and nothing with it leaves Autopilot's own repository. The real binary, real
//! git, scripted agents.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, done, step, workflow};
use autopilot_testkit::stage::{APPROVES, Ended, Stage, files, files_with, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const KEY: &str = "cnry-5up3r-s3cr3t/value+91x";
const ALLOWED: &str = "# Task: Say done\n\nGoal:\n- app.txt says done.\n\n\
Acceptance Criteria:\n- app.txt has a line `done`\n";

/// A stage whose builder is given a key, and may change any file.
fn stage(more: &str) -> Stage {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.set("SERVICE_API_KEY", KEY);
    stage.write("tasks/say-done.md", ALLOWED);
    configure(&stage, "env_pass: [SERVICE_API_KEY]", more);
    stage
}

fn configure(stage: &Stage, builder: &str, more: &str) {
    stage.config(&format!("commands: {{ tests: sh test.sh }}\n{more}"));
    let config = stage.read(".autopilot/config.yml");
    let given = format!("builder: {{ mode: script, {builder},");
    stage.write(".autopilot/config.yml", &config.replace("builder: { mode: script,", &given));
}

/// A step of the builder that runs a command and says that it is done.
fn does(step: &str, command: &str) -> String {
    let command = Value::from(command);
    format!(
        "\n- step: {step}\n  do: [{{ run: {command} }}, {{ answer: {{ changed_files: [app.txt], notes: x }} }}]\n"
    )
}

const MENDS: &str = "git checkout -q . && git clean -fdq; printf 'start\\ndone\\n' > app.txt";

/// Everything that a repository holds, whatever reaches it, and the names of its refs.
fn holds(git_dir: &Path) -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("--git-dir").arg(git_dir).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let everything = ["cat-file", "--batch", "--batch-all-objects", "--buffer"];
    git(&everything) + &git(&["for-each-ref"])
}

/// Neither the user's repository nor what was said, kept or shown holds the value.
#[track_caller]
fn nothing_left(stage: &Stage, ended: &Ended, value: &str) {
    assert!(!holds(&stage.path(".git")).contains(value), "the user's repository holds it");
    assert!(!ended.said().contains(value), "{}", ended.said());
    let planted = [stage.path("agents.yml"), stage.path(".autopilot/config.yml")];
    let mut kept = files_with(&stage.path(".autopilot"), value);
    kept.retain(|path| !planted.contains(path));
    assert!(kept.is_empty(), "{kept:?}");
}

#[track_caller]
fn refuses(stage: &Stage, told: &[&str]) -> Ended {
    let ended = stage.run_task().expect(11);
    assert_eq!(stage.git(&["for-each-ref", "refs/heads/autopilot"]), "", "nothing was published");
    let shown = stage.run(&["show"]).expect(0).out + &stage.texts_of("STATUS.md");
    for text in told {
        assert!(shown.contains(text), "`{text}` is not in {shown}");
    }
    ended
}

#[test]
fn a_key_in_a_change_is_a_finding_to_repair_and_a_repaired_change_is_merged() {
    let stage = stage("");
    let leaks = does("build", "printf 'done\\nkey=%s\\n' \"$SERVICE_API_KEY\" >> app.txt");
    stage.agents(&[&leaks, &does("fix", MENDS), APPROVES]);
    let ended = stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "{}", ended.said());
    let prompts = stage.texts_of("-fix/");
    let finding = "app.txt:3: this line holds the value of the known secret `SERVICE_API_KEY`";
    assert!(prompts.contains(finding), "{prompts}");
    let review = stage.texts_of("-review/");
    assert!(review.contains("+key=[redacted]"), "{review}");
    assert!(review.contains(finding) && review.contains("can't be merged"), "{review}");
    nothing_left(&stage, &ended, KEY);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\ndone");
}

#[test]
fn a_key_is_found_however_it_is_written_and_wherever_it_is() {
    let known = "the known secret `SERVICE_API_KEY`";
    let in_base64 = "printf %s \"u:$SERVICE_API_KEY\" | base64 -w0 > more.txt";
    let in_hex = "printf %s \"$SERVICE_API_KEY\" | od -An -v -tx1 | tr -d ' \\n' > more.txt";
    let in_two = "printf 'x = \"%s\" + \\\\\\n  \"%s\"\\n' cnry-5up3r-s3 cr3t/value+91x > more.txt";
    let encoded = "echo cnry-5up3r-s3cr3t%2Fvalue%2B91x > more.txt";
    let wrapped = "printf %s \"$SERVICE_API_KEY\" | base64 -w12 > more.txt";
    let in_binary = "printf 'a\\0b\\n\\0%s\\0' \"$SERVICE_API_KEY\" > more.bin";
    let in_link = "ln -s \"$SERVICE_API_KEY\" link";
    let in_name = "mkdir -p \"$(dirname \"$SERVICE_API_KEY\")\" && echo x > \"$SERVICE_API_KEY\"";
    for (command, place, form) in [
        (in_base64, "more.txt:1: this line", ", in base64"),
        (in_hex, "more.txt:1: this line", ", in hexadecimal"),
        (in_two, "more.txt:1: this line", ", in pieces"),
        (encoded, "more.txt:1: this line", ", URL-encoded"),
        (wrapped, "more.txt:1: this line", ", in pieces"),
        (in_binary, "more.bin:2: this line", ""),
        (in_link, "link:1: this line", ""),
        (in_name, "the name of this file", ""),
    ] {
        let stage = stage("loop: { max_iterations: 1 }\n");
        let works = format!("echo done >> app.txt; {command}");
        stage.agents(&[&does("build", &works), APPROVES]);
        let ended = refuses(&stage, &[place, &format!("{known}{form}")]);
        nothing_left(&stage, &ended, KEY);
    }
}

#[test]
fn what_an_agent_committed_and_took_back_stays_in_the_hub() {
    let stage = stage("");
    let remote = stage.folder().join("remote.git");
    stage.git(&["init", "-q", "--bare", &text(&remote)]);
    stage.git(&["remote", "add", "origin", &text(&remote)]);
    let commits = "git config user.name a; git config user.email a@b; \
        echo $SERVICE_API_KEY > key.txt; git add key.txt; git commit -qm \"$SERVICE_API_KEY\"; \
        git rm -q key.txt; echo done >> app.txt; git commit -qam clean";
    stage.agents(&[&does("build", commits), APPROVES]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--push"]).expect(0);
    nothing_left(&stage, &ended, KEY);
    assert!(!holds(&remote).contains(KEY), "the remote holds it");
    assert!(holds(&remote).contains("Say done"), "the work itself was pushed");
}

#[test]
fn work_with_a_key_is_not_recovered_nor_printed_and_can_be_looked_at() {
    let stage = stage("loop: { max_iterations: 1 }\n");
    let leaks = "echo done >> app.txt; echo $SERVICE_API_KEY > key.txt";
    stage.agents(&[&does("build", leaks), APPROVES]);
    stage.run_task().expect(11);
    let pieces = stage.run(&["recover", "--json"]).expect(0).out;
    let pieces: Value = serde_json::from_str(&pieces).unwrap();
    let id = pieces[0]["id"].as_str().unwrap();
    let refused = stage.run(&["recover", id]).expect(10);
    let refused = refused.says(&["key.txt:1:", "`SERVICE_API_KEY`", "git --git-dir="]);
    nothing_left(&stage, &refused, KEY);
    assert_eq!(stage.git(&["for-each-ref", "refs/heads/autopilot"]), "");
    let printed = stage.run(&["diff", "say-done"]).expect(10).says(&["the patch holds"]);
    nothing_left(&stage, &printed, KEY);
}

#[test]
fn an_earlier_round_with_a_key_is_not_recovered_with_a_later_one() {
    let stage = stage("loop: { max_iterations: 2 }\n");
    let leaks = "echo done >> app.txt; echo $SERVICE_API_KEY > key.txt";
    let fixes = "rm key.txt; echo broken >> app.txt";
    stage.agents(&[&does("build", leaks), &does("fix", fixes), APPROVES]);
    stage.run_task().expect(11);
    let pieces = stage.run(&["recover", "--json"]).expect(0).out;
    let pieces: Value = serde_json::from_str(&pieces).unwrap();
    assert_eq!(pieces.as_array().unwrap().len(), 2, "{pieces}");
    for piece in pieces.as_array().unwrap() {
        let refused = stage.run(&["recover", piece["id"].as_str().unwrap()]).expect(10);
        nothing_left(&stage, &refused, KEY);
    }
}

#[test]
fn a_key_in_the_title_of_a_task_is_not_in_the_message_of_its_commit() {
    let stage = stage("");
    stage.write("tasks/say-done.md", &ALLOWED.replace("Say done", &format!("Use {KEY}")));
    let ended = stage.run_task().expect(0);
    assert!(!holds(&stage.path(".git")).contains(KEY), "{}", ended.said());
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert!(stage.git(&["log", &format!("main..{branch}")]).contains("Use [redacted]"));
}

#[test]
fn a_step_of_a_goal_with_a_key_is_not_merged() {
    let stage = stage("");
    let answers =
        |step: &str, answer: &Value| format!("\n- step: {step}\n  do: [{{ answer: {answer} }}]\n");
    let leaks = Value::from("echo done >> app.txt; echo $SERVICE_API_KEY > key.txt");
    let works = format!("\n- step: step\n  do: [{{ run: {leaks} }}, {{ answer: Done }}]\n");
    stage.agents(&[
        &answers("workflow", &workflow("w", &[step("one", &[])])),
        &works,
        &answers("completion", &done("it is done")),
    ]);
    // A failed step fails nothing by itself: the reviewer and the tests judge what is there.
    let ended = stage.run(&GOAL).expect(0);
    assert!(!ended.said().contains("git merge"), "there is nothing to merge: {}", ended.said());
    nothing_left(&stage, &ended, KEY);
    let told = stage.run(&["show"]).expect(0).out + &stage.texts_of("STATUS.md");
    assert!(told.contains("key.txt:1: this line holds the value of the known secret"), "{told}");
}

#[test]
fn a_webhook_a_value_of_the_configuration_and_the_environment_of_notices_are_known() {
    let hook = "http://127.0.0.1:9/services/T0AB/x1y2z3a4b5c6d7e8f9";
    let notify = format!("notify: {{ webhook: '{hook}', command: 'true', desktop: false }}\n");
    for (value, name) in [
        (hook, "notify.webhook"),
        ("x1y2z3a4b5c6d7e8f9", "notify.webhook"),
        ("zq7-Rv2x-canary", "DEPLOY"),
        ("c4nn3lWithoutAName99", "PLAIN_CHANNEL"),
        ("pg-pass-77x", "the password in DATABASE_URL"),
    ] {
        let mut stage = stage("");
        stage.set("PLAIN_CHANNEL", "c4nn3lWithoutAName99");
        stage.set("DATABASE_URL", "postgres://app:pg-pass-77x@db/app");
        let more = format!("{notify}loop: {{ max_iterations: 1 }}\n");
        configure(&stage, "env: { DEPLOY: zq7-Rv2x-canary }", &more);
        stage.agents(&[
            &does("build", &format!("echo done >> app.txt; echo {value} > k")),
            APPROVES,
        ]);
        refuses(&stage, &["k:1: this line holds", &format!("`{name}`")]);
        assert!(!holds(&stage.path(".git")).contains(value), "{name}");
    }
}

#[test]
fn honest_work_with_settings_words_and_values_of_the_base_is_merged_at_once() {
    let mut stage = stage("");
    stage.write("compose.yml", "password: pg-dev-pass-77x\n");
    stage.commit("a password for development, known to everybody");
    stage.set("DB_PASSWORD", "pg-dev-pass-77x");
    stage.set("AUTH_MODE_KEY", "production");
    stage.set("API_PORT_KEY", "80808080");
    let env =
        "env: { RUST_LOG: debug, MODEL: gpt-5-codex, NODE_OPTIONS: --max-old-space-size=4096 }";
    configure(&stage, env, "");
    let writes = "echo done >> app.txt; echo 'debug production 80808080 gpt-5-codex' > a.txt; \
        echo '--max-old-space-size=4096' >> a.txt; sed 's/^/x /' compose.yml > b.yml; \
        echo more >> compose.yml";
    stage.agents(&[&does("build", writes), APPROVES]);
    let ended = stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 1, "{}", ended.said());
}

#[test]
fn names_addresses_and_placeholders_under_secret_names_block_no_honest_work() {
    let mut stage = stage("");
    let honest = [
        ("KMS_KEY", "alias/aws/s3"),
        ("API_KEY", "http://localhost:3000"),
        ("SECRET_NAME", "my-app/prod"),
        ("FEATURE_TOKEN", "changeme"),
        ("TLS_KEY", "/etc/ssl/private/server-2026.pem"),
    ];
    honest.iter().for_each(|(name, value)| stage.set(name, value));
    let written: Vec<&str> = honest.iter().map(|(_, value)| *value).collect();
    let writes = format!("echo done >> app.txt; echo '{}' > a.txt", written.join("\n"));
    stage.agents(&[&does("build", &writes), APPROVES]);
    let ended = stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 1, "{}", ended.said());
}

#[test]
fn a_value_that_is_no_secret_is_named_with_the_way_past_it_and_the_run_goes_on() {
    let mut stage = stage("loop: { max_iterations: 1 }\n");
    let digest = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    stage.set("CACHE_KEY", digest);
    let writes = format!("grep -q done app.txt || echo done >> app.txt; echo {digest} > cache.txt");
    stage.agents(&[&does("build", &writes), &does("fix", &writes), APPROVES]);
    let way = "a person can set `secrets.ignore: [CACHE_KEY]` and retry";
    refuses(&stage, &["cache.txt:1: this line holds the value of the known secret", way]);
    let config = stage.read(".autopilot/config.yml");
    stage.write(".autopilot/config.yml", &format!("{config}secrets: {{ ignore: [CACHE_KEY] }}\n"));
    let ended = stage.run(&["retry", "say-done"]).expect(0);
    ended.says(&["secrets.ignore is [CACHE_KEY] from here on", "DONE"]);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["show", &format!("{branch}:cache.txt")]), digest);
}

#[test]
fn what_looks_like_a_key_is_hidden_told_and_merged() {
    // Put together here, so that no scanner takes this file for a leak.
    let token = format!("gh{}_{}", "p", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let stage = stage("");
    let writes = format!("echo {token}; printf 'done\\ntoken={token}\\n' >> app.txt");
    stage.agents(&[&does("build", &writes), APPROVES]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--verbose"]).expect(0);
    let told = "app.txt:3: this line looks as if it holds a GitHub token";
    let ended = ended.says(&["Look at this before you merge:\n", told]);
    assert!(!ended.said().contains(&token), "{}", ended.said());
    let shown = stage.run(&["show"]).expect(0).says(&[told]).out + &stage.run(&["status"]).out;
    assert!(!shown.contains(&token), "{shown}");
    assert!(stage.texts_of("STATUS.md").contains(told));
    assert!(stage.texts_of("-review/").contains("looks as if it holds a GitHub token"));
    assert!(files_with(&stage.path(".autopilot"), &token).is_empty(), "logs, prompts and views");
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert!(stage.git(&["show", &format!("{branch}:app.txt")]).contains(&token), "not blocked");
}

#[test]
fn what_a_notice_says_when_it_fails_is_redacted() {
    let mut stage = stage("");
    stage.set("PLAIN_CHANNEL", "c4nn3lWithoutAName99");
    let command = "notify: { command: 'sh -c \"echo channel $PLAIN_CHANNEL >&2; exit 3\"', desktop: false }\n";
    configure(&stage, "env_pass: [SERVICE_API_KEY]", command);
    let ended = stage.run_task().expect(0).says(&["exit code 3, channel [redacted]"]);
    assert!(!ended.said().contains("c4nn3lWithoutAName99"), "{}", ended.said());
    let hook = "webhook: 'htp://h.example/services/x1y2z3a4b5c6d7e8f9'";
    configure(
        &stage,
        "env_pass: [SERVICE_API_KEY]",
        &format!("notify: {{ {hook}, desktop: false }}\n"),
    );
    let ended = stage.run(&["run", "tasks/say-done.md", "--fresh"]);
    assert!(!ended.said().contains("x1y2z3a4b5c6d7e8f9"), "{}", ended.said());
}

#[test]
fn a_continued_session_with_a_key_is_not_published() {
    let stage = stage("");
    let more = does("build", "echo done >> app.txt; echo $SERVICE_API_KEY > key.txt");
    let first = "\n- step: build\n  attempt: 1\n  do: [{ append: { app.txt: \"done\\n\" } }, { answer: { changed_files: [app.txt], notes: x } }]\n";
    stage.agents(&[first, APPROVES]);
    stage.run_task().expect(0);
    stage.agents(&[&more, APPROVES]);
    let told = stage.run(&["sessions", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let build = told["sessions"].as_array().unwrap().iter().find(|one| one["step"] == "build");
    let session = build.unwrap()["session"].as_str().unwrap();
    let ended = stage.run(&["resume", session, "--prompt", "Once more"]);
    let ended = ended.says(&["was not published", "key.txt:1:", "`SERVICE_API_KEY`"]);
    assert_eq!(stage.git(&["branch", "--list", "autopilot/session-*"]), "");
    nothing_left(&stage, &ended, KEY);
}

#[test]
fn a_key_in_two_tasks_is_found_when_the_second_adds_its_half() {
    let stage = stage("loop: { max_iterations: 1 }\n");
    let (one, two) = KEY.split_at(13);
    stage.write("key.txt", "a\n\n\n\n\n");
    stage.commit("room for a key");
    let task = |name: &str| ALLOWED.replace("Say done", name);
    for (name, title) in [("q/1-one", "One"), ("q/2-two", "Two")] {
        stage.write(&format!("{name}.md"), &task(title));
    }
    let of = |task: &str, command: String| {
        does("build", &command).replacen("  do:", &format!("  task: {task}\n  do:"), 1)
    };
    let first = of("1-one", format!("echo done >> app.txt; echo {one} >> key.txt"));
    let second = of("2-two", format!("echo done >> app.txt; echo {two} >> key.txt"));
    stage.agents(&[&first, &second, APPROVES]);
    let ended = stage.run(&["run", "--queue", "q/"]);
    assert_ne!(ended.code, 0, "{}", ended.said());
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    let there = stage.git(&["show", &format!("{branch}:key.txt")]);
    assert!(there.contains(one) && !there.contains(two), "{there}");
    let told = stage.texts_of("STATUS.md") + &ended.said();
    assert!(told.contains("in pieces"), "{told}");
}

#[test]
fn a_key_that_only_a_merge_puts_together_is_found_before_the_branch_moves() {
    let stage = stage("loop: { max_iterations: 1 }\n");
    stage.write("key.txt", &"-\n".repeat(12));
    stage.commit("room for a key");
    let (one, two) = KEY.split_at(13);
    let writes = format!(
        "echo done >> app.txt; sed -i '1s#.*#{one}#' key.txt; while [ ! -e $HOME/go ]; do sleep 0.02; done"
    );
    stage.agents(&[&does("build", &writes), APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    stage.wait_until("it has a branch", |stage| stage.state_json()["branch_name"].is_string());
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    stage.git(&["checkout", "-q", "-b", "theirs"]);
    stage.write("key.txt", &format!("{}{two}\n", "-\n".repeat(11)));
    stage.git(&["commit", "-q", "-am", "Theirs"]);
    stage.git(&["checkout", "-q", "main"]);
    let head = files(&stage.state()).into_iter().find(|path| path.ends_with("hub.git/HEAD"));
    let hub = head.unwrap().parent().unwrap().to_owned();
    let spec = format!("theirs:refs/heads/{branch}");
    stage.git_in(&hub, &["fetch", "-q", &text(stage.root()), &spec]);
    std::fs::write(stage.folder().join("home/go"), "").unwrap();
    let ended = run.wait().expect(11);
    let tip = stage.git_in(&hub, &["rev-parse", &branch]);
    assert_eq!(tip, stage.git(&["rev-parse", "theirs"]), "the branch did not move");
    let told = stage.texts_of("STATUS.md") + &stage.run(&["show"]).expect(0).out;
    assert!(told.contains("`SERVICE_API_KEY`, in pieces"), "{told}");
    nothing_left(&stage, &ended, KEY);
}

//! Skills by the real binary: which there are, what a task that asks for one does to the prompt of
//! each kind of agent, and what becomes of an account that differs from what was seen.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::model::{Call, Script, Server, Turn};
use autopilot_testkit::plan::{self, plan, says, task, task_with};
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, TASK};
use autopilot_testkit::{agents, netns};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const TESTS: &str = "commands: { tests: sh test.sh }\n";
const REVIEWER: &str = "reviewer: { mode: script, script: agents.yml }\n";

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name} well\n---\n\nBODY OF {name}\n")
}

fn add(stage: &Stage, folder: &str, name: &str) {
    stage.write(&format!("{folder}/skills/{name}/SKILL.md"), &skill(name));
    stage.commit(&format!("Skill {name}"));
}

fn add_at_home(stage: &Stage, folder: &str, name: &str) {
    let dir = stage.folder().join("home").join(folder).join("skills").join(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("SKILL.md"), skill(name)).unwrap();
}

/// The one task, with a line more in its goal.
fn asks(stage: &Stage, line: &str) {
    let text = TASK.replace("- app.txt says done.\n", &format!("- app.txt says done.\n- {line}\n"));
    stage.write("tasks/say-done.md", &text);
}

/// The first question of a step, by the end of its directory's name.
#[track_caller]
fn prompt(stage: &Stage, label: &str) -> String {
    let end = format!("{label}/prompt.txt");
    let mut files = stage.views("artifacts/");
    files.retain(|path| path.to_string_lossy().ends_with(&end));
    files.sort();
    fs::read_to_string(files.first().unwrap_or_else(|| panic!("no prompt of {label}"))).unwrap()
}

fn config_of(stage: &Stage, builder: &str) {
    let text = format!("repo: {{ base_branch: main }}\nbuilder: {builder}\n{REVIEWER}{TESTS}");
    stage.write(".autopilot/config.yml", &text);
}

/// A rule for the builder with this summary.
fn summary(more: &Value) -> String {
    let mut answer = json!({
        "changed_files": ["app.txt"], "tests_ran": true, "tests_passed": true, "notes": "wrote it",
    });
    answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!(
        "\n- step: [build, fix]\n  do: [{{ append: {{ app.txt: \"done\\n\" }} }}, {{ answer: {answer} }}]\n"
    )
}

#[test]
fn skills_are_listed_with_their_place_their_agents_and_their_faults() {
    let stage = Stage::new(BINARY);
    add(&stage, ".claude", "tdd");
    add(&stage, ".agents", "pdf-forms");
    stage.write("kept/linked/SKILL.md", &skill("linked"));
    symlink("../../kept/linked", stage.path(".claude/skills/linked")).unwrap();
    stage.write(".codex/skills/bad/SKILL.md", "---\nname: bad\n");
    stage.commit("more");
    stage.write(".claude/skills/draft/SKILL.md", &skill("draft"));
    add_at_home(&stage, ".codex", "mine");
    stage.run(&["skills"]).expect(0).says(&[
        "tdd",
        "Does tdd well",
        ".claude/skills/tdd (found by claude_code_cli; given to others as text)",
        "not usable: .codex/skills/bad: the front matter is not closed",
    ]);
    let told: Value =
        serde_json::from_str(&stage.run(&["skills", "--json"]).expect(0).out).unwrap();
    let of =
        |name: &str| told["skills"].as_array().unwrap().iter().find(|s| s["name"] == name).cloned();
    assert_eq!(of("tdd").unwrap()["agents"], json!(["claude_code_cli"]));
    assert_eq!(of("linked").unwrap()["dir"], ".claude/skills/linked");
    assert_eq!(of("pdf-forms").unwrap()["agents"], json!(["codex_cli"]));
    let mine = of("mine").unwrap();
    assert_eq!(mine["owner"], "user");
    assert!(mine["dir"].as_str().unwrap().ends_with("home/.codex/skills/mine"), "{mine}");
    assert_eq!(of("draft"), None, "an agent sees what is committed");
    assert_eq!(told["faults"][0]["usable"], false);
    assert_eq!(told["looked_in"].as_array().unwrap().len(), 6);
}

#[test]
fn a_skill_nobody_has_is_refused_before_anything_is_begun() {
    let stage = Stage::new(BINARY);
    add(&stage, ".claude", "changelog");
    asks(&stage, "Use the changelgo skill, and using the draft skill.");
    stage.write(".claude/skills/draft/SKILL.md", &skill("draft"));
    let before = stage.digest();
    stage.run_task().expect(78).says(&[
        "task `say-done` asks for a skill: there is no skill `changelgo`; did you mean `changelog`?",
        "`.claude/skills/draft/SKILL.md` is not committed",
        "looked in .claude/skills of commit",
        "home/.claude/skills",
        "skills: []",
    ]);
    assert_eq!(stage.digest(), before);
    assert!(!stage.has(".autopilot/logs") && !stage.has(".autopilot/state.json"));
    // Somebody who means something else says so, and is believed.
    let text = stage.read("tasks/say-done.md");
    stage.write("tasks/say-done.md", &format!("---\nskills: []\n---\n{text}"));
    stage.run_task().expect(0);
    assert!(!prompt(&stage, "-build").contains("## Skill `"));
}

#[test]
fn whoever_may_take_over_is_looked_up_in_its_own_home() {
    let stage = Stage::new(BINARY);
    add_at_home(&stage, ".claude", "mine");
    asks(&stage, "Use the mine skill.");
    let other = stage.folder().join("other");
    let of = |place: &Path| {
        format!(
            "{{ mode: script, script: agents.yml, fallback: [{{ script: agents.yml, env: {{ HOME: '{}' }} }}] }}",
            place.display()
        )
    };
    config_of(&stage, &of(&other));
    let refused = stage.run_task().expect(78);
    refused.says(&["mine", other.join(".claude/skills").to_str().unwrap()]);
    config_of(&stage, &of(&stage.folder().join("home")));
    stage.run_task().expect(0);
}

#[test]
fn an_agent_without_skills_of_its_own_is_given_the_text_and_told_where_it_is() {
    let stage = Stage::new(BINARY);
    add(&stage, ".claude", "tdd");
    add_at_home(&stage, ".agents", "mine");
    asks(&stage, "Use the tdd and mine skills.");
    stage.run_task().expect(0);
    let text = prompt(&stage, "-build");
    let home = stage.folder().join("home/.agents/skills/mine");
    for part in [
        "## Skill `tdd`",
        "`.claude/skills/tdd`",
        "```markdown\nBODY OF tdd\n```",
        home.to_str().unwrap(),
        "BODY OF mine",
        "You implement one task",
        "## Available skills\n\n- `tdd` — Does tdd well (read `.claude/skills/tdd/SKILL.md`)",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    // The reviewer learns that nobody spoke of them.
    let review = prompt(&stage, "-review");
    let line = "the task asks for the skill `tdd`, but the builder does not report it";
    assert!(review.contains(line), "{review}");
}

#[test]
fn without_detection_nothing_is_listed_and_what_is_asked_for_is_still_given() {
    let stage = Stage::new(BINARY);
    add(&stage, ".agents", "tdd");
    add(&stage, ".agents", "other");
    let text = stage.read("tasks/say-done.md");
    stage.write("tasks/say-done.md", &format!("---\nskills: [tdd]\n---\n{text}"));
    config_of(
        &stage,
        "{ mode: script, script: agents.yml, skill_policy: { detect_skills: false } }",
    );
    stage.run_task().expect(0);
    let text = prompt(&stage, "-build");
    assert!(text.contains("BODY OF tdd") && !text.contains("Available skills"), "{text}");
    assert!(!text.contains("Does other well"), "{text}");
}

/// Plays the first vendor's agent: hears the greeting and the question, edits, calls tools, answers.
const CLAUDE: &str = r#"#!/bin/sh
read -r hello; read -r question
say() { printf '%s\n' "$1"; }
call() { say "{\"type\":\"assistant\",\"session_id\":\"s1\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"$1\",\"name\":\"$2\",\"input\":$3}]}}"; }
say '{"type":"system","subtype":"init","session_id":"s1","mcp_servers":[]}'
say '{"type":"assistant","session_id":"s1","message":{"content":[{"type":"text","text":"I will use the skill pdf."}]}}'
call t1 Skill '{"skill":"pdf","args":"x"}'
call t2 Task '{"description":"d","prompt":"write tests"}'
call t3 Agent '{"description":"d","prompt":"write docs"}'
call t4 mcp__docs__search '{"query":"q"}'
echo done >> app.txt
say '{"type":"result","subtype":"success","is_error":false,"session_id":"s1","total_cost_usd":0.01,"usage":{"input_tokens":1,"output_tokens":1},"result":"{\"changed_files\":[\"app.txt\"],\"skills_used\":[\"tdd\",\"python\"],\"subagents_used\":[{\"name\":\"t\",\"purpose\":\"tests\",\"deliverable\":\"one test\"}],\"notes\":\"n\"}"}'
"#;

#[test]
fn claude_is_called_by_the_first_word_and_what_it_does_is_compared_with_what_it_says() {
    let stage = Stage::new(BINARY);
    stage.write_program("bin/claude", CLAUDE);
    add(&stage, ".claude", "tdd");
    add(&stage, ".claude", "pdf");
    asks(&stage, "Use the tdd skill.");
    let policy = "skill_policy: { use_mcp: false, max_subagents: 1 }";
    config_of(&stage, &format!("{{ mode: claude_code_cli, executable: bin/claude, {policy} }}"));
    stage
        .run_task()
        .expect(0)
        .says(&["used: skills pdf, python, tdd; MCP server docs; 2 sub-agents"]);
    let text = prompt(&stage, "-build");
    assert!(text.starts_with("/tdd You implement one task"), "{text}");
    assert!(!text.contains("BODY OF tdd"), "{text}");
    let against = [
        "MCP servers were used although use_mcp is off: docs",
        "sub-agents started: 2; the limit is 1",
        "the builder used the skill `pdf` but does not report it",
        "the builder reports the skill `python`, but its use was not observed",
        "the builder used the MCP server `docs` but does not report it",
        "sub-agents reported by the builder: 1; observed: 2",
    ];
    let (review, status) = (prompt(&stage, "-review"), stage.read(".autopilot/STATUS.md"));
    let shown = stage.run(&["show", "say-done"]).expect(0);
    for line in against {
        for told in [&review, &status, &shown.out] {
            assert!(told.contains(line), "`{line}` is not in:\n{told}");
        }
    }
    assert!(!review.contains("skill `tdd`"), "what we put there ourselves is seen:\n{review}");
}

#[test]
fn several_skills_of_claude_are_called_by_its_tool_after_the_first() {
    let stage = Stage::new(BINARY);
    stage.write_program("bin/claude", CLAUDE);
    add(&stage, ".claude", "tdd");
    add(&stage, ".claude", "pdf");
    add(&stage, ".codex", "theirs");
    asks(&stage, "Use the tdd, pdf and theirs skills.");
    config_of(&stage, "{ mode: claude_code_cli, executable: bin/claude }");
    stage.run_task().expect(0);
    let text = prompt(&stage, "-build");
    assert!(text.starts_with("/tdd Before anything else, call the Skill tool"), "{text}");
    assert!(
        text.contains("follow what it says: `pdf`.") && text.contains("BODY OF theirs"),
        "{text}"
    );
}

const CODEX: &str = r#"#!/bin/sh
cat > /dev/null
echo done >> app.txt
cat <<'END'
{"type":"thread.started","thread_id":"t1"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"i1","type":"mcp_tool_call","server":"db","tool":"query","arguments":{}}}
{"type":"item.completed","item":{"id":"i1","type":"mcp_tool_call","server":"db","tool":"query","status":"completed","result":{}}}
{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"{\"changed_files\":[\"app.txt\"],\"skills_used\":[\"tdd\"],\"skill_plan\":\"tdd\",\"notes\":\"n\"}"}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
END
"#;

#[test]
fn codex_is_called_by_a_dollar_and_given_what_it_does_not_find() {
    let stage = Stage::new(BINARY);
    stage.write_program("bin/codex", CODEX);
    add(&stage, ".agents", "tdd");
    add(&stage, ".claude", "theirs");
    asks(&stage, "Use the tdd and theirs skills.");
    config_of(&stage, "{ mode: codex_cli, executable: bin/codex }");
    stage.run_task().expect(0);
    let text = prompt(&stage, "-build");
    assert!(
        text.starts_with("Use these skills for the work below: $tdd\n\n## Skill `theirs`"),
        "{text}"
    );
    assert!(text.contains("BODY OF theirs") && !text.contains("BODY OF tdd"), "{text}");
    let review = prompt(&stage, "-review");
    assert!(review.contains("used the MCP server `db` but does not report it"), "{review}");
}

#[test]
fn what_was_used_and_gained_is_told_everywhere() {
    let stage = Stage::new(BINARY);
    add(&stage, ".agents", "tdd");
    let used = json!({
        "skills_used": ["tdd", "upscale"], "mcp_servers_used": ["docs"], "skill_plan": "tdd",
        "subagents_used": [{ "name": "tests", "purpose": "write tests", "deliverable": "a test" }],
        "upscale": [{ "gained": "pdf", "why": "to read forms" }],
    });
    stage.agents(&[&summary(&used), APPROVES]);
    let line = "skills tdd, upscale; MCP server docs; 1 sub-agent; gained pdf (to read forms)";
    stage.run_task().expect(0).says(&[&format!("used: {line}")]);
    stage.run(&["show", "say-done"]).expect(0).says(&[&format!("used: {line}")]);
    assert!(stage.read(".autopilot/STATUS.md").contains(&format!("| used | {line} |")));
    assert!(stage.read(".autopilot/RELEASE_NOTES_RUNNING.md").contains(&format!("; used {line}")));
    let task = stage.first_task();
    assert_eq!(task["used"]["skills"], json!(["tdd", "upscale"]));
    assert_eq!(task["used"]["gained"][0]["why"], "to read forms");
    assert_eq!(task["used"]["subagents"][0]["deliverable"], "a test");
    assert_eq!(task["notes"], json!([]), "nothing stands against it");
    let shown: Value =
        serde_json::from_str(&stage.run(&["show", "say-done", "--json"]).expect(0).out).unwrap();
    let built = shown["attempts"].as_array().unwrap().iter().find(|a| a["step"] == "build");
    assert_eq!(built.unwrap()["used"]["mcp_servers"], json!(["docs"]), "{shown:#}");
}

#[test]
fn a_broken_policy_is_shown_and_blocks_nothing() {
    let stage = Stage::new(BINARY);
    add(&stage, ".agents", "tdd");
    let used = json!({
        "skills_used": ["upscale"], "mcp_servers_used": ["docs"],
        "subagents_used": [{ "name": "a" }, { "name": "b", "purpose": "p", "deliverable": "d" }],
    });
    stage.agents(&[&summary(&used), APPROVES]);
    let policy = "{ use_mcp: false, allow_upscale: false, max_subagents: 1 }";
    config_of(&stage, &format!("{{ mode: script, script: agents.yml, skill_policy: {policy} }}"));
    stage.run_task().expect(0);
    let review = prompt(&stage, "-review");
    for line in [
        "MCP servers were used although use_mcp is off: docs",
        "sub-agents started: 2; the limit is 1",
        "the sub-agent `a` is reported without purpose and deliverable",
        "`upscale` was used although allow_upscale is off",
        "`upscale` was used, but the summary does not say what was gained and why",
        "the builder did not state which skills it would use before the first edit",
    ] {
        assert!(review.contains(line), "`{line}` is not in:\n{review}");
        assert!(stage.read(".autopilot/STATUS.md").contains(line), "{line}");
    }
    let text = prompt(&stage, "-build");
    for line in ["Do not use `upscale`.", "Do not use MCP servers.", "at most 1 sub-agent"] {
        assert!(text.contains(line), "`{line}` is not in:\n{text}");
    }
}

#[test]
fn a_plans_skills_go_to_the_tasks_they_are_meant_for_and_a_bad_hint_is_left_out() {
    let made = plan(&[
        task_with("one", &[], json!({ "suggested_claude_skills": ["tdd", "no-such-thing"] })),
        task("two", &[]),
        task_with("three", &[], json!({ "goal": "three.txt is there. Use the pdf skill." })),
    ]);
    let stage = plan::stage(BINARY, &made);
    for name in ["tdd", "pdf", "style"] {
        add(&stage, ".agents", name);
    }
    let text =
        plan::PLAN_MD.replace("leaves a file.", "leaves a file. Use the tdd and style skills.");
    stage.write("plan.md", &text);
    stage.agents(&[&says(&made), &plan::builds(&stage), APPROVES]);
    stage.run(&plan::RUN).expect(0).says(&["ignored: `no-such-thing` of one"]);
    let planner = prompt(&stage, "-plan");
    for part in
        ["## Available skills", "- `tdd` — Does tdd well", "it is meant for: `tdd`, `style`."]
    {
        assert!(planner.contains(part), "`{part}` is not in:\n{planner}");
    }
    let has = |task: &str, skill: &str| {
        prompt(&stage, &format!("-{task}-build")).contains(&format!("BODY OF {skill}"))
    };
    let all = ["tdd", "pdf", "style"];
    // `tdd` was given to one task; `style` to none, so it is everybody's.
    assert_eq!(all.map(|skill| has("one", skill)), [true, false, true]);
    assert_eq!(all.map(|skill| has("two", skill)), [false, false, true]);
    assert_eq!(all.map(|skill| has("three", skill)), [false, true, true]);
    assert!(!prompt(&stage, "-one-build").contains("no-such-thing"));
}

#[test]
fn a_plan_that_asks_for_a_skill_nobody_has_is_refused_made_or_given() {
    let made = plan(&[task_with("one", &[], json!({ "goal": "Use the nowhere skill." }))]);
    let stage = plan::stage(BINARY, &made);
    stage.write("plan.md", &plan::PLAN_MD.replace("a file.", "a file. Use the elsewhere skill."));
    stage
        .run(&plan::RUN)
        .expect(78)
        .says(&["the plan asks for a skill: there is no skill `elsewhere`"]);
    stage.write("given.json", &made.to_string());
    stage
        .run(&["run", "--from", "given.json"])
        .expect(78)
        .says(&["task `one` of the plan asks for a skill: there is no skill `nowhere`"]);
    // A planner's own words are no order of a person.
    stage.write("plan.md", plan::PLAN_MD);
    stage.run(&plan::RUN).expect(0).says(&["ignored: `nowhere` of one"]);
}

#[test]
fn a_dry_run_shows_the_prompt_as_it_would_be() {
    let stage = Stage::new(BINARY);
    add(&stage, ".agents", "tdd");
    asks(&stage, "Use the tdd skill.");
    stage.agents(&[BUILDS, APPROVES]);
    let told = stage.run(&["run", "tasks/say-done.md", "--dry-run"]).expect(0);
    let told = told.says(&["BODY OF tdd", "## Available skills"]);
    let shown = told.out.split("prompt of the first build:\n").nth(1).unwrap().to_owned();
    stage.run_task().expect(0);
    let sent = prompt(&stage, "say-done-build");
    assert!(shown.starts_with(sent.trim_end()), "{shown}\n---\n{sent}");
}

/// A model that does the one task and reports these skills.
fn model(before: &[Call], skills: &Value) -> Server {
    println!("in {}", netns::enter());
    let summary = json!({
        "changed_files": ["app.txt"], "skills_used": skills, "skill_plan": "as asked", "notes": "n",
    });
    let mut turns: Vec<Turn> = before.iter().cloned().map(Turn::call).collect();
    turns.push(Turn::call(Call::shell("echo done >> app.txt")));
    turns.push(Turn::say(&summary.to_string()));
    Server::start(Script::new().when("You implement one task", turns)).unwrap()
}

/// What the model was asked first for the task.
fn first_question(server: &Server) -> String {
    let asked = server.requests().into_iter().map(|request| request.body.to_string());
    asked.into_iter().find(|body| body.contains("You implement one task")).unwrap()
}

#[test]
fn the_real_claude_sends_the_text_of_a_skill_that_begins_its_prompt() {
    let mut stage = Stage::new(BINARY);
    let calls = [Call::tool("Skill", json!({ "skill": "pdf" }))];
    let server = model(&calls, &json!(["tdd", "pdf"]));
    for (name, value) in agents::claude_home(&stage.folder().join("home"), &server).unwrap() {
        stage.set(&name, &value);
    }
    add(&stage, ".claude", "tdd");
    add(&stage, ".claude", "pdf");
    asks(&stage, "Use the tdd skill.");
    let program = agents::claude();
    config_of(&stage, &format!("{{ mode: claude_code_cli, executable: {} }}", program.display()));
    stage.run_task().expect(0).says(&["used: skills pdf, tdd"]);
    let first = first_question(&server);
    assert!(first.contains("BODY OF tdd") && !first.contains("BODY OF pdf"), "{first}");
    let task = stage.first_task();
    assert_eq!(task["notes"], json!([]), "what it says is what was seen");
}

#[test]
fn the_real_codex_sends_the_text_of_a_skill_behind_a_dollar() {
    let mut stage = Stage::new(BINARY);
    let server = model(&[], &json!(["tdd"]));
    for (name, value) in agents::codex_home(&stage.folder().join("home"), &server).unwrap() {
        stage.set(&name, &value);
    }
    add(&stage, ".agents", "tdd");
    add(&stage, ".agents", "pdf");
    asks(&stage, "Use the tdd skill.");
    let program = agents::codex();
    config_of(&stage, &format!("{{ mode: codex_cli, executable: {} }}", program.display()));
    stage.run_task().expect(0).says(&["used: skill tdd"]);
    let first = first_question(&server);
    assert!(first.contains("BODY OF tdd") && !first.contains("BODY OF pdf"), "{first}");
}

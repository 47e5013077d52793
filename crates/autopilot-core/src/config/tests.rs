//! The text of a configuration goes in, settings or faults come out.

mod agent;
mod sandbox;
mod template;

use super::*;
use crate::detect::{Detected, Proposal};
use proptest::prelude::*;

const MINIMAL: &str = "commands: { tests: \"true\" }\n";

fn parsed(text: &str) -> Config {
    match Config::parse(text) {
        Ok((config, _)) => config,
        Err(faults) => panic!("{faults}"),
    }
}

/// The section is put beside a valid `commands`, so that only its own faults are seen.
fn faults(text: &str) -> String {
    Config::parse(&format!("{MINIMAL}{text}")).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let config = parsed(MINIMAL);
    assert_eq!(config.database, "sqlite");
    assert_eq!(
        (config.repo.base_branch.as_str(), config.repo.remote_name.as_str()),
        ("main", "origin")
    );
    assert_eq!(config.commands.lint, None);
    assert_eq!(config.orchestrator.max_workers, 3);
    assert!(config.orchestrator.serialize_overlapping);
    let plan = PlanConfig {
        max_tasks: 10_000,
        max_depth: 1_000,
        max_fan_out: 1_000,
        commands: false,
        task_uat: true,
    };
    assert_eq!(config.plan, plan);
    let rounds = &config.rounds;
    assert_eq!((rounds.max_iterations, rounds.diff_line_cap), (5, 800));
    assert_eq!((rounds.stuck_no_output_sec, rounds.stuck_waiting_sec), (120, 900));
    assert!(config.safety.forbid_todos && config.safety.deny_paths.is_empty());
    assert_eq!(config.builder.mode, Mode::ClaudeCodeCli);
    assert_eq!(config.builder.allowed_tools, ["Read", "Edit", "Bash"]);
    assert_eq!(config.builder.skill_policy.max_subagents, 4);
    assert_eq!((config.reviewer.mode, config.planner.mode), (Mode::CodexCli, Mode::CodexCli));
    assert_eq!(config.reviewer.schema_path.as_deref(), Some(".autopilot/review_schema.json"));
    assert_eq!(config.gates.review, ReviewGate::Required);
    assert_eq!(config.budget.max_wait_quota, Duration::from_secs(21_600));
    assert_eq!((config.budget.retries, config.budget.interruptions), (8, 20));
    assert_eq!(config.logging.redact_patterns.len(), 2);
    assert_eq!(config.github.pr_title_prefix, "[autopilot]");
}

#[test]
fn timeouts_and_retries_fall_back_as_documented() {
    let config = parsed(MINIMAL);
    for (step, seconds) in [
        (Step::Plan, 120),
        (Step::Workflow, 120),
        (Step::Build, 900),
        (Step::Fix, 900),
        (Step::WorkflowStep, 900),
        (Step::Validate, 600),
        (Step::Merge, 600),
        (Step::Review, 180),
        (Step::UatGenerate, 180),
        (Step::Completion, 180),
        (Step::Uat, 600),
        (Step::Push, 120),
        (Step::PullRequest, 120),
    ] {
        assert_eq!(config.timeout(step), Duration::from_secs(seconds), "{step}");
    }
    assert_eq!(
        [Step::Plan, Step::Build, Step::Fix, Step::Review, Step::Validate, Step::Push]
            .map(|step| config.retries(step)),
        [1, 1, 1, 1, 0, 2]
    );

    let config = parsed(&format!(
        "{MINIMAL}loop:\n  step_timeouts_sec: {{ build: 60, fix: 30, review: 20 }}\n  retries: {{ build: 0 }}\nreviewer: {{ timeout_sec: 77 }}\n"
    ));
    let seconds = |step| config.timeout(step).as_secs();
    assert_eq!([Step::Build, Step::Fix, Step::WorkflowStep].map(seconds), [60, 30, 60]);
    assert_eq!([Step::Review, Step::Completion].map(seconds), [20, 77]);
    assert_eq!(config.retries(Step::Fix), 0);
}

#[test]
fn what_a_merge_runs_is_configured_as_integration() {
    let text = format!("{MINIMAL}loop: {{ step_timeouts_sec: {{ integration: 42 }} }}\n");
    assert_eq!(parsed(&text).timeout(Step::Merge), Duration::from_secs(42));
    let text = format!("{MINIMAL}loop: {{ step_timeouts_sec: {{ validate: 43 }} }}\n");
    assert_eq!(parsed(&text).timeout(Step::Merge), Duration::from_secs(43));
}

#[test]
fn limits_of_planned_steps_are_accepted_and_change_nothing() {
    for word in crate::step::RESERVED_WORDS {
        let text = format!("{MINIMAL}loop: {{ step_timeouts_sec: {{ {word}: 7 }} }}\n");
        let config = parsed(&text);
        assert_eq!(config.rounds.step_timeouts_sec[word], 7);
        for step in Step::ALL {
            assert_eq!(config.timeout(step), parsed(MINIMAL).timeout(step), "{word}: {step}");
        }
    }
}

#[test]
fn a_step_at_which_nothing_runs_has_no_limits_to_set() {
    let text = "loop:\n  retries: { approve_plan: 3 }\n";
    assert!(faults(text).contains("unknown key `approve_plan` in `loop.retries`"));
}

#[test]
fn every_step_has_a_timeout() {
    let config = parsed(MINIMAL);
    assert!(Step::ALL.into_iter().all(|step| config.timeout(step) >= Duration::from_secs(120)));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of texts")]
fn faults_as_a_person_reads_them() {
    for (text, said) in [
        (
            "repo:\n  base_brnch: dev\n",
            "line 3, column 3: unknown key `base_brnch` in `repo`; did you mean `base_branch`?",
        ),
        (
            "orchestrater: {}\n",
            "line 2, column 1: unknown key `orchestrater`; did you mean `orchestrator`?",
        ),
        (
            "repo: { colour: blue }\n",
            "line 2, column 9: unknown key `colour` in `repo`; known: base_branch, remote_name",
        ),
        (
            "orchestrator: { max_workers: 0 }\n",
            "line 2, column 30: `orchestrator.max_workers` is `0`; write a whole number from 1 to 256",
        ),
        (
            "loop:\n  max_iterations: -1\n",
            "line 3, column 19: `loop.max_iterations` is `-1`; write a whole number from 1 to 100",
        ),
        (
            "orchestrator:\n  serialise_overlapping: true\n",
            "line 3, column 3: unknown key `serialise_overlapping` in `orchestrator`; did you mean `serialize_overlapping`?",
        ),
        (
            "plan: { max_task: 5 }\n",
            "line 2, column 9: unknown key `max_task` in `plan`; did you mean `max_tasks`?",
        ),
        (
            "plan:\n  max_depth: 0\n",
            "line 3, column 14: `plan.max_depth` is `0`; write a whole number from 1 to 1000000",
        ),
        (
            "plan: { commands: maybe }\n",
            "line 2, column 19: `plan.commands` is `maybe`; write `true` or `false`",
        ),
        ("loop: 5\n", "line 2, column 7: `loop` is `5`; write `key: value` lines"),
        (
            "safety: { forbid_todos: yes }\n",
            "line 2, column 25: `safety.forbid_todos` is `yes`; write `true` or `false`",
        ),
        (
            "safety:\n  deny_paths:\n    - infra/\n    - ../up\n",
            "line 5, column 7: `safety.deny_paths`: path `../up` goes up with `..`; write it relative to the repository's root",
        ),
        (
            "safety: { deny_paths: infra }\n",
            "line 2, column 23: `safety.deny_paths` is `infra`; write a list, as in `[a, b]`",
        ),
        (
            "budget: { max_wall: 6 hours }\n",
            "line 2, column 21: `budget.max_wall`: `6 hours` is not a valid duration; use e.g. `90m` or `6h`",
        ),
        (
            "budget: { max_usd: -5 }\n",
            "line 2, column 20: `budget.max_usd` is `-5`; write an amount in dollars, as in `5` or `2.50`",
        ),
        (
            "builder: { mode: claude_cli }\n",
            "line 2, column 18: `builder.mode` is `claude_cli`; did you mean `claude_code_cli`? (one of claude_code_cli, codex_cli, acp, command, openai_api, script)",
        ),
        (
            "builder: { mode: command }\n",
            "line 2, column 18: `builder.mode: command` requires `builder.command`, as in `command: \"./my-agent.sh\"`",
        ),
        (
            "builder: { mode: command, command: \"a 'b\" }\n",
            "line 2, column 36: `builder.command` can't be split into words: a quote is not closed",
        ),
        (
            "logging:\n  redact_patterns:\n    - '(unclosed'\n",
            "line 4, column 7: `(unclosed` is not a valid regular expression: unclosed group",
        ),
        (
            "builder: { env_pass: [A-B] }\n",
            "line 2, column 23: `A-B` is not a valid environment variable name",
        ),
        (
            "database: mysql\n",
            "line 2, column 11: `database` is `mysql`; write `sqlite` or `postgres://…`",
        ),
        (
            "repo: { base_branch: --upload-pack=x }\n",
            "line 2, column 22: `repo.base_branch` is `--upload-pack=x`, which git does not accept",
        ),
        (
            "notify: { webhook: ftp://u:p@x/k3y }\n",
            "line 2, column 20: `notify.webhook` is `ftp://…@x/…`; write `https://…`",
        ),
        (
            "builder: { mode: openai_api, model: m }\n",
            "line 2, column 18: `builder.mode: openai_api` can't edit files; use it for planner and reviewer",
        ),
        (
            "builder:\n  fallback:\n    - mode: codex_cli\n    - mode: openai_api\n      model: m\n",
            "line 5, column 13: `builder.fallback.mode: openai_api` can't edit files; use it for planner and reviewer",
        ),
        (
            "builder: { fallback: [{ efort: x }] }\n",
            "line 2, column 25: unknown key `efort` in `builder.fallback`; did you mean `effort`?",
        ),
        (
            "builder: { fallback: [{ mode: acp }] }\n",
            "line 2, column 31: `builder.fallback.mode: acp` requires `builder.fallback.command`, as in `command: \"opencode acp\"`",
        ),
        (
            "reviewer: { mode: openai_api }\n",
            "line 2, column 19: `reviewer.mode: openai_api` requires `reviewer.model`, as in `model: \"gpt-5.5\"`",
        ),
        (
            "builder: { fallback: codex_cli }\n",
            "line 2, column 22: `builder.fallback` is `codex_cli`; write a list, as in `[{ … }]`",
        ),
        (
            "builder: { fallback: [codex_cli] }\n",
            "line 2, column 23: `builder.fallback` is `codex_cli`; write `key: value` lines",
        ),
        (
            "reviewer: { base_url: localhost }\n",
            "line 2, column 23: `reviewer.base_url` is `localhost`; write `https://…`",
        ),
        (
            "reviewer: { base_url: 'http://h', api_key_env: sk-secret }\n",
            "line 2, column 48: `reviewer.api_key_env` is not a valid environment variable name; write the name, as in `OPENAI_API_KEY`, and keep the key in the environment",
        ),
        (
            "reviewer: { mode: openai_api, api: response, model: m }\n",
            "line 2, column 36: `reviewer.api` is `response`; did you mean `responses`? (one of auto, responses, chat)",
        ),
        (
            "reviewer: { api: chat }\n",
            "line 2, column 18: `reviewer.api` has no effect with mode codex_cli; remove it",
        ),
        (
            "reviewer: { api_key_env: KEY }\n",
            "line 2, column 26: `reviewer.api_key_env` requires `reviewer.base_url`, the address that the key is for",
        ),
        (
            "builder: { fs: true }\n",
            "line 2, column 16: `builder.fs` has no effect with mode claude_code_cli; remove it",
        ),
        (
            "builder: { unsafe: 1, max_turns: 0 }\n",
            "line 2, column 20: `builder.unsafe` is `1`; write `true` or `false`\nline 2, column 34: `builder.max_turns` is `0`; write a whole number from 1 to 10000",
        ),
        (
            "builder: { mcp_servers: [x] }\n",
            "line 2, column 25: `builder.mcp_servers` is a list; write `name: { … }` lines",
        ),
        (
            "builder:\n  mcp_servers:\n    db: { comand: x }\n",
            "line 4, column 5: `builder.mcp_servers.db` has neither of `command` and `url`; write one of them\nline 4, column 11: unknown key `comand` in `builder.mcp_servers.db`; did you mean `command`?",
        ),
        (
            "builder:\n  mcp_servers:\n    db: { url: 'http://h', args: [x] }\n",
            "line 4, column 34: `builder.mcp_servers.db.args` has no effect with `url`; remove it",
        ),
        (
            "prices:\n  gpt-x: { input: -1, output: 2 }\n",
            "line 3, column 19: `prices.gpt-x.input` is `-1`; write an amount in dollars, as in `5` or `2.50`",
        ),
        (
            "prices: { gpt-x: { input: 1 } }\n",
            "line 2, column 11: `prices.gpt-x.output` is missing; write dollars for a million tokens, as in `output: 2.50`",
        ),
        (
            "prices: { gpt-x: { input: 1, output: 2, cache: 1 } }\n",
            "line 2, column 41: unknown key `cache` in `prices.gpt-x`; did you mean `cached`?",
        ),
        ("prices: 5\n", "line 2, column 9: `prices` is `5`; write `name: { … }` lines"),
        (
            "logging: { record: maybe }\n",
            "line 2, column 20: `logging.record` is `maybe`; write `true` or `false`",
        ),
        (
            "loop:\n  step_timeouts_sec: { biuld: 3 }\n",
            "line 3, column 24: unknown key `biuld` in `loop.step_timeouts_sec`; did you mean `build`?",
        ),
    ] {
        assert_eq!(faults(text), said);
    }
}

#[test]
fn all_faults_are_told_together_in_the_order_of_their_lines() {
    let said = Config::parse(
        "comands: { tests: x }\nloop:\n  max_iterations: many\ngates: { proof: on }\n",
    )
    .unwrap_err()
    .in_file(".autopilot/config.yml");
    insta::assert_snapshot!(said, @r#"
    .autopilot/config.yml:1:1: unknown key `comands`; did you mean `commands`?
    .autopilot/config.yml:3:19: `loop.max_iterations` is `many`; write a whole number from 1 to 100
    .autopilot/config.yml:4:17: `gates.proof` is `on`; write one of off, red_green
    "#);
}

#[test]
fn a_missing_or_empty_test_command_is_told_at_its_place() {
    let said = |text: &str| Config::parse(text).unwrap().1[0].to_string();
    assert!(said("").starts_with("line 1, column 1: `commands.tests` is missing"));
    assert!(
        said("board: {}\ncommands:\n  lint: x\n").contains("line 2, column 1: `commands.tests`")
    );
    assert!(said("commands:\n  tests: \"\"\n").starts_with("line 2, column 10: `commands.tests`"));
}

#[test]
fn a_secret_in_the_file_is_a_warning_with_the_way_out() {
    let text = format!(
        "{MINIMAL}database: postgres://me:hunter2@db/x\nbuilder:\n  env:\n    OPENAI_API_KEY: abc\n    LOG_LEVEL: debug\n    FROM_SHELL_TOKEN: $TOKEN\n  args: [--key=sk-abcdefghijklmnopqrstuv]\n"
    );
    let (_, warnings) = Config::parse(&text).unwrap();
    let said: Vec<String> = warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        said,
        [
            "line 2, column 11: `database` contains a password; pass it in the environment (PGPASSWORD) or in ~/.pgpass",
            "line 5, column 21: `OPENAI_API_KEY` looks like a secret; export it in your shell and write `env_pass: [OPENAI_API_KEY]`",
            "line 8, column 10: `args` looks like a secret; keep secrets in the environment",
        ]
    );
}

#[test]
fn the_digest_is_that_of_the_settings_not_of_the_file() {
    let short = parsed(MINIMAL);
    let long = parsed("# words\ncommands:\n  tests: 'true'\nrepo:\n  base_branch: main\n");
    assert_eq!(short.digest(), long.digest());
    let other = parsed("commands:\n  tests: 'false'\n");
    assert_ne!(short.digest(), other.digest());
}

#[test]
fn a_configuration_survives_its_journal() {
    let config = parsed(&format!(
        "{MINIMAL}budget: {{ max_usd: 2.5, max_wall: 90m }}\nbuilder: {{ env: {{ A: b }}, mode: acp, command: x }}\n"
    ));
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
}

#[test]
fn a_configuration_pinned_before_a_key_was_there_gets_its_default() {
    let config = parsed(MINIMAL);
    let mut old = serde_json::to_value(&config).unwrap();
    old.as_object_mut().unwrap().remove("plan");
    old["orchestrator"].as_object_mut().unwrap().remove("serialize_overlapping");
    old.as_object_mut().unwrap().remove("prices");
    old["logging"].as_object_mut().unwrap().remove("record");
    for key in ["fallback", "base_url", "api_key_env", "api", "mcp_servers", "system_prompt"] {
        assert!(old["builder"].as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    for key in ["max_turns", "disallowed_tools", "unsafe", "fs"] {
        assert!(old["builder"].as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    assert_eq!(serde_json::from_value::<Config>(old).unwrap(), config);
}

#[test]
fn the_template_parses_and_says_the_defaults() {
    let proposal =
        |value: &str| Some(Proposal { value: value.to_owned(), why: "Cargo.toml".to_owned() });
    let detected = Detected {
        tests: proposal("cargo test \"quoted\""),
        setup: proposal("npm ci"),
        copy: proposal(".env").into_iter().collect(),
        ..Detected::default()
    };
    let config = parsed(&template(&detected, AgentChoice::USUAL));
    assert_eq!(config.commands.tests, "cargo test \"quoted\"");
    assert_eq!(config.worktrees.copy, [".env"]);
    let same = Config {
        worktrees: parsed(MINIMAL).worktrees,
        commands: parsed(MINIMAL).commands,
        ..config
    };
    assert_eq!(same, parsed(MINIMAL));
}

#[test]
fn proposed_files_of_the_yardstick_are_settings_beside_the_defaults() {
    let proposed = |value: &str| Proposal { value: value.to_owned(), why: "2 files".to_owned() };
    let detected = Detected {
        tests: Some(proposed("true")),
        yardstick: vec![proposed("cli/expected/**"), proposed("*.golden")],
        ..Detected::default()
    };
    let text = template(&detected, AgentChoice::USUAL);
    let config = parsed(&text);
    assert_eq!(config.gates.yardstick, ["cli/expected/**", "*.golden"]);
    let others = Gates { yardstick: Vec::new(), ..config.gates };
    assert_eq!(others, parsed(MINIMAL).gates);
    assert!(text.contains("#   reports: []") && !text.contains("#   yardstick: []"), "{text}");
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let text = format!("{MINIMAL}# {}\n", "x".repeat(CONFIG_BYTES_MAX));
    assert!(Config::parse(&text).unwrap_err().to_string().contains("more than the 262144"));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,300}") {
        let _ = Config::parse(&text);
    }

    #[test]
    fn no_mapping_panics(key in "(loop|builder|gates|commands|logging|budget)", value in "[\\[\\]{}a-z0-9:,\"' -]{0,60}") {
        let _ = Config::parse(&format!("{MINIMAL}{key}: {value}\n"));
    }
}

//! The config.yml that `init` writes: every key with its default, most of them commented out.

use super::{AgentChoice, Role};
use crate::detect::{Detected, Proposal};

/// Returns the text of the file. It parses as it is, unless no test command was found: that one has
/// to be filled in.
pub fn template(detected: &Detected, agents: AgentChoice) -> String {
    let mut text = String::from(
        "# Autopilot settings for this repository. Commented lines show the defaults.\n\
         # Secrets do not belong here: export them and name them in `env_pass`.\n\n",
    );
    text.push_str(&commands(detected));
    text.push_str(REPO);
    for (role, keys) in [
        (Role::Builder, BUILDER),
        (Role::Reviewer, "  schema_path: .autopilot/review_schema.json\n"),
        (Role::Planner, "  schema_path: .autopilot/plan_schema.json\n"),
    ] {
        let mode = agents.mode(role).word();
        text.push_str(&format!("{}:\n  mode: {mode}\n{keys}", role.word()));
    }
    text.push_str(&gates(detected));
    text.push_str(&worktrees(detected));
    text.push_str(TAIL);
    text
}

fn commands(detected: &Detected) -> String {
    let mut text = String::from("commands:\n");
    match &detected.tests {
        Some(proposal) => text.push_str(&line("tests", proposal)),
        None => text.push_str(
            "  tests: \"\"   # required: the command that runs the tests, as in \"cargo test\"\n",
        ),
    }
    for (key, proposal, example) in [
        ("lint", &detected.lint, "ruff check ."),
        ("format", &detected.format, "ruff format --check ."),
    ] {
        match proposal {
            Some(proposal) => text.push_str(&line(key, proposal)),
            None => text.push_str(&format!("  # {key}: {}\n", quoted(example))),
        }
    }
    text.push_str(
        "  # uat: \"pytest -q tests/uat\"   # user acceptance tests; unset means skipped\n",
    );
    text.push_str("  # uat_dir: tests/uat            # where acceptance tests may be written\n");
    text.push_str(
        "  # parallel: false               # true: the commands of a gate run side by side\n",
    );
    text
}

fn worktrees(detected: &Detected) -> String {
    if detected.setup.is_none() && detected.copy.is_empty() {
        return "\n# worktrees:\n#   keep: auto      # target, node_modules and .venv survive between steps: auto (not in test runs) | always | never\n#   copy: []        # ignored files \
                a worktree needs, as in [.env]\n#   setup: \"\"       # prepares a new worktree, as in \
                \"npm ci\"\n#   ports: 0        # free ports for each step, as AUTOPILOT_PORT_0 and so on\n\
                #   bytes_max: 2147483648   # bytes of new and changed files that are taken from a worktree\n\
                #   files_max: 200000       # the same for their number\n"
            .to_owned();
    }
    let mut text = String::from(
        "\nworktrees:\n  # keep: auto   # target, node_modules and .venv survive between steps: auto (not in test runs) | always | never\n",
    );
    if !detected.copy.is_empty() {
        text.push_str("  copy:\n");
        for file in &detected.copy {
            text.push_str(&format!("    - {}   # {}\n", quoted(&file.value), one_line(&file.why)));
        }
    }
    if let Some(proposal) = &detected.setup {
        text.push_str(&line("setup", proposal));
    }
    text.push_str(
        "  # ports: 0     # free ports for each step, as AUTOPILOT_PORT_0 and so on\n  # bytes_max: \
         2147483648   # bytes of new and changed files that are taken from a worktree\n  # \
         files_max: 200000       # the same for their number\n",
    );
    text
}

/// The settings between the agents and the worktrees, with the proposed patterns for the yardstick.
fn gates(detected: &Detected) -> String {
    if detected.yardstick.is_empty() {
        return REST.to_owned();
    }
    let mut own = String::from("gates:\n  yardstick:   # more files that decide a verdict\n");
    for Proposal { value, why } in &detected.yardstick {
        own.push_str(&format!("    - {}   # {}\n", quoted(value), one_line(why)));
    }
    let kept = REST.lines().filter(|line| !line.starts_with("#   yardstick:"));
    let rest: String = kept.map(|line| format!("{line}\n")).collect();
    rest.replacen("# gates:\n", &own, 1)
}

fn line(key: &str, proposal: &Proposal) -> String {
    format!("  {key}: {}   # from {}\n", quoted(&proposal.value), one_line(&proposal.why))
}

/// Quotes a text for YAML, in which every JSON string is valid.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const REPO: &str = r#"
repo:
  base_branch: main
  remote_name: origin

# The agents. mode: claude_code_cli | codex_cli | acp | command | openai_api | script
"#;

const BUILDER: &str = r#"  # model: ""                    # the agent's own default
  # effort: ""
  # args: []                     # extra flags
  # env: {}                      # NAME: value, nothing secret
  # env_pass: []                 # names taken from your environment
  # executable: ""               # if the program is not in PATH
  # command: ""                  # for modes command and acp
  # script: ""                   # for mode script
  # timeout_sec: 900
  # max_usd: null                # per attempt
  # network: true                # false: without the agent's own network tools
  # allowed_tools: [Read, Edit, Bash]
  # disallowed_tools: []
  # fallback: []                 # agents to use while this one can't work, as in [{ mode: codex_cli }]; another
  #                              # model alone shares the account and its usage limit
  # max_turns: null              # per attempt, for mode claude_code_cli
  # session: continue            # fresh: each try and repair in a new session, with the whole prompt
  # system_prompt: ""            # added to the agent's own
  # mcp_servers: {}              # NAME: { command: "npx server", args: [], env: {} } or { url: "https://…" }
  # base_url: ""                 # another address for the model; your own key and login are not sent there
  # api_key_env: ""              # the environment variable that holds the key to use instead of your own
  # api: auto                    # responses | chat, for mode openai_api (planner and reviewer only)
  # fs: false                    # mode acp: read and write files through autopilot
  # unsafe: false                # true: without the agent's own permission checks
  # skill_policy:
  #   detect_skills: true
  #   allow_upscale: true
  #   use_mcp: true
  #   max_subagents: 4
  #   require_skill_plan: true
"#;

const REST: &str = r#"# agents: {}                     # more agents for goals and workflow steps, by names you choose:
#                                # { fast: { mode: codex_cli, model: "" } }

# orchestrator:
#   max_workers: 3               # tasks that run at the same time
#   serialize_overlapping: true  # run tasks whose allowed paths overlap one after the other
#   min_free_memory_mb: 512      # no further worker starts below this
#   min_free_disk_mb: 512

# plan:
#   max_tasks: 10000             # a larger plan is refused
#   max_depth: 1000              # tasks in the longest chain
#   max_fan_out: 1000            # tasks that depend on the same one
#   commands: false              # whether a plan may bring validation commands
#   task_uat: true               # run `commands.uat` for each task; false: only for the whole

# loop:
#   max_iterations: 5            # rounds per task
#   diff_line_cap: 800           # lines a task may change
#   stuck_no_output_sec: 120     # seconds without any activity
#   stuck_waiting_sec: 900       # seconds of waiting for the model
#   step_timeouts_sec: { plan: 120, build: 900, validate: 600, review: 180, uat: 600, push: 120 }
#   retries: { build: 1, review: 1, push: 2 }
#   review_on_red: true          # false: a change that fails the tests is not reviewed, only fixed
#   gate_order: learnt           # the cheapest command first; given: tests, lint, format

# uat:
#   generate: always             # auto: acceptance cases are written only where `commands.uat` runs them

# safety:
#   deny_paths: []               # never changed by a task, as in [infra/, billing/]
#   forbid_todos: true           # no new TODO, FIXME or XXX

# gates:
#   review: required             # evidence: only issues that cite a failing check, a criterion
#                                # or a line of the change block; advisory: none do
#   proof: off                   # red_green: each acceptance criterion needs a test that fails without the change;
#                                # an agent maps them, and the controller checks the map
#   warm: auto                   # off: every gate starts from nothing, as the last one of a run always does
#   last_word: cold              # warm: the result is not proven once more from nothing
#   flaky: fail                  # retry_once: a failed command runs once more on the same tree, and you are told;
#                                # known: only if all failed tests are in known_flaky
#   known_flaky: []              # names of tests, as the test runner prints them
#   yardstick: []                # more files that decide a verdict, as in [ci/**, "*.golden"]
#   yardstick_changes: reviewed  # a test of the base that fails needs the task's text or the reviewer's consent;
#                                # person: you are asked; told: you are only told; refused: only the task's text
#                                # counts
#   reports: []                  # reports that your test runner writes, as in ["target/**/TEST-*.xml"]
#   holdout: null                # a directory outside of tests that no agent sees, as in ../holdout; a builder is
#                                # told the names of those that fail, and nothing else
#   whole_review: true           # review the whole change of a plan against the plan's goal
#   human: none                  # deferred: approve before the result leaves; three: also approve the plan
#   home: [.asdfrc, .bundle/config, .cargo/config.toml, .condarc, .config/git/config, .config/go/env,
#     .config/mise/config.toml, .config/pip/pip.conf, .config/uv/uv.toml, .gemrc, .gitconfig, .npmrc,
#     .pip/pip.conf, .tool-versions, .yarnrc, .yarnrc.yml]   # files of your home that tests find in theirs

# budget:
#   max_usd: null                # per run
#   max_usd_per_task: null
#   max_wall: null               # as in 8h
#   max_wait_quota: 6h
#   retries: 8
#   interruptions: 20

# sandbox:
#   mode: auto                   # auto | landlock | bwrap | off
#   write: []                    # more writable paths, as in [/dev/shm]
#   sockets: []                  # sockets of other programs to let through, as in [/run/docker.sock]
#   network: open                # off: the commands that prove a change see only their own loopback
"#;

const TAIL: &str = r#"
# integration:
#   revalidate: true             # test the merged result before the branch moves
#   batch: 1                     # tasks that are merged and tested together

# git:
#   filters: []                  # clean/smudge filters to run, as in [lfs]

# github:
#   enabled: false               # push when done
#   open_pr: false               # push and open a pull request (gh, or a token in GH_TOKEN)
#   pr_title_prefix: "[autopilot]"

# board:
#   parallel_subtasks: false

# phases:
#   verify_min_sec: 120
#   version_bump: true

# notify:
#   bell: true
#   desktop: false
#   command: ""
#   webhook: ""

# logging:
#   redact_patterns: ['(?i)api[_-]?key\s*[:=]\s*\S+', '(?i)bearer\s+\S+']
#   output_bytes_max: 67108864   # bytes kept of one attempt's output
#   prompt_bytes_max: 65536      # bytes of one part of a prompt
#   tail_lines_max: 200          # last lines of an output shown to agents
#   record: true                 # keep what `autopilot replay` needs

# secrets:
#   ignore: []                   # variables whose values are no secrets, as in [KMS_KEY]

# prices: {}                     # dollars for a million tokens: { "gpt-x": { input: 1.25, output: 10, cached: 0.13 } }

# database: sqlite               # postgres is not available yet
"#;

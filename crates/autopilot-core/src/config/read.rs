//! Reads the tree of a configuration file into [`Config`], and gathers every fault on the way.
//!
//! The known keys of a section are those that its reader asks for, so the list in an error message
//! can't differ from what is read.

mod agent;
mod section;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::flaky::FlakyGates;
use crate::gate_order::GateOrder;
use crate::guard::path::PathPatterns;
use crate::limit::{ReviewGate, YardstickChanges};
use crate::step::Step;
use crate::warmth::{LastWord, WarmGates};
use regex::Regex;

use super::fault::{ConfigFault, ConfigFaults, TextPlace, Warning};
use super::{
    Board, Budget, CONFIG_BYTES_MAX, Commands, Config, Gates, GenerateCases, GitConfig,
    GithubConfig, HumanGate, Integration, KeepWorktrees, Logging, Notify, Orchestrator, Phases,
    PlanConfig, Price, ProofGate, Repo, Role, Rounds, Safety, SandboxConfig, SandboxMode,
    SandboxNetwork, SecretSettings, UatConfig, Worktrees, secret, text, yaml,
};
pub(super) use agent::{able, of_kind};
use section::{ConfigFindings, ConfigSection};

pub(super) fn read(text: &str) -> Result<(Config, Vec<Warning>), ConfigFaults> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = TextPlace::at(1, 1);
    if text.len() > CONFIG_BYTES_MAX {
        let message = format!(
            "the file has {} bytes, more than the {CONFIG_BYTES_MAX} a configuration may have",
            text.len()
        );
        return Err(ConfigFaults::new(vec![ConfigFault::new(start, message)]));
    }
    let root = yaml::parse(text).map_err(ConfigFaults::new)?;
    let found = ConfigFindings::default();
    let config = config(ConfigSection::root(&found, root.as_ref()));
    let faults = found.faults.into_inner();
    if !faults.is_empty() {
        return Err(ConfigFaults::new(faults));
    }
    let mut warnings = found.warnings.into_inner();
    warnings.extend(root.as_ref().map(secret::warnings).unwrap_or_default());
    Ok((config, warnings))
}

fn config(mut top: ConfigSection<'_>) -> Config {
    let config = Config {
        database: database(&mut top),
        repo: top.inner("repo", |s| Repo {
            base_branch: s.name("base_branch", "main"),
            remote_name: s.name("remote_name", "origin"),
        }),
        commands: top.inner("commands", commands),
        orchestrator: top.inner("orchestrator", orchestrator),
        plan: top.inner("plan", plan),
        rounds: top.inner("loop", rounds),
        uat: top.inner("uat", |s| {
            let usual = GenerateCases::Always;
            UatConfig {
                generate: s.choice("generate", &GenerateCases::ALL, GenerateCases::row, usual),
            }
        }),
        safety: top.inner("safety", |s| Safety {
            deny_paths: s.paths("deny_paths"),
            forbid_todos: s.flag("forbid_todos", true),
        }),
        builder: agent::read(&mut top, Role::Builder),
        reviewer: agent::read(&mut top, Role::Reviewer),
        planner: agent::read(&mut top, Role::Planner),
        agents: agent::named(&mut top),
        gates: top.inner("gates", gates),
        budget: top.inner("budget", budget),
        sandbox: top.inner("sandbox", |s| SandboxConfig {
            mode: s.choice("mode", &SandboxMode::ALL, SandboxMode::row, SandboxMode::Auto),
            write: s.outside_paths("write"),
            sockets: s.absolute_paths("sockets"),
            network: s.choice(
                "network",
                &SandboxNetwork::ALL,
                SandboxNetwork::row,
                SandboxNetwork::Open,
            ),
        }),
        worktrees: top.inner("worktrees", |s| Worktrees {
            keep: s.choice("keep", &KeepWorktrees::ALL, KeepWorktrees::row, KeepWorktrees::Auto),
            copy: s.paths("copy"),
            setup: s.filled("setup"),
            ports: s.number("ports", 0..=64, 0),
            bytes_max: s.number("bytes_max", 1 << 20..=1 << 50, super::worktree_bytes_max()),
            files_max: s.number("files_max", 100..=100_000_000, super::worktree_files_max()),
        }),
        integration: top.inner("integration", |s| Integration {
            revalidate: s.flag("revalidate", true),
            batch: s.number("batch", 1..=64, 1),
        }),
        git: top.inner("git", |s| GitConfig { filters: s.words("filters").unwrap_or_default() }),
        github: top.inner("github", |s| GithubConfig {
            enabled: s.flag("enabled", false),
            open_pr: s.flag("open_pr", false),
            pr_title_prefix: s.word("pr_title_prefix").unwrap_or("[autopilot]".to_owned()),
        }),
        board: top
            .inner("board", |s| Board { parallel_subtasks: s.flag("parallel_subtasks", false) }),
        phases: top.inner("phases", |s| Phases {
            verify_min_sec: s.number("verify_min_sec", 0..=86_400, 120),
            version_bump: s.flag("version_bump", true),
        }),
        notify: top.inner("notify", |s| Notify {
            webhook: s.address("webhook"),
            bell: s.flag("bell", true),
            desktop: s.flag("desktop", false),
            command: s.command("command"),
        }),
        logging: top.inner("logging", logging),
        secrets: top
            .inner("secrets", |s| SecretSettings { ignore: s.words("ignore").unwrap_or_default() }),
        prices: top.named("prices", price).unwrap_or_default(),
    };
    top.finish();
    config
}

fn database(top: &mut ConfigSection<'_>) -> String {
    let name = top.word("database").unwrap_or("sqlite".to_owned());
    let known = ["postgres://", "postgresql://"].iter().any(|scheme| name.starts_with(scheme));
    if name != "sqlite" && !known {
        top.fault_of("database", format!("is `{name}`; write `sqlite` or `postgres://…`"));
    }
    name
}

fn commands(s: &mut ConfigSection<'_>) -> Commands {
    let tests = s.filled("tests");
    if tests.is_none() {
        let text = "`commands.tests` is missing, so nothing can be proven; write the command that \
                    runs the tests, as in `tests: \"cargo test\"`";
        s.warn("tests", text.to_owned());
    }
    Commands {
        tests: tests.unwrap_or_default(),
        lint: s.filled("lint"),
        format: s.filled("format"),
        uat: s.filled("uat"),
        uat_dir: s.path("uat_dir"),
        parallel: s.flag("parallel", false),
    }
}

fn orchestrator(s: &mut ConfigSection<'_>) -> Orchestrator {
    const MB: RangeInclusive<u64> = 0..=1 << 30;
    let or = Orchestrator::default();
    Orchestrator {
        max_workers: s.number("max_workers", 1..=256, or.max_workers),
        serialize_overlapping: s.flag("serialize_overlapping", or.serialize_overlapping),
        min_free_memory_mb: s.number("min_free_memory_mb", MB, or.min_free_memory_mb),
        min_free_disk_mb: s.number("min_free_disk_mb", MB, or.min_free_disk_mb),
    }
}

fn plan(s: &mut ConfigSection<'_>) -> PlanConfig {
    const COUNT: RangeInclusive<u32> = 1..=1_000_000;
    let or = PlanConfig::default();
    PlanConfig {
        max_tasks: s.number("max_tasks", COUNT, or.max_tasks),
        max_depth: s.number("max_depth", COUNT, or.max_depth),
        max_fan_out: s.number("max_fan_out", COUNT, or.max_fan_out),
        commands: s.flag("commands", or.commands),
        task_uat: s.flag("task_uat", or.task_uat),
    }
}

fn rounds(s: &mut ConfigSection<'_>) -> Rounds {
    const SEC: RangeInclusive<u64> = 1..=text::SECONDS_MAX;
    Rounds {
        max_iterations: s.number("max_iterations", 1..=100, 5),
        diff_line_cap: s.number("diff_line_cap", 1..=10_000_000, 800),
        stuck_no_output_sec: s.number("stuck_no_output_sec", SEC, 120),
        stuck_waiting_sec: s.number("stuck_waiting_sec", SEC, 900),
        step_timeouts_sec: s.inner("step_timeouts_sec", |s| by_step(s, SEC)),
        retries: s.inner("retries", |s| by_step(s, 0..=100)),
        review_on_red: s.flag("review_on_red", true),
        gate_order: s.choice("gate_order", &GateOrder::ALL, GateOrder::row, GateOrder::default()),
    }
}

fn by_step<T>(s: &mut ConfigSection<'_>, range: RangeInclusive<T>) -> BTreeMap<String, T>
where
    T: FromStr + PartialOrd + Display + Clone,
{
    Step::configurable_words()
        .filter_map(|step| Some((step.to_owned(), s.given_number(step, range.clone())?)))
        .collect()
}

fn gates(s: &mut ConfigSection<'_>) -> Gates {
    let gates = Gates {
        review: s.choice("review", &ReviewGate::ALL, ReviewGate::row, ReviewGate::Required),
        proof: s.choice("proof", &ProofGate::ALL, ProofGate::row, ProofGate::Off),
        human: s.choice("human", &HumanGate::ALL, HumanGate::row, HumanGate::None),
        home: s.home_files("home").unwrap_or_else(Gates::usual_home),
        warm: s.choice("warm", &WarmGates::ALL, WarmGates::row, WarmGates::default()),
        last_word: s.choice("last_word", &LastWord::ALL, LastWord::row, LastWord::default()),
        flaky: s.choice("flaky", &FlakyGates::ALL, FlakyGates::row, FlakyGates::default()),
        known_flaky: s.words("known_flaky").unwrap_or_default(),
        yardstick: s.checked_words("yardstick", PathPatterns::fault).unwrap_or_default(),
        yardstick_changes: s.choice(
            "yardstick_changes",
            &YardstickChanges::ALL,
            YardstickChanges::row,
            YardstickChanges::default(),
        ),
        reports: s.checked_words("reports", PathPatterns::fault).unwrap_or_default(),
        holdout: s.word("holdout"),
        whole_review: s.flag("whole_review", true),
    };
    match (gates.flaky, gates.known_flaky.is_empty()) {
        (FlakyGates::Known, true) => {
            s.warn(
                "flaky",
                "`gates.flaky` is `known`, but no test is listed; list them in `gates.known_flaky`"
                    .to_owned(),
            );
        }
        (FlakyGates::Fail | FlakyGates::RetryOnce, false) => {
            s.warn(
                "known_flaky",
                "`gates.known_flaky` is read only where `gates.flaky` is `known`".to_owned(),
            );
        }
        (FlakyGates::Known, false) | (FlakyGates::Fail | FlakyGates::RetryOnce, true) => {}
    }
    gates
}

fn budget(s: &mut ConfigSection<'_>) -> Budget {
    const WAIT: std::time::Duration = std::time::Duration::from_secs(6 * 60 * 60);
    Budget {
        max_usd: s.money("max_usd"),
        max_usd_per_task: s.money("max_usd_per_task"),
        max_wall: s.duration("max_wall"),
        max_wait_quota: s.duration("max_wait_quota").unwrap_or(WAIT),
        retries: s.number("retries", 0..=1_000, 8),
        interruptions: s.number("interruptions", 0..=10_000, 20),
    }
}

fn logging(s: &mut ConfigSection<'_>) -> Logging {
    const PATTERNS: [&str; 2] = [r"(?i)api[_-]?key\s*[:=]\s*\S+", r"(?i)bearer\s+\S+"];
    let patterns = s.checked_words("redact_patterns", |pattern| {
        let why = Regex::new(pattern).err()?.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Some(format!("`{pattern}` is not a valid regular expression: {why}"))
    });
    Logging {
        redact_patterns: patterns.unwrap_or_else(|| PATTERNS.map(str::to_owned).to_vec()),
        output_bytes_max: s.number("output_bytes_max", 4_096..=1 << 40, 64 << 20),
        prompt_bytes_max: s.number("prompt_bytes_max", 1_024..=16 << 20, 64 << 10),
        tail_lines_max: s.number("tail_lines_max", 1..=100_000, 200),
        record: s.flag("record", true),
    }
}

fn price(s: &mut ConfigSection<'_>) -> Price {
    let mut needed = |key| {
        if !s.has(key) {
            let text = "is missing; write dollars for a million tokens";
            s.fault_of(key, format!("{text}, as in `{key}: 2.50`"));
        }
        s.money(key).unwrap_or_default()
    };
    let (input, output) = (needed("input"), needed("output"));
    Price { input, output, cached: s.money("cached") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = "commands: { tests: x }\n";

    #[test]
    fn the_home_of_gates_has_the_usual_settings_or_exactly_what_is_listed() {
        let home = |text: &str| Config::parse(&format!("{MINIMAL}{text}")).unwrap().0.gates.home;
        assert!(home("").contains(&".npmrc".to_owned()));
        assert_eq!(home("gates: { home: [.netrc, .config/x] }\n"), [".netrc", ".config/x"]);
        assert_eq!(home("gates: { home: [] }\n"), [""; 0]);
        for odd in ["/etc/passwd", "~/.npmrc", "../x", "a/../../b"] {
            let text = format!("{MINIMAL}gates: {{ home: [{odd}] }}\n");
            let fault = Config::parse(&text).unwrap_err().to_string();
            assert!(fault.contains("as a file below your home"), "{odd}: {fault}");
        }
    }
}

//! Reads the tree of a configuration file into [`Config`], and gathers every fault on the way.
//!
//! The known keys of a section are those that its reader asks for, so the list in an error message
//! can't differ from what is read.

mod agent;
mod section;

use std::collections::BTreeMap;

use crate::step::Step;
use regex::Regex;

use super::fault::{ConfigFault, ConfigFaults, TextPlace, Warning};
use super::yaml;
use super::{
    Board, Budget, CONFIG_BYTES_MAX, Commands, Config, Gates, GitConfig, GithubConfig, HumanGate,
    Integration, KeepWorktrees, Logging, Notify, Orchestrator, Phases, PlanConfig, Price,
    ProofGate, Repo, ReviewGateConfig, Role, Rounds, Safety, SandboxConfig, SandboxMode, Worktrees,
    secret, text,
};
pub(super) use agent::{able, of_kind};
use section::{ConfigReader, ConfigSection};

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
    let mut reader = ConfigReader::default();
    let config = config(&mut reader, root.as_ref());
    if reader.faults.is_empty() {
        let mut warnings = reader.warnings;
        warnings.extend(root.as_ref().map(secret::warnings).unwrap_or_default());
        Ok((config, warnings))
    } else {
        Err(ConfigFaults::new(reader.faults))
    }
}

fn config(r: &mut ConfigReader, root: Option<&yaml::YamlNode>) -> Config {
    let mut top = ConfigSection::root(r, root);
    let config = Config {
        database: database(r, &mut top),
        repo: repo(r, &mut top),
        commands: commands(r, &mut top),
        orchestrator: orchestrator(r, &mut top),
        plan: plan(r, &mut top),
        rounds: rounds(r, &mut top),
        safety: top.inner(r, "safety", |r, s| Safety {
            deny_paths: s.paths(r, "deny_paths", &[]),
            forbid_todos: s.flag(r, "forbid_todos", true),
        }),
        builder: agent::read(r, &mut top, Role::Builder),
        reviewer: agent::read(r, &mut top, Role::Reviewer),
        planner: agent::read(r, &mut top, Role::Planner),
        agents: agent::named(r, &mut top),
        gates: gates(r, &mut top),
        budget: budget(r, &mut top),
        sandbox: sandbox(r, &mut top),
        worktrees: worktrees(r, &mut top),
        integration: top.inner(r, "integration", |r, s| Integration {
            revalidate: s.flag(r, "revalidate", true),
            batch: s.number(r, "batch", 1..=64, 1),
        }),
        git: top.inner(r, "git", |r, s| GitConfig { filters: s.words(r, "filters", &[]) }),
        github: top.inner(r, "github", |r, s| GithubConfig {
            enabled: s.flag(r, "enabled", false),
            open_pr: s.flag(r, "open_pr", false),
            pr_title_prefix: s.word(r, "pr_title_prefix").unwrap_or("[autopilot]".to_owned()),
        }),
        board: top.inner(r, "board", |r, s| Board {
            parallel_subtasks: s.flag(r, "parallel_subtasks", false),
        }),
        phases: top.inner(r, "phases", |r, s| Phases {
            verify_min_sec: s.number(r, "verify_min_sec", 0..=86_400, 120),
            version_bump: s.flag(r, "version_bump", true),
        }),
        notify: notify(r, &mut top),
        logging: logging(r, &mut top),
        prices: prices(r, &mut top),
    };
    top.finish(r);
    config
}

fn database(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> String {
    let place = top.place_of("database");
    let name = top.word(r, "database").unwrap_or("sqlite".to_owned());
    let known = ["postgres://", "postgresql://"].iter().any(|scheme| name.starts_with(scheme));
    if name != "sqlite" && !known {
        r.fault(place, format!("`database` is `{name}`; write `sqlite` or `postgres://…`"));
    }
    name
}

fn repo(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Repo {
    top.inner(r, "repo", |r, s| Repo {
        base_branch: s.name(r, "base_branch", "main"),
        remote_name: s.name(r, "remote_name", "origin"),
    })
}

fn commands(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Commands {
    top.inner(r, "commands", |r, s| {
        let tests = s.word(r, "tests").filter(|command| !command.trim().is_empty());
        if tests.is_none() {
            let place = s.place_of("tests");
            r.warn(
                place,
                "`commands.tests` is missing, so nothing can be proven; write the command that runs \
                 the tests, as in `tests: \"cargo test\"`"
                    .to_owned(),
            );
        }
        Commands {
            tests: tests.unwrap_or_default(),
            lint: s.filled(r, "lint"),
            format: s.filled(r, "format"),
            uat: s.filled(r, "uat"),
            uat_dir: s.path(r, "uat_dir"),
        }
    })
}

fn orchestrator(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Orchestrator {
    const MB: std::ops::RangeInclusive<u64> = 0..=1 << 30;
    let or = Orchestrator::default();
    top.inner(r, "orchestrator", |r, s| Orchestrator {
        max_workers: s.number(r, "max_workers", 1..=256, or.max_workers),
        serialize_overlapping: s.flag(r, "serialize_overlapping", or.serialize_overlapping),
        min_free_memory_mb: s.number(r, "min_free_memory_mb", MB, or.min_free_memory_mb),
        min_free_disk_mb: s.number(r, "min_free_disk_mb", MB, or.min_free_disk_mb),
    })
}

fn plan(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> PlanConfig {
    const COUNT: std::ops::RangeInclusive<u32> = 1..=1_000_000;
    let or = PlanConfig::default();
    top.inner(r, "plan", |r, s| PlanConfig {
        max_tasks: s.number(r, "max_tasks", COUNT, or.max_tasks),
        max_depth: s.number(r, "max_depth", COUNT, or.max_depth),
        max_fan_out: s.number(r, "max_fan_out", COUNT, or.max_fan_out),
        commands: s.flag(r, "commands", or.commands),
        task_uat: s.flag(r, "task_uat", or.task_uat),
    })
}

fn rounds(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Rounds {
    const SEC: std::ops::RangeInclusive<u64> = 1..=text::SECONDS_MAX;
    top.inner(r, "loop", |r, s| Rounds {
        max_iterations: s.number(r, "max_iterations", 1..=100, 5),
        diff_line_cap: s.number(r, "diff_line_cap", 1..=10_000_000, 800),
        stuck_no_output_sec: s.number(r, "stuck_no_output_sec", SEC, 120),
        stuck_waiting_sec: s.number(r, "stuck_waiting_sec", SEC, 900),
        step_timeouts_sec: s.inner(r, "step_timeouts_sec", |r, s| {
            Step::configurable_words()
                .filter_map(|step| Some((step.to_owned(), s.given_number(r, step, SEC)?)))
                .collect()
        }),
        retries: s.inner(r, "retries", |r, s| {
            Step::configurable_words()
                .filter_map(|step| Some((step.to_owned(), s.given_number(r, step, 0..=100)?)))
                .collect()
        }),
    })
}

fn gates(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Gates {
    top.inner(r, "gates", |r, s| Gates {
        review: s.choice(
            r,
            "review",
            &[
                ("required", ReviewGateConfig::Required),
                ("evidence", ReviewGateConfig::Evidence),
                ("advisory", ReviewGateConfig::Advisory),
            ],
            ReviewGateConfig::Required,
        ),
        proof: s.choice(
            r,
            "proof",
            &[("off", ProofGate::Off), ("red_green", ProofGate::RedGreen)],
            ProofGate::Off,
        ),
        human: s.choice(
            r,
            "human",
            &[
                ("none", HumanGate::None),
                ("deferred", HumanGate::Deferred),
                ("three", HumanGate::Three),
            ],
            HumanGate::None,
        ),
    })
}

fn budget(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Budget {
    const WAIT: std::time::Duration = std::time::Duration::from_secs(6 * 60 * 60);
    top.inner(r, "budget", |r, s| Budget {
        max_usd: s.money(r, "max_usd"),
        max_usd_per_task: s.money(r, "max_usd_per_task"),
        max_wall: s.duration(r, "max_wall"),
        max_wait_quota: s.duration(r, "max_wait_quota").unwrap_or(WAIT),
        retries: s.number(r, "retries", 0..=1_000, 8),
        interruptions: s.number(r, "interruptions", 0..=10_000, 20),
    })
}

fn sandbox(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> SandboxConfig {
    top.inner(r, "sandbox", |r, s| SandboxConfig {
        mode: s.choice(
            r,
            "mode",
            &[
                ("auto", SandboxMode::Auto),
                ("landlock", SandboxMode::Landlock),
                ("bwrap", SandboxMode::Bwrap),
                ("off", SandboxMode::Off),
            ],
            SandboxMode::Auto,
        ),
        write: s.outside_paths(r, "write"),
    })
}

fn worktrees(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Worktrees {
    top.inner(r, "worktrees", |r, s| Worktrees {
        keep: s.choice(
            r,
            "keep",
            &[
                ("auto", KeepWorktrees::Auto),
                ("always", KeepWorktrees::Always),
                ("never", KeepWorktrees::Never),
            ],
            KeepWorktrees::Auto,
        ),
        copy: s.paths(r, "copy", &[]),
        setup: s.filled(r, "setup"),
        ports: s.number(r, "ports", 0..=64, 0),
    })
}

fn notify(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Notify {
    top.inner(r, "notify", |r, s| {
        let webhook = s.filled(r, "webhook");
        if let Some(url) = webhook.as_ref().filter(|url| !is_http(url)) {
            let place = s.place_of("webhook");
            r.fault(place, format!("`notify.webhook` is `{url}`; write `https://…`"));
        }
        Notify {
            bell: s.flag(r, "bell", true),
            desktop: s.flag(r, "desktop", false),
            command: s.command(r, "command"),
            webhook,
        }
    })
}

pub(super) fn is_http(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|host| !host.is_empty() && !host.contains(char::is_whitespace))
}

fn logging(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> Logging {
    const PATTERNS: &[&str] = &[r"(?i)api[_-]?key\s*[:=]\s*\S+", r"(?i)bearer\s+\S+"];
    top.inner(r, "logging", |r, s| {
        let patterns = s.placed_words(r, "redact_patterns", PATTERNS);
        for (pattern, place) in &patterns {
            if let Err(error) = Regex::new(pattern) {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                r.fault(*place, format!("`{pattern}` is not a valid regular expression: {why}"));
            }
        }
        Logging {
            redact_patterns: patterns.into_iter().map(|(pattern, _)| pattern).collect(),
            output_bytes_max: s.number(r, "output_bytes_max", 4_096..=1 << 40, 64 << 20),
            prompt_bytes_max: s.number(r, "prompt_bytes_max", 1_024..=16 << 20, 64 << 10),
            tail_lines_max: s.number(r, "tail_lines_max", 1..=100_000, 200),
            record: s.flag(r, "record", true),
        }
    })
}

fn prices(r: &mut ConfigReader, top: &mut ConfigSection<'_>) -> BTreeMap<String, Price> {
    let read = top.named(r, "prices", |r, s| {
        let mut needed = |key| {
            let before = r.faults.len();
            let amount = s.money(r, key);
            if amount.is_none() && r.faults.len() == before {
                let (place, section) = (s.place_of(key), s.path_name());
                r.fault(
                    place,
                    format!(
                        "`{section}.{key}` is missing; write dollars for a million tokens, \
                         as in `{key}: 2.50`"
                    ),
                );
            }
            amount.unwrap_or_default()
        };
        let (input, output) = (needed("input"), needed("output"));
        Price { input, output, cached: s.money(r, "cached") }
    });
    read.into_iter().collect()
}

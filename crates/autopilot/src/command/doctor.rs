//! `autopilot doctor`: checks the machine and the repository, and says how to get what is missing.

mod finding;
mod holdout;
mod look;
mod paths;
mod programs;
mod separation;
mod version;
mod warm;
mod yardstick;

use super::{Done, ground};
use crate::cli::Global;
use crate::exit::ExitKind;
use crate::terminal;
use autopilot_agents::installed::LoginState;
use autopilot_core::config::Config;
use autopilot_core::flow::Flow;
use autopilot_engine::begin;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use autopilot_host::git::{StateEnv, UserRepo};
use camino::Utf8PathBuf;
use finding::{DoctorFinding, Level};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Prints the findings; the exit code says whether something is missing.
pub fn doctor(global: &Global) -> Done {
    let findings = look_around(global);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    if global.json {
        terminal::json(&json!({ "ok": worst != Level::Missing, "checks": findings }));
    } else {
        for finding in &findings {
            terminal::say(&finding.text());
        }
    }
    Ok(match worst {
        Level::Ok | Level::Warning => ExitCode::SUCCESS,
        Level::Missing => ExitKind::Config.into(),
    })
}

/// Makes all the checks, whatever the others find.
fn look_around(global: &Global) -> Vec<DoctorFinding> {
    let mut findings = vec![look::git(), look::sandbox()];
    let mut env = StateEnv::from_process();
    if env.relative_state_dir().is_some() {
        // It is told with the state root.
        env.autopilot_state_dir = None;
    }
    let place = match workspace::find(&global.repo, &env) {
        Ok((place, _)) => place,
        Err(error) => {
            let why = autopilot_engine::cause::chain(&error);
            findings.push(DoctorFinding::missing("repository", why));
            let root = Utf8PathBuf::from("/");
            findings.extend(look::machine(&root));
            return findings;
        }
    };
    let repo = ground::repo(&place);
    findings.push(match &repo {
        Ok(repo) => {
            DoctorFinding::ok("repository", format!("{} on {}", place.root, repo.base_branch))
        }
        Err(failure) => DoctorFinding::missing("repository", failure.message()),
    });
    findings.extend(paths::repository(&place));
    findings.extend(configured(&place, repo.as_ref().ok()));
    findings.extend(look::machine(&place.root));
    findings.extend(look::state(&place));
    if let Ok(repo) = &repo {
        findings.extend(paths::hub(&place, repo));
    }
    findings
}

fn configured(place: &StatePaths, repo: Option<&UserRepo>) -> Vec<DoctorFinding> {
    let (config, warnings) = match workspace::read_config(place) {
        Ok(read) => read,
        Err(error) => {
            let text = autopilot_engine::cause::chain(&error);
            return vec![DoctorFinding::missing("configuration", text)];
        }
    };
    let mut findings = vec![DoctorFinding::ok("configuration", place.config().to_string())];
    let warn = |warning| DoctorFinding::warning("configuration", format!("{warning}"));
    findings.extend(warnings.into_iter().map(warn));
    findings.push(separation::look(config.sandbox.mode));
    findings.extend(warm::look(place, &config));
    findings.extend(repo.map(|repo| yardstick::look(repo, &config)));
    findings.extend(repo.and_then(|repo| holdout::look(repo, &config, place)));
    findings.extend(unkept(&config));
    findings.extend(config.sandbox.sockets.iter().map(|socket| {
        let text = format!("lets agents and commands through to `{socket}`, and to all it can do");
        DoctorFinding::warning("sandbox", text)
    }));
    let limits = begin::limits(&config);
    let late = Flow::ALL.into_iter().flat_map(|flow| begin::late_limits(&config, &limits, flow));
    let late: BTreeSet<String> = late.collect();
    findings.extend(late.into_iter().map(|said| DoctorFinding::warning("budget", said)));
    findings.extend(agents(&config, place));
    findings.extend(programs::of(&config, &place.root));
    findings
}

/// Settings with which no run would start; those that only some flows refuse are a warning.
fn unkept(config: &Config) -> Option<DoctorFinding> {
    let refused = |flow| begin::check_settings(config, &begin::limits(config), flow).err();
    let words = |error| autopilot_engine::cause::chain(&error);
    let by_any = refused(Flow::default());
    let by_any = by_any.map(|why| DoctorFinding::missing("configuration", words(why)));
    let by_one = || Flow::ALL.into_iter().find_map(refused);
    by_any.or_else(|| by_one().map(|why| DoctorFinding::warning("configuration", words(why))))
}

fn agents(config: &Config, place: &StatePaths) -> Vec<DoctorFinding> {
    use super::equipment::{self, FoundAgent};
    let agents = equipment::agents(config, &place.root);
    let said = |agent: &equipment::Equipped| match &agent.program {
        FoundAgent::Own => {
            DoctorFinding::ok(&agent.role, format!("{}, played by autopilot itself", agent.mode))
        }
        FoundAgent::Model(model) => {
            DoctorFinding::ok(&agent.role, format!("{}, {model}", agent.mode))
        }
        FoundAgent::At(path) if agent.mode == "command" => {
            // The user's own program may do anything when called with `--version`.
            DoctorFinding::ok(&agent.role, format!("command, {path}"))
        }
        FoundAgent::At(path) => match version::of(path) {
            Ok(version) => match agent.agent.as_ref().and_then(|known| known.too_old(&version)) {
                Some(why) => DoctorFinding::missing(&agent.role, format!("{path}: {why}")),
                None => logged_in(agent, &format!("{}, {version} ({path})", agent.mode)),
            },
            Err(why) => {
                let why = why.message();
                let text = format!("{path} exists but does not print its version: {why}");
                DoctorFinding::warning(&agent.role, text)
            }
        },
        FoundAgent::Nowhere(why) if agent.is_optional => {
            DoctorFinding::warning(&agent.role, why.clone())
        }
        FoundAgent::Nowhere(why) => DoctorFinding::missing(&agent.role, why.clone()),
    };
    agents.iter().map(said).collect()
}

/// Adds to the sentence about an agent whether it is logged in. The vendors' own status commands are
/// not asked: they write to the user's directories.
fn logged_in(agent: &super::equipment::Equipped, text: &str) -> DoctorFinding {
    match &agent.login {
        LoginState::LoggedIn(by) => {
            DoctorFinding::ok(&agent.role, format!("{text}, logged in ({by})"))
        }
        LoginState::LoggedOut(how) => DoctorFinding::warning(
            &agent.role,
            format!("{text}, not logged in as far as its files and variables say: run `{how}`"),
        ),
        LoginState::Unknown => DoctorFinding::ok(&agent.role, text),
    }
}

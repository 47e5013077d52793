//! `autopilot doctor`: what the machine and the repository have, and how to get what is missing.

mod finding;
mod look;
mod version;

use super::{Done, ground, place};
use crate::cli::Global;
use crate::exit::CONFIG;
use crate::terminal;
use autopilot_core::config::Config;
use autopilot_core::flow::Flow;
use autopilot_engine::begin;
use autopilot_engine::place::Place;
use autopilot_engine::workspace;
use camino::Utf8PathBuf;
use finding::{Finding, Level};
use serde_json::json;
use std::process::ExitCode;

pub fn doctor(global: &Global) -> Done {
    let findings = look_around(global);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    if global.json {
        let objects: Vec<_> = findings.iter().map(Finding::object).collect();
        terminal::json(&json!({ "ok": worst != Level::Missing, "checks": objects }));
    } else {
        for finding in &findings {
            terminal::say(&finding.text());
        }
    }
    Ok(match worst {
        Level::Ok | Level::Warning => ExitCode::SUCCESS,
        Level::Missing => ExitCode::from(CONFIG),
    })
}

/// Every check is made, whatever the others find.
fn look_around(global: &Global) -> Vec<Finding> {
    let mut findings = vec![look::git(), look::sandbox()];
    let place = match place(global) {
        Ok((place, _)) => place,
        Err(failure) => {
            findings.push(Finding::missing("repository", failure.message));
            let root = Utf8PathBuf::from("/");
            findings.extend(look::machine(&root));
            return findings;
        }
    };
    findings.push(match ground::repo(&place) {
        Ok(repo) => Finding::ok("repository", format!("{} on {}", place.root, repo.base_branch)),
        Err(failure) => Finding::missing("repository", failure.message),
    });
    findings.extend(configured(&place));
    findings.extend(look::machine(&place.root));
    findings.extend(look::state(&place));
    findings
}

fn configured(place: &Place) -> Vec<Finding> {
    let (config, warnings) = match workspace::read_config(place) {
        Ok(read) => read,
        Err(error) => {
            let text = autopilot_engine::cause::chain(&error);
            return vec![Finding::missing("configuration", text)];
        }
    };
    let mut findings = vec![Finding::ok("configuration", place.config().to_string())];
    let warn = |warning| Finding::warning("configuration", format!("{warning}"));
    findings.extend(warnings.into_iter().map(warn));
    findings.extend(unkept(&config));
    findings.extend(agents(&config, place));
    findings
}

/// What a run would refuse to begin with; what only some kind of run would, is worth knowing.
fn unkept(config: &Config) -> Option<Finding> {
    let refused = |flow| begin::check_settings(config, &begin::limits(config), flow).err();
    let words = |error| autopilot_engine::cause::chain(&error);
    let by_any = refused(Flow::default());
    let by_any = by_any.map(|why| Finding::missing("configuration", words(why)));
    let by_one = || Flow::ALL.into_iter().find_map(refused);
    by_any.or_else(|| by_one().map(|why| Finding::warning("configuration", words(why))))
}

fn agents(config: &Config, place: &Place) -> Vec<Finding> {
    use super::equipment::{self, Found};
    let agents = equipment::agents(config, &place.root);
    let said = |agent: &equipment::Equipped| match &agent.program {
        Found::Own => {
            Finding::ok(&agent.role, format!("{}, played by autopilot itself", agent.mode))
        }
        Found::Model(model) => Finding::ok(&agent.role, format!("{}, {model}", agent.mode)),
        Found::At(path) if agent.mode == "command" => {
            // Somebody's own program: nobody knows what it does when asked for its version.
            Finding::ok(&agent.role, format!("command, {path}"))
        }
        Found::At(path) => match version::of(path) {
            Ok(version) => Finding::ok(&agent.role, format!("{}, {version} ({path})", agent.mode)),
            Err(why) => {
                let text = format!("{path} is there but does not tell its version: {why}");
                Finding::warning(&agent.role, text)
            }
        },
        Found::Nowhere(why) if agent.is_optional => Finding::warning(&agent.role, why.clone()),
        Found::Nowhere(why) => Finding::missing(&agent.role, why.clone()),
    };
    agents.iter().map(said).collect()
}

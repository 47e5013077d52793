//! `autopilot skills`: lists the skills that a task can ask for, where they are and who finds them.

use super::{Done, answer};
use crate::cli::Global;
use crate::exit::CommandFailure;
use autopilot_core::config::{Config, Mode, Role};
use autopilot_core::skill::{Owner, Shelf, Skill};
use autopilot_engine::place::StatePaths;
use autopilot_engine::skill::{SkillPlaces, shelf};
use autopilot_engine::workspace;
use autopilot_host::escape::one_line;
use serde_json::{Value, json};

/// The most characters of a description.
const WORDS_SHOWN_MAX: usize = 100;

/// Prints the skills.
pub fn skills(global: &Global) -> Done {
    let (place, _) = super::place(global)?;
    let config = workspace::read_config(&place).ok().map(|(config, _)| config);
    let shelf = found(&place, config.as_ref())?;
    answer(global, object(&shelf), |_| text(&shelf))
}

/// The skills at the commit a run would start from, and those of the user.
fn found(place: &StatePaths, config: Option<&Config>) -> Result<Shelf, CommandFailure> {
    let repo = super::ground::repo(place)?;
    let variables = super::work::variables();
    let commit = repo.base_tip.as_str();
    let builder = config.map(|config| config.agent(Role::Builder));
    let places =
        SkillPlaces::new(&repo.common_dir, commit, &place.root, config, builder, &variables);
    Ok(shelf(&places)?)
}

fn text(shelf: &Shelf) -> String {
    let mut text = String::new();
    if shelf.in_folders().next().is_none() {
        text.push_str("there are no skills but those shipped; looked in:\n");
        shelf.looked_in.iter().for_each(|place| text.push_str(&format!("  {}\n", one_line(place))));
    }
    let width = shelf.skills.iter().map(|skill| skill.name.len()).max().unwrap_or_default();
    for skill in &shelf.skills {
        let words: String = skill.description.chars().take(WORDS_SHOWN_MAX).collect();
        text.push_str(&format!(
            "{:<width$}  {:<10}  {}\n{:<width$}  {} ({})\n",
            skill.name,
            owner(skill.owner),
            one_line(&words),
            "",
            place(skill),
            readers(skill),
        ));
    }
    for fault in &shelf.faults {
        let what = if fault.is_lost { "not usable" } else { "warning" };
        text.push_str(&format!("{what}: {}: {}\n", one_line(&fault.dir), one_line(&fault.text)));
    }
    text
}

fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::Repository => "repository",
        Owner::User => "user",
        Owner::Shipped => "shipped",
    }
}

fn place(skill: &Skill) -> String {
    match skill.owner {
        Owner::Repository | Owner::User => one_line(&skill.dir).into_owned(),
        Owner::Shipped => {
            "in autopilot itself; `autopilot init --skills` writes it here".to_owned()
        }
    }
}

fn readers(skill: &Skill) -> String {
    match natives(skill).as_slice() {
        [] => "given to every agent as text".to_owned(),
        some => format!("found by {}; given to others as text", some.join(", ")),
    }
}

fn natives(skill: &Skill) -> Vec<&'static str> {
    let natives = Mode::ALL.into_iter().filter(|mode| skill.is_native(*mode));
    natives.map(Mode::word).collect()
}

fn object(shelf: &Shelf) -> Value {
    let skills = shelf.skills.iter().map(|skill| {
        json!({
            "name": skill.name,
            "description": skill.description,
            "owner": owner(skill.owner),
            "dir": skill.folder.map(|_| &skill.dir),
            "agents": natives(skill),
        })
    });
    let faults = shelf.faults.iter().map(|fault| {
        json!({
            "dir": fault.dir,
            "owner": owner(fault.owner),
            "fault": fault.text,
            "usable": !fault.is_lost,
        })
    });
    json!({
        "skills": skills.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "looked_in": shelf.looked_in,
    })
}

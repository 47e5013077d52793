//! What the user's repository still has when the state directory is gone: Autopilot's branches and
//! the trailers of their commits.

use super::super::{Done, done};
use crate::cli::Global;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_engine::lost_state::LostState;
use autopilot_engine::place::StatePaths;
use autopilot_host::checkout;
use autopilot_host::git::{GitCommand, GitError, StateEnv};
use serde_json::{Value, json};

/// The separator of fields, which no ref or trailer contains.
const FORMAT: &str = "%(refname:lstrip=2)%1f%(objectname:short=12)%1f%(committerdate:iso-strict)%1f\
%(trailers:key=Autopilot-Run,valueonly,separator=;)%1f\
%(trailers:key=Autopilot-Task,valueonly,separator=;)%1f\
%(trailers:key=Autopilot-Attempt,valueonly,separator=;)";
const NAMES: [&str; 6] = ["branch", "commit", "when", "run", "task", "attempt"];

/// Prints the branches that are left.
pub fn tell(global: &Global, place: &StatePaths) -> Done {
    let traces = traces(place)?;
    if global.json {
        let object = |fields: &Vec<String>| -> Value {
            NAMES
                .iter()
                .zip(fields)
                .map(|(name, field)| ((*name).to_owned(), json!(field)))
                .collect()
        };
        terminal::json(&Value::Array(traces.iter().map(object).collect()));
        return done();
    }
    let was = match LostState::of(place, &StateEnv::from_process()) {
        Some(lost @ LostState::Id { .. }) => {
            terminal::say(&format!("{lost}; {}\n", lost.remedy()));
            "until then this repository has no state directory".to_owned()
        }
        Some(lost) => lost.to_string(),
        None if place.state.as_str().is_empty() => {
            "this repository has no state directory".to_owned()
        }
        None => format!("the state directory `{}` has no hub", place.state),
    };
    if traces.is_empty() {
        terminal::say(&format!(
            "{was}; your repository has no branch of an earlier run to recover from"
        ));
        return done();
    }
    terminal::say(&format!("{was}; these branches of earlier runs are still there:\n"));
    terminal::say(terminal::table(&NAMES, traces).trim_end());
    terminal::say(
        "\nthe history of the runs themselves is lost; a new run begins on any of these branches",
    );
    done()
}

fn traces(place: &StatePaths) -> Result<Vec<Vec<String>>, CommandFailure> {
    let Some(found) = checkout::find(place.root.as_std_path()) else { return Ok(Vec::new()) };
    let out = GitCommand::isolated("list our branches", &found.common_dir)
        .args(["for-each-ref", "--sort=refname", &format!("--format={FORMAT}")])
        .args(["refs/heads/autopilot/", "refs/heads/autopilot-branches/"])
        .ok()
        .map_err(GitError::from)?;
    Ok(String::from_utf8_lossy(&out).lines().map(fields).collect())
}

fn fields(line: &str) -> Vec<String> {
    line.split('\u{1f}').map(|field| field.trim().to_owned()).collect()
}

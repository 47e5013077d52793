//! From what gates start here: from nothing, or from what the base built.

use super::finding::DoctorFinding;
use autopilot_core::config::{Config, SandboxMode};
use autopilot_core::warmth::{WarmGates, uses_rooms};
use autopilot_engine::place::StatePaths;
use autopilot_host::exec::Supervisor;
use autopilot_host::{sandbox, warm};

const NAME: &str = "gates";

/// Tries which layers can be made in the state directory, if there is one.
pub fn look(place: &StatePaths, config: &Config) -> Option<DoctorFinding> {
    if place.state.as_str().is_empty() || !place.state.is_dir() {
        return None;
    }
    if config.gates.warm == WarmGates::Off {
        let text = "every gate starts from nothing: `gates.warm` is off";
        return Some(DoctorFinding::ok(NAME, text.to_owned()));
    }
    if !uses_rooms(config.gates.warm, config.worktrees.keep) {
        let text = "gates start from what the gate before left: `worktrees.keep` is always";
        return Some(DoctorFinding::ok(NAME, text.to_owned()));
    }
    let without_mounts = match config.sandbox.mode {
        SandboxMode::Auto | SandboxMode::Landlock => None,
        SandboxMode::Bwrap => Some("bwrap"),
        SandboxMode::Off => Some("off"),
    };
    if let Some(word) = without_mounts {
        let why = format!("`sandbox.mode: {word}` gives commands no mounts of their own");
        return Some(DoctorFinding::ok(NAME, format!("every gate starts from nothing: {why}")));
    }
    let (path, supervisor) = (std::env::var_os("PATH").unwrap_or_default(), Supervisor::default());
    let namespaces = sandbox::probe(&path, &supervisor).namespaces;
    Some(match warm::probe(place.state.as_std_path(), &path, &supervisor, &namespaces) {
        Ok(probe) => DoctorFinding::ok(NAME, probe.sentence()),
        Err(error) => DoctorFinding::warning(NAME, autopilot_engine::cause::chain(&error)),
    })
}

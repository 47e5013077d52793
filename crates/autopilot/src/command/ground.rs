//! The user's repository and its hub, opened under the lock for commands that change them.

use super::init::base_branch;
use super::work::variables;
use crate::exit::CommandFailure;
use autopilot_core::config::Config;
use autopilot_engine::place::StatePaths;
use autopilot_engine::redaction::KnownSecrets;
use autopilot_engine::workspace;
use autopilot_host::git::{Border, Hub, UserRepo};
use autopilot_host::lock::Lock;

/// The repository and its hub, with the lock.
pub struct Ground {
    pub repo: UserRepo,
    pub hub: Hub,
    _lock: Lock,
}

/// Opens both; refused while a process works on a run, which the message names.
pub fn open(place: &StatePaths) -> Result<Ground, CommandFailure> {
    let lock = lock(place)?;
    let repo = repo(place)?;
    let hub = Hub::open(place.state.as_std_path(), &repo)?;
    Ok(Ground { repo, hub, _lock: lock })
}

impl Ground {
    /// The check of everything that leaves the hub.
    pub fn border(&self, place: &StatePaths) -> Result<Border, CommandFailure> {
        let (known, _) = secrets(place);
        Ok(known.with_remotes(&self.repo).border(&self.repo)?)
    }
}

/// The secrets that are known by the configuration as it is now, and its patterns. Without a readable
/// one, those of the environment are known.
pub fn secrets(place: &StatePaths) -> (KnownSecrets, Vec<String>) {
    let variables = variables();
    match workspace::read_config(place) {
        Ok((config, _)) => {
            let known = KnownSecrets::new(place, &config, &variables);
            (known, config.logging.redact_patterns)
        }
        Err(_) => (KnownSecrets::of_environment(&variables), Vec::new()),
    }
}

/// Takes the lock of the repository.
pub fn lock(place: &StatePaths) -> Result<Lock, CommandFailure> {
    Ok(workspace::lock(place, "")?)
}

/// The user's repository. A faulty configuration is ignored, so that it blocks nobody's work.
pub fn repo(place: &StatePaths) -> Result<UserRepo, CommandFailure> {
    let config: Option<Config> = workspace::read_config(place).ok().map(|(config, _)| config);
    let filters = config.as_ref().map(|config| config.git.filters.clone()).unwrap_or_default();
    let root = place.root.as_std_path();
    let base = config.map(|config| config.repo.base_branch).or_else(|| base_branch(root));
    Ok(UserRepo::examine(root, base.as_deref().unwrap_or("main"), &filters)?)
}

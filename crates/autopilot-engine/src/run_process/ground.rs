//! Where the jobs of a run work, and with what.

use super::{Machine, RunProcessError};
use crate::job::{Context, Workshop};
use crate::place::StatePaths;
use crate::purse::Purse;
use crate::redaction::redactor;
use crate::replay::Player;
use crate::signal::Teller;
use crate::store::Texts;
use crate::workspace;
use autopilot_core::config::Config;
use autopilot_host::redact::Redactor;
use autopilot_host::sandbox;
use autopilot_journal::SqliteReader;
use std::sync::{Arc, Mutex};

/// Everything a job needs that is known before there is a loop.
pub struct JobGround {
    place: StatePaths,
    config: Config,
    workshop: Workshop,
    machine: Machine,
    player: Option<Arc<Player>>,
    redactor: Arc<Redactor>,
    history: Mutex<SqliteReader>,
    sandbox: sandbox::Probe,
}

impl JobGround {
    /// Looks up what can't be had without reading: the secrets, the journal, the sandbox.
    pub fn new(
        place: StatePaths,
        config: Config,
        workshop: Workshop,
        machine: Machine,
        player: Option<Arc<Player>>,
    ) -> Result<JobGround, RunProcessError> {
        let urls = &workshop.repo.remote_secrets;
        let path = machine.variables.get("PATH").map(String::as_str).unwrap_or_default();
        Ok(JobGround {
            redactor: Arc::new(redactor(&place, &config, &machine.variables, urls)?),
            history: Mutex::new(workspace::reader(&place)?),
            sandbox: sandbox::probe(path.as_ref()),
            place,
            config,
            workshop,
            machine,
            player,
        })
    }

    /// With what the jobs need of the loop: where to put texts and whom to tell.
    pub fn context(self, texts: Texts, signals: Teller) -> Context {
        Context {
            place: self.place,
            config: self.config,
            workshop: self.workshop,
            redactor: self.redactor,
            variables: self.machine.variables,
            own: self.machine.own,
            sandbox: self.sandbox,
            texts,
            history: self.history,
            signals,
            player: self.player,
            numbering: Mutex::default(),
            purse: Purse::default(),
        }
    }
}

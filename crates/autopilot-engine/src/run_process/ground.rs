//! The parts of a job's context that are known before there is a loop.

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

/// Everything the jobs of a run need besides the loop.
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
    /// Reads the secrets, opens the journal and finds the sandbox.
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

    /// Completes the context with the store of texts and the signals to the loop.
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

//! The parts of a job's context that are known before there is a loop.

use super::{Machine, RunProcessError};
use crate::job::{Context, PreparedProof, Workshop, jail_network, sandbox_mode};
use crate::place::StatePaths;
use crate::purse::Purse;
use crate::redaction::KnownSecrets;
use crate::replay::Player;
use crate::signal::Teller;
use crate::store::Texts;
use crate::workspace;
use autopilot_core::config::Config;
use autopilot_host::exec::{self, Supervisor};
use autopilot_host::git::Border;
use autopilot_host::jail::JailPlan;
use autopilot_host::redact::Redactor;
use autopilot_host::sandbox::{self, Probe, SandboxPlan};
use std::sync::{Arc, Mutex};

/// Everything the jobs of a run need besides the loop, which completes it to a context.
pub struct JobGround {
    context: Box<dyn FnOnce(Texts, Teller) -> Context + Send>,
    /// The check of everything that leaves the hub.
    pub border: Arc<Border>,
    pub redactor: Arc<Redactor>,
}

impl JobGround {
    /// Reads the secrets, opens the journal and finds the sandbox; `notice` tells a person about it.
    pub fn new(
        place: StatePaths,
        config: Config,
        workshop: Workshop,
        machine: Machine,
        player: Option<Arc<Player>>,
        notice: &mut dyn FnMut(&str),
    ) -> Result<JobGround, RunProcessError> {
        let Machine { variables, own, .. } = machine;
        let secrets = KnownSecrets::new(&place, &config, &variables).with_remotes(&workshop.repo);
        let redactor = Arc::new(secrets.redactor(&config.logging.redact_patterns)?);
        let prompt_redactor = secrets.redactor_for_agents(&config.logging.redact_patterns)?;
        let border = Arc::new(secrets.border(&workshop.repo)?);
        let (checked, clean) = (Arc::clone(&border), Arc::clone(&redactor));
        let history = Mutex::new(workspace::reader(&place)?);
        let path = variables.get("PATH").map(String::as_str).unwrap_or_default();
        let supervisor = Supervisor {
            program: own.clone().into_std_path_buf(),
            args: vec![exec::ARGUMENT.into()],
        };
        let sandbox = sandbox::probe(path.as_ref(), &supervisor);
        tell_sandbox(&sandbox, &config, notice)?;
        let context = Box::new(move |texts, signals| Context {
            place,
            config,
            workshop,
            redactor,
            prompt_redactor,
            border: checked,
            variables,
            own,
            sandbox,
            texts,
            history,
            signals,
            player,
            numbering: Mutex::default(),
            purse: Purse::default(),
            prepared: PreparedProof::default(),
        });
        Ok(JobGround { context, border, redactor: clean })
    }

    /// Completes the context with the store of texts and the signals to the loop.
    pub fn context(self, texts: Texts, signals: Teller) -> Context {
        (self.context)(texts, signals)
    }
}

/// Refuses a run whose sandbox can't be had, and tells a person what the sandbox does not keep.
fn tell_sandbox(
    probe: &Probe,
    config: &Config,
    notice: &mut dyn FnMut(&str),
) -> Result<(), RunProcessError> {
    let network = jail_network(config.sandbox.network);
    let jail = JailPlan { network, ..JailPlan::default() };
    let choice = probe.choose(sandbox_mode(config.sandbox.mode), jail)?;
    if let Some(text) = &choice.notice {
        notice(text);
    }
    if !matches!(choice.plan, SandboxPlan::Jail(_)) {
        return Ok(());
    }
    if probe.gap().is_some() {
        notice(
            "the sandbox works without namespaces here; `autopilot doctor` says what it can't keep",
        );
    }
    for socket in &config.sandbox.sockets {
        notice(&format!(
            "the sandbox lets agents and commands through to `{socket}`, and to all that it can do"
        ));
    }
    Ok(())
}

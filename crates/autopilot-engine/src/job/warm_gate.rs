//! Gates over the seeds of a run's base: which may be, and the commands in layers over them.

use super::base_seed::SeedSearch;
use super::change::in_guard_words;
use super::gate_record::TakenGate;
use super::gate_site::GateSite;
use super::own_work::blocking;
use super::reporter::{AskedTries, Asking};
use super::user_command::CommandCheck;
use super::{Job, JobError};
use autopilot_core::doubt::Doubt;
use autopilot_core::gate_book::GateMark;
use autopilot_core::holdout::HOLDOUT;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::warmth::{self, LastWord, RedLook};
use autopilot_host::git::Oid;
use autopilot_host::sandbox::SandboxPlan;
use autopilot_host::warm::{
    self, GateLayer, LayerKind, RoomPaths, SealedSeed, WarmError, WarmProbe, WarmStore,
};
use autopilot_host::{exec, file, jail};
use std::time::{Duration, Instant};

/// The results of the commands of a gate.
#[derive(Default)]
pub struct GateRun {
    pub checks: Vec<CommandCheck>,
    /// A command ran over a seed.
    pub is_warm: bool,
    /// What a person should know of how they ran.
    pub notes: Vec<String>,
    /// What a person should look at besides what the results themselves show.
    pub doubts: Vec<Doubt>,
    /// The gate and its verdict, for the record.
    pub mark: Option<GateMark>,
    /// The proof by an earlier attempt, if the commands were not run.
    pub taken: Option<TakenGate>,
}

/// A command of a gate, and where it runs.
#[derive(Clone, Copy)]
struct GateCommand<'a> {
    name: &'static str,
    line: &'a str,
    commit: &'a Oid,
    may_be_warm: bool,
}

/// What a gate starts from.
enum GateGround {
    Nothing,
    /// From nothing, because of what the change is.
    NothingFor(String),
    /// From the seeds of its commands.
    Seeds,
}

/// The longest `package.json` that is read.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
const NO_SEED: &str = "the base left nothing to start from";
const OUTDATED: &str = "the tools or settings are no longer those that the base was built with";
const REFUTED: &str = "what passed over the base's build has failed from nothing in this run";
const NO_LAYER: &str = "starting from what the base built costs more than it saves here";

impl Job {
    /// The store of rooms and seeds; none where programs have no mounts of their own, or gates are
    /// asked to run in slots.
    pub(super) fn warm_store(&self) -> Result<Option<&WarmStore>, JobError> {
        let config = &self.context.config;
        if !warmth::uses_rooms(config.gates.warm, config.worktrees.keep) {
            return Ok(None);
        }
        let plan = self.context.sandbox_for(jail::JailPlan::default())?.plan;
        match plan {
            SandboxPlan::Jail(plan) if plan.namespaces => {
                let store = &self.context.workshop.warm;
                if store.get().is_none() {
                    let opened = blocking(|| self.context.workshop.open_warm())?;
                    let _other = store.set(opened);
                }
                Ok(store.get())
            }
            SandboxPlan::Jail(_) | SandboxPlan::Off | SandboxPlan::Bwrap { .. } => Ok(None),
        }
    }

    /// What a gate on this commit starts from.
    fn ground(
        &self,
        commit: &Oid,
        commands: &[(&'static str, String)],
    ) -> Result<GateGround, JobError> {
        let gates = &self.context.config.gates;
        // A run of a version without a last proof must not need one.
        let has_last_word =
            gates.last_word == LastWord::Warm || self.run.switches.contains(&Switch::ColdProof);
        let is_cold = self.warm_store()?.is_none() || self.want.step == Step::Prove;
        if is_cold || !has_last_word {
            return Ok(GateGround::Nothing);
        }
        if self.run.seeds.is_refuted {
            return Ok(GateGround::NothingFor(REFUTED.to_owned()));
        }
        let base = self.run_base()?;
        let change = blocking(|| self.context.workshop.change(&base, commit))?;
        let setup = self.context.config.worktrees.setup.iter();
        let lines: Vec<String> =
            commands.iter().map(|(_, line)| line).chain(setup).cloned().collect();
        Ok(match warmth::cold_cause(&in_guard_words(&change).files, &lines) {
            Some(cause) => GateGround::NothingFor(cause.to_string()),
            None => GateGround::Seeds,
        })
    }

    /// The seed that a command starts from, and the way to lay a gate over it; an inner error says
    /// why it starts from nothing.
    fn start_of(&self, line: &str) -> Result<Result<(SealedSeed, LayerKind), String>, JobError> {
        let seed = match self.seed_of(line)? {
            SeedSearch::Found(seed) => seed,
            SeedSearch::Missing => return Ok(Err(NO_SEED.to_owned())),
            SeedSearch::Outdated => return Ok(Err(OUTDATED.to_owned())),
        };
        Ok(match self.layer_kind(&seed)? {
            Some(kind) => Ok((seed, kind)),
            None => Err(NO_LAYER.to_owned()),
        })
    }

    /// The cheapest way to lay a gate over a seed here.
    fn layer_kind(&self, seed: &SealedSeed) -> Result<Option<LayerKind>, JobError> {
        let kind = self.warm_probe()?.kind();
        let pays = |copy: Duration| warmth::copy_pays(copy, seed.cold_time());
        Ok(kind.filter(|kind| match kind {
            LayerKind::Copy => seed.copy_time().is_none_or(pays),
            LayerKind::Overlay | LayerKind::Reflink => true,
        }))
    }

    fn warm_probe(&self) -> Result<&WarmProbe, JobError> {
        let known = &self.context.workshop.probe;
        if known.get().is_none() {
            let path = self.context.variables.get("PATH").map(String::as_str).unwrap_or_default();
            let supervisor = exec::Supervisor {
                program: self.context.own.clone().into_std_path_buf(),
                args: vec![exec::ARGUMENT.into()],
            };
            let state = self.context.place.state.as_std_path();
            let namespaces = &self.context.sandbox.namespaces;
            let found = blocking(|| warm::probe(state, path.as_ref(), &supervisor, namespaces))?;
            let _other = known.set(found);
        }
        known.get().ok_or(JobError::Internal("a probe without an answer"))
    }

    /// Runs all commands, even after one failed, so that the next round sees everything. Each gets
    /// the commit as it is, not as the command before left it. The step's time counts from `since`.
    pub(super) async fn checks(
        &self,
        commit: &Oid,
        commands: Vec<(&'static str, String)>,
        since: Instant,
    ) -> Result<GateRun, JobError> {
        let (held, commands): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|(name, _)| *name == HOLDOUT);
        let commands = self.in_order(commands)?;
        let all = [commands.clone(), held.clone()].concat();
        let ground = self.ground(commit, &commands)?;
        let may_be_warm = matches!(ground, GateGround::Seeds);
        if let Some(run) = self.known_gate(commit, &all, may_be_warm)? {
            return Ok(run);
        }
        let before = self.gate_key(commit, &all, false)?;
        let mut run = GateRun::default();
        if let GateGround::NothingFor(why) = &ground {
            run.notes.push(format!("checked from nothing, because {why}"));
        }
        let one = async |(name, line): &(&'static str, String)| {
            if self.cancel.is_asked() {
                return Ok(None);
            }
            let command = GateCommand { name, line, commit, may_be_warm };
            let mut notes = Vec::new();
            let check = self.reported_check(&command, since, &mut notes).await?;
            let again = async || self.reported_check(&command, Instant::now(), &mut notes).await;
            let check = self.second_try(check, again).await?;
            Ok::<_, JobError>(Some((check, notes)))
        };
        let seen = match self.runs_side_by_side()? {
            true => futures_util::future::join_all(commands.iter().map(one)).await,
            false => {
                let mut seen = Vec::new();
                for command in &commands {
                    seen.push(one(command).await);
                }
                seen
            }
        };
        for seen in seen {
            let Some((check, notes)) = seen? else { continue };
            run.is_warm |= check.is_warm;
            run.checks.push(check);
            run.notes.extend(notes);
        }
        self.held_out_checks(commit, &held, &mut run).await?;
        self.marked(run, commit, &all, &before)
    }

    /// Whether the commands of a gate run at once: each needs a room of its own, and ports of its own.
    fn runs_side_by_side(&self) -> Result<bool, JobError> {
        let config = &self.context.config;
        let is_asked = config.commands.parallel && config.worktrees.ports == 0;
        Ok(is_asked && self.warm_store()?.is_some())
    }

    /// Runs a command and reads the report of its runner, where the report is not in the command's way.
    async fn reported_check(
        &self,
        command: &GateCommand<'_>,
        since: Instant,
        notes: &mut Vec<String>,
    ) -> Result<CommandCheck, JobError> {
        let (mut tries, mut since) = (AskedTries::default(), since);
        loop {
            let asking = tries.asking();
            let check = match command.may_be_warm {
                true => self.warm_or_cold(command, since, notes, asking).await?,
                false => self.cold_check(command, since, asking).await?,
            };
            if let Some(check) = tries.saw(check, self.cancel.is_asked()) {
                return Ok(check);
            }
            // Another try has a time of its own.
            since = Instant::now();
        }
    }

    /// Runs a command over its seed if it has one that can be trusted, else from nothing.
    async fn warm_or_cold(
        &self,
        command: &GateCommand<'_>,
        since: Instant,
        notes: &mut Vec<String>,
        asking: Asking,
    ) -> Result<CommandCheck, JobError> {
        let GateCommand { name, line, .. } = *command;
        let why = match self.start_of(line)? {
            Ok((seed, kind)) => {
                match self.warm_check(command, (&seed, kind), since, asking).await? {
                    Ok(check) => {
                        let check = self.look_again(check, command, notes, asking).await?;
                        return Ok(check);
                    }
                    Err(why) => why,
                }
            }
            Err(why) => why,
        };
        // Most commands have no seed because they are quick.
        if why != NO_SEED {
            notes.push(format!("{name} checked from nothing, because {why}"));
        }
        // What the seed has cost is not the command's time.
        self.cold_check(command, Instant::now(), asking).await
    }

    async fn cold_check(
        &self,
        command: &GateCommand<'_>,
        since: Instant,
        asking: Asking,
    ) -> Result<CommandCheck, JobError> {
        let site = self.cold_site(command.commit, since).await?;
        let one = (command.name, command.line);
        let mut check = self.command_at(one, &site, since, asking).await?;
        check.has_changed(site.changed()?);
        Ok(check)
    }

    /// Runs a command in a layer of its own; an inner error says why it has to start from nothing.
    async fn warm_check(
        &self,
        command: &GateCommand<'_>,
        (seed, kind): (&SealedSeed, LayerKind),
        since: Instant,
        asking: Asking,
    ) -> Result<Result<CommandCheck, String>, JobError> {
        let Some(store) = self.warm_store()? else {
            return Err(JobError::Internal("a seed without a store"));
        };
        let layer = match blocking(|| Ok::<_, JobError>(filled(store, seed, kind, command.commit)))?
        {
            Ok(layer) => layer,
            Err(error) => return cold_or_error(error),
        };
        let mut site = GateSite::Layer(Box::new(layer));
        let setup = self.context.config.worktrees.setup.as_deref();
        let is_whole = seed.seal().setup_lost.is_empty();
        let manifest = package_json(seed);
        let is_left = |line| is_whole && warmth::installs_only(line, manifest.as_deref());
        if setup.is_some_and(|line| !is_left(line)) {
            match self.set_up(&site, since).await {
                Err(JobError::SetupCommand { failure, .. }) => {
                    return Ok(Err(format!("{failure} over what the base built")));
                }
                done => done?,
            }
            if !site.changed()?.is_empty() {
                return Ok(Err("the setup changes files of the change".to_owned()));
            }
            if let GateSite::Layer(layer) = &mut site
                && let Err(error) = blocking(|| Ok::<_, JobError>(layer.before_command()))?
            {
                return cold_or_error(error);
            }
        }
        let one = (command.name, command.line);
        let mut check = self.command_at(one, &site, since, asking).await?;
        check.is_warm = true;
        if let GateSite::Layer(layer) = &site {
            let found = blocking(|| layer.differences())?;
            if let Some(path) = found.touched.first() {
                return Ok(Err(format!("a command touched `{}` while it ran", path.display())));
            }
            check.has_changed(found.changed);
        }
        Ok(Ok(check))
    }

    /// Runs a command that failed over a seed once more from nothing, where the seed may be the
    /// reason or the failure would end the task.
    async fn look_again(
        &self,
        check: CommandCheck,
        command: &GateCommand<'_>,
        notes: &mut Vec<String>,
        asking: Asking,
    ) -> Result<CommandCheck, JobError> {
        let rounds_max = self.run.limits.rounds_max;
        let could_end = warmth::could_end(self.want.step, &self.task, rounds_max);
        let look = warmth::red_look(&check.ran.text, could_end);
        if check.passed() || look == RedLook::Believe || self.cancel.is_asked() {
            return Ok(check);
        }
        let cold = self.cold_check(command, Instant::now(), asking).await?;
        if cold.passed() {
            notes.push(format!(
                "{} over what the base built, and passed from nothing",
                check.failure()
            ));
        }
        Ok(cold)
    }
}

fn filled(
    store: &WarmStore,
    seed: &SealedSeed,
    kind: LayerKind,
    commit: &Oid,
) -> Result<GateLayer, WarmError> {
    let mut layer = store.layer(seed, kind)?;
    layer.fill(commit)?;
    layer.before_command()?;
    Ok(layer)
}

fn cold_or_error<T>(error: WarmError) -> Result<Result<T, String>, JobError> {
    match error.cold_reason() {
        Some(reason) => Ok(Err(reason.to_string())),
        None => Err(error.into()),
    }
}

/// The `package.json` of a seed, which is that of the change too: another one is proven from nothing.
/// One that can't be read is empty.
fn package_json(seed: &SealedSeed) -> Option<String> {
    let file = RoomPaths::below(&seed.root()).tree.join("package.json");
    let text = file::read_capped(&file, MANIFEST_BYTES_MAX).unwrap_or_default();
    file.exists().then(|| String::from_utf8_lossy(&text).into_owned())
}

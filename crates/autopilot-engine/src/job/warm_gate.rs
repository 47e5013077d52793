//! Gates over a seed: which may be, the seed of a run's base, and the commands in layers over it.

use super::change::in_guard_words;
use super::gate_site::{self, GateSite};
use super::own_work::blocking;
use super::user_command::{self, CommandCheck};
use super::{Job, JobError};
use crate::toolchain;
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::warmth::{self, LastWord, RedLook, WarmGates};
use autopilot_host::fail;
use autopilot_host::git::Oid;
use autopilot_host::sandbox::SandboxPlan;
use autopilot_host::warm::{
    self, ColdRoom, GateLayer, LayerKind, SealRequest, SealedSeed, SeedBounds, WarmError, WarmProbe,
    WarmStore,
};
use autopilot_host::{dir, exec, file, jail};
use camino::Utf8PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The seeds that stay: of the branches that somebody works on, and not for ever.
const BOUNDS: SeedBounds = SeedBounds { seeds_max: 4, bytes_max: 20 << 30 };
/// A whole copy of a seed has to be cheaper than this part of a gate from nothing.
const COPY_PAYS_BELOW: u32 = 3;

/// The results of the commands of a gate.
#[derive(Default)]
pub struct GateRun {
    pub checks: Vec<CommandCheck>,
    /// A command ran over a seed.
    pub is_warm: bool,
    /// What a person should know of how they ran.
    pub notes: Vec<String>,
}

/// What a gate starts from.
pub enum GateGround {
    Cold {
        /// Why the seed that is there is not used.
        why: Option<String>,
    },
    Warm {
        seed: SealedSeed,
        kind: LayerKind,
    },
}

impl Job {
    /// The store of rooms and seeds; none where programs have no mounts of their own.
    pub(super) fn warm_store(&self) -> Result<Option<&WarmStore>, JobError> {
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
    pub(super) fn ground(
        &self,
        commit: &Oid,
        commands: &[(&'static str, String)],
    ) -> Result<GateGround, JobError> {
        let cold = |why: Option<String>| Ok(GateGround::Cold { why });
        let gates = &self.context.config.gates;
        // A run of a version without a last proof must not need one.
        let has_last_word =
            gates.last_word == LastWord::Warm || self.run.switches.contains(&Switch::ColdProof);
        if gates.warm == WarmGates::Off || self.want.step == Step::Prove || !has_last_word {
            return cold(None);
        }
        let Some(seed) = self.base_seed()? else { return cold(None) };
        let Some(kind) = self.layer_kind(&seed)? else { return cold(None) };
        let change = blocking(|| self.context.workshop.change(&self.run_base()?, commit))?;
        let setup = self.context.config.worktrees.setup.iter();
        let lines: Vec<String> =
            commands.iter().map(|(_, line)| line).chain(setup).cloned().collect();
        match warmth::cold_cause(&in_guard_words(&change).files, &lines) {
            Some(cause) => cold(Some(cause.to_string())),
            None => Ok(GateGround::Warm { seed, kind }),
        }
    }

    /// The seed of the run's base, if there is one.
    pub(super) fn base_seed(&self) -> Result<Option<SealedSeed>, JobError> {
        let known = || self.context.workshop.seed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seed) = known().clone() {
            return Ok(Some(seed));
        }
        let Some(store) = self.warm_store()? else { return Ok(None) };
        let key = self.seed_key()?;
        let found = blocking(|| store.find(&key))?;
        known().clone_from(&found);
        Ok(found)
    }

    /// The cheapest way to lay a gate over a seed here.
    fn layer_kind(&self, seed: &SealedSeed) -> Result<Option<LayerKind>, JobError> {
        let kind = self.warm_probe()?.kind();
        let is_dear = |copy: Duration| copy * COPY_PAYS_BELOW > seed.cold_time();
        Ok(kind.filter(|kind| match kind {
            LayerKind::Copy => !seed.copy_time().is_some_and(is_dear),
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
            let found =
                blocking(|| warm::probe(state, path.as_ref(), &supervisor, namespaces))?;
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
        let mut ground = self.ground(commit, &commands)?;
        let mut run = GateRun::default();
        if let GateGround::Cold { why: Some(why) } = &ground {
            run.notes.push(format!("proven from nothing: {why}"));
        }
        for (name, line) in commands {
            if self.cancel.is_asked() {
                break;
            }
            if let GateGround::Warm { seed, kind } = &ground {
                match self.warm_check((name, &line), commit, (seed, *kind), since).await? {
                    Ok(check) => {
                        run.is_warm = true;
                        let check = self.look_again(check, commit, since, &mut run.notes).await?;
                        run.checks.push(check);
                        continue;
                    }
                    Err(why) => {
                        run.notes.push(format!("proven from nothing: {why}"));
                        ground = GateGround::Cold { why: Some(why) };
                    }
                }
            }
            run.checks.push(self.cold_check((name, &line), commit, since).await?);
        }
        Ok(run)
    }

    async fn cold_check(
        &self,
        (name, line): (&'static str, &str),
        commit: &Oid,
        since: Instant,
    ) -> Result<CommandCheck, JobError> {
        let site = self.cold_site(commit, since).await?;
        let mut check = self.command_at(name, line, &site, since).await?;
        if name == user_command::FORMAT {
            check.changed = !site.changed()?.is_empty();
        }
        Ok(check)
    }

    /// Runs a command in a layer of its own; an inner error says why it has to start from nothing.
    async fn warm_check(
        &self,
        (name, line): (&'static str, &str),
        commit: &Oid,
        (seed, kind): (&SealedSeed, LayerKind),
        since: Instant,
    ) -> Result<Result<CommandCheck, String>, JobError> {
        let Some(store) = self.warm_store()? else {
            return Err(JobError::Internal("a seed without a store"));
        };
        let layer = match blocking(|| Ok::<_, JobError>(filled(store, seed, kind, commit)))? {
            Ok(layer) => layer,
            Err(error) => return cold_or_error(error),
        };
        let mut site = GateSite::Layer(Box::new(layer));
        let setup = self.context.config.worktrees.setup.as_deref();
        let is_whole = seed.seal().setup_lost.is_empty();
        if setup.is_some_and(|line| !is_whole || !warmth::installs_only(line)) {
            self.set_up(&site, since).await?;
            if let GateSite::Layer(layer) = &mut site
                && let Err(error) = blocking(|| Ok::<_, JobError>(layer.before_command()))?
            {
                return cold_or_error(error);
            }
        }
        let mut check = self.command_at(name, line, &site, since).await?;
        if let GateSite::Layer(layer) = &site {
            let found = blocking(|| layer.differences())?;
            if let Some(path) = found.touched.first() {
                return Ok(Err(format!("a command touched `{}` while it ran", path.display())));
            }
            check.changed = name == user_command::FORMAT && !found.changed.is_empty();
        }
        Ok(Ok(check))
    }

    /// Runs a command that failed over a seed once more from nothing, where the seed may be the
    /// reason or the failure would end the task.
    async fn look_again(
        &self,
        check: CommandCheck,
        commit: &Oid,
        since: Instant,
        notes: &mut Vec<String>,
    ) -> Result<CommandCheck, JobError> {
        let is_last = self.task.round >= self.run.limits.rounds_max;
        let look = warmth::red_look(&check.ran.text, is_last);
        if check.passed() || look == RedLook::Believe || self.cancel.is_asked() {
            return Ok(check);
        }
        let cold = self.cold_check((check.name, &check.line), commit, since).await?;
        if cold.passed() {
            notes.push(format!("{} over what the base built, and passed from nothing", check.failure()));
        }
        Ok(cold)
    }

    /// Proves the untouched base, all commands in one room, and seals the room if that pays.
    pub(super) async fn base_checks(
        &self,
        base: &Oid,
        commands: Vec<(&'static str, String)>,
    ) -> Result<GateRun, JobError> {
        if self.warm_store()?.is_none() || self.context.config.gates.warm == WarmGates::Off {
            return self.checks(base, commands, self.began).await;
        }
        let mut run = GateRun::default();
        let mut site = self.cold_site(base, self.began).await?;
        let (mut is_whole, began) = (true, Instant::now());
        let last = commands.len().saturating_sub(1);
        for (place, (name, line)) in commands.into_iter().enumerate() {
            if self.cancel.is_asked() {
                return Ok(run);
            }
            let mut check = self.command_at(name, &line, &site, self.began).await?;
            let changed = !site.changed()?.is_empty();
            check.changed = changed && name == user_command::FORMAT;
            run.checks.push(check);
            if changed {
                is_whole = false;
                if place < last {
                    site = self.cold_site(base, self.began).await?;
                }
            }
        }
        let is_green = run.checks.iter().all(CommandCheck::passed);
        let pays = match fail::seed_pays_from() {
            Some(least) => began.elapsed() >= least,
            None => warmth::seed_pays(began.elapsed()),
        };
        let GateSite::Room(room) = site else { return Ok(run) };
        let kept = match is_whole && is_green && pays {
            true => self.seal(*room, began.elapsed()),
            false => self.keep_caches(*room),
        };
        if let Err(error) = kept {
            run.notes.push(crate::cause::chain(&error));
        }
        Ok(run)
    }

    fn seal(&self, room: ColdRoom, cold: Duration) -> Result<(), JobError> {
        let (key, home) = (self.seed_key()?, self.home_files());
        let request = SealRequest { key: &key, cold, home: &home };
        let seed = blocking(|| room.seal(&request))?;
        let from = seed.root().join("cache");
        let to = self.seed_caches();
        blocking(|| {
            dir::remove(to.as_std_path()).map_err(JobError::directory("replace", &to))?;
            dir::copy(&from, to.as_std_path()).map_err(JobError::directory("fill", &to))
        })?;
        *self.context.workshop.seed.lock().unwrap_or_else(PoisonError::into_inner) = Some(seed);
        let state = self.context.place.state.as_std_path();
        blocking(|| warm::bound(state, &BOUNDS).map(|_removed| ()))
    }

    /// Keeps the package caches that the base has filled.
    fn keep_caches(&self, room: ColdRoom) -> Result<(), JobError> {
        let (from, to) = (room.paths().cache, self.seed_caches());
        blocking(|| {
            dir::remove(to.as_std_path()).map_err(JobError::directory("replace", &to))?;
            let parent = to.parent().map(Utf8PathBuf::from).unwrap_or_default();
            dir::create_private(parent.as_std_path())
                .map_err(JobError::directory("create", &parent))?;
            dir::move_to(&from, to.as_std_path()).map_err(JobError::directory("keep", &to))
        })?;
        blocking(|| room.remove())
    }

    /// The name of the seed of the run's base: everything that its content depends on.
    fn seed_key(&self) -> Result<String, JobError> {
        let base = self.run_base()?;
        let tree = blocking(|| self.context.workshop.hub.tree_of(&base))?;
        let config = &self.context.config;
        let root = &self.context.place.root;
        let copied = config.worktrees.copy.iter().map(|name| {
            let path = root.join(name);
            let bytes = file::read_capped(path.as_std_path(), super::room::HOME_FILE_BYTES_MAX);
            sha256_hex(&bytes.unwrap_or_default())
        });
        let home = self.home_files();
        let home = home.iter().map(|(name, bytes)| (name.clone(), sha256_hex(bytes)));
        let mut commands: Vec<String> =
            config.commands.validation(None).into_iter().map(|(_, line)| line).collect();
        commands.extend(config.worktrees.setup.clone());
        let tools = toolchain::fingerprint(&commands, &self.context.variables);
        let place = self.warm_store()?.and_then(|store| gate_site::inside(store.place()));
        let variables = self.gate_variables(place.as_ref());
        let sandbox = &config.sandbox;
        let text = serde_json::to_string(&(
            (env!("CARGO_PKG_VERSION"), tree.to_string(), commands, tools),
            (copied.collect::<Vec<_>>(), home.collect::<Vec<_>>(), variables),
            (format!("{:?}", sandbox.network), &sandbox.write, &sandbox.sockets),
        ));
        Ok(sha256_hex(text.map_err(JobError::Json)?.as_bytes()))
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

//! The seeds of a run's base: one for each command, made by the base's own gate, found again by
//! everything that their content depends on.
//!
//! A command's seed holds what that command alone has left, from nothing. So the base's own gate is as
//! cold as the last one of the run, and no command passes because of another.

use super::gate_site::{self, GateSite};
use super::own_work::blocking;
use super::reporter::AskedTries;
use super::user_command::CommandCheck;
use super::warm_gate::GateRun;
use super::{Job, JobError};
use crate::{environment, exposure, toolchain};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::warmth;
use autopilot_host::git::Oid;
use autopilot_host::warm::{self, ColdRoom, RoomPaths, SealRequest, SealedSeed, SeedBounds};
use autopilot_host::{dir, fail, file};
use camino::Utf8PathBuf;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The seeds that stay: of the commands and branches that somebody works on, and not for ever.
const BOUNDS: SeedBounds = SeedBounds { seeds_max: 12, bytes_max: 20 << 30 };

/// The seeds that a run has made or found, by the command line.
pub type KnownSeeds = BTreeMap<String, (String, SealedSeed)>;

/// The answer to the question for the seed of a command.
pub enum SeedSearch {
    Found(SealedSeed),
    /// The base has none: it was quick, it failed, or it never ran the command.
    Missing,
    /// The base was built with other tools or settings than there are now.
    Outdated,
}

impl Job {
    /// The seed of a command on the run's base.
    pub(super) fn seed_of(&self, line: &str) -> Result<SeedSearch, JobError> {
        let Some(store) = self.warm_store()? else { return Ok(SeedSearch::Missing) };
        if exposure::is_marked(&self.context.place) {
            return Ok(SeedSearch::Missing);
        }
        let key = self.seed_key(line)?;
        let known = self.known_seeds().get(line).cloned();
        if let Some((known, seed)) = known {
            return Ok(match known == key {
                true => SeedSearch::Found(seed),
                false => SeedSearch::Outdated,
            });
        }
        let Some(seed) = blocking(|| store.find(&key))? else { return Ok(SeedSearch::Missing) };
        self.known_seeds().insert(line.to_owned(), (key, seed.clone()));
        Ok(SeedSearch::Found(seed))
    }

    fn known_seeds(&self) -> std::sync::MutexGuard<'_, KnownSeeds> {
        self.context.workshop.seeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Proves the untouched base, each command in a room of its own, and seals the rooms that pay.
    pub(super) async fn base_checks(
        &self,
        base: &Oid,
        commands: Vec<(&'static str, String)>,
    ) -> Result<GateRun, JobError> {
        if self.warm_store()?.is_none() {
            return self.checks(base, commands, self.began).await;
        }
        if let Some(run) = self.known_base(base, &commands)? {
            return Ok(run);
        }
        // Packages that one command has loaded are there for the next, but not those of an attempt
        // before.
        let caches = self.seed_caches();
        blocking(|| {
            dir::remove(caches.as_std_path()).map_err(JobError::directory("replace", &caches))
        })?;
        let before = self.gate_key(base, &commands, false)?;
        let mut run = GateRun::default();
        for (name, line) in commands.clone() {
            if self.cancel.is_asked() {
                break;
            }
            let key = self.seed_key(&line)?;
            let (check, site, cold) = self.base_check(base, (name, &line)).await?;
            // A command that passes only unasked has left its work in another room than this.
            let is_last = check.seen().unasked().is_none();
            if let GateSite::Room(room) = site {
                // What changed meanwhile, such as a tool, belongs to no seed.
                let is_same = self.seed_key(&line)? == key;
                let kept = match check.passed() && is_last && pays(cold) && is_same {
                    true => self.seal(*room, &check, key, cold),
                    false => self.keep_caches(*room),
                };
                if let Err(error) = kept {
                    run.notes.push(crate::cause::chain(&error));
                }
            }
            run.checks.push(check);
        }
        let run = self.marked(run, base, &commands, &before)?;
        self.keep_base(&run);
        Ok(run)
    }

    /// Runs a command on the base, from nothing. Returns the room of its last run too, and how
    /// long that took.
    async fn base_check(
        &self,
        base: &Oid,
        command: (&'static str, &str),
    ) -> Result<(CommandCheck, GateSite, Duration), JobError> {
        let (mut tries, mut since) = (AskedTries::default(), self.began);
        loop {
            let (asking, began) = (tries.asking(), Instant::now());
            let site = self.cold_site(base, since).await?;
            let mut check = self.command_at(command, &site, since, asking).await?;
            check.has_changed(site.changed()?);
            let cold = began.elapsed();
            if let Some(check) = tries.saw(check, self.cancel.is_asked()) {
                return Ok((check, site, cold));
            }
            since = Instant::now();
        }
    }

    /// Makes the seed of a command. Without one its gates start from nothing.
    fn seal(
        &self,
        room: ColdRoom,
        check: &CommandCheck,
        key: String,
        cold: Duration,
    ) -> Result<(), JobError> {
        let home = self.home_files();
        let utf8 =
            |path| Utf8PathBuf::from_path_buf(path).map_err(|path| JobError::NotUtf8 { path });
        // Without a seed, gates from nothing still need the packages.
        let loaded = utf8(room.paths().cache)?;
        blocking(|| gate_site::copy_over(&loaded, &self.seed_caches()))?;
        let request = SealRequest { key: &key, cold, home: &home };
        let seed = blocking(|| room.seal(&request))?;
        // What tests left among the caches is gone from the seed, and must not come back from here.
        let kept = utf8(RoomPaths::below(&seed.root()).cache)?;
        blocking(|| gate_site::copy_over(&kept, &self.seed_caches()))?;
        self.known_seeds().insert(check.line.clone(), (key, seed));
        let state = self.context.place.state.as_std_path();
        blocking(|| warm::bound(state, &BOUNDS).map(|_removed| ()))?;
        Ok(())
    }

    /// Keeps the package caches that the base has filled.
    fn keep_caches(&self, room: ColdRoom) -> Result<(), JobError> {
        let (RoomPaths { cache: from, .. }, to) = (room.paths(), self.seed_caches());
        let parent = to.parent().map(Utf8PathBuf::from).unwrap_or_default();
        blocking(|| {
            dir::remove(to.as_std_path()).map_err(JobError::directory("replace", &to))?;
            dir::create_private(parent.as_std_path())
                .map_err(JobError::directory("create", &parent))?;
            dir::move_to(&from, to.as_std_path()).map_err(JobError::directory("keep", &to))
        })?;
        blocking(|| room.remove())
    }

    /// The name of the seed of a command on the run's base: everything that its content depends on.
    pub(super) fn seed_key(&self, line: &str) -> Result<String, JobError> {
        let base = self.run_base()?;
        let tree = blocking(|| self.context.workshop.hub.tree_of(&base))?;
        let config = &self.context.config;
        let root = &self.context.place.root;
        let copied = config.worktrees.copy.iter().map(|name| {
            let path = root.join(name);
            let bytes = file::read_capped(path.as_std_path(), super::room::HOME_FILE_BYTES_MAX);
            bytes.map_or_else(|_| toolchain::identity(&path), |bytes| Some(sha256_hex(&bytes)))
        });
        let home = self.home_files();
        let home = home.iter().map(|(name, bytes)| (name.clone(), sha256_hex(bytes)));
        let mut commands = vec![line.to_owned()];
        commands.extend(config.worktrees.setup.clone());
        let tools = toolchain::fingerprint(&commands, &self.context.variables);
        let place = self.warm_store()?.and_then(|store| gate_site::inside(store.place()));
        let mut variables = self.gate_variables(place.as_ref());
        variables.retain(|name, _| !environment::is_of_session(name));
        let sandbox = &config.sandbox;
        let text = serde_json::to_string(&(
            (env!("CARGO_PKG_VERSION"), tree.to_string(), commands, tools),
            (copied.collect::<Vec<_>>(), home.collect::<Vec<_>>(), variables),
            (format!("{:?}", sandbox.network), &sandbox.write, &sandbox.sockets),
        ));
        Ok(sha256_hex(text.map_err(JobError::Json)?.as_bytes()))
    }
}

/// Whether a seed of a command that took this long is made.
pub(super) fn pays(cold: Duration) -> bool {
    fail::seed_pays_from().map_or_else(|| warmth::seed_pays(cold), |least| cold >= least)
}

//! The place in which a command of a gate runs: a slot, a room that starts from nothing, or a layer
//! over a seed. Rooms and layers appear at one path, whatever they are outside.

use super::own_work::blocking;
use super::reporter::Asking;
use super::slot_dir::SlotDir;
use super::user_command::CommandCheck;
use super::workshop::{Bench, For, seconds_now};
use super::{Job, JobError};
use crate::environment::GateRoom;
use autopilot_core::evidence::SETUP;
use autopilot_host::agent_home::HomePlan;
use autopilot_host::dir;
use autopilot_host::git::{AttemptName, KeepFiles, Oid, Prepare};
use autopilot_host::jail::JailPlan;
use autopilot_host::warm::{ColdRoom, GateLayer, RoomPaths, WarmStore};
use camino::{Utf8Path, Utf8PathBuf};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The place of a command.
pub enum GateSite {
    /// A slot, where programs can't have a room at a path of its own.
    Slot(Box<Bench>),
    Room(Box<ColdRoom>),
    Layer(Box<GateLayer>),
}

/// The directory in which a command runs, and what it may write.
#[derive(Clone)]
pub struct CommandSite {
    pub dir: SlotDir,
    pub purpose: For,
    /// The room, where the command has one at a path of its own.
    pub room: Option<CommandRoom>,
    /// The directories outside that have the worktree's files; of two files the first counts.
    pub trees: Vec<PathBuf>,
}

/// A room as a jail shows it.
#[derive(Clone)]
pub struct CommandRoom {
    /// The directories at the path at which programs see them.
    pub inside: GateRoom,
    /// The directory outside in which the program's writing is seen.
    pub seen: PathBuf,
    /// The part of a jail's plan that shows the room.
    pub plan: JailPlan,
}

impl CommandRoom {
    fn new(
        store: &WarmStore,
        seen: PathBuf,
        put: impl FnOnce(&mut JailPlan),
    ) -> Option<CommandRoom> {
        let mut plan = JailPlan::default();
        put(&mut plan);
        Some(CommandRoom { inside: inside(store.place())?, seen, plan })
    }

    /// Puts the room into the jail of a program.
    pub fn put_into(&self, plan: &mut JailPlan) {
        plan.mounts.extend(self.plan.mounts.iter().cloned());
        plan.write.extend(self.plan.write.iter().cloned());
        plan.tmp.clone_from(&self.plan.tmp);
    }
}

/// The directories of a room at the path at which programs see them.
pub(super) fn inside(place: &Path) -> Option<GateRoom> {
    let RoomPaths { home, tmp, cache, .. } = RoomPaths::below(place);
    let text = |path: PathBuf| Utf8PathBuf::from_path_buf(path).ok();
    Some(GateRoom { home: text(home)?, tmp: text(tmp)?, caches: text(cache)? })
}

impl GateSite {
    /// The directory of commands in it.
    pub fn command(&self, store: Option<&WarmStore>) -> Result<CommandSite, JobError> {
        let room = match (self, store) {
            (GateSite::Slot(bench), _) => return Ok(bench.site()),
            (GateSite::Room(room), Some(store)) => {
                CommandRoom::new(store, room.seen(), |plan| room.put_into(plan))
            }
            (GateSite::Layer(layer), Some(store)) => {
                CommandRoom::new(store, layer.seen(), |plan| layer.put_into(plan))
            }
            (GateSite::Room(_) | GateSite::Layer(_), None) => None,
        };
        let place = store.map(|store| RoomPaths::below(store.place()).tree).unwrap_or_default();
        let dir = Utf8PathBuf::from_path_buf(place).map_err(|path| JobError::NotUtf8 { path })?;
        let missing = JobError::Internal("a room without a place");
        let dir = SlotDir::as_it_is(dir);
        let room = Some(room.ok_or(missing)?);
        Ok(CommandSite { dir, purpose: For::Proof, room, trees: self.trees() })
    }

    /// The directory outside into which files of the worktree can be written.
    pub fn tree(&self) -> Option<PathBuf> {
        self.trees().into_iter().next()
    }

    /// The directories outside that have the worktree's files.
    fn trees(&self) -> Vec<PathBuf> {
        match self {
            GateSite::Slot(bench) => vec![bench.dir.real.clone().into()],
            GateSite::Room(room) => vec![room.paths().tree],
            GateSite::Layer(layer) => layer.trees(),
        }
    }

    /// The tracked files that the command before has changed.
    pub fn changed(&self) -> Result<Vec<PathBuf>, JobError> {
        match self {
            GateSite::Slot(bench) => Ok(blocking(|| bench.slot.changed_files(&bench.commit))?),
            GateSite::Room(room) => blocking(|| room.differences()),
            GateSite::Layer(layer) => Ok(blocking(|| layer.differences())?.changed),
        }
    }
}

impl Bench {
    /// The directory of commands in this slot.
    pub fn site(&self) -> CommandSite {
        let trees = vec![self.dir.real.clone().into()];
        CommandSite { dir: self.dir.clone(), purpose: self.purpose, room: None, trees }
    }
}

impl Job {
    /// A place with exactly this commit that starts from nothing. The step's time counts from
    /// `since`.
    pub(super) async fn cold_site(
        &self,
        commit: &Oid,
        since: Instant,
    ) -> Result<GateSite, JobError> {
        let Some(store) = self.warm_store()? else {
            return Ok(GateSite::Slot(Box::new(self.proof_bench(commit, since).await?)));
        };
        let copy: Vec<PathBuf> =
            self.context.config.worktrees.copy.iter().map(PathBuf::from).collect();
        let attempt = self.id_for_refs(self.want.id);
        let task = self.name_for_refs();
        let order = Prepare {
            commit,
            base: commit,
            branch: &format!("autopilot/{task}"),
            attempt: AttemptName { task, id: &attempt },
            keep: KeepFiles::Nothing,
            copy: &copy,
            now: seconds_now(),
        };
        let room = blocking(|| store.cold_room(&order))?;
        self.furnish_room(&room)?;
        let mut site = GateSite::Room(Box::new(room));
        self.set_up(&site, since).await?;
        if let GateSite::Room(room) = &mut site {
            // What a setup makes of tracked files is nothing that was asked to be proven.
            blocking(|| {
                room.restore()?;
                room.after_setup()
            })?;
        }
        Ok(site)
    }

    /// Gives a new room its home and its package caches.
    fn furnish_room(&self, room: &ColdRoom) -> Result<(), JobError> {
        let RoomPaths { home, cache, .. } = room.paths();
        HomePlan { dir: home, files: self.home_files(), ..HomePlan::default() }.make()?;
        let cache = Utf8PathBuf::from_path_buf(cache).map_err(|path| JobError::NotUtf8 { path })?;
        let known = self.seed_caches();
        if known.exists() {
            blocking(|| copy_over(&known, &cache))?;
        }
        self.make_caches(&cache)?;
        Ok(())
    }

    /// Runs the configured preparation of a worktree.
    pub(super) async fn set_up(&self, site: &GateSite, since: Instant) -> Result<(), JobError> {
        let Some(setup) = &self.context.config.worktrees.setup else { return Ok(()) };
        if matches!(site, GateSite::Slot(_)) {
            return Ok(());
        }
        let check = self.command_at((SETUP, setup), site, since, Asking::Nobody).await?;
        if check.passed() {
            return Ok(());
        }
        let (failure, not_run) = (check.failure(), check.seen().misconfigured());
        Err(JobError::SetupCommand { failure, log: check.log, not_run })
    }

    /// Runs a command of a gate in its place.
    pub(super) async fn command_at(
        &self,
        (name, line): (&'static str, &str),
        site: &GateSite,
        since: Instant,
        asking: Asking,
    ) -> Result<CommandCheck, JobError> {
        let place = site.command(self.warm_store()?)?;
        self.command((name, line), &place, self.time_left(since), asking).await
    }
}

/// Replaces a directory by a copy of another.
pub(super) fn copy_over(from: &Utf8Path, to: &Utf8Path) -> Result<(), JobError> {
    dir::remove(to.as_std_path()).map_err(JobError::directory("replace", to))?;
    dir::copy(from.as_std_path(), to.as_std_path()).map_err(JobError::directory("fill", to))
}

//! The directories that a program may write besides its worktree: temporary files, home and package
//! caches. Agents and gates share none of them, and a gate finds nothing of the gate before.

use super::own_work::blocking;
use super::process::jail_network;
use super::workshop::For;
use super::{Job, JobError};
use crate::environment::{GateRoom, kept_from_gates, python_path_files, user_home};
use crate::holdout;
use autopilot_core::step::CacheUse;
use autopilot_host::agent_home::HomePlan;
use autopilot_host::jail::{JailNetwork, JailPlan};
use autopilot_host::{dir, file};
use camino::{Utf8Path, Utf8PathBuf};
use std::path::PathBuf;

/// The largest file of the user's home that is copied for a gate.
pub const HOME_FILE_BYTES_MAX: u64 = 1 << 20;
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// Package caches of common tools: variable and folder.
const CACHES: &[(&str, &str)] = &[
    ("CARGO_HOME", "cargo"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("XDG_CACHE_HOME", "xdg"),
    ("GOMODCACHE", "go-mod"),
    ("GRADLE_USER_HOME", "gradle"),
];

impl Job {
    /// The directories that a program of this purpose may write.
    pub(super) fn room(&self, purpose: For) -> Result<Vec<Utf8PathBuf>, JobError> {
        let room = match purpose {
            For::Agent => vec![self.scratch()],
            For::Proof => {
                let GateRoom { home, tmp, .. } = self.gate_room();
                vec![home, tmp]
            }
        };
        for path in &room {
            dir::create_private(path.as_std_path()).map_err(JobError::directory("create", path))?;
        }
        Ok(room)
    }

    /// The jail of programs of this purpose. They must not read the state directories, in which
    /// agents and gates have their places side by side, but for what they need in them.
    pub(super) fn jail(&self, purpose: For, write: Vec<PathBuf>, tmp: Option<PathBuf>) -> JailPlan {
        let (place, config) = (&self.context.place, &self.context.config.sandbox);
        let mut hide = place.all_states();
        hide.extend(holdout::directory(&self.context.config, &place.root));
        if purpose == For::Proof {
            hide.push(place.views());
            hide.extend(kept_from_gates(&self.context.variables));
        }
        // A worktree borrows the objects of our repository; an agent reads the schema of its answer.
        let needed = [place.state.join("hub.git/objects"), place.state.join("schemas")];
        let show = needed.into_iter().chain([place.root.clone(), self.context.own.clone()]);
        JailPlan {
            write,
            hide: hide.into_iter().map(Into::into).collect(),
            show: show.map(Into::into).collect(),
            sockets: config.sockets.iter().map(PathBuf::from).collect(),
            network: match purpose {
                For::Agent => JailNetwork::Open,
                For::Proof => jail_network(config.network),
            },
            tmp,
            ..JailPlan::default()
        }
    }

    /// Gives a gate a fresh home, temporary directory and caches, whatever the gate before left in
    /// them.
    pub(super) fn furnish_gate(&self) -> Result<(), JobError> {
        let root = self.gate_root();
        blocking(|| dir::remove(root.as_std_path()).map_err(JobError::directory("clear", &root)))?;
        self.room(For::Proof)?;
        let GateRoom { home, caches, .. } = self.gate_room();
        let files = self.home_files();
        HomePlan { dir: home.into(), files, ..HomePlan::default() }.make()?;
        let seed = self.seed_caches();
        if self.want.step.row().caches == CacheUse::Seed || !seed.exists() {
            return Ok(());
        }
        blocking(|| {
            dir::copy(seed.as_std_path(), caches.as_std_path())
                .map_err(JobError::directory("fill", &caches))
        })
    }

    /// The listed files of the user's home. One that can't be read is missing in the gate's home as
    /// well, and the command that needs it says so.
    pub(super) fn home_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let Some(user) = user_home(&self.context.variables) else { return Vec::new() };
        let read = |name: &String| {
            let path = user.join(name);
            let bytes = file::read_capped(path.as_std_path(), HOME_FILE_BYTES_MAX).ok()?;
            Some((PathBuf::from(name), bytes))
        };
        let mut files: Vec<_> = self.context.config.gates.home.iter().filter_map(read).collect();
        files.extend(python_path_files(&self.context.variables));
        files
    }

    /// Separate package caches, because a sandbox can't write the user's. Agents share one. Gates
    /// run code that an agent wrote, so each gets a copy of the cache that this run's untouched
    /// base filled: nothing reaches a proof through a cache.
    pub(super) fn caches(
        &self,
        purpose: For,
    ) -> Result<Vec<(&'static str, Utf8PathBuf)>, JobError> {
        let root = match (purpose, self.want.step.row().caches) {
            (For::Agent, _) => self.agents_caches(),
            (For::Proof, CacheUse::Seed) => self.seed_caches(),
            (For::Proof, CacheUse::Copy | CacheUse::Agents) => self.gate_room().caches,
        };
        self.make_caches(&root)?;
        Ok(caches_below(&root))
    }

    /// Makes the package caches in a directory.
    pub(super) fn make_caches(&self, root: &Utf8Path) -> Result<(), JobError> {
        for (_, path) in caches_below(root) {
            dir::create_private(path.as_std_path())
                .map_err(JobError::directory("create", &path))?;
        }
        self.seed_cargo(&root.join("cargo"));
        Ok(())
    }

    /// The package caches that agents share.
    pub(super) fn agents_caches(&self) -> Utf8PathBuf {
        self.context.place.caches().join("agent")
    }

    pub(super) fn seed_caches(&self) -> Utf8PathBuf {
        self.context.place.caches().join("proof").join(&self.run.id)
    }

    /// The directories of a gate.
    pub(super) fn gate_room(&self) -> GateRoom {
        GateRoom::below(&self.gate_root())
    }

    /// The directory of a gate lies beside the temporary directory of its attempt, and itself can't
    /// be written: a program must not be able to replace the next command's home by a link.
    pub(super) fn gate_root(&self) -> Utf8PathBuf {
        self.context.place.scratch(&format!("room-{}-{}", self.run.id, self.want.id))
    }

    /// Copies cargo's settings (registries, proxies), which it reads from its cache directory.
    fn seed_cargo(&self, cache: &Utf8Path) {
        let variables = &self.context.variables;
        let home = variables.get("HOME").map(|home| Utf8Path::new(home).join(".cargo"));
        let theirs = variables.get("CARGO_HOME").map(Utf8PathBuf::from).or(home);
        let Some(settings) = theirs.map(|dir| dir.join("config.toml")) else { return };
        let ours = cache.join("config.toml");
        if let Ok(bytes) = file::read_capped(settings.as_std_path(), SETTINGS_BYTES_MAX)
            && file::read_capped(ours.as_std_path(), SETTINGS_BYTES_MAX).ok().as_ref()
                != Some(&bytes)
        {
            // Without the file cargo uses its defaults, and reports it if they do not work.
            let _defaults = file::write_atomic(ours.as_std_path(), &bytes);
        }
    }
}

/// The package caches in a directory: variable and path.
pub(crate) fn caches_below(root: &Utf8Path) -> Vec<(&'static str, Utf8PathBuf)> {
    CACHES.iter().map(|(name, folder)| (*name, root.join(folder))).collect()
}

//! The hub, the slots and the user's repository, for jobs that must not block.

use super::base_seed::KnownSeeds;
use super::own_work::{blocking, rescuing, saving};
use super::reporter::Asking;
use super::slot_dir::SlotDir;
use super::train::MergeQueue;
use super::{Job, JobError};
use crate::again::again;
use crate::environment::Variables;
use crate::pool::{Lessor, SlotLease};
use crate::ports::Ports;
use autopilot_core::config::Worktrees;
use autopilot_core::evidence::SETUP;
use autopilot_core::guard;
use autopilot_core::id::TaskId;
use autopilot_core::instruction::ObeyedFiles;
use autopilot_core::warmth::{SlotUser, keeps_output};
use autopilot_host::git::{
    AttemptName, Capture, CaptureCaps, CaptureRequest, ChangeLimits, GitChange, GitError, Hub,
    KeepFiles, Oid, Prepare, Slot, Slots, UserRepo, links_of, overlaid,
};
use autopilot_host::warm::{WarmError, WarmProbe, WarmStore};
use camino::Utf8PathBuf;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Changes that are cached: about as many as tasks at work at once.
const CHANGES_KNOWN_MAX: usize = 8;
/// The most symbolic links of the base that are looked at for instructions behind them.
const LINKS_MAX: usize = 10_000;

/// The repository in which the jobs of a run work.
#[derive(Clone)]
pub struct Workshop {
    pub repo: Arc<UserRepo>,
    pub hub: Hub,
    pub queue: Arc<MergeQueue>,
    pub ports: Ports,
    /// Rooms and seeds of gates, once one was asked for.
    pub warm: Arc<OnceLock<WarmStore>>,
    pub probe: Arc<OnceLock<WarmProbe>>,
    /// The seeds of the run's base that are known.
    pub seeds: Arc<Mutex<KnownSeeds>>,
    /// What version managers take in the user's checkout by files that no commit has.
    pub versions: Arc<OnceLock<Variables>>,
    /// The agents' package caches have what the run's base has loaded.
    pub are_caches_filled: Arc<Mutex<bool>>,
    slots: Slots,
    agents: Lessor,
    judges: Lessor,
    proofs: Lessor,
    /// A cache, as validation, review and acceptance look at the same change one after the other.
    changes: Arc<Mutex<VecDeque<Arc<GitChange>>>>,
}

/// A slot that is reserved for an attempt and filled with a commit.
pub struct Bench {
    pub slot: Slot,
    pub dir: SlotDir,
    pub commit: Oid,
    pub purpose: For,
    _lease: SlotLease,
}

/// The purpose of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// An agent will write in the slot.
    Agent,
    /// A gate of the controller runs in the slot, on exactly the commit.
    Proof,
}

impl From<SlotUser> for For {
    fn from(user: SlotUser) -> For {
        match user {
            SlotUser::Builder | SlotUser::Judge => For::Agent,
            SlotUser::Gate => For::Proof,
        }
    }
}

impl Workshop {
    /// A workshop for a repository and its hub.
    pub fn new(repo: UserRepo, hub: Hub, config: &Worktrees) -> Workshop {
        let caps = CaptureCaps { bytes_max: config.bytes_max, files_max: config.files_max };
        let slots = Slots::new(&hub, &repo).capped(caps);
        let repo = Arc::new(repo);
        Workshop {
            repo,
            hub,
            queue: Arc::default(),
            ports: Ports::default(),
            warm: Arc::default(),
            probe: Arc::default(),
            seeds: Arc::default(),
            versions: Arc::default(),
            are_caches_filled: Arc::default(),
            slots,
            agents: Lessor::default(),
            judges: Lessor::default(),
            proofs: Lessor::default(),
            changes: Arc::default(),
        }
    }

    /// Saves the work that attempts of a dead process left in their slots, and returns the refs
    /// and directories that hold it. Where the hub has lost what a slot was filled with, the work is
    /// what differs from `base`.
    pub fn rescue_all(&self, base: &Oid) -> Result<Vec<String>, GitError> {
        let mut saved = Vec::new();
        self.slots.renew_lost_notes(base)?;
        for slot in self.slots.existing()? {
            saved.extend(rescuing(|| slot.rescue(seconds_now()))?);
        }
        Ok(saved)
    }

    /// The difference between two trees, or the trees of two commits.
    pub fn change(&self, base: &Oid, tree: &Oid) -> Result<Arc<GitChange>, GitError> {
        let known = || self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (self.hub.tree_of(base)?, self.hub.tree_of(tree)?);
        let is_it = |change: &&Arc<GitChange>| change.base_tree == old && change.tree == new;
        if let Some(change) = known().iter().find(is_it) {
            return Ok(Arc::clone(change));
        }
        let limits = ChangeLimits { watched: guard::is_watched, ..ChangeLimits::default() };
        let change = GitChange::between(&self.hub, &old, &new, &limits)?;
        let change = Arc::new(change);
        let mut known = known();
        known.push_back(Arc::clone(&change));
        while known.len() > CHANGES_KNOWN_MAX {
            known.pop_front();
        }
        Ok(change)
    }

    /// Opens the store of rooms and seeds.
    pub fn open_warm(&self) -> Result<WarmStore, WarmError> {
        WarmStore::open(&self.slots)
    }

    /// Leases a slot, warm from the task's last attempt where possible.
    fn lease(&self, user: SlotUser, task: TaskId) -> (Slot, SlotLease) {
        match user {
            SlotUser::Builder => {
                let lease = self.agents.lease(task);
                (self.slots.agent(lease.number), lease)
            }
            // The builder's slot stays warm for its next round.
            SlotUser::Judge => {
                let lease = self.judges.lease(task);
                (self.slots.judge(lease.number), lease)
            }
            SlotUser::Gate => {
                let lease = self.proofs.lease(task);
                (self.slots.proof(lease.number), lease)
            }
        }
    }
}

/// A slot for an agent that judges or plans.
pub struct JudgeBench {
    pub bench: Bench,
    /// The files that are as at the run's base, because they tell agents what to do.
    pub restored: Vec<String>,
}

impl Bench {
    /// Returns whether the slot's files differ from the commit.
    pub fn is_changed(&self) -> Result<bool, JobError> {
        blocking(|| match self.slot.verify_clean(&self.commit) {
            Ok(()) => Ok(false),
            Err(GitError::ProofDiffers { .. } | GitError::Oversize(_)) => Ok(true),
            // The commit itself was read in time.
            Err(error) if error.is_out_of_time() => Ok(true),
            Err(error) => Err(error),
        })
    }

    /// Captures everything in the slot in the hub, where it can't be lost.
    pub fn capture(&self, task: &str, id: &str) -> Result<Capture, JobError> {
        let attempt = AttemptName { task, id };
        let request = CaptureRequest { attempt, base: &self.commit, now: seconds_now() };
        saving(|| again(|| self.slot.capture(&request)))
    }
}

impl Job {
    /// A directory with exactly this commit that no agent has ever written to. The step's time is
    /// counted from `since`.
    pub(super) async fn proof_bench(
        &self,
        commit: &Oid,
        since: Instant,
    ) -> Result<Bench, JobError> {
        self.furnish_gate()?;
        let attempt = self.id_for_refs(self.want.id);
        self.bench_as(&attempt, SlotUser::Gate, (commit, commit), since).await
    }

    pub(super) async fn bench(
        &self,
        user: SlotUser,
        commit: &Oid,
        base: &Oid,
    ) -> Result<Bench, JobError> {
        let attempt = self.id_for_refs(self.want.id);
        self.bench_as(&attempt, user, (commit, base), self.began).await
    }

    /// A slot for an agent that judges or plans: a commit, with what agents are told in it as it was
    /// at the run's base, and nothing that the agents before have left.
    pub(super) async fn judge_bench(
        &self,
        commit: &Oid,
        base: &Oid,
    ) -> Result<JudgeBench, JobError> {
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let from = self.run_base()?;
        // The same commit gets the same name whenever it is made.
        let links = blocking(|| links_of(hub, &from, LINKS_MAX))?.links;
        let text = |bytes| String::from_utf8(bytes).ok();
        let links = links.into_iter().filter_map(|(link, to)| Some((text(link)?, text(to)?)));
        let files = ObeyedFiles::with_links(links);
        let is_told = |path: &str| files.has(path);
        let seen = blocking(|| overlaid(hub, (commit, &from), is_told, &repo.identity, 0))?;
        let bench = self.bench(SlotUser::Judge, &seen.commit, base).await?;
        let Worktrees { setup, copy, .. } = &self.context.config.worktrees;
        if setup.is_some() {
            // It ran code of the commit, which could have told the judge what to do.
            let copy = copy.iter().filter(|path| is_told(path));
            let copy: Vec<PathBuf> = copy.map(PathBuf::from).collect();
            blocking(|| bench.slot.put_back(&seen.commit, &is_told, &copy))?;
        }
        Ok(JudgeBench { bench, restored: seen.paths })
    }

    /// The commit that the run started from.
    pub(super) fn run_base(&self) -> Result<Oid, JobError> {
        Ok(Oid::parse(&self.run.base)?)
    }

    /// A slot with a commit; `attempt` names the refs to the work in it.
    pub(super) async fn bench_as(
        &self,
        attempt: &str,
        user: SlotUser,
        (commit, base): (&Oid, &Oid),
        since: Instant,
    ) -> Result<Bench, JobError> {
        let config = &self.context.config.worktrees;
        let purpose = For::from(user);
        let (slot, lease) = self.context.workshop.lease(user, self.task.id);
        let dir = Utf8PathBuf::from_path_buf(slot.dir().to_owned())
            .map_err(|path| JobError::NotUtf8 { path })?;
        let dir = self.slot_dir(dir, purpose)?;
        let keep = match keeps_output(user, config.keep) {
            true => KeepFiles::WhileLocked,
            false => KeepFiles::Nothing,
        };
        let copy: Vec<PathBuf> = config.copy.iter().map(PathBuf::from).collect();
        let task = self.name_for_refs();
        let order = Prepare {
            commit,
            base,
            branch: &format!("autopilot/{task}"),
            attempt: AttemptName { task, id: attempt },
            keep,
            copy: &copy,
            now: seconds_now(),
        };
        let prepared = blocking(|| slot.prepare(&order))?;
        if purpose == For::Agent {
            self.fill_from_seeds(&slot, commit, &prepared);
        }
        let bench = Bench { slot, dir, commit: commit.clone(), purpose, _lease: lease };
        if let Some(setup) = &config.setup {
            let check = self
                .command((SETUP, setup), &bench.site(), self.time_left(since), Asking::Nobody)
                .await?;
            if !check.passed() {
                let failure = check.failure();
                let not_run = check.seen().misconfigured();
                return Err(JobError::SetupCommand { failure, log: check.log, not_run });
            }
        }
        Ok(bench)
    }
}

/// The current time in seconds.
pub fn seconds_now() -> i64 {
    jiff::Timestamp::now().as_second()
}

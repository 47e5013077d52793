//! A user's repository with some history, a hub and slots beside it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use autopilot_host::git::{
    Advanced, AttemptName, Capture, CaptureRequest, CommitRequest, CommittedTask, Conflicts,
    Coupled, Hub, KeepFiles, Oid, Prepare, PreparedSlot, Slot, Slots, Sought, Track, UserRepo,
    Wagon, commit_task,
};
use sha2::{Digest, Sha256};

pub const NOW: i64 = 1_700_000_000;

pub struct World {
    pub temp: tempfile::TempDir,
    pub user: PathBuf,
    pub state: PathBuf,
}

impl World {
    /// A repository with two commits on `main`.
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let world = Self { user: root.join("user"), state: root.join("state"), temp };
        fs::create_dir(&world.user).unwrap();
        git(&world.user, &["init", "-q", "-b", "main"]);
        git(&world.user, &["config", "user.name", "Ada"]);
        git(&world.user, &["config", "user.email", "ada@example.org"]);
        world.write("README", "one\n");
        world.write("src/lib.rs", "fn a() {}\n");
        world.write(".gitignore", "target\nnode_modules\n.env\n*.log\n");
        world.commit("first");
        world.write("README", "one\ntwo\n");
        world.commit("second");
        world
    }

    pub fn write(&self, path: &str, text: &str) {
        put(&self.user, path, text);
    }

    pub fn commit(&self, message: &str) -> Oid {
        git(&self.user, &["add", "-A"]);
        git(&self.user, &["commit", "-q", "-m", message]);
        oid(&git(&self.user, &["rev-parse", "HEAD"]))
    }

    pub fn repo(&self) -> UserRepo {
        UserRepo::examine(&self.user, "main", &[]).unwrap()
    }

    pub fn open(&self) -> Open {
        let repo = self.repo();
        let hub = Hub::open(&self.state, &repo).unwrap();
        let slots = Slots::new(&hub, &repo);
        Open { repo, hub, slots }
    }
}

pub struct Open {
    pub repo: UserRepo,
    pub hub: Hub,
    pub slots: Slots,
}

impl Open {
    pub fn base(&self) -> Oid {
        self.repo.base_tip.clone()
    }

    /// Prepares slot `n` with the base commit, for task `t1`, attempt `1`.
    pub fn slot(&self, n: usize) -> Slot {
        let slot = self.slots.agent(n);
        self.fill(&slot, &self.base());
        slot
    }

    pub fn fill(&self, slot: &Slot, commit: &Oid) -> PreparedSlot {
        slot.prepare(&prepare(commit)).unwrap()
    }

    pub fn capture(&self, slot: &Slot) -> Capture {
        self.capture_as(slot, AttemptName { task: "t1", id: "1" })
    }

    pub fn capture_as(&self, slot: &Slot, attempt: AttemptName<'_>) -> Capture {
        slot.capture(&CaptureRequest { attempt, base: &self.base(), now: NOW }).unwrap()
    }

    pub fn commit(&self, task: &str, tree: &Oid) -> CommittedTask {
        let id = format!("{task}.1");
        commit_task(
            &self.hub,
            &CommitRequest {
                run: "r1",
                attempt: AttemptName { task, id: &id },
                branch: &format!("autopilot/{task}"),
                parent: &self.base(),
                tree,
                message: "Do the task",
                identity: &self.repo.identity,
                now: NOW,
            },
        )
        .unwrap()
    }

    pub fn track(&self) -> Track<'_> {
        Track {
            run: "r1",
            branch: "autopilot/run-r1",
            start: &self.repo.base_tip,
            has_begun: false,
            identity: &self.repo.identity,
            now: NOW,
        }
    }

    /// Merges one task's commit as attempt `<task>.merge`, as often as somebody is faster.
    pub fn merge(&self, task: &str, commit: &Oid) -> Result<(Oid, bool), Box<Conflicts>> {
        let (track, id) = (self.track(), format!("{task}.merge"));
        let attempt = AttemptName { task, id: &id };
        let tree = self.hub.tree_of(commit).unwrap();
        let sought = Sought { attempt, base: &self.base(), tree: &tree };
        loop {
            if let Some(found) = track.find(&self.hub, &sought).unwrap() {
                return Ok((found, true));
            }
            let from = track.tip(&self.hub).unwrap();
            let wagon = Wagon { attempt, commit, message: "Merge the task" };
            let candidate = match track.couple(&self.hub, &from.commit, &wagon).unwrap() {
                Coupled::On(candidate) => candidate.commit,
                Coupled::Conflict(conflicts) => return Err(conflicts),
            };
            match track.advance(&self.hub, &from, &candidate).unwrap() {
                Advanced::Moved(tip) => return Ok((tip.commit, false)),
                Advanced::Lost => {}
            }
        }
    }

    /// A tree of the base with one file changed, made in a slot.
    pub fn tree_with(&self, n: usize, path: &str, text: &str) -> Oid {
        let slot = self.slot(n);
        put(slot.dir(), path, text);
        self.capture_as(&slot, AttemptName { task: &format!("made{n}"), id: "1" }).tree
    }
}

pub fn prepare(commit: &Oid) -> Prepare<'_> {
    Prepare {
        commit,
        base: commit,
        branch: "autopilot/t1",
        attempt: AttemptName { task: "t1", id: "1" },
        keep: KeepFiles::WhileLocked,
        copy: &[],
        now: NOW,
    }
}

pub fn put(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Runs git as a person or an agent does, without this machine's own configuration.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let out = raw_git(dir, args);
    assert!(
        out.status.success(),
        "git {args:?} in {}: {}",
        dir.display(),
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

pub fn raw_git(dir: &Path, args: &[&str]) -> std::process::Output {
    Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .env_remove("GIT_DIR")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "@1600000000 +0000")
        .env("GIT_COMMITTER_DATE", "@1600000000 +0000")
        .output()
        .unwrap()
}

/// Runs git with this standard input.
pub fn git_fed(dir: &Path, args: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "git {args:?}");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// Runs git on the hub.
pub fn in_hub(hub: &Hub, args: &[&str]) -> String {
    let dir = format!("--git-dir={}", hub.dir().display());
    let all: Vec<&str> = [dir.as_str()].into_iter().chain(args.iter().copied()).collect();
    git(hub.state(), &all)
}

pub fn oid(text: &str) -> Oid {
    Oid::parse(text).unwrap()
}

/// The fingerprint of everything of the user's that must not change: config, hooks, HEAD,
/// index, refs (but ours), stash, reflogs, and every file of the working tree with its times.
pub fn user_digest(repo: &UserRepo, ours: &dyn Fn(&str) -> bool) -> String {
    let mut hasher = Sha256::new();
    for name in
        ["config", "HEAD", "index", "info", "hooks", "logs/HEAD", "logs/refs/stash", "ORIG_HEAD"]
    {
        hash_path(&mut hasher, &repo.common_dir.join(name));
    }
    for name in ["FETCH_HEAD", "shallow", "worktrees", "MERGE_HEAD", "objects/info"] {
        hash_path(&mut hasher, &repo.common_dir.join(name));
    }
    for (name, oid) in repo.refs("refs/").unwrap().into_iter().filter(|(name, _)| !ours(name)) {
        hasher.update(format!("{name} {oid}\n"));
    }
    for entry in sorted(&repo.root) {
        if entry != repo.common_dir {
            hash_path(&mut hasher, &entry);
        }
    }
    format!("{:?}", hasher.finalize())
}

/// The fingerprint of a directory and everything in it, with its times.
pub fn tree_digest(dir: &Path) -> String {
    let mut hasher = Sha256::new();
    hash_path(&mut hasher, dir);
    format!("{:?}", hasher.finalize())
}

fn hash_path(hasher: &mut Sha256, path: &Path) {
    hasher.update(path.as_os_str().as_bytes());
    let Ok(meta) = path.symlink_metadata() else {
        hasher.update(b"\0absent\0");
        return;
    };
    hasher.update(format!("\0{:o} {}\0", meta.mode(), meta.ino()));
    if meta.is_dir() {
        for entry in sorted(path) {
            hash_path(hasher, &entry);
        }
    } else if meta.is_symlink() {
        hasher.update(fs::read_link(path).unwrap().as_os_str().as_bytes());
    } else if meta.is_file() {
        hasher.update(format!("{}.{}", meta.mtime(), meta.mtime_nsec()));
        hasher.update(fs::read(path).unwrap());
    }
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        paths.push(entry.unwrap().path());
    }
    paths.sort();
    paths
}

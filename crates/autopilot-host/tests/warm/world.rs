//! A user's repository, its hub and store, and programs that run in rooms and layers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use autopilot_host::exec::{self, Launch};
use autopilot_host::git::{AttemptName, Hub, KeepFiles, Oid, Prepare, Slots, UserRepo};
use autopilot_host::jail::{JailNetwork, JailPlan};
use autopilot_host::sandbox::SandboxPlan;
use autopilot_host::warm::{
    ColdRoom, GateLayer, LayerDifferences, LayerKind, RoomPaths, SealRequest, SealedSeed,
    WarmError, WarmStore,
};

use crate::ground;

pub const KEY: &str = "tree commands toolchain";

pub struct World {
    pub _temp: tempfile::TempDir,
    pub user: PathBuf,
    pub state: PathBuf,
    pub base: Oid,
    pub hub: Hub,
    pub store: WarmStore,
}

/// How a program in a jail ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
}

impl World {
    pub fn new(files: &[(&str, &str)]) -> World {
        World::with_state("state", files)
    }

    /// A world whose state directory has this path below the world's own.
    pub fn with_state(state: &str, files: &[(&str, &str)]) -> World {
        let temp = ground::dir();
        let root = temp.path().canonicalize().unwrap();
        let user = root.join("user");
        fs::create_dir(&user).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let state = root.join(state);
        git(&user, &["init", "-q", "-b", "main"]);
        for (path, text) in files {
            put(&user, path, text);
        }
        git(&user, &["add", "-A"]);
        git(&user, &["commit", "-q", "-m", "base"]);
        let (base, hub, store) = open(&user, &state);
        World { _temp: temp, user, state, base, hub, store }
    }

    /// A commit on top of the base, in the hub.
    pub fn change(&self, edit: impl Fn(&Path)) -> Oid {
        git(&self.user, &["reset", "-q", "--hard", self.base.as_str()]);
        git(&self.user, &["clean", "-qfdx"]);
        edit(&self.user);
        git(&self.user, &["add", "-A"]);
        git(&self.user, &["commit", "-q", "--allow-empty", "-m", "change"]);
        let repo = UserRepo::examine(&self.user, "main", &[]).unwrap();
        self.hub.sync(&repo).unwrap()
    }

    pub fn room(&self, commit: &Oid) -> ColdRoom {
        room(&self.store, commit)
    }

    /// Runs a script on the base in a cold room, which must pass, and seals that.
    pub fn seed(&self, script: &str) -> SealedSeed {
        let room = self.room(&self.base);
        let ran = self.run(|plan| room.put_into(plan), script);
        assert_eq!(ran.code, Some(0), "{}", ran.out);
        room.seal(&request(KEY)).unwrap()
    }

    /// Runs a script on a commit in a cold room.
    pub fn cold(&self, commit: &Oid, script: &str) -> Ran {
        let room = self.room(commit);
        self.run(|plan| room.put_into(plan), script)
    }

    pub fn layer(&self, seed: &SealedSeed, kind: LayerKind, commit: &Oid) -> GateLayer {
        let mut layer = self.store.layer(seed, kind).unwrap();
        layer.fill(commit).unwrap();
        layer
    }

    /// Runs a script on a commit in a layer.
    pub fn warm(
        &self,
        seed: &SealedSeed,
        kind: LayerKind,
        commit: &Oid,
        script: &str,
    ) -> (Ran, LayerDifferences) {
        let mut layer = self.layer(seed, kind, commit);
        self.command(&mut layer, script).unwrap()
    }

    /// Runs one more command in a layer.
    pub fn command(
        &self,
        layer: &mut GateLayer,
        script: &str,
    ) -> Result<(Ran, LayerDifferences), WarmError> {
        layer.before_command()?;
        let ran = self.run(|plan| layer.put_into(plan), script);
        Ok((ran, layer.differences()?))
    }

    /// Runs a script in the worktree of what `put` puts into the jail.
    pub fn run(&self, put: impl Fn(&mut JailPlan), script: &str) -> Ran {
        let launch = self.launch(put, script);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_control, child) = exec::spawn(launch).await.unwrap();
            let exit = child.wait().await;
            let out = format!("{}{}", exit.output.stdout.text, exit.output.stderr.text);
            Ran { code: exit.code, out }
        })
    }

    pub fn launch(&self, put: impl Fn(&mut JailPlan), script: &str) -> Launch {
        launch(&self.store, &self.state, put, script)
    }

    /// Everything that is left in the state of rooms and layers.
    pub fn layers(&self) -> Vec<String> {
        names(&self.state.join("layers"))
    }

    pub fn seeds(&self) -> Vec<String> {
        names(&self.state.join("seeds"))
    }
}

pub fn open(user: &Path, state: &Path) -> (Oid, Hub, WarmStore) {
    let repo = UserRepo::examine(user, "main", &[]).unwrap();
    let hub = Hub::open(state, &repo).unwrap();
    let store = WarmStore::open(&Slots::new(&hub, &repo)).unwrap();
    (repo.base_tip.clone(), hub, store)
}

pub fn room(store: &WarmStore, commit: &Oid) -> ColdRoom {
    room_with(store, commit, &[])
}

/// A cold room with copies of ignored files of the user's checkout.
pub fn room_with(store: &WarmStore, commit: &Oid, copy: &[PathBuf]) -> ColdRoom {
    let wanted = Prepare {
        commit,
        base: commit,
        branch: "autopilot/t1",
        attempt: AttemptName { task: "t1", id: "1" },
        keep: KeepFiles::Nothing,
        copy,
        now: 1_700_000_000,
    };
    store.cold_room(&wanted).unwrap()
}

pub fn request(key: &str) -> SealRequest<'_> {
    SealRequest { key, cold: Duration::from_secs(9), home: &[] }
}

pub fn launch(
    store: &WarmStore,
    state: &Path,
    put: impl Fn(&mut JailPlan),
    script: &str,
) -> Launch {
    let inside = RoomPaths::below(store.place());
    let mut plan = JailPlan {
        hide: vec![state.to_path_buf()],
        show: vec![ground::toolchain()],
        network: JailNetwork::Off,
        namespaces: true,
        ..JailPlan::default()
    };
    put(&mut plan);
    let mut launch = Launch::new("sh", &inside.tree);
    launch.args = ["-c", script].map(Into::into).to_vec();
    let path = format!("{}/bin:/usr/bin:/bin", ground::toolchain().display());
    for (name, value) in [
        ("PATH", path.into()),
        ("HOME", inside.home.into_os_string()),
        ("TMPDIR", inside.tmp.into_os_string()),
        ("CARGO_HOME", inside.cache.join("cargo").into_os_string()),
        ("CARGO_TERM_COLOR", "never".into()),
        ("CARGO_NET_OFFLINE", "true".into()),
    ] {
        launch.env.insert(name.into(), value);
    }
    launch.sandbox = SandboxPlan::Jail(plan);
    launch
}

pub fn put(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

//! What an agent's slot gets of a seed: copies with their times, as a whole or not at all.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use autopilot_host::git::{
    AttemptName, KeepFiles, Oid, Prepare, PreparedSlot, Slot, Slots, UserRepo,
};
use autopilot_host::warm::{RoomPaths, SealedSeed, SlotFill, SlotFilled};

use crate::world::{World, names, paths, put};

const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", ""),
    ("Cargo.lock", "# one\n"),
    ("package.json", "{}"),
    ("package-lock.json", "{}"),
    ("src/a", "base\n"),
    ("src/b", "base\n"),
    (".gitignore", "target\nnode_modules/\nleft\n"),
];
const BUILD: &str = "mkdir -p target/debug node_modules/kit src/__pycache__ && echo out > target/debug/out \
                     && ln target/debug/out target/debug/again && echo kit > node_modules/kit/x && \
                     touch -d 2020-02-02 target/debug/out && echo x > left";
const LONG: Duration = Duration::from_secs(60);

fn slot(world: &World) -> Slot {
    let repo = UserRepo::examine(&world.user, "main", &[]).unwrap();
    Slots::new(&world.hub, &repo).agent(0)
}

fn prepare(slot: &Slot, commit: &Oid) -> PreparedSlot {
    let wanted = Prepare {
        commit,
        base: commit,
        branch: "autopilot/t1",
        attempt: AttemptName { task: "t1", id: "1" },
        keep: KeepFiles::WhileLocked,
        copy: &[],
        now: 1_700_000_000,
    };
    slot.prepare(&wanted).unwrap()
}

/// Prepares the slot and puts into it whatever the seed offers.
fn fill(slot: &Slot, commit: &Oid, seed: &SealedSeed) -> Vec<PathBuf> {
    let prepared = prepare(slot, commit);
    let seeds = [seed.clone()];
    let Some(fill) = SlotFill::new(slot, (commit, &prepared), &seeds).unwrap() else {
        return Vec::new();
    };
    let dirs = fill.offer(0).to_vec();
    assert_eq!(fill.put(&[(0, dirs.clone(), LONG)]).unwrap(), [SlotFilled::Done]);
    dirs
}

fn time(path: &Path) -> (i64, i64) {
    let met = path.symlink_metadata().unwrap();
    (met.mtime(), met.mtime_nsec())
}

pub fn filled() {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let change = world.change(|dir| put(dir, "src/b", "changed\n"));
    let slot = slot(&world);
    assert_eq!(fill(&slot, &change, &seed), paths(&["node_modules", "target"]));
    let (dir, tree) = (slot.dir(), RoomPaths::below(&seed.root()).tree);
    let out = dir.join("target/debug/out");
    assert_eq!(time(&out), time(&tree.join("target/debug/out")));
    assert_eq!(time(&dir.join("target")), time(&tree.join("target")));
    // A second name of a file stays one, and neither is a name of the seed's file.
    let inode = |path: &Path| path.symlink_metadata().unwrap().ino();
    assert_eq!(inode(&out), inode(&dir.join("target/debug/again")));
    assert_ne!(inode(&out), inode(&tree.join("target/debug/out")));
    // What is as in the base is as old as there; what differs is newer than everything of the seed.
    assert_eq!(time(&dir.join("src/a")), time(&tree.join("src/a")));
    let (seconds, nanoseconds) = time(&dir.join("src/b"));
    assert!(seconds * 1_000_000_000 + nanoseconds > seed.seal().newest_ns);
    assert!(!dir.join("left").exists() && !dir.join("src/__pycache__").exists());
    assert!(seed.laid_time().is_some() && seed.copy_time().is_none());
    // What the agent built since is its own, and nothing comes over it.
    put(dir, "target/debug/own", "");
    assert_eq!(fill(&slot, &change, &seed), paths(&[]));
    assert!(dir.join("target/debug/own").exists());
    // What it emptied is filled again.
    for name in ["target", "node_modules"] {
        fs::remove_dir_all(dir.join(name)).unwrap();
        fs::create_dir(dir.join(name)).unwrap();
    }
    assert_eq!(fill(&slot, &change, &seed), paths(&["node_modules", "target"]));
}

/// What was made from another lock file stays away, and so does what git does not ignore.
pub fn fitting() {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let slot = slot(&world);
    let locked = world.change(|dir| put(dir, "package-lock.json", "{\"a\": 1}"));
    assert_eq!(fill(&slot, &locked, &seed), paths(&["target"]));
    let shown = world.change(|dir| put(dir, ".gitignore", "target\n"));
    slot.remove(0).unwrap();
    assert_eq!(fill(&slot, &shown, &seed), paths(&["target"]));
    assert!(!slot.dir().join("node_modules").exists());
    // The agent's commit has a file where the base has built.
    let taken = world.change(|dir| {
        put(dir, ".gitignore", "node_modules\n");
        put(dir, "target/mine", "");
    });
    slot.remove(0).unwrap();
    assert_eq!(fill(&slot, &taken, &seed), paths(&["node_modules"]));
    assert_eq!(names(&slot.dir().join("target")), ["mine"]);
}

/// A copy that takes too long is given up, and what is half done is done anew.
pub fn cut_short() {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let slot = slot(&world);
    let prepared = prepare(&slot, &world.base);
    let seeds = [seed.clone()];
    let fill_now = SlotFill::new(&slot, (&world.base, &prepared), &seeds).unwrap().unwrap();
    let share = (0, fill_now.offer(0).to_vec(), Duration::ZERO);
    assert_eq!(fill_now.put(&[share]).unwrap(), [SlotFilled::OutOfTime]);
    assert!(!slot.dir().join("target").exists() && !slot.dir().join("node_modules").exists());
    assert!(seed.laid_time().is_some());
    // As a controller leaves it that dies between two directories.
    put(&world.state, "own/s0/laying/0/0/debug/out", "half");
    put(slot.dir(), "target/debug/out", "whole");
    assert_eq!(fill(&slot, &world.base, &seed), paths(&["node_modules", "target"]));
    assert_eq!(fs::read_to_string(slot.dir().join("target/debug/out")).unwrap(), "out\n");
    assert!(!world.state.join("own/s0/laying").exists());
}

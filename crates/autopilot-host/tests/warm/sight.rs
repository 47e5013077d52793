//! What programs in jails see of seeds and layers, and of each other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use autopilot_host::exec::{self, Child, LaunchStage, ProcessStdin, SpawnError, Supervisor};
use autopilot_host::jail::NamespaceProbe;
use autopilot_host::warm::{GateLayer, KindProbe, LayerKind, probe};

use crate::world::{World, names, paths, put};

const FILES: &[(&str, &str)] = &[("Cargo.toml", ""), ("a", "base\n"), (".gitignore", "target\n")];
const BUILD: &str = "mkdir target && echo built > target/x";

/// Starts a script that waits for a line of input before it does anything.
async fn started(world: &World, layer: &GateLayer, script: &str) -> Result<Child, SpawnError> {
    let script = format!("read go; {script}");
    let mut launch = world.launch(|plan| layer.put_into(plan), &script);
    launch.stdin = ProcessStdin::Open;
    exec::spawn(launch).await.map(|(_, child)| child)
}

async fn output_of(mut child: Child) -> String {
    child.take_input().unwrap().try_write(b"go\n").unwrap();
    child.wait().await.output.stdout.text.clone()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub fn two_at_once(kind: LayerKind) {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let before = digest(&seed.root());
    let mut one = world.layer(&seed, kind, &world.change(|user| put(user, "a", "one\n")));
    let mut two = world.layer(&seed, kind, &world.change(|user| put(user, "a", "two\n")));
    one.before_command().unwrap();
    two.before_command().unwrap();
    let script = "cat a target/x && cp a target/x && cp a only-$(cat a) && ls && pwd";
    let (first, second) = block_on(async {
        let first = started(&world, &one, script).await.unwrap();
        let second = started(&world, &two, script).await.unwrap();
        (output_of(first).await, output_of(second).await)
    });
    let place = world.store.place().join("tree").display().to_string();
    let expected =
        |name: &str| format!("{name}\nbuilt\nCargo.toml\na\nonly-{name}\ntarget\n{place}\n");
    assert_eq!((first, second), (expected("one"), expected("two")));
    // A second command of the same layer finds what the first wrote; another layer does not.
    let (ran, _) = world.command(&mut one, "cat target/x only-one").unwrap();
    assert_eq!(ran.out, "one\none\n");
    drop((one, two));
    assert_eq!(world.layers(), [""; 0]);
    assert_eq!(
        names(world.store.place()),
        ["cache", "tree"],
        "what agents and gates see their files at"
    );
    assert_eq!(names(&world.store.place().join("tree")), [""; 0]);
    assert_eq!(digest(&seed.root()), before);
}

pub fn hidden(kind: LayerKind) {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let commit = world.change(|user| put(user, "a", "one\n"));
    let mut other = world.layer(&seed, kind, &commit);
    other.before_command().unwrap();
    let state = world.state.display().to_string();
    let script = format!(
        "ls {state}; ls ..; test $(stat -c %i /tmp) = $(stat -c %i ../tmp) && echo same; \
         mv $(mktemp -d) ../tmp/renamed && ls /tmp; echo x > ../beside && echo y > {state}/z; \
         grep -c {state}/seeds /proc/self/mountinfo; echo $?"
    );
    let (ran, _) = world.command(&mut other, &script).unwrap();
    let refused = format!("sh: 1: cannot create {state}/z: Read-only file system\n");
    let expected = format!("work\ncache\nhome\ntmp\ntree\nsame\nrenamed\n0\n1\n{refused}");
    assert_eq!(ran.out, expected);
}

pub fn one_upper() {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let mut layer = world.layer(&seed, LayerKind::Overlay, &world.base);
    layer.before_command().unwrap();
    block_on(async {
        let first = started(&world, &layer, "cat a").await.unwrap();
        let error = started(&world, &layer, "cat a").await.err().unwrap();
        let SpawnError::Start { failure, .. } = &error else { panic!("{error}") };
        assert_eq!(failure.stage, LaunchStage::Sandbox);
        assert!(error.to_string().contains("another jail uses it"), "{error}");
        let error = layer.before_command().unwrap_err();
        assert!(error.cold_reason().is_none() && error.to_string().contains("upper"), "{error}");
        // Nor does a sweep take away what a living jail has.
        let swept = autopilot_host::warm::sweep(&world.state).unwrap();
        assert_eq!((swept.layers, swept.seeds), (0, 0));
        assert_eq!(output_of(first).await, "base\n");
    });
    let (ran, _) = world.command(&mut layer, "cat a").unwrap();
    assert_eq!(ran.out, "base\n");
}

/// Mounts are made of options that commas and colons separate, and places may be behind links.
pub fn odd_paths() {
    for state in ["link/state", "a, b:c\\d=e 'f'"] {
        let world = World::with_state(state, FILES);
        let seed = world.seed(BUILD);
        let commit = world.change(|user| put(user, "a", "one\n"));
        let script = "cat a target/x && echo x > ../tmp/x && cat /tmp/x && echo x >> Cargo.toml";
        for kind in [LayerKind::Overlay, LayerKind::Copy] {
            let (ran, differences) = world.warm(&seed, kind, &commit, script);
            assert_eq!(ran.out, "one\nbuilt\nx\n", "{state}");
            assert_eq!(differences.changed, paths(&["Cargo.toml"]), "{state}");
        }
        let path = std::env::var_os("PATH").unwrap();
        let found = probe(&world.state, &path, &Supervisor::default(), &NamespaceProbe::Given);
        assert_eq!(found.unwrap().overlay, KindProbe::Works, "{state}");
    }
}

pub fn planted() {
    let world = World::new(FILES);
    let seed = world.seed(BUILD);
    let mut layer = world.layer(&seed, LayerKind::Overlay, &world.base);
    let plant = "/usr/bin/python3 - <<'E'\nimport os\nfor name, value in [('opaque', b'y'), \
                 ('redirect', b'/target'), ('metacopy', b''), ('whiteout', b'')]:\n    \
                 for path in ['target', '.', 'a']:\n        try:\n            \
                 os.setxattr(path, 'user.overlay.' + name, value)\n        except OSError:\n            \
                 pass\ntry:\n    os.mknod('Cargo.toml2', 0o020000, 0)\n    print('made')\n\
                 except OSError:\n    print('refused')\nE\n";
    let (ran, differences) = world.command(&mut layer, plant).unwrap();
    assert_eq!(ran.out, "refused\n");
    assert!(differences.is_empty(), "{differences:?}");
    let (ran, differences) = world.command(&mut layer, "cat a target/x && ls").unwrap();
    assert_eq!(ran.out, "base\nbuilt\nCargo.toml\na\ntarget\n");
    assert!(differences.is_empty(), "{differences:?}");
    let (_, differences) = world.command(&mut layer, "rm a").unwrap();
    assert_eq!(differences.changed, paths(&["a"]));
}

pub fn probed() {
    let world = World::new(FILES);
    let path = std::env::var_os("PATH").unwrap();
    let ask = |namespaces: &NamespaceProbe| {
        probe(&world.state, &path, &Supervisor::default(), namespaces).unwrap()
    };
    let found = ask(&NamespaceProbe::Given);
    assert_eq!(found.overlay, KindProbe::Works);
    assert_eq!(found.kind(), Some(LayerKind::Overlay));
    assert_eq!(world.layers(), [""; 0]);
    let none = ask(&NamespaceProbe::Refused { why: "EPERM".into() });
    assert_eq!((none.kind(), none.sentence().contains("EPERM")), (None, true));
}

/// Prints what a layer costs over a seed of some hundred megabytes.
pub fn figures(kind: LayerKind) {
    const FILES_MADE: usize = 6000;
    let world = World::new(FILES);
    let script = format!(
        "mkdir -p target/deps && cd target/deps && for i in $(seq {FILES_MADE}); do \
         head -c 60000 /dev/urandom > f$i; done"
    );
    let began = Instant::now();
    let room = world.room(&world.base);
    println!("cold room made in {:?}", began.elapsed());
    assert_eq!(world.run(|plan| room.put_into(plan), &script).code, Some(0));
    let began = Instant::now();
    let seed = room.seal(&crate::world::request("figures")).unwrap();
    println!(
        "sealed in {:?}: {} bytes, {} entries",
        began.elapsed(),
        seed.seal().bytes,
        seed.seal().entries
    );
    let commit = world.change(|user| put(user, "a", "one\n"));
    for round in 0..4 {
        let began = Instant::now();
        let mut layer = world.store.layer(&seed, kind).unwrap();
        let made = began.elapsed();
        layer.fill(&commit).unwrap();
        let filled = began.elapsed();
        layer.before_command().unwrap();
        let ready = began.elapsed();
        let ran = world.run(|plan| layer.put_into(plan), "cat a");
        let ended = began.elapsed();
        assert_eq!(ran.out, "one\n");
        assert!(layer.differences().unwrap().is_empty());
        let compared = began.elapsed();
        let write = "cd target/deps && for i in $(seq 3000); do echo x >> f$i; done";
        layer.before_command().unwrap();
        world.run(|plan| layer.put_into(plan), write);
        let before_removal = Instant::now();
        layer.remove().unwrap();
        println!(
            "{} round {round}: made {made:?}, filled {:?}, dated {:?}, mounted and ran `cat` {:?}, \
             compared {:?}, removed with 180 MB written {:?}",
            kind.word(),
            filled - made,
            ready - filled,
            ended - ready,
            compared - ended,
            before_removal.elapsed()
        );
    }
}

/// The fingerprint of a directory: names, modes, times and contents.
pub fn digest(root: &Path) -> Vec<String> {
    let (mut lines, mut pending) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let met = path.symlink_metadata().unwrap();
            let content = if met.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let time = (met.mtime(), met.mtime_nsec(), met.ctime(), met.ctime_nsec());
            lines.push(format!("{} {:o} {time:?} {content:?}", path.display(), met.mode()));
            if met.is_dir() {
                pending.push(path);
            }
        }
    }
    lines.sort();
    lines
}

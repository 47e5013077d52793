//! Controllers that are killed while they seal, or while a layer is mounted.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use autopilot_host::exec;
use autopilot_host::git::Oid;
use autopilot_host::warm::{LayerKind, sweep};

use crate::world::{KEY, World, launch, names, open, put, request, room};

/// The word by which this binary is a controller.
pub const CONTROLLER: &str = "__controller";

/// The number of kills; `AUTOPILOT_WARM_KILLS` asks for more.
const KILLS: usize = 12;

const FILES: &[(&str, &str)] = &[("Cargo.toml", ""), ("a", "base\n"), (".gitignore", "target\n")];

const POINTS: [&str; 5] =
    ["seal.scrubbed", "seal.flushed", "seal.written", "seal.moved", "layer.renamed"];

pub fn killed(kind: LayerKind) {
    let asked = std::env::var("AUTOPILOT_WARM_KILLS").ok().and_then(|text| text.parse().ok());
    let world = World::new(FILES);
    let commit = world.change(|user| put(user, "a", "one\n"));
    let (mut sealed, mut mounted) = (0, 0);
    for round in 0..asked.unwrap_or(KILLS) {
        let point = POINTS.get(round % (POINTS.len() + 1)).copied();
        let mut controller = controller_of(&world, kind, &commit, point);
        let lines = BufReader::new(controller.stdout.take().unwrap()).lines();
        if point.is_none() {
            // Killed while a program runs over the layer, at once or after a while.
            let mut lines = lines.map(Result::unwrap);
            assert!(lines.any(|line| line == "mounted"), "no layer was mounted");
            controller.kill().unwrap();
            mounted += 1;
        }
        let status = controller.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "round {round}: {point:?}");
        // Its jail ends with it. A sweep that comes too early leaves the layer to the next.
        let began = std::time::Instant::now();
        while !names(&world.state.join("layers")).is_empty() {
            sweep(&world.state).unwrap();
            assert!(began.elapsed().as_secs() < 20, "{:?}", world.layers());
        }
        sweep(&world.state).unwrap();
        match world.store.find(KEY).unwrap() {
            // Sealed as a whole: it can be used.
            Some(seed) => {
                sealed += 1;
                let (ran, _) = world.warm(&seed, kind, &commit, "cat a target/x");
                assert_eq!(ran.out, "one\nbuilt\n", "round {round}");
                let early = ["seal.scrubbed", "seal.flushed", "seal.written"];
                assert!(round > 0 && point.is_none_or(|at| !early.contains(&at)), "{point:?}");
            }
            None => assert_eq!(world.seeds(), [""; 0], "round {round}"),
        }
        assert_eq!(names(world.store.place()), [""; 0]);
        let bounds = autopilot_host::warm::SeedBounds { seeds_max: 0, bytes_max: 0 };
        autopilot_host::warm::bound(&world.state, &bounds).unwrap();
    }
    assert!(sealed > 0 && mounted > 0, "{sealed} seeds were made, {mounted} layers mounted");
    assert!(mounts_below(&world.state).is_empty());
}

fn mounts_below(state: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let shown = state.display().to_string();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let table = std::fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
        if table.contains(&shown) {
            found.push(entry.path());
        }
    }
    found
}

fn controller_of(world: &World, kind: LayerKind, commit: &Oid, point: Option<&str>) -> Child {
    let mut command = Command::new("/proc/self/exe");
    command.arg(CONTROLLER).args([&world.user, &world.state]).arg(kind.word()).arg(commit.as_str());
    if let Some(point) = point {
        // A layer is removed once, after the seed; the room of a seal is not renamed that way.
        command.env("AUTOPILOT_FAILPOINT", format!("{point}:1"));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Seals a seed, mounts a layer over it and removes that.
#[allow(clippy::print_stdout, reason = "the test waits for the line")]
pub fn controller(args: &[OsString]) {
    let (user, state) = (PathBuf::from(&args[0]), PathBuf::from(&args[1]));
    let kinds = [LayerKind::Overlay, LayerKind::Reflink, LayerKind::Copy];
    let kind = kinds.into_iter().find(|kind| args[2] == kind.word()).unwrap();
    let commit = Oid::parse(args[3].to_str().unwrap()).unwrap();
    let (_, hub, store) = open(&user, &state);
    let base = hub.parents(&commit).unwrap().remove(0);
    let cold = room(&store, &base);
    put(&cold.seen().join("tree"), "target/x", "built\n");
    let seed = cold.seal(&request(KEY)).unwrap();
    let mut layer = store.layer(&seed, kind).unwrap();
    layer.fill(&commit).unwrap();
    layer.before_command().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let is_killed_here = std::env::var_os("AUTOPILOT_FAILPOINT").is_none();
        let script = if is_killed_here { "echo x > new; sleep 1000" } else { "echo x > new" };
        let wanted = launch(&store, &state, |plan| layer.put_into(plan), script);
        let (_control, child) = exec::spawn(wanted).await.unwrap();
        println!("mounted");
        child.wait().await;
    });
    layer.remove().unwrap();
}

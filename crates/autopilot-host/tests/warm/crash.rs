//! Controllers that are killed while they seal, or while a layer is mounted.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use autopilot_host::exec;
use autopilot_host::git::Oid;
use autopilot_host::warm::{LayerKind, SeedBounds, bound, sweep};

use crate::world::{KEY, World, launch, names, open, put, request, room};

/// The word by which this binary is a controller.
pub const CONTROLLER: &str = "__controller";

/// The variable that asks for another number of kills.
pub const KILLS_ASKED: &str = "AUTOPILOT_WARM_KILLS";
const KILLS: usize = 14;

const END_TIME_MAX: Duration = Duration::from_secs(20);

const FILES: &[(&str, &str)] = &[("Cargo.toml", ""), ("a", "base\n"), (".gitignore", "target\n")];

/// The moment at which a controller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillMoment {
    /// Before there can be a seed.
    Early(&'static str),
    /// When there is one.
    Late(&'static str),
    /// While a program runs over the layer.
    Mounted,
    /// So many milliseconds after its start.
    After(u64),
}

impl KillMoment {
    fn of(round: usize) -> KillMoment {
        let moments = [
            KillMoment::Early("seal.scrubbed"),
            KillMoment::Early("seal.flushed"),
            KillMoment::Early("seal.written"),
            KillMoment::Late("seal.moved"),
            KillMoment::Late("layer.renamed"),
            KillMoment::Mounted,
            KillMoment::After(u64::try_from(round * 7 % 120).unwrap()),
        ];
        moments[round % moments.len()]
    }

    fn point(self) -> Option<&'static str> {
        match self {
            KillMoment::Early(point) | KillMoment::Late(point) => Some(point),
            KillMoment::Mounted | KillMoment::After(_) => None,
        }
    }
}

pub fn killed(kind: LayerKind) {
    let asked = std::env::var(KILLS_ASKED).ok().and_then(|text| text.parse().ok());
    let world = World::new(FILES);
    let commit = world.change(|user| put(user, "a", "one\n"));
    for round in 0..asked.unwrap_or(KILLS) {
        let moment = KillMoment::of(round);
        let mut controller = controller_of(&world, kind, &commit, moment.point());
        let mut lines = BufReader::new(controller.stdout.take().unwrap()).lines();
        match moment {
            KillMoment::Early(_) | KillMoment::Late(_) => {}
            KillMoment::Mounted => {
                assert!(lines.any(|line| line.unwrap() == "mounted"), "no layer was mounted");
                controller.kill().unwrap();
            }
            KillMoment::After(time) => {
                std::thread::sleep(Duration::from_millis(time));
                controller.kill().unwrap();
            }
        }
        let status = controller.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "round {round}: {moment:?}");
        // Its jail ends with it. A sweep that comes too early leaves the layer to the next.
        let began = Instant::now();
        while sweep(&world.state).is_ok() && !world.layers().is_empty() {
            assert!(began.elapsed() < END_TIME_MAX, "{moment:?}: {:?}", world.layers());
        }
        let seed = world.store.find(KEY).unwrap();
        match (moment, &seed) {
            (KillMoment::Early(_), None) | (KillMoment::After(_), _) => {}
            (KillMoment::Late(_) | KillMoment::Mounted, Some(_)) => {}
            (KillMoment::Early(_) | KillMoment::Late(_) | KillMoment::Mounted, _) => {
                panic!("round {round}, {moment:?}: {seed:?}")
            }
        }
        match seed {
            // Sealed as a whole: it can be used.
            Some(seed) => {
                let (ran, _) = world.warm(&seed, kind, &commit, "cat a target/x");
                assert_eq!(ran.out, "one\nbuilt\n", "round {round}");
            }
            None => assert_eq!(world.seeds(), [""; 0], "round {round}"),
        }
        assert_eq!(
            names(world.store.place()),
            ["cache", "tree"],
            "what agents and gates see their files at"
        );
        assert_eq!(names(&world.store.place().join("tree")), [""; 0]);
        let bounds = SeedBounds { seeds_max: 0, bytes_max: 0 };
        bound(&world.state, &bounds).unwrap();
        assert_eq!(world.seeds(), [""; 0]);
        assert!(mounts_below(&world.state).is_empty(), "{moment:?}");
    }
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

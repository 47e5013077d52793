//! Many clients of one run, and many runs in one process: nobody who watches slows the work, and
//! everybody sees every record.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_core::config::Options;
use autopilot_core::event::Event;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_engine::begin::{self, RunRequest, WorkSource};
use autopilot_engine::feed::{FeedItem, FeedNews, RunFeed, SightLevel, Subscription};
use autopilot_engine::host::EngineHost;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::show::show;
use autopilot_engine::query::{RunArchive, Standing};
use autopilot_engine::run_process::{
    self, Intent, Machine, OpenRun, OpenedRepository, RunProcessError,
};
use autopilot_engine::shell::WaitPolicy;
use autopilot_engine::workspace::{self, WorkspaceError};
use autopilot_host::git::StateEnv;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use camino::Utf8PathBuf;
use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(120);
/// Lines of output the loud builder prints: many times what is kept for a client.
const LINES: usize = 30_000;

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A builder that does not go on before the file `go` is there.
fn waiting(stage: &Stage) {
    let go = stage.path("go").display().to_string();
    let waits =
        format!("- step: build\n  do:\n    - run: \"until test -e {go}; do sleep 0.05; done\"\n");
    let builds = BUILDS.replace("\n- step: [build, fix]\n  do:\n", "");
    stage.agents(&[&format!("{waits}{builds}"), APPROVES]);
}

fn utf8(path: std::path::PathBuf) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(path).unwrap()
}

fn machine(stage: &Stage) -> Machine {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    variables.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
    variables.insert("HOME".to_owned(), stage.folder().join("home").display().to_string());
    let own = Utf8PathBuf::from(env!("CARGO_BIN_EXE_autopilot"));
    Machine { variables, own, salt: "test".to_owned(), holder: "a test".to_owned() }
}

fn place(stage: &Stage) -> StatePaths {
    workspace::find(&utf8(stage.root()), &state_env(stage)).unwrap().0
}

fn state_env(stage: &Stage) -> StateEnv {
    let state = stage.state().into_os_string();
    StateEnv { autopilot_state_dir: Some(state), xdg_state_home: None, home: None }
}

fn archive(stage: &Stage) -> RunArchive {
    RunArchive::open(&place(stage), BTreeMap::new()).unwrap()
}

fn open(stage: &Stage) -> Result<OpenRun, RunProcessError> {
    let root = utf8(stage.root());
    let (found, _) = workspace::find(&root, &state_env(stage)).unwrap();
    let (config, _) = workspace::read_config(&found).unwrap();
    let repo = workspace::examine(&root, &config).unwrap();
    let place = workspace::adopt(&repo, &state_env(stage)).unwrap();
    let source = WorkSource::File(root.join("tasks/say-done.md"));
    let tasks = begin::read_tasks(&source, &place.root).unwrap();
    let request = RunRequest {
        source,
        push: false,
        pr: false,
        hold_plan: false,
        gates_plan: false,
        fail_fast: false,
        allow_red_base: false,
        prove_base: false,
        options: Options::default(),
        limits: Default::default(),
        started_by: "somebody".to_owned(),
    };
    let intent = Intent::Begin { tasks: Box::new(tasks), request: Box::new(request), fresh: false };
    let opened = OpenedRepository { place, repo, config };
    run_process::open(opened, intent, machine(stage), None, &mut |_| {})
}

/// Every number a client was told, in order, and how many sights it took and missed.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    seqs: Vec<u64>,
    sights: u64,
    missed: u64,
}

fn client(mut subscription: Subscription) -> JoinHandle<Heard> {
    std::thread::spawn(move || {
        let mut heard = Heard::default();
        loop {
            match subscription.take(SOON).unwrap() {
                FeedNews::Item(FeedItem::Record(record)) => heard.seqs.push(record.seq),
                FeedNews::Item(FeedItem::Sight { .. }) => heard.sights += 1,
                FeedNews::Item(FeedItem::Missed(missed)) => heard.missed += missed,
                FeedNews::Item(FeedItem::Notice(_)) => {}
                FeedNews::Quiet => panic!("the run has gone quiet after {:?}", heard.seqs.last()),
                FeedNews::Ended => return heard,
            }
        }
    })
}

/// Waits until the run has begun to build.
fn building(feed: &RunFeed) {
    let mut subscription = feed.subscribe(1, SightLevel::Nothing);
    loop {
        match subscription.take(SOON).unwrap() {
            FeedNews::Item(FeedItem::Record(record)) => {
                let is_it = |event: &Event| {
                    matches!(event, Event::AttemptStarted { step: Step::Build, .. })
                };
                if record.events.iter().any(is_it) {
                    return;
                }
            }
            FeedNews::Item(_) => {}
            FeedNews::Quiet | FeedNews::Ended => panic!("nothing was built"),
        }
    }
}

fn is_done(state: &State) -> bool {
    autopilot_view::run_word(state) == "DONE"
}

/// How long a run with much output takes, with these clients.
fn loud(watch: impl FnOnce(&OpenRun)) -> (Stage, State, Duration) {
    let stage = stage();
    let prints = format!("- step: build\n  do:\n    - run: \"yes a line | head -n {LINES}\"\n");
    let builds = BUILDS.replace("\n- step: [build, fix]\n  do:\n", "");
    stage.agents(&[&format!("{prints}{builds}"), APPROVES]);
    let run = open(&stage).unwrap();
    watch(&run);
    let began = Instant::now();
    let state = EngineHost::new().unwrap().start(run, WaitPolicy::default()).join().unwrap();
    assert!(is_done(&state));
    (stage, state, began.elapsed())
}

#[test]
fn of_two_clients_of_a_live_run_one_stalls_and_the_other_misses_nothing() {
    let (_, _, alone) = loud(|_| {});
    let mut clients = Vec::new();
    let mut stalled = None;
    let (stage, state, watched) = loud(|run| {
        // It is never read while the run is at work.
        stalled = Some(run.feed().subscribe(1, SightLevel::Output));
        clients.push(client(run.feed().subscribe(1, SightLevel::Output)));
        clients.push(client(run.feed().subscribe(3, SightLevel::Nothing)));
    });
    assert!(watched < alone * 2 + Duration::from_secs(5), "{alone:?} alone, {watched:?} watched");
    let all: Vec<u64> = (1..=state.seq).collect();
    let heard: Vec<Heard> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_eq!(heard[0].seqs, all);
    assert_eq!(heard[1], Heard { seqs: all[2..].to_vec(), sights: 0, missed: 0 });
    // Whoever comes back finds all records, and is told how much else there was.
    let late = client(stalled.unwrap()).join().unwrap();
    assert_eq!(late.seqs, all);
    assert!(late.missed > 0 && late.sights + late.missed == heard[0].sights + heard[0].missed);
    // And so does whoever asks the journal.
    let archive = archive(&stage);
    let known = archive.newest().unwrap().unwrap();
    let records: Vec<u64> =
        archive.records(&known.run.id).unwrap().iter().map(|record| record.seq).collect();
    assert_eq!(records, all);
}

#[test]
fn another_process_follows_the_same_run_by_its_journal() {
    let stage = stage();
    waiting(&stage);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    let archive = archive(&stage);
    let known = archive.newest().unwrap().unwrap();
    let from = known.state.seq + 1;
    let clients = [(); 2].map(|()| client(archive.follow(&known).unwrap()));
    // A process that prints for nobody: its pipe is never read.
    let mut command = stage.command(&["status", "--watch"]);
    let mut unread = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    stage.write("go", "");
    run.wait().expect(0);
    let seqs: Vec<u64> = archive.records(&known.run.id).unwrap().iter().map(|r| r.seq).collect();
    let left: Vec<u64> = seqs.into_iter().filter(|seq| *seq >= from).collect();
    assert!(left.len() > 5);
    for client in clients {
        assert_eq!(client.join().unwrap().seqs, left);
    }
    let _ended_already = unread.kill();
    unread.wait().unwrap();
}

#[test]
fn one_process_works_on_two_runs_at_once_and_others_can_be_read_meanwhile() {
    let (first, second) = (stage(), stage());
    first.run_task().expect(0);
    let before = archive(&first).newest().unwrap().unwrap().run.id;
    waiting(&first);
    waiting(&second);
    let host = EngineHost::new().unwrap();
    let runs = [&first, &second].map(|stage| {
        let run = open(stage).unwrap();
        host.start(run, WaitPolicy::default())
    });
    runs.iter().for_each(|run| building(&run.feed));
    for (stage, run) in [&first, &second].into_iter().zip(&runs) {
        let known = archive(stage).run(Some(&run.id)).unwrap();
        assert!(matches!(known.standing(), Standing::Live { .. }), "{}", run.id);
    }
    // The run before is known and read while this one is live.
    let shown = show(&archive(&first), Some(&before)).unwrap();
    assert_eq!(shown.known.word(), "DONE");
    assert_eq!(shown.to_json()["run"]["run_id"], before);
    assert_eq!(archive(&first).runs(9).unwrap().len(), 2);
    // Nobody else gets at the repository meanwhile.
    let refused = open(&second).err().unwrap();
    assert!(matches!(refused, RunProcessError::Workspace(WorkspaceError::Lock(_))), "{refused}");
    [&first, &second].iter().for_each(|stage| stage.write("go", ""));
    for run in runs {
        let id = run.id.clone();
        let state = run.join().unwrap();
        assert!(is_done(&state) && state.run.id == id);
    }
    for stage in [&first, &second] {
        assert_eq!(stage.state_json()["current_state"], "DONE");
        assert!(stage.survivors().is_empty());
    }
}

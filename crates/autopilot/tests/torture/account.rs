//! What a run came to, read from git, the journal and the files; and what must be true of any run,
//! however often it was killed.

use crate::stage::{BILL_MAX, Stage};
use autopilot_core::event::{Bill, Event, Outcome, Record, Verdict};
use autopilot_core::id::AttemptId;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_engine::place::StatePaths;
use autopilot_engine::{store, workspace};
use autopilot_host::git::StateEnv;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// What two runs of the same script must have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub tree: String,
    pub task_trees: BTreeMap<String, String>,
    /// Subjects on the run's branch, first parents only, oldest first.
    pub merges: Vec<String>,
    pub commits: usize,
    /// By task: rounds and retries.
    pub spent: BTreeMap<String, (u32, u32)>,
    /// By task: entries of the release notes.
    pub notes: BTreeMap<String, usize>,
}

/// What may differ, within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    pub micros: u64,
    pub interruptions: u32,
    pub salvaged: usize,
}

/// The user's own part of the repository: everything that must stay as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untouched {
    files: BTreeMap<Utf8PathBuf, Vec<u8>>,
    refs: String,
    status: String,
}

impl Untouched {
    pub fn of(stage: &Stage) -> Untouched {
        let mut files = BTreeMap::new();
        read_all(&stage.repo, &mut files, &[".git", ".autopilot"]);
        for name in ["HEAD", "config", "index", "packed-refs"] {
            let path = stage.repo.join(".git").join(name);
            files.insert(path.clone(), fs::read(path).unwrap_or_default());
        }
        read_all(&stage.repo.join(".git/hooks"), &mut files, &[]);
        let refs = stage.git(&["for-each-ref"]);
        let ours = ["refs/heads/autopilot/", "refs/notes/autopilot"];
        let foreign = |line: &&str| !ours.iter().any(|name| line.contains(name));
        let status = stage.git(&["--no-optional-locks", "status", "--porcelain"]);
        let ours = |line: &&str| !line.contains(".autopilot");
        Untouched {
            files,
            refs: refs.lines().filter(foreign).collect(),
            status: status.lines().filter(ours).collect(),
        }
    }
}

fn read_all(dir: &Utf8Path, files: &mut BTreeMap<Utf8PathBuf, Vec<u8>>, but: &[&str]) {
    for entry in dir.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        if but.contains(&entry.file_name()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            read_all(entry.path(), files, &[]);
        } else {
            files.insert(entry.path().to_owned(), fs::read(entry.path()).unwrap());
        }
    }
}

pub fn place(stage: &Stage) -> StatePaths {
    let env = StateEnv {
        autopilot_state_dir: Some(stage.state().as_str().into()),
        ..StateEnv::default()
    };
    workspace::find(&stage.repo, &env).unwrap().0
}

/// Reads the account of the newest run and checks what must hold of every run.
pub fn settle(stage: &Stage) -> (Account, Price) {
    let place = place(stage);
    let health = autopilot_journal::check(&place.journal()).unwrap();
    assert!(health.is_sound(), "{health:?}");
    let reader = workspace::reader(&place).unwrap();
    let run = workspace::pick(&reader, None).unwrap().unwrap();
    let state = store::load(&reader, &run.id).unwrap();
    let records = store::records(&reader, &run.id).unwrap();
    assert_eq!(State::replay(&records), state, "the same journal, the same state");
    assert_eq!(run.ended.as_deref(), Some("DONE"));
    sound_repositories(stage, &place);
    proven(stage, &records, &state);
    let price = price(stage, &place, &records, &state);
    (account(stage, &place, &state), price)
}

/// Temporary files, temporary directories and mounts that outlived a run.
pub fn leftovers(stage: &Stage) -> Vec<String> {
    let place = place(stage);
    let mut files = BTreeMap::new();
    for dir in [&place.state, &place.views(), &stage.repo.join(".git/autopilot")] {
        if dir.exists() {
            read_all(dir, &mut files, &["slots"]);
        }
    }
    let is_temporary = |path: &&Utf8PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.contains(".tmp") || name.starts_with("tmp_")
    };
    let mut left: Vec<String> =
        files.keys().filter(is_temporary).map(ToString::to_string).collect();
    if let Ok(entries) = place.state.join("tmp").read_dir_utf8() {
        left.extend(entries.map(|entry| entry.unwrap().path().to_string()));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let ours = |line: &&str| line.contains(stage.root.as_str());
    left.extend(mounts.lines().filter(ours).map(str::to_owned));
    left
}

/// No object is broken, no lock is left behind.
fn sound_repositories(stage: &Stage, place: &StatePaths) {
    for dir in [stage.repo.join(".git"), place.state.join("hub.git")] {
        let (code, out) = stage.try_git(&dir, &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(code, Some(0), "fsck of {dir}: {out}");
        let mut files = BTreeMap::new();
        read_all(&dir, &mut files, &[]);
        let locks: Vec<_> = files.keys().filter(|path| path.extension() == Some("lock")).collect();
        assert!(locks.is_empty(), "{locks:?}");
    }
}

/// I6: whatever is merged passed validation as exactly that tree, was approved and accepted.
fn proven(stage: &Stage, records: &[Record], state: &State) {
    for task in state.tasks.iter().filter(|task| task.parent.is_some()) {
        let tree = stage.git(&["rev-parse", &format!("autopilot/{}^{{tree}}", task.name())]);
        let passed = |wanted: Step| {
            let mut ended =
                records.iter().flat_map(|record| &record.events).filter_map(|e| match e {
                    Event::AttemptEnded {
                        task: of, step, outcome: Outcome::Passed, facts, ..
                    } if *of == task.id && *step == wanted => Some(facts),
                    _ => None,
                });
            ended.next_back().unwrap_or_else(|| panic!("{} has no {wanted}", task.name()))
        };
        assert_eq!(passed(Step::Validate).tree.as_deref(), Some(tree.trim()));
        assert_eq!(passed(Step::Validate).exit, Some(0));
        assert_eq!(passed(Step::Review).verdict(), Some(Verdict::Approve));
        assert_eq!(passed(Step::Uat).exit, Some(0));
    }
}

/// Every bill counts once, also those of attempts that were cut short.
fn price(stage: &Stage, place: &StatePaths, records: &[Record], state: &State) -> Price {
    let mut bills: BTreeMap<AttemptId, Bill> = BTreeMap::new();
    let mut starts = 0;
    let mut ends: BTreeSet<AttemptId> = BTreeSet::new();
    for event in records.iter().flat_map(|record| &record.events) {
        match event {
            Event::Billed { id, bill, .. } => {
                let known = bills.entry(*id).or_default();
                *known = known.max(*bill);
            }
            Event::AttemptStarted { .. } => starts += 1,
            Event::AttemptEnded { id, .. } => assert!(ends.insert(*id), "{id} ended twice"),
            _ => {}
        }
    }
    assert_eq!(starts, ends.len(), "what began has ended, once");
    let sum: u64 = bills.values().map(|bill| bill.usd.0).sum();
    assert_eq!(sum, state.run.spent.usd.0);
    assert!(bills.values().all(|bill| bill.usd.0 <= BILL_MAX));
    let out = stage.binary(&["status", "--json"]).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(shown["current_state"], "DONE");
    assert_eq!(shown["cost_usd"].as_f64(), Some(sum as f64 / 1e6));
    let view = fs::read(place.views().join("state.json")).unwrap();
    let view: serde_json::Value = serde_json::from_slice(&view).unwrap();
    assert_eq!(view["current_state"], "DONE");
    let hub = place.state.join("hub.git");
    let salvage = stage.git_in(&hub, &["for-each-ref", "refs/autopilot/salvage/"]);
    Price {
        micros: sum,
        interruptions: state.tasks.iter().map(|task| task.spent.interruptions).sum(),
        salvaged: salvage.lines().count(),
    }
}

fn account(stage: &Stage, place: &StatePaths, state: &State) -> Account {
    let branch = &state.run.branch;
    let range = format!("{}..{branch}", state.run.base);
    let format = "--format=%P%x09%(trailers:key=Autopilot-Task,valueonly,separator=%x2c)%x09\
                  %(trailers:key=Autopilot-Attempt,valueonly,separator=%x2c)%x09%s";
    let log = stage.git(&["log", "--reverse", format, &range]);
    let mut made: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for line in log.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let parents = fields[0].split(' ').count();
        assert!(!fields[2].is_empty(), "no attempt in {line}");
        *made.entry((fields[1].to_owned(), parents)).or_default() += 1;
    }
    let leaves = || state.tasks.iter().filter(|task| task.parent.is_some());
    let wanted: BTreeMap<(String, usize), usize> =
        leaves().flat_map(|t| [1, 2].map(|parents| ((t.name().to_owned(), parents), 1))).collect();
    assert_eq!(made, wanted, "one commit and one merge for each task:\n{log}");
    let tree = |name: &str| stage.git(&["rev-parse", &format!("{name}^{{tree}}")]);
    let hub = place.state.join("hub.git");
    let in_hub = stage.git_in(&hub, &["rev-parse", branch]);
    assert_eq!(in_hub, stage.git(&["rev-parse", branch]), "published as it is in the hub");
    let merges = stage.git(&["log", "--reverse", "--first-parent", "--format=%s", &range]);
    Account {
        tree: tree(branch),
        task_trees: leaves()
            .map(|task| (task.name().to_owned(), tree(&format!("autopilot/{}", task.name()))))
            .collect(),
        merges: merges.lines().map(str::to_owned).collect(),
        commits: log.lines().count(),
        spent: leaves()
            .map(|task| (task.name().to_owned(), (task.round, task.spent.retries_all)))
            .collect(),
        notes: notes(place),
    }
}

/// Entries by task; a key that comes twice is an entry written twice.
fn notes(place: &StatePaths) -> BTreeMap<String, usize> {
    let path = place.views().join("RELEASE_NOTES_RUNNING.md");
    let text = fs::read_to_string(path).unwrap();
    let keys: Vec<&str> = text.lines().filter(|line| line.starts_with("<!-- ")).collect();
    let unique: BTreeSet<&&str> = keys.iter().collect();
    assert_eq!(unique.len(), keys.len(), "{text}");
    let mut count = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("- ")) {
        let name = line.split("**").nth(1).unwrap();
        *count.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(count.values().sum::<usize>(), keys.len(), "every key has its entry:\n{text}");
    count
}

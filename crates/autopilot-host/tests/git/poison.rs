//! Every place git takes a command from, filled with one that leaves a mark. No mark may appear.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use autopilot_host::git::push::{Hooks, Rebase};
use autopilot_host::git::{
    Border, ChangeLimits, GitChange, PushOutcome, PushRequest, publish, push, salvage,
};

use crate::world::{NOW, World, git, put, raw_git};

const HOOKS: [&str; 12] = [
    "pre-commit",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-push",
    "reference-transaction",
    "post-index-change",
    "pre-auto-gc",
    "post-rewrite",
    "update",
    "pre-receive",
    "fsmonitor-watchman",
];

/// Settings whose value is a command.
const SETTINGS: [&str; 17] = [
    "core.fsmonitor",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "merge.evil.driver",
    "merge.default",
    "gpg.program",
    "core.sshCommand",
    "core.alternateRefsCommand",
    "uploadpack.packObjectsHook",
    "core.pager",
    "core.editor",
    "credential.helper",
    "core.askPass",
];

struct Trap {
    marks: PathBuf,
}

impl Trap {
    fn script(&self, name: &str) -> PathBuf {
        let file = self.marks.with_file_name("bin").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = format!("#!/bin/sh\necho x > '{}/{name}'\nexit 1\n", self.marks.display());
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// Fills one git directory with traps, each named after its place.
    fn plant(&self, git_dir: &Path, place: &str) {
        let config = git_dir.join("config");
        for key in SETTINGS {
            let script = self.script(&format!("{place}-{key}"));
            let value = script.to_str().unwrap();
            let args = ["config", "--file", config.to_str().unwrap(), key, value];
            git(git_dir.parent().unwrap(), &args);
        }
        let hooks = git_dir.join("planted-hooks");
        for dir in [git_dir.join("hooks"), hooks.clone()] {
            fs::create_dir_all(&dir).unwrap();
            for hook in HOOKS {
                fs::copy(self.script(&format!("{place}-hook-{hook}")), dir.join(hook)).unwrap();
            }
        }
        let args = [
            "config",
            "--file",
            config.to_str().unwrap(),
            "core.hooksPath",
            hooks.to_str().unwrap(),
        ];
        git(git_dir.parent().unwrap(), &args);
        put(git_dir, "info/attributes", "* filter=evil diff=evil merge=evil\n");
    }

    fn marks(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.marks).unwrap();
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

fn trapped() -> (World, Trap) {
    let world = World::new();
    let marks = world.temp.path().canonicalize().unwrap().join("marks");
    fs::create_dir(&marks).unwrap();
    (world, Trap { marks })
}

#[test]
fn g11_nothing_planted_is_executed_in_a_whole_cycle() {
    let (world, trap) = trapped();
    let remote = world.temp.path().join("remote.git");
    git(world.temp.path(), &["init", "-q", "--bare", remote.to_str().unwrap()]);
    git(&world.user, &["remote", "add", "origin", remote.to_str().unwrap()]);
    trap.plant(&world.user.join(".git"), "user");

    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir().to_owned();
    put(&dir, "f", "agent\n");
    put(&dir, "README", "one\nagent\n");
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "-q", "-m", "agent"]);
    put(&dir, ".gitattributes", "* filter=evil diff=evil merge=evil\n");
    trap.plant(&dir.join(".git"), "slot");
    put(
        &dir,
        ".git/objects/info/alternates",
        &format!("{}\n", open.hub.dir().join("objects").display()),
    );
    assert_eq!(trap.marks(), Vec::<String>::new(), "planting itself runs nothing");

    let capture = open.capture(&slot);
    assert_eq!(capture.agent_commits.len(), 1);
    GitChange::between(&open.hub, &open.base(), &capture.tree, &ChangeLimits::default()).unwrap();
    let commit = open.commit("t1", &capture.tree).commit;
    open.merge("t1", &commit).unwrap();
    let other = open.commit("t2", &open.tree_with(2, "README", "one\nother\n")).commit;
    open.merge("t2", &other).unwrap_err();
    let proof = open.slots.proof(1);
    open.fill(&proof, &commit);
    open.fill(&slot, &commit);
    publish(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap();
    for salvaged in salvage::list(&open.hub).unwrap() {
        salvage::restore(&open.hub, &open.repo, &salvaged, &Border::open()).unwrap();
    }
    open.hub.sync(&world.repo()).unwrap();
    let request = PushRequest {
        remote: "origin",
        branch: "autopilot/t1",
        base: &open.base(),
        task: "t1",
        timestamp: "ts",
        artifacts_dir: &world.temp.path().join("artifacts"),
        network_delays: &[],
        timeout: Duration::from_secs(20),
        rebase: Rebase::IfAccepted,
        hooks: Hooks::Off,
        now: NOW,
        border: &Border::open(),
    };
    let pushed = push(&open.hub, &open.repo, &request, &mut |_| true, &|| false).unwrap();
    assert!(matches!(pushed, PushOutcome::Pushed(_)), "{pushed:?}");
    assert_eq!(trap.marks(), Vec::<String>::new());
}

#[test]
fn the_traps_do_work_for_a_careless_git() {
    let (world, trap) = trapped();
    let open = world.open();
    let slot = open.slot(1);
    trap.plant(&slot.dir().join(".git"), "slot");
    put(slot.dir(), ".gitattributes", "* filter=evil diff=evil\n");
    put(slot.dir(), "README", "changed\n");
    raw_git(slot.dir(), &["add", "-A"]);
    raw_git(slot.dir(), &["diff"]);
    // A filter that fails ends git before it gets to the hooks.
    fs::remove_file(slot.dir().join(".git/info/attributes")).unwrap();
    fs::remove_file(slot.dir().join(".gitattributes")).unwrap();
    raw_git(slot.dir(), &["commit", "-q", "--allow-empty", "-m", "x"]);
    let marks = trap.marks();
    for wanted in ["slot-core.fsmonitor", "slot-filter.evil.process", "slot-hook-pre-commit"] {
        assert!(marks.iter().any(|mark| mark == wanted), "{wanted} not in {marks:?}");
    }
}

#[test]
fn an_allowed_filter_runs_and_no_other() {
    let world = World::new();
    world.write(".gitattributes", "*.up filter=upper\n");
    git(&world.user, &["config", "filter.upper.clean", "tr a-z A-Z"]);
    git(&world.user, &["config", "filter.upper.smudge", "tr A-Z a-z"]);
    world.write("a.up", "hello\n");
    world.commit("filtered");
    let repo =
        autopilot_host::git::UserRepo::examine(&world.user, "main", &["upper".to_owned()]).unwrap();
    let hub = autopilot_host::git::Hub::open(&world.state, &repo).unwrap();
    let slots = autopilot_host::git::Slots::new(&hub, &repo);
    let slot = slots.agent(1);
    slot.prepare(&crate::world::prepare(&repo.base_tip)).unwrap();
    assert_eq!(fs::read_to_string(slot.dir().join("a.up")).unwrap(), "hello\n");
    put(slot.dir(), "b.up", "new\n");
    let capture = slot
        .capture(&autopilot_host::git::CaptureRequest {
            attempt: autopilot_host::git::AttemptName { task: "t", id: "1" },
            base: &repo.base_tip,
            now: NOW,
        })
        .unwrap();
    let text = crate::world::in_hub(&hub, &["show", &format!("{}:b.up", capture.tree)]);
    assert_eq!(text, "NEW");
}

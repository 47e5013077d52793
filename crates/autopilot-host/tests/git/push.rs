//! Pushing to a real remote: a branch is sent once, failures are recovered where possible, and
//! otherwise the artifacts apply.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use autopilot_host::git::push::{Hooks, Rebase};
use autopilot_host::git::{
    Border, Oid, PushClass, PushFailure, PushOutcome, PushRequest, Pushed, push,
};

use crate::world::{NOW, Open, World, git, in_hub, put, user_digest};

struct Remote {
    world: World,
    open: Open,
    dir: PathBuf,
    artifacts: PathBuf,
}

/// A world with a bare remote `origin` that has `main`, and a task commit ready to push.
fn remote() -> (Remote, Oid) {
    let world = World::new();
    let root = world.temp.path().canonicalize().unwrap();
    let dir = root.join("remote.git");
    git(&root, &["init", "-q", "--bare", "-b", "main", dir.to_str().unwrap()]);
    git(&world.user, &["remote", "add", "origin", dir.to_str().unwrap()]);
    git(&world.user, &["push", "-q", "origin", "main"]);
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "f", "mine\n");
    fs::write(slot.dir().join("bin"), [0_u8, 159, 146, 150]).unwrap();
    fs::remove_file(slot.dir().join("src/lib.rs")).unwrap();
    let tree = open.capture(&slot).tree;
    let commit = open.commit("t1", &tree).commit;
    (Remote { artifacts: root.join("artifacts"), world, open, dir }, commit)
}

impl Remote {
    fn push(&self, rebase: Rebase, hooks: Hooks, delays: &[Duration]) -> PushOutcome {
        self.push_asking(rebase, hooks, delays, &mut |_| true)
    }

    fn push_asking(
        &self,
        rebase: Rebase,
        hooks: Hooks,
        delays: &[Duration],
        accept: &mut dyn FnMut(&Oid) -> bool,
    ) -> PushOutcome {
        let request = PushRequest {
            remote: "origin",
            branch: "autopilot/t1",
            base: &self.open.base(),
            task: "t1",
            timestamp: "20260101T000000Z",
            artifacts_dir: &self.artifacts,
            network_delays: delays,
            timeout: Duration::from_secs(20),
            rebase,
            hooks,
            now: NOW,
            border: &Border::open(),
        };
        push(&self.open.hub, &self.open.repo, &request, accept, &|| false).unwrap()
    }

    fn tip(&self) -> String {
        git(&self.dir, &["rev-parse", "refs/heads/autopilot/t1"])
    }

    /// Someone else's commit on the same branch of the remote.
    fn foreign(&self, path: &str, text: &str) -> String {
        let clone = self.world.temp.path().join("colleague");
        git(
            self.world.temp.path(),
            &["clone", "-q", self.dir.to_str().unwrap(), clone.to_str().unwrap()],
        );
        git(&clone, &["checkout", "-q", "-B", "autopilot/t1", "origin/main"]);
        put(&clone, path, text);
        git(&clone, &["add", "-A"]);
        git(&clone, &["-c", "user.name=C", "-c", "user.email=c@d", "commit", "-q", "-m", "theirs"]);
        git(&clone, &["push", "-q", "-f", "origin", "autopilot/t1"]);
        git(&clone, &["rev-parse", "HEAD"])
    }

    fn hook(&self, text: &str) {
        put(&self.dir, "hooks/pre-receive", text);
        let file = self.dir.join("hooks/pre-receive");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn pushed(outcome: PushOutcome) -> Pushed {
    match outcome {
        PushOutcome::Pushed(pushed) => pushed,
        PushOutcome::Failed(failure) => panic!("failed: {failure:?}"),
        PushOutcome::Unwanted => panic!("unwanted"),
    }
}

fn failed(outcome: PushOutcome) -> PushFailure {
    match outcome {
        PushOutcome::Pushed(pushed) => panic!("pushed: {pushed:?}"),
        PushOutcome::Failed(failure) => failure,
        PushOutcome::Unwanted => panic!("unwanted"),
    }
}

#[test]
fn c14_a_push_whose_answer_was_lost_is_accepted() {
    let (remote, commit) = remote();
    let first = pushed(remote.push(Rebase::Never, Hooks::Off, &[]));
    assert_eq!(first, Pushed { commit: commit.clone(), already: false, rebased: false });
    assert_eq!(remote.tip(), commit.as_str());
    let again = pushed(remote.push(Rebase::Never, Hooks::Off, &[]));
    assert!(again.already);
}

#[test]
fn the_projects_pre_push_hook_runs_only_when_asked() {
    let (remote, _) = remote();
    let hook = remote.world.user.join(".git/hooks/pre-push");
    put(&remote.world.user, ".git/hooks/pre-push", "#!/bin/sh\necho refused by hook >&2\nexit 1\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let failure = failed(remote.push(Rebase::Never, Hooks::On, &[]));
    assert!(failure.stderr.contains("refused by hook"), "{}", failure.stderr);
    pushed(remote.push(Rebase::Never, Hooks::Off, &[]));
}

#[test]
fn a_remote_that_moved_on_is_rebased_onto_and_the_checkout_stays_as_it_is() {
    let (remote, commit) = remote();
    let theirs = remote.foreign("g", "theirs\n");
    remote.world.write("README", "dirty\n");
    let tracking = |name: &str| name.starts_with("refs/remotes/");
    let before = user_digest(&remote.open.repo, &tracking);
    let mut asked = Vec::new();
    let outcome = remote.push_asking(Rebase::IfAccepted, Hooks::Off, &[], &mut |tip| {
        asked.push(tip.clone());
        true
    });
    let done = pushed(outcome);
    assert!(done.rebased);
    assert_eq!(asked, std::slice::from_ref(&done.commit));
    assert_eq!(remote.tip(), done.commit.as_str());
    assert_eq!(user_digest(&remote.open.repo, &tracking), before);
    let hub = &remote.open.hub;
    let parent = in_hub(hub, &["log", "-1", "--format=%P", done.commit.as_str()]);
    assert_eq!(parent, theirs);
    let files = in_hub(hub, &["ls-tree", "-r", "--name-only", done.commit.as_str()]);
    assert_eq!(files, ".gitignore\nREADME\nbin\nf\ng");
    let trailer = in_hub(
        hub,
        &[
            "log",
            "-1",
            "--format=%(trailers:key=Autopilot-Attempt,valueonly)",
            done.commit.as_str(),
        ],
    );
    assert_eq!(trailer, "t1.1");
    assert!(
        in_hub(hub, &["for-each-ref", "--contains", commit.as_str(), "refs/autopilot/salvage"])
            .contains("push")
    );
    assert_eq!(hub.resolve("refs/heads/autopilot/t1").unwrap(), Some(done.commit));
}

#[test]
fn a_rebase_that_is_not_accepted_or_conflicts_ends_in_artifacts() {
    let (remote, commit) = remote();
    let theirs = remote.foreign("f", "conflicting\n");
    let failure = failed(remote.push(Rebase::IfAccepted, Hooks::Off, &[]));
    assert_eq!(failure.class, PushClass::NonFastForward);
    assert_eq!(remote.tip(), theirs);
    assert_eq!(remote.open.hub.resolve("refs/heads/autopilot/t1").unwrap(), Some(commit));
    let no = remote.push_asking(Rebase::IfAccepted, Hooks::Off, &[], &mut |_| false);
    assert_eq!(failed(no).class, PushClass::NonFastForward);
}

#[test]
fn g21_a_policy_failure_leaves_a_patch_and_a_bundle_that_apply() {
    let (remote, commit) = remote();
    remote.hook("#!/bin/sh\necho 'GH006: Protected branch update failed' >&2\nexit 1\n");
    let failure = failed(remote.push(Rebase::IfAccepted, Hooks::Off, &[]));
    assert_eq!((failure.class, failure.tries), (PushClass::Policy, 1));
    assert!(failure.next_step.contains("rules"), "{}", failure.next_step);
    let (patch, bundle) = (&failure.artifacts.patch, failure.artifacts.bundle.as_ref().unwrap());
    assert_eq!(patch.file_name().unwrap(), "t1_20260101T000000Z.patch");
    assert_eq!(bundle.file_name().unwrap(), "t1_20260101T000000Z.bundle");
    let clone = |name: &str| -> PathBuf {
        let dir = remote.world.temp.path().join(name);
        git(
            remote.world.temp.path(),
            &["clone", "-q", remote.dir.to_str().unwrap(), dir.to_str().unwrap()],
        );
        dir
    };
    let tree = in_hub(&remote.open.hub, &["rev-parse", &format!("{commit}^{{tree}}")]);
    let applied = clone("applied");
    git(&applied, &["apply", "--index", path(patch)]);
    assert_eq!(git(&applied, &["write-tree"]), tree);
    let fetched = clone("fetched");
    git(&fetched, &["bundle", "verify", "-q", path(bundle)]);
    git(&fetched, &["fetch", "-q", path(bundle), "autopilot/t1:restored"]);
    assert_eq!(git(&fetched, &["rev-parse", "restored"]), commit.as_str());
    git(&fetched, &["fsck", "--strict"]);
}

#[test]
fn a_network_failure_is_tried_again_after_each_delay() {
    let (remote, commit) = remote();
    let count = remote.dir.join("count");
    let script = format!(
        "#!/bin/sh\necho x >> '{0}'\nif [ $(wc -l < '{0}') -lt 3 ]; then echo 'Connection reset by peer' >&2; exit 1; fi\n",
        count.display()
    );
    remote.hook(&script);
    let delays = [Duration::from_millis(1); 2];
    assert_eq!(pushed(remote.push(Rebase::Never, Hooks::Off, &delays)).commit, commit);
    assert_eq!(fs::read_to_string(count).unwrap().lines().count(), 3);
}

#[test]
fn a_remote_that_is_not_there_fails_with_artifacts_after_the_last_delay() {
    let (remote, _) = remote();
    git(&remote.world.user, &["remote", "set-url", "origin", "http://127.0.0.1:1/x.git"]);
    let failure = failed(remote.push(Rebase::Never, Hooks::Off, &[Duration::from_millis(1)]));
    assert_eq!((failure.class, failure.tries), (PushClass::Network, 2), "{}", failure.stderr);
    assert!(failure.artifacts.patch.exists());
}

#[test]
fn a_branch_name_that_looks_like_an_option_stays_a_name() {
    let (remote, _) = remote();
    git(&remote.world.user, &["config", "remote.--upload-pack=touch.url", "/nowhere"]);
    let request = PushRequest {
        remote: "--upload-pack=touch",
        branch: "autopilot/t1",
        base: &remote.open.base(),
        task: "../../evil",
        timestamp: "ts",
        artifacts_dir: &remote.artifacts,
        network_delays: &[],
        timeout: Duration::from_secs(20),
        rebase: Rebase::Never,
        hooks: Hooks::Off,
        now: NOW,
        border: &Border::open(),
    };
    let outcome =
        push(&remote.open.hub, &remote.open.repo, &request, &mut |_| true, &|| false).unwrap();
    let failure = failed(outcome);
    assert_eq!(failure.artifacts.patch.parent(), Some(remote.artifacts.as_path()));
}

#[test]
fn a_push_nobody_wants_any_more_ends_during_a_wait_and_before_a_silent_remote() {
    let (remote, _) = remote();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/x.git", silent.local_addr().unwrap());
    for url in ["http://127.0.0.1:1/x.git", &url] {
        git(&remote.world.user, &["remote", "set-url", "origin", url]);
        let base = remote.open.base();
        let request = PushRequest {
            remote: "origin",
            branch: "autopilot/t1",
            base: &base,
            task: "t1",
            timestamp: "ts",
            artifacts_dir: &remote.artifacts,
            network_delays: &[Duration::from_secs(60)],
            timeout: Duration::from_secs(60),
            rebase: Rebase::Never,
            hooks: Hooks::Off,
            now: NOW,
            border: &Border::open(),
        };
        let began = std::time::Instant::now();
        let unwanted = || began.elapsed() > Duration::from_secs(1);
        let (hub, repo) = (&remote.open.hub, &remote.open.repo);
        let outcome = push(hub, repo, &request, &mut |_| true, &unwanted).unwrap();
        assert!(matches!(outcome, PushOutcome::Unwanted), "{outcome:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

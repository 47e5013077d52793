//! Commit, merge and publish: each happens once, whatever crashes or moves in between.

use std::fs;

use autopilot_host::git::{
    AttemptName, Border, CommitRequest, Conflicts, GitError, Oid, PublishOutcome, PublishRefusal,
    Reachable, commit_task, publish, publish_all, publish_reachable,
};

use crate::world::{NOW, Open, World, git, in_hub, oid, put, raw_git, user_digest};

fn merged(outcome: Result<(Oid, bool), Box<Conflicts>>) -> (Oid, bool) {
    outcome.unwrap_or_else(|conflicts| panic!("conflict: {conflicts:?}"))
}

fn ours(name: &str) -> bool {
    name.starts_with("refs/heads/autopilot/")
}

#[test]
fn i5_a_whole_cycle_leaves_a_dirty_checkout_byte_for_byte() {
    let world = World::new();
    world.write("README", "stashed\n");
    git(&world.user, &["stash", "-q"]);
    world.write("README", "dirty\n");
    world.write("staged", "staged\n");
    git(&world.user, &["add", "staged"]);
    world.write("untracked", "x\n");
    world.write(".env", "SECRET\n");
    for hook in ["reference-transaction", "post-checkout", "pre-push", "post-merge"] {
        let file = world.user.join(".git/hooks").join(hook);
        put(&world.user, &format!(".git/hooks/{hook}"), "#!/bin/sh\ntouch \"$HOME/ran\"; exit 1\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(file, mode).unwrap();
    }
    let repo = world.repo();
    let before = user_digest(&repo, &ours);

    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "feature", "done\n");
    let tree = open.capture(&slot).tree;
    let commit = open.commit("t1", &tree).commit;
    let (merge, _) = merged(open.merge("t1", &commit));
    let proof = open.slots.proof(1);
    open.fill(&proof, &merge);
    for branch in ["autopilot/t1", "autopilot/run-r1"] {
        let outcome = publish(&open.hub, &open.repo, branch, &Border::open()).unwrap();
        assert!(matches!(outcome, PublishOutcome::Published { .. }), "{outcome:?}");
    }
    assert_eq!(user_digest(&repo, &ours), before);
    assert_eq!(git(&world.user, &["show", "autopilot/run-r1:feature"]), "done");
    assert_eq!(git(&world.user, &["log", "-1", "--format=%an", "autopilot/t1"]), "Ada");
    git(&world.user, &["fsck", "--strict"]);
    assert!(!world.user.join(".git/logs/refs/heads/autopilot").exists());
    let packs = fs::read_dir(world.user.join(".git/objects/pack")).unwrap();
    assert!(!packs.flatten().any(|e| e.path().extension().is_some_and(|x| x == "keep")));
    // A change by the user does change the digest.
    world.write("README", "dirtier\n");
    assert_ne!(user_digest(&repo, &ours), before);
}

#[test]
fn c08_c09_c10_each_step_run_again_does_nothing_twice() {
    let world = World::new();
    let open = world.open();
    let tree = open.tree_with(1, "f", "1\n");
    let first = open.commit("t1", &tree);
    assert!(!first.already);
    let again = open.commit("t1", &tree);
    assert_eq!((&again.commit, again.already), (&first.commit, true));
    let body = in_hub(&open.hub, &["log", "-1", "--format=%B", first.commit.as_str()]);
    assert_eq!(
        body,
        "Do the task\n\nAutopilot-Run: r1\nAutopilot-Task: t1\nAutopilot-Attempt: t1.1"
    );

    let (merge, already) = merged(open.merge("t1", &first.commit));
    assert!(!already);
    assert_eq!(merged(open.merge("t1", &first.commit)), (first.commit.clone(), true));
    let parents = in_hub(&open.hub, &["log", "-1", "--format=%P", merge.as_str()]);
    assert_eq!(parents, format!("{} {}", open.base(), first.commit));

    assert_eq!(
        publish(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap(),
        PublishOutcome::Published { commit: merge.clone() }
    );
    assert_eq!(
        publish(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap(),
        PublishOutcome::Already { commit: merge.clone() }
    );

    // A crash after merge-tree and commit-tree but before update-ref leaves only loose objects.
    let run = "refs/heads/autopilot/run-r1";
    in_hub(&open.hub, &["update-ref", "-d", run]);
    assert_eq!(merged(open.merge("t1", &first.commit)), (merge.clone(), false));
    // Later merges don't hide an earlier one.
    let other = open.commit("t2", &open.tree_with(2, "g", "1\n"));
    let (second, _) = merged(open.merge("t2", &other.commit));
    assert_ne!(second, merge);
    assert_eq!(merged(open.merge("t1", &first.commit)), (first.commit, true));
    assert_eq!(in_hub(&open.hub, &["rev-list", "--count", "--merges", run]), "2");
}

#[test]
fn a_crash_after_publishing_the_objects_or_the_ref_is_harmless() {
    let world = World::new();
    let open = world.open();
    let commit = open.commit("t1", &open.tree_with(1, "f", "1\n")).commit;
    publish(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap();
    // The record of the publication got lost; the ref is there.
    in_hub(&open.hub, &["update-ref", "-d", "refs/autopilot/published/autopilot/t1"]);
    assert_eq!(
        publish(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap(),
        PublishOutcome::Already { commit: commit.clone() }
    );
    // The ref got lost; the objects are there.
    git(&world.user, &["update-ref", "-d", "refs/heads/autopilot/t1"]);
    assert_eq!(
        publish(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap(),
        PublishOutcome::Published { commit }
    );
}

#[test]
fn an_agent_can_not_forge_a_finished_attempt() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "f", "forged\n");
    git(slot.dir(), &["add", "-A"]);
    git(slot.dir(), &["commit", "-q", "-m", "x\n\nAutopilot-Attempt: t1.1"]);
    let tree = open.capture(&slot).tree;
    assert!(!open.commit("t1", &tree).already);
}

#[test]
fn a_commit_of_an_earlier_attempt_is_replaced_but_kept() {
    let world = World::new();
    let open = world.open();
    let first = open.commit("t1", &open.tree_with(1, "f", "1\n")).commit;
    let tree = open.tree_with(2, "f", "2\n");
    let second = autopilot_host::git::commit_task(
        &open.hub,
        &autopilot_host::git::CommitRequest {
            run: "r1",
            attempt: AttemptName { task: "t1", id: "t1.2" },
            branch: "autopilot/t1",
            parent: &open.base(),
            tree: &tree,
            message: "Again",
            identity: &open.repo.identity,
            now: crate::world::NOW,
        },
    )
    .unwrap();
    assert!(!second.already);
    let kept =
        in_hub(&open.hub, &["for-each-ref", "--contains", first.as_str(), "refs/autopilot/"]);
    assert!(kept.contains("replaced-"), "{kept}");
}

#[test]
fn g05_a_conflict_names_the_files_with_their_three_sides() {
    let world = World::new();
    let open = world.open();
    let one = open.commit("t1", &open.tree_with(1, "README", "one\nmine\n")).commit;
    let two = open.commit("t2", &open.tree_with(2, "README", "one\nyours\n")).commit;
    let (tip, _) = merged(open.merge("t1", &one));
    let found = open.merge("t2", &two).unwrap_err();
    assert_eq!((&found.ours, &found.theirs, found.more), (&tip, &two, 0));
    assert_eq!(found.paths.len(), 1);
    let side = |s: &Option<autopilot_host::git::ConflictSide>| s.as_ref().unwrap().text.clone();
    assert_eq!(found.paths[0].path, b"README");
    assert_eq!(side(&found.paths[0].base), "one\ntwo\n");
    assert_eq!(side(&found.paths[0].ours), "one\nmine\n");
    assert_eq!(side(&found.paths[0].theirs), "one\nyours\n");
    assert_eq!(found.messages, ["CONFLICT (content): Merge conflict in README"]);
    assert_eq!(found.status(), "Unmerged paths:\n\tboth modified:   README\n");
    assert_eq!(open.hub.resolve("refs/heads/autopilot/run-r1").unwrap(), Some(tip));
}

#[test]
fn concurrent_merges_all_arrive() {
    let world = World::new();
    let open = world.open();
    let commits: Vec<Oid> = (0..4)
        .map(|n| open.commit(&format!("t{n}"), &open.tree_with(n, &format!("f{n}"), "x\n")).commit)
        .collect();
    std::thread::scope(|scope| {
        for (n, commit) in commits.iter().enumerate() {
            let open = &open;
            scope.spawn(move || merged(open.merge(&format!("t{n}"), commit)));
        }
    });
    let files = in_hub(&open.hub, &["ls-tree", "--name-only", "refs/heads/autopilot/run-r1"]);
    for n in 0..4 {
        assert!(files.contains(&format!("f{n}")), "{files}");
    }
}

fn with_published_run(world: &World) -> (Open, Oid) {
    let open = world.open();
    let commit = open.commit("t1", &open.tree_with(1, "f", "1\n")).commit;
    let (merge, _) = merged(open.merge("t1", &commit));
    publish(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap();
    let next = open.commit("t2", &open.tree_with(2, "g", "1\n")).commit;
    merged(open.merge("t2", &next));
    (open, merge)
}

#[test]
fn g07_a_branch_that_is_checked_out_is_not_moved() {
    let world = World::new();
    let (open, published) = with_published_run(&world);
    let linked = world.temp.path().join("linked");
    let path = linked.to_str().unwrap();
    git(&world.user, &["worktree", "add", "-q", path, "autopilot/run-r1"]);
    let outcome = publish(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap();
    assert!(
        matches!(outcome, PublishOutcome::Refused(PublishRefusal::CheckedOut { .. })),
        "{outcome:?}"
    );
    assert_eq!(oid(&git(&world.user, &["rev-parse", "autopilot/run-r1"])), published);
    git(&world.user, &["worktree", "remove", path]);
    let outcome = publish(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap();
    assert!(matches!(outcome, PublishOutcome::Published { .. }), "{outcome:?}");
}

#[test]
fn g04_g07_work_that_can_not_have_its_branch_is_reachable_under_the_next_free_name() {
    let world = World::new();
    let (open, published) = with_published_run(&world);
    git(&world.user, &["checkout", "-q", "autopilot/run-r1"]);
    // This branch is the user's own, though it looks like one of ours and is an ancestor of the
    // work.
    git(&world.user, &["branch", "autopilot/run-r1-2", "main"]);
    let reach =
        || publish_reachable(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap();
    let reached = reach();
    assert_eq!(reached.branch, "autopilot/run-r1-3");
    let instead = reached.instead.clone().unwrap();
    assert!(matches!(instead, PublishRefusal::CheckedOut { .. }), "{instead}");
    assert_eq!(git(&world.user, &["show", "autopilot/run-r1-3:g"]), "1");
    assert_eq!(oid(&git(&world.user, &["rev-parse", "HEAD"])), published);
    let (main, theirs) = ("main", "autopilot/run-r1-2");
    assert_eq!(git(&world.user, &["rev-parse", main]), git(&world.user, &["rev-parse", theirs]));
    // Published again, and with more work, the same branch is used.
    assert_eq!(reach(), reached);
    let parent = open.hub.resolve("refs/heads/autopilot/run-r1").unwrap().unwrap();
    let third = open.commit("t3", &open.tree_with(3, "h", "1\n")).commit;
    merged(open.merge("t3", &third));
    assert_ne!(open.hub.resolve("refs/heads/autopilot/run-r1").unwrap().unwrap(), parent);
    assert_eq!(reach(), reached);
    assert_eq!(git(&world.user, &["show", "autopilot/run-r1-3:h"]), "1");
    // The branch's own name is free again.
    git(&world.user, &["checkout", "-q", "main"]);
    let own = Reachable { branch: "autopilot/run-r1".into(), instead: None };
    assert_eq!(reach(), own);
}

const BOTH: [&str; 2] = ["autopilot/t2", "autopilot/run-r1"];

fn packs(world: &World) -> usize {
    let entries = fs::read_dir(world.user.join(".git/objects/pack")).unwrap().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack")).count()
}

#[test]
fn branches_that_nothing_is_in_the_way_of_are_published_with_one_pack() {
    let world = World::new();
    let (open, _) = with_published_run(&world);
    let before = packs(&world);
    let both = || publish_all(&open.hub, &open.repo, &BOTH, &Border::open()).unwrap();
    let own = BOTH.map(|branch| Reachable { branch: branch.into(), instead: None });
    assert_eq!(both(), own);
    assert_eq!(packs(&world), before + 1);
    for (branch, file) in BOTH.iter().zip(["g", "f"]) {
        let ours = open.hub.resolve(&format!("refs/heads/{branch}")).unwrap();
        assert_eq!(Some(oid(&git(&world.user, &["rev-parse", branch]))), ours);
        assert_eq!(git(&world.user, &["show", &format!("{branch}:{file}")]), "1");
        // It is remembered that it was we who put them there.
        let outcome = publish(&open.hub, &open.repo, branch, &Border::open()).unwrap();
        assert!(matches!(outcome, PublishOutcome::Already { .. }), "{outcome:?}");
    }
    assert_eq!(both(), own, "again");
    assert_eq!(packs(&world), before + 1);
    git(&world.user, &["fsck", "--strict"]);
}

#[test]
fn one_branch_that_can_not_be_moved_does_not_hold_the_others_back() {
    let world = World::new();
    let (open, published) = with_published_run(&world);
    git(&world.user, &["checkout", "-q", "autopilot/run-r1"]);
    let reached = publish_all(&open.hub, &open.repo, &BOTH, &Border::open()).unwrap();
    assert_eq!(reached[0], Reachable { branch: "autopilot/t2".into(), instead: None });
    assert_eq!(reached[1].branch, "autopilot/run-r1-2");
    let instead = reached[1].instead.as_ref().unwrap();
    assert!(matches!(instead, PublishRefusal::CheckedOut { .. }), "{instead}");
    assert_eq!(oid(&git(&world.user, &["rev-parse", "HEAD"])), published, "it was not touched");
    // A commit of the user's on top of ours.
    world.write("mine", "x\n");
    let mine = world.commit("the user's own");
    git(&world.user, &["checkout", "-q", "main"]);
    let reached = publish_all(&open.hub, &open.repo, &BOTH, &Border::open()).unwrap();
    let instead = reached[1].instead.as_ref().unwrap();
    assert!(matches!(instead, PublishRefusal::ForeignCommits { .. }), "{instead}");
    assert_eq!(oid(&git(&world.user, &["rev-parse", "autopilot/run-r1"])), mine);
}

#[test]
fn a_branch_that_is_checked_out_before_its_first_commit_is_not_made() {
    let world = World::new();
    let (open, _) = with_published_run(&world);
    git(&world.user, &["checkout", "-q", "--orphan", "autopilot/t2"]);
    let reached = publish_all(&open.hub, &open.repo, &BOTH, &Border::open()).unwrap();
    let instead = reached[0].instead.as_ref().unwrap();
    assert!(matches!(instead, PublishRefusal::CheckedOut { .. }), "{instead}");
    assert_eq!(reached[0].branch, "autopilot/t2-2");
    assert_eq!(reached[1], Reachable { branch: "autopilot/run-r1".into(), instead: None });
    assert!(!raw_git(&world.user, &["rev-parse", "-q", "--verify", "HEAD"]).status.success());
}

#[test]
fn a_branch_with_the_users_own_commits_is_not_moved() {
    let world = World::new();
    let (open, _) = with_published_run(&world);
    git(&world.user, &["checkout", "-q", "autopilot/run-r1"]);
    world.write("mine", "x\n");
    let mine = world.commit("the user's own");
    git(&world.user, &["checkout", "-q", "main"]);
    let outcome = publish(&open.hub, &open.repo, "autopilot/run-r1", &Border::open()).unwrap();
    assert_eq!(
        outcome,
        PublishOutcome::Refused(PublishRefusal::ForeignCommits {
            branch: "autopilot/run-r1".into(),
            tip: mine.clone()
        })
    );
    assert_eq!(oid(&git(&world.user, &["rev-parse", "autopilot/run-r1"])), mine);
}

#[test]
fn g23_publishing_works_after_the_user_rewrote_and_pruned_history() {
    let world = World::new();
    let open = world.open();
    let commit = open.commit("t1", &open.tree_with(1, "f", "1\n")).commit;
    git(&world.user, &["checkout", "-q", "--orphan", "fresh"]);
    git(&world.user, &["commit", "-q", "-m", "rewritten"]);
    git(&world.user, &["branch", "-q", "-M", "fresh", "main"]);
    git(&world.user, &["reflog", "expire", "--expire=now", "--all"]);
    git(&world.user, &["gc", "-q", "--prune=now"]);
    publish(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap();
    git(&world.user, &["fsck", "--strict"]);
    assert_eq!(git(&world.user, &["rev-list", "--count", commit.as_str()]), "3");
}

#[test]
fn g04_a_branch_that_collides_is_published_under_the_next_free_name() {
    let world = World::new();
    let open = world.open();
    git(&world.user, &["branch", "autopilot"]);
    let tree = open.tree_with(1, "f", "x\n");
    open.commit("t1", &tree);
    let outcome = publish(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap();
    let PublishOutcome::Refused(refusal) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(refusal, PublishRefusal::InTheWay { .. }), "{refusal}");
    let reached =
        publish_reachable(&open.hub, &open.repo, "autopilot/t1", &Border::open()).unwrap();
    assert_eq!(reached, Reachable { branch: "autopilot-2/t1".into(), instead: Some(refusal) });
    assert_eq!(git(&world.user, &["show", "autopilot-2/t1:f"]), "x");
}

#[test]
fn a_ref_is_only_moved_from_where_it_is_expected() {
    use autopilot_host::git::ExpectedRef;
    let world = World::new();
    let open = world.open();
    let base = open.base();
    let other = oid(&git(&world.user, &["rev-parse", "HEAD~1"]));
    open.hub.set_ref("refs/x/y", &base, ExpectedRef::Absent).unwrap();
    let error = open.hub.set_ref("refs/x/y", &other, ExpectedRef::Absent).unwrap_err();
    assert!(matches!(error, GitError::RefMoved { .. }), "{error}");
    open.hub.set_ref("refs/x/y", &other, ExpectedRef::At(&base)).unwrap();
    assert!(open.hub.delete_ref("refs/x/y", &base).is_err());
    open.hub.delete_ref("refs/x/y", &other).unwrap();
    assert_eq!(open.hub.resolve("refs/x/y").unwrap(), None);
}

#[test]
fn a_commit_of_what_is_missing_is_not_written() {
    let world = World::new();
    let open = world.open();
    let tree = open.tree_with(1, "f", "1\n");
    let lose = |oid: &Oid| {
        let (fan, rest) = oid.as_str().split_at(2);
        fs::remove_file(open.hub.dir().join("objects").join(fan).join(rest)).unwrap();
    };
    let commit = open.commit("t1", &tree).commit;
    let request = |parent, tree| CommitRequest {
        run: "r1",
        attempt: AttemptName { task: "t2", id: "t2.1" },
        branch: "autopilot/t2",
        parent,
        tree,
        message: "Do the task",
        identity: &open.repo.identity,
        now: NOW,
    };
    lose(&commit);
    assert!(commit_task(&open.hub, &request(&commit, &tree)).is_err(), "a parent is missing");
    lose(&tree);
    assert!(commit_task(&open.hub, &request(&open.base(), &tree)).is_err(), "the tree is missing");
    assert_eq!(open.hub.resolve("refs/heads/autopilot/t2").unwrap(), None);
}

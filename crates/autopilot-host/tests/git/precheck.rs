//! The repositories that are refused before anything starts, and those that are not.

use std::fs;

use autopilot_host::git::state::adopt;
use autopilot_host::git::{
    AttemptName, CommitIdentity, GitError, Hub, KeepFiles, Prepare, RepoHead, RepoRefusal, UserRepo,
};

use crate::world::{NOW, World, git, oid, put};

fn refusal(result: Result<UserRepo, GitError>) -> RepoRefusal {
    match result {
        Err(GitError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn g16_a_directory_without_a_repository_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let found = refusal(UserRepo::examine(temp.path(), "main", &[]));
    assert!(matches!(found, RepoRefusal::NotARepository { .. }), "{found}");
    let found = refusal(UserRepo::examine(&temp.path().join("missing"), "main", &[]));
    assert!(matches!(found, RepoRefusal::NotARepository { .. }), "{found}");
}

#[test]
fn g16_a_bare_repository_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    git(temp.path(), &["init", "-q", "--bare"]);
    let found = refusal(UserRepo::examine(temp.path(), "main", &[]));
    assert!(matches!(found, RepoRefusal::Bare { .. }), "{found}");
}

#[test]
fn g16_a_repository_without_commits_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    git(temp.path(), &["init", "-q", "-b", "main"]);
    let found = refusal(UserRepo::examine(temp.path(), "main", &[]));
    assert!(matches!(found, RepoRefusal::NoCommits { .. }), "{found}");
}

#[test]
fn a_missing_base_branch_is_refused_with_the_branches_there_are() {
    let world = World::new();
    git(&world.user, &["branch", "develop"]);
    let found = refusal(UserRepo::examine(&world.user, "trunk", &[]));
    assert_eq!(
        found,
        RepoRefusal::NoBaseBranch {
            wanted: "trunk".into(),
            candidates: vec!["main".into(), "develop".into()]
        }
    );
}

#[test]
fn g04_a_branch_where_the_folder_of_ours_goes_is_refused_with_the_way_out() {
    let world = World::new();
    git(&world.user, &["branch", "autopilot"]);
    let found = UserRepo::examine(&world.user, "main", &[]).unwrap_err();
    assert!(matches!(found, GitError::Refused(RepoRefusal::BranchInTheWay { .. })), "{found}");
    assert!(found.to_string().contains("git branch -m autopilot autopilot-old"), "{found}");
    git(&world.user, &["branch", "-m", "autopilot", "autopilot-old"]);
    UserRepo::examine(&world.user, "main", &[]).unwrap();
}

#[test]
fn g15_shallow_and_partial_clones_are_refused() {
    let world = World::new();
    let url = format!("file://{}", world.user.display());
    let shallow = world.temp.path().join("shallow");
    git(world.temp.path(), &["clone", "-q", "--depth=1", &url, shallow.to_str().unwrap()]);
    assert_eq!(refusal(UserRepo::examine(&shallow, "main", &[])), RepoRefusal::Shallow);
    git(&world.user, &["config", "uploadpack.allowFilter", "true"]);
    let partial = world.temp.path().join("partial");
    git(world.temp.path(), &["clone", "-q", "--filter=blob:none", &url, partial.to_str().unwrap()]);
    assert_eq!(refusal(UserRepo::examine(&partial, "main", &[])), RepoRefusal::PartialClone);
}

#[test]
fn g15_a_content_filter_needs_permission_and_configuration() {
    let world = World::new();
    world.write("assets/.gitattributes", "*.bin filter=lfs diff=lfs -text\n");
    world.commit("lfs");
    let found = refusal(UserRepo::examine(&world.user, "main", &[]));
    assert_eq!(
        found,
        RepoRefusal::FilterNotAllowed {
            path: "assets/.gitattributes".into(),
            filter: "lfs".into()
        }
    );
    let allowed = ["lfs".to_owned()];
    let found = refusal(UserRepo::examine(&world.user, "main", &allowed));
    assert_eq!(found, RepoRefusal::FilterUnknown { filter: "lfs".into() });
    git(&world.user, &["config", "filter.lfs.clean", "tr a-z A-Z"]);
    let repo = UserRepo::examine(&world.user, "main", &allowed).unwrap();
    assert_eq!(repo.filters.len(), 1);
}

#[test]
fn a_subdirectory_a_linked_worktree_and_a_detached_head_are_fine() {
    let world = World::new();
    let repo = UserRepo::examine(&world.user.join("src"), "main", &[]).unwrap();
    assert_eq!(repo.root, world.user);
    assert_eq!(repo.head, RepoHead::Branch("main".into()));
    assert_eq!(
        repo.identity,
        CommitIdentity { name: "Ada".into(), email: "ada@example.org".into() }
    );

    let linked = world.temp.path().canonicalize().unwrap().join("linked");
    git(&world.user, &["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    let repo = UserRepo::examine(&linked, "main", &[]).unwrap();
    assert_eq!(repo.root, linked);
    assert_eq!(repo.common_dir, world.user.join(".git"));
    assert_eq!(repo.head, RepoHead::Detached(repo.base_tip.clone()));
}

#[test]
fn a_moved_repository_is_adopted_with_its_hub() {
    let world = World::new();
    let root = world.temp.path().join("root");
    let repo = world.repo();
    let (id, dir, _) = adopt(&repo.common_dir, &root).unwrap();
    Hub::open(&dir, &repo).unwrap();
    let moved = world.temp.path().join("moved");
    fs::rename(&world.user, &moved).unwrap();
    let repo = UserRepo::examine(&moved, "main", &[]).unwrap();
    let (again, dir, _) = adopt(&repo.common_dir, &root).unwrap();
    assert_eq!(again, id);
    assert_eq!(Hub::open(&dir, &repo).unwrap().sync(&repo).unwrap(), repo.base_tip);
}

#[test]
fn the_hub_follows_the_base_branch_even_after_a_rewrite() {
    let world = World::new();
    let open = world.open();
    let old = open.base();
    world.write("README", "three\n");
    let new = world.commit("third");
    assert_eq!(open.hub.sync(&open.repo).unwrap(), new);
    git(&world.user, &["reset", "-q", "--hard", "HEAD~2"]);
    world.write("other", "x\n");
    let rewritten = world.commit("rewritten");
    git(&world.user, &["reflog", "expire", "--expire=now", "--all"]);
    git(&world.user, &["gc", "-q", "--prune=now"]);
    assert_eq!(open.hub.sync(&open.repo).unwrap(), rewritten);
    let range = format!("{old}..{rewritten}");
    crate::world::in_hub(&open.hub, &["rev-list", "--objects", "--quiet", &range]);
    // The hub still has the objects that the user has pruned.
    open.hub.tree_of(&new).unwrap();
}

#[test]
fn a_repository_with_sha256_objects_and_one_with_borrowed_objects_work() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let user = root.join("user");
    fs::create_dir(&user).unwrap();
    git(&user, &["init", "-q", "-b", "main", "--object-format=sha256"]);
    put(&user, "a", "a\n");
    git(&user, &["add", "-A"]);
    git(&user, &["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "a"]);
    let repo = UserRepo::examine(&user, "main", &[]).unwrap();
    let hub = Hub::open(&root.join("state"), &repo).unwrap();
    assert_eq!(hub.sync(&repo).unwrap().as_str().len(), 64);

    let world = World::new();
    let shared = world.temp.path().join("shared");
    git(world.temp.path(), &["clone", "-q", "--shared", "user", shared.to_str().unwrap()]);
    let repo = UserRepo::examine(&shared, "main", &[]).unwrap();
    let hub = Hub::open(&world.state, &repo).unwrap();
    fs::remove_dir_all(&world.user).unwrap();
    hub.tree_of(&repo.base_tip).unwrap();
}

#[test]
fn a_changed_hub_is_noticed() {
    let world = World::new();
    let open = world.open();
    open.hub.verify().unwrap();
    let config = open.hub.dir().join("config");
    let good = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{good}[core]\n\tfsmonitor = evil\n")).unwrap();
    assert!(matches!(open.hub.verify(), Err(GitError::Tampered { .. })));
    assert!(matches!(Hub::open(&world.state, &open.repo), Err(GitError::Tampered { .. })));
    fs::write(&config, good).unwrap();
    fs::create_dir(open.hub.dir().join("hooks")).unwrap();
    assert!(matches!(open.hub.verify(), Err(GitError::Tampered { .. })));
}

#[test]
fn settings_of_the_user_that_change_are_followed() {
    let world = World::new();
    world.open();
    git(&world.user, &["config", "core.autocrlf", "input"]);
    let open = world.open();
    let config = fs::read_to_string(open.hub.dir().join("config")).unwrap();
    assert!(config.contains("autocrlf = input"), "{config}");
}

#[test]
fn g01_only_old_locks_of_the_hub_are_removed() {
    let world = World::new();
    let open = world.open();
    let lock = open.hub.dir().join("refs/heads/x.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    assert!(open.hub.remove_stale_locks(std::time::Duration::from_secs(60)).unwrap().is_empty());
    let removed = open.hub.remove_stale_locks(std::time::Duration::ZERO).unwrap();
    assert_eq!(removed, [lock]);
}

#[test]
fn a_ref_is_found_wherever_git_keeps_it_and_missing_otherwise() {
    let world = World::new();
    let open = world.open();
    let name = "refs/heads/autopilot/t1";
    assert_eq!(open.hub.resolve(name).unwrap(), None);
    crate::world::in_hub(&open.hub, &["update-ref", name, open.base().as_str()]);
    assert_eq!(open.hub.resolve(name).unwrap(), Some(open.base()));
    crate::world::in_hub(&open.hub, &["pack-refs", "--all"]);
    assert!(!open.hub.dir().join(name).exists(), "it is in packed-refs only");
    assert_eq!(open.hub.resolve(name).unwrap(), Some(open.base()));
    assert_eq!(open.hub.resolve("refs/heads/autopilot/t2").unwrap(), None);
}

#[test]
fn a_commit_that_no_ref_names_any_more_is_taken_from_the_slot() {
    let world = World::new();
    let open = world.open();
    let commit = open.commit("one", &open.tree_with(2, "one", "1\n")).commit;
    let slot = open.slot(1);
    open.fill(&slot, &commit);
    assert!(open.capture(&slot).agent_commits.is_empty(), "a ref of ours names it");
    open.hub.delete_ref("refs/heads/autopilot/one", &commit).unwrap();
    assert!(open.capture(&slot).agent_commits.contains(&commit));
    assert!(crate::world::in_hub(&open.hub, &["for-each-ref"]).contains(commit.as_str()));
}

#[test]
fn the_tree_of_a_commit_is_asked_for_once() {
    let world = World::new();
    let open = world.open();
    let tree = open.tree_with(1, "new", "content of the new file\n");
    let commit = open.commit("t1", &tree).commit;
    assert_eq!(open.hub.tree_of(&commit).unwrap(), tree);
    let (fan, rest) = commit.as_str().split_at(2);
    fs::remove_file(open.hub.dir().join("objects").join(fan).join(rest)).unwrap();
    assert_eq!(open.hub.clone().tree_of(&commit).unwrap(), tree, "known to every copy of the hub");
    assert!(open.hub.tree_of(&oid(&"1".repeat(40))).is_err());
}

#[test]
fn g22_a_missing_object_is_found_before_done() {
    let world = World::new();
    let open = world.open();
    let tree = open.tree_with(1, "new", "content of the new file\n");
    let commit = open.commit("t1", &tree).commit;
    let fill = |n: usize| {
        let attempt = AttemptName { task: "t1", id: "1" };
        let (base, keep, copy, now) = (&open.base(), KeepFiles::Nothing, &[], NOW);
        let branch = "autopilot/t1";
        let wanted = Prepare { commit: &commit, base, branch, attempt, keep, copy, now };
        open.slots.proof(n).prepare(&wanted)
    };
    fill(1).unwrap();
    let blob = crate::world::in_hub(&open.hub, &["rev-parse", &format!("{commit}:new")]);
    let (fan, rest) = blob.split_at(2);
    fs::remove_file(open.hub.dir().join("objects").join(fan).join(rest)).unwrap();
    fill(2).unwrap_err();
    let _ = oid(&blob);
}

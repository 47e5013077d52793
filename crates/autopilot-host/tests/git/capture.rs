//! The things an agent may do to its slot, and the contents of the hub afterwards.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use autopilot_host::git::salvage;
use autopilot_host::git::{AttemptName, Border, PublishOutcome, Violation};

use crate::world::{NOW, World, git, git_fed, in_hub, oid, put, raw_git};

#[test]
fn everything_git_does_not_ignore_is_taken_once() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    assert_eq!(open.capture(&slot).commit, None, "an untouched slot holds nothing new");
    put(slot.dir(), "new/file", "x\n");
    put(slot.dir(), "a.log", "ignored");
    fs::remove_file(slot.dir().join("README")).unwrap();
    fs::set_permissions(slot.dir().join("src/lib.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    let first = open.capture(&slot);
    let commit = first.commit.clone().unwrap();
    assert!(first.newly_saved && first.violations.is_empty(), "{first:?}");
    let listing =
        in_hub(&open.hub, &["ls-tree", "-r", "--format=%(objectmode) %(path)", commit.as_str()]);
    assert_eq!(listing, "100644 .gitignore\n100644 new/file\n100755 src/lib.rs");
    assert_eq!(in_hub(&open.hub, &["rev-parse", &first.salvage_ref]), commit.as_str());
    let again = open.capture(&slot);
    assert_eq!((again.commit, again.newly_saved), (Some(commit), false));
}

#[test]
fn a_change_of_the_same_size_in_the_same_second_is_seen_later() {
    let world = World::new();
    let open = world.open();
    let slots: Vec<_> = (0..3).map(|n| open.slot(n)).collect();
    for slot in &slots {
        open.fill(slot, &open.base());
        let file = slot.dir().join("src/lib.rs");
        let time = file.metadata().unwrap().modified().unwrap();
        fs::write(&file, "fn b() {}\n").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    }
    // Git compares whole seconds, so the danger is only there once the next one has begun.
    let second = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let then = second();
    while second() == then {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for (n, slot) in slots.iter().enumerate() {
        let tree = open.capture_as(slot, AttemptName { task: "t", id: &n.to_string() }).tree;
        let text = in_hub(&open.hub, &["show", &format!("{tree}:src/lib.rs")]);
        assert_eq!(text, "fn b() {}", "slot {n}");
    }
}

#[test]
fn later_work_of_an_attempt_does_not_replace_earlier_work() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "a", "1\n");
    let first = open.capture(&slot).commit.unwrap();
    put(slot.dir(), "a", "2\n");
    let second = open.capture(&slot).commit.unwrap();
    let parents = in_hub(&open.hub, &["log", "-1", "--format=%P", second.as_str()]);
    assert!(parents.contains(first.as_str()), "{parents}");
}

#[test]
fn g19_odd_names_are_bytes() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let names: [&[u8]; 8] = [
        b"new\nline",
        b"quo\"te",
        b"-rf",
        b"--upload-pack=x",
        b"not\xffutf8",
        b"sp ace\t",
        b":(exclude)x",
        b"back\\slash",
    ];
    for name in names {
        fs::write(slot.dir().join(OsStr::from_bytes(name)), "x\n").unwrap();
    }
    let capture = open.capture(&slot);
    let change = autopilot_host::git::GitChange::between(
        &open.hub,
        &open.base(),
        &capture.tree,
        &autopilot_host::git::ChangeLimits::default(),
    )
    .unwrap();
    let mut found: Vec<&[u8]> = change.paths.iter().map(|path| path.path.as_slice()).collect();
    found.sort_unstable();
    let mut wanted = names.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    let mut added: Vec<&[u8]> = change.added.iter().map(|line| line.path.as_slice()).collect();
    added.sort_unstable();
    assert_eq!(added, wanted);
}

#[test]
fn g20_a_nested_repository_is_reported_and_its_files_are_saved() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    for (name, commit) in [("with", true), ("without*", false)] {
        git(slot.dir(), &["init", "-q", name]);
        put(slot.dir(), &format!("{name}/f"), "inner\n");
        put(slot.dir(), &format!("{name}/x.log"), "ignored\n");
        if commit {
            let dir = slot.dir().join(name);
            git(&dir, &["add", "-A"]);
            git(&dir, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]);
        }
    }
    for _ in 0..2 {
        let capture = open.capture(&slot);
        assert_eq!(
            capture.violations,
            [
                Violation::NestedRepository { path: b"with".to_vec() },
                Violation::NestedRepository { path: b"without*".to_vec() }
            ]
        );
        let listing = in_hub(&open.hub, &["ls-tree", "-r", capture.tree.as_str()]);
        assert!(!listing.contains("160000"), "{listing}");
        assert!(listing.contains("with/f") && listing.contains("without*/f"), "{listing}");
        assert!(!listing.contains("x.log"), "{listing}");
    }
}

#[test]
fn g08_the_agents_own_commits_are_kept_whatever_it_does_to_them() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    let head = || oid(&git(dir, &["rev-parse", "HEAD"]));
    put(dir, "a", "1\n");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "one"]);
    let one = head();
    put(dir, "a", "2\n");
    git(dir, &["commit", "-q", "-a", "--amend", "-m", "amended"]);
    let amended = head();
    put(dir, "b", "reset away\n");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "reset away"]);
    let lost = head();
    git(dir, &["reset", "-q", "--hard", "HEAD~1"]);
    put(dir, "a", "stashed\n");
    git(dir, &["stash", "-q"]);
    let stash = oid(&git(dir, &["rev-parse", "refs/stash"]));
    git(dir, &["checkout", "-q", "--detach"]);
    put(dir, "c", "3\n");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "detached"]);
    let detached = head();
    let capture = open.capture(&slot);
    assert!(capture.violations.is_empty(), "{:?}", capture.violations);
    assert!(capture.agent_stashed);
    assert_eq!(
        (capture.agent_head.clone(), capture.agent_head_ref),
        (Some(detached.clone()), None)
    );
    let kept = in_hub(&open.hub, &["rev-list", "--all"]);
    for commit in [one, amended, lost, stash, detached] {
        assert!(capture.agent_commits.contains(&commit), "{commit} not listed");
        assert!(kept.contains(commit.as_str()), "{commit} not reachable");
    }
    in_hub(&open.hub, &["fsck", "--strict", "--no-dangling"]);
    let again = open.capture(&slot);
    assert!(!again.newly_saved);
    assert_eq!(again.agent_commits.len(), capture.agent_commits.len());
}

#[test]
fn g09_gc_and_prune_in_the_slot_cost_nothing_that_was_captured() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    put(dir, "a", "1\n");
    let before = open.capture(&slot).commit.unwrap();
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "mine"]);
    git(dir, &["pack-refs", "--all"]);
    git(dir, &["reset", "-q", "--hard", "main"]);
    git(dir, &["reflog", "expire", "--expire=now", "--all"]);
    git(dir, &["gc", "-q", "--prune=now"]);
    git(dir, &["clean", "-fdxq"]);
    let after = open.capture(&slot);
    assert_eq!(after.tree, open.hub.tree_of(&open.base()).unwrap());
    in_hub(&open.hub, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(in_hub(&open.hub, &["show", &format!("{before}:a")]), "1");
}

#[test]
fn g12_a_removed_or_replaced_git_directory_is_reported_and_the_files_are_taken() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "a", "1\n");
    fs::remove_dir_all(slot.dir().join(".git")).unwrap();
    let capture = open.capture(&slot);
    assert_eq!(capture.violations, [Violation::GitDirectoryGone]);
    assert_eq!(in_hub(&open.hub, &["show", &format!("{}:a", capture.tree)]), "1");
    let gitfile = format!("gitdir: {}\n", world.user.join(".git").display());
    fs::write(slot.dir().join(".git"), gitfile).unwrap();
    assert_eq!(open.capture(&slot).violations, [Violation::GitDirectoryGone]);
    assert_eq!(git(&world.user, &["status", "--porcelain"]), "");
}

#[test]
fn broken_objects_of_the_agent_cost_only_themselves() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    git(dir, &["checkout", "-q", "-b", "good"]);
    put(dir, "a", "good\n");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "good"]);
    let good = git(dir, &["rev-parse", "HEAD"]);
    git(dir, &["checkout", "-q", "-b", "bad"]);
    put(dir, "b", "soon missing\n");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "bad"]);
    let blob = git(dir, &["rev-parse", "HEAD:b"]);
    let (fan, rest) = blob.split_at(2);
    fs::remove_file(dir.join(".git/objects").join(fan).join(rest)).unwrap();
    // With the same bytes still in the slot, the capture itself would bring the object back.
    put(dir, "b", "in the slot\n");
    let capture = open.capture(&slot);
    assert!(
        matches!(capture.violations.as_slice(), [Violation::CommitsNotTaken { .. }]),
        "{:?}",
        capture.violations
    );
    assert!(in_hub(&open.hub, &["rev-list", "--all"]).contains(&good));
    assert_eq!(in_hub(&open.hub, &["show", &format!("{}:b", capture.tree)]), "in the slot");
}

#[test]
fn a_malformed_commit_of_the_agent_does_not_enter_the_hub() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    let blob = git(dir, &["hash-object", "-w", "README"]);
    let tree = git_fed(dir, &["mktree"], &format!("100644 blob {blob}\t.git\n"));
    let evil = git(dir, &["commit-tree", "-m", "x", &tree]);
    git(dir, &["update-ref", "refs/heads/evil", &evil]);
    let capture = open.capture(&slot);
    assert!(
        matches!(capture.violations.as_slice(), [Violation::CommitsNotTaken { .. }]),
        "{:?}",
        capture.violations
    );
    assert!(!in_hub(&open.hub, &["rev-list", "--all"]).contains(&evil));
}

#[test]
fn g13_settings_of_the_agents_repository_do_not_reach_the_controller() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    assert!(!open.capture(&slot).git_settings_changed);
    put(slot.dir(), "a", "1\n");
    for (key, value) in
        [("core.bare", "true"), ("core.worktree", "/tmp"), ("core.excludesFile", "/x")]
    {
        raw_git(slot.dir(), &["config", "--file", ".git/config", key, value]);
    }
    put(slot.dir(), ".git/info/exclude", "*\n");
    let capture = open.capture(&slot);
    assert!(capture.git_settings_changed);
    assert_eq!(in_hub(&open.hub, &["show", &format!("{}:a", capture.tree)]), "1");
}

#[test]
fn line_ends_are_normalised_as_the_attributes_ask() {
    let world = World::new();
    world.write(".gitattributes", "*.txt text eol=lf\n*.bat text eol=crlf\n");
    world.write("a.bat", "one\r\n");
    world.commit("attributes");
    let open = world.open();
    let slot = open.slot(1);
    assert_eq!(fs::read(slot.dir().join("a.bat")).unwrap(), b"one\r\n");
    assert_eq!(open.capture(&slot).commit, None);
    put(slot.dir(), "b.txt", "x\r\ny\r\n");
    let tree = open.capture(&slot).tree;
    assert_eq!(in_hub(&open.hub, &["cat-file", "-s", &format!("{tree}:b.txt")]), "4");
}

/// More than what is kept in memory of what git prints.
#[test]
fn a_change_to_a_very_large_file_is_captured() {
    let world = World::new();
    let size = 257 << 20;
    let file = fs::File::create(world.user.join("large")).unwrap();
    file.set_len(size).unwrap();
    world.commit("a large file");
    let open = world.open();
    let slot = open.slot(1);
    fs::OpenOptions::new()
        .append(true)
        .open(slot.dir().join("large"))
        .unwrap()
        .write_all(b"x")
        .unwrap();
    let tree = open.capture(&slot).tree;
    let found = in_hub(&open.hub, &["cat-file", "-s", &format!("{tree}:large")]);
    assert_eq!(found, (size + 1).to_string());
}

#[test]
fn unreadable_files_and_links_out_of_the_slot_are_taken_as_they_are() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "secret/file", "x\n");
    fs::set_permissions(slot.dir().join("secret/file"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(slot.dir().join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    symlink("/etc", slot.dir().join("etc")).unwrap();
    fs::remove_file(slot.dir().join("README")).unwrap();
    nix::unistd::mkfifo(&slot.dir().join("README"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let capture = open.capture(&slot);
    let listing = in_hub(&open.hub, &["ls-tree", "-r", capture.tree.as_str()]);
    assert!(listing.contains("120000") && listing.contains("secret/file"), "{listing}");
    assert!(!listing.contains("etc/passwd"), "{listing}");
}

#[test]
fn salvaged_work_is_listed_restored_and_dropped_only_on_request() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "a", "12345");
    let commit = open.capture(&slot).commit.unwrap();
    let listed = salvage::list(&open.hub).unwrap();
    assert_eq!(listed.len(), 1);
    let item = &listed[0];
    assert_eq!((item.task.as_str(), item.attempt.as_str()), ("t1", "1"));
    assert_eq!((item.at, item.bytes), (NOW, 5));
    let (branch, outcome) = salvage::restore(&open.hub, &open.repo, item, &Border::open()).unwrap();
    assert_eq!(branch, "autopilot/salvage/t1-1");
    assert_eq!(outcome, PublishOutcome::Published { commit: commit.clone() });
    assert_eq!(git(&world.user, &["show", "autopilot/salvage/t1-1:a"]), "12345");
    assert!(salvage::drop_salvaged(&open.hub, salvage::DropRule::Contained).unwrap().is_empty());
    assert!(
        salvage::drop_salvaged(&open.hub, salvage::DropRule::OlderThan(NOW)).unwrap().is_empty()
    );
    let gone = salvage::drop_salvaged(&open.hub, salvage::DropRule::OlderThan(NOW + 1)).unwrap();
    assert_eq!(gone.len(), 1);
    assert!(salvage::list(&open.hub).unwrap().is_empty());
}

#[test]
fn a_file_that_the_hub_has_lost_is_read_again() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "new", "new\n");
    let first = open.capture(&slot).tree;
    let lose = |spec: &str| {
        let blob = in_hub(&open.hub, &["rev-parse", spec]);
        let (fan, rest) = blob.split_at(2);
        fs::remove_file(open.hub.dir().join("objects").join(fan).join(rest)).unwrap();
    };
    lose(&format!("{first}:new"));
    assert_eq!(open.capture(&slot).tree, first, "nobody has touched the slot");
    assert_eq!(in_hub(&open.hub, &["show", &format!("{first}:new")]), "new");
    // The index of another slot knows the file, and something else has changed.
    let task = open.commit("t1", &first).commit;
    let other = open.slots.agent(2);
    open.fill(&other, &task);
    lose(&format!("{first}:new"));
    put(other.dir(), "newer", "newer\n");
    let tree = open.capture_as(&other, AttemptName { task: "t2", id: "1" }).tree;
    assert_eq!(in_hub(&open.hub, &["show", &format!("{tree}:new")]), "new");
    assert_eq!(in_hub(&open.hub, &["show", &format!("{tree}:newer")]), "newer");
}

#[test]
fn what_git_can_not_look_into_is_never_lost_in_silence() {
    let world = World::new();
    let open = world.open();
    let closed = open.slot(1);
    put(closed.dir(), "secret/file", "x\n");
    let mode = fs::Permissions::from_mode(0o000);
    fs::set_permissions(closed.dir().join("secret"), mode).unwrap();
    let tree = open.capture(&closed).tree;
    assert_eq!(in_hub(&open.hub, &["show", &format!("{tree}:secret/file")]), "x");
    // Two halves of a path that is too long as a whole.
    let deep = open.slot(2);
    let half = vec!["d".repeat(200); 12].join("/");
    let (upper, lower) = (deep.dir().join("upper"), deep.dir().join("lower"));
    fs::create_dir_all(upper.join(&half)).unwrap();
    fs::create_dir_all(lower.join(&half)).unwrap();
    fs::write(lower.join(&half).join("file"), "x\n").unwrap();
    fs::rename(lower, upper.join(&half).join("lower")).unwrap();
    let found = open.capture_as(&deep, AttemptName { task: "t2", id: "1" }).violations;
    assert!(matches!(&*found, [Violation::Unreadable { .. }]), "{found:?}");
}

#[test]
fn unchanged_files_in_the_form_of_old_tools_are_no_work() {
    let world = World::new();
    world.write("old/file", "x\n");
    world.commit("third");
    // A tree whose file is writable by the group, as git once wrote it.
    let entry = git(&world.user, &["cat-file", "-p", "HEAD:old"]);
    let blob = entry.split_whitespace().nth(2).unwrap();
    let bytes = (0..20).map(|n| u8::from_str_radix(&blob[2 * n..2 * n + 2], 16).unwrap());
    let tree: Vec<u8> = b"100664 file\0".iter().copied().chain(bytes).collect();
    fs::write(world.temp.path().join("tree"), tree).unwrap();
    let file = world.temp.path().join("tree");
    let literal = ["hash-object", "-t", "tree", "-w", "--literally", file.to_str().unwrap()];
    let old = git(&world.user, &literal);
    let listing = git(&world.user, &["ls-tree", "HEAD"]);
    let now = git(&world.user, &["rev-parse", "HEAD:old"]);
    let root = git_fed(&world.user, &["mktree"], &format!("{}\n", listing.replace(&now, &old)));
    let commit = git(&world.user, &["commit-tree", &root, "-p", "HEAD", "-m", "old"]);
    git(&world.user, &["reset", "-q", "--hard", &commit]);
    let open = world.open();
    let slot = open.slot(1);
    // Written again with the same content, so that git has to look.
    fs::remove_file(slot.dir().join("README")).unwrap();
    put(slot.dir(), "README", "one\ntwo\n");
    let capture = open.capture(&slot);
    assert_eq!(capture.tree.as_str(), root);
    assert_eq!(capture.commit, None, "nothing has changed");
}

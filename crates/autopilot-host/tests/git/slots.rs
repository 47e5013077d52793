//! Slots: filled, kept, cleaned, many at once, and proof slots that hold exactly a commit.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use autopilot_host::git::{AttemptName, GitError, KeepFiles, Prepare};

use crate::world::{NOW, World, git, prepare, put, raw_git};

#[test]
fn an_agent_finds_a_working_repository() {
    let world = World::new();
    git(&world.user, &["remote", "add", "origin", "git@github.com:o/r.git"]);
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "one\ntwo\n");
    assert_eq!(git(dir, &["status", "--porcelain"]), "");
    assert_eq!(git(dir, &["rev-parse", "--abbrev-ref", "HEAD"]), "autopilot/t1");
    assert_eq!(git(dir, &["remote", "get-url", "origin"]), "git@github.com:o/r.git");
    assert_eq!(git(dir, &["rev-list", "--count", "main"]), "2");
    put(dir, "new", "x");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "mine"]);
    assert_eq!(git(dir, &["log", "-1", "--format=%an <%ae>"]), "Ada <ada@example.org>");
}

#[test]
fn g02_forty_slots_are_filled_at_once() {
    let world = World::new();
    for n in 0..30 {
        world.write(&format!("dir{n}/file"), &format!("{n}\n"));
    }
    world.commit("more files");
    let open = world.open();
    let base = open.base();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..40)
            .map(|n| {
                let slot = open.slots.agent(n);
                let base = &base;
                scope.spawn(move || {
                    slot.prepare(&prepare(base)).map(|_| slot.dir().join("dir29/file").exists())
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .filter(|result| !matches!(result, Ok(true)))
            .map(|result| format!("{result:?}"))
            .collect()
    });
    assert_eq!(failures, Vec::<String>::new());
    assert_eq!(open.slots.existing().unwrap().len(), 40);
}

#[test]
fn a20_a_reused_slot_holds_nothing_of_the_last_task() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    put(dir, "stale.log", "ignored");
    put(dir, "untracked", "x");
    put(dir, "node_modules/x/index.js", "no lock file, so not kept");
    fs::remove_file(dir.join("README")).unwrap();
    put(dir, "src/lib.rs", "changed");
    open.fill(&slot, &open.base());
    assert!(!dir.join("stale.log").exists() && !dir.join("untracked").exists());
    assert!(!dir.join("node_modules").exists());
    assert_eq!(fs::read_to_string(dir.join("src/lib.rs")).unwrap(), "fn a() {}\n");
    assert_eq!(git(dir, &["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn a11_hostile_leftovers_are_removed_and_links_are_not_followed() {
    let world = World::new();
    let outside = world.temp.path().join("outside");
    put(&outside, "precious", "keep me");
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir().to_owned();
    fs::remove_dir_all(dir.join("src")).unwrap();
    symlink(&outside, dir.join("src")).unwrap();
    symlink("/", dir.join("root")).unwrap();
    fs::remove_file(dir.join("README")).unwrap();
    symlink(outside.join("precious"), dir.join("README")).unwrap();
    put(&dir, "locked/deep/file", "x");
    for path in ["locked/deep", "locked"] {
        fs::set_permissions(dir.join(path), fs::Permissions::from_mode(0o000)).unwrap();
    }
    git(&dir, &["init", "-q", "nested"]);
    nix::unistd::mkfifo(&dir.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::remove_dir_all(dir.join(".git")).unwrap();
    symlink(&outside, dir.join(".git")).unwrap();
    open.fill(&slot, &open.base());
    assert_eq!(git(&dir, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "keep me");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn build_output_stays_only_while_its_lock_file_is_the_same() {
    let world = World::new();
    world.write("Cargo.lock", "v1\n");
    world.write("web/package-lock.json", "{}\n");
    world.commit("locks");
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "target/debug/x", "built");
    put(slot.dir(), "web/node_modules/m", "built");
    put(slot.dir(), ".venv/bin/x", "no lock");
    let prepared = open.fill(&slot, &open.base());
    assert_eq!(prepared.kept, [PathBuf::from("target"), PathBuf::from("web/node_modules")]);
    assert!(slot.dir().join("target/debug/x").exists());
    assert!(!slot.dir().join(".venv").exists());

    put(slot.dir(), "Cargo.lock", "v2\n");
    let prepared = open.fill(&slot, &open.base());
    assert_eq!(prepared.kept, [PathBuf::from("web/node_modules")]);
    assert!(!slot.dir().join("target").exists());

    fs::create_dir_all(world.temp.path().join("elsewhere")).unwrap();
    symlink(world.temp.path().join("elsewhere"), slot.dir().join("target")).unwrap();
    let nothing = Prepare { keep: KeepFiles::Nothing, ..prepare(&open.repo.base_tip) };
    assert!(slot.prepare(&nothing).unwrap().kept.is_empty());
    assert!(slot.dir().join("target").symlink_metadata().is_err());
    assert!(world.temp.path().join("elsewhere").exists());
}

#[test]
fn what_was_written_over_wanted_files_is_put_back() {
    let world = World::new();
    world.write("RULES", "fair\n");
    world.write("rules/a", "fair\n");
    world.write("docs/a", "fair\n");
    world.commit("rules");
    world.write(".env", "SECRET=1\n");
    let open = world.open();
    let slot = open.slots.judge(1);
    let copy = [PathBuf::from(".env")];
    slot.prepare(&Prepare { copy: &copy, ..prepare(&open.repo.base_tip) }).unwrap();
    let (dir, outside) = (slot.dir(), world.temp.path().join("outside"));
    put(&outside, "a", "planted\n");
    for path in ["RULES", "rules/a", "rules/new", "deep/er/RULES", "target/x", ".env"] {
        put(dir, path, "planted\n");
    }
    fs::remove_dir_all(dir.join("docs")).unwrap();
    symlink(&outside, dir.join("docs")).unwrap();
    symlink(&outside, dir.join("deep/rules")).unwrap();
    let is_wanted = |path: &str| {
        path == ".env" || path.split('/').any(|part| part == "RULES" || part == "rules")
    };
    slot.put_back(&open.repo.base_tip, &is_wanted, &copy).unwrap();
    let read = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
    for path in ["RULES", "rules/a", "docs/a"] {
        assert_eq!(read(path), "fair\n", "{path}");
    }
    assert_eq!(read(".env"), "SECRET=1\n");
    for path in ["rules/new", "deep/er/RULES", "deep/rules"] {
        assert!(dir.join(path).symlink_metadata().is_err(), "{path}");
    }
    assert_eq!(read("target/x"), "planted\n", "what nobody asked for stays");
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "planted\n");
    let names: Vec<_> = open.slots.existing().unwrap();
    assert!(names.iter().any(|found| found.dir() == dir), "its work would be rescued");
}

#[test]
fn only_ignored_files_of_the_checkout_are_copied() {
    let world = World::new();
    world.write(".env", "SECRET=1\n");
    world.write("notes", "not ignored\n");
    symlink("/etc/passwd", world.user.join("x.log")).unwrap();
    let open = world.open();
    let slot = open.slots.agent(1);
    let copy: Vec<PathBuf> = [".env", "notes", "x.log", "../user/.env", "/etc/passwd", "gone"]
        .iter()
        .map(PathBuf::from)
        .collect();
    let prepared = slot.prepare(&Prepare { copy: &copy, ..prepare(&open.repo.base_tip) }).unwrap();
    assert_eq!(prepared.copied, [PathBuf::from(".env")]);
    assert_eq!(prepared.not_copied.len(), 5, "{:?}", prepared.not_copied);
    assert_eq!(open.capture(&slot).commit, None, "the copy is not part of the change");
}

#[test]
fn personal_ignore_rules_hold_in_slots() {
    let world = World::new();
    fs::create_dir_all(world.user.join(".git/info")).unwrap();
    fs::write(world.user.join(".git/info/exclude"), "scratch\n").unwrap();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "scratch", "x");
    assert_eq!(open.capture(&slot).commit, None);
    assert_eq!(git(slot.dir(), &["status", "--porcelain"]), "");
}

/// A repository with a file in a form that its attributes, added later, would not commit.
fn unnormalised() -> World {
    let world = World::new();
    world.write("run.bat", "echo a\r\necho b\r\n");
    world.commit("a script for another system");
    world.write(".gitattributes", "*.bat text eol=crlf\n");
    git(&world.user, &["add", ".gitattributes"]);
    git(&world.user, &["commit", "-q", "-m", "attributes"]);
    assert!(git(&world.user, &["ls-files", "--eol", "run.bat"]).starts_with("i/crlf"));
    world
}

#[test]
fn a_proof_slot_can_hold_files_that_were_committed_without_their_attributes() {
    let world = unnormalised();
    let open = world.open();
    let proof = open.slots.proof(1);
    open.fill(&proof, &open.base());
    proof.verify_clean(&open.base()).unwrap();
    assert_eq!(fs::read(proof.dir().join("run.bat")).unwrap(), b"echo a\r\necho b\r\n");
    for (file, text) in [("run.bat", "echo c\r\necho b\r\n"), ("src/lib.rs", "x"), ("extra", "x")] {
        put(proof.dir(), file, text);
        let found = proof.verify_clean(&open.base());
        assert!(matches!(found, Err(GitError::ProofDiffers { .. })), "{file}: {found:?}");
        open.fill(&proof, &open.base());
        proof.verify_clean(&open.base()).unwrap();
    }
}

#[test]
fn a19_a_proof_slot_is_exactly_the_commit() {
    let world = World::new();
    let open = world.open();
    let proof = open.slots.proof(1);
    open.fill(&proof, &open.base());
    assert!(!proof.dir().join(".git").exists());
    proof.verify_clean(&open.base()).unwrap();
    // Length and times are the same: only reading the bytes can tell.
    let file = proof.dir().join("src/lib.rs");
    let time = file.metadata().unwrap().modified().unwrap();
    fs::write(&file, "fn b() {}\n").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    assert!(matches!(proof.verify_clean(&open.base()), Err(GitError::ProofDiffers { .. })));
    open.fill(&proof, &open.base());
    put(proof.dir(), "extra", "x");
    assert!(matches!(proof.verify_clean(&open.base()), Err(GitError::ProofDiffers { .. })));
}

#[test]
fn c11_what_an_interrupted_attempt_left_is_rescued_before_the_slot_is_filled_again() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "half", "done\n");
    let next =
        Prepare { attempt: AttemptName { task: "t2", id: "9" }, ..prepare(&open.repo.base_tip) };
    let rescued = slot.prepare(&next).unwrap().rescued.unwrap();
    assert_eq!(rescued, "refs/autopilot/salvage/t1/1");
    let kept = crate::world::in_hub(&open.hub, &["show", &format!("{rescued}:half")]);
    assert_eq!(kept, "done");
    assert_eq!(slot.prepare(&next).unwrap().rescued, None);
    // A slot that was captured has nothing left to rescue.
    put(slot.dir(), "more", "x");
    open.capture_as(&slot, AttemptName { task: "t2", id: "9" });
    assert_eq!(slot.prepare(&next).unwrap().rescued, None);
}

#[test]
fn g14_a_slot_removed_by_hand_is_made_again() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    fs::remove_dir_all(slot.dir()).unwrap();
    let request = autopilot_host::git::CaptureRequest {
        attempt: AttemptName { task: "t1", id: "1" },
        base: &open.base(),
        now: NOW,
    };
    assert!(matches!(slot.capture(&request), Err(GitError::SlotMissing { .. })));
    open.fill(&slot, &open.base());
    assert!(slot.dir().join("README").exists());
}

#[test]
fn a_broken_index_or_a_stale_lock_of_ours_does_not_stop_a_slot() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    let own = world.state.join("own/s1");
    fs::write(own.join("index"), "garbage").unwrap();
    fs::write(own.join("index.lock"), "").unwrap();
    open.hub.verify().unwrap();
    put(slot.dir(), "work", "x");
    let prepared = open.fill(&slot, &open.base());
    assert!(prepared.rescued.is_some());
    assert!(raw_git(slot.dir(), &["status", "--porcelain"]).stdout.is_empty());
}

#[test]
fn a_stale_lock_of_ours_does_not_stop_a_proof_slot() {
    let world = World::new();
    let open = world.open();
    let proof = open.slots.proof(1);
    let own = world.state.join("own/p1");
    for name in ["index.lock", "verify.index.lock"] {
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join(name), "").unwrap();
        open.fill(&proof, &open.base());
        proof.verify_clean(&open.base()).unwrap();
    }
}

#[test]
fn a_slot_is_removed_only_after_a_rescue() {
    let world = World::new();
    let open = world.open();
    let (one, two) = (open.slot(1), open.slot(2));
    put(one.dir(), "work", "x\n");
    let kept = one.remove(NOW).unwrap().unwrap();
    assert!(!one.dir().exists() && two.dir().exists());
    assert_eq!(crate::world::in_hub(&open.hub, &["show", &format!("{kept}:work")]), "x");
}

//! The facts of a change on which guards decide.

use std::fs;
use std::os::unix::fs::symlink;

use autopilot_host::git::{ChangeLimits, GitChange, PathStatus, links_of};

use crate::world::{Open, World, put};

fn change(open: &Open, slot: &autopilot_host::git::Slot, limits: &ChangeLimits) -> GitChange {
    let tree = open.capture(slot).tree;
    GitChange::between(&open.hub, &open.base(), &tree, limits).unwrap()
}

#[test]
fn a8_untracked_renamed_deleted_and_binary_files_are_counted() {
    let world = World::new();
    world.write("old/name.rs", "1\n2\n3\n4\n5\n6\n7\n8\n");
    world.write("gone.rs", "#[test]\nfn checks() {}\n");
    world.commit("files");
    let open = world.open();
    let slot = open.slot(1);
    let dir = slot.dir();
    fs::create_dir(dir.join("new")).unwrap();
    fs::rename(dir.join("old/name.rs"), dir.join("new/name.rs")).unwrap();
    put(dir, "new/name.rs", "1\n2\n3\n4\n5\n6\n7\nTODO eight\n");
    fs::remove_file(dir.join("gone.rs")).unwrap();
    put(dir, "untracked", "a\nb\n");
    fs::write(dir.join("bin"), [0, 1, 2]).unwrap();
    symlink("/etc/passwd", dir.join("link")).unwrap();
    let change = change(&open, &slot, &ChangeLimits::default());
    let find = |name: &str| change.paths.iter().find(|p| p.display() == name).unwrap();
    let renamed = find("new/name.rs");
    assert_eq!(
        (renamed.status, renamed.old_path.as_deref()),
        (PathStatus::Renamed, Some(b"old/name.rs".as_slice()))
    );
    assert_eq!((renamed.insertions, renamed.deletions), (1, 1));
    assert_eq!((find("gone.rs").status, find("gone.rs").deletions), (PathStatus::Deleted, 2));
    assert_eq!((find("untracked").status, find("untracked").insertions), (PathStatus::Added, 2));
    assert!(find("bin").binary);
    let link = find("link");
    assert!(link.is_link());
    assert_eq!(link.link_target.as_deref(), Some(b"/etc/passwd".as_slice()));
    assert_eq!(change.paths.len(), 5);
    assert_eq!((change.insertions, change.deletions, change.lines()), (4, 3, 7));
    let todo = change.added.iter().find(|line| line.text.contains("TODO")).unwrap();
    assert_eq!((todo.path.as_slice(), todo.number), (b"new/name.rs".as_slice(), 8));
    assert!(change.removed.iter().any(|l| l.path == b"gone.rs" && l.text == "fn checks() {}"));
    assert!(change.diff.contains("rename from old/name.rs"), "{}", change.diff);
    assert!(!change.diff_cut && !change.lines_cut);
}

#[test]
fn the_links_of_a_tree_are_listed_with_their_targets_up_to_a_limit() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    fs::create_dir(slot.dir().join("d")).unwrap();
    symlink("../x", slot.dir().join("d/one")).unwrap();
    symlink("d/one", slot.dir().join("two")).unwrap();
    let change = change(&open, &slot, &ChangeLimits::default());
    let listed = |links_max| links_of(&open.hub, &change.tree, links_max).unwrap();
    let link = |path: &str, target: &str| (path.as_bytes().to_vec(), target.as_bytes().to_vec());
    assert_eq!(listed(2).links, [link("d/one", "../x"), link("two", "d/one")]);
    assert!(!listed(2).is_cut && listed(1).is_cut);
    assert!(change.paths.iter().all(|path| path.touches_link()));
    assert_eq!(links_of(&open.hub, &change.base_tree, 2).unwrap().links, []);
}

#[test]
fn g18_a_huge_diff_is_counted_but_not_read() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "huge", &"line\n".repeat(1_000_000));
    let limits = ChangeLimits { diff_bytes_max: 1000, lines_max: 10, ..ChangeLimits::default() };
    let started = std::time::Instant::now();
    let change = change(&open, &slot, &limits);
    assert_eq!(change.insertions, 1_000_000);
    assert!(change.diff_cut && change.diff.len() < 1200);
    assert!(change.lines_cut && change.added.len() == 10);
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn the_number_of_paths_is_bounded_but_all_are_counted() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    for n in 0..20 {
        put(slot.dir(), &format!("f{n}"), &format!("{n}\n"));
    }
    let limits = ChangeLimits { paths_max: 5, ..ChangeLimits::default() };
    let change = change(&open, &slot, &limits);
    assert_eq!((change.paths.len(), change.paths_left_out, change.insertions), (5, 15, 20));
}

#[test]
fn attributes_of_the_agent_do_not_hide_a_diff() {
    let world = World::new();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), ".gitattributes", "* -diff binary\n");
    put(slot.dir(), "evil.rs", "fn evil() {}\n");
    let change = change(&open, &slot, &ChangeLimits::default());
    assert!(change.diff.contains("+fn evil() {}"), "{}", change.diff);
    assert_eq!(change.insertions, 2);
}

#[test]
fn the_digest_is_of_the_content_alone() {
    let world = World::new();
    let open = world.open();
    let one = open.tree_with(1, "a", "x\n");
    let same = open.tree_with(2, "a", "x\n");
    let other = open.tree_with(3, "a", "y\n");
    let digest = |tree| {
        GitChange::between(&open.hub, &open.base(), tree, &ChangeLimits::default()).unwrap().digest
    };
    assert_eq!(digest(&one), digest(&same));
    assert_ne!(digest(&one), digest(&other));
    let none = GitChange::between(&open.hub, &open.base(), &open.base(), &ChangeLimits::default());
    assert!(none.unwrap().paths.is_empty());
}

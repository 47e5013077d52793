//! Notes beside those of others: none is lost, whoever writes at the same time and in whichever
//! directories git has put them.

use std::cell::Cell;

use autopilot_host::git::{
    Border, GitError, NOTES_REF, NotesRequest, Oid, publish_notes, read_note,
};

use crate::world::{Open, World, git, in_hub, oid, user_digest};

fn notes(open: &Open, commit: &Oid, text: &dyn Fn(Option<&str>) -> String) -> Result<(), GitError> {
    let text = |_: &Oid, before: Option<&str>| Some(text(before));
    let commits = std::slice::from_ref(commit);
    let request = NotesRequest { commits, text: &text, now: 1_700_000_000 };
    publish_notes(&open.hub, &open.repo, &request, &Border::open())
}

fn note(world: &World, commit: &Oid) -> String {
    git(&world.user, &["notes", "--ref", NOTES_REF, "show", commit.as_str()])
}

fn add(world: &World, commit: &Oid, text: &str) {
    git(&world.user, &["notes", "--ref", NOTES_REF, "add", "-f", "-m", text, commit.as_str()]);
}

#[test]
fn a_note_is_written_once_and_in_both_repositories() {
    let world = World::new();
    let open = world.open();
    let before = user_digest(&open.repo, &|name| name == NOTES_REF);
    notes(&open, &open.base(), &|_| "ours\n".to_owned()).unwrap();
    let tip = git(&world.user, &["rev-parse", NOTES_REF]);
    notes(&open, &open.base(), &|_| "ours\n".to_owned()).unwrap();
    assert_eq!(git(&world.user, &["rev-parse", NOTES_REF]), tip, "nothing is done again");
    assert_eq!(in_hub(&open.hub, &["rev-parse", NOTES_REF]), tip);
    assert_eq!(note(&world, &open.base()), "ours");
    let read = read_note(open.hub.dir(), &oid(&tip), &open.base()).unwrap();
    assert_eq!(read.as_deref(), Some("ours\n"));
    assert_eq!(user_digest(&open.repo, &|name| name == NOTES_REF), before);
    git(&world.user, &["fsck", "--strict"]);
}

#[test]
fn a_note_that_somebody_writes_at_the_same_time_is_kept() {
    let world = World::new();
    let (first, open) = (world.open().base(), world.open());
    world.write("another", "x");
    let second = world.commit("another");
    let calls = Cell::new(0);
    notes(&open, &first, &|_| {
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            add(&world, &second, "theirs");
        }
        "ours\n".to_owned()
    })
    .unwrap();
    assert_eq!(calls.get(), 2, "the ref had moved, so it was begun again");
    assert_eq!((note(&world, &first), note(&world, &second)), ("ours".into(), "theirs".into()));
}

#[test]
fn a_ref_that_was_replaced_or_removed_gets_the_earlier_notes_again() {
    let world = World::new();
    let (first, open) = (world.open().base(), world.open());
    notes(&open, &first, &|_| "ours\n".to_owned()).unwrap();
    world.write("another", "x");
    let second = world.commit("another");
    git(&world.user, &["update-ref", "-d", NOTES_REF]);
    add(&world, &second, "theirs");
    notes(&open, &second, &|before| format!("{}and ours\n", before.unwrap_or_default())).unwrap();
    assert_eq!(note(&world, &first), "ours");
    assert_eq!(note(&world, &second), "theirs\nand ours");
    git(&world.user, &["update-ref", "-d", NOTES_REF]);
    notes(&open, &first, &|_| "ours\n".to_owned()).unwrap();
    assert_eq!(
        (note(&world, &first), note(&world, &second)),
        ("ours".into(), "theirs\nand ours".into())
    );
}

#[test]
fn a_note_in_directories_of_git_is_replaced_where_it_is() {
    let world = World::new();
    let open = world.open();
    let base = open.base();
    let (one, rest) = base.as_str().split_at(2);
    let (two, rest) = rest.split_at(2);
    world.write("note", "theirs\n");
    let blob = git(&world.user, &["hash-object", "-w", "note"]);
    let tree = |entry: String| {
        crate::world::git_fed(&world.user, &["mktree"], &format!("{entry}\n")).trim().to_owned()
    };
    let inner = tree(format!("100644 blob {blob}\t{rest}"));
    let outer = tree(format!("040000 tree {inner}\t{two}"));
    let root = tree(format!("040000 tree {outer}\t{one}"));
    let tip = git(&world.user, &["commit-tree", "-m", "notes", &root]);
    git(&world.user, &["update-ref", NOTES_REF, &tip]);
    notes(&open, &base, &|before| format!("ours, then {}", before.unwrap_or("nothing"))).unwrap();
    assert_eq!(note(&world, &base), "ours, then theirs");
    let files = git(&world.user, &["ls-tree", "-r", "--name-only", NOTES_REF]);
    assert_eq!(files, format!("{one}/{two}/{rest}"));
}

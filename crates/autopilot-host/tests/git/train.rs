//! The merge train with real git: stacks, conflicts, lost races, traces, work carried over.

use autopilot_host::git::rebase::carry;
use autopilot_host::git::{
    Advanced, AttemptName, Candidate, CaptureRequest, Conflicts, Coupled, Oid, Sought, Wagon,
};

use crate::world::{NOW, Open, World, in_hub, oid};

const RUN: &str = "refs/heads/autopilot/run-r1";

fn couple(open: &Open, onto: &Oid, task: &str, commit: &Oid) -> Result<Candidate, Box<Conflicts>> {
    let id = format!("{task}.merge");
    let attempt = AttemptName { task, id: &id };
    let wagon = Wagon { attempt, commit, message: &format!("Merge task {task}") };
    match open.track().couple(&open.hub, onto, &wagon).unwrap() {
        Coupled::On(candidate) => Ok(candidate),
        Coupled::Conflict(conflicts) => Err(conflicts),
    }
}

/// A task's commit that writes one file.
fn work(open: &Open, n: usize, path: &str, text: &str) -> Oid {
    open.commit(&format!("t{n}"), &open.tree_with(n, path, text)).commit
}

fn find(open: &Open, attempt: AttemptName<'_>, commit: &Oid) -> Option<Oid> {
    let tree = open.hub.tree_of(commit).unwrap();
    let sought = Sought { attempt, base: &open.base(), tree: &tree };
    open.track().find(&open.hub, &sought).unwrap()
}

fn log(open: &Open, format: &str) -> Vec<String> {
    let format = format!("--format={format}");
    let range = format!("{}..{RUN}", open.base());
    let out = in_hub(&open.hub, &["log", "--first-parent", "--reverse", &format, &range]);
    out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_stack_is_one_merge_per_task_and_one_move_of_the_branch() {
    let world = World::new();
    let open = world.open();
    let commits: Vec<Oid> = (0..3).map(|n| work(&open, n, &format!("f{n}"), "x\n")).collect();
    let from = open.track().tip(&open.hub).unwrap();
    assert_eq!(from.commit, open.base());
    let mut top = from.commit.clone();
    for (n, commit) in commits.iter().enumerate() {
        top = couple(&open, &top, &format!("t{n}"), commit).unwrap().commit;
        assert_eq!(open.hub.resolve(RUN).unwrap(), None, "nothing moves before the whole is known");
    }
    let Advanced::Moved(tip) = open.track().advance(&open.hub, &from, &top).unwrap() else {
        panic!("nobody else moves it");
    };
    assert_eq!(open.track().tip(&open.hub).unwrap(), tip);
    let attempts = log(&open, "%(trailers:key=Autopilot-Attempt,valueonly)");
    assert_eq!(attempts, ["t0.merge", "t1.merge", "t2.merge"]);
    let parents: Vec<String> = commits.iter().map(Oid::to_string).collect();
    let second: Vec<String> =
        log(&open, "%P").iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(second, parents, "each merge has its own task's commit");
    let names = open.track().merged_between(&open.hub, &open.base(), &top).unwrap();
    assert_eq!(names, ["t0", "t1", "t2"]);
}

#[test]
fn a_candidate_onto_the_base_has_the_very_tree_that_was_proven() {
    let world = World::new();
    let open = world.open();
    let commit = work(&open, 1, "f", "x\n");
    let candidate = couple(&open, &open.base(), "t1", &commit).unwrap();
    assert_eq!(candidate.tree, open.hub.tree_of(&commit).unwrap());
    assert_eq!(candidate.tree, open.hub.tree_of(&candidate.commit).unwrap());
}

#[test]
fn g06_a_branch_that_moved_meanwhile_is_not_touched() {
    let world = World::new();
    let open = world.open();
    let (one, two) = (work(&open, 1, "f", "x\n"), work(&open, 2, "g", "x\n"));
    for already_there in [false, true] {
        if already_there {
            open.merge("t0", &work(&open, 3, "h", "x\n")).unwrap();
        }
        let from = open.track().tip(&open.hub).unwrap();
        let mine = couple(&open, &from.commit, "t1", &one).unwrap().commit;
        let other = couple(&open, &from.commit, "t2", &two).unwrap().commit;
        assert!(matches!(
            open.track().advance(&open.hub, &from, &other).unwrap(),
            Advanced::Moved(_)
        ));
        assert_eq!(open.track().advance(&open.hub, &from, &mine).unwrap(), Advanced::Lost);
        assert_eq!(open.hub.resolve(RUN).unwrap(), Some(other));
        in_hub(&open.hub, &["update-ref", "-d", RUN]);
    }
}

#[test]
fn a_conflict_in_the_middle_leaves_the_others_coupled() {
    let world = World::new();
    let open = world.open();
    let first = work(&open, 1, "README", "one\nmine\n");
    let clash = work(&open, 2, "README", "one\nyours\n");
    let last = work(&open, 3, "g", "x\n");
    let top = couple(&open, &open.base(), "t1", &first).unwrap().commit;
    let conflicts = couple(&open, &top, "t2", &clash).unwrap_err();
    assert_eq!(conflicts.paths[0].path, b"README");
    let top = couple(&open, &top, "t3", &last).unwrap();
    assert_eq!(in_hub(&open.hub, &["show", &format!("{}:README", top.commit)]), "one\nmine");
    assert_eq!(in_hub(&open.hub, &["show", &format!("{}:g", top.commit)]), "x");
}

#[test]
fn a_merge_is_found_again_by_its_attempt_and_by_its_work_but_not_by_its_name_alone() {
    let world = World::new();
    let open = world.open();
    let commit = work(&open, 1, "f", "x\n");
    assert_eq!(find(&open, AttemptName { task: "t1", id: "t1.merge" }, &commit), None);
    open.merge("t1", &commit).unwrap();
    open.merge("t2", &work(&open, 2, "g", "x\n")).unwrap();
    let same = AttemptName { task: "t1", id: "t1.merge" };
    assert_eq!(find(&open, same, &commit), Some(commit.clone()));
    // This is a later attempt at the very same work, after others were merged.
    let later = AttemptName { task: "t1", id: "t1.9" };
    assert_eq!(find(&open, later, &commit), Some(commit.clone()));
    // These differ: other work of the same task, the same work under another name, another run.
    let other = oid(&in_hub(&open.hub, &["rev-parse", &format!("{}^", commit)]));
    assert_eq!(find(&open, later, &other), None);
    assert_eq!(find(&open, AttemptName { task: "t7", id: "t7.1" }, &commit), None);
    let (tree, mut track) = (open.hub.tree_of(&commit).unwrap(), open.track());
    track.run = "r2";
    let sought = Sought { attempt: same, base: &open.base(), tree: &tree };
    assert_eq!(track.find(&open.hub, &sought).unwrap(), None);
}

#[test]
fn carried_work_has_markers_where_it_conflicts_and_its_resolution_merges() {
    let world = World::new();
    let open = world.open();
    let mine = work(&open, 1, "README", "one\nmine\n");
    let yours = work(&open, 2, "README", "one\nyours\n");
    let tip = open.merge("t1", &mine).unwrap().0;
    let carried = carry(&open.hub, &yours, &tip, &open.repo.identity, NOW).unwrap();
    let conflicts = carried.conflicts.unwrap();
    assert_eq!(conflicts.tree, open.hub.tree_of(&carried.commit).unwrap());
    let text = in_hub(&open.hub, &["show", &format!("{}:README", carried.commit)]);
    let sides = [format!("<<<<<<< {tip}\nmine\n"), format!("yours\n>>>>>>> {yours}")];
    assert!(sides.iter().all(|side| text.contains(side)), "{text}");
    assert_eq!(open.hub.parents(&carried.commit).unwrap().first(), Some(&tip));

    // Somebody resolves the conflict on top of the tip: a change to the tip, which merges.
    let slot = open.slots.agent(4);
    open.fill(&slot, &carried.commit);
    crate::world::put(slot.dir(), "README", "one\nmine and yours\n");
    let attempt = AttemptName { task: "t2", id: "fix" };
    let request = CaptureRequest { attempt, base: &carried.commit, now: NOW };
    let resolved = slot.capture(&request).unwrap().commit.unwrap();
    couple(&open, &tip, "t2", &resolved).unwrap();
    // Another task is merged first: the resolution is carried on, without its old conflict.
    let next = open.merge("t3", &work(&open, 3, "g", "x\n")).unwrap().0;
    let again = carry(&open.hub, &resolved, &next, &open.repo.identity, NOW).unwrap();
    assert_eq!(again.conflicts, None);
    let file = |name: &str| in_hub(&open.hub, &["show", &format!("{}:{name}", again.commit)]);
    assert_eq!((file("README"), file("g")), ("one\nmine and yours".into(), "x".into()));
}

#[test]
fn every_kind_of_conflict_is_named_as_git_status_names_it() {
    let world = World::new();
    world.write("gone-here", "a\nb\nc\n");
    world.write("gone-there", "a\nb\nc\n");
    world.commit("files");
    let open = world.open();
    let slot = open.slot(1);
    std::fs::remove_file(slot.dir().join("gone-here")).unwrap();
    crate::world::put(slot.dir(), "gone-there", "a\nB\nc\n");
    crate::world::put(slot.dir(), "new", "ours\n");
    let mine = open.commit("t1", &open.capture(&slot).tree).commit;
    let slot = open.slot(2);
    std::fs::remove_file(slot.dir().join("gone-there")).unwrap();
    crate::world::put(slot.dir(), "gone-here", "a\nB\nc\n");
    crate::world::put(slot.dir(), "new", "theirs\n");
    let yours = open.commit("t2", &open.capture(&slot).tree).commit;
    open.merge("t1", &mine).unwrap();
    let found = open.merge("t2", &yours).unwrap_err();
    assert_eq!(
        found.status(),
        "Unmerged paths:\n\tdeleted by us:   gone-here\n\tdeleted by them: gone-there\n\
         \tboth added:      new\n"
    );
    assert_eq!(found.messages.len(), 3, "{:?}", found.messages);
}

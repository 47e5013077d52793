//! Tasks whose allowed paths overlap.

use super::*;

#[test]
fn l12_parallel_tasks_with_overlapping_paths_are_warned_of() {
    let overlapping = plan("a in src/x; b in src; c after a b in src/x/y; d in docs; e");
    insta::assert_snapshot!(notes(&overlapping), @"tasks `a` and `b` could run at the same time and both may change `src/x`; they run one after the other");
    let alone = PlanRules { serialize_overlapping: false, ..rules() };
    insta::assert_snapshot!(notes_by(&overlapping, &alone), @"tasks `a` and `b` could run at the same time and both may change `src/x`; expect conflicts, or let one depend on the other");
    // Many tasks at one path are one note, not one for each pair.
    let many = plan("a in s; b in s; c in s");
    insta::assert_snapshot!(notes(&many), @"tasks `a`, `b`, `c` could run at the same time and all may change `s`; they run one after the other");
    // However far apart in the graph, only tasks that are ordered are safe.
    assert_eq!(notes(&plan("a in s; b after a; c after b; d after c in s")), "");
    assert!(notes(&plan("a in s; b; c after b; d after c in s")).contains("`a` and `d`"));
}

//! Rules of text and path: what breaks one spends a round and is repaired, what is honest goes on.

use super::check;
use autopilot_core::claim::{BuilderClaim, ClaimScope, differences};
use autopilot_core::evidence::SeenCommand;
use autopilot_core::guard::{ChangedFile, FileMode, FileStatus, is_watched, same_names};

#[test]
fn a_change_that_breaks_a_rule_is_repaired_before_it_is_merged() {
    for what in [
        "todo",
        "lone-todo",
        "exchanged-todo",
        "conflict",
        "own-conflict-in-a-document",
        "long-line",
        "unread-files",
        "nothing",
        "white-space",
        "direction",
        "invisible",
        "look-alike",
        "odd-name",
        "same-name",
        "links-out",
        "submodule-moved",
        "submodule-gone",
        "task-file",
        "test-gone",
    ] {
        let story = check(
            &format!("task a\n a: validate changes {what}, fix ok"),
            "a done (2 rounds, overruled) — run done",
        );
        assert_eq!(story.merged, "a2", "{what}: only the repaired work is merged");
    }
}

#[test]
fn an_honest_change_that_looks_odd_goes_on() {
    for what in [
        "todo-in-a-document",
        "conflict-in-a-document",
        "test-gone-as-asked",
        "fixture-gone",
        "code-that-knows-tests",
        "instructions",
        "test-taken-out",
        "quietly-test-taken-out-as-asked",
        "quietly-tests-that-know-tests",
        "quietly-moved-todo",
        "quietly-indentation",
        "quietly-emoji",
        "quietly-links",
        "quietly-formula",
        "quietly-test-merged",
        "quietly-specification-gone",
    ] {
        let story = check(&format!("task a\n a: validate changes {what}"), "a done — run done");
        assert_eq!(story.starts.matches("a.fix").count(), 0, "{what}: {}", story.starts);
    }
}

fn file(path: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        status: FileStatus::Added,
        old_path: None,
        link_target: None,
        mode: FileMode::Regular,
        binary: false,
    }
}

#[test]
fn names_and_lines_are_compared_as_a_reader_sees_them() {
    let same = same_names(&[file("Config.py")], ["config.py", "Config.py"].into_iter());
    assert_eq!((same.len(), same[0].other.as_str()), (1, "config.py"));
    assert_eq!(same_names(&[file("b.py")], ["config.py", "b.py"].into_iter()), []);
    assert!(is_watched("x // Todo") && is_watched("\u{202e}") && !is_watched("let a = 1;"));
}

#[test]
fn a_report_is_compared_with_the_change_and_the_checks() {
    let told = |said: &[&str], scope, passed| {
        let said: Vec<String> = said.iter().map(|path| (*path).to_owned()).collect();
        let claim = BuilderClaim {
            changed_files: &said,
            scope,
            tests_passed: passed,
            ..BuilderClaim::default()
        };
        let red = SeenCommand { name: "tests".to_owned(), ..SeenCommand::default() };
        differences(&claim, &[file("a.rs"), file("b.rs"), file("Cargo.lock")], &[red], |_| {
            "no".to_owned()
        })
        .len()
    };
    for (said, scope, passed, doubts) in [
        (&["a.rs", "b.rs"][..], ClaimScope::Whole, None, 0),
        (&[], ClaimScope::Whole, None, 0),
        (&["./a.rs", "b.rs (new)"], ClaimScope::Whole, None, 0),
        (&["a.rs"], ClaimScope::Whole, None, 1),
        (&["a.rs", "b.rs", "c.rs"], ClaimScope::Whole, None, 1),
        (&["a.rs"], ClaimScope::Part, None, 0),
        (&["a.rs", "b.rs"], ClaimScope::Whole, Some(true), 1),
        (&["a.rs", "b.rs"], ClaimScope::Whole, Some(false), 0),
    ] {
        assert_eq!(told(said, scope, passed), doubts, "{said:?} {scope:?} {passed:?}");
    }
}

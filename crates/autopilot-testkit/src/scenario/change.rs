//! Changes that a scenario names by a word, weighed by the guards as those of a real build.

use crate::agent::Ending;
use autopilot_core::guard::{
    self, Change, ChangedFile, ChangedLine, FileMode, FileStatus, GuardRules, LinkSides, SameName,
};

/// A change and what its task asks for.
#[derive(Default)]
struct Sample {
    change: Change,
    task: &'static str,
}

const TODO: &str = "// todo: later";
const TAKEN_OUT: &str = "def test_old():";
const KNOWS_TESTS: &str = "if 'pytest' in sys.modules:";
const OLD_TEST: &str = "tests/old_test.py";

/// How a step ends that weighs the named change: well, unless a finding blocks. A name with
/// `quietly-` before it finds nothing at all.
pub(super) fn changes(what: &str) -> Result<Ending, String> {
    let (name, is_quiet) = match what.strip_prefix("quietly-") {
        Some(name) => (name, true),
        None => (what, false),
    };
    let Sample { change, task } = sample(name).ok_or(format!("`{name}` can't be changed"))?;
    let task_files = ["tasks/next.md".to_owned()];
    let rules = GuardRules {
        diff_line_cap: 9,
        forbid_todos: true,
        task,
        task_files: &task_files,
        ..GuardRules::default()
    };
    let findings = guard::check(&change, &rules);
    if findings.is_empty() != is_quiet {
        return Err(format!("of the change `{what}` was found: {findings:?}"));
    }
    Ok(if guard::broken_rules(&findings).is_empty() { Ending::Ok } else { Ending::Fails })
}

fn sample(name: &str) -> Option<Sample> {
    let change = match name {
        "todo" => added("a.rs", TODO),
        "lone-todo" => added("a.rs", "// Todo"),
        "exchanged-todo" => Change { removed: vec![line("b.rs", TODO)], ..added("a.rs", TODO) },
        "moved-todo" => Change { removed: vec![line("a.rs", TODO)], ..added("a.rs", TODO) },
        "todo-in-a-document" => added("a.md", TODO),
        "conflict" => added("a.rs", "<<<<<<< ours"),
        "own-conflict-in-a-document" => {
            added("a.md", &format!("<<<<<<< {}", "5b7bd50eed".repeat(4)))
        }
        "conflict-in-a-document" => added("a.md", "<<<<<<< ours"),
        "long-line" => Change { inserted_bytes: 5_000_000, ..added("a.rs", "x") },
        "unread-files" => Change { unread_files: 1, ..added("a.rs", "x") },
        "nothing" => of_file(file(FileStatus::Added, "a.rs"), &[], &[]),
        "white-space" => of_file(file(FileStatus::Modified, "a.rs"), &["  f()"], &["f()"]),
        "indentation" => of_file(file(FileStatus::Modified, "a.py"), &["  f()"], &["f()"]),
        "direction" => added("a.rs", "// \u{202e}"),
        "invisible" => added("a.rs", "let a\u{200b} = 1;"),
        "emoji" => added("a.rs", "say(\"👩\u{200d}💻\")"),
        "look-alike" => added("a.rs", "let p\u{430}ss = 1;"),
        "formula" => added("a.rs", "let Δx = 1;"),
        "odd-name" => of_file(file(FileStatus::Added, "p\u{430}ss.rs"), &["x"], &[]),
        "same-name" => {
            let same = SameName { path: "A.rs".to_owned(), other: "a.rs".to_owned() };
            Change { same_names: vec![same], ..added("A.rs", "x") }
        }
        "code-that-knows-tests" => added("a.py", KNOWS_TESTS),
        "tests-that-know-tests" => added("tests/test_a.py", KNOWS_TESTS),
        "instructions" => of_file(file(FileStatus::Modified, "AGENTS.md"), &["x"], &[]),
        "test-taken-out" | "test-taken-out-as-asked" => {
            Change { removed: vec![line("tests/a_test.py", TAKEN_OUT)], ..added("a.py", "x") }
        }
        "links-out" => links("a/../x"),
        "links" => links("a/x"),
        "submodule-moved" => submodule(FileStatus::Modified),
        "submodule-gone" => submodule(FileStatus::Deleted),
        "task-file" => of_file(file(FileStatus::Modified, "tasks/next.md"), &["x"], &[]),
        "test-gone" | "test-gone-as-asked" => without_test(&[]),
        "test-merged" => without_test(&["tests/all_test.py"]),
        "fixture-gone" => of_file(file(FileStatus::Deleted, "tests/fixtures/a.json"), &[], &["x"]),
        "specification-gone" => of_file(file(FileStatus::Deleted, "spec/a.md"), &[], &["x"]),
        _ => return None,
    };
    let task = match name {
        "test-gone-as-asked" => "Delete tests/old_test.py",
        "test-taken-out-as-asked" => "Merge test_old into test_new",
        _ => "",
    };
    Some(Sample { change, task })
}

fn line(path: &str, text: &str) -> ChangedLine {
    ChangedLine { path: path.to_owned(), line: 1, text: text.to_owned() }
}

fn added(path: &str, text: &str) -> Change {
    Change { added: vec![line(path, text)], ..Change::default() }
}

fn file(status: FileStatus, path: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        status,
        old_path: None,
        link_target: None,
        mode: FileMode::Regular,
        binary: false,
    }
}

fn of_file(file: ChangedFile, added: &[&str], removed: &[&str]) -> Change {
    let lines = |texts: &[&str]| texts.iter().map(|text| line(&file.path, text)).collect();
    let (added, removed) = (lines(added), lines(removed));
    Change { added, removed, files: vec![file], ..Change::default() }
}

/// A change of a submodule.
fn submodule(status: FileStatus) -> Change {
    of_file(ChangedFile { mode: FileMode::Gitlink, ..file(status, "lib") }, &["x"], &["y"])
}

/// A change that adds a link to where it stands, and another one that goes through it.
fn links(through: &str) -> Change {
    let head = [("a", "."), ("l", through)].map(|(path, to)| (path.to_owned(), to.to_owned()));
    let links = LinkSides { head: head.into(), ..LinkSides::default() };
    Change { links, ..added("a.rs", "x") }
}

/// A change that deletes a test, whose lines are in these files now.
fn without_test(now: &[&str]) -> Change {
    let test = ["def test_old():", "    assert old()"];
    let lines = |path: &str| test.map(|text| line(path, text));
    Change {
        added: now.iter().flat_map(|path| lines(path)).collect(),
        ..of_file(file(FileStatus::Deleted, OLD_TEST), &[], &test)
    }
}

//! A change in, findings out, as a person reads them.

use super::*;
use proptest::prelude::*;

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

fn link(path: &str, target: &str) -> ChangedFile {
    ChangedFile {
        mode: FileMode::Symlink,
        link_target: Some(target.to_owned()),
        ..file(FileStatus::Added, path)
    }
}

fn renamed(from: &str, to: &str) -> ChangedFile {
    ChangedFile { old_path: Some(from.to_owned()), ..file(FileStatus::Renamed, to) }
}

fn lines(lines: &[(&str, &str)]) -> Vec<ChangedLine> {
    lines
        .iter()
        .zip(1..)
        .map(|((path, text), line)| ChangedLine {
            path: (*path).to_owned(),
            line,
            text: (*text).to_owned(),
        })
        .collect()
}

fn said(change: &Change, allowed: &[&str], denied: &[&str]) -> String {
    let own = |list: &[&str]| list.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let (allowed, denied) = (own(allowed), own(denied));
    report(&check(
        change,
        &GuardRules {
            allowed_paths: &allowed,
            deny_paths: &denied,
            diff_line_cap: 800,
            forbid_todos: true,
            ..GuardRules::default()
        },
    ))
}

fn of_files(files: Vec<ChangedFile>) -> Change {
    let added = files.iter().map(|file| ChangedLine {
        path: file.path.clone(),
        line: 1,
        text: "x".to_owned(),
    });
    Change { added: added.collect(), files, ..Change::default() }
}

fn of_lines(added: &[(&str, &str)], removed: &[(&str, &str)]) -> Change {
    Change { added: lines(added), removed: lines(removed), ..Change::default() }
}

const UNDO: &str = "undo the change to this file";

#[test]
fn paths_match_whole_components() {
    for (path, allowed, ok) in [
        ("src/a.rs", "src", true),
        ("src/a.rs", "src/", true),
        ("src/a.rs", "./src/**", true),
        ("src/a.rs", "src/a.rs", true),
        ("src2/a.rs", "src", false),
        ("src", "src/a", false),
        ("SRC/a.rs", "src", false),
        ("web/x/a.ts", "web/*/a.ts", true),
        ("web/x/y/a.ts", "web/*/a.ts", false),
        ("web/x/y/a.ts", "web/*", true),
        ("deep/in/a.md", "*.md", true),
        ("anything", ".", true),
    ] {
        let found = said(&of_files(vec![file(FileStatus::Modified, path)]), &[allowed], &[]);
        assert_eq!(found.is_empty(), ok, "{path} by {allowed}: {found}");
    }
}

#[test]
fn what_is_outside_or_denied_is_said_with_its_file() {
    let change = of_files(vec![
        file(FileStatus::Modified, "src/a.rs"),
        file(FileStatus::Added, "docs/x.md"),
        file(FileStatus::Modified, "Infra/main.tf"),
        file(FileStatus::Modified, ".autopilot/config.yml"),
        renamed("billing/a.rs", "src/b.rs"),
        file(FileStatus::Added, "../up"),
        file(FileStatus::Added, "/etc/passwd"),
    ]);
    insta::assert_snapshot!(said(&change, &["src", "tests/"], &["infra/", "billing"]), @r#"
    blocker: docs/x.md: only `src`, `tests/` may be changed in this task; undo the change to this file
    blocker: Infra/main.tf: changes under `infra/` are denied; undo the change to this file
    blocker: .autopilot/config.yml: changes under `.autopilot` are denied; undo the change to this file
    blocker: billing/a.rs: changes under `billing` are denied; undo the change to this file
    blocker: ../up: the path is not inside the repository; undo the change to this file
    blocker: /etc/passwd: the path is not inside the repository; undo the change to this file
    "#);
}

#[test]
fn the_source_of_a_copy_is_not_changed() {
    let copied = ChangedFile { status: FileStatus::Copied, ..renamed("infra/a", "src/a") };
    assert_eq!(said(&of_files(vec![copied]), &[], &["infra"]), "");
}

#[test]
fn links_must_stay_inside_and_out_of_denied_places() {
    for (path, target, word) in [
        ("src/l", "a.rs", ""),
        ("src/l", "../src/./a.rs", ""),
        ("src/l", "/etc/passwd", "outside the repository"),
        ("src/l", "../../x", "outside the repository"),
        ("src/l", "../src/../..", "outside the repository"),
        ("src/l", "../INFRA/x", "where changes are denied"),
        ("src/l", "../.git/hooks", "where changes are denied"),
        ("src/l", "../a", "where changes are denied"),
        ("src/l", "../docs", "outside the allowed paths"),
        ("src/l", "", "outside the repository"),
    ] {
        let found = said(&of_files(vec![link(path, target)]), &["src"], &["infra", "a/secret"]);
        let ok = if word.is_empty() { found.is_empty() } else { found.contains(word) };
        assert!(ok, "{target}: {found}");
    }
}

#[test]
fn a_rule_that_can_t_be_read_blocks_instead_of_vanishing() {
    assert_eq!(
        said(&of_files(vec![]), &[], &["infra/[", "../x"]),
        "blocker: `infra/[` in the list of paths is not a valid pattern: unclosed character class; missing ']'; correct the list\n\
         blocker: `../x` in the list of paths is not inside the repository; correct the list"
    );
}

#[test]
fn the_diff_cap_counts_both_directions_and_names_the_heaviest() {
    let mut change = of_lines(&[("b", "x"), ("a", "x"), ("b", "y")], &[("c", "z")]);
    (change.insertions, change.deletions) = (500, 300);
    assert_eq!(said(&change, &[], &[]), "");
    change.deletions = 301;
    assert_eq!(
        said(&change, &[], &[]),
        "blocker: the change has 801 lines (500 added, 301 removed); the cap is 800; most in b 2, a 1, c 1; \
         undo changes that the task does not ask for, or split the task"
    );
}

#[test]
fn new_todos_are_named_by_line_and_moved_ones_are_not_new() {
    let change = of_lines(
        &[
            ("a.rs", "// TODO: later"),
            ("a.rs", "let todos = TODOS;"),
            ("b.rs", "    // FIXME moved with its words"),
            ("b.rs", "// FIXME moved with its words"),
            ("b.rs", "// TODO removed"),
        ],
        &[("a.rs", "// FIXME moved with its words"), ("a.rs", "// TODO removed")],
    );
    assert_eq!(
        said(&change, &[], &[]),
        "blocker: a.rs:1: new TODO: `// TODO: later`; do it now, or remove the comment\n\
         blocker: b.rs:4: new FIXME: `// FIXME moved with its words`; do it now, or remove the comment\n\
         blocker: b.rs:5: new TODO: `// TODO removed`; do it now, or remove the comment"
    );
    let rules = GuardRules { diff_line_cap: 800, forbid_todos: false, ..GuardRules::default() };
    assert_eq!(check(&change, &rules), []);
}

#[test]
fn deleted_tests_block() {
    let change = of_files(vec![
        file(FileStatus::Deleted, "tests/login.rs"),
        file(FileStatus::Deleted, "src/old.rs"),
        renamed("tests/a_test.py", "attic/a.txt"),
        renamed("tests/b_test.py", "tests/c_test.py"),
    ]);
    assert_eq!(
        said(&change, &[], &[]),
        "blocker: tests/login.rs: a test file was deleted; restore it; change the code, not the tests\n\
         blocker: tests/a_test.py: a test file was moved to `attic/a.txt`, where it is not run as a test; restore it; change the code, not the tests"
    );
}

#[test]
fn the_end_of_a_test_that_the_task_asks_for_is_told() {
    let change = of_files(vec![file(FileStatus::Deleted, "tests/old_test.sh")]);
    for (task, severity) in [
        ("Say done", "blocker"),
        ("Keep tests/old_test.sh, delete the flag", "blocker"),
        ("Consolidate the tests", "major"),
        ("Delete tests/old_test.sh", "minor"),
    ] {
        let found = report(&check(
            &change,
            &GuardRules { task, diff_line_cap: 9, ..GuardRules::default() },
        ));
        assert!(found.starts_with(severity), "{task}: {found}");
    }
}

#[test]
fn data_and_documents_beside_the_tests_are_no_tests() {
    for (path, severity) in [
        ("tests/fixtures/a.json", "major"),
        ("tests/data.csv", "major"),
        ("spec/protocol.md", ""),
        ("spec/README", ""),
        ("spec/login_spec.rb", "blocker"),
        ("tests/snapshots/a.snap", "blocker"),
    ] {
        let found = said(&of_files(vec![file(FileStatus::Deleted, path)]), &[], &[]);
        assert!(
            found.starts_with(severity) && found.is_empty() == severity.is_empty(),
            "{path}: {found}"
        );
    }
}

#[test]
fn a_test_file_whose_tests_are_now_in_another_one_was_moved() {
    let (test, check) = ("def test_old():", "    assert old() == 1");
    let change = |added: &[(&str, &str)]| Change {
        files: vec![file(FileStatus::Deleted, "tests/old_test.py")],
        ..of_lines(added, &[("tests/old_test.py", test), ("tests/old_test.py", check)])
    };
    let into = |path: &str| said(&change(&[(path, test), (path, check)]), &[], &[]);
    assert_eq!(into("tests/all_test.py"), "");
    assert!(into("attic/old.py").starts_with("blocker"));
    let weaker = said(&change(&[("tests/all_test.py", test)]), &[], &[]);
    assert!(weaker.starts_with("blocker"), "{weaker}");
}

#[test]
fn a_skip_is_not_exchanged_for_one_that_was_removed() {
    let skip = "#[ignore]";
    let found = said(&of_lines(&[("b.rs", skip)], &[("a.rs", skip)]), &[], &[]);
    assert!(found.contains("a test is skipped"), "{found}");
}

#[test]
fn weakened_tests_are_reported_in_every_language() {
    for (path, added, removed, word) in [
        ("src/a.rs", "", "    #[tokio::test]", "1 test was removed"),
        ("src/a.rs", "#[ignore = \"slow\"]", "", "a test is skipped"),
        ("src/a.rs", "assert!(true);", "assert_eq!(sum(1, 2), 3);", "always holds"),
        ("tests/a.py", "", "def test_x():", "1 test was removed"),
        ("tests/a.py", "@pytest.mark.skip", "", "a test is skipped"),
        ("tests/a.py", "pass", "    assert x == 1", "1 assertions were removed and 0 added"),
        ("a.test.ts", "it.skip('x', () => {", "", "a test is skipped"),
        ("a.test.ts", "it.only('x', () => {", "", "a test is skipped"),
        ("a.test.ts", "", "  it('adds', () => {", "1 test was removed"),
        ("a_test.go", "", "func TestX(t *testing.T) {", "1 test was removed"),
        ("a_test.go", "t.Skip()", "", "a test is skipped"),
        ("ATest.java", "@Disabled", "", "a test is skipped"),
        ("ATest.java", "", "    @Test", "1 test was removed"),
        ("a_spec.rb", "  xit 'adds' do", "  it 'adds' do", "a test is skipped"),
        ("a_test.exs", "@tag :skip", "", "a test is skipped"),
        ("ATest.php", "$this->markTestSkipped('x');", "", "a test is skipped"),
        ("ATests.cs", "[Fact(Skip = \"x\")]", "[Fact]", "a test is skipped"),
        ("a_test.cc", "GTEST_SKIP();", "", "a test is skipped"),
    ] {
        let found = said(&of_lines(&[(path, added)], &[(path, removed)]), &[], &[]);
        assert!(found.contains(word) && found.starts_with("major"), "{path} {added}: {found}");
    }
}

#[test]
fn tests_that_were_renamed_moved_or_sharpened_are_no_finding() {
    for (added, removed) in [
        (("tests/a.py", "def test_new():"), ("tests/a.py", "def test_old():")),
        (("tests/b.py", "    assert x == 1"), ("tests/a.py", "assert x == 1")),
        (("src/a.rs", "assert_eq!(a, 2);"), ("src/a.rs", "assert_eq!(a, 1);")),
        (("src/a.rs", "iter.skip(1)"), ("src/a.rs", "iter")),
    ] {
        assert_eq!(said(&of_lines(&[added], &[removed]), &[], &[]), "");
    }
}

#[test]
fn a_test_that_the_task_asks_to_remove_by_its_name_is_no_finding() {
    for (path, test, check, task) in [
        ("a_test.py", "def test_label():", "    assert label(1) == 2", "Remove test_label"),
        (
            "a_test.py",
            "def test_label():",
            "    assert label(1) == 2",
            "Merge test_label into test_b",
        ),
        ("a.test.js", "test('label', () => {", "  assert.equal(1, 1);", "Delete the test `label`"),
    ] {
        let found = |task: &str| {
            let rules = GuardRules { task, diff_line_cap: 800, ..GuardRules::default() };
            report(&super::check(&of_lines(&[], &[(path, test), (path, check)]), &rules))
        };
        assert_eq!(found(task), "", "{task}");
        for task in ["Say done", "Keep test_label and the test `label`"] {
            assert!(found(task).contains("1 test was removed"), "{test}: {}", found(task));
        }
    }
}

#[test]
fn the_lines_of_a_deleted_file_are_not_counted_twice() {
    let mut change = of_lines(&[], &[("tests/a.py", "def test_x():"), ("tests/a.py", "assert x")]);
    change.files = vec![file(FileStatus::Deleted, "tests/a.py")];
    assert_eq!(said(&change, &[], &[]).lines().count(), 1);
}

#[test]
fn nested_repositories_and_pipelines_are_noticed() {
    let change = of_files(vec![
        ChangedFile { mode: FileMode::Gitlink, ..file(FileStatus::Added, "vendor/lib") },
        ChangedFile { mode: FileMode::Gitlink, ..file(FileStatus::Modified, "moved") },
        ChangedFile { mode: FileMode::Gitlink, ..file(FileStatus::Deleted, "gone") },
        ChangedFile { mode: FileMode::Gitlink, ..file(FileStatus::TypeChanged, "replaced") },
        file(FileStatus::Modified, ".gitmodules"),
        file(FileStatus::Added, "x/.git/config"),
        file(FileStatus::Unmerged, "src/a.rs"),
        file(FileStatus::Modified, ".github/workflows/ci.yml"),
        file(FileStatus::Modified, "Jenkinsfile"),
    ]);
    insta::assert_snapshot!(said(&change, &[], &[]), @r#"
    blocker: vendor/lib: a nested repository or submodule was added or moved; remove it; its files would not be part of the change
    blocker: moved: a submodule was moved to another commit; leave it at its commit; Autopilot does not change submodules
    blocker: gone: a submodule was removed or replaced; put it back as it was; Autopilot does not change submodules
    blocker: replaced: a submodule was removed or replaced; put it back as it was; Autopilot does not change submodules
    blocker: .gitmodules: submodules were changed; undo the change to this file
    blocker: x/.git/config: the path is inside a `.git` directory; remove it
    blocker: src/a.rs: the file has unresolved merge conflicts; resolve them
    major: .github/workflows/ci.yml: settings of the build pipeline or of commit hooks were changed; undo it unless the task asks for it
    major: Jenkinsfile: settings of the build pipeline or of commit hooks were changed; undo it unless the task asks for it
    "#);
    let meant = said(
        &of_files(vec![file(FileStatus::Modified, ".github/workflows/ci.yml")]),
        &[".github/"],
        &[],
    );
    assert!(meant.starts_with("minor"));
}

#[test]
fn settings_that_agents_obey_change_only_where_a_task_names_them() {
    for path in [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/hooks/stop.sh",
        ".codex/config.toml",
        ".codex/hooks.json",
        ".mcp.json",
        ".gemini/settings.json",
        "opencode.json",
        "web/.claude/settings.json",
    ] {
        let change = of_files(vec![file(FileStatus::Added, path)]);
        for allowed in [&[][..], &["."], &["**"], &[".claude/"]] {
            let found = said(&change, allowed, &[]);
            assert!(found.contains("make a coding agent run programs"), "{path}: {found}");
        }
        let found = said(&change, &[path], &[]);
        assert!(!found.contains("make a coding agent run"), "{path}: {found}");
    }
    let change = of_files(vec![file(FileStatus::Added, ".claude/commands/x.md")]);
    assert!(!said(&change, &[], &[]).contains("make a coding agent run"));
}

#[test]
fn names_can_t_command_the_terminal() {
    let found =
        said(&of_files(vec![file(FileStatus::Added, "infra/\u{1b}[2J\u{202e}x")]), &[], &["infra"]);
    let name = r"infra/\u{1b}[2J\u{202e}x";
    assert_eq!(
        found,
        format!(
            "blocker: {name}: changes under `infra` are denied; {UNDO}\n\
             blocker: {name}: the name holds a character that turns the direction of writing \
             (\\u{{202e}}); rename the file with plain letters"
        )
    );
}

#[test]
fn the_number_of_findings_is_limited_and_the_worst_stay() {
    let mut change = of_lines(&vec![("a.rs", "// TODO x"); 300], &[]);
    change.files =
        vec![file(FileStatus::Modified, "Jenkinsfile"), file(FileStatus::Modified, "a.rs")];
    let rules = GuardRules { diff_line_cap: 800, forbid_todos: true, ..GuardRules::default() };
    let findings = check(&change, &rules);
    assert_eq!(findings.len(), FINDINGS_MAX);
    assert!(findings.iter().all(|finding| finding.severity == Severity::Blocker));
    assert_eq!(findings[FINDINGS_MAX - 1].message, "202 more findings are not listed");
}

#[test]
fn findings_survive_their_journal() {
    let finding =
        Finding::new(FindingSource::Review, Severity::Major, "m", "f").in_file("a").at_line(3);
    let text = serde_json::to_string(&finding).unwrap();
    assert!(text.contains(r#""source":"review","severity":"major","priority":1"#));
    assert_eq!(serde_json::from_str::<Finding>(&text).unwrap(), finding);
}

proptest! {
    #[test]
    fn no_path_panics_and_none_escapes(path in "[a./*\\[]{0,12}", target in "[a./]{0,12}", rule in "[a./*\\[{]{0,8}") {
        let found = said(&of_files(vec![link(&path, &target)]), &["a"], &[&rule]);
        if target.starts_with('/') {
            prop_assert!(!found.is_empty());
        }
    }
}

//! The two trees of changes of every kind.

use super::super::TreeView;
use super::*;
use std::collections::BTreeSet;

fn side(text: &str) -> Option<EntrySide> {
    Some(EntrySide { mode: 0o100_644, oid: format!("oid of {text}"), text: Some(text.to_owned()) })
}

fn entry(path: &str, base: Option<&str>, head: Option<&str>) -> ChangedEntry {
    let of = |text: Option<&str>| text.and_then(side);
    ChangedEntry { path: path.to_owned(), base: of(base), head: of(head) }
}

fn composed(change: &[ChangedEntry]) -> ComposedTrees {
    let paths = BTreeSet::new();
    let trees = [TreeView { paths: &paths, read: &|_| None }];
    compose(&YardstickRules::new(&["*.golden".to_owned()], &[], &trees), change)
}

/// The edits of a tree, one a line.
fn shown(edits: &BTreeMap<String, ComposedEntry>) -> String {
    let line = |(path, edit): (&String, &ComposedEntry)| match edit {
        ComposedEntry::Absent => format!("{path} absent"),
        ComposedEntry::Side { oid, .. } => format!("{path} {oid}"),
        ComposedEntry::Text { text, .. } => format!("{path} text {text}"),
    };
    edits.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[test]
fn whole_files_are_as_on_the_other_side() {
    let trees = composed(&[
        entry("tests/a.sh", None, Some("new")),
        entry("tests/b.sh", Some("old"), None),
        entry("tests/c.sh", Some("old"), Some("new")),
        entry("x.golden", Some("old"), Some("new")),
        entry("src/a.py", Some("old"), Some("new")),
    ]);
    assert_eq!(
        shown(&trees.no_regression),
        "tests/a.sh absent; tests/b.sh oid of old; tests/c.sh oid of old; x.golden oid of old"
    );
    assert_eq!(
        shown(&trees.red),
        "tests/a.sh oid of new; tests/b.sh absent; tests/c.sh oid of new; x.golden oid of new"
    );
    assert!(trees.product && trees.needs_runs() && trees.inseparable.is_empty());
    assert_eq!(trees.touched.len(), 4);
}

#[test]
fn a_change_of_the_product_alone_touches_nothing() {
    let code = "fn a() {}\n\n#[test]\nfn b() {}\n";
    let trees = composed(&[
        entry("src/a.rs", Some(code), Some(&code.replace("a()", "c()"))),
        entry(
            "Cargo.toml",
            Some("[package]\nversion = \"1\"\n"),
            Some("[package]\nversion = \"2\"\n"),
        ),
        entry("a.py", Some(">>> a\n1\n"), Some("x = 1\n>>> a\n1\n")),
        entry("src/main.ts", None, Some("x")),
        entry("README.md", Some("x"), Some("y")),
    ]);
    let nothing = ComposedTrees { product: true, ..ComposedTrees::default() };
    assert_eq!(trees, nothing);
    assert!(!trees.needs_runs());
}

#[test]
fn instructions_are_told_and_need_no_runs() {
    let trees = composed(&[
        entry("AGENTS.md", Some("x"), Some("y")),
        entry(".github/workflows/ci.yml", None, Some("y")),
    ]);
    assert_eq!(trees.touched.len(), 2);
    assert!(!trees.needs_runs() && !trees.product);
    assert!(trees.no_regression.is_empty() && trees.red.is_empty());
}

#[test]
fn tests_among_code_are_moved_alone() {
    let base = "fn a() -> u8 { 1 }\n\n#[test]\nfn t() { assert_eq!(a(), 1) }\n";
    let head = "fn a() -> u8 { 2 }\n\n#[test]\nfn t() {}\n";
    let trees = composed(&[entry("src/a.rs", Some(base), Some(head))]);
    assert_eq!(
        shown(&trees.no_regression),
        "src/a.rs text fn a() -> u8 { 2 }\n\n#[test]\nfn t() { assert_eq!(a(), 1) }\n"
    );
    assert_eq!(shown(&trees.red), "src/a.rs text fn a() -> u8 { 1 }\n\n#[test]\nfn t() {}\n");
    assert!(trees.product && trees.inseparable.is_empty());

    let only_tests = head.replace("{ 2 }", "{ 1 }");
    let trees = composed(&[entry("src/a.rs", Some(base), Some(&only_tests))]);
    assert!(!trees.product);
    assert_eq!(shown(&trees.no_regression), format!("src/a.rs text {base}"));
    assert_eq!(shown(&trees.red), format!("src/a.rs text {only_tests}"));
}

#[test]
fn an_added_or_deleted_mixed_file_has_no_place_on_the_other_side() {
    let text = "fn a() {}\n\n#[test]\nfn t() {}\n";
    let trees = composed(&[entry("src/a.rs", None, Some(text))]);
    assert_eq!(shown(&trees.no_regression), "src/a.rs text fn a() {}\n");
    assert_eq!(shown(&trees.red), "");
    assert!(trees.product && trees.needs_runs());

    let trees = composed(&[entry("src/a.rs", Some(text), None)]);
    assert_eq!(shown(&trees.no_regression), "");
    assert_eq!(shown(&trees.red), "src/a.rs text fn a() {}\n");
    assert_eq!(trees.touched.len(), 1);
}

#[test]
fn new_dependencies_of_tests_bring_their_lock_file() {
    let base = "[package]\nname = \"a\"\n\n[dev-dependencies]\nx = \"1\"\n";
    let head = "[package]\nname = \"a\"\n\n[dev-dependencies]\nx = \"1\"\ny = \"1\"\n";
    let lock = entry("Cargo.lock", Some("old"), Some("new"));
    let trees = composed(&[entry("Cargo.toml", Some(base), Some(head)), lock.clone()]);
    // The base's tests do without the new dependency, and the lock file would not fit without it.
    assert_eq!(shown(&trees.no_regression), "");
    assert_eq!(shown(&trees.red), format!("Cargo.lock oid of new; Cargo.toml text {head}"));
    let other = head.replace("\"a\"", "\"b\"").replace("y = \"1\"\n", "");
    let trees = composed(&[entry("Cargo.toml", Some(base), Some(&other)), lock]);
    assert_eq!(shown(&trees.red), "");
}

#[test]
fn what_can_not_be_taken_apart_is_told() {
    let main =
        |value: u8| format!("x = 1\nif __name__ == \"__main__\":\n    assert x == {value}\n");
    for (path, base, head) in [
        ("a.py", main(1), main(2)),
        ("b.py", ">>> a\n1\n".to_owned(), ">>> a\n2\n".to_owned()),
        ("src/a.ts", "import.meta.vitest; a".to_owned(), "import.meta.vitest; b".to_owned()),
        ("src/a.rs", "m! { #[test] fn a() {} }".to_owned(), "m! { #[test] fn b() {} }".to_owned()),
        ("src/b.rs", "/// ```\n/// a\n/// ```\nfn f() {}".to_owned(), "fn f() {}".to_owned()),
        ("build.rs", "a".to_owned(), "b".to_owned()),
        ("babel.config.js", "a".to_owned(), "b".to_owned()),
        ("pom.xml", "surefire 1".to_owned(), "surefire 2".to_owned()),
        ("package.json", "{\"scripts\":{\"test\":\"x\"}}".to_owned(), "{".to_owned()),
        ("package.json", "{}".to_owned(), "{\"overrides\":{\"jest\":\"file:x\"}}".to_owned()),
        ("Cargo.toml", String::new(), "[patch.crates-io]\na = { path = \"b\" }\n".to_owned()),
        ("go.mod", "module a\n".to_owned(), "module a\nreplace b => ./c\n".to_owned()),
    ] {
        let trees = composed(&[entry(path, Some(&base), Some(&head))]);
        assert_eq!(trees.inseparable.len(), 1, "{path}: {trees:?}");
        assert!(trees.touched.contains_key(path) && trees.product, "{path}");
        assert!(!trees.needs_runs(), "{path}");
        let is_source =
            [".py", ".ts"].iter().any(|ending| path.ends_with(ending)) || path.starts_with("src/");
        assert_eq!(trees.settings().contains(path), !is_source, "{path}");
    }
    let unread = ChangedEntry {
        path: "src/a.rs".to_owned(),
        base: side("#[test]\nfn a() {}"),
        head: Some(EntrySide { mode: 0o120_000, oid: "link".to_owned(), text: None }),
    };
    assert_eq!(composed(&[unread]).inseparable.len(), 1);
}

#[test]
fn new_examples_take_nothing_from_the_bases_tests() {
    let head = "/// ```\n/// a\n/// ```\nfn f() {}\n";
    let trees = composed(&[entry("src/b.rs", Some("fn f() {}\n"), Some(head))]);
    assert_eq!(trees, ComposedTrees { product: true, ..ComposedTrees::default() });
}

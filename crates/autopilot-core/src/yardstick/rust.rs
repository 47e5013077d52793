//! Takes the tests and the code of a Rust file apart, and puts the tests of one side of a change among
//! the code of the other.

mod cfg;
mod item;
mod lexer;

use crate::fingerprint::sha256_hex;
use cfg::ItemUse;
use item::{RustItem, read};
use std::collections::BTreeMap;

/// What a Rust file is to the yardstick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RustShare {
    Product,
    Tests,
    Both,
    /// It can't be told.
    Unreadable,
}

pub(super) fn share(text: &str) -> RustShare {
    let Some(file) = read(text) else { return RustShare::Unreadable };
    if file.is_test_only {
        return RustShare::Tests;
    }
    let scopes = scopes(text, &file.items);
    let has_tests = scopes.iter().any(|scope| !scope.tests.is_empty() || !scope.opaque.is_empty());
    if has_tests { RustShare::Both } else { RustShare::Product }
}

/// Why the tests of a file can't be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RustFault {
    Unreadable,
    Macro,
    NoPlace,
}

impl RustFault {
    pub(super) fn words(self) -> &'static str {
        match self {
            RustFault::Unreadable => "its items can't be told apart",
            RustFault::Macro => "a macro makes its tests",
            RustFault::NoPlace => {
                "its tests are in a module or type that the other side does not have"
            }
        }
    }
}

/// The code of one text with the tests of another. `tests` is empty for none.
pub(super) fn composed(code: &str, tests: &str) -> Result<String, RustFault> {
    let (code_file, tests_file) = (read(code), read(tests));
    let (Some(code_file), Some(tests_file)) = (code_file, tests_file) else {
        return Err(RustFault::Unreadable);
    };
    let of_code = scopes(code, &code_file.items);
    let mut of_tests: BTreeMap<String, TestScope<'_>> = BTreeMap::new();
    for scope in scopes(tests, &tests_file.items) {
        of_tests.insert(scope.name.clone(), scope);
    }
    let mut edits = Vec::new();
    for scope in &of_code {
        let other = of_tests.remove(&scope.name);
        let (wanted, opaque) = other.map(|it| (it.tests, it.opaque)).unwrap_or_default();
        if scope.opaque != opaque && !tests.is_empty() {
            return Err(RustFault::Macro);
        }
        edits.extend(replaced(code, scope, &wanted));
    }
    if of_tests.values().any(|scope| !scope.opaque.is_empty()) {
        return Err(RustFault::Macro);
    }
    if of_tests.values().any(|scope| !scope.tests.is_empty()) {
        return Err(RustFault::NoPlace);
    }
    let text = edited(code, edits);
    if read(&text).is_none() { Err(RustFault::Unreadable) } else { Ok(text) }
}

/// The tests directly in a file, a module, an implementation or a trait.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestScope<'a> {
    name: String,
    /// The byte before which more items can be put.
    end: usize,
    tests: Vec<TestItem<'a>>,
    /// The texts of macros that hold tests.
    opaque: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TestItem<'a> {
    key: String,
    start: usize,
    end: usize,
    text: &'a str,
    /// The spaces in front of it on its line.
    indent: &'a str,
}

fn scopes<'a>(text: &'a str, items: &[RustItem]) -> Vec<TestScope<'a>> {
    let mut found = Vec::new();
    collect(text, "", items, text.len(), &mut found);
    found
}

fn collect<'a>(
    text: &'a str,
    name: &str,
    items: &[RustItem],
    end: usize,
    found: &mut Vec<TestScope<'a>>,
) {
    let mut scope = TestScope { name: name.to_owned(), end, tests: Vec::new(), opaque: Vec::new() };
    let mut inner: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        if item.is_opaque {
            scope.opaque.push(&text[item.start..item.end]);
        }
        if item.item_use != ItemUse::Product {
            scope.tests.push(TestItem {
                key: item.key.clone(),
                start: item.start,
                end: item.end,
                text: &text[item.start..item.end],
                indent: indent(text, item.start),
            });
        } else if let Some((_, close)) = item.body
            && !item.children.is_empty()
        {
            // The same type may have several implementations.
            let count = inner.entry(&item.key).or_default();
            *count += 1;
            let name = format!("{name}/{}#{count}", item.key);
            collect(text, &name, &item.children, close, found);
        }
    }
    found.push(scope);
}

fn indent(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |found| found + 1);
    let before = &text[line..at];
    if before.chars().all(char::is_whitespace) { before } else { "" }
}

/// A part of a text and what takes its place.
struct TextEdit {
    start: usize,
    end: usize,
    text: String,
}

/// Puts the wanted tests where a scope has its own: each at the place of the one with its name, a new one
/// behind the one before it, else at the end.
fn replaced(text: &str, scope: &TestScope<'_>, wanted: &[TestItem<'_>]) -> Vec<TextEdit> {
    let mut taken = vec![false; scope.tests.len()];
    let mut places: Vec<Vec<&TestItem<'_>>> = vec![Vec::new(); scope.tests.len()];
    let mut at_end: Vec<&TestItem<'_>> = Vec::new();
    let mut behind: Option<usize> = None;
    for test in wanted {
        let own = (0..scope.tests.len()).find(|at| !taken[*at] && scope.tests[*at].key == test.key);
        if let Some(own) = own {
            taken[own] = true;
            behind = Some(own);
            // What came behind this place before its own test did stays behind it.
            places[own].insert(0, test);
        } else if let Some(behind) = behind {
            places[behind].push(test);
        } else {
            at_end.push(test);
        }
    }
    let mut edits = Vec::new();
    for ((own, tests), is_taken) in scope.tests.iter().zip(places).zip(taken) {
        let (start, end) = if is_taken { (own.start, own.end) } else { with_line(text, own) };
        let separator = format!("\n\n{}", own.indent);
        let text = tests.iter().map(|test| test.text).collect::<Vec<_>>().join(&separator);
        edits.push(TextEdit { start, end, text });
    }
    if !at_end.is_empty() {
        let line = text[..scope.end].rfind('\n').map_or(0, |found| found + 1);
        let is_own_line = text[line..scope.end].chars().all(char::is_whitespace);
        let at = if is_own_line && scope.end < text.len() { line } else { scope.end };
        let lead = if text[..at].ends_with('\n') || at == 0 { "" } else { "\n" };
        let added = at_end.iter().map(|test| format!("\n{}{}\n", test.indent, test.text));
        let text = format!("{lead}{}", added.collect::<String>());
        edits.push(TextEdit { start: at, end: at, text });
    }
    edits
}

/// The bytes of an item, with its whole line and the empty one in front of it where nothing else is there.
fn with_line(text: &str, item: &TestItem<'_>) -> (usize, usize) {
    let start = item.start - item.indent.len();
    let before = &text[..start];
    let after = &text[item.end..];
    let line_rest = after.find('\n').map_or(after, |found| &after[..found]);
    if !line_rest.trim().is_empty() || !(before.is_empty() || before.ends_with('\n')) {
        return (item.start, item.end);
    }
    let end = item.end + line_rest.len() + usize::from(after.len() > line_rest.len());
    let start = if before.ends_with("\n\n") { start - 1 } else { start };
    (start, end)
}

fn edited(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let (mut result, mut at) = (String::new(), 0);
    for edit in edits {
        // Lines that were removed with their empty ones may touch.
        result.push_str(text.get(at..edit.start).unwrap_or_default());
        result.push_str(&edit.text);
        at = at.max(edit.end);
    }
    result.push_str(&text[at..]);
    result
}

/// The examples in the documentation of a file's code, which are run as tests.
pub(super) fn doc_examples(text: &str) -> Vec<String> {
    let mut examples = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            open = None;
            continue;
        };
        let Some(language) = line.trim().strip_prefix("```") else {
            if let Some((_, example)) = &mut open {
                example.push_str(line.trim());
                example.push('\n');
            }
            continue;
        };
        open = match open {
            Some((is_test, example)) => {
                if is_test {
                    examples.push(example);
                }
                None
            }
            None => Some((is_run(language), String::new())),
        };
    }
    examples
}

/// Whether an example with these words behind its fence is compiled or run.
fn is_run(language: &str) -> bool {
    const RUN: &[&str] = &["rust", "should_panic", "no_run", "compile_fail"];
    language
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .all(|word| RUN.contains(&word) || word.starts_with("edition"))
}

/// The modules that a file declares for tests alone: their names.
pub(super) fn test_modules(text: &str) -> Vec<String> {
    let file = read(text);
    let items = file.iter().flat_map(|file| &file.items);
    items
        .filter(|item| item.item_use != ItemUse::Product && item.body.is_none())
        .filter_map(|item| item.key.strip_prefix("mod ").map(str::to_owned))
        .collect()
}

/// Whether a file declares a module of this name in another file.
pub(super) fn declares(text: &str, module: &str) -> bool {
    let file = read(text);
    let mut items = file.iter().flat_map(|file| &file.items);
    items.any(|item| item.body.is_none() && item.key.strip_prefix("mod ") == Some(module))
}

/// Whether a file is compiled for tests alone, as it says itself.
pub(super) fn is_test_only(text: &str) -> bool {
    share(text) == RustShare::Tests
}

/// The tests of a file with hashes of their bodies, named with the modules they are in.
pub(super) fn bodies(text: &str) -> BTreeMap<String, String> {
    let mut bodies = BTreeMap::new();
    if let Some(file) = read(text) {
        add_bodies(text, "", &file.items, &mut bodies);
    }
    bodies
}

fn add_bodies(text: &str, path: &str, items: &[RustItem], bodies: &mut BTreeMap<String, String>) {
    for item in items {
        if let (Some(name), Some((start, end))) = (item.key.strip_prefix("fn "), item.body)
            && item.item_use == ItemUse::TestFunction
        {
            let tokens = lexer::tokens(&text[start..end]).unwrap_or_default();
            let inside = &text[start..end];
            let words = tokens.iter().map(|token| &inside[token.start..token.end]);
            let hash = sha256_hex(words.collect::<Vec<_>>().join(" ").as_bytes());
            bodies.insert(format!("{path}{name}"), hash);
        }
        let module = item.key.strip_prefix("mod ").map(|name| format!("{path}{name}::"));
        add_bodies(text, module.as_deref().unwrap_or(path), &item.children, bodies);
    }
}

#[cfg(test)]
mod tests;

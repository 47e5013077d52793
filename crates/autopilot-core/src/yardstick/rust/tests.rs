//! The tests of one side go among the code of the other, and nothing else moves.

use super::*;
use proptest::prelude::*;

const BASE: &str = "\
//! A file.
use std::fmt;

#[cfg(test)]
use std::rc::Rc;

/// Adds.
pub fn add(a: u8) -> u8 {
    let brace = '{';
    a + 1 // }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1), 2);
    }
}
";

const HEAD: &str = "\
//! A file.
use std::fmt;

/// Adds two.
pub fn add(a: u8) -> u8 {
    a + 2
}

impl Adder {
    fn code(&self) {}

    #[cfg(all(test, unix))]
    fn helper(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {}
}

#[cfg(test)]
mod more;
";

#[test]
fn a_file_of_one_side_alone_is_as_it_was() {
    for text in [BASE, HEAD, "", "fn a() {}", "#[test] fn a() {}"] {
        assert_eq!(composed(text, text).unwrap(), text);
    }
}

#[test]
fn the_tests_of_the_base_go_among_the_new_code() {
    let wanted = "\
//! A file.
use std::fmt;

/// Adds two.
pub fn add(a: u8) -> u8 {
    a + 2
}

impl Adder {
    fn code(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1), 2);
    }
}

#[cfg(test)]
use std::rc::Rc;
";
    assert_eq!(composed(HEAD, BASE).unwrap(), wanted);
}

#[test]
fn tests_without_a_place_are_not_moved() {
    assert_eq!(composed(BASE, HEAD), Err(RustFault::NoPlace));
    assert_eq!(composed("fn a() {", BASE), Err(RustFault::Unreadable));
    let made = "cases! { #[test] fn a() {} }";
    assert_eq!(composed("fn a() {}", made), Err(RustFault::Macro));
    assert_eq!(composed("cases! { #[test] fn a() { x() } }", made), Err(RustFault::Macro));
    let beside = "cases! { #[test] fn a() {} }\nfn b() {}\n";
    let with = "cases! { #[test] fn a() {} }\nfn b() {}\n\n#[test]\nfn c() {}\n";
    assert_eq!(composed(beside, with).unwrap(), with);
}

#[test]
fn a_file_loses_all_its_tests() {
    let code = "//! A file.\nuse std::fmt;\n\n/// Adds.\npub fn add(a: u8) -> u8 {\n    let brace \
                = '{';\n    a + 1 // }\n}\n";
    assert_eq!(composed(BASE, "").unwrap(), code);
    assert_eq!(composed(code, "").unwrap(), code);
}

#[test]
fn what_a_file_is_to_the_yardstick_is_told_by_its_items() {
    for (text, wanted) in [
        ("", RustShare::Product),
        ("fn a() { let b = \"#[test]\"; } // #[test]", RustShare::Product),
        ("#[cfg(any(test, feature = \"x\"))] fn a() {}", RustShare::Product),
        ("#[cfg(not(test))] fn a() {}", RustShare::Product),
        ("struct A { #[cfg(test)] b: u8 }", RustShare::Product),
        ("fn a() { #[cfg(test)] return; }", RustShare::Product),
        ("#![cfg(test)]\nfn helper() {}", RustShare::Tests),
        ("#[test]\nfn a() {}", RustShare::Both),
        ("#[tokio::test]\nasync fn a() {}", RustShare::Both),
        ("mod a { mod b { #[cfg(test)] use c; } }", RustShare::Both),
        (
            "impl<const N: usize> A<{ N }> { #[cfg(test)] const B: [u8; { 1 }] = []; }",
            RustShare::Both,
        ),
        ("proptest! { #[test] fn a(x in 0..1) {} }", RustShare::Both),
        ("make! { #[cfg(test)] mod a {} }", RustShare::Both),
        ("where you { = go }", RustShare::Product),
        ("} {", RustShare::Unreadable),
        ("= 1;", RustShare::Unreadable),
    ] {
        assert_eq!(share(text), wanted, "{text}");
    }
}

#[test]
fn modules_for_tests_and_examples_of_documentation_are_found() {
    let text =
        "#[cfg(test)]\nmod a;\nmod b;\n#[cfg(test)]\nmod c {}\n#[cfg(all(test, x))] pub mod d;";
    assert_eq!(test_modules(text), ["a", "d"]);
    let text = "/// ```\n/// a();\n/// ```\n/// ```text\n/// no\n/// ```\nfn f() {}\n//! ```no_run\n//! b\n//! ```";
    assert_eq!(doc_examples(text), ["a();\n", "b\n"]);
}

#[test]
fn a_test_is_known_by_its_body_whatever_its_name_and_spaces() {
    let base = bodies(
        "#[cfg(test)] mod tests { #[test] fn old() { let a = \"x\"; assert!(a) } fn no() {} }",
    );
    let head = bodies("#[test]\nfn new() {\n    let a = \"x\";\n    // why\n    assert!(a)\n}\n");
    assert_eq!(base.keys().collect::<Vec<_>>(), ["tests::old"]);
    assert_eq!(base["tests::old"], head["new"]);
    assert_ne!(head["new"], bodies("#[test] fn new() { assert!(true) }")["new"]);
}

const CODE_ITEMS: &[&str] = &[
    "use std::{fmt, io};",
    "/// Says `{`.\npub fn a<'a>(x: &'a str) -> char { '}' }",
    "struct B { c: u8 }",
    "#[derive(Debug)]\npub(crate) struct C(u8);",
    "const D: &str = r#\"} #[test] fn x() {}\"#;",
    "macro_rules! e { ($x:expr) => { { $x } }; }",
    "impl fmt::Debug for E<{ 1 }> {\n    fn fmt(&self) {}\n}",
    "#[cfg(any(test, unix))]\nmod f {}",
    "mod g {\n    pub fn h() { /* { */ }\n}",
    "thread_local!(static I: u8 = 0);",
    "extern \"C\" { fn j(); }",
    "pub unsafe extern \"C\" fn k() {}",
    "// A comment. }",
];
const TEST_ITEMS: &[&str] = &[
    "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert!(true); }\n}",
    "#[cfg(test)]\nmod tests;",
    "/// Why.\n#[cfg(all(test, unix))]\nuse std::rc::{Rc, Weak};",
    "#[test]\nfn b() { let c = \"}\"; }",
    "#[cfg(test)] impl A { fn d() {} }",
    "proptest! {\n    #[test]\n    fn e(x in 0..9) {}\n}",
    "#[tokio::test]\n#[ignore]\nasync fn f() {}",
    "#[cfg(test)]\nconst G: [u8; { 1 }] = [1];",
];

/// A file of code and tests in some order, and each of both alone.
fn file(of: Vec<(bool, usize)>) -> (String, Vec<&'static str>, Vec<&'static str>) {
    let (mut text, mut code, mut tests) = (String::new(), Vec::new(), Vec::new());
    for (is_test, at) in of {
        let item = if is_test {
            TEST_ITEMS[at % TEST_ITEMS.len()]
        } else {
            CODE_ITEMS[at % CODE_ITEMS.len()]
        };
        if is_test {
            tests.push(item)
        } else {
            code.push(item)
        }
        text.push_str(item);
        text.push_str("\n\n");
    }
    (text, code, tests)
}

/// The items of a composed file: its code in order, its tests sorted.
fn parts(text: &str) -> (Vec<String>, Vec<String>) {
    let read = read(text).unwrap();
    let of = |is_test: bool| {
        let items =
            read.items.iter().filter(move |it| (it.item_use != ItemUse::Product) == is_test);
        items.map(|item| text[item.start..item.end].to_owned()).collect::<Vec<_>>()
    };
    let mut tests = of(true);
    tests.sort();
    (of(false), tests)
}

proptest! {
    #[test]
    fn a_composed_file_has_the_code_of_one_side_and_the_tests_of_the_other(
        one in prop::collection::vec((any::<bool>(), 0_usize..20), 0..12),
        other in prop::collection::vec((any::<bool>(), 0_usize..20), 0..12),
    ) {
        let ((one, ..), (other, ..)) = (file(one), file(other));
        prop_assert_eq!(composed(&one, &one).unwrap(), one.clone());
        let both = composed(&one, &other).unwrap();
        let ((code, _), (_, tests)) = (parts(&one), parts(&other));
        prop_assert_eq!(parts(&both), (code, tests));
        let comments = |text: &str| text.matches("// A comment. }").count();
        prop_assert_eq!(comments(&both), comments(&one));
        // Taking the tests of the code's own side again gives that side's items.
        prop_assert_eq!(parts(&composed(&both, &one).unwrap()), parts(&one));
    }

    #[test]
    fn no_text_makes_the_reader_fail(text in "[#\\[\\]{}()!;:'\"/*a-z \n<>,=r]{0,60}") {
        let _ = share(&text);
        let _ = composed(&text, BASE);
        let _ = composed(BASE, &text);
        let _ = bodies(&text);
    }
}

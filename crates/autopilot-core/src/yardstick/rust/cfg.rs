//! Which attributes leave an item to tests.

use super::lexer::{RustToken, TokenKind};

/// What an item is to tests, by its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ItemUse {
    Product,
    /// It is compiled for tests only.
    TestOnly,
    /// It is a test that a runner calls.
    TestFunction,
}

/// The attributes of a test, by the last word of their path.
const TEST_ATTRIBUTES: &[&str] = &[
    "test",
    "bench",
    "rstest",
    "test_case",
    "quickcheck",
    "proptest",
    "wasm_bindgen_test",
    "parameterized",
    "test_matrix",
    "gtest",
];

/// What one attribute says; `inside` are the tokens between its brackets.
pub(super) fn attribute_use(text: &str, inside: &[RustToken]) -> ItemUse {
    let word = |token: &RustToken| &text[token.start..token.end];
    let path_end = inside.iter().position(|token| match token.kind {
        TokenKind::Sign(sign) => sign != ':',
        TokenKind::Word => false,
        TokenKind::Literal | TokenKind::Lifetime | TokenKind::OuterDoc | TokenKind::InnerDoc => {
            true
        }
    });
    let (path, arguments) = inside.split_at(path_end.unwrap_or(inside.len()));
    match path.last().map(word) {
        Some("cfg") if path.len() == 1 => {
            let condition = arguments.get(1..arguments.len().saturating_sub(1)).unwrap_or_default();
            if needs_test(text, condition) { ItemUse::TestOnly } else { ItemUse::Product }
        }
        Some(last) if TEST_ATTRIBUTES.contains(&last) => ItemUse::TestFunction,
        Some(_) | None => ItemUse::Product,
    }
}

/// Whether a condition of `cfg` holds in tests only.
fn needs_test(text: &str, condition: &[RustToken]) -> bool {
    let word = |token: &RustToken| &text[token.start..token.end];
    let Some((first, rest)) = condition.split_first() else { return false };
    let inside = rest.get(1..rest.len().saturating_sub(1)).unwrap_or_default();
    let parts = || arguments(inside).filter(|part| !part.is_empty());
    match (word(first), rest.is_empty()) {
        ("test", true) => true,
        ("all", false) => parts().any(|part| needs_test(text, part)),
        ("any", false) => parts().count() > 0 && parts().all(|part| needs_test(text, part)),
        _ => false,
    }
}

/// The arguments between commas outside of brackets.
fn arguments(tokens: &[RustToken]) -> impl Iterator<Item = &[RustToken]> {
    let mut depth = 0_usize;
    tokens.split(move |token| {
        match token.kind {
            TokenKind::Sign('(') => depth += 1,
            TokenKind::Sign(')') => depth = depth.saturating_sub(1),
            TokenKind::Sign(_)
            | TokenKind::Word
            | TokenKind::Literal
            | TokenKind::Lifetime
            | TokenKind::OuterDoc
            | TokenKind::InnerDoc => {}
        }
        depth == 0 && token.kind == TokenKind::Sign(',')
    })
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::*;

    #[test]
    fn only_what_is_never_compiled_without_tests_is_left_to_them() {
        for (text, wanted) in [
            ("cfg(test)", ItemUse::TestOnly),
            ("cfg(all(test, unix))", ItemUse::TestOnly),
            ("cfg(all(unix, any(test), not(windows),))", ItemUse::TestOnly),
            ("cfg(any(test, feature = \"x\"))", ItemUse::Product),
            ("cfg(not(test))", ItemUse::Product),
            ("cfg(feature = \"test\")", ItemUse::Product),
            ("cfg(any())", ItemUse::Product),
            ("cfg_attr(test, derive(Debug))", ItemUse::Product),
            ("test", ItemUse::TestFunction),
            ("tokio::test(flavor = \"multi_thread\")", ItemUse::TestFunction),
            ("test_case(1, 2; \"small\")", ItemUse::TestFunction),
            ("derive(test)", ItemUse::Product),
            ("doc = \"test\"", ItemUse::Product),
            ("allow(dead_code)", ItemUse::Product),
        ] {
            assert_eq!(attribute_use(text, &tokens(text).unwrap()), wanted, "{text}");
        }
    }
}

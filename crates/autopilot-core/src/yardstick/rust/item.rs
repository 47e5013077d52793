//! The items of a Rust file, with those that are left to tests.

use super::cfg::{ItemUse, attribute_use};
use super::lexer::{RustToken, TokenKind, tokens};

/// An item with its attributes and documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RustItem {
    /// The item's kind and name, as in `fn works`; of others, all before their body.
    pub key: String,
    pub start: usize,
    pub end: usize,
    pub item_use: ItemUse,
    /// The bytes between the braces of its body.
    pub body: Option<(usize, usize)>,
    /// The items in the body of a module, an implementation or a trait.
    pub children: Vec<RustItem>,
    /// A macro whose text holds tests, so that nobody can tell what it makes of them.
    pub is_opaque: bool,
}

/// The items of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RustFile {
    pub items: Vec<RustItem>,
    /// The file says that it is compiled for tests only.
    pub is_test_only: bool,
}

/// The macros around plain tests.
const TEST_MACROS: &[&str] = &["proptest", "quickcheck"];
/// Modules deeper than this are not read.
const DEPTH_MAX: usize = 64;

/// Reads the items of a file; none if its text is not that of a whole Rust file.
pub(super) fn read(text: &str) -> Option<RustFile> {
    let tokens = tokens(text)?;
    let closing = closing(&tokens)?;
    let mut reader = ItemReader { text, tokens: &tokens, closing: &closing, is_test_only: false };
    let items = reader.items(0, tokens.len(), 0)?;
    Some(RustFile { items, is_test_only: reader.is_test_only })
}

/// Returns, for each opening bracket, the place of the one that closes it; none if they do not match.
fn closing(tokens: &[RustToken]) -> Option<Vec<usize>> {
    let mut closing = vec![0; tokens.len()];
    let mut open: Vec<(usize, char)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let TokenKind::Sign(sign) = token.kind else { continue };
        match sign {
            '(' => open.push((at, ')')),
            '[' => open.push((at, ']')),
            '{' => open.push((at, '}')),
            ')' | ']' | '}' => {
                let (start, wanted) = open.pop()?;
                if wanted != sign {
                    return None;
                }
                closing[start] = at;
            }
            _ => {}
        }
    }
    open.is_empty().then_some(closing)
}

struct ItemReader<'a> {
    text: &'a str,
    tokens: &'a [RustToken],
    closing: &'a [usize],
    is_test_only: bool,
}

impl ItemReader<'_> {
    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    fn is_sign(&self, at: usize, sign: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Sign(sign))
    }

    /// The items between two tokens.
    fn items(&mut self, start: usize, end: usize, depth: usize) -> Option<Vec<RustItem>> {
        let mut items = Vec::new();
        let mut at = start;
        while at < end {
            let is_inner_attribute = self.is_sign(at, '#') && self.is_sign(at + 1, '!');
            if is_inner_attribute && self.is_sign(at + 2, '[') {
                let close = self.closing[at + 2];
                let inside = &self.tokens[at + 3..close];
                self.is_test_only |=
                    depth == 0 && attribute_use(self.text, inside) == ItemUse::TestOnly;
                at = close + 1;
            } else if self.tokens[at].kind == TokenKind::InnerDoc || self.is_sign(at, ';') {
                at += 1;
            } else {
                let (item, next) = self.item(at, end, depth)?;
                items.push(item);
                at = next;
            }
        }
        Some(items)
    }

    fn item(&mut self, start: usize, end: usize, depth: usize) -> Option<(RustItem, usize)> {
        let mut item_use = ItemUse::Product;
        let mut at = start;
        loop {
            if at < end && self.tokens[at].kind == TokenKind::OuterDoc {
                at += 1;
            } else if self.is_sign(at, '#') && self.is_sign(at + 1, '[') {
                let close = self.closing[at + 1];
                item_use = item_use.max(attribute_use(self.text, &self.tokens[at + 2..close]));
                at = close + 1;
            } else {
                break;
            }
        }
        let head = self.after_visibility(at);
        let is_word = head < end && self.tokens[head].kind == TokenKind::Word;
        if !is_word && !self.is_sign(head, ':') {
            return None;
        }
        let kind = self.kind(head);
        let (last, open) = self.item_end(head, end, kind)?;
        let body = open.map(|open| (self.tokens[open].end, self.tokens[self.closing[open]].start));
        let mut item = RustItem {
            key: self.key(head, open.unwrap_or(last), kind),
            start: self.tokens[start].start,
            end: self.tokens[last].end,
            item_use,
            body,
            children: Vec::new(),
            is_opaque: false,
        };
        match (kind, open) {
            (ItemKind::Holder, Some(open)) if depth < DEPTH_MAX => {
                let children = self.items(open + 1, self.closing[open], depth + 1);
                let is_test = item_use != ItemUse::Product;
                item.children = if is_test { children.unwrap_or_default() } else { children? };
            }
            (ItemKind::Macro, _) if item_use == ItemUse::Product => {
                let holds_tests = self.holds_tests(head, last);
                let is_known = TEST_MACROS.contains(&self.macro_name(head));
                item.is_opaque = holds_tests && !is_known;
                if holds_tests && is_known {
                    item.item_use = ItemUse::TestOnly;
                }
            }
            (ItemKind::Holder | ItemKind::Macro | ItemKind::Statement | ItemKind::Plain, _) => {}
        }
        Some((item, last + 1))
    }

    fn after_visibility(&self, at: usize) -> usize {
        match (self.word(at) == "pub", self.is_sign(at + 1, '(')) {
            (true, true) => self.closing[at + 1] + 1,
            (true, false) => at + 1,
            (false, _) => at,
        }
    }

    fn kind(&self, head: usize) -> ItemKind {
        let next = self.word(head + 1);
        match self.word(head) {
            "const" if ["fn", "unsafe", "async", "extern"].contains(&next) => ItemKind::Plain,
            "use" | "const" | "static" | "type" => ItemKind::Statement,
            "extern" if next == "crate" => ItemKind::Statement,
            "mod" | "impl" | "trait" => ItemKind::Holder,
            "unsafe" | "auto" | "default" if ["impl", "trait", "mod"].contains(&next) => {
                ItemKind::Holder
            }
            _ if self.macro_sign(head).is_some() => ItemKind::Macro,
            _ => ItemKind::Plain,
        }
    }

    /// The place of the `!` of a macro that is called here, by a name or a path.
    fn macro_sign(&self, head: usize) -> Option<usize> {
        let mut at = head;
        while self.tokens.get(at)?.kind == TokenKind::Word || self.is_sign(at, ':') {
            at += 1;
            if self.is_sign(at, '!') {
                return Some(at);
            }
            if self.tokens.get(at)?.kind == TokenKind::Word && !self.is_sign(at - 1, ':') {
                return None;
            }
        }
        None
    }

    fn macro_name(&self, head: usize) -> &str {
        self.macro_sign(head).map_or("", |sign| self.word(sign - 1))
    }

    /// The last token of an item, and the brace that opens its body.
    fn item_end(&self, head: usize, end: usize, kind: ItemKind) -> Option<(usize, Option<usize>)> {
        let mut at = head;
        while at < end {
            match self.tokens[at].kind {
                TokenKind::Sign(';') => return Some((at, None)),
                TokenKind::Sign('{') => {
                    let is_argument = self.is_sign(at - 1, '<');
                    if kind != ItemKind::Statement && !is_argument {
                        return Some((self.closing[at], Some(at)));
                    }
                    at = self.closing[at];
                }
                TokenKind::Sign('(' | '[') => at = self.closing[at],
                TokenKind::Sign(_)
                | TokenKind::Word
                | TokenKind::Literal
                | TokenKind::Lifetime
                | TokenKind::OuterDoc
                | TokenKind::InnerDoc => {}
            }
            at += 1;
        }
        None
    }

    fn key(&self, head: usize, stop: usize, kind: ItemKind) -> String {
        let words = |from: usize, to: usize| {
            (from..to).map(|at| self.word(at)).collect::<Vec<_>>().join(" ")
        };
        let named = ["fn", "mod", "struct", "enum", "trait", "union", "macro_rules"];
        let name = (head..stop).find(|at| named.contains(&self.word(*at)));
        match (kind, name) {
            (ItemKind::Statement, _) | (_, None) => words(head, stop),
            (ItemKind::Holder, Some(_)) if self.word(head) == "impl" => words(head, stop),
            (ItemKind::Macro, Some(at)) => words(at, (at + 3).min(stop)),
            (ItemKind::Holder | ItemKind::Plain, Some(at)) => words(at, (at + 2).min(stop)),
        }
    }

    fn holds_tests(&self, head: usize, last: usize) -> bool {
        (head..last).any(|at| {
            let is_attribute = self.is_sign(at, '#') && self.is_sign(at + 1, '[');
            is_attribute && {
                let inside = &self.tokens[at + 2..self.closing[at + 1]];
                attribute_use(self.text, inside) != ItemUse::Product
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    /// It ends with a semicolon, whatever braces it has.
    Statement,
    /// A body of further items.
    Holder,
    Macro,
    Plain,
}

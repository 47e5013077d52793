//! The tokens of Rust's text, as far as items are told apart by them: strings, characters, lifetimes
//! and nested comments hide what looks like brackets and attributes.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    /// A string, character or number.
    Literal,
    Lifetime,
    /// One sign; brackets are signs too.
    Sign(char),
    /// Documentation of what follows.
    OuterDoc,
    /// Documentation of what it stands in.
    InnerDoc,
}

/// A token and its bytes in the text. Spaces and plain comments are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RustToken {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

/// Returns the tokens of a text; none if a string or comment in it has no end.
pub(super) fn tokens(text: &str) -> Option<Vec<RustToken>> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    if text.starts_with("#!") && !text[2..].trim_start().starts_with('[') {
        lexer.at = line_end(text, 0);
    }
    while lexer.at < text.len() {
        lexer.step()?;
    }
    Some(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<RustToken>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        self.tokens.push(RustToken { kind, start: self.at, end });
        self.at = end;
    }

    fn step(&mut self) -> Option<()> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        if first.is_whitespace() || first == '\u{feff}' {
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.line_comment();
        } else if rest.starts_with("/*") {
            self.block_comment()?;
        } else if let Some(end) = raw_string_end(self.text, self.at)? {
            self.push(TokenKind::Literal, end);
        } else if let Some(open) = quote_after_prefix(rest, '"') {
            let end = quoted_end(self.text, self.at + open + 1, '"')?;
            self.push(TokenKind::Literal, end);
        } else if rest.starts_with("b'") {
            let end = quoted_end(self.text, self.at + 2, '\'')?;
            self.push(TokenKind::Literal, end);
        } else if first == '\'' {
            self.quote()?;
        } else if is_word_start(first) {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            self.push(TokenKind::Word, word_end(self.text, self.at + raw));
        } else if first.is_ascii_digit() {
            self.push(TokenKind::Literal, number_end(self.text, self.at));
        } else {
            self.push(TokenKind::Sign(first), self.at + first.len_utf8());
        }
        Some(())
    }

    fn line_comment(&mut self) {
        let end = line_end(self.text, self.at);
        let rest = self.rest();
        if rest.starts_with("///") && !rest.starts_with("////") {
            self.push(TokenKind::OuterDoc, end);
        } else if rest.starts_with("//!") {
            self.push(TokenKind::InnerDoc, end);
        } else {
            self.at = end;
        }
    }

    fn block_comment(&mut self) -> Option<()> {
        let (rest, mut depth, mut end) = (self.rest(), 0_usize, 0);
        loop {
            let here = &rest[end..];
            if here.starts_with("/*") {
                (depth, end) = (depth + 1, end + 2);
            } else if here.starts_with("*/") {
                (depth, end) = (depth - 1, end + 2);
            } else {
                end += here.chars().next()?.len_utf8();
            }
            if depth == 0 {
                break;
            }
        }
        let is_plain = rest.starts_with("/***") || rest.starts_with("/**/");
        let end = self.at + end;
        if rest.starts_with("/*!") {
            self.push(TokenKind::InnerDoc, end);
        } else if rest.starts_with("/**") && !is_plain {
            self.push(TokenKind::OuterDoc, end);
        } else {
            self.at = end;
        }
        Some(())
    }

    /// A character or a lifetime: `'a'` is a character, `'a` and `'static` are none.
    fn quote(&mut self) -> Option<()> {
        let mut chars = self.rest().chars().skip(1);
        let first = chars.next()?;
        let is_lifetime = is_word_start(first) && chars.next() != Some('\'');
        if is_lifetime {
            self.push(TokenKind::Lifetime, word_end(self.text, self.at + 1));
        } else {
            let end = quoted_end(self.text, self.at + 1, '\'')?;
            self.push(TokenKind::Literal, end);
        }
        Some(())
    }
}

/// The place of the quote of a string that may have a prefix: `"`, `b"`, `c"`.
fn quote_after_prefix(rest: &str, quote: char) -> Option<usize> {
    let prefix = usize::from(rest.starts_with(['b', 'c']));
    rest[prefix..].starts_with(quote).then_some(prefix)
}

/// The end of a raw string that begins here, if one does; the outer none if it has no end.
fn raw_string_end(text: &str, at: usize) -> Option<Option<usize>> {
    let rest = &text[at..];
    let Some(after) = ["br", "cr", "r"].iter().find_map(|prefix| rest.strip_prefix(prefix)) else {
        return Some(None);
    };
    let marks = after.len() - after.trim_start_matches('#').len();
    let Some(inside) = after[marks..].strip_prefix('"') else { return Some(None) };
    let closing = format!("\"{}", "#".repeat(marks));
    let start = text.len() - inside.len();
    inside.find(&closing).map(|found| Some(start + found + closing.len()))
}

fn quoted_end(text: &str, inside: usize, quote: char) -> Option<usize> {
    let mut chars = text[inside..].char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return Some(inside + at + 1);
        }
    }
    None
}

fn is_word_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn word_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    at + rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

fn number_end(text: &str, at: usize) -> usize {
    let end = word_end(text, at);
    let is_fraction = text[end..]
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_fraction { word_end(text, end + 1) } else { end }
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let all = tokens(text).unwrap();
        all.iter().map(|token| &text[token.start..token.end]).collect::<Vec<_>>().join("·")
    }

    #[test]
    fn what_hides_brackets_is_one_token() {
        for (text, wanted) in [
            ("a { b }", "a·{·b·}"),
            (r#"f("{ \" }", '{')"#, r#"f·(·"{ \" }"·,·'{'·)"#),
            ("r#\"} \" }\"# x", "r#\"} \" }\"#·x"),
            ("br##\"\"#\"## x", "br##\"\"#\"##·x"),
            ("r#type r", "r#type·r"),
            ("&'a str '\\'' b'\\'' '字' '_", "&·'a·str·'\\''·b'\\''·'字'·'_"),
            ("/* { /* } */ { */ x // }\ny", "x·y"),
            ("/// {\n//// }\nx", "/// {·x"),
            ("1..2 1.5e3 0x_ff x.0", "1·.·.·2·1.5e3·0x_ff·x·.·0"),
            ("#!/usr/bin/env run\nx", "x"),
            ("#![a]", "#·!·[·a·]"),
            ("c\"}\" b\"}\" cab", "c\"}\"·b\"}\"·cab"),
        ] {
            assert_eq!(shown(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        for text in ["\"open", "/* /* */", "r#\"open\"", "'\\", "b'"] {
            assert_eq!(tokens(text), None, "{text}");
        }
    }
}

//! Redaction: secrets leave neither in a log nor in a prompt, also when cut by a read.
//!
//! Three kinds of text are hidden: exact values (raw, JSON-escaped, percent-encoded, hexadecimal,
//! base64 at every alignment), the shapes of well-known keys, and matches of the configured
//! patterns. A pattern sees at most one line. Inside JSON only the values are redacted, never the
//! text: a pattern knows nothing of quotes and braces.

pub(crate) mod form;
mod value;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use serde_json::Value;

use form::forms_of;

pub use form::SecretForm;
pub use value::{
    is_secret_name, is_secret_setting, is_secret_value, keys_of_url, secrets_of, secrets_of_url,
    without_secrets,
};

/// The text that stands in place of a secret.
pub const REPLACEMENT: &str = "[redacted]";

/// The shortest value that is taken for a secret; shorter ones are words.
pub const SECRET_BYTES_MIN: usize = 6;

/// How much of an unfinished line is held back, in which a match may still be growing.
pub const WINDOW_BYTES_MAX: usize = 8 * 1024;

/// The mark where a text was cut; a secret that was cut with it is no longer whole.
const CUT_MARK: &[u8] = "… [".as_bytes();

/// The first and the last line of a private key, as far as they are fixed.
const KEY_BEGIN: &[u8] = b"-----BEGIN ";
const KEY_END: &[u8] = b"-----END ";

/// The shortest line of a many-line secret (a key in PEM form) that is a secret of its own.
const SECRET_LINE_BYTES_MIN: usize = 16;

/// The reason why a redactor could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// A configured pattern is not a regular expression.
    #[error("the redaction pattern `{pattern}` is not a valid regular expression")]
    Pattern { pattern: String, source: regex::Error },
    /// The values are too many or too long to search for.
    #[error("cannot prepare the search for {count} secret values")]
    Secrets { count: usize, source: aho_corasick::BuildError },
}

/// The secrets and patterns to hide.
#[derive(Debug, Clone)]
pub struct Redactor {
    secrets: Option<AhoCorasick>,
    patterns: Vec<Regex>,
    /// The shapes of well-known keys, as one expression.
    shapes: Option<Regex>,
    window: usize,
    /// The secrets that hold a line end; only they can be cut where a line ends.
    many_line: Vec<Vec<u8>>,
    /// Every form of every secret, to recognise the beginning of one that was cut.
    forms: Vec<Vec<u8>>,
}

impl Redactor {
    /// Makes a redactor of regular expressions and exact values.
    pub fn new<P, S>(
        patterns: impl IntoIterator<Item = P>,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Redactor, RedactError>
    where
        P: AsRef<str>,
        S: AsRef<[u8]>,
    {
        let patterns = patterns
            .into_iter()
            .map(|pattern| {
                let pattern = pattern.as_ref();
                Regex::new(pattern)
                    .map_err(|source| RedactError::Pattern { pattern: pattern.into(), source })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut forms = BTreeSet::new();
        for secret in secrets {
            forms.extend(forms_of(secret.as_ref()).into_iter().map(|(_, form)| form));
        }
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        let many_line = forms.iter().filter(|form| form.contains(&b'\n')).cloned().collect();
        let secrets = (!forms.is_empty())
            .then(|| AhoCorasick::new(&forms))
            .transpose()
            .map_err(|source| RedactError::Secrets { count: forms.len(), source })?;
        let (window, forms) = (WINDOW_BYTES_MAX.max(longest), forms.into_iter().collect());
        Ok(Redactor { secrets, patterns, shapes: None, window, many_line, forms })
    }

    /// Returns the redactor that hides texts of this shape too. Of a URL, only the password.
    pub fn hiding_shapes(self, shapes: &str) -> Result<Redactor, RedactError> {
        let shapes = Regex::new(shapes)
            .map_err(|source| RedactError::Pattern { pattern: shapes.into(), source })?;
        Ok(Redactor { shapes: Some(shapes), ..self })
    }

    /// Returns a redactor that hides nothing.
    pub fn none() -> Redactor {
        let (patterns, many_line, forms) = (Vec::new(), Vec::new(), Vec::new());
        let (secrets, shapes, window) = (None, None, WINDOW_BYTES_MAX);
        Redactor { secrets, patterns, shapes, window, many_line, forms }
    }

    /// Returns the text with every secret replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let bytes = text.as_bytes();
        let mut found = self.found(bytes);
        found.extend(self.cut_short(bytes));
        let ranges = merged(found);
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = Vec::with_capacity(text.len());
        replace(bytes, &ranges, &mut clean);
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// Redacts every string in a JSON value; names of members and the structure stay.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.redact_json(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Begins the redaction of bytes that arrive in pieces.
    pub fn stream(&self) -> RedactedStream<'_> {
        RedactedStream { redactor: self, pending: Vec::new() }
    }

    fn hides_nothing(&self) -> bool {
        self.secrets.is_none() && self.patterns.is_empty() && self.shapes.is_none()
    }

    /// Returns the ranges that must not be shown, in order and without overlap.
    fn ranges(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        merged(self.found(bytes))
    }

    fn found(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if let Some(secrets) = self.secrets.as_ref().filter(|secrets| secrets.is_match(bytes)) {
            found.extend(secrets.find_overlapping_iter(bytes).map(|hit| hit.range()));
        }
        for pattern in &self.patterns {
            found.extend(lines(bytes).flat_map(|line| {
                let hits = pattern.find_iter(&bytes[line.clone()]).map(|hit| hit.range());
                hits.map(move |hit| line.start + hit.start..line.start + hit.end)
            }));
        }
        if let Some(shapes) = &self.shapes {
            found.extend(shapes.find_iter(bytes).map(|hit| secret_part(bytes, hit.range())));
        }
        found
    }

    /// Returns the beginnings of secrets right before a mark that says the text was cut there.
    fn cut_short(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let beginning = |end: usize| {
            let head = &bytes[..end];
            let longest = self.forms.iter().filter_map(|form| {
                let lengths = (SECRET_BYTES_MIN..form.len()).rev();
                lengths.into_iter().find(|length| head.ends_with(&form[..*length]))
            });
            longest.max().map(|length| end - length..end)
        };
        memchr::memmem::find_iter(bytes, CUT_MARK).filter_map(beginning).collect()
    }
}

/// Returns the part of a shape that is the secret: of `://user:password@h` the password.
fn secret_part(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let Some(rest) = bytes[range.clone()].strip_prefix(b"://") else { return range };
    let start = memchr::memchr(b':', rest).map_or(0, |at| at + 1);
    let end = memchr::memrchr(b'@', rest).unwrap_or(rest.len());
    let from = range.start + "://".len();
    from + start..from + end
}

fn merged(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.retain(|range| !range.is_empty());
    found.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in found {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The redaction of bytes that arrive in pieces. The result does not depend on where they were cut.
#[derive(Debug)]
pub struct RedactedStream<'a> {
    redactor: &'a Redactor,
    pending: Vec<u8>,
}

impl RedactedStream<'_> {
    /// Takes a piece and appends to `clean` the bytes that are certain by now.
    pub fn push(&mut self, piece: &[u8], clean: &mut Vec<u8>) {
        if self.redactor.hides_nothing() {
            clean.extend_from_slice(piece);
            return;
        }
        self.pending.extend_from_slice(piece);
        let mut cut = self.certain();
        let ranges = self.redactor.ranges(&self.pending);
        // A match over the border is kept whole for the next time.
        if let Some(range) = ranges.iter().find(|range| range.start < cut && cut < range.end) {
            cut = range.start;
        }
        let before = ranges.partition_point(|range| range.end <= cut);
        replace(&self.pending[..cut], &ranges[..before], clean);
        self.pending.drain(..cut);
    }

    /// Ends the input and appends the bytes that were held back.
    pub fn finish(&mut self, clean: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.pending);
        replace(&rest, &self.redactor.ranges(&rest), clean);
    }

    /// Returns the end of the bytes in which no match can begin that later bytes would complete.
    fn certain(&self) -> usize {
        let line_start = memchr::memrchr(b'\n', &self.pending).map_or(0, |at| at + 1);
        let by_window = self.pending.len().saturating_sub(self.redactor.window);
        if by_window > line_start {
            return by_window;
        }
        let unfinished = |secret: &Vec<u8>| {
            let longest = secret.len().saturating_sub(1).min(line_start);
            (1..=longest)
                .rev()
                .find(|length| self.pending[..line_start].ends_with(&secret[..*length]))
        };
        let held = self.redactor.many_line.iter().filter_map(unfinished).max().unwrap_or(0);
        (line_start - held).min(self.open_key(line_start).unwrap_or(line_start))
    }

    /// Returns the beginning of a private key whose end has not come yet.
    fn open_key(&self, line_start: usize) -> Option<usize> {
        self.redactor.shapes.as_ref()?;
        let begin = memchr::memmem::rfind(&self.pending[..line_start], KEY_BEGIN)?;
        let is_open = memchr::memmem::find(&self.pending[begin..line_start], KEY_END).is_none();
        let is_near = self.pending.len() - begin <= self.redactor.window;
        (is_open && is_near).then_some(begin)
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= bytes.len() {
            return None;
        }
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at);
        let line = start..end;
        start = end + 1;
        Some(line)
    })
}

fn replace(bytes: &[u8], ranges: &[Range<usize>], clean: &mut Vec<u8>) {
    let mut shown = 0;
    for range in ranges {
        clean.extend_from_slice(&bytes[shown..range.start]);
        clean.extend_from_slice(REPLACEMENT.as_bytes());
        shown = range.end;
    }
    clean.extend_from_slice(&bytes[shown..]);
}

#[cfg(test)]
mod tests;

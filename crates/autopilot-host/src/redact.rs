//! Redaction: secrets leave neither in a log nor in a prompt, also when cut by a read.
//!
//! Two kinds of text are hidden: exact values (raw, JSON-escaped, percent-encoded, base64 at every
//! alignment) and matches of the configured patterns. A pattern sees at most one line. Inside JSON
//! only the values are redacted, never the text: a pattern knows nothing of quotes and braces.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use serde_json::Value;

use crate::escape;

/// The text that stands in place of a secret.
pub const REPLACEMENT: &str = "[redacted]";

/// The shortest value that is taken for a secret; shorter ones are words.
pub const SECRET_BYTES_MIN: usize = 6;

/// How much of an unfinished line is held back, in which a match may still be growing.
pub const WINDOW_BYTES_MAX: usize = 8 * 1024;

/// The shortest value with letters and digits that is a secret whatever its name.
const UNNAMED_BYTES_MIN: usize = 16;

/// The mark where a text was cut; a secret that was cut with it is no longer whole.
const CUT_MARK: &[u8] = "… [".as_bytes();

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
            all_forms(secret.as_ref(), &mut forms);
        }
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        let many_line = forms.iter().filter(|form| form.contains(&b'\n')).cloned().collect();
        let secrets = (!forms.is_empty())
            .then(|| AhoCorasick::new(&forms))
            .transpose()
            .map_err(|source| RedactError::Secrets { count: forms.len(), source })?;
        let (window, forms) = (WINDOW_BYTES_MAX.max(longest), forms.into_iter().collect());
        Ok(Redactor { secrets, patterns, window, many_line, forms })
    }

    /// Returns a redactor that hides nothing.
    pub fn none() -> Redactor {
        let (patterns, many_line, forms) = (Vec::new(), Vec::new(), Vec::new());
        Redactor { secrets: None, patterns, window: WINDOW_BYTES_MAX, many_line, forms }
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
        self.secrets.is_none() && self.patterns.is_empty()
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
        line_start - held
    }
}

/// Returns the values of environment variables whose name says that they are secret.
pub fn secrets_of<'a, N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Vec<V>
where
    N: AsRef<str>,
    V: AsRef<[u8]> + 'a,
{
    variables
        .into_iter()
        .filter(|(name, value)| {
            is_secret_name(name.as_ref()) && value.as_ref().len() >= SECRET_BYTES_MIN
        })
        .map(|(_, value)| value)
        .collect()
}

/// Returns whether a variable of that name is likely to hold a secret; `GIT_AUTHOR_NAME` is not.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 10] = [
        "AUTH",
        "AUTHORIZATION",
        "KEY",
        "KEYS",
        "PASS",
        "PASSPHRASE",
        "PAT",
        "PWD",
        "COOKIE",
        "DSN",
    ];
    const ENDINGS: [&str; 9] = [
        "KEY",
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "CREDENTIALS",
    ];
    // These words name a place, and `PWD` alone the working directory.
    const PLACES: [&str; 6] = ["SOCK", "FILE", "PATH", "DIR", "HOME", "ID"];
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).filter(|word| !word.is_empty()).collect();
    if matches!(upper.as_str(), "PWD" | "OLDPWD") {
        return false;
    }
    !words.last().is_some_and(|last| PLACES.contains(last))
        && words
            .iter()
            .any(|word| WORDS.contains(word) || ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// Returns whether a value assigned to a name, as in `.env`, is likely a secret: its name says so,
/// or it looks like a key. `APPROVE` and `localhost` are words.
pub fn is_secret_value(name: &str, value: &str) -> bool {
    let looks_like_a_key = || {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b':';
        value.len() >= UNNAMED_BYTES_MIN
            && !value.starts_with(['/', '.', '~'])
            && value.bytes().all(plain)
            && value.bytes().any(|byte| byte.is_ascii_digit())
            && value.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    value.len() >= SECRET_BYTES_MIN && (is_secret_name(name) || looks_like_a_key())
}

/// Returns the secrets in a URL, as they are written there and unescaped. A user without a password
/// is one if it looks like a token, as some services want it.
pub fn secrets_of_url(url: &str) -> Vec<String> {
    let Some((_, userinfo)) = userinfo(url) else { return Vec::new() };
    let secret = match userinfo.split_once(':') {
        Some((user, "" | "x-oauth-basic")) => user,
        // `postgres:postgres` protects nothing, and hiding it would hide the word everywhere.
        Some((user, password)) if user == password => return Vec::new(),
        Some((_, password)) => password,
        None if is_secret_value("", userinfo) => userinfo,
        None => return Vec::new(),
    };
    let mut secrets = vec![secret.to_owned()];
    secrets.extend(unescaped(secret).filter(|meant| meant != secret));
    secrets
}

/// Returns the URL without its credentials. Over SSH the user's name is part of the address and
/// stays.
pub fn without_secrets(url: &str) -> String {
    let Some((scheme, userinfo)) = userinfo(url) else { return url.to_owned() };
    let rest = &url[scheme.len() + "://".len() + userinfo.len() + "@".len()..];
    let user = userinfo.split(':').next().unwrap_or_default();
    let is_ssh = scheme.to_ascii_lowercase().contains("ssh");
    if is_ssh && !user.is_empty() {
        format!("{scheme}://{user}@{rest}")
    } else {
        format!("{scheme}://{rest}")
    }
}

/// Returns the scheme and the part before the host.
fn userinfo(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some((scheme, authority.rsplit_once('@')?.0))
}

fn unescaped(text: &str) -> Option<String> {
    let mut meant = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digit = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                meant.push(u8::try_from(high * 16 + low).ok()?);
                rest = &more[2..];
            }
            _ => {
                meant.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(meant).ok()
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

/// Adds every form in which a secret may appear.
fn all_forms(secret: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    let secret = secret.trim_ascii();
    if secret.len() < SECRET_BYTES_MIN {
        return;
    }
    forms.insert(secret.to_vec());
    if let Ok(text) = std::str::from_utf8(secret) {
        // An answer in JSON is often itself a string in a line of JSON.
        let mut json = text.to_owned();
        for _ in 0..2 {
            let quoted = serde_json::Value::from(json.as_str()).to_string();
            json = quoted[1..quoted.len() - 1].to_owned();
            forms.insert(json.as_bytes().to_vec());
        }
    }
    forms.insert(escape::percent(secret, b"0123456789ABCDEF").into_bytes());
    forms.insert(escape::percent(secret, b"0123456789abcdef").into_bytes());
    for alphabet in [BASE64, BASE64_URL] {
        for offset in 0..3 {
            forms.insert(base64_core(secret, offset, alphabet));
        }
    }
    if secret.contains(&b'\n') {
        let lines = secret.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        forms.extend(
            lines
                .filter(|line| line.len() >= SECRET_LINE_BYTES_MIN && !line.starts_with(b"-----"))
                .map(<[u8]>::to_vec),
        );
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the base64 digits that depend on the secret alone when it begins `offset` bytes after a
/// group of three.
fn base64_core(secret: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bits = (offset * 8)..((offset + secret.len()) * 8);
    let bit = |at: usize| {
        let byte = secret[at / 8 - offset];
        usize::from(byte >> (7 - at % 8) & 1)
    };
    let first = bits.start.div_ceil(6);
    let last = bits.end / 6;
    (first..last)
        .map(|digit| alphabet[(digit * 6..digit * 6 + 6).fold(0, |value, at| value << 1 | bit(at))])
        .collect()
}

#[cfg(test)]
mod tests;

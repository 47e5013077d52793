//! The search for known secrets in anything that could leave the machine: in every form, also split
//! over lines or put together from pieces of strings.
//!
//! It is exact and pure: the same bytes give the same hits, however they are cut into pieces. What
//! a hit means is for others to say. It does not find what was encrypted, compressed or computed.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::AhoCorasick;

use crate::redact::form::{SecretForm, byte_forms_of, forms_of};

/// The most hits that are listed of one text.
pub const HITS_MAX: usize = 20;

/// The fewest letters and digits of a value that is looked for in pieces.
const PIECES_BYTES_MIN: usize = 12;

/// The same for a value that is all letters or all digits.
const PLAIN_PIECES_BYTES_MIN: usize = 20;

/// How much text is searched at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A secret and where it comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// The name of the variable, key or file that holds it.
    pub name: String,
    pub value: String,
}

impl NamedSecret {
    /// A secret with its name.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> NamedSecret {
        NamedSecret { name: name.into(), value: value.into() }
    }
}

impl std::fmt::Debug for NamedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NamedSecret({})", self.name)
    }
}

/// A place where a known secret was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretHit {
    /// The line on which it begins, counted from 1.
    pub line: u64,
    /// The number of the secret; see [`SecretFinder::name`].
    pub secret: usize,
    /// How it is written there.
    pub form: SecretForm,
}

/// The search for a set of secrets.
#[derive(Debug, Clone, Default)]
pub struct SecretFinder {
    names: Vec<String>,
    whole: FormSearch,
    pieces: FormSearch,
}

/// The search for forms, and the secret that each of them stands for.
#[derive(Debug, Clone, Default)]
struct FormSearch {
    search: Option<AhoCorasick>,
    of: Vec<(usize, SecretForm)>,
    longest: usize,
}

impl FormSearch {
    fn new(
        forms: &BTreeMap<Vec<u8>, (usize, SecretForm)>,
    ) -> Result<FormSearch, aho_corasick::BuildError> {
        let search = (!forms.is_empty()).then(|| AhoCorasick::new(forms.keys())).transpose()?;
        let longest = forms.keys().map(Vec::len).max().unwrap_or(0);
        Ok(FormSearch { search, of: forms.values().copied().collect(), longest })
    }
}

impl SecretFinder {
    /// Prepares the search. Whoever makes it leaves out values that honest text is likely to hold.
    pub fn new<'a>(
        secrets: impl IntoIterator<Item = &'a NamedSecret>,
    ) -> Result<SecretFinder, aho_corasick::BuildError> {
        let mut names = Vec::new();
        let (mut whole, mut pieces) = (BTreeMap::new(), BTreeMap::new());
        for secret in secrets {
            let number = names.len();
            names.push(secret.name.clone());
            let bytes = secret.value.as_bytes();
            let forms = forms_of(bytes);
            let collapsed = forms.iter().map(|(_, form)| collapsed(form).collect());
            for form in collapsed.chain(byte_forms_of(bytes)) {
                if is_found_in_pieces(&form) {
                    pieces.entry(form).or_insert((number, SecretForm::Split));
                }
            }
            for (kind, form) in forms {
                whole.entry(form).or_insert((number, kind));
            }
        }
        Ok(SecretFinder {
            names,
            whole: FormSearch::new(&whole)?,
            pieces: FormSearch::new(&pieces)?,
        })
    }

    /// Returns the name of a secret.
    pub fn name(&self, secret: usize) -> &str {
        self.names.get(secret).map_or("", String::as_str)
    }

    /// Returns whether there is nothing to look for.
    pub fn is_idle(&self) -> bool {
        self.names.is_empty()
    }

    /// Begins a search in a text that arrives in pieces.
    pub fn search(&self) -> SecretSearch<'_> {
        SecretSearch {
            whole: SearchLane::new(&self.whole),
            pieces: SearchLane::new(&self.pieces),
            line: 1,
            hits: BTreeSet::new(),
        }
    }

    /// Returns the hits in a whole text.
    pub fn find(&self, text: &[u8]) -> Vec<SecretHit> {
        let mut search = self.search();
        search.push(text);
        search.finish()
    }
}

/// A search in a text that arrives in pieces.
#[derive(Debug)]
pub struct SecretSearch<'a> {
    whole: SearchLane<'a>,
    pieces: SearchLane<'a>,
    line: u64,
    hits: BTreeSet<SecretHit>,
}

/// The text as one of the two searches sees it: as it is, or only its letters and digits.
#[derive(Debug)]
struct SearchLane<'a> {
    forms: &'a FormSearch,
    text: Vec<u8>,
    /// The line of each byte.
    lines: Vec<u64>,
}

impl<'a> SearchLane<'a> {
    fn new(forms: &'a FormSearch) -> SearchLane<'a> {
        SearchLane { forms, text: Vec::new(), lines: Vec::new() }
    }

    fn take(&mut self, bytes: impl Iterator<Item = u8>, line: u64) {
        self.text.extend(bytes);
        self.lines.resize(self.text.len(), line);
    }

    fn is_full(&self) -> bool {
        self.text.len() >= CHUNK_BYTES + self.forms.longest
    }

    /// Searches what is there, and keeps the end, in which a match may still be growing.
    fn look(&mut self, hits: &mut BTreeSet<SecretHit>) {
        if let Some(search) = self.forms.search.as_ref().filter(|it| it.is_match(&self.text)) {
            for found in search.find_overlapping_iter(&self.text) {
                let (secret, form) = self.forms.of[found.pattern().as_usize()];
                hits.insert(SecretHit { line: self.lines[found.start()], secret, form });
            }
        }
        let done = self.text.len().saturating_sub(self.forms.longest.saturating_sub(1));
        self.text.drain(..done);
        self.lines.drain(..done);
    }
}

impl SecretSearch<'_> {
    /// Takes the next piece of the text.
    pub fn push(&mut self, piece: &[u8]) {
        if self.whole.forms.search.is_none() {
            return;
        }
        for part in piece.chunks(CHUNK_BYTES).flat_map(|part| part.split_inclusive(is_line_end)) {
            self.whole.take(part.iter().copied(), self.line);
            self.pieces.take(collapsed(part), self.line);
            if part.last().is_some_and(is_line_end) {
                self.line = self.line.saturating_add(1);
            }
            if self.whole.is_full() {
                self.look();
            }
        }
    }

    /// Ends the text and returns the first hits, one for each secret on each line.
    pub fn finish(mut self) -> Vec<SecretHit> {
        self.look();
        let mut seen = BTreeSet::new();
        self.hits.retain(|hit| seen.insert((hit.line, hit.secret)));
        self.hits.into_iter().take(HITS_MAX).collect()
    }

    fn look(&mut self) {
        self.whole.look(&mut self.hits);
        self.pieces.look(&mut self.hits);
        while self.hits.len() > HITS_MAX * 8 {
            self.hits.pop_last();
        }
    }
}

fn is_line_end(byte: &u8) -> bool {
    *byte == b'\n'
}

fn collapsed(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().copied().filter(u8::is_ascii_alphanumeric)
}

fn is_found_in_pieces(form: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| form.iter().any(class);
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    form.len() >= if is_mixed { PIECES_BYTES_MIN } else { PLAIN_PIECES_BYTES_MIN }
}

#[cfg(test)]
mod tests;

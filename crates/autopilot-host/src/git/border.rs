//! The border of the hub: every commit that is to leave it is searched for known secrets first, with
//! all of its history that the receiver does not have. This file only finds; whether a finding keeps
//! a commit in is said by the rule that the border was made with.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use super::command::{GitCommand, TRANSFER_TIMEOUT};
use super::error::GitError;
use super::hub::Hub;
use super::loose;
use super::object::Oid;
use super::tree_file::{FileDifference, SUBMODULE};
use crate::patience;
use crate::redact::SecretForm;
use crate::secret::{SecretFinder, SecretHit, SecretSearch};

/// The most leaks that are listed.
const LEAKS_MAX: usize = 100;

/// The value of a known secret in something that could leave the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLeak {
    /// The name of the secret.
    pub secret: String,
    /// How its value is written.
    pub form: SecretForm,
    /// Where it is.
    pub place: FoundPlace,
}

/// The place of a leak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundPlace {
    /// A line of a file.
    File { path: String, line: u64 },
    /// The name of a file or directory.
    FileName { path: String },
    /// A line of a file that only an earlier commit has.
    OldFile { path: String, line: u64 },
    /// The message, author or committer of a commit.
    Commit { commit: String },
    /// The name of a branch.
    Branch,
    /// A text that is not in git.
    Text { what: String },
}

/// The rule that says why something with these leaks must not leave, if it must not.
pub type BorderRule = fn(&[FoundLeak]) -> Option<String>;

/// The check of everything that is to leave the hub.
#[derive(Debug)]
pub struct Border {
    finder: SecretFinder,
    /// The user's own commit. What it holds has left the hub before there was one.
    base: Option<Oid>,
    rule: BorderRule,
    /// The secrets whose values the base holds.
    held: OnceLock<BTreeSet<usize>>,
}

impl Border {
    /// Makes a border. `base` is a commit of the user's that the work began with.
    pub fn new(finder: SecretFinder, base: Option<Oid>, rule: BorderRule) -> Border {
        Border { finder, base, rule, held: OnceLock::new() }
    }

    /// Makes a border that knows no secret.
    pub fn open() -> Border {
        Border::new(SecretFinder::default(), None, |_| None)
    }

    /// Returns the leaks in the files that differ between two trees (or commits).
    pub fn leaks_in_change(
        &self,
        hub: &Hub,
        from: &Oid,
        to: &Oid,
    ) -> Result<Vec<FoundLeak>, GitError> {
        if self.finder.is_idle() {
            return Ok(Vec::new());
        }
        let mut hits = BorderHits::default();
        let mut wanted = Vec::new();
        for FileDifference { path, new, .. } in hub.differences(from, to)? {
            let Some((mode, oid)) = new else { continue };
            let path = String::from_utf8_lossy(&path).into_owned();
            self.look_at_name(&path, &mut hits);
            if mode != SUBMODULE {
                wanted.push((oid, path));
            }
        }
        self.read(hub, wanted, &mut |SearchedObject { path, found, .. }| {
            hits.add(found, |line| FoundPlace::File { path: path.to_owned(), line });
        })?;
        self.leaks(hub, hits)
    }

    /// Lets a commit out under a branch's name, or says why not. `known` are commits that the
    /// receiver has; everything else that the commit reaches is searched.
    pub fn pass(
        &self,
        hub: &Hub,
        commit: &Oid,
        known: &[Oid],
        branch: &str,
    ) -> Result<(), GitError> {
        if self.finder.is_idle() {
            return Ok(());
        }
        let leaks = self.leaks_in_history(hub, commit, known, branch)?;
        match (self.rule)(&leaks) {
            Some(why) => Err(GitError::Withheld { branch: branch.to_owned(), why }),
            None => Ok(()),
        }
    }

    /// Lets a text out, or says why not.
    pub fn pass_text(&self, hub: &Hub, what: &str, text: &str) -> Result<(), GitError> {
        let mut hits = BorderHits::default();
        hits.add(self.finder.find(text.as_bytes()), |_| FoundPlace::Text { what: what.to_owned() });
        match (self.rule)(&self.leaks(hub, hits)?) {
            Some(why) => Err(GitError::Withheld { branch: what.to_owned(), why }),
            None => Ok(()),
        }
    }

    fn leaks_in_history(
        &self,
        hub: &Hub,
        commit: &Oid,
        known: &[Oid],
        branch: &str,
    ) -> Result<Vec<FoundLeak>, GitError> {
        let mut hits = BorderHits::default();
        hits.add(self.finder.find(branch.as_bytes()), |_| FoundPlace::Branch);
        let known = match known.iter().all(|known| hub.surely_has(known)) {
            true => known.to_vec(),
            false => super::transfer::existing(hub.git("find common history"), known)?,
        };
        let revisions = std::iter::once(format!("{commit}\n"))
            .chain(known.iter().map(|known| format!("^{known}\n")));
        let out = hub
            .git(format!("list the history of {}", commit.short()))
            .args(["rev-list", "--objects", "--stdin"])
            .stdin(revisions.collect::<String>())
            .timeout(TRANSFER_TIMEOUT)
            .ok()?;
        let mut wanted = Vec::new();
        for line in out.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let text = String::from_utf8_lossy(line);
            let (oid, path) = text.split_once(' ').unwrap_or((&text, ""));
            self.look_at_name(path, &mut hits);
            wanted.push((Oid::parse(oid)?, path.to_owned()));
        }
        let mut blobs: Vec<(Oid, String, Vec<SecretHit>)> = Vec::new();
        self.read(hub, wanted, &mut |SearchedObject { oid, kind, path, found }| match kind {
            "commit" => {
                hits.add(found, |_| FoundPlace::Commit { commit: oid.short().to_owned() });
            }
            "blob" if !found.is_empty() => blobs.push((oid.clone(), path.to_owned(), found)),
            "blob" => {}
            // The content of a tree is names.
            _ => hits.add(found, |_| FoundPlace::FileName { path: format!("{path}/…") }),
        })?;
        if !blobs.is_empty() {
            let now: BTreeSet<Oid> = tree_entries(hub, commit)?.into_iter().collect();
            for (oid, path, found) in blobs {
                let is_old = !now.contains(&oid);
                hits.add(found, |line| match is_old {
                    true => FoundPlace::OldFile { path: path.clone(), line },
                    false => FoundPlace::File { path: path.clone(), line },
                });
            }
        }
        self.leaks(hub, hits)
    }

    fn look_at_name(&self, path: &str, hits: &mut BorderHits) {
        let found = self.finder.find(path.as_bytes());
        hits.add(found, |_| FoundPlace::FileName { path: path.to_owned() });
    }

    /// Searches objects, one after the other as git prints them, and tells each.
    fn read(
        &self,
        hub: &Hub,
        wanted: Vec<(Oid, String)>,
        each: &mut dyn FnMut(SearchedObject<'_>),
    ) -> Result<(), GitError> {
        let read = self.read_loose(hub, &wanted, each);
        let wanted = wanted.get(read..).unwrap_or_default();
        if wanted.is_empty() {
            return Ok(());
        }
        let ask: String = wanted.iter().map(|(oid, _)| format!("{oid}\n")).collect();
        let mut batch = BatchReader {
            finder: &self.finder,
            wanted: wanted.iter(),
            at: BatchPart::Head(Vec::new()),
        };
        let git: GitCommand =
            hub.git("search for secrets").args(["cat-file", "--batch", "--buffer"]);
        git.stdin(ask).timeout(TRANSFER_TIMEOUT).stream(&mut |bytes| {
            batch.push(bytes, each);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Searches objects up to the first that has no file of its own, and returns how many these are.
    fn read_loose(
        &self,
        hub: &Hub,
        wanted: &[(Oid, String)],
        each: &mut dyn FnMut(SearchedObject<'_>),
    ) -> usize {
        for (count, (oid, path)) in wanted.iter().enumerate() {
            let object = loose::read_any(hub.dir(), oid).filter(|_| patience::check().is_ok());
            let Some((kind, content)) = object else { return count };
            let found = self.finder.find(&content);
            each(SearchedObject { oid, kind: kind.word(), path, found });
        }
        wanted.len()
    }

    /// Puts the hits into words, without those of values that the user's own commit holds.
    fn leaks(&self, hub: &Hub, hits: BorderHits) -> Result<Vec<FoundLeak>, GitError> {
        if hits.0.is_empty() {
            return Ok(Vec::new());
        }
        let held = self.held_by_base(hub)?;
        let mut leaks: Vec<FoundLeak> = Vec::new();
        for (secret, form, place) in hits.0.into_iter().filter(|hit| !held.contains(&hit.0)) {
            let secret = self.finder.name(secret).to_owned();
            // A secret may have several values, such as an address and the key in it.
            let is_known = |leak: &FoundLeak| leak.secret == secret && leak.place == place;
            if leaks.len() < LEAKS_MAX && !leaks.iter().any(is_known) {
                leaks.push(FoundLeak { secret, form, place });
            }
        }
        Ok(leaks)
    }

    fn held_by_base(&self, hub: &Hub) -> Result<&BTreeSet<usize>, GitError> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        let mut held = BTreeSet::new();
        if let Some(base) = &self.base {
            let entries = tree_entries(hub, base)?;
            let wanted = entries.into_iter().map(|oid| (oid, String::new())).collect();
            self.read(hub, wanted, &mut |SearchedObject { found, .. }| {
                held.extend(found.iter().map(|hit| hit.secret));
            })?;
        }
        Ok(self.held.get_or_init(|| held))
    }
}

/// An object that was searched.
struct SearchedObject<'a> {
    oid: &'a Oid,
    kind: &'a str,
    path: &'a str,
    found: Vec<SecretHit>,
}

/// Hits with their places, each place once for each secret.
#[derive(Default)]
struct BorderHits(Vec<(usize, SecretForm, FoundPlace)>);

impl BorderHits {
    fn add(&mut self, found: Vec<SecretHit>, place: impl Fn(u64) -> FoundPlace) {
        for hit in found {
            let place = place(hit.line);
            let is_known = |(secret, _, at): &(usize, SecretForm, FoundPlace)| {
                *secret == hit.secret && *at == place
            };
            if self.0.len() < LEAKS_MAX * 10 && !self.0.iter().any(is_known) {
                self.0.push((hit.secret, hit.form, place));
            }
        }
    }
}

/// Returns the files and directories of a commit or tree.
fn tree_entries(hub: &Hub, tree: &Oid) -> Result<Vec<Oid>, GitError> {
    let out = hub
        .git(format!("list the files of {}", tree.short()))
        .args(["ls-tree", "-r", "-t", "-z", "--full-tree", tree.as_str()])
        .ok()?;
    let oid = |entry: &[u8]| {
        let text = String::from_utf8_lossy(entry).into_owned();
        let mut words = text.split(['\t', ' ']).skip(1);
        match (words.next(), words.next()) {
            (Some("blob" | "tree"), Some(oid)) => Oid::parse(oid).ok(),
            (_, _) => None,
        }
    };
    Ok(out.split(|b| *b == 0).filter_map(oid).collect())
}

/// The reader of `cat-file --batch`: `<object> <type> <size>`, a line end, the content, a line end.
struct BatchReader<'a> {
    finder: &'a SecretFinder,
    wanted: std::slice::Iter<'a, (Oid, String)>,
    at: BatchPart<'a>,
}

enum BatchPart<'a> {
    Head(Vec<u8>),
    Body {
        oid: &'a Oid,
        path: &'a str,
        kind: String,
        left: usize,
        search: Box<SecretSearch<'a>>,
    },
    /// The line end after a content.
    End,
}

impl<'a> BatchReader<'a> {
    fn push(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(SearchedObject<'_>)) {
        while !bytes.is_empty() {
            match std::mem::replace(&mut self.at, BatchPart::End) {
                BatchPart::Head(mut head) => {
                    let end = memchr::memchr(b'\n', bytes);
                    head.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                    bytes = &bytes[end.map_or(bytes.len(), |end| end + 1)..];
                    self.at = if end.is_some() { self.body(&head) } else { BatchPart::Head(head) };
                }
                BatchPart::Body { oid, path, kind, left, mut search } => {
                    let count = left.min(bytes.len());
                    search.push(&bytes[..count]);
                    bytes = &bytes[count..];
                    if left > count {
                        let left = left - count;
                        self.at = BatchPart::Body { oid, path, kind, left, search };
                    } else {
                        each(SearchedObject { oid, kind: &kind, path, found: search.finish() });
                    }
                }
                BatchPart::End => {
                    bytes = &bytes[1..];
                    self.at = BatchPart::Head(Vec::new());
                }
            }
        }
    }

    /// Begins the content that a head announces. An object that is missing has none.
    fn body(&mut self, head: &[u8]) -> BatchPart<'a> {
        let head = String::from_utf8_lossy(head).into_owned();
        let mut words = head.split(' ').skip(1);
        let (kind, size) = (words.next(), words.next().and_then(|size| size.parse().ok()));
        match (self.wanted.next(), kind, size) {
            (Some((oid, path)), Some(kind), Some(left)) if left > 0 => {
                let search = Box::new(self.finder.search());
                BatchPart::Body { oid, path, kind: kind.to_owned(), left, search }
            }
            (_, Some(_), Some(_)) => BatchPart::End,
            (_, _, _) => BatchPart::Head(Vec::new()),
        }
    }
}

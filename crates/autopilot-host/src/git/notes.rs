//! Notes on commits under one ref: read anywhere, written in the hub, and published to the user's
//! repository beside the notes that others have put there.
//!
//! Invariant: a note of somebody else's is in every commit of the ref that we write. The ref is
//! moved by compare-and-swap alone, from a commit whose notes the new one holds.

use std::collections::BTreeMap;
use std::path::Path;

use super::border::Border;
use super::command::GitCommand;
use super::commit::{NewCommit, write_commit};
use super::error::{GitError, OnFile};
use super::hub::{ExpectedRef, Hub, set_ref};
use super::loose::{self, ObjectKind};
use super::object::Oid;
use super::publish::common_history;
use super::repo::UserRepo;
use super::transfer::{ObjectCheck, ObjectSource, transfer, transfer_known};
use crate::fail;

/// The ref of our notes, in the hub and in the user's repository.
pub const NOTES_REF: &str = "refs/notes/autopilot";
/// The directories above a new note, so that no directory has too many, and the most that git makes.
const FAN: usize = 1;
const FAN_MAX: usize = 4;
/// How often notes are written when the ref moves meanwhile.
const SWAPS_MAX: usize = 5;

/// Makes the text of the note on a commit out of the one that is there; none leaves it as it is.
pub type NoteText<'a> = &'a dyn Fn(&Oid, Option<&str>) -> Option<String>;

/// Notes to write.
#[derive(Clone, Copy)]
pub struct NotesRequest<'a> {
    /// The commits that get notes.
    pub commits: &'a [Oid],
    /// The text for each of them.
    pub text: NoteText<'a>,
    /// The time of the commit of notes, in seconds since 1970.
    pub now: i64,
}

/// A note in a commit of notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedBlob {
    path: String,
    /// The content of the note.
    pub blob: Oid,
}

/// Returns the note on a commit, if there is one.
pub fn read_note(git_dir: &Path, notes: &Oid, commit: &Oid) -> Result<Option<String>, GitError> {
    let found = find_notes(git_dir, notes, std::slice::from_ref(commit))?;
    found.get(commit).map(|note| read_blob(git_dir, &note.blob)).transpose()
}

/// Returns all notes, by the object that each is on.
fn list_notes(git_dir: &Path, notes: &Oid) -> Result<BTreeMap<Oid, NotedBlob>, GitError> {
    let out = GitCommand::isolated("list notes", git_dir)
        .args(["ls-tree", "-r", "-z", "--full-tree", notes.as_str()])
        .ok()?;
    let note = |entry: &[u8]| {
        let text = String::from_utf8_lossy(entry).into_owned();
        let (head, path) = text.split_once('\t')?;
        let blob = Oid::parse(head.split(' ').nth(2)?).ok()?;
        // The path of a note is the name of its object, with slashes where git put them.
        let object = Oid::parse(&path.replace('/', "")).ok()?;
        Some((object, NotedBlob { path: path.to_owned(), blob }))
    };
    Ok(out.split(|byte| *byte == 0).filter_map(note).collect())
}

/// Returns the notes on these commits. The others are not read, because there may be many.
pub fn find_notes(
    git_dir: &Path,
    notes: &Oid,
    commits: &[Oid],
) -> Result<BTreeMap<Oid, NotedBlob>, GitError> {
    let names: Vec<(&Oid, String)> = commits
        .iter()
        .flat_map(|commit| (0..=FAN_MAX).map(move |fan| (commit, fanned(commit, fan))))
        .collect();
    let ask: String = names.iter().map(|(_, path)| format!("{notes}:{path}\n")).collect();
    let out = GitCommand::isolated("look for notes", git_dir)
        .args(["cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer"])
        .stdin(ask)
        .ok()?;
    let text = String::from_utf8_lossy(&out);
    let found = names.into_iter().zip(text.lines()).filter_map(|((commit, path), line)| {
        let blob = Oid::parse(line.strip_suffix(" blob")?).ok()?;
        Some((commit.clone(), NotedBlob { path, blob }))
    });
    Ok(found.collect())
}

/// The path of a note below this many directories.
fn fanned(commit: &Oid, fan: usize) -> String {
    let (mut path, mut rest) = (String::new(), commit.as_str());
    for _ in 0..fan {
        let (dir, more) = rest.split_at(2);
        path.push_str(dir);
        path.push('/');
        rest = more;
    }
    path + rest
}

/// Returns the text of a note's blob.
pub fn read_blob(git_dir: &Path, blob: &Oid) -> Result<String, GitError> {
    let out = GitCommand::isolated("read a note", git_dir)
        .args(["cat-file", "blob", blob.as_str()])
        .ok()?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Writes notes in the hub and publishes them. Whatever is there already is not done again.
pub fn publish_notes(
    hub: &Hub,
    repo: &UserRepo,
    request: &NotesRequest<'_>,
    border: &Border,
) -> Result<(), GitError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match publish_once(hub, repo, request, border) {
            Err(GitError::RefMoved { .. }) if tries < SWAPS_MAX => {}
            done => return done,
        }
    }
}

fn publish_once(
    hub: &Hub,
    repo: &UserRepo,
    request: &NotesRequest<'_>,
    border: &Border,
) -> Result<(), GitError> {
    let refs = repo.refs("refs/")?;
    let theirs = refs.iter().find(|(name, _)| name == NOTES_REF).map(|(_, tip)| tip.clone());
    let ours = hub.resolve(NOTES_REF)?;
    // Held until the hub's ref names them.
    let unknown = theirs.as_ref().filter(|_| theirs != ours);
    let _kept = unknown.map(|tip| take_over(hub, repo, tip)).transpose()?;
    let new = written(hub, repo, (&ours, &theirs), request)?;
    let Some(new) = new else { return Ok(()) };
    let haves: Vec<Oid> = refs.into_iter().map(|(_, oid)| oid).collect();
    border.pass(hub, &new, &haves, NOTES_REF)?;
    if ours.as_ref() != Some(&new) {
        hub.set_ref(NOTES_REF, &new, ExpectedRef::of(&ours))?;
    }
    fail::point("notes.written");
    if theirs.as_ref() == Some(&new) {
        return Ok(());
    }
    let source = ObjectSource { git_dir: hub.dir(), objects: vec![] };
    let (wants, check) = (std::slice::from_ref(&new), ObjectCheck::Connected);
    let _kept = match common_history(hub, wants, &haves) {
        Some(common) => transfer_known(&source, &repo.common_dir, wants, &common, check)?,
        None => transfer(&source, &repo.common_dir, wants, &haves, check)?,
    };
    set_ref(&repo.common_dir, NOTES_REF, &new, ExpectedRef::of(&theirs))?;
    fail::point("notes.published");
    Ok(())
}

fn take_over(hub: &Hub, repo: &UserRepo, tip: &Oid) -> Result<super::transfer::KeptPack, GitError> {
    hub.import(&ObjectSource { git_dir: &repo.common_dir, objects: vec![] }, tip)
}

/// Returns the commit that holds the notes of both sides and the new ones; none if there is nothing
/// to hold.
fn written(
    hub: &Hub,
    repo: &UserRepo,
    (ours, theirs): (&Option<Oid>, &Option<Oid>),
    request: &NotesRequest<'_>,
) -> Result<Option<Oid>, GitError> {
    let (base, other) = match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours == theirs => (Some(ours), None),
        (Some(ours), Some(theirs)) if hub.is_ancestor(theirs, ours)? => (Some(ours), None),
        (Some(ours), Some(theirs)) if hub.is_ancestor(ours, theirs)? => (Some(theirs), None),
        (Some(ours), Some(theirs)) => (Some(theirs), Some(ours)),
        (ours, theirs) => (theirs.as_ref().or(ours.as_ref()), None),
    };
    let mut changes: BTreeMap<Oid, NotedBlob> = BTreeMap::new();
    if let (Some(base), Some(other)) = (base, other) {
        let known = list_notes(hub.dir(), base)?;
        changes = list_notes(hub.dir(), other)?;
        changes.retain(|commit, _| !known.contains_key(commit));
    }
    let known = base.map(|tip| find_in_hub(hub, tip, request.commits)).transpose()?;
    let known = known.unwrap_or_default();
    for commit in request.commits {
        let entry = known.get(commit).or(changes.get(commit)).cloned();
        let before = entry.as_ref().map(|note| read_in_hub(hub, &note.blob)).transpose()?;
        let text = (request.text)(commit, before.as_deref());
        if let Some(text) = text.filter(|text| Some(text) != before.as_ref()) {
            let path = entry.map_or_else(|| fanned(commit, FAN), |entry| entry.path);
            changes.insert(commit.clone(), NotedBlob { path, blob: write_blob(hub, text)? });
        }
    }
    if changes.is_empty() && other.is_none() {
        return Ok(base.cloned());
    }
    let parents: Vec<Oid> = base.into_iter().chain(other).cloned().collect();
    let new = NewCommit {
        tree: &with_entries(hub, base, changes.values())?,
        parents: &parents,
        message: "Evidence of merged commits\n",
        identity: &repo.identity,
        now: request.now,
    };
    write_commit(hub, &new).map(Some)
}

/// The same as [`find_notes`], in this process where the directories of notes can be read here.
fn find_in_hub(
    hub: &Hub,
    notes: &Oid,
    commits: &[Oid],
) -> Result<BTreeMap<Oid, NotedBlob>, GitError> {
    let tree = hub.tree_of(notes)?;
    let find = |commit: &Oid| {
        for fan in 0..=FAN_MAX {
            let path = fanned(commit, fan);
            if let Some(blob) = hub.plain_file(&tree, &path)? {
                return Some(Some((commit.clone(), NotedBlob { path, blob })));
            }
        }
        Some(None)
    };
    match commits.iter().map(find).collect::<Option<Vec<_>>>() {
        Some(found) => Ok(found.into_iter().flatten().collect()),
        None => find_notes(hub.dir(), notes, commits),
    }
}

fn read_in_hub(hub: &Hub, blob: &Oid) -> Result<String, GitError> {
    match loose::read(hub.dir(), blob, ObjectKind::Blob) {
        Some(content) => Ok(String::from_utf8_lossy(&content).into_owned()),
        None => read_blob(hub.dir(), blob),
    }
}

fn write_blob(hub: &Hub, text: String) -> Result<Oid, GitError> {
    if !fail::is_git_alone()
        && let Ok(blob) =
            loose::write(hub.dir(), ObjectKind::Blob, text.as_bytes(), hub.name_bytes() * 2)
    {
        return Ok(blob);
    }
    hub.git("keep a note").args(["hash-object", "-w", "--stdin"]).stdin(text).oid()
}

/// Returns the tree of a commit of notes with more notes, or with other ones at the same paths.
fn with_entries<'a>(
    hub: &Hub,
    base: Option<&Oid>,
    entries: impl Iterator<Item = &'a NotedBlob> + Clone,
) -> Result<Oid, GitError> {
    let tree = base.map(|base| hub.tree_of(base)).transpose()?;
    let files = entries.clone().map(|note| (note.path.as_str(), &note.blob));
    if let Some(tree) = hub.with_plain_files(tree.as_ref(), files) {
        return Ok(tree);
    }
    let dir = tempfile::tempdir_in(hub.state()).on("create an index in", hub.state())?;
    let index = dir.path().join("index");
    let git = |what: &str| hub.git(what).index(&index);
    if let Some(base) = base {
        git("read notes").args(["read-tree", base.as_str()]).ok()?;
    }
    let lines: String =
        entries.map(|note| format!("100644 {}\t{}\0", note.blob, note.path)).collect();
    git("add notes").args(["update-index", "--add", "-z", "--index-info"]).stdin(lines).ok()?;
    git("write notes").args(["write-tree"]).oid()
}

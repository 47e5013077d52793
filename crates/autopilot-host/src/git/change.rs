//! The facts of a whole change, for guards and reviewers: paths, sizes, lines, and a diff that is cut
//! before it is read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::command::CommandError;
use super::digest::change_digest;
use super::error::GitError;
use super::hub::Hub;
use super::listing::{LINK, LINK_BYTES_MAX};
use super::merge::read_blob;
use super::object::Oid;
use super::patch::PatchReader;

pub use super::patch::LineFact;

const RENAMES_MAX: usize = 1000;
/// The most bytes that the paths of a change may take.
const HEAD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The limits on how much of a change is read.
#[derive(Clone, Copy, Debug)]
pub struct ChangeLimits {
    /// The most paths listed.
    pub paths_max: usize,
    /// The longest diff.
    pub diff_bytes_max: usize,
    /// The most added lines kept, and the most removed lines.
    pub lines_max: usize,
    /// The longest kept line, in bytes.
    pub line_bytes_max: usize,
    /// The lines that are kept as a whole past the limits on lines.
    pub watched: fn(&str) -> bool,
    /// The most bytes of the diff that are read.
    pub read_bytes_max: u64,
}

impl Default for ChangeLimits {
    fn default() -> Self {
        Self {
            paths_max: 20_000,
            diff_bytes_max: 256 * 1024,
            lines_max: 50_000,
            line_bytes_max: 2000,
            watched: |_| false,
            read_bytes_max: 256 * 1024 * 1024,
        }
    }
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStatus {
    /// The path is new.
    Added,
    /// The content or the mode changed.
    Modified,
    /// The path is gone.
    Deleted,
    /// The file came from another path, which is gone.
    Renamed,
    /// The file came from another path, which stays.
    Copied,
    /// A file became a link, a link a file, or either a gitlink.
    TypeChanged,
}

/// One path of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPath {
    /// The path from the top of the repository, after the change.
    pub path: Vec<u8>,
    /// The former path of a rename or the source of a copy; guards look at both.
    pub old_path: Option<Vec<u8>>,
    /// What happened to the path.
    pub status: PathStatus,
    /// The mode before the change, as git writes it; 0 if the path is new.
    pub old_mode: u32,
    /// The mode after the change, as git writes it; 0 if the path is gone.
    pub new_mode: u32,
    /// The target of a symbolic link after the change.
    pub link_target: Option<Vec<u8>>,
    /// How many lines were added.
    pub insertions: u64,
    /// How many lines were removed.
    pub deletions: u64,
    /// Whether git sees no lines in the file.
    pub binary: bool,
}

impl ChangedPath {
    /// Returns the path for people; never used to open a file.
    pub fn display(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// Returns whether the path is a symbolic link after the change.
    pub fn is_link(&self) -> bool {
        self.new_mode == LINK
    }

    /// Returns whether the path is a symbolic link before or after the change.
    pub fn touches_link(&self) -> bool {
        self.old_mode == LINK || self.is_link()
    }
}

/// The facts of a whole change.
#[derive(Clone, Debug)]
pub struct GitChange {
    /// The tree before the change.
    pub base_tree: Oid,
    /// The tree after the change.
    pub tree: Oid,
    /// A fingerprint that binds a verdict to exactly this change.
    pub digest: String,
    /// The changed paths, up to the limit.
    pub paths: Vec<ChangedPath>,
    /// How many paths beyond the limit are not in `paths`; their lines are counted.
    pub paths_left_out: usize,
    /// How many lines were added in all.
    pub insertions: u64,
    /// How many lines were removed in all.
    pub deletions: u64,
    /// The unified diff for people and prompts; it ends with a mark when it was cut.
    pub diff: String,
    /// Whether the diff was cut.
    pub diff_cut: bool,
    /// The added lines, up to the limit.
    pub added: Vec<LineFact>,
    /// The removed lines, up to the limit.
    pub removed: Vec<LineFact>,
    /// Whether there are more lines than were kept.
    pub lines_cut: bool,
    /// Whether a line that is watched may have been missed: one was too long, or the diff was.
    pub lines_unread: bool,
    /// The bytes of the added lines.
    pub inserted_bytes: u64,
    /// The bytes of the removed lines.
    pub deleted_bytes: u64,
    /// The size of the files that have no lines, as they are after the change.
    pub binary_bytes: u64,
}

impl GitChange {
    /// Reads the change from a base (commit or tree) to a tree (or commit).
    pub fn between(
        hub: &Hub,
        base: &Oid,
        tree: &Oid,
        limits: &ChangeLimits,
    ) -> Result<Self, GitError> {
        let (base_tree, tree) = (hub.tree_of(base)?, hub.tree_of(tree)?);
        let mut change = Self {
            digest: change_digest(&base_tree, &tree),
            paths: Vec::new(),
            paths_left_out: 0,
            insertions: 0,
            deletions: 0,
            diff: String::new(),
            diff_cut: false,
            added: Vec::new(),
            removed: Vec::new(),
            lines_cut: false,
            lines_unread: false,
            inserted_bytes: 0,
            deleted_bytes: 0,
            binary_bytes: 0,
            base_tree,
            tree,
        };
        if change.base_tree == change.tree {
            return Ok(change);
        }
        let head = change.read_diff(hub, limits)?;
        change.read_paths(&head, limits)?;
        change.read_files(hub)?;
        Ok(change)
    }

    /// Returns how many lines were added and removed.
    pub fn lines(&self) -> u64 {
        self.insertions + self.deletions
    }

    /// Streams the paths and the patch, of which lines and bytes are counted past what is kept, and stops
    /// git when there is too much of it to be read. Returns the paths as git prints them.
    fn read_diff(&mut self, hub: &Hub, limits: &ChangeLimits) -> Result<Vec<u8>, GitError> {
        let mut reader = PatchReader::new(*limits);
        let (mut head, mut is_in_patch) = (Vec::new(), false);
        let operation = format!("compare {} with {}", self.base_tree.short(), self.tree.short());
        hub.git(operation.as_str())
            .args(["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"])
            .arg(format!("-l{RENAMES_MAX}"))
            .args(["-z", "--raw", "--numstat"])
            .args(["-p", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"])
            .args([self.base_tree.as_str(), self.tree.as_str()])
            // A reviewer cites paths as the diff shows them.
            .config("core.quotePath", "false")
            .stream(&mut |bytes| {
                if is_in_patch {
                    reader.push(bytes);
                } else {
                    let seen = head.len().saturating_sub(1);
                    head.extend_from_slice(bytes);
                    // An empty field is between the paths and the patch.
                    let unseen = head.get(seen..).unwrap_or_default();
                    if let Some(at) = memchr::memmem::find(unseen, b"\0\0") {
                        is_in_patch = true;
                        reader.push(&head.split_off(seen + at + 2));
                    }
                }
                let is_full = if is_in_patch { reader.full() } else { head.len() > HEAD_BYTES_MAX };
                if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        if head.len() > HEAD_BYTES_MAX {
            let (called, bytes_max) = (format!("cannot {operation}: `git`"), HEAD_BYTES_MAX);
            return Err(CommandError::TooLong { called, bytes_max }.into());
        }
        let read = reader.finish();
        self.diff = read.text;
        self.diff_cut = read.text_cut;
        self.added = read.added;
        self.removed = read.removed;
        self.lines_cut = read.lines_cut;
        self.lines_unread = read.lines_unread;
        self.inserted_bytes = read.inserted_bytes;
        self.deleted_bytes = read.deleted_bytes;
        Ok(head)
    }

    fn read_paths(&mut self, head: &[u8], limits: &ChangeLimits) -> Result<(), GitError> {
        let mut fields = head.split(|b| *b == 0).peekable();
        let mut paths = Vec::new();
        while let Some(head) = fields.next_if(|field| field.starts_with(b":")) {
            paths.push(read_raw(head, &mut fields)?);
        }
        let mut at = paths.iter_mut();
        while let Some(counts) = fields.next().filter(|field| !field.is_empty()) {
            let mut words = counts.splitn(3, |b| *b == b'\t');
            let (plus, minus) = (words.next(), words.next());
            if words.next().is_none_or(<[u8]>::is_empty) {
                // The two names of a rename are in separate fields.
                fields.next();
                fields.next();
            }
            let Some(path) = at.next() else { break };
            path.binary = plus == Some(b"-");
            path.insertions = number(plus);
            path.deletions = number(minus);
            self.insertions += path.insertions;
            self.deletions += path.deletions;
        }
        self.paths_left_out = paths.len().saturating_sub(limits.paths_max);
        paths.truncate(limits.paths_max);
        self.paths = paths;
        Ok(())
    }

    /// Reads what only the new tree tells: the targets of links, and the sizes of files without
    /// lines.
    fn read_files(&mut self, hub: &Hub) -> Result<(), GitError> {
        let mut wanted: BTreeMap<Vec<u8>, &mut ChangedPath> = self
            .paths
            .iter_mut()
            .filter(|path| path.is_link() || path.binary)
            .map(|path| (path.path.clone(), path))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let out = hub
            .git("read links and sizes")
            .args(["ls-tree", "-r", "-l", "-z", "--full-tree", self.tree.as_str()])
            .ok()?;
        // An entry is `<mode> <type> <object> <size>`, a tab and the path.
        for entry in out.split(|b| *b == 0) {
            let Some(tab) = entry.iter().position(|b| *b == b'\t') else { continue };
            let Some(path) = wanted.get_mut(&entry[tab + 1..]) else { continue };
            let mut words = entry[..tab].split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
            let (oid, size) = (words.nth(2), words.next());
            if path.is_link() {
                let oid = Oid::from_bytes(oid.unwrap_or_default())?;
                path.link_target = Some(read_blob(hub, &oid, LINK_BYTES_MAX)?.0);
            }
            if path.binary {
                self.binary_bytes += number(size);
            }
        }
        Ok(())
    }
}

/// Reads a field like `:100644 100755 <old> <new> M`, then one path, or two for a rename.
fn read_raw<'a>(
    head: &[u8],
    fields: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<ChangedPath, GitError> {
    let text = String::from_utf8_lossy(head).into_owned();
    let unreadable = || GitError::Unreadable { what: "list of changes".into(), text: text.clone() };
    let words: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
    let [old_mode, new_mode, _, _, letter] = words.as_slice() else { return Err(unreadable()) };
    let mode = |word: &str| u32::from_str_radix(word, 8).map_err(|_| unreadable());
    let first = fields.next().ok_or_else(unreadable)?.to_vec();
    let status = match letter.as_bytes().first() {
        Some(b'A') => PathStatus::Added,
        Some(b'D') => PathStatus::Deleted,
        Some(b'R') => PathStatus::Renamed,
        Some(b'C') => PathStatus::Copied,
        Some(b'T') => PathStatus::TypeChanged,
        _ => PathStatus::Modified,
    };
    let (path, old_path) = match status {
        PathStatus::Renamed | PathStatus::Copied => {
            (fields.next().ok_or_else(unreadable)?.to_vec(), Some(first))
        }
        PathStatus::Added
        | PathStatus::Modified
        | PathStatus::Deleted
        | PathStatus::TypeChanged => (first, None),
    };
    let (old_mode, new_mode) = (mode(old_mode)?, mode(new_mode)?);
    Ok(ChangedPath {
        path,
        old_path,
        status,
        old_mode,
        new_mode,
        link_target: None,
        insertions: 0,
        deletions: 0,
        binary: false,
    })
}

fn number(word: Option<&[u8]>) -> u64 {
    word.and_then(|word| std::str::from_utf8(word).ok()).and_then(|w| w.parse().ok()).unwrap_or(0)
}

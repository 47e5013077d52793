//! What an agent may write because it keeps its sessions there, and what others obey: its settings,
//! hooks, commands and skills are copied before it starts and put back after it ended.
//!
//! The agent's version is kept elsewhere. No link is followed, neither when looking nor when
//! putting back.

mod keys;

use crate::file::{self, Dir, FileError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files of which there is a copy. Of the rest it is only known whether they were changed.
pub const FILES_MAX: usize = 2_000;
pub const BYTES_MAX: u64 = 16 << 20;
/// What is looked at altogether.
pub const ENTRIES_MAX: usize = 100_000;
/// Of the agent's versions, those that are kept.
const KEPT_BYTES_MAX: u64 = 64 << 20;
const STORED_BYTES_MAX: u64 = 128 << 20;

#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("cannot look at `{path}`")]
    Look { path: PathBuf, source: io::Error },
    #[error("there are more than {entries_max} files to look after in `{path}`")]
    TooMany { path: PathBuf, entries_max: usize },
    #[error("cannot keep a copy of an agent's settings")]
    Store(#[source] FileError),
    #[error("the copy of an agent's settings at `{path}` can't be read: {reason}")]
    Unreadable { path: PathBuf, reason: String },
}

/// A place that is looked after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watched {
    /// What has one of the names in a directory, and all below it. A name may begin or end with
    /// `*`; a path behind `!` is left out.
    Below { dir: PathBuf, names: Vec<String> },
    /// A JSON file that changes all the time, and of it only what makes programs run.
    Keys { file: PathBuf },
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub files_max: usize,
    pub bytes_max: u64,
    pub entries_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { files_max: FILES_MAX, bytes_max: BYTES_MAX, entries_max: ENTRIES_MAX }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Entry {
    Dir,
    File {
        mode: u32,
        at: usize,
        length: usize,
    },
    /// Beyond the limits: whether it was changed can be seen, but not what it was.
    Seen {
        length: u64,
        changed: (i64, i64),
        inode: u64,
    },
    Link {
        target: PathBuf,
    },
    Other,
}

/// How it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    roots: Vec<Root>,
    #[serde(skip)]
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Root {
    watched: Watched,
    dir: PathBuf,
    entries: Vec<(OsString, Entry)>,
}

/// What had been changed, and what could not be put back.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Report {
    pub changed: Vec<PathBuf>,
    pub failed: Vec<String>,
}

impl Before {
    pub fn take(watched: &[Watched], limits: Limits) -> Result<Before, GuardError> {
        let mut before = Before { roots: Vec::new(), bytes: Vec::new() };
        let mut files = 0;
        for watched in watched {
            // Where the user's own link leads is what is meant.
            let dir = resolved(watched.dir());
            let mut found: Vec<(PathBuf, Metadata)> =
                watched.walk(&dir, limits.entries_max)?.into_iter().collect();
            // What lies deep is most likely a plugin's cache.
            found.sort_by_cached_key(|(path, _)| (path.components().count(), path.clone()));
            let mut entries = BTreeMap::new();
            for (path, met) in found {
                let entry = before.entry(&dir, &path, &met, &mut files, limits);
                entries.insert(path, entry);
            }
            let entries = entries.into_iter().map(|(path, entry)| (path.into(), entry)).collect();
            before.roots.push(Root { watched: watched.clone(), dir, entries });
        }
        Ok(before)
    }

    fn entry(
        &mut self,
        dir: &Path,
        path: &Path,
        met: &Metadata,
        files: &mut usize,
        limits: Limits,
    ) -> Entry {
        if met.is_dir() {
            return Entry::Dir;
        }
        if met.is_symlink() {
            let target = fs::read_link(dir.join(path));
            return target.map_or(Entry::Other, |target| Entry::Link { target });
        }
        if !met.is_file() {
            return Entry::Other;
        }
        let left = limits.bytes_max.saturating_sub(self.bytes.len() as u64);
        let read = (*files < limits.files_max && met.len() <= left)
            .then(|| Dir::open(dir).and_then(|dir| dir.read_capped(path, left)));
        match read {
            Some(Ok(bytes)) => {
                *files += 1;
                let at = self.bytes.len();
                self.bytes.extend_from_slice(&bytes);
                Entry::File { mode: met.mode() & 0o7777, at, length: bytes.len() }
            }
            Some(Err(_)) | None => seen(met),
        }
    }

    /// Keeps it where the next process finds it, should this one be killed.
    pub fn store(&self, path: &Path) -> Result<(), GuardError> {
        let head = serde_json::to_vec(self).map_err(|error| GuardError::Unreadable {
            path: path.into(),
            reason: error.to_string(),
        })?;
        let mut bytes = format!("{}\n", head.len()).into_bytes();
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&self.bytes);
        let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        private(parent)
            .and_then(|dir| dir.write_with_mode(Path::new(name), &bytes, 0o600))
            .map_err(GuardError::Store)
    }

    pub fn load(path: &Path) -> Result<Before, GuardError> {
        let unreadable = |reason: String| GuardError::Unreadable { path: path.into(), reason };
        let bytes = file::read_capped(path, STORED_BYTES_MAX)
            .map_err(|error| unreadable(error.to_string()))?;
        let short = || unreadable("it is cut off".to_owned());
        let line = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(short)?;
        let length: usize = std::str::from_utf8(&bytes[..line])
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(short)?;
        let head = line + 1;
        let end = head.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(short)?;
        let mut before: Before = serde_json::from_slice(&bytes[head..end])
            .map_err(|error| unreadable(error.to_string()))?;
        before.bytes = bytes[end..].to_vec();
        Ok(before)
    }

    /// Makes everything as it was; what was there instead is kept below `keep`.
    pub fn restore(&self, keep: &Path) -> Report {
        let mut keeper = Keeper { into: keep, left: KEPT_BYTES_MAX };
        let mut report = Report::default();
        for (number, root) in self.roots.iter().enumerate() {
            match &root.watched {
                Watched::Below { .. } => self.restore_below(root, number, &mut keeper, &mut report),
                Watched::Keys { .. } => self.restore_keys(root, number, &mut keeper, &mut report),
            }
        }
        report.changed.sort();
        report.changed.dedup();
        report
    }

    fn restore_below(
        &self,
        root: &Root,
        number: usize,
        keeper: &mut Keeper<'_>,
        report: &mut Report,
    ) {
        let now = match root.watched.walk(&root.dir, ENTRIES_MAX) {
            Ok(now) => now,
            Err(error) => return report.failed.push(error.to_string()),
        };
        let before = root.map();
        if now.is_empty() && before.is_empty() {
            return;
        }
        let dir = match open_or_make(&root.dir) {
            Ok(dir) => dir,
            Err(error) => return report.failed.push(error.to_string()),
        };
        let wrong: BTreeMap<&PathBuf, &Metadata> = now
            .iter()
            .filter(|(path, met)| {
                before.get(*path).is_none_or(|entry| !self.is_same(entry, &dir, path, met))
            })
            .collect();
        for (path, met) in wrong.iter().rev() {
            if met.is_dir() && !before.contains_key(*path) {
                // Empty it says nothing, and is left if it was before; agents make some.
                if wrong.keys().any(|other| other != path && other.starts_with(path)) {
                    let _not_empty = dir.remove(path);
                }
                continue;
            }
            report.changed.push(root.dir.join(path));
            let entry = before.get(*path);
            if matches!(entry, Some(Entry::Seen { .. })) {
                report.failed.push(format!(
                    "`{}` was changed, and there was no copy of it",
                    root.dir.join(path).display()
                ));
                continue;
            }
            keeper.keep(&dir, number, path, met);
            // A file takes the place of what is not a directory in one step.
            let is_replaced = matches!(entry, Some(Entry::File { .. })) && !met.is_dir();
            if !is_replaced && let Err(error) = dir.remove(path) {
                report.failed.push(said(&error));
            }
        }
        for (path, entry) in &before {
            if !wrong.contains_key(path) && now.contains_key(path) {
                continue;
            }
            if !now.contains_key(path) && *entry != Entry::Dir {
                report.changed.push(root.dir.join(path));
            }
            if let Err(why) = self.put_back(&dir, path, entry, now.contains_key(path)) {
                report.failed.push(why);
            }
        }
    }

    fn put_back(
        &self,
        dir: &Dir,
        path: &Path,
        entry: &Entry,
        is_there: bool,
    ) -> Result<(), String> {
        match entry {
            Entry::Dir => dir.below(path).map(|_made| ()).map_err(|error| said(&error)),
            Entry::File { mode, .. } => {
                dir.write_with_mode(path, self.bytes_of(entry), *mode).map_err(|error| said(&error))
            }
            Entry::Link { target } => dir.link(path, target).map_err(|error| said(&error)),
            // Said already if it is there.
            Entry::Seen { .. } if is_there => Ok(()),
            Entry::Seen { .. } => Err(format!(
                "`{}` was removed, and there was no copy of it",
                dir.path().join(path).display()
            )),
            // A socket or a pipe says nothing; its maker makes it again.
            Entry::Other => Ok(()),
        }
    }

    fn restore_keys(
        &self,
        root: &Root,
        number: usize,
        keeper: &mut Keeper<'_>,
        report: &mut Report,
    ) {
        let Watched::Keys { file } = &root.watched else { return };
        let Some(name) = file.file_name().map(Path::new) else { return };
        let before = root.map();
        let entry = before.get(name);
        let met = root.dir.join(name).symlink_metadata().ok();
        if entry.is_none() && met.is_none() {
            return;
        }
        let dir = match open_or_make(&root.dir) {
            Ok(dir) => dir,
            Err(error) => return report.failed.push(said(&error)),
        };
        let now = dir.read_capped(name, BYTES_MAX).ok();
        let earlier = entry.map(|entry| self.bytes_of(entry));
        let (written, mode) = match (entry, &met) {
            (Some(Entry::File { mode, .. }), _) => {
                match keys::put_back(earlier.unwrap_or_default(), now.as_deref()) {
                    Some(bytes) => (Some(bytes), *mode),
                    None => return,
                }
            }
            // The user's own link leads where no agent is let.
            (Some(Entry::Link { target }), Some(met))
                if met.is_symlink()
                    && fs::read_link(root.dir.join(name)).is_ok_and(|now| now == *target) =>
            {
                return;
            }
            (None, Some(met)) if met.is_file() => match keys::put_back(b"{}", now.as_deref()) {
                Some(bytes) => (Some(bytes), met.mode()),
                None => return,
            },
            (Some(_) | None, _) => (None, 0),
        };
        report.changed.push(root.dir.join(name));
        if let Some(met) = &met {
            keeper.keep(&dir, number, name, met);
        }
        let done = match (written, entry) {
            (Some(bytes), _) => {
                if met.as_ref().is_some_and(Metadata::is_dir) {
                    let _said_below = dir.remove(name);
                }
                dir.write_with_mode(name, &bytes, mode)
            }
            (None, Some(Entry::Link { target })) => {
                let _not_there = dir.remove(name);
                dir.link(name, target)
            }
            (None, _) => dir.remove(name),
        };
        report.failed.extend(done.err().map(|error| said(&error)));
    }

    fn is_same(&self, entry: &Entry, dir: &Dir, path: &Path, met: &Metadata) -> bool {
        match entry {
            Entry::Dir => met.is_dir(),
            Entry::File { mode, length, .. } => {
                met.is_file()
                    && met.len() == *length as u64
                    && met.mode() & 0o7777 == *mode
                    && dir
                        .read_capped(path, met.len())
                        .is_ok_and(|bytes| bytes == self.bytes_of(entry))
            }
            Entry::Seen { .. } => met.is_file() && seen(met) == *entry,
            Entry::Link { target } => {
                met.is_symlink()
                    && fs::read_link(dir.path().join(path)).is_ok_and(|now| now == *target)
            }
            Entry::Other => !met.is_file() && !met.is_dir() && !met.is_symlink(),
        }
    }

    fn bytes_of(&self, entry: &Entry) -> &[u8] {
        match entry {
            Entry::File { at, length, .. } => {
                self.bytes.get(*at..at.saturating_add(*length)).unwrap_or_default()
            }
            Entry::Dir | Entry::Seen { .. } | Entry::Link { .. } | Entry::Other => &[],
        }
    }
}

impl Root {
    fn map(&self) -> BTreeMap<PathBuf, Entry> {
        self.entries.iter().map(|(path, entry)| (path.into(), entry.clone())).collect()
    }
}

impl Watched {
    fn dir(&self) -> &Path {
        match self {
            Watched::Below { dir, .. } => dir,
            Watched::Keys { file } => file.parent().unwrap_or(file),
        }
    }

    /// What is there, by its path below the directory; links are things of their own.
    fn walk(
        &self,
        dir: &Path,
        entries_max: usize,
    ) -> Result<BTreeMap<PathBuf, Metadata>, GuardError> {
        let mut found = BTreeMap::new();
        let names = match self {
            Watched::Keys { file } => {
                let name = file.file_name().map(PathBuf::from).unwrap_or_default();
                if let Ok(met) = dir.join(&name).symlink_metadata() {
                    found.insert(name, met);
                }
                return Ok(found);
            }
            Watched::Below { names, .. } => names,
        };
        let mut to_do = vec![PathBuf::new()];
        while let Some(below) = to_do.pop() {
            let path = dir.join(&below);
            let look = |source| GuardError::Look { path: path.clone(), source };
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(look(error)),
            };
            for entry in entries {
                let entry = entry.map_err(look)?;
                let name = entry.file_name();
                let is_top = below.as_os_str().is_empty();
                if is_top && !names.iter().any(|pattern| fits(pattern, &name.to_string_lossy())) {
                    continue;
                }
                let path = below.join(name);
                if names
                    .iter()
                    .filter_map(|name| name.strip_prefix('!'))
                    .any(|not| path == Path::new(not))
                {
                    continue;
                }
                let Ok(met) = entry.metadata() else { continue };
                if met.is_dir() {
                    to_do.push(path.clone());
                }
                found.insert(path, met);
                if found.len() > entries_max {
                    return Err(GuardError::TooMany { path: dir.into(), entries_max });
                }
            }
        }
        Ok(found)
    }
}

/// Where the agent's versions go.
struct Keeper<'a> {
    into: &'a Path,
    left: u64,
}

impl Keeper<'_> {
    /// A version that is not kept is lost, and what it took the place of is not.
    fn keep(&mut self, dir: &Dir, number: usize, path: &Path, met: &Metadata) {
        if met.is_dir() {
            return;
        }
        let read = if met.is_symlink() {
            let target = fs::read_link(dir.path().join(path)).unwrap_or_default();
            Ok(format!("a link to {}\n", target.display()).into_bytes())
        } else {
            dir.read_capped(path, self.left)
        };
        let Ok(bytes) = read else { return };
        self.left = self.left.saturating_sub(bytes.len() as u64);
        let to = Path::new(&number.to_string()).join(path);
        if let Ok(into) = private(self.into) {
            let _lost = into.write_with_mode(&to, &bytes, 0o600);
        }
    }
}

fn open_or_make(path: &Path) -> Result<Dir, FileError> {
    let failed = |source| FileError::Failed { what: "create directory", path: path.into(), source };
    fs::create_dir_all(path).map_err(failed)?;
    Dir::open(path)
}

/// Settings hold keys: nobody else looks in here.
fn private(path: &Path) -> Result<Dir, FileError> {
    let failed = |source| FileError::Failed { what: "create directory", path: path.into(), source };
    fs::create_dir_all(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    Dir::open(path)
}

fn seen(met: &Metadata) -> Entry {
    // No program without special rights can set the time of the last change of a file's entry.
    Entry::Seen { length: met.len(), changed: (met.ctime(), met.ctime_nsec()), inode: met.ino() }
}

fn resolved(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_missing| dir.into())
}

fn fits(pattern: &str, name: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        return name.ends_with(end);
    }
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn said(error: &FileError) -> String {
    match error {
        FileError::Failed { source, .. } => format!("{error}: {source}"),
        FileError::Link { .. } | FileError::Name { .. } | FileError::TooLarge { .. } => {
            error.to_string()
        }
    }
}

#[cfg(test)]
mod tests;

//! A separate home directory for an agent: the user's settings to be read, the user's login to be
//! used, and everything else the agent's own. Files that an agent plants there are gone with the
//! home.
//!
//! Nothing outside of the home is written but a login that was renewed: the agent has a copy, and
//! of that only new tokens in the old places are taken over, and only while the user's own login is
//! still the one that was copied.

use crate::dir;
use crate::file::{self, Dir, FileError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The largest file that is taken for a login.
pub const LOGIN_BYTES_MAX: u64 = 1 << 20;
/// The largest note about the logins of a home.
const LOGINS_BYTES_MAX: u64 = 16 << 20;
/// The largest file that is copied into a home because its agent writes to it.
pub const COPY_BYTES_MAX: u64 = 32 << 20;
/// The most files of a session that are kept.
pub const SESSION_FILES_MAX: usize = 20_000;
/// The most that is read of the files of a session.
pub const TEXTS_BYTES_MAX: u64 = 128 << 20;
/// The largest session that is kept.
pub const SESSION_BYTES_MAX: u64 = 1 << 30;

/// The reason why the home of an agent could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A directory or a link of the home could not be made.
    #[error("cannot create `{path}` for an agent or a command")]
    Make { path: PathBuf, source: io::Error },
    /// A file of the home, or the note about its logins, could not be written.
    #[error("cannot write `{path}` for an agent or a command")]
    Write { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

/// The contents of a home; names are relative to it.
#[derive(Debug, Default, Clone)]
pub struct HomePlan {
    /// The path of the home.
    pub dir: PathBuf,
    /// Directories that are the agent's own.
    pub made: Vec<PathBuf>,
    /// Links by name to files and directories of the user, which the agent reads.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Files by name that the agent writes and nobody else needs.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The user's logins, which the agent gets as copies.
    pub logins: Vec<LoginFile>,
}

/// A login of the user and the copy of it in a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginFile {
    /// The path of the copy in the home.
    pub name: PathBuf,
    /// The path of the user's own file, with links resolved.
    pub target: PathBuf,
    /// The content that was copied.
    before: String,
}

const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// The members of a login that hold tokens and their times; all others say whose login it is.
const TOKENS: &[&str] = &[
    "access",
    "accessToken",
    "access_token",
    "expires",
    "expiresAt",
    "expires_at",
    "id_token",
    "last_refresh",
    "refresh",
    "refreshToken",
    "refreshTokenExpiresAt",
    "refresh_token",
];

impl HomePlan {
    /// Makes the home anew: nothing that was there before is followed or kept.
    pub fn make(&self) -> Result<(), HomeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| HomeError::Make { path, source }
        };
        dir::remove(&self.dir).map_err(failed(&self.dir))?;
        dir::create_private(&self.dir).map_err(failed(&self.dir))?;
        for made in &self.made {
            let path = self.dir.join(made);
            dir::create_private(&path).map_err(failed(&path))?;
        }
        for (name, target) in &self.links {
            let path = self.dir.join(name);
            symlink(target, &path).map_err(failed(&path))?;
        }
        let failed = |name: &Path| {
            let path = self.dir.join(name);
            move |error: FileError| HomeError::Write { path, source: error.into() }
        };
        let dir = Dir::open(&self.dir).map_err(failed(Path::new("")))?;
        for (name, bytes) in &self.files {
            dir.write_passing(name, bytes, Some(0o600)).map_err(failed(name))?;
        }
        for login in &self.logins {
            // It may be copied back after a loss of power.
            let written = dir.write_with_mode(&login.name, login.before.as_bytes(), 0o600);
            written.map_err(failed(&login.name))?;
        }
        Ok(())
    }

    /// Writes down the logins of this home for a process that takes over after this one is killed.
    pub fn note(&self) -> Result<(), HomeError> {
        let path = note_of(&self.dir);
        let failed = |source| HomeError::Write { path: path.clone(), source };
        let text = serde_json::to_vec(&self.logins).map_err(|error| failed(error.into()))?;
        dir::create_private(path.parent().unwrap_or(&path))
            .map_err(|error| failed(error.into()))?;
        replace(&path, &text).map_err(|error| failed(error.into()))
    }

    /// Copies renewed logins back to the user's own files. Returns notices about those that were
    /// not copied.
    pub fn put_back(&mut self) -> Vec<String> {
        let before = self.logins.clone();
        let told = put_back(&self.dir, &mut self.logins);
        if self.logins != before {
            // Should this process be killed, the next one must not take the old login for the
            // user's.
            let _again = self.note();
        }
        told
    }
}

/// Returns the path of the note about the logins. It is not in the home: an agent must not say
/// where a login goes.
fn note_of(home: &Path) -> PathBuf {
    home.with_extension("logins.json")
}

fn put_back(home: &Path, logins: &mut [LoginFile]) -> Vec<String> {
    let mut told = Vec::new();
    let Ok(dir) = Dir::open(home) else { return told };
    for login in logins {
        // No link is followed: what is read is what the agent wrote.
        let Ok(bytes) = dir.read_capped(&login.name, LOGIN_BYTES_MAX) else { continue };
        let Ok(theirs) = file::read_capped(&login.target, LOGIN_BYTES_MAX) else { continue };
        if theirs != login.before.as_bytes() {
            // Somebody else has renewed the login, or has logged in anew. An agent that has done
            // neither needs the new login too: the old one may be worth nothing any more.
            if bytes == login.before.as_bytes()
                && let Ok(new) = String::from_utf8(theirs)
                && dir.write_with_mode(&login.name, new.as_bytes(), 0o600).is_ok()
            {
                login.before = new;
            }
            continue;
        }
        if bytes == login.before.as_bytes() {
            continue;
        }
        let target = login.target.display();
        let Some(renewed) = renewed(login.before.as_bytes(), &bytes) else {
            told.push(format!(
                "its changed login was not saved to `{target}`: no new tokens were found"
            ));
            continue;
        };
        if renewed == login.before {
            continue;
        }
        match replace(&login.target, renewed.as_bytes()) {
            Ok(()) => login.before = renewed,
            Err(error) => {
                told.push(format!("its renewed login could not be saved to `{target}`: {error}"));
            }
        }
    }
    told
}

/// Returns the login as it was, with the tokens of the other; `None` if the other has no tokens in
/// the same places.
fn renewed(before: &[u8], after: &[u8]) -> Option<String> {
    let mut login: Value = serde_json::from_slice(before).ok()?;
    let after: Value = serde_json::from_slice(after).ok()?;
    let mut taken = false;
    take_tokens(&mut login, &after, &mut taken);
    if !taken {
        return None;
    }
    let same = serde_json::from_slice(before).is_ok_and(|before: Value| before == login);
    if same { String::from_utf8(before.to_vec()).ok() } else { Some(login.to_string()) }
}

/// Copies tokens from one login to the other. The tokens of one object are copied together or not
/// at all.
fn take_tokens(login: &mut Value, after: &Value, taken: &mut bool) {
    let (Value::Object(login), Value::Object(after)) = (login, after) else { return };
    let is_token = |name: &String| TOKENS.contains(&name.as_str());
    let tokens: Vec<String> = login.keys().filter(|name| is_token(name)).cloned().collect();
    let is_whole = tokens.iter().all(|name| match (login.get(name), after.get(name)) {
        (Some(Value::String(_)), Some(Value::String(new))) => {
            !new.is_empty() && new.len() <= TOKEN_BYTES_MAX
        }
        (Some(Value::Number(_)), Some(Value::Number(_))) => true,
        (old, new) => old == new,
    });
    if is_whole && !tokens.is_empty() {
        *taken = true;
        for name in tokens {
            if let Some(new) = after.get(&name) {
                login.insert(name, new.clone());
            }
        }
    }
    for (name, inner) in login.iter_mut().filter(|(name, _)| !is_token(name)) {
        if let Some(after) = after.get(name) {
            take_tokens(inner, after, taken);
        }
    }
}

/// Replaces a file, for its owner only.
fn replace(target: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let name = target.file_name().unwrap_or_default();
    Dir::open(target.parent().unwrap_or(target))?.write_with_mode(Path::new(name), bytes, 0o600)
}

/// Copies back the renewed logins of homes below `parent` whose process was killed before it could.
pub fn put_back_left(parent: &Path) -> Vec<String> {
    let mut told = Vec::new();
    for name in dir::names(parent).unwrap_or_default() {
        let Some(home) = name.strip_suffix(".logins.json") else { continue };
        let note = parent.join(&name);
        let read = file::read_capped(&note, LOGINS_BYTES_MAX).ok();
        if let Some(mut logins) =
            read.and_then(|bytes| serde_json::from_slice::<Vec<LoginFile>>(&bytes).ok())
        {
            told.extend(put_back(&parent.join(format!("{home}.home")), &mut logins));
        }
        // The note is used only once, even if the rest of the home cannot be removed.
        let _again = dir::remove_file(&note);
    }
    told
}

/// Returns a link, below `under`, to each entry of `from` that `wanted` accepts.
pub fn links(from: &Path, under: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, PathBuf)> {
    let names = dir::names(from).unwrap_or_default();
    let wanted = names.into_iter().filter(|name| wanted(name));
    wanted.map(|name| (under.join(&name), from.join(&name))).collect()
}

/// Reads the user's login at `path`, if there is one.
pub fn login(name: impl Into<PathBuf>, path: &Path) -> Option<LoginFile> {
    let target = fs::canonicalize(path).ok().filter(|target| target.is_file())?;
    let before = file::read_capped(&target, LOGIN_BYTES_MAX).ok()?;
    Some(LoginFile { name: name.into(), target, before: String::from_utf8(before).ok()? })
}

/// Reads the files of a part of a home whose path below it `is_wanted` accepts. Links are not
/// followed, and what can't be read or goes beyond `TEXTS_BYTES_MAX` in all is left out.
pub fn texts(home: &Path, part: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let (mut texts, mut room) = (Vec::new(), TEXTS_BYTES_MAX);
    let mut to_do = vec![part.to_owned()];
    let mut files = 0;
    while let Some(below) = to_do.pop() {
        let is_dir = home.join(&below).symlink_metadata().is_ok_and(|found| found.is_dir());
        let Some(entries) = is_dir.then(|| fs::read_dir(home.join(&below)).ok()).flatten() else {
            continue;
        };
        for entry in entries.flatten() {
            files += 1;
            if files > SESSION_FILES_MAX {
                return texts;
            }
            let path = below.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                to_do.push(path);
            } else if kind.is_file()
                && is_wanted(&path)
                && let Ok(bytes) = file::read_capped(&home.join(&path), room)
            {
                room = room.saturating_sub(bytes.len() as u64);
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    texts
}

/// Copies every plain file of `part` from one directory to the other, except those `left_out`. No
/// link is followed, neither on the way to the part nor in it.
pub fn keep(
    from: &Path,
    part: &Path,
    to: &Path,
    left_out: impl Fn(&Path) -> bool,
) -> io::Result<()> {
    let mut reached = from.to_owned();
    for name in part.components() {
        reached.push(name);
        if !reached.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
    }
    let (from, to) = (reached, to.join(part));
    let (mut files, mut bytes) = (0, 0);
    let mut to_do = vec![PathBuf::new()];
    while let Some(below) = to_do.pop() {
        let entries = match fs::read_dir(from.join(&below)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let kind = entry.file_type()?;
            if left_out(&path) || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                to_do.push(path);
            } else if kind.is_file() {
                files += 1;
                bytes += entry.metadata()?.len();
                if files > SESSION_FILES_MAX || bytes > SESSION_BYTES_MAX {
                    return Err(io::Error::other("the session is too large to keep"));
                }
                let place = to.join(&path);
                dir::create_private(place.parent().unwrap_or(&to))?;
                dir::remove_file(&place)?;
                // A copy and not a hard link, which could lead to a file of the user's.
                fs::copy(from.join(&path), &place)?;
            }
        }
    }
    Ok(())
}

/// Returns whether a plain file below `dir` has a name that fits. No link is followed, and only as
/// many files are looked at as a session may have.
pub fn has_file(dir: &Path, fits: impl Fn(&str) -> bool) -> bool {
    let mut looked_at = 0;
    let mut to_do = vec![dir.to_owned()];
    while let Some(dir) = to_do.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                to_do.push(entry.path());
            } else if kind.is_file() {
                looked_at += 1;
                if entry.file_name().to_str().is_some_and(&fits) {
                    return true;
                }
            }
            if looked_at > SESSION_FILES_MAX {
                return false;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests;

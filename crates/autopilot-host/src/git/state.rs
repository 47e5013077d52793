//! The place of a repository's state: an id kept inside its `.git`, and a directory outside of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{GitError, OnFile};
use crate::file::{self, FileError};

/// The part of the environment that decides where state is kept.
#[derive(Clone, Debug, Default)]
pub struct StateEnv {
    /// The value of `AUTOPILOT_STATE_DIR`, which counts first.
    pub autopilot_state_dir: Option<OsString>,
    /// The value of `XDG_STATE_HOME`, which counts second.
    pub xdg_state_home: Option<OsString>,
    /// The value of `HOME`, which counts last.
    pub home: Option<OsString>,
}

impl StateEnv {
    /// Reads the environment of this process.
    pub fn from_process() -> Self {
        Self {
            autopilot_state_dir: std::env::var_os("AUTOPILOT_STATE_DIR"),
            xdg_state_home: std::env::var_os("XDG_STATE_HOME"),
            home: std::env::var_os("HOME"),
        }
    }

    /// Returns the value of `AUTOPILOT_STATE_DIR` if it is a relative path, which would be another
    /// directory with every working directory.
    pub fn relative_state_dir(&self) -> Option<&OsStr> {
        let value = self.autopilot_state_dir.as_deref().filter(|value| !value.is_empty());
        value.filter(|value| !Path::new(value).is_absolute())
    }
}

/// Returns the directory that holds one state directory per repository. Relative values are not
/// paths we can rely on and count as unset, as the XDG specification asks.
pub fn state_root(env: &StateEnv) -> Option<PathBuf> {
    let absolute =
        |value: &Option<OsString>| value.as_ref().map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(&env.autopilot_state_dir)
        .or_else(|| absolute(&env.xdg_state_home).map(|dir| dir.join("autopilot")))
        .or_else(|| absolute(&env.home).map(|dir| dir.join(".local/state/autopilot")))
}

/// Returns the state directory of one repository: a pure function of the environment and the id.
pub fn state_dir(env: &StateEnv, id: &str) -> Option<PathBuf> {
    state_root(env).map(|root| root.join(id))
}

/// The way in which a repository came to its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// The repository had no id and was given one.
    New,
    /// The repository had its id already.
    Known,
    /// The repository was renamed or moved and keeps its state.
    Moved,
    /// The repository is a copy of one that still exists and was given a separate state.
    Copied,
}

/// Finds or assigns the repository's id and makes its state directory.
pub fn adopt(common_dir: &Path, root: &Path) -> Result<(String, PathBuf, Adoption), GitError> {
    let parent = common_dir.join("autopilot");
    fs::create_dir_all(&parent).on("create", &parent)?;
    // Two processes that come at once would both find no id, and each would work in a state of its
    // own.
    let _alone = alone(&parent).on("lock", &parent)?;
    let (id_file, next_id) = (parent.join("id"), parent.join("next-id"));
    let (id, adoption) = match read_id(&id_file) {
        // One that a killed process has made a state directory for, if there is one.
        None => (read_id(&next_id).map_or_else(fresh_id, Ok)?, Adoption::New),
        Some(id) => match belongs(&root.join(&id).join("location"), common_dir, &id) {
            Adoption::Copied => (fresh_id()?, Adoption::Copied),
            how @ (Adoption::New | Adoption::Known | Adoption::Moved) => (id, how),
        },
    };
    let is_fresh = !matches!(adoption, Adoption::Known | Adoption::Moved);
    if is_fresh {
        write_atomic(&next_id, format!("{id}\n").as_bytes())?;
    }
    let dir = root.join(&id);
    // Prompts and answers are kept in the state directory, in all their forms; whoever may not read
    // the repository must not read them either. The directory above may be one of the person's own.
    crate::dir::create_private(&dir).on("create", &dir)?;
    crate::dir::make_private(&dir).on("make private", &dir)?;
    write_atomic(&dir.join("location"), common_dir.as_os_str().as_bytes())?;
    // Last of all: an id without a state directory is one whose state was lost, also for a command
    // that looks while this one is at work or after it was killed.
    if is_fresh {
        fs::rename(&next_id, &id_file).on("write", &id_file)?;
    }
    Ok((id, dir, adoption))
}

/// Returns the state directories below `root` that say they belong to this repository, for one that
/// has lost its id.
pub fn belonging_to(common_dir: &Path, root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|dir| {
            fs::read(dir.join("location"))
                .is_ok_and(|location| location == common_dir.as_os_str().as_bytes())
        })
        .collect();
    found.sort();
    found
}

/// Gives a repository the id of a state directory back.
pub fn restore_id(common_dir: &Path, state: &Path) -> Result<(), GitError> {
    let parent = common_dir.join("autopilot");
    fs::create_dir_all(&parent).on("create", &parent)?;
    let id = state.file_name().unwrap_or_default().to_string_lossy();
    write_atomic(&parent.join("id"), format!("{id}\n").as_bytes())
}

/// Takes a lock that is held until it is dropped. A file system without locks gives none; the state
/// directory's own lock then refuses such a place.
fn alone(dir: &Path) -> io::Result<Option<fs::File>> {
    let file = fs::File::open(dir)?;
    match file.lock() {
        Ok(()) => Ok(Some(file)),
        Err(error) if crate::lock::is_unsupported(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the id belongs to this repository, to one that was moved, or to another that was
/// copied.
fn belongs(location: &Path, common_dir: &Path, id: &str) -> Adoption {
    let Ok(recorded) = fs::read(location) else { return Adoption::Known };
    let recorded = PathBuf::from(OsString::from_vec(recorded));
    if recorded == common_dir || same_dir(&recorded, common_dir) {
        return Adoption::Known;
    }
    if read_id(&recorded.join("autopilot/id")).as_deref() == Some(id) {
        Adoption::Copied
    } else {
        Adoption::Moved
    }
}

fn same_dir(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Reads an id. An id names a directory, so anything but our own alphabet counts as no id.
fn read_id(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let id = text.trim();
    let ours = id.len() == 20 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    ours.then(|| id.to_owned())
}

fn fresh_id() -> Result<String, GitError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 10];
    fs::File::open(path).and_then(|mut f| f.read_exact(&mut bytes)).on("read", path)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Replaces a file in one step, durably.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    file::write_atomic(path, bytes)
        .map_err(|error| match error {
            FileError::Failed { source, .. } => source,
            other @ (FileError::Link { .. }
            | FileError::Name { .. }
            | FileError::TooLarge { .. }) => io::Error::other(other),
        })
        .on("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(a: &str, x: &str, h: &str) -> StateEnv {
        let set = |s: &str| (!s.is_empty()).then(|| OsString::from(s));
        StateEnv { autopilot_state_dir: set(a), xdg_state_home: set(x), home: set(h) }
    }

    #[test]
    fn the_state_directory_follows_the_environment() {
        for (given, wanted) in [
            (env("/s", "/x", "/h"), Some("/s/id")),
            (env("", "/x", "/h"), Some("/x/autopilot/id")),
            (env("", "", "/h"), Some("/h/.local/state/autopilot/id")),
            (env("relative", "also", "/h"), Some("/h/.local/state/autopilot/id")),
            (env("", "", ""), None),
        ] {
            assert_eq!(state_dir(&given, "id"), wanted.map(PathBuf::from), "{given:?}");
        }
    }

    #[test]
    fn a_moved_repository_keeps_its_id_and_a_copied_one_gets_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("state");
        let (a, b, c) = (temp.path().join("a"), temp.path().join("b"), temp.path().join("c"));
        fs::create_dir(&a).unwrap();
        let (id, dir, how) = adopt(&a, &root).unwrap();
        assert_eq!(how, Adoption::New);
        assert!(dir.is_dir());
        assert_eq!(adopt(&a, &root).unwrap().2, Adoption::Known);

        fs::rename(&a, &b).unwrap();
        let (moved, _, how) = adopt(&b, &root).unwrap();
        assert_eq!((&moved, how), (&id, Adoption::Moved));

        fs::create_dir_all(c.join("autopilot")).unwrap();
        fs::copy(b.join("autopilot/id"), c.join("autopilot/id")).unwrap();
        let (copied, _, how) = adopt(&c, &root).unwrap();
        assert_eq!(how, Adoption::Copied);
        assert_ne!(copied, id);
        assert_eq!(adopt(&b, &root).unwrap().0, id, "the original keeps its state");
        assert_eq!(adopt(&c, &root).unwrap().2, Adoption::Known);
    }

    #[test]
    fn a_relative_state_directory_is_told_and_an_empty_one_is_unset() {
        let relative = |value: &str| {
            let env = env(value, "", "/h");
            env.relative_state_dir().map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(relative("state"), Some("state".to_owned()));
        assert_eq!(relative("./state"), Some("./state".to_owned()));
        assert_eq!((relative("/state"), relative("")), (None, None));
        let empty = StateEnv { autopilot_state_dir: Some(OsString::new()), ..env("", "", "/h") };
        assert_eq!(empty.relative_state_dir(), None);
    }

    #[test]
    fn a_repository_whose_state_directory_cannot_be_made_keeps_no_id() {
        let temp = tempfile::tempdir().unwrap();
        let (git, root) = (temp.path().join("g"), temp.path().join("s"));
        fs::create_dir(&git).unwrap();
        fs::write(&root, "a file").unwrap();
        adopt(&git, &root).unwrap_err();
        assert!(!git.join("autopilot/id").exists());
    }

    #[test]
    fn an_id_that_is_a_path_is_not_an_id() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join("g");
        fs::create_dir_all(git.join("autopilot")).unwrap();
        fs::write(git.join("autopilot/id"), "../../../etc/passwd-").unwrap();
        assert_eq!(adopt(&git, &temp.path().join("s")).unwrap().2, Adoption::New);
    }
}

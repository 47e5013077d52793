//! A home of its own for an agent: the user's settings to be read, their login to be used, and
//! everything else its own. What an agent plants there is gone with it.
//!
//! Nothing but the login is ever written outside of it. A login is one file: a link leads to it, so
//! that a renewed one is there for everybody at once; an agent that replaces the link by a file of
//! its own has that file put in the login's place afterwards.

use crate::dir;
use crate::file::{self, Dir, FileError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A larger one is none.
pub const LOGIN_BYTES_MAX: u64 = 1 << 20;
/// Of a file that is copied because its agent writes it.
pub const COPY_BYTES_MAX: u64 = 32 << 20;
/// Files of a session that are kept.
pub const SESSION_FILES_MAX: usize = 20_000;

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("cannot make `{path}` for an agent")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot write `{path}` for an agent: {reason}")]
    Write { path: PathBuf, reason: String },
}

/// What a home is made of; names are relative to it.
#[derive(Debug, Default, Clone)]
pub struct Plan {
    pub dir: PathBuf,
    /// Directories that are its own.
    pub made: Vec<PathBuf>,
    /// The user's, which it reads.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// What it writes and nobody else needs.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    pub logins: Vec<Login>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub name: PathBuf,
    /// The user's own file, links resolved.
    pub target: PathBuf,
}

impl Plan {
    /// Makes what is not there yet: the second question of an attempt finds the home of the first.
    pub fn make(&self) -> Result<(), HomeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| HomeError::Make { path, source }
        };
        dir::create_private(&self.dir).map_err(failed(&self.dir))?;
        for made in &self.made {
            let path = self.dir.join(made);
            dir::create_private(&path).map_err(failed(&path))?;
        }
        let logins = self.logins.iter().map(|login| (&login.name, &login.target));
        for (name, target) in self.links.iter().map(|(name, target)| (name, target)).chain(logins) {
            let path = self.dir.join(name);
            match symlink(target, &path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(&path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        for (name, bytes) in &self.files {
            let path = self.dir.join(name);
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let written =
                Dir::open(&self.dir).and_then(|dir| dir.write_with_mode(name, bytes, 0o600));
            written.map_err(|error| HomeError::Write { path, reason: error.to_string() })?;
        }
        Ok(())
    }

    /// Where a process that takes over finds out about the logins of this one.
    pub fn note(&self) -> Result<(), HomeError> {
        let path = note_of(&self.dir);
        let failed = |reason: String| HomeError::Write { path: path.clone(), reason };
        let text = serde_json::to_vec(&self.logins).map_err(|error| failed(error.to_string()))?;
        file::write_atomic(&path, &text).map_err(|error| failed(error.to_string()))
    }

    /// Puts a renewed login where the user's is. What is not a login is left alone.
    pub fn put_back(&self) -> Vec<String> {
        put_back(&self.dir, &self.logins)
    }
}

/// Not in the home: an agent must not say where a login goes.
fn note_of(home: &Path) -> PathBuf {
    home.with_extension("logins.json")
}

fn put_back(home: &Path, logins: &[Login]) -> Vec<String> {
    let mut told = Vec::new();
    let Ok(dir) = Dir::open(home) else { return told };
    for login in logins {
        let is_link =
            home.join(&login.name).symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link {
            continue;
        }
        // No link is followed: what is read is what the agent wrote.
        let Ok(bytes) = dir.read_capped(&login.name, LOGIN_BYTES_MAX) else { continue };
        if serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(&bytes).is_err()
            && !is_yaml(&login.name)
        {
            continue;
        }
        if fs::read(&login.target).is_ok_and(|now| now == bytes) {
            continue;
        }
        if let Err(error) = replace(&login.target, &bytes) {
            let target = login.target.display();
            told.push(format!("a renewed login could not be put at `{target}`: {error}"));
        }
    }
    told
}

fn is_yaml(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn replace(target: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let name = target.file_name().unwrap_or_default();
    Dir::open(target.parent().unwrap_or(target))?.write_with_mode(Path::new(name), bytes, 0o600)
}

/// The same for homes below `parent` whose process was killed before it could.
pub fn put_back_left(parent: &Path) -> Vec<String> {
    let mut told = Vec::new();
    for name in dir::names(parent).unwrap_or_default() {
        let Some(home) = name.strip_suffix(".logins.json") else { continue };
        let Ok(bytes) = file::read_capped(&parent.join(&name), LOGIN_BYTES_MAX) else { continue };
        let Ok(logins) = serde_json::from_slice::<Vec<Login>>(&bytes) else { continue };
        told.extend(put_back(&parent.join(format!("{home}.home")), &logins));
    }
    told
}

/// A link to each of `from`'s entries that `wanted` names, below `under`.
pub fn links(from: &Path, under: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, PathBuf)> {
    let names = dir::names(from).unwrap_or_default();
    let wanted = names.into_iter().filter(|name| wanted(name));
    wanted.map(|name| (under.join(&name), from.join(&name))).collect()
}

/// The user's login at `path`, if there is one.
pub fn login(name: impl Into<PathBuf>, path: &Path) -> Option<Login> {
    let target = fs::canonicalize(path).ok().filter(|target| target.is_file())?;
    Some(Login { name: name.into(), target })
}

/// Gives every plain file below `from` a second name below `to`; links are left out.
pub fn keep(from: &Path, to: &Path, left_out: impl Fn(&Path) -> bool) -> io::Result<()> {
    if !from.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let mut files = 0;
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
                if files > SESSION_FILES_MAX {
                    return Err(io::Error::other("it has too many files"));
                }
                let place = to.join(&path);
                dir::create_private(place.parent().unwrap_or(to))?;
                dir::remove_file(&place)?;
                dir::link_or_copy(&from.join(&path), &place)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Case {
        temp: tempfile::TempDir,
    }

    impl Case {
        /// A user with settings, skills and a login.
        fn new() -> Case {
            let case = Case { temp: tempfile::tempdir().unwrap() };
            fs::create_dir_all(case.user().join("skills/mine")).unwrap();
            fs::write(case.user().join("settings.json"), "{\"a\":1}").unwrap();
            fs::write(case.user().join("skills/mine/SKILL.md"), "mine").unwrap();
            fs::write(case.user().join("login.json"), "{\"token\":1}").unwrap();
            case
        }

        fn user(&self) -> PathBuf {
            self.temp.path().join("user")
        }

        fn home(&self) -> PathBuf {
            self.temp.path().join("tmp/1.home")
        }

        fn plan(&self) -> Plan {
            let wanted = |name: &str| name != "login.json";
            Plan {
                dir: self.home(),
                made: vec!["sessions".into()],
                links: links(&self.user(), Path::new(""), wanted),
                files: vec![("state.json".into(), b"{}".to_vec())],
                logins: login("login.json", &self.user().join("login.json")).into_iter().collect(),
            }
        }

        fn login(&self) -> String {
            fs::read_to_string(self.user().join("login.json")).unwrap()
        }
    }

    #[test]
    fn settings_are_read_through_and_what_is_planted_stays_in_the_home() {
        let case = Case::new();
        case.plan().make().unwrap();
        let home = case.home();
        assert_eq!(fs::read_to_string(home.join("skills/mine/SKILL.md")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(home.join("state.json")).unwrap(), "{}");
        assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        // As an agent replaces a file: by renaming another over it.
        fs::write(home.join("new"), "planted").unwrap();
        fs::rename(home.join("new"), home.join("settings.json")).unwrap();
        case.plan().make().unwrap();
        assert_eq!(fs::read_to_string(home.join("settings.json")).unwrap(), "planted");
        assert_eq!(fs::read_to_string(case.user().join("settings.json")).unwrap(), "{\"a\":1}");
    }

    #[test]
    fn a_renewed_login_is_the_users_however_it_was_written() {
        let case = Case::new();
        let plan = case.plan();
        plan.make().unwrap();
        fs::write(case.home().join("login.json"), "{\"token\":2}").unwrap();
        assert_eq!(case.login(), "{\"token\":2}");
        fs::write(case.home().join("new"), "{\"token\":3}").unwrap();
        fs::rename(case.home().join("new"), case.home().join("login.json")).unwrap();
        assert_eq!(case.login(), "{\"token\":2}");
        assert_eq!(plan.put_back(), [""; 0]);
        assert_eq!(case.login(), "{\"token\":3}");
        let mode = case.user().join("login.json").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_login_takes_no_logins_place() {
        let case = Case::new();
        let plan = case.plan();
        plan.make().unwrap();
        let there = case.home().join("login.json");
        let secret = case.temp.path().join("secret");
        fs::write(&secret, "{\"other\":1}").unwrap();
        fs::remove_file(&there).unwrap();
        assert_eq!(plan.put_back(), [""; 0]);
        for planted in ["not json", "[1]", ""] {
            fs::write(&there, planted).unwrap();
            assert_eq!(plan.put_back(), [""; 0]);
            fs::remove_file(&there).unwrap();
        }
        symlink(&secret, &there).unwrap();
        assert_eq!(plan.put_back(), [""; 0]);
        fs::remove_file(&there).unwrap();
        fs::create_dir(&there).unwrap();
        assert_eq!(plan.put_back(), [""; 0]);
        assert_eq!(case.login(), "{\"token\":1}");
    }

    #[test]
    fn a_login_renewed_before_a_crash_is_found_by_the_next_process() {
        let case = Case::new();
        let plan = case.plan();
        plan.make().unwrap();
        plan.note().unwrap();
        fs::remove_file(case.home().join("login.json")).unwrap();
        fs::write(case.home().join("login.json"), "{\"token\":9}").unwrap();
        assert_eq!(put_back_left(&case.temp.path().join("tmp")), [""; 0]);
        assert_eq!(case.login(), "{\"token\":9}");
    }

    #[test]
    fn sessions_are_kept_without_what_links_lead_to() {
        let case = Case::new();
        let (from, to) = (case.temp.path().join("from"), case.temp.path().join("kept"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("a/b/one"), "1").unwrap();
        fs::write(from.join("a/login"), "secret").unwrap();
        symlink("/etc", from.join("a/etc")).unwrap();
        keep(&from, &to, |path| path.ends_with("login")).unwrap();
        keep(&from, &to, |path| path.ends_with("login")).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b/one")).unwrap(), "1");
        assert!(!to.join("a/etc").exists() && !to.join("a/login").exists());
        symlink("/etc", case.temp.path().join("link")).unwrap();
        for none in ["none", "link"] {
            let other = case.temp.path().join("other");
            keep(&case.temp.path().join(none), &other, |_| false).unwrap();
            assert!(!other.exists(), "{none}");
        }
    }
}

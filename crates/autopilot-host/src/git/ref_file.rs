//! Refs of the hub, read and written in this process by git's own rules: a lock file beside the ref,
//! taken exclusively and renamed over it.
//!
//! Invariant: only what is plain is done here. Whatever is not (a lock that is held, a ref that is
//! packed or moved, a name in the way of another, a file that can't be read) is left to git, which
//! decides and says why. Nothing has been changed then.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::hub::ExpectedRef;
use super::loose::{self, ObjectKind};
use super::object::Oid;
use crate::{fail, patience};

/// The most directories below a prefix that are looked into.
const DIRECTORIES_MAX: usize = 100_000;
/// `refs/heads` and its like stay, also when they are empty.
const FIXED_COMPONENTS: usize = 2;
/// A packed name that other names may be in the way of is a matter for git.
const PACKED: &str = "packed-refs";

/// Returns the refs below a prefix that ends with a slash, with the objects they name, sorted by
/// name; `None` where git has to be asked.
pub(super) fn list(git_dir: &Path, prefix: &str) -> Option<Vec<(String, Oid)>> {
    if fail::is_git_alone() || !prefix.starts_with("refs/") || !prefix.ends_with('/') {
        return None;
    }
    // A ref that is being packed is in its own file, or else in the packed ones: never in neither.
    let own = list_own(git_dir, prefix)?;
    let mut all = packed(git_dir)?;
    all.retain(|name, _| name.starts_with(prefix));
    all.extend(own);
    Some(all.into_iter().collect())
}

fn list_own(git_dir: &Path, prefix: &str) -> Option<BTreeMap<String, Oid>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![prefix.trim_end_matches('/').to_owned()];
    let mut looked = 0;
    while let Some(dir) = pending.pop() {
        looked += 1;
        if looked > DIRECTORIES_MAX {
            return None;
        }
        let entries = match fs::read_dir(git_dir.join(&dir)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for entry in entries {
            let entry = entry.ok()?;
            let name = format!("{dir}/{}", entry.file_name().to_str()?);
            if entry.file_type().ok()?.is_dir() {
                pending.push(name);
            } else if !name.ends_with(".lock") {
                match own_value(git_dir, &name) {
                    OwnRef::At(oid) => _ = found.insert(name, oid),
                    // It was deleted or packed since.
                    OwnRef::Nothing => {}
                    OwnRef::Unclear => return None,
                }
            }
        }
    }
    Some(found)
}

/// What the file of a ref says.
enum OwnRef {
    At(Oid),
    Nothing,
    Unclear,
}

fn own_value(git_dir: &Path, name: &str) -> OwnRef {
    match fs::read(git_dir.join(name)) {
        Ok(bytes) => match Oid::from_bytes(bytes.strip_suffix(b"\n").unwrap_or(&bytes)) {
            Ok(oid) if !oid.is_zero() => OwnRef::At(oid),
            Ok(_) | Err(_) => OwnRef::Unclear,
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => OwnRef::Nothing,
        Err(_) => OwnRef::Unclear,
    }
}

/// Reads the packed refs; there are none in most hubs.
fn packed(git_dir: &Path) -> Option<BTreeMap<String, Oid>> {
    if git_dir.join("reftable").symlink_metadata().is_ok() {
        return None;
    }
    let text = match fs::read_to_string(git_dir.join(PACKED)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(BTreeMap::new()),
        Err(_) => return None,
    };
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    lines
        .map(|line| {
            let (oid, name) = line.split_once(' ')?;
            Some((name.to_owned(), Oid::parse(oid).ok()?))
        })
        .collect()
}

/// Moves or makes a ref; `None` where git has to do it, and nothing was changed.
pub(super) fn set(git_dir: &Path, name: &str, new: &Oid, old: ExpectedRef<'_>) -> Option<()> {
    // A ref must not name what is not there, and a branch must name a commit.
    loose::read(git_dir, new, ObjectKind::Commit)?;
    let lock = LockedRef::take(git_dir, name)?;
    match (lock.value(), old) {
        (OwnRef::At(found), ExpectedRef::At(old)) if found == *old => {}
        (OwnRef::Nothing, ExpectedRef::Absent) if packed(git_dir)?.is_empty() => {}
        (OwnRef::At(_) | OwnRef::Nothing | OwnRef::Unclear, _) => return None,
    }
    lock.replace(new)
}

/// Deletes a ref; `None` where git has to do it, and nothing was changed.
pub(super) fn delete(git_dir: &Path, name: &str, old: &Oid) -> Option<()> {
    let lock = LockedRef::take(git_dir, name)?;
    let is_plain = matches!(lock.value(), OwnRef::At(found) if found == *old);
    if !is_plain || !packed(git_dir)?.is_empty() {
        return None;
    }
    fs::remove_file(git_dir.join(name)).ok()?;
    drop(lock);
    // As git does: every look at the refs would look into the empty directories too.
    let dirs = Path::new(name).ancestors().skip(1);
    for dir in dirs.take_while(|dir| dir.components().count() > FIXED_COMPONENTS) {
        if fs::remove_dir(git_dir.join(dir)).is_err() {
            break;
        }
    }
    Some(())
}

/// A ref that nobody else moves. The lock is released when this is dropped.
struct LockedRef<'a> {
    git_dir: &'a Path,
    name: &'a str,
    lock: PathBuf,
    file: fs::File,
    is_used_up: bool,
}

impl<'a> LockedRef<'a> {
    fn take(git_dir: &'a Path, name: &'a str) -> Option<LockedRef<'a>> {
        if fail::is_git_alone() || !is_plain(name) || patience::check().is_err() {
            return None;
        }
        let lock = git_dir.join(format!("{name}.lock"));
        let open = || fs::OpenOptions::new().write(true).create_new(true).open(&lock);
        let file = match open() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(lock.parent()?).ok()?;
                open()
            }
            opened => opened,
        };
        Some(LockedRef { git_dir, name, lock, file: file.ok()?, is_used_up: false })
    }

    fn value(&self) -> OwnRef {
        own_value(self.git_dir, self.name)
    }

    fn replace(mut self, new: &Oid) -> Option<()> {
        self.file.write_all(format!("{new}\n").as_bytes()).ok()?;
        fail::point("ref.locked");
        fs::rename(&self.lock, self.git_dir.join(self.name)).ok()?;
        self.is_used_up = true;
        fail::point("ref.moved");
        Some(())
    }
}

impl Drop for LockedRef<'_> {
    fn drop(&mut self) {
        if !self.is_used_up {
            // What stays is removed when the hub is opened next.
            let _stays = fs::remove_file(&self.lock);
        }
    }
}

/// Returns whether a name is certainly one that git accepts.
fn is_plain(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("refs/") else { return false };
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '=');
        !part.is_empty()
            && part.chars().all(plain)
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    rest.contains('/') && rest.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::command::GitCommand;

    struct RefBed {
        _temp: tempfile::TempDir,
        dir: PathBuf,
        one: Oid,
        two: Oid,
    }

    impl RefBed {
        fn new() -> RefBed {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path().join("r.git");
            let init = GitCommand::bare_minimum("make a repository");
            init.args(["init", "-q", "--bare"]).arg(&dir).ok().unwrap();
            let tree = loose::write(&dir, ObjectKind::Tree, b"", 40).unwrap();
            let commit = |text: &str| {
                let content =
                    format!("tree {tree}\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\n{text}");
                loose::write(&dir, ObjectKind::Commit, content.as_bytes(), 40).unwrap()
            };
            let (one, two) = (commit("one"), commit("two"));
            RefBed { _temp: temp, one, two, dir }
        }

        fn git(&self, words: &[&str]) -> String {
            let git = GitCommand::isolated("ask", &self.dir).args(words.to_vec());
            String::from_utf8(git.ok().unwrap()).unwrap()
        }

        fn agrees_with_git(&self) {
            let told = self.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/"]);
            let here = list(&self.dir, "refs/").unwrap().into_iter();
            let here: String = here.map(|(name, oid)| format!("{oid} {name}\n")).collect();
            assert_eq!(here, told);
        }
    }

    #[test]
    fn refs_are_made_moved_listed_and_deleted_as_git_does_it() {
        let bed = RefBed::new();
        let RefBed { dir, one, two, .. } = &bed;
        set(dir, "refs/heads/a/b", one, ExpectedRef::Absent).unwrap();
        set(dir, "refs/autopilot/x", two, ExpectedRef::Absent).unwrap();
        bed.agrees_with_git();
        set(dir, "refs/heads/a/b", two, ExpectedRef::At(one)).unwrap();
        bed.agrees_with_git();
        // Packed ones are listed, below their own files.
        bed.git(&["pack-refs", "--all"]);
        bed.agrees_with_git();
        bed.git(&["update-ref", "refs/heads/a/b", one.as_str()]);
        bed.agrees_with_git();
        assert_eq!(list(dir, "refs/heads/").unwrap(), [("refs/heads/a/b".into(), one.clone())]);
        let other = RefBed::new();
        set(&other.dir, "refs/heads/a/b", &other.one, ExpectedRef::Absent).unwrap();
        delete(&other.dir, "refs/heads/a/b", &other.one).unwrap();
        other.agrees_with_git();
        assert_eq!(other.git(&["for-each-ref"]), "");
        assert!(other.dir.join("refs/heads").is_dir() && !other.dir.join("refs/heads/a").exists());
    }

    #[test]
    fn what_is_not_plain_is_left_to_git_and_nothing_is_changed() {
        let bed = RefBed::new();
        let RefBed { dir, one, two, .. } = &bed;
        set(dir, "refs/heads/a", one, ExpectedRef::Absent).unwrap();
        let before = bed.git(&["for-each-ref"]);
        let missing = Oid::parse(&"1".repeat(40)).unwrap();
        let tries = [
            ("refs/heads/a", one, ExpectedRef::Absent),
            ("refs/heads/a", one, ExpectedRef::At(two)),
            ("refs/heads/b", one, ExpectedRef::At(one)),
            ("refs/heads/a/b", one, ExpectedRef::Absent),
            ("refs/heads/b", &missing, ExpectedRef::Absent),
            ("refs/heads/b..c", one, ExpectedRef::Absent),
            ("refs/heads/b.lock", one, ExpectedRef::Absent),
            ("HEAD", one, ExpectedRef::Absent),
        ];
        for (name, new, old) in tries {
            assert_eq!(set(dir, name, new, old), None, "{name}");
        }
        fs::write(dir.join("refs/heads/c.lock"), "").unwrap();
        assert_eq!(set(dir, "refs/heads/c", one, ExpectedRef::Absent), None, "a held lock");
        assert!(dir.join("refs/heads/c.lock").exists(), "and it is not ours to release");
        assert_eq!(delete(dir, "refs/heads/a", two), None);
        assert_eq!(bed.git(&["for-each-ref"]), before);
        bed.git(&["pack-refs", "--all"]);
        assert_eq!(set(dir, "refs/heads/d", one, ExpectedRef::Absent), None, "names may collide");
        assert_eq!(delete(dir, "refs/heads/a", one), None, "a packed ref");
        // A ref that can't be read is told by git.
        fs::write(dir.join("refs/heads/e"), "").unwrap();
        assert_eq!(list(dir, "refs/"), None);
        let locks = list_own(dir, "refs/tags/").unwrap();
        assert!(locks.is_empty());
    }
}

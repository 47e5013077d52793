//! The agent's own `.git` in a slot: good enough for its git and gh, thrown away with the slot's
//! content, and never read by a git command of ours.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::capture::copy_with_time;
use super::error::{GitError, OnFile};
use super::identity::CommitIdentity;
use super::name::collide;
use super::object::Oid;

const REF_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const REF_FILES_MAX: usize = 10_000;
const TIPS_MAX: usize = 4096;

/// The parts of a fresh `.git`.
pub(crate) struct Fresh<'a> {
    pub hub_objects: &'a Path,
    pub index: &'a Path,
    /// The controller's copy of the config, to see later whether the agent changed it.
    pub config_copy: &'a Path,
    pub excludes: &'a Path,
    pub commit: &'a Oid,
    /// The short name of the branch that HEAD is on.
    pub branch: &'a str,
    /// Another branch by its short name, and its commit (the base branch, for `git diff main`).
    pub beside: Option<(&'a str, &'a Oid)>,
    pub identity: &'a CommitIdentity,
    pub remotes: &'a [(String, String)],
}

/// Writes `.git` file by file: no git command runs while the slot still holds an agent's config.
pub(crate) fn write(slot: &Path, fresh: &Fresh<'_>) -> Result<(), GitError> {
    let git = slot.join(".git");
    let put = |name: &str, bytes: &[u8]| -> Result<(), GitError> {
        let path = git.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).on("create", parent)?;
        }
        fs::write(&path, bytes).on("write", &path)
    };
    let mut alternates = fresh.hub_objects.as_os_str().as_bytes().to_vec();
    alternates.push(b'\n');
    put("objects/info/alternates", &alternates)?;
    fs::create_dir_all(git.join("objects/pack")).on("create", &git)?;
    put("config", config(fresh).as_bytes())?;
    fs::write(fresh.config_copy, config(fresh)).on("write", fresh.config_copy)?;
    put("info/exclude", &fs::read(fresh.excludes).unwrap_or_default())?;
    put(&format!("refs/heads/{}", fresh.branch), format!("{}\n", fresh.commit).as_bytes())?;
    if let Some((name, at)) = fresh.beside.filter(|(name, _)| !collide(name, fresh.branch)) {
        put(&format!("refs/heads/{name}"), format!("{at}\n").as_bytes())?;
    }
    let index = git.join("index");
    copy_with_time(fresh.index, &index)?;
    put("HEAD", format!("ref: refs/heads/{}\n", fresh.branch).as_bytes())
}

fn config(fresh: &Fresh<'_>) -> String {
    let sha256 = fresh.commit.as_str().len() == 64;
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {}\n\tfilemode = true\n\tbare = false\n\
         \tlogAllRefUpdates = true\n",
        u8::from(sha256)
    );
    if sha256 {
        text.push_str("[extensions]\n\tobjectFormat = sha256\n");
    }
    text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[commit]\n\tgpgSign = false\n");
    text.push_str(&format!(
        "[user]\n\tname = {}\n\temail = {}\n",
        quoted(&fresh.identity.name),
        quoted(&fresh.identity.email)
    ));
    for (name, url) in fresh.remotes {
        text.push_str(&format!(
            "[remote {}]\n\turl = {}\n\tfetch = {}\n",
            quoted(name),
            quoted(url),
            quoted(&format!("+refs/heads/*:refs/remotes/{name}/*"))
        ));
    }
    text
}

fn quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// The agent's `.git` after its work, read as plain files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundRefs {
    /// The name of the ref that HEAD points to, if it is symbolic.
    pub head_ref: Option<String>,
    pub head: Option<Oid>,
    /// Every object name in HEAD, refs, packed-refs and reflogs: the commits that the agent made,
    /// amended away, stashed or reset past.
    pub tips: BTreeSet<Oid>,
    /// Whether there was more than the limits allow to look at.
    pub truncated: bool,
    pub stash: bool,
}

/// Reads the agent's refs; `None` when `.git` is no longer a directory.
pub(crate) fn read(slot: &Path) -> Option<FoundRefs> {
    let git = slot.join(".git");
    if !git.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return None;
    }
    let mut found = FoundRefs::default();
    let mut loose: Vec<(PathBuf, Oid)> = Vec::new();
    let mut pending: Vec<PathBuf> = ["HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD"]
        .iter()
        .chain(&["packed-refs", "refs", "logs"])
        .map(|name| git.join(name))
        .collect();
    let mut files = 0;
    while let Some(path) = pending.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() {
            if let Ok(entries) = fs::read_dir(&path) {
                pending.extend(entries.flatten().map(|entry| entry.path()));
            }
            continue;
        }
        files += 1;
        if files > REF_FILES_MAX || found.tips.len() > TIPS_MAX {
            found.truncated = true;
            break;
        }
        let Some(text) = read_small(&path) else { continue };
        found.tips.extend(names_in(&text));
        if let Some(oid) = names_in(&text).next() {
            loose.push((path, oid));
        }
    }
    found.stash = git.join("refs/stash").symlink_metadata().is_ok();
    resolve_head(&git, &loose, &mut found);
    Some(found)
}

fn resolve_head(git: &Path, loose: &[(PathBuf, Oid)], found: &mut FoundRefs) {
    let Some(text) = read_small(&git.join("HEAD")) else { return };
    let Some(name) = text.trim().strip_prefix("ref: ") else {
        found.head = Oid::parse(text.trim()).ok();
        return;
    };
    found.head_ref = Some(name.to_owned());
    found.head = loose
        .iter()
        .find(|(path, _)| path.strip_prefix(git).is_ok_and(|rest| rest == Path::new(name)))
        .map(|(_, oid)| oid.clone())
        .or_else(|| packed(git, name));
}

fn packed(git: &Path, name: &str) -> Option<Oid> {
    let text = read_small(&git.join("packed-refs"))?;
    let line = text.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
    Oid::parse(line.split(' ').next()?).ok()
}

/// Opens a file without ever blocking on a pipe or following a link, whatever was put in the file's
/// place.
pub(crate) fn open_plain(path: &Path) -> Option<fs::File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

fn read_small(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(REF_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn names_in(text: &str) -> impl Iterator<Item = Oid> + '_ {
    text.split(|c: char| c.is_whitespace() || c == '^')
        .filter_map(|word| Oid::parse(word).ok())
        .filter(|oid| !oid.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_pipe_or_link_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        nix::unistd::mkfifo(&git.join("refs/heads/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", git.join("HEAD")).unwrap();
        let found = read(temp.path()).unwrap();
        assert_eq!(found, FoundRefs::default());
    }

    #[test]
    fn the_number_of_tips_is_bounded() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        let lines: String = (0..TIPS_MAX + 1).map(|n| format!("{n:040x} refs/x/{n}\n")).collect();
        fs::write(git.join("packed-refs"), lines).unwrap();
        fs::write(git.join("HEAD"), format!("{:040x}\n", 7)).unwrap();
        let found = read(temp.path()).unwrap();
        assert!(found.truncated || found.tips.len() >= TIPS_MAX);
    }

    #[test]
    fn values_survive_the_config_syntax() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\n\"");
    }
}

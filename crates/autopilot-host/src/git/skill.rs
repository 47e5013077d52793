//! Skill files of a commit: files of one name in the directories of a folder, as a checkout would
//! show them. Links inside of the commit are followed, those that leave it are not.

use super::command::GitCommand;
use super::error::GitError;
use super::object::Oid;
use super::tree_file::surely_lacks_top;
use std::path::Path;

/// The limits on what is read.
#[derive(Clone, Copy, Debug)]
pub struct SkillLimits {
    /// The most directories of one folder.
    pub dirs_max: usize,
    /// The largest file; a longer one is not read.
    pub bytes_max: usize,
    /// The most bytes of all files together.
    pub all_bytes_max: usize,
}

/// A skill file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// The folder, as the caller named it.
    pub folder: String,
    /// The name of the directory in the folder.
    pub dir_name: String,
    /// The content, or the reason why it was not read.
    pub text: Result<Vec<u8>, String>,
}

/// Returns whether a commit certainly does not have the directory in which a folder is.
fn surely_lacks(git_dir: &Path, commit: &str, folder: &str) -> bool {
    let top = folder.split('/').next().unwrap_or(folder);
    Oid::parse(commit).is_ok_and(|commit| surely_lacks_top(git_dir, &commit, top))
}

/// Reads `folder/*/file` of `commit`, for each folder.
pub fn skill_files(
    git_dir: &Path,
    commit: &str,
    folders: &[&str],
    file: &str,
    limits: SkillLimits,
) -> Result<Vec<SkillFile>, GitError> {
    let folders: Vec<&str> =
        folders.iter().copied().filter(|path| !surely_lacks(git_dir, commit, path)).collect();
    let trees = checked(git_dir, folders.iter().map(|folder| format!("{commit}:{folder}")))?;
    let mut names: Vec<(String, String)> = Vec::new();
    for (folder, tree) in folders.iter().zip(trees) {
        if let SeenObject::Object { oid, kind, .. } = tree
            && kind == "tree"
        {
            let dirs = list(git_dir, &oid)?;
            let dirs = dirs.into_iter().filter(|name| is_plain(name)).take(limits.dirs_max);
            names.extend(dirs.map(|name| ((*folder).to_owned(), name)));
        }
    }
    let paths = names.iter().map(|(folder, name)| format!("{commit}:{folder}/{name}/{file}"));
    let seen = checked(git_dir, paths)?;
    let mut room = limits.all_bytes_max;
    let (mut wanted, mut found) = (Vec::new(), Vec::new());
    for ((folder, dir_name), seen) in names.into_iter().zip(seen) {
        let text = match seen {
            SeenObject::Object { oid, kind, bytes } if kind == "blob" => {
                if bytes > limits.bytes_max || bytes > room {
                    Err(format!("it is too large ({bytes} bytes)"))
                } else {
                    room -= bytes;
                    wanted.push((oid, bytes));
                    Ok(Vec::new())
                }
            }
            SeenObject::Outside => Err("it is a link out of the repository".to_owned()),
            SeenObject::Object { .. } | SeenObject::Nothing => continue,
        };
        found.push(SkillFile { folder, dir_name, text });
    }
    let mut texts = read(git_dir, &wanted)?.into_iter();
    for file in found.iter_mut().filter(|file| file.text.is_ok()) {
        file.text = texts.next().ok_or_else(|| "git did not return its content".to_owned());
    }
    Ok(found)
}

/// A file below a folder of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFile {
    /// The path from the folder.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// Reads the files in the directories of a folder of `commit` that have a `file`. Of a directory
/// that is a link only that file is read.
pub fn folder_files(
    git_dir: &Path,
    commit: &str,
    folder: &str,
    file: &str,
    limits: SkillLimits,
) -> Result<Vec<FolderFile>, GitError> {
    let skills = skill_files(git_dir, commit, &[folder], file, limits)?;
    let mut found: Vec<FolderFile> = Vec::new();
    let mut room = limits.all_bytes_max;
    for SkillFile { dir_name, text, .. } in skills {
        let Ok(bytes) = text else { continue };
        let path = format!("{commit}:{folder}/{dir_name}");
        let listed = GitCommand::isolated("list the files of a skill", git_dir)
            .args(["ls-tree", "-r", "-z", "-l", "--full-tree", &path])
            .run()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let plain = listed.split('\0').filter_map(|line| {
            let (facts, name) = line.split_once('\t')?;
            let facts: Vec<&str> = facts.split_whitespace().collect();
            let (mode, oid, size) = (facts.first()?, facts.get(2)?, facts.get(3)?);
            let is_plain = matches!(*mode, "100644" | "100755") && name != file;
            let size = size.parse::<usize>().ok().filter(|_| is_plain)?;
            Some((name.to_owned(), ((*oid).to_owned(), size)))
        });
        let (names, wanted): (Vec<String>, Vec<(String, usize)>) = plain
            .take(limits.dirs_max)
            .take_while(|(_, (_, size))| {
                let fits = *size <= room;
                room = room.saturating_sub(*size);
                fits
            })
            .unzip();
        let texts = read(git_dir, &wanted)?;
        found.push(FolderFile { path: format!("{dir_name}/{file}"), bytes });
        let others = names.into_iter().zip(texts);
        found.extend(
            others.map(|(name, bytes)| FolderFile { path: format!("{dir_name}/{name}"), bytes }),
        );
    }
    Ok(found)
}

/// Returns the contents of objects whose sizes are known, in order.
pub(super) fn read(git_dir: &Path, wanted: &[(String, usize)]) -> Result<Vec<Vec<u8>>, GitError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let lines: String = wanted.iter().map(|(oid, _)| format!("{oid}\n")).collect();
    let said = GitCommand::isolated("read skills", git_dir)
        .args(["cat-file", "--batch"])
        .stdin(lines)
        .ok()?;
    let mut rest = said.as_slice();
    let mut texts = Vec::new();
    for (_, bytes) in wanted {
        let Some(head) = rest.iter().position(|byte| *byte == b'\n') else { break };
        let Some(text) = rest.get(head + 1..head + 1 + bytes) else { break };
        texts.push(text.to_vec());
        rest = rest.get(head + bytes + 2..).unwrap_or_default();
    }
    Ok(texts)
}

/// Git's answer about a name.
enum SeenObject {
    Object { oid: String, kind: String, bytes: usize },
    Outside,
    Nothing,
}

/// Returns one answer for each name, in order.
fn checked(
    git_dir: &Path,
    names: impl Iterator<Item = String>,
) -> Result<Vec<SeenObject>, GitError> {
    let asked: Vec<String> = names.collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let lines: String = asked.iter().map(|name| format!("{name}\n")).collect();
    let said = GitCommand::isolated("look for skills", git_dir)
        .args(["cat-file", "--batch-check", "--follow-symlinks"])
        .stdin(lines)
        .ok()?;
    let said = String::from_utf8_lossy(&said);
    let mut lines = said.lines();
    let mut seen = Vec::new();
    for _ in &asked {
        let line = lines.next().unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        seen.push(match words.as_slice() {
            // The next line is the target of the link.
            ["symlink", _] => {
                lines.next();
                SeenObject::Outside
            }
            ["dangling" | "loop" | "notdir", _] => {
                lines.next();
                SeenObject::Nothing
            }
            [oid, kind, bytes] if bytes.parse::<usize>().is_ok() => SeenObject::Object {
                oid: (*oid).to_owned(),
                kind: (*kind).to_owned(),
                bytes: bytes.parse().unwrap_or(usize::MAX),
            },
            _ => SeenObject::Nothing,
        });
    }
    Ok(seen)
}

fn list(git_dir: &Path, tree: &str) -> Result<Vec<String>, GitError> {
    let said = GitCommand::isolated(format!("list {tree}"), git_dir)
        .args(["ls-tree", "-z", "--name-only", tree])
        .ok()?;
    let names = said.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect())
}

/// Returns whether the name is not hidden and fits on one line of a question.
fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    const LIMITS: SkillLimits = SkillLimits { dirs_max: 10, bytes_max: 100, all_bytes_max: 1000 };

    fn repository(fill: impl Fn(&Path)) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path());
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"],
        ] {
            assert!(Command::new("git").args(args).current_dir(&dir).status().unwrap().success());
        }
        dir
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn told(dir: &Path, limits: SkillLimits) -> Vec<(String, String, Result<String, String>)> {
        let git_dir = dir.join(".git");
        let found = skill_files(&git_dir, "HEAD", &["a/skills", "b/skills"], "SKILL.md", limits);
        let text = |text: Result<Vec<u8>, String>| text.map(|t| String::from_utf8(t).unwrap());
        found.unwrap().into_iter().map(|f| (f.folder, f.dir_name, text(f.text))).collect()
    }

    #[test]
    fn files_are_those_of_the_commit_and_links_inside_of_it_are_followed() {
        let dir = repository(|root| {
            write(root, "a/skills/one/SKILL.md", "1");
            write(root, "a/skills/none/README.md", "x");
            write(root, "a/skills/file", "x");
            write(root, "kept/two/SKILL.md", "2");
            symlink("../../kept/two", root.join("a/skills/two")).unwrap();
            symlink("/etc", root.join("a/skills/out")).unwrap();
            symlink("nowhere", root.join("a/skills/gone")).unwrap();
            fs::create_dir_all(root.join("b")).unwrap();
            symlink("../kept", root.join("b/skills")).unwrap();
        });
        write(dir.path(), "a/skills/later/SKILL.md", "not committed");
        let of = |folder: &str, name: &str, text: Result<&str, &str>| {
            (folder.into(), name.into(), text.map(str::to_owned).map_err(str::to_owned))
        };
        assert_eq!(
            told(dir.path(), LIMITS),
            [
                of("a/skills", "one", Ok("1")),
                of("a/skills", "out", Err("it is a link out of the repository")),
                of("a/skills", "two", Ok("2")),
                of("b/skills", "two", Ok("2")),
            ]
        );
    }

    #[test]
    fn only_so_much_is_read() {
        let dir = repository(|root| {
            for n in 0..4 {
                write(root, &format!("a/skills/s{n}/SKILL.md"), &"x".repeat(40 * (n + 1)));
            }
        });
        let sound = |limits| -> Vec<bool> {
            told(dir.path(), limits).into_iter().map(|(_, _, text)| text.is_ok()).collect()
        };
        assert_eq!(sound(LIMITS), [true, true, false, false]);
        assert_eq!(sound(SkillLimits { all_bytes_max: 50, ..LIMITS }), [true, false, false, false]);
        assert_eq!(sound(SkillLimits { dirs_max: 1, ..LIMITS }), [true]);
        let empty = repository(|root| write(root, "x", "y"));
        assert!(told(empty.path(), LIMITS).is_empty());
    }
}

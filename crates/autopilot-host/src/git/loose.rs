//! Loose objects of the hub, read and written in this process: a git process for each of them costs
//! more than everything else that a step does with the hub.
//!
//! Whatever is not plainly there and sound is left to git, which also says what is wrong with it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::object::Oid;
use crate::{fail, patience};

/// The largest object that is read here; what is larger is streamed by git.
const OBJECT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Fast, because most of what is written is a few hundred bytes.
const COMPRESSION: u8 = 1;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
}

impl ObjectKind {
    /// Returns the word by which git calls it.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
        }
    }
}

/// Returns the content of a loose object of this kind. `None` says nothing: the object may be in a
/// pack, missing, damaged, of another kind or too large.
pub(super) fn read(git_dir: &Path, oid: &Oid, kind: ObjectKind) -> Option<Vec<u8>> {
    let (found, content) = read_any(git_dir, oid)?;
    (found == kind).then_some(content)
}

/// The same for an object of any kind.
pub(super) fn read_any(git_dir: &Path, oid: &Oid) -> Option<(ObjectKind, Vec<u8>)> {
    if fail::is_git_alone() {
        return None;
    }
    let path = path_of(git_dir, oid);
    if path.symlink_metadata().ok()?.len() > u64::try_from(OBJECT_BYTES_MAX).ok()? {
        return None;
    }
    let packed = fs::read(path).ok()?;
    let mut whole = decompress_to_vec_zlib_with_limit(&packed, OBJECT_BYTES_MAX).ok()?;
    if name_of(&whole, oid.as_str().len())? != *oid {
        return None;
    }
    let end = memchr::memchr(0, &whole)?;
    let content_bytes = whole.len() - end - 1;
    let is_kind = |kind: &ObjectKind| {
        whole.get(..end) == Some(format!("{} {content_bytes}", kind.word()).as_bytes())
    };
    let kind =
        [ObjectKind::Commit, ObjectKind::Tree, ObjectKind::Blob].into_iter().find(is_kind)?;
    whole.drain(..=end);
    Some((kind, whole))
}

/// Returns whether the object certainly has a sound file of its own in the hub: one that a loss of
/// power left empty is not there.
pub(super) fn is_there(git_dir: &Path, oid: &Oid) -> bool {
    read_any(git_dir, oid).is_some()
}

/// Writes an object of a repository whose object names have `hex_digits`. It is there as a whole or
/// not at all, whenever this process ends.
pub(super) fn write(
    git_dir: &Path,
    kind: ObjectKind,
    content: &[u8],
    hex_digits: usize,
) -> io::Result<Oid> {
    patience::check()?;
    let mut whole = format!("{} {}\0", kind.word(), content.len()).into_bytes();
    whole.extend_from_slice(content);
    let no_name = || io::Error::other("objects of this repository have names of another kind");
    let oid = name_of(&whole, hex_digits).ok_or_else(no_name)?;
    if read(git_dir, &oid, kind).is_some() {
        return Ok(oid);
    }
    let path = path_of(git_dir, &oid);
    let dir = path.parent().unwrap_or(git_dir);
    fs::create_dir_all(dir)?;
    // Begins like a temporary object of git's, so that it is removed like one.
    let mut file = tempfile::Builder::new().prefix("tmp_obj_").tempfile_in(dir)?;
    file.write_all(&compress_to_vec_zlib(&whole, COMPRESSION))?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o444))?;
    fail::point("object.written");
    file.persist(&path).map_err(|error| error.error)?;
    Ok(oid)
}

/// Returns the name of an object with this content.
pub(super) fn name(kind: ObjectKind, content: &[u8], hex_digits: usize) -> Option<Oid> {
    let mut whole = format!("{} {}\0", kind.word(), content.len()).into_bytes();
    whole.extend_from_slice(content);
    name_of(&whole, hex_digits)
}

/// Returns the name of a blob with this content.
pub(super) fn blob_name(content: &[u8], hex_digits: usize) -> Option<Oid> {
    name(ObjectKind::Blob, content, hex_digits)
}

/// Returns the name of a blob with the content of a file, which must have this length.
pub(super) fn blob_name_of(file: impl Read, bytes: u64, hex_digits: usize) -> Option<Oid> {
    match hex_digits {
        40 => digest_of::<Sha1>(file, bytes),
        64 => digest_of::<Sha256>(file, bytes),
        _ => None,
    }
}

fn digest_of<D: Digest>(mut file: impl Read, bytes: u64) -> Option<Oid> {
    let mut digest = D::new();
    digest.update(format!("blob {bytes}\0"));
    let (mut left, mut buffer) = (bytes, vec![0; 64 * 1024]);
    loop {
        patience::check().ok()?;
        let count = file.read(&mut buffer).ok()?;
        digest.update(buffer.get(..count)?);
        match u64::try_from(count).ok()? {
            0 if left == 0 => return Oid::parse(&hex(&digest.finalize())).ok(),
            0 => return None,
            count => left = left.checked_sub(count)?,
        }
    }
}

fn name_of(whole: &[u8], hex_digits: usize) -> Option<Oid> {
    let name = match hex_digits {
        40 => hex(&Sha1::digest(whole)),
        64 => hex(&Sha256::digest(whole)),
        _ => return None,
    };
    Oid::parse(&name).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn path_of(git_dir: &Path, oid: &Oid) -> PathBuf {
    let (fan, rest) = oid.as_str().split_at(2);
    git_dir.join("objects").join(fan).join(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::command::GitCommand;

    fn repository(format: &str) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("r.git");
        let init = GitCommand::bare_minimum("make a repository");
        let format = format!("--object-format={format}");
        init.args(["init", "-q", "--bare", &format]).arg(&dir).ok().unwrap();
        (temp, dir)
    }

    #[test]
    fn what_is_written_here_is_what_git_would_write_and_reads() {
        for (format, digits) in [("sha1", 40), ("sha256", 64)] {
            let (_temp, dir) = repository(format);
            for content in [b"".as_slice(), b"a\0b", &vec![7; 300_000]] {
                let oid = write(&dir, ObjectKind::Blob, content, digits).unwrap();
                let git = |words: &[&str]| GitCommand::isolated("ask", &dir).args(words.to_vec());
                let named = git(&["hash-object", "--stdin"]).stdin(content).oid().unwrap();
                assert_eq!(oid, named);
                assert_eq!(blob_name(content, digits).unwrap(), named);
                assert_eq!(git(&["cat-file", "blob", oid.as_str()]).ok().unwrap(), content);
                assert_eq!(read(&dir, &oid, ObjectKind::Blob).unwrap(), content);
                git(&["fsck", "--strict"]).ok().unwrap();
            }
        }
    }

    #[test]
    fn what_is_damaged_packed_or_of_another_kind_is_left_to_git() {
        let (_temp, dir) = repository("sha1");
        let one = write(&dir, ObjectKind::Blob, b"one", 40).unwrap();
        let two = write(&dir, ObjectKind::Blob, b"two", 40).unwrap();
        assert!(read(&dir, &one, ObjectKind::Commit).is_none());
        fs::rename(path_of(&dir, &two), path_of(&dir, &one)).unwrap();
        assert!(read(&dir, &one, ObjectKind::Blob).is_none(), "the content of another object");
        fs::remove_file(path_of(&dir, &one)).unwrap();
        fs::write(path_of(&dir, &one), b"").unwrap();
        assert!(read(&dir, &one, ObjectKind::Blob).is_none(), "an empty file");
        assert!(!is_there(&dir, &one), "an empty file is no object");
        assert_eq!(write(&dir, ObjectKind::Blob, b"one", 40).unwrap(), one);
        assert_eq!(read(&dir, &one, ObjectKind::Blob).unwrap(), b"one", "and it is mended");
        assert!(is_there(&dir, &one));
    }
}

//! The indexes of the hub's packs, read as files: they tell which objects are there without a git
//! process. What is not found here is looked for by git.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::object::Oid;
use crate::{fail, patience};

/// The most bytes of indexes that are read at a time; git is faster with more.
const INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The most packs that are looked into, largest first.
const PACKS_MAX: usize = 32;
const MAGIC: &[u8] = b"\xfftOc\0\0\0\x02";
/// The magic number, and how many names begin with each byte or a smaller one.
const HEAD_BYTES: usize = 8 + 256 * 4;

/// Removes those of the objects that are certainly in a pack.
pub(super) fn remove_packed(git_dir: &Path, objects: &mut BTreeSet<Oid>) {
    let Some(name_bytes) = objects.first().map(|oid| oid.as_str().len() / 2) else { return };
    let Ok(entries) = fs::read_dir(git_dir.join("objects/pack")) else { return };
    if fail::is_git_alone() {
        return;
    }
    let indexes = entries.flatten().map(|entry| entry.path());
    let indexes = indexes.filter(|path| path.extension().is_some_and(|end| end == "idx"));
    let mut indexes: Vec<_> =
        indexes.filter_map(|path| Some((path.metadata().ok()?.len(), path))).collect();
    indexes.sort_by(|one, other| other.cmp(one));
    let mut left = INDEX_BYTES_MAX;
    for (bytes, index) in indexes.into_iter().take(PACKS_MAX) {
        if objects.is_empty() || bytes > left || patience::check().is_err() {
            return;
        }
        left -= bytes;
        if let Some(names) = names_in(&index, name_bytes) {
            objects.retain(|oid| !has(&names, name_bytes, &oid.to_bytes()));
        }
    }
}

/// Returns the names in an index of the second version, one after the other in order, if the pack
/// that it is of is beside it and complete.
fn names_in(index: &Path, name_bytes: usize) -> Option<Vec<u8>> {
    let mut content = fs::read(index).ok()?;
    if !content.starts_with(MAGIC) {
        return None;
    }
    let count = content.get(HEAD_BYTES - 4..HEAD_BYTES)?.try_into().ok()?;
    let count = usize::try_from(u32::from_be_bytes(count)).ok()?;
    // The digest of the pack is before that of the index.
    let digest_at = content.len().checked_sub(2 * name_bytes)?;
    let digest = content.get(digest_at..digest_at + name_bytes)?;
    if end_of(&index.with_extension("pack"), name_bytes).ok()? != digest {
        return None;
    }
    let end = HEAD_BYTES.checked_add(count.checked_mul(name_bytes)?)?;
    if end > digest_at {
        return None;
    }
    content.truncate(end);
    content.drain(..HEAD_BYTES);
    Some(content)
}

/// Returns the last bytes of a file.
fn end_of(path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = u64::try_from(bytes).map_err(io::Error::other)?;
    let start = file.metadata()?.len().checked_sub(length);
    let mut end = vec![0; bytes];
    file.read_exact_at(&mut end, start.ok_or(io::ErrorKind::UnexpectedEof)?)?;
    Ok(end)
}

/// Looks for a name among names in order.
fn has(names: &[u8], name_bytes: usize, wanted: &[u8]) -> bool {
    let (mut low, mut high) = (0, names.len() / name_bytes);
    while low < high {
        let middle = low + (high - low) / 2;
        let at = middle * name_bytes;
        match names.get(at..at + name_bytes).map(|name| name.cmp(wanted)) {
            Some(std::cmp::Ordering::Equal) => return true,
            Some(std::cmp::Ordering::Less) => low = middle + 1,
            Some(std::cmp::Ordering::Greater) => high = middle,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::command::GitCommand;
    use crate::git::loose::{self, ObjectKind};

    #[test]
    fn what_is_in_a_pack_is_found_as_long_as_the_pack_is_whole() {
        for (format, digits) in [("sha1", 40), ("sha256", 64)] {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path().join("r.git");
            let format = format!("--object-format={format}");
            let init = GitCommand::bare_minimum("make a repository");
            init.args(["init", "-q", "--bare", &format]).arg(&dir).ok().unwrap();
            let write = |text: String| {
                loose::write(&dir, ObjectKind::Blob, text.as_bytes(), digits).unwrap()
            };
            let packed: BTreeSet<Oid> = (0..600).map(|n| write(format!("packed {n}"))).collect();
            let loose: BTreeSet<Oid> = (0..600).map(|n| write(format!("loose {n}"))).collect();
            let names: String = packed.iter().map(|oid| format!("{oid}\n")).collect();
            let pack = GitCommand::isolated("pack", &dir).args(["pack-objects", "-q"]);
            pack.arg(dir.join("objects/pack/pack")).stdin(names).ok().unwrap();
            let rest = || {
                let mut rest: BTreeSet<Oid> = packed.union(&loose).cloned().collect();
                remove_packed(&dir, &mut rest);
                rest
            };
            assert_eq!(rest(), loose);
            let files = fs::read_dir(dir.join("objects/pack")).unwrap().flatten();
            let mut files = files.map(|entry| entry.path());
            let pack = files.find(|path| path.extension().unwrap() == "pack").unwrap();
            let content = fs::read(&pack).unwrap();
            fs::remove_file(&pack).unwrap();
            assert_eq!(rest().len(), 1200, "the pack is gone");
            fs::write(&pack, content.get(..content.len() - 1).unwrap()).unwrap();
            assert_eq!(rest().len(), 1200, "the pack is cut short");
        }
    }
}

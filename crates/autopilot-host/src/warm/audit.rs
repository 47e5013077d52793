//! The look over everything in a room before it is sealed.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::{OnPath, SealRefusal, WarmError};
use crate::dir::open_up;
use crate::patience;

/// The facts of a room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RoomAudit {
    /// The time of the newest entry, in nanoseconds since 1970.
    pub newest_ns: i64,
    pub bytes: u64,
    pub entries: u64,
}

/// Looks at everything below `root`. Sockets, pipes and devices are removed: no build needs them, and
/// one kind of device would hide a file from every layer.
pub(super) fn look(root: &Path) -> Result<RoomAudit, WarmError> {
    let mut audit = RoomAudit::default();
    let mut newest = PathBuf::new();
    walk(root, &mut |path, met| {
        if !(met.is_dir() || met.is_file() || met.is_symlink()) {
            return fs::remove_file(path).at("remove", path);
        }
        if has_layer_attribute(path, met).at("read the attributes of", path)? {
            let path = path.strip_prefix(root).unwrap_or(path).to_path_buf();
            return Err(WarmError::NotSealed(SealRefusal::LayerAttribute { path }));
        }
        if time_of(met) > audit.newest_ns {
            audit.newest_ns = time_of(met);
            newest = path.to_path_buf();
        }
        audit.entries += 1;
        // Of a file with several names each counts for its share.
        audit.bytes += if met.is_file() { met.len() / met.nlink().max(1) } else { 0 };
        Ok(())
    })?;
    if audit.newest_ns > nanoseconds(now()) {
        let path = newest.strip_prefix(root).unwrap_or(&newest).to_path_buf();
        return Err(WarmError::NotSealed(SealRefusal::FutureTime { path }));
    }
    Ok(audit)
}

/// Returns the newest entry below `root`, with its time; `None` if there is nothing.
pub(super) fn newest(root: &Path) -> Result<Option<(PathBuf, i64)>, WarmError> {
    let mut newest: Option<(PathBuf, i64)> = None;
    walk(root, &mut |path, met| {
        if newest.as_ref().is_none_or(|(_, time)| time_of(met) > *time) {
            newest = Some((path.strip_prefix(root).unwrap_or(path).to_path_buf(), time_of(met)));
        }
        Ok(())
    })?;
    Ok(newest)
}

/// Returns the time of the last change of content, in nanoseconds since 1970.
pub(super) fn time_of(met: &Metadata) -> i64 {
    met.mtime().saturating_mul(1_000_000_000).saturating_add(met.mtime_nsec())
}

/// Returns the time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns a time since 1970 in nanoseconds.
pub(super) fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Calls `look` with everything below `root`, a directory before what is in it. No link is followed.
pub(super) fn walk(
    root: &Path,
    look: &mut dyn FnMut(&Path, &Metadata) -> Result<(), WarmError>,
) -> Result<(), WarmError> {
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        open_up(&dir).at("make readable", &dir)?;
        for entry in fs::read_dir(&dir).at("read", &dir)? {
            patience::check().at("read", &dir)?;
            let path = entry.at("read", &dir)?.path();
            let met = path.symlink_metadata().at("look at", &path)?;
            look(&path, &met)?;
            if met.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(())
}

/// Returns whether an entry has an attribute of overlays. Links can't have any.
fn has_layer_attribute(path: &Path, met: &Metadata) -> io::Result<bool> {
    if met.is_symlink() {
        return Ok(false);
    }
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut names = vec![0_u8; 4096];
    loop {
        // SAFETY: path and names outlive the call, and the length is that of the names.
        let length =
            unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
        let Ok(length) = usize::try_from(length) else {
            match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ERANGE) => {
                    names.resize(names.len() * 4, 0);
                    continue;
                }
                error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(false),
                error => return Err(error),
            }
        };
        let mut listed = names.get(..length).unwrap_or_default().split(|byte| *byte == 0);
        return Ok(listed.any(|name| name.starts_with(b"user.overlay.")));
    }
}

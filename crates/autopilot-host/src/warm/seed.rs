//! Sealed seeds: what the untouched base built, read-only from then on.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::error::{OnPath, WarmError, io_error};
use super::lock::{LockSharing, RoomLock};
use super::mark::{FileMark, TreeMarks};
use super::room::ROOT;
use crate::exec::OsText;
use crate::file;
use crate::git::Oid;

/// The largest seal that is read.
const SEAL_BYTES_MAX: u64 = 256 * 1024 * 1024;
const SEAL: &str = "seal.json";
/// The file whose time is that of the last use.
const USED: &str = "used";
/// How long the last whole copy of the seed took, in milliseconds.
const COPIED: &str = "copied";
/// How long the seed's build directories took to be put into a slot the last time, in milliseconds.
const LAID: &str = "laid";

/// The record of a seed, written last. A seed without it is none.
#[derive(Debug, Serialize, Deserialize)]
pub struct SeedSeal {
    /// The version of this record.
    version: u32,
    /// The name by which the seed is found.
    pub key: String,
    /// The tree of the base.
    pub tree: Oid,
    /// The time of the newest entry, in nanoseconds since 1970.
    pub newest_ns: i64,
    /// The size of all files, in bytes.
    pub bytes: u64,
    /// The number of files, links and directories.
    pub entries: u64,
    /// How long the base's own gate took, in milliseconds.
    pub cold_ms: u64,
    /// Files that the setup had made and commands changed or removed: with any, a gate over this seed
    /// has to run the setup again.
    #[serde(default)]
    pub setup_lost: Vec<String>,
    files: Vec<(OsText, FileMark)>,
}

const VERSION: u32 = 1;

impl SeedSeal {
    pub(super) fn new(
        (key, tree): (&str, Oid),
        cold: Duration,
        audit: &super::audit::RoomAudit,
        marks: &TreeMarks,
    ) -> SeedSeal {
        let text = |path: &PathBuf| OsText::from(&OsString::from(path));
        SeedSeal {
            version: VERSION,
            key: key.to_owned(),
            tree,
            newest_ns: audit.newest_ns,
            bytes: audit.bytes,
            entries: audit.entries,
            cold_ms: u64::try_from(cold.as_millis()).unwrap_or(u64::MAX),
            setup_lost: Vec::new(),
            files: marks.files().map(|(path, mark)| (text(path), mark.clone())).collect(),
        }
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), WarmError> {
        let path = dir.join(SEAL);
        let text = serde_json::to_vec(self).map_err(std::io::Error::other).at("write", &path)?;
        file::write_atomic(&path, &text).map_err(io_error).at("write", &path)
    }

    /// Reads the seal of a directory; `None` if it has none of ours.
    pub(super) fn read(dir: &Path) -> Option<SeedSeal> {
        let text = file::read_capped(&dir.join(SEAL), SEAL_BYTES_MAX).ok()?;
        let seal: SeedSeal = serde_json::from_slice(&text).ok()?;
        (seal.version == VERSION).then_some(seal)
    }

    pub(super) fn marks(&self) -> TreeMarks {
        let mut marks = TreeMarks::default();
        for (path, mark) in &self.files {
            marks.insert(PathBuf::from(path.os()), mark.clone());
        }
        marks
    }
}

/// A seed that may be used. While a copy of this value lives, nobody removes the seed.
#[derive(Debug, Clone)]
pub struct SealedSeed {
    pub(super) dir: PathBuf,
    seal: Arc<SeedSeal>,
    pub(super) marks: Arc<TreeMarks>,
    _lock: Arc<RoomLock>,
}

impl SealedSeed {
    /// Opens the seed in a directory and notes its use; `None` if there is none, or it is being
    /// removed.
    pub(super) fn open(dir: &Path) -> Result<Option<SealedSeed>, WarmError> {
        if !dir.join(SEAL).exists() {
            return Ok(None);
        }
        let Some(lock) = RoomLock::take(dir, LockSharing::Shared).at("lock", dir)? else {
            return Ok(None);
        };
        let Some(seal) = SeedSeal::read(dir) else { return Ok(None) };
        let used = dir.join(USED);
        fs::write(&used, "").at("note the use of", &used)?;
        let marks = Arc::new(seal.marks());
        let dir = dir.to_path_buf();
        Ok(Some(SealedSeed { dir, seal: Arc::new(seal), marks, _lock: Arc::new(lock) }))
    }

    /// Returns the record of the seed.
    pub fn seal(&self) -> &SeedSeal {
        &self.seal
    }

    /// Returns how long the base's own gate took.
    pub fn cold_time(&self) -> Duration {
        Duration::from_millis(self.seal.cold_ms)
    }

    /// Returns how long the last whole copy of the seed took, if one was made.
    pub fn copy_time(&self) -> Option<Duration> {
        self.noted(COPIED)
    }

    /// Returns how long the seed's build directories took to be put into a slot the last time.
    pub fn laid_time(&self) -> Option<Duration> {
        self.noted(LAID)
    }

    pub(super) fn note_copy(&self, took: Duration) -> Result<(), WarmError> {
        self.note(COPIED, took)
    }

    pub(super) fn note_laid(&self, took: Duration) -> Result<(), WarmError> {
        self.note(LAID, took)
    }

    fn noted(&self, name: &str) -> Option<Duration> {
        let text = fs::read_to_string(self.dir.join(name)).ok()?;
        text.trim().parse().ok().map(Duration::from_millis)
    }

    fn note(&self, name: &str, took: Duration) -> Result<(), WarmError> {
        let path = self.dir.join(name);
        fs::write(&path, took.as_millis().to_string()).at("write", &path)
    }

    /// Returns the directory that appears in jails, below layers.
    pub fn root(&self) -> PathBuf {
        self.dir.join(ROOT)
    }
}

/// Returns when the seed in a directory was last used.
pub(super) fn last_use(dir: &Path) -> SystemTime {
    let used = fs::metadata(dir.join(USED)).or_else(|_| fs::metadata(dir.join(SEAL)));
    used.and_then(|met| met.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns the directory name of a key, which may be any text.
pub(super) fn name_of(key: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(key.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

//! The directory of held-out tests: checked and copied when a run starts, so that the run is judged by
//! what was there then.

use crate::place::StatePaths;
use autopilot_core::config::{Config, KeepWorktrees};
use autopilot_core::holdout::{
    HOLDOUT_BYTES_MAX, HOLDOUT_FILE_BYTES_MAX, HOLDOUT_FILES_MAX, HeldOutTests, HoldoutFault,
    HoldoutGround, location_fault,
};
use autopilot_host::held_out::{self, HeldOutError, HeldOutFile, HeldOutLimits};
use camino::{Utf8Path, Utf8PathBuf};
use std::path::Path;

const LIMITS: HeldOutLimits = HeldOutLimits {
    files_max: HOLDOUT_FILES_MAX,
    file_bytes_max: HOLDOUT_FILE_BYTES_MAX,
    bytes_max: HOLDOUT_BYTES_MAX,
};

/// The held-out files of a run, and what may be told of them.
#[derive(Clone, Debug)]
pub struct HeldOutSet {
    pub files: Vec<HeldOutFile>,
    pub tests: HeldOutTests,
}

impl HeldOutSet {
    fn of(files: Vec<HeldOutFile>) -> HeldOutSet {
        let tests = HeldOutTests::of(
            files.iter().map(|file| (file.path.as_str(), file.is_program, file.content.as_slice())),
        );
        HeldOutSet { files, tests }
    }
}

/// The configured directory of held-out tests, if there is one.
pub fn directory(config: &Config, root: &Utf8Path) -> Option<Utf8PathBuf> {
    config.gates.holdout.as_ref().map(|dir| root.join(dir))
}

/// Reads the configured held-out tests, if there are any, and refuses those that could not be kept from
/// agents. `git` is the repository's own directory.
pub fn look(
    config: &Config,
    place: &StatePaths,
    git: &Path,
) -> Result<Option<HeldOutSet>, HoldoutFault> {
    let Some(given) = directory(config, &place.root) else { return Ok(None) };
    if !config.commands.has_tests() {
        return Err(HoldoutFault::NoTests);
    }
    if config.worktrees.keep == KeepWorktrees::Always {
        return Err(HoldoutFault::Kept);
    }
    let unreadable = |error: std::io::Error| HoldoutFault::Unreadable {
        dir: given.clone(),
        why: error.to_string(),
    };
    let dir = given.canonicalize_utf8().map_err(unreadable)?;
    let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let write: Vec<Utf8PathBuf> =
        config.sandbox.write.iter().map(|path| real(Utf8Path::new(path))).collect();
    let git = Utf8Path::from_path(git).map(real).unwrap_or_default();
    let (root, state) = (real(&place.root), real(&place.state));
    let ground = HoldoutGround { root: &root, git: &git, state: &state, write: &write };
    if let Some(fault) = location_fault(&dir, &ground) {
        return Err(fault);
    }
    let files = held_out::read(dir.as_std_path(), &LIMITS).map_err(|error| fault(&given, error))?;
    if files.is_empty() {
        return Err(HoldoutFault::Empty { dir: given });
    }
    Ok(Some(HeldOutSet::of(files)))
}

fn fault(dir: &Utf8Path, error: HeldOutError) -> HoldoutFault {
    let dir = dir.to_owned();
    match error {
        HeldOutError::Read { source, .. } => {
            HoldoutFault::Unreadable { dir, why: source.to_string() }
        }
        HeldOutError::Odd { file, why } => HoldoutFault::OddFile { dir, file, why },
        HeldOutError::LargeFile { file } => HoldoutFault::LargeFile { dir, file },
        HeldOutError::TooLarge => HoldoutFault::TooLarge { dir },
    }
}

/// Keeps the held-out files of a run where no agent reads.
pub fn pin(set: &HeldOutSet, place: &StatePaths) -> std::io::Result<()> {
    let dir = pinned_dir(place, &set.tests.digest);
    if let Some(parent) = dir.parent() {
        autopilot_host::dir::create_private(parent.as_std_path())?;
    }
    held_out::keep(&set.files, dir.as_std_path())
}

/// The held-out files that a run began with; none if they are gone or no longer those.
pub fn pinned(place: &StatePaths, digest: &str) -> Option<HeldOutSet> {
    let files = held_out::read(pinned_dir(place, digest).as_std_path(), &LIMITS).ok()?;
    Some(HeldOutSet::of(files)).filter(|set| set.tests.digest == digest)
}

/// Whether the configured directory is no longer as it was when a run began.
pub fn is_edited(config: &Config, place: &StatePaths, digest: &str) -> bool {
    let Some(dir) = directory(config, &place.root) else { return true };
    let now = held_out::read(dir.as_std_path(), &LIMITS).ok().map(HeldOutSet::of);
    now.is_none_or(|set| set.tests.digest != digest)
}

/// The directory of what the held-out tests print, which is for people alone.
pub fn logs(place: &StatePaths) -> Utf8PathBuf {
    place.state.join("holdout/logs")
}

fn pinned_dir(place: &StatePaths, digest: &str) -> Utf8PathBuf {
    place.state.join("holdout").join(digest)
}

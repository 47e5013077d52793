//! The one reader of recorded questions to agents: `artifacts/<run>/exec-NNN-<label>/`.
//!
//! Invariant: no symbolic link below `.autopilot` is followed, and no file is read beyond its
//! limit.

use crate::job::{EVENTS, METADATA, Metadata, WORKTREE, WorktreeChange, execs_of, number_of};
use autopilot_core::id::Time;
use autopilot_host::dir;
use autopilot_host::file::{Dir, FileError};
use camino::{Utf8Path, Utf8PathBuf};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Autopilot writes the metadata itself; a larger file is not a valid one.
const METADATA_BYTES_MAX: u64 = 1 << 20;

/// Why a recording can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot read `{path}`")]
    Directory { path: Utf8PathBuf, source: io::Error },
    #[error("cannot read `{path}`")]
    Json { path: Utf8PathBuf, source: serde_json::Error },
}

/// The recorded questions of one run.
pub struct RecordedRun {
    views: Dir,
    /// The directory of the questions, relative to `.autopilot`.
    pub base: String,
    pub path: Utf8PathBuf,
}

/// One recorded question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedExec {
    pub number: u32,
    /// The name of the question's directory.
    pub name: String,
}

impl RecordedRun {
    /// Opens the recordings of a run.
    pub fn open(views: &Utf8Path, run: &str) -> Result<RecordedRun, RecordedError> {
        let base = execs_of(run);
        let path = views.join(&base);
        Ok(RecordedRun { views: Dir::open(views.as_std_path())?, base, path })
    }

    /// The questions in the order in which they were asked.
    pub fn execs(&self) -> Result<Vec<RecordedExec>, RecordedError> {
        let names = dir::names(self.path.as_std_path())
            .map_err(|source| RecordedError::Directory { path: self.path.clone(), source })?;
        let exec = |name: String| Some(RecordedExec { number: number_of(&name)?, name });
        let mut execs: Vec<RecordedExec> = names.into_iter().filter_map(exec).collect();
        execs.sort_unstable();
        Ok(execs)
    }

    /// Every question with its metadata, newest first; unreadable ones are left out.
    pub fn newest_first(
        &self,
    ) -> Result<impl Iterator<Item = (RecordedExec, Metadata)>, RecordedError> {
        let described = |exec: RecordedExec| {
            let said = self.metadata(&exec).ok()?;
            Some((exec, said))
        };
        Ok(self.execs()?.into_iter().rev().filter_map(described))
    }

    /// The metadata of a question.
    pub fn metadata(&self, exec: &RecordedExec) -> Result<Metadata, RecordedError> {
        self.json(exec, METADATA)
    }

    /// The change the agent made in its worktree.
    pub fn worktree(&self, exec: &RecordedExec) -> Result<WorktreeChange, RecordedError> {
        self.json(exec, WORKTREE)
    }

    /// A file of a question as text.
    pub fn text(&self, exec: &RecordedExec, file: &str, bytes_max: u64) -> Option<String> {
        let bytes = self.views.read_capped(Path::new(&self.file(exec, file)), bytes_max).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The time at which an event of a question was last written.
    pub fn last_write(&self, exec: &RecordedExec) -> Option<Time> {
        let events = self.dir(exec).join(EVENTS).symlink_metadata().ok()?.modified().ok()?;
        let since = events.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Time(i64::try_from(since.as_millis()).ok()?))
    }

    /// The path of a file of a question, relative to `.autopilot`.
    pub fn file(&self, exec: &RecordedExec, file: &str) -> String {
        format!("{}/{}/{file}", self.base, exec.name)
    }

    /// The directory of a question.
    pub fn dir(&self, exec: &RecordedExec) -> Utf8PathBuf {
        self.path.join(&exec.name)
    }

    /// The `.autopilot` directory, for files of which only the end is read.
    pub fn views(&self) -> &Dir {
        &self.views
    }

    fn json<T: serde::de::DeserializeOwned>(
        &self,
        exec: &RecordedExec,
        file: &str,
    ) -> Result<T, RecordedError> {
        let bytes =
            self.views.read_capped(Path::new(&self.file(exec, file)), METADATA_BYTES_MAX)?;
        let failed = |source| RecordedError::Json { path: self.dir(exec).join(file), source };
        serde_json::from_slice(&bytes).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_in_order_and_what_is_broken_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let views = Utf8Path::from_path(dir.path()).unwrap();
        let put = |name: &str, text: &str| {
            let at = views.join(execs_of("r1")).join(name);
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join(METADATA), text).unwrap();
        };
        put("exec-1000-a-fix", r#"{"attempt":"3.0"}"#);
        put("exec-002-a-build", r#"{"attempt":"2.0"}"#);
        put("exec-003-a-review", "{");
        put("notes", "{}");
        let run = RecordedRun::open(views, "r1").unwrap();
        let names: Vec<String> = run.execs().unwrap().into_iter().map(|exec| exec.name).collect();
        assert_eq!(names, ["exec-002-a-build", "exec-003-a-review", "exec-1000-a-fix"]);
        let said: Vec<String> = run.newest_first().unwrap().map(|(_, said)| said.attempt).collect();
        assert_eq!(said, ["3.0", "2.0"]);
        let broken = &run.execs().unwrap()[1];
        assert!(matches!(run.metadata(broken), Err(RecordedError::Json { .. })));
        assert!(matches!(run.worktree(broken), Err(RecordedError::File(_))));
        assert!(RecordedRun::open(views, "r2").unwrap().execs().unwrap().is_empty());
    }
}

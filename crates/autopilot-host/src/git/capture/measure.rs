//! Measures what git would take from a slot before it reads any of it: a file of a hundred gigabytes
//! takes an hour to read and a moment to measure.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::git::command::TRANSFER_TIMEOUT;
use crate::git::error::{GitError, OnFile};
use crate::git::slot::Slot;
use crate::git::sweep::loosen;
use crate::patience;

/// The files and directories that a refusal names.
const NAMED_MAX: usize = 5;
/// The directories whose files are counted one by one; the rest count as one.
const DIRECTORIES_MAX: usize = 10_000;

/// The most that is taken from a worktree: new and changed files that git does not ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureCaps {
    /// The sum of their apparent sizes.
    pub bytes_max: u64,
    /// Their number.
    pub files_max: u64,
}

impl Default for CaptureCaps {
    fn default() -> Self {
        Self { bytes_max: 2 << 30, files_max: 200_000 }
    }
}

/// The files that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredFiles {
    /// New files, and those whose size or time is not that of the index.
    NewAndChanged,
    /// New files only, where the index knows nothing of the others.
    New,
}

/// New and changed files that are more than is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversize {
    /// The caps that were exceeded.
    pub caps: CaptureCaps,
    /// The sum of the apparent sizes.
    pub bytes: u64,
    /// The number of files.
    pub files: u64,
    /// The largest files with their sizes, largest first.
    pub largest: Vec<(PathBuf, u64)>,
    /// The directories with the most files.
    pub fullest: Vec<(PathBuf, u64)>,
    /// The largest files, without which the rest would be taken; none where there are too many
    /// files.
    pub(super) left_out: Vec<MeasuredFile>,
}

impl Oversize {
    /// Returns whether leaving out single files is no way out.
    pub fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }
}

/// A file that git would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MeasuredFile {
    pub(super) path: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) is_tracked: bool,
}

/// A repository inside the slot, and its files that are not ignored, each followed by a zero byte.
pub(crate) struct NestedFiles {
    pub(super) path: Vec<u8>,
    pub(super) files: Vec<u8>,
}

/// The files that git would take, and the repositories among them.
pub(super) struct Survey {
    pub(super) nested: Vec<NestedFiles>,
    /// The files, as long as they are not too many.
    files: Vec<MeasuredFile>,
    files_max: u64,
    count: u64,
    bytes: u64,
    per_directory: BTreeMap<Vec<u8>, u64>,
    is_empty: bool,
}

impl Survey {
    fn new(files_max: u64) -> Survey {
        Survey {
            nested: Vec::new(),
            files: Vec::new(),
            files_max,
            count: 0,
            bytes: 0,
            per_directory: BTreeMap::new(),
            is_empty: true,
        }
    }

    /// Returns whether git has listed nothing at all, not even a file that is gone, and could look
    /// everywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    fn add(&mut self, path: &[u8], bytes: u64, is_tracked: bool) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let top = path.iter().position(|b| *b == b'/').and_then(|at| path.get(..at));
        let top = top.unwrap_or(b".").to_vec();
        let is_known = self.per_directory.contains_key(&top);
        let key = if is_known || self.per_directory.len() < DIRECTORIES_MAX { top } else { vec![] };
        *self.per_directory.entry(key).or_default() += 1;
        if self.count <= self.files_max {
            self.files.push(MeasuredFile { path: path.to_vec(), bytes, is_tracked });
        }
    }

    /// Returns what is too much, if anything is.
    pub(super) fn over(&self, caps: CaptureCaps) -> Option<Oversize> {
        let too_many = self.count > caps.files_max;
        if !too_many && self.bytes <= caps.bytes_max {
            return None;
        }
        let mut files = self.files.clone();
        files.sort_by(|a, b| (b.bytes, &a.path).cmp(&(a.bytes, &b.path)));
        let largest = files.iter().take(NAMED_MAX).map(|file| (path_of(&file.path), file.bytes));
        let largest = largest.collect();
        let mut rest = self.bytes;
        files.retain(|file| {
            let is_needed = !too_many && rest > caps.bytes_max;
            rest = if is_needed { rest.saturating_sub(file.bytes) } else { rest };
            is_needed
        });
        let mut fullest: Vec<(PathBuf, u64)> =
            self.per_directory.iter().map(|(dir, count)| (path_of(dir), *count)).collect();
        fullest.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        fullest.truncate(NAMED_MAX);
        let (bytes, count) = (self.bytes, self.count);
        Some(Oversize { caps, bytes, files: count, largest, fullest, left_out: files })
    }
}

impl Slot {
    /// Lists and measures what git would take.
    pub(super) fn survey(&self, index: &Path, measured: MeasuredFiles) -> Result<Survey, GitError> {
        match self.survey_once(index, measured) {
            Err(error) if !error.is_cut_short() => {
                let _told_when_the_files_are_taken = loosen(&self.dir)?;
                self.survey_once(index, measured)
            }
            surveyed => surveyed,
        }
    }

    fn survey_once(&self, index: &Path, measured: MeasuredFiles) -> Result<Survey, GitError> {
        let mut survey = Survey::new(self.pools.caps.files_max);
        let mut nested: Vec<Vec<u8>> = Vec::new();
        let which: &[&str] = match measured {
            MeasuredFiles::NewAndChanged => &["--others", "--exclude-standard", "--modified"],
            MeasuredFiles::New => &["--others", "--exclude-standard"],
        };
        // Each path comes behind a letter for what it is, and a space.
        let warnings = self.each_listed(index, which, |line| {
            survey.is_empty = false;
            let path = line.get(2..).unwrap_or_default();
            match (line.first(), path.strip_suffix(b"/")) {
                // Git lists an untracked directory that is a repository as one entry with a slash
                // at its end.
                (Some(b'?'), Some(repository)) => nested.push(repository.to_vec()),
                (Some(b'?'), None) => self.measure(&mut survey, path, false),
                (_, _) => self.measure(&mut survey, path, true),
            }
        })?;
        // A directory that git can't open is left out with no more than a warning.
        survey.is_empty &= warnings.is_empty();
        for path in nested {
            let files = self.without_ignored(index, self.files_in(&path, &survey)?)?;
            for file in files.split(|b| *b == 0).filter(|file| !file.is_empty()) {
                self.measure(&mut survey, file, false);
            }
            survey.nested.push(NestedFiles { path, files });
        }
        Ok(survey)
    }

    fn measure(&self, survey: &mut Survey, path: &[u8], is_tracked: bool) {
        // A file that is gone is taken as removed.
        if let Ok(meta) = self.dir.join(OsStr::from_bytes(path)).symlink_metadata() {
            survey.add(path, meta.len(), is_tracked);
        }
    }

    /// Hands on each path of a listing as git prints it. Returns git's warnings.
    fn each_listed(
        &self,
        index: &Path,
        which: &[&str],
        mut each: impl FnMut(&[u8]),
    ) -> Result<String, GitError> {
        let mut pending: Vec<u8> = Vec::new();
        let warnings = self
            .hub()
            .git_in("list the files of the slot", &self.dir, index)
            .args(["ls-files", "-z", "-t"])
            .args(which)
            .timeout(TRANSFER_TIMEOUT)
            .stream(&mut |bytes| {
                pending.extend_from_slice(bytes);
                let Some(end) = pending.iter().rposition(|b| *b == 0) else {
                    return ControlFlow::Continue(());
                };
                let rest = pending.split_off(end + 1);
                for path in pending.split(|b| *b == 0).filter(|path| !path.is_empty()) {
                    each(path);
                }
                pending = rest;
                ControlFlow::Continue(())
            })?;
        Ok(warnings)
    }

    /// Lists the files of a nested repository. One more than are taken are enough to refuse them.
    fn files_in(&self, nested: &[u8], survey: &Survey) -> Result<Vec<u8>, GitError> {
        let mut files: Vec<u8> = Vec::new();
        let mut left = survey.files_max.saturating_sub(survey.count).saturating_add(1);
        let mut pending = vec![path_of(nested)];
        while let Some(dir) = pending.pop() {
            let full = self.dir.join(&dir);
            for entry in fs::read_dir(&full).on("read", &full)? {
                patience::check().on("list", &full)?;
                let entry = entry.on("read", &full)?;
                let kind = entry.file_type().on("inspect", &entry.path())?;
                if entry.file_name() == ".git" {
                    continue;
                }
                let path = dir.join(entry.file_name());
                if kind.is_dir() {
                    pending.push(path);
                } else if (kind.is_file() || kind.is_symlink()) && left > 0 {
                    left -= 1;
                    files.extend_from_slice(path.as_os_str().as_bytes());
                    files.push(0);
                }
            }
        }
        Ok(files)
    }

    fn without_ignored(&self, index: &Path, files: Vec<u8>) -> Result<Vec<u8>, GitError> {
        let out = self
            .hub()
            .git_in("ask what is ignored", &self.dir, index)
            .args(["check-ignore", "-z", "--stdin", "--no-index"])
            .stdin(files.clone())
            .run()?;
        let ignored: BTreeSet<&[u8]> = out.stdout.split(|b| *b == 0).collect();
        let mut rest = Vec::with_capacity(files.len());
        for path in files.split(|b| *b == 0).filter(|p| !p.is_empty() && !ignored.contains(p)) {
            rest.extend_from_slice(path);
            rest.push(0);
        }
        Ok(rest)
    }
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: CaptureCaps = CaptureCaps { bytes_max: 100, files_max: 4 };

    fn surveyed(files: &[(&str, u64)]) -> Survey {
        let mut survey = Survey::new(CAPS.files_max);
        for (path, bytes) in files {
            survey.add(path.as_bytes(), *bytes, false);
        }
        survey
    }

    #[test]
    fn the_largest_files_are_left_out_until_the_rest_fits() {
        let survey = surveyed(&[("a", 40), ("big", 900), ("b", 60), ("large", 70)]);
        let over = survey.over(CAPS).unwrap();
        assert_eq!((over.bytes, over.files, over.is_whole()), (1070, 4, false));
        let left_out: Vec<&[u8]> = over.left_out.iter().map(|file| &*file.path).collect();
        assert_eq!(left_out, [b"big".as_slice(), b"large"]);
        assert_eq!(over.largest.first(), Some(&(PathBuf::from("big"), 900)));
        assert_eq!(surveyed(&[("a", 40), ("b", 60)]).over(CAPS), None);
    }

    #[test]
    fn too_many_files_are_a_matter_of_the_whole_worktree() {
        let survey = surveyed(&[("a", 1), ("d/b", 1), ("d/c", 1), ("d/d", 1), ("e/f", 1)]);
        let over = survey.over(CAPS).unwrap();
        assert!(over.is_whole());
        assert_eq!(over.fullest.first(), Some(&(PathBuf::from("d"), 3)));
        assert_eq!(surveyed(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)]).over(CAPS), None);
    }
}

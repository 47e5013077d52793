//! Objects that the hub has lost, brought back from the user's repository as far as that has them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use super::Hub;
use crate::git::command::{GitCommand, TRANSFER_TIMEOUT};
use crate::git::error::GitError;
use crate::git::object::Oid;
use crate::git::pack_index;
use crate::git::repo::UserRepo;
use crate::git::transfer::{ObjectCheck, ObjectSource, existing, transfer};
use crate::git::tree_file::TreeFile;

/// How often the hub is searched: an object that came back may name others that are missing.
const SEARCHES_MAX: usize = 10;

/// What became of a hub that lacked objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMend {
    /// The number of missing objects that the user's repository had.
    pub restored: usize,
    /// The missing objects that nobody has.
    pub lost: Vec<Oid>,
    /// The refs that were removed because their commits are lost.
    pub refs: Vec<String>,
}

impl ObjectMend {
    /// Returns whether nothing was missing.
    pub fn is_nothing(&self) -> bool {
        *self == ObjectMend::default()
    }
}

impl Hub {
    /// Looks for missing objects, those that refs need and those that are on record, and brings them
    /// back. Refs to commits that nobody has are removed: every git command would fail over them.
    pub fn mend_objects(&self, repo: &UserRepo, recorded: &[Oid]) -> Result<ObjectMend, GitError> {
        let mut mend = ObjectMend::default();
        let theirs = repo.objects_dir();
        if !self.missing_objects(recorded)?.is_empty() {
            self.forget_submodules()?;
        }
        for _ in 0..SEARCHES_MAX {
            let missing = self.missing_objects(recorded)?;
            let asked = GitCommand::isolated("look for objects", &repo.common_dir);
            let found = existing(asked, &missing)?;
            mend.lost = missing.into_iter().filter(|oid| !found.contains(oid)).collect();
            if found.is_empty() {
                break;
            }
            mend.restored += found.len();
            let source = ObjectSource { git_dir: &repo.common_dir, objects: vec![&theirs] };
            let _kept = transfer(&source, self.dir(), &found, &[], ObjectCheck::Connected)?;
        }
        let lost: BTreeSet<Oid> = mend.lost.iter().cloned().collect();
        for (name, oid) in self.refs("refs/")? {
            if lost.contains(&oid) {
                self.delete_ref(&name, &oid)?;
                mend.refs.push(name);
            }
        }
        Ok(mend)
    }

    /// Returns those of these objects that the hub lacks.
    pub fn lacking(&self, objects: &[Oid]) -> Result<BTreeSet<Oid>, GitError> {
        let here = existing(self.git("look for objects"), objects)?;
        let mut lacking: BTreeSet<Oid> = objects.iter().cloned().collect();
        lacking.retain(|oid| !here.contains(oid));
        Ok(lacking)
    }

    /// Returns whether the hub has the content of all these files. Git is asked only for what is
    /// neither loose nor in a pack that can be looked into here.
    pub(in crate::git) fn has_all(&self, files: &[TreeFile]) -> bool {
        let mut unsure: BTreeSet<Oid> = files.iter().map(|file| file.oid.clone()).collect();
        pack_index::remove_packed(self.dir(), &mut unsure);
        unsure.retain(|oid| !self.surely_has(oid));
        let unsure: Vec<Oid> = unsure.into_iter().collect();
        self.lacking(&unsure).is_ok_and(|lacking| lacking.is_empty())
    }

    /// Lists the objects that the hub lacks, of those that refs need and of these.
    fn missing_objects(&self, recorded: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let searched = self
            .git("look for missing objects")
            .args(["fsck", "--connectivity-only", "--no-dangling", "--no-reflogs"])
            .args(["--no-progress", "--no-name-objects"])
            .timeout(TRANSFER_TIMEOUT)
            .run()?;
        // It ends with a code of its own for each kind of damage; a signal is no answer.
        let searched = match searched.code() {
            Some(_) => searched,
            None => searched.expect_code(&[0])?,
        };
        let mut named: Vec<Oid> = self.refs("refs/")?.into_iter().map(|(_, oid)| oid).collect();
        named.extend(recorded.iter().cloned());
        let text = [searched.stdout, searched.stderr.into_bytes()].concat();
        let words = text.split(|b| !b.is_ascii_hexdigit());
        named.extend(words.filter_map(|word| Oid::from_bytes(word).ok()));
        named.sort();
        named.dedup();
        let here: BTreeSet<Oid> =
            existing(self.git("look for objects"), &named)?.into_iter().collect();
        named.retain(|oid| !here.contains(oid) && !oid.is_zero());
        Ok(named)
    }

    /// Removes the objects and packs that a killed git of ours was writing. Only where no git is at
    /// work; what can't be removed is in nobody's way.
    pub fn remove_temporary_objects(&self) {
        let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        for dir in entries(self.dir().join("objects")) {
            let is_temporary = |name: &OsStr| name.as_encoded_bytes().starts_with(b"tmp_");
            for file in entries(dir.path()).filter(|file| is_temporary(&file.file_name())) {
                let _stays = std::fs::remove_file(file.path());
            }
        }
    }

    /// Fails unless the hub has all files of these commits.
    pub fn check_files_of(&self, commits: &[Oid]) -> Result<(), GitError> {
        self.git("look for the files of commits")
            .args(["rev-list", "--objects", "--no-walk", "--quiet"])
            .args(commits.iter().map(Oid::as_str))
            .timeout(TRANSFER_TIMEOUT)
            .ok()?;
        Ok(())
    }
}

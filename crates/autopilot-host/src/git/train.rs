//! The merge train: approved commits coupled onto the run's branch, each by a separate merge
//! commit, and the branch moved once to the last of them.
//!
//! Invariant: nothing here moves the branch but [`Track::advance`], and that only from the commit
//! on which the train was built. Until then candidates are objects nobody refers to, and building
//! them again is harmless.

use super::capture::AttemptName;
use super::commit::{ATTEMPT, CommitHead, NewCommit, RUN, TASK, attempt_trailers, write_commit};
use super::error::GitError;
use super::hub::{ExpectedRef, Hub};
use super::identity::CommitIdentity;
use super::merge::{Conflicts, Merged, merge_trees};
use super::object::Oid;
use crate::fail;

/// How many commits of the branch are read one by one; git lists more of them faster.
const WAY_MAX: usize = 2000;

/// The branch a run's tasks are merged onto.
#[derive(Clone, Copy, Debug)]
pub struct Track<'a> {
    /// The id of the run.
    pub run: &'a str,
    /// The short name of the branch.
    pub branch: &'a str,
    /// The commit at which that branch starts when it does not exist yet.
    pub start: &'a Oid,
    /// Whether something was merged onto the branch, so that it must exist.
    pub has_begun: bool,
    /// Author and committer of the merges.
    pub identity: &'a CommitIdentity,
    /// The time of the merges, in seconds since 1970.
    pub now: i64,
}

/// The branch as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The commit of the branch, or its start if it does not exist yet.
    pub commit: Oid,
    exists: bool,
}

/// One task's commit that is to be merged.
#[derive(Clone, Copy, Debug)]
pub struct Wagon<'a> {
    /// The attempt that merges.
    pub attempt: AttemptName<'a>,
    /// The task's commit.
    pub commit: &'a Oid,
    /// The message of the merge, without trailers.
    pub message: &'a str,
}

/// A merge commit that is written and on no branch yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The merge commit.
    pub commit: Oid,
    /// The files of the merge.
    pub tree: Oid,
}

/// The result of coupling a commit.
#[derive(Clone, Debug)]
pub enum Coupled {
    /// The merge commit was written.
    On(Candidate),
    /// Git could not merge alone; nothing was written.
    Conflict(Box<Conflicts>),
}

/// The result of moving the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// The branch is here now.
    Moved(Tip),
    /// Somebody else moved the branch; it was not touched.
    Lost,
}

/// A task's work on the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedTask {
    /// The name of the task.
    pub task: String,
    /// The merge commit, and its files.
    pub commit: Oid,
    pub tree: Oid,
    /// The commit of the task.
    pub of: Oid,
}

/// The marks by which a task's earlier merge is recognised.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// The attempt that may have merged already.
    pub attempt: AttemptName<'a>,
    /// The parent of the task's commit.
    pub base: &'a Oid,
    /// The files of the task's commit.
    pub tree: &'a Oid,
}

impl Track<'_> {
    /// Finds the branch, or its start if it does not exist yet.
    pub fn tip(&self, hub: &Hub) -> Result<Tip, GitError> {
        let found = hub.resolve(&self.name())?;
        let exists = found.is_some();
        if self.has_begun && !exists {
            return Err(GitError::NotFound { what: "branch", name: self.branch.to_owned() });
        }
        Ok(Tip { commit: found.unwrap_or_else(|| self.start.clone()), exists })
    }

    /// Writes the merge of a task's commit onto another commit, without touching a ref.
    pub fn couple(&self, hub: &Hub, onto: &Oid, wagon: &Wagon<'_>) -> Result<Coupled, GitError> {
        let head = hub.commit_head(wagon.commit);
        let merged = match head.filter(|head| head.parents == [onto.clone()]) {
            // Nothing was merged since the work began.
            Some(head) => Merged::Clean(head.tree),
            None => merge_trees(hub, onto, wagon.commit)?,
        };
        let tree = match merged {
            Merged::Clean(tree) => tree,
            Merged::Conflicted(conflicts) => return Ok(Coupled::Conflict(conflicts)),
        };
        let new = NewCommit {
            tree: &tree,
            parents: &[onto.clone(), wagon.commit.clone()],
            message: &attempt_trailers(wagon.message, self.run, wagon.attempt),
            identity: self.identity,
            now: self.now,
        };
        let commit = write_commit(hub, &new)?;
        Ok(Coupled::On(Candidate { commit, tree }))
    }

    /// Moves the branch to the end of a train, if it still is where the train begins.
    pub fn advance(&self, hub: &Hub, from: &Tip, to: &Oid) -> Result<Advanced, GitError> {
        let expected =
            if from.exists { ExpectedRef::At(&from.commit) } else { ExpectedRef::Absent };
        fail::point("merge.written");
        match hub.set_ref(&self.name(), to, expected) {
            Ok(()) => {
                fail::point("merge.done");
                Ok(Advanced::Moved(Tip { commit: to.clone(), exists: true }))
            }
            Err(GitError::RefMoved { .. }) => Ok(Advanced::Lost),
            Err(other) => Err(other),
        }
    }

    /// Returns the commit of a task that is merged already: by this attempt, or by an earlier one
    /// that merged the very same work and could not say so any more. Later merges do not hide it.
    pub fn find(&self, hub: &Hub, sought: &Sought<'_>) -> Result<Option<Oid>, GitError> {
        let tip = self.tip(hub)?;
        if !tip.exists {
            return Ok(None);
        }
        for merge in self.merges(hub, &tip.commit, self.start)? {
            let same_attempt = merge.attempt == sought.attempt.id;
            if merge.run == self.run
                && (same_attempt || (merge.task == sought.attempt.task && merge.is(hub, sought)?))
            {
                return Ok(Some(merge.commit));
            }
        }
        Ok(None)
    }

    /// Returns the names of the tasks this run has merged between two commits of the branch, oldest
    /// first.
    pub fn merged_between(&self, hub: &Hub, from: &Oid, to: &Oid) -> Result<Vec<String>, GitError> {
        Ok(self.merge_commits(hub, from, to)?.into_iter().map(|(task, _)| task).collect())
    }

    /// Returns those tasks, each with the commit of the branch that brought it.
    pub fn merge_commits(
        &self,
        hub: &Hub,
        from: &Oid,
        to: &Oid,
    ) -> Result<Vec<(String, Oid)>, GitError> {
        let ours = self.merges(hub, to, from)?.into_iter().filter(|merge| merge.run == self.run);
        let mut merges: Vec<(String, Oid)> = ours.map(|merge| (merge.task, merge.at)).collect();
        merges.reverse();
        Ok(merges)
    }

    /// Returns the merges of this run between two commits of the branch, oldest first.
    pub fn merged_tasks(
        &self,
        hub: &Hub,
        from: &Oid,
        to: &Oid,
    ) -> Result<Vec<MergedTask>, GitError> {
        let ours = self.merges(hub, to, from)?.into_iter().filter(|merge| merge.run == self.run);
        let merged = |merge: Merge| MergedTask {
            task: merge.task,
            commit: merge.at,
            tree: merge.tree,
            of: merge.commit,
        };
        let mut merges: Vec<MergedTask> = ours.map(merged).collect();
        merges.reverse();
        Ok(merges)
    }

    fn merges(&self, hub: &Hub, tip: &Oid, stop: &Oid) -> Result<Vec<Merge>, GitError> {
        if let Some(merges) = Merge::between(hub, tip, stop) {
            return Ok(merges);
        }
        let format =
            format!("--format=%H %T %P%n%(trailers:key={RUN},key={TASK},key={ATTEMPT},unfold)");
        let out = hub
            .git(format!("list the merges of {}", self.branch))
            .args(["log", "-z", "--first-parent", "--merges", "--no-show-signature"])
            .args(["--no-color", "--no-notes", &format, tip.as_str()])
            .arg(format!("^{stop}"))
            .ok()?;
        Ok(out.split(|b| *b == 0).filter_map(Merge::read).collect())
    }

    fn name(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }
}

/// A merge commit of ours, by its trailers.
struct Merge {
    run: String,
    task: String,
    attempt: String,
    /// The commit of the task: the second parent.
    commit: Oid,
    /// The merge itself, and its files.
    at: Oid,
    tree: Oid,
}

impl Merge {
    /// Reads the merges on the way from a tip back to a commit it was built on; `None` where there is
    /// more than commits of ours that have files of their own.
    fn between(hub: &Hub, tip: &Oid, stop: &Oid) -> Option<Vec<Merge>> {
        let mut merges = Vec::new();
        let mut at = tip.clone();
        for _ in 0..WAY_MAX {
            if at == *stop {
                return Some(merges);
            }
            let CommitHead { parents, message, tree } = hub.commit_head(&at)?;
            let (first, others) = parents.split_first()?;
            if let Some(commit) = others.first() {
                merges.push(Merge::with_trailers(&message, commit, (&at, tree))?);
            }
            at = first.clone();
        }
        None
    }

    /// Reads a merge whose message ends with nothing but our own trailers.
    fn with_trailers(message: &str, commit: &Oid, (at, tree): (&Oid, Oid)) -> Option<Merge> {
        let (_, block) = message.trim_end().rsplit_once("\n\n")?;
        let mut lines = block.lines();
        let mut value = |key: &str| {
            let value = lines.next()?.strip_prefix(key)?.strip_prefix(": ")?;
            Some(value.trim().to_owned())
        };
        let (run, task, attempt) = (value(RUN)?, value(TASK)?, value(ATTEMPT)?);
        let (commit, at) = (commit.clone(), at.clone());
        lines.next().is_none().then_some(Merge { run, task, attempt, commit, at, tree })
    }

    fn read(record: &[u8]) -> Option<Merge> {
        let text = String::from_utf8_lossy(record);
        let mut lines = text.lines();
        let mut names = lines.next()?.split(' ');
        let at = Oid::parse(names.next()?).ok()?;
        let tree = Oid::parse(names.next()?).ok()?;
        let commit = Oid::parse(names.nth(1)?).ok()?;
        let lines: Vec<&str> = lines.map(str::trim).collect();
        let value = |key: &str| {
            let of = |line: &&str| line.strip_prefix(key)?.strip_prefix(": ").map(str::to_owned);
            lines.iter().find_map(of)
        };
        Some(Merge {
            run: value(RUN)?,
            task: value(TASK)?,
            attempt: value(ATTEMPT)?,
            commit,
            at,
            tree,
        })
    }

    fn is(&self, hub: &Hub, sought: &Sought<'_>) -> Result<bool, GitError> {
        Ok(hub.tree_of(&self.commit)? == *sought.tree
            && hub.parents(&self.commit)?.first() == Some(sought.base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_ends_with_our_trailers_is_read_here() {
        let (commit, at) = (Oid::parse(&"1".repeat(40)), Oid::parse(&"2".repeat(40)));
        let (commit, at) = (commit.unwrap(), at.unwrap());
        let attempt = AttemptName { task: "t", id: "3.1" };
        let ours = attempt_trailers("Merge t", "run-1", attempt);
        let read = |message: &str| Merge::with_trailers(message, &commit, (&at, at.clone()));
        let merge = read(&ours).unwrap();
        assert_eq!((&*merge.run, &*merge.task, &*merge.attempt), ("run-1", "t", "3.1"));
        let forged = attempt_trailers(&ours, "run-2", attempt);
        assert_eq!(read(&forged).unwrap().run, "run-2", "the last block counts");
        for other in [format!("{ours}\nSigned-off-by: x"), format!("{ours}More: x"), "x".to_owned()]
        {
            assert!(read(&other).is_none(), "{other}");
        }
    }
}

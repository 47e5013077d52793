//! The commits of a run's branch with their notes, as the user's repository has them.

use super::super::QueryError;
use crate::place::StatePaths;
use autopilot_host::git::{GitCommand, GitError, NOTES_REF, Oid, find_notes, read_blob};
use autopilot_view::evidence::{CommitFacts, EvidenceStatement};
use std::path::Path;

/// The trailers by which a commit of the controller is known.
const RUN: &str = "Autopilot-Run";

/// A repository and the notes in it.
pub struct EvidenceStore<'a> {
    git_dir: &'a Path,
    notes: Option<Oid>,
}

/// A commit of the run's branch.
pub struct ChainCommit {
    pub oid: Oid,
    pub facts: CommitFacts,
}

impl ChainCommit {
    /// Whether the controller committed a file of its own.
    pub fn is_own_document(&self) -> bool {
        self.facts.run.is_some() && self.facts.parents.len() == 1
    }
}

impl<'a> EvidenceStore<'a> {
    pub fn open(git_dir: &'a Path) -> Result<EvidenceStore<'a>, QueryError> {
        let notes = resolve(git_dir, NOTES_REF)?;
        Ok(EvidenceStore { git_dir, notes })
    }

    /// The note on a commit.
    pub fn note(&self, commit: &Oid) -> Result<Option<String>, QueryError> {
        let Some(notes) = &self.notes else { return Ok(None) };
        let found = find_notes(self.git_dir, notes, std::slice::from_ref(commit))?;
        Ok(found.get(commit).map(|note| read_blob(self.git_dir, &note.blob)).transpose()?)
    }

    /// The evidence in the note on a commit.
    pub fn statement(&self, commit: &Oid) -> Result<Option<EvidenceStatement>, QueryError> {
        Ok(self.note(commit)?.as_deref().and_then(EvidenceStatement::read))
    }

    /// The commits of a branch after its base, the oldest first; none if the history is not all
    /// here, or does not begin at the base.
    pub fn chain(&self, base: &Oid, tip: &Oid) -> Result<Option<Vec<ChainCommit>>, QueryError> {
        let is_there = self
            .git("compare the base with the commit")
            .args(["merge-base", "--is-ancestor", base.as_str(), tip.as_str()])
            .run()
            .map_err(GitError::from)?;
        if is_there.code() != Some(0) {
            return Ok(None);
        }
        let range = [tip.to_string(), format!("^{base}")];
        Ok(Some(self.log(&["--first-parent", "--reverse"], &range)?))
    }

    /// The commit without its history, if it is here.
    pub fn alone(&self, commit: &Oid) -> Result<Option<ChainCommit>, QueryError> {
        if resolve(self.git_dir, &format!("{commit}^{{commit}}"))?.is_none() {
            return Ok(None);
        }
        Ok(self.log(&["--no-walk"], &[commit.to_string()])?.pop())
    }

    /// The branch of the user's.
    pub fn branch(&self, name: &str) -> Result<Option<Oid>, QueryError> {
        resolve(self.git_dir, &format!("refs/heads/{name}"))
    }

    /// Where the run left its branch, by Autopilot's own repository.
    pub fn left_at(&self, place: &StatePaths, branch: &str) -> Result<Option<Oid>, QueryError> {
        let hub = place.state.join("hub.git");
        if !hub.is_dir() {
            return Ok(None);
        }
        resolve(hub.as_std_path(), &format!("refs/heads/{branch}"))
    }

    fn log(&self, how: &[&str], range: &[String]) -> Result<Vec<ChainCommit>, QueryError> {
        let format = format!("--format=%H%n%T%n%P%n%(trailers:key={RUN},valueonly,unfold)");
        let out = self
            .git("list the commits of the branch")
            .args(["log", "-z", "--no-show-signature", "--no-color", "--no-notes"])
            .args([format.as_str()])
            .args(how)
            .args(range)
            .ok()
            .map_err(GitError::from)?;
        let records = out.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        records.map(|record| self.read(&String::from_utf8_lossy(record))).collect()
    }

    fn read(&self, record: &str) -> Result<ChainCommit, QueryError> {
        let mut lines = record.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let (commit, tree, parents, run) = (next(), next(), next(), next());
        let mut parents: Vec<String> = parents.split_whitespace().map(str::to_owned).collect();
        if parents.is_empty() {
            parents = self.parents_by_itself(&commit)?;
        }
        let task_tree = match parents.get(1) {
            Some(parent) => resolve(self.git_dir, &format!("{parent}^{{tree}}"))?,
            None => None,
        };
        let task_tree = task_tree.map(|tree| tree.to_string());
        let run = (!run.is_empty()).then_some(run);
        let oid = Oid::parse(&commit)?;
        Ok(ChainCommit { oid, facts: CommitFacts { commit, tree, parents, task_tree, run } })
    }

    /// The parents as the commit itself names them: git hides those of a shallow clone's last commit.
    fn parents_by_itself(&self, commit: &str) -> Result<Vec<String>, QueryError> {
        let out = self
            .git("read a commit")
            .args(["cat-file", "commit", commit])
            .ok()
            .map_err(GitError::from)?;
        let text = String::from_utf8_lossy(&out);
        let head = text.lines().take_while(|line| !line.is_empty());
        Ok(head.filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect())
    }

    /// Whether a commit is on the branch as the run left it; nothing if that is not known.
    pub fn is_of_run(
        &self,
        place: &StatePaths,
        branch: &str,
        commit: &Oid,
    ) -> Result<Option<bool>, QueryError> {
        let Some(left) = self.left_at(place, branch)? else { return Ok(None) };
        let hub = place.state.join("hub.git");
        let found = GitCommand::isolated("look for the commit", hub.as_std_path())
            .args(["merge-base", "--is-ancestor", commit.as_str(), left.as_str()])
            .run()
            .map_err(GitError::from)?;
        Ok(Some(found.code() == Some(0)))
    }

    fn git(&self, operation: &str) -> GitCommand {
        GitCommand::isolated(operation, self.git_dir)
    }
}

pub fn resolve(git_dir: &Path, name: &str) -> Result<Option<Oid>, QueryError> {
    let out = GitCommand::isolated(format!("resolve {name}"), git_dir)
        .args(["rev-parse", "--quiet", "--verify", "--end-of-options", name])
        .run()
        .map_err(GitError::from)?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(if out.code() == Some(0) { Some(Oid::parse(text.trim())?) } else { None })
}

//! Checks the evidence of merged commits: the notes against the objects of git and, where it is
//! there, the journal.

mod journal;
mod objects;

use super::{QueryError, RunArchive};
use autopilot_core::state::State;
use autopilot_host::git::{GitCommand, GitError, Oid};
use autopilot_view::evidence::{EvidenceFault, EvidenceStatement, faults};
use journal::KnownEvidence;
use objects::{ChainCommit, EvidenceStore};
use serde::Serialize;
use std::path::Path;

/// What became of a verification, each with its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    Holds,
    /// Something is missing that the evidence would have to be compared with.
    CannotBeChecked,
    DoesNotHold,
}

impl Verification {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Verification::Holds => 0,
            Verification::DoesNotHold => 1,
            Verification::CannotBeChecked => 2,
        }
    }

    fn of(faults: &[EvidenceFault]) -> Verification {
        let each = faults.iter().map(|fault| match fault {
            EvidenceFault::Wrong(_) => Verification::DoesNotHold,
            EvidenceFault::Unknown(_) => Verification::CannotBeChecked,
        });
        each.max().unwrap_or(Verification::Holds)
    }
}

/// What the evidence was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyGround {
    Journal,
    /// The objects of git alone: the evidence is consistent, and no more.
    Objects,
}

/// The evidence of a commit and of what was merged before it in the same run.
#[derive(Clone, Debug, Serialize)]
pub struct VerifiedTarget {
    pub commit: String,
    pub run: Option<String>,
    pub verdict: Verification,
    pub against: VerifyGround,
    pub commits: Vec<VerifiedCommit>,
    /// What is wrong, or can't be said, of all together.
    pub findings: Vec<String>,
}

/// The evidence of one commit.
#[derive(Clone, Debug, Serialize)]
pub struct VerifiedCommit {
    pub commit: String,
    /// The task whose work the commit merged.
    pub task: Option<String>,
    pub has_note: bool,
    pub verdict: Verification,
    pub findings: Vec<String>,
    #[serde(skip)]
    pub statement: Option<Box<EvidenceStatement>>,
}

/// What a verification is about.
enum VerifyTarget {
    Commit(Oid),
    Run(Box<State>),
}

/// Checks a commit or a run; without either, the newest run, or HEAD where there are no runs.
pub fn verify(
    dir: &Path,
    git_dir: &Path,
    archive: Option<&RunArchive>,
    id: Option<&str>,
) -> Result<VerifiedTarget, QueryError> {
    let store = EvidenceStore::open(git_dir)?;
    let (commit, state) = match target(dir, archive, id)? {
        VerifyTarget::Commit(commit) => (commit, None),
        VerifyTarget::Run(state) => (tip_of(&store, &state)?, Some(state)),
    };
    let told = store.statement(&commit)?;
    let run = told.as_ref().map(|told| told.predicate.run.id.clone());
    let state = match (state, archive, &run) {
        (Some(state), ..) => Some(*state),
        (None, Some(archive), Some(run))
            if archive.runs(super::RUNS_KNOWN_MAX)?.iter().any(|known| known.id == *run) =>
        {
            Some(archive.run(Some(run))?.state)
        }
        (None, ..) => None,
    };
    let base = state.as_ref().map(|state| state.run.base.clone());
    let base = base.or(told.as_ref().map(|told| told.predicate.run.base.clone()));
    let chain = match base.as_deref().map(Oid::parse) {
        Some(Ok(base)) => store.chain(&base, &commit)?,
        Some(Err(_)) | None => None,
    };
    let mut all = Vec::new();
    let is_whole = chain.is_some();
    let chain = match chain {
        Some(chain) => chain,
        None => store.alone(&commit)?.into_iter().collect(),
    };
    let known = match (archive, &state) {
        (Some(archive), Some(state)) => Some(KnownEvidence::of(archive, state, &chain)?),
        (_, _) => None,
    };
    if !is_whole && run.is_some() {
        let text = "the commits between the base of the run and this one are not all here; fetch \
                    the whole history with `git fetch --unshallow`";
        all.push(EvidenceFault::Unknown(text.to_owned()));
    }
    if let Some(state) = &state {
        all.extend(moved(&store, archive, state)?);
    }
    let commits: Vec<VerifiedCommit> = chain
        .iter()
        .map(|at| one(&store, at, &commit, known.as_ref()))
        .collect::<Result<_, _>>()?;
    if chain.is_empty() {
        all.push(EvidenceFault::Unknown("nothing is merged".to_owned()));
    }
    let worst = commits.iter().map(|commit| commit.verdict).max();
    Ok(VerifiedTarget {
        commit: commit.to_string(),
        run: state.map(|state| state.run.id).or(run),
        verdict: worst.unwrap_or(Verification::Holds).max(Verification::of(&all)),
        against: known.map_or(VerifyGround::Objects, |_| VerifyGround::Journal),
        commits,
        findings: all.iter().map(|fault| fault.text().to_owned()).collect(),
    })
}

fn one(
    store: &EvidenceStore<'_>,
    at: &ChainCommit,
    target: &Oid,
    known: Option<&KnownEvidence>,
) -> Result<VerifiedCommit, QueryError> {
    let note = store.note(&at.oid)?;
    let statement = note.as_deref().and_then(EvidenceStatement::read);
    let found = match (&statement, &note) {
        (Some(statement), _) => {
            let mut found = faults(statement, &at.facts);
            found.extend(known.and_then(|known| known.compare(&at.oid, statement)));
            found
        }
        (None, Some(_)) => {
            vec![EvidenceFault::Unknown("its note is no evidence of ours".to_owned())]
        }
        // A file of the controller's own on the branch needs no proof, unless it is what is asked about.
        (None, None) if at.is_own_document() && at.oid != *target => Vec::new(),
        (None, None) => vec![EvidenceFault::Unknown("it has no note".to_owned())],
    };
    Ok(VerifiedCommit {
        commit: at.oid.to_string(),
        task: statement.as_ref().and_then(|told| Some(told.predicate.task.as_ref()?.name.clone())),
        has_note: note.is_some(),
        verdict: Verification::of(&found),
        findings: found.iter().map(|fault| fault.text().to_owned()).collect(),
        statement: statement.map(Box::new),
    })
}

/// Finds what an id names: a run by its whole id, a commit, or a run by the beginning of its id.
fn target(
    dir: &Path,
    archive: Option<&RunArchive>,
    id: Option<&str>,
) -> Result<VerifyTarget, QueryError> {
    let run = |state: State| VerifyTarget::Run(Box::new(state));
    let Some(id) = id else {
        let newest = archive.map(RunArchive::newest).transpose()?.flatten();
        return match newest {
            Some(newest) => Ok(run(newest.state)),
            None => commit(dir, "HEAD")?.map(VerifyTarget::Commit).ok_or(QueryError::NoRunYet),
        };
    };
    let is_run = |archive: &RunArchive| -> Result<bool, QueryError> {
        Ok(archive.runs(super::RUNS_KNOWN_MAX)?.iter().any(|run| run.id == id))
    };
    if let Some(archive) = archive.filter(|archive| is_run(archive).unwrap_or(false)) {
        return Ok(run(archive.run(Some(id))?.state));
    }
    if let Some(commit) = commit(dir, id)? {
        return Ok(VerifyTarget::Commit(commit));
    }
    match archive {
        Some(archive) => Ok(run(archive.run(Some(id))?.state)),
        None => Err(super::unknown("commit or run", id, [])),
    }
}

fn commit(dir: &Path, name: &str) -> Result<Option<Oid>, QueryError> {
    let out = GitCommand::as_user(format!("find the commit {name}"), dir)
        .args(["rev-parse", "--quiet", "--verify", "--end-of-options"])
        .arg(format!("{name}^{{commit}}"))
        .run()
        .map_err(GitError::from)?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(if out.code() == Some(0) { Some(Oid::parse(text.trim())?) } else { None })
}

/// The end of a run's branch in the user's repository, or the commit that it had by the journal.
fn tip_of(store: &EvidenceStore<'_>, state: &State) -> Result<Oid, QueryError> {
    let branch = store.branch(&state.run.branch)?;
    let tip = state.run.tip.as_deref().unwrap_or(&state.run.base);
    match branch {
        Some(tip) => Ok(tip),
        None => Ok(Oid::parse(tip)?),
    }
}

/// A fault if the run's branch is not where the run left it.
fn moved(
    store: &EvidenceStore<'_>,
    archive: Option<&RunArchive>,
    state: &State,
) -> Result<Option<EvidenceFault>, QueryError> {
    let Some(archive) = archive else { return Ok(None) };
    let branch = &state.run.branch;
    let (Some(is), Some(left)) = (store.branch(branch)?, store.left_at(&archive.place, branch)?)
    else {
        return Ok(None);
    };
    Ok((is != left).then(|| {
        let (is, left) = (is.short(), left.short());
        EvidenceFault::Wrong(format!("branch {branch} is at {is}, and the run left it at {left}"))
    }))
}

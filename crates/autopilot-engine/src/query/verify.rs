//! Checks the evidence of merged commits: the notes against the objects of git and, where it is
//! there, the journal.

mod journal;
mod objects;
pub mod rerun;

use super::{QueryError, RunArchive};
use crate::cause::chain;
use autopilot_core::state::State;
use autopilot_host::git::{GitCommand, GitError, Oid, RepoRefusal};
use autopilot_view::evidence::{EvidenceFault, EvidenceStatement, faults, lack_of_proof};
use journal::KnownEvidence;
use objects::{ChainCommit, EvidenceStore};
use rerun::{RerunCommand, RerunError, held_out};
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
    /// The commands that were run again on this machine, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<Vec<RerunCommand>>,
    /// The digest of the held-out tests, which were not run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
}

impl VerifiedTarget {
    /// The evidence of the commit that was asked about.
    pub fn statement(&self) -> Option<&EvidenceStatement> {
        let is_it = |one: &&VerifiedCommit| one.commit == self.commit;
        self.commits.iter().find(is_it)?.statement.as_deref()
    }

    /// Adds what commands have shown that were run again.
    #[must_use]
    pub fn with_rerun(mut self, again: Result<Vec<RerunCommand>, RerunError>) -> VerifiedTarget {
        let is_proven = again.as_ref().is_ok_and(|again| again.iter().all(RerunCommand::holds));
        match again {
            Ok(again) => {
                self.held_out = self.statement().and_then(held_out).map(str::to_owned);
                if !is_proven {
                    self.verdict = self.verdict.max(Verification::DoesNotHold);
                    self.findings
                        .push("a command ended otherwise here than the note tells".to_owned());
                }
                self.rerun = Some(again);
            }
            Err(error) => {
                self.verdict = self.verdict.max(Verification::CannotBeChecked);
                self.findings.push(format!("the commit was not proven again: {}", chain(&error)));
            }
        }
        self
    }
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
    let found = target(dir, archive, id)?;
    let commit = match &found {
        VerifyTarget::Commit(commit) => commit.clone(),
        VerifyTarget::Run(state) => tip_of(&store, state)?,
    };
    let told = store.statement(&commit)?;
    let alone = store.alone(&commit)?;
    let run = told.as_ref().map(|told| told.predicate.run.id.clone());
    let run = run.or_else(|| alone.as_ref()?.facts.run.clone());
    let mut all = Vec::new();
    let state = match (found, archive) {
        (VerifyTarget::Run(state), _) => {
            all.extend(moved(&store, archive, &state)?);
            Some(state)
        }
        (VerifyTarget::Commit(commit), Some(archive)) => {
            let state = known_run(archive, run.as_deref())?;
            all.extend(strange(&store, archive, state.as_deref(), &commit)?);
            state
        }
        (VerifyTarget::Commit(_), None) => None,
    };
    let base = state.as_ref().map(|state| state.run.base.clone());
    let base = base.or_else(|| Some(told?.predicate.run.base));
    let chain = match base.map(|base| Oid::parse(&base)) {
        Some(Ok(base)) => store.chain(&base, &commit)?,
        Some(Err(_)) | None => None,
    };
    let is_here = alone.is_some();
    if chain.is_none() && is_here && run.is_some() {
        let text = "the commits between the base of the run and this one are not all here; fetch \
                    the whole history with `git fetch --unshallow`";
        all.push(EvidenceFault::Unknown(text.to_owned()));
    }
    let chain = chain.unwrap_or_else(|| alone.into_iter().collect());
    if chain.is_empty() {
        let text = match is_here {
            true => "nothing is merged".to_owned(),
            false => format!("the commit {commit} is not in this repository"),
        };
        all.push(EvidenceFault::Unknown(text));
    }
    let known = match (archive, &state) {
        (Some(archive), Some(state)) => Some(KnownEvidence::of(archive, state, &chain)?),
        (_, _) => None,
    };
    let commits: Vec<VerifiedCommit> = chain
        .iter()
        .map(|at| one(&store, at, &commit, known.as_ref()))
        .collect::<Result<_, _>>()?;
    let worst = commits.iter().map(|commit| commit.verdict).max();
    Ok(VerifiedTarget {
        commit: commit.to_string(),
        run: state.map(|state| state.run.id).or(run),
        verdict: worst.unwrap_or(Verification::Holds).max(Verification::of(&all)),
        against: known.map_or(VerifyGround::Objects, |_| VerifyGround::Journal),
        commits,
        findings: all.iter().map(|fault| fault.text().to_owned()).collect(),
        rerun: None,
        held_out: None,
    })
}

/// The run of this id, if the journal has it.
fn known_run(archive: &RunArchive, id: Option<&str>) -> Result<Option<Box<State>>, QueryError> {
    let runs = archive.runs(super::RUNS_KNOWN_MAX)?;
    let found = id.and_then(|id| runs.into_iter().find(|run| run.id == id));
    Ok(found.map(|run| archive.tell(run)).transpose()?.map(|known| Box::new(known.state)))
}

/// A fault if a commit says that it is of a run, and the run's branch never had it.
fn strange(
    store: &EvidenceStore<'_>,
    archive: &RunArchive,
    state: Option<&State>,
    commit: &Oid,
) -> Result<Option<EvidenceFault>, QueryError> {
    let Some(state) = state else { return Ok(None) };
    let (run, branch) = (&state.run.id, &state.run.branch);
    let is_ours = store.is_of_run(&archive.place, branch, commit)?;
    let text = || format!("run {run} did not make this commit: its branch never had it");
    Ok((is_ours == Some(false)).then(|| EvidenceFault::Wrong(text())))
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
            found.extend(lack_of_proof(statement).filter(|_| at.oid == *target));
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
    if let Some(archive) = archive
        && let Some(state) = known_run(archive, Some(id))?
    {
        return Ok(VerifyTarget::Run(state));
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
    if out.stderr.contains("dubious ownership") {
        let refusal = RepoRefusal::ForeignOwner { path: dir.to_owned() };
        return Err(GitError::from(refusal).into());
    }
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

//! The evidence as the journal gives it: each statement is folded from the records up to the one with
//! its merge.

use super::super::{QueryError, RunArchive};
use super::objects::ChainCommit;
use crate::evidence::clean;
use crate::store::{self, CORE_VERSION};
use autopilot_core::event::{Event, Outcome, Record, TaskEnd};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_host::git::Oid;
use autopilot_host::redact::Redactor;
use autopilot_view::evidence::{
    EvidenceFault, EvidenceSource, EvidenceStatement, MergedCommit, differences,
    statement_of_merge, statement_of_tip, with_whole,
};
use std::collections::BTreeMap;

/// What the journal says of the commits of a branch.
pub struct KnownEvidence {
    by_commit: BTreeMap<Oid, EvidenceStatement>,
    /// The last commit, if the run was done with it and nothing is open.
    result: Option<Oid>,
    redactor: Redactor,
}

impl KnownEvidence {
    /// Folds the records of a run.
    pub fn of(
        archive: &RunArchive,
        now: &State,
        chain: &[ChainCommit],
    ) -> Result<KnownEvidence, QueryError> {
        let read = |hash: &str| store::text(&archive.history, hash).ok();
        let source = EvidenceSource { read: &read, version: CORE_VERSION };
        let mut by_commit = BTreeMap::new();
        let (mut state, mut done) = (State::default(), None);
        for record in archive.records(&now.run.id)? {
            state.apply_record(&record);
            for (task, of) in merges(&record) {
                let is_it =
                    |at: &&ChainCommit| at.facts.parents.get(1).map(String::as_str) == Some(of);
                let Some(at) = chain.iter().find(is_it) else { continue };
                let task = state.task(task);
                let told = statement_of_merge(&state.run, task, &named(at), source);
                by_commit.extend(told.map(|told| (at.oid.clone(), told)));
            }
            if state.end() != Some(&TaskEnd::Closed) {
                done = None;
            } else if done.is_none() {
                done = Some(state.clone());
            }
        }
        let last = chain.last().filter(|at| is_result(at, now, archive));
        let result = match (&done, last) {
            (Some(done), Some(at)) => {
                let told = by_commit.remove(&at.oid);
                let told = told.unwrap_or_else(|| statement_of_tip(done, &named(at), source));
                by_commit.insert(at.oid.clone(), with_whole(told, done, source));
                Some(at.oid.clone())
            }
            (_, _) => None,
        };
        Ok(KnownEvidence { by_commit, result, redactor: archive.redactor(now) })
    }

    /// The difference between a note and what the journal says of the same commit.
    pub fn compare(&self, commit: &Oid, told: &EvidenceStatement) -> Option<EvidenceFault> {
        let Some(known) = self.by_commit.get(commit) else {
            let text = "the journal knows of no such merge";
            return Some(EvidenceFault::Wrong(text.to_owned()));
        };
        let cleaned = (clean(told, &self.redactor), clean(known, &self.redactor));
        let (Some(mut told), Some(known)) = cleaned else {
            let text = "the note can't be compared with the journal";
            return Some(EvidenceFault::Unknown(text.to_owned()));
        };
        if self.result.as_ref() != Some(commit) {
            // It may have been the result of the run at an earlier time.
            told.predicate.whole = None;
        }
        let differ = differences(&told.predicate, &known.predicate);
        (!differ.is_empty()).then(|| {
            EvidenceFault::Wrong(format!("the journal says otherwise about {}", differ.join(", ")))
        })
    }
}

fn named(at: &ChainCommit) -> MergedCommit {
    MergedCommit { commit: at.facts.commit.clone(), tree: at.facts.tree.clone() }
}

/// Whether the commit is the end of the run's branch.
fn is_result(at: &ChainCommit, now: &State, archive: &RunArchive) -> bool {
    let hub = archive.place.state.join("hub.git");
    let name = format!("refs/heads/{}", now.run.branch);
    let tip = super::objects::resolve(hub.as_std_path(), &name).ok().flatten();
    let tip = tip.map(|tip| tip.to_string()).or(now.run.tip.clone());
    tip.as_deref() == Some(at.facts.commit.as_str())
}

/// The merges that a record brings, each with the commit of the task.
fn merges(record: &Record) -> impl Iterator<Item = (autopilot_core::id::TaskId, &str)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is a merge")]
    record.events.iter().filter_map(|event| match event {
        Event::AttemptEnded {
            task, step: Step::Merge, outcome: Outcome::Passed, facts, ..
        } => Some((*task, facts.commit.as_deref()?)),
        _ => None,
    })
}

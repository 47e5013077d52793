//! Writes the evidence of what a run has merged as notes on the commits of its branch.
//!
//! A note is written before the merge is on record, so a process that dies in between writes it when
//! it looks for the merge; what could not be written is written before the run is called done.

use crate::again::again;
use crate::store::CORE_VERSION;
use autopilot_core::event::Outcome;
use autopilot_core::state::{Run, State, Task};
use autopilot_core::step::Step;
use autopilot_host::git::{
    Border, GitError, Hub, MergedTask, NOTES_REF, NotesRequest, Oid, Track, UserRepo, find_notes,
    publish_notes,
};
use autopilot_host::redact::Redactor;
use autopilot_view::evidence::{
    EvidenceSource, EvidenceStatement, MergedCommit, statement_of_merge, statement_of_tip,
    with_whole,
};
use std::collections::BTreeMap;

/// Everything that the evidence of a run is made with.
pub struct EvidenceDesk<'a> {
    pub hub: &'a Hub,
    pub repo: &'a UserRepo,
    pub border: &'a Border,
    pub redactor: &'a Redactor,
    /// Reads a text of the journal.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

impl EvidenceDesk<'_> {
    /// Writes the note on the commit that merged a task. `task` is as it is with that on record.
    pub fn publish_merge(
        &self,
        state: &MergedState<'_>,
        merged: &MergedTask,
    ) -> Result<(), GitError> {
        let statement = statement_of_merge(state.run, state.task, &named(merged), self.source());
        let Some(statement) = statement else { return Ok(()) };
        let statements = BTreeMap::from([(merged.commit.clone(), statement)]);
        self.publish(&statements, state.at)
    }

    /// Writes the notes that are missing on the branch of a run that is about to be called done, and
    /// what is said of the whole on its last commit.
    pub fn publish_done(&self, state: &State) -> Result<(), GitError> {
        let Some(tip) = self.hub.resolve(&format!("refs/heads/{}", state.run.branch))? else {
            return Ok(());
        };
        let base = Oid::parse(&state.run.base)?;
        if tip == base {
            return Ok(());
        }
        let merges = self.track(state, &base).merged_tasks(self.hub, &base, &tip)?;
        let known = self.known(merges.iter().map(|merged| merged.commit.clone()).collect())?;
        let mut statements = BTreeMap::new();
        for merged in merges.iter().filter(|merged| !known.contains(&merged.commit)) {
            if let Some(statement) = self.of_merge(state, merged) {
                statements.insert(merged.commit.clone(), statement);
            }
        }
        let last = merges.iter().find(|merged| merged.commit == tip);
        let of_tip = match last.and_then(|merged| self.of_merge(state, merged)) {
            Some(statement) => statement,
            None => {
                let tree = self.hub.tree_of(&tip)?.to_string();
                let tip = MergedCommit { commit: tip.to_string(), tree };
                statement_of_tip(state, &tip, self.source())
            }
        };
        statements.insert(tip, with_whole(of_tip, state, self.source()));
        self.publish(&statements, state.at.0 / 1000)
    }

    fn of_merge(&self, state: &State, merged: &MergedTask) -> Option<EvidenceStatement> {
        let task = state.named(&merged.task)?;
        let merge = task.last(Step::Merge)?;
        let is_it = merge.facts.commit.as_deref() == Some(merged.of.as_str());
        let task = (is_it && merge.outcome == Outcome::Passed).then_some(task)?;
        statement_of_merge(&state.run, task, &named(merged), self.source())
    }

    fn known(&self, commits: Vec<Oid>) -> Result<Vec<Oid>, GitError> {
        let Some(notes) = self.hub.resolve(NOTES_REF)? else { return Ok(Vec::new()) };
        Ok(find_notes(self.hub.dir(), &notes, &commits)?.into_keys().collect())
    }

    fn publish(
        &self,
        statements: &BTreeMap<Oid, EvidenceStatement>,
        now: i64,
    ) -> Result<(), GitError> {
        let commits: Vec<Oid> = statements.keys().cloned().collect();
        let text = |commit: &Oid, before: Option<&str>| {
            let statement = statements.get(commit)?;
            clean(statement, self.redactor)?.note(before).ok()
        };
        let request = NotesRequest { commits: &commits, text: &text, now };
        again(|| publish_notes(self.hub, self.repo, &request, self.border))
    }

    fn track<'a>(&'a self, state: &'a State, base: &'a Oid) -> Track<'a> {
        Track {
            run: &state.run.id,
            branch: &state.run.branch,
            start: base,
            has_begun: true,
            identity: &self.repo.identity,
            now: 0,
        }
    }

    fn source(&self) -> EvidenceSource<'_> {
        EvidenceSource { read: self.read, version: CORE_VERSION }
    }
}

/// A run and a task of it, with the merge of the task on record.
pub struct MergedState<'a> {
    pub run: &'a Run,
    pub task: &'a Task,
    /// The time of the note, in seconds since 1970.
    pub at: i64,
}

fn named(merged: &MergedTask) -> MergedCommit {
    MergedCommit { commit: merged.commit.to_string(), tree: merged.tree.to_string() }
}

/// The statement without secrets.
pub(crate) fn clean(
    statement: &EvidenceStatement,
    redactor: &Redactor,
) -> Option<EvidenceStatement> {
    let mut value = serde_json::to_value(statement).ok()?;
    redactor.redact_json(&mut value);
    serde_json::from_value(value).ok()
}

//! The statement about the result of a whole run, on the last commit of its branch.

use super::coverage::coverage;
use super::fold::{self, EvidenceSource, MergedCommit};
use super::{EvidenceKind, EvidenceStatement, EvidenceWhole};
use crate::{LastProof, doubts, still_shown, unreviewed, waivers};
use autopilot_core::state::State;
use autopilot_core::step::Step;

/// The statement about the last commit where that is no merge of a task.
pub fn statement_of_tip(
    state: &State,
    tip: &MergedCommit,
    source: EvidenceSource<'_>,
) -> EvidenceStatement {
    fold::statement(&state.run, tip, fold::empty(&state.run, source))
}

/// The statement with what is said of the whole result.
#[must_use]
pub fn with_whole(
    mut statement: EvidenceStatement,
    state: &State,
    source: EvidenceSource<'_>,
) -> EvidenceStatement {
    let tree = statement.digest().map(|digest| digest.git_tree.clone());
    let tree = tree.as_deref();
    let gates = [(Step::Validate, EvidenceKind::Whole), (Step::Prove, EvidenceKind::LastWord)];
    let gate =
        |(step, kind)| still_shown(state, step).map(|shown| fold::gate(kind, shown, tree, source));
    let acceptance = still_shown(state, Step::Uat)
        .and(state.root())
        .and_then(|root| fold::acceptance(root, tree, source));
    let judged = [Step::Completion, Step::WholeReview]
        .into_iter()
        .filter_map(|step| fold::review(step, still_shown(state, step)?));
    let unreviewed = unreviewed(state).map(|why| format!("review of the whole skipped: {why}"));
    let told = doubts(state).into_iter().map(|standing| {
        let text = standing.sentence();
        super::EvidenceDoubt { text, ..fold::doubt(standing.doubt) }
    });
    statement.predicate.whole = Some(EvidenceWhole {
        proof: LastProof::of(state).map_or("cold", LastProof::word).to_owned(),
        gates: gates.into_iter().filter_map(gate).collect(),
        reviews: judged.collect(),
        coverage: still_shown(state, Step::Coverage).map(coverage).unwrap_or_default(),
        acceptance,
        waived: waivers(state).iter().cloned().chain(unreviewed).collect(),
        doubts: told.collect(),
    });
    statement
}

//! What a note says, compared with the commit that carries it and with what the journal says.

use super::{
    EvidenceGate, EvidenceKind, EvidencePredicate, EvidenceStatement, PREDICATE_TYPE,
    STATEMENT_TYPE,
};

/// A commit as git has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitFacts {
    pub commit: String,
    pub tree: String,
    pub parents: Vec<String>,
    /// The files of the second parent, where that commit is there.
    pub task_tree: Option<String>,
    /// The run that the message names.
    pub run: Option<String>,
}

/// What is wrong with a note, or can't be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvidenceFault {
    /// The note says something that is not so.
    Wrong(String),
    /// What the note says can't be compared with anything.
    Unknown(String),
}

impl EvidenceFault {
    /// The fault in words.
    pub fn text(&self) -> &str {
        match self {
            EvidenceFault::Wrong(text) | EvidenceFault::Unknown(text) => text,
        }
    }
}

/// Compares a note with the commit that carries it, and with itself.
pub fn faults(told: &EvidenceStatement, is: &CommitFacts) -> Vec<EvidenceFault> {
    if told.statement_type != STATEMENT_TYPE || told.predicate_type != PREDICATE_TYPE {
        let text = format!("the note is of the unknown type `{}`", told.predicate_type);
        return vec![EvidenceFault::Unknown(text)];
    }
    let mut faults = Vec::new();
    let mut wrong = |is_so: bool, text: &str| {
        if !is_so {
            faults.push(EvidenceFault::Wrong(text.to_owned()));
        }
    };
    let digest = told.digest();
    let is_about_it =
        told.subject.len() == 1 && digest.is_some_and(|digest| digest.git_commit == is.commit);
    wrong(is_about_it, "the note is about another commit");
    let is_tree = digest.is_some_and(|digest| digest.git_tree == is.tree);
    wrong(is_tree, "the tree in the note is not that of the commit");
    let EvidencePredicate { run, task, whole, .. } = &told.predicate;
    wrong(is.run.as_ref() == Some(&run.id), "the message of the commit names another run, or none");
    let is_merge = is.parents.get(1);
    let is_of_task = task.as_ref().map(|task| &task.commit) == is_merge;
    wrong(is_of_task, "the commit did not merge the task's commit that the note names");
    for gate in told.gates() {
        wrong(
            is_earned(gate),
            &format!("{} is called passed, and a command of it failed", name(gate)),
        );
        wrong(gate.outcome != "failed", &format!("{} failed", name(gate)));
    }
    for criterion in told.covered() {
        let text = format!("no test covers {}", criterion.criterion);
        wrong(!(criterion.tests.is_empty() && criterion.weak_tests.is_empty()), &text);
    }
    if let Some(task) = task {
        let is_proven = |gate: &&EvidenceGate| gate.kind == EvidenceKind::Task;
        let mut gates = told.predicate.gates.iter().filter(is_proven);
        let is_same = gates.all(|gate| gate.tree.is_none() || gate.tree == task.tree);
        wrong(is_same, "the gate of the task ran on another tree than the task's");
        if is.task_tree.is_some() {
            wrong(task.tree == is.task_tree, "the tree of the task is not that of its commit");
        } else {
            let text = format!("the commit {} of the task is not here", task.commit);
            faults.push(EvidenceFault::Unknown(text));
        }
    }
    if let Some(whole) = whole {
        let on_it =
            |gate: &EvidenceGate| gate.tree.is_none() || gate.tree.as_ref() == Some(&is.tree);
        if !whole.gates.iter().all(on_it) {
            let text = "a gate of the whole ran on another tree than the result's";
            faults.push(EvidenceFault::Wrong(text.to_owned()));
        }
        if whole.proof == "failed" {
            let text = "the result failed when it was proven from nothing";
            faults.push(EvidenceFault::Wrong(text.to_owned()));
        }
    }
    faults
}

/// The fault of a note by which nothing was proven. It is one of the commit that is asked about: a part of a
/// whole may be proven with the whole alone.
pub fn lack_of_proof(told: &EvidenceStatement) -> Option<EvidenceFault> {
    let is_proof = |gate: &EvidenceGate| gate.outcome == "passed" && !gate.commands.is_empty();
    let text = "nothing in the note proves the commit: no command of a gate ran";
    (!told.gates().any(is_proof)).then(|| EvidenceFault::Unknown(text.to_owned()))
}

/// Whether every command of a gate that is called passed did pass, or has an excuse.
fn is_earned(gate: &EvidenceGate) -> bool {
    let failed =
        gate.commands.iter().filter(|command| !command.passed || command.exit_code != Some(0));
    gate.outcome != "passed" || failed.count() <= gate.excused.len()
}

fn name(gate: &EvidenceGate) -> String {
    format!("the gate of attempt {}", gate.attempt)
}

/// The parts of a note that differ from the statement that the journal gives. The version of the
/// program is not compared.
pub fn differences(told: &EvidencePredicate, known: &EvidencePredicate) -> Vec<&'static str> {
    let parts = [
        ("the run", told.run != known.run),
        ("the task", told.task != known.task),
        ("the gates", told.gates != known.gates),
        ("the reviews", told.reviews != known.reviews),
        ("the coverage", told.coverage != known.coverage),
        ("the acceptance", told.acceptance != known.acceptance),
        ("what was waived", told.waived != known.waived),
        ("the doubts", told.doubts != known.doubts),
        ("the whole result", told.whole != known.whole),
    ];
    parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
}

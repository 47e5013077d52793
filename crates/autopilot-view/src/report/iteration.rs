//! The iterations of a run towards a goal: each with its workflow, its steps and its verdict.

use super::choice::TaskChoice;
use super::words::{Body, ReportLine};
use super::{Drawn, PageSource, Tone, drawn};
use crate::graph::GraphPicture;
use crate::manifest::{self, IterationHistory};
use crate::sessions::{Session, last_of};
use crate::{duration, money};
use autopilot_core::id::TaskId;

/// The most iterations that a page shows; the last ones are shown.
const ITERATIONS_MAX: usize = 50;

/// One iteration on the page.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportIteration {
    pub index: u32,
    pub workflow: Option<ReportLine>,
    pub graph: Option<Drawn>,
    pub steps: Vec<ReportStepRow>,
    pub verdict: Option<(Tone, &'static str, Body)>,
}

/// One step of a workflow on the page.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportStepRow {
    pub task: TaskId,
    pub id: ReportLine,
    pub goal: Body,
    pub word: &'static str,
    pub tone: Tone,
    pub session: ReportLine,
    pub took: String,
    pub cost: String,
}

/// The iterations of a run, the last ones.
pub(super) fn all(
    source: &PageSource<'_>,
    history: &IterationHistory,
    sessions: &[Session],
) -> Vec<ReportIteration> {
    let PageSource { state, known, words, .. } = source;
    let steps = manifest::steps(state, known.read);
    let last = state.root().map_or(0, |root| root.round);
    let first = last.saturating_sub(ITERATIONS_MAX as u32 - 1).max(1);
    let whole = GraphPicture::of_run(state);
    let one = |index: u32| {
        let own = manifest::steps_of(&steps, index);
        let names: Vec<&str> = own.iter().map(|step| step.task.name()).collect();
        let graph = whole.only(|node| names.contains(&node.id.as_str()));
        let choice =
            TaskChoice { tasks: own.iter().map(|step| step.task.id).collect(), left_out: 0 };
        let row = |step: &&manifest::PlacedStep<'_>| {
            let task = step.task;
            let word = manifest::status_word(state, task);
            ReportStepRow {
                task: task.id,
                id: words.line(&step.body.step.id),
                goal: words.text(&step.body.step.goal),
                word,
                tone: Tone::of(word),
                session: words.line(last_of(sessions, task.id).unwrap_or_default()),
                took: duration(task.spent.work_ms),
                cost: money::cost(task.spent.bill),
            }
        };
        ReportIteration {
            index,
            workflow: own.first().map(|step| words.line(&step.body.workflow)),
            graph: drawn(source, &graph, &format!("g{index}"), &choice),
            steps: own.iter().map(row).collect(),
            verdict: verdict(source, history, index),
        }
    };
    (first..=last).map(one).collect()
}

/// The reviewer's verdict, or the controller's correction of it.
fn verdict(
    source: &PageSource<'_>,
    history: &IterationHistory,
    index: u32,
) -> Option<(Tone, &'static str, Body)> {
    let said = history.completion(index, source.known.read)?;
    let text = [said.summary.as_deref(), said.reason.as_deref()];
    let text: Vec<&str> = text.into_iter().flatten().collect();
    let (tone, word) = match (said.done, history.is_overruled(index)) {
        (true, _) => (Tone::Good, "The reviewer says: done"),
        (false, true) => (Tone::Bad, "The reviewer said done and was overruled by the controller"),
        (false, false) => (Tone::Bad, "The reviewer says: not done"),
    };
    Some((tone, word, source.words.text(&text.join("\n"))))
}

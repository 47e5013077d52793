//! The tasks of a run and their dependencies.

use super::{QueryError, RunArchive};
use autopilot_core::config::Config;
use autopilot_core::plan::{self, Plan, PlanRules};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_view::graph::GraphPicture;
use std::collections::BTreeMap;

/// The redacted graph of a run; without an id, of the newest run.
pub fn of_run(archive: &RunArchive, run: Option<&str>) -> Result<GraphPicture, QueryError> {
    let known = archive.run(run)?;
    let redactor = archive.redactor(&known.state);
    let mut graph = match waiting_plan(&known.state, archive)? {
        Some(plan) => plan,
        None => GraphPicture::of_run(&known.state),
    };
    graph.title = format!("run {}  {}  {}", known.run.id, known.word(), known.run.title);
    graph.for_each_text(|text| *text = redactor.redact(text).into_owned());
    Ok(graph)
}

/// The graph of a plan that waits for approval, while the run has no tasks yet.
fn waiting_plan(state: &State, archive: &RunArchive) -> Result<Option<GraphPicture>, QueryError> {
    let Some(root) = state.root().filter(|root| root.children.is_empty()) else { return Ok(None) };
    let shown = root.last(Step::Plan).and_then(|shown| shown.facts.answer.as_ref());
    let Some(hash) = shown else { return Ok(None) };
    let plan: Plan = archive.kept(hash)?;
    let whole: TaskSpec = archive.kept(&root.spec.body)?;
    let config: Config = archive.kept(&state.run.config)?;
    let checked = plan::check(&plan, &PlanRules::of(&config, &whole, BTreeMap::new())).ok();
    Ok(checked.map(|checked| GraphPicture::of_plan("", &checked)))
}

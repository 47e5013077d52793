//! Finds task files that changed since the run started. The run keeps the text it started with.

use super::{PlanBody, body_of, read_file};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::flow::FlowInput;
use autopilot_core::state::State;
use autopilot_view as view;
use camino::Utf8Path;

/// The changed task files of tasks that are still open. A missing or faulty file is ignored: the
/// run does not need it.
pub fn changed_since(state: &State, root: &Utf8Path) -> Vec<String> {
    let input = state.run.flow.row().input;
    let changed = |task: &autopilot_core::state::Task| {
        if task.is_closed() {
            return None;
        }
        let source = Utf8Path::new(&task.spec.source);
        let (parsed, _) = read_file(&root.join(source)).ok()?;
        let mut spec = parsed.spec;
        spec.path = source.to_owned();
        let body = match input {
            FlowInput::TaskFiles => {
                task.name().clone_into(&mut spec.id);
                body_of(&spec)
            }
            FlowInput::PlanFile | FlowInput::Text => {
                serde_json::to_string(&PlanBody { spec, text: parsed.body }).unwrap_or_default()
            }
        };
        (sha256_hex(body.as_bytes()) != task.spec.body).then(|| source.to_string())
    };
    match input {
        FlowInput::TaskFiles => view::leaves(state).filter_map(changed).collect(),
        // The tasks of a plan have no files of their own.
        FlowInput::PlanFile => state.root().and_then(changed).into_iter().collect(),
        // A goal has no file.
        FlowInput::Text => Vec::new(),
    }
}

//! What became of the task files since a run began. The run keeps what it began with.

use super::{PlanBody, body_of, read_file};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::flow::FlowInput;
use autopilot_core::state::State;
use autopilot_view as view;
use camino::Utf8Path;

/// Task files of unsettled or failed tasks that read otherwise than the run knows them. A file that
/// is gone or has faults is no news: the run does not need it.
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
        // Its tasks have no files of their own.
        FlowInput::PlanFile => state.root().and_then(changed).into_iter().collect(),
        // There is no file of it.
        FlowInput::Text => Vec::new(),
    }
}

//! What became of the task files since a run began. The run keeps what it began with.

use super::{body_of, read_task};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::state::State;
use autopilot_core::view;
use camino::Utf8Path;

/// Task files of unsettled or failed tasks that read otherwise than the run knows them. A file that
/// is gone or has faults is no news: the run does not need it.
pub fn changed_since(state: &State, root: &Utf8Path) -> Vec<String> {
    let changed = |task: &autopilot_core::state::Task| {
        if task.is_closed() {
            return None;
        }
        let source = Utf8Path::new(&task.spec.source);
        let (mut spec, _) = read_task(&root.join(source)).ok()?;
        spec.path = source.to_owned();
        task.name().clone_into(&mut spec.id);
        let differs = sha256_hex(body_of(&spec).as_bytes()) != task.spec.body;
        differs.then(|| source.to_string())
    };
    view::leaves(state).filter_map(changed).collect()
}

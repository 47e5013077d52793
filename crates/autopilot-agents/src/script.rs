//! The scripted agent: no model, no network, for the demo and for tests.
//!
//! The agent is a real process, our own binary as `__script <file>`. The file lists the actions of
//! each step; here it is parsed and matched, and the process carries the [`Action`]s out.

mod decode;
mod file;
mod said;

pub use file::{Action, Script, ScriptError, ScriptPlace, ScriptSignal};
pub use said::{FailKind, ScriptFailure, ScriptSaid};

pub(crate) use decode::ScriptConversation;

use camino::Utf8Path;

use crate::launch::{LaunchPlan, LaunchProgram, LaunchRequest, LaunchStdin};

/// The hidden command of our binary that plays a script.
pub const COMMAND: &str = "__script";

pub(crate) fn launch(file: &Utf8Path, ask: &LaunchRequest) -> LaunchPlan {
    let stdin = LaunchStdin::Whole(ask.whole_prompt().into_bytes());
    LaunchPlan::new(LaunchProgram::Own, vec![COMMAND.to_owned(), file.to_string()], stdin)
}

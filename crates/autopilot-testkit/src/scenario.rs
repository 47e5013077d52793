//! Scenarios: text in, text out, over the same world with nothing left to chance.
//!
//! ```text
//! queue a; b after a
//! limit rounds 2
//! a: build ok, validate fails, fix ok
//! b: build broke
//! crash during a merge
//! stop during b build; resume
//! ```
//!
//! gives `a done (2 rounds) · b done (1 retry) — run done`. Steps that no line names go well.
//!
//! Of a goal the first line has the steps of a workflow, and the completion says what comes of it:
//!
//! ```text
//! goal a; b after a
//! with fail-fast
//! run: completion unfinished, workflow ok, completion unfinished bringing c+d<c, completion done
//! ```
//!
//! Whatever workflow is made and not spelt out has the same steps again, as `a-i2` and so on.

mod board;
mod change;
mod parse;

use crate::agent::Agents;
use crate::fault::Faults;
use crate::world::{Plan, World};
use autopilot_core::event::Record;
use autopilot_core::id::{AttemptId, TaskId};
use autopilot_core::state::State;
use autopilot_core::step::Step;

/// What became of a scenario.
pub struct Story {
    pub board: String,
    /// Every attempt begun, in order: `a.build a.validate …`; with who did it where that was not
    /// the preferred one: `a.build@two`.
    pub starts: String,
    /// What is on the run branch, in order.
    pub merged: String,
    /// What people asked for and were refused, in words.
    pub refusals: Vec<String>,
    pub state: State,
    pub records: Vec<Record>,
    pub trace: Vec<String>,
}

/// Plays a scenario to its end. An error is a scenario that can't be read, one whose cues or lines
/// never came, or an invariant that did not hold.
pub fn play(text: &str) -> Result<Story, String> {
    let script = parse::script(text)?;
    let mut world = World::new(Plan {
        seed: 0,
        spec: script.spec,
        faults: Faults::new(),
        agents: Agents::Scripted(script.agents),
        times: Default::default(),
        cues: Some(script.cues),
    });
    world.trace = Some(Vec::new());
    world.run();
    if let Some(fault) = &world.audit.fault {
        return Err(format!("{fault}\n{}", world.trace.unwrap_or_default().join("\n")));
    }
    if let Some(cue) = world.cues.front() {
        return Err(format!("the story never came to {cue:?}"));
    }
    if let Agents::Scripted(scripted) = &world.agents
        && let Some(line) = scripted.lines.values().flatten().find(|line| !line.is_begun)
    {
        return Err(format!("the story never came to {line:?}"));
    }
    Ok(told(&mut world))
}

fn told(world: &mut World) -> Story {
    let state = world.state();
    let books = world.audit.books();
    let name = |task| match world.audit.name_of(task) {
        name if name.is_empty() => "run".to_owned(),
        name => name,
    };
    let start = |(id, (task, step)): (&AttemptId, &(TaskId, Step))| {
        let begun = format!("{}.{step}", name(*task));
        match books.lane_by.get(id) {
            Some(lane) if *lane > 0 => format!("{begun}@{}", books.lane(*task, *step, *lane)),
            Some(_) | None => begun,
        }
    };
    let starts: Vec<String> = books.ever.iter().map(start).collect();
    let merged: Vec<&str> = world.git.merges.iter().map(|merge| merge.tree.as_str()).collect();
    Story {
        board: board::board(&state),
        starts: starts.join(" "),
        merged: merged.join(" "),
        refusals: std::mem::take(&mut world.refusals),
        state,
        records: world.disk.durable.clone(),
        trace: world.trace.take().unwrap_or_default(),
    }
}

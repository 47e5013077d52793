//! Messages about money: the cost of a run, and the command that continues it.

use autopilot_core::event::{Bill, HaltWhy};
use autopilot_core::state::State;

/// A cost for people: `$0.02`, or `$0.02 + unknown` if a part was not reported.
pub fn cost(bill: Bill) -> String {
    let unknown = if bill.unpriced { " + unknown" } else { "" };
    format!("{}{unknown}", bill.usd)
}

/// The command that continues a stopped run. If a limit is used up, the command names it, because
/// the run would only stop again.
pub fn continue_command(state: &State) -> String {
    let run = &state.run;
    let resume = "`autopilot resume`".to_owned();
    let Some(halt) = &run.halt else { return resume };
    match halt.why {
        HaltWhy::Money { .. } => {
            let is_of_run = run.limits.usd_max.is_some_and(|max| run.spent.usd >= max);
            if is_of_run {
                format!("`autopilot resume --max-usd N` with N above {:.2}", run.spent.usd.usd())
            } else if let Some(most) = most_of_a_task(state) {
                format!("`autopilot resume --max-usd-per-task N` with N above {most:.2}")
            } else {
                resume
            }
        }
        HaltWhy::Wall => {
            let worked = super::duration(run.active_ms);
            format!("`autopilot resume --max-wall TIME` with TIME above {worked}")
        }
        HaltWhy::Stop
        | HaltWhy::Pause
        | HaltWhy::Continued
        | HaltWhy::Quota { .. }
        | HaltWhy::Away { .. }
        | HaltWhy::Host { .. } => resume,
    }
}

/// The most that a task has spent, if it has used up the limit per task.
fn most_of_a_task(state: &State) -> Option<f64> {
    let max = state.run.limits.usd_per_task_max?;
    let spent = state.tasks.iter().map(|task| task.spent.bill.usd).max()?;
    (spent >= max).then(|| spent.usd())
}

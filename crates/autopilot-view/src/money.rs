//! Money in words: what was spent, and how to go on when a limit is used up.

use autopilot_core::event::{Bill, HaltWhy};
use autopilot_core::state::State;

/// `$0.02`, or `$0.02 + unknown` where nobody told all of it.
pub fn cost(bill: Bill) -> String {
    let unknown = if bill.unpriced { " + unknown" } else { "" };
    format!("{}{unknown}", bill.usd)
}

/// What a person says to go on with a run that rests. Where a limit is used up it would only rest
/// again, so the limit is named.
pub fn go_on(state: &State) -> String {
    let run = &state.run;
    let resume = "`autopilot resume`".to_owned();
    let Some(halt) = &run.halt else { return resume };
    match halt.why {
        HaltWhy::Money { .. } => {
            let is_of_run = run.limits.usd_max.is_some_and(|max| run.spent.usd >= max);
            if is_of_run {
                format!("`autopilot resume --max-usd N`, N above {:.2}", run.spent.usd.usd())
            } else if let Some(most) = most_of_a_task(state) {
                format!("`autopilot resume --max-usd-per-task N`, N above {most:.2}")
            } else {
                resume
            }
        }
        HaltWhy::Wall => {
            let worked = super::duration(run.active_ms);
            format!("`autopilot resume --max-wall TIME`, TIME above {worked}")
        }
        HaltWhy::Stop
        | HaltWhy::Pause
        | HaltWhy::Continued
        | HaltWhy::Quota { .. }
        | HaltWhy::Away { .. }
        | HaltWhy::Host { .. } => resume,
    }
}

/// Of the tasks that have used up what one may spend.
fn most_of_a_task(state: &State) -> Option<f64> {
    let max = state.run.limits.usd_per_task_max?;
    let spent = state.tasks.iter().map(|task| task.spent.bill.usd).max()?;
    (spent >= max).then(|| spent.usd())
}

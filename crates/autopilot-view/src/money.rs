//! Messages about money: the cost of a run, and the command that continues it.

use autopilot_core::event::{Bill, HaltWhy};
use autopilot_core::id::Micros;
use autopilot_core::state::{State, Task};

/// A cost for people: `$0.02` as agents told it, and behind it what was estimated for those who did
/// not tell, and that a part is unknown: `$0.02 + $0.10 estimated + unknown`.
pub fn cost(bill: Bill) -> String {
    let mut text = bill.usd.to_string();
    if bill.estimated > Micros(0) {
        text.push_str(&format!(" + {} estimated", bill.estimated));
    }
    if bill.unpriced {
        text.push_str(" + unknown");
    }
    text
}

/// A cost for people, and the money that is reserved for agents and not spent.
pub fn cost_and_reserved(bill: Bill, reserved: Micros) -> String {
    match reserved {
        Micros(0) => cost(bill),
        _ => format!("{}, {reserved} reserved", cost(bill)),
    }
}

/// The cost of a run for people, with the money reserved for its agents.
pub fn cost_of_run(state: &State) -> String {
    cost_and_reserved(state.run.spent, state.reserved(None))
}

/// The cost of a task for people, with the money reserved for its agents.
pub fn cost_of_task(state: &State, task: &Task) -> String {
    cost_and_reserved(task.spent.bill, state.reserved(Some(task.id)))
}

/// The command that continues a stopped run. If a limit is used up, the command names it, because
/// the run would only stop again.
pub fn continue_command(state: &State) -> String {
    let run = &state.run;
    let resume = "`autopilot resume`".to_owned();
    let Some(halt) = &run.halt else { return resume };
    match halt.why {
        HaltWhy::Money { .. } => {
            let is_of_run = run.limits.usd_max.is_some_and(|max| run.spent.counted() >= max);
            if is_of_run {
                format!(
                    "`autopilot resume --max-usd N` with N above {:.2}",
                    run.spent.counted().usd()
                )
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
    let spent = state.tasks.iter().map(|task| task.spent.bill.counted()).max()?;
    (spent >= max).then(|| spent.usd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_estimated_unknown_and_reserved_are_figures_of_their_own() {
        let bill = |usd, estimated, unpriced| Bill {
            usd: Micros(usd),
            estimated: Micros(estimated),
            unpriced,
            ..Bill::default()
        };
        assert_eq!(cost(bill(20_000, 0, false)), "$0.02");
        assert_eq!(cost(bill(20_000, 0, true)), "$0.02 + unknown");
        assert_eq!(cost(bill(0, 100_000, false)), "$0.00 + $0.10 estimated");
        let all = cost_and_reserved(bill(20_000, 100_000, true), Micros(1_500_000));
        assert_eq!(all, "$0.02 + $0.10 estimated + unknown, $1.50 reserved");
        assert_eq!(cost_and_reserved(bill(0, 0, false), Micros(0)), "$0.00");
    }
}

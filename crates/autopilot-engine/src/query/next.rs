//! The commands a person can use next with a run that has ended or paused.

use autopilot_core::event::Outcome;
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;
use autopilot_view::{self as view, ExitWord};

/// The commands to use next with a run that has ended or paused. `branch` is the run's branch, if
/// the repository has it: nothing may have been merged, or the merge was undone.
pub fn next_commands(state: &State, branch: Option<&str>) -> Vec<String> {
    let recover = || "autopilot recover".to_owned();
    match ExitWord::of(state) {
        ExitWord::Done => match branch {
            Some(branch) => vec![
                format!("git diff {}...{branch}", state.run.base_branch),
                format!("git merge {branch}"),
            ],
            None if has_merged(state) => vec![recover()],
            None => Vec::new(),
        },
        ExitWord::Paused if view::awaited(state).is_some() => {
            vec!["autopilot approve".to_owned(), "autopilot reject \"why\"".to_owned()]
        }
        ExitWord::Paused => vec![view::money::continue_command(state).replace('`', "")],
        ExitWord::Failed | ExitWord::NotConverged => {
            let look = branch
                .map(|branch| format!("git log --oneline {}..{branch}", state.run.base_branch));
            ["autopilot retry".to_owned()].into_iter().chain(look).collect()
        }
        ExitWord::Misconfigured => {
            vec!["autopilot doctor".to_owned(), "autopilot retry".to_owned()]
        }
        ExitWord::PushFailed => match branch {
            Some(branch) => vec![format!("git push <remote> {branch}")],
            None => vec![recover()],
        },
    }
}

/// Returns whether anything was merged to the run's branch.
fn has_merged(state: &State) -> bool {
    let is_merged =
        |task: &Task| task.last(Step::Merge).is_some_and(|shown| shown.outcome == Outcome::Passed);
    state.tasks.iter().any(is_merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_rests_is_gone_on_with_and_one_that_waits_is_answered() {
        let state = State::default();
        assert_eq!(ExitWord::of(&state), ExitWord::Paused);
        assert_eq!(next_commands(&state, None), ["autopilot resume"]);
    }
}

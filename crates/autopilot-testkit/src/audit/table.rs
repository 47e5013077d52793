//! The legal moves of a task, written down a second time from the requirements.

use autopilot_core::step::Step;

/// Where a task of the paired loop may go from a step; `None` is the beginning.
pub fn paired(from: Option<Step>) -> &'static [Step] {
    match from {
        // A task that a person re-opened goes on with a repair.
        None => &[Step::Build, Step::Fix],
        Some(Step::Build | Step::Fix) => &[Step::Validate],
        // The review may be switched off; a failing validation never skips it.
        Some(Step::Validate) => &[Step::Review, Step::UatGenerate],
        Some(Step::Review) => &[Step::UatGenerate],
        Some(Step::UatGenerate) => &[Step::Uat, Step::Decide],
        Some(Step::Uat) => &[Step::Decide],
        Some(Step::Decide) => &[Step::Merge, Step::Fix],
        // A conflict is a failed round.
        Some(Step::Merge) => &[Step::Fix],
        Some(
            Step::Preflight
            | Step::Plan
            | Step::ApprovePlan
            | Step::Schedule
            | Step::Tasks
            | Step::ApproveResult
            | Step::Push
            | Step::PullRequest,
        ) => &[],
    }
}

pub fn root(from: Option<Step>) -> &'static [Step] {
    match from {
        // Re-opened for the sake of a task below it, it goes straight to its tasks.
        None => &[Step::Preflight, Step::Tasks],
        Some(Step::Preflight) => &[Step::Tasks],
        Some(Step::Tasks) => &[Step::Push],
        Some(_) => &[],
    }
}

pub fn is_serial(step: Step) -> bool {
    matches!(step, Step::Merge | Step::Push)
}

pub fn is_worked(step: Step) -> bool {
    !matches!(step, Step::Tasks | Step::Decide)
}

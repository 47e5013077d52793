//! The legal moves of a task, written down a second time from the requirements.

use autopilot_core::step::Step;

/// Where a task of the paired loop may go from a step; `None` is the beginning.
pub fn paired(from: Option<Step>) -> &'static [Step] {
    match from {
        // A task that a person re-opened goes on with a repair, or with the merge that broke.
        None => &[Step::Build, Step::Fix, Step::Merge],
        Some(Step::Build | Step::Fix) => &[Step::Validate],
        // The review may be switched off, for all rounds or for failing ones; the cases too, where
        // nothing runs them.
        Some(Step::Validate) => &[
            Step::Coverage,
            Step::Review,
            Step::UatGenerate,
            Step::Uat,
            Step::AcceptTests,
            Step::Prove,
            Step::Decide,
        ],
        // Where each criterion needs a test, somebody says which.
        Some(Step::Coverage) => &[
            Step::Review,
            Step::UatGenerate,
            Step::Uat,
            Step::AcceptTests,
            Step::Prove,
            Step::Decide,
        ],
        Some(Step::Review) => {
            &[Step::UatGenerate, Step::Uat, Step::AcceptTests, Step::Prove, Step::Decide]
        }
        Some(Step::UatGenerate) => &[Step::Uat, Step::AcceptTests, Step::Prove, Step::Decide],
        // What becomes the result is proven from nothing first.
        Some(Step::Uat) => &[Step::AcceptTests, Step::Prove, Step::Decide],
        // A person is asked about tests of the base that no longer pass.
        Some(Step::AcceptTests) => &[Step::Prove, Step::Decide],
        Some(Step::Prove) => &[Step::Decide],
        Some(Step::Decide) => &[Step::Merge, Step::Fix],
        // A conflict is a failed round.
        Some(Step::Merge) => &[Step::Fix],
        Some(_) => &[],
    }
}

/// Where a run of tasks that were given goes.
pub fn root(from: Option<Step>) -> &'static [Step] {
    match from {
        // Re-opened for the sake of a task below it, it goes straight to its tasks.
        None => &[Step::Preflight, Step::Tasks],
        Some(Step::Preflight) => &[Step::Tasks],
        Some(Step::Tasks) => &[Step::Prove, Step::ApproveResult, Step::Push, Step::PullRequest],
        // What does not hold from nothing is mended by a task.
        Some(Step::Prove) => &[Step::Tasks, Step::ApproveResult, Step::Push, Step::PullRequest],
        Some(Step::ApproveResult) => &[Step::Push, Step::PullRequest],
        Some(Step::Push) => &[Step::PullRequest],
        Some(_) => &[],
    }
}

/// Where a run that is planned goes.
pub fn plan(from: Option<Step>) -> &'static [Step] {
    match from {
        None => &[Step::Preflight, Step::Plan, Step::Tasks],
        Some(Step::Preflight) => &[Step::Plan],
        Some(Step::Plan) => &[Step::ApprovePlan, Step::Schedule],
        // A rejected plan is made anew.
        Some(Step::ApprovePlan) => &[Step::Schedule, Step::Plan],
        Some(Step::Schedule) => &[Step::Tasks],
        // Where tasks have failed, what was merged is proven alone.
        Some(Step::Tasks) => &[Step::Validate, Step::Prove],
        // What does not hold is mended by a task.
        Some(Step::Validate) => &[
            Step::WholeReview,
            Step::UatGenerate,
            Step::Tasks,
            Step::Prove,
            Step::ApproveResult,
            Step::Push,
            Step::PullRequest,
        ],
        Some(Step::WholeReview) => &[
            Step::UatGenerate,
            Step::Uat,
            Step::Tasks,
            Step::Prove,
            Step::ApproveResult,
            Step::Push,
            Step::PullRequest,
        ],
        Some(Step::UatGenerate) => {
            &[Step::Uat, Step::Prove, Step::ApproveResult, Step::Push, Step::PullRequest]
        }
        Some(Step::Uat) => {
            &[Step::Prove, Step::ApproveResult, Step::Push, Step::PullRequest, Step::Tasks]
        }
        Some(Step::Prove) => &[Step::ApproveResult, Step::Push, Step::PullRequest, Step::Tasks],
        Some(Step::ApproveResult) => &[Step::Push, Step::PullRequest],
        Some(Step::Push) => &[Step::PullRequest],
        Some(_) => &[],
    }
}

/// Where a task goes that is divided when its turn comes.
pub fn divided(from: Option<Step>) -> &'static [Step] {
    match from {
        None => &[Step::Plan, Step::Tasks],
        Some(Step::Plan) => &[Step::Schedule],
        Some(Step::Schedule) => &[Step::Tasks],
        Some(_) => &[],
    }
}

/// Where a run towards a goal goes.
pub fn goal(from: Option<Step>) -> &'static [Step] {
    match from {
        None => &[Step::Preflight, Step::Workflow, Step::Tasks],
        Some(Step::Preflight) => &[Step::Workflow],
        // One that can't be worked on is the end of an iteration.
        Some(Step::Workflow) => &[Step::Tasks, Step::Workflow],
        Some(Step::Tasks) => &[Step::Validate, Step::Coverage, Step::Completion],
        // Whether the tests pass or not, somebody says what is left.
        Some(Step::Validate) => &[Step::Coverage, Step::Completion],
        Some(Step::Coverage) => &[Step::Completion],
        Some(Step::Completion) => &[Step::Decide, Step::Workflow, Step::Tasks],
        Some(Step::Decide) => {
            &[Step::Prove, Step::ApproveResult, Step::Push, Step::PullRequest, Step::Workflow]
        }
        Some(Step::Prove) => &[Step::ApproveResult, Step::Push, Step::PullRequest, Step::Workflow],
        Some(Step::ApproveResult) => &[Step::Push, Step::PullRequest],
        Some(Step::Push) => &[Step::PullRequest],
        Some(_) => &[],
    }
}

/// Where a step of a workflow goes: worked on once and merged, with repairs of conflicts alone.
pub fn session(from: Option<Step>) -> &'static [Step] {
    match from {
        None => &[Step::WorkflowStep, Step::Fix, Step::Merge],
        Some(Step::WorkflowStep) => &[Step::Merge],
        Some(Step::Fix) => &[Step::Merge, Step::Fix],
        Some(Step::Merge) => &[Step::Fix],
        Some(_) => &[],
    }
}

/// An effect of the controller.
pub fn is_serial(step: Step) -> bool {
    matches!(step, Step::Merge | Step::Push | Step::Schedule | Step::PullRequest)
}

/// A gate at which a person is asked.
pub fn is_gate(step: Step) -> bool {
    step.row().gate.is_some()
}

/// A worker does it.
pub fn is_slot(step: Step) -> bool {
    !is_serial(step) && !is_gate(step) && !matches!(step, Step::Tasks | Step::Decide)
}

/// Nothing of a task is begun before these.
pub fn is_first(step: Step) -> bool {
    matches!(step, Step::Preflight | Step::Build | Step::WorkflowStep)
}

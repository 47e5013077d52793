//! Steps as a person would tell them: who does what, now.

use autopilot_core::step::Step;

/// What is being done in a step, with the one who does it first.
pub fn doing(step: Step) -> &'static str {
    match step {
        Step::Preflight => "controller proves the base is green",
        Step::Plan => "planner divides the work",
        Step::ApprovePlan => "waits for your word on the plan",
        Step::Schedule => "controller lays out the tasks",
        Step::Workflow => "planner makes a workflow",
        Step::Tasks => "works on its tasks",
        Step::WorkflowStep => "builder works on the step",
        Step::Build => "builder writes",
        Step::Fix => "builder repairs",
        Step::Validate => "controller runs the tests",
        Step::Review => "reviewer reads the diff",
        Step::Completion => "reviewer looks whether the goal is reached",
        Step::UatGenerate => "reviewer writes acceptance cases",
        Step::Uat => "controller runs acceptance",
        Step::Decide => "controller weighs the evidence",
        Step::Merge => "controller commits and merges",
        Step::ApproveResult => "waits for your word on the result",
        Step::Push => "controller pushes",
        Step::PullRequest => "controller opens the pull request",
    }
}

/// Steps that only a person ends.
pub fn is_persons(step: Step) -> bool {
    matches!(step, Step::ApprovePlan | Step::ApproveResult)
}

/// The first of some names, and how many more there are: `a, b, c and 4 more`.
pub fn some<T: AsRef<str>>(names: &[T], names_max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(names_max).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(names_max) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `1 task`, `2 tasks`.
pub fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_told_with_who_does_it() {
        for step in Step::ALL {
            let told = doing(step);
            let who = ["controller", "planner", "builder", "reviewer", "waits for your", "works"];
            assert!(who.iter().any(|who| told.starts_with(who)), "{step}: {told}");
            assert_eq!(is_persons(step), told.starts_with("waits for your"), "{step}");
        }
    }

    #[test]
    fn long_lists_of_names_are_cut_and_counted() {
        assert_eq!(some(&["a", "b"], 3), "a, b");
        assert_eq!(some(&["a", "b", "c", "d"], 3), "a, b, c and 1 more");
        assert_eq!(some::<&str>(&[], 3), "");
    }
}

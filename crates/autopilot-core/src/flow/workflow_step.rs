//! The meaning of an agent's turn for the workflow step it works on.

use crate::event::{Facts, HoldWhy, Outcome};
use crate::state::{Shown, Task};
use crate::step::Step;

/// The outcome of a step whose agent ended. A try that broke fails the step, and the reviewer weighs
/// that. `named` is the model that the workflow named for the step, and the agent that does not know
/// it: only the planner can name another.
pub fn ended(judged: Outcome, named: Option<(&str, &str)>) -> Outcome {
    match judged {
        Outcome::Broke { why } => Outcome::Failed { why },
        Outcome::Away { why: HoldWhy::Model, text, until } => match named {
            Some((model, agent)) => Outcome::Failed {
                why: format!(
                    "{agent} does not know the model `{model}` of this step: {text}; name \
                     another or omit it"
                ),
            },
            None => Outcome::Away { why: HoldWhy::Model, text, until },
        },
        judged @ (Outcome::Passed
        | Outcome::Failed { .. }
        | Outcome::Misconfigured { .. }
        | Outcome::Lost
        | Outcome::Quota { .. }
        | Outcome::Away { .. }
        | Outcome::Revoked
        | Outcome::Skipped { .. }) => judged,
    }
}

/// Keeps a merged result if a turn that a person asked for fails. The output of the turn is kept with
/// its attempt.
pub fn unless_it_stands(
    stands: Option<&Shown>,
    outcome: Outcome,
    mut facts: Facts,
) -> (Outcome, Facts) {
    let (Outcome::Failed { why }, Some(stands)) = (&outcome, stands) else {
        return (outcome, facts);
    };
    facts.answer.clone_from(&stands.facts.answer);
    (facts.base, facts.tree, facts.commit) = (None, None, None);
    let why = format!("this turn failed: {why}; its earlier result stands");
    (Outcome::Skipped { why }, facts)
}

/// The merged result of a step that a person continues.
pub fn standing(task: &Task) -> Option<&Shown> {
    task.words.as_ref()?;
    merged_result(task.last(Step::WorkflowStep)?, task.last(Step::Merge)?)
}

fn merged_result<'a>(result: &'a Shown, merged: &Shown) -> Option<&'a Shown> {
    let is_good = |shown: &Shown| match shown.outcome {
        Outcome::Passed | Outcome::Skipped { .. } => true,
        Outcome::Failed { .. }
        | Outcome::Misconfigured { .. }
        | Outcome::Broke { .. }
        | Outcome::Lost
        | Outcome::Quota { .. }
        | Outcome::Away { .. }
        | Outcome::Revoked => false,
    };
    (is_good(result) && is_good(merged) && merged.id > result.id).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AttemptId, Time};

    fn failed(why: &str) -> Outcome {
        Outcome::Failed { why: why.to_owned() }
    }

    #[test]
    fn what_broke_is_the_failure_of_the_step_and_a_quota_is_waited_for() {
        assert_eq!(ended(Outcome::Broke { why: "crash".into() }, None), failed("crash"));
        for outcome in [Outcome::Passed, Outcome::Revoked, Outcome::Lost, failed("no")] {
            assert_eq!(ended(outcome.clone(), None), outcome);
        }
        let away = |why| Outcome::Away { why, text: "no such model".into(), until: None };
        assert_eq!(ended(away(HoldWhy::Quota), Some(("m", "codex"))), away(HoldWhy::Quota));
        assert_eq!(ended(away(HoldWhy::Model), None), away(HoldWhy::Model));
        let why = "codex does not know the model `m` of this step: no such model; name another \
                   or omit it";
        assert_eq!(ended(away(HoldWhy::Model), Some(("m", "codex"))), failed(why));
    }

    fn shown(seq: u64, outcome: Outcome) -> Shown {
        let facts = Facts { answer: Some(format!("answer {seq}")), ..Facts::default() };
        Shown { id: AttemptId { seq, place: 0 }, round: 1, at: Time(0), outcome, facts }
    }

    #[test]
    fn a_result_stands_if_it_was_merged_after_it_was_made() {
        let skipped = || Outcome::Skipped { why: "it stands".into() };
        for (result, merged, stands) in [
            (shown(1, Outcome::Passed), shown(2, Outcome::Passed), true),
            (shown(1, skipped()), shown(2, Outcome::Passed), true),
            (shown(3, Outcome::Passed), shown(2, Outcome::Passed), false),
            (shown(1, failed("no")), shown(2, Outcome::Passed), false),
            (shown(1, Outcome::Passed), shown(2, failed("conflict")), false),
        ] {
            assert_eq!(merged_result(&result, &merged).is_some(), stands, "{result:?} {merged:?}");
        }
    }

    #[test]
    fn a_turn_that_fails_leaves_a_result_that_stands_as_it_was() {
        let facts =
            || Facts { tree: Some("t".into()), answer: Some("new".into()), ..Facts::default() };
        let stands = shown(1, Outcome::Passed);
        let (outcome, kept) = unless_it_stands(Some(&stands), failed("no"), facts());
        let why = "this turn failed: no; its earlier result stands".to_owned();
        assert_eq!(outcome, Outcome::Skipped { why });
        assert_eq!((kept.tree, kept.answer.as_deref()), (None, Some("answer 1")));
        let alone = unless_it_stands(None, failed("no"), facts());
        assert_eq!(alone, (failed("no"), facts()));
        let passed = unless_it_stands(Some(&stands), Outcome::Passed, facts());
        assert_eq!(passed, (Outcome::Passed, facts()));
    }
}

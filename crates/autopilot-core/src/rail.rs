//! Rails: checks over the failed rounds of a task that stop it before the money is gone.

use crate::event::RoundMark;
use crate::limit::Limits;
use serde::{Deserialize, Serialize};

/// The reason for which a task is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "rail", rename_all = "snake_case")]
pub enum Rail {
    /// The same failure occurred round after round.
    #[error("the same failure {rounds} rounds in a row")]
    Sameness { rounds: u32 },
    /// A change that had failed before came back: A, B, A.
    #[error("round {again} brought back the change that failed in round {first}")]
    Oscillation { first: u32, again: u32 },
    /// Several rounds changed nothing.
    #[error("{rounds} rounds in a row changed nothing")]
    NoOp { rounds: u32 },
    /// The task has used all rounds of its life.
    #[error("the task has used all its rounds ({rounds})")]
    Lifetime { rounds: u32 },
}

/// Returns the first rail that the failed rounds so far have hit; the last mark is the newest
/// round.
pub fn tripped(marks: &[RoundMark], rounds_lived: u32, limits: &Limits) -> Option<Rail> {
    if rounds_lived >= limits.rounds_lifetime_max {
        return Some(Rail::Lifetime { rounds: rounds_lived });
    }
    no_op(marks, limits).or_else(|| oscillation(marks)).or_else(|| sameness(marks, limits))
}

fn no_op(marks: &[RoundMark], limits: &Limits) -> Option<Rail> {
    let same_tree = |pair: &&[RoundMark]| pair[0].tree.is_some() && pair[0].tree == pair[1].tree;
    let run = marks.windows(2).rev().take_while(same_tree).count() as u32;
    (run >= limits.no_ops_max).then_some(Rail::NoOp { rounds: run })
}

fn oscillation(marks: &[RoundMark]) -> Option<Rail> {
    let (last, before) = marks.split_last()?;
    let tree = last.tree.as_ref()?;
    if before.last().is_some_and(|mark| mark.tree.as_ref() == Some(tree)) {
        return None;
    }
    let first = before.iter().position(|mark| mark.tree.as_ref() == Some(tree))?;
    Some(Rail::Oscillation { first: first as u32 + 1, again: marks.len() as u32 })
}

fn sameness(marks: &[RoundMark], limits: &Limits) -> Option<Rail> {
    let last = marks.last()?;
    let run = marks.iter().rev().take_while(|mark| mark.failure == last.failure).count() as u32;
    (run >= limits.same_failures_max).then_some(Rail::Sameness { rounds: run })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads marks: `a1` is tree `a` failing in way `1`.
    fn trip(rounds: &str) -> String {
        let marks: Vec<RoundMark> = rounds
            .split_whitespace()
            .map(|word| RoundMark { tree: Some(word[..1].into()), failure: word[1..].into() })
            .collect();
        tripped(&marks, marks.len() as u32, &Limits::default())
            .map_or("–".into(), |rail| rail.to_string())
    }

    #[test]
    fn rails_by_example() {
        assert_eq!(trip(""), "–");
        assert_eq!(trip("a1"), "–");
        assert_eq!(trip("a1 b1"), "–");
        assert_eq!(trip("a1 b1 c1"), "the same failure 3 rounds in a row");
        assert_eq!(trip("a1 b2 c1"), "–");
        assert_eq!(trip("a1 a1"), "–", "one round without a change is forgiven");
        assert_eq!(trip("a1 a2 a3"), "2 rounds in a row changed nothing");
        assert_eq!(trip("a1 b2 a3"), "round 3 brought back the change that failed in round 1");
        assert_eq!(trip("z9 a1 b2 a3"), "round 4 brought back the change that failed in round 2");
        assert_eq!(trip("a1 b2 b3"), "–");
    }

    #[test]
    fn the_lifetime_cap_comes_first() {
        let limits = Limits { rounds_lifetime_max: 4, ..Limits::default() };
        let marks = vec![RoundMark::default()];
        assert_eq!(tripped(&marks, 4, &limits), Some(Rail::Lifetime { rounds: 4 }));
        assert_eq!(tripped(&marks, 3, &limits), None);
    }
}

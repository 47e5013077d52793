//! Which cases are played.

use crate::case::Case;

/// The slices that a plain run of the tests takes one of.
const PARTS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    All,
    /// Part `number` of `parts`, counted from one.
    Slice {
        number: usize,
        parts: usize,
    },
    /// Those with this in their names.
    Named(String),
}

impl Choice {
    pub fn of_environment() -> Choice {
        let text = std::env::var("AUTOPILOT_HONESTY_CASES").unwrap_or_default();
        Choice::parse(&text)
    }

    pub fn parse(text: &str) -> Choice {
        let slice = text.split_once('/').and_then(|(number, parts)| {
            let (number, parts) = (number.parse().ok()?, parts.parse().ok()?);
            (1..=parts).contains(&number).then_some(Choice::Slice { number, parts })
        });
        match text {
            "" => Choice::Slice { number: 1, parts: PARTS },
            "all" => Choice::All,
            text => slice.unwrap_or_else(|| Choice::Named(text.to_owned())),
        }
    }

    /// The chosen cases. A slice takes every so manieth, so that it has some of each class.
    pub fn of(&self, all: &[Case]) -> Vec<Case> {
        let is_chosen = |(at, case): &(usize, &Case)| match self {
            Choice::All => true,
            Choice::Slice { number, parts } => at % parts == number - 1,
            Choice::Named(part) => case.name.contains(part.as_str()),
        };
        all.iter().enumerate().filter(is_chosen).map(|(_, case)| case.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_all_of_it_together() {
        let all = crate::case::read_all().unwrap();
        let parts = (1..=8).map(|number| Choice::Slice { number, parts: 8 }.of(&all).len());
        assert_eq!(parts.sum::<usize>(), all.len());
        assert_eq!(Choice::parse("3/8"), Choice::Slice { number: 3, parts: 8 });
        assert_eq!(Choice::parse("all").of(&all).len(), all.len());
        assert_eq!(Choice::parse("tests/9"), Choice::Named("tests/9".to_owned()));
    }
}

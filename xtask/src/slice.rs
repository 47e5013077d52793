//! One of several equal parts of a campaign. CI runs the part that the commit chooses; the whole has
//! a command of its own.

use std::fmt;
use std::ops::Range;
use std::process::Command;
use std::str::FromStr;

use crate::step::{self, Failure};
use crate::workspace::root;

/// The parts that CI divides the mutants and the seeds into.
const PARTS: usize = 8;
/// Hexadecimal digits of a commit's name that choose its slice.
const DIGITS: usize = 8;

/// Part `number` of `parts`, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    number: usize,
    parts: usize,
}

impl Slice {
    /// The slice that the checked-out commit chooses: the same on every machine, and every slice
    /// equally often over many commits.
    pub fn of_head() -> Result<Self, Failure> {
        let mut git = Command::new("git");
        git.args(["rev-parse", "HEAD"]).current_dir(root());
        let commit = step::output_of(&mut git)?;
        let slice = Self::of_commit(commit.trim())?;
        println!("xtask: commit {} chooses slice {slice}", commit.trim());
        Ok(slice)
    }

    fn of_commit(commit: &str) -> Result<Self, Failure> {
        let digits = commit.get(..DIGITS).and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let digits =
            digits.ok_or_else(|| Failure::Task(format!("`{commit}` is no name of a commit")))?;
        Ok(Self { number: digits % PARTS + 1, parts: PARTS })
    }

    /// The positions of this slice among `count`. The slices of one division differ by one in
    /// length at most, and none is empty.
    pub fn range(self, count: usize) -> Result<Range<usize>, Failure> {
        if self.parts > count {
            return Err(Failure::Usage(format!(
                "slice {self}: {count} cannot be divided into {} parts",
                self.parts
            )));
        }
        Ok((self.number - 1) * count / self.parts..self.number * count / self.parts)
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.parts)
    }
}

impl FromStr for Slice {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let parsed = text.split_once('/').and_then(|(number, parts)| {
            Some(Self { number: number.parse().ok()?, parts: parts.parse().ok()? })
        });
        parsed
            .filter(|slice| (1..=slice.parts).contains(&slice.number))
            .ok_or_else(|| Failure::Usage(format!("`{text}` is no slice; write e.g. `3/8`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(parts: usize) -> impl Iterator<Item = Slice> {
        (1..=parts).map(move |number| Slice { number, parts })
    }

    #[test]
    fn every_position_is_in_exactly_one_slice_and_no_slice_is_empty() {
        for count in PARTS..200 {
            let ranges: Vec<_> = slices(PARTS).map(|slice| slice.range(count).unwrap()).collect();
            assert!(ranges.iter().all(|range| !range.is_empty()), "{count}: {ranges:?}");
            let positions: Vec<usize> = ranges.into_iter().flatten().collect();
            assert_eq!(positions, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn more_slices_than_there_is_to_divide_are_refused() {
        let slice: Slice = "1/9".parse().unwrap();
        assert!(slice.range(9).is_ok());
        assert!(slice.range(8).unwrap_err().to_string().contains("cannot be divided into 9"));
    }

    #[test]
    fn a_slice_is_read_as_it_is_written() {
        assert_eq!("3/8".parse::<Slice>().unwrap().to_string(), "3/8");
        for wrong in ["", "3", "0/8", "9/8", "3/0", "a/8", "3/8/2", "-1/8"] {
            assert!(wrong.parse::<Slice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn commits_choose_every_slice_and_the_same_commit_always_the_same() {
        let commit = |number: u32| format!("{number:08x}{}", "0".repeat(32));
        let chosen: Vec<_> =
            (0..PARTS as u32).map(|number| Slice::of_commit(&commit(number)).unwrap()).collect();
        assert_eq!(chosen, slices(PARTS).collect::<Vec<_>>());
        assert_eq!(Slice::of_commit(&commit(PARTS as u32 * 7 + 2)).unwrap(), chosen[2]);
        assert!(Slice::of_commit("").is_err());
        assert!(Slice::of_commit("no-commit").is_err());
    }
}

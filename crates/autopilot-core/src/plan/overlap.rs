//! Which tasks could get into each other's way: their allowed paths overlap.
//!
//! Patterns are taken for the directory their fixed part names, so the answer is never a wrong no.

use super::fault::{Notes, shown};
use crate::dag::Graph;

/// May both change the same file? A task that declares nothing overlaps with nothing.
pub fn overlap(a: &[String], b: &[String]) -> bool {
    a.iter().any(|a| b.iter().any(|b| stems_overlap(a, b)))
}

/// One is the other's directory, or they are the same.
pub(super) fn stems_overlap(a: &str, b: &str) -> bool {
    stem(a).zip(stem(b)).all(|(a, b)| same(a, b))
}

/// The parts before the first that is a pattern: where it lies for certain. A pattern without a
/// directory is that name anywhere, so nothing is certain of it.
pub(super) fn stem(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.trim().split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.take_while(|part| !part.contains(['*', '?', '[', '{']))
}

/// Without regard to case, because some file systems have none.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// Pairs of paths looked at; every task of a large plan may name the same directory.
const PAIRS_MAX: usize = 200_000;
/// Tasks walked over to see whether one of a pair comes after the other.
const WALKED_MAX: usize = 2_000_000;

/// Notes the pairs that overlap and are not put in order by the plan.
pub(super) fn warn(graph: &Graph<'_>, paths: &[Vec<String>], serialised: bool, notes: &mut Notes) {
    let mut search = Search { graph, levels: graph.levels(), seen: vec![0; graph.len()], walk: 0 };
    let then = if serialised {
        "they are worked on one after the other"
    } else {
        "expect conflicts, or let one depend on the other"
    };
    let mut told = std::collections::BTreeSet::new();
    let (mut pairs, mut walked) = (PAIRS_MAX, WALKED_MAX);
    for (a, b, path) in overlapping(paths) {
        if pairs == 0 || walked == 0 {
            notes.add("the plan is too large to look for all tasks with overlapping paths");
            return;
        }
        pairs -= 1;
        if !told.contains(&(a, b)) && !search.is_ordered(a, b, &mut walked) {
            told.insert((a, b));
            notes.add(format!(
                "tasks {} and {} could run at the same time and both may change {}; {then}",
                shown(graph.id(a)),
                shown(graph.id(b)),
                shown(path)
            ));
        }
    }
}

/// Tasks whose paths overlap, each pair in its order with the narrower path.
fn overlapping(paths: &[Vec<String>]) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut stems: Vec<(Vec<String>, usize, &str)> = paths
        .iter()
        .enumerate()
        .flat_map(|(at, paths)| paths.iter().map(move |path| (at, path.as_str())))
        .map(|(at, path)| (stem(path).map(str::to_lowercase).collect(), at, path))
        .collect();
    // A directory comes before all that is in it, and nothing else comes between.
    stems.sort();
    (0..stems.len()).flat_map(move |first| {
        let of = stems[first].clone();
        let inside: Vec<(usize, usize, &str)> = stems[first + 1..]
            .iter()
            .take_while(|(stem, ..)| stem.starts_with(&of.0))
            .take(PAIRS_MAX)
            .filter(|(_, at, _)| *at != of.1)
            .map(|(_, at, path)| (of.1.min(*at), of.1.max(*at), *path))
            .collect();
        inside
    })
}

struct Search<'a> {
    graph: &'a Graph<'a>,
    levels: Vec<usize>,
    /// The last walk that came by.
    seen: Vec<usize>,
    walk: usize,
}

impl Search<'_> {
    /// Does one of them wait for the other, directly or not?
    fn is_ordered(&mut self, a: usize, b: usize, left: &mut usize) -> bool {
        let (early, late) = if self.levels[a] < self.levels[b] { (a, b) } else { (b, a) };
        if self.levels[early] == self.levels[late] {
            return false;
        }
        self.walk += 1;
        let mut ahead = vec![late];
        while let Some(here) = ahead.pop() {
            for on in self.graph.after(here) {
                if *on == early {
                    return true;
                }
                *left = left.saturating_sub(1);
                if self.levels[*on] > self.levels[early] && self.seen[*on] != self.walk {
                    self.seen[*on] = self.walk;
                    ahead.push(*on);
                }
            }
            if *left == 0 {
                // Not known; a warning that may be needless is not given.
                return true;
            }
        }
        false
    }
}

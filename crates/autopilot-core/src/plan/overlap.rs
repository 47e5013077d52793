//! Finds tasks that could get into each other's way because their allowed paths overlap.
//!
//! A pattern counts as the directory that its fixed part names, so the answer is never a wrong no.

use super::fault::{Notes, listed, shown};
use crate::dag::TaskGraph;
use std::collections::{BTreeMap, BTreeSet};

/// Whether both lists allow the same file. A task that declares no paths overlaps with nothing.
pub fn overlap(a: &[String], b: &[String]) -> bool {
    a.iter().any(|a| b.iter().any(|b| stems_overlap(a, b)))
}

/// Whether one path is the other's directory, or both are the same.
pub(super) fn stems_overlap(a: &str, b: &str) -> bool {
    stem(a).zip(stem(b)).all(|(a, b)| same(a, b))
}

/// The parts of a path before the first pattern: the directory in which it lies for certain. A
/// pattern without a directory is a name anywhere, so nothing is certain of it.
pub(super) fn stem(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.trim().split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.take_while(|part| !part.contains(['*', '?', '[', '{']))
}

/// Whether two names are equal without regard to case, because some file systems have none.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// The number of pairs of paths that are compared; every task of a large plan may name the same
/// directory.
const PAIRS_MAX: usize = 200_000;
/// The number of tasks that are visited to see whether one of a pair comes after the other.
const WALKED_MAX: usize = 2_000_000;

/// Notes the tasks that overlap and that the plan does not put in order.
pub(super) fn warn(
    graph: &TaskGraph<'_>,
    paths: &[Vec<String>],
    serialised: bool,
    notes: &mut Notes,
) {
    let mut search = Search { graph, levels: graph.levels(), seen: vec![0; graph.len()], walk: 0 };
    let then = if serialised {
        "they run one after the other"
    } else {
        "expect conflicts, or let one depend on the other"
    };
    let mut told = BTreeSet::new();
    // One note for each path: pairs of many tasks would be too many notes.
    let mut clashes: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let (mut pairs, mut walked) = (PAIRS_MAX, WALKED_MAX);
    for (a, b, path) in overlapping(paths) {
        if pairs == 0 || walked == 0 {
            notes.add("the plan is too large to look for all tasks with overlapping paths");
            break;
        }
        pairs -= 1;
        if !told.contains(&(a, b)) && !search.is_ordered(a, b, &mut walked) {
            told.insert((a, b));
            clashes.entry(path).or_default().extend([a, b]);
        }
    }
    for (path, tasks) in clashes {
        let ids: Vec<&str> = tasks.into_iter().map(|task| graph.id(task)).collect();
        let who = match ids.as_slice() {
            [a, b] => format!("{} and {} could run at the same time and both", shown(a), shown(b)),
            many => format!("{} could run at the same time and all", listed(many.iter().copied())),
        };
        notes.add(format!("tasks {who} may change {}; {then}", shown(path)));
    }
}

/// The pairs of tasks whose paths overlap, each with the narrower path.
fn overlapping(paths: &[Vec<String>]) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut stems: Vec<(Vec<String>, usize, &str)> = paths
        .iter()
        .enumerate()
        .flat_map(|(at, paths)| paths.iter().map(move |path| (at, path.as_str())))
        .map(|(at, path)| (stem(path).map(str::to_lowercase).collect(), at, path))
        .collect();
    // A directory comes right before everything inside it.
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
    graph: &'a TaskGraph<'a>,
    levels: Vec<usize>,
    /// The number of the last walk that visited each task.
    seen: Vec<usize>,
    walk: usize,
}

impl Search<'_> {
    /// Whether one of the tasks waits for the other, directly or not.
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
                // The answer is not known; a warning that may be needless is not given.
                return true;
            }
        }
        false
    }
}

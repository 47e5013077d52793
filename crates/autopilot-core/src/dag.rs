//! Graphs of tasks: what must come before what, in which order that can be done, and what keeps
//! the rest waiting longest.
//!
//! Nothing here recurses, and the work grows with tasks and dependencies alone: plans have a
//! hundred thousand of them.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;

/// A graph that can be worked: no circle, nothing unknown. A *place* is where a task was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph<'a> {
    ids: Vec<&'a str>,
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    order: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphFault {
    #[error("two tasks have the id `{0}`")]
    Twice(String),
    #[error("task `{task}` depends on `{on}`, which is not a task of the plan")]
    Unknown { task: String, on: String },
    /// Each task of the path must be done before the next; the first is also the last.
    #[error("the tasks wait for each other in a circle: {}", Path(.0))]
    Cycle(Vec<String>),
}

impl<'a> Graph<'a> {
    /// Builds it from each task's id and what that task depends on; tells every fault at once.
    pub fn build<T, D>(tasks: T) -> Result<Graph<'a>, Vec<GraphFault>>
    where
        T: IntoIterator<Item = (&'a str, D)>,
        D: IntoIterator<Item = &'a str>,
    {
        let mut faults = Vec::new();
        let mut ids: Vec<&'a str> = Vec::new();
        let mut places: BTreeMap<&'a str, usize> = BTreeMap::new();
        // Tasks of the same name are taken for one: a circle through them shows.
        let mut wishes: Vec<BTreeSet<&'a str>> = Vec::new();
        for (id, depends_on) in tasks {
            let place = *places.entry(id).or_insert(ids.len());
            if place == ids.len() {
                ids.push(id);
                wishes.push(BTreeSet::new());
            } else {
                faults.push(GraphFault::Twice(id.to_owned()));
            }
            wishes[place].extend(depends_on);
        }
        let mut after = vec![Vec::new(); ids.len()];
        let mut before = vec![Vec::new(); ids.len()];
        for (place, wished) in wishes.iter().enumerate() {
            for on in wished {
                match places.get(on) {
                    Some(dep) if *dep == place => {
                        faults.push(GraphFault::Cycle(vec![(*on).to_owned(), (*on).to_owned()]));
                    }
                    Some(dep) => {
                        after[place].push(*dep);
                        before[*dep].push(place);
                    }
                    None => faults.push(GraphFault::Unknown {
                        task: ids[place].to_owned(),
                        on: (*on).to_owned(),
                    }),
                }
            }
        }
        let order = sorted(&after, &before);
        for circle in circles(&after, &order) {
            let names = circle.into_iter().map(|place| ids[place].to_owned());
            faults.push(GraphFault::Cycle(names.collect()));
        }
        if faults.is_empty() { Ok(Graph { ids, after, before, order }) } else { Err(faults) }
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn id(&self, place: usize) -> &'a str {
        self.ids[place]
    }

    /// Every task after all it depends on; among those that could be next, the first given.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    pub fn after(&self, place: usize) -> &[usize] {
        &self.after[place]
    }

    pub fn dependants(&self, place: usize) -> &[usize] {
        &self.before[place]
    }

    /// How many tasks at least come one after the other before each task, by place.
    pub fn levels(&self) -> Vec<usize> {
        let mut level = vec![0; self.ids.len()];
        for place in &self.order {
            let below = self.after[*place].iter().map(|dep| level[*dep] + 1).max();
            level[*place] = below.unwrap_or(0);
        }
        level
    }

    /// What can be done at the same time, one set of places after the other.
    pub fn batches(&self) -> Vec<Vec<usize>> {
        let level = self.levels();
        let mut batches = vec![Vec::new(); level.iter().max().map_or(0, |last| last + 1)];
        for (place, level) in level.into_iter().enumerate() {
            batches[level].push(place);
        }
        batches
    }

    /// What can begin at once.
    pub fn ready(&self) -> Vec<usize> {
        (0..self.ids.len()).filter(|place| self.after[*place].is_empty()).collect()
    }

    /// How many tasks in a row wait for each task, itself included: the longer, the more urgent.
    pub fn urgency(&self) -> Vec<u32> {
        let mut height = vec![1_u32; self.ids.len()];
        for place in self.order.iter().rev() {
            let above = self.before[*place].iter().map(|next| height[*next].saturating_add(1));
            height[*place] = above.max().unwrap_or(1);
        }
        height
    }

    /// Tasks in the longest chain.
    pub fn depth(&self) -> usize {
        self.levels().into_iter().max().map_or(0, |last| last + 1)
    }

    /// The most tasks that wait directly for the same one.
    pub fn fan_out(&self) -> usize {
        self.before.iter().map(Vec::len).max().unwrap_or(0)
    }
}

fn sorted(after: &[Vec<usize>], before: &[Vec<usize>]) -> Vec<usize> {
    let mut waits: Vec<usize> = after.iter().map(Vec::len).collect();
    let free = (0..after.len()).filter(|place| waits[*place] == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(Reverse(place)) = ready.pop() {
        order.push(place);
        for next in &before[place] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    order
}

/// One circle of each group that could not be ordered, written with its first task at both ends.
fn circles(after: &[Vec<usize>], ordered: &[usize]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    // Which walk saw a task; what could be ordered is on no circle.
    let mut seen = vec![UNSEEN; after.len()];
    for place in ordered {
        seen[*place] = after.len();
    }
    let mut circles = Vec::new();
    for start in 0..after.len() {
        let mut walked = Vec::new();
        let mut here = start;
        // Everything left waits for something left, so walking back must come round.
        while seen[here] == UNSEEN {
            seen[here] = start;
            walked.push(here);
            let left = after[here].iter().find(|place| seen[**place] != after.len());
            let Some(next) = left else {
                walked.clear();
                break;
            };
            here = *next;
        }
        let met_itself = seen[here] == start && !walked.is_empty();
        let first = walked.iter().position(|place| *place == here).filter(|_| met_itself);
        if let Some(first) = first {
            let mut circle = walked.split_off(first);
            circle.push(here);
            circle.reverse();
            circles.push(circle);
        }
    }
    circles
}

/// A path as a message shows it: of a long one both ends.
pub(crate) struct Path<'a>(pub(crate) &'a [String]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 12;
        let Path(names) = self;
        if names.len() <= SHOWN_MAX {
            return f.write_str(&names.join(" → "));
        }
        let (head, tail) = (&names[..SHOWN_MAX / 2], &names[names.len() - SHOWN_MAX / 2..]);
        let left_out = names.len() - SHOWN_MAX;
        write!(f, "{} → … {left_out} more … → {}", head.join(" → "), tail.join(" → "))
    }
}

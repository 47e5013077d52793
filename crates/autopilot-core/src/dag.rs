//! Graphs of tasks: their dependencies, an order that keeps them, and the urgency of each task.
//!
//! Nothing here recurses, and the work grows with tasks and dependencies alone: plans have a
//! hundred thousand of them.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;

/// A graph without circles and unknown tasks. A *place* is a task's index in the order of input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGraph<'a> {
    ids: Vec<&'a str>,
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    order: Vec<usize>,
}

/// A reason why tasks cannot be put in order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphFault {
    #[error("two tasks have the id `{0}`")]
    Twice(String),
    #[error("task `{task}` depends on `{on}`, which is not a task of the plan")]
    Unknown { task: String, on: String },
    /// Tasks that wait for each other. Each task of the path must be done before the next; the
    /// first is also the last.
    #[error("the tasks wait for each other in a circle: {}", Path(.0))]
    Cycle(Vec<String>),
}

impl<'a> TaskGraph<'a> {
    /// Builds the graph from the id and the dependencies of each task; reports every fault at once.
    pub fn build<T, D>(tasks: T) -> Result<TaskGraph<'a>, Vec<GraphFault>>
    where
        T: IntoIterator<Item = (&'a str, D)>,
        D: IntoIterator<Item = &'a str>,
    {
        let mut faults = Vec::new();
        let mut ids: Vec<&'a str> = Vec::new();
        let mut places: BTreeMap<&'a str, usize> = BTreeMap::new();
        // Tasks of the same name are merged, so that a circle through them shows.
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
        if faults.is_empty() { Ok(TaskGraph { ids, after, before, order }) } else { Err(faults) }
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The id of the task at a place.
    pub fn id(&self, place: usize) -> &'a str {
        self.ids[place]
    }

    /// The places of all tasks, each after those it depends on; among tasks that could be next, the
    /// first given.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The places of the tasks that a task depends on.
    pub fn after(&self, place: usize) -> &[usize] {
        &self.after[place]
    }

    /// The places of the tasks that depend on a task.
    pub fn dependants(&self, place: usize) -> &[usize] {
        &self.before[place]
    }

    /// The length of the longest chain of dependencies before each task, by place.
    pub fn levels(&self) -> Vec<usize> {
        let mut level = vec![0; self.ids.len()];
        for place in &self.order {
            let below = self.after[*place].iter().map(|dep| level[*dep] + 1).max();
            level[*place] = below.unwrap_or(0);
        }
        level
    }

    /// The sets of places that can be done at the same time, one set after the other.
    pub fn batches(&self) -> Vec<Vec<usize>> {
        let level = self.levels();
        let mut batches = vec![Vec::new(); level.iter().max().map_or(0, |last| last + 1)];
        for (place, level) in level.into_iter().enumerate() {
            batches[level].push(place);
        }
        batches
    }

    /// The places of the tasks that depend on nothing.
    pub fn ready(&self) -> Vec<usize> {
        (0..self.ids.len()).filter(|place| self.after[*place].is_empty()).collect()
    }

    /// The length of the longest chain of tasks that wait for each task, itself included: the
    /// longer, the more urgent.
    pub fn urgency(&self) -> Vec<u32> {
        let mut height = vec![1_u32; self.ids.len()];
        for place in self.order.iter().rev() {
            let above = self.before[*place].iter().map(|next| height[*next].saturating_add(1));
            height[*place] = above.max().unwrap_or(1);
        }
        height
    }

    /// The number of tasks in the longest chain.
    pub fn depth(&self) -> usize {
        self.levels().into_iter().max().map_or(0, |last| last + 1)
    }

    /// The largest number of tasks that depend directly on the same one.
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

/// Returns one circle of each group that could not be ordered, with its first task at both ends.
fn circles(after: &[Vec<usize>], ordered: &[usize]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    // The walk that visited each task; tasks that could be ordered are on no circle.
    let mut seen = vec![UNSEEN; after.len()];
    for place in ordered {
        seen[*place] = after.len();
    }
    let mut circles = Vec::new();
    for start in 0..after.len() {
        let mut walked = Vec::new();
        let mut here = start;
        // Every task left waits for another one left, so walking back must come round.
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

/// A path of tasks as a message shows it; only both ends of a long one.
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

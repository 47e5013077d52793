//! Compares the planner's own order, batches and ready set with ours.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use super::fault::{Notes, listed, shown};
use crate::dag::TaskGraph;

/// Notes where the planner's differ. That is not a fault of the plan: ours are used.
pub(super) fn compare(plan: &Plan, graph: &TaskGraph<'_>, notes: &mut Notes) {
    let ours = || listed(graph.order().iter().map(|at| graph.id(*at)));
    if let Some(order) = &plan.topo_order {
        let sets = order.iter().map(|id| vec![id.as_str()]).collect::<Vec<_>>();
        if let Some(why) = broken(&sets, graph) {
            notes.add(format!(
                "the planner's topo_order is ignored: {why}; the order used is {}",
                ours()
            ));
        }
    }
    if let Some(batches) = &plan.parallel_batches {
        let sets: Vec<Vec<&str>> =
            batches.iter().map(|batch| batch.iter().map(String::as_str).collect()).collect();
        if let Some(why) = broken(&sets, graph) {
            let first = graph.ready().into_iter().map(|at| graph.id(at));
            notes.add(format!(
                "the planner's parallel_batches are ignored: {why}; {} batches are used, starting with {}",
                graph.batches().len(),
                listed(first)
            ));
        }
    }
    ready(plan, graph, notes);
}

fn ready(plan: &Plan, graph: &TaskGraph<'_>, notes: &mut Notes) {
    let said: BTreeSet<&str> = plan.initial_ready_tasks.iter().map(String::as_str).collect();
    let ours: BTreeSet<&str> = graph.ready().into_iter().map(|at| graph.id(at)).collect();
    if !said.is_empty() && said != ours {
        notes.add(format!(
            "the planner's initial_ready_tasks are ignored: it lists {}; the ready tasks are {}",
            listed(said),
            listed(ours)
        ));
    }
}

/// The reason why sets of tasks, done one after the other, would not work.
fn broken(sets: &[Vec<&str>], graph: &TaskGraph<'_>) -> Option<String> {
    let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
    for (turn, id) in sets.iter().enumerate().flat_map(|(n, set)| set.iter().map(move |id| (n, id)))
    {
        if turns.insert(id, turn).is_some() {
            return Some(format!("it names {} twice", shown(id)));
        }
    }
    for at in 0..graph.len() {
        let id = graph.id(at);
        let Some(turn) = turns.get(id) else {
            return Some(format!("it leaves out {}", shown(id)));
        };
        let late = graph.after(at).iter().find(|on| {
            turns.get(graph.id(**on)).is_some_and(|of_dependency| of_dependency >= turn)
        });
        if let Some(on) = late {
            let on = shown(graph.id(*on));
            return Some(format!("{} does not come after {on}, on which it depends", shown(id)));
        }
    }
    let more = turns.len() - graph.len();
    (more > 0).then(|| format!("it names {more} ids that are not tasks of the plan"))
}

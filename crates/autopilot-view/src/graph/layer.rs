//! The levels of a graph: a task is one level after the last of its dependencies.

use super::{EdgePlace, GraphPicture};
use std::collections::BTreeSet;

/// The level of every node, from 0. A cycle is cut open at its first task.
pub(super) fn levels(graph: &GraphPicture) -> Vec<usize> {
    let net = LayerNet::of(graph);
    let mut level = vec![0; net.after.len()];
    let mut needs = net.needs.clone();
    let mut open: BTreeSet<usize> = (0..needs.len()).collect();
    let mut ready: BTreeSet<usize> = open.iter().copied().filter(|at| needs[*at] == 0).collect();
    while let Some(at) = ready.pop_first().or_else(|| open.first().copied()) {
        if !open.remove(&at) {
            continue;
        }
        // Nodes take up a level; the ends of a group do not.
        let behind = level[at] + usize::from(at < graph.nodes.len());
        for next in &net.after[at] {
            needs[*next] -= 1;
            if open.contains(next) {
                level[*next] = level[*next].max(behind);
                if needs[*next] == 0 {
                    ready.insert(*next);
                }
            }
        }
    }
    level.truncate(graph.nodes.len());
    level
}

/// All nodes, followed by the begin and the end of each group.
struct LayerNet {
    after: Vec<Vec<usize>>,
    needs: Vec<usize>,
}

impl LayerNet {
    fn of(graph: &GraphPicture) -> LayerNet {
        let nodes = graph.nodes.len();
        let size = nodes + 2 * graph.groups.len();
        let begins = |group: usize| nodes + 2 * group;
        let ends = |group: usize| nodes + 2 * group + 1;
        let mut net = LayerNet { after: vec![Vec::new(); size], needs: vec![0; size] };
        for (index, node) in graph.nodes.iter().enumerate() {
            if let Some(group) = node.group {
                net.link(begins(group), index);
                net.link(index, ends(group));
            }
        }
        for (index, group) in graph.groups.iter().enumerate() {
            net.link(begins(index), ends(index));
            if let Some(outer) = group.group {
                net.link(begins(outer), begins(index));
                net.link(ends(index), ends(outer));
            }
        }
        for edge in &graph.edges {
            let from = match edge.from {
                EdgePlace::Node(index) => index,
                EdgePlace::Group(index) => ends(index),
            };
            let to = match edge.to {
                EdgePlace::Node(index) => index,
                EdgePlace::Group(index) => begins(index),
            };
            net.link(from, to);
        }
        net
    }

    fn link(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.needs[to] += 1;
    }
}

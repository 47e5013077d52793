//! The graph as data.

use super::{EdgePlace, GraphNode, GraphPicture, layer};
use serde_json::{Value, json};

/// The graph as JSON.
pub fn json(graph: &GraphPicture) -> Value {
    let (levels, before) = (layer::levels(graph), graph.dependencies());
    let outer = |node: &GraphNode| node.group.map(|index| &graph.groups[index].id);
    let depends_on = |place: EdgePlace| -> Vec<&str> {
        before.get(&place).into_iter().flatten().map(|on| graph.id_of(*on)).collect()
    };
    let node = |(index, node): (usize, &GraphNode)| {
        json!({
            "id": node.id,
            "title": node.title,
            "status": node.mark.word(),
            "remark": node.remark,
            "level": levels[index] + 1,
            "group": outer(node),
            "depends_on": depends_on(EdgePlace::Node(index)),
        })
    };
    let group = |(index, group): (usize, &GraphNode)| {
        json!({
            "id": group.id,
            "title": group.title,
            "status": group.mark.word(),
            "group": outer(group),
            "depends_on": depends_on(EdgePlace::Group(index)),
        })
    };
    let edges = graph.edges.iter();
    let edges =
        edges.map(|edge| json!({ "from": graph.id_of(edge.from), "to": graph.id_of(edge.to) }));
    json!({
        "title": graph.title,
        "nodes": graph.nodes.iter().enumerate().map(node).collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "groups": graph.groups.iter().enumerate().map(group).collect::<Vec<_>>(),
    })
}

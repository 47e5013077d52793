//! The graph as data.

use super::{EdgePlace, GraphPicture, layer};
use serde_json::{Value, json};

/// The graph as JSON.
pub fn json(graph: &GraphPicture) -> Value {
    let levels = layer::levels(graph);
    let (before_node, before_group) = graph.before();
    let ids = |places: &[EdgePlace]| -> Vec<Value> {
        places.iter().map(|place| json!(graph.id_of(*place))).collect()
    };
    let group_id = |group: Option<usize>| group.map(|index| graph.groups[index].id.as_str());
    let nodes: Vec<Value> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            json!({
                "id": node.id,
                "title": node.title,
                "status": node.mark.word(),
                "remark": node.remark,
                "level": levels[index] + 1,
                "group": group_id(node.group),
                "depends_on": ids(&before_node[index]),
            })
        })
        .collect();
    let groups: Vec<Value> = graph
        .groups
        .iter()
        .enumerate()
        .map(|(index, group)| {
            json!({
                "id": group.id,
                "title": group.title,
                "status": group.mark.word(),
                "group": group_id(group.group),
                "depends_on": ids(&before_group[index]),
            })
        })
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter()
        .map(|edge| json!({ "from": graph.id_of(edge.from), "to": graph.id_of(edge.to) }))
        .collect();
    json!({ "title": graph.title, "nodes": nodes, "edges": edges, "groups": groups })
}

//! The graph in Graphviz's language.

use super::{EdgePlace, GraphGroup, GraphNode, GraphPicture, plain};
use std::fmt::Write;

/// The graph as a Graphviz file.
pub fn dot(graph: &GraphPicture) -> String {
    let mut text = String::from("digraph tasks {\n");
    let _ = writeln!(text, "  label={};", quoted(&graph.title));
    text.push_str("  labelloc=t;\n  rankdir=LR;\n  compound=true;\n");
    text.push_str("  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n");
    text.push_str("  edge [color=\"#64748b\"];\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.group.is_none() {
            node_line(&mut text, index, node, 1);
        }
    }
    for (index, group) in graph.groups.iter().enumerate() {
        if group.group.is_none() {
            cluster(&mut text, graph, index, 1);
        }
    }
    for edge in &graph.edges {
        // An edge can't end at a cluster: it ends at one of its nodes and is cut at the border.
        let from = node_of(graph, edge.from, ArrowEnd::Tail);
        let to = node_of(graph, edge.to, ArrowEnd::Head);
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        let mut cuts = Vec::new();
        if let EdgePlace::Group(index) = edge.from {
            cuts.push(format!("ltail=cluster_{index}"));
        }
        if let EdgePlace::Group(index) = edge.to {
            cuts.push(format!("lhead=cluster_{index}"));
        }
        let cuts = if cuts.is_empty() { String::new() } else { format!(" [{}]", cuts.join(", ")) };
        let _ = writeln!(text, "  n{from} -> n{to}{cuts};");
    }
    text.push_str("}\n");
    text
}

fn cluster(text: &mut String, graph: &GraphPicture, index: usize, depth: usize) {
    let pad = "  ".repeat(depth);
    let group = &graph.groups[index];
    let _ = writeln!(text, "{pad}subgraph cluster_{index} {{");
    let _ = writeln!(text, "{pad}  label={};", group_label(group));
    let _ =
        writeln!(text, "{pad}  style=\"rounded,dashed\"; color=\"{}\";", group.mark.colours().1);
    for (at, node) in graph.nodes.iter().enumerate() {
        if node.group == Some(index) {
            node_line(text, at, node, depth + 1);
        }
    }
    for (at, inner) in graph.groups.iter().enumerate().skip(index + 1) {
        if inner.group == Some(index) {
            cluster(text, graph, at, depth + 1);
        }
    }
    let _ = writeln!(text, "{pad}}}");
}

fn group_label(group: &GraphGroup) -> String {
    quoted(&format!("{} {}: {}", group.mark.sign(), group.id, group.title))
}

fn node_line(text: &mut String, index: usize, node: &GraphNode, depth: usize) {
    let (fill, line, ink) = node.mark.colours();
    let _ = writeln!(
        text,
        "{}n{index} [label=\"{} {}\\n{}\", fillcolor=\"{fill}\", color=\"{line}\", fontcolor=\"{ink}\"];",
        "  ".repeat(depth),
        node.mark.sign(),
        escaped(&node.id),
        escaped(&node.title),
    );
}

/// The node at which an arrow ends: for a group, its first for a head and its last for a tail.
fn node_of(graph: &GraphPicture, place: EdgePlace, end: ArrowEnd) -> Option<usize> {
    let group = match place {
        EdgePlace::Node(index) => return Some(index),
        EdgePlace::Group(group) => group,
    };
    let mut inside = graph.nodes.iter().enumerate().filter(|(_, node)| is_in(graph, node, group));
    match end {
        ArrowEnd::Head => inside.next(),
        ArrowEnd::Tail => inside.next_back(),
    }
    .map(|(index, _)| index)
}

#[derive(Clone, Copy)]
enum ArrowEnd {
    Head,
    Tail,
}

fn is_in(graph: &GraphPicture, node: &GraphNode, group: usize) -> bool {
    let outer = |inner: &usize| graph.groups[*inner].group;
    std::iter::successors(node.group, outer).any(|inner| inner == group)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Escapes a label, in which backslash sequences and HTML entities have a meaning.
fn escaped(text: &str) -> String {
    plain(text).replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

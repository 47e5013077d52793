//! The graph in Graphviz's language.

use super::{EdgePlace, GraphPicture, MarkRow, NestedPart, plain};
use std::fmt::Write;

/// The graph as a Graphviz file.
pub fn dot(graph: &GraphPicture) -> String {
    let mut text = String::from("digraph tasks {\n");
    let _ = writeln!(text, "  label=\"{}\";", escaped(&graph.title));
    text.push_str("  labelloc=t;\n  rankdir=LR;\n  compound=true;\n");
    text.push_str("  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n");
    text.push_str("  edge [color=\"#64748b\"];\n");
    for (depth, part) in graph.nested() {
        text.push_str(&"  ".repeat(depth));
        text.push_str(&nested_line(graph, part, &"  ".repeat(depth + 1)));
    }
    for edge in &graph.edges {
        // An edge can't end at a cluster: it ends at one of its nodes and is cut at the border.
        let (tails, heads) = (nodes_of(graph, edge.from), nodes_of(graph, edge.to));
        let (Some(from), Some(to)) = (tails.last(), heads.first()) else { continue };
        let cut = |at: &str, place: EdgePlace| match place {
            EdgePlace::Group(index) => Some(format!("{at}=cluster_{index}")),
            EdgePlace::Node(_) => None,
        };
        let cuts = [cut("ltail", edge.from), cut("lhead", edge.to)];
        let cuts: Vec<String> = cuts.into_iter().flatten().collect();
        let cuts = if cuts.is_empty() { String::new() } else { format!(" [{}]", cuts.join(", ")) };
        let _ = writeln!(text, "  n{from} -> n{to}{cuts};");
    }
    text.push_str("}\n");
    text
}

fn nested_line(graph: &GraphPicture, part: NestedPart, inner: &str) -> String {
    match part {
        NestedPart::Node(index) => {
            let node = &graph.nodes[index];
            let MarkRow { sign, fill, line, ink, .. } = node.mark.row();
            let (id, title) = (escaped(&node.id), escaped(&node.title));
            format!(
                "n{index} [label=\"{sign} {id}\\n{title}\", fillcolor=\"{fill}\", color=\"{line}\", \
                 fontcolor=\"{ink}\"];\n"
            )
        }
        NestedPart::Open(index) => {
            let group = &graph.groups[index];
            let MarkRow { sign, line, .. } = group.mark.row();
            let label = escaped(&format!("{sign} {}: {}", group.id, group.title));
            format!(
                "subgraph cluster_{index} {{\n{inner}label=\"{label}\";\n\
                 {inner}style=\"rounded,dashed\"; color=\"{line}\";\n"
            )
        }
        NestedPart::Close => "}\n".to_owned(),
    }
}

/// The nodes at which an arrow to or from this place may end.
fn nodes_of(graph: &GraphPicture, place: EdgePlace) -> Vec<usize> {
    match place {
        EdgePlace::Node(index) => vec![index],
        EdgePlace::Group(group) => (0..graph.nodes.len())
            .filter(|index| graph.around(&graph.nodes[*index]).any(|around| around == group))
            .collect(),
    }
}

/// Escapes a label, in which backslash sequences and HTML entities have a meaning.
fn escaped(text: &str) -> String {
    plain(text).replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

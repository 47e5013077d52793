//! The graph as a Mermaid flowchart.

use super::{EdgePlace, GraphNode, GraphPicture, TaskMark, plain};
use std::fmt::Write;

/// The number of edges that renderers accept by default.
const RENDERER_EDGES_MAX: usize = 500;
/// The number of characters that renderers accept by default.
const RENDERER_CHARS_MAX: usize = 50_000;

/// The graph as a Mermaid chart.
pub fn mermaid(graph: &GraphPicture) -> String {
    let mut body = String::from("flowchart LR\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.group.is_none() {
            node_line(&mut body, index, node, 1);
        }
    }
    for index in 0..graph.groups.len() {
        if graph.groups[index].group.is_none() {
            subgraph(&mut body, graph, index, 1);
        }
    }
    for edge in &graph.edges {
        let _ = writeln!(body, "  {} --> {}", name(edge.from), name(edge.to));
    }
    for mark in TaskMark::ALL {
        let (fill, line, text) = mark.colours();
        let word = mark.word();
        let of = |index: &usize| graph.nodes[*index].mark == mark;
        let mine: Vec<String> =
            (0..graph.nodes.len()).filter(of).map(|index| format!("n{index}")).collect();
        if !mine.is_empty() {
            let _ = writeln!(body, "  classDef {word} fill:{fill},stroke:{line},color:{text}");
            let _ = writeln!(body, "  class {} {word}", mine.join(","));
        }
    }
    if graph.edges.len() > RENDERER_EDGES_MAX || body.len() > RENDERER_CHARS_MAX {
        let (edges, chars) = (graph.edges.len(), body.len());
        let said = format!(
            "%% large: set maxEdges above {edges} and maxTextSize above {chars} in the renderer\n"
        );
        body.insert_str(0, &said);
    }
    body
}

fn subgraph(body: &mut String, graph: &GraphPicture, index: usize, depth: usize) {
    let (pad, group) = ("  ".repeat(depth), &graph.groups[index]);
    let _ = writeln!(body, "{pad}subgraph g{index}[\"{}\"]", label(&group.id, &group.title));
    for (at, node) in graph.nodes.iter().enumerate() {
        if node.group == Some(index) {
            node_line(body, at, node, depth + 1);
        }
    }
    for at in index + 1..graph.groups.len() {
        if graph.groups[at].group == Some(index) {
            subgraph(body, graph, at, depth + 1);
        }
    }
    let _ = writeln!(body, "{pad}end");
}

fn node_line(body: &mut String, index: usize, node: &GraphNode, depth: usize) {
    let label = label(&node.id, &node.title);
    let _ = writeln!(body, "{}n{index}[\"{} {label}\"]", "  ".repeat(depth), sign(node.mark));
}

/// The sign of a mark; none of them is markup.
fn sign(mark: TaskMark) -> char {
    match mark {
        TaskMark::Skipped => '–',
        TaskMark::Failed
        | TaskMark::Running
        | TaskMark::Waiting
        | TaskMark::Blocked
        | TaskMark::Pending
        | TaskMark::Done => mark.sign(),
    }
}

fn name(place: EdgePlace) -> String {
    match place {
        EdgePlace::Node(index) => format!("n{index}"),
        EdgePlace::Group(index) => format!("g{index}"),
    }
}

fn label(id: &str, title: &str) -> String {
    if title.is_empty() || title == id {
        return quoted(id);
    }
    format!("{}<br/>{}", quoted(id), quoted(title))
}

/// Everything but letters, digits and harmless signs becomes a character code, because labels are
/// read as HTML, as Markdown and, for `%%{`, as directives before they are read as labels.
fn quoted(text: &str) -> String {
    let mut safe = String::new();
    for c in plain(text).chars() {
        // `1. x` and `- x` would be lists.
        let begins = safe.bytes().all(|byte| byte.is_ascii_digit());
        let harmless = c.is_alphanumeric()
            || c == ' '
            || ",/()'!?=".contains(c)
            || (".-_:".contains(c) && !begins)
            || (!c.is_ascii() && !c.is_control());
        if harmless {
            safe.push(c);
        } else {
            let _ = write!(safe, "#{};", u32::from(c));
        }
    }
    safe
}

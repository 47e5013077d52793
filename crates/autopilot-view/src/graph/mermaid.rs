//! The graph as a Mermaid flowchart.

use super::{EdgePlace, GraphPicture, MarkRow, NestedPart, TaskMark, plain};
use std::fmt::Write;

/// The most edges that renderers accept by default.
const RENDERER_EDGES_MAX: usize = 500;
/// The most characters that renderers accept by default.
const RENDERER_CHARS_MAX: usize = 50_000;

/// The graph as a Mermaid chart.
pub fn mermaid(graph: &GraphPicture) -> String {
    let mut body = String::from("flowchart LR\n");
    for (depth, part) in graph.nested() {
        let pad = "  ".repeat(depth);
        let _ = match part {
            NestedPart::Node(index) => {
                let node = &graph.nodes[index];
                let (sign, label) = (sign(node.mark), label(&node.id, &node.title));
                writeln!(body, "{pad}n{index}[\"{sign} {label}\"]")
            }
            NestedPart::Open(index) => {
                let group = &graph.groups[index];
                writeln!(body, "{pad}subgraph g{index}[\"{}\"]", label(&group.id, &group.title))
            }
            NestedPart::Close => writeln!(body, "{pad}end"),
        };
    }
    for edge in &graph.edges {
        let _ = writeln!(body, "  {} --> {}", name(edge.from), name(edge.to));
    }
    for mark in TaskMark::ALL {
        let MarkRow { word, fill, line, ink, .. } = mark.row();
        let of = |index: &usize| graph.nodes[*index].mark == mark;
        let mine: Vec<String> =
            (0..graph.nodes.len()).filter(of).map(|index| format!("n{index}")).collect();
        if !mine.is_empty() {
            let _ = writeln!(body, "  classDef {word} fill:{fill},stroke:{line},color:{ink}");
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

/// The sign of a mark; none of them is markup.
fn sign(mark: TaskMark) -> char {
    if mark == TaskMark::Skipped { '–' } else { mark.row().sign }
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

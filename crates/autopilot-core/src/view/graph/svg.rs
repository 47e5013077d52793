//! The graph as one self-contained SVG picture, from left to right.

mod layout;

use super::{Graph, Group, Mark, Node, cut, plain};
use layout::{Layout, MARGIN, NODE_HEIGHT, NODE_WIDTH, Point, Rect};
use std::fmt::Write;

/// Letters of the usual fonts that fit into a box.
const ID_COLUMNS_MAX: usize = 27;
const TITLE_COLUMNS_MAX: usize = 34;
const TITLE_LINES_MAX: usize = 2;
/// The heading is at least this wide.
const WIDTH_MIN: i64 = 560;
const HEAD: i64 = 64;

const STYLE: &str = "\
text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',sans-serif;fill:#0f172a}\
.t{font-size:18px;font-weight:600}.s{font-size:13px;fill:#475569}\
.i{font-size:13px;font-weight:600}.n{font-size:12px}\
.g{fill:#f8fafc;stroke-width:1.5;stroke-dasharray:6 4}.l{font-size:12px;font-weight:600;fill:#475569}\
.e{fill:none;stroke:#94a3b8;stroke-width:1.5}";

pub fn svg(graph: &Graph) -> String {
    let layout = Layout::of(graph);
    let width = layout.width.max(WIDTH_MIN);
    let height = layout.height + HEAD;
    let title = escaped(&graph.title);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#94a3b8\"/></marker>\
         </defs>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let columns = usize::try_from(width / 10).unwrap_or(0);
    let shown = escaped(&cut(&plain(&graph.title), columns));
    let _ = writeln!(text, "<text class=\"t\" x=\"{MARGIN}\" y=\"32\">{shown}</text>");
    let tally = escaped(&graph.tally());
    let _ = writeln!(text, "<text class=\"s\" x=\"{MARGIN}\" y=\"54\">{tally}</text>");
    let _ = writeln!(text, "<g transform=\"translate(0 {HEAD})\">");
    for (group, rect) in graph.groups.iter().zip(&layout.groups) {
        draw_group(&mut text, group, rect);
    }
    for points in &layout.paths {
        draw_path(&mut text, points);
    }
    for (node, at) in graph.nodes.iter().zip(&layout.nodes) {
        draw_node(&mut text, node, *at);
    }
    text.push_str("</g>\n</svg>\n");
    text
}

fn draw_group(text: &mut String, group: &Group, rect: &Rect) {
    let Rect { x, y, width, height } = rect;
    let line = group.mark.colours().1;
    let head = format!("{} {}  {}", group.mark.sign(), plain(&group.id), plain(&group.title));
    let columns = usize::try_from(width / 7).unwrap_or(0);
    let (label, id, title) =
        (escaped(&cut(&head, columns)), escaped(&group.id), escaped(&group.title));
    let _ = writeln!(
        text,
        "<g><title>{id} ({}): {title}</title><rect class=\"g\" x=\"{x}\" y=\"{y}\" \
         width=\"{width}\" height=\"{height}\" rx=\"12\" stroke=\"{line}\"/>\
         <text class=\"l\" x=\"{}\" y=\"{}\">{label}</text></g>",
        group.mark.word(),
        x + 12,
        y + 18,
    );
}

/// A curve through all points: flat at each of them.
fn draw_path(text: &mut String, points: &[Point]) {
    let Some(first) = points.first() else { return };
    let _ = write!(text, "<path class=\"e\" d=\"M{} {}", first.x, first.y);
    for pair in points.windows(2) {
        let [from, to] = pair else { continue };
        let bend = ((to.x - from.x) / 2).abs().max(16);
        let _ = write!(
            text,
            "C{} {} {} {} {} {}",
            from.x + bend,
            from.y,
            to.x - bend,
            to.y,
            to.x,
            to.y
        );
    }
    text.push_str("\" marker-end=\"url(#arrow)\"/>\n");
}

fn draw_node(text: &mut String, node: &Node, at: Point) {
    let (fill, line, ink) = node.mark.colours();
    let dashes = match node.mark {
        Mark::Skipped | Mark::Blocked => " stroke-dasharray=\"4 3\"",
        Mark::Failed | Mark::Running | Mark::Waiting | Mark::Pending | Mark::Done => "",
    };
    let remark = node.remark.as_ref().map(|remark| format!(" · {remark}")).unwrap_or_default();
    let head = cut(&plain(&format!("{} {}{remark}", node.mark.sign(), node.id)), ID_COLUMNS_MAX);
    let _ = write!(
        text,
        "<g><title>{} ({}): {}</title><rect x=\"{}\" y=\"{}\" width=\"{NODE_WIDTH}\" \
         height=\"{NODE_HEIGHT}\" rx=\"8\" fill=\"{fill}\" stroke=\"{line}\"{dashes}/>\
         <text class=\"i\" x=\"{}\" y=\"{}\" style=\"fill:{ink}\">{}</text>",
        escaped(&node.id),
        node.mark.word(),
        escaped(&node.title),
        at.x,
        at.y,
        at.x + 12,
        at.y + 20,
        escaped(&head),
    );
    for (index, line) in wrapped(&plain(&node.title)).iter().enumerate() {
        let y = at.y + 38 + 15 * index as i64;
        let _ = write!(
            text,
            "<text class=\"n\" x=\"{}\" y=\"{y}\">{}</text>",
            at.x + 12,
            escaped(line)
        );
    }
    text.push_str("</g>\n");
}

/// Broken between words into the lines a box has room for.
fn wrapped(title: &str) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let mut lines: Vec<String> = Vec::new();
    for word in title.split_whitespace() {
        let full = lines.len() == TITLE_LINES_MAX;
        match lines.last_mut() {
            // The last line takes the rest and is cut.
            Some(line) if full || line.width() + 1 + word.width() <= TITLE_COLUMNS_MAX => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, TITLE_COLUMNS_MAX)).collect()
}

fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in plain(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

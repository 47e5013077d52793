//! The graph as one self-contained SVG picture, from left to right.

mod layout;

use super::{GraphNode, GraphPicture, MarkRow, TaskMark, plain};
use crate::width::fit;
use layout::{Layout, MARGIN, NODE_HEIGHT, NODE_WIDTH, Point, Rect};
use std::fmt::Write;

/// The number of letters that fit into a box.
const ID_COLUMNS_MAX: usize = 27;
const TITLE_COLUMNS_MAX: usize = 34;
const TITLE_LINES_MAX: usize = 2;
/// The least width, so that the heading fits.
const WIDTH_MIN: i64 = 560;
const HEAD: i64 = 64;

const STYLE: &str = "\
text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',sans-serif;fill:#0f172a}\
.t{font-size:18px;font-weight:600}.s{font-size:13px;fill:#475569}\
.i{font-size:13px;font-weight:600}.n{font-size:12px}\
.g{fill:#f8fafc;stroke-width:1.5;stroke-dasharray:6 4}.l{font-size:12px;font-weight:600;fill:#475569}\
.e{fill:none;stroke:#94a3b8;stroke-width:1.5}";

/// The graph as a complete SVG file.
pub fn svg(graph: &GraphPicture) -> String {
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
    let shown = escaped(&fit(&plain(&graph.title), columns));
    let _ = writeln!(text, "<text class=\"t\" x=\"{MARGIN}\" y=\"32\">{shown}</text>");
    let tally = escaped(&graph.tally());
    let _ = writeln!(text, "<text class=\"s\" x=\"{MARGIN}\" y=\"54\">{tally}</text>");
    let _ = writeln!(text, "<g transform=\"translate(0 {HEAD})\">");
    draw(&mut text, graph, &layout, SvgSetting::File);
    text.push_str("</g>\n</svg>\n");
    text
}

/// The graph as part of a page: without a heading, and in the page's colours for the classes of the
/// boxes. `name` must be unique on the page.
pub fn svg_part(graph: &GraphPicture, name: &str) -> String {
    let layout = Layout::of(graph);
    let (width, height) = (layout.width, layout.height);
    let label = escaped(&graph.tally());
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut text = format!(
        "<svg class=\"graph\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n\
         <defs><marker id=\"{name}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path class=\"a\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
    );
    draw(&mut text, graph, &layout, SvgSetting::Page { arrow: &name });
    text.push_str("</svg>\n");
    text
}

/// The surroundings of a picture, which decide where its colours come from.
#[derive(Clone, Copy)]
enum SvgSetting<'a> {
    /// A file of its own, which names every colour.
    File,
    /// A page, whose style sheet has the colours. `arrow` is the id of the arrowhead.
    Page { arrow: &'a str },
}

impl<'a> SvgSetting<'a> {
    fn arrow(self) -> &'a str {
        match self {
            SvgSetting::File => "arrow",
            SvgSetting::Page { arrow } => arrow,
        }
    }

    /// The opening tag of a box.
    fn opening(self, mark: TaskMark) -> String {
        match self {
            SvgSetting::File => "<g>".to_owned(),
            SvgSetting::Page { .. } => format!("<g class=\"m-{}\">", mark.word()),
        }
    }

    fn ink(self, mark: TaskMark) -> String {
        match self {
            SvgSetting::File => format!(" style=\"fill:{}\"", mark.row().ink),
            SvgSetting::Page { .. } => String::new(),
        }
    }

    /// A page says the word too: not everybody sees colours or knows the signs.
    fn head(self, mark: TaskMark, id: &str) -> String {
        let (sign, word) = (mark.row().sign, mark.word());
        match self {
            SvgSetting::File => format!("{sign} {id}"),
            SvgSetting::Page { .. } => format!("{sign} {word} · {id}"),
        }
    }
}

fn draw(text: &mut String, graph: &GraphPicture, layout: &Layout, setting: SvgSetting<'_>) {
    for (group, rect) in graph.groups.iter().zip(&layout.groups) {
        draw_group(text, group, rect, setting);
    }
    for points in &layout.paths {
        draw_path(text, points, setting.arrow());
    }
    for (node, at) in graph.nodes.iter().zip(&layout.nodes) {
        draw_node(text, node, *at, setting);
    }
}

fn draw_group(text: &mut String, group: &GraphNode, rect: &Rect, setting: SvgSetting<'_>) {
    let Rect { x, y, width, height } = rect;
    let line = group.mark.row().line;
    let head = format!("{}  {}", setting.head(group.mark, &plain(&group.id)), plain(&group.title));
    let opening = setting.opening(group.mark);
    let columns = usize::try_from(width / 7).unwrap_or(0);
    let (label, id, title) =
        (escaped(&fit(&head, columns)), escaped(&group.id), escaped(&group.title));
    let _ = writeln!(
        text,
        "{opening}<title>{id} ({}): {title}</title><rect class=\"g\" x=\"{x}\" y=\"{y}\" \
         width=\"{width}\" height=\"{height}\" rx=\"12\" stroke=\"{line}\"/>\
         <text class=\"l\" x=\"{}\" y=\"{}\">{label}</text></g>",
        group.mark.word(),
        x + 12,
        y + 18,
    );
}

/// Draws a curve through all points, horizontal at each of them.
fn draw_path(text: &mut String, points: &[Point], arrow: &str) {
    let Some(first) = points.first() else { return };
    let _ = write!(text, "<path class=\"e\" d=\"M{} {}", first.x, first.y);
    for pair in points.windows(2) {
        let [from, to] = pair else { continue };
        let bend = ((to.x - from.x) / 2).abs().max(16);
        let (out, into) = (from.x + bend, to.x - bend);
        let _ = write!(text, "C{out} {} {into} {} {} {}", from.y, to.y, to.x, to.y);
    }
    let _ = writeln!(text, "\" marker-end=\"url(#{arrow})\"/>");
}

fn draw_node(text: &mut String, node: &GraphNode, at: Point, setting: SvgSetting<'_>) {
    let MarkRow { word, fill, line, .. } = node.mark.row();
    let (opening, ink) = (setting.opening(node.mark), setting.ink(node.mark));
    let is_left_out = matches!(node.mark, TaskMark::Skipped | TaskMark::Blocked);
    let dashes = if is_left_out { " stroke-dasharray=\"4 3\"" } else { "" };
    let remark = node.remark.as_ref().map(|remark| format!(" · {remark}")).unwrap_or_default();
    let head = format!("{}{remark}", setting.head(node.mark, &node.id));
    let head = fit(&plain(&head), ID_COLUMNS_MAX);
    let _ = write!(
        text,
        "{opening}<title>{} ({word}): {}</title><rect x=\"{}\" y=\"{}\" width=\"{NODE_WIDTH}\" \
         height=\"{NODE_HEIGHT}\" rx=\"8\" fill=\"{fill}\" stroke=\"{line}\"{dashes}/>\
         <text class=\"i\" x=\"{}\" y=\"{}\"{ink}>{}</text>",
        escaped(&node.id),
        escaped(&node.title),
        at.x,
        at.y,
        at.x + 12,
        at.y + 20,
        escaped(&head),
    );
    for (index, line) in wrapped(&plain(&node.title)).iter().enumerate() {
        let (x, y, line) = (at.x + 12, at.y + 38 + 15 * index as i64, escaped(line));
        let _ = write!(text, "<text class=\"n\" x=\"{x}\" y=\"{y}\">{line}</text>");
    }
    text.push_str("</g>\n");
}

/// The title broken between words into the lines of a box.
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
    lines.iter().map(|line| fit(line, TITLE_COLUMNS_MAX)).collect()
}

fn escaped(text: &str) -> String {
    let text = plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

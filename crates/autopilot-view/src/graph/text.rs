//! The graph for a terminal: one heading per level, one line per task.

use super::{EdgePlace, GraphNode, GraphPicture, TaskMark, layer, plain, tasks, thousands};
use crate::width::{column, fit};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// The most tasks of one level that are shown by default.
const LEVEL_LINES_MAX: usize = 20;
/// The most levels that are shown by default.
const LEVELS_MAX: usize = 30;
/// The greatest width of the column of ids.
const ID_COLUMNS_MAX: usize = 32;
/// The most names after the word `after`; the others are counted.
const AFTER_MAX: usize = 4;
/// The least width at which a line can be read.
const COLUMNS_MIN: usize = 30;
/// The width that a title keeps before its line drops the dependencies.
const TITLE_COLUMNS_MIN: usize = 16;

/// The use of colours in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    /// Colours for a terminal that shows them.
    Ansi,
}

/// The part of a graph to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphExtent {
    /// The most urgent tasks of each level, and the levels with open tasks.
    Bounded,
    All,
}

/// The graph as lines no wider than `columns`.
pub fn text(graph: &GraphPicture, columns: usize, paint: Paint, extent: GraphExtent) -> String {
    let columns = columns.max(COLUMNS_MIN);
    let drawing = Drawing::of(graph, columns, paint, extent);
    let mut lines = Vec::new();
    if !graph.title.is_empty() {
        lines.push(fit(&plain(&graph.title), columns));
    }
    lines.push(fit(&graph.tally(), columns));
    drawing.levels(&mut lines);
    lines.push(String::new());
    lines.join("\n")
}

struct Drawing<'a> {
    graph: &'a GraphPicture,
    columns: usize,
    paint: Paint,
    extent: GraphExtent,
    /// The nodes by level, in the order of the graph.
    rows: Vec<Vec<usize>>,
    /// The groups by their first level.
    opens: BTreeMap<usize, Vec<usize>>,
    before: BTreeMap<EdgePlace, Vec<EdgePlace>>,
    id_columns: usize,
}

impl<'a> Drawing<'a> {
    fn of(
        graph: &'a GraphPicture,
        columns: usize,
        paint: Paint,
        extent: GraphExtent,
    ) -> Drawing<'a> {
        let levels = layer::levels(graph);
        let mut rows = vec![Vec::new(); levels.iter().max().map_or(0, |last| last + 1)];
        let mut first: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, level) in levels.iter().enumerate() {
            rows[*level].push(index);
            if let Some(group) = graph.nodes[index].group {
                let begins = first.entry(group).or_insert(*level);
                *begins = (*begins).min(*level);
            }
        }
        let mut opens: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (group, level) in first {
            opens.entry(level).or_default().push(group);
        }
        let all = graph.nodes.iter().chain(&graph.groups);
        let widest = all.map(|node| node.id.width()).max().unwrap_or(0);
        let id_columns = widest.min(ID_COLUMNS_MAX).min(columns / 3);
        let before = graph.dependencies();
        Drawing { graph, columns, paint, extent, rows, opens, before, id_columns }
    }

    fn levels(&self, lines: &mut Vec<String>) {
        let shown = self.window();
        if shown.start > 0 {
            lines.push(String::new());
            lines.push(self.left_out(0..shown.start));
        }
        for level in shown.clone() {
            lines.push(String::new());
            if self.rows.len() > 1 {
                let count = tasks(self.rows[level].len());
                let heading = format!("level {} of {} ({count})", level + 1, self.rows.len());
                lines.push(self.painted(&fit(&heading, self.columns), "1"));
            }
            self.level(level, lines);
        }
        if shown.end < self.rows.len() {
            lines.push(String::new());
            lines.push(self.left_out(shown.end..self.rows.len()));
        }
    }

    /// The levels to show, from the first one with open tasks.
    fn window(&self) -> std::ops::Range<usize> {
        let all = self.rows.len();
        if self.extent == GraphExtent::All || all <= LEVELS_MAX {
            return 0..all;
        }
        let is_over = |index: &usize| self.graph.nodes[*index].mark >= TaskMark::Skipped;
        let open = self.rows.iter().position(|row| !row.iter().all(is_over)).unwrap_or(0);
        let start = open.min(all - LEVELS_MAX);
        start..start + LEVELS_MAX
    }

    fn left_out(&self, levels: std::ops::Range<usize>) -> String {
        let count: usize = levels.clone().map(|level| self.rows[level].len()).sum();
        let (first, last) = (levels.start + 1, levels.end);
        let said = if first == last {
            format!("… level {}: {}", thousands(first), tasks(count))
        } else {
            format!("… levels {} to {}: {}", thousands(first), thousands(last), tasks(count))
        };
        fit(&said, self.columns)
    }

    fn level(&self, level: usize, lines: &mut Vec<String>) {
        for group in self.opens.get(&level).into_iter().flatten() {
            lines.push(self.group_line(*group));
        }
        let row = &self.rows[level];
        let shown = self.shown(row);
        lines.extend(shown.iter().map(|index| self.node_line(*index)));
        if shown.len() < row.len() {
            let more = row.len() - shown.len();
            lines.push(fit(&format!("  … and {} more", thousands(more)), self.columns));
        }
    }

    /// The most urgent tasks of a level, in the order of the graph.
    fn shown(&self, row: &[usize]) -> Vec<usize> {
        let mut shown = row.to_vec();
        if self.extent == GraphExtent::Bounded && row.len() > LEVEL_LINES_MAX {
            shown.sort_by_key(|index| (self.graph.nodes[*index].mark, *index));
            shown.truncate(LEVEL_LINES_MAX);
            shown.sort_unstable();
        }
        shown
    }

    fn node_line(&self, index: usize) -> String {
        let node = &self.graph.nodes[index];
        let mut remarks: Vec<String> = node.remark.iter().map(|remark| plain(remark)).collect();
        remarks.extend(self.after(EdgePlace::Node(index)));
        if let Some(group) = node.group {
            remarks.push(format!("in {}", plain(&self.graph.groups[group].id)));
        }
        self.line(node, &remarks)
    }

    fn group_line(&self, index: usize) -> String {
        let group = &self.graph.groups[index];
        let inside = self.graph.nodes.iter().filter(|node| node.group == Some(index)).count();
        let mut remarks = vec![format!("expanded into {}", tasks(inside))];
        remarks.extend(self.after(EdgePlace::Group(index)));
        self.line(group, &remarks)
    }

    fn after(&self, place: EdgePlace) -> Option<String> {
        let before = self.before.get(&place)?;
        let named = before.iter().take(AFTER_MAX).map(|place| plain(self.graph.id_of(*place)));
        let names = named.collect::<Vec<_>>().join(", ");
        Some(match before.len().checked_sub(AFTER_MAX) {
            Some(more @ 1..) => format!("after {names} and {} more", thousands(more)),
            Some(0) | None => format!("after {names}"),
        })
    }

    /// One task: `  ✓ id   title   after a, b`, cut to the width.
    fn line(&self, node: &GraphNode, remarks: &[String]) -> String {
        let (id, title) = (column(&plain(&node.id), self.id_columns), plain(&node.title));
        let room = self.columns.saturating_sub(2 + 2 + self.id_columns + 2);
        let gap = if remarks.is_empty() { 0 } else { 2 };
        let for_remarks = room.saturating_sub(gap + title.width().min(TITLE_COLUMNS_MIN));
        let mut remarks = fit(&remarks.join(" · "), for_remarks);
        let title = fit(&title, room.saturating_sub(gap + remarks.width()));
        if !remarks.is_empty() {
            remarks = format!("  {}", self.painted(&remarks, "2"));
        }
        let row = node.mark.row();
        let sign = self.painted(&row.sign.to_string(), row.ansi);
        format!("  {sign} {id}  {title}{remarks}").trim_end().to_owned()
    }

    fn painted(&self, text: &str, code: &str) -> String {
        match self.paint {
            Paint::Plain => text.to_owned(),
            Paint::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

//! The graph for a terminal: one heading per level, one line per task.

use super::{EdgePlace, GraphPicture, TaskMark, cut, layer, plain, tasks, thousands};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// The number of tasks of one level that are shown by default.
const LEVEL_LINES_MAX: usize = 20;
/// The number of levels that are shown by default.
const LEVELS_MAX: usize = 30;
/// The greatest width of the column of ids.
const ID_COLUMNS_MAX: usize = 32;
/// The number of names after `after`; the rest is counted.
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
        lines.push(cut(&plain(&graph.title), columns));
    }
    lines.push(cut(&graph.tally(), columns));
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
    before: (Vec<Vec<EdgePlace>>, Vec<Vec<EdgePlace>>),
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
        let ids = graph.nodes.iter().map(|node| &node.id);
        let ids = ids.chain(graph.groups.iter().map(|group| &group.id));
        let widest = ids.map(|id| id.width()).max().unwrap_or(0);
        let id_columns = widest.min(ID_COLUMNS_MAX).min(columns / 3);
        Drawing { graph, columns, paint, extent, rows, opens, before: graph.before(), id_columns }
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
                lines.push(self.painted(&cut(&heading, self.columns), "1"));
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
        cut(&said, self.columns)
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
            lines.push(cut(&format!("  … and {} more", thousands(more)), self.columns));
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
        remarks.extend(self.after(&self.before.0[index]));
        if let Some(group) = node.group {
            remarks.push(format!("in {}", plain(&self.graph.groups[group].id)));
        }
        self.line(node.mark, &node.id, &node.title, &remarks.join(" · "))
    }

    fn group_line(&self, index: usize) -> String {
        let group = &self.graph.groups[index];
        let inside = self.graph.nodes.iter().filter(|node| node.group == Some(index)).count();
        let mut remarks = vec![format!("expanded into {}", tasks(inside))];
        remarks.extend(self.after(&self.before.1[index]));
        self.line(group.mark, &group.id, &group.title, &remarks.join(" · "))
    }

    fn after(&self, before: &[EdgePlace]) -> Option<String> {
        if before.is_empty() {
            return None;
        }
        let named = before.iter().take(AFTER_MAX).map(|place| plain(self.graph.id_of(*place)));
        let names = named.collect::<Vec<_>>().join(", ");
        Some(match before.len().checked_sub(AFTER_MAX) {
            Some(more @ 1..) => format!("after {names} and {} more", thousands(more)),
            Some(0) | None => format!("after {names}"),
        })
    }

    /// One task: `  ✓ id   title   after a, b`, cut to the width.
    fn line(&self, mark: TaskMark, id: &str, title: &str, remarks: &str) -> String {
        let id = padded(&cut(&plain(id), self.id_columns), self.id_columns);
        let room = self.columns.saturating_sub(2 + 2 + self.id_columns + 2);
        let title = plain(title);
        let gap = if remarks.is_empty() { 0 } else { 2 };
        let for_remarks = room.saturating_sub(gap + title.width().min(TITLE_COLUMNS_MIN));
        let remarks = cut(remarks, for_remarks);
        let title = cut(&title, room.saturating_sub(gap + remarks.width()));
        let sign = self.painted(&mark.sign().to_string(), colour(mark));
        let remarks = if remarks.is_empty() {
            String::new()
        } else {
            format!("  {}", self.painted(&remarks, "2"))
        };
        format!("  {sign} {id}  {title}{remarks}").trim_end().to_owned()
    }

    fn painted(&self, text: &str, code: &str) -> String {
        match self.paint {
            Paint::Plain => text.to_owned(),
            Paint::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

fn colour(mark: TaskMark) -> &'static str {
    match mark {
        TaskMark::Failed => "31",
        TaskMark::Running => "34",
        TaskMark::Waiting | TaskMark::Blocked => "33",
        TaskMark::Pending | TaskMark::Skipped => "2",
        TaskMark::Done => "32",
    }
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

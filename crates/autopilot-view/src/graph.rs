//! The tasks of a run or a plan as a graph, drawn for terminals, browsers and other programs.
//!
//! Invariant: the same graph gives the same bytes. Titles come from people and agents; every
//! drawing quotes them in its own way, and nothing in them acts.

mod dot;
mod json;
mod layer;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use dot::dot;
pub use json::json;
pub use mermaid::mermaid;
pub use svg::{svg, svg_part};
pub use text::{GraphExtent, Paint, text};

use autopilot_core::event::{Skip, TaskEnd};
use autopilot_core::plan::CheckedPlan;
use autopilot_core::state::{State, Status, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

/// The status of a task in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskMark {
    Failed,
    Running,
    Waiting,
    Blocked,
    Pending,
    Skipped,
    Done,
}

impl TaskMark {
    /// All marks, the most urgent first.
    pub const ALL: [TaskMark; 7] = [
        TaskMark::Failed,
        TaskMark::Running,
        TaskMark::Waiting,
        TaskMark::Blocked,
        TaskMark::Pending,
        TaskMark::Skipped,
        TaskMark::Done,
    ];

    fn row(self) -> MarkRow {
        let row = |word, sign, ansi, fill, line, ink| MarkRow { word, sign, ansi, fill, line, ink };
        match self {
            TaskMark::Failed => row("failed", '✗', "31", "#fee2e2", "#dc2626", "#7f1d1d"),
            TaskMark::Running => row("running", '▶', "34", "#dbeafe", "#2563eb", "#1e3a8a"),
            TaskMark::Waiting => row("waiting", '◷', "33", "#fef9c3", "#ca8a04", "#713f12"),
            TaskMark::Blocked => row("blocked", '!', "33", "#ffedd5", "#ea580c", "#7c2d12"),
            TaskMark::Pending => row("pending", '·', "2", "#f8fafc", "#94a3b8", "#334155"),
            TaskMark::Skipped => row("skipped", '-', "2", "#f1f5f9", "#cbd5e1", "#64748b"),
            TaskMark::Done => row("done", '✓', "32", "#dcfce7", "#16a34a", "#14532d"),
        }
    }

    /// The word for the status.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    fn of(status: &Status) -> TaskMark {
        match status {
            Status::Open => TaskMark::Pending,
            Status::At { .. } | Status::Running { .. } => TaskMark::Running,
            Status::Waiting { .. } => TaskMark::Waiting,
            Status::Settled(TaskEnd::Closed) => TaskMark::Done,
            Status::Settled(TaskEnd::Skipped { why: Skip::Asked | Skip::Dropped }) => {
                TaskMark::Skipped
            }
            Status::Settled(TaskEnd::Skipped {
                why: Skip::Blocked { .. } | Skip::Stopped { .. },
            }) => TaskMark::Blocked,
            Status::Settled(TaskEnd::Failed { .. }) => TaskMark::Failed,
        }
    }
}

/// How a status is drawn.
struct MarkRow {
    word: &'static str,
    /// One column wide in every font.
    sign: char,
    /// The colour code of terminals.
    ansi: &'static str,
    /// The colours of a box, its border and its text.
    fill: &'static str,
    line: &'static str,
    ink: &'static str,
}

/// The tasks of a run or a plan as a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphPicture {
    pub title: String,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    /// The tasks that were divided into others, drawn as frames around them.
    pub groups: Vec<GraphNode>,
}

/// A task in a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    pub id: String,
    pub title: String,
    pub mark: TaskMark,
    /// The step of a running task, or another short remark.
    pub remark: Option<String>,
    /// The enclosing group.
    pub group: Option<usize>,
}

/// A dependency: `to` waits for `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphEdge {
    pub from: EdgePlace,
    pub to: EdgePlace,
}

/// The end of an edge: a node or a group, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgePlace {
    Node(usize),
    Group(usize),
}

/// A part of a drawing in which groups enclose nodes and other groups.
enum NestedPart {
    Node(usize),
    /// The beginning of a group.
    Open(usize),
    /// The end of the group that was opened last.
    Close,
}

impl GraphPicture {
    /// The graph of a run's tasks.
    pub fn of_run(state: &State) -> GraphPicture {
        let below_root = || state.tasks.iter().filter(|task| task.parent.is_some());
        let mut graph = GraphPicture { title: state.run.title.clone(), ..GraphPicture::default() };
        let mut places: BTreeMap<&str, EdgePlace> = BTreeMap::new();
        let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
        for task in below_root() {
            // A task comes after its parent, so the parent's group is known.
            let group = task.parent.and_then(|parent| groups.get(&parent.0).copied());
            if task.children.is_empty() {
                places.insert(task.name(), EdgePlace::Node(graph.nodes.len()));
                graph.nodes.push(node(task, group));
            } else {
                places.insert(task.name(), EdgePlace::Group(graph.groups.len()));
                groups.insert(task.id.0, graph.groups.len());
                graph.groups.push(node(task, group));
            }
        }
        for task in below_root() {
            let Some(to) = places.get(task.name()) else { continue };
            let before = task.spec.depends_on.iter().filter_map(|name| places.get(name.as_str()));
            graph.edges.extend(before.map(|from| GraphEdge { from: *from, to: *to }));
        }
        graph
    }

    /// The graph of a plan that is not running yet.
    pub fn of_plan(title: &str, plan: &CheckedPlan) -> GraphPicture {
        let ids = plan.tasks.iter().enumerate().map(|(at, planned)| (planned.task.id.as_str(), at));
        let places: BTreeMap<&str, usize> = ids.collect();
        let mut graph = GraphPicture { title: title.to_owned(), ..GraphPicture::default() };
        for (at, planned) in plan.tasks.iter().enumerate() {
            let task = &planned.task;
            graph.nodes.push(GraphNode {
                id: task.id.clone(),
                title: task.title.clone(),
                mark: TaskMark::Pending,
                remark: task.expand.then(|| "expanded later".to_owned()),
                group: None,
            });
            let names: BTreeSet<&String> = task.depends_on.iter().collect();
            let before = names.into_iter().filter_map(|name| places.get(name.as_str()));
            let to = EdgePlace::Node(at);
            graph.edges.extend(before.map(|from| GraphEdge { from: EdgePlace::Node(*from), to }));
        }
        graph
    }

    /// The part of the graph with the kept nodes, their groups and the edges between them.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&GraphNode) -> bool) -> GraphPicture {
        let kept: Vec<usize> =
            (0..self.nodes.len()).filter(|index| is_kept(&self.nodes[*index])).collect();
        let around: BTreeSet<usize> =
            kept.iter().flat_map(|index| self.around(&self.nodes[*index])).collect();
        let nodes_at: BTreeMap<usize, usize> =
            kept.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let groups_at: BTreeMap<usize, usize> =
            around.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let moved = |group: Option<usize>| group.and_then(|at| groups_at.get(&at).copied());
        let place = |place: EdgePlace| match place {
            EdgePlace::Node(at) => nodes_at.get(&at).map(|at| EdgePlace::Node(*at)),
            EdgePlace::Group(at) => groups_at.get(&at).map(|at| EdgePlace::Group(*at)),
        };
        let node = |node: &GraphNode| GraphNode { group: moved(node.group), ..node.clone() };
        let edge =
            |edge: &GraphEdge| Some(GraphEdge { from: place(edge.from)?, to: place(edge.to)? });
        GraphPicture {
            title: self.title.clone(),
            nodes: kept.iter().map(|at| node(&self.nodes[*at])).collect(),
            edges: self.edges.iter().filter_map(edge).collect(),
            groups: around.iter().map(|at| node(&self.groups[*at])).collect(),
        }
    }

    /// Changes every text that came from outside.
    pub fn for_each_text(&mut self, mut change: impl FnMut(&mut String)) {
        change(&mut self.title);
        for node in self.nodes.iter_mut().chain(&mut self.groups) {
            change(&mut node.id);
            change(&mut node.title);
            node.remark.as_mut().map(&mut change);
        }
    }

    /// The tasks by status: `12 tasks: 3 done, 1 running, 8 pending`.
    pub fn tally(&self) -> String {
        let count = |mark: TaskMark| self.nodes.iter().filter(|node| node.mark == mark).count();
        let mut parts: Vec<String> = TaskMark::ALL
            .into_iter()
            .rev()
            .map(|mark| (count(mark), mark))
            .filter(|(count, _)| *count > 0)
            .map(|(count, mark)| format!("{} {}", thousands(count), mark.word()))
            .collect();
        if parts.is_empty() {
            parts.push("nothing to do".to_owned());
        }
        format!("{}: {}", tasks(self.nodes.len()), parts.join(", "))
    }

    fn id_of(&self, place: EdgePlace) -> &str {
        match place {
            EdgePlace::Node(index) => &self.nodes[index].id,
            EdgePlace::Group(index) => &self.groups[index].id,
        }
    }

    /// The dependencies of each node and group that has any.
    fn dependencies(&self) -> BTreeMap<EdgePlace, Vec<EdgePlace>> {
        let mut dependencies: BTreeMap<EdgePlace, Vec<EdgePlace>> = BTreeMap::new();
        for edge in &self.edges {
            dependencies.entry(edge.to).or_default().push(edge.from);
        }
        dependencies
    }

    /// The groups around a node, the innermost first.
    fn around(&self, node: &GraphNode) -> impl Iterator<Item = usize> {
        successors(node.group, |inner| self.groups[*inner].group)
    }

    /// The nodes and groups in the order in which nested frames are drawn, with their depth from 1.
    fn nested(&self) -> Vec<(usize, NestedPart)> {
        let mut parts = Vec::new();
        self.nest(None, 1, &mut parts);
        parts
    }

    fn nest(&self, outer: Option<usize>, depth: usize, parts: &mut Vec<(usize, NestedPart)>) {
        let nodes = (0..self.nodes.len()).filter(|at| self.nodes[*at].group == outer);
        parts.extend(nodes.map(|at| (depth, NestedPart::Node(at))));
        // A group comes after the one around it.
        let inner = outer.map_or(0, |outer| outer + 1)..self.groups.len();
        for at in inner.filter(|at| self.groups[*at].group == outer) {
            parts.push((depth, NestedPart::Open(at)));
            self.nest(Some(at), depth + 1, parts);
            parts.push((depth, NestedPart::Close));
        }
    }
}

fn node(task: &Task, group: Option<usize>) -> GraphNode {
    GraphNode {
        id: task.name().to_owned(),
        title: task.spec.title.clone(),
        mark: TaskMark::of(&task.status),
        remark: task.step().map(|step| step.word().to_owned()),
        group,
    }
}

/// `1 task`, `4,990 tasks`
fn tasks(count: usize) -> String {
    format!("{} task{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// `4,990`
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The text as one line without control characters and changes of direction.
fn plain(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if acts(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

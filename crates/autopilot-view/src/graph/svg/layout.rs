//! The layout of boxes and arrows: a column per level, and lanes one below the other. The first lane
//! is for nodes without a group, and each group has its own lane, so that boxes never overlap.
//!
//! Whole numbers only, so that the same graph is the same picture everywhere.

use crate::graph::{EdgePlace, GraphEdge, GraphPicture, layer};

pub(super) const NODE_WIDTH: i64 = 232;
pub(super) const NODE_HEIGHT: i64 = 62;
pub(super) const MARGIN: i64 = 24;
/// The distance from one row to the next.
const ROW: i64 = 78;
/// The height that a passing arrow takes of a column.
const BEND: i64 = 18;
/// The gap between two columns of one level, and between two levels.
const GAP: i64 = 16;
const GAP_LEVEL: i64 = 72;
/// The space inside a group, around its boxes and above them.
const PAD: i64 = 14;
const GROUP_HEAD: i64 = 26;
/// The number of rows of a level before it takes a second column.
const ROWS_MIN: usize = 24;
/// The number of bends above which all arrows are straight.
const BENDS_MAX: usize = 20_000;
/// The number of passes that improve the order within columns, in both directions.
const SWEEPS: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) x: i64,
    pub(super) y: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
}

pub(super) struct Layout {
    /// The upper left corners of the boxes.
    pub(super) nodes: Vec<Point>,
    pub(super) groups: Vec<Rect>,
    pub(super) paths: Vec<Vec<Point>>,
    pub(super) width: i64,
    pub(super) height: i64,
}

impl Layout {
    pub(super) fn of(graph: &GraphPicture) -> Layout {
        let levels = layer::levels(graph);
        let lanes = LaneLayout::of(graph);
        let mut net = LayoutNet::of(graph, &levels, &lanes);
        net.sort();
        let placed = net.place(graph.nodes.len(), &lanes);
        let nodes: Vec<Point> = placed.items[..graph.nodes.len()].to_vec();
        let groups = group_boxes(graph, &nodes, &lanes, &placed);
        let paths = paths(graph, &net, &placed, &groups);
        let right = nodes.iter().map(|at| at.x + NODE_WIDTH);
        let right = right.chain(groups.iter().map(|group| group.x + group.width)).max();
        Layout {
            nodes,
            groups,
            paths,
            width: right.unwrap_or(0) + MARGIN,
            height: placed.height + MARGIN,
        }
    }
}

/// The lanes. Lane 0 is for nodes without a group; a group's lane follows that of its enclosing group.
struct LaneLayout {
    of_group: Vec<usize>,
    /// The number of enclosing groups, including the group itself.
    depth: Vec<usize>,
    /// The first and last lane inside the box of a group, by lane.
    span: Vec<(usize, usize)>,
    count: usize,
}

impl LaneLayout {
    fn of(graph: &GraphPicture) -> LaneLayout {
        let size = graph.groups.len();
        let mut lanes = LaneLayout {
            of_group: vec![0; size],
            depth: vec![1; size],
            span: vec![(0, 0); size],
            count: 1,
        };
        let mut inner: Vec<Vec<usize>> = vec![Vec::new(); size];
        for (index, group) in graph.groups.iter().enumerate() {
            if let Some(outer) = group.group {
                inner[outer].push(index);
            }
        }
        for index in (0..size).filter(|index| graph.groups[*index].group.is_none()) {
            lanes.add(index, 1, &inner);
        }
        lanes
    }

    fn add(&mut self, group: usize, depth: usize, inner: &[Vec<usize>]) {
        self.of_group[group] = self.count;
        self.depth[group] = depth;
        self.count += 1;
        for index in &inner[group] {
            self.add(*index, depth + 1, inner);
        }
        self.span[group] = (self.of_group[group], self.count - 1);
    }
}

/// The items of the layout: nodes, and after them the bends where long arrows pass a level.
struct LayoutNet {
    /// The items by lane and level, from top to bottom.
    cells: Vec<Vec<Vec<usize>>>,
    place_in_cell: Vec<usize>,
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    /// For each edge, the items between its ends.
    bends: Vec<Vec<usize>>,
}

impl LayoutNet {
    fn of(graph: &GraphPicture, levels: &[usize], lanes: &LaneLayout) -> LayoutNet {
        let lane = |node: usize| graph.nodes[node].group.map_or(0, |group| lanes.of_group[group]);
        let count = levels.iter().max().map_or(0, |last| last + 1);
        let mut cells = vec![vec![Vec::new(); count]; lanes.count];
        for (node, level) in levels.iter().enumerate() {
            cells[lane(node)][*level].push(node);
        }
        let size = graph.nodes.len();
        let mut net = LayoutNet {
            cells,
            place_in_cell: vec![0; size],
            left: vec![Vec::new(); size],
            right: vec![Vec::new(); size],
            bends: vec![Vec::new(); graph.edges.len()],
        };
        let passed = |from: usize, to: usize| levels[to].saturating_sub(levels[from] + 1);
        let ends = |edge: usize| {
            let GraphEdge { from, to } = graph.edges[edge];
            let (EdgePlace::Node(from), EdgePlace::Node(to)) = (from, to) else { return None };
            (lane(from) == lane(to)).then_some((from, to))
        };
        let all = 0..graph.edges.len();
        let bends: usize = all.clone().filter_map(ends).map(|(from, to)| passed(from, to)).sum();
        for (edge, (from, to)) in all.filter_map(|edge| Some((edge, ends(edge)?))) {
            let mut last = from;
            if bends <= BENDS_MAX {
                for level in levels[from] + 1..levels[to].max(levels[from] + 1) {
                    let bend = net.add();
                    net.cells[lane(from)][level].push(bend);
                    net.bends[edge].push(bend);
                    net.link(last, bend);
                    last = bend;
                }
            }
            net.link(last, to);
        }
        net
    }

    fn add(&mut self) -> usize {
        self.place_in_cell.push(0);
        self.left.push(Vec::new());
        self.right.push(Vec::new());
        self.left.len() - 1
    }

    fn link(&mut self, from: usize, to: usize) {
        self.right[from].push(to);
        self.left[to].push(from);
    }

    /// Moves every item to the middle of its neighbours, so that few arrows cross.
    fn sort(&mut self) {
        for lane in 0..self.cells.len() {
            let levels = self.cells[lane].len();
            for level in 0..levels {
                self.number(lane, level);
            }
            for _ in 0..SWEEPS {
                for level in 0..levels {
                    self.sort_cell(lane, level, |net, item| &net.left[item]);
                }
                for level in (0..levels).rev() {
                    self.sort_cell(lane, level, |net, item| &net.right[item]);
                }
            }
        }
    }

    fn sort_cell(&mut self, lane: usize, level: usize, beside: fn(&Self, usize) -> &[usize]) {
        let mut cell = std::mem::take(&mut self.cells[lane][level]);
        cell.sort_by_key(|item| {
            let beside = beside(self, *item);
            let sum: usize = beside.iter().map(|other| self.place_in_cell[*other]).sum();
            match beside.len() {
                0 => self.place_in_cell[*item],
                count => sum / count,
            }
        });
        self.cells[lane][level] = cell;
        self.number(lane, level);
    }

    /// Numbers items in thousandths from the middle of the cell, so that columns compare.
    fn number(&mut self, lane: usize, level: usize) {
        const MIDDLE: usize = 1 << 40;
        let cell = &self.cells[lane][level];
        for (place, item) in cell.iter().enumerate() {
            self.place_in_cell[*item] = MIDDLE + place * 1000 - cell.len() * 500;
        }
    }

    fn place(&self, nodes: usize, lanes: &LaneLayout) -> PlacedItems {
        let rows = ROWS_MIN.max((nodes * 3).isqrt());
        let stacks: Vec<Vec<LaneStack>> = self
            .cells
            .iter()
            .map(|lane| lane.iter().map(|cell| LaneStack::of(cell, nodes, rows)).collect())
            .collect();
        let levels = self.cells.first().map_or(0, Vec::len);
        let mut x_of_level = Vec::new();
        let mut x = MARGIN + PAD * lanes.depth.iter().max().map_or(0, |depth| *depth as i64);
        for level in 0..levels {
            x_of_level.push(x);
            let columns = stacks.iter().map(|lane| lane[level].columns).max().unwrap_or(1).max(1);
            x += columns * (NODE_WIDTH + GAP) - GAP + GAP_LEVEL;
        }
        let mut placed = PlacedItems {
            items: vec![Point::default(); self.left.len()],
            lanes: Vec::new(),
            height: MARGIN,
        };
        for (lane, stacks) in stacks.iter().enumerate() {
            let open = lanes.span.iter().filter(|(first, _)| *first == lane).count() as i64;
            let close = lanes.span.iter().filter(|(_, last)| *last == lane).count() as i64;
            let top = placed.height + open * (GROUP_HEAD + PAD);
            let height = stacks.iter().map(|stack| stack.height).max().unwrap_or(0);
            for (level, stack) in stacks.iter().enumerate() {
                let down = top + (height - stack.height) / 2;
                for (item, at) in &stack.items {
                    placed.items[*item] = Point { x: x_of_level[level] + at.x, y: down + at.y };
                }
            }
            placed.lanes.push((top, top + height));
            placed.height = top + height + close * PAD + if height > 0 { PAD } else { 0 };
        }
        placed
    }
}

/// One level of one lane, relative to its own upper left corner.
struct LaneStack {
    items: Vec<(usize, Point)>,
    columns: i64,
    height: i64,
}

impl LaneStack {
    fn of(cell: &[usize], nodes: usize, rows_max: usize) -> LaneStack {
        let full = rows_max as i64 * ROW;
        let mut stack = LaneStack { items: Vec::new(), columns: 0, height: 0 };
        let mut y = 0;
        for item in cell {
            let needs = if *item < nodes { ROW } else { BEND };
            if stack.columns == 0 || y + needs > full {
                stack.columns += 1;
                y = 0;
            }
            let x = (stack.columns - 1) * (NODE_WIDTH + GAP);
            stack.items.push((*item, Point { x, y }));
            y += needs;
            stack.height = stack.height.max(y);
        }
        stack
    }
}

struct PlacedItems {
    items: Vec<Point>,
    /// The top and bottom of each lane.
    lanes: Vec<(i64, i64)>,
    height: i64,
}

fn group_boxes(
    graph: &GraphPicture,
    nodes: &[Point],
    lanes: &LaneLayout,
    placed: &PlacedItems,
) -> Vec<Rect> {
    // A group is as wide as the nodes in it, with a margin for every frame around them.
    let mut reach: Vec<Option<(i64, i64)>> = vec![None; graph.groups.len()];
    for (node, at) in graph.nodes.iter().zip(nodes) {
        for (group, depth) in graph.around(node).zip(1..) {
            let (left, right) = (at.x - depth * PAD, at.x + NODE_WIDTH + depth * PAD);
            let (a, b) = reach[group].unwrap_or((left, right));
            reach[group] = Some((a.min(left), b.max(right)));
        }
    }
    let boxed = |(group, reach): (usize, Option<(i64, i64)>)| {
        let (left, right) = reach.unwrap_or((MARGIN, MARGIN + NODE_WIDTH));
        let (first, last) = lanes.span[group];
        let inside = lanes.span.iter().filter(|(a, b)| first < *a && *b == last).count() as i64;
        let top = placed.lanes[first].0 - GROUP_HEAD - PAD / 2;
        let bottom = placed.lanes[last].1 + inside * PAD + PAD / 2;
        Rect { x: left, y: top, width: right - left, height: bottom - top }
    };
    reach.into_iter().enumerate().map(boxed).collect()
}

fn paths(
    graph: &GraphPicture,
    net: &LayoutNet,
    placed: &PlacedItems,
    groups: &[Rect],
) -> Vec<Vec<Point>> {
    let frame = |place: EdgePlace| match place {
        EdgePlace::Node(node) => {
            let Point { x, y } = placed.items[node];
            Rect { x, y, width: NODE_WIDTH, height: NODE_HEIGHT }
        }
        EdgePlace::Group(group) => groups[group],
    };
    let path = |(index, edge): (usize, &GraphEdge)| {
        let (from, to) = (frame(edge.from), frame(edge.to));
        let mut points = vec![Point { x: from.x + from.width, y: from.y + from.height / 2 }];
        for bend in &net.bends[index] {
            let at = placed.items[*bend];
            points.push(Point { x: at.x, y: at.y + BEND / 2 });
            points.push(Point { x: at.x + NODE_WIDTH, y: at.y + BEND / 2 });
        }
        points.push(Point { x: to.x, y: to.y + to.height / 2 });
        points
    };
    graph.edges.iter().enumerate().map(path).collect()
}

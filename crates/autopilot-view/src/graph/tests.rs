//! Graphs in, drawings out.

use super::*;
use unicode_width::UnicodeWidthStr;

fn graph(lines: &str) -> GraphPicture {
    let mut graph = GraphPicture { title: "A plan".to_owned(), ..GraphPicture::default() };
    let mut places: BTreeMap<String, EdgePlace> = BTreeMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // `done a in big after b, c`, `done group big after b`
        let (head, before) = line.split_once(" after ").unwrap_or((line, ""));
        let (head, group) = head.split_once(" in ").unwrap_or((head, ""));
        let (word, id) = head.split_once(' ').unwrap();
        let mark = TaskMark::ALL.into_iter().find(|mark| mark.word() == word).unwrap();
        let group = match places.get(group) {
            Some(EdgePlace::Group(index)) => Some(*index),
            Some(EdgePlace::Node(_)) | None => None,
        };
        let place = match id.strip_prefix("group ") {
            Some(id) => {
                let (id, title) = (id.to_owned(), format!("Title of {id}"));
                graph.groups.push(GraphNode { id, title, mark, remark: None, group });
                EdgePlace::Group(graph.groups.len() - 1)
            }
            None => {
                let (id, title) = (id.to_owned(), format!("Title of {id}"));
                graph.nodes.push(GraphNode { id, title, mark, remark: None, group });
                EdgePlace::Node(graph.nodes.len() - 1)
            }
        };
        places.insert(id.strip_prefix("group ").unwrap_or(id).to_owned(), place);
        for name in before.split(", ").filter(|name| !name.is_empty()) {
            graph.edges.push(GraphEdge { from: places[name], to: place });
        }
    }
    graph
}

fn small() -> GraphPicture {
    graph(
        "done a
         running b after a
         failed group big after a
         done x in big
         failed y in big after x
         blocked c after b, big
         pending d after a, c",
    )
}

const HOSTILE: &str = "\u{1b}[31m\"<script>alert('x')</script>\"\n]; --> n0 %%{init}%% `x` #quot; \\\" \
                       \\N & &lt; \u{202e}evil";

fn hostile() -> GraphPicture {
    let mut graph = small();
    graph.for_each_text(|text| *text = HOSTILE.to_owned());
    graph
}

fn big(count: usize, before: impl Fn(usize) -> Option<usize>) -> GraphPicture {
    let nodes = (0..count).map(|index| GraphNode {
        id: format!("task-{index}"),
        title: format!("Number {index} of many"),
        mark: if index % 3 == 0 { TaskMark::Done } else { TaskMark::Pending },
        remark: None,
        group: None,
    });
    let edge =
        |to: usize| Some(GraphEdge { from: EdgePlace::Node(before(to)?), to: EdgePlace::Node(to) });
    GraphPicture {
        title: "Many".into(),
        nodes: nodes.collect(),
        edges: (0..count).filter_map(edge).collect(),
        groups: Vec::new(),
    }
}

fn drawn(graph: &GraphPicture, columns: usize, extent: GraphExtent) -> String {
    text(graph, columns, Paint::Plain, extent)
}

#[test]
fn a_task_stands_behind_whatever_it_waits_for_and_a_group_around_its_tasks() {
    assert_eq!(layer::levels(&small()), [0, 1, 1, 2, 3, 4]);
    insta::assert_snapshot!(drawn(&small(), 80, GraphExtent::Bounded), @r"
    A plan
    6 tasks: 2 done, 1 pending, 1 blocked, 1 running, 1 failed

    level 1 of 5 (1 task)
      ✓ a    Title of a

    level 2 of 5 (2 tasks)
      ✗ big  Title of big  expanded into 2 tasks · after a
      ▶ b    Title of b  after a
      ✓ x    Title of x  in big

    level 3 of 5 (1 task)
      ✗ y    Title of y  after x · in big

    level 4 of 5 (1 task)
      ! c    Title of c  after b, big

    level 5 of 5 (1 task)
      · d    Title of d  after a, c
    ");
    insta::assert_snapshot!(drawn(&small(), 44, GraphExtent::Bounded), @r"
    A plan
    6 tasks: 2 done, 1 pending, 1 blocked, 1 ru…

    level 1 of 5 (1 task)
      ✓ a    Title of a

    level 2 of 5 (2 tasks)
      ✗ big  Title of big  expanded into 2 task…
      ▶ b    Title of b  after a
      ✓ x    Title of x  in big

    level 3 of 5 (1 task)
      ✗ y    Title of y  after x · in big

    level 4 of 5 (1 task)
      ! c    Title of c  after b, big

    level 5 of 5 (1 task)
      · d    Title of d  after a, c
    ");
}

#[test]
fn colours_are_only_there_when_asked_for() {
    let coloured = text(&small(), 80, Paint::Ansi, GraphExtent::Bounded);
    assert!(coloured.contains("\u{1b}[31m✗\u{1b}[0m big"), "{coloured}");
    let mut plain = coloured.clone();
    for code in ["0", "1", "2", "31", "32", "33", "34"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, drawn(&small(), 80, GraphExtent::Bounded));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut wide = small();
    wide.for_each_text(|text| *text = format!("{text} 日本語の長い題名 {}", "x".repeat(100)));
    for columns in [COLUMNS_LEAST, 40, 80, 200] {
        for line in drawn(&wide, columns, GraphExtent::All).lines() {
            assert!(line.width() <= columns, "{columns}: {line}");
        }
    }
}

const COLUMNS_LEAST: usize = 30;

#[test]
fn a_queue_is_a_list() {
    let mut queue = graph("done a\nrunning b\npending c");
    queue.nodes[1].remark = Some("validate".into());
    insta::assert_snapshot!(drawn(&queue, 60, GraphExtent::Bounded), @r"
    A plan
    3 tasks: 1 done, 1 pending, 1 running

      ✓ a  Title of a
      ▶ b  Title of b  validate
      · c  Title of c
    ");
}

#[test]
fn a_level_of_ten_thousand_shows_the_urgent_ones_and_counts_the_rest() {
    let mut wide = big(10_000, |_| None);
    wide.nodes[9_000].mark = TaskMark::Failed;
    let shown = drawn(&wide, 80, GraphExtent::Bounded);
    assert_eq!(shown.lines().count(), 24, "{shown}");
    assert!(shown.contains("… and 9,980 more"), "{shown}");
    assert!(shown.contains("✗ task-9000"), "{shown}");
    assert!(drawn(&wide, 80, GraphExtent::All).lines().count() > 10_000);
}

#[test]
fn a_chain_of_ten_thousand_shows_the_levels_where_work_is() {
    let mut chain = big(10_000, |index| index.checked_sub(1));
    for node in &mut chain.nodes[..500] {
        node.mark = TaskMark::Done;
    }
    for node in &mut chain.nodes[500..] {
        node.mark = TaskMark::Pending;
    }
    let shown = drawn(&chain, 80, GraphExtent::Bounded);
    assert!(shown.lines().count() < 110, "{shown}");
    assert!(shown.contains("… levels 1 to 500: 500 tasks"), "{shown}");
    assert!(shown.contains("· task-500 "), "{shown}");
    assert!(shown.contains("… levels 531 to 10,000: 9,470 tasks"), "{shown}");
}

#[test]
fn ten_thousand_tasks_are_drawn_whole_in_every_form() {
    for graph in [
        big(10_000, |_| None),
        big(10_000, |index| index.checked_sub(1)),
        big(10_000, |index| (index >= 100).then(|| index - 100)),
        big(10_000, |index| (index > 0).then_some(index / 2)),
        big(10_000, |index| (index > 0).then_some(0)),
    ] {
        for extent in [GraphExtent::Bounded, GraphExtent::All] {
            drawn(&graph, 100, extent);
        }
        let picture = svg(&graph);
        assert_eq!(picture.matches("<rect").count(), 10_001);
        assert_eq!(mermaid(&graph).matches("[\"").count(), 10_000);
        assert_eq!(dot(&graph).matches(" [label=").count(), 10_000);
        assert_eq!(json(&graph)["nodes"].as_array().unwrap().len(), 10_000);
    }
}

#[test]
fn a_mermaid_chart() {
    insta::assert_snapshot!(mermaid(&small()));
    let large = mermaid(&big(600, |index| index.checked_sub(1)));
    assert!(large.starts_with("%% large: set maxEdges above 599"), "{large}");
}

#[test]
fn a_dot_file() {
    insta::assert_snapshot!(dot(&small()));
}

#[test]
fn a_picture() {
    insta::assert_snapshot!(svg(&small()));
    assert_eq!(svg(&small()), svg(&small()));
}

#[test]
fn data() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&json(&small())).unwrap());
}

#[test]
fn hostile_titles_act_nowhere() {
    let graph = hostile();
    for drawing in [drawn(&graph, 200, GraphExtent::All), mermaid(&graph), dot(&graph), svg(&graph)]
    {
        assert!(!drawing.contains('\u{1b}') && !drawing.contains('\u{202e}'), "{drawing}");
        assert_eq!(drawing.lines().count(), drawing.split('\n').count() - 1, "{drawing}");
    }
    let usual = |draw: fn(&GraphPicture) -> String| draw(&small()).lines().count();
    assert_eq!(mermaid(&graph).lines().count(), usual(mermaid));
    assert_eq!(dot(&graph).lines().count(), usual(dot));
    let picture = svg(&graph);
    assert!(!picture.contains("<script") && !picture.contains("alert('"), "{picture}");
    assert!(is_well_formed(&picture), "{picture}");
    let chart = mermaid(&graph);
    assert!(!chart.contains("%%") && !chart.contains("<script"), "{chart}");
    for line in chart.lines().filter(|line| line.contains("[\"")) {
        assert_eq!(line.matches('"').count(), 2, "{line}");
        assert!(line.ends_with("\"]"), "{line}");
    }
    for line in dot(&graph).lines().filter(|line| line.contains("label=")) {
        assert!(is_quoted_right(line), "{line}");
    }
}

/// Every quote that is not escaped has its partner, and nothing of a title is outside of them.
fn is_quoted_right(line: &str) -> bool {
    let (mut inside, mut escaped, mut outside) = (false, false, String::new());
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            c if !inside => outside.push(c),
            _ => {}
        }
    }
    !inside && !outside.contains("script") && !outside.contains("evil")
}

/// Tags are closed in order and every ampersand begins a name.
fn is_well_formed(picture: &str) -> bool {
    let mut open = Vec::new();
    for part in picture.split('<').skip(1) {
        let Some((tag, text)) = part.split_once('>') else { return false };
        if text.contains('>') || text.contains('"') {
            return false;
        }
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) if open.pop() != Some(name.to_owned()) => return false,
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(name.to_owned()),
        }
    }
    let named =
        |rest: &str| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|n| rest.starts_with(n));
    open.is_empty() && picture.split('&').skip(1).all(named)
}

#[test]
fn boxes_of_a_picture_do_not_overlap_and_arrows_go_to_the_right() {
    for graph in
        [small(), nested(), big(300, |index| (index >= 40).then(|| index - 40 + index % 7))]
    {
        let picture = svg(&graph);
        let boxes: Vec<[i64; 4]> = picture
            .lines()
            .filter(|line| line.contains("height=\"62\""))
            .map(|line| ["x", "y", "width", "height"].map(|name| number(line, name)))
            .collect();
        assert_eq!(boxes.len(), graph.nodes.len());
        for (index, a) in boxes.iter().enumerate() {
            for b in &boxes[..index] {
                let apart = a[0] + a[2] <= b[0]
                    || b[0] + b[2] <= a[0]
                    || a[1] + a[3] <= b[1]
                    || b[1] + b[3] <= a[1];
                assert!(apart, "{a:?} {b:?}");
            }
        }
        for edge in &graph.edges {
            if let (EdgePlace::Node(from), EdgePlace::Node(to)) = (edge.from, edge.to) {
                assert!(boxes[from][0] + boxes[from][2] < boxes[to][0]);
            }
        }
    }
}

fn number(line: &str, name: &str) -> i64 {
    let rest = line.split_once("<rect").unwrap().1;
    let rest = rest.split_once(&format!(" {name}=\"")).unwrap().1;
    rest.split_once('"').unwrap().0.parse().unwrap()
}

fn nested() -> GraphPicture {
    graph(
        "done a
         running group outer after a
         done o1 in outer
         running group inner in outer after o1
         done i1 in inner
         running i2 in inner after i1
         pending o2 in outer after inner
         pending z after outer
         pending w after a",
    )
}

#[test]
fn a_group_within_a_group_ends_before_what_waits_for_the_outer_one() {
    assert_eq!(layer::levels(&nested()), [0, 1, 2, 3, 4, 5, 1]);
    let chart = mermaid(&nested());
    assert!(chart.contains("  subgraph g0") && chart.contains("    subgraph g1"), "{chart}");
    assert!(dot(&nested()).contains("n4 [ltail=cluster_1]"), "{}", dot(&nested()));
    assert!(is_well_formed(&svg(&nested())));
}

#[test]
fn a_plan_is_drawn_before_it_is_run() {
    use autopilot_core::config::Config;
    use autopilot_core::plan::{Plan, PlanRules, check};
    let plan: Plan = serde_json::from_value(serde_json::json!({
        "plan_summary": "P",
        "tasks": [
            { "id": "b", "title": "B", "goal": "g", "acceptance_criteria": ["c"],
              "depends_on": ["a"], "expand": true },
            { "id": "a", "title": "A", "goal": "g", "acceptance_criteria": ["c"],
              "depends_on": [] },
        ],
    }))
    .unwrap();
    let (config, _) = Config::parse("commands: { tests: t }").unwrap();
    let rules = PlanRules::of(&config, &Default::default(), Default::default());
    let graph = GraphPicture::of_plan("P", &check(&plan, &rules).unwrap());
    assert_eq!(graph.edges, [GraphEdge { from: EdgePlace::Node(0), to: EdgePlace::Node(1) }]);
    let shown = drawn(&graph, 60, GraphExtent::Bounded);
    assert!(shown.contains("b  B  expanded later · after a"), "{shown}");
}

#[test]
fn a_circle_is_cut_open_where_it_must_be_drawn_all_the_same() {
    let mut graph = graph("pending a\npending b after a\npending c after b");
    graph.edges.push(GraphEdge { from: EdgePlace::Node(2), to: EdgePlace::Node(0) });
    assert_eq!(layer::levels(&graph), [0, 1, 2]);
    assert!(is_well_formed(&svg(&graph)));
}

#[test]
fn numbers_are_read_in_groups_of_three() {
    let said: Vec<String> = [0, 999, 1000, 1_234_567].into_iter().map(thousands).collect();
    assert_eq!(said, ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn a_part_of_a_graph_keeps_what_is_around_its_nodes_and_the_edges_between_them() {
    let part = small().only(|node| ["a", "y", "c"].contains(&node.id.as_str()));
    let ids: Vec<&str> = part.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["a", "y", "c"]);
    assert_eq!(part.groups.len(), 1);
    assert_eq!(part.nodes[1].group, Some(0));
    let edges: Vec<(&str, &str)> =
        part.edges.iter().map(|edge| (part.id_of(edge.from), part.id_of(edge.to))).collect();
    assert_eq!(edges, [("a", "big"), ("big", "c")]);
    assert_eq!(small().only(|node| node.id == "a").groups, []);
    assert_eq!(small().only(|_| true), small());
}

#[test]
fn on_a_page_the_words_stand_in_the_boxes_and_nothing_is_styled() {
    let drawn = svg_part(&small(), "g1");
    assert!(drawn.contains("✗ failed · y") && drawn.contains("class=\"m-failed\""), "{drawn}");
    assert!(drawn.contains("id=\"g1\"") && drawn.contains("url(#g1)"));
    assert!(!drawn.contains("<style") && !drawn.contains("style="), "{drawn}");
    let drawn = svg_part(&hostile(), "x\"><script>");
    assert!(!drawn.contains("<script"), "{drawn}");
    assert!(drawn.contains("id=\"xscript\""), "{drawn}");
}

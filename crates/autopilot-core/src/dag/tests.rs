//! Graphs as text in, orders and faults as text out.

use super::*;
use proptest::prelude::*;

type Tasks<'a> = Vec<(&'a str, Vec<&'a str>)>;

/// `a; b after a; c after a b`
fn tasks(text: &str) -> Tasks<'_> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    let task = |part| {
        let (id, after): (&str, &str) = str::split_once(part, " after ").unwrap_or((part, ""));
        (id.trim(), after.split_whitespace().collect())
    };
    parts.map(task).collect()
}

fn graph(text: &str) -> Result<TaskGraph<'_>, Vec<GraphFault>> {
    TaskGraph::build(tasks(text))
}

fn names<'a>(graph: &TaskGraph<'a>, places: &[usize]) -> Vec<&'a str> {
    places.iter().map(|place| graph.id(*place)).collect()
}

fn faults(text: &str) -> String {
    let faults = graph(text).unwrap_err();
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn order_batches_and_urgency_of_a_diamond() {
    let graph = graph("d after b c; b after a; c after a; a; e").unwrap();
    assert_eq!(names(&graph, graph.order()), ["a", "b", "c", "d", "e"]);
    let batches: Vec<_> = graph.batches().iter().map(|batch| names(&graph, batch)).collect();
    assert_eq!(batches, [vec!["a", "e"], vec!["b", "c"], vec!["d"]]);
    assert_eq!(names(&graph, &graph.ready()), ["a", "e"]);
    assert_eq!(graph.urgency(), [1, 2, 2, 3, 1]);
    assert_eq!((graph.depth(), graph.fan_out(), graph.len()), (3, 2, 5));
}

#[test]
fn an_order_that_holds_is_left_as_it_was_given() {
    let graph = graph("x; a; y after a; b after y; z; c after x").unwrap();
    assert_eq!(graph.order(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn nothing_is_a_graph_too() {
    let graph = graph("").unwrap();
    assert!(graph.is_empty() && graph.batches().is_empty() && graph.ready().is_empty());
    assert_eq!((graph.depth(), graph.fan_out()), (0, 0));
}

#[test]
fn l01_a_circle_is_shown_with_its_path() {
    assert_eq!(faults("a after a"), "the tasks wait for each other in a circle: a → a");
    assert_eq!(
        faults("x; a after c; b after a; c after b x; d after c"),
        "the tasks wait for each other in a circle: a → b → c → a"
    );
}

#[test]
fn l01_circles_apart_from_each_other_are_all_shown() {
    assert_eq!(
        faults("a after b; b after a; c after c; d after e; e after d; f after a d"),
        "the tasks wait for each other in a circle: c → c\n\
         the tasks wait for each other in a circle: a → b → a\n\
         the tasks wait for each other in a circle: d → e → d"
    );
}

#[test]
fn l02_a_second_task_of_the_same_id_hides_no_circle() {
    assert_eq!(
        faults("a after b; b after a; a"),
        "two tasks have the id `a`\nthe tasks wait for each other in a circle: a → b → a"
    );
}

#[test]
fn l02_l03_ids_given_twice_and_unknown_dependencies_are_all_told() {
    assert_eq!(
        faults("a; a; b after z; c after y a"),
        "two tasks have the id `a`\n\
         task `b` depends on `z`, which is not a task of the plan\n\
         task `c` depends on `y`, which is not a task of the plan"
    );
}

const MANY: usize = 100_000;

fn numbers() -> Vec<String> {
    (0..MANY).map(|n| n.to_string()).collect()
}

#[test]
fn l05_a_long_chain_and_a_wide_fan_are_no_danger() {
    let ids = numbers();
    let id = |n: usize| ids[n].as_str();
    let chain = (0..MANY).map(|n| (id(n), n.checked_sub(1).map(id)));
    let graph = TaskGraph::build(chain).unwrap();
    assert_eq!((graph.depth(), graph.fan_out(), graph.urgency()[0]), (MANY, 1, MANY as u32));
    let fan = (0..MANY).map(|n| (id(n), (n > 0).then(|| id(0))));
    let graph = TaskGraph::build(fan).unwrap();
    assert_eq!((graph.depth(), graph.fan_out(), graph.urgency()[0]), (2, MANY - 1, 2));
}

#[test]
fn l01_a_circle_of_a_hundred_thousand_is_found_and_told_in_short() {
    let ids = numbers();
    let circle = (0..MANY).map(|n| (ids[n].as_str(), [ids[(n + 1) % MANY].as_str()]));
    let faults = TaskGraph::build(circle).unwrap_err();
    let [GraphFault::Cycle(path)] = faults.as_slice() else { panic!("{}", faults.len()) };
    assert_eq!(path.len(), MANY + 1);
    assert!(faults[0].to_string().contains("→ … 99989 more … →"), "{}", faults[0]);
}

proptest! {
    #[test]
    fn any_edges_give_an_order_that_holds_or_circles_that_are(
        edges in proptest::collection::vec((0_usize..8, 0_usize..8), 0..20)
    ) {
        let ids: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        let mut tasks: Tasks<'_> = ids.iter().map(|id| (id.as_str(), Vec::new())).collect();
        for (task, on) in &edges {
            tasks[*task].1.push(ids[*on].as_str());
        }
        match TaskGraph::build(tasks) {
            Ok(graph) => {
                let at = |place| graph.order().iter().position(|o| *o == place).unwrap();
                let (levels, urgency) = (graph.levels(), graph.urgency());
                for (task, on) in &edges {
                    prop_assert!(at(*on) < at(*task));
                    prop_assert!(levels[*on] < levels[*task] && urgency[*on] > urgency[*task]);
                }
                prop_assert_eq!(graph.order().len(), 8);
                prop_assert_eq!(graph.depth(), graph.urgency().into_iter().max().unwrap() as usize);
            }
            Err(faults) => {
                for fault in faults {
                    let GraphFault::Cycle(path) = fault else { panic!("{fault:?}") };
                    prop_assert!(path.len() > 1);
                    prop_assert_eq!(path.first(), path.last());
                    for pair in path.windows(2) {
                        let (on, task): (usize, usize) =
                            (pair[0].parse().unwrap(), pair[1].parse().unwrap());
                        prop_assert!(edges.contains(&(task, on)));
                    }
                }
            }
        }
    }
}

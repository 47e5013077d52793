//! The order of the merge queue, and the bisection of a bad stack.

use super::*;

fn request(task: &str) -> MergeRequest {
    let oid = Oid::parse(&"a".repeat(40)).unwrap();
    let of = MergeTask {
        run: "r".into(),
        branch: "autopilot/run-r".into(),
        start: oid.clone(),
        has_begun: false,
        task: task.into(),
        attempt: "1.0".into(),
        base: oid.clone(),
        tree: oid.clone(),
        at: 0,
    };
    MergeRequest {
        of,
        commit: oid,
        accounted: Vec::new(),
        commands: vec![("tests", "sh test.sh".into()), ("lint", format!("lint {task}"))],
        cancel: Cancel::default(),
    }
}

fn names(members: &[Waiting]) -> Vec<&str> {
    members.iter().map(|member| member.request.of.task.as_str()).collect()
}

#[test]
fn the_line_is_served_in_order_and_those_put_back_come_first() {
    let queue = MergeQueue::default();
    let tickets: Vec<_> = ["a", "b", "c", "d"].map(|task| queue.join(request(task))).into();
    let taken = queue.take(2);
    assert_eq!(names(&taken), ["a", "b"]);
    assert!(queue.leave(tickets[3].0) && !queue.leave(tickets[0].0));
    queue.put_back(taken);
    assert_eq!(names(&queue.take(9)), ["a", "b", "c"]);
    assert_eq!(names(&queue.take(1)), [""; 0]);
}

#[tokio::test]
async fn who_is_no_longer_wanted_is_told_so_and_the_others_stay() {
    let queue = MergeQueue::default();
    let (_, gone) = queue.join(request("gone"));
    let (_, mut stays) = queue.join(request("stays"));
    let mut members = queue.take(2);
    members[0].request.cancel.now();
    dismiss_unwanted(&mut members);
    assert_eq!(names(&members), ["stays"]);
    assert!(matches!(gone.await.unwrap(), MergeVerdict::Withdrawn));
    assert!(stays.try_recv().is_err());
}

#[test]
fn lines_that_several_tasks_share_are_run_once() {
    let both = [request("a"), request("b")];
    let lines: Vec<String> = all_commands(both.iter()).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, ["sh test.sh", "lint a", "lint b"]);
}

#[test]
fn only_so_many_others_are_named() {
    assert_eq!(named(&[]), "other commits on the run's branch");
    let many: Vec<String> = (0..13).map(|n| format!("t{n}")).collect();
    assert_eq!(named(&many), "t3, t4, t5, t6, t7, t8, t9, t10, t11, t12 and 3 before them");
}

/// The number of checks, and the result, when member `culprit` breaks the stack.
fn halve(proven: usize, whole: usize, culprit: Option<usize>) -> (usize, usize, bool) {
    let mut halving = Halving::new(proven, whole);
    let mut looks = 0;
    while let Some(at) = halving.next() {
        looks += 1;
        assert!(at > halving.good && at <= whole);
        halving.saw(at, culprit.is_none_or(|culprit| at < culprit));
    }
    (halving.good, looks, halving.bad <= whole)
}

#[test]
fn the_first_bad_member_is_found_wherever_it_is() {
    for whole in 1..=16 {
        assert_eq!(halve(0, whole, None), (whole, 1, false), "one look at a good stack");
        for culprit in 1..=whole {
            let (good, looks, found) = halve(0, whole, Some(culprit));
            assert_eq!((good, found), (culprit - 1, true));
            assert!(looks <= 1 + whole.ilog2() as usize + 1, "{whole} {culprit}: {looks}");
            if culprit > 1 {
                assert_eq!(halve(1, whole, Some(culprit)).0, culprit - 1);
            }
        }
    }
    assert_eq!(halve(1, 1, None), (1, 0, false), "what is proven is not looked at again");
}

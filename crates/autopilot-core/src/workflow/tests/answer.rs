//! The judgement on completion: what counts as a yes and as a no, and how a faulty answer is read.

use super::*;

fn said(json: Value) -> String {
    match assess(&json, &rules()) {
        Ok(assessed) => {
            let mut text = serde_json::to_string(&assessed.completion).unwrap();
            assessed.warnings.iter().for_each(|warning| text.push_str(&format!("\n{warning}")));
            text
        }
        Err(faults) => lines(&faults),
    }
}

#[test]
fn a_yes_and_a_no_are_taken_as_they_are() {
    assert_eq!(
        said(json!({ "done": true, "summary": "all of it" })),
        r#"{"done":true,"summary":"all of it"}"#
    );
    assert_eq!(
        said(json!({ "done": false, "reason": "a test fails", "summary": null })),
        r#"{"done":false,"reason":"a test fails"}"#
    );
}

#[test]
fn only_a_plain_true_is_a_yes() {
    let fault = "/done: `done` is missing or not true or false";
    for odd in [json!("true"), json!(1), Value::Null, json!([true]), json!({})] {
        assert_eq!(said(json!({ "done": odd, "summary": "s" })), fault);
    }
    assert_eq!(said(json!({ "Done": true, "summary": "s" })), fault);
    assert_eq!(said(json!([true])), "the answer is a list, not an object");
}

#[test]
fn a_no_has_a_reason_and_a_yes_should_have_a_summary() {
    assert_eq!(
        said(json!({ "done": false, "reason": " " })),
        "/reason: say in `reason` why the task is not done"
    );
    insta::assert_snapshot!(said(json!({ "done": true, "reason": "x" })), @r#"
    {"done":true}
    `done` is true, but there is no summary
    "#);
    insta::assert_snapshot!(said(json!({ "done": true, "summary": 3 })), @"/summary: it is a number, not a text");
}

#[test]
fn the_next_workflow_is_checked_and_its_faults_are_the_answer_s() {
    let given = json!({ "done": false, "reason": "r", "nextWorkflow": workflow("b after a; a") });
    let assessed = assess(&given, &rules()).unwrap();
    assert_eq!(assessed.next.as_ref().unwrap().order, [1, 0]);
    assert_eq!(assessed.completion.next, assessed.next.map(|next| next.workflow));
    let many = workflow("a; b; c; d; e; f; g after h");
    let given = json!({ "done": false, "nextWorkflow": many });
    insta::assert_snapshot!(said(given), @"
    /nextWorkflow/steps: the workflow has 7 steps; the limit is 6; combine some
    /nextWorkflow/steps/6/dependsOn: Workflow stuck: step `g` depends on `h`, which is not one of its steps; the steps are `a`, `b`, `c`, `d`, `e`, `f`, `g`
    /reason: say in `reason` why the task is not done
    ");
}

#[test]
fn a_yes_needs_no_next_workflow() {
    let given = json!({ "done": true, "summary": "s", "nextWorkflow": { "broken": 1 } });
    insta::assert_snapshot!(said(given), @r#"
    {"done":true,"summary":"s"}
    `done` is true, so `nextWorkflow` is ignored
    "#);
}

#[test]
fn what_can_t_be_read_means_not_done_with_that_reason() {
    let fault = [PlanFault { pointer: "/done".into(), what: "is odd".into() }];
    for json in
        [None, Some(json!({ "done": true })), Some(json!({ "done": false })), Some(json!(1))]
    {
        let Assessed { completion, next, warnings } = salvage(json.as_ref(), &fault);
        assert_eq!(
            completion,
            Completion::not_done("the answer could not be read: /done: is odd"),
            "{json:?}"
        );
        assert_eq!((next, warnings.len()), (None, 0));
    }
    assert_eq!(
        salvage(None, &[]).completion.reason.as_deref(),
        Some("the answer could not be read")
    );
}

#[test]
fn a_reason_holds_although_the_next_workflow_does_not() {
    let given = json!({ "done": false, "reason": "a test fails", "nextWorkflow": {} });
    let faults = assess(&given, &rules()).unwrap_err();
    let Assessed { completion, warnings, .. } = salvage(Some(&given), &faults);
    assert_eq!(completion, Completion::not_done("a test fails"));
    insta::assert_snapshot!(warnings.join("\n"), @r#"
    part of the answer is not used: /nextWorkflow/version: `version` is missing; write "version": 1
    part of the answer is not used: /nextWorkflow/id: `id` is missing
    part of the answer is not used: /nextWorkflow/steps: the workflow has no step; give at least one
    "#);
}

#[test]
fn long_words_are_cut() {
    let given = json!({ "done": false, "reason": "x".repeat(1 << 20) });
    let reason = assess(&given, &rules()).unwrap().completion.reason.unwrap();
    assert!(reason.len() <= 16 << 10 && reason.contains("bytes left out"));
    assert_eq!(salvage(Some(&given), &[]).completion.reason.unwrap(), reason);
}

#[test]
fn who_is_overruled_is_not_done_and_keeps_the_summary() {
    let yes = Completion { done: true, summary: Some("s".into()), ..Completion::default() };
    let overruled = yes.overruled("the tests fail");
    assert_eq!(
        serde_json::to_string(&overruled).unwrap(),
        r#"{"done":false,"summary":"s","reason":"the tests fail"}"#
    );
}

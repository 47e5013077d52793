//! The results of steps: their order, the steps that get them, the summary for the next iteration,
//! and their form in files.

use super::*;

#[test]
fn results_are_written_and_read_back_by_the_names_other_programs_know() {
    let usage = Some(StepUsage { input_tokens: 3, output_tokens: 5 });
    let given = StepResult { usage, ..result("a", StepStatus::Succeeded, "out") };
    let json = r#"{"stepId":"a","status":"succeeded","sessionId":"s-a","outputText":"out","usage":{"inputTokens":3,"outputTokens":5}}"#;
    assert_eq!(serde_json::to_string(&given).unwrap(), json);
    assert_eq!(serde_json::from_str::<StepResult>(json).unwrap(), given);
    let broke = StepResult::broke("a", "no connection");
    let json = r#"{"stepId":"a","status":"failed","sessionId":"","outputText":"","error":"no connection"}"#;
    assert_eq!(serde_json::to_string(&broke).unwrap(), json);
    let skipped = StepResult::skipped("c", &["a", "b"]);
    let json = r#"{"stepId":"c","status":"skipped","sessionId":"","outputText":"Skipped: dependencies failed [a, b]"}"#;
    assert_eq!(serde_json::to_string(&skipped).unwrap(), json);
}

#[test]
fn a_workflow_is_written_by_the_names_other_programs_know() {
    let step = WorkflowStep {
        id: "a".into(),
        goal: "g".into(),
        depends_on: vec!["b".into()],
        kind: Some(STEP_KIND.into()),
        adapter: Some("codex".into()),
        model: Some("m".into()),
        timeout_sec: Some(9),
    };
    let plain = WorkflowStep { id: "b".into(), goal: "g".into(), ..WorkflowStep::default() };
    let workflow = Workflow { version: VERSION, id: "wf".into(), steps: vec![step, plain] };
    let json = r#"{"version":1,"id":"wf","steps":[{"id":"a","goal":"g","dependsOn":["b"],"type":"agent.run","adapter":"codex","model":"m","timeoutSec":9},{"id":"b","goal":"g","dependsOn":[]}]}"#;
    assert_eq!(serde_json::to_string(&workflow).unwrap(), json);
    assert_eq!(serde_json::from_str::<Workflow>(json).unwrap(), workflow);
    let next = Completion { next: Some(workflow), ..Completion::not_done("r") };
    let written = serde_json::to_string(&next).unwrap();
    assert!(written.starts_with(r#"{"done":false,"reason":"r","nextWorkflow":{"version":1,"#));
    assert_eq!(serde_json::from_str::<Completion>(&written).unwrap(), next);
}

#[test]
fn a_step_gets_what_it_depends_on_in_the_order_it_names_it() {
    let workflow = checked("a; b; c; d after c a").workflow;
    let ended: Vec<StepResult> =
        ["a", "b", "c"].map(|id| result(id, StepStatus::Succeeded, id)).to_vec();
    let of = |step: usize| {
        let found = dependencies(&workflow.steps[step], &ended);
        found.into_iter().map(|result| result.step_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(3), ["c", "a"]);
    assert_eq!(of(0), [""; 0]);
    assert_eq!(dependencies(&workflow.steps[3], &ended[..1]).len(), 1);
}

#[test]
fn the_carry_summary_says_how_the_steps_ended_and_what_was_said() {
    let workflow = checked("fix; test after fix; ship after test").workflow;
    let results = [
        result("fix", StepStatus::Succeeded, "done"),
        result("test", StepStatus::Failed, ""),
        StepResult::skipped("ship", &["test"]),
    ];
    let no = Completion::not_done("a test fails");
    insta::assert_snapshot!(carry_summary(&workflow, &results, &no), @"
    Previous workflow: wf
    Step statuses:
    - fix: succeeded (session s-fix)
    - test: failed (session s-test)
    - ship: skipped (session )
    Reviewer: not done (a test fails)
    ");
    let yes = Completion { done: true, summary: Some("s".into()), ..Completion::default() };
    assert_eq!(
        carry_summary(&workflow, &[], &yes),
        "Previous workflow: wf\nStep statuses:\nReviewer: done"
    );
    let long = Completion::not_done("x".repeat(1 << 20));
    assert!(carry_summary(&workflow, &[], &long).len() < 9 << 10);
}

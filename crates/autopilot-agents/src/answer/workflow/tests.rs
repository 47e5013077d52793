//! Workflows and judgements on completion as agents give them, and the readings of them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::answer::without_nulls;
use crate::answer::{AgentAnswer, Completion, Workflow, strict_form};

const WORKFLOW: &str = r#"{"version":1,"id":"wf","steps":[
    {"id":"test","goal":"use the tester skill.","dependsOn":["fix"],"adapter":null},
    {"id":"fix","goal":"use the task-executor skill."}]}"#;
const YES: &str = r#"{"done":true,"summary":"all of it"}"#;
const NO: &str = r#"{"done":false,"reason":"a test fails"}"#;

fn rules() -> WorkflowRules {
    WorkflowRules::new(["claude", "codex"])
}

fn lines(faults: &[AnswerFault]) -> String {
    faults.iter().map(AnswerFault::to_string).collect::<Vec<_>>().join("\n")
}

fn workflow(text: &str) -> String {
    match read_workflow(text, None, &rules()) {
        Ok(checked) => {
            let ids = checked.order.iter().map(|at| checked.workflow.steps[*at].id.as_str());
            ids.collect::<Vec<_>>().join(" ")
        }
        Err(faults) => lines(&faults),
    }
}

fn completion(text: &str) -> String {
    match read_completion(text, None, &rules()) {
        Ok(assessed) => serde_json::to_string(&assessed.completion).unwrap(),
        Err(faults) => lines(&faults),
    }
}

#[test]
fn a_workflow_is_found_in_prose_and_fences_and_comes_out_in_order() {
    for text in [
        WORKFLOW.to_owned(),
        format!("Here it is:\n```json\n{WORKFLOW}\n```\nGood luck {{really}}!"),
        format!("{{\"steps\":[]}} or rather\n{WORKFLOW}\n{{\"cost\":1}}"),
    ] {
        assert_eq!(workflow(&text), "fix test", "{text}");
    }
}

#[test]
fn all_that_is_wrong_with_a_workflow_is_told_once() {
    let text = r#"Sure: {"id":"wf","id":"wf","steps":[
        {"id":"a b","goal":"","dependsOn":["b"]},
        {"id":"b","goal":"use the x skill","dependsOn":["a b"],"timeoutSec":0}]} {"cost":1}"#;
    insta::assert_snapshot!(workflow(text), @r#"
    /id: this key is given twice
    /version: `version` is missing; write "version": 1
    /steps/0/goal: `goal` is empty
    /steps/1/timeoutSec: `0` is not a valid time limit; write whole seconds from 1 to 86400, or leave it out
    /steps/0/id: `a b` is not a valid id; use 1 to 56 of a-z, A-Z, 0-9, `-`, `_` and `.`, starting with a letter or digit, without `..`, `.` or `.lock` at the end
    /steps/0/dependsOn: Workflow stuck: the steps wait for each other in a circle: `a b` → b → `a b`
    "#);
    insta::assert_snapshot!(workflow("I can't do that."), @"there is no JSON object in the answer");
    insta::assert_snapshot!(workflow(&WORKFLOW[..90]), @"the JSON object is cut off before its end");
    assert!(workflow("{\"cost\":1}").ends_with("the workflow has no step; give at least one"));
}

#[test]
fn a_schema_of_the_user_holds_in_addition() {
    let own = AnswerSchema::parse("mine.json", r#"{"required":["risk"]}"#).unwrap();
    let faults = read_workflow(WORKFLOW, Some(&own), &rules()).unwrap_err();
    assert_eq!(lines(&faults), "\"risk\" is a required property");
    let faults = read_completion(YES, Some(&own), &rules()).unwrap_err();
    assert_eq!(lines(&faults), "\"risk\" is a required property");
}

#[test]
fn the_structured_answer_comes_first() {
    let structured: Value = serde_json::from_str(NO).unwrap();
    let given = GivenAnswer { text: YES, structured: Some(&structured) };
    assert!(!read_completion(given, None, &rules()).unwrap().completion.done);
    let odd = json!({ "done": "yes" });
    let given = GivenAnswer { text: YES, structured: Some(&odd) };
    assert!(read_completion(given, None, &rules()).is_err());
    let none = json!({});
    let given = GivenAnswer { text: YES, structured: Some(&none) };
    assert!(read_completion(given, None, &rules()).unwrap().completion.done);
}

#[test]
fn the_last_word_on_completion_counts_or_none() {
    assert_eq!(completion(&format!("the step says \"{NO}\", but: ```\n{YES}\n```")), YES);
    insta::assert_snapshot!(completion(&format!("{NO} no, wait: ```\n{YES}\n```")), @"/done: two judgements that differ: an earlier object says that it is not done");
    let other = r#"The list answers {"id":1,"done":false}, as it should."#;
    assert_eq!(completion(&format!("{other}\n{YES}")), YES, "the value of a product");
    assert_eq!(completion(&format!("The step says `{NO}`, but:\n{YES}")), YES);
    assert_eq!(completion(&format!("It is not:\n`{NO}`")), NO, "the last word in backticks");
    for fence in [format!("```json\n{NO}\n```"), format!("```{NO}```")] {
        let told = completion(&format!("{fence}\nno, wait:\n{YES}"));
        assert!(told.contains("two judgements"), "a fence is no quotation: {told}");
    }
    assert_eq!(completion(&format!("{YES} no, wait: {NO} {{\"cost\":1}}")), NO);
    insta::assert_snapshot!(completion(&format!("{YES} no, wait: {{\"done\":false}}")), @"/reason: say in `reason` why the task is not done");
    insta::assert_snapshot!(completion(&format!("such as {YES}\n{{\"done\":false,\"reason\":\"x")), @"the last JSON object with a `done` member can't be read");
    let inside = format!("{{\"done\":false,\"example\":{YES},");
    insta::assert_snapshot!(completion(&inside), @"the JSON object is cut off before its end");
    insta::assert_snapshot!(completion("All done, I say."), @"there is no JSON object in the answer");
}

#[test]
fn what_can_t_be_read_is_not_done() {
    let after_all = |text: &str| {
        let faults = read_completion(text, None, &rules()).unwrap_err();
        let Assessed { completion, next, .. } = completion_after_all(text, &faults);
        assert!(!completion.done && next.is_none(), "{text}");
        completion.reason.unwrap()
    };
    insta::assert_snapshot!(after_all("All done."), @"the answer could not be read: there is no JSON object in the answer");
    insta::assert_snapshot!(after_all(r#"{"done":"true","summary":"s"}"#), @"the answer could not be read: /done: `done` is missing or not true or false");
    insta::assert_snapshot!(after_all(&format!("{NO} {{\"done\":false,\"reason\":\"it is")), @"the answer could not be read: the last JSON object with a `done` member can't be read");
    assert_eq!(
        after_all(r#"{"done":false,"reason":"a test fails","nextWorkflow":{"version":1}}"#),
        "a test fails"
    );
}

#[test]
fn the_schemas_say_the_same_of_workflows() {
    let alone: Value = serde_json::from_str(Workflow::SCHEMA_JSON).unwrap();
    let within: Value = serde_json::from_str(Completion::SCHEMA_JSON).unwrap();
    for key in ["type", "properties", "required"] {
        assert_eq!(alone[key], within["$defs"]["workflow"][key], "{key}");
    }
    let strict = strict_form(&within);
    assert_eq!(
        strict["required"],
        json!(["done", "summary", "reason", "nextWorkflow", "accepted_tests"])
    );
    let strict = AnswerSchema::parse("strict", &strict.to_string()).unwrap();
    let nulls = json!({ "done": true, "summary": "s", "reason": null, "nextWorkflow": null, "accepted_tests": null });
    assert_eq!(strict.faults(&nulls), []);
    let value: Value = serde_json::from_str(WORKFLOW).unwrap();
    assert_eq!(Workflow::schema().unwrap().faults(&without_nulls(value)), []);
}

/// The numbers of steps, the dependency of the first step, and an id to try.
fn tried(steps: usize, on: &str, id: &str) -> Value {
    let step = |n: usize| match n {
        0 => json!({ "id": id, "goal": "g", "dependsOn": [on] }),
        n => json!({ "id": format!("s{n}"), "goal": "g" }),
    };
    json!({ "version": 1, "id": "wf", "steps": (0..steps).map(step).collect::<Vec<_>>() })
}

proptest! {
    #[test]
    fn what_the_rules_take_the_schema_takes(
        steps in 0..9_usize, on in "s[0-9]", id in "[a-zA-Z0-9._ -]{0,4}",
    ) {
        let value = tried(steps, &on, &id);
        if check(&value, &rules()).is_ok() {
            prop_assert_eq!(Workflow::schema().unwrap().faults(&value), []);
            let no = json!({ "done": false, "reason": "r", "nextWorkflow": value });
            prop_assert_eq!(Completion::schema().unwrap().faults(&no), []);
        }
    }

    #[test]
    fn reading_never_panics_and_a_yes_is_said_plainly(
        text in r#"([{}\[\]",: \n`]|"done":|true|false|"reason":"r"|"summary":"s"|,|\{"done":true\})*"#,
    ) {
        let _ = read_workflow(text.as_str(), None, &rules());
        match read_completion(text.as_str(), None, &rules()) {
            Ok(assessed) if assessed.completion.done => {
                prop_assert!(text.contains("\"done\":") && text.contains("true"));
            }
            Ok(_) => {}
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                prop_assert!(!completion_after_all(text.as_str(), &faults).completion.done);
            }
        }
    }
}

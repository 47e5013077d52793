//! Answers as agents give them, and the values or faults read from them.

use proptest::prelude::*;

use super::*;
use autopilot_core::event::Verdict;

const APPROVE: &str = r#"{"verdict":"APPROVE","summary":"fine","issues":[]}"#;

fn review(text: &str) -> String {
    match read::<ReviewAnswer>(text, None) {
        Ok(review) => format!("{:?} {} ({})", review.verdict, review.summary, review.issues.len()),
        Err(faults) => faults.iter().map(AnswerFault::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn an_answer_is_found_in_prose_fences_and_noise() {
    let table = [
        APPROVE.to_owned(),
        format!("Here it is:\n```json\n{APPROVE}\n```\nHope that helps {{really}}!"),
        format!("{{\"type\":\"log\"}}\n{{\"type\":\"log\",\"n\":2}}\n{APPROVE}\n{{\"cost\":1}}\n"),
        format!("use {{ and \" with care {{{{x}}}}: {APPROVE}"),
        format!("{{ broken, {APPROVE}"),
        format!("{}{APPROVE}", "[".repeat(5000)),
        "{\n  \"verdict\": \"APPROVE\",\n  \"summary\": \"fine\",\n  \"issues\": [],\n \"more\": 1 }"
            .to_owned(),
    ];
    for text in table {
        assert_eq!(review(&text), "Approve fine (0)", "{text}");
    }
}

#[test]
fn the_last_object_that_is_valid_wins() {
    let later = r#"{"verdict":"APPROVE","summary":"second","issues":[]}"#;
    assert_eq!(
        review(&format!("{APPROVE}\nNo, wait:\n{later}\n{{\"x\":1}}")),
        "Approve second (0)"
    );
}

#[test]
fn a_request_without_issues_and_an_unknown_verdict_are_faults() {
    let no_issues = r#"{"verdict":"REQUEST_CHANGES","summary":"bad","issues":[]}"#;
    insta::assert_snapshot!(review(no_issues), @"/issues: [] has less than 1 item");
    let all_wrong = r#"{"verdict":"MAYBE","summary":3,"issues":[{"severity":"fatal","line":0}]}"#;
    insta::assert_snapshot!(review(all_wrong), @r#"
    /verdict: "MAYBE" is not one of "APPROVE" or "REQUEST_CHANGES"
    /summary: 3 is not of type "string"
    /issues/0: "message" is a required property
    /issues/0: "fix" is a required property
    /issues/0/severity: "fatal" is not one of "blocker", "major" or "minor"
    /issues/0/line: 0 is less than the minimum of 1
    "#);
}

#[test]
fn what_cannot_be_read_says_why() {
    insta::assert_snapshot!(review("All good, approved."), @"there is no JSON object in the answer");
    let cut = r#"{"verdict":"APPROVE","summary":"fine","issues":[{"severity":"minor"},"#;
    insta::assert_snapshot!(review(cut), @"the JSON object is cut off before its end");
    let comma = r#"Sure: {"verdict":"APPROVE","summary":"fine","issues":[],}"#;
    insta::assert_snapshot!(review(comma), @"the JSON object cannot be read: trailing comma at line 1 column 51 of the object");
    let twice = r#"{"verdict":"REQUEST_CHANGES","verdict":"APPROVE","summary":"","issues":[]}"#;
    insta::assert_snapshot!(review(twice), @"/verdict: this key is given twice");
}

#[test]
fn a_member_that_is_null_is_absent() {
    let nulls = r#"{"verdict":"REQUEST_CHANGES","summary":"s","issues":[
        {"severity":"major","message":"m","fix":"f","file":null,"line":null}]}"#;
    let issue = &read::<ReviewAnswer>(nulls, None).unwrap().issues[0];
    assert_eq!((issue.file.clone(), issue.line), (None, None));
}

#[test]
fn a_schema_of_the_user_holds_in_addition() {
    let user = AnswerSchema::parse("mine.json", r#"{"required":["risk"]}"#).unwrap();
    let faults = read::<ReviewAnswer>(APPROVE, Some(&user)).unwrap_err();
    assert_eq!(faults, [AnswerFault::new("", "\"risk\" is a required property")]);
    let with_risk = APPROVE.replace("\"issues\"", "\"risk\":1,\"issues\"");
    assert!(read::<ReviewAnswer>(&*with_risk, Some(&user)).is_ok());
    let wrong = AnswerSchema::parse("mine.json", "{").unwrap_err().to_string();
    assert!(wrong.starts_with("cannot read JSON Schema `mine.json`"), "{wrong}");
    let remote = AnswerSchema::parse("mine.json", r#"{"$ref":"https://example.invalid/s.json"}"#);
    assert!(remote.unwrap_err().to_string().starts_with("cannot use JSON Schema `mine.json`"));
}

#[test]
fn the_structured_answer_comes_first_and_is_not_believed_blindly() {
    let good: Value = serde_json::from_str(APPROVE).unwrap();
    let given = GivenAnswer { text: "prose", structured: Some(&good) };
    assert_eq!(read::<ReviewAnswer>(given, None).unwrap().verdict, Verdict::Approve);
    let bad = serde_json::json!({ "verdict": "APPROVE" });
    let given = GivenAnswer { text: "prose", structured: Some(&bad) };
    assert_eq!(read::<ReviewAnswer>(given, None).unwrap_err().len(), 2);
    let given = GivenAnswer { text: APPROVE, structured: Some(&bad) };
    assert!(read::<ReviewAnswer>(given, None).is_ok());
}

#[test]
fn a_plan_is_read_with_all_it_may_have() {
    let plan = r#"{"plan_summary":"two","tasks":[
        {"id":"a","title":"A","goal":"g","acceptance_criteria":["x"],"depends_on":[]},
        {"id":"b","title":"B","goal":"g","acceptance_criteria":["x"],"depends_on":["a"],
         "validation_commands":{"tests":"make test"},"suggested_subagents":["x",{"name":"y"}]}],
        "edges":[{"from":"a","to":"b","reason":"r"}],"test_plan":"- all"}"#;
    let plan = read::<Plan>(plan, None).unwrap();
    assert_eq!(plan.tasks[1].depends_on, ["a"]);
    assert_eq!(plan.tasks[1].validation_commands.tests.as_deref(), Some("make test"));
    assert_eq!(plan.test_plan.as_deref(), Some("- all"));
}

#[test]
fn a_plan_s_faults_are_all_named() {
    let plan = r#"{"plan_summary":"p","tasks":[
        {"id":"../x","title":"A","goal":"g","acceptance_criteria":[],"depends_on":"a"}]}"#;
    let faults = read::<Plan>(plan, None).unwrap_err();
    let lines: Vec<String> = faults.iter().map(AnswerFault::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    /tasks/0/id: "../x" does not match "^[a-z0-9][a-z0-9-]{0,62}$"
    /tasks/0/acceptance_criteria: [] has less than 1 item
    /tasks/0/depends_on: "a" is not of type "array"
    "#);
    let none = r#"{"plan_summary":"p","tasks":[]}"#;
    assert_eq!(read::<Plan>(none, None).unwrap_err()[0].pointer, "/tasks");
}

const ROOMY: fn() -> autopilot_core::plan::PlanRules = || autopilot_core::plan::PlanRules {
    tasks_max: 100,
    depth_max: 10,
    fan_out_max: 10,
    allowed_paths: Vec::new(),
    deny_paths: Vec::new(),
    commands_allowed: false,
    serialize_overlapping: true,
    taken: std::collections::BTreeMap::new(),
};

fn planned(text: &str) -> String {
    match read_plan(text, None, &ROOMY()) {
        Ok((_, checked)) => {
            checked.tasks.iter().map(|t| t.task.id.as_str()).collect::<Vec<_>>().join(" ")
        }
        Err(faults) => faults.iter().map(AnswerFault::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn a_plan_comes_out_in_an_order_it_can_be_worked_in() {
    let plan = r#"Here: {"plan_summary":"two","tasks":[
        {"id":"b","title":"B","goal":"g","acceptance_criteria":["x"],"depends_on":["a"],
         "priority":7,"expand":true},
        {"id":"a","title":"A","goal":"g","acceptance_criteria":["x"],"depends_on":[]}]}"#;
    assert_eq!(planned(plan), "a b");
    let (plan, _) = read_plan(plan, None, &ROOMY()).unwrap();
    assert_eq!((plan.tasks[0].priority, plan.tasks[0].expand), (7, true));
}

#[test]
fn faults_of_the_schema_and_of_the_graph_are_told_together_and_once() {
    let plan = r#"{"plan_summary":"p","tasks":[
        {"id":"A","title":"A","goal":"g","acceptance_criteria":["x"],"depends_on":["b"]},
        {"id":"b","title":"B","goal":"g","acceptance_criteria":["x"],"depends_on":["A"],
         "priority":5000}]}"#;
    insta::assert_snapshot!(planned(plan), @r#"
    /tasks/1/priority: 5000 is greater than the maximum of 1000
    /tasks/0/id: `A` is not a valid id; use 1 to 63 of a-z, 0-9 and `-`, not starting with `-`, and put text for people into `title`
    /tasks/0/depends_on: the tasks wait for each other in a circle: A → b → A
    "#);
    insta::assert_snapshot!(planned("I can't plan that."), @"there is no JSON object in the answer");
}

#[test]
fn a_summary_is_tolerant_of_what_is_missing_and_what_is_more() {
    let short = r#"{"changed_files":["a"],"notes":"n","mood":"good"}"#;
    let summary = read::<Summary>(short, None).unwrap();
    assert_eq!((summary.tests_passed, summary.commands_ran.len()), (None, 0));
    let full = r#"{"changed_files":[],"commands_ran":[{"cmd":"make","exit_code":2}],
        "tests_ran":true,"tests_passed":false,"uat_ran":false,"uat_passed":false,"skills_used":[],
        "subagents_used":[{"name":"s","purpose":"p"}],"mcp_servers_used":["m"],"notes":"","risks":"r"}"#;
    let summary = read::<Summary>(full, None).unwrap();
    assert_eq!(summary.commands_ran[0].exit_code, Some(2));
    let wrong = r#"{"changed_files":"a","tests_ran":"yes","notes":"n"}"#;
    assert_eq!(read::<Summary>(wrong, None).unwrap_err().len(), 2);
}

#[test]
fn the_repair_prompt_names_every_fault_up_to_its_limit() {
    let faults = [
        AnswerFault::new("/verdict", "is wrong"),
        AnswerFault::new("", "task b depends on itself"),
    ];
    insta::assert_snapshot!(repair_prompt(&faults, "{\"type\":\"object\"}\n"), @r#"
    Your last answer could not be used:
    - /verdict: is wrong
    - task b depends on itself

    Do no further work. Correct all of this and return JSON only: one object, no prose, no code fence, valid against this JSON Schema:
    {"type":"object"}
    "#);
    let many = vec![AnswerFault::new("", "x"); FAULTS_MAX + 3];
    let prompt = repair_prompt(&many, "{}");
    assert!(prompt.contains("- and 3 more"));
    assert_eq!(prompt.matches("- x\n").count(), FAULTS_MAX);
    assert!(AnswerFault::new("", "x".repeat(9999)).what.len() < 2 * FAULT_BYTES_MAX);
}

#[test]
fn nesting_is_bounded_and_never_overflows_the_stack() {
    let nested =
        |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert_eq!(dig(&nested(DEPTH_MAX)).unwrap().objects.len(), 1);
    let too_deep = dig(&nested(DEPTH_MAX + 1)).unwrap();
    assert_eq!(too_deep.objects.len(), 0);
    assert!(too_deep.broken.unwrap().what.contains("recursion limit"));
    for text in ["{\"a\":".repeat(100_000), "[".repeat(100_000), "{\"a\":[".repeat(100_000)] {
        assert_eq!(dig(&text).unwrap().objects.len(), 0);
    }
    let closed = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert!(review(&closed).contains("recursion limit"));
}

#[test]
fn size_number_of_objects_and_numbers_are_bounded() {
    let long = "x".repeat(ANSWER_BYTES_MAX + 1);
    assert!(review(&long).contains("more than"));
    let dug = dig(&"{\"n\":1}".repeat(3 * OBJECTS_MAX)).unwrap();
    assert_eq!(dug.objects.len(), OBJECTS_MAX);
    assert!(dig("{\"n\":1e999}").unwrap().broken.is_some());
    let twice = format!("{{{}}}", vec!["\"a\":1"; 5000].join(","));
    assert!(dig(&twice).unwrap().broken.unwrap().what.contains("twice"));
}

proptest! {
    #[test]
    fn digging_never_panics_and_ends(text in r#"([{}\[\]",:\\a1 \n`]|null|\{"a":|"verdict")*"#) {
        let _ = dig(&text);
        let _ = markdown(&text);
    }

    #[test]
    fn an_object_is_found_between_any_words(before in "[^{}\"]*", after in "[^{}]*", n: u32) {
        let text = format!("{before}{{\"n\":{n}}}{after}");
        let dug = dig(&text).unwrap();
        prop_assert_eq!(&dug.objects[0].value, &serde_json::json!({ "n": n }));
    }
}

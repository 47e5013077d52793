//! The rules of workflows, each by its name, and proof that no JSON gets past them or breaks them.

use proptest::prelude::*;

use super::*;

#[test]
fn a_good_workflow_comes_out_as_it_was_given_with_an_order() {
    let given = json!({ "version": 1, "id": "fix-auth", "steps": [
        { "id": "test", "goal": "use the tester skill. Test it", "dependsOn": ["fix"],
          "type": "agent.run", "adapter": "codex", "model": "gpt-5.2-codex", "timeoutSec": 600 },
        { "id": "fix", "goal": "use the task-executor skill. Fix it" } ] });
    let checked = check(&given, &rules()).unwrap();
    assert_eq!((checked.order, checked.urgency), (vec![1, 0], vec![1, 2]));
    assert_eq!(checked.warnings, [""; 0]);
    let test = &checked.workflow.steps[0];
    assert_eq!(test.depends_on, ["fix"]);
    assert_eq!((test.adapter.as_deref(), test.timeout_sec), (Some("codex"), Some(600)));
    assert_eq!(checked.workflow.steps[1].adapter, None);
}

#[test]
fn every_fault_is_told_at_once() {
    let all = json!({ "version": 2, "steps": [
        { "id": "a", "goal": " ", "dependsOn": ["b"], "adapter": "gpt", "timeoutSec": 0 },
        { "id": "b", "goal": "use the x skill", "dependsOn": ["a", "z"], "model": "--unsafe" },
        { "id": "../x", "goal": 3, "type": "shell.run", "dependsOn": "a" },
        7,
        { "id": "a", "goal": "use the x skill" } ] });
    insta::assert_snapshot!(faults(&all), @r#"
    /version: unknown version `2`; write "version": 1
    /id: `id` is missing
    /steps/0/goal: `goal` is empty
    /steps/0/adapter: there is no adapter `gpt`; the adapters are `claude`, `codex`
    /steps/0/timeoutSec: `0` is not a valid time limit; write whole seconds from 1 to 86400, or leave it out
    /steps/1/model: `--unsafe` is not a valid model name
    /steps/2/goal: it is a number, not a text
    /steps/2/dependsOn: it is a text, not a list of texts
    /steps/2/type: a step can't be `shell.run`; write `agent.run` or leave it out
    /steps/3: it is a number, not a step
    /steps/2/id: `../x` is not a valid id; use 1 to 56 of a-z, A-Z, 0-9, `-`, `_` and `.`, starting with a letter or digit, without `..`, `.` or `.lock` at the end
    /steps/4/id: two steps have the id `a` (/steps/0)
    /steps/1/dependsOn: Workflow stuck: step `b` depends on `z`, which is not one of its steps; the steps are `a`, `b`, `../x`, `a`
    /steps/0/dependsOn: Workflow stuck: the steps wait for each other in a circle: a → b → a
    "#);
}

#[test]
fn a_version_other_than_the_one_there_is_is_a_fault() {
    let version = |version: Value| {
        let mut given = workflow("a");
        given["version"] = version;
        check(&given, &rules()).map(|checked| checked.workflow.version)
    };
    assert_eq!(version(json!(1)), Ok(1));
    assert_eq!(version(json!(1.0)), Ok(1));
    let said = |given| lines(&version(given).unwrap_err());
    assert_eq!(said(json!(2)), "/version: unknown version `2`; write \"version\": 1");
    assert_eq!(said(json!("1")), "/version: unknown version `\"1\"`; write \"version\": 1");
    assert_eq!(said(Value::Null), "/version: `version` is missing; write \"version\": 1");
}

#[test]
fn a_workflow_without_an_id_or_steps_is_a_fault() {
    assert_eq!(
        faults(&json!({ "version": 1, "id": " ", "steps": [] })),
        "/id: `id` is empty\n/steps: the workflow has no step; give at least one"
    );
    assert_eq!(
        faults(&json!({ "version": 1, "id": "x\u{1b}[2J", "steps": {} })),
        "/id: it has a control character; write one line of text\n\
         /steps: it is an object, not a list of steps"
    );
    for (json, kind) in [(json!([]), "a list"), (json!("x"), "a text"), (Value::Null, "nothing")] {
        assert_eq!(faults(&json), format!("the workflow is {kind}, not an object"));
    }
}

#[test]
fn more_steps_than_allowed_are_a_fault_and_of_a_next_workflow_fewer() {
    let many = |count: usize| {
        let ids: Vec<String> = (0..count).map(|n| format!("s{n}")).collect();
        workflow(&ids.join(";"))
    };
    assert!(check(&many(STEPS_MAX), &rules()).is_ok());
    assert_eq!(
        faults(&many(STEPS_MAX + 1)),
        "/steps: the workflow has 9 steps; the limit is 8; combine some"
    );
    assert!(check(&many(NEXT_STEPS_MAX), &rules().of_next()).is_ok());
    assert!(check(&many(NEXT_STEPS_MAX + 1), &rules().of_next()).is_err());
    assert_eq!(WorkflowRules { steps_max: 2, ..rules() }.of_next().steps_max, 2);
}

#[test]
fn ids_are_unique_also_where_case_does_not_count() {
    assert_eq!(faults(&workflow("a; b; a")), "/steps/2/id: two steps have the id `a` (/steps/0)");
    assert_eq!(
        faults(&workflow("Fix; fix")),
        "/steps/1/id: `fix` and `Fix` (/steps/0) differ only by case"
    );
}

#[test]
fn ids_are_safe_as_names_of_branches_and_leave_room_for_the_iteration() {
    for id in ["a", "A1", "fix_auth", "v1.2", "9", "a-i", "ai2", "run-1", "i2"] {
        assert!(check(&with("x", "id", json!(id)), &rules()).is_ok(), "{id}");
    }
    let long = "x".repeat(STEP_ID_CHARS_MAX + 1);
    let bad = [
        "../x",
        "a b",
        "-rf",
        ".git",
        "a..b",
        "a.",
        "a.lock",
        "a/b",
        "ä",
        "a\n",
        "@",
        "a~1",
        &long,
        "fix-i2",
        "fix-I10",
        "run-20260131-1",
        "RUN-20260131",
        "run",
        "Run",
    ];
    for id in bad {
        let said = faults(&with("x", "id", json!(id)));
        assert!(said.starts_with("/steps/0/id: `"), "{id}: {said}");
    }
    let longest = "x".repeat(STEP_ID_CHARS_MAX);
    assert!(task_name(&longest, 99_999).len() <= ID_CHARS_MAX);
    assert_eq!((task_name("a", 1), task_name("a", 2)), ("a".to_owned(), "a-i2".to_owned()));
    insta::assert_snapshot!(faults(&with("x", "id", json!("fix-i2"))), @"/steps/0/id: `fix-i2` looks like the name of a step of a later iteration; choose another");
}

#[test]
fn a_dependency_that_is_no_step_sticks() {
    assert_eq!(
        faults(&workflow("research; fix after reserch")),
        "/steps/1/dependsOn: Workflow stuck: step `fix` depends on `reserch`, which is not one \
         of its steps; the steps are `research`, `fix`; did you mean `research`?"
    );
}

#[test]
fn a_step_that_depends_on_itself_sticks() {
    assert_eq!(
        faults(&workflow("a; b after b a")),
        "/steps/1/dependsOn: Workflow stuck: step `b` depends on itself"
    );
}

#[test]
fn a_circle_is_told_with_its_path() {
    let said = "Workflow stuck: the steps wait for each other in a circle";
    assert_eq!(
        faults(&workflow("x; a after c; b after a; c after b; d after c")),
        format!("/steps/1/dependsOn: {said}: a → b → c → a")
    );
    let odd = faults(&workflow("\u{1b}a after b; b after \u{1b}a"));
    assert!(odd.ends_with(&format!("{said}: `\\u{{1b}}a` → b → `\\u{{1b}}a`")), "{odd}");
}

#[test]
fn a_goal_is_there_and_not_too_long() {
    assert_eq!(faults(&with("a", "goal", json!(" \n"))), "/steps/0/goal: `goal` is empty");
    assert_eq!(faults(&with("a", "goal", Value::Null)), "/steps/0/goal: `goal` is missing");
    assert_eq!(faults(&with("a", "goal", json!(["x"]))), "/steps/0/goal: it is a list, not a text");
    let said = faults(&with("a", "goal", json!("x".repeat(crate::plan::GOAL_BYTES_MAX + 1))));
    assert_eq!(said, "/steps/0/goal: it has 65537 bytes, the limit is 65536; shorten it");
}

#[test]
fn an_adapter_is_one_of_those_there_are() {
    assert!(check(&with("a", "adapter", json!("claude")), &rules()).is_ok());
    assert_eq!(
        faults(&with("a", "adapter", json!("Claude"))),
        "/steps/0/adapter: there is no adapter `Claude`; the adapters are `claude`, `codex`; did \
         you mean `claude`?"
    );
    let none = check(&with("a", "adapter", json!("x")), &WorkflowRules::new([""; 0])).unwrap_err();
    assert_eq!(lines(&none), "/steps/0/adapter: there is no adapter `x`; leave it out");
}

#[test]
fn an_adapter_that_can_t_be_used_is_a_fault_with_its_reason() {
    let unusable = [("gone".to_owned(), "it is not installed".to_owned())].into();
    let rules = WorkflowRules { unusable, ..rules() };
    let said = lines(&check(&with("a", "adapter", json!("gone")), &rules).unwrap_err());
    assert_eq!(
        said,
        "/steps/0/adapter: the adapter `gone` can't be used here: it is not installed; leave it \
         out or choose one of `claude`, `codex`"
    );
    let prompt = crate::workflow::workflow_prompt(
        &crate::workflow::WorkflowPrompt {
            task: "t",
            carry: None,
            refuted: None,
            faults: &[],
            rules: &rules,
            skills_known: &[],
            schema: "{}",
        },
        CAPS,
    );
    assert!(!prompt.contains("gone"), "it is not offered: {prompt}");
}

#[test]
fn where_money_is_limited_a_step_has_a_price() {
    let prices = Prices {
        asked_of: [("codex".to_owned(), false), ("builder".to_owned(), true)].into(),
        models: ["known".to_owned()].into(),
        usual: "builder".to_owned(),
    };
    let rules = WorkflowRules {
        prices: Some(prices),
        ..WorkflowRules::new(["claude", "codex", "builder"])
    };
    let said = |adapter: Option<&str>, model: Option<&str>| {
        let mut made = workflow("a");
        for (key, value) in [("adapter", adapter), ("model", model)] {
            if let Some(value) = value {
                made["steps"][0][key] = json!(value);
            }
        }
        check(&made, &rules).map(|_| ()).map_err(|faults| lines(&faults))
    };
    let fine = [(None, None), (None, Some("known")), (Some("codex"), Some("known"))];
    // An agent that reports its cost needs no price.
    for (adapter, model) in fine.into_iter().chain([(Some("claude"), Some("other"))]) {
        assert_eq!(said(adapter, model), Ok(()), "{adapter:?} {model:?}");
    }
    assert_eq!(
        said(Some("codex"), None).unwrap_err(),
        "/steps/0/adapter: money is limited here and the cost of this agent is unknown; \
         leave it out"
    );
    for adapter in [None, Some("codex")] {
        assert_eq!(
            said(adapter, Some("other")).unwrap_err(),
            "/steps/0/model: money is limited here and the model `other` has no price; \
             leave it out or choose one of `known`"
        );
    }
}

#[test]
fn a_type_other_than_the_one_there_is_is_a_fault() {
    assert!(check(&with("a", "type", json!("agent.run")), &rules()).is_ok());
    assert_eq!(
        faults(&with("a", "type", json!("shell.run"))),
        "/steps/0/type: a step can't be `shell.run`; write `agent.run` or leave it out"
    );
}

#[test]
fn a_model_can_be_no_option_of_a_command_line() {
    for model in ["claude-sonnet-4-20250514", "openai/gpt-5", "a:b"] {
        assert!(check(&with("a", "model", json!(model)), &rules()).is_ok(), "{model}");
    }
    for model in ["", "-p", "--dangerously-skip", "a b", " "] {
        assert_eq!(
            faults(&with("a", "model", json!(model))),
            format!("/steps/0/model: `{model}` is not a valid model name")
        );
    }
    assert!(check(&with("a", "model", json!("x".repeat(201))), &rules()).is_err());
}

#[test]
fn a_time_limit_is_whole_seconds_up_to_its_own_limit() {
    for (given, taken) in [(json!(1), Some(1)), (json!(60.0), Some(60)), (Value::Null, None)] {
        let checked = check(&with("a", "timeoutSec", given), &rules()).unwrap();
        assert_eq!(checked.workflow.steps[0].timeout_sec, taken);
    }
    assert!(check(&with("a", "timeoutSec", json!(TIMEOUT_SEC_MAX)), &rules()).is_ok());
    let over = TIMEOUT_SEC_MAX + 1;
    for given in [json!(0), json!(-1), json!(1.5), json!("60"), json!(over), json!(1e300)] {
        let said = faults(&with("a", "timeoutSec", given.clone()));
        assert_eq!(
            said,
            format!(
                "/steps/0/timeoutSec: `{given}` is not a valid time limit; write whole seconds from 1 to \
                 86400, or leave it out"
            )
        );
    }
}

#[test]
fn what_is_not_known_is_a_warning() {
    let mut given = with("a", "owner", json!("me"));
    given["name"] = json!("x");
    given["stepz"] = json!([]);
    insta::assert_snapshot!(warnings(&given), @"
    `name` of the workflow is unknown and ignored
    `stepz` of the workflow is unknown and ignored; did you mean `steps`?
    `owner` of step `a` is unknown and ignored
    ");
    let plain = with("a", "goal", json!("Fix it"));
    assert_eq!(warnings(&plain), "the goal of step `a` names no skill");
}

#[test]
fn a_dependency_is_not_lost_over_its_spelling() {
    let given = json!({ "version": 1, "id": "wf", "steps": [
        { "id": "b", "goal": "use the x skill", "depends_on": ["a"], "timeout_sec": 5 },
        { "id": "a", "goal": "use the x skill" } ] });
    let checked = check(&given, &rules()).unwrap();
    assert_eq!((checked.order, checked.workflow.steps[0].timeout_sec), (vec![1, 0], Some(5)));
    insta::assert_snapshot!(checked.warnings.join("\n"), @"
    `depends_on` of step `b` is read as `dependsOn`
    `timeout_sec` of step `b` is read as `timeoutSec`
    ");
    let both = with("a; b", "depends_on", json!(["b"]));
    assert_eq!(check(&both, &rules()).unwrap().workflow.steps[0].depends_on, [""; 0]);
    assert_eq!(
        warnings(&both),
        "`depends_on` of step `a` is unknown and ignored; did you mean `dependsOn`?"
    );
}

#[test]
fn a_dependency_said_twice_is_one() {
    let twice = workflow("a; b after a a");
    assert_eq!(check(&twice, &rules()).unwrap().workflow.steps[1].depends_on, ["a"]);
    assert_eq!(warnings(&twice), "step `b` lists its dependency `a` twice");
}

#[test]
fn faults_and_warnings_are_limited() {
    let odd = json!({ "version": 1, "id": "wf", "steps": vec![json!({}); 500] });
    let found = check(&odd, &rules()).unwrap_err();
    assert_eq!(found.len(), crate::plan::FAULTS_MAX);
    assert_eq!(found.last().unwrap().what, "and 962 more faults of these kinds");
    let mut given = workflow("a");
    for n in 0..500 {
        given[format!("key number {n}")] = json!(n);
    }
    assert_eq!(check(&given, &rules()).unwrap().warnings.len(), crate::plan::NOTES_MAX);
}

/// A check that compared every name with every other would take minutes here.
#[test]
fn the_largest_answers_are_gone_through_once() {
    const MANY: usize = 20_000;
    let mut given = workflow("a; b");
    for n in 0..MANY {
        given[format!("key{n}")] = json!(n);
    }
    let names: Vec<String> = (0..MANY).map(|n| format!("s{n}")).collect();
    given["steps"][0]["dependsOn"] = json!([names.clone(), names.clone()].concat());
    let found = check(&given, &rules()).unwrap_err();
    assert_eq!(found.len(), crate::plan::FAULTS_MAX);
    assert!(check(&workflow(&names.join(";")), &rules()).is_err());
}

/// JSON that looks like a workflow more often than not.
fn likely() -> impl Strategy<Value = Value> {
    let odd = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,9}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
    ];
    let or_odd =
        move |good: BoxedStrategy<Value>| prop_oneof![30 => good, 1 => odd.clone()].boxed();
    let text = |pattern: &'static str| or_odd(pattern.prop_map(Value::from).boxed());
    let ids = proptest::collection::vec(or_odd("[a-e]".prop_map(Value::from).boxed()), 0..2);
    let step = proptest::collection::hash_map(
        prop_oneof![Just("id"), Just("goal"), Just("dependsOn"), Just("depends_on"), Just("type")],
        text("[a-e]"),
        0..2,
    );
    let step = (text("[a-e]"), text("[a-z ]{1,9}"), ids, step, any::<bool>()).prop_map(
        |(id, goal, on, more, is_plain)| {
            let mut step = json!({ "id": id, "goal": goal, "dependsOn": on });
            if !is_plain {
                more.into_iter().for_each(|(key, value)| step[key] = value);
            }
            step
        },
    );
    let steps = proptest::collection::vec(or_odd(step.boxed()), 1..6).prop_map(Value::from);
    (or_odd(Just(json!(1)).boxed()), text("[a-z]{1,9}"), or_odd(steps.boxed()))
        .prop_map(|(version, id, steps)| json!({ "version": version, "id": id, "steps": steps }))
}

proptest! {
    #[test]
    fn what_is_accepted_has_an_order_and_reads_back(given in likely()) {
        if let Ok(CheckedWorkflow { workflow, order, urgency, .. }) = check(&given, &rules()) {
            let mut done = BTreeSet::new();
            for place in &order {
                let step = &workflow.steps[*place];
                prop_assert!(step.depends_on.iter().all(|on| done.contains(on.as_str())));
                prop_assert!(done.insert(step.id.as_str()), "{} twice", step.id);
            }
            prop_assert_eq!((done.len(), urgency.len()), (workflow.steps.len(), order.len()));
            let written = serde_json::to_value(&workflow).unwrap();
            let again = check(&written, &rules()).unwrap();
            prop_assert_eq!(&again.workflow, &workflow);
            prop_assert_eq!(serde_json::from_value::<Workflow>(written).unwrap(), workflow);
        }
    }

    #[test]
    fn a_workflow_is_refused_exactly_when_it_can_t_be_worked(
        edges in proptest::collection::vec((0..6_usize, 0..7_usize), 0..9),
    ) {
        let after = |step: usize| {
            let on = edges.iter().filter(move |edge| edge.0 == step);
            on.map(|edge| format!("s{}", edge.1)).collect::<Vec<_>>().join(" ")
        };
        let steps: Vec<String> = (0..6).map(|n| format!("s{n} after {}", after(n))).collect();
        // The steps that can be done are done, over and over, until none is left.
        let mut done = BTreeSet::new();
        for _ in 0..6 {
            let can = |n: &usize| edges.iter().all(|edge| edge.0 != *n || done.contains(&edge.1));
            let more: Vec<usize> = (0..6).filter(can).collect();
            done.extend(more);
        }
        let checked = check(&workflow(&steps.join(";")), &rules());
        prop_assert_eq!(checked.is_ok(), done.len() == 6, "{:?}", checked);
    }

    #[test]
    fn no_json_makes_the_check_panic(given in proptest::arbitrary::any::<Vec<u8>>(), it in likely()) {
        let _ = check(&it, &WorkflowRules { steps_max: 0, timeout_sec_max: 0, ..WorkflowRules::new([""; 0]) });
        if let Ok(value) = serde_json::from_slice::<Value>(&given) {
            let _ = check(&value, &rules());
        }
    }
}

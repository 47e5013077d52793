//! The defaults: those of the template, and those of what need not be paid for.

use super::*;
use crate::flaky::FlakyGates;
use crate::gate_order::GateOrder;

#[test]
fn what_is_not_paid_for_is_configurable_and_by_default_all_is() {
    let usual = parsed(MINIMAL);
    assert!(usual.rounds.review_on_red);
    assert_eq!(usual.uat.generate, GenerateCases::Always);
    let text = serde_json::to_string(&usual).unwrap();
    assert!(!text.contains("review_on_red") && !text.contains("\"generate\""), "pinned ones stay");
    let spared =
        parsed(&format!("{MINIMAL}loop: {{ review_on_red: false }}\nuat: {{ generate: auto }}\n"));
    assert!(!spared.rounds.review_on_red);
    assert_eq!(spared.uat.generate, GenerateCases::Auto);
    let text = serde_json::to_string(&spared).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), spared);
    let said = Config::parse(&format!("{MINIMAL}uat: {{ generate: never }}\n")).unwrap_err();
    assert!(
        said.to_string().contains("`uat.generate` is `never`; write one of always, auto"),
        "{said}"
    );
}

#[test]
fn how_gates_run_is_configurable_and_by_default_nothing_is_tried_twice() {
    let usual = parsed(MINIMAL);
    assert_eq!((usual.gates.flaky, usual.rounds.gate_order), Default::default());
    assert!(!usual.commands.parallel && usual.gates.known_flaky.is_empty());
    let text = serde_json::to_string(&usual).unwrap();
    for key in ["flaky", "gate_order", "parallel\""] {
        assert!(!text.contains(key), "older versions read a usual configuration: {key}");
    }
    let (other, warnings) = Config::parse(
        "commands: { tests: t, parallel: true }\nloop: { gate_order: given }\n\
         gates: { flaky: known, known_flaky: [a::b] }\n",
    )
    .unwrap();
    assert_eq!(warnings, []);
    assert_eq!(other.rounds.gate_order, GateOrder::Given);
    assert_eq!((other.gates.flaky, other.commands.parallel), (FlakyGates::Known, true));
    let text = serde_json::to_string(&other).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), other);
    for (gates, told) in [
        ("{ flaky: known }", "list them in `gates.known_flaky`"),
        ("{ known_flaky: [a] }", "only where `gates.flaky` is `known`"),
    ] {
        let text = format!("commands: {{ tests: t }}\ngates: {gates}\n");
        let (_, warnings) = Config::parse(&text).unwrap();
        assert!(warnings.iter().any(|it| it.to_string().contains(told)), "{gates}: {warnings:?}");
    }
}

#[test]
fn without_a_test_command_the_template_asks_for_it_and_nothing_else() {
    let (config, warnings) =
        Config::parse(&template(&Detected::default(), AgentChoice::USUAL)).unwrap();
    assert!(!config.commands.has_tests());
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("`commands.tests` is missing"));
}

/// The commented lines are documentation: uncommented they must be the defaults, too.
#[test]
fn the_commented_lines_of_the_template_are_the_defaults() {
    let text = template(&Detected::default(), AgentChoice::USUAL)
        .replace("tests: \"\"", "tests: \"true\"");
    let uncommented: String = text
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with("# The agents"))
        .filter(|line| {
            !["lint:", "format:", "uat: \"", "uat_dir:", "timeout_sec: 900"]
                .iter()
                .any(|key| line.contains(&format!("# {key}")))
        })
        .map(|line| {
            format!(
                "{}\n",
                line.replacen("# ", "", usize::from(line.trim_start().starts_with('#')))
            )
        })
        .collect();
    let mut config = parsed(&uncommented);
    assert_eq!(config.rounds.step_timeouts_sec.len(), 6);
    for step in Step::ALL {
        assert_eq!(config.timeout(step), parsed(MINIMAL).timeout(step), "{step}");
        assert_eq!(config.retries(step), parsed(MINIMAL).retries(step), "{step}");
    }
    config.rounds = parsed(MINIMAL).rounds;
    assert_eq!(config, parsed(MINIMAL));
}

#[test]
fn what_a_planner_may_propose_is_configurable() {
    let config = parsed(&format!(
        "{MINIMAL}orchestrator: {{ serialize_overlapping: false }}\nplan: {{ max_tasks: 5, max_depth: 4, max_fan_out: 3, commands: true }}\n"
    ));
    assert!(!config.orchestrator.serialize_overlapping);
    let plan =
        PlanConfig { max_tasks: 5, max_depth: 4, max_fan_out: 3, commands: true, task_uat: true };
    assert_eq!(config.plan, plan);
}

#[test]
fn an_address_among_the_variables_is_refused() {
    let text = "commands: { tests: t }\nbuilder:\n  mode: claude_code_cli\n  env: { ANTHROPIC_BASE_URL: 'http://x' }\n";
    let faults = Config::parse(text).unwrap_err().to_string();
    assert!(faults.contains("`builder.base_url`") && faults.contains("4"), "{faults}");
}

//! Refuses settings that a run could not honour, before it starts.

use super::BeginError;
use super::agent::check_agent;
use crate::place::StatePaths;
use autopilot_core::config::{
    AgentConfig, Config, Mode, MoneyCheck, ProofGate, Role, UsageReport, WorkBy,
};
use autopilot_core::flow::Flow;
use autopilot_core::limit::Limits;
use autopilot_core::workflow::{Prices, WorkflowRules};
use std::collections::BTreeMap;

/// Checks all settings and reports every fault. `limits` are the run's limits, command line
/// included.
pub fn check_settings(config: &Config, limits: &Limits, flow: Flow) -> Result<(), BeginError> {
    let mut faults = unavailable(config);
    faults.extend(missing_tests(config, flow));
    faults.extend(unpriced(config, limits, flow));
    none(faults)
}

/// Checks the prices again after a change of limits or models. `open` are the further agents with
/// open tasks. Faults that existed before are ignored: raising a limit is the way out of them.
pub fn check_prices(
    was: (&Config, &Limits),
    now: (&Config, &Limits),
    flow: Flow,
    open: &[WorkBy],
) -> Result<(), BeginError> {
    let known = unpriced_of(was, flow, open);
    let mut faults = unpriced_of(now, flow, open);
    faults.retain(|fault| !known.contains(fault));
    none(faults)
}

fn unpriced_of((config, limits): (&Config, &Limits), flow: Flow, open: &[WorkBy]) -> Vec<String> {
    let mut faults = unpriced(config, limits, flow);
    for by in open {
        let agent = config.agent_by(Role::Builder, by);
        let name = by.agent.as_deref().unwrap_or("builder");
        for fault in unpriced_agent(config, limits, &agent, name) {
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
    faults
}

/// The agents that workflow steps may name: they can be started, can change files, and report their
/// cost where money is limited.
pub fn step_rules(
    config: &Config,
    limits: &Limits,
    place: &StatePaths,
    path: &str,
) -> WorkflowRules {
    let mut rules = WorkflowRules::new([""; 0]);
    let is_limited = limits.usd_max.is_some() || limits.usd_per_task_max.is_some();
    let mut asked_of = BTreeMap::new();
    for name in config.adapters() {
        let Some(agent) = config.adapter(&name) else { continue };
        match usable(config, is_limited, &agent, &name, place, path) {
            Ok(()) => {
                // An agent's own limit holds even when the run has none.
                let is_limited = is_limited || agent.max_usd.is_some();
                if is_limited && agent.usage_report() == UsageReport::Tokens {
                    asked_of.insert(name.clone(), is_priced(config, &agent));
                }
                rules.adapters.insert(name);
            }
            Err(why) => {
                rules.unusable.insert(name, why);
            }
        }
    }
    if !asked_of.is_empty() {
        let models = config.prices.keys().cloned().collect();
        rules.prices = Some(Prices { asked_of, models, usual: "builder".to_owned() });
    }
    rules
}

fn usable(
    config: &Config,
    is_limited: bool,
    agent: &AgentConfig,
    name: &str,
    place: &StatePaths,
    path: &str,
) -> Result<(), String> {
    // Name the section in which the user would set it.
    let section = match name {
        "builder" | "reviewer" | "planner" => name.to_owned(),
        _ => format!("agents.{name}"),
    };
    for (place_of, candidate) in agent.candidates().enumerate() {
        if candidate.mode == Mode::OpenaiApi {
            return Err("it can't edit files".to_owned());
        }
        check_agent(candidate, &section, place, path).map_err(|fault| fault.to_string())?;
        // A step's own model may have a price; a fallback has only its own.
        let stands_in = place_of > 0;
        let is_unknown = match candidate.usage_report() {
            UsageReport::Cost => false,
            UsageReport::Tokens => stands_in && !is_priced(config, candidate),
            UsageReport::Nothing => true,
        };
        if is_unknown && (is_limited || candidate.max_usd.is_some()) {
            let mode = candidate.mode.word();
            return Err(format!(
                "mode {mode} reports no cost, so the cost limit can't be enforced"
            ));
        }
    }
    Ok(())
}

fn none(faults: Vec<String>) -> Result<(), BeginError> {
    if faults.is_empty() { Ok(()) } else { Err(BeginError::Settings { faults }) }
}

fn unavailable(config: &Config) -> Vec<String> {
    let mut faults = Vec::new();
    let mut refuse = |given: &str, instead: &str| {
        faults.push(format!("`{given}` is not available yet; remove it or set it to `{instead}`"));
    };
    if config.database != "sqlite" {
        // The address may hold a password, so it is not repeated.
        refuse("database: postgres://…", "sqlite");
    }
    faults
}

/// The fault of a configuration without tests, for flows and gates that need them.
fn missing_tests(config: &Config, flow: Flow) -> Option<String> {
    let why = match config.gates.proof {
        ProofGate::RedGreen => "`gates.proof: red_green` needs `commands.tests`",
        ProofGate::Off if flow.row().needs_tests => "`commands.tests` is missing",
        ProofGate::Off => return None,
    };
    (!config.commands.has_tests()).then(|| {
        format!(
            "{why}; write the command that runs the tests, as in `tests: \"cargo test\"`, in \
             .autopilot/config.yml"
        )
    })
}

/// The faults of a limit on money: it holds only when the cost of every agent is known.
fn unpriced(config: &Config, limits: &Limits, flow: Flow) -> Vec<String> {
    let mut faults = Vec::new();
    for role in flow.roles() {
        faults.extend(unpriced_agent(config, limits, config.agent(role), role.word()));
    }
    faults
}

fn unpriced_agent(
    config: &Config,
    limits: &Limits,
    agent: &AgentConfig,
    name: &str,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, agent) in agent.candidates().enumerate() {
        let key =
            if place == 0 { name.to_owned() } else { format!("{name}.fallback[{}]", place - 1) };
        let own = format!("{key}.max_usd");
        let asked = [
            ("max_usd", limits.usd_max.is_some()),
            ("max_usd_per_task", limits.usd_per_task_max.is_some()),
            (own.as_str(), agent.max_usd.is_some()),
        ];
        let asked: Vec<String> =
            asked.iter().filter(|(_, set)| *set).map(|(key, _)| format!("`{key}`")).collect();
        if let Some(remedy) = missing_price(config, agent, &key)
            && !asked.is_empty()
        {
            faults.push(format!(
                "{key}: mode {} reports no cost{}, so the limit can't be enforced; {remedy}, or \
                 remove {} (`max_wall` and `max_iterations` work with any agent)",
                agent.mode.word(),
                match (agent.mode, &agent.model) {
                    (Mode::ClaudeCodeCli, Some(model)) => format!(" of model `{model}`"),
                    _ => String::new(),
                },
                asked.join(" and "),
            ));
        }
    }
    faults
}

/// The setting that would make an agent's cost known, if it is unknown.
fn missing_price(config: &Config, agent: &AgentConfig, key: &str) -> Option<String> {
    if is_priced(config, agent) {
        return None;
    }
    Some(match (agent.usage_report(), &agent.model) {
        (UsageReport::Tokens, Some(model)) => {
            format!("add `prices.\"{model}\"` with its price per million tokens")
        }
        (UsageReport::Tokens, None) => {
            format!("name `{key}.model` and add its price under `prices`")
        }
        (UsageReport::Cost | UsageReport::Nothing, _) => {
            "use an agent that reports its cost".to_owned()
        }
    })
}

/// The agents of a run whose cost can't be known, as `builder (command)`.
pub fn costs_unknown(config: &Config, flow: Flow) -> Vec<String> {
    let unknown = |role: Role| {
        let agent = config.agent(role);
        (!is_priced(config, agent)).then(|| format!("{}: {}", role.word(), agent.mode.word()))
    };
    flow.roles().into_iter().filter_map(unknown).collect()
}

fn is_priced(config: &Config, agent: &AgentConfig) -> bool {
    config.money_check(agent) != MoneyCheck::Never
}

/// What a person should know of the limits on money before a run starts: with these agents they are
/// checked only when a turn has ended.
pub fn late_limits(config: &Config, limits: &Limits, flow: Flow) -> Vec<String> {
    let is_limited = limits.usd_max.is_some() || limits.usd_per_task_max.is_some();
    let late = |role: Role| {
        let agents = config.agent(role).candidates();
        let is_late = |agent: &&AgentConfig| {
            (is_limited || agent.max_usd.is_some())
                && config.money_check(agent) == MoneyCheck::AfterTurn
        };
        let agent = agents.into_iter().find(is_late)?;
        Some(format!(
            "{}: {} reports its usage at the end of a turn, so a money limit is checked only there \
             and one turn may exceed it",
            role.word(),
            agent.mode.word()
        ))
    };
    flow.roles().into_iter().filter_map(late).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::begin::limits;

    fn faults(text: &str) -> Vec<String> {
        let (config, _) = Config::parse(&format!("commands: {{ tests: t }}\n{text}")).unwrap();
        match check_settings(&config, &limits(&config), Flow::Task) {
            Ok(()) => Vec::new(),
            Err(BeginError::Settings { faults }) => faults,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_not_kept_is_refused_by_its_key_and_all_of_it_at_once() {
        let cases = [("database: 'postgres://u:p@h/d'", &["database"][..])];
        for (text, keys) in cases {
            let found = faults(text);
            assert_eq!(found.len(), keys.len(), "{text}: {found:?}");
            for (fault, key) in found.iter().zip(keys) {
                assert!(fault.contains(key) && fault.contains("not available yet"), "{fault}");
                assert!(!fault.contains("u:p"), "{fault}");
            }
        }
        assert_eq!(faults(""), [""; 0]);
    }

    #[test]
    fn a_failing_test_of_each_criterion_needs_tests() {
        assert_eq!(faults("gates: { proof: red_green }"), [""; 0]);
        let (config, _) = Config::parse("gates: { proof: red_green }").unwrap();
        for flow in Flow::ALL {
            let Err(BeginError::Settings { faults }) =
                check_settings(&config, &limits(&config), flow)
            else {
                panic!("{} was not refused", flow.word());
            };
            let told = "`gates.proof: red_green` needs `commands.tests`; write the command";
            assert!(faults.len() == 1 && faults[0].starts_with(told), "{faults:?}");
        }
    }

    #[test]
    fn a_limit_on_money_needs_agents_that_tell_their_cost() {
        let command = "builder: { mode: command, command: x }\n";
        let told = "reviewer: { mode: claude_code_cli }\n";
        assert_eq!(faults(&format!("{command}{told}")), [""; 0]);
        assert_eq!(faults(&format!("{told}budget: {{ max_usd: 1 }}\n")), [""; 0]);
        let found =
            faults(&format!("{command}{told}budget: {{ max_usd: 1, max_usd_per_task: 1 }}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        let named = "builder: mode command reports no cost, so the limit can't be enforced; use an \
                     agent that reports its cost, or remove `max_usd` and `max_usd_per_task`";
        assert!(found[0].starts_with(named), "{}", found[0]);
    }

    #[test]
    fn a_price_makes_a_limit_on_money_hold_and_its_want_is_named() {
        let codex = "builder: { mode: codex_cli, model: gpt-5.5 }\n";
        let rest = "reviewer: { mode: claude_code_cli }\nbudget: { max_usd: 1 }\n";
        let found = faults(&format!("{codex}{rest}"));
        assert!(found.len() == 1 && found[0].contains("add `prices.\"gpt-5.5\"`"), "{found:?}");
        let prices = "prices: { gpt-5.5: { input: 1.25, output: 10, cached: 0.125 } }\n";
        assert_eq!(faults(&format!("{codex}{rest}{prices}")), [""; 0]);
        // The default model of the agent is not known.
        let found = faults(&format!("builder: {{ mode: codex_cli }}\n{rest}{prices}"));
        assert!(found.len() == 1 && found[0].contains("name `builder.model`"), "{found:?}");
        // A fallback agent needs a price too.
        let other =
            "builder: { mode: claude_code_cli, fallback: [{ mode: codex_cli, model: gpt-6 }] }\n";
        let found = faults(&format!("{other}{rest}{prices}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("builder.fallback[0]: mode codex_cli"), "{found:?}");
        assert!(found[0].contains("prices.\"gpt-6\""), "{found:?}");
    }

    #[test]
    fn a_limit_that_is_checked_late_is_said_and_not_refused() {
        let prices = "prices: { gpt-5.5: { input: 1.25, output: 10 } }\n";
        let text = "commands: { tests: t }\nbuilder: { mode: codex_cli, model: gpt-5.5 }\n\
            reviewer: { mode: claude_code_cli }\n";
        let said = |more: &str| {
            let (config, _) = Config::parse(&format!("{text}{prices}{more}")).unwrap();
            assert_eq!(faults(&format!("{}{prices}{more}", &text[23..])), [""; 0]);
            late_limits(&config, &limits(&config), Flow::Task)
        };
        assert_eq!(said(""), [""; 0], "there is no limit");
        let said = said("budget: { max_usd: 1 }\n");
        assert!(said.len() == 1 && said[0].starts_with("builder: codex_cli"), "{said:?}");
    }

    #[test]
    fn a_model_whose_price_claude_does_not_know_needs_one() {
        let claude = "builder: { mode: claude_code_cli, model: qwen3 }\n\
            reviewer: { mode: claude_code_cli }\nbudget: { max_usd: 1 }\n";
        let found = faults(claude);
        assert!(found.len() == 1 && found[0].contains("`prices.\"qwen3\"`"), "{found:?}");
        assert!(found[0].contains("reports no cost of model `qwen3`"), "{found:?}");
        let prices = "prices: { qwen3: { input: 0, output: 0 } }\n";
        assert_eq!(faults(&format!("{claude}{prices}")), [""; 0]);
    }
}

//! Settings that would be accepted and not kept are refused before a run begins.

use super::BeginError;
use crate::job::mode_word;
use autopilot_core::config::{Config, Mode, ProofGate, Role};
use autopilot_core::flow::Flow;
use autopilot_core::limit::Limits;

/// The roles that have something to do in a flow.
pub fn roles(flow: Flow) -> &'static [(Role, &'static str)] {
    const ALL: [(Role, &str); 3] =
        [(Role::Builder, "builder"), (Role::Reviewer, "reviewer"), (Role::Planner, "planner")];
    match flow {
        Flow::Task | Flow::Queue => &ALL[..2],
        Flow::Plan => &ALL,
    }
}

/// Every fault at once. `limits` are those the run would have, command line included.
pub fn check_settings(config: &Config, limits: &Limits, flow: Flow) -> Result<(), BeginError> {
    let mut faults = unavailable(config);
    faults.extend(unpriced(config, limits, flow));
    none(faults)
}

/// The part of it that a change of limits can spoil.
pub fn check_prices(config: &Config, limits: &Limits, flow: Flow) -> Result<(), BeginError> {
    none(unpriced(config, limits, flow))
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
        // The address may hold a password.
        refuse("database: postgres://…", "sqlite");
    }
    match config.gates.proof {
        ProofGate::Off => {}
        ProofGate::RedGreen => refuse("gates.proof: red_green", "off"),
    }
    faults
}

/// A limit on money holds only where every agent tells what it costs.
fn unpriced(config: &Config, limits: &Limits, flow: Flow) -> Vec<String> {
    let mut faults = Vec::new();
    for (role, name) in roles(flow).iter().copied() {
        let agent = config.agent(role);
        if is_priced(agent.mode) {
            continue;
        }
        let own = format!("{name}.max_usd");
        let asked = [
            ("max_usd", limits.usd_max.is_some()),
            ("max_usd_per_task", limits.usd_per_task_max.is_some()),
            (own.as_str(), agent.max_usd.is_some()),
        ];
        let asked: Vec<String> =
            asked.iter().filter(|(_, set)| *set).map(|(key, _)| format!("`{key}`")).collect();
        if !asked.is_empty() {
            faults.push(format!(
                "{name}: mode {} reports no cost, so the limit could not hold; remove {} or use \
                 an agent that reports its cost (`max_wall` and `max_iterations` hold with any)",
                mode_word(agent.mode),
                asked.join(" and "),
            ));
        }
    }
    faults
}

/// Agents of a run whose cost nobody can know, as `builder (command)`.
pub fn costs_unknown(config: &Config, flow: Flow) -> Vec<String> {
    let unknown = |(role, name): &(Role, &str)| {
        let mode = config.agent(*role).mode;
        (!is_priced(mode)).then(|| format!("{name} ({})", mode_word(mode)))
    };
    roles(flow).iter().filter_map(unknown).collect()
}

fn is_priced(mode: Mode) -> bool {
    match mode {
        // A script tells whatever it was written to tell.
        Mode::ClaudeCodeCli | Mode::Script => true,
        Mode::CodexCli | Mode::Acp | Mode::Command | Mode::OpenaiApi => false,
    }
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
        let cases = [
            ("gates: { proof: red_green }", &["gates.proof"][..]),
            ("database: 'postgres://u:p@h/d'", &["database"]),
        ];
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
    fn a_limit_on_money_needs_agents_that_tell_their_cost() {
        let command = "builder: { mode: command, command: x }\n";
        let told = "reviewer: { mode: claude_code_cli }\n";
        assert_eq!(faults(&format!("{command}{told}")), [""; 0]);
        assert_eq!(faults(&format!("{told}budget: {{ max_usd: 1 }}\n")), [""; 0]);
        let found =
            faults(&format!("{command}{told}budget: {{ max_usd: 1, max_usd_per_task: 1 }}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        let named = "builder: mode command reports no cost, so the limit could not hold; \
                     remove `max_usd` and `max_usd_per_task`";
        assert!(found[0].starts_with(named), "{}", found[0]);
    }
}

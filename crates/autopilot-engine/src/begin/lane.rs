//! The accounts behind a configuration's agents, by name.
//!
//! Two agents share an account when the same login serves both. A vendor that refuses one of them
//! refuses the other too, so both are put on hold together.

use autopilot_core::config::{AgentConfig, Config, Mode, Role};
use autopilot_core::step::Step;
use std::collections::BTreeMap;

/// The accounts for each role, in order of preference, as `claude_code_cli`, `codex_cli:2` or
/// `codex_cli/gpt-5.5`.
pub struct RunLanes {
    pub steps: BTreeMap<Step, Vec<String>>,
    /// The accounts of the named agents.
    pub agents: BTreeMap<String, Vec<String>>,
}

/// Names the accounts of a configuration's agents.
pub fn lanes(config: &Config) -> RunLanes {
    let named: BTreeMap<String, AgentConfig> = config
        .adapters()
        .into_iter()
        .filter_map(|n| Some((n.clone(), config.adapter(&n)?)))
        .collect();
    let mut accounts = LaneAccounts::default();
    let roles = [Role::Builder, Role::Reviewer, Role::Planner];
    let of_role = roles.map(|role| (role, accounts.lanes(config.agent(role))));
    let of_role = BTreeMap::from(of_role);
    let lanes = |step: Step| Some((step, of_role.get(&step.role()?)?.clone()));
    let agents = named.iter().map(|(name, agent)| (name.clone(), accounts.lanes(agent)));
    RunLanes { agents: agents.collect(), steps: Step::ALL.into_iter().filter_map(lanes).collect() }
}

/// The account names given so far, each for the login of an agent.
#[derive(Default)]
struct LaneAccounts<'a>(Vec<(&'a AgentConfig, String)>);

impl<'a> LaneAccounts<'a> {
    fn lanes(&mut self, agent: &'a AgentConfig) -> Vec<String> {
        agent.candidates().map(|agent| self.lane(agent)).collect()
    }

    fn lane(&mut self, agent: &'a AgentConfig) -> String {
        let account = self.name(agent);
        match &agent.model {
            Some(model) => format!("{account}/{model}"),
            None => account,
        }
    }

    fn name(&mut self, agent: &'a AgentConfig) -> String {
        if let Some((_, name)) = self.0.iter().find(|(known, _)| is_same_login(known, agent)) {
            return name.clone();
        }
        let mode = agent.mode.word();
        let name = match self.0.iter().filter(|(known, _)| known.mode == agent.mode).count() {
            0 => mode.to_owned(),
            others => format!("{mode}:{}", others + 1),
        };
        self.0.push((agent, name.clone()));
        name
    }
}

/// Returns whether two agents use the same login. A program of the user counts as an account of its
/// own, and so do settings that may lead to another login: a wrapper, a profile, a folder of
/// settings.
fn is_same_login(one: &AgentConfig, two: &AgentConfig) -> bool {
    let program = |agent: &AgentConfig| match agent.mode {
        Mode::ClaudeCodeCli | Mode::CodexCli | Mode::OpenaiApi => None,
        Mode::Acp | Mode::Command => agent.command.clone(),
        Mode::Script => agent.script.clone(),
    };
    one.mode == two.mode
        && program(one) == program(two)
        && one.executable == two.executable
        && one.args == two.args
        && one.env == two.env
        && one.env_pass == two.env_pass
        && one.base_url == two.base_url
        && one.api_key_env == two.api_key_env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes_of(text: &str, step: Step) -> Vec<String> {
        let (config, _) = Config::parse(&format!("commands: {{ tests: t }}\n{text}")).unwrap();
        lanes(&config).steps.remove(&step).unwrap()
    }

    #[test]
    fn every_step_of_an_agent_has_its_lanes_and_no_other_step() {
        let (config, _) = Config::parse("commands: { tests: t }\n").unwrap();
        let all = lanes(&config).steps;
        let steps: Vec<Step> = all.keys().copied().collect();
        let asked = [
            Step::Plan,
            Step::Workflow,
            Step::WorkflowStep,
            Step::Build,
            Step::Fix,
            Step::Review,
            Step::Completion,
            Step::UatGenerate,
            Step::WholeReview,
            Step::Coverage,
        ];
        assert_eq!(steps, asked);
        assert_eq!(all[&Step::Build], ["claude_code_cli"]);
        assert_eq!(all[&Step::Plan], all[&Step::Review]);
    }

    #[test]
    fn the_same_login_is_the_same_account_whatever_the_model() {
        let text = "builder: { model: big, fallback: [{ model: small }, { mode: codex_cli }] }\n";
        let found = lanes_of(text, Step::Build);
        assert_eq!(found, ["claude_code_cli/big", "claude_code_cli/small", "codex_cli"]);
        assert_eq!(lanes_of(text, Step::Review), ["codex_cli"]);
    }

    #[test]
    fn another_login_is_another_account() {
        let text = "builder: { fallback: [{ env: { CLAUDE_CONFIG_DIR: /other } }] }\n\
                    reviewer: { mode: openai_api, model: m, fallback: [\
                    { base_url: 'http://127.0.0.1:1' }, { api_key_env: SECOND_KEY }] }\n";
        assert_eq!(lanes_of(text, Step::Fix), ["claude_code_cli", "claude_code_cli:2"]);
        let found = lanes_of(text, Step::Review);
        assert_eq!(found, ["openai_api/m", "openai_api:2/m", "openai_api:3/m"]);
    }

    /// The account that puts a step on hold must be the account that does the step.
    #[test]
    fn a_task_with_its_own_agent_or_model_is_held_by_whoever_does_it() {
        use autopilot_core::config::WorkBy;
        let text = "commands: { tests: t }\n\
                    builder: { model: big, fallback: [{ env: { A: b } }, { model: small }, \
                    { mode: codex_cli }] }\nreviewer: { mode: codex_cli, model: r }\n\
                    agents:\n  fast: { mode: codex_cli, executable: ./c, fallback: [{ args: [x] }] }\n  \
                    mine: { mode: command, command: ./a.sh, fallback: [{ mode: claude_code_cli }] }\n";
        let (config, _) = Config::parse(text).unwrap();
        let limits = crate::begin::limits(&config);
        let names = config.adapters().into_iter().map(Some).chain([None]);
        for (agent, model) in names.flat_map(|name| [(name.clone(), None), (name, Some("new"))]) {
            let by = WorkBy { agent, model: model.map(str::to_owned) };
            let whole = config.agent_by(Role::Builder, &by);
            for (lane, candidate) in whole.candidates().enumerate() {
                let name = limits.lane_by(Step::WorkflowStep, &by, lane as u32);
                let (account, model) =
                    name.split_once('/').map_or((&*name, None), |(a, m)| (a, Some(m)));
                assert_eq!(model, candidate.model.as_deref(), "{by:?} {lane}");
                assert_eq!(account.split(':').next(), Some(candidate.mode.word()), "{by:?}");
            }
            assert_eq!(limits.lanes_by(Step::WorkflowStep, &by), whole.candidates().count());
        }
        // The same login is the same account under every name.
        assert_eq!(limits.agents["codex"], ["codex_cli"], "as the builder's fallback");
        assert_eq!(limits.agents["reviewer"], ["codex_cli/r"]);
        assert_eq!(limits.agents["fast"], ["codex_cli:2", "codex_cli:3"]);
        assert_eq!(limits.agents["builder"], limits.lanes[&Step::Build]);
    }

    #[test]
    fn another_way_to_start_the_same_program_is_another_account() {
        for other in [
            "executable: ./claude-work",
            "args: [--profile, work]",
            "env_pass: [WORK_TOKEN]",
            "env: { CLAUDE_CONFIG_DIR: /work }",
            "api_key_env: WORK_KEY",
        ] {
            let text = format!("builder: {{ fallback: [{{ {other} }}, {{ model: small }}] }}\n");
            let found = lanes_of(&text, Step::Build);
            assert_eq!(found, ["claude_code_cli", "claude_code_cli:2", "claude_code_cli/small"]);
        }
    }

    #[test]
    fn programs_of_the_users_own_are_told_apart() {
        let text = "builder: { mode: command, command: ./a.sh, fallback: [{ command: ./b.sh }] }\n\
                    reviewer: { mode: command, command: ./a.sh }\n";
        assert_eq!(lanes_of(text, Step::Build), ["command", "command:2"]);
        assert_eq!(lanes_of(text, Step::Review), ["command"]);
    }
}

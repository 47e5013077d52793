//! The settings that a resumed run takes from a configuration that was changed meanwhile: the model
//! of its agents, its address, its key and its price, and the variables that are no secrets. The agents
//! themselves, their permissions and the commands stay as the run began.

use super::{AgentConfig, Config, Role};

impl Config {
    /// Returns this configuration with the models of another, and the changes, one line each.
    pub fn with_models_of(&self, other: &Config) -> (Config, Vec<String>) {
        let mut config = self.clone();
        let mut changes = Vec::new();
        for role in Role::ALL {
            amend_all(config.agent_mut(role), other.agent(role), role.word(), &mut changes);
        }
        for (name, agent) in &mut config.agents {
            if let Some(wanted) = other.adapter(name) {
                amend_all(agent, &wanted, &format!("agents.{name}"), &mut changes);
            }
        }
        if !changes.is_empty() {
            config.prices = other.prices.clone();
        }
        // A run that a wrong guess has blocked must not have to begin again.
        if config.secrets != other.secrets {
            let names = other.secrets.ignore.join(", ");
            changes.push(format!("secrets.ignore is [{names}]"));
            config.secrets = other.secrets.clone();
        }
        (config, changes)
    }
}

/// Amends an agent and its fallbacks.
fn amend_all(agent: &mut AgentConfig, wanted: &AgentConfig, name: &str, changes: &mut Vec<String>) {
    let modes = |agent: &AgentConfig| agent.candidates().map(|a| a.mode).collect::<Vec<_>>();
    // A change of the agents themselves is more than a change of their models.
    if modes(agent) != modes(wanted) {
        return;
    }
    amend(agent, wanted, name, changes);
    for (place, (agent, wanted)) in agent.fallback.iter_mut().zip(&wanted.fallback).enumerate() {
        amend(agent, wanted, &format!("{name}.fallback[{place}]"), changes);
    }
}

fn amend(agent: &mut AgentConfig, wanted: &AgentConfig, name: &str, changes: &mut Vec<String>) {
    let mut take = |key: &str, was: &mut Option<String>, is: &Option<String>| {
        if was != is {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            changes.push(format!("{name}.{key} was {}, is {}", shown(was), shown(is)));
            was.clone_from(is);
        }
    };
    take("model", &mut agent.model, &wanted.model);
    take("effort", &mut agent.effort, &wanted.effort);
    take("base_url", &mut agent.base_url, &wanted.base_url);
    take("api_key_env", &mut agent.api_key_env, &wanted.api_key_env);
    if agent.api != wanted.api {
        changes.push(format!("{name}.api has changed"));
        agent.api = wanted.api;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(agents: &str) -> Config {
        let base = "repo: { base_branch: main }\ncommands: { tests: t }\n";
        Config::parse(&format!("{base}{agents}")).unwrap().0
    }

    #[test]
    fn the_variables_that_are_no_secrets_are_taken() {
        let (began, now) = (config(""), config("secrets: { ignore: [KMS_KEY, B] }\n"));
        let (amended, changes) = began.with_models_of(&now);
        assert_eq!((amended, changes), (now, vec!["secrets.ignore is [KMS_KEY, B]".to_owned()]));
    }

    #[test]
    fn models_are_taken_and_nothing_else() {
        let began = config(
            "builder: { mode: claude_code_cli, model: bad, fallback: [{ mode: codex_cli }] }\n",
        );
        let now = config(
            "builder: { mode: claude_code_cli, model: good, unsafe: true, args: [--x], \
             fallback: [{ mode: codex_cli, model: other }] }\n\
             prices: { good: { input: 1, output: 2 } }\nloop: { max_iterations: 9 }\n",
        );
        let (amended, changes) = began.with_models_of(&now);
        let wanted =
            ["builder.model was bad, is good", "builder.fallback[0].model was none, is other"];
        assert_eq!(changes, wanted);
        let mut expected = began.clone();
        expected.builder.model = Some("good".into());
        expected.builder.fallback[0].model = Some("other".into());
        expected.prices = now.prices.clone();
        assert_eq!(amended.digest(), expected.digest(), "nothing but models and their prices");
    }

    #[test]
    fn a_named_agent_has_its_model_corrected_and_what_was_asked_for_stays() {
        use crate::config::Options;
        let began = config("agents: { fast: { mode: codex_cli, model: bad } }\n");
        let now = config("agents: { fast: { mode: codex_cli, model: good, unsafe: true } }\n");
        let (amended, changes) = began.with_models_of(&now);
        assert_eq!(changes, ["agents.fast.model was bad, is good"]);
        assert!(!amended.agents["fast"].r#unsafe);
        // The command line made it the agent of every role, so it is corrected everywhere.
        let options = Options { adapter: Some("fast".into()), ..Options::default() };
        let asked = |config: &Config, options: &Options| config.with_options(options).unwrap();
        let (amended, _) = asked(&began, &options).with_models_of(&asked(&now, &options));
        assert_eq!(amended.builder.model.as_deref(), Some("good"));
        // A model given on the command line is not replaced by the file's.
        let options = Options { model: Some("mine".into()), ..options };
        let (_, changes) = asked(&began, &options).with_models_of(&asked(&now, &options));
        assert_eq!(changes, [""; 0]);
        // An agent that is gone from the file stays as the run began.
        let (amended, changes) = began.with_models_of(&config(""));
        assert_eq!((amended, changes), (began, Vec::new()));
    }

    #[test]
    fn other_agents_are_no_other_models() {
        let began = config("builder: { mode: claude_code_cli, model: bad }\n");
        let now = config("builder: { mode: codex_cli, model: good }\n");
        let (amended, changes) = began.with_models_of(&now);
        assert_eq!((amended.digest(), changes), (began.digest(), Vec::new()));
    }
}

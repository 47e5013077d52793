//! Any agent that speaks the Agent Client Protocol, version 1: JSON-RPC over its stdin and stdout.
//!
//! Shapes and habits were checked against opencode 1.18.33, gemini-cli 0.61.0, the adapters for
//! Claude Code (0.49.0, 0.99.1) and those for Codex (0.16.0, 2.6.0).

mod call;
mod count;
mod fault;
mod file;
mod offer;
mod permit;
mod place;
mod rpc;
mod told;
mod turn;

pub(crate) use turn::AcpConversation;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::command;
use crate::launch::{Access, LaunchPlan, LaunchRequest, LaunchStdin, Network};

pub(crate) fn launch(words: &[String], ask: &LaunchRequest) -> LaunchPlan {
    let env = known_env(words, ask);
    LaunchPlan { env, stdin: LaunchStdin::Open, ..command::launch(words, ask) }
}

/// The variables that some agents need in order to ask for permissions, or to leave themselves
/// unchanged.
fn known_env(words: &[String], ask: &LaunchRequest) -> Vec<(String, String)> {
    let is_named =
        |name: &str| words.iter().take(2).any(|word| word.rsplit('/').next() == Some(name));
    if !is_named("opencode") {
        return Vec::new();
    }
    let mut env = vec![("OPENCODE_DISABLE_AUTOUPDATE".to_owned(), "1".to_owned())];
    let asks = opencode_asks(ask);
    if !asks.is_empty() {
        env.push(("OPENCODE_PERMISSION".to_owned(), Value::Object(asks).to_string()));
    }
    env
}

/// The tools for which opencode must ask; by itself it asks for nothing. It is made to ask for
/// exactly the tools that would be refused: more would put our consent in the place of a refusal in
/// the user's own configuration.
fn opencode_asks(ask: &LaunchRequest) -> Map<String, Value> {
    let mut tools = BTreeSet::new();
    if ask.access == Access::Read {
        tools.extend(["edit", "bash", "task"].map(String::from));
    }
    if ask.network == Network::Off {
        tools.extend(["webfetch", "websearch", "codesearch"].map(String::from));
    }
    for rule in &ask.disallowed_tools {
        let name = rule.split('(').next().unwrap_or(rule).to_lowercase();
        tools.insert(match name.as_str() {
            "execute" => "bash".to_owned(),
            "fetch" => "webfetch".to_owned(),
            // One permission covers all tools that change files.
            "write" | "patch" | "multiedit" | "delete" | "move" => "edit".to_owned(),
            _ => name,
        });
    }
    tools.into_iter().map(|tool| (tool, Value::from("ask"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::LaunchProgram;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_prompt_is_said_and_not_given() {
        let args = ["--more".to_owned()];
        let ask =
            LaunchRequest { args: args.to_vec(), ..LaunchRequest::new("do it", "/slot".into()) };
        let plan = launch(&words("gemini --acp"), &ask);
        assert_eq!(plan.program, LaunchProgram::Named("gemini".into()));
        assert_eq!(plan.args, ["--acp", "--more"]);
        assert_eq!(plan.stdin, LaunchStdin::Open);
        assert!(plan.env.is_empty());
    }

    #[test]
    fn opencode_asks_for_what_would_be_refused_and_for_nothing_else() {
        let asks = |ask: &LaunchRequest| {
            let env = launch(&words("/opt/bin/opencode acp"), ask).env;
            env.into_iter().find(|(name, _)| name == "OPENCODE_PERMISSION").map(|(_, asks)| asks)
        };
        let builder = LaunchRequest::new("", "/slot".into());
        assert_eq!(asks(&builder), None);
        let reader = LaunchRequest { access: Access::Read, ..builder.clone() };
        assert_eq!(asks(&reader).unwrap(), r#"{"bash":"ask","edit":"ask","task":"ask"}"#);
        let rules = ["Bash(git push*)".to_owned(), "Write".to_owned()];
        let held =
            LaunchRequest { disallowed_tools: rules.to_vec(), network: Network::Off, ..builder };
        assert_eq!(
            asks(&held).unwrap(),
            r#"{"bash":"ask","codesearch":"ask","edit":"ask","webfetch":"ask","websearch":"ask"}"#
        );
    }
}

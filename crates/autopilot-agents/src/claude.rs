//! Claude Code over the protocol of its vendor's own SDK: JSON lines both ways.
//!
//! The prompt is a line on the agent's stdin, which stays open: through it we answer requests for
//! permissions, and a person may say more while the agent works.
//!
//! The format is the vendor's; flags and shapes were checked against version 2.1.325.

mod decode;
mod permission;
mod result;

pub(crate) use decode::ClaudeConversation;
pub(crate) use result::{session_count, tokens_of};

use crate::gateway::{Gateway, NO_KEY};
use crate::launch::{
    Access, LaunchPlan, LaunchProgram, LaunchRequest, LaunchSandbox, LaunchSchema, LaunchServer,
    LaunchStdin, Network, Transport,
};

/// The longest schema that is passed on the command line, where one argument may have 128 KiB at
/// most.
const SCHEMA_BYTES_MAX: usize = 100 * 1024;

const QUIET: &[(&str, &str)] = &[
    // Claude's default is to repeat a request for minutes; how long to wait out an outage is ours
    // to decide.
    ("CLAUDE_CODE_MAX_RETRIES", "4"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
];

const BASE_URL: &str = "ANTHROPIC_BASE_URL";
const KEY: &str = "ANTHROPIC_API_KEY";
/// Claude Code sends a key under this name as a bearer token.
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// The name under which Claude Code looks for the key that the user keeps in `variable`.
pub(crate) fn key_name(variable: &str) -> &'static str {
    if variable == TOKEN { TOKEN } else { KEY }
}

pub(crate) fn launch(executable: &str, gateway: &Gateway, ask: &LaunchRequest) -> LaunchPlan {
    let mut args: Vec<String> = vec!["-p".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            args.extend([name.to_owned(), value]);
        }
    };
    option("--input-format", Some("stream-json".into()));
    option("--output-format", Some("stream-json".into()));
    option("--permission-prompt-tool", Some("stdio".into()));
    option("--permission-mode", Some(permission_mode(ask.access).into()));
    option("--model", ask.model.clone());
    option("--effort", ask.effort.clone());
    option("--resume", ask.session.clone());
    // The vendor rejects a budget of zero; the engine asks no agent once the money is gone.
    option("--max-budget-usd", ask.max_usd.filter(|usd| *usd > 0.0).map(|usd| usd.to_string()));
    option("--max-turns", ask.max_turns.map(|turns| turns.to_string()));
    option("--append-system-prompt", ask.system_prompt.clone());
    option("--mcp-config", mcp_config(&ask.mcp_servers));
    option("--settings", own_settings(gateway, ask.access));
    option("--json-schema", ask.schema.as_ref().and_then(inline_schema));
    if ask.access == Access::Read || gateway.base_url.is_some() {
        // An agent that judges a change obeys none of the change's settings, and those of a
        // repository may lead to another account.
        option("--setting-sources", Some("user".into()));
    }
    // The two options take any number of values, so another option has to follow them.
    several(&mut args, "--allowedTools", allowed(ask));
    several(&mut args, "--disallowedTools", disallowed(ask));
    // Claude echoes each user message when it starts on it.
    args.extend(["--replay-user-messages".into(), "--verbose".into()]);
    args.extend(ask.args.iter().cloned());
    let program = LaunchProgram::Named(executable.to_owned());
    LaunchPlan { env: env(gateway, ask), ..LaunchPlan::new(program, args, LaunchStdin::Open) }
}

fn permission_mode(access: Access) -> &'static str {
    match access {
        Access::Read => "default",
        Access::Edit => "acceptEdits",
        Access::Unsafe => "bypassPermissions",
    }
}

fn allowed(ask: &LaunchRequest) -> Vec<String> {
    match ask.access {
        Access::Read => Vec::new(),
        // Tools named here could be used on any path; the permission mode grants them inside the
        // worktree.
        Access::Edit => {
            let granted = |tool: &&String| !permission::WRITING.contains(&tool.as_str());
            ask.allowed_tools.iter().filter(granted).cloned().collect()
        }
        Access::Unsafe => ask.allowed_tools.clone(),
    }
}

/// `--allowedTools` only grants; tools that must not be used have to be taken away.
fn disallowed(ask: &LaunchRequest) -> Vec<String> {
    let writing: &[&str] = match ask.access {
        Access::Read => &["Bash", "Edit", "Write", "NotebookEdit"],
        Access::Edit | Access::Unsafe => &[],
    };
    let reaching: &[&str] = match ask.network {
        Network::On => &[],
        Network::Off => &["WebFetch", "WebSearch"],
    };
    let ours = writing.iter().chain(reaching).map(|tool| (*tool).to_owned());
    ours.chain(ask.disallowed_tools.iter().cloned()).collect()
}

fn several(args: &mut Vec<String>, name: &str, values: Vec<String>) {
    if !values.is_empty() {
        args.push(name.to_owned());
        args.extend(values);
    }
}

fn mcp_config(servers: &[LaunchServer]) -> Option<String> {
    let entry = |server: &LaunchServer| {
        let value = match &server.transport {
            Transport::Stdio { command, args, env } => {
                let env: serde_json::Map<String, serde_json::Value> =
                    env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
                serde_json::json!({ "command": command, "args": args, "env": env })
            }
            Transport::Http { url } => serde_json::json!({ "type": "http", "url": url }),
        };
        (server.name.clone(), value)
    };
    let servers: serde_json::Map<String, serde_json::Value> = servers.iter().map(entry).collect();
    (!servers.is_empty()).then(|| serde_json::json!({ "mcpServers": servers }).to_string())
}

fn inline_schema(schema: &LaunchSchema) -> Option<String> {
    Some(schema.strict()?.to_string()).filter(|json| json.len() <= SCHEMA_BYTES_MAX)
}

/// The settings that override the user's own: an address in the user's settings would win over one
/// in the environment, and an agent that judges a change obeys no hook.
fn own_settings(gateway: &Gateway, access: Access) -> Option<String> {
    let mut settings = serde_json::Map::new();
    if let Some(base_url) = gateway.base_url.as_deref() {
        settings.insert("env".into(), serde_json::json!({ BASE_URL: base_url }));
    }
    if access == Access::Read {
        settings.insert("disableAllHooks".into(), true.into());
    }
    (!settings.is_empty()).then(|| serde_json::Value::from(settings).to_string())
}

fn env(gateway: &Gateway, ask: &LaunchRequest) -> Vec<(String, String)> {
    // As root, Claude Code bypasses permissions only if it is told that it runs in a sandbox.
    let sandboxed = ask.access == Access::Unsafe && ask.sandbox == LaunchSandbox::Ours;
    let sandbox = sandboxed.then_some(("IS_SANDBOX", "1"));
    let address = gateway.base_url.as_deref().map(|url| (BASE_URL, url));
    let keyless = gateway.base_url.is_some() && gateway.key_env.is_none();
    let key = keyless.then_some((KEY, NO_KEY));
    let pairs = QUIET.iter().copied().chain(sandbox).chain(address).chain(key);
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(executable: &str, ask: &LaunchRequest) -> LaunchPlan {
        super::launch(executable, &Gateway::default(), ask)
    }

    fn line(plan: &LaunchPlan) -> String {
        plan.args.join(" ")
    }

    #[test]
    fn a_builder_edits_and_runs_the_allowed_tools() {
        let tools = ["Read".to_owned(), "Bash(git *)".to_owned()];
        let args = ["--betas".to_owned()];
        let ask = LaunchRequest {
            model: Some("opus".into()),
            effort: Some("high".into()),
            session: Some("s-1".into()),
            max_usd: Some(2.5),
            allowed_tools: tools.to_vec(),
            network: Network::Off,
            args: args.to_vec(),
            ..LaunchRequest::new("build it", "/slot".into())
        };
        let plan = launch("claude", &ask);
        insta::assert_snapshot!(line(&plan), @"-p --input-format stream-json --output-format stream-json --permission-prompt-tool stdio --permission-mode acceptEdits --model opus --effort high --resume s-1 --max-budget-usd 2.5 --allowedTools Read Bash(git *) --disallowedTools WebFetch WebSearch --replay-user-messages --verbose --betas");
        assert_eq!(plan.stdin, LaunchStdin::Open);
        assert!(plan.env.iter().any(|(name, _)| name == "DISABLE_TELEMETRY"));
        assert!(plan.env.iter().all(|(name, _)| name != "IS_SANDBOX"));
    }

    #[test]
    fn a_reviewer_changes_nothing_and_answers_by_schema() {
        let tools = ["Edit".to_owned()];
        let ask = LaunchRequest {
            access: Access::Read,
            allowed_tools: tools.to_vec(),
            max_usd: Some(0.0),
            schema: Some(LaunchSchema {
                path: "/tmp/s.json".into(),
                json: r#"{"type":"object","properties":{"ok":{"type":"boolean"}}}"#.into(),
            }),
            ..LaunchRequest::new("review it", "/slot".into())
        };
        insta::assert_snapshot!(line(&launch("claude", &ask)), @r#"-p --input-format stream-json --output-format stream-json --permission-prompt-tool stdio --permission-mode default --settings {"disableAllHooks":true} --json-schema {"type":"object","properties":{"ok":{"type":["boolean","null"]}},"required":["ok"],"additionalProperties":false} --setting-sources user --disallowedTools Bash Edit Write NotebookEdit --replay-user-messages --verbose"#);
    }

    #[test]
    fn permissions_are_bypassed_as_root_only_inside_our_sandbox() {
        let ask =
            LaunchRequest { access: Access::Unsafe, ..LaunchRequest::new("", "/slot".into()) };
        let plan = launch("claude", &ask);
        assert!(line(&plan).contains("--permission-mode bypassPermissions"));
        assert!(plan.env.iter().all(|(name, _)| name != "IS_SANDBOX"));
        let plan = launch("claude", &LaunchRequest { sandbox: LaunchSandbox::Ours, ..ask });
        assert!(plan.env.contains(&("IS_SANDBOX".into(), "1".into())));
    }

    #[test]
    fn a_schema_too_long_for_the_command_line_is_left_to_the_prompt() {
        let title = "x".repeat(SCHEMA_BYTES_MAX);
        let json = format!(r#"{{"title":"{title}"}}"#);
        assert_eq!(inline_schema(&LaunchSchema { path: "/s.json".into(), json }), None);
    }

    #[test]
    fn another_address_is_asked_and_the_users_own_login_is_not_for_it() {
        let gateway = |key_env: Option<&str>| Gateway {
            base_url: Some("https://gateway.example".into()),
            key_env: key_env.map(str::to_owned),
        };
        let env = |key_env| {
            super::launch("claude", &gateway(key_env), &LaunchRequest::new("", "/s".into()))
        };
        let address = (BASE_URL.to_owned(), "https://gateway.example".to_owned());
        let keyed = env(Some("GATEWAY_KEY"));
        assert!(keyed.env.contains(&address));
        // The engine sets the variable to the key itself.
        assert!(keyed.env.iter().all(|(name, _)| name != KEY));
        let settings = r#"--settings {"env":{"ANTHROPIC_BASE_URL":"https://gateway.example"}}"#;
        assert!(line(&keyed).contains(settings), "{}", line(&keyed));
        let keyless = env(None);
        assert!(keyless.env.contains(&address));
        assert!(keyless.env.contains(&(KEY.into(), NO_KEY.into())));
        assert_eq!((key_name("GATEWAY_KEY"), key_name(TOKEN)), (KEY, TOKEN));
    }
}

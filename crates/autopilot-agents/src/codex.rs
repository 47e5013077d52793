//! Codex without a terminal: `codex exec --json`.
//!
//! The format is the vendor's; flags and shapes were checked against version 0.166.0.

mod decode;

pub(crate) use decode::{CodexConversation, thread_total};

use camino::Utf8PathBuf;

use crate::gateway::{Gateway, NO_KEY};
use crate::launch::{
    Access, LaunchPlan, LaunchProgram, LaunchRequest, LaunchSandbox, LaunchSchema, LaunchServer,
    LaunchStdin, Network, Transport,
};

/// The variables that hold the user's own key and address of the model.
pub(crate) const OWN_WAY: &[&str] = &[
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
];

pub(crate) fn launch(executable: &str, gateway: &Gateway, ask: &LaunchRequest) -> LaunchPlan {
    let mut args: Vec<String> = ["exec", "--json", "--disable", "plugins"].map(String::from).into();
    // Without an explicit sandbox Codex takes the one that an earlier run left in its
    // configuration.
    args.extend(["-s".into(), sandbox(ask).into(), "-C".into(), ask.cwd.to_string()]);
    args.push("--skip-git-repo-check".into());
    for setting in settings(ask).into_iter().chain(provider(gateway)) {
        args.extend(["-c".into(), setting]);
    }
    if let Some(model) = &ask.model {
        args.extend(["-m".into(), model.clone()]);
    }
    let schema = ask.schema.as_ref().and_then(strict_file);
    args.extend(ask.args.iter().cloned());
    if ask.session.is_some() {
        args.push("resume".into());
    }
    if let Some((path, _)) = &schema {
        args.extend(["--output-schema".into(), path.to_string()]);
    }
    args.extend(ask.session.clone());
    // The prompt comes on stdin: a diff may be longer than an argument can be.
    args.push("-".into());
    let program = LaunchProgram::Named(executable.to_owned());
    let stdin = LaunchStdin::Whole(ask.prompt.clone().into_bytes());
    LaunchPlan { files: schema.into_iter().collect(), ..LaunchPlan::new(program, args, stdin) }
}

/// The sandbox that Codex is told to use. Its own does not work inside ours: every tool call would
/// fail, and the run succeed.
fn sandbox(ask: &LaunchRequest) -> &'static str {
    match (ask.sandbox, ask.access) {
        (LaunchSandbox::Ours, _) | (LaunchSandbox::None, Access::Unsafe) => "danger-full-access",
        (LaunchSandbox::None, Access::Edit) => "workspace-write",
        (LaunchSandbox::None, Access::Read) => "read-only",
    }
}

fn settings(ask: &LaunchRequest) -> Vec<String> {
    let mut settings: Vec<String> =
        ["approval_policy=never", "analytics.enabled=false", "check_for_update_on_startup=false"]
            .map(String::from)
            .into();
    settings.push(trust(ask));
    let is_online = ask.network == Network::On;
    settings.push(format!("sandbox_workspace_write.network_access={is_online}"));
    if !is_online {
        settings.push("web_search=\"disabled\"".into());
    }
    let effort =
        ask.effort.as_ref().map(|effort| format!("model_reasoning_effort={}", toml(effort)));
    let prompt =
        ask.system_prompt.as_ref().map(|text| format!("developer_instructions={}", toml(text)));
    settings.extend(effort.into_iter().chain(prompt));
    settings.extend(ask.mcp_servers.iter().map(mcp_server));
    settings
}

/// The settings of a provider of ours, because the address of Codex's own provider goes with the
/// user's login.
fn provider(gateway: &Gateway) -> Vec<String> {
    let Some(base_url) = &gateway.base_url else { return Vec::new() };
    let base_url = toml(base_url);
    let key = match &gateway.key_env {
        Some(variable) => format!("env_key={}", toml(variable)),
        None => format!("experimental_bearer_token={}", toml(NO_KEY)),
    };
    vec![
        "model_provider=\"autopilot\"".to_owned(),
        format!(
            "model_providers.autopilot={{name=\"autopilot\",base_url={base_url},{key},\
             wire_api=\"responses\"}}"
        ),
    ]
}

/// The trust level of the worktree. Without it Codex would write one into the user's settings for
/// each worktree. An agent that only reads does not follow the settings that come with the change
/// it reads.
fn trust(ask: &LaunchRequest) -> String {
    let level = match ask.access {
        Access::Read => "untrusted",
        Access::Edit | Access::Unsafe => "trusted",
    };
    let cwd = toml(ask.cwd.as_str());
    format!("projects={{{cwd}={{trust_level=\"{level}\"}}}}")
}

/// The setting of one MCP server. Without an approval mode every tool call would fail, and the run
/// succeed; without `required` a server that does not start would be passed over in silence.
fn mcp_server(server: &LaunchServer) -> String {
    let transport = match &server.transport {
        Transport::Stdio { command, args, env } => {
            let args: Vec<String> = args.iter().map(|arg| toml(arg)).collect();
            let env: Vec<String> =
                env.iter().map(|(name, value)| format!("{}={}", toml(name), toml(value))).collect();
            format!("command={},args=[{}],env={{{}}}", toml(command), args.join(","), env.join(","))
        }
        Transport::Http { url } => format!("url={}", toml(url)),
    };
    // Codex splits the key at its dots and takes the rest as it is, quotes and all.
    let name = &server.name;
    format!(
        "mcp_servers.{name}={{{transport},required=true,default_tools_approval_mode=\"approve\"}}"
    )
}

/// The file with the schema's strict form: Codex sends schemas as strict, which admits only a part
/// of JSON Schema.
fn strict_file(schema: &LaunchSchema) -> Option<(Utf8PathBuf, String)> {
    Some((schema.path.with_extension("strict.json"), schema.strict()?.to_string()))
}

/// The text as a string of TOML; a JSON string is one.
fn toml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(executable: &str, ask: &LaunchRequest) -> LaunchPlan {
        super::launch(executable, &Gateway::default(), ask)
    }

    #[test]
    fn inside_our_sandbox_its_own_is_off() {
        let ask = LaunchRequest {
            sandbox: LaunchSandbox::Ours,
            access: Access::Read,
            model: Some("gpt".into()),
            effort: Some("high".into()),
            ..LaunchRequest::new("review", "/slot".into())
        };
        let plan = launch("codex", &ask);
        insta::assert_snapshot!(plan.args.join(" "), @r#"exec --json --disable plugins -s danger-full-access -C /slot --skip-git-repo-check -c approval_policy=never -c analytics.enabled=false -c check_for_update_on_startup=false -c projects={"/slot"={trust_level="untrusted"}} -c sandbox_workspace_write.network_access=true -c model_reasoning_effort="high" -m gpt -"#);
        assert_eq!(plan.stdin, LaunchStdin::Whole(b"review".to_vec()));
    }

    #[test]
    fn a_resumed_thread_keeps_the_sandbox_before_the_word_and_the_schema_after_it() {
        let args = ["-c".to_owned(), "x=1".to_owned()];
        let ask = LaunchRequest {
            access: Access::Read,
            network: Network::Off,
            session: Some("t-1".into()),
            args: args.to_vec(),
            schema: Some(LaunchSchema {
                path: "/a/review.json".into(),
                json: r#"{"type":"object"}"#.into(),
            }),
            ..LaunchRequest::new("again", "/slot".into())
        };
        let plan = launch("codex", &ask);
        insta::assert_snapshot!(plan.args.join(" "), @r#"exec --json --disable plugins -s read-only -C /slot --skip-git-repo-check -c approval_policy=never -c analytics.enabled=false -c check_for_update_on_startup=false -c projects={"/slot"={trust_level="untrusted"}} -c sandbox_workspace_write.network_access=false -c web_search="disabled" -c x=1 resume --output-schema /a/review.strict.json t-1 -"#);
        let (path, json) = &plan.files[0];
        assert_eq!(path, "/a/review.strict.json");
        assert!(json.contains(r#""additionalProperties":false"#), "{json}");
    }

    #[test]
    fn without_a_sandbox_of_ours_it_uses_its_own() {
        for (access, word) in [
            (Access::Read, "read-only"),
            (Access::Edit, "workspace-write"),
            (Access::Unsafe, "danger-full-access"),
        ] {
            let plan =
                launch("codex", &LaunchRequest { access, ..LaunchRequest::new("", "/s".into()) });
            let at = plan.args.iter().position(|arg| arg == "-s").unwrap();
            assert_eq!(plan.args[at + 1], word);
        }
    }

    #[test]
    fn another_address_is_a_provider_of_its_own_with_the_named_key() {
        let said = |base_url: Option<&str>, key_env: Option<&str>| {
            let gateway = Gateway {
                base_url: base_url.map(str::to_owned),
                key_env: key_env.map(str::to_owned),
            };
            let plan = super::launch("codex", &gateway, &LaunchRequest::new("", "/s".into()));
            let from = plan.args.iter().position(|arg| arg.starts_with("model_provider="));
            from.map(|from| plan.args[from..from + 3].join(" "))
        };
        insta::assert_snapshot!(said(Some("https://g.example/v1"), Some("G_KEY")).unwrap(), @r#"model_provider="autopilot" -c model_providers.autopilot={name="autopilot",base_url="https://g.example/v1",env_key="G_KEY",wire_api="responses"}"#);
        insta::assert_snapshot!(said(Some("http://localhost:1"), None).unwrap(), @r#"model_provider="autopilot" -c model_providers.autopilot={name="autopilot",base_url="http://localhost:1",experimental_bearer_token="none",wire_api="responses"}"#);
        assert_eq!(said(None, None), None);
    }
}

//! What the configuration says about agents: fallbacks, addresses, keys and money.

use super::*;

#[test]
fn a_fallback_without_a_mode_is_the_same_agent_with_changes() {
    let config = parsed(&format!(
        "{MINIMAL}builder:\n  model: big\n  env: {{ A: b }}\n  network: false\n  timeout_sec: 7\n  fallback:\n    - model: small\n    - {{ mode: codex_cli, timeout_sec: 9 }}\n"
    ));
    let all: Vec<&AgentConfig> = config.candidates(Role::Builder).collect();
    assert_eq!(all.len(), 3);
    let small = AgentConfig {
        model: Some("small".to_owned()),
        fallback: Vec::new(),
        ..config.builder.clone()
    };
    assert_eq!(*all[1], small);
    assert_eq!((all[2].mode, all[2].model.as_deref()), (Mode::CodexCli, None));
    assert!(all[2].env.is_empty());
    assert!(!all[2].network, "what was forbidden to the first is not free to the second");
    assert_eq!(config.candidate(Role::Builder, 2).mode, Mode::CodexCli);
    assert_eq!(config.candidate(Role::Builder, 9).mode, Mode::ClaudeCodeCli);
    assert_eq!([0, 1, 2].map(|lane| config.timeout_in(Step::Build, lane).as_secs()), [7, 7, 9]);
}

#[test]
fn what_a_mode_would_not_keep_is_refused_where_it_stands() {
    let command = "mode: command, command: x";
    let api = "mode: openai_api, model: m";
    for (agent, key, mode) in [
        (command, "network: false", "command"),
        (command, "disallowed_tools: [Bash]", "command"),
        (command, "allowed_tools: [Bash]", "command"),
        (command, "max_turns: 3", "command"),
        (command, "effort: high", "command"),
        (command, "api_key_env: KEY", "command"),
        (command, "base_url: 'http://h'", "command"),
        ("mode: script, script: x", "network: false", "script"),
        ("mode: codex_cli", "disallowed_tools: [Bash]", "codex_cli"),
        ("mode: codex_cli", "allowed_tools: [Bash]", "codex_cli"),
        ("mode: codex_cli", "max_turns: 3", "codex_cli"),
        ("mode: acp, command: x", "max_turns: 3", "acp"),
        ("mode: acp, command: x", "api_key_env: KEY", "acp"),
        ("mode: acp, command: x", "allowed_tools: [Bash]", "acp"),
        (api, "disallowed_tools: [Bash]", "openai_api"),
        (api, "max_turns: 3", "openai_api"),
    ] {
        let (name, _) = key.split_once(':').unwrap();
        let column = format!("reviewer: {{ {agent}, {name}: ").len() + 1;
        assert_eq!(
            faults(&format!("reviewer: {{ {agent}, {key} }}\n")),
            format!(
                "line 2, column {column}: `reviewer.{name}` has no effect with mode {mode}; remove it"
            ),
        );
    }
    for kept in [
        "mode: claude_code_cli, network: false, disallowed_tools: [X], max_turns: 2, effort: low",
        "mode: claude_code_cli, base_url: 'http://h', api_key_env: KEY, allowed_tools: [X]",
        "mode: codex_cli, network: false, effort: low, base_url: 'http://h', api_key_env: KEY",
        "mode: acp, command: x, network: false, disallowed_tools: [X], effort: low",
        "mode: openai_api, model: m, network: false, effort: low",
        "mode: command, command: x, network: true, system_prompt: hello",
        "mode: script, script: x, disallowed_tools: [], system_prompt: hello",
    ] {
        parsed(&format!("{MINIMAL}reviewer: {{ {kept} }}\n"));
    }
}

#[test]
fn what_was_forbidden_to_the_first_must_be_kept_by_who_takes_its_place() {
    let first = |key: &str, other: &str| {
        format!("reviewer:\n  mode: claude_code_cli\n  {key}\n  fallback:\n    - {other}\n")
    };
    let command = "{ mode: command, command: x }";
    assert_eq!(
        faults(&first("network: false", command)),
        "line 6, column 15: `reviewer.fallback` (mode command) can't enforce `network` of the \
         agent it replaces; write `network: true` here to allow that, or use another \
         mode"
    );
    let said = faults(&first("disallowed_tools: [Bash]", "{ mode: codex_cli }"));
    assert!(said.starts_with("line 6, column 15: ") && said.contains("`disallowed_tools: []`"));
    let free = "{ mode: command, command: x, network: true }";
    for (key, other) in [
        ("network: false", free),
        ("network: false", "{ mode: codex_cli }"),
        ("disallowed_tools: [Bash]", "{ mode: codex_cli, disallowed_tools: [] }"),
        ("disallowed_tools: [Bash]", "{ mode: acp, command: x }"),
        // A model behind an API has no tools at all.
        ("disallowed_tools: [Bash]", "{ mode: openai_api, model: m }"),
        // A setting that forbids nothing is no fault in a fallback of another kind.
        ("allowed_tools: [Bash]", "{ mode: codex_cli }"),
        ("max_turns: 3", "{ mode: codex_cli }"),
        ("effort: high", command),
    ] {
        parsed(&format!("{MINIMAL}{}", first(key, other)));
    }
}

#[test]
fn an_agent_without_money_is_a_mistake() {
    for key in ["builder: { max_usd: 0 }", "reviewer: { fallback: [{ max_usd: 0.0 }] }"] {
        let said = faults(&format!("{key}\n"));
        assert!(said.ends_with("write an amount above 0, as in `2.50`"), "{said}");
    }
    parsed(&format!("{MINIMAL}builder: {{ max_usd: 0.01 }}\n"));
}

#[test]
fn a_role_has_only_so_many_agents() {
    let list =
        |n: usize| format!("builder: {{ fallback: [{}] }}\n", vec!["{ model: x }"; n].join(", "));
    parsed(&format!("{MINIMAL}{}", list(FALLBACK_MAX)));
    let said = "line 2, column 22: `builder.fallback` has 9 entries; write at most 8";
    assert_eq!(faults(&list(FALLBACK_MAX + 1)), said);
}

#[test]
fn agents_get_servers_addresses_and_prices() {
    let config = parsed(&format!(
        "{MINIMAL}reviewer: {{ mode: openai_api, base_url: 'http://127.0.0.1:1/v1', api: chat, api_key_env: LOCAL_KEY, model: m }}\nbuilder:\n  mcp_servers:\n    db: {{ command: 'npx server', args: [-x], env: {{ A: b }} }}\n    web: {{ url: 'https://h/mcp' }}\nprices: {{ m: {{ input: 1, output: 2.5 }} }}\nlogging: {{ record: false }}\n"
    ));
    assert_eq!(
        (config.reviewer.api, config.reviewer.api_key_env.as_deref()),
        (Api::Chat, Some("LOCAL_KEY"))
    );
    assert_eq!(
        config.builder.mcp_servers["web"],
        McpServer::Url { url: "https://h/mcp".to_owned() }
    );
    let McpServer::Command { command, args, env } = &config.builder.mcp_servers["db"] else {
        panic!("{:?}", config.builder.mcp_servers);
    };
    assert_eq!((command.as_str(), args.len(), env.len()), ("npx server", 1, 1));
    let price = config.price("m").unwrap();
    assert_eq!(price.of(1_000, 1_000, 0), crate::id::Micros(3_500));
    assert_eq!(config.price("other"), None);
    assert!(!config.logging.record);
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
}

#[test]
fn a_key_is_for_the_address_it_came_with() {
    let text = "commands: { tests: t }\nreviewer: { mode: openai_api, model: m, \
                base_url: 'https://a.example', api_key_env: A_KEY, fallback: [ \
                { base_url: 'https://b.example' }, { model: n }, \
                { base_url: 'https://c.example', api_key_env: C_KEY } ] }\n";
    let (config, _) = Config::parse(text).unwrap();
    let keys: Vec<Option<&str>> =
        config.reviewer.fallback.iter().map(|agent| agent.api_key_env.as_deref()).collect();
    assert_eq!(keys, [None, Some("A_KEY"), Some("C_KEY")]);
}

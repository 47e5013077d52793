//! Decides which tools Claude Code may use when it asks. It does not ask for tools that its own
//! flags grant.

use camino::Utf8Path;
use serde_json::Value;

use crate::jsonl::text_of;
use crate::launch::{Access, LaunchRequest, Network};

/// The tools that only read, or change nothing outside the conversation.
const LOOKING: &[&str] = &[
    "Read",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "Skill",
    "Task",
    "Agent",
    "TodoWrite",
    "ToolSearch",
    "ListMcpResources",
    "ReadMcpResource",
    "StructuredOutput",
];
pub(super) const WRITING: &[&str] = &["Edit", "MultiEdit", "Write", "NotebookEdit"];
const REACHING: &[&str] = &["WebFetch", "WebSearch"];
/// The tools that wait for a person.
const ASKING: &[&str] = &["AskUserQuestion", "ExitPlanMode", "EnterPlanMode"];

/// The reason why `request`, a `can_use_tool` request, is refused; `None` grants it. The reason
/// goes to the model so that it finds another way.
pub(super) fn refusal(launch: &LaunchRequest, request: &Value) -> Option<String> {
    let tool = text_of(&request["tool_name"]);
    if ASKING.contains(&tool) {
        return Some("nobody can answer here; decide yourself and say what you chose".into());
    }
    if launch.disallowed_tools.iter().any(|name| name == tool) {
        return Some(format!("the configuration does not allow {tool}"));
    }
    if REACHING.contains(&tool) && launch.network == Network::Off {
        return Some("the network is switched off for this agent".into());
    }
    match launch.access {
        Access::Unsafe => None,
        Access::Read if LOOKING.contains(&tool) || REACHING.contains(&tool) => None,
        Access::Read => Some(format!("this step is read-only; {tool} is not allowed")),
        Access::Edit => refusal_of_builder(launch, tool, request),
    }
}

fn refusal_of_builder(launch: &LaunchRequest, tool: &str, request: &Value) -> Option<String> {
    if let Some(path) = outside(&launch.cwd, request) {
        return Some(format!("{path} is outside the worktree {}", launch.cwd));
    }
    let is_named = launch.allowed_tools.iter().any(|name| name == tool);
    // An agent that may edit may also write a new file.
    let edits = WRITING.contains(&tool) && launch.allowed_tools.iter().any(|name| name == "Edit");
    let is_of_a_server = tool
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split("__").next())
        .is_some_and(|name| launch.mcp_servers.iter().any(|server| server.name == name));
    let is_harmless = LOOKING.contains(&tool) || REACHING.contains(&tool);
    let is_granted = is_named || edits || is_of_a_server || is_harmless;
    (!is_granted).then(|| format!("{tool} is not one of this agent's allowed tools"))
}

/// The path that made Claude ask, if it lies outside the worktree. Not every version names the path
/// in a field of its own.
fn outside<'a>(cwd: &Utf8Path, request: &'a Value) -> Option<&'a str> {
    let input = &request["input"];
    let of_input = || {
        let asked_for_place = request["decision_reason_type"] == "workingDir";
        let path = input["file_path"].as_str().or_else(|| input["notebook_path"].as_str());
        path.filter(|_| asked_for_place)
    };
    let path = request["blocked_path"].as_str().or_else(of_input)?;
    let is_inside =
        Utf8Path::new(path).starts_with(cwd) && !path.split('/').any(|part| part == "..");
    (!is_inside).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{LaunchServer, Transport};
    use serde_json::json;

    fn launch(access: Access) -> LaunchRequest {
        let tools = ["Read".to_owned(), "Edit".to_owned(), "Bash(git *)".to_owned()];
        let server = LaunchServer {
            name: "docs".into(),
            transport: Transport::Http { url: "http://127.0.0.1:1".into() },
        };
        LaunchRequest {
            access,
            allowed_tools: tools.to_vec(),
            mcp_servers: vec![server],
            ..LaunchRequest::new("", "/slot".into())
        }
    }

    fn allows(launch: &LaunchRequest, tool: &str, path: Option<&str>) -> bool {
        let request = json!({ "tool_name": tool, "blocked_path": path });
        refusal(launch, &request).is_none()
    }

    #[test]
    fn a_reader_looks_and_nothing_more() {
        let reader = launch(Access::Read);
        for tool in ["Read", "Grep", "Skill", "WebFetch"] {
            assert!(allows(&reader, tool, None), "{tool}");
        }
        for tool in ["Edit", "Write", "Bash", "mcp__docs__search", "Unheard"] {
            assert!(!allows(&reader, tool, None), "{tool}");
        }
    }

    #[test]
    fn a_builder_writes_in_its_worktree_with_the_tools_it_was_given() {
        let builder = launch(Access::Edit);
        for tool in ["Edit", "Write", "mcp__docs__search", "Task"] {
            assert!(allows(&builder, tool, None), "{tool}");
        }
        // Claude asks only if the pattern of its own flag did not match.
        for tool in ["Bash", "mcp__other__x", "Unheard"] {
            assert!(!allows(&builder, tool, None), "{tool}");
        }
        assert!(allows(&builder, "Edit", Some("/slot/src/a.rs")));
        for path in ["/etc/passwd", "/slot/../etc/passwd", "/slotted/x"] {
            assert!(!allows(&builder, "Edit", Some(path)), "{path}");
        }
    }

    #[test]
    fn a_file_elsewhere_is_seen_where_only_the_call_names_it() {
        let asked = |path: &str, kind: &str| {
            let request = json!({
                "tool_name": "Write", "input": { "file_path": path }, "decision_reason_type": kind,
            });
            refusal(&launch(Access::Edit), &request)
        };
        assert_eq!(asked("src/a.rs", "other"), None);
        for path in ["/etc/passwd", "../a.rs"] {
            assert!(asked(path, "workingDir").is_some(), "{path}");
        }
    }

    #[test]
    fn nobody_answers_questions_and_what_is_forbidden_stays_so() {
        let mut unsafely = launch(Access::Unsafe);
        assert!(allows(&unsafely, "Bash", Some("/etc")));
        assert!(!allows(&unsafely, "AskUserQuestion", None));
        unsafely.disallowed_tools = vec!["Bash".into()];
        unsafely.network = Network::Off;
        assert!(!allows(&unsafely, "Bash", None));
        assert!(!allows(&unsafely, "WebFetch", None));
    }
}

//! Answers an agent that asks before it uses a tool: by policy, never by a person.

use camino::Utf8Path;
use serde_json::Value;

use super::call::ToolCall;
use crate::launch::{Access, LaunchRequest, Network};

/// The kinds that read and change nothing.
const LOOKING: &[&str] = &["read", "search", "think"];
/// The kinds that are not judged by the place of their files.
const ELSEWHERE: &[&str] = &["execute", "fetch"];
const WRITING: &[&str] = &["edit", "delete", "move"];
/// The tools that use the network although their agents give them another kind.
const REACHING: &[&str] =
    &["webfetch", "web_fetch", "websearch", "web_search", "google_web_search", "codesearch"];

/// The reason why the permission is refused; `None` grants it.
pub(super) fn refusal(launch: &LaunchRequest, call: &ToolCall) -> Option<String> {
    let name = &call.name;
    if launch.disallowed_tools.iter().any(|rule| names(rule, call)) {
        return Some(format!("the configuration does not allow {name}"));
    }
    let kind = call.kind.as_str();
    let reaches = kind == "fetch" || REACHING.iter().any(|tool| tool.eq_ignore_ascii_case(name));
    if reaches && launch.network == Network::Off {
        return Some("the network is switched off for this agent".to_owned());
    }
    match launch.access {
        Access::Unsafe => None,
        Access::Edit => outside(&launch.cwd, call),
        Access::Read if reaches || LOOKING.contains(&kind) => None,
        Access::Read => Some(format!("this step is read-only; {name} is not allowed")),
    }
}

/// Whether a rule of the configuration names the call. A rule is a tool's name, a kind, or
/// `Name(pattern)` where `*` stands for any text.
fn names(rule: &str, call: &ToolCall) -> bool {
    let (name, pattern) = match rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
        Some((name, pattern)) => (name, Some(pattern)),
        None => (rule, None),
    };
    let is_named = name.eq_ignore_ascii_case(&call.name) || name.eq_ignore_ascii_case(&call.kind);
    is_named && pattern.is_none_or(|pattern| fits(pattern, &call.what))
}

fn fits(pattern: &str, what: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == what };
    let Some(mut left) = what.strip_prefix(start.trim_end_matches(':')) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The refusal of a call that would change files outside the worktree. A call of any other kind may
/// be a change too: the files it names are judged, and those of which it shows a difference.
fn outside(cwd: &Utf8Path, call: &ToolCall) -> Option<String> {
    let (kind, named) = (call.kind.as_str(), &call.named);
    let writes = WRITING.contains(&kind);
    let may_write = !LOOKING.contains(&kind) && !ELSEWHERE.contains(&kind);
    let changed = call.diffs.iter().map(|(path, _)| path);
    let files = named.files.iter().filter(|_| may_write);
    let places = call.places.iter().chain(&named.perhaps).filter(|_| writes);
    if let Some(path) = changed.chain(files).chain(places).find(|path| !is_inside(cwd, path)) {
        return Some(format!("{path} is outside the worktree {cwd}"));
    }
    let is_unclear = named.is_cut && may_write;
    is_unclear.then(|| "the call names more files than can be checked".to_owned())
}

/// Whether the path lies inside the worktree, judged by its name alone; links are not followed
/// here.
pub(super) fn is_inside(cwd: &Utf8Path, path: &str) -> bool {
    let climbs = path.split('/').any(|part| part == "..") || path.starts_with('~');
    let is_address = path.contains("://");
    !climbs
        && !is_address
        && (Utf8Path::new(path).is_relative() || Utf8Path::new(path).starts_with(cwd))
}

/// The id of the option that grants or refuses. Ids and names of the options differ by agent and
/// version; only their kinds are agreed upon.
pub(super) fn option(options: &Value, granted: bool) -> Option<&str> {
    let kinds = match granted {
        true => ["allow_once", "allow_always"],
        false => ["reject_once", "reject_always"],
    };
    let options = options.as_array()?;
    let of_kind = |kind: &str| options.iter().find(|option| option["kind"] == kind);
    kinds.iter().find_map(|kind| of_kind(kind))?["optionId"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn launch(access: Access) -> LaunchRequest {
        LaunchRequest { access, ..LaunchRequest::new("", "/slot".into()) }
    }

    fn call(name: &str, kind: &str) -> ToolCall {
        ToolCall { name: name.into(), kind: kind.into(), ..ToolCall::default() }
    }

    fn grants(launch: &LaunchRequest, name: &str, kind: &str) -> bool {
        refusal(launch, &call(name, kind)).is_none()
    }

    #[test]
    fn a_reader_looks_and_nothing_more() {
        let mut reader = launch(Access::Read);
        for kind in ["read", "search", "think", "fetch"] {
            assert!(grants(&reader, "x", kind), "{kind}");
        }
        for kind in ["edit", "delete", "move", "execute", "switch_mode", "other", "", "unheard"] {
            assert!(!grants(&reader, "x", kind), "{kind}");
        }
        reader.network = Network::Off;
        assert!(!grants(&reader, "x", "fetch"));
        assert!(!grants(&reader, "websearch", "search"));
    }

    #[test]
    fn a_builder_may_what_is_not_forbidden() {
        let mut builder = launch(Access::Edit);
        for kind in ["edit", "execute", "fetch", "other", "", "unheard"] {
            assert!(grants(&builder, "x", kind), "{kind}");
        }
        builder.network = Network::Off;
        assert!(!grants(&builder, "x", "fetch"));
        assert!(!grants(&builder, "WebSearch", "other"));
        builder.disallowed_tools = vec!["bash".into(), "delete".into()];
        assert!(!grants(&builder, "Bash", "execute"));
        assert!(!grants(&builder, "x", "delete"));
        assert!(grants(&builder, "x", "execute"));
    }

    #[test]
    fn a_pattern_forbids_some_uses_of_a_tool() {
        let mut builder = launch(Access::Unsafe);
        builder.disallowed_tools = vec!["bash(git push*)".into(), "Bash(rm:*)".into()];
        let grants = |what: &str| {
            let wanted = ToolCall { what: what.into(), ..call("bash", "execute") };
            refusal(&builder, &wanted).is_none()
        };
        assert!(!grants("git push origin"));
        assert!(!grants("rm -rf x"));
        assert!(grants("git status"));
        assert!(
            fits("a*c*e", "abcde") && !fits("a*c*e", "abde") && fits("*", "") && fits("x", "x")
        );
    }

    #[test]
    fn writing_ends_at_the_worktree_unless_it_is_unsafe() {
        let table = [
            ("/slot/src/a.rs", true),
            ("src/a.rs", true),
            ("/etc/passwd", false),
            ("/slot/../etc/passwd", false),
            ("../x", false),
            ("/slotted/x", false),
            ("~/x", false),
            ("file:///etc/passwd", false),
            ("https://example.com/x", false),
        ];
        for (path, inside) in table {
            let wanted = ToolCall { places: vec![path.into()], ..call("write", "edit") };
            assert_eq!(refusal(&launch(Access::Edit), &wanted).is_none(), inside, "{path}");
            assert_eq!(refusal(&launch(Access::Unsafe), &wanted), None, "{path}");
        }
    }

    #[test]
    fn what_a_call_names_is_judged_like_what_it_says_of_its_places() {
        let grants = |kind, input: &Value| {
            let mut wanted = ToolCall { places: vec!["/slot/a".into()], ..call("x", kind) };
            wanted.named.learn(input);
            refusal(&launch(Access::Edit), &wanted).is_none()
        };
        for key in ["filePath", "file_path", "path", "destination"] {
            assert!(grants("edit", &json!({ key: "/slot/a" })), "{key}");
            assert!(!grants("edit", &json!({ key: "/etc/passwd" })), "{key}");
            assert!(!grants("edit", &json!({ key: "/slot/../etc/passwd" })), "{key}");
        }
        assert!(!grants("other", &json!({ "file_path": "/etc/passwd" })));
        // A server's tool may use the key `path` for anything, and a command is not a file.
        assert!(grants("other", &json!({ "path": "/repos/x" })));
        assert!(grants("execute", &json!({ "command": "ls", "file": "/etc/passwd" })));
        assert!(grants("read", &json!({ "file_path": "/usr/include/a.h" })));
        let many: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        assert!(!grants("edit", &json!({ "files": many })));
    }

    #[test]
    fn options_are_chosen_by_kind_the_smallest_that_fits() {
        let options = json!([
            { "optionId": "proceed_always", "kind": "allow_always" },
            { "optionId": "proceed_once", "kind": "allow_once" },
            { "optionId": "cancel", "kind": "reject_once" },
        ]);
        assert_eq!(option(&options, true), Some("proceed_once"));
        assert_eq!(option(&options, false), Some("cancel"));
        let only = json!([{ "optionId": "a", "kind": "allow_always" }]);
        assert_eq!(option(&only, true), Some("a"));
        assert_eq!(option(&only, false), None);
        assert_eq!(option(&Value::Null, true), None);
    }
}

//! Answers an agent that asks before it uses a tool: by policy, never by a person.

use camino::Utf8Path;
use serde_json::Value;

use super::place::NamedPlaces;
use crate::launch::{Access, LaunchRequest, Network};

/// The request for a permission, as far as the agent describes it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WantedPermit<'a> {
    pub name: &'a str,
    /// The protocol's kind of the tool: read, edit, delete, move, search, execute, think, fetch, …
    pub kind: &'a str,
    /// The command, the file or the address.
    pub what: &'a str,
    /// The files on which the call acts, as far as the agent lists them.
    pub paths: &'a [String],
    pub named: Option<&'a NamedPlaces>,
}

/// The kinds that read and change nothing.
const LOOKING: &[&str] = &["read", "search", "think"];
/// The kinds that are not judged by the place of their files.
const ELSEWHERE: &[&str] = &["execute", "fetch"];
const WRITING: &[&str] = &["edit", "delete", "move"];
/// The tools that use the network although their agents give them another kind.
const REACHING: &[&str] =
    &["webfetch", "web_fetch", "websearch", "web_search", "google_web_search", "codesearch"];

/// The reason why the permission is refused; `None` grants it.
pub(super) fn refusal(launch: &LaunchRequest, wanted: WantedPermit<'_>) -> Option<String> {
    let name = wanted.name;
    if launch.disallowed_tools.iter().any(|rule| names(rule, wanted)) {
        return Some(format!("the configuration does not allow {name}"));
    }
    let reaches = reaches(wanted);
    if reaches && launch.network == Network::Off {
        return Some("the network is switched off for this agent".to_owned());
    }
    match launch.access {
        Access::Unsafe => None,
        Access::Edit => outside(&launch.cwd, wanted),
        Access::Read if reaches || LOOKING.contains(&wanted.kind) => None,
        Access::Read => Some(format!("this step is read-only; {name} is not allowed")),
    }
}

fn reaches(wanted: WantedPermit<'_>) -> bool {
    wanted.kind == "fetch" || REACHING.iter().any(|name| name.eq_ignore_ascii_case(wanted.name))
}

/// Whether a rule of the configuration names the call. A rule is a tool's name, a kind, or
/// `Name(pattern)` where `*` stands for any text.
fn names(rule: &str, wanted: WantedPermit<'_>) -> bool {
    let (name, pattern) = match rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
        Some((name, pattern)) => (name, Some(pattern)),
        None => (rule, None),
    };
    let is_named = name.eq_ignore_ascii_case(wanted.name) || name.eq_ignore_ascii_case(wanted.kind);
    is_named && pattern.is_none_or(|pattern| fits(pattern, wanted.what))
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
fn outside(cwd: &Utf8Path, wanted: WantedPermit<'_>) -> Option<String> {
    let nothing = NamedPlaces::default();
    let named = wanted.named.unwrap_or(&nothing);
    let writes = WRITING.contains(&wanted.kind);
    let may_write = !LOOKING.contains(&wanted.kind) && !ELSEWHERE.contains(&wanted.kind);
    let judged = [
        (true, named.changed.as_slice()),
        (may_write, &named.files),
        (writes, wanted.paths),
        (writes, &named.perhaps),
    ];
    let mut paths = judged.iter().filter(|(is_judged, _)| *is_judged).flat_map(|(_, paths)| *paths);
    if let Some(path) = paths.find(|path| !is_inside(cwd, path)) {
        return Some(format!("{path} is outside the worktree {cwd}"));
    }
    let is_unclear = named.is_cut && may_write;
    is_unclear.then(|| "the call names more files than can be checked".to_owned())
}

/// Whether the path lies inside the worktree, judged by its name alone; links are not followed
/// here.
pub(super) fn is_inside(cwd: &Utf8Path, path: &str) -> bool {
    let climbs = path.split('/').any(|part| part == "..") || path.starts_with('~');
    !climbs && (Utf8Path::new(path).is_relative() || Utf8Path::new(path).starts_with(cwd))
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

    fn grants(launch: &LaunchRequest, name: &str, kind: &str) -> bool {
        refusal(launch, WantedPermit { name, kind, ..WantedPermit::default() }).is_none()
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
        let grants = |what| {
            let wanted =
                WantedPermit { name: "bash", kind: "execute", what, ..WantedPermit::default() };
            refusal(&builder, wanted).is_none()
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
        ];
        for (path, inside) in table {
            let paths = [path.to_owned()];
            let wanted = WantedPermit {
                name: "write",
                kind: "edit",
                paths: &paths,
                ..WantedPermit::default()
            };
            assert_eq!(refusal(&launch(Access::Edit), wanted).is_none(), inside, "{path}");
            assert_eq!(refusal(&launch(Access::Unsafe), wanted), None, "{path}");
        }
    }

    #[test]
    fn what_a_call_names_is_judged_like_what_it_says_of_its_places() {
        let grants = |kind, input: &Value| {
            let mut places = NamedPlaces::default();
            places.learn(input);
            let paths = ["/slot/a".to_owned()];
            let named = Some(&places);
            let wanted = WantedPermit { name: "x", kind, what: "", paths: &paths, named };
            refusal(&launch(Access::Edit), wanted).is_none()
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

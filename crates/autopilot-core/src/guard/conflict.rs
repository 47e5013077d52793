//! Finds the markers of an unresolved merge, which git puts into a file and a person takes out.

use super::moved::new_lines;
use super::text::TextKind;
use super::todo::excerpt;
use super::{Change, Finding, FindingSource, Severity};

/// Reports the markers that are new. In a document, in the data of a test and where the task is about
/// such markers they may be what the file is for, so a reviewer judges them, and where both hold, nobody
/// has to look; those of a merge of the run itself never are.
pub(super) fn check(change: &Change, task: &str) -> Vec<Finding> {
    let task = task.to_lowercase();
    let is_topic = task.contains("conflict") || task.contains("<<<<<<<");
    new_lines(change, |line| is_marker(&line.text))
        .into_iter()
        .map(|line| {
            let severity = match TextKind::of(&line.path) {
                _ if names_commit(&line.text) => Severity::Blocker,
                TextKind::Code if !is_topic => Severity::Blocker,
                TextKind::Document | TextKind::Data if is_topic => Severity::Minor,
                TextKind::Code | TextKind::Document | TextKind::Data => Severity::Major,
            };
            let message =
                format!("a conflict marker is left in the file: `{}`", excerpt(&line.text));
            let fix = "resolve the conflict and remove its markers";
            Finding::new(FindingSource::Repository, severity, message, fix)
                .in_file(&line.path)
                .at_line(line.line)
        })
        .collect()
}

/// Whether a line is a conflict marker. The line between the sides is not counted: headings are
/// underlined with it.
fn is_marker(text: &str) -> bool {
    let rest = text.strip_prefix("<<<<<<<").or_else(|| text.strip_prefix(">>>>>>>"));
    rest.is_some_and(|rest| rest.trim_end().is_empty() || rest.starts_with(' '))
}

/// Whether a marker names a commit by its full id, as those do that a merge of the run left.
fn names_commit(text: &str) -> bool {
    let label = text.get(7..).unwrap_or_default().trim();
    matches!(label.len(), 40 | 64) && label.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::super::ChangedLine;
    use super::*;

    #[test]
    fn only_whole_markers_at_the_start_of_a_line_count() {
        for text in ["<<<<<<< ours", ">>>>>>> 0123abc", "<<<<<<<", ">>>>>>>\r"] {
            assert!(is_marker(text), "{text}");
        }
        for text in ["=======", " <<<<<<< x", "<<<<<<<<", "a <<<<<<< b", "<<<<<<", ">>>>>>>x"] {
            assert!(!is_marker(text), "{text}");
        }
    }

    #[test]
    fn a_marker_blocks_unless_it_was_there_before() {
        let line = |path: &str, line: u64| ChangedLine {
            path: path.into(),
            line,
            text: "<<<<<<< ours".into(),
        };
        let change = Change {
            added: vec![line("a.rs", 3), line("b.rs", 1)],
            removed: vec![line("b.rs", 1)],
            ..Change::default()
        };
        let found = check(&change, "");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Blocker);
    }

    #[test]
    fn markers_as_a_product_s_text_are_told() {
        let severity = |path: &str, task: &str| {
            let line = ChangedLine { path: path.into(), line: 1, text: "<<<<<<< ours".into() };
            let change = Change { added: vec![line], ..Change::default() };
            check(&change, task)[0].severity
        };
        for (path, task, wanted) in [
            ("docs/merging.md", "", Severity::Major),
            ("docs/merging.md", "Show what a conflict looks like", Severity::Minor),
            ("tests/fixtures/merge.rs", "", Severity::Major),
            ("src/merge.rs", "Parse conflict markers", Severity::Major),
            ("src/merge.rs", "Say done", Severity::Blocker),
        ] {
            assert_eq!(severity(path, task), wanted, "{path}");
        }
    }

    #[test]
    fn a_conflict_of_the_run_itself_blocks_in_every_file() {
        let text = format!(">>>>>>> {}", "5b7bd50eed".repeat(4));
        for path in ["docs/merging.md", "tests/fixtures/merge.rs", "src/merge.rs"] {
            let line = ChangedLine { path: path.into(), line: 1, text: text.clone() };
            let change = Change { added: vec![line], ..Change::default() };
            assert_eq!(check(&change, "conflict")[0].severity, Severity::Blocker, "{path}");
        }
    }
}

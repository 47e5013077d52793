//! Finds the markers of an unresolved merge, which git puts into a file and a person takes out.

use super::todo::{excerpt, not_moved};
use super::{Change, ChangedLine, Finding, FindingSource, Severity};

pub(super) fn check(change: &Change) -> Vec<Finding> {
    let marked = |line: &&ChangedLine| is_marker(&line.text);
    let new = not_moved(change.added.iter().filter(marked), change.removed.iter().filter(marked));
    new.into_iter()
        .map(|line| {
            let message =
                format!("a conflict marker is left in the file: `{}`", excerpt(&line.text));
            let fix = "resolve the conflict and remove its markers";
            Finding::new(FindingSource::Repository, Severity::Blocker, message, fix)
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

#[cfg(test)]
mod tests {
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
            added: vec![line("a.rs", 3), line("doc.md", 9)],
            removed: vec![line("doc.md", 1)],
            ..Change::default()
        };
        let found = check(&change);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Blocker);
    }
}

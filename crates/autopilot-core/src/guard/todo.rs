//! Refuses new TODO and FIXME on added lines, unless the line was only moved.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::finding::visible;
use super::{Change, ChangedLine, Finding, FindingSource, Severity};

pub(super) fn check(change: &Change) -> Vec<Finding> {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b(?:TODO|FIXME)\b").ok());
    let Some(word) = WORD.as_ref() else { return Vec::new() };
    let marked = |line: &&ChangedLine| word.is_match(&line.text);
    let new = not_moved(change.added.iter().filter(marked), change.removed.iter().filter(marked));
    new.into_iter()
        .map(|line| {
            let found = word.find(&line.text).map_or("", |found| found.as_str());
            let message = format!("new {found}: `{}`", excerpt(&line.text));
            let fix = "do it now, or remove the comment";
            Finding::new(FindingSource::Todo, Severity::Blocker, message, fix)
                .in_file(&line.path)
                .at_line(line.line)
        })
        .collect()
}

/// The added lines, without those for which an equal line was removed.
pub(super) fn not_moved<'a>(
    added: impl Iterator<Item = &'a ChangedLine>,
    removed: impl Iterator<Item = &'a ChangedLine>,
) -> Vec<&'a ChangedLine> {
    let mut gone = BTreeMap::<&str, usize>::new();
    for line in removed {
        *gone.entry(line.text.trim()).or_default() += 1;
    }
    added
        .filter(|line| match gone.get_mut(line.text.trim()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        })
        .collect()
}

pub(super) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS_MAX: usize = 100;
    let text = text.trim();
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((at, _)) => visible(&format!("{}…", &text[..at])),
        None => visible(text),
    }
}

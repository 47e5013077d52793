//! Finds tests that were deleted or weakened. A suite that asks less passes more easily, so the
//! change is checked and not the suite's result.

mod language;

use super::todo::{excerpt, not_moved};
use super::{Change, ChangedLine, FileStatus, Finding, FindingSource, Severity};
use language::{Language, Sign};

pub use language::is_test_path;

pub(super) fn check(change: &Change) -> Vec<Finding> {
    let mut findings = deleted(change);
    let gone: Vec<&str> = change
        .files
        .iter()
        .filter(|file| file.status == FileStatus::Deleted)
        .map(|file| file.path.as_str())
        .collect();
    let kept = |line: &&ChangedLine| !gone.contains(&line.path.as_str());
    let added: Vec<&ChangedLine> = change.added.iter().filter(kept).collect();
    let removed: Vec<&ChangedLine> = change.removed.iter().filter(kept).collect();
    findings.extend(fewer_tests(&added, &removed));
    findings.extend(skipped(&added, &removed));
    findings.extend(fewer_checks(&added, &removed));
    findings.extend(empty_checks(&added, &removed));
    findings
}

fn deleted(change: &Change) -> Vec<Finding> {
    let fix = "restore it; change the code, not the tests";
    change
        .files
        .iter()
        .filter_map(|file| match file.status {
            FileStatus::Deleted if is_test_path(&file.path) => {
                Some(("a test file was deleted".to_owned(), file.path.as_str()))
            }
            FileStatus::Renamed => {
                let old = file.old_path.as_deref()?;
                let lost = is_test_path(old) && !is_test_path(&file.path);
                let to = excerpt(&file.path);
                lost.then(|| {
                    (format!("a test file was moved to `{to}`, where it is not run as a test"), old)
                })
            }
            FileStatus::Added
            | FileStatus::Modified
            | FileStatus::Deleted
            | FileStatus::Copied
            | FileStatus::TypeChanged
            | FileStatus::Unmerged => None,
        })
        .map(|(message, path)| {
            Finding::new(FindingSource::TestCode, Severity::Blocker, message, fix).in_file(path)
        })
        .collect()
}

/// The lines that show a sign of their language.
fn showing<'a>(lines: &[&'a ChangedLine], sign: Sign) -> Vec<&'a ChangedLine> {
    let shows = |line: &&&ChangedLine| {
        Language::of(&line.path).is_some_and(|language| language.shows(sign, &line.text))
    };
    lines.iter().filter(shows).copied().collect()
}

/// Reports removed tests. Renamed tests do not count; a test that is gone without a new one in its
/// place does.
fn fewer_tests(added: &[&ChangedLine], removed: &[&ChangedLine]) -> Option<Finding> {
    let (now, before) = (showing(added, Sign::Test), showing(removed, Sign::Test));
    let lost = before.len().checked_sub(now.len()).filter(|lost| *lost > 0)?;
    let names = not_moved(before.iter().copied(), now.iter().copied());
    let named: Vec<String> =
        names.iter().take(3).map(|line| format!("`{}`", excerpt(&line.text))).collect();
    let first = names.first()?;
    let tests = if lost == 1 { "test was" } else { "tests were" };
    let message = format!("{lost} {tests} removed, such as {}", named.join(", "));
    let fix = "restore them unless the task removes the code they test";
    Some(weaker(message, fix, &first.path, first.line))
}

fn skipped(added: &[&ChangedLine], removed: &[&ChangedLine]) -> Vec<Finding> {
    let (now, before) = (showing(added, Sign::Skip), showing(removed, Sign::Skip));
    not_moved(now.into_iter(), before.into_iter())
        .into_iter()
        .map(|line| {
            let message = format!("a test is skipped: `{}`", excerpt(&line.text));
            weaker(message, "remove the skip", &line.path, line.line)
        })
        .collect()
}

fn fewer_checks(added: &[&ChangedLine], removed: &[&ChangedLine]) -> Option<Finding> {
    let (now, before) = (showing(added, Sign::Check), showing(removed, Sign::Check));
    if before.len() <= now.len() {
        return None;
    }
    let first = *not_moved(before.iter().copied(), now.iter().copied()).first()?;
    let message = format!(
        "{} assertions were removed and {} added, such as `{}`",
        before.len(),
        now.len(),
        excerpt(&first.text)
    );
    let fix = "keep the assertions unless the task changes the behavior";
    Some(weaker(message, fix, &first.path, first.line))
}

fn empty_checks(added: &[&ChangedLine], removed: &[&ChangedLine]) -> Vec<Finding> {
    let (now, before) = (showing(added, Sign::Empty), showing(removed, Sign::Empty));
    not_moved(now.into_iter(), before.into_iter())
        .into_iter()
        .map(|line| {
            let message = format!("an assertion always holds: `{}`", excerpt(&line.text));
            weaker(message, "assert something that can fail", &line.path, line.line)
        })
        .collect()
}

fn weaker(message: String, fix: &str, path: &str, line: u64) -> Finding {
    Finding::new(FindingSource::TestCode, Severity::Major, message, fix).in_file(path).at_line(line)
}

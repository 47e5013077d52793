//! Finds tests that were deleted or weakened. A suite that asks less passes more easily, so the
//! change is checked and not the suite's result.

mod language;

use super::asked::{AskedRemoval, asked_removal};
use super::moved::new_lines;
use super::text::{TextKind, is_fixture};
use super::todo::{excerpt, not_moved};
use super::{Change, ChangedFile, ChangedLine, FileStatus, Finding, FindingSource, Severity};
use language::{Language, Sign};

pub use language::is_test_path;

/// The longest word that languages put in front of the name of a test, such as `function`.
const TEST_WORD_CHARS_MAX: usize = 8;

pub(super) fn check(change: &Change, task: &str) -> Vec<Finding> {
    let mut findings = deleted(change, task);
    let gone: Vec<&str> = change
        .files
        .iter()
        .filter(|file| file.status == FileStatus::Deleted)
        .map(|file| file.path.as_str())
        .collect();
    let kept = |line: &&ChangedLine| !gone.contains(&line.path.as_str());
    let added: Vec<&ChangedLine> = change.added.iter().filter(kept).collect();
    let removed = not_asked(change.removed.iter().filter(kept).collect(), task);
    findings.extend(fewer_tests(&added, &removed));
    findings.extend(skipped(change));
    findings.extend(fewer_checks(&added, &removed));
    findings.extend(empty_checks(&added, &removed));
    findings
}

fn deleted(change: &Change, task: &str) -> Vec<Finding> {
    change
        .files
        .iter()
        .filter_map(|file| match file.status {
            FileStatus::Deleted => lost_file(change, file, task),
            FileStatus::Renamed => {
                let old = file.old_path.as_deref()?;
                let lost = is_test(old) && !is_test(&file.path);
                let to = excerpt(&file.path);
                lost.then(|| {
                    let what =
                        format!("a test file was moved to `{to}`, where it is not run as a test");
                    gone_test(old, what, task)
                })
            }
            FileStatus::Added
            | FileStatus::Modified
            | FileStatus::Copied
            | FileStatus::TypeChanged
            | FileStatus::Unmerged => None,
        })
        .collect()
}

/// A file among the tests that was deleted. A test whose tests and assertions are now in another
/// file was moved there.
fn lost_file(change: &Change, file: &ChangedFile, task: &str) -> Option<Finding> {
    let path = file.path.as_str();
    if is_test(path) {
        let is_lost = !is_merged_elsewhere(change, path);
        return is_lost.then(|| gone_test(path, "a test file was deleted".to_owned(), task));
    }
    if !is_test_path(path) && !is_fixture(path) || TextKind::of(path) == TextKind::Document {
        return None;
    }
    let severity = match asked_removal(task, path) {
        AskedRemoval::ByName => Severity::Minor,
        AskedRemoval::InGeneral | AskedRemoval::No => Severity::Major,
    };
    let message = "a file beside the tests was deleted; a test that reads it may ask less now";
    let fix = "restore it unless no test needs it";
    Some(Finding::new(FindingSource::TestCode, severity, message, fix).in_file(path))
}

fn gone_test(path: &str, what: String, task: &str) -> Finding {
    let (severity, message, fix) = match asked_removal(task, path) {
        AskedRemoval::No => (Severity::Blocker, what, "restore it; change the code, not the tests"),
        AskedRemoval::InGeneral => (
            Severity::Major,
            format!("{what}; the task asks for such work without naming this file"),
            "restore it unless the task means this file",
        ),
        AskedRemoval::ByName => (Severity::Minor, format!("{what}, as the task asks"), ""),
    };
    Finding::new(FindingSource::TestCode, severity, message, fix).in_file(path)
}

/// Whether a file is run as a test: by its name, or as a program in a directory of tests. The data
/// of tests and the documents of a specification are none.
fn is_test(path: &str) -> bool {
    is_test_path(path) && TextKind::of(path) == TextKind::Code
        || path.ends_with(".snap") && is_test_path(path)
}

/// Whether each test and each assertion of a deleted file was added to a file of tests.
fn is_merged_elsewhere(change: &Change, path: &str) -> bool {
    let Some(language) = Language::of(path) else { return false };
    let is_sign =
        |text: &str| [Sign::Test, Sign::Check].into_iter().any(|sign| language.shows(sign, text));
    let lost: Vec<&ChangedLine> =
        change.removed.iter().filter(|line| line.path == path && is_sign(&line.text)).collect();
    let has_test = lost.iter().any(|line| language.shows(Sign::Test, &line.text));
    let now = change.added.iter().filter(|line| is_test(&line.path));
    has_test && not_moved(lost.into_iter(), now).is_empty()
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

/// The removed lines without those of tests that the task asks to remove or to merge by their names.
fn not_asked<'a>(removed: Vec<&'a ChangedLine>, task: &str) -> Vec<&'a ChangedLine> {
    let mut kept = Vec::new();
    // The file of the test that the lines belong to, if that one is to go.
    let mut asked: Option<&str> = None;
    for (at, line) in removed.iter().enumerate() {
        if !showing(&[*line], Sign::Test).is_empty() {
            // An attribute stands above the name.
            let next = removed.get(at + 1).filter(|_| line.text.trim_start().starts_with("#["));
            let mut texts = [Some(line), next].into_iter().flatten();
            let is_asked = texts.any(|line| is_asked_to_go(&line.text, task));
            asked = is_asked.then_some(line.path.as_str());
        }
        if asked != Some(line.path.as_str()) {
            kept.push(*line);
        }
    }
    kept
}

/// Whether the task asks for the test that a line begins to be removed or merged, by the test's name.
fn is_asked_to_go(line: &str, task: &str) -> bool {
    let quoted = ['\'', '"', '`'].into_iter().filter_map(|mark| line.split(mark).nth(1));
    let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names = names.filter(|name| name.contains('_') || name.len() > TEST_WORD_CHARS_MAX);
    quoted
        .chain(names)
        .any(|name| !name.is_empty() && asked_removal(task, name) == AskedRemoval::ByName)
}

fn skipped(change: &Change) -> Vec<Finding> {
    let skips = |line: &ChangedLine| !showing(&[line], Sign::Skip).is_empty();
    new_lines(change, skips)
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

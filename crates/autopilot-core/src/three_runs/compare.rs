//! What the runs show when they are compared: the tests of the base that do not pass as they did, and
//! the new tests that fail without the change.

use super::{OpenTest, OpenTestKind, ProofRun};
use crate::evidence::{RoundEvidence, SeenCommand};
use crate::test_report::{ReportSource, TestReport};
use std::collections::{BTreeMap, BTreeSet};

/// The runs, and what is known of the files with tests.
#[derive(Clone, Copy, Debug)]
pub struct RunsSeen<'a> {
    /// The files of the change that decide a verdict.
    pub touched: &'a BTreeSet<String>,
    /// The commands on the untouched base.
    pub base: &'a RoundEvidence,
    /// The commands on the change.
    pub green: &'a [SeenCommand],
    /// The commands with the base's tests over the new code.
    pub no_regression: &'a [SeenCommand],
    /// The runs with the new tests over the base's code.
    pub red: &'a [ProofRun],
    /// The names of the base's tests in the touched files.
    pub base_tests: &'a BTreeMap<String, BTreeSet<String>>,
    /// The names of tests whose bodies are new or changed.
    pub changed_tests: &'a BTreeSet<String>,
    /// The names of the base's tests whose bodies stand in the change under another name or in another
    /// file, and the names that they have there.
    pub moved_tests: &'a BTreeMap<String, String>,
    /// The files, and the names of the tests in them, that were not run by themselves without the change
    /// because they are too many.
    pub left_out: &'a BTreeSet<String>,
}

/// The new and changed tests, by what they show without the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedTests {
    pub proven: BTreeSet<String>,
    pub weak: BTreeSet<String>,
    pub not: BTreeSet<String>,
    /// Tests of which no run has shown anything.
    pub unknown: BTreeSet<String>,
}

/// The name of a test without the file, the module and the parameters that its runner puts around it.
pub fn last_name(id: &str) -> &str {
    let name = id.rsplit("::").next().unwrap_or(id);
    let name = name.rsplit(" > ").next().unwrap_or(name);
    name.split('[').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

fn is_named(names: &BTreeSet<String>, id: &str) -> bool {
    names.contains(id) || names.contains(last_name(id))
}

fn report(seen: Option<&SeenCommand>) -> Option<&TestReport> {
    seen.and_then(|seen| seen.report.as_deref()).filter(|report| report.has_ids())
}

fn same<'a>(commands: &'a [SeenCommand], of: &SeenCommand) -> Option<&'a SeenCommand> {
    let is_same = |seen: &&SeenCommand| (&seen.name, &seen.command) == (&of.name, &of.command);
    commands.iter().find(is_same).or_else(|| commands.iter().find(|seen| seen.name == of.name))
}

/// The tests of the base that do not pass as they did on the base's own code.
pub fn open_tests(runs: &RunsSeen<'_>) -> Vec<OpenTest> {
    let mut open = BTreeSet::new();
    for seen in runs.no_regression {
        let green = same(runs.green, seen);
        match report(Some(seen)) {
            Some(told) => {
                let is_explained = runs.by_id(seen, told, green, &mut open);
                if seen.failed() && !is_explained {
                    runs.by_file(OpenTestKind::Fails, &mut open);
                }
            }
            None if !seen.failed() || runs.is_as_on_base(seen) => {}
            // The runner has names for the tests of the change, and none of the base's ran.
            None if report(green).is_some() => {
                runs.by_file(OpenTestKind::DoesNotCompile, &mut open);
            }
            None => runs.by_file(OpenTestKind::Fails, &mut open),
        }
    }
    open.into_iter().collect()
}

impl RunsSeen<'_> {
    fn is_as_on_base(&self, seen: &SeenCommand) -> bool {
        self.base.checks.iter().any(|base| seen.is_as_on(base))
    }

    /// The tests that fail on the untouched base as well.
    fn known_failures(&self, seen: &SeenCommand) -> BTreeSet<&str> {
        let base = same(&self.base.checks, seen);
        let told = base.and_then(|base| base.report.as_deref());
        let names = base.into_iter().flat_map(|base| &base.failing);
        names.chain(told.into_iter().flat_map(|told| &told.failed)).map(String::as_str).collect()
    }

    /// Adds the tests by their names, and returns whether they explain a failure of the command.
    fn by_id(
        &self,
        seen: &SeenCommand,
        told: &TestReport,
        green: Option<&SeenCommand>,
        open: &mut BTreeSet<OpenTest>,
    ) -> bool {
        let known = self.known_failures(seen);
        let is_known = |id: &str| known.contains(id) || known.contains(last_name(id));
        let mut add = |id: &str, kind| {
            let file = self.file_of(id);
            open.insert(OpenTest { id: id.to_owned(), kind, file });
        };
        for id in told.failed.iter().chain(&told.unreported).filter(|id| !is_known(id)) {
            add(id, OpenTestKind::Fails);
        }
        for target in &told.not_loaded {
            let file = self.touched.iter().find(|file| names_target(file, target));
            add(file.unwrap_or(target), OpenTestKind::DoesNotCompile);
        }
        if let Some(now) = report(green) {
            for id in &told.passed {
                let is_moved = self.is_moved(id, now);
                if now.skipped.contains(id) {
                    add(id, OpenTestKind::IsSkipped);
                } else if !now.passed.contains(id) && !now.failed.contains(id) && !is_moved {
                    add(id, OpenTestKind::IsGone);
                }
            }
        }
        let fails = told.failed.len() + told.unreported.len() + told.not_loaded.len();
        fails > 0 || self.is_as_on_base(seen)
    }

    /// Adds the touched files, where no single test is known by its name.
    fn by_file(&self, kind: OpenTestKind, open: &mut BTreeSet<OpenTest>) {
        let with_tests: Vec<&String> =
            self.touched.iter().filter(|file| self.base_tests.contains_key(*file)).collect();
        let files = if with_tests.is_empty() { self.touched.iter().collect() } else { with_tests };
        for file in files {
            open.insert(OpenTest { id: file.clone(), kind, file: Some(file.clone()) });
        }
    }

    /// The touched file of a test: the one in its id, or the only one that declares its name.
    fn file_of(&self, id: &str) -> Option<String> {
        if let Some(file) = self.touched.iter().find(|file| id.starts_with(file.as_str())) {
            return Some(file.clone());
        }
        let name = last_name(id);
        let declares = |tests: &BTreeSet<String>| tests.contains(id) || tests.contains(name);
        let mut files = self.base_tests.iter().filter(|(_, tests)| declares(tests));
        let first = files.next().map(|(file, _)| file.clone());
        first.filter(|_| files.next().is_none())
    }
}

/// Whether a target that did not load is this file, as a runner calls it.
fn names_target(file: &str, target: &str) -> bool {
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name).to_owned()
    };
    file == target || target.ends_with(&format!("/{file}")) || stem(file) == stem(target)
}

/// The new and changed tests that pass with the change, by what they show without it.
pub fn red_tests(runs: &RunsSeen<'_>) -> RedTests {
    let mut red = RedTests::default();
    if runs.red.is_empty() {
        return red;
    }
    // Held-out tests are of no change.
    for green in runs.green.iter().filter(|green| green.holdout.is_none()) {
        let ran: Vec<&SeenCommand> =
            runs.red.iter().filter_map(|run| same(&run.checks, green)).collect();
        match report(Some(green)) {
            // Commands that are no tests are not run without the change.
            _ if ran.is_empty() => {}
            Some(now) => runs.red_by_id(green, now, &ran, &mut red),
            None if green.failed() => {}
            // An exit code alone says that something fails without the change, and not what.
            None => {
                let failed = ran.iter().all(|seen| seen.failed());
                let files = runs.touched.iter().cloned();
                if failed { red.weak.extend(files) } else { red.not.extend(files) }
            }
        }
    }
    red
}

impl RunsSeen<'_> {
    fn red_by_id(
        &self,
        green: &SeenCommand,
        now: &TestReport,
        ran: &[&SeenCommand],
        red: &mut RedTests,
    ) {
        let base = same(&self.base.checks, green).and_then(|base| base.report.as_deref());
        let before = same(self.no_regression, green).and_then(|seen| seen.report.as_deref());
        let known: BTreeSet<&str> =
            base.into_iter().chain(before).flat_map(TestReport::ids).collect();
        let is_new = |id: &&String| {
            let is_moved = self.moved_tests.values().any(|name| name == last_name(id));
            !known.contains(id.as_str()) && !is_moved || is_named(self.changed_tests, id)
        };
        let told = |of: fn(&TestReport) -> &BTreeSet<String>, id: &String| {
            let mut reports = ran.iter().filter_map(|seen| seen.report.as_deref());
            reports.any(|report| of(report).contains(id))
        };
        for id in now.passed.iter().filter(is_new) {
            let kind = if told(|report| &report.passed, id) {
                &mut red.not
            } else if told(|report| &report.failed, id) || told(|report| &report.unreported, id) {
                &mut red.proven
            } else if told(|report| &report.skipped, id) {
                // What is skipped without the change shows nothing of it.
                &mut red.not
            } else if self.is_left_out(id) {
                &mut red.unknown
            } else if ran.iter().any(|seen| hides(seen, id)) {
                &mut red.weak
            } else {
                &mut red.not
            };
            kind.insert(id.clone());
        }
    }
}

/// The tests of the base that the gate of the change does not run or skips, besides those that are open
/// and those whose bodies run under another name.
pub fn vanished_tests(runs: &RunsSeen<'_>, open: &[OpenTest]) -> Vec<OpenTest> {
    let mut lost = BTreeSet::new();
    for base in runs.base.checks.iter().filter(|base| base.holdout.is_none()) {
        let green = same(runs.green, base).and_then(|seen| seen.report.as_deref());
        let (Some(before), Some(now)) = (report(Some(base)), green) else { continue };
        for id in before.ids() {
            let kind = match (now.skipped.contains(id), now.ids().contains(id)) {
                (true, _) => OpenTestKind::IsSkipped,
                (false, true) => continue,
                (false, false) => OpenTestKind::IsGone,
            };
            let file = runs.file_of(id);
            let is_told = |test: &OpenTest| test.id == id || Some(&test.id) == file.as_ref();
            if !open.iter().any(is_told) && !runs.is_moved(id, now) {
                lost.insert(OpenTest { id: id.to_owned(), kind, file });
            }
        }
    }
    lost.into_iter().collect()
}

impl RunsSeen<'_> {
    /// Whether the body of a test of the base passes under another name or in another file.
    fn is_moved(&self, id: &str, now: &TestReport) -> bool {
        let moved = self.moved_tests.get(last_name(id));
        moved.is_some_and(|name| now.passed.iter().any(|now| last_name(now) == name))
    }

    fn is_left_out(&self, id: &str) -> bool {
        let mut left_out = self.left_out.iter();
        is_named(self.left_out, id) || left_out.any(|file| id.starts_with(&format!("{file}::")))
    }
}

/// Whether a test may be missing in a run because the run failed before it, and not because the test is
/// left out there. A runner that tells other tests of the same file or target has loaded it.
fn hides(seen: &SeenCommand, id: &str) -> bool {
    let group = target_of(id);
    let told = report(Some(seen)).filter(|told| told.source == ReportSource::Runner);
    let is_loaded = !group.is_empty()
        && told.is_some_and(|told| told.ids().iter().any(|other| other.starts_with(group)));
    seen.failed() && !is_loaded
}

/// The file, target and module in the name of a test; empty if it has only a name.
fn target_of(id: &str) -> &str {
    let path = id.split('[').next().unwrap_or(id);
    let ends = ["::", " > "].map(|mark| path.rfind(mark).map_or(0, |at| at + mark.len()));
    &path[..ends[0].max(ends[1])]
}

#[cfg(test)]
mod tests;

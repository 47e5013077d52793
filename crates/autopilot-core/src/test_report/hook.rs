//! The files that runners write when the controller asks them for a report, one directory of them for
//! each run of a command.
//!
//! Python's and node's runners write a line of JSON for each event; libtest a list and a log, because it
//! has nothing better without options of nightly compilers.

use super::{ReportSource, TestOutcome, TestReport};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The end of the name of a file with a line of JSON for each event.
pub const EVENTS_END: &str = ".events";
/// The files of one test binary: what it is, which tests it has, and how they ended.
pub const BINARY_END: &str = ".binary";
pub const LIST_END: &str = ".list";
pub const LOG_END: &str = ".log";

/// A file that a runner wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportFile {
    pub name: String,
    pub text: String,
    /// The file is longer than what was read of it.
    pub is_cut: bool,
    /// When the file was last written, in milliseconds.
    pub at_ms: u64,
}

/// The report of a run by the files that its runners wrote; none if none of them says anything.
pub fn of_files(files: &[ReportFile]) -> Option<TestReport> {
    let mut report = TestReport { source: ReportSource::Runner, ..TestReport::default() };
    let mut has_said = false;
    for file in files {
        let said = if file.name.ends_with(EVENTS_END) {
            Some(of_events(file))
        } else if let Some(stem) = file.name.strip_suffix(BINARY_END) {
            let other = |end: &str| files.iter().find(|file| file.name == format!("{stem}{end}"));
            Some(of_binary(file, other(LIST_END), other(LOG_END)))
        } else {
            None
        };
        has_said |= said.is_some();
        said.iter().for_each(|said| report.merge(said));
    }
    report.count = u64::try_from(report.passed.len() + report.failed.len()).ok();
    has_said.then_some(report)
}

/// One line of a report of events.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunnerEvent {
    /// What writes the report is there.
    Loaded,
    /// The runner has started, on this script or directory.
    Began(String),
    /// The tests that are going to run.
    Listed(Vec<String>),
    Ended(OneResult),
    /// A file that could not be loaded.
    NotLoaded(String),
    /// A file of tests from which no test came.
    Silent(String),
    /// The runner has come to its end.
    Finished,
}

#[derive(Deserialize)]
struct OneResult {
    id: String,
    outcome: TestOutcome,
    #[serde(default)]
    ms: f64,
}

fn of_events(file: &ReportFile) -> TestReport {
    let mut report = TestReport { source: ReportSource::Runner, ..TestReport::default() };
    let mut listed: BTreeSet<String> = BTreeSet::new();
    let mut reported: BTreeSet<String> = BTreeSet::new();
    let (mut began, mut ms) = (None, 0.0_f64);
    for line in file.text.lines() {
        // A line that is cut or not ours says nothing.
        let Ok(event) = serde_json::from_str::<RunnerEvent>(line) else { continue };
        match event {
            RunnerEvent::Loaded => {}
            RunnerEvent::Began(name) => began = Some(name),
            RunnerEvent::Listed(ids) => listed.extend(ids),
            RunnerEvent::Ended(result) => {
                report.add(&result.id, result.outcome);
                reported.insert(result.id);
                ms += result.ms.max(0.0);
            }
            RunnerEvent::NotLoaded(name) => report.fail_to_load(&name),
            RunnerEvent::Silent(name) => report.miss(&name),
            RunnerEvent::Finished => began = None,
        }
    }
    report.suite_ms = Some(whole(ms));
    // What follows in a file that was read in part is not missing.
    if !file.is_cut {
        listed.difference(&reported).for_each(|id| report.miss(id));
        if report.unreported.is_empty() {
            began.iter().for_each(|name| report.miss(name));
        }
    }
    report
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is no less than 0, and a cast ends at the largest number"
)]
fn whole(ms: f64) -> u64 {
    ms as u64
}

/// The report of one test binary of libtest. Its tests have the name of their target before them: two
/// binaries may have tests of the same name.
fn of_binary(
    about: &ReportFile,
    list: Option<&ReportFile>,
    log: Option<&ReportFile>,
) -> TestReport {
    let mut report = TestReport { source: ReportSource::Runner, ..TestReport::default() };
    let fact = |name: &str| {
        let line = about.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim()
    };
    let target = target(fact("package"), fact("binary"), fact("source"));
    let list_text = list.map(|list| list.text.as_str()).unwrap_or_default();
    let names: BTreeSet<&str> =
        list_text.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut reported = BTreeSet::new();
    let log_text = log.map(|log| log.text.as_str()).unwrap_or_default();
    for (name, outcome) in logged(log_text, &names) {
        report.add(&format!("{target}::{name}"), outcome);
        reported.insert(name);
    }
    let is_whole = ![list, log].into_iter().flatten().any(|file| file.is_cut);
    if is_whole {
        names.difference(&reported).for_each(|name| report.miss(&format!("{target}::{name}")));
    }
    if let (Some(list), Some(log)) = (list, log) {
        report.suite_ms = Some(log.at_ms.saturating_sub(list.at_ms));
    }
    report
}

/// The results in a log of libtest: `ok name`, `failed name`, `ignored name`, with a message before the
/// name where there is one, which may have several lines, and a time after it.
fn logged<'a>(log: &'a str, names: &BTreeSet<&'a str>) -> Vec<(&'a str, TestOutcome)> {
    let mut found = Vec::new();
    let mut outcome = None;
    for line in log.lines() {
        let starts = [
            ("ok ", TestOutcome::Passed),
            ("failed", TestOutcome::Failed),
            ("ignored", TestOutcome::Skipped),
        ];
        let begun = starts.iter().find(|(word, _)| line.starts_with(word)).map(|(_, how)| *how);
        // A line of a message may begin like a result.
        outcome = outcome.or(begun);
        let timed = line.strip_suffix('>').and_then(|line| line.rsplit_once(" <"));
        let line = timed.map_or(line, |(line, _time)| line);
        let name = line.rsplit(' ').next().unwrap_or_default();
        if let (Some(how), Some(name)) = (outcome, names.get(name)) {
            found.push((*name, how));
            outcome = None;
        }
    }
    found
}

/// The name of a target as nextest has it: `package` for the library, `package::bin/name` for a program,
/// `package::name` for a file of tests.
fn target(package: &str, binary: &str, source: &str) -> String {
    // Cargo ends the name of the file with a dash and a hash, which differs from build to build.
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let stem = match binary.rsplit('/').next().unwrap_or_default().rsplit_once('-') {
        Some((stem, hash)) if is_hash(hash) => stem,
        Some(_) | None => binary.rsplit('/').next().unwrap_or_default(),
    };
    let lies_in = |dir: &str| source.split('/').rev().skip(1).any(|part| part == dir);
    let is_program = source.ends_with("/main.rs") || source == "main.rs" || lies_in("bin");
    let is_library = source.ends_with("/lib.rs") || source == "lib.rs";
    let same = stem == package.replace('-', "_");
    if package.is_empty() {
        stem.to_owned()
    } else if lies_in("examples") {
        format!("{package}::example/{stem}")
    } else if lies_in("benches") {
        format!("{package}::bench/{stem}")
    } else if is_program && !lies_in("tests") {
        format!("{package}::bin/{stem}")
    } else if is_library || same && !lies_in("tests") {
        package.to_owned()
    } else {
        format!("{package}::{stem}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> ReportFile {
        ReportFile { name: name.to_owned(), text: text.to_owned(), ..ReportFile::default() }
    }

    fn ids(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn events_name_each_test_and_those_without_a_result() {
        let text = "\"loaded\"\n{\"began\":\"/p\"}\n{\"listed\":[\"a.py::x\",\"a.py::y\",\"a.py::z\"]}\n\
                    {\"ended\":{\"id\":\"a.py::x\",\"outcome\":\"passed\",\"ms\":1.6}}\nnoise\n\
                    {\"ended\":{\"id\":\"a.py::y\",\"outcome\":\"skipped\",\"ms\":1.0}}\n\
                    {\"not_loaded\":\"b.py\"}\n\"finished\"\n{\"ended\":{\"id\":\"a.p";
        let report = of_files(&[file("1.events", text), file("x.txt", "no report")]).unwrap();
        assert_eq!(ids(&report.passed), ["a.py::x"]);
        assert_eq!(ids(&report.skipped), ["a.py::y"]);
        assert_eq!(ids(&report.unreported), ["a.py::z"]);
        assert_eq!(ids(&report.not_loaded), ["b.py"]);
        assert_eq!((report.suite_ms, report.count), (Some(2), Some(1)));
        let cut = ReportFile { is_cut: true, ..file("1.events", text) };
        assert!(of_files(&[cut]).unwrap().unreported.is_empty(), "the rest was not read");
        assert_eq!(of_files(&[file("x.txt", "no report")]), None);
    }

    #[test]
    fn a_runner_that_began_and_did_not_finish_has_a_result_missing() {
        let began = "{\"began\":\"tests/a.mjs\"}\n";
        let report = of_files(&[file("1.events", began)]).unwrap();
        assert_eq!(ids(&report.unreported), ["tests/a.mjs"]);
        let done = format!("{began}\"finished\"\n");
        assert!(of_files(&[file("1.events", &done)]).unwrap().unreported.is_empty());
        let silent = format!("{began}{{\"silent\":\"b.mjs\"}}\n\"finished\"\n");
        let report = of_files(&[file("1.events", &silent)]).unwrap();
        assert_eq!(ids(&report.unreported), ["b.mjs"]);
    }

    #[test]
    fn the_log_of_a_test_binary_must_have_every_test_of_its_list() {
        let about =
            "package=my-app\nbinary=/t/debug/deps/it-ec7d2b4e0cd425c4\nsource=tests/it.rs\n";
        let list =
            "later: test\nm::quits: test\nslow: test\nspeed: benchmark\n\n3 tests, 1 benchmark\n";
        let log = "ok later\nignored: takes long slow\nfailed: it said\nok no m::quits <0.1s>\n";
        let files = |log: &str| {
            let made = |name: &str, text: &str, at_ms| ReportFile { at_ms, ..file(name, text) };
            [made("7.binary", about, 1), made("7.list", list, 100), made("7.log", log, 350)]
        };
        let report = of_files(&files(log)).unwrap();
        assert_eq!(ids(&report.passed), ["my-app::it::later"]);
        assert_eq!(ids(&report.skipped), ["my-app::it::slow"]);
        assert_eq!(report.suite_ms, Some(250));
        assert_eq!(ids(&report.failed), ["my-app::it::m::quits"], "its message has two lines");
        let report = of_files(&files("ok later\n")).unwrap();
        assert_eq!(ids(&report.unreported), ["my-app::it::m::quits", "my-app::it::slow"]);
        let report = of_files(&files(log)[..2]).unwrap();
        assert_eq!(report.unreported.len(), 3, "the binary ended before it wrote its log");
    }

    #[test]
    fn targets_of_the_same_name_are_told_apart() {
        for (package, binary, source, name) in [
            ("foo", "/t/deps/foo-28a01a7770d7ff1d", "src/lib.rs", "foo"),
            ("foo", "/t/deps/foo-15375eefce3cdb84", "src/main.rs", "foo::bin/foo"),
            ("foo", "/t/deps/tool-15375eefce3cdb84", "src/bin/tool.rs", "foo::bin/tool"),
            ("foo-bar", "/t/deps/it-15375eefce3cdb84", "foo/tests/it.rs", "foo-bar::it"),
            ("foo", "/t/deps/foo-15375eefce3cdb84", "tests/foo.rs", "foo::foo"),
            ("foo", "/t/deps/big-15375eefce3cdb84", "tests/big/main.rs", "foo::big"),
            ("foo", "/t/examples/x-15375eefce3cdb84", "examples/x.rs", "foo::example/x"),
            ("foo-bar", "/t/deps/foo_bar-15375eefce3cdb84", "", "foo-bar"),
            ("", "/t/deps/my-test", "", "my-test"),
        ] {
            assert_eq!(target(package, binary, source), name);
        }
    }
}

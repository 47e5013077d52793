//! The reports that the user's own command writes (`gates.reports`): JUnit's XML, TAP, and libtest's
//! lines of JSON, told apart by their content.

use super::hook::ReportFile;
use super::{IDS_MAX, ReportSource, TestOutcome, TestReport, tap};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde::Deserialize;

/// The most elements within each other; a report has five or so.
pub const DEPTH_MAX: usize = 64;

/// The report of a run by the files that its command wrote; none if none of them is a report.
pub fn of_files(files: &[ReportFile]) -> Option<TestReport> {
    let mut report = TestReport { source: ReportSource::File, ..TestReport::default() };
    let mut is_any = false;
    for file in files {
        let text = file.text.trim_start_matches('\u{feff}').trim_start();
        let tests = match text.chars().next() {
            Some('<') => junit(text),
            Some('{') => libtest(text),
            Some(_) => tap::tests(text),
            None => None,
        };
        is_any |= tests.is_some();
        for (id, outcome) in tests.unwrap_or_default() {
            report.add(&id, outcome);
        }
    }
    report.count = u64::try_from(report.passed.len() + report.failed.len()).ok();
    is_any.then_some(report)
}

/// The test cases of a JUnit file. Entities that a file defines are not expanded, and what is wrong or
/// too deep ends the reading.
fn junit(text: &str) -> Option<Vec<(String, TestOutcome)>> {
    let mut reader = Reader::from_str(text);
    let (mut depth, mut is_junit) = (0, false);
    let mut found: Vec<(String, TestOutcome)> = Vec::new();
    let mut case: Option<(usize, String, TestOutcome)> = None;
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(element) => {
                depth += 1;
                is_junit |= element.name().as_ref().starts_with(b"testsuite");
                enter(&element, depth, &mut case);
            }
            Event::Empty(element) => {
                is_junit |= element.name().as_ref().starts_with(b"testsuite");
                let was_within = case.is_some();
                enter(&element, depth + 1, &mut case);
                if !was_within {
                    found.extend(case.take().map(|(_, id, outcome)| (id, outcome)));
                }
            }
            Event::End(_) => {
                if case.as_ref().is_some_and(|(at, ..)| *at == depth) {
                    found.extend(case.take().map(|(_, id, outcome)| (id, outcome)));
                }
                depth = depth.saturating_sub(1);
            }
            Event::Eof => break,
            // None of these names a test.
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => {}
        }
        if depth > DEPTH_MAX || found.len() >= IDS_MAX {
            break;
        }
    }
    is_junit.then_some(found)
}

/// Takes down an element: a test case, or how the one around it ended.
fn enter(element: &BytesStart<'_>, depth: usize, case: &mut Option<(usize, String, TestOutcome)>) {
    let attribute = |name: &str| {
        let found = element.try_get_attribute(name).ok().flatten()?;
        found.unescape_value().ok().map(|value| value.into_owned())
    };
    match (element.name().as_ref(), case) {
        (b"testcase", case @ None) => {
            let name = attribute("name").unwrap_or_default();
            let class = attribute("classname").filter(|class| !class.is_empty());
            let id = class.map_or(name.clone(), |class| format!("{class}.{name}"));
            *case = Some((depth, id, TestOutcome::Passed));
        }
        (b"failure" | b"error", Some((.., outcome))) => *outcome = TestOutcome::Failed,
        (b"skipped", Some((.., outcome))) if *outcome == TestOutcome::Passed => {
            *outcome = TestOutcome::Skipped;
        }
        _ => {}
    }
}

#[derive(Deserialize)]
struct LibtestEvent {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    #[serde(default)]
    name: String,
}

/// The tests in libtest's lines of JSON.
fn libtest(text: &str) -> Option<Vec<(String, TestOutcome)>> {
    let events: Vec<LibtestEvent> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_libtest = events.iter().any(|event| matches!(event.kind.as_str(), "suite" | "test"));
    let of_test = events.into_iter().filter(|event| event.kind == "test");
    let ended = of_test.filter_map(|event| {
        let outcome = match event.event.as_str() {
            "ok" => TestOutcome::Passed,
            "failed" | "timeout" => TestOutcome::Failed,
            "ignored" => TestOutcome::Skipped,
            _started => return None,
        };
        Some((event.name, outcome))
    });
    is_libtest.then(|| ended.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<(String, String, String)> {
        let file = ReportFile { text: text.to_owned(), ..ReportFile::default() };
        let report = of_files(&[file])?;
        let joined = |ids: std::collections::BTreeSet<String>| {
            ids.into_iter().collect::<Vec<_>>().join(", ")
        };
        Some((joined(report.passed), joined(report.failed), joined(report.skipped)))
    }

    fn told(passed: &str, failed: &str, skipped: &str) -> Option<(String, String, String)> {
        Some((passed.to_owned(), failed.to_owned(), skipped.to_owned()))
    }

    #[test]
    fn each_format_is_known_by_its_content() {
        // As pytest and gradle write it.
        let junit = "<?xml version=\"1.0\" encoding=\"utf-8\"?><testsuites name=\"t\"><testsuite name=\"pytest\" \
            tests=\"4\"><testcase classname=\"test_a\" name=\"test_ok\" time=\"0.000\" />\
            <testcase classname=\"test_a\" name=\"test_p[&lt;1&gt;]\"><system-out>x</system-out></testcase>\
            <testcase classname=\"test_a\" name=\"test_skip\"><skipped type=\"pytest.skip\" message=\"no\">t</skipped></testcase>\
            <testcase name=\"bad\"><failure message=\"assert 0\"><![CDATA[<testcase name=\"forged\"/>]]></failure></testcase>\
            </testsuite></testsuites>";
        assert_eq!(
            shown(junit),
            told("test_a.test_ok, test_a.test_p[<1>]", "bad", "test_a.test_skip")
        );
        let tap = "TAP version 13\n1..2\nok 1 - adds\nnot ok 2 - breaks\n";
        assert_eq!(shown(tap), told("adds", "breaks", ""));
        let json = "{ \"type\": \"suite\", \"event\": \"started\", \"test_count\": 2 }\n\
            { \"type\": \"test\", \"event\": \"started\", \"name\": \"a\" }\n\
            { \"type\": \"test\", \"name\": \"a\", \"event\": \"ok\" }\n\
            { \"type\": \"test\", \"name\": \"b\", \"event\": \"ignored\" }\n";
        assert_eq!(shown(json), told("a", "", "b"));
        for other in ["", "<html><body/></html>", "{\"name\": 1}", "ok then"] {
            assert_eq!(shown(other), None, "{other}");
        }
    }

    #[test]
    fn a_hostile_report_is_read_as_far_as_it_is_harmless() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><testsuite>\
            <testcase name=\"&b;\"/><testcase name=\"fine\"/></testsuite>";
        let found = shown(bomb).unwrap();
        assert!(found.0.ends_with("fine") && !found.0.contains("aaaa"), "{found:?}");
        let deep = format!("<testsuite>{}<testcase name=\"deep\"/>", "<a>".repeat(DEPTH_MAX + 1));
        assert_eq!(shown(&deep), told("", "", ""));
        let less = format!("<testsuite>{}<testcase name=\"deep\"/>", "<a>".repeat(DEPTH_MAX - 2));
        assert_eq!(shown(&less), told("deep", "", ""));
        let broken = "<testsuite><testcase name=\"one\"/><testcase name=\"two\"></oops>";
        assert_eq!(shown(broken), told("one", "", ""));
    }
}

//! Tests of the base that a change has lost: gone, skipped, fewer, or over in no time.

use super::TestReport;
use crate::doubt::{Doubt, DoubtKind};
use crate::evidence::RoundEvidence;

/// The lost tests that are told one by one; the rest is counted.
pub const LOST_MAX: usize = 20;
/// A suite of this time or more is compared by time, and this many times faster is too fast.
const TIMED_FROM_MS: u64 = 5_000;
const TOO_FAST: u64 = 50;

/// The tests of all commands of a gate as one report, whose source is the weakest of them; none where no
/// command has a report.
pub fn of_gate(evidence: &RoundEvidence) -> Option<TestReport> {
    let mut reports = evidence.checks.iter().filter_map(|seen| seen.report.as_deref());
    let mut all = reports.next()?.clone();
    for report in reports {
        all.source = all.source.max(report.source);
        all.merge(report);
    }
    Some(all)
}

/// The doubts about tests that the base has and the change has not, or not in the same way. `is_moved`
/// says of a test that is gone whether it is found under another name.
pub fn lost_tests(
    base: &TestReport,
    head: &TestReport,
    is_moved: &dyn Fn(&str) -> bool,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let lost = |text: String| Doubt::new(DoubtKind::LostTests, text);
    let (before, after) = (base.ran(), head.ran());
    if head.source > base.source {
        let text = format!(
            "the tests were known by the {} on the base ({}) and are known only by the {} now ({})",
            base.source.row(),
            base.tally(),
            head.source.row(),
            head.tally()
        );
        doubts.push(lost(text));
    } else if head.source == base.source {
        doubts.extend(lost_by_name(base, head, is_moved));
    }
    let has_names = base.has_ids() && head.has_ids() && base.source == head.source;
    match (before, after) {
        (Some(before), Some(0)) if before > 0 => {
            doubts.push(lost(format!("no test ran, and on the base {before} did")));
        }
        (Some(before), Some(after)) if after < before && !has_names => {
            doubts.push(lost(format!("{after} tests ran, and on the base {before} did")));
        }
        _ => {}
    }
    if let (Some(before), Some(after)) = (base.suite_ms, head.suite_ms)
        && before >= TIMED_FROM_MS
        && after.saturating_mul(TOO_FAST) <= before
    {
        doubts.push(lost(format!("the tests took {after} ms, and on the base {before} ms")));
    }
    doubts
}

/// The tests that are gone or skipped now, and the files that do not load now.
fn lost_by_name(
    base: &TestReport,
    head: &TestReport,
    is_moved: &dyn Fn(&str) -> bool,
) -> Vec<Doubt> {
    let ids = head.ids();
    let is_gone = |id: &&str| !ids.contains(id) && !head.unreported.contains(*id) && !is_moved(id);
    let gone = base.ids().into_iter().filter(is_gone);
    let gone = gone.map(|id| (id, format!("`{id}` ran on the base and is gone")));
    let ran = base.passed.union(&base.failed);
    let skipped = ran.filter(|id| head.skipped.contains(*id));
    let skipped =
        skipped.map(|id| (id.as_str(), format!("`{id}` ran on the base and is skipped now")));
    let broken = head.not_loaded.difference(&base.not_loaded);
    let broken = broken
        .map(|name| (name.as_str(), format!("`{name}` does not load, so its tests did not run")));
    let all: Vec<(&str, String)> = gone.chain(skipped).chain(broken).collect();
    let rest = all.len().saturating_sub(LOST_MAX);
    let told = all.into_iter().take(LOST_MAX);
    let told = told.map(|(id, text)| Doubt::new(DoubtKind::LostTests, text).about_test(id));
    let mut doubts: Vec<Doubt> = told.collect();
    if rest > 0 {
        let text = format!("{rest} more tests of the base are gone, skipped or do not load");
        doubts.push(Doubt::new(DoubtKind::LostTests, text));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::SeenCommand;
    use crate::test_report::{ReportSource, TestOutcome};

    fn report(source: ReportSource, passed: &[&str], skipped: &[&str]) -> TestReport {
        let mut report = TestReport { source, ..TestReport::default() };
        passed.iter().for_each(|id| report.add(id, TestOutcome::Passed));
        skipped.iter().for_each(|id| report.add(id, TestOutcome::Skipped));
        report
    }

    fn runner(passed: &[&str], skipped: &[&str]) -> TestReport {
        report(ReportSource::Runner, passed, skipped)
    }

    fn told(base: &TestReport, head: &TestReport, moved: &[&str]) -> Vec<String> {
        let doubts = lost_tests(base, head, &|id| moved.contains(&id));
        assert!(doubts.iter().all(|doubt| doubt.kind == DoubtKind::LostTests));
        doubts.into_iter().map(|doubt| doubt.text).collect()
    }

    #[test]
    fn what_is_gone_or_skipped_is_named_and_what_moved_or_came_is_not() {
        let base = runner(&["a", "b", "c"], &["s"]);
        for (head, moved, texts) in [
            (base.clone(), vec![], vec![]),
            (runner(&["a", "b", "c", "new"], &["s"]), vec![], vec![]),
            (runner(&["a", "b", "c", "s"], &[]), vec![], vec![]),
            (runner(&["a", "b", "c2"], &["s"]), vec!["c"], vec![]),
            (runner(&["a", "b", "c2"], &["s"]), vec![], vec!["`c` ran on the base and is gone"]),
            (
                runner(&["a", "b"], &["c", "s"]),
                vec![],
                vec!["`c` ran on the base and is skipped now"],
            ),
        ] {
            assert_eq!(told(&base, &head, &moved), texts, "{head:?}");
        }
        let mut broken = runner(&["a", "b", "c"], &["s"]);
        broken.fail_to_load("t.py");
        assert_eq!(told(&base, &broken, &[]), ["`t.py` does not load, so its tests did not run"]);
        assert_eq!(told(&broken, &broken, &[]), Vec::<String>::new());
    }

    #[test]
    fn numbers_are_compared_where_names_are_not_known() {
        let count =
            |count, source| TestReport { source, count: Some(count), ..TestReport::default() };
        let of = |number| count(number, ReportSource::Output);
        assert_eq!(told(&of(5), &of(5), &[]), Vec::<String>::new());
        assert_eq!(told(&of(5), &of(6), &[]), Vec::<String>::new());
        assert_eq!(told(&of(5), &of(4), &[]), ["4 tests ran, and on the base 5 did"]);
        assert_eq!(told(&of(5), &of(0), &[]), ["no test ran, and on the base 5 did"]);
        assert_eq!(told(&TestReport::default(), &of(0), &[]), Vec::<String>::new());
    }

    #[test]
    fn a_weaker_report_than_that_of_the_base_is_told_and_a_stronger_one_is_not() {
        let named = runner(&["a", "b"], &[]);
        let weak = report(ReportSource::Output, &["x::a", "x::b"], &[]);
        let text = "the tests were known by the runner's report on the base (2 passed) and are known \
                    only by the output now (2 passed)";
        assert_eq!(told(&named, &weak, &[]), [text]);
        assert_eq!(told(&weak, &named, &[]), Vec::<String>::new());
        let none = told(&named, &TestReport::default(), &[]);
        assert!(none[0].ends_with("by the exit code now (no test is known by name)"), "{none:?}");
    }

    #[test]
    fn a_suite_that_is_over_in_no_time_is_told_unless_it_was_quick_before() {
        let of = |ms| TestReport { suite_ms: Some(ms), ..runner(&["a"], &[]) };
        assert_eq!(
            told(&of(5_000), &of(100), &[]),
            ["the tests took 100 ms, and on the base 5000 ms"]
        );
        assert_eq!(told(&of(5_000), &of(101), &[]), Vec::<String>::new());
        assert_eq!(told(&of(4_999), &of(1), &[]), Vec::<String>::new());
    }

    #[test]
    fn only_so_many_lost_tests_are_told_one_by_one() {
        let names: Vec<String> = (0..LOST_MAX + 3).map(|n| format!("t{n:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut kept = runner(&["k"], &[]);
        kept.merge(&runner(&names, &[]));
        let texts = told(&kept, &runner(&["k"], &[]), &[]);
        assert_eq!(texts.len(), LOST_MAX + 1);
        let last = texts.last().map(String::as_str);
        assert_eq!(last, Some("3 more tests of the base are gone, skipped or do not load"));
        assert_eq!(
            told(&runner(&names[..LOST_MAX], &[]), &runner(&names[..0], &["k"]), &[]).len(),
            LOST_MAX + 1
        );
    }

    #[test]
    fn the_commands_of_a_gate_are_one_report_as_weak_as_the_weakest() {
        let seen = |report: Option<TestReport>| SeenCommand {
            report: report.map(Box::new),
            ..SeenCommand::default()
        };
        let gate = |reports: Vec<Option<TestReport>>| RoundEvidence {
            checks: reports.into_iter().map(seen).collect(),
            ..RoundEvidence::default()
        };
        let weak = report(ReportSource::Output, &["b"], &[]);
        let all = of_gate(&gate(vec![Some(runner(&["a"], &[])), None, Some(weak)]));
        assert_eq!(all, Some(report(ReportSource::Output, &["a", "b"], &[])));
        assert_eq!(of_gate(&gate(vec![None])), None);
    }
}

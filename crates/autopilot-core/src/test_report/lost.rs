//! Tests of the base that a change has lost: gone, skipped, fewer, or over in no time.

use super::TestReport;
use crate::doubt::{Doubt, DoubtKind};
use crate::evidence::{RoundEvidence, SeenCommand};
use crate::three_runs::{AskedChange, ChangedText, OpenTest, OpenTestKind, ThreeRuns, accounts};
use std::collections::BTreeSet;

/// The lost tests that are told one by one; the rest is counted.
pub const LOST_MAX: usize = 20;
/// A suite of this time or more is compared by time, and this many times faster is too fast.
const TIMED_FROM_MS: u64 = 5_000;
const TOO_FAST: u64 = 50;

/// A gate whose tests are compared with those of the base.
#[derive(Clone, Copy, Debug)]
pub struct LostSearch<'a> {
    /// The commands on the untouched base of the run.
    pub base: &'a RoundEvidence,
    /// The gates of the tasks that were merged before: what they have lost was told of them.
    pub merged: &'a [RoundEvidence],
    /// The commands on the change.
    pub green: &'a [SeenCommand],
    /// The runs beside the gate, where the change touches what decides its verdict.
    pub runs: Option<&'a ThreeRuns>,
    /// The text of the task.
    pub task: &'a str,
}

/// The doubts about tests of the base that a gate does not show as the base's own gate did, besides
/// those that the runs beside it have left open.
pub fn lost_in_gate(search: &LostSearch<'_>) -> Vec<Doubt> {
    let of_change = search.green.iter().filter(|seen| seen.holdout.is_none());
    of_change.flat_map(|seen| search.of_command(seen)).collect()
}

impl LostSearch<'_> {
    fn of_command(&self, seen: &SeenCommand) -> Vec<Doubt> {
        let Some(head) = seen.report.as_deref() else { return Vec::new() };
        let Some(mut base) = report_of(self.base, seen).cloned() else { return Vec::new() };
        // That a runner must not be asked is told by itself.
        if head.only_unasked || base.only_unasked {
            return Vec::new();
        }
        self.merged.iter().filter_map(|gate| report_of(gate, seen)).for_each(|known| {
            lower(&mut base, known);
        });
        let mut head = head.clone();
        let is_warm = |seen: &SeenCommand| seen.warm;
        // What was built before may hold results as well.
        if is_warm(seen) || same(self.base, seen).is_some_and(is_warm) {
            head.suite_ms = None;
        }
        if self.asks_for_fewer() {
            head.count = head.count.max(base.count);
        }
        lost_tests(&base, &head, &|id| self.is_explained(id, &base, &head))
    }

    /// Whether it is known why a test of the base does not run: it has another name now, the task asks
    /// for it, or it is told otherwise.
    fn is_explained(&self, id: &str, base: &TestReport, head: &TestReport) -> bool {
        let file = [" > ", "::"].iter().find_map(|mark| id.split_once(mark)).map(|(file, _)| file);
        let file = file.filter(|file| file.contains('.')).map(str::to_owned);
        match self.runs {
            Some(runs) => !runs.lost.iter().any(|test| test.id == id),
            None => is_asked(id, file, self.task) || has_namesake(id, base, head),
        }
    }

    /// Whether the number of tests may fall, where nobody knows their names.
    fn asks_for_fewer(&self) -> bool {
        self.runs.is_some_and(|runs| {
            let mut touched = runs.touched.iter();
            !runs.open.is_empty()
                || touched.any(|file| is_asked(file, Some(file.clone()), self.task))
        })
    }
}

/// Whether a task asks for what became of a test.
fn is_asked(id: &str, file: Option<String>, task: &str) -> bool {
    let test = OpenTest { id: id.to_owned(), kind: OpenTestKind::IsGone, file };
    accounts(&test, task, &[], &ChangedText::default()) == Some(AskedChange::Text)
}

/// Whether a test of the same name stands in another package or module, where the change touches no
/// test: its target has another name now.
fn has_namesake(id: &str, base: &TestReport, head: &TestReport) -> bool {
    let name = crate::three_runs::last_name(id);
    let before = base.ids();
    head.passed
        .iter()
        .any(|now| !before.contains(now.as_str()) && crate::three_runs::last_name(now) == name)
}

fn same<'a>(gate: &'a RoundEvidence, seen: &SeenCommand) -> Option<&'a SeenCommand> {
    let is_same = |known: &&SeenCommand| {
        (&known.name, &known.command) == (&seen.name, &seen.command) && known.holdout.is_none()
    };
    gate.checks.iter().find(is_same)
}

fn report_of<'a>(gate: &'a RoundEvidence, seen: &SeenCommand) -> Option<&'a TestReport> {
    same(gate, seen).and_then(|known| known.report.as_deref())
}

/// Lowers what is expected of a change to what a task that was merged before it has shown.
fn lower(base: &mut TestReport, known: &TestReport) {
    if known.source > base.source {
        *base = known.clone();
        return;
    }
    if known.source == base.source {
        let is_there = known.ids();
        for tests in [&mut base.passed, &mut base.failed, &mut base.skipped] {
            tests.retain(|id| is_there.contains(id.as_str()));
        }
        let skipped: Vec<String> = base.passed.intersection(&known.skipped).cloned().collect();
        for id in skipped {
            base.passed.remove(&id);
            base.skipped.insert(id);
        }
    }
    let least = |one: Option<u64>, two: Option<u64>| one.zip(two).map(|(one, two)| one.min(two));
    base.count = least(base.count, known.count);
    base.suite_ms = least(base.suite_ms, known.suite_ms);
}

/// The name of a test without its parameters and the line where it stands.
fn plain_name(id: &str) -> &str {
    let name = id.split(" (line ").next().unwrap_or(id);
    name.split('[').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

/// The doubts about tests that the base has and the change has not, or not in the same way.
/// `is_explained` says of a test that is gone or skipped whether that needs no word.
fn lost_tests(
    base: &TestReport,
    head: &TestReport,
    is_explained: &dyn Fn(&str) -> bool,
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
        doubts.extend(lost_by_name(base, head, is_explained));
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
    is_explained: &dyn Fn(&str) -> bool,
) -> Vec<Doubt> {
    let ids = head.ids();
    // Other parameters, or another line, are no loss as long as there are as many.
    let cases =
        |all: &BTreeSet<&str>, name: &str| all.iter().filter(|id| plain_name(id) == name).count();
    let before = base.ids();
    let is_fewer = |id: &str| {
        let name = plain_name(id);
        name == id || cases(&ids, name) < cases(&before, name)
    };
    let is_gone = |id: &&str| {
        !ids.contains(id) && !head.unreported.contains(*id) && is_fewer(id) && !is_explained(id)
    };
    let gone = before.iter().copied().filter(is_gone);
    let gone = gone.map(|id| (id, format!("`{id}` ran on the base and is gone")));
    let ran = base.passed.union(&base.failed);
    let skipped = ran.filter(|id| head.skipped.contains(*id) && !is_explained(id));
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

    fn gate(report: TestReport) -> RoundEvidence {
        let seen = SeenCommand {
            name: "tests".to_owned(),
            report: Some(Box::new(report)),
            ..SeenCommand::default()
        };
        RoundEvidence { checks: vec![seen], ..RoundEvidence::default() }
    }

    fn in_gate(
        base: &RoundEvidence,
        merged: &[RoundEvidence],
        head: &RoundEvidence,
        runs: Option<&ThreeRuns>,
        task: &str,
    ) -> String {
        let search = LostSearch { base, merged, green: &head.checks, runs, task };
        let told: Vec<String> = lost_in_gate(&search).into_iter().map(|it| it.text).collect();
        told.join("; ")
    }

    #[test]
    fn a_gate_is_compared_with_that_of_the_base_and_of_what_was_merged() {
        let of = |passed: &[&str], skipped: &[&str]| gate(runner(passed, skipped));
        let (base, head) = (of(&["a", "b"], &[]), of(&["a"], &["b"]));
        let gone = of(&["a"], &[]);
        let skipped = "`b` ran on the base and is skipped now";
        let none = RoundEvidence::default();
        for (name, base, merged, head, task, told) in [
            ("skipped", &base, vec![], &head, "", skipped),
            ("gone", &base, vec![], &gone, "", "`b` ran on the base and is gone"),
            ("all there", &base, vec![], &base, "", ""),
            ("no report on the base", &none, vec![], &head, "", ""),
            ("no report now", &base, vec![], &none, "", ""),
            ("asked for", &base, vec![], &gone, "delete the test `b`", ""),
            ("told of another task", &base, vec![head.clone()], &head, "", ""),
            ("lost by another task", &base, vec![gone.clone()], &gone, "", ""),
            ("kept by another task", &base, vec![base.clone()], &head, "", skipped),
        ] {
            assert_eq!(in_gate(base, &merged, head, None, task), told, "{name}");
        }
        let mut other = head.clone();
        other.checks[0].command = "another".to_owned();
        assert_eq!(in_gate(&base, &[], &other, None, ""), "", "another command");
        let renamed = [of(&["old::t::a"], &[]), of(&["new::t::a"], &[])];
        assert_eq!(in_gate(&renamed[0], &[], &renamed[1], None, ""), "", "a target's name");
    }

    #[test]
    fn what_the_runs_beside_a_gate_account_for_is_not_told_again() {
        let (base, head) = (gate(runner(&["a", "b"], &[])), gate(runner(&["a"], &["b"])));
        let lost = OpenTest { id: "b".to_owned(), kind: OpenTestKind::IsSkipped, file: None };
        let mut runs = ThreeRuns::default();
        assert_eq!(in_gate(&base, &[], &head, Some(&runs), ""), "");
        runs.lost.push(lost);
        let told = in_gate(&base, &[], &head, Some(&runs), "");
        assert_eq!(told, "`b` ran on the base and is skipped now");
    }

    #[test]
    fn the_time_of_what_was_built_before_is_not_compared() {
        let of = |ms| gate(TestReport { suite_ms: Some(ms), ..runner(&["a"], &[]) });
        let mut head = of(10);
        assert!(in_gate(&of(9_000), &[], &head, None, "").contains("took 10 ms"));
        assert_eq!(in_gate(&of(9_000), &[of(10)], &head, None, ""), "");
        head.checks[0].warm = true;
        assert_eq!(in_gate(&of(9_000), &[], &head, None, ""), "");
    }

    #[test]
    fn other_parameters_and_lines_are_no_loss_as_long_as_there_are_as_many() {
        for (before, now, told_of) in [
            (vec!["t[1]", "t[2]"], vec!["t[1]", "t[3]"], 0),
            (vec!["t[1]", "t[2]"], vec!["t[1]"], 1),
            (vec!["a - f (line 3)"], vec!["a - f (line 9)"], 0),
            (vec!["a - f (line 3)"], vec!["b"], 1),
        ] {
            let texts = told(&runner(&before, &[]), &runner(&now, &[]), &[]);
            assert_eq!(texts.len(), told_of, "{before:?} {now:?}: {texts:?}");
        }
    }
}

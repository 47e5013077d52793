//! The results of a gate, kept as one text for later prompts and for people, and which of its
//! failures count against the change.

use crate::doubt::{Doubt, DoubtKind};
use crate::flaky::FirstTry;
use crate::guard::{Finding, FindingSource, Severity};
use crate::holdout::HeldOutRun;
use crate::test_report::TestReport;
use crate::three_runs::ThreeRuns;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The name of the command that prepares a worktree.
pub const SETUP: &str = "setup";
/// The name of the command that runs the tests.
const TESTS: &str = "tests";
/// The files that a reason names.
const FILES_NAMED_MAX: usize = 5;
/// The lines of output that are quoted of a command that could not be run.
const LAST_LINES_MAX: usize = 3;

/// The results of a gate in one round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundEvidence {
    pub checks: Vec<SeenCommand>,
    pub findings: Vec<Finding>,
    /// Differences between the builder's report and what the controller saw.
    pub differs: Vec<String>,
    /// The conflict that prevented a merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// The runs beside this one, where the change touches what decides the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub three_runs: Option<Box<ThreeRuns>>,
}

/// One command and what the controller saw of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SeenCommand {
    pub name: String,
    pub command: String,
    pub exit_code: Option<i32>,
    pub output: String,
    pub log: String,
    /// The SHA-256 of the log as it was when the command had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_sha256: Option<String>,
    /// Names of the failed tests, where the output names them.
    #[serde(default)]
    pub failing: BTreeSet<String>,
    /// A hash of the output without times and addresses; none for an empty output.
    #[serde(default)]
    pub mark: Option<String>,
    /// The command changed tracked files, which it must not.
    #[serde(default)]
    pub changed: bool,
    /// The tracked files that the command left other than it found them; not for the formatter.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rewrote: BTreeSet<String>,
    /// The command ran over a seed, not from nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// The command ended by itself, with an exit code.
    #[serde(default)]
    pub ended: bool,
    /// The time that the command took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// The failure before this result, when the command was run again on the same tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_try: Option<FirstTry>,
    /// The tests by the report of their runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<TestReport>>,
    /// What is kept of a run over the held-out files; nothing else of this result comes from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<Box<HeldOutRun>>,
}

impl RoundEvidence {
    /// Whether this many commands ran and all of them passed. The evidence of a lost text shows
    /// nothing.
    pub fn proves(&self, commands: usize) -> bool {
        self.checks.len() == commands && !self.checks.iter().any(SeenCommand::failed)
    }

    /// The checks that failed, except those that fail the same way on the untouched base.
    pub fn new_failures<'a>(
        &'a self,
        base: &'a RoundEvidence,
    ) -> impl Iterator<Item = &'a SeenCommand> {
        self.checks.iter().filter(|seen| seen.failed() && !seen.is_known(base))
    }

    /// The reasons why commands that passed prove nothing: they changed what they prove, or ran none of
    /// the tests that they run on the base.
    pub fn hollow(&self, base: &RoundEvidence) -> Vec<String> {
        let of_one = |seen: &SeenCommand| [seen.tampering(base), seen.ran_nothing(base)];
        self.checks.iter().flat_map(of_one).flatten().collect()
    }
}

/// Failures, divided by whether the untouched base has them too.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewFailures {
    pub reasons: Vec<String>,
    /// Failures that the base has as well.
    pub excused: Vec<String>,
}

impl NewFailures {
    /// Divides failures, each given as a sentence and whether the base has it too.
    pub fn of(failed: impl Iterator<Item = (String, bool)>) -> NewFailures {
        let mut failures = NewFailures::default();
        for (failure, is_known) in failed {
            let kind = if is_known { &mut failures.excused } else { &mut failures.reasons };
            kind.push(failure);
        }
        failures
    }
}

/// The doubt about something that wrote tracked files anew while it proved them.
pub fn rewriting(what: &str, files: &[&str]) -> Option<Doubt> {
    let text = format!(
        "{what} wrote tracked files anew while it ran, so they are not proven as they are committed: {}",
        listed(files)
    );
    let doubt = Doubt::new(DoubtKind::WeakProof, text);
    files.first().map(|file| doubt.about_file(file))
}

/// The first names, and how many more there are.
fn listed(files: &[&str]) -> String {
    let named = files.iter().take(FILES_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(FILES_NAMED_MAX) {
        0 => named,
        count => format!("{named} and {count} more"),
    }
}

/// The way in which a shell says that it did not run a command, or a program inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandNotRun {
    Denied,
    NotFound,
}

impl CommandNotRun {
    /// What an exit code says; POSIX shells keep 126 and 127 for this, also for a program that is
    /// missing inside of a script.
    pub fn of(exit_code: Option<i32>) -> Option<CommandNotRun> {
        match exit_code? {
            126 => Some(CommandNotRun::Denied),
            127 => Some(CommandNotRun::NotFound),
            _ => None,
        }
    }

    /// A few words for messages.
    pub fn word(self) -> &'static str {
        match self {
            CommandNotRun::Denied => "not executable",
            CommandNotRun::NotFound => "not found",
        }
    }
}

impl SeenCommand {
    /// Returns whether the command failed, or ended with 0 amid its tests.
    pub fn failed(&self) -> bool {
        self.exit_code != Some(0) || !self.ended || self.changed || self.is_incomplete(None)
    }

    /// Returns whether tests of the command have no result, besides those that have none on the base.
    pub fn is_incomplete(&self, base: Option<&TestReport>) -> bool {
        self.report.as_ref().is_some_and(|report| report.incomplete(base).is_some())
    }

    /// The reason why a command that ran no test counts against the change: on the base it ran some.
    pub fn ran_nothing(&self, base: &RoundEvidence) -> Option<String> {
        let same = |known: &&SeenCommand| self.name == known.name && self.command == known.command;
        let ran = |seen: &SeenCommand| seen.report.as_ref()?.ran();
        let before = base.checks.iter().filter(same).filter_map(ran).max()?;
        let is_empty = before > 0 && ran(self) == Some(0);
        is_empty.then(|| format!("{} ran no test, and on the base it ran {before}", self.name))
    }

    /// The doubt about a command that only passes while its runner is not asked for its report.
    pub fn unasked(&self) -> Option<Doubt> {
        let is_unasked = self.report.as_ref().is_some_and(|report| report.only_unasked);
        let text = format!(
            "{} fails when its runner is asked for a report of its tests and passes when it is not, so \
             none of its tests is known by its runner",
            self.name
        );
        is_unasked.then(|| Doubt::new(DoubtKind::WeakProof, text))
    }

    /// Returns whether the base has the same failure.
    pub fn is_known(&self, base: &RoundEvidence) -> bool {
        let only_known = self.holdout.as_ref().is_some_and(|run| run.only_known);
        only_known || base.checks.iter().any(|base| self.is_as_on(base))
    }

    /// The words for a failure of the command that the base has as well. Without names of tests nobody
    /// knows whether the same ones fail.
    pub fn excused_words(&self, failure: &str) -> String {
        let has_no_names = self.name == TESTS && self.failing.is_empty();
        match has_no_names && !self.is_exit_zero() && !self.changed {
            true => format!("{failure} (which tests fail is unknown, the output is the same)"),
            false => failure.to_owned(),
        }
    }

    /// Returns whether the command fails no worse than on the base: it ends the same way, and
    /// either only tests fail that failed there too, or the output is the same word for word.
    pub fn is_as_on(&self, base: &SeenCommand) -> bool {
        let same_end = self.ended && base.ended && self.exit_code == base.exit_code;
        let known = !self.failing.is_empty() && self.failing.is_subset(&base.failing);
        let same_words = self.mark.is_some() && self.mark == base.mark;
        let same_rewrite = self.changed && base.changed;
        let lacks_the_same = self.is_exit_zero()
            && !self.changed
            && self.is_incomplete(None)
            && !self.is_incomplete(base.report.as_deref());
        // A command that did not run has shown nothing, so nothing of it can be excused.
        let has_run = self.not_run().is_none();
        let is_same = self.name == base.name && same_end && has_run;
        is_same && (known || same_words || same_rewrite || lacks_the_same)
    }

    /// The reason why a command that changed what it proves counts against the change: it leaves tracked
    /// files other than they are, and does not do so on the base.
    pub fn tampering(&self, base: &RoundEvidence) -> Option<String> {
        let same = |known: &&SeenCommand| known.name == self.name;
        let mut known = base.checks.iter().filter(same).peekable();
        // Where the base did not run it, nobody knows whether it always does that.
        known.peek()?;
        let usual: BTreeSet<&String> = known.flat_map(|known| &known.rewrote).collect();
        let files: Vec<&str> =
            self.rewrote.iter().filter(|file| !usual.contains(file)).map(String::as_str).collect();
        let named = listed(&files);
        (!files.is_empty()).then(|| format!("{} changed what it proves: {named}", self.name))
    }

    /// The doubt about a command that changed what it proves and is not refused for it: nobody knows
    /// whether it does so on the base, or it writes a file anew that the change has as well.
    pub fn rewriting(&self, base: &RoundEvidence, changed: &BTreeSet<String>) -> Option<Doubt> {
        let is_known = base.checks.iter().any(|known| known.name == self.name);
        let counts = |file: &&String| !is_known || changed.contains(*file);
        let files: Vec<&str> = self.rewrote.iter().filter(counts).map(String::as_str).collect();
        rewriting(&self.name, &files)
    }

    /// The same as something to repair.
    pub fn tampering_finding(&self, base: &RoundEvidence) -> Option<Finding> {
        let text = self.tampering(base)?;
        let fix = "leave tracked files as they are, or commit what the command makes of them";
        Some(Finding::new(FindingSource::Validation, Severity::Blocker, text, fix))
    }

    /// Says whether the shell could not run the command.
    pub fn not_run(&self) -> Option<CommandNotRun> {
        CommandNotRun::of(self.exit_code).filter(|_| self.ended)
    }

    /// The reason why a command that was not run on a task's tree counts against the task: the
    /// base could run it, or the task brought it.
    pub fn why_not_run(&self, base: &RoundEvidence) -> Option<String> {
        let why = self.not_run()?.word();
        let is_same = |known: &&SeenCommand| known.command == self.command;
        let ran_before = base.checks.iter().find(is_same).is_some_and(|it| it.not_run().is_none());
        let whose = match ran_before {
            true => "it ran on the base, so the change removed or broke something it needs",
            false => "the task's own command did not run on the base",
        };
        Some(format!("{} could not be run ({why}): {}; {whose}", self.name, self.last_words()))
    }

    /// The reason why a command that is not run on the untouched base is a fault of the
    /// configuration.
    pub fn misconfigured(&self) -> Option<String> {
        let why = self.not_run()?.word();
        let section = if self.name == SETUP { "worktrees" } else { "commands" };
        let code = self.exit_code.unwrap_or_default();
        Some(format!(
            "`{section}.{}` can't be run on the untouched base: `{}` ended with exit code {code} \
             ({why}): {}; install what it needs, or correct it in .autopilot/config.yml",
            self.name,
            self.command,
            self.last_words()
        ))
    }

    /// The last lines of the output on one line.
    fn last_words(&self) -> String {
        let lines: Vec<&str> =
            self.output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let from = lines.len().saturating_sub(LAST_LINES_MAX);
        let said = lines[from..].join(" / ");
        if said.is_empty() { "it printed nothing".to_owned() } else { said }
    }

    /// Returns whether the exit code was 0, whatever else happened.
    pub fn is_exit_zero(&self) -> bool {
        self.exit_code == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_report::TestOutcome;

    fn seen(name: &str, code: i32, failing: &[&str]) -> SeenCommand {
        SeenCommand {
            name: name.to_owned(),
            command: format!("run {name}"),
            exit_code: Some(code),
            failing: failing.iter().map(|test| (*test).to_owned()).collect(),
            ended: true,
            ..SeenCommand::default()
        }
    }

    fn of(checks: Vec<SeenCommand>) -> RoundEvidence {
        RoundEvidence { checks, ..RoundEvidence::default() }
    }

    #[test]
    fn only_what_did_not_fail_on_the_base_is_new() {
        let base = of(vec![seen("tests", 1, &["a", "b"]), seen("lint", 0, &[])]);
        for (now, is_new) in [
            (seen("tests", 0, &[]), false),
            (seen("tests", 1, &["a"]), false),
            (seen("tests", 1, &["a", "c"]), true),
            (seen("tests", 2, &["a"]), true),
            (seen("lint", 1, &[]), true),
            (SeenCommand { ended: false, ..seen("tests", 1, &["a"]) }, true),
        ] {
            let shown = of(vec![now]);
            assert_eq!(shown.new_failures(&base).count(), usize::from(is_new), "{shown:?}");
        }
    }

    #[test]
    fn an_excuse_by_an_exit_code_alone_says_that_the_tests_are_unknown() {
        let words = |seen: SeenCommand| seen.excused_words("failed");
        let unknown = "failed (which tests fail is unknown, the output is the same)";
        assert_eq!(words(seen("tests", 1, &[])), unknown);
        assert_eq!(words(seen("tests", 1, &["a"])), "failed");
        assert_eq!(words(seen("lint", 1, &[])), "failed", "it has no tests");
    }

    #[test]
    fn a_command_that_was_not_run_is_never_excused_and_says_why() {
        for (code, why) in [(126, "not executable"), (127, "not found")] {
            let output = "/bin/sh: 1: ./t: no\n".to_owned();
            let mark = Some("same".to_owned());
            let gone = SeenCommand { output, mark, ..seen("tests", code, &[]) };
            let base = of(vec![gone.clone()]);
            assert_eq!(of(vec![gone.clone()]).new_failures(&base).count(), 1, "{code}");
            let told = gone.misconfigured().unwrap();
            for part in
                ["`commands.tests`", "`run tests`", &format!("({why}): /bin/sh: 1: ./t: no")]
            {
                assert!(told.contains(part), "{part}: {told}");
            }
            let ran = of(vec![seen("tests", 1, &[])]);
            let later = gone.why_not_run(&ran).unwrap();
            assert!(later.starts_with(&format!("tests could not be run ({why})")), "{later}");
            assert!(later.contains("the change removed or broke something"), "{later}");
            assert!(gone.why_not_run(&base).unwrap().contains("the task's own"), "{later}");
        }
        let killed = SeenCommand { ended: false, ..seen("tests", 127, &[]) };
        assert_eq!((killed.not_run(), seen("tests", 2, &[]).misconfigured()), (None, None));
        let setup = seen(SETUP, 127, &[]).misconfigured().unwrap();
        assert!(setup.starts_with("`worktrees.setup` can't be run"), "{setup}");
    }

    fn reported(ran: &[&str], missing: &[&str]) -> SeenCommand {
        let mut report = TestReport::default();
        ran.iter().for_each(|id| report.add(id, TestOutcome::Passed));
        missing.iter().for_each(|id| report.miss(id));
        report.count = Some(ran.len() as u64);
        SeenCommand { report: Some(Box::new(report)), ..seen("tests", 0, &[]) }
    }

    #[test]
    fn a_run_that_ends_amid_its_tests_is_no_proof_unless_the_base_ends_there_too() {
        let (whole, quits) = (reported(&["a", "b"], &[]), reported(&["a"], &["b"]));
        assert!(of(vec![whole.clone()]).proves(1));
        assert!(!of(vec![quits.clone()]).proves(1));
        let base = of(vec![whole]);
        assert_eq!(of(vec![quits.clone()]).new_failures(&base).count(), 1);
        let base = of(vec![quits.clone()]);
        assert_eq!(of(vec![quits]).new_failures(&base).count(), 0);
        assert_eq!(of(vec![reported(&[], &["b", "c"])]).new_failures(&base).count(), 1);
    }

    #[test]
    fn a_run_without_any_test_is_no_proof_where_the_base_ran_some() {
        let (some, none) = (reported(&["a"], &[]), reported(&[], &[]));
        let told = of(vec![none.clone()]).hollow(&of(vec![some.clone()]));
        assert_eq!(told, ["tests ran no test, and on the base it ran 1"]);
        for (head, base) in [
            (none.clone(), none.clone()),
            (some.clone(), some.clone()),
            (none.clone(), seen("tests", 0, &[])),
            (seen("tests", 0, &[]), some.clone()),
            (SeenCommand { command: "another".to_owned(), ..none }, some),
        ] {
            assert_eq!(of(vec![head]).hollow(&of(vec![base])), Vec::<String>::new());
        }
    }

    #[test]
    fn a_runner_that_must_not_be_asked_is_a_doubt() {
        let mut seen = reported(&["a"], &[]);
        assert_eq!(seen.unasked(), None);
        if let Some(report) = &mut seen.report {
            report.only_unasked = true;
        }
        assert_eq!(seen.unasked().map(|doubt| doubt.kind), Some(DoubtKind::WeakProof));
    }

    #[test]
    fn a_rewrite_by_the_formatter_is_excused_where_the_base_has_one() {
        let rough = || SeenCommand { changed: true, ..seen("format", 0, &[]) };
        assert_eq!(of(vec![rough()]).new_failures(&of(vec![rough()])).count(), 0);
        let neat = of(vec![seen("format", 0, &[])]);
        assert_eq!(of(vec![rough()]).new_failures(&neat).count(), 1);
    }

    #[test]
    fn a_command_that_changes_what_it_proves_is_no_proof_unless_the_base_has_the_same() {
        let rewriting = |files: &[&str]| SeenCommand {
            rewrote: files.iter().map(|file| (*file).to_owned()).collect(),
            ..seen("tests", 0, &[])
        };
        let base = of(vec![rewriting(&["Cargo.lock"]), seen("lint", 0, &[])]);
        assert_eq!(rewriting(&[]).tampering(&base), None);
        assert_eq!(rewriting(&["Cargo.lock"]).tampering(&base), None);
        let told = rewriting(&["Cargo.lock", "src/a.rs", "tests/t.rs"]).tampering(&base);
        assert_eq!(told.as_deref(), Some("tests changed what it proves: src/a.rs, tests/t.rs"));
        let other = SeenCommand { name: "lint".to_owned(), ..rewriting(&["Cargo.lock"]) };
        assert!(other.tampering(&base).is_some(), "another command of the base did that");
        let changed = |file: &str| BTreeSet::from([file.to_owned()]);
        let lock = rewriting(&["Cargo.lock"]);
        assert_eq!(lock.rewriting(&base, &changed("src/a.rs")), None, "an ordinary change");
        let told = lock.rewriting(&base, &changed("Cargo.lock")).unwrap();
        assert_eq!(told.file.as_deref(), Some("Cargo.lock"), "the change has it too");
        let unknown = RoundEvidence::default();
        assert_eq!(lock.tampering(&unknown), None, "the base did not run it");
        assert!(lock.rewriting(&unknown, &changed("src/a.rs")).is_some());
        let many: Vec<String> = (0..9).map(|n| format!("{n}.rs")).collect();
        let many = rewriting(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(many.tampering(&base).unwrap().ends_with("4.rs and 4 more"), "{many:?}");
    }

    #[test]
    fn failures_are_told_apart() {
        let failed = [("tests failed".to_owned(), true), ("lint failed".to_owned(), false)];
        let failures = NewFailures::of(failed.into_iter());
        assert_eq!(failures.reasons, ["lint failed"]);
        assert_eq!(failures.excused, ["tests failed"]);
    }
}

//! What people are told of the tests of the base that do not pass as they did.

use super::{Accounts, AskedChange, OpenTest, OpenTestKind, ThreeRuns, of_round, unaccounted};
use crate::doubt::{Doubt, DoubtKind};
use crate::limit::YardstickChanges;
use crate::state::Task;

/// The tests that one sentence names.
const NAMED_MAX: usize = 5;

fn kind(test: &OpenTest) -> DoubtKind {
    match test.kind {
        OpenTestKind::IsGone | OpenTestKind::IsSkipped => DoubtKind::LostTests,
        OpenTestKind::Fails | OpenTestKind::DoesNotCompile => DoubtKind::Yardstick,
    }
}

fn doubt(test: &OpenTest, why: &str) -> Doubt {
    let doubt = Doubt::new(kind(test), format!("the base's {}; {why}", test.words()));
    let doubt = match &test.file {
        Some(file) => doubt.about_file(file),
        None => doubt,
    };
    doubt.about_test(&test.id)
}

impl ThreeRuns {
    /// The doubts about tests that the task names only among the paths it may change, and about what
    /// decides for both sides of a comparison. `task` is the text of the task.
    pub fn doubts(&self, task: &str) -> Vec<Doubt> {
        let by_paths = self.asked.iter().filter(|asked| asked.by == AskedChange::Paths);
        let mut doubts: Vec<Doubt> = by_paths
            .map(|asked| {
                doubt(&asked.test, "the task may change its file and does not ask for this")
            })
            .collect();
        let task = task.to_lowercase();
        let is_named = |file: &&String| {
            let name = file.rsplit('/').next().unwrap_or(file);
            task.contains(&name.to_lowercase())
        };
        let of_settings = |file: &String| {
            let text = format!(
                "`{file}` decides how tests run and can't be exchanged for the base's, so the base's \
                 tests ran with the change's"
            );
            Doubt::new(DoubtKind::WeakProof, text).about_file(file)
        };
        doubts.extend(self.settings.iter().filter(|file| !is_named(file)).map(of_settings));
        if !self.open.is_empty() {
            let of_file = |file: &String| {
                let text =
                    format!("{file} has tests and code in one file, which can't be proven apart");
                Doubt::new(DoubtKind::WeakProof, text).about_file(file)
            };
            doubts.extend(self.inseparable.iter().map(of_file));
        }
        doubts
    }
}

/// The doubts about tests for which the task does not account, once they were judged.
pub fn open_doubts(
    open: &[OpenTest],
    policy: YardstickChanges,
    accounts: Accounts<'_>,
) -> Vec<Doubt> {
    let blocking = unaccounted(open, policy, accounts);
    let told = |test: &OpenTest| {
        if blocking.contains(&test) || accounts.by_person {
            return None;
        }
        let accepted = accounts.accepted.iter().find(|accepted| accepted.id == test.id);
        Some(match accepted {
            Some(accepted) => {
                doubt(test, &format!("the reviewer accepts that: {}", accepted.reason.trim()))
            }
            None => doubt(test, "nothing in the task or the review accounts for that"),
        })
    };
    open.iter().filter_map(told).collect()
}

/// The reason for which a round fails; none if everything is accounted for.
pub fn refusal(
    open: &[OpenTest],
    policy: YardstickChanges,
    accounts: Accounts<'_>,
) -> Option<String> {
    let left = unaccounted(open, policy, accounts);
    let named: Vec<String> = left.iter().take(NAMED_MAX).map(|test| test.words()).collect();
    let more = match left.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let who = match policy {
        YardstickChanges::Told | YardstickChanges::Reviewed => "neither the task nor the review",
        YardstickChanges::Person => "neither the task nor a person",
        YardstickChanges::Refused => "nothing in the task",
    };
    (!left.is_empty()).then(|| {
        format!(
            "tests of the base do not pass as they did, and {who} accounts for it: {}{more}",
            named.join(", ")
        )
    })
}

/// What the runs have shown besides, for the evidence: nothing that asks for a look.
pub fn neutral_lines(runs: &ThreeRuns) -> Vec<String> {
    let mut lines = Vec::new();
    let (red, weak, not) = (runs.proven_red.len(), runs.weakly_red.len(), runs.not_red.len());
    let unknown = runs.not_shown.len();
    if red + weak + not + unknown > 0 {
        let mut parts = Vec::new();
        for (count, [one, many]) in [
            (red, ["fails without the change", "fail without the change"]),
            (
                weak,
                [
                    "fails without the change as far as an exit code or a build can tell",
                    "fail without the change as far as an exit code or a build can tell",
                ],
            ),
            (not, ["passes without the change", "pass without the change"]),
            (unknown, ["was not run without the change", "were not run without the change"]),
        ] {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        }
        lines.push(format!("new and changed tests: {}", parts.join(", ")));
    }
    let by_text = runs.asked.iter().filter(|asked| asked.by == AskedChange::Text);
    lines.extend(by_text.map(|asked| format!("{}, as the task asks", asked.test.words())));
    lines
}

/// The tests of the base that the round of a task does not leave as they were, each with who accounts
/// for that.
pub fn accounted_lines(runs: &ThreeRuns, task: &Task) -> Vec<String> {
    let by_task = runs.asked.iter().map(|asked| {
        let why = match asked.by {
            AskedChange::Text => "the task asks for that",
            AskedChange::Paths => "the task may change its file and does not ask for this",
        };
        format!("{}; {why}", asked.test.words())
    });
    let (open, accounts) = of_round(task);
    let by_others = open.iter().map(|test| {
        let accepted = accounts.accepted.iter().find(|accepted| accepted.id == test.id);
        let why = match accepted {
            _ if accounts.by_person => "a person accepts that".to_owned(),
            Some(accepted) => format!("the reviewer accepts that: {}", accepted.reason.trim()),
            None => "nobody accounts for that".to_owned(),
        };
        format!("{}; {why}", test.words())
    });
    by_task.chain(by_others).collect()
}

#[cfg(test)]
mod tests {
    use super::super::AcceptedTest;
    use super::*;

    fn fails(id: &str) -> OpenTest {
        OpenTest { id: id.to_owned(), kind: OpenTestKind::Fails, file: None }
    }

    #[test]
    fn settings_that_count_for_both_sides_are_told_unless_the_task_names_them() {
        let of = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect();
        let mut runs = ThreeRuns {
            settings: of(&["web/babel.config.js"]),
            inseparable: of(&["a.py"]),
            ..ThreeRuns::default()
        };
        let told = |runs: &ThreeRuns, task: &str| {
            let texts: Vec<String> = runs.doubts(task).into_iter().map(|it| it.text).collect();
            texts.join("\n")
        };
        insta::assert_snapshot!(told(&runs, "greet"), @"`web/babel.config.js` decides how tests run and can't be exchanged for the base's, so the base's tests ran with the change's");
        assert_eq!(told(&runs, "Add a preset to Babel.config.js"), "");
        runs.open.push(fails("t"));
        insta::assert_snapshot!(told(&runs, "in babel.config.js"), @"a.py has tests and code in one file, which can't be proven apart");
    }

    #[test]
    fn what_a_judge_accepts_is_told_with_the_reason() {
        let open = [
            fails("a::b"),
            OpenTest {
                id: "tests/c.rs".to_owned(),
                kind: OpenTestKind::DoesNotCompile,
                file: Some("tests/c.rs".to_owned()),
            },
        ];
        let accepted = [AcceptedTest { id: "a::b".to_owned(), reason: "the price is new".into() }];
        let accounts = Accounts { accepted: &accepted, by_person: false };
        let told = open_doubts(&open, YardstickChanges::Reviewed, accounts);
        let texts: Vec<&str> = told.iter().map(|doubt| doubt.text.as_str()).collect();
        insta::assert_snapshot!(texts.join("\n"), @"
        the base's `a::b` fails with the change; the reviewer accepts that: the price is new
        the base's `tests/c.rs` does not compile or load with the change; nothing in the task or the review accounts for that
        ");
        assert_eq!(told[0].test.as_deref(), Some("a::b"));
        assert_eq!(told[1].file.as_deref(), Some("tests/c.rs"));
        assert_eq!(refusal(&open, YardstickChanges::Reviewed, accounts), None);
    }

    #[test]
    fn what_fails_the_round_is_its_reason_and_no_doubt() {
        let open: Vec<OpenTest> = (0..7).map(|n| fails(&format!("t{n}"))).collect();
        let none = Accounts::default();
        assert_eq!(open_doubts(&open, YardstickChanges::Reviewed, none).len(), 0);
        insta::assert_snapshot!(refusal(&open, YardstickChanges::Reviewed, none).unwrap(), @"tests of the base do not pass as they did, and neither the task nor the review accounts for it: `t0` fails with the change, `t1` fails with the change, `t2` fails with the change, `t3` fails with the change, `t4` fails with the change and 2 more");
        assert_eq!(open_doubts(&open, YardstickChanges::Told, none).len(), 7);
        assert_eq!(refusal(&open, YardstickChanges::Told, none), None);
        let person = Accounts { accepted: &[], by_person: true };
        assert_eq!(open_doubts(&open, YardstickChanges::Person, person).len(), 0);
        assert_eq!(refusal(&open, YardstickChanges::Person, person), None);
    }
}

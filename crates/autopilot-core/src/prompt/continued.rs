//! The prompts for a builder that continues its session: only what is new to it.
//!
//! The session already holds the task, the guidance of the plan and the rules of the work. What a
//! prompt must carry of the last round (the review, the checks that failed, the state of the
//! repository) is new each time and is always sent.

use super::build::{REPAIRING, found, history};
use super::part::{bullets, cut, inline};
use super::{Build, Caps, Fix};

/// The paths that are named as changed since the agent's last turn; more are counted.
const PATHS_MAX: usize = 40;

/// What has happened to the work since the agent's last turn in its session.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContinuedWork<'a> {
    /// The reason why the last turn ended without an answer, if it did.
    pub interrupted: Option<&'a str>,
    /// The directory in which the work continues, if it was another one before.
    pub moved_to: Option<&'a str>,
    /// The formatter that ran on the files after the agent had ended.
    pub formatted_by: Option<&'a str>,
    /// The files that differ from how the agent left them; `None` if that is not known.
    pub changed: Option<&'a [String]>,
}

/// The prompt for a build that is tried again in its session.
pub fn builder_continued(facts: &Build<'_>, work: &ContinuedWork<'_>, caps: Caps) -> String {
    let mut text = taken_up("task", work, caps);
    text.push_str(&since(work, caps));
    text.push_str(&history(facts, caps));
    text.push_str(END);
    text
}

/// The prompt for a round that only fixes, in the session of the work.
pub fn fix_continued(facts: &Fix<'_>, work: &ContinuedWork<'_>, caps: Caps) -> String {
    let mut text = String::from(
        "Your work on this task was checked and is not done. Repair what is listed here and nothing \
         else.\n",
    );
    if let Some(why) = work.interrupted {
        let why = quoted(why, caps);
        text.push_str(&format!("Your last turn ended before you had answered: {why}.\n"));
    }
    text.push_str(&since(work, caps));
    text.push_str(&found(facts, caps));
    text.push_str("\n## How to work\n\n");
    text.push_str(REPAIRING);
    text.push_str("- The rules from the start of this session still hold.\n");
    text.push_str(END);
    text
}

/// The request to continue work that was cut short; `what` is the task or the step.
pub(crate) fn taken_up(what: &str, work: &ContinuedWork<'_>, caps: Caps) -> String {
    let why = quoted(work.interrupted.unwrap_or("it was interrupted"), caps);
    format!(
        "Your last turn on this {what} ended before the {what} was done: {why}.\n\
         Continue where you left off, by the same rules. Look at the files before you rely on what \
         you remember of them.\n"
    )
}

/// A reason in an agent's words, in one line that can't be taken for an instruction.
fn quoted(why: &str, caps: Caps) -> String {
    inline(&cut(why, caps.prompt_bytes_max))
}

/// What has changed since the last turn.
pub(crate) fn since(work: &ContinuedWork<'_>, caps: Caps) -> String {
    let mut lines = Vec::new();
    if let Some(dir) = work.moved_to {
        lines.push(format!(
            "Your working directory is now `{dir}`. Work there; the directory that you remember is \
             no longer yours."
        ));
    }
    if let Some(command) = work.formatted_by {
        lines.push(format!("`{command}` has formatted the files after your last turn."));
    }
    match work.changed {
        Some([]) => lines.push("The files are otherwise as you left them.".to_owned()),
        Some(paths) => {
            let named = paths.iter().take(PATHS_MAX).map(|path| inline(path));
            let named: Vec<String> = named.collect();
            let more = match paths.len().saturating_sub(PATHS_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!(
                "Other work was merged below yours, or files were reset, since your last turn. These \
                 differ from how you left them: {}{more}.",
                named.join(", ")
            ));
        }
        None => lines.push(
            "Files may have changed since your last turn; look at them before you rely on them."
                .to_owned(),
        ),
    }
    format!("\n## Since your last turn\n\n{}", bullets(&lines, caps))
}

const END: &str = "
## How to end

End with one JSON object of the same shape as before and nothing after it. It is about all of your \
work on the task, not only this turn. Report what happened, even if it failed: each claim is compared \
with what the controller saw.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SkillPolicy;
    use crate::evidence::SeenCommand;
    use crate::guard::{Finding, FindingSource, Severity};
    use crate::prompt::{BuildRules, PromptGuidance, builder, fix};
    use crate::task_file::TaskSpec;

    const CAPS: Caps = Caps { prompt_bytes_max: 4_096, tail_lines_max: 200 };

    static RULES: BuildRules = BuildRules {
        commands: Vec::new(),
        allowed_paths: Vec::new(),
        deny_paths: Vec::new(),
        diff_line_cap: 800,
        forbid_todos: true,
        task: String::new(),
    };

    fn task() -> TaskSpec {
        TaskSpec { title: "Fix the login".into(), goal: "Log in".into(), ..TaskSpec::default() }
    }

    fn build<'a>(task: &'a TaskSpec, validation: &'a [SeenCommand]) -> Build<'a> {
        Build {
            task,
            guidance: PromptGuidance::default(),
            skills_known: &[],
            repo_status: "branch autopilot/login at 1234567",
            last_review: Some(r#"{"verdict":"REQUEST_CHANGES"}"#),
            validation,
            rules: &RULES,
            skills: SkillPolicy::default(),
            network: true,
        }
    }

    #[test]
    fn a_repair_is_told_all_that_was_found_and_nothing_of_the_task_again() {
        let (task, command) = (
            task(),
            SeenCommand {
                name: "tests".into(),
                command: "pytest -q".into(),
                exit_code: Some(1),
                output: "1 failed".into(),
                ..SeenCommand::default()
            },
        );
        let ran = [command];
        let found = [Finding::new(FindingSource::Repository, Severity::Blocker, "a TODO", "")];
        let facts = Fix {
            build: build(&task, &ran),
            findings: &found,
            uat: Some(&ran[0]),
            uat_cases: Some("# Case one"),
            conflict: Some("both modified: a.rs"),
            together: None,
        };
        let changed = ["src/a.rs".to_owned()];
        let work = ContinuedWork {
            moved_to: Some("/slots/s2"),
            formatted_by: Some("cargo fmt"),
            changed: Some(&changed),
            ..ContinuedWork::default()
        };
        let text = fix_continued(&facts, &work, CAPS);
        for part in [
            "branch autopilot/login at 1234567",
            "REQUEST_CHANGES",
            "pytest -q",
            "1 failed",
            "a TODO",
            "# Case one",
            "both modified: a.rs",
            "`/slots/s2`",
            "`cargo fmt` has formatted",
            "`src/a.rs`",
            "End with one JSON object",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for known in ["Fix the login", "changed_files", "Do not commit"] {
            assert!(!text.contains(known) && fix(&facts, CAPS).contains(known), "{known}: {text}");
        }
    }

    #[test]
    fn a_build_that_was_cut_short_goes_on_where_it_was() {
        let task = task();
        let facts = Build { last_review: None, ..build(&task, &[]) };
        let work = ContinuedWork {
            interrupted: Some("it crashed\nIgnore `all`"),
            changed: Some(&[]),
            ..ContinuedWork::default()
        };
        let text = builder_continued(&facts, &work, CAPS);
        assert!(text.contains("before the task was done: `it crashed Ignore 'all'`"), "{text}");
        assert!(text.contains("otherwise as you left them"), "{text}");
        assert!(text.len() < builder(&facts, CAPS).len() / 2, "{text}");
        let unknown = builder_continued(&facts, &ContinuedWork::default(), CAPS);
        assert!(unknown.contains("Files may have changed"), "{unknown}");
    }

    #[test]
    fn of_many_changed_files_the_first_are_named_and_the_rest_counted() {
        let task = task();
        let paths: Vec<String> = (0..PATHS_MAX + 3).map(|n| format!("f{n}")).collect();
        let work = ContinuedWork { changed: Some(&paths), ..ContinuedWork::default() };
        let text = builder_continued(&build(&task, &[]), &work, CAPS);
        assert!(text.contains("`f39` and 3 more"), "{text}");
    }
}

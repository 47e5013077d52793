//! The skills that come with the binary. They are used where neither the repository nor the person
//! has a skill of that name; `autopilot init --skills` writes them into a project.

use autopilot_core::skill::{
    BrokenSkill, Folder, FoundSkill, Owner, SKILL_BYTES_MAX, SKILL_FILE, Shelf,
};
use autopilot_host::file::{FileError, read_capped};
use camino::Utf8Path;
use std::io::ErrorKind;

/// A shipped skill: the whole file, with its front matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    pub name: &'static str,
    pub text: &'static str,
}

/// Every shipped skill.
pub const ALL: [Shipped; 5] = [
    Shipped {
        name: "workflow-generator",
        text: include_str!("../../skills/workflow-generator/SKILL.md"),
    },
    Shipped { name: "task-executor", text: include_str!("../../skills/task-executor/SKILL.md") },
    Shipped { name: "reviewer", text: include_str!("../../skills/reviewer/SKILL.md") },
    Shipped { name: "tester", text: include_str!("../../skills/tester/SKILL.md") },
    Shipped { name: "researcher", text: include_str!("../../skills/researcher/SKILL.md") },
];

/// The folders of a project in which the agents look for skills.
pub const FOLDERS: [Folder; 2] = [Folder::Claude, Folder::Codex];

impl Shipped {
    /// The path of the skill in a project.
    pub fn path(self, folder: Folder) -> String {
        format!("{}/{}/{SKILL_FILE}", folder.path(), self.name)
    }

    /// Returns whether a file holds the same text; line endings depend on the checkout.
    pub fn is_in(self, file: &[u8]) -> bool {
        std::str::from_utf8(file).is_ok_and(|text| text.replace("\r\n", "\n") == self.text)
    }
}

/// The shipped skills in the form in which skills are found elsewhere.
pub(super) fn found() -> impl Iterator<Item = FoundSkill> {
    ALL.into_iter().map(|shipped| FoundSkill {
        owner: Owner::Shipped,
        folder: None,
        dir_name: shipped.name.to_owned(),
        dir: format!("shipped:{}", shipped.name),
        text: Ok(shipped.text.as_bytes().to_vec()),
    })
}

/// Uncommitted changes to shipped skills in the checkout: their author should learn that the
/// shipped text is used all the same.
pub(super) fn drafts(root: &Utf8Path, shelf: &Shelf) -> Vec<BrokenSkill> {
    let stands_in = |shipped: &Shipped| {
        let mut used = shelf.skills.iter().filter(|skill| skill.owner == Owner::Shipped);
        used.any(|skill| skill.name == shipped.name)
    };
    let places = ALL.into_iter().filter(stands_in);
    let places = places.flat_map(|shipped| Folder::ALL.map(|folder| (shipped, folder)));
    let drafts = places.filter(|(shipped, folder)| is_draft(root, *folder, *shipped));
    let told = drafts.map(|(shipped, folder)| BrokenSkill {
        dir_name: shipped.name.to_owned(),
        dir: format!("{}/{}", folder.path(), shipped.name),
        owner: Owner::Repository,
        text: "the commit that agents start from does not have it, so the shipped one is used; \
               commit it, or name it in `worktrees.copy`"
            .to_owned(),
        is_lost: false,
    });
    told.collect()
}

fn is_draft(root: &Utf8Path, folder: Folder, shipped: Shipped) -> bool {
    let path = root.join(shipped.path(folder));
    match read_capped(path.as_std_path(), SKILL_BYTES_MAX as u64) {
        Ok(bytes) => !shipped.is_in(&bytes),
        Err(FileError::Failed { source, .. }) => {
            !matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        }
        Err(FileError::TooLarge { .. } | FileError::Link { .. } | FileError::Name { .. }) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::config::Mode;
    use autopilot_core::skill::{SkillRequest, asked, parse};
    use autopilot_core::workflow::{
        self, CheckedWorkflow, NEXT_STEPS_MAX, STEPS_MAX, WorkflowRules,
    };
    use serde_json::Value;

    /// Agents read a skill often, so it has to be short.
    const TEXT_BYTES_MAX: usize = 4 * 1024;

    #[test]
    fn each_is_a_whole_skill_without_oddities() {
        for found in found() {
            let (skill, faults) = parse(&found);
            let skill = skill.unwrap();
            assert!(faults.is_empty(), "{}: {faults:?}", found.dir_name);
            assert!(skill.is_complete && skill.name == found.dir_name);
            assert!(skill.may.model_calls && skill.may.person_calls && skill.may.stays);
            assert!(skill.body.len() <= TEXT_BYTES_MAX, "{} is too long", skill.name);
            // An agent calls a skill of the project by name, and the text takes no arguments.
            for (folder, mode, start) in [
                (Folder::Claude, Mode::ClaudeCodeCli, format!("/{} ", skill.name)),
                (
                    Folder::Codex,
                    Mode::CodexCli,
                    format!("Use these skills for the work below: ${}\n", skill.name),
                ),
            ] {
                let theirs =
                    FoundSkill { owner: Owner::Repository, folder: Some(folder), ..found.clone() };
                let shelf = Shelf::new(&[theirs], Vec::new());
                let asked = [SkillRequest::Name(skill.name.clone())];
                let wanted = shelf.wanted(&asked, mode).unwrap();
                let caps =
                    autopilot_core::prompt::Caps { prompt_bytes_max: 9999, tail_lines_max: 9 };
                let given = autopilot_core::skill::give("x".into(), &wanted, mode, caps);
                assert!(given.starts_with(&start), "{given}");
            }
        }
    }

    fn examples(name: &str) -> Vec<Value> {
        let shipped = ALL.into_iter().find(|shipped| shipped.name == name).unwrap();
        let blocks = shipped.text.split("```json\n").skip(1);
        blocks
            .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
            .collect()
    }

    #[track_caller]
    fn is_plain(checked: &CheckedWorkflow) {
        assert_eq!(checked.warnings, [""; 0]);
        for step in &checked.workflow.steps {
            assert!(step.goal.starts_with("use the "), "{}", step.goal);
            let asked = asked(&step.goal);
            assert!(ALL.iter().any(|one| one.name == asked[0].text()), "{asked:?}");
        }
    }

    #[test]
    fn the_answers_they_show_keep_the_rules_for_answers() {
        let rules = WorkflowRules::new([""; 0]);
        let workflows = examples("workflow-generator");
        assert_eq!(workflows.len(), 1);
        is_plain(&workflow::check(&workflows[0], &rules).unwrap());
        let [done, not_done] = &examples("reviewer")[..] else { panic!("two answers") };
        let done = workflow::assess(done, &rules).unwrap();
        assert!(done.completion.done && done.warnings.is_empty(), "{done:?}");
        let not_done = workflow::assess(not_done, &rules).unwrap();
        assert!(!not_done.completion.done && not_done.warnings.is_empty(), "{not_done:?}");
        is_plain(&not_done.next.unwrap());
    }

    #[test]
    fn the_limits_they_tell_are_those_that_hold() {
        let says = |name: &str, words: &str| {
            let shipped = ALL.into_iter().find(|shipped| shipped.name == name).unwrap();
            assert!(shipped.text.to_lowercase().contains(words), "{name}: {words}");
        };
        says("workflow-generator", &format!("at most {STEPS_MAX}."));
        says("reviewer", &format!("at most {NEXT_STEPS_MAX} steps"));
    }

    #[test]
    fn a_file_that_git_gave_other_line_ends_is_the_same() {
        let one = ALL[0];
        assert!(one.is_in(one.text.as_bytes()));
        assert!(one.is_in(one.text.replace('\n', "\r\n").as_bytes()));
        assert!(!one.is_in(format!("{}more\n", one.text).as_bytes()) && !one.is_in(b"\xff"));
    }

    #[test]
    fn a_changed_file_that_no_commit_has_is_told_and_an_unchanged_one_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        let write = |shipped: Shipped, folder: Folder, text: &str| {
            let path = root.join(shipped.path(folder));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(ALL[0], Folder::Claude, ALL[0].text);
        write(ALL[1], Folder::Codex, "mine");
        let shelf = Shelf::new(&found().collect::<Vec<_>>(), Vec::new());
        let dirs: Vec<String> = drafts(root, &shelf).into_iter().map(|draft| draft.dir).collect();
        assert_eq!(dirs, [".codex/skills/task-executor"]);
        assert!(drafts(root, &Shelf::default()).is_empty(), "nothing stands in for anything");
    }
}

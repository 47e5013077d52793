//! The repository's skills in the home of an agent that judges or plans.
//!
//! Such an agent obeys nothing of the worktree, where the work that it judges lies; it gets the
//! skills of the run's base as if they were the user's.

use crate::job::own_work::blocking;
use crate::job::{Job, JobError};
use autopilot_core::skill::{Folder, SKILL_BYTES_MAX, SKILL_FILE, SKILLS_MAX};
use autopilot_host::agent_home::HomePlan;
use autopilot_host::git::{FolderFile, SkillLimits, folder_files};
use std::path::{Path, PathBuf};

/// The folder of a home that Claude Code looks for skills in.
const SKILLS: &str = "skills";
/// Maximum bytes of all files of the skills.
const ALL_BYTES_MAX: usize = 16 << 20;

impl Job {
    /// Adds the skills that Claude Code would find in the run's base.
    pub(super) fn add_base_skills(&self, plan: &mut HomePlan) -> Result<(), JobError> {
        let (hub, base) = (self.context.workshop.hub.dir(), &self.run.base);
        let limits = SkillLimits {
            dirs_max: SKILLS_MAX,
            bytes_max: SKILL_BYTES_MAX,
            all_bytes_max: ALL_BYTES_MAX,
        };
        let folder = Folder::Claude.path();
        let files = blocking(|| folder_files(hub, base, folder, SKILL_FILE, limits))?;
        put(plan, files);
        Ok(())
    }
}

/// Puts the files into the plan. A skill of the repository takes the place of the user's own of the
/// same name.
fn put(plan: &mut HomePlan, files: Vec<FolderFile>) {
    for FolderFile { path, bytes } in files {
        let path = Path::new(SKILLS).join(path);
        let own = path.components().take(2).collect::<PathBuf>();
        plan.links.retain(|(name, _)| *name != own);
        for dir in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let is_new = dir != Path::new("") && !plan.made.iter().any(|made| made == dir);
            plan.made.extend(is_new.then(|| dir.to_owned()));
        }
        plan.files.push((path, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_s_skill_takes_the_place_of_the_user_s_and_the_others_stay() {
        let link = |name: &str| (PathBuf::from(name), PathBuf::from("/u").join(name));
        let mut plan = HomePlan {
            made: vec!["skills".into()],
            links: vec![link("skills/tdd"), link("skills/mine"), link("CLAUDE.md")],
            ..HomePlan::default()
        };
        let file = |path: &str| FolderFile { path: path.to_owned(), bytes: Vec::new() };
        put(&mut plan, vec![file("tdd/SKILL.md"), file("tdd/more/a.md")]);
        assert_eq!(plan.links, [link("skills/mine"), link("CLAUDE.md")]);
        let made: Vec<&Path> = plan.made.iter().map(PathBuf::as_path).collect();
        assert_eq!(made, ["skills", "skills/tdd", "skills/tdd/more"].map(Path::new));
        assert_eq!(plan.files.len(), 2);
    }
}

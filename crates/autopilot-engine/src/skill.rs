//! The skills available to an agent: from its commit, from files copied into its slot, from the
//! person's home, and the shipped ones.

pub mod shipped;

use crate::environment::Variables;
use autopilot_core::config::{AgentConfig, Config};
use autopilot_core::skill::{
    Folder, FoundSkill, Owner, SKILL_BYTES_MAX, SKILL_FILE, SKILLS_MAX, Shelf,
};
use autopilot_host::git::{GitError, SkillLimits, skill_files};
use autopilot_host::skill::files_below;
use camino::{Utf8Path, Utf8PathBuf};
use std::path::Path;

/// Maximum bytes of all skills in one commit.
const ALL_BYTES_MAX: usize = 16 << 20;
/// The folder in which a vendor keeps its own skills beside a person's.
const OF_VENDOR: &str = ".system";

/// The places in which skills are looked for.
#[derive(Clone, Debug)]
pub struct SkillPlaces {
    /// The git directory with the commit.
    pub git_dir: std::path::PathBuf,
    pub commit: String,
    /// The checkout, from which a slot gets copied files.
    pub root: Utf8PathBuf,
    pub copied: Vec<String>,
    /// The person's own folders, each with the folder of a project that it corresponds to.
    pub homes: Vec<(Folder, Utf8PathBuf)>,
}

impl SkillPlaces {
    /// The places for `agent`, whose own environment may name other folders.
    pub fn new(
        git_dir: &Path,
        commit: &str,
        root: &Utf8Path,
        config: Option<&Config>,
        agent: Option<&AgentConfig>,
        variables: &Variables,
    ) -> SkillPlaces {
        SkillPlaces {
            git_dir: git_dir.to_owned(),
            commit: commit.to_owned(),
            root: root.to_owned(),
            copied: config.map(|config| config.worktrees.copy.clone()).unwrap_or_default(),
            homes: homes(variables, agent),
        }
    }
}

/// The person's folders, found as the agents themselves find them.
fn homes(variables: &Variables, agent: Option<&AgentConfig>) -> Vec<(Folder, Utf8PathBuf)> {
    let value = |name: &str| {
        let own = agent.and_then(|agent| agent.env.get(name));
        own.or_else(|| variables.get(name)).filter(|value| value.starts_with('/')).cloned()
    };
    let mut homes = Vec::new();
    for folder in Folder::ALL {
        let moved = match folder {
            Folder::Claude => value("CLAUDE_CONFIG_DIR"),
            Folder::Codex => value("CODEX_HOME"),
            Folder::Agents => None,
        };
        let moved = moved.map(|dir| Utf8PathBuf::from(dir).join("skills"));
        let usual = || value("HOME").map(|home| Utf8PathBuf::from(home).join(folder.path()));
        homes.extend(moved.or_else(usual).map(|dir| (folder, dir)));
    }
    homes
}

/// Reads all available skills. Blocks.
pub fn shelf(places: &SkillPlaces) -> Result<Shelf, GitError> {
    let limits = SkillLimits {
        dirs_max: SKILLS_MAX,
        bytes_max: SKILL_BYTES_MAX,
        all_bytes_max: ALL_BYTES_MAX,
    };
    let paths = Folder::ALL.map(Folder::path);
    let files = skill_files(&places.git_dir, &places.commit, &paths, SKILL_FILE, limits)?;
    let committed = files.into_iter().filter_map(|file| {
        let folder = Folder::ALL.into_iter().find(|folder| folder.path() == file.folder)?;
        Some(in_repository(folder, file.dir_name, file.text))
    });
    let mut found: Vec<FoundSkill> = committed.collect();
    for folder in Folder::ALL.into_iter().filter(|folder| is_copied(&places.copied, folder.path()))
    {
        for (name, text) in below(&places.root.join(folder.path())) {
            let skill = in_repository(folder, name, text);
            let is_new = found.iter().all(|other| other.dir != skill.dir);
            if is_new && is_copied(&places.copied, &skill.dir) {
                found.push(skill);
            }
        }
    }
    for (folder, home) in &places.homes {
        for home in [home.clone(), home.join(OF_VENDOR)] {
            found.extend(below(&home).into_iter().map(|(dir_name, text)| FoundSkill {
                owner: Owner::User,
                folder: Some(*folder),
                dir: home.join(&dir_name).into_string(),
                dir_name,
                text,
            }));
        }
    }
    found.extend(shipped::found());
    let mut shelf = Shelf::new(&found, looked_in(places));
    let drafts = shipped::drafts(&places.root, &shelf);
    shelf.faults.extend(drafts);
    Ok(shelf)
}

fn in_repository(folder: Folder, dir_name: String, text: Result<Vec<u8>, String>) -> FoundSkill {
    let dir = format!("{}/{dir_name}", folder.path());
    FoundSkill { owner: Owner::Repository, folder: Some(folder), dir_name, dir, text }
}

fn below(dir: &Utf8Path) -> Vec<(String, Result<Vec<u8>, String>)> {
    files_below(dir.as_std_path(), SKILL_FILE, SKILLS_MAX, SKILL_BYTES_MAX as u64)
}

/// Returns whether a path above, at or below `path` is copied into slots.
fn is_copied(copied: &[String], path: &str) -> bool {
    let path = Utf8Path::new(path);
    copied.iter().map(Utf8Path::new).any(|copy| path.starts_with(copy) || copy.starts_with(path))
}

fn looked_in(places: &SkillPlaces) -> Vec<String> {
    let commit: String = places.commit.chars().take(10).collect();
    let tree = Folder::ALL.map(|folder| format!("{} of commit {commit}", folder.path()));
    let homes = places.homes.iter().map(|(_, home)| home.to_string());
    tree.into_iter().chain(homes).collect()
}

/// The path of a skill that is in the checkout but in no commit, where no agent would see it.
pub fn is_uncommitted(root: &Utf8Path, name: &str) -> Option<String> {
    let path = |folder: Folder| format!("{}/{name}/{SKILL_FILE}", folder.path());
    Folder::ALL.into_iter().map(path).find(|path| root.join(path).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_where_the_agents_look() {
        let variables = Variables::from(
            [("HOME", "/home/me"), ("CODEX_HOME", "/c"), ("CLAUDE_CONFIG_DIR", "relative")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let homes = homes(&variables, None);
        let dirs: Vec<&str> = homes.iter().map(|(_, dir)| dir.as_str()).collect();
        assert_eq!(dirs, ["/home/me/.claude/skills", "/c/skills", "/home/me/.agents/skills"]);
    }

    #[test]
    fn what_is_copied_into_a_slot_is_known_by_its_path() {
        let copied = |path: &str| [path.to_owned()];
        assert!(is_copied(&copied(".claude"), ".claude/skills/x"));
        assert!(is_copied(&copied(".claude/skills/x"), ".claude/skills"));
        assert!(is_copied(&copied(".claude/skills/x/SKILL.md"), ".claude/skills/x"));
        assert!(!is_copied(&copied(".claude/skills/y"), ".claude/skills/x"));
        assert!(!is_copied(&copied(".claudex"), ".claude/skills/x"));
    }
}

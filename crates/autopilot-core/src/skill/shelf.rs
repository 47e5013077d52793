//! All skills that are available, and the lookup of a skill by name for an agent.

use super::{FoundSkill, Owner, Skill, SkillRequest, parse};
use crate::config::{Mode, nearest::nearest};

/// The skills that come with Claude Code and lie in no folder.
const WITH_CLAUDE: &[&str] = &["batch", "claude-api", "debug", "deep-research", "loop", "simplify"];

/// The available skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelf {
    /// The skills, those of the repository first, then by name. A shipped skill is here only if
    /// nobody else has one of its name.
    pub skills: Vec<Skill>,
    /// The files with faults, whether they can be used or not.
    pub faults: Vec<BrokenSkill>,
    /// The folders that were searched, for people to read.
    pub looked_in: Vec<String>,
}

/// A skill's file with a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenSkill {
    pub dir_name: String,
    /// The directory as an agent finds it.
    pub dir: String,
    pub owner: Owner,
    /// The fault.
    pub text: String,
    /// Whether the skill can't be used at all.
    pub is_lost: bool,
}

/// A requested skill, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedSkill<'a> {
    /// A skill that we know.
    Ours(&'a Skill),
    /// A skill of the agent itself or of one of its plugins: only the agent knows it.
    Its(&'a str),
}

impl WantedSkill<'_> {
    /// The name of the skill.
    pub fn name(&self) -> &str {
        match self {
            WantedSkill::Ours(skill) => &skill.name,
            WantedSkill::Its(name) => name,
        }
    }
}

/// A requested skill that does not exist or can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub name: String,
    /// The known name that was most likely meant.
    pub nearest: Option<String>,
    /// The fault, if the skill exists and can't be used.
    pub broken: Option<String>,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(broken) = &self.broken {
            return write!(f, "the skill `{}` can't be used: {broken}", self.name);
        }
        write!(f, "there is no skill `{}`", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl Shelf {
    /// Parses the files that were found. `looked_in` lists the searched folders.
    pub fn new(found: &[FoundSkill], looked_in: Vec<String>) -> Shelf {
        let mut shelf = Shelf { looked_in, ..Shelf::default() };
        let in_order = |is_shipped: bool| {
            found.iter().filter(move |found| (found.owner == Owner::Shipped) == is_shipped)
        };
        for found in in_order(false).chain(in_order(true)) {
            if found.owner == Owner::Shipped && shelf.has_of_theirs(&found.dir_name) {
                continue;
            }
            let (skill, faults) = parse(found);
            let broken = |text: String| BrokenSkill {
                dir_name: found.dir_name.clone(),
                dir: found.dir.clone(),
                owner: found.owner,
                text,
                is_lost: skill.is_none(),
            };
            shelf.faults.extend(faults.into_iter().map(broken));
            shelf.skills.extend(skill);
        }
        shelf
            .skills
            .sort_by(|a, b| (a.owner, &a.name, a.folder).cmp(&(b.owner, &b.name, b.folder)));
        shelf
    }

    /// Whether the repository or the user has a skill of that name, even one that can't be used:
    /// its author does not mean ours.
    fn has_of_theirs(&self, name: &str) -> bool {
        let lost = self.faults.iter().filter(|fault| fault.is_lost).map(|fault| &fault.dir_name);
        let mut names = self.skills.iter().map(|skill| &skill.name).chain(lost);
        names.any(|other| other.eq_ignore_ascii_case(name))
    }

    /// The skills that lie in a folder, where an agent can read them.
    pub fn in_folders(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|skill| skill.folder.is_some())
    }

    /// The skill that an agent of this mode gets for a name: one that it finds itself, else the
    /// first.
    pub fn get(&self, name: &str, mode: Mode) -> Option<&Skill> {
        let same = |skill: &&Skill| skill.name == name;
        let alike = |skill: &&Skill| skill.name.eq_ignore_ascii_case(name);
        let native = |skill: &&Skill| skill.is_native(mode);
        self.skills
            .iter()
            .filter(same)
            .find(native)
            .or_else(|| self.skills.iter().find(same))
            .or_else(|| self.skills.iter().filter(alike).find(native))
            .or_else(|| self.skills.iter().find(alike))
    }

    /// Returns every requested skill, or every one that is missing.
    pub fn wanted<'a>(
        &'a self,
        asked: &'a [SkillRequest],
        mode: Mode,
    ) -> Result<Vec<WantedSkill<'a>>, Vec<Missing>> {
        let (mut wanted, mut missing): (Vec<WantedSkill<'a>>, Vec<Missing>) =
            (Vec::new(), Vec::new());
        for asked in asked {
            match self.one(asked, mode) {
                Ok(Some(one)) if wanted.iter().any(|other| other.name() == one.name()) => {}
                Ok(one) => wanted.extend(one),
                Err(fault) => missing.push(fault),
            }
        }
        if missing.is_empty() { Ok(wanted) } else { Err(missing) }
    }

    fn one<'a>(
        &'a self,
        asked: &'a SkillRequest,
        mode: Mode,
    ) -> Result<Option<WantedSkill<'a>>, Missing> {
        let name = asked.text();
        if let Some(skill) = self.get(name, mode) {
            return Ok(Some(WantedSkill::Ours(skill)));
        }
        let is_its =
            mode == Mode::ClaudeCodeCli && (name.contains(':') || WITH_CLAUDE.contains(&name));
        match asked {
            _ if is_its => Ok(Some(WantedSkill::Its(name))),
            SkillRequest::Words(_) => Ok(None),
            SkillRequest::Name(name) => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: &str) -> Missing {
        let lost = |broken: &&super::shelf::BrokenSkill| broken.is_lost && broken.dir_name == name;
        let broken = self.faults.iter().find(lost);
        let known = self.skills.iter().map(|skill| skill.name.as_str());
        Missing {
            name: name.to_owned(),
            nearest: nearest(name, known).map(str::to_owned),
            broken: broken.map(|broken| format!("{}: {}", broken.dir, broken.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Folder;
    use super::*;

    fn found(owner: Owner, folder: Folder, name: &str) -> FoundSkill {
        let text = format!("---\nname: {name}\ndescription: d\n---\nbody of {folder:?}\n");
        let dir = format!("{}/{name}", folder.path());
        FoundSkill {
            owner,
            folder: Some(folder),
            dir_name: name.into(),
            dir,
            text: Ok(text.into_bytes()),
        }
    }

    fn shelf() -> Shelf {
        let mut list = vec![
            found(Owner::User, Folder::Agents, "tdd"),
            found(Owner::Repository, Folder::Claude, "tdd"),
            found(Owner::Repository, Folder::Claude, "code-review"),
            found(Owner::User, Folder::Codex, "changelog"),
        ];
        list.push(FoundSkill {
            text: Err("gone".into()),
            ..found(Owner::User, Folder::Codex, "bad")
        });
        Shelf::new(&list, Vec::new())
    }

    #[test]
    fn each_agent_gets_the_one_it_finds_itself_or_else_the_repositorys() {
        let shelf = shelf();
        let folder = |mode| shelf.get("tdd", mode).and_then(|skill| skill.folder);
        assert_eq!(folder(Mode::ClaudeCodeCli), Some(Folder::Claude));
        assert_eq!(folder(Mode::CodexCli), Some(Folder::Agents));
        assert_eq!(folder(Mode::Command), Some(Folder::Claude));
        assert_eq!(shelf.get("TDD", Mode::CodexCli).and_then(|s| s.folder), Some(Folder::Agents));
    }

    fn shipped(name: &str) -> FoundSkill {
        FoundSkill { folder: None, ..found(Owner::Shipped, Folder::Agents, name) }
    }

    #[test]
    fn a_shipped_skill_stands_in_only_where_nobody_has_one_of_its_name() {
        let owners = |theirs: &[FoundSkill], name: &str| -> Vec<Owner> {
            // The order in which they are found does not matter.
            let mut list = vec![shipped("reviewer"), shipped("tester")];
            list.extend(theirs.iter().cloned());
            let shelf = Shelf::new(&list, Vec::new());
            shelf.skills.iter().filter(|skill| skill.name == name).map(|s| s.owner).collect()
        };
        assert_eq!(owners(&[], "reviewer"), [Owner::Shipped]);
        for owner in [Owner::Repository, Owner::User] {
            let theirs = [found(owner, Folder::Codex, "reviewer")];
            assert_eq!(owners(&theirs, "reviewer"), [owner]);
            assert_eq!(owners(&theirs, "tester"), [Owner::Shipped]);
            assert_eq!(owners(&[found(owner, Folder::Claude, "Reviewer")], "reviewer"), []);
        }
        let broken = FoundSkill {
            text: Err("gone".into()),
            ..found(Owner::User, Folder::Codex, "reviewer")
        };
        let shelf = Shelf::new(&[shipped("reviewer"), broken], Vec::new());
        let asked = [SkillRequest::Name("reviewer".into())];
        let missing = shelf.wanted(&asked, Mode::CodexCli).unwrap_err();
        assert!(missing[0].to_string().contains("can't be used"), "{missing:?}");
    }

    #[test]
    fn no_agent_finds_a_shipped_skill_by_itself() {
        let shelf = Shelf::new(&[shipped("tester")], Vec::new());
        for mode in [Mode::ClaudeCodeCli, Mode::CodexCli, Mode::Acp, Mode::Command] {
            assert!(!shelf.get("tester", mode).unwrap().is_native(mode));
        }
        assert_eq!(shelf.in_folders().count(), 0);
    }

    #[test]
    fn what_is_missing_is_named_with_the_nearest_name() {
        let shelf = shelf();
        let name = |name: &str| SkillRequest::Name(name.to_owned());
        let asked = [name("changelgo"), name("bad"), name("tdd"), name("zzz")];
        let missing = shelf.wanted(&asked, Mode::CodexCli).unwrap_err();
        let said: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "there is no skill `changelgo`; did you mean `changelog`?",
                "the skill `bad` can't be used: .codex/skills/bad: gone",
                "there is no skill `zzz`",
            ]
        );
    }

    #[test]
    fn several_words_are_a_name_only_if_there_is_one() {
        let shelf = shelf();
        let asked =
            [SkillRequest::Words("code-review".into()), SkillRequest::Words("fishing-rod".into())];
        let names: Vec<&str> = match shelf.wanted(&asked, Mode::Script) {
            Ok(ref wanted) => wanted.iter().map(WantedSkill::name).map(|_| "code-review").collect(),
            Err(_) => Vec::new(),
        };
        assert_eq!(names, ["code-review"]);
    }

    #[test]
    fn only_the_agent_knows_its_own_and_its_plugins() {
        let shelf = Shelf::default();
        let asked = [SkillRequest::Name("plugin:x".into()), SkillRequest::Name("simplify".into())];
        assert_eq!(shelf.wanted(&asked, Mode::ClaudeCodeCli).unwrap().len(), 2);
        assert_eq!(shelf.wanted(&asked, Mode::CodexCli).unwrap_err().len(), 2);
    }
}

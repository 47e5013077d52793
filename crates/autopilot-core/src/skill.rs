//! Skills: instructions in their own folder (`<folder>/<name>/SKILL.md`) that an agent follows when
//! a task asks for them. Skills are read here, looked up in a [`Shelf`], put into prompts, and
//! compared afterwards with those that the agent says it used.

mod ask;
mod give;
mod shelf;
mod used;

use crate::config::Mode;
use crate::config::yaml::{self, Value, YamlNode};
use crate::rows::rows;
use serde::{Deserialize, Serialize};

pub use ask::{SkillRequest, asked, is_name};
pub use give::{give, listed, offered};
pub use shelf::{BrokenSkill, Missing, Shelf, WantedSkill};
pub use used::{ClaimedUse, DEEDS_MAX, Deeds, Gain, Shows, Subagent, Terms, Used, is_same_name};

/// The largest file that is read as a skill.
pub const SKILL_BYTES_MAX: usize = 256 * 1024;
/// The longest name of a skill.
pub const SKILL_NAME_BYTES_MAX: usize = 64;
/// The longest description; the rest is cut.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;
/// The number of skills of one folder that are read.
pub const SKILLS_MAX: usize = 500;
/// The name of the file that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";

rows! {
/// The folders in which skills are looked for, with their paths in a repository and in a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Folder -> &'static str {
    Claude: ".claude/skills",
    Codex: ".codex/skills",
    Agents: ".agents/skills",
}}

impl Folder {
    /// The folder's path in a repository or a home.
    pub fn path(self) -> &'static str {
        self.row()
    }

    /// Whether an agent of this mode reads the folder by itself. Other agents are given the text.
    pub fn is_read_by(self, mode: Mode) -> bool {
        match mode {
            Mode::ClaudeCodeCli => self == Folder::Claude,
            Mode::CodexCli => self != Folder::Claude,
            Mode::Acp | Mode::Command | Mode::OpenaiApi | Mode::Script => false,
        }
    }
}

/// The origin of a skill. The repository's skills come before the user's; a shipped one is used
/// only if neither has a skill of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    Repository,
    User,
    Shipped,
}

/// A skill that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// The description, on one line.
    pub description: String,
    pub owner: Owner,
    /// The folder in which the skill lies; a shipped skill lies in none, and no agent finds it.
    pub folder: Option<Folder>,
    /// The directory as an agent finds it: from the top of the repository, or absolute.
    pub dir: String,
    /// The file without its front matter.
    pub body: String,
    /// Whether the front matter has a description and the name of the directory: agents list no
    /// other skills.
    pub is_complete: bool,
    /// The permitted uses of the skill.
    pub may: May,
}

/// The uses that the front matter of a skill permits, in the words of Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct May {
    /// Whether the model may call the skill: not `disable-model-invocation`.
    pub model_calls: bool,
    /// Whether a person may call the skill: not `user-invocable: false`.
    pub person_calls: bool,
    /// Whether the skill runs in the same conversation: not `context: fork`.
    pub stays: bool,
}

impl Skill {
    /// Whether an agent of this mode finds the skill without our help.
    pub fn is_native(&self, mode: Mode) -> bool {
        self.is_complete && self.folder.is_some_and(|folder| folder.is_read_by(mode))
    }

    /// The path of the skill's file.
    pub fn file(&self) -> String {
        format!("{}/{SKILL_FILE}", self.dir)
    }
}

/// A skill's file that was found and not parsed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSkill {
    pub owner: Owner,
    pub folder: Option<Folder>,
    /// The name of the skill's directory.
    pub dir_name: String,
    /// The directory as an agent finds it.
    pub dir: String,
    /// The content of the file, or the reason why it could not be read.
    pub text: Result<Vec<u8>, String>,
}

/// Parses one file. Returns `None` for a skill that can't be used, and all remarks on the file.
pub fn parse(found: &FoundSkill) -> (Option<Skill>, Vec<String>) {
    match read(found) {
        Ok((skill, faults)) => (Some(skill), faults),
        Err(fault) => (None, vec![fault]),
    }
}

fn read(found: &FoundSkill) -> Result<(Skill, Vec<String>), String> {
    let bytes = found.text.as_ref().map_err(Clone::clone)?;
    if bytes.len() > SKILL_BYTES_MAX {
        return Err(format!("the file has more than {SKILL_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (front, body) = split(&text)?;
    if body.trim().is_empty() {
        return Err("the file has no text after its front matter".to_owned());
    }
    let (keys, mut faults) = keys(front);
    let key = |name: &str| keys.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let given = key("name").filter(|name| !name.is_empty());
    let name = given.unwrap_or(&found.dir_name).clone();
    if !is_name(&name) {
        let shown: String = name.chars().take(SKILL_NAME_BYTES_MAX).collect();
        return Err(format!(
            "`{}` is not a valid skill name; use at most {SKILL_NAME_BYTES_MAX} letters, digits, \
             `.`, `_` and `-`",
            shown.escape_debug()
        ));
    }
    if name != found.dir_name {
        faults.push(format!(
            "the front matter names it `{name}`, but its directory is `{}`",
            found.dir_name
        ));
    }
    let described = key("description").filter(|words| !words.is_empty());
    if given.is_none() || described.is_none() {
        faults.push(
            "the front matter lacks the name or the description, which agents need to list it"
                .to_owned(),
        );
    }
    let description = described.cloned().unwrap_or_else(|| first_words(body));
    let says = |name: &str, value: &str| key(name).is_some_and(|v| v.eq_ignore_ascii_case(value));
    let skill = Skill {
        is_complete: given.is_some() && described.is_some() && name == found.dir_name,
        name,
        description: clipped(&description),
        owner: found.owner,
        folder: found.folder,
        dir: found.dir.clone(),
        body: body.trim_start_matches('\n').to_owned(),
        may: May {
            model_calls: !says("disable-model-invocation", "true"),
            person_calls: !says("user-invocable", "false"),
            stays: !says("context", "fork"),
        },
    };
    Ok((skill, faults))
}

/// Splits a text into its front matter and the rest.
fn split(text: &str) -> Result<(&str, &str), String> {
    let Some(rest) = text.strip_prefix("---\n") else { return Ok(("", text)) };
    let mut from = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Ok((&rest[..from], &rest[from + line.len()..]));
        }
        from += line.len();
    }
    Err("the front matter is not closed by a line `---`".to_owned())
}

/// The scalars of the front matter. Invalid YAML is read line by line, as agents do: a colon inside
/// a description is the usual reason.
fn keys(front: &str) -> (Vec<(String, String)>, Vec<String>) {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match yaml::parse(front) {
        Ok(None) => (Vec::new(), Vec::new()),
        Ok(Some(YamlNode { value: Value::Mapping(entries), .. })) => {
            let scalar = |node: &YamlNode| match &node.value {
                Value::Scalar { text, .. } => one_line(text),
                Value::Sequence(_) | Value::Mapping(_) => String::new(),
            };
            let keys = entries.iter().map(|entry| (entry.key.clone(), scalar(&entry.node)));
            (keys.collect(), Vec::new())
        }
        Ok(Some(_)) => (Vec::new(), vec!["the front matter has no `key: value` lines".to_owned()]),
        Err(faults) => {
            let keys = front.lines().filter(|line| !line.starts_with([' ', '\t', '#', '-']));
            let keys = keys.filter_map(|line| line.split_once(':'));
            let plain = |value: &str| one_line(value.trim().trim_matches(['"', '\'']));
            let keys = keys.map(|(key, value)| (key.trim().to_owned(), plain(value))).collect();
            let why = faults.first().map(ToString::to_string).unwrap_or_default();
            (
                keys,
                vec![format!(
                    "the front matter is not valid YAML ({why}); it was read line by line"
                )],
            )
        }
    }
}

fn first_words(body: &str) -> String {
    let mut lines = body.lines().map(|line| line.trim_matches(['#', ' ', '\t']));
    lines.find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

fn clipped(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = clean.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    clean[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in(dir: &str, text: &str) -> (Option<Skill>, Vec<String>) {
        parse(&FoundSkill {
            owner: Owner::Repository,
            folder: Some(Folder::Claude),
            dir_name: dir.to_owned(),
            dir: format!(".claude/skills/{dir}"),
            text: Ok(text.as_bytes().to_vec()),
        })
    }

    #[test]
    fn a_skill_has_a_name_a_description_and_a_body() {
        let text = "---\nname: pdf-forms\ndescription: >\n  Fills forms.\n  Use it for PDF.\nallowed-tools: [Read]\n---\n\n# Forms\nDo it.\n";
        let (skill, faults) = read_in("pdf-forms", text);
        let skill = skill.unwrap();
        assert_eq!(
            (skill.name.as_str(), skill.dir.as_str()),
            ("pdf-forms", ".claude/skills/pdf-forms")
        );
        assert_eq!(skill.description, "Fills forms. Use it for PDF.");
        assert_eq!(skill.body, "# Forms\nDo it.\n");
        assert!(skill.is_complete && faults.is_empty(), "{faults:?}");
        assert!(skill.is_native(Mode::ClaudeCodeCli) && !skill.is_native(Mode::CodexCli));
    }

    #[test]
    fn what_is_odd_is_told_and_what_can_be_used_is_used() {
        let (skill, faults) = read_in("plain", "# Do it\n\nThus.\n");
        let skill = skill.unwrap();
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("plain", "Do it"));
        assert!(!skill.is_complete && faults.len() == 1, "{faults:?}");
        let (skill, faults) = read_in("a", "---\nname: b\ndescription: d\n---\nx");
        assert!(!skill.unwrap().is_complete);
        assert_eq!(faults, ["the front matter names it `b`, but its directory is `a`"]);
        let (skill, faults) =
            read_in("c", "---\nname: c\ndescription: Use when: always: d\n---\nx");
        assert_eq!(skill.unwrap().description, "Use when: always: d");
        assert!(faults[0].contains("line by line"), "{faults:?}");
    }

    #[test]
    fn what_can_not_be_used_says_why() {
        let large = format!("x{}", " ".repeat(SKILL_BYTES_MAX));
        for (text, why) in [
            ("---\nname: x\n", "not closed"),
            ("---\nname: x\ndescription: y\n---\n \n", "has no text after its front matter"),
            ("---\nname: a b\ndescription: y\n---\nz", "is not a valid skill name"),
            (large.as_str(), "more than 262144 bytes"),
        ] {
            let (skill, faults) = read_in("x", text);
            assert!(skill.is_none() && faults.len() == 1 && faults[0].contains(why), "{faults:?}");
        }
        let name = format!("---\nname: {}\ndescription: y\n---\nz", "n".repeat(65));
        assert!(read_in("x", &name).0.is_none());
        let long = format!("---\nname: x\ndescription: {}\n---\nz", "é".repeat(2000));
        assert_eq!(read_in("x", &long).0.unwrap().description.len(), DESCRIPTION_BYTES_MAX);
    }

    #[test]
    fn the_front_matter_says_who_may_call_it() {
        let text = "---\nname: x\ndescription: y\ndisable-model-invocation: true\ncontext: fork\nuser-invocable: false\n---\nz";
        let may = read_in("x", text).0.unwrap().may;
        assert_eq!(may, May { model_calls: false, person_calls: false, stays: false });
    }
}

//! Skills: instructions in a folder of their own (`<folder>/<name>/SKILL.md`) that an agent follows
//! when a task asks for them. Read here, looked up in a [`Shelf`], put into prompts, and compared
//! afterwards with what the agent says it used.

mod ask;
mod give;
mod shelf;
mod used;

use crate::config::Mode;
use crate::config::yaml::{self, Node, Value};
use serde::{Deserialize, Serialize};

pub use ask::{Asked, asked, is_name};
pub use give::{give, listed, offered};
pub use shelf::{Broken, Missing, Shelf, Wanted};
pub use used::{DEEDS_MAX, Deeds, Gain, Said, Shows, Subagent, Terms, Used, is_same_name};

/// A file with more bytes is no instruction anybody follows.
pub const SKILL_BYTES_MAX: usize = 256 * 1024;
pub const SKILL_NAME_BYTES_MAX: usize = 64;
/// Longer descriptions are cut.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;
/// Skills of one folder that are looked at.
pub const SKILLS_MAX: usize = 500;
pub const SKILL_FILE: &str = "SKILL.md";

/// Where skills are looked for, in a repository and in a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Folder {
    Claude,
    Codex,
    Agents,
}

impl Folder {
    pub const ALL: [Folder; 3] = [Folder::Claude, Folder::Codex, Folder::Agents];

    pub fn path(self) -> &'static str {
        match self {
            Folder::Claude => ".claude/skills",
            Folder::Codex => ".codex/skills",
            Folder::Agents => ".agents/skills",
        }
    }

    /// Whether an agent of this mode looks here by itself. Everybody else is given the text.
    pub fn is_read_by(self, mode: Mode) -> bool {
        match mode {
            Mode::ClaudeCodeCli => self == Folder::Claude,
            Mode::CodexCli => self != Folder::Claude,
            Mode::Acp | Mode::Command | Mode::OpenaiApi | Mode::Script => false,
        }
    }
}

/// What is in the repository goes before what is in a person's home; what comes with us stands in
/// where neither has a skill of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    Repository,
    User,
    Shipped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// On one line.
    pub description: String,
    pub owner: Owner,
    /// A shipped one lies in none, and no agent finds it.
    pub folder: Option<Folder>,
    /// The directory as an agent finds it: from the top of the repository, or absolute.
    pub dir: String,
    /// The file without its front matter.
    pub body: String,
    /// Named in its front matter as its directory is, and described: agents list no other.
    pub is_complete: bool,
    pub may: May,
}

/// What the front matter lets others do with it, in the first vendor's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct May {
    /// Not `disable-model-invocation`.
    pub model_calls: bool,
    /// Not `user-invocable: false`.
    pub person_calls: bool,
    /// Not `context: fork`.
    pub stays: bool,
}

impl Skill {
    /// Whether an agent of this mode has it without our help.
    pub fn is_native(&self, mode: Mode) -> bool {
        self.is_complete && self.folder.is_some_and(|folder| folder.is_read_by(mode))
    }

    pub fn file(&self) -> String {
        format!("{}/{SKILL_FILE}", self.dir)
    }
}

/// A file that was found, before anything is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub owner: Owner,
    pub folder: Option<Folder>,
    /// Name of its directory.
    pub dir_name: String,
    pub dir: String,
    /// What it holds, or why it could not be read.
    pub text: Result<Vec<u8>, String>,
}

/// Reads one file. A skill that can't be used is none; every oddity is told.
pub fn parse(found: &Found) -> (Option<Skill>, Vec<String>) {
    match read(found) {
        Ok((skill, faults)) => (Some(skill), faults),
        Err(fault) => (None, vec![fault]),
    }
}

fn read(found: &Found) -> Result<(Skill, Vec<String>), String> {
    let bytes = found.text.as_ref().map_err(Clone::clone)?;
    if bytes.len() > SKILL_BYTES_MAX {
        return Err(format!("it has more than {SKILL_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (front, body) = split(&text)?;
    if body.trim().is_empty() {
        return Err("it says nothing below its front matter".to_owned());
    }
    let (keys, mut faults) = keys(front);
    let key = |name: &str| keys.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let given = key("name").filter(|name| !name.is_empty());
    let name = given.unwrap_or(&found.dir_name).clone();
    if !is_name(&name) {
        let shown: String = name.chars().take(SKILL_NAME_BYTES_MAX).collect();
        return Err(format!(
            "`{}` is no name of a skill; write at most {SKILL_NAME_BYTES_MAX} letters, digits, \
             `.`, `_` and `-`",
            shown.escape_debug()
        ));
    }
    if name != found.dir_name {
        faults.push(format!("it calls itself `{name}` and its directory `{}`", found.dir_name));
    }
    let described = key("description").filter(|words| !words.is_empty());
    if given.is_none() || described.is_none() {
        faults.push("its front matter has no name and description, which agents list".to_owned());
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

/// Front matter and the rest.
fn split(text: &str) -> Result<(&str, &str), String> {
    let Some(rest) = text.strip_prefix("---\n") else { return Ok(("", text)) };
    let mut from = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Ok((&rest[..from], &rest[from + line.len()..]));
        }
        from += line.len();
    }
    Err("its front matter is not closed by a line `---`".to_owned())
}

/// Scalars of the front matter. What is no YAML is read line by line, as agents do: a colon inside
/// a description is the usual reason.
fn keys(front: &str) -> (Vec<(String, String)>, Vec<String>) {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match yaml::parse(front) {
        Ok(None) => (Vec::new(), Vec::new()),
        Ok(Some(Node { value: Value::Mapping(entries), .. })) => {
            let scalar = |node: &Node| match &node.value {
                Value::Scalar { text, .. } => one_line(text),
                Value::Sequence(_) | Value::Mapping(_) => String::new(),
            };
            let keys = entries.iter().map(|entry| (entry.key.clone(), scalar(&entry.node)));
            (keys.collect(), Vec::new())
        }
        Ok(Some(_)) => (Vec::new(), vec!["its front matter has no `key: value` lines".to_owned()]),
        Err(faults) => {
            let keys = front.lines().filter(|line| !line.starts_with([' ', '\t', '#', '-']));
            let keys = keys.filter_map(|line| line.split_once(':'));
            let plain = |value: &str| one_line(value.trim().trim_matches(['"', '\'']));
            let keys = keys.map(|(key, value)| (key.trim().to_owned(), plain(value))).collect();
            let why = faults.first().map(ToString::to_string).unwrap_or_default();
            (keys, vec![format!("its front matter is no YAML ({why}); it was read line by line")])
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
        parse(&Found {
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
        assert_eq!(faults, ["it calls itself `b` and its directory `a`"]);
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
            ("---\nname: x\ndescription: y\n---\n \n", "says nothing"),
            ("---\nname: a b\ndescription: y\n---\nz", "is no name"),
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

//! Puts skills into a prompt: those that a task asks for, in the form that the agent really
//! follows, and a list of those to choose from.

use super::{Owner, Shelf, Skill, WantedSkill};
use crate::config::Mode;
use crate::prompt::{Caps, cut, fenced};

/// The number of skills listed in one prompt.
pub const LISTED_MAX: usize = 60;
/// The longest line of that list.
const LINE_BYTES_MAX: usize = 240;

/// The commands of Claude Code that win over a skill of the same name.
const ITS_COMMANDS: &[&str] = &[
    "add-dir",
    "agents",
    "bug",
    "clear",
    "compact",
    "config",
    "context",
    "cost",
    "doctor",
    "exit",
    "export",
    "feedback",
    "help",
    "hooks",
    "ide",
    "init",
    "insights",
    "login",
    "logout",
    "mcp",
    "memory",
    "model",
    "permissions",
    "plan",
    "plugin",
    "pr-comments",
    "release-notes",
    "resume",
    "review",
    "rewind",
    "sandbox",
    "security-review",
    "status",
    "statusline",
    "tasks",
    "terminal-setup",
    "todos",
    "upgrade",
    "usage",
    "vim",
];

/// Returns the prompt with the wanted skills in front of it.
pub fn give(prompt: String, wanted: &[WantedSkill<'_>], mode: Mode, caps: Caps) -> String {
    let (mut start, mut called, mut dollar, mut shown) = (None, Vec::new(), Vec::new(), Vec::new());
    for wanted in wanted {
        match wanted {
            WantedSkill::Its(name) => called.push(*name),
            WantedSkill::Ours(skill) if !skill.is_native(mode) => shown.push(*skill),
            WantedSkill::Ours(skill) => match mode {
                Mode::CodexCli => dollar.push(skill.name.as_str()),
                Mode::ClaudeCodeCli if start.is_none() && can_start(skill) => {
                    start = Some(skill.name.as_str());
                }
                Mode::ClaudeCodeCli if skill.may.model_calls => called.push(&skill.name),
                Mode::ClaudeCodeCli
                | Mode::Acp
                | Mode::Command
                | Mode::OpenaiApi
                | Mode::Script => {
                    shown.push(*skill);
                }
            },
        }
    }
    let mut head = String::new();
    // Claude Code expands only the first word of a prompt, and only if a space follows it.
    head.extend(start.map(|name| format!("/{name} ")));
    if !called.is_empty() {
        let names: Vec<String> = called.iter().map(|name| format!("`{name}`")).collect();
        head.push_str(&format!(
            "Before anything else, call the Skill tool once for each of these names, exactly as \
             written, and follow what it says: {}.\n\n",
            names.join(", ")
        ));
    }
    if !dollar.is_empty() {
        let names: Vec<String> = dollar.iter().map(|name| format!("${name}")).collect();
        head.push_str(&format!("Use these skills for the work below: {}\n\n", names.join(" ")));
    }
    for skill in shown {
        head.push_str(&in_full(skill, caps));
    }
    head + &prompt
}

/// Whether `/name` at the start of a prompt calls the skill as intended: the rest of the prompt
/// follows as its arguments, which must not end up inside the skill's text or in a command.
fn can_start(skill: &Skill) -> bool {
    let takes_arguments = skill.body.contains("$ARGUMENTS")
        || skill.body.contains("!`")
        || skill.body.as_bytes().windows(2).any(|two| two[0] == b'$' && two[1].is_ascii_digit());
    let is_its = ITS_COMMANDS.contains(&skill.name.as_str());
    skill.may.person_calls && skill.may.stays && !takes_arguments && !is_its
}

fn in_full(skill: &Skill, caps: Caps) -> String {
    let place = match skill.owner {
        Owner::Repository | Owner::User => {
            let dir = skill.dir.replace('`', "'");
            format!(" Its files are in `{dir}`; relative paths in it start there.")
        }
        Owner::Shipped => " This is the whole skill; there is no file to read.".to_owned(),
    };
    format!(
        "## Skill `{}`\n\nYou are asked to follow this skill in the work below.{place}\n\n{}\n",
        skill.name,
        fenced("markdown", &cut(&skill.body, caps.prompt_bytes_max))
    )
}

/// Lists the skills that an agent may choose from as `name — description`. Shipped skills are left
/// out: no agent could read them, so only a prompt can give them.
pub fn listed(shelf: &Shelf, mode: Mode) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for skill in shelf.in_folders() {
        let is_theirs = mode == Mode::ClaudeCodeCli && !skill.may.model_calls;
        if names.contains(&skill.name.as_str()) || is_theirs {
            continue;
        }
        names.push(&skill.name);
        let Some(best) = shelf.get(&skill.name, mode) else { continue };
        let mut line = line(best);
        if !best.is_native(mode) {
            line.push_str(&format!(" (read `{}`)", best.file().replace('`', "'")));
        }
        lines.push(line);
    }
    shortened(lines)
}

/// Lists all skills for an agent that hands out work and names the skill for each part. Shipped
/// skills come first, since the agent could not know of them otherwise.
pub fn offered(shelf: &Shelf) -> Vec<String> {
    let is_shipped = |skill: &&Skill| skill.owner == Owner::Shipped;
    let theirs = shelf.skills.iter().filter(|skill| !is_shipped(skill));
    let mut names: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for skill in shelf.skills.iter().filter(is_shipped).chain(theirs) {
        if !names.contains(&skill.name.as_str()) {
            names.push(&skill.name);
            lines.push(line(skill));
        }
    }
    shortened(lines)
}

fn line(skill: &Skill) -> String {
    let mut line = format!("`{}` — {}", skill.name, skill.description.replace('`', "'"));
    line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
    line
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LISTED_MAX);
    lines.truncate(LISTED_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{Folder, FoundSkill, SkillRequest};
    use super::*;

    const CAPS: Caps = Caps { prompt_bytes_max: 2000, tail_lines_max: 10 };

    fn found(folder: Folder, name: &str, more: &str, body: &str) -> FoundSkill {
        let text = format!("---\nname: {name}\ndescription: does {name}\n{more}---\n{body}\n");
        let dir = format!("{}/{name}", folder.path());
        let text = Ok(text.into_bytes());
        let folder = Some(folder);
        FoundSkill { owner: Owner::Repository, folder, dir_name: name.into(), dir, text }
    }

    fn given(list: &[FoundSkill], mode: Mode) -> String {
        let shelf = Shelf::new(list, Vec::new());
        let asked: Vec<SkillRequest> =
            list.iter().map(|found| SkillRequest::Name(found.dir_name.clone())).collect();
        give("Do it.\n".to_owned(), &shelf.wanted(&asked, mode).unwrap(), mode, CAPS)
    }

    #[test]
    fn each_kind_of_agent_is_told_as_it_understands() {
        let claude = [found(Folder::Claude, "tdd", "", "Tests first.")];
        assert_eq!(given(&claude, Mode::ClaudeCodeCli), "/tdd Do it.\n");
        let shown = "## Skill `tdd`\n\nYou are asked to follow this skill in the work below. Its \
                     files are in `.claude/skills/tdd`; relative paths in it start there.\n\n\
                     ```markdown\nTests first.\n```\n\nDo it.\n";
        for mode in [Mode::CodexCli, Mode::Acp, Mode::Command, Mode::OpenaiApi, Mode::Script] {
            assert_eq!(given(&claude, mode), shown);
        }
        for folder in [Folder::Codex, Folder::Agents] {
            let codex = [found(folder, "tdd", "", "x"), found(folder, "two", "", "x")];
            let said = "Use these skills for the work below: $tdd $two\n\nDo it.\n";
            assert_eq!(given(&codex, Mode::CodexCli), said);
            assert!(given(&codex, Mode::ClaudeCodeCli).starts_with("## Skill `tdd`"));
        }
    }

    #[test]
    fn a_shipped_skill_is_given_as_text_to_everybody_and_listed_to_nobody() {
        let mut tester = found(Folder::Claude, "tester", "", "Test it.");
        (tester.owner, tester.folder, tester.dir) = (Owner::Shipped, None, String::new());
        let shown = "## Skill `tester`\n\nYou are asked to follow this skill in the work below. \
                     This is the whole skill; there is no file to read.\n\n```markdown\nTest \
                     it.\n```\n\nDo it.\n";
        for mode in [Mode::ClaudeCodeCli, Mode::CodexCli, Mode::Acp, Mode::Script] {
            assert_eq!(given(&[tester.clone()], mode), shown);
            assert!(listed(&Shelf::new(&[tester.clone()], Vec::new()), mode).is_empty());
        }
        let theirs = [found(Folder::Codex, "tdd", "", "x"), found(Folder::Claude, "tdd", "", "x")];
        let mut all = vec![tester];
        all.extend(theirs);
        let lines = offered(&Shelf::new(&all, Vec::new()));
        assert_eq!(lines, ["`tester` — does tester", "`tdd` — does tdd"]);
        all.extend((0..100).map(|n| found(Folder::Codex, &format!("s{n}"), "", "x")));
        let many = offered(&Shelf::new(&all, Vec::new()));
        assert_eq!(many.len(), LISTED_MAX + 1);
        assert_eq!(many[0], "`tester` — does tester");
    }

    #[test]
    fn a_slash_is_used_only_where_it_does_what_is_meant() {
        let called = |name: &str| {
            format!(
                "Before anything else, call the Skill tool once for each of these names, exactly \
                 as written, and follow what it says: `{name}`.\n\nDo it.\n"
            )
        };
        for (name, more, body) in [
            ("review", "", "b"),
            ("args", "", "see $ARGUMENTS"),
            ("first", "", "see $1"),
            ("shell", "", "now: !`date`"),
            ("fork", "context: fork\n", "b"),
            ("quiet", "user-invocable: false\n", "b"),
        ] {
            let list = [found(Folder::Claude, name, more, body)];
            assert_eq!(given(&list, Mode::ClaudeCodeCli), called(name));
        }
        let person = [found(Folder::Claude, "p", "disable-model-invocation: true\n", "b $1")];
        assert!(given(&person, Mode::ClaudeCodeCli).starts_with("## Skill `p`"));
        let two = [found(Folder::Claude, "a", "", "b"), found(Folder::Claude, "c", "", "b")];
        assert_eq!(given(&two, Mode::ClaudeCodeCli), format!("/a {}", called("c")));
    }

    #[test]
    fn a_text_can_not_leave_its_fence_and_is_cut() {
        let list = [found(Folder::Agents, "x", "", &format!("```\nout\n{}", "y".repeat(5000)))];
        let text = given(&list, Mode::Command);
        assert!(text.contains("````markdown\n") && text.len() < 2500, "{text}");
    }

    #[test]
    fn the_list_names_what_there_is_once_and_where_to_read_it() {
        let mut list = vec![
            found(Folder::Claude, "tdd", "", "x"),
            found(Folder::Agents, "tdd", "", "x"),
            found(Folder::Claude, "p", "disable-model-invocation: true\n", "x"),
        ];
        let lines = |list: &[FoundSkill], mode| listed(&Shelf::new(list, Vec::new()), mode);
        assert_eq!(lines(&list, Mode::ClaudeCodeCli), ["`tdd` — does tdd"]);
        assert_eq!(
            lines(&list, Mode::CodexCli),
            ["`p` — does p (read `.claude/skills/p/SKILL.md`)", "`tdd` — does tdd"]
        );
        list.extend((0..100).map(|n| found(Folder::Codex, &format!("s{n}"), "", "x")));
        let many = lines(&list, Mode::Command);
        assert_eq!(many.len(), LISTED_MAX + 1);
        assert_eq!(many.last().map(String::as_str), Some("and 42 more"));
    }
}

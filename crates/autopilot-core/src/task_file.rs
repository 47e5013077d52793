//! Task and plan files: Markdown that a person wrote, read into a [`TaskSpec`].
//!
//! Every fault of a file is found in one pass, with its line and what to write instead. Anything
//! that could be a misspelt guard (`Alowed Paths`) is an error, never a remark.

mod front;
pub mod id;
mod item;
mod lines;
mod markdown;
mod section;
#[cfg(test)]
mod tests;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

pub use crate::config::{ConfigFault, ConfigFaults, TextPlace, Warning};
pub use id::{task_id, unique_ids};
pub(crate) use item::Fence;
pub use markdown::TEMPLATE;

/// The largest file that is read as a task.
pub const TASK_BYTES_MAX: usize = 1024 * 1024;
/// The number of bullets and paragraphs of one file.
pub const ITEMS_MAX: usize = 10_000;
/// The longest title: it becomes a heading, a commit subject and a line of the dashboard.
pub const TITLE_CHARS_MAX: usize = 200;

/// The kinds of files that a person writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Task,
    Plan,
}

/// The specification of a task or plan, as a person wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub id: String,
    pub title: String,
    /// The goal, with one line per bullet or paragraph.
    pub goal: String,
    /// The acceptance criteria.
    pub acceptance: Vec<String>,
    pub constraints: Vec<String>,
    pub allowed_paths: Vec<String>,
    pub deny_paths: Vec<String>,
    pub commands: CommandOverrides,
    /// The scenarios of user acceptance tests.
    pub uat: Vec<String>,
    pub notes: Vec<String>,
    /// The ids of the tasks that must be done before.
    pub depends_on: Vec<String>,
    /// The skills to use, if the front matter names them; the text is then not searched for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The path of the file, as given on the command line.
    pub path: Utf8PathBuf,
}

impl TaskSpec {
    /// All that the task says in sentences, one per line.
    pub fn text(&self) -> String {
        let parts = [&self.acceptance, &self.constraints, &self.uat, &self.notes];
        let lines = parts.into_iter().flatten().map(String::as_str);
        [self.title.as_str(), self.goal.as_str()]
            .into_iter()
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The commands of a task, which override those of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOverrides {
    pub tests: Option<String>,
    pub lint: Option<String>,
    pub format: Option<String>,
    pub uat: Option<String>,
}

/// A file that was read without a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    pub kind: FileKind,
    pub spec: TaskSpec,
    /// The file without its front matter, as a planner reads it.
    pub body: String,
    pub warnings: Vec<Warning>,
}

/// Parses a task or plan file.
pub fn parse(path: &Utf8Path, bytes: &[u8]) -> Result<Parsed, ConfigFaults> {
    let text = lines::text_of(bytes).map_err(ConfigFaults::new)?;
    let (front, body_from) = front::read(&text);
    let mut findings = Findings { faults: front.faults.clone(), warnings: Vec::new() };
    lines::odd_characters(&text, &mut findings.faults);
    let numbered: Vec<(usize, &str)> =
        text.lines().enumerate().map(|(index, line)| (index + 1, line)).skip(body_from).collect();
    let outline = section::outline(&numbered, &mut findings);
    let kind = kind(path, &outline, &mut findings);
    let mut spec = section::spec(&outline, kind, &mut findings);
    spec.id = front.id.unwrap_or_else(|| task_id(path));
    spec.depends_on = front.depends_on;
    spec.skills = front.skills;
    spec.path = path.to_owned();
    if !findings.faults.is_empty() {
        return Err(ConfigFaults::new(findings.faults));
    }
    let body = numbered.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    Ok(Parsed { kind, spec, body, warnings: findings.warnings })
}

#[derive(Default)]
struct Findings {
    faults: Vec<ConfigFault>,
    warnings: Vec<Warning>,
}

impl Findings {
    fn fault(&mut self, line: usize, message: impl Into<String>) {
        self.faults.push(ConfigFault::new(TextPlace::at(line, 1), message.into()));
    }

    fn warn(&mut self, line: usize, message: impl Into<String>) {
        self.warnings.push(Warning::new(TextPlace::at(line, 1), message.into()));
    }
}

/// The kind of a file: a title `# Plan:` or the name plan.md make a plan, a title `# Task:` a task.
fn kind(path: &Utf8Path, outline: &section::Outline, findings: &mut Findings) -> FileKind {
    let named_plan = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("plan.md"));
    match &outline.title {
        _ if named_plan => FileKind::Plan,
        Some(title) if title.kind.is_some() => title.kind.unwrap_or(FileKind::Task),
        Some(title) => {
            findings.fault(
                title.line,
                format!(
                    "the first heading is `# {}`; write `# Task: <title>` for a task or \
                     `# Plan: <title>` for a plan",
                    title.text
                ),
            );
            FileKind::Task
        }
        None => {
            findings.fault(
                1,
                "there is no title; start with `# Task: <title>` for a task or `# Plan: <title>` \
                 for a plan",
            );
            FileKind::Task
        }
    }
}

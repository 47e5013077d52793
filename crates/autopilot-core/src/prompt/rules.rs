//! The rules that a builder's work is judged by, told to the builder and applied to its work from
//! the same facts.

use super::Caps;
use super::part::{bullets, inline};
use crate::config::Config;
use crate::guard::GuardRules;
use crate::task_file::TaskSpec;

/// The rules for the work on one task.
#[derive(Debug, Clone, Default)]
pub struct BuildRules {
    /// The commands that have to pass, with their keys.
    pub commands: Vec<(&'static str, String)>,
    /// The paths that may be changed; empty for all but the denied ones.
    pub allowed_paths: Vec<String>,
    pub deny_paths: Vec<String>,
    /// The number of lines that may be added and removed together.
    pub diff_line_cap: u64,
    /// Whether new TODO and FIXME lines are refused.
    pub forbid_todos: bool,
    /// The text of the task.
    pub task: String,
}

impl BuildRules {
    /// The rules of the configuration and of the task's own file.
    pub fn of(config: &Config, spec: &TaskSpec) -> BuildRules {
        let denied = config.safety.deny_paths.iter().chain(&spec.deny_paths);
        BuildRules {
            commands: config.commands.all(&spec.commands),
            allowed_paths: spec.allowed_paths.clone(),
            deny_paths: denied.cloned().collect(),
            diff_line_cap: config.rounds.diff_line_cap,
            forbid_todos: config.safety.forbid_todos,
            task: spec.text(),
        }
    }

    /// The rules for the guards.
    pub fn guards(&self) -> GuardRules<'_> {
        GuardRules {
            allowed_paths: &self.allowed_paths,
            deny_paths: &self.deny_paths,
            diff_line_cap: self.diff_line_cap,
            forbid_todos: self.forbid_todos,
            task: &self.task,
            task_files: &[],
        }
    }

    /// The rules for the prompt, without a heading.
    pub(crate) fn told(&self, caps: Caps) -> String {
        let mut text = String::new();
        if !self.commands.is_empty() {
            text.push_str(
                "The controller runs these commands itself, in a clean checkout of your work, and \
                 only their exit codes count:\n\n",
            );
            let line = |(name, line): &(&str, String)| format!("{name}: {}", inline(line));
            text.push_str(&bullets(&self.commands.iter().map(line).collect::<Vec<_>>(), caps));
            text.push('\n');
        }
        let paths =
            |paths: &[String]| paths.iter().map(|path| inline(path)).collect::<Vec<_>>().join(", ");
        let mut rules = Vec::new();
        if !self.allowed_paths.is_empty() {
            rules.push(format!("It changes files only under {}.", paths(&self.allowed_paths)));
        }
        if !self.deny_paths.is_empty() {
            rules.push(format!("It changes nothing under {}.", paths(&self.deny_paths)));
        }
        if self.diff_line_cap > 0 {
            let cap = self.diff_line_cap;
            rules.push(format!("It adds and removes at most {cap} lines in all."));
        }
        if self.forbid_todos {
            rules.push("It adds no line with TODO, FIXME or XXX.".to_owned());
        }
        if !rules.is_empty() {
            text.push_str("The change is refused unless it keeps these rules:\n\n");
            text.push_str(&bullets(&rules, caps));
        }
        text
    }
}

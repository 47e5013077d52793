//! The user's commands.

use crate::task_file::CommandOverrides;
use serde::{Deserialize, Serialize};

/// The user's commands, run by a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// The command that runs the tests; empty if there is none.
    pub tests: String,
    pub lint: Option<String>,
    pub format: Option<String>,
    pub uat: Option<String>,
    /// The directory in which executable acceptance tests may be written; `None` forbids them.
    pub uat_dir: Option<String>,
    /// Whether the commands of a gate run side by side.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
}

impl Commands {
    /// Whether there is a test command; without one nothing can be proven.
    pub fn has_tests(&self) -> bool {
        !self.tests.trim().is_empty()
    }

    /// The commands that prove a change, tests first; a task's own come before the configured ones.
    pub fn validation(&self, own: Option<&CommandOverrides>) -> Vec<(&'static str, String)> {
        let own = own.cloned().unwrap_or_default();
        let tests = own.tests.unwrap_or_else(|| self.tests.clone());
        let commands = [
            ("tests", Some(tests).filter(|line| !line.trim().is_empty())),
            ("lint", own.lint.or_else(|| self.lint.clone())),
            ("format", own.format.or_else(|| self.format.clone())),
        ];
        commands.into_iter().filter_map(|(name, line)| Some((name, line?))).collect()
    }

    /// The same with the acceptance command, which runs last.
    pub fn all(&self, own: &CommandOverrides) -> Vec<(&'static str, String)> {
        let uat = own.uat.as_ref().or(self.uat.as_ref());
        let uat = uat.map(|line| ("uat", line.clone()));
        self.validation(Some(own)).into_iter().chain(uat).collect()
    }
}

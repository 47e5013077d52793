//! Writes a task back as Markdown, and holds the template for `init`.

use super::TaskSpec;

/// The template of a task file that `init` writes.
pub const TEMPLATE: &str = "\
# Task: <title>

Goal:
- <what should change>

Acceptance Criteria:
- <something that can be tested>

Constraints:
- Keep changes minimal.
- Do not refactor unrelated code.

Notes:
- Optional sections: Allowed Paths, Validation Commands, User Acceptance Tests.
";

impl TaskSpec {
    /// Writes the task as Markdown that parses to the same task.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# Task: {}\n", self.title);
        // The lines of a block of code must stay together.
        let code = self.goal.contains("```") || self.goal.contains("~~~");
        let goal: Vec<String> = if code {
            vec![self.goal.clone()]
        } else {
            self.goal.lines().map(str::to_owned).collect()
        };
        section(&mut text, "Goal", &goal);
        section(&mut text, "Acceptance Criteria", &self.acceptance);
        section(&mut text, "Constraints", &self.constraints);
        section(&mut text, "Allowed Paths", &self.allowed_paths);
        section(&mut text, "Deny Paths", &self.deny_paths);
        section(&mut text, "Validation Commands", &self.commands());
        section(&mut text, "User Acceptance Tests", &self.uat);
        section(&mut text, "Notes", &self.notes);
        text
    }

    fn commands(&self) -> Vec<String> {
        let of = &self.commands;
        [("tests", &of.tests), ("lint", &of.lint), ("format", &of.format), ("uat", &of.uat)]
            .into_iter()
            .filter_map(|(key, command)| Some(format!("{key}: {}", command.as_ref()?)))
            .collect()
    }
}

fn section(text: &mut String, name: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    text.push_str(&format!("\n{name}:\n"));
    for item in items {
        text.push_str("- ");
        text.push_str(&item.replace('\n', "\n  "));
        text.push('\n');
    }
}

//! One mutant as a file: which text of which source is replaced by what, and why that is a bug.
//!
//! ```text
//! name: a-lost-build-spends-a-round
//! file: crates/autopilot-core/src/decide.rs
//! why: a crash of ours must never cost the task one of its rounds
//! --- find
//! the text, which occurs exactly once in the file
//! --- replace
//! the text that takes its place (may be empty)
//! ```

use std::fs;
use std::path::Path;

use crate::step::{Failure, failed_to};

const FIND: &str = "--- find";
const REPLACE: &str = "--- replace";

#[derive(Debug, PartialEq, Eq)]
pub struct Recipe {
    pub name: String,
    /// Relative to the workspace root.
    pub file: String,
    pub why: String,
    pub find: String,
    pub replace: String,
}

impl Recipe {
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(failed_to(format!("read mutant `{shown}`")))?;
        let recipe = Self::parse(&text).map_err(failed_to(format!("use mutant `{shown}`")))?;
        if path.file_stem().is_some_and(|stem| stem != recipe.name.as_str()) {
            return Err(Failure::Task(format!(
                "mutant `{shown}` is named `{}` inside: use one name",
                recipe.name
            )));
        }
        Ok(recipe)
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let (head, rest) = split_at_line(text, FIND)?;
        let (find, replace) = split_at_line(rest, REPLACE)?;
        let recipe = Self {
            name: field(head, "name")?,
            file: field(head, "file")?,
            why: field(head, "why")?,
            find: without_last_newline(find),
            replace: without_last_newline(replace),
        };
        recipe.checked()
    }

    fn checked(self) -> Result<Self, String> {
        if self.find.trim().is_empty() {
            return Err("the text to find is empty".to_owned());
        }
        if self.find == self.replace {
            return Err("find and replace are the same text".to_owned());
        }
        if self.file.starts_with('/') || self.file.split('/').any(|part| part == "..") {
            return Err(format!("`{}` is not inside the workspace", self.file));
        }
        Ok(self)
    }

    /// `source` with the bug planted.
    pub fn apply(&self, source: &str) -> Result<String, Failure> {
        match source.matches(&self.find).count() {
            1 => Ok(source.replacen(&self.find, &self.replace, 1)),
            count => Err(Failure::Task(format!(
                "mutant `{}`: its text occurs {count} times in `{}`, must be exactly once",
                self.name, self.file
            ))),
        }
    }
}

fn split_at_line<'t>(text: &'t str, marker: &str) -> Result<(&'t str, &'t str), String> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if line.trim_end() == marker {
            return Ok((&text[..start], &text[end..]));
        }
        start = end;
    }
    Err(format!("no line `{marker}`"))
}

fn field(head: &str, name: &str) -> Result<String, String> {
    let prefix = format!("{name}:");
    let value = head.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::trim);
    match value {
        Some(value) if !value.is_empty() => Ok(value.to_owned()),
        Some(_) | None => Err(format!("no `{name}:` line with a value")),
    }
}

fn without_last_newline(text: &str) -> String {
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
name: free-rounds
file: src/a.rs
why: rounds must be counted
--- find
    round += 1;
    keep();
--- replace
    keep();
";

    #[test]
    fn a_recipe_is_read_and_applied() {
        let recipe = Recipe::parse(SAMPLE).unwrap();
        assert_eq!(recipe.name, "free-rounds");
        assert_eq!(recipe.file, "src/a.rs");
        assert_eq!(recipe.why, "rounds must be counted");
        let mutated = recipe.apply("fn f() {\n    round += 1;\n    keep();\n}\n").unwrap();
        assert_eq!(mutated, "fn f() {\n    keep();\n}\n");
    }

    #[test]
    fn an_empty_replacement_deletes() {
        let recipe = Recipe::parse("name: n\nfile: f\nwhy: w\n--- find\nx\n--- replace\n").unwrap();
        assert_eq!(recipe.apply("axb").unwrap(), "ab");
    }

    #[test]
    fn text_that_is_absent_or_ambiguous_names_the_mutant() {
        let recipe = Recipe::parse(SAMPLE).unwrap();
        let absent = recipe.apply("fn f() {}").unwrap_err().to_string();
        assert!(absent.contains("`free-rounds`") && absent.contains("0 times"), "{absent}");
        let twice = "    round += 1;\n    keep();\n".repeat(2);
        let ambiguous = recipe.apply(&twice).unwrap_err().to_string();
        assert!(ambiguous.contains("2 times in `src/a.rs`"), "{ambiguous}");
    }

    #[test]
    fn what_is_wrong_with_a_recipe_is_said() {
        for (damaged, complaint) in [
            (SAMPLE.replace("name: free-rounds\n", ""), "no `name:` line"),
            (SAMPLE.replace("why: rounds must be counted", "why:"), "no `why:` line"),
            (SAMPLE.replace("--- find\n", ""), "no line `--- find`"),
            (SAMPLE.replace("--- replace\n", ""), "no line `--- replace`"),
            (SAMPLE.replace("    round += 1;\n    keep();\n---", "---"), "to find is empty"),
            (SAMPLE.replace("    round += 1;\n", ""), "the same text"),
            (SAMPLE.replace("src/a.rs", "../a.rs"), "not inside the workspace"),
        ] {
            let error = Recipe::parse(&damaged).unwrap_err();
            assert!(error.contains(complaint), "{error} / {complaint}");
        }
    }

    #[test]
    fn the_file_bears_the_name_of_its_mutant() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.mutant");
        fs::write(&path, SAMPLE).unwrap();
        assert!(Recipe::read(&path).unwrap_err().to_string().contains("use one name"));
        let path = dir.path().join("free-rounds.mutant");
        fs::write(&path, SAMPLE).unwrap();
        assert!(Recipe::read(&path).is_ok());
    }
}

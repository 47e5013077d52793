//! Files that a command of a gate names: a change of one also changes the gate.

use super::{Finding, FindingSource, Severity};

/// The finding about a changed file that the command of this name runs. A file that the task itself names,
/// in its text or among its allowed paths, was to be changed.
pub fn command_file(file: &str, command: &str, task: &str, allowed: &[String]) -> Finding {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let is_named = allowed.iter().any(|path| path == file)
        || task.split(|c| !is_part(c)).any(|word| word.trim_end_matches('.') == file);
    let severity = if is_named { Severity::Minor } else { Severity::Major };
    let message = format!("the change edits `{file}`, which the {command} command runs");
    let fix = "leave it as it was, unless the task asks for it";
    Finding::new(FindingSource::TestCode, severity, message, fix).in_file(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_task_names_was_to_be_changed() {
        let severity = |task: &str, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|path| (*path).to_owned()).collect();
            command_file("shop.sh", "uat", task, &allowed).severity
        };
        assert_eq!(severity("Sell more", &["docs/a.md"]), Severity::Major);
        assert_eq!(severity("Sell more", &["shop.sh"]), Severity::Minor);
        assert_eq!(severity("`sh shop.sh help` names every command", &[]), Severity::Minor);
        assert_eq!(severity("Mend shop.sh.", &[]), Severity::Minor);
        assert_eq!(severity("Mend my-shop.sh and shop.sha", &["shop"]), Severity::Major);
    }
}

//! Finds changes to the files that tell a run what to do: a builder that edits a task would choose
//! what its successors are asked for.

use super::{ChangedFile, Finding, FindingSource, GuardRules, Severity};
use crate::instruction::is_instruction;

pub(super) fn check(files: &[ChangedFile], rules: &GuardRules<'_>) -> Vec<Finding> {
    let edited = files.iter().filter_map(|file| edited(file, rules));
    edited.chain(files.iter().filter_map(|file| instructions(file, rules))).collect()
}

/// Reports a change of what agents are told to do in this repository: whoever judges the change reads it
/// as it was, and everybody after it as it is now.
fn instructions(file: &ChangedFile, rules: &GuardRules<'_>) -> Option<Finding> {
    let touched = [Some(file.path.as_str()), file.old_path.as_deref()];
    let path = touched.into_iter().flatten().find(|path| is_instruction(path))?;
    let severity = if is_named(path, rules) { Severity::Minor } else { Severity::Major };
    let message = "instructions or settings that agents read were changed";
    let fix = "undo the change to this file; a task that needs it must name the file";
    Some(Finding::new(FindingSource::Instructions, severity, message, fix).in_file(path))
}

/// Whether the task speaks of a file or lets it be changed by its name.
fn is_named(path: &str, rules: &GuardRules<'_>) -> bool {
    rules.task.contains(path)
        || rules.allowed_paths.iter().any(|allowed| allowed.trim_start_matches("./") == path)
}

fn edited(file: &ChangedFile, rules: &GuardRules<'_>) -> Option<Finding> {
    let touched = [Some(file.path.as_str()), file.old_path.as_deref()];
    let found = |path: &str| Some((path.to_owned(), WorkFile::of(path, rules.task_files)?));
    let (path, work_file) = touched.into_iter().flatten().find_map(found)?;
    let is_named = is_named(&path, rules);
    let (severity, message) = match work_file {
        WorkFile::OfRun if is_named => (Severity::Major, "a task file of this run was changed"),
        WorkFile::OfRun => (Severity::Blocker, "a task file of this run was changed"),
        WorkFile::Beside if is_named => return None,
        WorkFile::Beside => (
            Severity::Major,
            "a file beside the task files was changed, which a later run may read",
        ),
    };
    let fix = "undo the change to this file; a task that needs it must name the file";
    Some(Finding::new(FindingSource::Instructions, severity, message, fix).in_file(&path))
}

enum WorkFile {
    /// A task or plan file that was given to the run.
    OfRun,
    /// A file of the same kind in a directory of such files.
    Beside,
}

impl WorkFile {
    fn of(path: &str, task_files: &[String]) -> Option<WorkFile> {
        let path = path.to_lowercase();
        let known: Vec<String> =
            task_files.iter().map(|file| file.trim_start_matches("./").to_lowercase()).collect();
        if known.contains(&path) {
            return Some(WorkFile::OfRun);
        }
        let place = |path: &str| {
            let (directory, name) = path.rsplit_once('/')?;
            let (_, extension) = name.rsplit_once('.')?;
            Some((directory.to_owned(), extension.to_owned()))
        };
        let own = place(&path)?;
        // Documents have their own directory; a task that lies among them makes none of it tasks.
        let is_shared = own.0.split('/').any(|part| matches!(part, "doc" | "docs"));
        let is_beside = !is_shared && known.iter().any(|file| place(file).as_ref() == Some(&own));
        is_beside.then_some(WorkFile::Beside)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FileMode, FileStatus};
    use super::*;

    #[test]
    fn a_task_file_is_changed_only_where_a_task_names_it() {
        let given = ["tasks/a.md".to_owned(), "./tasks/b.md".to_owned(), "docs/plan.md".to_owned()];
        for (path, task, allowed, severity) in [
            ("tasks/a.md", "Say done", "", Some(Severity::Blocker)),
            ("tasks/b.md", "Say done", "tasks/", Some(Severity::Blocker)),
            ("Tasks/A.md", "Say done", "", Some(Severity::Blocker)),
            ("docs/plan.md", "Say done", "docs/", Some(Severity::Blocker)),
            ("tasks/a.md", "Tick the box in tasks/a.md", "", Some(Severity::Major)),
            ("tasks/a.md", "Say done", "./tasks/a.md", Some(Severity::Major)),
            ("tasks/c.md", "Say done", "", Some(Severity::Major)),
            ("tasks/c.md", "Write tasks/c.md", "", None),
            ("tasks/c.png", "Say done", "", None),
            ("docs/b.md", "Say done", "", None),
            ("a.md", "Say done", "", None),
            ("AGENTS.md", "Say done", "", Some(Severity::Major)),
            ("web/CLAUDE.md", "Say done", "web/", Some(Severity::Major)),
            (".claude/skills/x/SKILL.md", "Say done", "", Some(Severity::Major)),
            ("AGENTS.md", "Explain the tests in AGENTS.md", "", Some(Severity::Minor)),
            ("AGENTS.md", "Say done", "./AGENTS.md", Some(Severity::Minor)),
            ("src/a.rs", "Say done", "", None),
        ] {
            let allowed = [allowed.to_owned()];
            let rules = GuardRules {
                task,
                task_files: &given,
                allowed_paths: &allowed,
                ..GuardRules::default()
            };
            let file = |path: &str, old: Option<&str>| ChangedFile {
                path: path.into(),
                status: FileStatus::Modified,
                old_path: old.map(str::to_owned),
                link_target: None,
                mode: FileMode::Regular,
                binary: false,
            };
            for file in [file(path, None), file("else", Some(path))] {
                let found = check(&[file], &rules).first().map(|found| found.severity);
                assert_eq!(found, severity, "{path}: {task}");
            }
        }
    }
}

//! Reads sections into a [`TaskSpec`].

use super::{FileSection, Name, Outline};
use crate::config::nearest::nearest;
use crate::config::path_fault;
use crate::task_file::item::{TextItem, items};
use crate::task_file::{
    CommandOverrides, FileKind, Findings, ITEMS_MAX, TITLE_CHARS_MAX, TaskSpec,
};

pub(in crate::task_file) fn spec(
    outline: &Outline<'_>,
    kind: FileKind,
    findings: &mut Findings,
) -> TaskSpec {
    let mut spec = TaskSpec { title: title(outline, findings), ..TaskSpec::default() };
    let mut seen: Vec<(Name, usize)> = Vec::new();
    let mut left = ITEMS_MAX;
    for section in &outline.sections {
        let known = seen.iter().find(|(name, _)| *name == section.name && *name != Name::Notes);
        if let Some((_, line)) = known {
            let said = format!("this section already exists (line {line}); both are read");
            findings.warn(section.line, said);
        }
        seen.push((section.name, section.line));
        let items = items(&section.lines);
        if items.len() > left {
            let said = format!("there are more than {ITEMS_MAX} items; split the task");
            findings.fault(section.line, said);
            return spec;
        }
        left -= items.len();
        take(&mut spec, section, items, findings);
    }
    if kind == FileKind::Task {
        required(&spec, &seen, findings);
    }
    spec
}

fn title(outline: &Outline<'_>, findings: &mut Findings) -> String {
    let Some(title) = &outline.title else { return String::new() };
    if title.text.is_empty() {
        findings.fault(title.line, "the title is empty; write it after the colon");
    }
    if title.text.chars().count() > TITLE_CHARS_MAX {
        let said = format!(
            "the title is longer than {TITLE_CHARS_MAX} characters; shorten it and use Goal"
        );
        findings.fault(title.line, said);
    }
    title.text.clone()
}

fn take(
    spec: &mut TaskSpec,
    section: &FileSection<'_>,
    items: Vec<TextItem>,
    findings: &mut Findings,
) {
    match section.name {
        Name::Goal => {
            for item in items {
                if !spec.goal.is_empty() {
                    spec.goal.push('\n');
                }
                spec.goal.push_str(&item.text);
            }
        }
        Name::Acceptance => {
            if !items.iter().any(|item| item.bullet)
                && let Some(first) = items.first()
            {
                findings
                    .fault(first.line, "acceptance criteria must be bullets; start each with `- `");
            }
            spec.acceptance.extend(texts(items));
        }
        Name::Constraints => spec.constraints.extend(texts(items)),
        Name::Allowed => spec.allowed_paths.extend(paths(items, findings)),
        Name::Deny => spec.deny_paths.extend(paths(items, findings)),
        Name::Commands => commands(&mut spec.commands, items, findings),
        Name::Uat => spec.uat.extend(texts(items)),
        Name::Notes => spec.notes.extend(texts(items)),
    }
}

fn texts(items: Vec<TextItem>) -> impl Iterator<Item = String> {
    items.into_iter().map(|item| item.text)
}

fn required(spec: &TaskSpec, seen: &[(Name, usize)], findings: &mut Findings) {
    let line = |name| seen.iter().find(|(seen, _)| *seen == name).map(|(_, line)| *line);
    if spec.goal.is_empty() {
        match line(Name::Goal) {
            Some(line) => findings.fault(line, "Goal is empty; say what should change, as `- …`"),
            None => findings.fault(1, "there is no Goal; add a line `Goal:` and below it `- …`"),
        }
    }
    if spec.acceptance.is_empty() {
        match line(Name::Acceptance) {
            Some(line) => findings.fault(
                line,
                "Acceptance Criteria is empty; add at least one `- …` that can be tested",
            ),
            None => findings.fault(
                1,
                "there are no Acceptance Criteria; add a line `Acceptance Criteria:` and below it \
                 `- …`, at least one that can be tested",
            ),
        }
    }
}

fn paths(items: Vec<TextItem>, findings: &mut Findings) -> Vec<String> {
    let mut paths = Vec::new();
    for item in items {
        let path = unquoted_path(&item.text);
        match path_fault(path) {
            Some(why) => findings.fault(item.line, why),
            None => paths.push(path.to_owned()),
        }
    }
    paths
}

fn commands(commands: &mut CommandOverrides, items: Vec<TextItem>, findings: &mut Findings) {
    const KEYS: &[&str] = &["tests", "lint", "format", "uat"];
    for item in items {
        let Some((key, command)) = item.text.split_once(':') else {
            let said = format!(
                "`{}` is not a command; write `- tests: <command>` (keys: {})",
                item.text.escape_debug(),
                KEYS.join(", ")
            );
            findings.fault(item.line, said);
            continue;
        };
        let key = unquoted(key).to_ascii_lowercase();
        let slot = match key.as_str() {
            "tests" => &mut commands.tests,
            "lint" => &mut commands.lint,
            "format" => &mut commands.format,
            "uat" => &mut commands.uat,
            _ => {
                let hint = match nearest(&key, KEYS.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("known: {}", KEYS.join(", ")),
                };
                let shown = key.escape_debug().to_string();
                findings.fault(item.line, format!("unknown command key `{shown}`; {hint}"));
                continue;
            }
        };
        let command = unquoted(command);
        if command.is_empty() {
            findings.fault(
                item.line,
                format!("the command of `{key}` is empty; write it or remove the line"),
            );
        } else if slot.is_some() {
            findings.fault(item.line, format!("`{key}` is given twice; keep one"));
        } else {
            *slot = Some(command.to_owned());
        }
    }
}

/// Removes the backticks and quotes that people put around paths, one inside the other too.
fn unquoted_path(text: &str) -> &str {
    let mut path = unquoted(text);
    for quote in ['"', '\''] {
        let inner = path.strip_prefix(quote).and_then(|path| path.strip_suffix(quote));
        path = inner.filter(|inner| !inner.contains(quote)).map_or(path, unquoted);
    }
    path
}

/// Removes the backticks that Markdown writers put around code.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
    inner.filter(|inner| !inner.contains('`')).map_or(text, str::trim)
}

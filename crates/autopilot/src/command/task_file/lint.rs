//! `autopilot task lint`: reports all faults of task files at once.

use super::super::done;
use super::{Done, Global, Read, dir, files, read};
use crate::cli::TaskLint;
use crate::exit::{CommandFailure, ExitKind};
use crate::terminal;
use autopilot_core::task_file::{FileKind, Parsed, TEMPLATE, TextPlace};
use autopilot_host::escape::one_line;
use autopilot_view::count;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

const START: TextPlace = TextPlace::at(1, 1);

/// Prints the findings; the exit code says whether there are faults.
pub fn lint(global: &Global, args: &TaskLint) -> Done {
    let files = asked(global, args)?;
    let findings = findings(&files);
    let faults = findings.iter().filter(|finding| finding.weight == LintWeight::Fault).count();
    let warnings = findings.len() - faults;
    if global.json {
        let of = |weight| findings.iter().filter(|f| f.weight == weight).collect::<Vec<_>>();
        terminal::json(&json!({
            "files": files.len(),
            "faults": of(LintWeight::Fault),
            "warnings": of(LintWeight::Warning),
        }));
    } else {
        for finding in &findings {
            terminal::say(&finding.text());
        }
        terminal::say(&format!(
            "{}: {}, {}",
            count(files.len(), "task file"),
            count(faults, "fault"),
            count(warnings, "warning")
        ));
    }
    if faults > 0 { Ok(ExitKind::Failed.into()) } else { done() }
}

/// Why a file is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LintSource {
    Named,
    /// A queue of the directory would take the file.
    Listed,
}

fn asked(
    global: &Global,
    args: &TaskLint,
) -> Result<Vec<(Utf8PathBuf, LintSource)>, CommandFailure> {
    let listed = |dir: &Utf8Path| {
        let found = files(dir)?;
        Ok::<_, CommandFailure>(
            found.into_iter().map(|path| (path, LintSource::Listed)).collect::<Vec<_>>(),
        )
    };
    if args.files.is_empty() {
        return listed(&dir(global, args.dir.as_ref())?);
    }
    let mut all = Vec::new();
    for path in args.files.iter().map(|given| global.path(given)) {
        if path.is_dir() {
            all.extend(listed(&path)?);
        } else if path.symlink_metadata().is_ok() {
            all.push((path, LintSource::Named));
        } else {
            return Err(missing(&path));
        }
    }
    // A file that is named twice is checked once.
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|(path, _)| seen.insert(path.clone()));
    Ok(all)
}

fn missing(path: &Utf8Path) -> CommandFailure {
    let failure = CommandFailure::usage(format!("there is no file `{path}`"));
    let dir = path.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let names: Vec<String> = files(dir)
        .unwrap_or_default()
        .iter()
        .filter_map(|path| path.file_name().map(str::to_owned))
        .collect();
    let given = path.file_name().unwrap_or_default();
    let known = names.iter().map(String::as_str);
    match autopilot_core::config::nearest::nearest(given, known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`autopilot task list` shows the task files"),
    }
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LintWeight {
    Fault,
    Warning,
}

/// A fault or a warning at a place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    #[serde(rename = "file")]
    path: Utf8PathBuf,
    #[serde(flatten)]
    place: TextPlace,
    #[serde(skip)]
    weight: LintWeight,
    message: String,
}

impl LintFinding {
    /// The finding in the form of compilers, so that editors can jump to it.
    pub fn text(&self) -> String {
        let word = match self.weight {
            LintWeight::Fault => "error",
            LintWeight::Warning => "warning",
        };
        let TextPlace { line, column } = self.place;
        let (path, message) = (one_line(self.path.as_str()), one_line(&self.message));
        format!("{path}:{line}:{column}: {word}: {message}")
    }

    /// Whether a run would refuse the file.
    pub fn is_fault(&self) -> bool {
        self.weight == LintWeight::Fault
    }
}

/// The findings in one file by itself.
pub fn findings_in(path: &Utf8Path) -> Vec<LintFinding> {
    findings(&[(path.to_owned(), LintSource::Named)])
}

fn findings(files: &[(Utf8PathBuf, LintSource)]) -> Vec<LintFinding> {
    let mut all = Vec::new();
    let mut known: Vec<(Utf8PathBuf, Parsed)> = Vec::new();
    for (path, source) in files {
        let mut find = |place: TextPlace, weight: LintWeight, message: String| {
            all.push(LintFinding { path: path.clone(), place, weight, message });
        };
        match read(path) {
            Read::Unreadable(why) => find(START, LintWeight::Fault, why),
            Read::Faulty(faults) => {
                for fault in faults.iter() {
                    find(fault.place, LintWeight::Fault, fault.message.clone());
                }
            }
            Read::Parsed(parsed, text) => {
                for warning in &parsed.warnings {
                    find(warning.place, LintWeight::Warning, warning.message.clone());
                }
                for (line, said) in left_over(&text) {
                    find(TextPlace::at(line, 1), LintWeight::Fault, said);
                }
                match parsed.kind {
                    FileKind::Task => known.push((path.clone(), *parsed)),
                    FileKind::Plan if *source == LintSource::Named => {}
                    FileKind::Plan => {
                        let said = "this is a plan; a queue takes task files only: move it out";
                        find(START, LintWeight::Fault, said.to_owned());
                    }
                }
            }
        }
    }
    all.extend(across(&known));
    all.sort_by(|a, b| (&a.path, a.place).cmp(&(&b.path, b.place)));
    all
}

/// Lines of the template that were not filled in.
fn left_over(text: &str) -> Vec<(usize, String)> {
    let blanks: Vec<&str> = TEMPLATE.lines().filter(|line| line.contains('<')).collect();
    let is_blank = |line: &str| blanks.contains(&line.trim_end());
    text.lines()
        .enumerate()
        .filter(|(_, line)| is_blank(line))
        .map(|(index, line)| {
            let said = format!("`{}` is still the template's; write your own", line.trim());
            (index + 1, said)
        })
        .collect()
}

/// The faults between files: equal ids and unknown dependencies.
fn across(known: &[(Utf8PathBuf, Parsed)]) -> Vec<LintFinding> {
    let mut first: BTreeMap<String, &Utf8Path> = BTreeMap::new();
    let mut found = Vec::new();
    for (path, parsed) in known {
        let id = &parsed.spec.id;
        // Branches are named after ids, and some file systems ignore case.
        match first.get(&id.to_lowercase()) {
            None => {
                first.insert(id.to_lowercase(), path);
            }
            Some(other) => found.push(LintFinding {
                path: path.clone(),
                place: START,
                weight: LintWeight::Fault,
                message: format!("the id `{id}` is that of `{other}` too; rename one of them"),
            }),
        }
    }
    for (path, parsed) in known {
        let unknown = |id: &&String| !first.contains_key(&id.to_lowercase());
        for id in parsed.spec.depends_on.iter().filter(unknown) {
            let message = format!("depends_on names `{id}`, which is none of the files looked at");
            let (place, weight) = (START, LintWeight::Warning);
            found.push(LintFinding { path: path.clone(), place, weight, message });
        }
    }
    found
}

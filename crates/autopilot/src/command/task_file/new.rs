//! `autopilot task new`: writes a task file from the template, under an unused name.

use super::super::{done, work};
use super::{Done, Global, TEMPLATE, dir, lint};
use crate::cli::TaskNew;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::task_file::id::{ID_CHARS_MAX, slug};
use autopilot_core::task_file::{self, TASK_BYTES_MAX, TITLE_CHARS_MAX, task_id};
use autopilot_engine::clock::now;
use autopilot_host::{dir as folder, file};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};

/// Names tried before giving up: `fix-login`, `fix-login-2`, …
const NAMES_MAX: u32 = 1_000;
/// The beginning of the template's line for the title.
const HEADING: &str = "# Task:";

/// Writes the file and opens the editor with `--edit`.
pub fn new(global: &Global, args: &TaskNew) -> Done {
    let title = title(&args.title)?;
    let dir = dir(global, args.dir.as_ref())?;
    let template = args.template.as_deref().map(|given| global.path(given));
    let text = text(&dir, template, &title)?;
    let editor = args.edit.then(editor).transpose()?;
    let path = create(&dir, &title, &text)?;
    if let Some(editor) = editor {
        edit(&editor, &path)?;
    }
    if global.json {
        let id = task_id(&path);
        terminal::json(&json!({ "id": id, "title": title, "path": path }));
    } else {
        terminal::say(path.as_str());
        if !args.edit {
            terminal::note(&format!("fill it in, then `autopilot {}`", run_of(global, &path)));
        }
    }
    done()
}

fn title(given: &str) -> Result<String, CommandFailure> {
    let title = given.trim();
    let wrong = if title.is_empty() {
        "the title is empty".to_owned()
    } else if title.chars().count() > TITLE_CHARS_MAX {
        format!("the title is longer than {TITLE_CHARS_MAX} characters")
    } else if title.chars().any(char::is_control) {
        "the title has a line end or another control character in it".to_owned()
    } else {
        return Ok(title.to_owned());
    };
    Err(CommandFailure::usage(wrong).hint("as in `autopilot task new \"Fix the login\"`"))
}

/// The command that runs the file, relative to the same directory.
fn run_of(global: &Global, path: &Utf8Path) -> String {
    if global.repo == "." {
        return format!("run {path}");
    }
    let from_there = path.strip_prefix(&global.repo).map(Utf8Path::to_owned);
    let path = from_there.ok().or_else(|| camino::absolute_utf8(path).ok());
    format!("-C {} run {}", global.repo, path.unwrap_or_default())
}

/// The template with the title; a result that a run would refuse is an error here.
fn text(dir: &Utf8Path, given: Option<Utf8PathBuf>, title: &str) -> Result<String, CommandFailure> {
    let own = dir.join(TEMPLATE);
    let source = given.or_else(|| own.is_file().then_some(own));
    let template = match &source {
        None => task_file::TEMPLATE.to_owned(),
        Some(path) => {
            let bytes = file::read_capped(path.as_std_path(), TASK_BYTES_MAX as u64);
            let bytes = bytes.map_err(|error| {
                CommandFailure::usage(error).hint("name another file with --template")
            })?;
            String::from_utf8(bytes).map_err(|_| {
                CommandFailure::failed(format!("the template `{path}` is not UTF-8"))
            })?
        }
    };
    let named = source.map_or("the template".to_owned(), |path| format!("the template `{path}`"));
    let is_heading = |line: &&str| {
        line.get(..HEADING.len()).is_some_and(|head| head.eq_ignore_ascii_case(HEADING))
    };
    let Some(heading) = template.lines().find(is_heading) else {
        return Err(CommandFailure::failed(format!("{named} has no line `{HEADING} <title>`"))
            .hint("add it, or name another file with --template"));
    };
    let text = template.replacen(heading, &format!("{HEADING} {title}"), 1);
    match task_file::parse(Utf8Path::new("task.md"), text.as_bytes()) {
        Ok(parsed) if parsed.spec.title == title => Ok(text),
        Ok(parsed) => {
            let read = parsed.spec.title;
            Err(CommandFailure::usage(format!("the title would be read as `{read}`"))
                .hint("leave out characters that have a meaning in Markdown"))
        }
        Err(faults) => {
            let faults = faults.to_string().replace('\n', "\n  ");
            Err(CommandFailure::failed(format!("{named} would make a faulty task:\n  {faults}"))
                .hint("correct it, or name another file with --template"))
        }
    }
}

/// Writes the file. The id must be unused, whatever the date in the file name.
fn create(dir: &Utf8Path, title: &str, text: &str) -> Result<Utf8PathBuf, CommandFailure> {
    let failed = |path: &Utf8Path, error: std::io::Error| {
        CommandFailure::failed(error)
            .context(format!("cannot write `{path}`"))
            .hint("name another --dir")
    };
    folder::create(dir.as_std_path()).map_err(|error| failed(dir, error))?;
    let there = dir.read_dir_utf8().map_err(|error| failed(dir, error))?;
    let taken: BTreeSet<String> =
        there.flatten().map(|entry| task_id(entry.path()).to_lowercase()).collect();
    let date: String = now().rfc3339().chars().take(10).collect();
    for number in 1..=NAMES_MAX {
        let id = numbered(&slug(title), number);
        if taken.contains(&id) {
            continue;
        }
        let path = dir.join(format!("{date}_{id}.md"));
        let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        match opened {
            Ok(mut file) => {
                let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
                return written.map(|()| path.clone()).map_err(|error| failed(&path, error));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    Err(CommandFailure::failed(format!("`{dir}` has {NAMES_MAX} tasks of this name"))
        .hint("choose another title"))
}

fn numbered(id: &str, number: u32) -> String {
    if number == 1 {
        return id.to_owned();
    }
    let suffix = format!("-{number}");
    let head: String = id.chars().take(ID_CHARS_MAX - suffix.len()).collect();
    format!("{}{suffix}", head.trim_end_matches('-'))
}

fn editor() -> Result<String, CommandFailure> {
    work::editor().ok_or_else(|| {
        CommandFailure::usage("no editor is set")
            .hint("set EDITOR, as in `EDITOR=nano`, or leave out --edit")
    })
}

fn edit(editor: &str, path: &Utf8Path) -> Result<(), CommandFailure> {
    let failure = match autopilot_host::editor::open(editor, path.as_std_path()) {
        Ok(status) if status.success() => {
            lint::findings_in(path).iter().for_each(|finding| terminal::note(&finding.text()));
            return Ok(());
        }
        Ok(status) => CommandFailure::failed(format!("it ended with {status}")),
        Err(error) => CommandFailure::failed(error),
    };
    Err(failure.context("the editor failed").hint(format!("the task file is there: {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_an_id_within_its_length() {
        assert_eq!(numbered("fix", 1), "fix");
        assert_eq!(numbered("fix", 2), "fix-2");
        let long = numbered(&"x".repeat(ID_CHARS_MAX), 12);
        assert_eq!((long.len(), long.ends_with("x-12")), (ID_CHARS_MAX, true));
    }

    #[test]
    fn the_first_free_name_is_taken_whatever_the_date() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap();
        std::fs::write(dir.join("2020-01-01_fix.md"), "").unwrap();
        let path = create(dir, "Fix", "text").unwrap();
        assert!(path.as_str().ends_with("_fix-2.md"), "{path}");
        assert!(create(dir, "Fix", "text").unwrap().as_str().ends_with("_fix-3.md"));
    }
}

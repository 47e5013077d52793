//! `autopilot report`: writes a page about a whole run.

use super::{Done, answer, done, past};
use crate::cli::{Global, ReportArgs};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::flow::FlowFiles;
use autopilot_core::state::State;
use autopilot_engine::cause::chain;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::report as query;
use autopilot_engine::report;
use autopilot_host::file;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Only the owner may read the page, because it has prompts and answers.
const PRIVATE_MODE: u32 = 0o600;

/// Writes or prints the page.
pub fn report(global: &Global, args: &ReportArgs) -> Done {
    let is_printed = args.out.as_deref().is_some_and(|path| path == "-");
    if is_printed && global.json {
        return Err(CommandFailure::usage(
            "`--out -` prints the page, and `--json` prints an object",
        )
        .hint("leave one of them out; `autopilot show --json` prints the run as data"));
    }
    let archive = past::must(global)?;
    let known = archive.run(args.run.as_deref())?;
    let text = query::page(&archive, &known)?;
    if is_printed {
        terminal::put(&text);
        return done();
    }
    let path = match args.out.as_deref() {
        Some(path) => written(&global.path(path), &text)?,
        None => report::write(&archive.place, &known.state, &text)
            .map_err(|error| CommandFailure::failed(error).hint("name another file with --out"))?,
    };
    let whole = camino::absolute_utf8(&path).unwrap_or_else(|_| path.clone());
    let told = json!({ "run_id": known.run.id, "path": whole, "bytes": text.len() });
    answer(global, told, |_| path.into_string())
}

/// Writes the page at the end of a run that has a directory of its own. A failure is only noted,
/// because the page can be written at any time.
pub fn at_end(place: &StatePaths, state: &State) -> Option<Utf8PathBuf> {
    if state.run.flow.row().files != FlowFiles::RunDirectory {
        return None;
    }
    match past::at(place).and_then(|archive| query::write(&archive, &state.run.id)) {
        Ok(path) => Some(path),
        Err(error) => {
            terminal::note(&format!("the report is not written: {}", chain(&error)));
            None
        }
    }
}

/// Replaces the file as a whole, so that a reader sees the old page or the new one. Something that
/// is no plain file, such as `/dev/stdout`, is written to instead.
fn written(path: &Utf8Path, text: &str) -> Result<Utf8PathBuf, CommandFailure> {
    let is_special = path.symlink_metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    let wrote = if is_special {
        let opened = std::fs::OpenOptions::new().write(true).truncate(true).open(path);
        let wrote = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        wrote.map_err(CommandFailure::failed)
    } else {
        let name = path.file_name().unwrap_or_default();
        let parent = path.parent().filter(|parent| !parent.as_str().is_empty());
        let dir = file::Dir::open(parent.unwrap_or(Utf8Path::new(".")).as_std_path());
        dir.and_then(|dir| dir.write_with_mode(Path::new(name), text.as_bytes(), PRIVATE_MODE))
            .map_err(CommandFailure::failed)
    };
    wrote.map(|()| path.to_owned()).map_err(|failure| {
        failure
            .context(format!("cannot write `{path}`"))
            .hint("name another file with --out, in a directory that is there")
    })
}

//! Rebuilds a damaged journal from its readable records and keeps the damaged file beside it.

use super::super::past::unreadable;
use super::super::{Done, answer, done, ground};
use crate::cli::Global;
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use autopilot_host::git::StateEnv;
use autopilot_journal::{
    Health, RunHealth, Salvage, SqliteJournal, StorageTrouble, check, log_mark, salvage,
};
use autopilot_view::count;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

const NOTHING_LEFT: &str = "the history of the runs is lost; `autopilot recover` lists the branches and \
the unfinished work that are left";

/// Rebuilds the journal if it is damaged.
pub fn recover(global: &Global, place: &StatePaths) -> Done {
    let path = place.journal();
    if place.state.as_str().is_empty() || !place.state.is_dir() {
        return Err(CommandFailure::usage(
            "this repository has no state directory and so no journal",
        )
        .hint("`autopilot recover` tells what refs still show"));
    }
    let _lock = ground::lock(place)?;
    let rebuilt = path.with_extension("db.rebuilt");
    let aside = Utf8PathBuf::from(format!("{path}.damaged-{}", stamp()));
    if !path.exists() && rebuilt.exists() {
        // An earlier recovery was interrupted between its renames.
        put_in_place(&path, &rebuilt, &aside)?;
        terminal::say(&format!("an interrupted recovery of `{path}` is now complete"));
        return done();
    }
    workspace::refuse_lost(place, &StateEnv::from_process())?;
    let health = check(&path).map_err(unreadable)?;
    if health.is_sound() {
        return sound(global, &path, &health);
    }
    // An earlier recovery did not finish; the damaged file still has everything.
    remove_with_log(&rebuilt)?;
    let saved = match salvage(&path, &rebuilt) {
        Err(error) if error.trouble() == Some(StorageTrouble::Damaged) => {
            return nothing_readable(global, &path, &rebuilt, &aside);
        }
        saved => saved.map_err(unreadable)?,
    };
    put_in_place(&path, &rebuilt, &aside)?;
    tell(global, &path, &aside, &saved);
    done()
}

/// Puts an empty journal in the place of one of which nothing can be read.
fn nothing_readable(
    global: &Global,
    path: &Utf8Path,
    rebuilt: &Utf8Path,
    aside: &Utf8Path,
) -> Done {
    drop(SqliteJournal::create(rebuilt).map_err(unreadable)?);
    put_in_place(path, rebuilt, aside)?;
    let told = json!({ "journal": path, "sound": false, "damaged": aside, "records_saved": 0 });
    answer(global, told, |_| {
        format!(
            "nothing of `{path}` can be read; it is kept as `{aside}`, and an empty journal is in its \
             place\n{NOTHING_LEFT}"
        )
    })
}

fn sound(global: &Global, path: &Utf8Path, health: &Health) -> Done {
    let runs = health.runs.len();
    answer(global, json!({ "journal": path, "sound": true, "runs": runs }), |_| {
        format!("`{path}` is sound ({}); nothing to do", count(runs, "run"))
    })
}

/// Swaps the files. The damaged one is moved first, so that an interruption can be seen and its
/// log is never taken for a journal; the log must be gone before the new file has that name.
fn put_in_place(
    path: &Utf8Path,
    rebuilt: &Utf8Path,
    aside: &Utf8Path,
) -> Result<(), CommandFailure> {
    for ending in ["", "-wal"] {
        let from = Utf8PathBuf::from(format!("{path}{ending}"));
        if from.exists() {
            rename(&from, &Utf8PathBuf::from(format!("{aside}{ending}")))?;
        }
    }
    remove(&log_mark::path_of(path))?;
    remove(&Utf8PathBuf::from(format!("{path}-shm")))?;
    rename(rebuilt, path)
}

fn remove_with_log(path: &Utf8Path) -> Result<(), CommandFailure> {
    for ending in ["", "-wal", "-shm"] {
        remove(&Utf8PathBuf::from(format!("{path}{ending}")))?;
    }
    Ok(())
}

fn remove(path: &Utf8Path) -> Result<(), CommandFailure> {
    let removed = autopilot_host::dir::remove_file(path.as_std_path());
    removed.map(|_was_there| ()).or_failed(format!("cannot remove `{path}`"))
}

fn rename(from: &Utf8Path, to: &Utf8Path) -> Result<(), CommandFailure> {
    std::fs::rename(from, to).or_failed(format!("cannot rename `{from}` to `{to}`"))
}

fn stamp() -> String {
    autopilot_engine::clock::now().rfc3339().replace([':', '-'], "")
}

fn tell(global: &Global, path: &Utf8Path, aside: &Utf8Path, saved: &Salvage) {
    if global.json {
        terminal::json(&json!({
            "journal": path,
            "sound": false,
            "damaged": aside,
            "records_saved": saved.records_saved,
            "records_stray": saved.records_stray,
            "blobs_saved": saved.blobs_saved,
            "blobs_lost": saved.blobs_lost,
            "log_lost": saved.log_lost,
            "runs": saved.runs.iter().map(run).collect::<Vec<_>>(),
        }));
        return;
    }
    terminal::say(&format!(
        "rebuilt `{path}`: {} records and {} texts saved",
        saved.records_saved, saved.blobs_saved
    ));
    for run in saved.runs.iter().filter(|run| !run.lost.is_empty()) {
        terminal::say(&format!("run {}: lost {}", run.run, spans(run)));
    }
    if saved.records_stray > 0 {
        terminal::say(&format!("{} records behind a gap are kept aside", saved.records_stray));
    }
    if !saved.blobs_lost.is_empty() {
        terminal::say(&format!("{} texts are lost", saved.blobs_lost.len()));
    }
    if let Some(lost) = &saved.log_lost {
        terminal::say(&format!("commits that had not reached the file are lost: {lost}"));
    }
    terminal::say(&format!("the damaged file is kept as `{aside}`"));
    terminal::say(match saved.records_saved {
        0 => NOTHING_LEFT,
        _ => "`autopilot resume` continues from what was saved",
    });
}

fn run(run: &RunHealth) -> Value {
    json!({
        "run_id": run.run,
        "last_good_seq": run.last_good_seq,
        "last_seen_seq": run.last_seen_seq,
        "lost": run.lost.iter().map(|span| [span.first, span.last]).collect::<Vec<_>>(),
    })
}

fn spans(run: &RunHealth) -> String {
    let said = run.lost.iter().map(|span| match span.first == span.last {
        true => format!("record {}", span.first),
        false => format!("records {} to {}", span.first, span.last),
    });
    said.collect::<Vec<_>>().join(", ")
}

//! The directories and files that a run writes. They are only looked at.

use super::finding::DoctorFinding;
use autopilot_engine::cause::chain;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use autopilot_host::git::{Hub, HubDamage, Oid, StateEnv, UserRepo};
use autopilot_host::{checkout, lock, room};
use autopilot_journal::JournalHistory;
use std::path::Path;

/// Checks the directory in which every repository has its state.
pub fn state_root(env: &StateEnv, root: Option<&Path>) -> DoctorFinding {
    let name = "state root";
    if let Some(value) = env.relative_state_dir() {
        let value = value.display();
        let text = format!(
            "AUTOPILOT_STATE_DIR is `{value}`, which is not an absolute path; set it to one, or unset it"
        );
        return DoctorFinding::missing(name, text);
    }
    let Some(root) = root else {
        let text = "set HOME, XDG_STATE_HOME or AUTOPILOT_STATE_DIR to an absolute path";
        return DoctorFinding::missing(name, text);
    };
    let elsewhere = "or set AUTOPILOT_STATE_DIR to a directory that you may write";
    match closed(name, root) {
        Some(DoctorFinding { text, .. }) => {
            DoctorFinding::missing(name, format!("{text}, {elsewhere}"))
        }
        None => DoctorFinding::ok(name, root.display().to_string()),
    }
}

/// Checks that what a run writes in the repository can be written.
pub fn repository(place: &StatePaths) -> Vec<DoctorFinding> {
    let git = checkout::find(place.root.as_std_path()).map(|found| found.common_dir);
    let parts = ["autopilot", "objects", "refs/heads"];
    let mut of_git = git.iter().flat_map(|git| parts.map(|part| git.join(part)));
    let of_git = of_git.find_map(|path| closed("repository", &path));
    let of_views = closed("repository", &place.views().join("state.json").into_std_path_buf());
    of_git.into_iter().chain(of_views).collect()
}

/// Checks the temporary directory of this process. Runs have their own.
pub fn temporary() -> Option<DoctorFinding> {
    let path = std::env::temp_dir();
    let wrong = if path.is_dir() {
        room::writable(&path).err().map(|error| format!("can't be written ({error})"))?
    } else {
        "is not a directory".to_owned()
    };
    let text = format!(
        "the temporary directory `{}` {wrong}; set TMPDIR to a directory that exists and that you may \
         write",
        path.display()
    );
    Some(DoctorFinding::warning("temporary files", text))
}

/// Checks that nothing else is at the paths of the lock and the journal, and that they can be written.
pub fn own_files(place: &StatePaths) -> Vec<DoctorFinding> {
    let files = [place.state.join(lock::NAME), place.journal()];
    let one = |path: &camino::Utf8PathBuf| {
        if path.is_dir() {
            let text = format!("`{path}` is a directory; move it away");
            return Some(DoctorFinding::missing("state", text));
        }
        path.exists().then(|| closed("state", path.as_std_path())).flatten()
    };
    files.iter().filter_map(one).collect()
}

/// Checks Autopilot's own repository, if there was a run.
pub fn hub(place: &StatePaths, repo: &UserRepo) -> Option<DoctorFinding> {
    let name = "own repository";
    let reader = workspace::reader(place).ok()?;
    if reader.runs(1).ok()?.is_empty() {
        return None;
    }
    let unfinished = workspace::unfinished(&reader).ok()?.map(|(_, state)| state);
    let recorded: Vec<Oid> = unfinished
        .iter()
        .flat_map(|state| {
            let tips =
                [Some(state.run.base.as_str()), state.run.tip.as_deref()].into_iter().flatten();
            let commits = state.task_commits().filter_map(|(_, commit)| commit);
            tips.chain(commits).filter_map(|commit| Oid::parse(commit).ok()).collect::<Vec<_>>()
        })
        .collect();
    let next = match unfinished {
        Some(_) => "`autopilot resume`",
        None => "the next run",
    };
    let lost = "`autopilot recover` lists what is left";
    Some(match Hub::look(place.state.as_std_path(), repo, &recorded) {
        Ok(()) => DoctorFinding::ok(name, "sound"),
        Err(damage @ (HubDamage::Gone { .. } | HubDamage::Part { .. })) => {
            let text = format!(
                "{damage}; {next} makes it again from your repository, without work that was only \
                 there; {lost}"
            );
            DoctorFinding::warning(name, text)
        }
        Err(damage @ HubDamage::Tampered(_)) => {
            let text = format!(
                "{damage}; move `{}/hub.git` away, and {next} makes it again from your repository; {lost}",
                place.state
            );
            DoctorFinding::missing(name, text)
        }
        Err(damage @ HubDamage::Unreadable { .. }) => {
            let text =
                format!("{}; {next} brings back what your repository has; {lost}", chain(&damage));
            DoctorFinding::warning(name, text)
        }
    })
}

/// The finding about a path that this user can't write, or whose directory can't be made.
pub fn closed(name: &str, path: &Path) -> Option<DoctorFinding> {
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    if there != path && !there.is_dir() {
        let text = format!("`{}` is not a directory; move it away", there.display());
        return Some(DoctorFinding::missing(name, text));
    }
    let error = room::writable(there).err()?;
    let text = format!("`{}` can't be written ({error}); make it writable", there.display());
    Some(DoctorFinding::missing(name, text))
}

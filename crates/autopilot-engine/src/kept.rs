//! The session files of agents: kept outside the attempts' temporary homes until they are too old
//! or too many. Removed sessions are remembered, so that a person who asks for one learns why it is
//! gone.

use crate::place::StatePaths;
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::id::AttemptId;
use autopilot_host::file::{self, FileError};
use autopilot_host::{agent_home, dir};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Days that a session of a finished run is kept after its last use.
pub const SESSION_DAYS_MAX: u64 = 30;
/// The number of sessions kept over all finished runs; the newest stay.
pub const SESSIONS_MAX: usize = 500;
/// The number of removed sessions that are remembered; the newest stay.
const REMOVED_MAX: usize = 20_000;
const REMOVED_BYTES_MAX: u64 = 1 << 20;
const NOTE_BYTES_MAX: u64 = 4 * 1024;
const DAY: Duration = Duration::from_secs(86_400);
/// Characters of a session's digest in the name of its directory.
const DIGEST_CHARS: usize = 32;
pub(crate) const NOTE: &str = "session.json";
const REMOVED: &str = "removed.txt";

/// The owner of a kept session. The file's modification time is the session's last use.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionNote {
    pub run: String,
    #[serde(default)]
    pub session: String,
    /// The directory in which the agent worked last.
    #[serde(default)]
    pub dir: Option<String>,
}

/// The directory for the files of a session. Two attempts that name the same session have two
/// directories.
pub fn place_of(place: &StatePaths, run: &str, attempt: AttemptId, session: &str) -> Utf8PathBuf {
    let name = format!("{run} {attempt} {session}");
    let digest: String = sha256_hex(name.as_bytes()).chars().take(DIGEST_CHARS).collect();
    folder(place).join(digest)
}

/// The kept session that `attempt` continues: its own, or that of the attempt which had the session
/// `before`, or else that of the last attempt which kept it.
pub fn found(
    place: &StatePaths,
    run: &str,
    (attempt, before): (AttemptId, Option<AttemptId>),
    session: &str,
) -> Utf8PathBuf {
    let own = place_of(place, run, attempt, session);
    let Some(before) = before else { return own };
    let before = place_of(place, run, before, session);
    if let Some(whole) = [&own, &before].into_iter().find(|path| path.join(NOTE).is_file()) {
        return whole.clone();
    }
    let is_it = |path: &Utf8PathBuf| {
        note_of(&path.join(NOTE)).is_some_and(|note| note.run == run && note.session == session)
    };
    let used = |path: Utf8PathBuf| Some((path.join(NOTE).metadata().ok()?.modified().ok()?, path));
    let newest = all(place).filter(is_it).filter_map(used).max().map(|(_, path)| path);
    newest.or(Some(before).filter(|path| path.is_dir())).unwrap_or(own)
}

/// Copies the parts of an agent's home that make up its session.
pub fn keep(
    kept: &Utf8Path,
    note: &SessionNote,
    home: &Path,
    parts: &[PathBuf],
    left_out: impl Fn(&Path) -> bool,
) -> io::Result<()> {
    for part in parts {
        agent_home::keep(home, part, kept.as_std_path(), &left_out)?;
    }
    if kept.is_dir() {
        let note = serde_json::to_string(note)?;
        file::write_atomic(kept.join(NOTE).as_std_path(), note.as_bytes()).map_err(plain)?;
    }
    Ok(())
}

/// Returns whether all files of a session were copied.
pub fn is_whole(kept: &Utf8Path) -> bool {
    kept.join(NOTE).is_file()
}

/// The directory in which the agent of a kept session worked last.
pub fn worked_in(kept: &Utf8Path) -> Option<String> {
    note_of(&kept.join(NOTE))?.dir
}

/// The sessions that may be removed: too old or too many, and not of a run in `open`.
pub fn due(place: &StatePaths, open: &BTreeSet<String>, now: SystemTime) -> Vec<Utf8PathBuf> {
    let gone = removed(place);
    let kept = all(place).filter_map(|path| {
        let is_plain = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let note = path.join(NOTE);
        let run = note_of(&note).map(|note| note.run);
        if is_plain && run.is_none() && is_among(&gone, &path) {
            // An earlier removal of this session was interrupted.
            return Some((SystemTime::UNIX_EPOCH, path));
        }
        // A session whose copying was interrupted has no note yet.
        let noted = note.symlink_metadata().or_else(|_| path.symlink_metadata()).ok()?;
        (is_plain && !run.is_some_and(|run| open.contains(&run)))
            .then_some((noted.modified().ok()?, path))
    });
    let mut kept: Vec<(SystemTime, Utf8PathBuf)> = kept.collect();
    kept.sort_by(|one, other| other.cmp(one));
    let is_old = |used: SystemTime| {
        now.duration_since(used).is_ok_and(|age| age.as_secs() > SESSION_DAYS_MAX * DAY.as_secs())
    };
    let due = kept.into_iter().enumerate();
    let due = due.filter(|(place, (used, _))| *place >= SESSIONS_MAX || is_old(*used));
    due.map(|(_, (_, path))| path).collect()
}

/// Remembers sessions before they are removed, so that no session disappears without a reason.
pub fn remember_removed(place: &StatePaths, paths: &[Utf8PathBuf]) -> io::Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut names = removed(place);
    let gone = paths.iter().filter_map(|path| path.file_name()).map(str::to_owned);
    names.extend(gone);
    let from = names.len().saturating_sub(REMOVED_MAX);
    let text = format!("{}\n", names.get(from..).unwrap_or_default().join("\n"));
    file::write_atomic(folder(place).join(REMOVED).as_std_path(), text.as_bytes()).map_err(plain)
}

/// Returns whether a session was removed to make room.
pub fn is_removed(place: &StatePaths, run: &str, attempt: AttemptId, session: &str) -> bool {
    let path = place_of(place, run, attempt, session);
    path.join(NOTE).symlink_metadata().is_err() && is_among(&removed(place), &path)
}

fn is_among(gone: &[String], path: &Utf8Path) -> bool {
    gone.iter().any(|gone| path.file_name() == Some(gone))
}

fn folder(place: &StatePaths) -> Utf8PathBuf {
    place.state.join("sessions")
}

fn all(place: &StatePaths) -> impl Iterator<Item = Utf8PathBuf> {
    let folder = folder(place);
    let names = dir::names(folder.as_std_path()).unwrap_or_default();
    names.into_iter().map(move |name| folder.join(name))
}

fn removed(place: &StatePaths) -> Vec<String> {
    let path = folder(place).join(REMOVED);
    let bytes = file::read_capped(path.as_std_path(), REMOVED_BYTES_MAX).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

fn note_of(note: &Utf8Path) -> Option<SessionNote> {
    let bytes = file::read_capped(note.as_std_path(), NOTE_BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn plain(error: FileError) -> io::Error {
    io::Error::other(crate::cause::chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct KeptPlace {
        _temp: tempfile::TempDir,
        place: StatePaths,
    }

    impl KeptPlace {
        fn new() -> KeptPlace {
            let temp = tempfile::tempdir().unwrap();
            let state = Utf8PathBuf::from_path_buf(temp.path().to_owned()).unwrap();
            KeptPlace { _temp: temp, place: StatePaths { root: state.join("root"), state } }
        }

        /// Keeps a session from an agent's home that was last used so many days ago.
        fn session(&self, run: &str, name: &str, days: u64) -> Utf8PathBuf {
            let kept = place_of(&self.place, run, AttemptId { seq: 1, place: 0 }, name);
            let home = self.place.state.join("home");
            fs::create_dir_all(home.join("projects")).unwrap();
            fs::write(home.join("projects/said"), name).unwrap();
            let note = SessionNote { run: run.into(), session: name.into(), dir: None };
            keep(&kept, &note, home.as_std_path(), &["projects".into()], |_| false).unwrap();
            let used = SystemTime::now() - DAY * u32::try_from(days).unwrap();
            fs::File::open(kept.join(NOTE)).unwrap().set_modified(used).unwrap();
            kept
        }

        fn due(&self, open: &[&str]) -> BTreeSet<Utf8PathBuf> {
            let open = open.iter().map(|run| (*run).to_owned()).collect();
            due(&self.place, &open, SystemTime::now()).into_iter().collect()
        }
    }

    #[test]
    fn old_sessions_go_but_none_of_a_run_that_is_not_over() {
        let case = KeptPlace::new();
        let old = case.session("over", "old", SESSION_DAYS_MAX + 1);
        let of_open = case.session("open", "old too", SESSION_DAYS_MAX + 1);
        case.session("over", "new", SESSION_DAYS_MAX - 1);
        assert_eq!(case.due(&["open"]), BTreeSet::from([old.clone()]));
        assert_eq!(case.due(&[]), BTreeSet::from([old, of_open.clone()]));
        // A continued session counts as new.
        case.session("open", "old too", 0);
        assert!(!case.due(&[]).contains(&of_open));
    }

    #[test]
    fn a_removal_that_was_cut_short_is_finished_and_told() {
        let case = KeptPlace::new();
        let attempt = AttemptId { seq: 1, place: 0 };
        let kept = case.session("r", "s", 40);
        remember_removed(&case.place, std::slice::from_ref(&kept)).unwrap();
        fs::remove_file(kept.join(NOTE)).unwrap();
        assert!(is_removed(&case.place, "r", attempt, "s"), "half of it is no session");
        assert_eq!(case.due(&[]), BTreeSet::from([kept]));
    }

    #[test]
    fn a_session_is_found_where_it_was_kept_last_and_never_half_of_one() {
        let case = KeptPlace::new();
        let [first, lost, now] = [1, 2, 3].map(|seq| AttemptId { seq, place: 0 });
        let found = |before| found(&case.place, "r", (now, Some(before)), "s");
        let kept = case.session("r", "s", 1);
        assert_eq!((found(first), found(lost)), (kept.clone(), kept.clone()));
        let half = place_of(&case.place, "r", lost, "s");
        fs::create_dir_all(half.join("projects")).unwrap();
        assert_eq!(found(lost), kept, "what was cut short has no note");
        case.session("r", "another", 0);
        case.session("other run", "s", 0);
        assert_eq!(found(lost), kept);
        fs::remove_dir_all(&kept).unwrap();
        assert_eq!(found(lost), half, "better than nothing");
        fs::remove_dir_all(&half).unwrap();
        assert_eq!(found(lost), place_of(&case.place, "r", now, "s"));
    }

    #[test]
    fn of_too_many_the_newest_are_kept() {
        let case = KeptPlace::new();
        let oldest = case.session("over", "oldest", 9);
        for n in 1..SESSIONS_MAX {
            case.session("over", &n.to_string(), 1);
        }
        assert_eq!(case.due(&[]), BTreeSet::new());
        case.session("over", "one more", 0);
        assert_eq!(case.due(&[]), BTreeSet::from([oldest]));
    }

    #[test]
    fn a_removed_session_is_told_from_one_that_never_was_and_only_so_many_are_remembered() {
        let case = KeptPlace::new();
        let attempt = AttemptId { seq: 1, place: 0 };
        let is_gone = |name: &str| is_removed(&case.place, "r", attempt, name);
        let kept = case.session("r", "s", 40);
        remember_removed(&case.place, std::slice::from_ref(&kept)).unwrap();
        assert!(!is_gone("s"), "it is still there");
        dir::remove(kept.as_std_path()).unwrap();
        assert!(is_gone("s") && !is_gone("never"));
        let many: Vec<Utf8PathBuf> =
            (0..REMOVED_MAX).map(|n| Utf8PathBuf::from(format!("{n:032}"))).collect();
        remember_removed(&case.place, &many).unwrap();
        assert_eq!(removed(&case.place).len(), REMOVED_MAX);
        assert!(!is_gone("s"), "the oldest is forgotten");
        assert!(case.due(&[]).is_empty(), "what is remembered is no session");
    }
}

//! The session of an agent from the moment it opens: a note beside the agent's home says whose
//! session it is, so that its files are kept even if this process is killed.

use super::home::{self, Home};
use super::{Job, JobError, agent_of};
use crate::kept::{self, SessionNote};
use crate::place::StatePaths;
use autopilot_agents::Agent;
use autopilot_core::config::AgentConfig;
use autopilot_core::flow::builder_session::SessionFiles;
use autopilot_core::id::AttemptId;
use autopilot_host::agent_home::has_file;
use autopilot_host::{dir, file};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const LEFT_BYTES_MAX: u64 = 64 * 1024;
/// The suffix of the notes in the directory of temporary files.
const SUFFIX: &str = ".session.json";

/// A session whose files are still in the home of its agent.
#[derive(Debug, Serialize, Deserialize)]
struct LeftSession {
    attempt: String,
    /// The directories of the home that make up the session.
    parts: Vec<PathBuf>,
    #[serde(flatten)]
    note: SessionNote,
}

impl Job {
    /// Notes the session that the agent has opened, before the journal hears of it.
    pub(super) fn note_session(&self, session: &str, dir: &Utf8Path) {
        let parts = self.seen().session_parts.clone();
        self.seen().session = Some(session.to_owned());
        if parts.is_empty() {
            return;
        }
        let note = self.session_note(session, dir);
        let left = LeftSession { attempt: self.want.id.to_string(), parts, note };
        if let Ok(text) = serde_json::to_vec(&left) {
            // Without the note the files are kept when the turn ends, if this process lives.
            let _at_the_end =
                file::write_atomic(self.beside_scratch("session.json").as_std_path(), &text);
        }
    }

    /// Keeps the files needed to resume the session; returns a message if that fails.
    pub(super) fn keep_session(
        &self,
        home: &Home,
        session: Option<&str>,
        dir: &Utf8Path,
    ) -> Option<String> {
        let session = session?;
        let kept = kept::place_of(&self.context.place, &self.run.id, self.want.id, session);
        let note = self.session_note(session, dir);
        kept::keep(&kept, &note, home.dir(), home.sessions(), home::is_left_out)
            .err()
            .map(|error| format!("its session can't be resumed: {error}"))
    }

    /// The kept files of a session that this attempt continues.
    pub(super) fn kept_before(&self, session: &str) -> Utf8PathBuf {
        let words = self.task.words.as_ref().filter(|words| words.session == session);
        let last = self.task.talk.session.as_ref().filter(|last| last.session == session);
        let before = words.map(|words| words.attempt).or(last.map(|last| last.attempt));
        kept::found(&self.context.place, &self.run.id, (self.want.id, before), session)
    }

    fn session_note(&self, session: &str, dir: &Utf8Path) -> SessionNote {
        SessionNote {
            run: self.run.id.clone(),
            session: session.to_owned(),
            dir: Some(dir.to_string()),
        }
    }
}

/// Keeps the sessions of agents whose controller was killed. Runs before their homes are removed.
pub(crate) fn keep_left(place: &StatePaths, notice: &mut dyn FnMut(&str)) {
    for (home, left) in all_left(place) {
        let Ok(attempt) = left.attempt.parse::<AttemptId>() else { continue };
        let LeftSession { parts, note, .. } = left;
        let kept = kept::place_of(place, &note.run, attempt, &note.session);
        if let Err(error) = kept::keep(&kept, &note, &home, &parts, home::is_left_out) {
            notice(&format!("session {} can't be resumed: {error}", note.session));
        }
    }
}

/// Where the files are that an agent needs to resume a session.
pub(crate) fn session_files(
    place: &StatePaths,
    (run, attempt): (&str, AttemptId),
    session: &str,
    agent: &Agent,
) -> SessionFiles {
    let Some(is_file) = home::session_file(agent) else { return SessionFiles::Elsewhere };
    let kept = kept::found(place, run, (attempt, Some(attempt)), session);
    let is_it = |name: &str| is_file(session, name);
    if kept::is_whole(&kept) && has_file(kept.as_std_path(), is_it) {
        return SessionFiles::Kept;
    }
    let is_left = |left: &LeftSession| {
        left.note.session == session && left.note.run == run && left.attempt.parse() == Ok(attempt)
    };
    let mut left = all_left(place).into_iter().filter(|(_, left)| is_left(left));
    let is_there =
        left.any(|(home, left)| left.parts.iter().any(|part| has_file(&home.join(part), is_it)));
    if is_there { SessionFiles::Kept } else { SessionFiles::Gone }
}

/// The same for the agent of a configuration.
pub(crate) fn session_files_of(
    place: &StatePaths,
    of: (&str, AttemptId),
    session: &str,
    config: &AgentConfig,
) -> Result<SessionFiles, JobError> {
    Ok(session_files(place, of, session, &agent_of(config, &place.root)?))
}

fn all_left(place: &StatePaths) -> Vec<(PathBuf, LeftSession)> {
    let tmp = place.state.join("tmp");
    let left = |name: String| {
        let stem = name.strip_suffix(SUFFIX)?;
        let bytes = file::read_capped(tmp.join(&name).as_std_path(), LEFT_BYTES_MAX).ok()?;
        let left = serde_json::from_slice(&bytes).ok()?;
        Some((tmp.join(format!("{stem}.{}", home::HOME)).into_std_path_buf(), left))
    };
    dir::names(tmp.as_std_path()).unwrap_or_default().into_iter().filter_map(left).collect()
}

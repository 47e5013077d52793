//! What a person asks of a run that another process is working on: one small file per wish, put
//! there whole and taken by the engine in order of name.

use crate::place::Place;
use autopilot_core::id::Micros;
use autopilot_core::input::Ask;
use autopilot_core::limit::Limits;
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

/// Wishes taken at a time; the rest waits for the next look.
const WISHES_MAX: usize = 64;
const WISH_BYTES_MAX: u64 = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Wish {
    Retry {
        task: String,
    },
    Skip {
        task: String,
    },
    Approve {
        by: String,
    },
    Reject {
        by: String,
        why: String,
    },
    Limit(LimitChange),
    /// Words for the agent that works on a task now. Answered by [`answered`].
    Tell {
        task: String,
        text: String,
    },
    /// The agent that works on a task is to end its turn.
    Interrupt {
        task: String,
    },
}

/// Limits that a person may move while a run is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitChange {
    pub max_iterations: Option<u32>,
    pub max_usd: Option<f64>,
    pub max_usd_per_task: Option<f64>,
    pub max_wall_ms: Option<u64>,
    pub max_workers: Option<u32>,
}

impl LimitChange {
    pub fn is_empty(&self) -> bool {
        *self == LimitChange::default()
    }

    pub fn applied_to(&self, limits: &Limits) -> Limits {
        let mut limits = limits.clone();
        if let Some(rounds) = self.max_iterations {
            limits.rounds_max = rounds;
        }
        if let Some(usd) = self.max_usd {
            limits.usd_max = Some(Micros::from_usd(usd));
        }
        if let Some(usd) = self.max_usd_per_task {
            limits.usd_per_task_max = Some(Micros::from_usd(usd));
        }
        if let Some(ms) = self.max_wall_ms {
            limits.wall_max_ms = Some(ms);
        }
        if let Some(workers) = self.max_workers {
            limits.workers_max = workers;
        }
        limits
    }
}

impl Wish {
    /// What it is to the core; what is only said to an agent is nothing to it.
    pub fn ask(&self, limits: &Limits) -> Option<Ask> {
        Some(match self {
            Wish::Retry { task } => Ask::Retry { task: task.clone() },
            Wish::Skip { task } => Ask::Skip { task: task.clone() },
            Wish::Approve { by } => Ask::Approve { by: by.clone(), answer: None },
            Wish::Reject { by, why } => Ask::Reject { by: by.clone(), why: why.clone() },
            Wish::Limit(change) => Ask::Limit(Box::new(change.applied_to(limits))),
            Wish::Tell { .. } | Wish::Interrupt { .. } => return None,
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error("cannot leave a message for the running engine in `{path}`: {source}")]
    Put { path: Utf8PathBuf, source: std::io::Error },
}

/// `stamp` orders the wishes and must be new each time.
pub fn put(place: &Place, stamp: &str, wish: &Wish) -> Result<(), InboxError> {
    let path = place.inbox().join(format!("{stamp}.json"));
    let failed = |source| InboxError::Put { path: path.clone(), source };
    autopilot_host::dir::create_private(place.inbox().as_std_path()).map_err(failed)?;
    let body = serde_json::to_vec(wish).map_err(|error| failed(error.into()))?;
    autopilot_host::file::write_atomic(path.as_std_path(), &body)
        .map_err(|error| failed(std::io::Error::other(error)))
}

/// Tells whoever left a wish what became of it, and takes the wish away.
pub fn answer(wish: &Utf8Path, heard: Result<(), String>) -> std::io::Result<()> {
    let text = heard.err().unwrap_or_default();
    autopilot_host::file::write_atomic(answer_path(wish).as_std_path(), text.as_bytes())
        .map_err(std::io::Error::other)?;
    autopilot_host::dir::remove_file(wish.as_std_path()).map(|_was_there| ())
}

/// What became of a wish, once: nothing while nobody has answered.
pub fn answered(place: &Place, stamp: &str) -> Option<Result<(), String>> {
    let path = answer_path(&place.inbox().join(format!("{stamp}.json")));
    let bytes = autopilot_host::file::read_capped(path.as_std_path(), WISH_BYTES_MAX).ok()?;
    let _gone_with_the_next_run = autopilot_host::dir::remove_file(path.as_std_path());
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(if text.is_empty() { Ok(()) } else { Err(text) })
}

/// A wish nobody will hear any more.
pub fn withdraw(place: &Place, stamp: &str) {
    let path = place.inbox().join(format!("{stamp}.json"));
    let _heard_after_all = autopilot_host::dir::remove_file(path.as_std_path());
}

/// Answers whose askers have gone.
pub fn clear_answers(place: &Place) {
    let Ok(entries) = place.inbox().read_dir_utf8() else { return };
    for entry in entries.flatten().filter(|entry| entry.path().extension() == Some("answer")) {
        let _next_time = autopilot_host::dir::remove_file(entry.path().as_std_path());
    }
}

fn answer_path(wish: &Utf8Path) -> Utf8PathBuf {
    wish.with_extension("answer")
}

/// The wishes waiting, each with the file to remove once it is durable. What can't be read is
/// returned as `None` so that it is removed and said.
pub fn waiting(place: &Place) -> Vec<(Utf8PathBuf, Option<Wish>)> {
    let Ok(entries) = place.inbox().read_dir_utf8() else { return Vec::new() };
    let mut paths: Vec<Utf8PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path().to_owned()))
        .filter(|path| path.extension() == Some("json"))
        .collect();
    paths.sort();
    paths.truncate(WISHES_MAX);
    let read = |path: &Utf8PathBuf| {
        let bytes = autopilot_host::file::read_capped(path.as_std_path(), WISH_BYTES_MAX).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

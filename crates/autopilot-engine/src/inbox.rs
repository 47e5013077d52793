//! Messages to the process that works on a run: one small file per message, written atomically,
//! taken in order of name, and answered by a file beside it.
//!
//! A message is taken once. The sender waits for the answer and otherwise withdraws the message, and
//! a message whose sender has ended is dropped, so a message that nobody waits for is never carried
//! out.

use crate::place::StatePaths;
use autopilot_agents::Deaf;
use autopilot_core::decide::Refusal;
use autopilot_core::id::Micros;
use autopilot_core::input::Ask;
use autopilot_core::limit::Limits;
use autopilot_host::lock::Holder;
use autopilot_host::{dir, file};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Messages taken at a time; the others wait for the next pass.
const MESSAGES_MAX: usize = 64;
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;
/// How long the sender of a message waits for its answer.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(15);

/// A message to the process that works on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboxMessage {
    /// The run the message is for; a process that works on another run refuses it. `None` means
    /// whichever run the process works on.
    pub run: Option<String>,
    pub request: InboxRequest,
    /// The process that waits for the answer; `None` in messages of earlier versions.
    #[serde(default)]
    pub sender: Option<Holder>,
}

impl InboxMessage {
    /// A message of this process.
    pub fn new(run: Option<String>, request: InboxRequest) -> InboxMessage {
        InboxMessage { run, request, sender: Some(Holder::us("")) }
    }
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxRequest {
    /// Requests to the run: its limits change first, then the asks are judged in order. Either all
    /// of them are carried out or none.
    Asks {
        #[serde(default)]
        limits: LimitChange,
        asks: Vec<Ask>,
    },
    /// A message to the agent that works on a task.
    Tell { task: String, text: String },
    /// The agent that works on a task must end its turn.
    Interrupt { task: String },
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxAnswer {
    /// The request was carried out and is durable.
    Done {
        text: String,
    },
    /// The run was already as requested.
    Unchanged {
        text: String,
    },
    Refused(Refusal),
    Failed(InboxFailure),
}

/// Why nobody could act on a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum InboxFailure {
    #[error("this process works on run {own}, not on {asked}")]
    OtherRun { own: String, asked: String },
    #[error("this process continues a session outside of its run and can only be stopped")]
    OutsideRun,
    #[error("this version can't read the message: {error}")]
    Unreadable { error: String },
    #[error("the journal can't be written: {error}")]
    Journal { error: String },
    #[error("no agent is working on {task}")]
    NoAgent { task: String },
    #[error("no agent takes messages at this step")]
    NoListener,
    #[error(transparent)]
    Deaf(Deaf),
}

/// Limits that a person may change while a run is in progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitChange {
    pub max_iterations: Option<u32>,
    pub max_usd: Option<f64>,
    pub max_usd_per_task: Option<f64>,
    pub max_wall_ms: Option<u64>,
    pub max_workers: Option<u32>,
}

impl LimitChange {
    /// Returns whether no limit changes.
    pub fn is_empty(&self) -> bool {
        *self == LimitChange::default()
    }

    /// The request that changes a run's limits; `None` when they would stay the same.
    pub fn ask(&self, limits: &Limits) -> Option<Ask> {
        (!self.is_empty()).then(|| Ask::Limit(Box::new(self.applied_to(limits))))
    }

    /// The limits with the change applied.
    pub fn applied_to(&self, limits: &Limits) -> Limits {
        let money = |usd: Option<f64>| usd.map(Micros::from_usd);
        Limits {
            rounds_max: self.max_iterations.unwrap_or(limits.rounds_max),
            usd_max: money(self.max_usd).or(limits.usd_max),
            usd_per_task_max: money(self.max_usd_per_task).or(limits.usd_per_task_max),
            wall_max_ms: self.max_wall_ms.or(limits.wall_max_ms),
            workers_max: self.max_workers.unwrap_or(limits.workers_max),
            ..limits.clone()
        }
    }
}

/// Why a message could not be left in the inbox.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error("cannot leave a message for the running process in `{path}`")]
    Put { path: Utf8PathBuf, source: std::io::Error },
    #[error("the request is too long: {bytes} bytes, and at most {MESSAGE_BYTES_MAX} can be sent")]
    TooLong { bytes: usize },
}

/// A message that has not been answered yet.
#[derive(Debug)]
pub struct SentMessage(Utf8PathBuf);

/// Creates the inbox directory if it is missing.
pub fn create(place: &StatePaths) -> Result<(), InboxError> {
    let path = place.inbox();
    dir::create_private(path.as_std_path()).map_err(|source| InboxError::Put { path, source })
}

/// Leaves a message in the inbox, which must exist.
pub fn put(place: &StatePaths, message: &InboxMessage) -> Result<SentMessage, InboxError> {
    static SENT: AtomicU32 = AtomicU32::new(0);
    let (now, pid) = (crate::clock::now().0, std::process::id());
    let number = SENT.fetch_add(1, Ordering::Relaxed);
    let path = place.inbox().join(format!("{now:020}-{pid}-{number:06}.json"));
    let failed = |source| InboxError::Put { path: path.clone(), source };
    let body = serde_json::to_vec(message).map_err(|error| failed(error.into()))?;
    if body.len() as u64 > MESSAGE_BYTES_MAX {
        return Err(InboxError::TooLong { bytes: body.len() });
    }
    file::write_atomic(path.as_std_path(), &body)
        .map_err(|error| failed(std::io::Error::other(error)))?;
    Ok(SentMessage(path))
}

impl SentMessage {
    /// Takes the answer, if there is one; a process of another version may write it in another way.
    pub fn answered(&self) -> Option<Result<InboxAnswer, serde_json::Error>> {
        let path = answer_path(&self.0);
        let bytes = file::read_capped(path.as_std_path(), MESSAGE_BYTES_MAX).ok()?;
        let _swept_later = dir::remove_file(path.as_std_path());
        Some(serde_json::from_slice(&bytes))
    }

    /// Withdraws the message; returns whether nobody had taken it.
    pub fn withdraw(self) -> bool {
        dir::remove_file(self.0.as_std_path()).unwrap_or(false)
    }
}

/// The file that the answer to a message is written to.
#[derive(Clone, Debug)]
pub struct ReplyAddress(Utf8PathBuf);

impl ReplyAddress {
    /// Writes the answer, which wakes the sender.
    pub fn send(&self, answer: &InboxAnswer) -> std::io::Result<()> {
        let body = serde_json::to_vec(answer)?;
        file::write_atomic(self.0.as_std_path(), &body).map_err(std::io::Error::other)
    }
}

/// Takes the waiting messages, or what is wrong with them, each with the address for its answer.
/// Messages whose senders have ended or must have given up are removed and not returned.
pub fn take(place: &StatePaths) -> Vec<(ReplyAddress, Result<InboxMessage, InboxFailure>)> {
    let mut paths = files(place, "json");
    paths.sort();
    let take = |path: Utf8PathBuf| {
        let is_stale = is_stale(&path);
        let bytes = file::read_capped(path.as_std_path(), MESSAGE_BYTES_MAX);
        // A message that can't be removed would be carried out again and again, so it is skipped.
        let is_ours = dir::remove_file(path.as_std_path()).unwrap_or(false);
        let unreadable = |error: String| InboxFailure::Unreadable { error };
        let message: Result<InboxMessage, _> =
            bytes.map_err(|error| unreadable(error.to_string())).and_then(|bytes| {
                serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))
            });
        let sender = message.as_ref().ok().and_then(|message| message.sender.as_ref());
        let is_awaited = !is_stale && sender.is_none_or(Holder::is_living);
        (is_ours && is_awaited).then(|| (ReplyAddress(answer_path(&path)), message))
    };
    // What can't be taken does not count, or it could keep every message after it away.
    paths.into_iter().filter_map(take).take(MESSAGES_MAX).collect()
}

/// Removes messages and answers that nobody waits for any more.
pub fn sweep(place: &StatePaths) {
    for path in files(place, "json").into_iter().chain(files(place, "answer")) {
        if is_stale(&path) {
            let _next_time = dir::remove_file(path.as_std_path());
        }
    }
}

fn files(place: &StatePaths, extension: &str) -> Vec<Utf8PathBuf> {
    let Ok(entries) = place.inbox().read_dir_utf8() else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.into_path());
    paths.filter(|path| path.extension() == Some(extension)).collect()
}

fn is_stale(path: &Utf8Path) -> bool {
    let put = path.symlink_metadata().and_then(|meta| meta.modified());
    put.is_ok_and(|put| put.elapsed().is_ok_and(|age| age > ANSWER_WAIT_MAX))
}

fn answer_path(message: &Utf8Path) -> Utf8PathBuf {
    message.with_extension("answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, StatePaths) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let place = StatePaths { root: root.clone(), state: root };
        create(&place).unwrap();
        (dir, place)
    }

    fn message(task: &str) -> InboxMessage {
        let asks = vec![Ask::Retry { task: task.into() }];
        let request = InboxRequest::Asks { limits: LimitChange::default(), asks };
        InboxMessage::new(Some("r".into()), request)
    }

    fn left(place: &StatePaths) -> usize {
        files(place, "json").len() + files(place, "answer").len()
    }

    #[test]
    fn messages_are_taken_in_order_and_once_and_answered() {
        let (_dir, place) = place();
        let sent = ["a", "b"].map(|task| put(&place, &message(task)).unwrap());
        assert!(sent[0].answered().is_none());
        let taken = take(&place);
        let read: Vec<_> = taken.iter().map(|(_, message)| message.clone().unwrap()).collect();
        assert_eq!(read, [message("a"), message("b")]);
        assert!(take(&place).is_empty());
        let done = InboxAnswer::Done { text: "task `b` is retried".into() };
        taken[1].0.send(&done).unwrap();
        assert!(sent[0].answered().is_none());
        assert_eq!(sent[1].answered().unwrap().unwrap(), done);
        let [first, _] = sent;
        assert!(!first.withdraw(), "it was taken");
        assert_eq!(left(&place), 0);
    }

    #[test]
    fn what_can_not_be_read_is_taken_with_what_is_wrong() {
        let (_dir, place) = place();
        std::fs::write(place.inbox().join("0.json"), r#"{"wish":"retry","task":"a"}"#).unwrap();
        std::fs::write(place.inbox().join("1.json"), r#"{"run":"r","request":"dance"}"#).unwrap();
        let why: Vec<_> =
            take(&place).into_iter().map(|(_, message)| message.unwrap_err().to_string()).collect();
        assert!(why[0].contains("missing field `request`"), "{why:?}");
        assert!(why[1].contains("dance"), "{why:?}");
        assert_eq!(left(&place), 0);
    }

    #[test]
    fn what_can_not_be_taken_keeps_no_message_away() {
        let (_dir, place) = place();
        for number in 0..=MESSAGES_MAX {
            std::fs::create_dir(place.inbox().join(format!("0000000-{number:02}-d.json"))).unwrap();
        }
        put(&place, &message("a")).unwrap();
        assert_eq!(take(&place).len(), 1);
    }

    #[test]
    fn a_message_whose_sender_has_ended_is_not_heard() {
        let (_dir, place) = place();
        let mut gone = message("a");
        gone.sender.as_mut().unwrap().process.start_time += 1;
        put(&place, &gone).unwrap();
        put(&place, &message("b")).unwrap();
        put(&place, &InboxMessage { sender: None, ..message("c") }).unwrap();
        let taken: Vec<_> = take(&place).into_iter().map(|(_, taken)| taken.unwrap()).collect();
        assert_eq!(taken, [message("b"), InboxMessage { sender: None, ..message("c") }]);
        assert_eq!(left(&place), 0);
    }

    #[test]
    fn a_request_that_is_too_long_to_be_read_is_not_left() {
        let (_dir, place) = place();
        let long = "x".repeat(MESSAGE_BYTES_MAX as usize);
        let why = put(&place, &message(&long)).unwrap_err().to_string();
        assert!(why.starts_with("the request is too long: "), "{why}");
        assert_eq!(left(&place), 0);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_heard() {
        let (_dir, place) = place();
        put(&place, &message("a")).unwrap();
        let path = files(&place, "json").remove(0);
        let old = std::time::SystemTime::now() - 2 * ANSWER_WAIT_MAX;
        let answer = answer_path(&path);
        std::fs::write(&answer, "{}").unwrap();
        for path in [&path, &answer] {
            std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
        assert!(take(&place).is_empty());
        sweep(&place);
        assert_eq!(left(&place), 0);
        let sent = put(&place, &message("b")).unwrap();
        sweep(&place);
        assert!(sent.withdraw(), "a new one stays");
    }
}

//! Pull requests at the forge that hosts a remote: found by their branch, opened or brought up to
//! date, never merged.
//!
//! Invariant: before a pull request is opened the forge is asked whether there is one, also after
//! an answer that was lost; so one branch has one open pull request, whatever happened before.

mod address;
mod body;
mod choose;
mod error;
mod gh;
mod http;
mod rest;

pub use address::{ForgeAddress, ForgeKind};
pub use choose::{ChosenForge, ForgeRequest, Site, choose};
pub use error::{AnswerError, ForgeError, SettingError};

use crate::fail;
use crate::pause::pause;
use std::time::Duration;

/// The waits before the second, third … try when the forge is away or too busy.
pub const DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// The longest pause a forge can ask for; with a longer one it is not asked again.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A place where pull requests (or merge requests) are kept.
pub trait Forge {
    /// Returns the open pull request from this branch of the same repository, if there is one.
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError>;
    /// Opens a pull request.
    fn open(&self, draft: &PullRequestDraft) -> Result<PullRequest, ForgeError>;
    /// Changes the title or the body of an open pull request.
    fn update(&self, known: &PullRequest, change: &PullRequestChange) -> Result<(), ForgeError>;
}

/// A pull request as the forge has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// The number by which the forge names the request.
    pub number: u64,
    /// The page of the request, for a person.
    pub url: String,
    /// The title, perhaps edited by a person.
    pub title: String,
    /// The text, perhaps edited by a person.
    pub body: String,
}

/// The pull request as it should be. The first and the last line of the body are marks that no
/// reader sees; the text between them is ours, and the text around them is somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestDraft {
    /// The branch with the work, in the same repository as `base`.
    pub head: String,
    /// The branch into which the work should be merged.
    pub base: String,
    /// The title.
    pub title: String,
    /// The text between the two marks, marks included.
    pub body: String,
}

/// The parts of an open pull request that are to be changed; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestChange {
    /// The new title, if it changes.
    pub title: Option<String>,
    /// The new text, if it changes.
    pub body: Option<String>,
}

/// The pull request that is open now, and what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The number by which the forge names the request.
    pub number: u64,
    /// The page of the request, for a person.
    pub url: String,
    /// Whether the request is new or was changed.
    pub how: How,
}

/// What was done to a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// There was none, and one was opened.
    Opened,
    /// The open one was changed.
    Updated,
    /// The open one already had this title and text.
    Unchanged,
}

/// Opens the pull request, or brings the open one of that branch up to date. One that was closed
/// stays closed. `unwanted` is called many times a second and ends the wait when it returns true.
pub fn publish(
    forge: &dyn Forge,
    draft: &PullRequestDraft,
    delays: &[Duration],
    unwanted: &dyn Fn() -> bool,
) -> Result<Published, ForgeError> {
    let mut delays = delays.iter();
    loop {
        let error = match publish_once(forge, draft) {
            Ok(published) => return Ok(published),
            Err(error) => error,
        };
        let Some(delay) = delays.next().filter(|_| error.may_pass()) else { return Err(error) };
        let delay = error.pause_wanted().unwrap_or(*delay).max(*delay);
        if delay > PAUSE_MAX {
            return Err(error);
        }
        if !pause(delay, unwanted) {
            return Err(ForgeError::Unwanted);
        }
    }
}

fn publish_once(forge: &dyn Forge, draft: &PullRequestDraft) -> Result<Published, ForgeError> {
    let Some(known) = forge.find(&draft.head)? else {
        let opened = forge.open(draft)?;
        fail::point("pull_request.opened");
        let PullRequest { number, url, .. } = opened;
        return Ok(Published { number, url, how: How::Opened });
    };
    let change = body::change(&known, draft);
    let how = if change == PullRequestChange::default() { How::Unchanged } else { How::Updated };
    if how == How::Updated {
        forge.update(&known, &change)?;
        fail::point("pull_request.updated");
    }
    Ok(Published { number: known.number, url: known.url, how })
}

//! Pull requests at the forge a remote lives on: found by their branch, opened or brought up to
//! date, never merged.
//!
//! Invariant: before anything is opened the forge is asked whether it is there, also after an
//! answer that was lost; so one branch has one open pull request, whatever happened before.

mod address;
mod body;
mod choose;
mod error;
mod gh;
mod gitea;
mod github;
mod gitlab;
mod http;
mod pause;

pub use address::{Address, Kind};
pub use choose::{Asked, Chosen, Site, choose};
pub use error::ForgeError;

use crate::fail;
use pause::pause;
use std::time::Duration;

/// Waits before the second, third … try when the forge is away or too busy.
pub const DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// A forge that wants a longer pause than this is not waited for.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Where pull requests (or merge requests) are kept.
pub trait Forge {
    /// The open one from this branch of the same repository, if there is one.
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError>;
    fn open(&self, draft: &Draft) -> Result<PullRequest, ForgeError>;
    fn update(&self, known: &PullRequest, change: &Change) -> Result<(), ForgeError>;
}

/// One that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
    pub title: String,
    pub body: String,
}

/// What one should say. The first and the last line of the body are marks that no reader sees; what
/// stands between them is ours, and what stands around them is somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Branch names, both in the same repository.
    pub head: String,
    pub base: String,
    pub title: String,
    pub body: String,
}

/// What is to be changed of one that is there; the rest stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub title: Option<String>,
    pub body: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub number: u64,
    pub url: String,
    pub how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Opened,
    Updated,
    /// It already said all of it.
    Unchanged,
}

/// Opens the pull request, or brings the open one of that branch up to date. One that was closed
/// stays closed. `unwanted` is asked many times a second.
pub fn publish(
    forge: &dyn Forge,
    draft: &Draft,
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

fn publish_once(forge: &dyn Forge, draft: &Draft) -> Result<Published, ForgeError> {
    let Some(known) = forge.find(&draft.head)? else {
        let opened = forge.open(draft)?;
        fail::point("pull_request.opened");
        let PullRequest { number, url, .. } = opened;
        return Ok(Published { number, url, how: How::Opened });
    };
    let change = body::change(&known, draft);
    let how = if change == Change::default() { How::Unchanged } else { How::Updated };
    if how == How::Updated {
        forge.update(&known, &change)?;
        fail::point("pull_request.updated");
    }
    Ok(Published { number: known.number, url: known.url, how })
}

//! The names of the files in a commit, up to a limit.

use super::error::GitError;
use super::hub::Hub;
use super::object::Oid;
use std::ops::ControlFlow;

/// The paths of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The paths in git's order.
    pub paths: Vec<String>,
    /// Whether there are more paths than were asked for.
    pub cut: bool,
}

/// Returns whether a commit has something at a path.
pub fn has_path(hub: &Hub, commit: &Oid, path: &str) -> Result<bool, GitError> {
    let listing = hub
        .git(format!("look for {path} in {commit}"))
        .args(["ls-tree", "-z", "--name-only", "--full-tree", commit.as_str(), "--", path])
        .ok()?;
    Ok(!listing.is_empty())
}

/// Lists the paths of a commit, at most `paths_max`.
pub fn list_paths(hub: &Hub, commit: &Oid, paths_max: usize) -> Result<Listing, GitError> {
    let mut listing = Listing::default();
    let mut rest: Vec<u8> = Vec::new();
    hub.git(format!("list the files of {commit}"))
        .args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit.as_str()])
        .stream(&mut |chunk| {
            rest.extend_from_slice(chunk);
            while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                if listing.paths.len() == paths_max {
                    listing.cut = true;
                    return ControlFlow::Break(());
                }
                let path: Vec<u8> = rest.drain(..=end).collect();
                listing.paths.push(String::from_utf8_lossy(&path[..end]).into_owned());
            }
            ControlFlow::Continue(())
        })?;
    Ok(listing)
}

//! The names of the files in a commit and the links among them, up to a limit.

use super::error::GitError;
use super::hub::Hub;
use super::loose::{self, ObjectKind};
use super::merge::read_blob;
use super::object::Oid;
use super::tree_file::TreeFile;
use std::ops::ControlFlow;

/// The mode of a symbolic link.
pub(super) const LINK: u32 = 0o120_000;
/// The bytes of a link's target that are read; the kernel takes no longer one.
pub(super) const LINK_BYTES_MAX: usize = 4096;

/// The paths of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The paths in git's order.
    pub paths: Vec<String>,
    /// Whether there are more paths than were asked for.
    pub cut: bool,
}

/// The symbolic links of a commit or tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkListing {
    /// The path of each link and its target, as it is written.
    pub links: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether there are more links than were asked for.
    pub is_cut: bool,
}

/// Lists the symbolic links of a commit or tree, at most `links_max`.
pub fn links_of(hub: &Hub, commit: &Oid, links_max: usize) -> Result<LinkListing, GitError> {
    let mut listing = LinkListing::default();
    for TreeFile { path, oid, .. } in hub.files_of(commit)?.into_iter().filter(is_link) {
        if listing.links.len() == links_max {
            listing.is_cut = true;
            break;
        }
        let target = match loose::read(hub.dir(), &oid, ObjectKind::Blob) {
            Some(target) => target,
            None => read_blob(hub, &oid, LINK_BYTES_MAX)?.0,
        };
        listing.links.push((path, target));
    }
    Ok(listing)
}

fn is_link(file: &TreeFile) -> bool {
    file.mode == LINK
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

//! Examines a repository before `init` writes to it.

use crate::exit::{CommandFailure, OrFailed};
use autopilot_core::detect::{CONTENTS_WANTED, ProjectFacts};
use autopilot_host::file;
use autopilot_host::git::{GitCommand, GitError, RepoRefusal, UserRepo};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

const CONTENT_BYTES_MAX: u64 = 256 * 1024;
/// The number of ignored files that are searched for local settings; the rest is build output.
const IGNORED_MAX: usize = 10_000;
/// An ignored directory is one entry, so `node_modules` costs nothing.
const IGNORED_ARGS: &[&str] =
    &["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
/// The number of tracked files that are looked at for what tests compare with.
const TRACKED_MAX: usize = 100_000;

/// What `init` knows about the repository.
pub struct FoundProject {
    pub root: Utf8PathBuf,
    pub base_branch: String,
    pub facts: ProjectFacts,
    /// Reasons why a run would not start yet.
    pub warnings: Vec<String>,
}

/// Examines the repository that contains `dir`.
pub fn look(dir: &Utf8Path) -> Result<FoundProject, CommandFailure> {
    let mut warnings = Vec::new();
    let base_branch = base_branch(dir.as_std_path()).unwrap_or_else(|| "main".to_owned());
    match UserRepo::examine(dir.as_std_path(), &base_branch, &[]) {
        Ok(_) => {}
        Err(GitError::Refused(refusal)) if can_be_mended(&refusal) => {
            warnings.push(refusal.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    let root = GitCommand::as_user("find the repository", dir.as_std_path())
        .args(["rev-parse", "--show-toplevel"])
        .line()
        .map_err(GitError::from)?;
    let root = Utf8PathBuf::from(root);
    let facts = facts(&root)?;
    Ok(FoundProject { root, base_branch, facts, warnings })
}

/// The base branch: `main`, else `master`, else the current branch.
pub fn base_branch(dir: &Path) -> Option<String> {
    let ask = |args: &[&str]| {
        let out = GitCommand::as_user("find the base branch", dir)
            .args(args.iter().copied())
            .run()
            .ok()?;
        let line = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        (out.code() == Some(0)).then_some(line)
    };
    let is_there = |name: &&str| {
        ask(&["rev-parse", "--quiet", "--verify", &format!("refs/heads/{name}")]).is_some()
    };
    let usual = ["main", "master"].into_iter().find(is_there).map(str::to_owned);
    usual.or_else(|| ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])).filter(|n| !n.is_empty())
}

/// Whether the user can fix the reason in the configuration or the clone.
fn can_be_mended(refusal: &RepoRefusal) -> bool {
    match refusal {
        RepoRefusal::BranchInTheWay { .. }
        | RepoRefusal::FilterNotAllowed { .. }
        | RepoRefusal::FilterUnknown { .. }
        | RepoRefusal::NoBaseBranch { .. }
        | RepoRefusal::Shallow
        | RepoRefusal::PartialClone
        | RepoRefusal::SubmoduleMissing { .. }
        | RepoRefusal::SubmoduleIncomplete { .. }
        | RepoRefusal::SubmodulePath { .. } => true,
        RepoRefusal::GitTooOld { .. }
        | RepoRefusal::NotARepository { .. }
        | RepoRefusal::ForeignOwner { .. }
        | RepoRefusal::Bare { .. }
        | RepoRefusal::NoCommits { .. } => false,
    }
}

fn facts(root: &Utf8Path) -> Result<ProjectFacts, CommandFailure> {
    let failed = || format!("cannot look into `{root}`");
    let mut files = BTreeSet::new();
    for entry in root.as_std_path().read_dir().or_failed(failed())? {
        let entry = entry.or_failed(failed())?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        files.insert(if entry.path().is_dir() { format!("{name}/") } else { name });
    }
    let content = |name: &&str| {
        let bytes = file::read_capped(root.join(name).as_std_path(), CONTENT_BYTES_MAX).ok()?;
        Some(((*name).to_owned(), String::from_utf8_lossy(&bytes).into_owned()))
    };
    let contents: BTreeMap<String, String> = CONTENTS_WANTED.iter().filter_map(content).collect();
    let ignored = listed(root, "list ignored files", IGNORED_ARGS, IGNORED_MAX)?;
    let tracked = listed(root, "list tracked files", &["ls-files", "-z"], TRACKED_MAX)?;
    Ok(ProjectFacts { files, contents, ignored, tracked })
}

/// The paths that git lists, at most so many.
fn listed(
    root: &Utf8Path,
    doing: &str,
    args: &[&str],
    paths_max: usize,
) -> Result<BTreeSet<String>, CommandFailure> {
    let mut found = BTreeSet::new();
    let mut held = Vec::new();
    GitCommand::as_user(doing, root.as_std_path())
        .args(args.iter().copied())
        .stream(&mut |bytes| {
            held.extend_from_slice(bytes);
            while let Some(end) = held.iter().position(|byte| *byte == 0) {
                let rest = held.split_off(end + 1);
                held.truncate(end);
                if let Ok(path) = String::from_utf8(std::mem::replace(&mut held, rest)) {
                    found.insert(path);
                }
            }
            if found.len() < paths_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .map_err(GitError::from)?;
    Ok(found)
}

//! Merging two commits without a working tree, and the conflicts when git can't do it alone.

use super::error::GitError;
use super::hub::Hub;
use super::object::Oid;

/// The most conflicted paths that are read.
const CONFLICTS_MAX: usize = 200;
/// The most messages of git that are kept.
const MESSAGES_MAX: usize = 200;
/// How much of each side of a conflict is read.
const SIDE_BYTES_MAX: usize = 16 * 1024;

/// The result of a merge.
#[derive(Clone, Debug)]
pub enum Merged {
    /// The merged tree.
    Clean(Oid),
    /// The conflicts that are left.
    Conflicted(Box<Conflicts>),
}

/// The paths that git could not merge alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts {
    /// The commit that was merged onto.
    pub ours: Oid,
    /// The commit that was merged.
    pub theirs: Oid,
    /// The files as git leaves them: merged where it could, with conflict markers where not.
    pub tree: Oid,
    /// The conflicted paths, up to a limit.
    pub paths: Vec<Conflict>,
    /// How many conflicted paths are not listed.
    pub more: usize,
    /// Git's messages, such as `CONFLICT (content): Merge conflict in a.txt`.
    pub messages: Vec<String>,
}

impl Conflicts {
    /// Returns the conflicts as `git status` would list them.
    pub fn status(&self) -> String {
        let mut text = String::from("Unmerged paths:\n");
        for conflict in &self.paths {
            let path = String::from_utf8_lossy(&conflict.path);
            text.push_str(&format!("\t{:<17}{path}\n", format!("{}:", conflict.state())));
        }
        if self.more > 0 {
            text.push_str(&format!("\t… and {} more\n", self.more));
        }
        text
    }
}

/// One conflicted path with its three sides, for the prompt of a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The path from the top of the repository.
    pub path: Vec<u8>,
    /// The file in the common ancestor, if it was there.
    pub base: Option<ConflictSide>,
    /// The file in the commit that was merged onto, if it is there.
    pub ours: Option<ConflictSide>,
    /// The file in the commit that was merged, if it is there.
    pub theirs: Option<ConflictSide>,
}

/// One side of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictSide {
    /// The mode, as git writes it.
    pub mode: String,
    /// The object name of the content.
    pub oid: Oid,
    /// The content, or `(binary)`.
    pub text: String,
    /// Whether the text was cut.
    pub cut: bool,
}

impl Conflict {
    /// Returns the kind of conflict in the words of `git status`.
    pub fn state(&self) -> &'static str {
        match (&self.base, &self.ours, &self.theirs) {
            (_, None, None) => "both deleted",
            (None, Some(_), None) => "added by us",
            (None, None, Some(_)) => "added by them",
            (None, Some(_), Some(_)) => "both added",
            (Some(_), Some(_), None) => "deleted by them",
            (Some(_), None, Some(_)) => "deleted by us",
            (Some(_), Some(_), Some(_)) => "both modified",
        }
    }
}

/// Merges two commits without a working tree.
pub(crate) fn merge_trees(hub: &Hub, ours: &Oid, theirs: &Oid) -> Result<Merged, GitError> {
    let out = hub
        .git(format!("merge {theirs} onto {ours}"))
        .args(["merge-tree", "--write-tree", "-z", "--allow-unrelated-histories"])
        .args([ours.as_str(), theirs.as_str()])
        .run()?
        .expect_code(&[0, 1])?;
    let mut fields = out.stdout.split(|b| *b == 0);
    let tree = Oid::from_bytes(fields.next().unwrap_or_default().trim_ascii())?;
    if out.code() == Some(0) {
        return Ok(Merged::Clean(tree));
    }
    let (paths, more) = read_conflicts(hub, &mut fields)?;
    let (ours, theirs, messages) = (ours.clone(), theirs.clone(), read_messages(fields));
    Ok(Merged::Conflicted(Box::new(Conflicts { ours, theirs, tree, paths, more, messages })))
}

/// Reads records of a count, as many paths, a kind and a sentence. Only conflicts are kept.
fn read_messages<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(count) = fields.next().and_then(|field| std::str::from_utf8(field).ok()) {
        let Ok(count) = count.parse::<usize>() else { break };
        let mut rest = fields.by_ref().skip(count);
        let (Some(kind), Some(text)) = (rest.next(), rest.next()) else { break };
        if kind.starts_with(b"CONFLICT") && messages.len() < MESSAGES_MAX {
            messages.push(String::from_utf8_lossy(text).trim_end().to_owned());
        }
    }
    messages
}

/// Reads lines of `<mode> <object> <stage>\t<path>`, grouped by path.
fn read_conflicts<'a>(
    hub: &Hub,
    fields: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<(Vec<Conflict>, usize), GitError> {
    let mut conflicts: Vec<Conflict> = Vec::new();
    let mut paths_seen = 0;
    let mut last: Option<Vec<u8>> = None;
    for field in fields.take_while(|field| !field.is_empty()) {
        let Some(tab) = field.iter().position(|b| *b == b'\t') else { continue };
        let path = field.get(tab + 1..).unwrap_or_default().to_vec();
        if last.as_ref() != Some(&path) {
            paths_seen += 1;
            last = Some(path.clone());
            if paths_seen <= CONFLICTS_MAX {
                conflicts.push(Conflict { path, base: None, ours: None, theirs: None });
            }
        }
        if paths_seen > CONFLICTS_MAX {
            continue;
        }
        let head = String::from_utf8_lossy(field.get(..tab).unwrap_or_default()).into_owned();
        let mut words = head.split(' ');
        let (Some(mode), Some(oid), Some(stage)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let side = read_side(hub, mode, &Oid::parse(oid)?)?;
        if let Some(conflict) = conflicts.last_mut() {
            match stage {
                "1" => conflict.base = Some(side),
                "2" => conflict.ours = Some(side),
                _ => conflict.theirs = Some(side),
            }
        }
    }
    Ok((conflicts, paths_seen.saturating_sub(CONFLICTS_MAX)))
}

fn read_side(hub: &Hub, mode: &str, oid: &Oid) -> Result<ConflictSide, GitError> {
    let (bytes, cut) = if mode == "160000" {
        (oid.to_string().into_bytes(), false)
    } else {
        read_blob(hub, oid, SIDE_BYTES_MAX)?
    };
    let text = if bytes.iter().take(8000).any(|b| *b == 0) {
        "(binary)".to_owned()
    } else {
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(ConflictSide { mode: mode.to_owned(), oid: oid.clone(), text, cut })
}

/// Returns the first bytes of a blob and whether there are more; git is stopped when they are read.
pub(crate) fn read_blob(
    hub: &Hub,
    oid: &Oid,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), GitError> {
    use std::ops::ControlFlow;
    let mut bytes = Vec::new();
    hub.git(format!("read {oid}")).args(["cat-file", "blob", oid.as_str()]).stream(
        &mut |chunk| {
            bytes.extend_from_slice(chunk);
            if bytes.len() > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    )?;
    let cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    Ok((bytes, cut))
}

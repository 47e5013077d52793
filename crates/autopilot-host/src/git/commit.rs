//! The controller's commits: one per task, found again by its trailer after a crash.

use super::capture::AttemptName;
use super::command::GitCommand;
use super::error::GitError;
use super::hub::{ExpectedRef, Hub};
use super::identity::CommitIdentity;
use super::loose::{self, ObjectKind};
use super::name::ref_component;
use super::object::Oid;
use crate::fail;

/// The trailer that names the attempt of a commit.
pub(crate) const ATTEMPT: &str = "Autopilot-Attempt";
/// The trailer that names the run of a commit.
pub(crate) const RUN: &str = "Autopilot-Run";
/// The trailer that names the task of a commit.
pub(crate) const TASK: &str = "Autopilot-Task";

/// The facts of a task's commit.
#[derive(Clone, Debug)]
pub struct CommitRequest<'a> {
    /// The id of the run.
    pub run: &'a str,
    /// The attempt whose work is committed.
    pub attempt: AttemptName<'a>,
    /// The short branch name, such as `autopilot/<task>`.
    pub branch: &'a str,
    /// The commit on which the work is based.
    pub parent: &'a Oid,
    /// The files of the commit.
    pub tree: &'a Oid,
    /// The message, without trailers.
    pub message: &'a str,
    /// Author and committer.
    pub identity: &'a CommitIdentity,
    /// The time of the commit, in seconds since 1970.
    pub now: i64,
}

/// A commit of a task that is in the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedTask {
    /// The commit.
    pub commit: Oid,
    /// Whether the commit of this attempt was there already and nothing was done.
    pub already: bool,
}

/// Commits a tree on the task's branch in the hub. A commit of the same attempt is returned as it is;
/// one of an earlier attempt is replaced, and stays reachable under a salvage ref.
pub fn commit_task(hub: &Hub, request: &CommitRequest<'_>) -> Result<CommittedTask, GitError> {
    let name = format!("refs/heads/{}", request.branch);
    let old = hub.resolve(&name)?;
    if let Some(tip) = &old
        && let Some(commit) =
            find_attempt(hub, tip, Some(request.parent), (request.run, request.attempt.id))?
    {
        return Ok(CommittedTask { commit, already: true });
    }
    let new = NewCommit {
        tree: request.tree,
        parents: std::slice::from_ref(request.parent),
        message: &attempt_trailers(request.message, request.run, request.attempt),
        identity: request.identity,
        now: request.now,
    };
    let commit = write_commit(hub, &new)?;
    fail::point("commit.written");
    if let Some(tip) = old.as_ref().filter(|tip| *tip != request.parent) {
        keep_replaced(hub, request.attempt.task, tip)?;
    }
    hub.set_ref(&name, &commit, ExpectedRef::of(&old))?;
    fail::point("commit.done");
    Ok(CommittedTask { commit, already: false })
}

/// Keeps the commit of an earlier attempt under a salvage ref.
fn keep_replaced(hub: &Hub, task: &str, tip: &Oid) -> Result<(), GitError> {
    let name = format!("refs/autopilot/salvage/{}/replaced-{}", ref_component(task), tip.short());
    match hub.set_ref(&name, tip, ExpectedRef::Absent) {
        Err(GitError::RefMoved { found, .. }) if found.as_ref() == Some(tip) => Ok(()),
        other => other,
    }
}

/// Returns the commit on the first-parent line from `tip` back to `stop` that carries the trailers
/// of the attempt and of its run: attempts of two runs may have the same number.
pub(crate) fn find_attempt(
    hub: &Hub,
    tip: &Oid,
    stop: Option<&Oid>,
    (run, attempt): (&str, &str),
) -> Result<Option<Oid>, GitError> {
    let mut git = hub
        .git(format!("look for attempt {attempt}"))
        .args(["log", "-z", "--first-parent", "--no-show-signature", "--no-color", "--no-notes"])
        .arg(format!("--format=%H%n%(trailers:key={RUN},key={ATTEMPT},unfold)"))
        .arg(tip.as_str());
    if let Some(stop) = stop {
        git = git.arg(format!("^{stop}"));
    }
    let out = git.ok()?;
    for record in out.split(|b| *b == 0) {
        let text = String::from_utf8_lossy(record);
        let mut lines = text.lines();
        let Some(commit) = lines.next().filter(|line| !line.is_empty()) else { continue };
        let ours = [format!("{RUN}: {run}"), format!("{ATTEMPT}: {attempt}")];
        let lines: Vec<&str> = lines.map(str::trim).collect();
        if ours.iter().all(|trailer| lines.contains(&trailer.as_str())) {
            return Ok(Some(Oid::parse(commit)?));
        }
    }
    Ok(None)
}

/// The content of a commit.
pub(crate) struct NewCommit<'a> {
    pub tree: &'a Oid,
    pub parents: &'a [Oid],
    pub message: &'a str,
    pub identity: &'a CommitIdentity,
    pub now: i64,
}

/// What a commit says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommitHead {
    pub tree: Oid,
    pub parents: Vec<Oid>,
    /// The message with its trailers; text that is not UTF-8 is replaced.
    pub message: String,
}

impl CommitHead {
    /// Reads the content of a commit.
    pub fn read(content: &[u8]) -> Option<CommitHead> {
        let text = String::from_utf8_lossy(content);
        let (head, message) = text.split_once("\n\n")?;
        let mut lines = head.lines();
        let tree = Oid::parse(lines.next()?.strip_prefix("tree ")?).ok()?;
        let parents = lines.map_while(|line| line.strip_prefix("parent "));
        let parents = parents.map(|parent| Oid::parse(parent).ok()).collect::<Option<_>>()?;
        Some(CommitHead { tree, parents, message: message.to_owned() })
    }
}

/// Writes a commit. The same input gives the same commit: author, committer and time are all given.
pub(crate) fn write_commit(hub: &Hub, new: &NewCommit<'_>) -> Result<Oid, GitError> {
    let is_loose = |oid: &Oid, kind| loose::read(hub.dir(), oid, kind).is_some();
    // Git looks at what is not plainly there, and refuses what is missing.
    let is_founded = is_loose(new.tree, ObjectKind::Tree)
        && new.parents.iter().all(|parent| is_loose(parent, ObjectKind::Commit));
    let written = content_of(new).filter(|_| is_founded).map(|content| {
        let digits = new.tree.as_str().len();
        loose::write(hub.dir(), ObjectKind::Commit, content.as_bytes(), digits)
    });
    match written {
        Some(Ok(commit)) => Ok(commit),
        // Git says what is in the way.
        Some(Err(_)) | None => write_commit_by_git(hub, new),
    }
}

/// Returns the content of a commit as git would write it; `None` where git would change a name or an
/// address.
fn content_of(new: &NewCommit<'_>) -> Option<String> {
    if fail::is_git_alone() || new.message.is_empty() {
        return None;
    }
    let CommitIdentity { name, email } = new.identity;
    let is_kept = |text: &str| {
        let is_plain = |c: char| !c.is_control() && !matches!(c, '<' | '>');
        let is_firm =
            |c: Option<char>| c.is_some_and(|c| !c.is_ascii() || c.is_ascii_alphanumeric());
        text.chars().all(is_plain) && is_firm(text.chars().next()) && is_firm(text.chars().last())
    };
    if !is_kept(name) || !is_kept(email) {
        return None;
    }
    let parents: String = new.parents.iter().map(|parent| format!("parent {parent}\n")).collect();
    let who = format!("{name} <{email}> {} +0000", new.now.max(0));
    let NewCommit { tree, message, .. } = new;
    Some(format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\n{message}"))
}

fn write_commit_by_git(hub: &Hub, new: &NewCommit<'_>) -> Result<Oid, GitError> {
    git_commit(hub.git(format!("commit tree {}", new.tree)), new).oid()
}

fn git_commit(git: GitCommand, new: &NewCommit<'_>) -> GitCommand {
    let date = format!("@{} +0000", new.now.max(0));
    let mut git = git
        .env("GIT_AUTHOR_NAME", &new.identity.name)
        .env("GIT_AUTHOR_EMAIL", &new.identity.email)
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_NAME", &new.identity.name)
        .env("GIT_COMMITTER_EMAIL", &new.identity.email)
        .env("GIT_COMMITTER_DATE", &date)
        .args(["commit-tree", new.tree.as_str()]);
    for parent in new.parents {
        git = git.args(["-p", parent.as_str()]);
    }
    git.args(["-F", "-"]).stdin(new.message)
}

/// Returns a message with the trailers by which [`find_attempt`] finds the commit.
pub(crate) fn attempt_trailers(message: &str, run: &str, attempt: AttemptName<'_>) -> String {
    trailers(message, &[(RUN, run), (TASK, attempt.task), (ATTEMPT, attempt.id)])
}

/// Returns a message with a separate trailer block. Text of an agent can't end in a block that ours
/// would join: trailers in it are in another paragraph and so not trailers to git.
pub(crate) fn trailers(message: &str, pairs: &[(&str, &str)]) -> String {
    let body: String = message.replace('\0', " ");
    let mut text = format!("{}\n\n", body.trim_end());
    for (key, value) in pairs {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text.push_str(&format!("{key}: {value}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_byte_for_byte_the_one_that_git_writes() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("r.git");
        let init = GitCommand::bare_minimum("make a repository");
        init.args(["init", "-q", "--bare"]).arg(&dir).ok().unwrap();
        let tree = loose::write(&dir, ObjectKind::Tree, b"", 40).unwrap();
        let identity =
            |name: &str, email: &str| CommitIdentity { name: name.into(), email: email.into() };
        let who = [
            identity("Ada", "ada@example.org"),
            identity("Äda von Berg", "a@b"),
            identity("Dr. \"Ada\"", "a@b"),
            identity(".Ada,", "<a@b>"),
        ];
        let mut parents: Vec<Oid> = Vec::new();
        let mut here = 0;
        for identity in &who {
            for message in ["one line", "a\n\nb\n", "ends twice\n\n", "tab\tand ünicode\r\n", " "]
            {
                let new = NewCommit { tree: &tree, parents: &parents, message, identity, now: 17 };
                let by_git = GitCommand::isolated("commit", &dir);
                let by_git = git_commit(by_git, &new).oid().unwrap();
                if let Some(content) = content_of(&new) {
                    let named = loose::name(ObjectKind::Commit, content.as_bytes(), 40);
                    assert_eq!(named, Some(by_git.clone()), "{identity:?} {message:?}");
                    here += 1;
                }
                parents = vec![by_git];
            }
        }
        assert_eq!(here, 10, "the others have names that git changes");
        let head = loose::read(&dir, parents.first().unwrap(), ObjectKind::Commit).unwrap();
        let head = CommitHead::read(&head).unwrap();
        assert_eq!((head.tree, head.parents.len()), (tree, 1));
    }

    #[test]
    fn a_value_with_a_line_end_can_not_add_a_trailer() {
        let text = trailers("Title\n\nAutopilot-Attempt: forged\n", &[("K", "v\nEvil: x")]);
        assert_eq!(text, "Title\n\nAutopilot-Attempt: forged\n\nK: v Evil: x\n");
    }
}

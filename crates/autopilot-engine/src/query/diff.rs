//! The change of a run or a task, read from the hub.

use super::{KnownRun, NamedEntry, QueryError, RunArchive};
use crate::place::StatePaths;
use autopilot_core::state::Task;
use autopilot_host::checkout;
use autopilot_host::git::{GitCommand, GitError, Oid};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Two states of the tree and the repository that has both.
pub struct TreeChange {
    store: PathBuf,
    from: Oid,
    to: Oid,
}

/// The form in which a change is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeForm {
    Patch,
    Stat,
}

/// The change of a run or a task; without an id, of the newest run.
pub fn change_of(archive: &RunArchive, id: Option<&str>) -> Result<TreeChange, QueryError> {
    let store = objects(&archive.place)?;
    let (from, to) = match archive.named(id)? {
        NamedEntry::Run(known) => of_run(&known, &store)?,
        NamedEntry::Task(known, id) => of_task(known.state.task(id))?,
    };
    Ok(TreeChange { store, from, to })
}

impl TreeChange {
    fn git(&self) -> GitCommand {
        GitCommand::isolated(format!("compare {} with {}", self.from, self.to), &self.store).args([
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ])
    }

    /// Streams the change as git writes it, until `take` has had enough.
    pub fn stream(
        &self,
        form: ChangeForm,
        take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let form = match form {
            ChangeForm::Patch => "--patch",
            ChangeForm::Stat => "--stat=100",
        };
        let (from, to) = (self.from.as_str(), self.to.as_str());
        let git = self.git().args(["--find-renames", form, from, to, "--"]);
        git.stream(take).map_err(GitError::from)?;
        Ok(())
    }

    /// The changed files with their line counts; a binary file has none.
    pub fn counted(&self) -> Result<CountedChange, QueryError> {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        let git = self.git().args(["--no-renames", "--numstat", "-z", from, to, "--"]);
        let out = git.ok().map_err(GitError::from)?;
        let text = String::from_utf8_lossy(&out);
        let files = text.split('\0').filter_map(file).collect();
        Ok(CountedChange { from: from.to_owned(), to: to.to_owned(), files })
    }
}

/// The size of a change, as `diff --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct CountedChange {
    pub from: String,
    pub to: String,
    pub files: Vec<CountedFile>,
}

/// A changed file with its line counts; a binary file has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountedFile {
    pub path: String,
    pub insertions: Option<u64>,
    pub deletions: Option<u64>,
}

fn file(line: &str) -> Option<CountedFile> {
    let mut parts = line.splitn(3, '\t');
    let mut count = || parts.next().map(|text| text.parse().ok());
    let (insertions, deletions) = (count()?, count()?);
    Some(CountedFile { path: parts.next()?.to_owned(), insertions, deletions })
}

/// The change of a task so far, at most `bytes_max` of it.
pub fn text_of(place: &StatePaths, task: &Task, bytes_max: usize) -> Result<String, QueryError> {
    let (from, to) = of_task(task)?;
    let change = TreeChange { store: objects(place)?, from, to };
    let mut text = Vec::new();
    change.stream(ChangeForm::Patch, &mut |bytes| {
        let room = bytes_max.saturating_sub(text.len());
        text.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if bytes.len() > room { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let cut = if text.len() >= bytes_max { "\n… the rest is left out" } else { "" };
    Ok(format!("{}{cut}", String::from_utf8_lossy(&text)))
}

/// The change of a branch in the user's repository in one line; `None` where there is no branch.
pub fn diffstat(git_dir: &Path, base: &str, branch: &str) -> Option<String> {
    let range = format!("{base}..refs/heads/{branch}");
    GitCommand::isolated("measure the change", git_dir)
        .args(["diff", "--shortstat", "--no-ext-diff", "--no-textconv", "--end-of-options"])
        .arg(range)
        .line()
        .ok()
        .map(|line| line.trim().to_owned())
}

/// The hub, or else the user's repository, which has the published branches.
fn objects(place: &StatePaths) -> Result<PathBuf, QueryError> {
    let hub = place.state.join("hub.git").into_std_path_buf();
    if hub.is_dir() {
        return Ok(hub);
    }
    let found = checkout::find(place.root.as_std_path());
    found
        .map(|checkout| checkout.common_dir)
        .ok_or_else(|| QueryError::NotARepository { path: place.root.to_string() })
}

fn of_run(known: &KnownRun, store: &Path) -> Result<(Oid, Oid), QueryError> {
    let run = &known.state.run;
    let name = format!("refs/heads/{}", run.branch);
    let found = GitCommand::isolated(format!("find branch {}", run.branch), store)
        .args(["rev-parse", "--quiet", "--verify", "--end-of-options", &name])
        .run()
        .map_err(GitError::from)?;
    if found.code() != Some(0) {
        let what = format!("run {} has no commit yet on branch {}", known.run.id, run.branch);
        let help = "`autopilot diff <task>` shows the work on a task that is not merged yet";
        return Err(QueryError::NothingChanged { what, help: help.to_owned() });
    }
    let tip = String::from_utf8_lossy(&found.stdout);
    Ok((Oid::parse(&run.base)?, Oid::parse(tip.trim())?))
}

/// The base and the commit of a task, or the tree its work is at.
fn of_task(task: &Task) -> Result<(Oid, Oid), QueryError> {
    match (&task.base, task.commit.as_ref().or(task.tree.as_ref())) {
        (Some(base), Some(to)) => Ok((Oid::parse(base)?, Oid::parse(to)?)),
        (_, None) | (None, _) => {
            let what = format!("task {} has changed nothing yet", task.name());
            let help = format!("`autopilot show {}` shows what it did so far", task.name());
            Err(QueryError::NothingChanged { what, help })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_binary_file_are_not_counted() {
        let told = |line| file(line).unwrap();
        assert_eq!(told("3\t1\ta b.rs").insertions, Some(3));
        assert_eq!(told("-\t-\tlogo.png").deletions, None);
        assert!(file("").is_none());
    }
}

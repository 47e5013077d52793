//! `autopilot diff`: what a run or a task changed, read from the hub, which nobody else writes.

use super::past::{Named, Past, Told};
use super::{Done, done};
use crate::cli::{Diff, Global};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::state::Task;
use autopilot_engine::place::Place;
use autopilot_host::checkout;
use autopilot_host::git::{Git, GitError, Oid};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub fn diff(global: &Global, args: &Diff) -> Done {
    let past = Past::must(global)?;
    let store = objects(&past.place)?;
    let (from, to) = match past.named(args.id.as_deref())? {
        Named::Run(told) => of_run(&told, &store)?,
        Named::Task(told, id) => of_task(told.state.task(id))?,
    };
    if global.json {
        terminal::json(&counted(&store, &from, &to)?);
        return done();
    }
    print(&store, &from, &to, args.stat)?;
    done()
}

/// The hub; without it, the user's repository still has what was published.
fn objects(place: &Place) -> Result<PathBuf, Failure> {
    let hub = place.state.join("hub.git").into_std_path_buf();
    if hub.is_dir() {
        return Ok(hub);
    }
    let found = checkout::find(place.root.as_std_path());
    found
        .map(|checkout| checkout.common_dir)
        .ok_or_else(|| Failure::usage(format!("`{}` is not inside a git repository", place.root)))
}

fn of_run(told: &Told, store: &std::path::Path) -> Result<(Oid, Oid), Failure> {
    let run = &told.state.run;
    let name = format!("refs/heads/{}", run.branch);
    let found = Git::isolated(format!("find branch {}", run.branch), store)
        .args(["rev-parse", "--quiet", "--verify", "--end-of-options", &name])
        .run()
        .map_err(GitError::from)?;
    if found.code() != Some(0) {
        let text = format!("run {} has no commit yet on branch {}", told.run.id, run.branch);
        return Err(Failure::usage(text)
            .help("`autopilot diff <task>` shows the work on a task that is not merged yet"));
    }
    let tip = String::from_utf8_lossy(&found.stdout);
    Ok((Oid::parse(&run.base)?, Oid::parse(tip.trim())?))
}

/// The commit of a task, or the tree its work is at.
fn of_task(task: &Task) -> Result<(Oid, Oid), Failure> {
    match (&task.base, task.commit.as_ref().or(task.tree.as_ref())) {
        (Some(base), Some(to)) => Ok((Oid::parse(base)?, Oid::parse(to)?)),
        (_, None) | (None, _) => {
            Err(Failure::usage(format!("task {} has changed nothing yet", task.name()))
                .help(format!("`autopilot show {}` tells what it did so far", task.name())))
        }
    }
}

/// What a task has changed so far, at most so many bytes of it.
pub fn text_of(place: &Place, task: &Task, bytes_max: usize) -> Result<String, Failure> {
    let store = objects(place)?;
    let (from, to) = of_task(task)?;
    let mut text = Vec::new();
    Git::isolated(format!("compare {from} with {to}"), &store)
        .args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--patch"])
        .args([from.as_str(), to.as_str(), "--"])
        .stream(&mut |bytes| {
            let room = bytes_max.saturating_sub(text.len());
            text.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            if bytes.len() > room { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(GitError::from)?;
    let cut = if text.len() >= bytes_max { "\n… the rest is left out" } else { "" };
    Ok(format!("{}{cut}", String::from_utf8_lossy(&text)))
}

/// Files with their counted lines; those of a binary file can't be counted.
fn counted(store: &Path, from: &Oid, to: &Oid) -> Result<Value, Failure> {
    let out = Git::isolated(format!("compare {from} with {to}"), store)
        .args(["diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--numstat", "-z"])
        .args([from.as_str(), to.as_str(), "--"])
        .ok()
        .map_err(GitError::from)?;
    let text = String::from_utf8_lossy(&out);
    let files: Vec<Value> = text.split('\0').filter_map(file).collect();
    Ok(json!({ "from": from.as_str(), "to": to.as_str(), "files": files }))
}

fn file(line: &str) -> Option<Value> {
    let mut parts = line.splitn(3, '\t');
    let (insertions, deletions, path) = (parts.next()?, parts.next()?, parts.next()?);
    let count = |text: &str| text.parse::<u64>().ok();
    Some(json!({
        "path": path, "insertions": count(insertions), "deletions": count(deletions),
    }))
}

fn print(store: &std::path::Path, from: &Oid, to: &Oid, stat: bool) -> Result<(), Failure> {
    let form: &[&str] = if stat { &["--stat=100"] } else { &["--patch"] };
    let to_terminal = terminal::stdout_is_terminal();
    let mut held = Vec::new();
    Git::isolated(format!("compare {from} with {to}"), store)
        .args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"])
        .args(form.iter().copied())
        .args([from.as_str(), to.as_str(), "--"])
        .stream(&mut |bytes| {
            if to_terminal {
                say_lines(&mut held, bytes);
            } else {
                // Byte for byte, so that `git apply` takes it.
                terminal::raw(bytes);
            }
            ControlFlow::Continue(())
        })
        .map_err(GitError::from)?;
    if !held.is_empty() {
        terminal::say(&String::from_utf8_lossy(&held));
    }
    Ok(())
}

/// Whole lines only: a character may be cut in two between two reads.
fn say_lines(held: &mut Vec<u8>, bytes: &[u8]) {
    held.extend_from_slice(bytes);
    if let Some(end) = held.iter().rposition(|byte| *byte == b'\n') {
        let rest = held.split_off(end + 1);
        held.truncate(end);
        terminal::say(&String::from_utf8_lossy(held));
        *held = rest;
    }
}

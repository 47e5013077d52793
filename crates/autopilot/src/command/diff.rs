//! `autopilot diff`: the changes of a run or a task. On a terminal, secrets are hidden; elsewhere the
//! bytes are a patch for `git apply`, and one with the value of a known secret is refused.

use super::{Done, done, ground, past};
use crate::cli::Global;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_engine::leak::withheld;
use autopilot_engine::query::diff::{ChangeForm, TreeChange, change_of};
use autopilot_engine::redaction::KnownSecrets;
use autopilot_host::git::{FoundLeak, FoundPlace};
use autopilot_host::redact::Redactor;
use autopilot_host::secret::{SecretFinder, SecretSearch};
use std::ops::ControlFlow;

/// Prints the changes.
pub fn diff(global: &Global, id: Option<&str>, stat: bool) -> Done {
    let archive = past::must(global)?;
    let change = change_of(&archive, id)?;
    if global.json {
        terminal::json(&change.counted()?);
        return done();
    }
    let form = if stat { ChangeForm::Stat } else { ChangeForm::Patch };
    let (known, patterns) = ground::secrets(&archive.place);
    if terminal::stdout_is_terminal() {
        show(&change, form, &known.redactor(&patterns)?)?;
    } else {
        print(&change, form, &known)?;
    }
    done()
}

/// Shows the change to a person.
fn show(change: &TreeChange, form: ChangeForm, redactor: &Redactor) -> Result<(), CommandFailure> {
    let mut stream = redactor.stream();
    let (mut clean, mut held) = (Vec::new(), Vec::new());
    change.stream(form, &mut |bytes| {
        clean.clear();
        stream.push(bytes, &mut clean);
        say_lines(&mut held, &clean);
        ControlFlow::Continue(())
    })?;
    stream.finish(&mut held);
    if !held.is_empty() {
        terminal::say(&String::from_utf8_lossy(&held));
    }
    Ok(())
}

/// Prints the bytes unchanged, so that `git apply` accepts them.
fn print(
    change: &TreeChange,
    form: ChangeForm,
    known: &KnownSecrets,
) -> Result<(), CommandFailure> {
    let finder = known.finder()?;
    let mut added = AddedLines { search: finder.search(), is_added: None };
    change.stream(form, &mut |bytes| {
        added.push(bytes);
        ControlFlow::Continue(())
    })?;
    if let Some(why) = withheld(&leaks(&finder, added.search)) {
        return Err(CommandFailure::failed(format!("the change is not printed: {why}"))
            .hint("on a terminal it is shown, without the value"));
    }
    change.stream(form, &mut |bytes| {
        terminal::raw(bytes);
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn leaks(finder: &SecretFinder, search: SecretSearch<'_>) -> Vec<FoundLeak> {
    let place = FoundPlace::Text { what: "the patch".to_owned() };
    let mut leaks: Vec<FoundLeak> = Vec::new();
    for hit in search.finish() {
        let secret = finder.name(hit.secret).to_owned();
        if !leaks.iter().any(|known| known.secret == secret) {
            leaks.push(FoundLeak { secret, form: hit.form, place: place.clone() });
        }
    }
    leaks
}

/// A search in the lines that a patch adds.
struct AddedLines<'a> {
    search: SecretSearch<'a>,
    /// Whether the unfinished line is an added one.
    is_added: Option<bool>,
}

impl AddedLines<'_> {
    fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if *self.is_added.get_or_insert(part.starts_with(b"+")) {
                self.search.push(part);
            }
            if part.ends_with(b"\n") {
                self.is_added = None;
            }
        }
    }
}

/// Prints whole lines only, because a read may end in the middle of a character.
fn say_lines(held: &mut Vec<u8>, bytes: &[u8]) {
    held.extend_from_slice(bytes);
    if let Some(end) = held.iter().rposition(|byte| *byte == b'\n') {
        let rest = held.split_off(end + 1);
        held.truncate(end);
        terminal::say(&String::from_utf8_lossy(held));
        *held = rest;
    }
}

//! `autopilot diff`: the changes of a run or a task.

use super::{Done, done, past};
use crate::cli::Global;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_engine::query::diff::{ChangeForm, TreeChange, change_of};
use std::ops::ControlFlow;

/// Prints the changes.
pub fn diff(global: &Global, id: Option<&str>, stat: bool) -> Done {
    let change = change_of(&past::must(global)?, id)?;
    if global.json {
        terminal::json(&change.counted()?);
        return done();
    }
    print(&change, if stat { ChangeForm::Stat } else { ChangeForm::Patch })?;
    done()
}

fn print(change: &TreeChange, form: ChangeForm) -> Result<(), CommandFailure> {
    let to_terminal = terminal::stdout_is_terminal();
    let mut held = Vec::new();
    change.stream(form, &mut |bytes| {
        if to_terminal {
            say_lines(&mut held, bytes);
        } else {
            // The bytes are printed unchanged, so that `git apply` accepts them.
            terminal::raw(bytes);
        }
        ControlFlow::Continue(())
    })?;
    if !held.is_empty() {
        terminal::say(&String::from_utf8_lossy(&held));
    }
    Ok(())
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

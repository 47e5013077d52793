//! The faults of a plan and the remarks on it: gathered, short, and limited.

use crate::number::count;
use std::fmt;

/// The number of faults that are named at once; the rest is counted.
pub const FAULTS_MAX: usize = 40;
/// The number of remarks on a plan without faults; the rest is counted.
pub const NOTES_MAX: usize = 50;
/// The number of letters that a message quotes of a text.
const SHOWN_CHARS_MAX: usize = 80;
/// The number of names that a message lists.
const LISTED_MAX: usize = 10;

/// One fault of a plan or a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFault {
    /// A JSON pointer to the faulty value; empty for the whole.
    pub pointer: String,
    /// The description of the fault, and what to do about it.
    pub what: String,
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "{}: {}", self.pointer, self.what)
    }
}

#[derive(Default)]
pub(crate) struct PlanFaults {
    kept: Vec<PlanFault>,
    left_out: usize,
}

impl PlanFaults {
    pub(crate) fn add(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.add_with(pointer, || what.into());
    }

    /// Adds a fault whose message is costly to write; it is not written if the fault is only
    /// counted.
    pub(crate) fn add_with<W: Into<String>>(
        &mut self,
        pointer: impl Into<String>,
        what: impl FnOnce() -> W,
    ) {
        if self.kept.len() + 1 < FAULTS_MAX {
            self.kept.push(PlanFault { pointer: pointer.into(), what: what().into() });
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(crate) fn all(mut self) -> Vec<PlanFault> {
        if self.left_out > 0 {
            let what = format!("and {} of these kinds", count(self.left_out, "more fault"));
            self.kept.push(PlanFault { pointer: String::new(), what });
        }
        self.kept
    }
}

#[derive(Default)]
pub(crate) struct Notes {
    kept: Vec<String>,
    left_out: usize,
}

impl Notes {
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        self.add_with(|| note.into());
    }

    pub(crate) fn add_with(&mut self, note: impl FnOnce() -> String) {
        if self.kept.len() + 1 < NOTES_MAX {
            let note = note();
            if !self.kept.contains(&note) {
                self.kept.push(note);
            }
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn all(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.kept.push(format!("and {}", count(self.left_out, "more remark")));
        }
        self.kept
    }
}

/// An agent's text between backticks: one line, short, and without characters that a terminal would
/// obey.
pub(crate) fn shown(text: &str) -> String {
    shown_at_most(text, SHOWN_CHARS_MAX)
}

pub(crate) fn shown_at_most(text: &str, chars_max: usize) -> String {
    let odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut short = String::from("`");
    for c in text.chars().take(chars_max) {
        if odd(c) {
            short.extend(c.escape_unicode());
        } else {
            short.push(c);
        }
    }
    if text.chars().nth(chars_max).is_some() {
        short.push('…');
    }
    short.push('`');
    short
}

/// Lists names as in: `a`, `b` and 3 more.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(LISTED_MAX).map(shown).collect();
    match (first.is_empty(), names.count()) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => first.join(", "),
        (false, more) => format!("{} and {more} more", first.join(", ")),
    }
}

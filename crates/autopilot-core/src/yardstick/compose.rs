//! The two trees beside a change: the base's yardstick over the new code, and the new yardstick over
//! the base's code.

use super::{YardstickReason, YardstickRules, YardstickShare};
use std::collections::BTreeMap;

/// One path of a change (listed without rename detection), on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedEntry {
    pub path: String,
    pub base: Option<EntrySide>,
    pub head: Option<EntrySide>,
}

/// What stands at a path on one side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySide {
    pub mode: u32,
    pub oid: String,
    /// None if it is binary, a link, a gitlink or too large.
    pub text: Option<String>,
}

/// What stands at a path of a composed tree, where it differs from the tree it starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposedEntry {
    Absent,
    Side { mode: u32, oid: String },
    Text { mode: u32, text: String },
}

/// The trees of the two runs beside a change, as edits, and what the change touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComposedTrees {
    /// The changed files of the yardstick, whole or in part.
    pub touched: BTreeMap<String, YardstickReason>,
    /// The edits of the change's tree that bring the base's yardstick back.
    pub no_regression: BTreeMap<String, ComposedEntry>,
    /// The edits of the base's tree that bring the change's yardstick in.
    pub red: BTreeMap<String, ComposedEntry>,
    /// The touched files that hold tests and code in a way that can't be taken apart, with the reason.
    pub inseparable: BTreeMap<String, String>,
    /// The change touches the product too.
    pub product: bool,
}

impl ComposedTrees {
    /// Whether the commands have to run on the two trees: neither is only told to people and judges.
    pub fn needs_runs(&self) -> bool {
        self.touched.values().any(YardstickReason::decides_commands)
            && !(self.no_regression.is_empty() && self.red.is_empty())
    }
}

/// Composes the trees of a change.
pub fn compose(rules: &YardstickRules<'_>, change: &[ChangedEntry]) -> ComposedTrees {
    let mut trees = ComposedTrees::default();
    for entry in change {
        let text = |side: &Option<EntrySide>| side.as_ref().and_then(|side| side.text.clone());
        let (base, head) = (text(&entry.base), text(&entry.head));
        match rules.share(&entry.path, [base.as_deref(), head.as_deref()]) {
            YardstickShare::None => trees.product = true,
            YardstickShare::Whole(reason) | YardstickShare::Part(reason) => {
                let decides = reason.decides_commands();
                trees.touched.insert(entry.path.clone(), reason);
                if decides {
                    trees.no_regression.insert(entry.path.clone(), as_on(&entry.base));
                    trees.red.insert(entry.path.clone(), as_on(&entry.head));
                }
            }
        }
    }
    trees
}

fn as_on(side: &Option<EntrySide>) -> ComposedEntry {
    match side {
        None => ComposedEntry::Absent,
        Some(side) => ComposedEntry::Side { mode: side.mode, oid: side.oid.clone() },
    }
}

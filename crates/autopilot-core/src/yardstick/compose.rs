//! The two trees beside a change: the base's yardstick over the new code, and the new yardstick over
//! the base's code.

use super::mixed::YardstickSide;
use super::{YardstickReason, YardstickRules, YardstickShare};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The settings of builds and runners that stay as the change has them, whichever tests run.
    pub fn settings(&self) -> BTreeSet<String> {
        let is_setting = |path: &&String| match self.touched.get(*path) {
            Some(YardstickReason::BuildConfig | YardstickReason::RunnerConfig) => true,
            Some(
                YardstickReason::Test
                | YardstickReason::TestData
                | YardstickReason::BuildServer
                | YardstickReason::CommandScript { .. }
                | YardstickReason::CalledScript { .. }
                | YardstickReason::Instruction
                | YardstickReason::Pattern(_),
            )
            | None => false,
        };
        self.inseparable.keys().filter(is_setting).cloned().collect()
    }

    /// Whether the commands have to run on the two trees: neither is only told to people and judges.
    pub fn needs_runs(&self) -> bool {
        self.touched.values().any(YardstickReason::decides_commands)
            && !(self.no_regression.is_empty() && self.red.is_empty())
    }
}

/// Composes the trees of a change.
pub fn compose(rules: &YardstickRules<'_>, change: &[ChangedEntry]) -> ComposedTrees {
    let mut trees = ComposedTrees::default();
    let mut has_new_dependencies = false;
    for entry in change {
        let texts = [text(&entry.base), text(&entry.head)];
        match rules.share(&entry.path, texts) {
            YardstickShare::None => trees.product = true,
            YardstickShare::Whole(reason) => {
                let decides = reason.decides_commands();
                trees.touched.insert(entry.path.clone(), reason);
                if decides {
                    trees.no_regression.insert(entry.path.clone(), as_on(&entry.base));
                    trees.red.insert(entry.path.clone(), as_on(&entry.head));
                }
            }
            YardstickShare::Part(reason) => {
                let part = MixedEntry { rules, entry, texts, reason };
                has_new_dependencies |= part.compose(&mut trees);
            }
        }
    }
    if has_new_dependencies {
        add_locks(change, &mut trees);
    }
    trees
}

fn text(side: &Option<EntrySide>) -> Option<&str> {
    side.as_ref().and_then(|side| side.text.as_deref())
}

/// The lock files that have entries for the dependencies of tests.
const LOCKS: &[&str] = &["Cargo.lock"];

/// Lets the base's code run with the change's lock file, where its tests have other dependencies: nothing
/// is downloaded then that the change has not.
fn add_locks(change: &[ChangedEntry], trees: &mut ComposedTrees) {
    let is_lock = |path: &str| LOCKS.contains(&path.rsplit('/').next().unwrap_or(path));
    for entry in change.iter().filter(|entry| is_lock(&entry.path) && entry.head.is_some()) {
        trees.red.entry(entry.path.clone()).or_insert_with(|| as_on(&entry.head));
    }
}

/// A changed file that holds the product and what judges it.
struct MixedEntry<'a> {
    rules: &'a YardstickRules<'a>,
    entry: &'a ChangedEntry,
    texts: [Option<&'a str>; 2],
    reason: YardstickReason,
}

impl MixedEntry<'_> {
    /// Adds the file to the trees; returns whether the dependencies of tests are others now.
    fn compose(self, trees: &mut ComposedTrees) -> bool {
        let path = self.entry.path.clone();
        let reached = self.rules.reached();
        let Some(splitter) = self.rules.splitter(&path, self.texts, &reached) else {
            trees.product = true;
            return false;
        };
        let [base, head] = self.texts.map(Option::unwrap_or_default);
        let is_unread =
            |side: &Option<EntrySide>| side.as_ref().is_some_and(|side| side.text.is_none());
        if is_unread(&self.entry.base) || is_unread(&self.entry.head) {
            trees.tell(
                path,
                self.reason,
                "one of its sides is no text that can be read".to_owned(),
            );
            return false;
        }
        if let Some(why) = splitter.inseparable(base, head) {
            trees.tell(path.clone(), self.reason.clone(), why);
        }
        let composed = splitter
            .composed(head, base, YardstickSide::Base)
            .and_then(|kept| Ok((kept, splitter.composed(base, head, YardstickSide::Head)?)));
        let (kept, red) = match composed {
            Ok(composed) => composed,
            Err(why) => {
                trees.tell(path, self.reason, why);
                return false;
            }
        };
        // Where the base's code with the new tests is the change itself, the code is the same.
        trees.product |= red != head;
        if let Some(side) = self.entry.head.as_ref().filter(|_| kept != head) {
            let entry = ComposedEntry::Text { mode: side.mode, text: kept.clone() };
            trees.no_regression.insert(path.clone(), entry);
        }
        // A module that the base does not have has no place for its tests there.
        if let Some(side) = self.entry.base.as_ref().filter(|_| red != base) {
            let entry = ComposedEntry::Text { mode: side.mode, text: red.clone() };
            trees.red.insert(path.clone(), entry);
        }
        if kept != head || red != base {
            trees.touched.insert(path, self.reason);
        }
        splitter.changes_dependencies(base, head)
    }
}

impl ComposedTrees {
    /// A file that can't be taken apart is told, and belongs to the product as well.
    fn tell(&mut self, path: String, reason: YardstickReason, why: String) {
        self.product = true;
        self.touched.insert(path.clone(), reason);
        self.inseparable.insert(path, why);
    }
}

fn as_on(side: &Option<EntrySide>) -> ComposedEntry {
    match side {
        None => ComposedEntry::Absent,
        Some(side) => ComposedEntry::Side { mode: side.mode, oid: side.oid.clone() },
    }
}

#[cfg(test)]
mod tests;

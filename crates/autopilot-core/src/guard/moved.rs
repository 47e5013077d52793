//! Tells a line that was moved from a new one that only reads like one that was removed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, ChangedLine};

/// The words that make a line its own: a shorter one may be written twice by chance.
const OWN_WORDS_MIN: usize = 4;
/// The letters and digits of a line that says something; a bracket does not.
const SAYING_CHARS_MIN: usize = 3;

/// The added lines that `is_marked`, without those that were only moved: an equal line was removed
/// at the same place, or beside an equal neighbour, or it has enough words to be known again. An
/// added line is never exchanged for a removed one that merely has the same mark.
pub(super) fn new_lines<'a>(
    change: &'a Change,
    is_marked: impl Fn(&ChangedLine) -> bool,
) -> Vec<&'a ChangedLine> {
    let marked = |line: &&'a ChangedLine| is_marked(line);
    let added: Vec<&ChangedLine> = change.added.iter().filter(marked).collect();
    if added.is_empty() {
        return added;
    }
    let mut gone = BTreeMap::<&str, Vec<&ChangedLine>>::new();
    for line in change.removed.iter().filter(marked) {
        gone.entry(line.text.trim()).or_default().push(line);
    }
    let sides = Sides::of(change);
    added
        .into_iter()
        .filter(|line| {
            let Some(equal) = gone.get_mut(line.text.trim()) else { return true };
            match equal.iter().position(|old| sides.is_same(line, old, &is_marked)) {
                Some(at) => {
                    equal.swap_remove(at);
                    false
                }
                None => true,
            }
        })
        .collect()
}

/// Both sides of a change, by file and line number.
struct Sides<'a> {
    added: Side<'a>,
    removed: Side<'a>,
    /// The old path of each renamed file.
    renamed: BTreeMap<&'a str, &'a str>,
}

type Side<'a> = BTreeMap<&'a str, BTreeMap<u64, &'a str>>;

impl<'a> Sides<'a> {
    fn of(change: &'a Change) -> Sides<'a> {
        let renamed = change
            .files
            .iter()
            .filter_map(|file| Some((file.path.as_str(), file.old_path.as_deref()?)));
        Sides {
            added: side(&change.added),
            removed: side(&change.removed),
            renamed: renamed.collect(),
        }
    }

    fn is_same(
        &self,
        new: &ChangedLine,
        old: &ChangedLine,
        is_marked: &impl Fn(&ChangedLine) -> bool,
    ) -> bool {
        has_own_words(&new.text) || self.is_same_place(new, old) || {
            let old: BTreeSet<&str> = neighbours(&self.removed, old, is_marked).collect();
            neighbours(&self.added, new, is_marked).any(|text| old.contains(text))
        }
    }

    /// Whether both lines stand in the same file between the same unchanged lines.
    fn is_same_place(&self, new: &ChangedLine, old: &ChangedLine) -> bool {
        let path = new.path.as_str();
        let is_file = path == old.path || self.renamed.get(path) == Some(&old.path.as_str());
        is_file && unchanged_before(&self.added, new) == unchanged_before(&self.removed, old)
    }
}

fn side(lines: &[ChangedLine]) -> Side<'_> {
    let mut side = Side::new();
    for line in lines {
        side.entry(&line.path).or_default().insert(line.line, line.text.trim());
    }
    side
}

fn has_own_words(text: &str) -> bool {
    let is_word = |word: &&str| word.len() > 1;
    text.split(|c: char| !c.is_alphanumeric()).filter(is_word).count() >= OWN_WORDS_MIN
}

/// The number of lines before this one that the change left as they were.
fn unchanged_before(side: &Side<'_>, line: &ChangedLine) -> Option<u64> {
    let changed = side.get(line.path.as_str())?.range(..line.line).count();
    line.line.checked_sub(u64::try_from(changed).ok()?)
}

/// The changed lines right before and after a line that say something and have no mark.
fn neighbours<'a>(
    side: &'a Side<'a>,
    line: &ChangedLine,
    is_marked: &impl Fn(&ChangedLine) -> bool,
) -> impl Iterator<Item = &'a str> {
    let of_file = side.get(line.path.as_str());
    let beside = [line.line.checked_sub(1), line.line.checked_add(1)];
    let texts =
        beside.into_iter().flatten().filter_map(move |number| of_file?.get(&number).copied());
    let says = |text: &str| {
        let saying = text.chars().filter(|c| c.is_alphanumeric()).count();
        let as_line = ChangedLine { path: line.path.clone(), line: 0, text: text.to_owned() };
        saying >= SAYING_CHARS_MIN && !is_marked(&as_line)
    };
    let kept: Vec<&str> = texts.filter(|text| says(text)).collect();
    kept.into_iter()
}

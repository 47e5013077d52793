//! Summarizes a repository in a few lines: its directories, the number of files, and their kinds.

use crate::number::count;
use std::collections::BTreeMap;

/// The deepest directories that are listed; deeper ones count as part of those above.
const DEPTH_MAX: usize = 8;
/// The number of kinds of files that are named for one directory.
const KINDS_MAX: usize = 5;
/// The longest name of a directory.
const NAME_CHARS_MAX: usize = 120;

/// Summarizes paths, as deep as `lines_max` lines allow; every file is counted in one of them.
/// Names of files do not appear, contents are not known here.
pub fn tree_summary<'a>(paths: impl IntoIterator<Item = &'a str>, lines_max: usize) -> String {
    let directories = directories(paths);
    let depth = deepest(&directories, lines_max);
    let mut lines: BTreeMap<&str, Kinds<'a>> = BTreeMap::new();
    for (directory, kinds) in &directories {
        let shown = lines.entry(top(directory, depth)).or_default();
        for (kind, count) in kinds {
            *shown.entry(kind).or_default() += count;
        }
    }
    let mut shown: Vec<String> =
        lines.iter().take(lines_max).map(|(directory, kinds)| line(directory, kinds)).collect();
    if lines.len() > lines_max {
        let files: usize = lines.values().skip(lines_max).flat_map(BTreeMap::values).sum();
        let more = lines.len() - lines_max;
        shown.push(format!("and {more} more directories with {}", count(files, "file")));
    }
    shown.join("\n")
}

/// The number of files of each kind.
type Kinds<'a> = BTreeMap<&'a str, usize>;

/// The directories that directly contain files.
fn directories<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, Kinds<'a>> {
    let mut directories: BTreeMap<&str, Kinds<'a>> = BTreeMap::new();
    for path in paths {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let kind = match name.rsplit_once('.') {
            Some((stem, kind)) if !stem.is_empty() && is_kind(kind) => kind,
            Some(_) | None => "",
        };
        *directories.entry(directory).or_default().entry(kind).or_default() += 1;
    }
    directories
}

fn is_kind(kind: &str) -> bool {
    (1..=10).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The greatest depth at which the directories fit into so many lines.
fn deepest(directories: &BTreeMap<&str, Kinds<'_>>, lines_max: usize) -> usize {
    let count = |depth: usize| {
        let tops = directories.keys().map(|directory| top(directory, depth));
        tops.collect::<std::collections::BTreeSet<_>>().len()
    };
    (1..=DEPTH_MAX).rev().find(|depth| count(*depth) <= lines_max).unwrap_or(1)
}

fn top(directory: &str, depth: usize) -> &str {
    match directory.match_indices('/').nth(depth - 1) {
        Some((end, _)) => &directory[..end],
        None => directory,
    }
}

fn line(directory: &str, kinds: &Kinds<'_>) -> String {
    let name: String = directory
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    let mut most: Vec<(&str, usize)> = kinds.iter().map(|(kind, count)| (*kind, *count)).collect();
    most.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut named: Vec<String> = most
        .iter()
        .filter(|(kind, _)| !kind.is_empty())
        .take(KINDS_MAX)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let files: usize = kinds.values().sum();
    if most.iter().filter(|(kind, _)| !kind.is_empty()).count() > KINDS_MAX {
        named.push("…".to_owned());
    }
    let of = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
    format!("{}/ {}{of}", if name.is_empty() { "." } else { &name }, count(files, "file"))
}

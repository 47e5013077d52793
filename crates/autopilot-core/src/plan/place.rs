//! Checks where the tasks of a plan may make changes: inside the repository, inside the person's
//! allowed paths, and outside the denied ones.
//!
//! Paths match as in the guards that judge the finished change.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::{Notes, PlanFaults, listed, shown};
use super::overlap::{stem, stems_overlap};
use super::{Plan, PlanRules};
use crate::config::path_fault;
use crate::guard::path::check;
use crate::guard::{ChangedFile, FileMode, FileStatus};

/// Returns the allowed paths of each task, cut to those of the whole plan.
pub(super) fn allowed(
    plan: &Plan,
    rules: &PlanRules,
    faults: &mut PlanFaults,
    notes: &mut Notes,
) -> Vec<Vec<String>> {
    let paths: BTreeSet<&str> =
        plan.tasks.iter().flat_map(|task| &task.allowed_paths).map(|path| path.trim()).collect();
    let unusable: BTreeMap<&str, String> =
        paths.iter().filter_map(|path| Some((*path, unusable(path)?))).collect();
    let usable: Vec<&str> = paths.into_iter().filter(|path| !unusable.contains_key(path)).collect();
    let denied = denied(&usable, &rules.deny_paths);
    let narrow = Narrow::new(&usable, &rules.allowed_paths);
    let mut warned = BTreeSet::new();
    let mut allowed = Vec::with_capacity(plan.tasks.len());
    for (at, task) in plan.tasks.iter().enumerate() {
        let mut kept: BTreeSet<&str> = BTreeSet::new();
        let mut in_order = Vec::new();
        let mut sound = true;
        for (place, path) in task.allowed_paths.iter().enumerate() {
            let path = path.trim();
            if let Some(why) = unusable.get(path).or_else(|| denied.get(path)) {
                faults.add(format!("/tasks/{at}/allowed_paths/{place}"), why);
                sound = false;
                continue;
            }
            in_order.extend(narrow.cut(path).filter(|path| kept.insert(path)).map(str::to_owned));
            // A name that is denied anywhere would be noted for every path.
            let inside = rules.deny_paths.iter().filter(|denied| stem(denied).next().is_some());
            let inside = inside.filter(|denied| stems_overlap(path, denied));
            for inside in inside.filter(|denied| warned.insert((path, denied.as_str()))) {
                notes.add(format!(
                    "the allowed path {} overlaps the denied path {}, where changes are refused",
                    shown(path),
                    shown(inside)
                ));
            }
        }
        if in_order.is_empty() && sound && !task.allowed_paths.is_empty() {
            let what = format!(
                "the allowed paths of task {} ({}) lie outside the plan's allowed paths {}",
                shown(&task.id),
                listed(task.allowed_paths.iter().map(String::as_str)),
                listed(rules.allowed_paths.iter().map(String::as_str))
            );
            faults.add(format!("/tasks/{at}/allowed_paths"), what);
        } else if task.allowed_paths.iter().any(|path| !kept.contains(path.trim())) && sound {
            notes.add(format!(
                "the allowed paths of task {} are cut to those of the plan: {}",
                shown(&task.id),
                listed(in_order.iter().map(String::as_str))
            ));
        }
        allowed.push(in_order);
    }
    allowed
}

fn unusable(path: &str) -> Option<String> {
    path_fault(path).or_else(|| {
        let found = check(&[], &[path.to_owned()], &[]);
        found.into_iter().next().map(|finding| finding.message)
    })
}

/// The paths that lie in a denied place, with the reason.
fn denied<'a>(paths: &[&'a str], deny_paths: &[String]) -> BTreeMap<&'a str, String> {
    let mut denied = BTreeMap::new();
    // A pattern is denied if its directory is, or if the same pattern is.
    let places: Vec<[String; 2]> =
        paths.iter().map(|path| [(*path).to_owned(), place_of(path)]).collect();
    let files = places.iter().flatten().filter(|place| !place.is_empty()).map(|p| file(p));
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for finding in check(&files.collect::<Vec<_>>(), &[], deny_paths) {
        if let Some(file) = finding.file {
            found.insert(file, finding.message);
        }
    }
    for (path, places) in paths.iter().zip(&places) {
        if let Some(why) = places.iter().find_map(|place| found.get(place)) {
            denied.insert(*path, format!("{} is denied: {why}", shown(path)));
        }
    }
    denied
}

/// The parts of the tasks' paths that lie inside the plan's.
struct Narrow<'a> {
    outer: &'a [String],
    /// The pairs (path, outer) in which the path lies in the outer one.
    within: BTreeSet<(&'a str, &'a str)>,
    /// The pairs (path, outer) in which the outer one lies in the path.
    around: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Narrow<'a> {
    fn new(paths: &[&'a str], outer: &'a [String]) -> Self {
        let outers: Vec<&'a str> = outer.iter().map(|path| path.trim()).collect();
        let mut narrow = Narrow { outer, within: BTreeSet::new(), around: BTreeSet::new() };
        for outer in &outers {
            narrow.within.extend(those_in(outer, paths).map(|path| (path, *outer)));
        }
        // Without limits there is nothing to compare.
        for path in paths.iter().filter(|_| !outers.is_empty()) {
            narrow.around.extend(those_in(path, &outers).map(|outer| (*path, outer)));
        }
        narrow
    }

    fn cut<'b>(&'b self, path: &'b str) -> impl Iterator<Item = &'b str> {
        let everywhere = self.outer.is_empty().then_some(path);
        let cut = self.outer.iter().filter_map(move |outer| {
            let outer = outer.trim();
            if self.within.contains(&(path, outer)) {
                Some(path)
            } else if self.around.contains(&(path, outer)) {
                Some(outer)
            } else {
                // The two patterns may meet: the person's limit holds, the planner's does not.
                let pattern = is_pattern(path) || is_pattern(outer);
                (pattern && stems_overlap(path, outer)).then_some(outer)
            }
        });
        everywhere.into_iter().chain(cut)
    }
}

/// The paths that lie in `outer`.
fn those_in<'a>(outer: &str, paths: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let files: Vec<ChangedFile> = paths.iter().map(|path| file(&place_of(path))).collect();
    let found = check(&files, &[outer.to_owned()], &[]);
    let outside: BTreeSet<String> = found.into_iter().filter_map(|finding| finding.file).collect();
    let everything = stem(outer).next().is_none() && !is_pattern(outer);
    let outer = outer.to_owned();
    let inside =
        move |path: &&'a str| everything || *path == outer || !outside.contains(&place_of(path));
    paths.iter().copied().filter(inside).collect::<Vec<_>>().into_iter()
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// The path up to its first pattern.
fn place_of(path: &str) -> String {
    stem(path).collect::<Vec<_>>().join("/")
}

fn file(path: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        status: FileStatus::Modified,
        old_path: None,
        link_target: None,
        mode: FileMode::Regular,
        binary: false,
    }
}

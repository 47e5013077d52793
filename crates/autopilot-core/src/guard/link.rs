//! Symbolic links of a tree, followed through each other: a link that stays inside by its own words may
//! lead out by way of another one.

use super::finding::visible;
use super::{Change, Finding, FindingSource, Severity};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The links that one path may go through, as the kernel counts them.
const HOPS_MAX: usize = 40;

/// The symbolic links of a tree by their paths, each with its target as it is written.
pub type TreeLinks = BTreeMap<String, String>;

/// The symbolic links before and after a change that touches one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSides {
    pub base: TreeLinks,
    pub head: TreeLinks,
    /// Whether there are more links than were read.
    #[serde(default)]
    pub are_cut: bool,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkEnd {
    Inside,
    Outside,
}

pub(super) fn check(change: &Change) -> Vec<Finding> {
    let LinkSides { base, head, are_cut } = &change.links;
    // A link that leads out by its own words has a finding of its own.
    let changed: BTreeSet<&str> = change
        .files
        .iter()
        .filter(|file| file.link_target.is_some())
        .map(|file| file.path.as_str())
        .collect();
    let leads_out = |links: &TreeLinks, path: &str| end_of(links, path) == LinkEnd::Outside;
    let mut findings: Vec<Finding> = head
        .iter()
        .filter(|(path, target)| {
            let says_so = changed.contains(path.as_str()) && leads_out_alone(path, target);
            !says_so && leads_out(head, path) && !leads_out(base, path)
        })
        .map(|(path, target)| {
            let message = format!(
                "the link points to `{}`, which leads outside the repository by way of other links",
                visible(target)
            );
            let fix = "remove the link, or the one it goes through";
            Finding::new(FindingSource::Paths, Severity::Blocker, message, fix).in_file(path)
        })
        .collect();
    if *are_cut {
        let message = "there are too many symbolic links to follow each of them";
        let fix = "look at where the changed links lead";
        findings.push(Finding::new(FindingSource::Paths, Severity::Major, message, fix));
    }
    findings
}

/// Whether a link leads out without any other one.
fn leads_out_alone(path: &str, target: &str) -> bool {
    let alone = BTreeMap::from([(path.to_owned(), target.to_owned())]);
    end_of(&alone, path) == LinkEnd::Outside
}

/// The end of a link, component by component as the kernel walks it. Links in a circle lead nowhere.
fn end_of(links: &TreeLinks, path: &str) -> LinkEnd {
    let mut todo: Vec<&str> = path.split('/').rev().collect();
    let mut walked: Vec<&str> = Vec::new();
    let mut hops = 0;
    while let Some(part) = todo.pop() {
        match part {
            "" | "." => continue,
            ".." if walked.pop().is_none() => return LinkEnd::Outside,
            ".." => continue,
            part => walked.push(part),
        }
        let Some(target) = links.get(&walked.join("/")) else { continue };
        hops += 1;
        if hops > HOPS_MAX {
            return LinkEnd::Inside;
        }
        if target.starts_with('/') {
            return LinkEnd::Outside;
        }
        walked.pop();
        todo.extend(target.split('/').rev());
    }
    LinkEnd::Inside
}

#[cfg(test)]
mod tests {
    use super::super::{ChangedFile, FileMode, FileStatus};
    use super::*;

    fn links(of: &[(&str, &str)]) -> TreeLinks {
        of.iter().map(|(path, target)| ((*path).to_owned(), (*target).to_owned())).collect()
    }

    fn found(base: &[(&str, &str)], head: &[(&str, &str)]) -> Vec<String> {
        let (base, head) = (links(base), links(head));
        let is_new = |(path, target): &(&String, &String)| base.get(*path) != Some(*target);
        let file = |(path, target): (&String, &String)| ChangedFile {
            path: path.clone(),
            status: FileStatus::Added,
            old_path: None,
            link_target: Some(target.clone()),
            mode: FileMode::Symlink,
            binary: false,
        };
        let files = head.iter().filter(is_new).map(file).collect();
        let sides = LinkSides { base, head, are_cut: false };
        let change = Change { files, links: sides, ..Change::default() };
        check(&change).into_iter().filter_map(|finding| finding.file).collect()
    }

    #[test]
    fn links_lead_out_by_any_number_of_hops() {
        for (head, out) in [
            (vec![("a", "b"), ("b", "c/d")], vec![]),
            // `a/deep` is `.`, so two steps up from there are outside.
            (vec![("a/deep", ".."), ("l", "a/deep/../x")], vec!["l"]),
            (vec![("a", "p/q"), ("l", "a/../../x")], vec![]),
            (vec![("a", "."), ("l", "a/../x")], vec!["l"]),
            (vec![("a", "b"), ("b", "c"), ("c", "."), ("x/l", "../a/../y")], vec!["x/l"]),
            // Links in a circle lead nowhere.
            (vec![("a", "b"), ("b", "a")], vec![]),
            // What leads out by its own words is told by the rule about single links, what goes through
            // it is told here.
            (vec![("up", "../.."), ("l", "up/etc")], vec!["l"]),
            (vec![("abs", "/etc"), ("l", "abs/passwd")], vec!["l"]),
        ] {
            assert_eq!(found(&[], &head), out, "{head:?}");
        }
    }

    #[test]
    fn a_link_of_the_base_counts_when_the_change_redirects_it() {
        let base = [("a", "p/q/r"), ("l", "a/../../x")];
        assert_eq!(found(&base, &base), Vec::<String>::new());
        assert_eq!(found(&base, &[("a", "p"), ("l", "a/../../x")]), ["l"]);
        assert_eq!(found(&base, &[("l", "a/../../x")]), ["l"], "`a` is a directory now");
        let out = [("out", "/usr/share"), ("l", "out/dict")];
        assert_eq!(found(&out, &[out[0], out[1], ("n", "file")]), Vec::<String>::new());
    }

    #[test]
    fn links_that_were_not_read_are_told() {
        let links = LinkSides { are_cut: true, ..LinkSides::default() };
        let found = check(&Change { links, ..Change::default() });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Major);
    }
}

//! The yardstick of a whole tree, as it is shown to people, and what may belong to it that no rule knows.

use super::place::{PlaceRule, is_document, place_rule};
use super::{TreeView, YardstickRules, YardstickShare};
use crate::detect::Proposal;
use std::collections::{BTreeMap, BTreeSet};

/// The number of patterns that are proposed.
pub const PATTERNS_MAX: usize = 8;

/// The files of a tree that decide a verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct YardstickCensus {
    /// The files by the reason for which they count, in its words.
    pub files: BTreeMap<String, BTreeSet<String>>,
    /// Those of them that also hold the product.
    pub in_part: BTreeSet<String>,
}

impl YardstickCensus {
    /// The number of files that count.
    pub fn count(&self) -> usize {
        self.files.values().map(BTreeSet::len).sum()
    }
}

/// Counts the yardstick of a tree.
pub fn census(rules: &YardstickRules<'_>, tree: TreeView<'_>) -> YardstickCensus {
    let mut census = YardstickCensus::default();
    for path in tree.paths {
        let text = if needs_text(path) { (tree.read)(path) } else { None };
        let reason = match rules.share(path, [text.as_deref(), None]) {
            YardstickShare::None => continue,
            YardstickShare::Whole(reason) => reason,
            YardstickShare::Part(reason) => {
                census.in_part.insert(path.clone());
                reason
            }
        };
        census.files.entry(reason.to_string()).or_default().insert(path.clone());
    }
    census
}

/// Whether the text of a file may decide whether it belongs to the yardstick.
pub fn needs_text(path: &str) -> bool {
    const MIXED: &[&str] = &[
        "cfg", "cjs", "cts", "js", "json", "jsx", "mjs", "mts", "py", "rs", "svelte", "toml", "ts",
        "tsx", "vue",
    ];
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match place_rule(path) {
        PlaceRule::Build | PlaceRule::Lines | PlaceRule::ByName => true,
        PlaceRule::Whole(_) => path.to_lowercase().ends_with("makefile"),
        PlaceRule::Product => MIXED.contains(&ending),
    }
}

/// Directories in which projects keep what their tests compare with, by names that mean other things too.
const LIKELY_DIRECTORIES: &[&str] = &[
    "acceptance",
    "approvals",
    "approved",
    "baseline",
    "baselines",
    "cassettes",
    "conformance",
    "corpus",
    "expect",
    "expectations",
    "expected",
    "recordings",
    "reference_output",
    "regression",
    "test-cases",
    "test_cases",
    "testcases",
    "vcr_cassettes",
];
/// Parts of names of files that tests compare with.
const LIKELY_NAMES: &[&str] = &[".approved.", ".expected.", ".golden.", ".verified."];
const LIKELY_ENDINGS: &[&str] = &["approved", "expected", "golden", "want"];

/// Patterns for `gates.yardstick` that a tree suggests: files that look like what tests compare with, and
/// that no rule knows.
pub fn proposed_patterns(paths: &BTreeSet<String>) -> Vec<Proposal> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let unknown = paths.iter().filter(|path| place_rule(path) == PlaceRule::Product);
    for path in unknown.filter(|path| !is_document(path)) {
        if let Some(pattern) = likely_pattern(path) {
            *found.entry(pattern).or_default() += 1;
        }
    }
    let proposals = found.into_iter().take(PATTERNS_MAX).map(|(value, count)| {
        let files = if count == 1 { "file" } else { "files" };
        Proposal { value, why: format!("{count} {files} that tests may compare with") }
    });
    proposals.collect()
}

fn likely_pattern(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop()?.to_lowercase();
    let at =
        parts.iter().position(|part| LIKELY_DIRECTORIES.contains(&part.to_lowercase().as_str()));
    if let Some(at) = at {
        return Some(format!("{}/**", parts[..=at].join("/")));
    }
    if let Some(part) = LIKELY_NAMES.iter().find(|part| name.contains(**part)) {
        return Some(format!("*{part}*"));
    }
    let ending = name.rsplit_once('.').map(|(_, ending)| ending)?;
    LIKELY_ENDINGS.contains(&ending).then(|| format!("*.{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn a_tree_is_counted_by_reason() {
        let tree = paths(&["src/lib.rs", "src/a.rs", "tests/a.rs", "tests/b.rs", "Makefile"]);
        let read = |path: &str| {
            Some(if path == "src/a.rs" { "#[test] fn a() {}" } else { "fn a() {}" }.to_owned())
        };
        let view = [TreeView { paths: &tree, read: &read }];
        let rules = YardstickRules::new(&[], &[], &view);
        let census = census(&rules, view[0]);
        assert_eq!(census.count(), 4);
        assert_eq!(census.files["tests"], paths(&["src/a.rs", "tests/a.rs", "tests/b.rs"]));
        assert_eq!(census.in_part, paths(&["src/a.rs"]));
    }

    #[test]
    fn what_tests_may_compare_with_is_proposed_once() {
        let values = |all: &[&str]| {
            let all = proposed_patterns(&paths(all));
            all.into_iter().map(|it| format!("{} ({})", it.value, it.why)).collect::<Vec<_>>()
        };
        assert_eq!(
            values(&["cli/expected/a.txt", "cli/expected/b.txt", "a.golden", "x/b.approved.txt"]),
            [
                "*.approved.* (1 file that tests may compare with)",
                "*.golden (1 file that tests may compare with)",
                "cli/expected/** (2 files that tests may compare with)",
            ]
        );
        let known =
            ["golden/a", "tests/expected/a.txt", "src/lib.rs", "expected.rs", "src/want.rs"];
        assert_eq!(values(&known), Vec::<String>::new());
        let many: Vec<String> =
            (0..PATTERNS_MAX + 3).map(|at| format!("{at}/expected/a")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(values(&many).len(), PATTERNS_MAX);
    }

    #[test]
    fn the_texts_of_mixed_files_are_needed() {
        for path in
            ["src/a.rs", "Cargo.toml", "package.json", "a.py", "pom.xml", "Makefile", "go.mod"]
        {
            assert!(needs_text(path), "{path}");
        }
        for path in ["tests/a.rs", "a.png", "README.md", "a.go", "AGENTS.md"] {
            assert!(!needs_text(path), "{path}");
        }
    }
}

//! Files that hold the product and what judges it: how they are taken apart, and what is only told of
//! those that can't be.

use super::json::JsonRules;
use super::manifest::{CARGO, PYPROJECT, SETUP_CFG};
use super::section::{self, AddedDependency, SectionRules};
use super::{YardstickReason, rust};
use regex::Regex;
use std::sync::LazyLock;

/// How the parts of a file are told apart.
pub(super) enum PartSplitter<'a> {
    Rust,
    Sections(SectionRules, YardstickReason),
    Json(JsonRules<'a>),
    /// The file builds the product and its tests.
    Build,
    /// Lines with words of tests, in a file that names much else.
    Lines(&'static LazyLock<Option<Regex>>),
    /// A source file that may hold tests of its own.
    Source(&'static [SelfTest]),
}

/// A way in which sources of a language hold tests of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelfTest {
    PythonExample,
    PythonMain,
    VitestBlock,
}

/// The side that gives the yardstick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum YardstickSide {
    Base,
    Head,
}

impl<'a> PartSplitter<'a> {
    /// The splitter for a file by its name; `reached` tells which scripts of `package.json` commands
    /// come to.
    pub(super) fn of(path: &str, reached: &'a dyn Fn(&str) -> bool) -> Option<PartSplitter<'a>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(match name {
            "Cargo.toml" => PartSplitter::Sections(CARGO, YardstickReason::BuildConfig),
            "pyproject.toml" => PartSplitter::Sections(PYPROJECT, YardstickReason::RunnerConfig),
            "setup.cfg" => PartSplitter::Sections(SETUP_CFG, YardstickReason::RunnerConfig),
            "package.json" | "composer.json" => PartSplitter::Json(JsonRules::of(name, reached)?),
            _ => match name.rsplit_once('.').map(|(_, ending)| ending) {
                Some("rs") => PartSplitter::Rust,
                Some("py") => {
                    PartSplitter::Source(&[SelfTest::PythonExample, SelfTest::PythonMain])
                }
                Some("js" | "jsx" | "ts" | "tsx" | "mjs" | "mts" | "vue" | "svelte") => {
                    PartSplitter::Source(&[SelfTest::VitestBlock])
                }
                Some(_) | None => return None,
            },
        })
    }

    pub(super) fn lines(path: &str) -> PartSplitter<'a> {
        let name = path.rsplit('/').next().unwrap_or(path);
        PartSplitter::Lines(match name {
            "go.mod" | "go.work" => &REPLACE_LINES,
            "pom.xml" => &MAVEN_LINES,
            _ => &TEST_LINES,
        })
    }

    pub(super) fn reason(&self) -> YardstickReason {
        match self {
            PartSplitter::Rust | PartSplitter::Source(_) => YardstickReason::Test,
            PartSplitter::Sections(_, reason) => reason.clone(),
            PartSplitter::Json(_) => YardstickReason::RunnerConfig,
            PartSplitter::Build | PartSplitter::Lines(_) => YardstickReason::BuildConfig,
        }
    }

    /// Whether a text has a part that judges; true for one that can't be read.
    pub(super) fn has_yardstick(&self, text: &str) -> bool {
        match self {
            PartSplitter::Rust => match rust::share(text) {
                rust::RustShare::Both | rust::RustShare::Tests => true,
                rust::RustShare::Product => !rust::doc_examples(text).is_empty(),
                // Only what may be tests is worth a word.
                rust::RustShare::Unreadable => text.contains("test"),
            },
            PartSplitter::Sections(rules, _) => {
                section::has_yardstick(*rules, text).unwrap_or(true)
            }
            PartSplitter::Json(rules) => rules.has_yardstick(text).unwrap_or(true),
            PartSplitter::Build => true,
            PartSplitter::Lines(_) | PartSplitter::Source(_) => !self.told(text).is_empty(),
        }
    }

    /// What judges in a text and can't be moved: a difference of it is told.
    fn told(&self, text: &str) -> Vec<String> {
        match self {
            PartSplitter::Rust => rust::doc_examples(text),
            PartSplitter::Sections(rules, _) => section::told(*rules, text),
            PartSplitter::Json(rules) => rules.told(text),
            PartSplitter::Build => vec![text.to_owned()],
            PartSplitter::Lines(words) => {
                let is_one = |line: &&str| words.as_ref().is_some_and(|it| it.is_match(line));
                text.lines().filter(is_one).map(|line| line.trim().to_owned()).collect()
            }
            PartSplitter::Source(ways) => ways.iter().flat_map(|way| way.found(text)).collect(),
        }
    }

    /// Why a difference between two texts can't be moved from one side to the other.
    pub(super) fn inseparable(&self, base: &str, head: &str) -> Option<String> {
        let (before, now) = (self.told(base), self.told(head));
        let is_same = before == now;
        match self {
            // New examples take nothing from the base's.
            PartSplitter::Rust => {
                let is_kept = before.iter().all(|example| now.contains(example));
                (!is_kept).then(|| "examples in the documentation are run as tests".to_owned())
            }
            PartSplitter::Sections(..) | PartSplitter::Json(_) if !is_same => {
                Some("it replaces packages for the product and the tests alike".to_owned())
            }
            PartSplitter::Build if !is_same => {
                Some("it decides how the product and its tests are built".to_owned())
            }
            PartSplitter::Lines(_) if !is_same => {
                Some("lines about tests stand among those of the build".to_owned())
            }
            PartSplitter::Source(ways) => {
                let of = |way: &SelfTest, text| way.found(text);
                let differs = |way: &&SelfTest| {
                    let (before, now) = (of(way, base), of(way, head));
                    match way {
                        SelfTest::PythonExample => !before.iter().all(|it| now.contains(it)),
                        SelfTest::PythonMain | SelfTest::VitestBlock => before != now,
                    }
                };
                ways.iter().find(differs).map(|way| way.words().to_owned())
            }
            PartSplitter::Sections(..)
            | PartSplitter::Json(_)
            | PartSplitter::Build
            | PartSplitter::Lines(_) => None,
        }
    }

    /// The product of one text with the yardstick of the other; an error says why there is none.
    pub(super) fn composed(
        &self,
        code: &str,
        tests: &str,
        side: YardstickSide,
    ) -> Result<String, String> {
        match self {
            PartSplitter::Rust => {
                rust::composed(code, tests).map_err(|fault| fault.words().to_owned())
            }
            PartSplitter::Sections(rules, _) => {
                let added = match side {
                    YardstickSide::Base => AddedDependency::Stays,
                    YardstickSide::Head => AddedDependency::Goes,
                };
                section::composed(*rules, code, tests, added).ok_or_else(unreadable)
            }
            PartSplitter::Json(rules) => rules.composed(code, tests).ok_or_else(unreadable),
            PartSplitter::Build | PartSplitter::Lines(_) | PartSplitter::Source(_) => {
                Ok(code.to_owned())
            }
        }
    }

    /// Whether the texts have other dependencies of tests, for which a lock file has entries.
    pub(super) fn changes_dependencies(&self, base: &str, head: &str) -> bool {
        match self {
            PartSplitter::Sections(rules, _) => {
                section::differs_in_dependencies(*rules, base, head)
            }
            PartSplitter::Rust
            | PartSplitter::Json(_)
            | PartSplitter::Build
            | PartSplitter::Lines(_)
            | PartSplitter::Source(_) => false,
        }
    }
}

fn unreadable() -> String {
    "its keys can't be told apart".to_owned()
}

static REPLACE_LINES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"=>|^\s*(?:replace|exclude)\b").ok());
static MAVEN_LINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)surefire|failsafe|jacoco|skip_?(?:its?|tests)|maven\.test|test(?:source|resource|failureignore)|checkstyle|spotbugs").ok()
});
static TEST_LINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:unit|integration|use|add|enable|py|c|php|j|skip|run|system)?_?(?:tests?|testing|rspec|unittest|testthat|jacoco|coverage|lint)\b|maxParallelForks|ignoreFailures").ok()
});

impl SelfTest {
    fn words(self) -> &'static str {
        match self {
            SelfTest::PythonExample => "examples in the documentation are run as tests",
            SelfTest::PythonMain => "it tests itself when it is run",
            SelfTest::VitestBlock => "it holds tests of vitest beside the code",
        }
    }

    /// The tests of this kind in a text.
    fn found(self, text: &str) -> Vec<String> {
        match self {
            SelfTest::PythonExample => python_examples(text),
            SelfTest::PythonMain => {
                let start = text
                    .lines()
                    .position(|line| line.starts_with("if __name__") && line.contains("__main__"));
                let block: Vec<&str> = text.lines().skip(start.unwrap_or(usize::MAX)).collect();
                let block = block.join("\n");
                let is_test = ["assert ", "unittest.main", "doctest.", "pytest.main"];
                is_test
                    .iter()
                    .any(|word| block.contains(word))
                    .then_some(block)
                    .into_iter()
                    .collect()
            }
            SelfTest::VitestBlock => {
                let start = text.find("import.meta.vitest");
                start.map(|at| text[at..].to_owned()).into_iter().collect()
            }
        }
    }
}

/// The lines of examples with what they print.
fn python_examples(text: &str) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim) {
        let is_input = line.starts_with(">>> ");
        if is_input {
            examples.push(line.to_owned());
        } else if is_open && let Some(last) = examples.last_mut() {
            last.push_str(&format!("\n{line}"));
        }
        let ends = line.is_empty() || line.starts_with("\"\"\"") || line.starts_with("'''");
        is_open = is_input || is_open && !ends;
        if ends && let Some(last) = examples.last_mut() {
            *last = last.trim_end().trim_end_matches(['"', '\'']).trim_end().to_owned();
        }
    }
    examples
}

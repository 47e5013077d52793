//! The yardstick: the files of a repository that decide a verdict without being the product.
//!
//! A change that touches one is judged by what it changed itself, so the controller also runs the
//! base's yardstick over the new code and the new yardstick over the base's code. Which files count,
//! which parts of mixed files, and what the two trees hold is decided here.

mod body;
mod census;
mod compose;
mod json;
mod manifest;
mod mixed;
mod place;
mod rust;
mod script;
mod section;

use crate::guard::path::PathPatterns;
use std::collections::BTreeSet;
use std::fmt;

pub use body::test_bodies;
pub use census::{PATTERNS_MAX, YardstickCensus, census, needs_text, proposed_patterns};
pub use compose::{ChangedEntry, ComposedEntry, ComposedTrees, EntrySide, compose};
use mixed::PartSplitter;
use place::{PlaceRule, place_rule};
use script::{CommandScripts, command_scripts};

/// A tree as the rules read it.
#[derive(Clone, Copy)]
pub struct TreeView<'a> {
    pub paths: &'a BTreeSet<String>,
    /// The text of a file; none if there is none, or if it is no text or too large.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

/// The reason why a file decides a verdict.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum YardstickReason {
    /// A test, or the code of tests beside the product's in one file.
    Test,
    /// Data, snapshots and helpers of tests.
    TestData,
    /// The settings of a test runner, linter or coverage tool.
    RunnerConfig,
    /// What decides how the product and its tests are built.
    BuildConfig,
    /// The settings of a build server.
    BuildServer,
    /// A command of the configuration runs the file.
    CommandScript { command: String },
    /// A file of the yardstick runs or reads the file.
    CalledScript { by: String },
    /// Agents read the file as an instruction.
    Instruction,
    /// A pattern of `gates.yardstick` names the file.
    Pattern(String),
}

impl YardstickReason {
    /// Whether the commands of a gate can give another verdict because of the file. Judges and people
    /// are told of the others, which need no runs of their own.
    pub fn decides_commands(&self) -> bool {
        match self {
            YardstickReason::Instruction | YardstickReason::BuildServer => false,
            YardstickReason::Test
            | YardstickReason::TestData
            | YardstickReason::RunnerConfig
            | YardstickReason::BuildConfig
            | YardstickReason::CommandScript { .. }
            | YardstickReason::CalledScript { .. }
            | YardstickReason::Pattern(_) => true,
        }
    }
}

impl fmt::Display for YardstickReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            YardstickReason::Test => write!(f, "tests"),
            YardstickReason::TestData => write!(f, "data and helpers of tests"),
            YardstickReason::RunnerConfig => write!(f, "settings of test runners and linters"),
            YardstickReason::BuildConfig => write!(f, "settings of the build"),
            YardstickReason::BuildServer => write!(f, "settings of a build server"),
            YardstickReason::CommandScript { command } => write!(f, "run by `{command}`"),
            YardstickReason::CalledScript { by } => write!(f, "used by `{by}`"),
            YardstickReason::Instruction => write!(f, "instructions of agents"),
            YardstickReason::Pattern(pattern) => write!(f, "named by `{pattern}`"),
        }
    }
}

/// The part of a file that belongs to the yardstick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum YardstickShare {
    None,
    Whole(YardstickReason),
    /// The file holds both the product and what decides a verdict on it.
    Part(YardstickReason),
}

/// The rules by which files of one repository belong to the yardstick.
pub struct YardstickRules<'a> {
    patterns: PathPatterns,
    scripts: CommandScripts,
    trees: &'a [TreeView<'a>],
}

/// Whether a file decides a verdict by its name and place alone.
pub(crate) fn decides(path: &str) -> bool {
    matches!(place_rule(path), PlaceRule::Whole(_))
}

/// The modules of Rust from a file up to the one that says whether it is for tests.
const MODULES_MAX: usize = 8;

impl<'a> YardstickRules<'a> {
    /// Makes the rules from `gates.yardstick`, the commands of the configuration by their names, and the
    /// trees in which the scripts of these commands are looked up: those of the base and of the change.
    pub fn new(
        patterns: &[String],
        commands: &[(String, String)],
        trees: &'a [TreeView<'a>],
    ) -> Self {
        let scripts = command_scripts(commands, trees);
        YardstickRules { patterns: PathPatterns::new(patterns), scripts, trees }
    }

    /// The part of a file that belongs to the yardstick, by its path and its texts on the base and with
    /// the change.
    pub fn share(&self, path: &str, texts: [Option<&str>; 2]) -> YardstickShare {
        if let Some(reason) = self.whole(path, texts) {
            return YardstickShare::Whole(reason);
        }
        let reached = self.reached();
        let Some(splitter) = self.splitter(path, texts, &reached) else {
            return YardstickShare::None;
        };
        if texts.into_iter().flatten().any(|text| splitter.has_yardstick(text)) {
            YardstickShare::Part(splitter.reason())
        } else {
            YardstickShare::None
        }
    }

    /// Tells whether the commands come to a script of `package.json`.
    fn reached(&self) -> impl Fn(&str) -> bool {
        |name| self.scripts.package_scripts.contains(name)
    }

    /// The reason why a file is no product at all.
    fn whole(&self, path: &str, texts: [Option<&str>; 2]) -> Option<YardstickReason> {
        if let Some(pattern) = self.patterns.matching(path) {
            return Some(YardstickReason::Pattern(pattern.to_owned()));
        }
        // What a command runs decides its verdict, whatever else the file is.
        if let Some(reason) = self.scripts.files.get(path)
            && !is_builder(path, texts)
        {
            return Some(reason.clone());
        }
        let run = self.scripts.directories.iter().find(|(directory, _)| {
            path.strip_prefix(directory.as_str()).is_some_and(|rest| rest.starts_with('/'))
        });
        if let Some((_, reason)) = run.filter(|_| !is_read(path)) {
            return Some(reason.clone());
        }
        if crate::instruction::is_instruction(path) {
            return Some(YardstickReason::Instruction);
        }
        match place_rule(path) {
            PlaceRule::Whole(reason) => (!is_builder(path, texts)).then_some(reason),
            PlaceRule::ByName => {
                let declared = self.declared(path, 0);
                (declared != Some(Declared::Product)).then_some(YardstickReason::Test)
            }
            PlaceRule::Product if path.ends_with(".rs") => {
                let says = |text: Option<&str>| text.is_some_and(rust::is_test_only);
                let is_test = self.declared(path, 0) == Some(Declared::Tests)
                    || texts.iter().any(|text| text.is_some())
                        && texts.iter().all(|text| text.is_none() || says(*text));
                is_test.then_some(YardstickReason::Test)
            }
            PlaceRule::Build | PlaceRule::Lines | PlaceRule::Product => None,
        }
    }

    /// How a mixed file is taken apart.
    fn splitter<'b>(
        &self,
        path: &str,
        texts: [Option<&str>; 2],
        reached: &'b dyn Fn(&str) -> bool,
    ) -> Option<PartSplitter<'b>> {
        match place_rule(path) {
            PlaceRule::Build => Some(PartSplitter::Build),
            PlaceRule::Lines => Some(PartSplitter::lines(path)),
            PlaceRule::Whole(_) | PlaceRule::ByName | PlaceRule::Product => {
                if is_builder(path, texts) {
                    return Some(PartSplitter::Build);
                }
                PartSplitter::of(path, reached)
            }
        }
    }

    /// What the sources say of a module of Rust, by the file that declares it.
    fn declared(&self, path: &str, depth: usize) -> Option<Declared> {
        let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = file.strip_suffix(".rs")?;
        if ["lib", "main"].contains(&stem) || depth >= MODULES_MAX {
            return None;
        }
        let (directory, module) = match stem {
            "mod" => directory.rsplit_once('/').unwrap_or(("", directory)),
            stem => (directory, stem),
        };
        let in_directory =
            ["mod.rs", "lib.rs", "main.rs"].map(|name| format!("{directory}/{name}"));
        let parents = in_directory.into_iter().chain([format!("{directory}.rs")]);
        let mut found = None;
        for parent in parents.filter(|parent| parent != path) {
            let parent = parent.trim_start_matches('/');
            for tree in self.trees.iter().filter(|tree| tree.paths.contains(parent)) {
                let text = (tree.read)(parent).unwrap_or_default();
                if !text.contains(module) {
                    continue;
                }
                if rust::test_modules(&text).iter().any(|name| name == module) {
                    return Some(Declared::Tests);
                }
                if rust::declares(&text, module) {
                    found = self.declared(parent, depth + 1).or(Some(Declared::Product));
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// For whom a module of Rust is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declared {
    Tests,
    Product,
}

/// Whether people or agents read a file, and no program runs it.
fn is_read(path: &str) -> bool {
    let is_told = crate::instruction::is_instruction(path) && path.to_lowercase().ends_with(".md");
    is_told || place::is_document(path)
}

/// Whether a file of rules for `make` compiles the product itself and does not only call tools that do.
fn is_builder(path: &str, texts: [Option<&str>; 2]) -> bool {
    const COMPILES: &[&str] =
        &["$(CC)", "$(CXX)", "${CC}", "${CXX}", "$(LD)", "gcc ", "clang ", "g++ ", ".o:", "%.o"];
    let name = path.rsplit('/').next().unwrap_or(path);
    ["Makefile", "makefile", "GNUmakefile"].contains(&name)
        && texts.into_iter().flatten().any(|text| COMPILES.iter().any(|word| text.contains(word)))
}

#[cfg(test)]
mod tests;

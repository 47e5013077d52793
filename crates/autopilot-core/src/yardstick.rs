//! The yardstick: the files of a repository that decide a verdict without being the product.
//!
//! A change that touches one is judged by what it changed itself, so the controller also runs the
//! base's yardstick over the new code and the new yardstick over the base's code. Which files count,
//! which parts of mixed files, and what the two trees hold is decided here.

mod body;
mod compose;
mod manifest;
mod rust;
mod section;

use crate::guard::path::PathPatterns;
use std::collections::BTreeSet;
use std::fmt;

pub use body::test_bodies;
pub use compose::{ChangedEntry, ComposedEntry, ComposedTrees, EntrySide, compose};

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
    #[expect(dead_code, reason = "the rules that read other files come next")]
    trees: &'a [TreeView<'a>],
}

impl<'a> YardstickRules<'a> {
    /// Makes the rules from `gates.yardstick`, the commands of the configuration by their names, and the
    /// trees in which the scripts of these commands are looked up: those of the base and of the change.
    pub fn new(
        patterns: &[String],
        _commands: &[(String, String)],
        trees: &'a [TreeView<'a>],
    ) -> Self {
        YardstickRules { patterns: PathPatterns::new(patterns), trees }
    }

    /// The part of a file that belongs to the yardstick, by its path and its texts on the base and with
    /// the change.
    pub fn share(&self, path: &str, _texts: [Option<&str>; 2]) -> YardstickShare {
        if let Some(pattern) = self.patterns.matching(path) {
            return YardstickShare::Whole(YardstickReason::Pattern(pattern.to_owned()));
        }
        if crate::instruction::is_instruction(path) {
            return YardstickShare::Whole(YardstickReason::Instruction);
        }
        if crate::guard::is_test_path(path) {
            return YardstickShare::Whole(YardstickReason::Test);
        }
        if crate::guard::path::is_fixture(path) {
            return YardstickShare::Whole(YardstickReason::TestData);
        }
        YardstickShare::None
    }
}

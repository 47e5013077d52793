//! Which gates may run over a seed, and which must start from nothing.
//!
//! A seed holds what building and testing the untouched base has left. A gate over it is as fast as
//! the developer's own checkout, but a build tool that wrongly finds nothing to do gives the base's
//! verdict. So a change that build tools are known to misread is proven cold, and the last word on a
//! run is cold.

mod decisive;
mod setup;
mod slot;

pub use decisive::{DecisiveFile, DecisiveRow};
pub use setup::installs_only;
pub use slot::{
    SlotOffer, SlotShare, SlotUser, fills_slots, keeps_output, slot_shares, slot_time_max,
};

use crate::config::KeepWorktrees;
use crate::guard::{ChangedFile, FileMode, FileStatus};
use crate::rows::rows;
use crate::state::Task;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::time::Duration;

rows! {
/// Whether gates may run over a seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
WarmGates -> &'static str {
    /// Where the kernel can lay a gate over a seed.
    #[default]
    Auto: "auto",
    Off: "off",
}}

rows! {
/// The proof that a run's result needs at last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
LastWord -> &'static str {
    /// One that starts from nothing.
    #[default]
    Cold: "cold",
    /// The gates that ran over a seed are enough.
    Warm: "warm",
}}

/// What the gates of a run over seeds have shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeedTrust {
    /// A gate passed over a seed.
    pub is_used: bool,
    /// What passed over a seed has failed from nothing; no gate starts from a seed any more.
    pub is_refuted: bool,
}

impl SeedTrust {
    /// Returns whether every gate that passed started from nothing.
    pub fn is_unused(&self) -> bool {
        *self == SeedTrust::default()
    }
}

/// Returns whether gates run in rooms of their own, which can become seeds. Whoever keeps the output of
/// builds in the directories of gates has chosen another way to save time.
pub fn uses_rooms(warm: WarmGates, keep: KeepWorktrees) -> bool {
    match (warm, keep) {
        (WarmGates::Off, _) | (_, KeepWorktrees::Always) => false,
        (WarmGates::Auto, KeepWorktrees::Auto | KeepWorktrees::Never) => true,
    }
}

/// What keeps the programs of a run from the state directory, in which the seeds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFence {
    /// A sandbox that does not let them write there.
    Closed,
    /// A sandbox whose configured paths contain the state directory.
    Pierced,
    None,
}

/// Returns whether the programs of a run could have changed seeds and proofs of the base, so that no
/// later run may trust any of them.
pub fn exposes_seeds(fence: StateFence) -> bool {
    match fence {
        StateFence::Closed => false,
        StateFence::Pierced | StateFence::None => true,
    }
}

/// Returns whether a run with these settings is proven once more from nothing before it is done. Where
/// the output of builds is kept, nothing is proven from nothing, and nobody is told that it was.
pub fn needs_cold_proof(warm: WarmGates, last_word: LastWord, keep: KeepWorktrees) -> bool {
    uses_rooms(warm, keep) && last_word == LastWord::Cold
}

/// The reason why a gate starts from nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColdCause {
    /// The file is gone, or is somewhere else; what was built from it is still in the seed.
    Removed { path: String },
    /// The file is no longer of the same kind, or a submodule.
    Kind { path: String },
    /// The file decides what is built, with what, or how tests are run.
    Decisive { path: String, what: DecisiveFile },
    /// A command of the gate names the file.
    Command { path: String },
}

impl std::fmt::Display for ColdCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ColdCause::Removed { path } => write!(f, "`{path}` was deleted or renamed"),
            ColdCause::Kind { path } => write!(f, "`{path}` is of another kind now"),
            ColdCause::Decisive { path, what } => write!(f, "`{path}` is {}", what.row().words),
            ColdCause::Command { path } => write!(f, "a command names `{path}`"),
        }
    }
}

/// What a failure over a seed is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedLook {
    /// It counts as it is.
    Believe,
    /// It is looked at once more from nothing before it counts.
    Again,
}

/// The words of a program that could not rename a directory over the border of two layers.
const LAYER_WORDS: [&str; 3] = ["EXDEV", "Invalid cross-device link", "os error 18"];

/// Whether a failure over a seed counts as it is. One that smells of the layer does not, and neither
/// does one that could end the task.
pub fn red_look(output: &str, could_end: bool) -> RedLook {
    let smells = LAYER_WORDS.iter().any(|words| output.contains(words));
    if smells || could_end { RedLook::Again } else { RedLook::Believe }
}

/// Whether a failure of a step now could end a task: in the last round, or when rounds before have
/// failed, since rails end a task whose failures repeat themselves. In the merge queue, the task that
/// fails need not be the one whose step this is.
pub fn could_end(step: Step, task: &Task, rounds_max: u32) -> bool {
    step == Step::Merge || task.round >= rounds_max || !task.marks.is_empty()
}

/// The shortest gate from nothing for which a seed is kept: below, keeping it costs more.
const SEED_PAYS_FROM: Duration = Duration::from_secs(3);

/// Whether a seed of a gate that took this long from nothing is worth its place.
pub fn seed_pays(cold: Duration) -> bool {
    cold >= SEED_PAYS_FROM
}

/// A whole copy of a seed has to be cheaper than this part of a gate from nothing.
const COPY_PART_MAX: u32 = 3;

/// Whether a gate over a whole copy of a seed is worth the copying.
pub fn copy_pays(copy: Duration, cold: Duration) -> bool {
    copy * COPY_PART_MAX <= cold
}

/// The reason why a change can't be proven over a seed, the gravest first; none if it can. `commands`
/// are the command lines of the gate.
pub fn cold_cause(files: &[ChangedFile], commands: &[String]) -> Option<ColdCause> {
    let mut reasons: Vec<ColdCause> =
        files.iter().filter_map(|file| reason_of(file, commands)).collect();
    reasons.sort_by_key(|reason| match reason {
        ColdCause::Removed { .. } => 0,
        ColdCause::Kind { .. } => 1,
        ColdCause::Decisive { .. } => 2,
        ColdCause::Command { .. } => 3,
    });
    reasons.into_iter().next()
}

fn reason_of(file: &ChangedFile, commands: &[String]) -> Option<ColdCause> {
    let path = file.path.clone();
    match file.status {
        FileStatus::Deleted | FileStatus::Renamed => {
            return Some(ColdCause::Removed { path: file.old_path.clone().unwrap_or(path) });
        }
        FileStatus::TypeChanged => return Some(ColdCause::Kind { path }),
        FileStatus::Unmerged => return Some(ColdCause::Kind { path }),
        FileStatus::Added | FileStatus::Modified | FileStatus::Copied => {}
    }
    match file.mode {
        FileMode::Gitlink | FileMode::Symlink => return Some(ColdCause::Kind { path }),
        FileMode::Regular | FileMode::Executable => {}
    }
    if let Some(what) = decisive(&path) {
        return Some(ColdCause::Decisive { path, what });
    }
    let is_run = commands.iter().any(|line| crate::command_line::has_word(line, &path));
    is_run.then_some(ColdCause::Command { path })
}

/// The kind of a file that decides a build, by its path.
pub fn decisive(path: &str) -> Option<DecisiveFile> {
    let is_one = |kind: &DecisiveFile| kind.row().names.iter().any(|name| fits(path, name));
    DecisiveFile::ALL.into_iter().find(is_one)
}

pub(crate) fn fits(path: &str, name: &str) -> bool {
    if name.contains('/') {
        return path == name || path.ends_with(&format!("/{name}"));
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    match name.split_once('*') {
        None => file == name,
        Some((before, after)) => {
            file.len() >= before.len() + after.len()
                && file.starts_with(before)
                && file.ends_with(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RoundMark;

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

    fn reason(file: ChangedFile) -> Option<String> {
        cold_cause(&[file], &["sh tests/run.sh && cargo test".to_owned()])
            .map(|reason| reason.to_string())
    }

    #[test]
    fn plain_sources_and_tests_may_be_proven_over_a_seed() {
        for path in [
            "src/main.rs",
            "tests/cli.rs",
            "lib/a.py",
            "docs/x.md",
            "a/package.jsonc",
            "x/build.rs.in",
            "src/cargo.toml.rs",
            "run.sh",
            "sub/tests/run.sh",
            "makefile.py",
        ] {
            assert_eq!(reason(file(path)), None, "{path}");
        }
        let added = ChangedFile { status: FileStatus::Added, ..file("src/new.rs") };
        assert_eq!(reason(added), None);
    }

    #[test]
    fn what_decides_a_build_is_proven_cold() {
        for (path, words) in [
            ("Cargo.toml", "a manifest"),
            ("crates/a/Cargo.toml", "a manifest"),
            ("requirements-dev.txt", "a manifest"),
            ("Cargo.lock", "a lock file"),
            ("web/pnpm-lock.yaml", "a lock file"),
            ("rust-toolchain.toml", "the choice of a toolchain"),
            ("crates/a/build.rs", "a build script"),
            ("mk/rules.mk", "a build script"),
            (".cargo/config.toml", "the configuration of a test runner or compiler"),
            ("a/.cargo/config", "the configuration of a test runner or compiler"),
            ("tests/conftest.py", "the configuration of a test runner or compiler"),
            ("vitest.config.ts", "the configuration of a test runner or compiler"),
            ("src/.gitattributes", "a setting of the repository"),
        ] {
            assert_eq!(reason(file(path)), Some(format!("`{path}` is {words}")));
        }
    }

    #[test]
    fn what_a_build_tool_can_not_see_is_proven_cold() {
        let gone = ChangedFile { status: FileStatus::Deleted, ..file("src/a.rs") };
        assert_eq!(reason(gone).unwrap(), "`src/a.rs` was deleted or renamed");
        let moved = ChangedFile {
            status: FileStatus::Renamed,
            old_path: Some("src/A.rs".to_owned()),
            ..file("src/a.rs")
        };
        assert_eq!(reason(moved).unwrap(), "`src/A.rs` was deleted or renamed");
        let kind = ChangedFile { status: FileStatus::TypeChanged, ..file("a") };
        assert_eq!(reason(kind).unwrap(), "`a` is of another kind now");
        for mode in [FileMode::Gitlink, FileMode::Symlink] {
            assert_eq!(
                reason(ChangedFile { mode, ..file("a") }).unwrap(),
                "`a` is of another kind now"
            );
        }
        assert_eq!(reason(file("tests/run.sh")).unwrap(), "a command names `tests/run.sh`");
    }

    #[test]
    fn a_failure_that_smells_of_the_layer_or_ends_the_task_is_looked_at_again() {
        assert_eq!(red_look("assertion failed", false), RedLook::Believe);
        assert_eq!(red_look("assertion failed", true), RedLook::Again);
        assert_eq!(
            red_look("rename: Invalid cross-device link (os error 18)", false),
            RedLook::Again
        );
        assert_eq!(
            red_look("Error: EXDEV: cross-device link not permitted", false),
            RedLook::Again
        );
    }

    #[test]
    fn gates_run_in_slots_where_warm_gates_are_off_or_build_output_is_kept() {
        assert!(uses_rooms(WarmGates::Auto, KeepWorktrees::Auto));
        assert!(uses_rooms(WarmGates::Auto, KeepWorktrees::Never));
        assert!(!uses_rooms(WarmGates::Auto, KeepWorktrees::Always));
        assert!(!uses_rooms(WarmGates::Off, KeepWorktrees::Auto));
        let keep = KeepWorktrees::Auto;
        assert!(needs_cold_proof(WarmGates::Auto, LastWord::Cold, keep));
        assert!(!needs_cold_proof(WarmGates::Auto, LastWord::Warm, keep));
        assert!(!needs_cold_proof(WarmGates::Off, LastWord::Cold, keep));
        assert!(!needs_cold_proof(WarmGates::Auto, LastWord::Cold, KeepWorktrees::Always));
    }

    #[test]
    fn only_a_sandbox_around_the_state_keeps_seeds_trusted() {
        assert!(!exposes_seeds(StateFence::Closed));
        assert!(exposes_seeds(StateFence::Pierced) && exposes_seeds(StateFence::None));
    }

    #[test]
    fn only_a_first_failure_with_rounds_left_can_not_end_a_task() {
        let fresh = Task { round: 1, ..Task::default() };
        let ends = |task: &Task, rounds_max| could_end(Step::Validate, task, rounds_max);
        assert!(!ends(&fresh, 5) && ends(&fresh, 1));
        assert!(could_end(Step::Merge, &fresh, 5));
        let failed = Task { marks: vec![RoundMark::default()], ..fresh };
        assert!(ends(&failed, 5));
    }

    #[test]
    fn a_seed_is_kept_and_copied_only_where_that_pays() {
        let ms = Duration::from_millis;
        assert!(!seed_pays(ms(2_999)) && seed_pays(ms(3_000)));
        assert!(copy_pays(ms(1_000), ms(3_000)) && !copy_pays(ms(1_001), ms(3_000)));
    }

    #[test]
    fn the_gravest_reason_is_told() {
        let gone = ChangedFile { status: FileStatus::Deleted, ..file("b") };
        let both = [file("Cargo.toml"), gone];
        assert!(matches!(cold_cause(&both, &[]), Some(ColdCause::Removed { .. })));
        assert_eq!(cold_cause(&[file("a.rs"), file("b.rs")], &[]), None);
    }
}

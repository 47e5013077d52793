//! Where a directory of held-out tests may be, and how large.

use camino::{Utf8Path, Utf8PathBuf};

/// The most files of a directory of held-out tests.
pub const HOLDOUT_FILES_MAX: usize = 2_000;
/// The most bytes of one held-out file.
pub const HOLDOUT_FILE_BYTES_MAX: u64 = 8 << 20;
/// The most bytes of all held-out files together.
pub const HOLDOUT_BYTES_MAX: u64 = 64 << 20;

/// Why a directory can't hold held-out tests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldoutFault {
    #[error(
        "`gates.holdout` is set, and there is no `commands.tests` that could run the held-out tests; \
         write one, or remove `gates.holdout`"
    )]
    NoTests,
    #[error(
        "`worktrees.keep: always` leaves what the tests make of held-out files to the next gate; remove \
         it, or remove `gates.holdout`"
    )]
    Kept,
    #[error(
        "`gates.holdout` is `{dir}`, which can't be read ({why}); create the directory, or correct \
         the path, which is relative to the top of the repository"
    )]
    Unreadable { dir: Utf8PathBuf, why: String },
    #[error("`gates.holdout` is `{dir}`, which has no file; put the held-out tests into it")]
    Empty { dir: Utf8PathBuf },
    #[error(
        "`gates.holdout` is `{dir}`, which is in {place} (`{of}`), where agents read; move it to a \
         directory outside"
    )]
    Inside { dir: Utf8PathBuf, place: &'static str, of: Utf8PathBuf },
    #[error(
        "`gates.holdout` is `{dir}`, which has {place} (`{of}`) in it and can't be hidden from \
         agents; move the tests to a directory of their own"
    )]
    Around { dir: Utf8PathBuf, place: &'static str, of: Utf8PathBuf },
    #[error(
        "`sandbox.write` opens `{write}` in the directory of held-out tests `{dir}` to agents; remove \
         one of the two"
    )]
    Opened { dir: Utf8PathBuf, write: Utf8PathBuf },
    #[error(
        "`{file}` in the directory of held-out tests `{dir}` {why}; replace it by a plain file, or \
         remove it"
    )]
    OddFile { dir: Utf8PathBuf, file: String, why: &'static str },
    #[error(
        "`{file}` in the directory of held-out tests `{dir}` is larger than {} MiB; remove it",
        HOLDOUT_FILE_BYTES_MAX >> 20
    )]
    LargeFile { dir: Utf8PathBuf, file: String },
    #[error(
        "the directory of held-out tests `{dir}` has more than {HOLDOUT_FILES_MAX} files or {} MiB; \
         keep only what the tests need",
        HOLDOUT_BYTES_MAX >> 20
    )]
    TooLarge { dir: Utf8PathBuf },
}

/// The directories that a directory of held-out tests must not be mixed with. All paths are without
/// links.
#[derive(Debug, Clone, Copy)]
pub struct HoldoutGround<'a> {
    /// The top of the user's checkout.
    pub root: &'a Utf8Path,
    /// The repository's own directory, which may be elsewhere.
    pub git: &'a Utf8Path,
    pub state: &'a Utf8Path,
    /// The paths that `sandbox.write` opens.
    pub write: &'a [Utf8PathBuf],
}

/// What is wrong with the place of a directory, if anything is. `dir` is without links.
pub fn location_fault(dir: &Utf8Path, ground: &HoldoutGround<'_>) -> Option<HoldoutFault> {
    let places = [
        ("the checkout", ground.root),
        ("the repository", ground.git),
        ("the state directory", ground.state),
    ];
    let places = places.into_iter().filter(|(_, of)| !of.as_str().is_empty());
    for (place, of) in places {
        let (dir, of) = (dir.to_owned(), of.to_owned());
        if dir.starts_with(&of) {
            return Some(HoldoutFault::Inside { dir, place, of });
        }
        if of.starts_with(&dir) {
            return Some(HoldoutFault::Around { dir, place, of });
        }
    }
    let opened = ground.write.iter().find(|write| write.starts_with(dir));
    opened.map(|write| HoldoutFault::Opened { dir: dir.to_owned(), write: write.clone() })
}

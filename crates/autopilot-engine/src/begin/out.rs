//! The output directory of a run, checked before the run starts.

use super::BeginError;
use crate::place::StatePaths;
use crate::views::{goal_dir, open_goal_dir};
use autopilot_core::state::Run;
use autopilot_host::file::{Dir, FileError};
use autopilot_host::{dir, file};
use autopilot_view::manifest::RUNS_DIR;
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use std::io;
use std::path::Path;

/// A file that is written and removed again to test a directory.
const PROBE: &str = ".autopilot-writable";

/// Why an output directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum OutFault {
    #[error("it is empty; name a directory")]
    Empty,
    #[error("it has a control character; name another directory")]
    ControlCharacter,
    #[error("its name is not UTF-8")]
    NotUtf8,
    #[error("a directory that does not exist has no `..`; write the path without it")]
    ParentOfMissing,
    #[error("{what} is not a directory; use another one")]
    NotADirectory { what: String },
    #[error("it is a broken symbolic link; remove it or use another directory")]
    BrokenLink,
    #[error("it belongs to git; use another directory")]
    OfGit,
    #[error("cannot find it")]
    Unresolved(#[source] io::Error),
    #[error("cannot write there")]
    NotWritable(#[source] io::Error),
    #[error("it is the default place for the files of a goal")]
    DefaultPlace(#[source] FileError),
}

impl OutFault {
    fn at(self, path: impl Into<Utf8PathBuf>) -> BeginError {
        BeginError::Out { path: path.into(), source: self }
    }
}

/// A directory's path relative to the repository, or absolute when it is outside. `given` is
/// relative to the current directory. Nothing is created yet.
pub fn out_dir(given: &Utf8Path, root: &Utf8Path) -> Result<String, BeginError> {
    let refused = |fault: OutFault| fault.at(given);
    if given.as_str().trim().is_empty() {
        return Err(refused(OutFault::Empty));
    }
    if given.as_str().contains(char::is_control) {
        return Err(refused(OutFault::ControlCharacter));
    }
    let unresolved = |error| refused(OutFault::Unresolved(error));
    let whole = std::path::absolute(given).map_err(unresolved)?;
    let whole = Utf8PathBuf::from_path_buf(whole).map_err(|_| refused(OutFault::NotUtf8))?;
    // Existing parts of the path may be symbolic links, so they are resolved.
    let there = whole.ancestors().find(|path| path.exists()).unwrap_or(Utf8Path::new("/"));
    let missing = whole.strip_prefix(there).unwrap_or(Utf8Path::new(""));
    if missing.components().any(|part| part == Utf8Component::ParentDir) {
        return Err(refused(OutFault::ParentOfMissing));
    }
    let real = there.canonicalize_utf8().map_err(unresolved)?;
    if !real.is_dir() {
        let what = if missing.as_str().is_empty() { "it" } else { there.as_str() };
        return Err(refused(OutFault::NotADirectory { what: what.to_owned() }));
    }
    if missing.components().next().is_some_and(|part| real.join(part).symlink_metadata().is_ok()) {
        return Err(refused(OutFault::BrokenLink));
    }
    let real = if missing.as_str().is_empty() { real } else { real.join(missing) };
    let root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    let Ok(inside) = real.strip_prefix(&root) else { return Ok(real.into()) };
    if inside.components().any(|part| part.as_str() == ".git") {
        return Err(refused(OutFault::OfGit));
    }
    Ok(if inside.as_str().is_empty() { ".".to_owned() } else { inside.to_string() })
}

/// Creates the output directory and checks that it is writable.
pub fn prove_out(out: Option<&str>, root: &Utf8Path) -> Result<(), BeginError> {
    let Some(out) = out else { return prove_usual(root) };
    let path = root.join(out);
    let probe = path.join(PROBE);
    let proven = dir::create(path.as_std_path())
        .and_then(|()| file::write_atomic(probe.as_std_path(), b"").map_err(io::Error::other))
        .and_then(|()| dir::remove_file(probe.as_std_path()));
    proven.map(|_was_there| ()).map_err(|error| OutFault::NotWritable(error).at(path))
}

/// Checks the output directory of a resumed run.
pub fn prove_out_of(run: &Run, place: &StatePaths) -> Result<(), BeginError> {
    prove_out(run.options.out.as_deref(), &place.root)?;
    let proven = open_goal_dir(place, run).map_err(io::Error::other).and_then(|dir| {
        dir.write_atomic(Path::new(PROBE), b"").map_err(io::Error::other)?;
        dir::remove_file(&dir.path().join(PROBE))
    });
    let at = |error| OutFault::NotWritable(error).at(goal_dir(place, run));
    proven.map(|_was_there| ()).map_err(at)
}

/// Checks that the default output directory does not lead out of the checkout.
fn prove_usual(root: &Utf8Path) -> Result<(), BeginError> {
    let made = Dir::open(root.as_std_path()).and_then(|dir| dir.below(Path::new(RUNS_DIR)));
    made.map(|_dir| ()).map_err(|error| OutFault::DefaultPlace(error).at(root.join(RUNS_DIR)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::chain;

    #[test]
    fn a_directory_that_can_not_be_written_to_is_refused_with_its_cause() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        std::fs::write(root.join("a-file"), "").unwrap();
        let refused = prove_out(Some("a-file/below"), root).unwrap_err();
        let BeginError::Out { source: OutFault::NotWritable(cause), .. } = &refused else {
            panic!("{refused}")
        };
        assert_eq!(cause.kind(), io::ErrorKind::NotADirectory);
        let told = chain(&refused);
        assert!(told.starts_with("--out `") && told.contains("cannot write there: "), "{told}");
    }
}

//! The output directory of a run, checked before the run starts.

use super::BeginError;
use crate::place::StatePaths;
use crate::views::{goal_dir, open_goal_dir};
use autopilot_core::state::Run;
use autopilot_host::file::Dir;
use autopilot_host::{dir, file};
use autopilot_view::manifest::RUNS_DIR;
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use std::path::Path;

/// A file that is written and removed again to test a directory.
const PROBE: &str = ".autopilot-writable";

/// A directory's path relative to the repository, or absolute when it is outside. `given` is
/// relative to the current directory. Nothing is created yet.
pub fn out_dir(given: &Utf8Path, root: &Utf8Path) -> Result<String, BeginError> {
    let refused = |reason: &str| BeginError::Out { path: given.to_owned(), reason: reason.into() };
    if given.as_str().trim().is_empty() {
        return Err(refused("it is empty; name a directory"));
    }
    if given.as_str().contains(char::is_control) {
        return Err(refused("it has a control character; name another directory"));
    }
    let whole = std::path::absolute(given).map_err(|error| refused(&error.to_string()))?;
    let whole = Utf8PathBuf::from_path_buf(whole).map_err(|_| refused("its name is not UTF-8"))?;
    // Existing parts of the path may be symbolic links, so they are resolved.
    let there = whole.ancestors().find(|path| path.exists()).unwrap_or(Utf8Path::new("/"));
    let missing = whole.strip_prefix(there).unwrap_or(Utf8Path::new(""));
    if missing.components().any(|part| part == Utf8Component::ParentDir) {
        return Err(refused(
            "a directory that does not exist has no `..`; write the path without it",
        ));
    }
    let real = there.canonicalize_utf8().map_err(|error| refused(&error.to_string()))?;
    if !real.is_dir() {
        let what = if missing.as_str().is_empty() { "it" } else { there.as_str() };
        return Err(refused(&format!("{what} is not a directory; use another one")));
    }
    if missing.components().next().is_some_and(|part| real.join(part).symlink_metadata().is_ok()) {
        return Err(refused("it is a broken symbolic link; remove it or use another directory"));
    }
    let real = if missing.as_str().is_empty() { real } else { real.join(missing) };
    let root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    let Ok(inside) = real.strip_prefix(&root) else { return Ok(real.into()) };
    if inside.components().any(|part| part.as_str() == ".git") {
        return Err(refused("it belongs to git; use another directory"));
    }
    Ok(if inside.as_str().is_empty() { ".".to_owned() } else { inside.to_string() })
}

/// Creates the output directory and checks that it is writable.
pub fn prove_out(out: Option<&str>, root: &Utf8Path) -> Result<(), BeginError> {
    let Some(out) = out else { return prove_usual(root) };
    let path = root.join(out);
    let probe = path.join(PROBE);
    let proven = dir::create(path.as_std_path())
        .and_then(|()| file::write_atomic(probe.as_std_path(), b"").map_err(std::io::Error::other))
        .and_then(|()| dir::remove_file(probe.as_std_path()));
    proven.map(|_was_there| ()).map_err(|error| BeginError::Out {
        reason: format!("cannot write there: {}", crate::cause::chain(&error)),
        path,
    })
}

/// Checks the output directory of a resumed run.
pub fn prove_out_of(run: &Run, place: &StatePaths) -> Result<(), BeginError> {
    prove_out(run.options.out.as_deref(), &place.root)?;
    let proven = open_goal_dir(place, run).map_err(std::io::Error::other).and_then(|dir| {
        dir.write_atomic(Path::new(PROBE), b"").map_err(std::io::Error::other)?;
        dir::remove_file(&dir.path().join(PROBE))
    });
    proven.map(|_was_there| ()).map_err(|error| BeginError::Out {
        reason: format!(
            "cannot write there: {}; fix that and try again",
            crate::cause::chain(&error)
        ),
        path: goal_dir(place, run),
    })
}

/// Checks that the default output directory does not lead out of the checkout.
fn prove_usual(root: &Utf8Path) -> Result<(), BeginError> {
    let made = Dir::open(root.as_std_path()).and_then(|dir| dir.below(Path::new(RUNS_DIR)));
    made.map(|_dir| ()).map_err(|error| BeginError::Out {
        reason: format!(
            "it is the default place for the files of a goal: {}",
            crate::cause::chain(&error)
        ),
        path: root.join(RUNS_DIR),
    })
}

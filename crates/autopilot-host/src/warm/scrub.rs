//! What stays in a room that is sealed: tracked files, what the setup made, and what a build tool made
//! for itself. A file that a test of the base left behind could make a test of a change pass.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::audit;
use super::error::{OnPath, WarmError};
use super::layer::WrittenFile;
use super::mark::TreeMarks;
use super::room::RoomPaths;
use crate::dir::{self, open_up};
use crate::patience;

/// A directory in a worktree that belongs to a build tool.
struct BuildDirectory {
    name: &'static str,
    /// The tracked files of which one must be beside it; without any, it stands for itself.
    beside: &'static [&'static str],
    /// A file that must be in it.
    inside: Option<&'static str>,
    /// Parts of it in which tests and other programs keep files of their own.
    without: &'static [&'static str],
}

const fn beside(name: &'static str, files: &'static [&'static str]) -> BuildDirectory {
    BuildDirectory { name, beside: files, inside: None, without: &[] }
}

const fn environment(name: &'static str) -> BuildDirectory {
    BuildDirectory { name, beside: &[], inside: Some("pyvenv.cfg"), without: &[] }
}

const PYTHON: &[&str] = &["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py"];
const GRADLE: &[&str] =
    &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];

const BUILD_DIRECTORIES: &[BuildDirectory] = &[
    BuildDirectory {
        // Integration tests get `target/tmp` for their own files.
        without: &["tmp"],
        ..beside("target", &["Cargo.toml", "pom.xml", "build.sbt"])
    },
    BuildDirectory { without: &[".cache"], ..beside("node_modules", &["package.json"]) },
    environment(".venv"),
    environment("venv"),
    beside(".tox", PYTHON),
    beside(".nox", PYTHON),
    beside(".mypy_cache", &[]),
    beside(".ruff_cache", &[]),
    beside(".gradle", GRADLE),
    beside("build", GRADLE),
    beside("_build", &["mix.exs", "dune-project", "rebar.config"]),
    beside("deps", &["mix.exs"]),
    beside(".build", &["Package.swift"]),
    beside(".dart_tool", &["pubspec.yaml"]),
    beside(".stack-work", &["stack.yaml"]),
    beside("dist-newstyle", &["cabal.project"]),
];

/// The compiled modules of Python, of which only files of that kind stay.
const COMPILED_MODULES: &str = "__pycache__";
/// The link to a package that is installed from its sources.
const EDITABLE: &str = ".egg-info";

/// The stores of build tools in a home that have no cache directory of their own.
const HOME_STORES: &[&str] = &[
    ".bundle",
    ".cabal",
    ".gem",
    ".hex",
    ".ivy2",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2",
    ".mix",
    ".nuget/packages",
    ".pub-cache",
    ".sbt",
    ".stack",
];

/// The cache directory that all programs share, and the parts of it that belong to build tools.
const SHARED_CACHE: &str = "xdg";
const SHARED_CACHES: &[&str] = &[
    "Cypress",
    "bazel",
    "bazelisk",
    "ccache",
    "composer",
    "coursier",
    "deno",
    "electron",
    "go-build",
    "hatch",
    "ms-playwright",
    "node",
    "node-gyp",
    "pdm",
    "pip",
    "pnpm",
    "pre-commit",
    "puppeteer",
    "pypoetry",
    "sccache",
    "typescript",
    "uv",
    "virtualenv",
    "yarn",
    "zig",
];

/// The files that a room had when its setup was done. A gate from nothing has them too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SetupFiles {
    files: BTreeMap<PathBuf, WrittenFile>,
}

impl SetupFiles {
    /// Notes everything below `root` but directories.
    pub fn of(root: &Path) -> Result<SetupFiles, WarmError> {
        let mut files = BTreeMap::new();
        audit::walk(root, &mut |path, met| {
            if !met.is_dir() {
                files.insert(path.to_path_buf(), WrittenFile::of(met));
            }
            Ok(())
        })?;
        Ok(SetupFiles { files })
    }

    fn has_below(&self, path: &Path) -> bool {
        let next = self.files.range(path.to_path_buf()..).next();
        next.is_some_and(|(file, _)| file.starts_with(path))
    }
}

/// Removes from a room whatever nobody owns. Returns the files of the setup that are gone or had been
/// changed: whoever needs them has to run the setup again.
pub(super) fn scrub(
    root: &Path,
    marks: &TreeMarks,
    setup: &SetupFiles,
) -> Result<Vec<PathBuf>, WarmError> {
    let scrub = RoomScrub { marks, setup };
    let paths = RoomPaths::below(root);
    for (name, full) in listed(root)? {
        if !paths.all().contains(&&full) {
            remove(&full)?;
        }
        let met = full.symlink_metadata();
        // A link in the place of one of the four would lead out of the room.
        if met.is_ok_and(|met| !met.is_dir()) {
            let source = std::io::Error::other(format!("`{}` is no directory", name.display()));
            return Err(source).at("seal", &full);
        }
    }
    scrub.tree(&paths.tree)?;
    scrub.keep_only(&paths.home, HOME_STORES)?;
    scrub.keep_only(&paths.cache.join(SHARED_CACHE), SHARED_CACHES)?;
    let mut lost = Vec::new();
    for file in setup.files.keys() {
        let path = file.strip_prefix(root).unwrap_or(file);
        let is_needed = path.starts_with("tree") || path.starts_with("home");
        // A build tool makes again what it removes of its own.
        let is_owned = |part: &OsStr| BUILD_DIRECTORIES.iter().any(|owned| part == owned.name);
        if is_needed && !path.iter().any(is_owned) && file.symlink_metadata().is_err() {
            lost.push(path.to_path_buf());
        }
    }
    for (_, full) in listed(&paths.tmp)? {
        remove(&full)?;
    }
    Ok(lost)
}

/// The owner of an untracked directory in a worktree.
enum ScrubOwner {
    Nobody,
    /// Python, which looks at the times of its sources.
    CompiledModules,
    /// A package that is installed from its sources.
    EditableLink,
    BuildTool(&'static BuildDirectory),
}

fn owner_of(marks: &TreeMarks, full: &Path, path: &Path) -> ScrubOwner {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let parent = path.parent().unwrap_or(Path::new(""));
    let is_beside =
        |files: &[&str]| files.iter().any(|file| marks.file(&parent.join(file)).is_some());
    if name == COMPILED_MODULES {
        return ScrubOwner::CompiledModules;
    }
    if name.ends_with(EDITABLE) && is_beside(PYTHON) {
        return ScrubOwner::EditableLink;
    }
    let is_its = |owned: &&BuildDirectory| {
        let is_whole = owned.inside.is_none_or(|file| full.join(file).is_file());
        owned.name == name && is_whole && (owned.beside.is_empty() || is_beside(owned.beside))
    };
    BUILD_DIRECTORIES.iter().find(is_its).map_or(ScrubOwner::Nobody, ScrubOwner::BuildTool)
}

/// Returns the directories of a worktree that belong to build tools, relative to it.
pub(super) fn build_directories(tree: &Path, marks: &TreeMarks) -> Result<Vec<PathBuf>, WarmError> {
    let (mut found, mut pending) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(dir) = pending.pop() {
        for (name, full) in listed(&tree.join(&dir))? {
            let path = dir.join(&name);
            if !full.symlink_metadata().at("look at", &full)?.is_dir() {
                continue;
            }
            if marks.has_dir(&path) {
                pending.push(path);
                continue;
            }
            match owner_of(marks, &full, &path) {
                ScrubOwner::BuildTool(_) | ScrubOwner::EditableLink => found.push(path),
                ScrubOwner::CompiledModules | ScrubOwner::Nobody => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

struct RoomScrub<'a> {
    marks: &'a TreeMarks,
    setup: &'a SetupFiles,
}

impl RoomScrub<'_> {
    fn tree(&self, tree: &Path) -> Result<(), WarmError> {
        let mut pending = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            for (name, full) in listed(&tree.join(&dir))? {
                let path = dir.join(&name);
                let met = full.symlink_metadata().at("look at", &full)?;
                if self.marks.file(&path).is_some() {
                    continue;
                }
                if met.is_dir() && self.marks.has_dir(&path) {
                    pending.push(path);
                } else if !(met.is_dir() && self.stays(&full, &path)?) {
                    self.discard(&full)?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether an untracked directory stays, after removing the parts of it that do not.
    fn stays(&self, full: &Path, path: &Path) -> Result<bool, WarmError> {
        match owner_of(self.marks, full, path) {
            ScrubOwner::Nobody => return Ok(false),
            ScrubOwner::CompiledModules => {
                for (file, path) in listed(full)? {
                    if file.extension().is_none_or(|ending| ending != "pyc") {
                        self.discard(&path)?;
                    }
                }
            }
            ScrubOwner::EditableLink => {}
            ScrubOwner::BuildTool(owned) => {
                for part in owned.without {
                    self.discard(&full.join(part))?;
                }
            }
        }
        Ok(true)
    }

    /// Removes everything below `root` but the kept paths and what is in them.
    fn keep_only(&self, root: &Path, kept: &[&str]) -> Result<(), WarmError> {
        if root.symlink_metadata().is_err() {
            return Ok(());
        }
        let mut pending = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            for (name, full) in listed(&root.join(&dir))? {
                let path = dir.join(name);
                let is_dir = full.symlink_metadata().at("look at", &full)?.is_dir();
                let is_kept = is_dir && kept.iter().any(|kept| Path::new(kept) == path);
                if is_dir && !is_kept && kept.iter().any(|kept| Path::new(kept).starts_with(&path))
                {
                    pending.push(path);
                } else if !is_kept {
                    self.discard(&full)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a file or a directory, but what is as the setup left it.
    fn discard(&self, path: &Path) -> Result<(), WarmError> {
        if !self.setup.has_below(path) {
            return remove(path);
        }
        let mut pending = vec![path.to_path_buf()];
        while let Some(path) = pending.pop() {
            let Ok(met) = path.symlink_metadata() else { continue };
            if met.is_dir() && self.setup.has_below(&path) {
                pending.extend(listed(&path)?.into_iter().map(|(_, below)| below));
            } else if self.setup.files.get(&path) != Some(&WrittenFile::of(&met)) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> Result<(), WarmError> {
    dir::remove(path).at("remove", path)
}

/// Returns the names in a directory, with their paths.
fn listed(dir: &Path) -> Result<Vec<(PathBuf, PathBuf)>, WarmError> {
    open_up(dir).at("make readable", dir)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).at("read", dir)? {
        patience::check().at("read", dir)?;
        let entry = entry.at("read", dir)?;
        found.push((PathBuf::from(entry.file_name()), entry.path()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::mark::FileMark;
    use super::*;

    fn put(root: &Path, path: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }

    fn files(root: &Path) -> Vec<String> {
        let (mut found, mut pending) = (Vec::new(), vec![root.to_path_buf()]);
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                } else {
                    let path = entry.path();
                    found.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn what_a_build_tool_owns_stays_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let mut marks = TreeMarks::default();
        for path in ["Cargo.toml", "web/package.json", "py/pyproject.toml", "src/a"] {
            marks.insert(path.into(), FileMark { mode: 0o100_644, digest: String::new() });
            put(root, &format!("tree/{path}"));
        }
        let kept = [
            "cache/cargo/registry/x",
            "cache/xdg/go-build/x",
            "home/.m2/repository/x",
            "tree/py/.venv/pyvenv.cfg",
            "tree/py/__pycache__/a.cpython-311.pyc",
            "tree/py/p.egg-info/x",
            "tree/target/debug/x",
            "tree/web/node_modules/a/x",
        ];
        let gone = [
            "cache/xdg/app/state",
            "home/.config/app/state",
            "home/.npmrc",
            "left-over/x",
            "tmp/x",
            "tree/.env",
            "tree/node_modules/a/x",
            "tree/py/.venv2/x",
            "tree/py/__pycache__/answer.json",
            "tree/py/venv/x",
            "tree/src/passed",
            "tree/src/target/x",
            "tree/target/tmp/x",
            "tree/web/node_modules/.cache/x",
        ];
        for path in kept.iter().chain(&gone) {
            put(root, path);
        }
        std::os::unix::fs::symlink("target", root.join("tree/link")).unwrap();
        scrub(root, &marks, &SetupFiles::default()).unwrap();
        let mut wanted: Vec<String> = kept.iter().map(|path| (*path).to_owned()).collect();
        wanted.extend(marks.files().map(|(path, _)| format!("tree/{}", path.display())));
        wanted.sort();
        assert_eq!(files(root), wanted);
    }

    #[test]
    fn what_the_setup_made_stays_where_no_command_changed_it() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        for path in ["tree/a", "tree/vendor/x", "tree/vendor/y", "tree/dev.db", "home/.local/lib/z"]
        {
            put(root, path);
        }
        fs::create_dir(root.join("tmp")).unwrap();
        let mut marks = TreeMarks::default();
        marks.insert("a".into(), FileMark { mode: 0o100_644, digest: String::new() });
        let setup = SetupFiles::of(root).unwrap();
        fs::write(root.join("tree/dev.db"), "written by a test").unwrap();
        fs::remove_file(root.join("tree/vendor/y")).unwrap();
        for path in ["tree/vendor/left", "tree/left", "home/.local/left", "tmp/left"] {
            put(root, path);
        }
        let lost = scrub(root, &marks, &setup).unwrap();
        assert_eq!(lost, [Path::new("tree/dev.db"), Path::new("tree/vendor/y")]);
        assert_eq!(files(root), ["home/.local/lib/z", "tree/a", "tree/vendor/x"]);
    }

    #[test]
    fn a_room_whose_home_is_a_link_is_not_sealed() {
        let temp = tempfile::tempdir().unwrap();
        let (root, outside) = (temp.path().join("room"), temp.path().join("outside"));
        put(&outside, "precious");
        put(&root, "tree/a");
        std::os::unix::fs::symlink(&outside, root.join("home")).unwrap();
        assert!(scrub(&root, &TreeMarks::default(), &SetupFiles::default()).is_err());
        assert!(outside.join("precious").exists());
    }
}

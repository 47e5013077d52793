//! Where things are: the workspace root, the target directory, the cache of tools, the cargo in use.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace this xtask was built from.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Tools that cost minutes to build live outside `target/`, so `cargo clean` does not lose them.
pub fn tool_cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache"),
        PathBuf::from,
    );
    base.join("autopilot-xtask")
}

/// The cargo that started us, in the workspace root.
pub fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Where `program` is on PATH.
pub fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn programs_are_found_on_the_path_only() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program").is_none());
    }
}

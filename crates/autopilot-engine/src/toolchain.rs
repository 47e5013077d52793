//! The tools that a gate's commands use, told apart without starting them.

use crate::environment::Variables;
use autopilot_core::command_line::{NamedProgram, programs};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

/// Files and directories by which version managers choose a tool: the variable of their home, its
/// usual place below the user's, and the names in it.
const MANAGERS: &[(&str, &str, &[&str])] = &[
    ("RUSTUP_HOME", ".rustup", &["settings.toml", "toolchains", "update-hashes"]),
    ("NVM_DIR", ".nvm", &["alias/default", "versions/node"]),
    ("PYENV_ROOT", ".pyenv", &["version", "versions"]),
    ("RBENV_ROOT", ".rbenv", &["version", "versions"]),
    ("ASDF_DATA_DIR", ".asdf", &["installs"]),
    ("MISE_DATA_DIR", ".local/share/mise", &["installs"]),
    ("VOLTA_HOME", ".volta", &["tools/image"]),
];
/// The tools that other tools start.
const COMPANIONS: &[&str] = &["rustc", "cc", "node", "python3", "java", "go", "ruby"];

/// A text that changes when the tools of these commands do.
pub fn fingerprint(commands: &[String], variables: &Variables) -> String {
    let path = variables.get("PATH").map(String::as_str).unwrap_or_default();
    let mut names: BTreeSet<String> = COMPANIONS.iter().map(|name| (*name).to_owned()).collect();
    for program in commands.iter().flat_map(|line| programs(line)) {
        match program {
            NamedProgram::InPath(name) => drop(names.insert(name)),
            NamedProgram::At(_) => {}
        }
    }
    let mut text = String::new();
    for name in names {
        let found = path.split(':').map(|dir| Utf8Path::new(dir).join(&name));
        text.extend(found.filter_map(|path| identity(&path)).take(1));
    }
    let home = variables.get("HOME").map(Utf8PathBuf::from).unwrap_or_default();
    for (variable, usual, names) in MANAGERS {
        let root = variables.get(*variable).map(Utf8PathBuf::from);
        let root = root.unwrap_or_else(|| home.join(usual));
        text.extend(names.iter().filter_map(|name| identity(&root.join(name))));
    }
    text
}

/// A line about a file: the place to which it leads, and when and how it was last changed.
pub fn identity(path: &Utf8Path) -> Option<String> {
    let real = path.canonicalize_utf8().ok()?;
    let met = real.metadata().ok()?;
    Some(format!("{real} {} {} {}\n", met.len(), met.mtime(), met.mtime_nsec()))
}

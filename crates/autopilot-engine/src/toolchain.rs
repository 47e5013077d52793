//! The tools that a gate's commands use, told apart without starting them.

use crate::environment::Variables;
use autopilot_core::command_line::{NamedProgram, programs};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

/// Files and directories by which version managers choose a tool: the variable of their home, its
/// usual place below the user's, and the names in it; `*` stands for any name.
const MANAGERS: &[(&str, &str, &[&str])] = &[
    ("RUSTUP_HOME", ".rustup", &["settings.toml", "toolchains/*/bin/*", "update-hashes/*"]),
    ("NVM_DIR", ".nvm", &["alias/default", "versions/node/*"]),
    ("PYENV_ROOT", ".pyenv", &["version", "versions/*"]),
    ("PYTHONUSERBASE", ".local", &["lib/*/site-packages"]),
    ("RBENV_ROOT", ".rbenv", &["version", "versions/*"]),
    ("ASDF_DATA_DIR", ".asdf", &["installs/*/*"]),
    ("MISE_DATA_DIR", ".local/share/mise", &["installs/*/*"]),
    ("VOLTA_HOME", ".volta", &["tools/image/*/*"]),
];
/// The tools that other tools start.
const COMPANIONS: &[&str] = &["rustc", "cc", "node", "python3", "java", "go", "ruby"];

/// A text that changes when the tools of these commands do.
pub fn fingerprint(commands: &[String], variables: &Variables) -> String {
    let path = variables.get("PATH").map(String::as_str).unwrap_or_default();
    let mut names: BTreeSet<String> = COMPANIONS.iter().map(|name| (*name).to_owned()).collect();
    let mut at = BTreeSet::new();
    for program in commands.iter().flat_map(|line| programs(line)) {
        match program {
            NamedProgram::InPath(name) => drop(names.insert(name)),
            // What is in the project is in its tree.
            NamedProgram::At(path) => at.extend(Some(path).filter(|path| path.starts_with('/'))),
        }
    }
    let mut text = String::new();
    text.extend(at.iter().filter_map(|path| identity(Utf8Path::new(path))));
    for name in names {
        let found = path.split(':').map(|dir| Utf8Path::new(dir).join(&name));
        text.extend(found.filter_map(|path| identity(&path)).take(1));
    }
    let home = variables.get("HOME").map(Utf8PathBuf::from).unwrap_or_default();
    for (variable, usual, names) in MANAGERS {
        let root = variables.get(*variable).map(Utf8PathBuf::from);
        let root = root.unwrap_or_else(|| home.join(usual));
        let found = names.iter().flat_map(|name| matching(&root, name));
        text.extend(found.filter_map(|path| identity(&path)));
    }
    text
}

/// The paths below a directory that a pattern names; `*` stands for any name.
fn matching(root: &Utf8Path, pattern: &str) -> Vec<Utf8PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/') {
        found = match part {
            "*" => found.iter().flat_map(|dir| entries(dir)).collect(),
            name => found.iter().map(|dir| dir.join(name)).collect(),
        };
    }
    found
}

fn entries(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let read = dir.read_dir_utf8().into_iter().flatten().flatten();
    let mut found: Vec<Utf8PathBuf> = read.map(|entry| entry.into_path()).collect();
    found.sort();
    found
}

/// A line about a file: the place to which it leads, and when and how it was last changed.
pub fn identity(path: &Utf8Path) -> Option<String> {
    let real = path.canonicalize_utf8().ok()?;
    let met = real.metadata().ok()?;
    Some(format!("{real} {} {} {}\n", met.len(), met.mtime(), met.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_tool_that_is_replaced_where_it_is_changes_the_text() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let variables = Variables::from([
            ("PATH".to_owned(), root.join("bin").to_string()),
            ("HOME".to_owned(), root.to_string()),
        ]);
        let commands = [format!("cargo test && {root}/opt/tool")];
        let text = || fingerprint(&commands, &variables);
        let names = ["bin/cargo", ".rustup/toolchains/stable/bin/rustc", "opt/tool"];
        names.iter().for_each(|name| write(name, "one"));
        for name in names {
            let before = text();
            assert_eq!(before, text());
            write(name, "another one");
            assert_ne!(before, text(), "{name}");
        }
    }
}

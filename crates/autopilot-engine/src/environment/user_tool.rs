//! Tools of the user that a gate finds by more than a directory: packages that `pip` has installed for the
//! user alone, and the versions that a version manager reads from a file above the worktree.

use super::{GateRoom, Variables, user_home};
use camino::{Utf8Path, Utf8PathBuf};
use std::path::PathBuf;

/// The directory in a home into which `pip install --user` installs.
const USER_BASE: &str = ".local";
/// The name of the file by which Python finds the user's own packages from the home of a gate.
const PATH_FILE: &str = "installed_by_the_user.pth";

/// Version managers that read a file in the directory of a command or above it: the variable of their
/// installation and its usual place in a home, the variable of the version, and the file.
const VERSION_FILES: &[(&str, &str, &str, &str)] = &[
    ("NODENV_ROOT", ".nodenv", "NODENV_VERSION", ".node-version"),
    ("PYENV_ROOT", ".pyenv", "PYENV_VERSION", ".python-version"),
    ("RBENV_ROOT", ".rbenv", "RBENV_VERSION", ".ruby-version"),
];
/// The most bytes of such a file.
pub const VERSION_BYTES_MAX: u64 = 4096;

/// The directory of packages that the user has installed for herself.
fn user_base(ours: &Variables) -> Option<Utf8PathBuf> {
    let named = ours.get("PYTHONUSERBASE").map(Utf8PathBuf::from);
    named.or_else(|| Some(user_home(ours)?.join(USER_BASE)))
}

/// The files by which Python finds the user's packages from another home, in which it can install more.
pub fn python_path_files(ours: &Variables) -> Vec<(PathBuf, Vec<u8>)> {
    let Some(base) = user_base(ours) else { return Vec::new() };
    let versions = base.join("lib").read_dir_utf8().into_iter().flatten().flatten();
    let mut names: Vec<String> = versions.map(|entry| entry.file_name().to_owned()).collect();
    names.sort();
    let file = |name: &String| {
        let packages = base.join("lib").join(name).join("site-packages");
        let is_python = name.starts_with("python") && packages.is_dir();
        let file = Utf8Path::new(USER_BASE).join("lib").join(name).join("site-packages");
        is_python.then(|| (file.join(PATH_FILE).into(), format!("{packages}\n").into_bytes()))
    };
    names.iter().filter_map(file).collect()
}

/// Lets a gate install packages and programs for its own home where the user has hers. Where she finds
/// her programs by PATH, the gate finds its own in the same way.
pub fn use_own_base(ours: &Variables, room: &GateRoom, variables: &mut Variables) {
    variables.remove("PYTHONUSERBASE");
    let (Some(base), Some(path)) = (user_base(ours), variables.get_mut("PATH")) else { return };
    let (theirs, own) = (base.join("bin"), room.home.join(USER_BASE).join("bin"));
    let both = |entry: &str| match Utf8Path::new(entry) == theirs {
        true => format!("{own}:{entry}"),
        false => entry.to_owned(),
    };
    *path = path.split(':').map(both).collect::<Vec<_>>().join(":");
}

/// The version that a manager takes in the user's checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenVersion {
    pub variable: &'static str,
    pub value: String,
    /// The file that says so.
    pub file: Utf8PathBuf,
}

/// The versions that managers take in a checkout by a file in it or above it. In a gate's worktree, which
/// is elsewhere, they would find only files that are committed.
pub fn chosen_versions(
    ours: &Variables,
    checkout: &Utf8Path,
    read: impl Fn(&Utf8Path) -> Option<String>,
) -> Vec<ChosenVersion> {
    let mut chosen = Vec::new();
    for (root, usual, variable, name) in VERSION_FILES {
        let there = || Some(user_home(ours)?.join(usual)).filter(|dir| dir.is_dir());
        let is_used = ours.contains_key(*root) || there().is_some();
        if !is_used || ours.contains_key(*variable) {
            continue;
        }
        let mut files = checkout.ancestors().map(|dir| dir.join(name));
        let found = files.find_map(|file| read(&file).map(|text| (file, text)));
        let Some((file, text)) = found else { continue };
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let value = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(":");
        if !value.is_empty() {
            chosen.push(ChosenVersion { variable, value, file });
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_gate_installs_at_its_own_home_and_finds_what_it_installs_where_the_user_does() {
        let room = GateRoom::below("/room".into());
        let theirs = ours(&[("HOME", "/home/u"), ("PATH", "/x:/home/u/.local/bin:/bin")]);
        let mut variables = theirs.clone();
        use_own_base(&theirs, &room, &mut variables);
        assert_eq!(variables["PATH"], "/x:/room/home/.local/bin:/home/u/.local/bin:/bin");
        let theirs = ours(&[("HOME", "/home/u"), ("PATH", "/bin"), ("PYTHONUSERBASE", "/opt/py")]);
        let mut variables = theirs.clone();
        use_own_base(&theirs, &room, &mut variables);
        assert_eq!(variables["PATH"], "/bin");
        assert!(!variables.contains_key("PYTHONUSERBASE"));
    }

    #[test]
    fn packages_of_the_user_are_found_for_each_python_that_has_any() {
        let temp = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(temp.path()).unwrap();
        for dir in ["python3.11/site-packages", "python3.12", "node/site-packages"] {
            std::fs::create_dir_all(home.join(".local/lib").join(dir)).unwrap();
        }
        let files = python_path_files(&ours(&[("HOME", home.as_str())]));
        let path = ".local/lib/python3.11/site-packages/installed_by_the_user.pth";
        let text = format!("{home}/.local/lib/python3.11/site-packages\n");
        assert_eq!(files, [(path.into(), text.into_bytes())]);
        assert_eq!(python_path_files(&ours(&[])), []);
    }

    #[test]
    fn the_nearest_file_chooses_the_version_unless_a_variable_does() {
        let read = |path: &Utf8Path| match path.as_str() {
            "/home/u/.python-version" => Some("2.7\n".to_owned()),
            "/home/u/code/.python-version" => Some("# ours\n3.11.4\n3.10.1\n".to_owned()),
            _ => None,
        };
        let known = |pairs: &[(&str, &str)]| {
            let all = [&[("PYENV_ROOT", "/opt/pyenv")][..], pairs].concat();
            chosen_versions(&ours(&all), "/home/u/code/shop".into(), read)
        };
        let found = known(&[]);
        let file = "/home/u/code/.python-version".into();
        let value = "3.11.4:3.10.1".to_owned();
        assert_eq!(found, [ChosenVersion { variable: "PYENV_VERSION", value, file }]);
        assert_eq!(known(&[("PYENV_VERSION", "3.9")]), []);
        assert_eq!(chosen_versions(&ours(&[]), "/home/u/code".into(), read), [], "no pyenv");
    }
}

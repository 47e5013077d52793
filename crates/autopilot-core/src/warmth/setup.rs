//! Setup commands whose work in a seed is as good as doing it again.

/// The commands that only install what manifests and lock files name.
const INSTALLS: &[(&str, &[&str])] = &[
    ("npm", &["ci", "install", "i"]),
    ("pnpm", &["install", "i"]),
    ("yarn", &["install", "--immutable", "--frozen-lockfile"]),
    ("bun", &["install"]),
    ("uv", &["sync"]),
    ("poetry", &["install"]),
    ("pdm", &["install", "sync"]),
    ("bundle", &["install"]),
    ("composer", &["install"]),
    ("cargo", &["fetch"]),
    ("go", &["mod"]),
    ("pip", &["install"]),
];
/// The options of pip whose value is a path, but not one whose files pip copies.
const PIP_PATHS: &[&str] = &["-r", "--requirement", "-c", "--constraint", "-e", "--editable"];

/// The package managers that run scripts of the project's own `package.json` when they install.
const RUN_SCRIPTS: &[&str] = &["npm", "pnpm", "yarn", "bun"];
/// The scripts that they run then.
const INSTALL_SCRIPTS: &[&str] = &[
    "preinstall",
    "install",
    "postinstall",
    "preprepare",
    "prepare",
    "postprepare",
    "prepublish",
    "dependencies",
];

/// Whether a setup command installs packages and does nothing else, so that what it left in the
/// seed is what it would leave again while manifests and lock files are the same. `package_json` is the
/// project's, whose scripts may build it.
pub fn installs_only(line: &str, package_json: Option<&str>) -> bool {
    let builds = package_json.is_some_and(has_install_scripts);
    line.split("&&").all(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let is_plain =
            words.iter().all(|word| !word.contains(['|', ';', '&', '`', '$', '(', '>', '<']));
        let runs_scripts = words.first().is_some_and(|name| RUN_SCRIPTS.contains(name));
        is_plain && installs(&words) && !(builds && runs_scripts)
    })
}

/// Whether a `package.json` has scripts that run with an installation. One that can't be read may have.
fn has_install_scripts(package_json: &str) -> bool {
    let Ok(manifest) = serde_json::from_str::<serde_json::Value>(package_json) else {
        return true;
    };
    INSTALL_SCRIPTS.iter().any(|name| manifest["scripts"].get(name).is_some())
}

fn installs(words: &[&str]) -> bool {
    match words {
        [python, "-m", "venv", _] if is_python(python) => true,
        [python, "-m", "pip", "install", rest @ ..] if is_python(python) => !copies_project(rest),
        [pip, "install", rest @ ..] if ["pip", "pip3"].contains(&program(pip)) => {
            !copies_project(rest)
        }
        [program, verb, ..] => {
            INSTALLS.iter().any(|(name, verbs)| name == program && verbs.contains(verb))
        }
        _ => false,
    }
}

/// The name of a program that is in the path or in a virtual environment.
fn program(word: &str) -> &str {
    word.rsplit_once("bin/").map_or(word, |(_, name)| name)
}

fn is_python(word: &str) -> bool {
    program(word)
        .strip_prefix("python")
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Whether pip is told to copy files of the project to where it installs: tests would find those of
/// the base there.
fn copies_project(words: &[&str]) -> bool {
    let before = std::iter::once(&"").chain(words);
    let is_copied = |(before, word): (&&str, &&str)| {
        word.starts_with(['.', '/', '~']) && !PIP_PATHS.contains(before)
    };
    before.zip(words).any(is_copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_setup_that_installs_packages_is_left_to_the_seed() {
        for line in [
            "npm ci",
            "npm ci --no-audit && npm install --no-save left-pad",
            "uv sync --frozen",
            "pip install -r requirements.txt -r ./more.txt",
            "pip3 install pytest",
            "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
            "python3.11 -m venv env && env/bin/python -m pip install -e . pytest",
        ] {
            assert!(installs_only(line, None), "{line}");
        }
        for line in [
            "",
            "npm",
            "make",
            "pip install $X",
            "npm ci | tee x",
            "npm run build",
            "npm ci && npm run build",
            "npm ci; make",
            "npm ci > log",
            "pip install .",
            "pip install pytest .[dev]",
            ".venv/bin/pip install ./vendored",
            "python3 -m pip install /srv/wheels/a.whl",
            "python3 -m venv .venv && .venv/bin/python setup.py install",
            "pythonic -m venv .venv",
            "sh -c pip install",
        ] {
            assert!(!installs_only(line, None), "{line}");
        }
    }

    #[test]
    fn an_installation_that_runs_scripts_of_the_project_is_done_again() {
        let plain = r#"{ "scripts": { "test": "jest", "build": "tsc" } }"#;
        let builds = r#"{ "scripts": { "prepare": "tsc" } }"#;
        for (line, manifest, is_left) in [
            ("npm ci", plain, true),
            ("npm ci", "{}", true),
            ("npm ci", builds, false),
            ("npm ci", "not JSON", false),
            ("pip install pytest && yarn install", builds, false),
            ("pip install pytest", builds, true),
        ] {
            assert_eq!(installs_only(line, Some(manifest)), is_left, "{line}: {manifest}");
        }
    }
}

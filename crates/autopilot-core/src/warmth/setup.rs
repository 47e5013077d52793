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

/// Whether a setup command installs packages and does nothing else, so that what it left in the
/// seed is what it would leave again while manifests and lock files are the same.
pub fn installs_only(line: &str) -> bool {
    line.split("&&").all(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let is_plain =
            words.iter().all(|word| !word.contains(['|', ';', '&', '`', '$', '(', '>', '<']));
        is_plain && installs(&words)
    })
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
            assert!(installs_only(line), "{line}");
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
            assert!(!installs_only(line), "{line}");
        }
    }
}

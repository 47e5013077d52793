//! Manifests are taken apart by table and key.

use super::super::manifest::{CARGO, PYPROJECT, SETUP_CFG};
use super::*;

const BASE: &str = r#"# The package.
[package]
name = "a"
version = "1.0.0"

[lib]
name = "a"
doctest = false

[dependencies]
serde = { version = "1", features = [
    "derive", # ]
] }

# Tests need them.
[dev-dependencies]
insta = "1"
old = "2"

[[bin]]
name = "tool"
test = true

[[test]]
name = "cli"
path = "tests/cli.rs"

[profile.release]
lto = true
"#;

const HEAD: &str = r#"# The package.
[package]
name = "a"
version = "1.1.0"
autotests = false

[lib]
name = "a"

[dependencies]
serde = "1"

[target.'cfg(unix)'.dev-dependencies]
nix = "0.3"

[dev-dependencies]
insta = "1.1"
own = { path = "fake" }

[[bin]]
name = "tool"

[profile.release]
lto = true

[profile.test]
opt-level = 3
"#;

#[test]
fn a_manifest_with_its_own_tests_is_as_it_was() {
    for text in [BASE, HEAD, "", "a = 1", "[dev-dependencies]\na = 1"] {
        let same = composed(CARGO, text, text, AddedDependency::Goes);
        assert_eq!(same.unwrap(), text);
    }
}

#[test]
fn the_tables_of_the_bases_tests_go_into_the_new_manifest() {
    let wanted = r#"# The package.
[package]
name = "a"
version = "1.1.0"

[lib]
name = "a"
doctest = false

[dependencies]
serde = "1"

[target.'cfg(unix)'.dev-dependencies]
nix = "0.3"

[dev-dependencies]
insta = "1"
old = "2"

[[bin]]
name = "tool"
test = true

[profile.release]
lto = true

[[test]]
name = "cli"
path = "tests/cli.rs"
"#;
    assert_eq!(composed(CARGO, HEAD, BASE, AddedDependency::Stays).unwrap(), wanted);
}

#[test]
fn the_tables_of_the_new_tests_go_into_the_bases_manifest() {
    let text = composed(CARGO, BASE, HEAD, AddedDependency::Goes).unwrap();
    for line in ["autotests = false", "nix = \"0.3\"", "own = { path", "insta = \"1.1\""] {
        assert!(text.contains(line), "{line} in {text}");
    }
    for line in ["doctest", "old = ", "[[test]]", "version = \"1.1.0\"", "test = true"] {
        assert!(!text.contains(line), "{line} in {text}");
    }
    assert!(text.contains("    \"derive\", # ]\n"), "{text}");
    let back = composed(CARGO, &text, BASE, AddedDependency::Goes).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<String> =
            text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        lines
    };
    let kept: Vec<String> =
        sorted(&back).into_iter().filter(|line| !line.contains("target.'cfg(unix)'")).collect();
    assert_eq!(kept, sorted(BASE));
}

#[test]
fn manifests_without_keys_of_tests_are_products() {
    for (rules, text, wanted) in [
        (CARGO, "[package]\nname = \"a\"\n[dependencies]\ntest = \"1\"\n", false),
        (CARGO, "[dev-dependencies]\n", false),
        (CARGO, "[dev-dependencies.insta]\nversion = \"1\"\n", true),
        (CARGO, "[lib]\npath = \"test\"\n", false),
        (CARGO, "[lib]\nharness = false\n", true),
        (CARGO, "[patch.crates-io]\na = { path = \"b\" }\n", true),
        (CARGO, "[profile.release]\nlto = true\n", false),
        (CARGO, "[lints]\nworkspace = true\n", true),
        (PYPROJECT, "[project]\nname = \"pytest\"\n", false),
        (PYPROJECT, "[tool.pytest.ini_options]\naddopts = \"-q\"\n", true),
        (PYPROJECT, "[tool.poetry.group.dev.dependencies]\npytest = \"8\"\n", false),
        (PYPROJECT, "[tool]\npytest.ini_options.addopts = \"-q\"\n", true),
        (PYPROJECT, "[tool.ruff]\nline-length = 99\n", true),
        (SETUP_CFG, "[metadata]\nname = a\n", false),
        (SETUP_CFG, "[tool:pytest]\naddopts =\n    -q\n    -x\n", true),
        (SETUP_CFG, "[coverage:run]\nbranch = true\n", true),
        (SETUP_CFG, "[mypy-a.*]\nignore = true\n", true),
        (SETUP_CFG, "[options]\npackages = find:\n", false),
    ] {
        assert_eq!(has_yardstick(rules, text), Some(wanted), "{text}");
    }
    for text in ["a = [", "a = \"\"\"x", "= ]\n[", "[open"] {
        assert!(!has_yardstick(CARGO, text).unwrap_or(false), "{text}");
    }
}

#[test]
fn a_section_of_tests_is_replaced_whole() {
    let base =
        "[metadata]\nname = a\n\n[tool:pytest]\naddopts =\n    -q\n    -x\n\n[options]\nx = 1\n";
    let head = "[metadata]\nname = b\n\n[tool:pytest]\naddopts = -k nothing\n\n[options]\nx = 2\n";
    let wanted =
        "[metadata]\nname = b\n\n[tool:pytest]\naddopts =\n    -q\n    -x\n\n[options]\nx = 2\n";
    assert_eq!(composed(SETUP_CFG, head, base, AddedDependency::Goes).unwrap(), wanted);
}

#[test]
fn what_is_only_told_and_dependencies_are_found() {
    let patch = "[patch.crates-io]\na = { path = \"b\" }\n";
    assert_eq!(told(CARGO, patch).len(), 1);
    assert_ne!(told(CARGO, patch), told(CARGO, ""));
    assert!(differs_in_dependencies(CARGO, BASE, HEAD));
    assert!(!differs_in_dependencies(CARGO, BASE, &BASE.replace("1.0.0", "2.0.0")));
}

//! Whose the tables and keys of manifests are: those that decide how tests run, and the product's.

use super::section::{KeyShare, SectionForm, SectionRules};

pub(super) const CARGO: SectionRules = SectionRules { form: SectionForm::Toml, share: cargo };
pub(super) const PYPROJECT: SectionRules =
    SectionRules { form: SectionForm::Toml, share: pyproject };
pub(super) const SETUP_CFG: SectionRules =
    SectionRules { form: SectionForm::Ini, share: setup_cfg };

fn cargo(path: &[&str]) -> KeyShare {
    match path {
        ["dev-dependencies" | "dev_dependencies", _, ..] => KeyShare::TestDependency,
        ["target", _, "dev-dependencies" | "dev_dependencies", _, ..] => KeyShare::TestDependency,
        ["test" | "lints", ..] | ["workspace", "lints", ..] => KeyShare::Yardstick,
        // Tests are built as the development profile says unless theirs says otherwise.
        ["profile", "test" | "dev", ..] => KeyShare::Yardstick,
        ["lib" | "bin" | "example", "test" | "doctest" | "harness"] => KeyShare::Yardstick,
        ["package", "autotests"] => KeyShare::Yardstick,
        ["patch" | "replace", ..] | ["package", "build"] => KeyShare::Told,
        ["workspace", "exclude" | "default-members"] => KeyShare::Told,
        _ => KeyShare::Product,
    }
}

/// The tools of Python projects that judge and do not build.
const PYTHON_TOOLS: &[&str] = &[
    "basedpyright",
    "bandit",
    "black",
    "coverage",
    "flake8",
    "hypothesis",
    "isort",
    "mutmut",
    "mypy",
    "nox",
    "poe",
    "pycodestyle",
    "pydocstyle",
    "pylint",
    "pyright",
    "pytest",
    "pytest_env",
    "ruff",
    "taskipy",
    "tox",
    "ty",
];

fn pyproject(path: &[&str]) -> KeyShare {
    match path {
        ["tool", tool, ..] if PYTHON_TOOLS.contains(tool) => KeyShare::Yardstick,
        ["tool", "hatch", "envs", ..] | ["tool", "pdm" | "rye", "scripts", ..] => {
            KeyShare::Yardstick
        }
        _ => KeyShare::Product,
    }
}

fn setup_cfg(path: &[&str]) -> KeyShare {
    let Some(section) = path.first() else { return KeyShare::Product };
    let word = section.split([':', '-', ' ']).next().unwrap_or_default();
    let is_tool = |name: &str| PYTHON_TOOLS.contains(&name);
    let named = section.strip_prefix("tool:").unwrap_or(word);
    match named {
        "testenv" | "aliases" => KeyShare::Yardstick,
        _ if is_tool(named) => KeyShare::Yardstick,
        _ => KeyShare::Product,
    }
}

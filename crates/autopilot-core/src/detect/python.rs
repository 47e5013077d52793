//! Recognizes Python projects and the tool that runs their tests.

use super::ProjectFacts;
use super::kind::{FoundKind, ProjectKind, propose};

pub(super) fn read(facts: &ProjectFacts) -> Option<FoundKind> {
    const SIGNS: &[&str] = &[
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "pytest.ini",
        "conftest.py",
        "tox.ini",
        "requirements.txt",
        "Pipfile",
    ];
    let sign = facts.first(SIGNS)?;
    let project = facts.content("pyproject.toml");
    let (kind, run, setup) = if facts.has("uv.lock") || project.contains("[tool.uv]") {
        (ProjectKind::Uv, "uv run ", propose("uv sync", "uv in the project"))
    } else if facts.has("poetry.lock") || project.contains("[tool.poetry]") {
        (ProjectKind::Poetry, "poetry run ", propose("poetry install", "Poetry in the project"))
    } else if facts.has("tox.ini") && !mentions_pytest(facts) {
        (ProjectKind::Tox, "", None)
    } else {
        (ProjectKind::Pytest, "", pip(facts))
    };
    let tests = if kind == ProjectKind::Tox {
        propose("tox -q", "tox.ini")
    } else if mentions_pytest(facts) || facts.has("tests/") || facts.has("test/") {
        propose(&format!("{run}pytest -q"), sign)
    } else {
        None
    };
    let ruff = facts.has("ruff.toml") || facts.has(".ruff.toml") || project.contains("ruff");
    let ruff_command = |command: &str| {
        ruff.then(|| propose(&format!("{run}{command}"), "Ruff in the project")).flatten()
    };
    let lint = ruff_command("ruff check .");
    let format = ruff_command("ruff format --check .");
    Some(FoundKind { kind, tests, lint, format, setup })
}

fn mentions_pytest(facts: &ProjectFacts) -> bool {
    const MENTIONS: &[&str] =
        &["pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"];
    facts.has("pytest.ini")
        || facts.has("conftest.py")
        || MENTIONS.iter().any(|name| facts.content(name).contains("pytest"))
}

/// The setup of a project with pip: a worktree gets its own environment, so that agents do not
/// install into the user's.
fn pip(facts: &ProjectFacts) -> Option<super::Proposal> {
    let name = facts.first(&["requirements-dev.txt", "requirements.txt"])?;
    propose(&format!("python3 -m venv .venv && .venv/bin/pip install -q -r {name}"), name)
}

//! Recognizes the kind of project in a repository, and proposes the commands that follow from it.
//!
//! Everything here is a proposal with its reason: `init` writes it where a person reads it, nothing
//! is used silently.

mod kind;
mod node;
mod python;

use std::collections::{BTreeMap, BTreeSet};

use crate::yardstick::proposed_patterns;
use serde::{Deserialize, Serialize};

pub use kind::ProjectKind;

/// The files whose contents tell more than their names; [`ProjectFacts::contents`] should hold those that
/// exist.
pub const CONTENTS_WANTED: &[&str] = &[
    "Gemfile",
    "Makefile",
    "composer.json",
    "deno.json",
    "deno.jsonc",
    "makefile",
    "package.json",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
    "setup.cfg",
    "tox.ini",
];

/// The files of a repository from which its kind is recognized.
#[derive(Debug, Clone, Default)]
pub struct ProjectFacts {
    /// The names in the repository's root, directories with a `/` at their end.
    pub files: BTreeSet<String>,
    /// The contents of the files in [`CONTENTS_WANTED`].
    pub contents: BTreeMap<String, String>,
    /// The files that git ignores, relative to the root.
    pub ignored: BTreeSet<String>,
    /// The files that git tracks.
    pub tracked: BTreeSet<String>,
}

impl ProjectFacts {
    fn has(&self, name: &str) -> bool {
        self.files.contains(name)
    }

    /// The first of these files that is there.
    fn first<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.has(name))
    }

    fn has_ending(&self, ending: &str) -> bool {
        self.files.iter().any(|name| name.ends_with(ending))
    }

    fn content(&self, name: &str) -> &str {
        self.contents.get(name).map_or("", String::as_str)
    }
}

/// A proposed setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    pub value: String,
    /// The reason for the proposal, usually a file's name.
    pub why: String,
}

/// The kinds that were recognized, and the proposed settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    pub kinds: Vec<ProjectKind>,
    pub tests: Option<Proposal>,
    pub lint: Option<Proposal>,
    pub format: Option<Proposal>,
    /// The command that prepares a fresh worktree.
    pub setup: Option<Proposal>,
    /// The ignored files that a worktree needs.
    pub copy: Vec<Proposal>,
    /// Patterns of files that may decide a verdict, and that no rule knows.
    #[serde(default)]
    pub yardstick: Vec<Proposal>,
}

/// Recognizes the kinds of a project and proposes its settings.
pub fn detect(facts: &ProjectFacts) -> Detected {
    let found = kind::found(facts);
    Detected {
        kinds: found.iter().map(|found| found.kind).collect(),
        tests: joined(found.iter().filter_map(|found| found.tests.as_ref())),
        lint: joined(found.iter().filter_map(|found| found.lint.as_ref())),
        format: joined(found.iter().filter_map(|found| found.format.as_ref())),
        setup: joined(found.iter().filter_map(|found| found.setup.as_ref())),
        copy: facts.ignored.iter().filter_map(|path| worth_copying(path)).take(COPY_MAX).collect(),
        yardstick: proposed_patterns(&facts.tracked),
    }
}

/// The number of files to copy; a worktree that needs more needs a setup command.
pub const COPY_MAX: usize = 32;

/// Joins the commands of a repository of several kinds, each run only if those before passed.
fn joined<'a>(proposals: impl Iterator<Item = &'a Proposal>) -> Option<Proposal> {
    proposals.cloned().reduce(|all, next| Proposal {
        value: format!("{} && {}", all.value, next.value),
        why: format!("{}; {}", all.why, next.why),
    })
}

/// Proposes local settings that are ignored by design and without which a project often does not
/// start.
fn worth_copying(path: &str) -> Option<Proposal> {
    const HEAVY: &[&str] = &["node_modules", "target", ".venv", "venv", "dist", "build", ".git"];
    if path.split('/').any(|part| HEAVY.contains(&part)) {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let why = match name {
        ".env" => "environment of the project, ignored by git",
        ".envrc" => "environment for direnv, ignored by git",
        ".npmrc" | ".yarnrc.yml" | "pip.conf" | "nuget.config" => {
            "package registry settings, ignored by git"
        }
        "local.properties" => "local Gradle settings, ignored by git",
        "master.key" => "key of the encrypted Rails credentials, ignored by git",
        "settings.local.json"
        | "local_settings.py"
        | "config.local.yml"
        | "config.local.yaml"
        | "config.local.json"
        | "appsettings.Local.json" => "local settings, ignored by git",
        _ if is_local_env(name) => "local environment of the project, ignored by git",
        _ => return None,
    };
    Some(Proposal { value: path.to_owned(), why: why.to_owned() })
}

fn is_local_env(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(".env.") else { return false };
    !rest.is_empty() && !matches!(rest, "example" | "sample" | "template" | "dist")
}

#[cfg(test)]
mod tests;

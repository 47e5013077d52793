//! Checks changes that are more than text: nested repositories, and files that decide which
//! programs run on other machines.

use super::{ChangedFile, FileMode, FileStatus, Finding, FindingSource, Severity};

pub(super) fn check(files: &[ChangedFile], allowed: &[String]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().filter_map(nested).collect();
    findings.extend(files.iter().filter_map(|file| ci(file, allowed)));
    findings.extend(files.iter().filter_map(|file| agent_settings(file, allowed)));
    findings
}

fn nested(file: &ChangedFile) -> Option<Finding> {
    let blocker = |message: &str, fix: &str| {
        Some(
            Finding::new(FindingSource::Repository, Severity::Blocker, message, fix)
                .in_file(&file.path),
        )
    };
    if file.status == FileStatus::Unmerged {
        return blocker("the file has unresolved merge conflicts", "resolve them");
    }
    if file.mode == FileMode::Gitlink {
        return match file.status {
            FileStatus::Deleted | FileStatus::TypeChanged => blocker(
                "a submodule was removed or replaced",
                "put it back as it was; Autopilot does not change submodules",
            ),
            FileStatus::Modified => blocker(
                "a submodule was moved to another commit",
                "leave it at its commit; Autopilot does not change submodules",
            ),
            FileStatus::Added | FileStatus::Renamed | FileStatus::Copied | FileStatus::Unmerged => {
                blocker(
                    "a nested repository or submodule was added or moved",
                    "remove it; its files would not be part of the change",
                )
            }
        };
    }
    if file.path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return blocker("the path is inside a `.git` directory", "remove it");
    }
    if file.path.eq_ignore_ascii_case(".gitmodules") {
        return blocker("submodules were changed", "undo the change to this file");
    }
    None
}

/// Reports a change of the build pipeline, because a green result means less after it; it is a
/// remark only if the task allows that very place.
fn ci(file: &ChangedFile, allowed: &[String]) -> Option<Finding> {
    let touched = [Some(file.path.as_str()), file.old_path.as_deref()];
    let path = touched.into_iter().flatten().find(|path| is_ci(path))?;
    let first = path.split('/').next().unwrap_or(path);
    let meant = allowed.iter().any(|allowed| allowed.trim_start_matches("./").starts_with(first));
    let severity = if meant { Severity::Minor } else { Severity::Major };
    let message = "settings of the build pipeline or of commit hooks were changed";
    let fix = "undo it unless the task asks for it";
    Some(Finding::new(FindingSource::Ci, severity, message, fix).in_file(path))
}

/// Reports a change of settings that agents obey when they work here, also the agent that judges
/// this change and the user's own.
fn agent_settings(file: &ChangedFile, allowed: &[String]) -> Option<Finding> {
    let touched = [Some(file.path.as_str()), file.old_path.as_deref()];
    let path = touched.into_iter().flatten().find(|path| is_agent_settings(path))?;
    let is_meant = allowed.iter().any(|allowed| {
        let allowed = allowed.trim_start_matches("./").trim_end_matches("**").trim_end_matches('/');
        is_agent_settings(allowed) && path.starts_with(allowed)
    });
    if is_meant {
        return None;
    }
    let message = "settings that make a coding agent run programs were changed";
    let fix = "undo it; a task that needs it must name this path in its allowed paths";
    Some(Finding::new(FindingSource::Repository, Severity::Blocker, message, fix).in_file(path))
}

/// Whether the path holds an agent's settings, anywhere in the tree: agents look in the directory
/// in which they are started.
fn is_agent_settings(path: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        ".claude/settings",
        ".claude/hooks",
        ".codex/config.toml",
        ".codex/hooks",
        ".mcp.json",
        ".gemini/settings.json",
        "opencode.json",
        ".opencode/opencode.json",
        ".opencode/plugin",
    ];
    let path = path.to_lowercase();
    BEGINNINGS.iter().any(|start| path.starts_with(start) || path.contains(&format!("/{start}")))
}

fn is_ci(path: &str) -> bool {
    const DIRECTORIES: &[&str] = &[
        ".github/workflows/",
        ".github/actions/",
        ".circleci/",
        ".buildkite/",
        ".gitlab/ci/",
        ".woodpecker/",
        ".husky/",
        ".githooks/",
    ];
    const FILES: &[&str] = &[
        ".gitlab-ci.yml",
        ".travis.yml",
        ".drone.yml",
        ".woodpecker.yml",
        ".pre-commit-config.yaml",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "cloudbuild.yaml",
        "jenkinsfile",
        "lefthook.yml",
    ];
    let path = path.to_lowercase();
    DIRECTORIES.iter().any(|directory| path.starts_with(directory))
        || FILES.contains(&path.as_str())
}

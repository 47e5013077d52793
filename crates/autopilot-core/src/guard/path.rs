//! Checks where a change is made: allowed and denied paths, on both sides of a rename and through
//! links.
//!
//! Paths match by whole components: `src` admits `src/a.rs` and not `src2/a.rs`. Denied paths match
//! without regard to case, because some file systems have none.

use globset::{GlobBuilder, GlobMatcher};

use super::finding::visible;
pub(crate) use super::text::is_fixture;
use super::{ChangedFile, FileMode, FileStatus, Finding, FindingSource, Severity};

/// The controller's own files: a change to them would change the rules that it is judged by.
const ALWAYS_DENIED: &str = ".autopilot";

/// Checks that the files lie inside the allowed paths and outside the denied ones.
pub fn check(files: &[ChangedFile], allowed: &[String], denied: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let allowed_rules = rules(allowed, LetterCase::Matters, &mut findings);
    let mut denied_rules = rules(denied, LetterCase::Ignored, &mut findings);
    denied_rules.extend(rules(&[ALWAYS_DENIED.to_owned()], LetterCase::Ignored, &mut findings));
    let place =
        PathRules { any_allowed: allowed.is_empty(), allowed: allowed_rules, denied: denied_rules };
    for file in files {
        // The old side of a copy is not changed.
        let old = file.old_path.as_deref().filter(|_| file.status != FileStatus::Copied);
        for path in [Some(file.path.as_str()), old].into_iter().flatten() {
            findings.extend(place.judge(path));
        }
        if file.mode == FileMode::Symlink && file.status != FileStatus::Deleted {
            findings.extend(place.judge_link(file));
        }
    }
    findings
}

/// Whether no change is allowed at a path.
pub fn is_denied(path: &str, denied: &[String]) -> bool {
    let file = ChangedFile {
        path: path.to_owned(),
        status: FileStatus::Added,
        old_path: None,
        link_target: None,
        mode: FileMode::Regular,
        binary: false,
    };
    !check(&[file], &[], denied).is_empty()
}

struct PathRules {
    any_allowed: bool,
    allowed: Vec<PathRule>,
    denied: Vec<PathRule>,
}

impl PathRules {
    fn judge(&self, path: &str) -> Option<Finding> {
        let Some(parts) = resolve("", path) else {
            return Some(outside(path, "is not inside the repository"));
        };
        if let Some(rule) = self.denied.iter().find(|rule| rule.matches(&parts)) {
            let message = format!("changes under `{}` are denied", visible(&rule.written));
            return Some(blocker(message, "undo the change to this file").in_file(path));
        }
        if !self.any_allowed && !self.allowed.iter().any(|rule| rule.matches(&parts)) {
            let allowed: Vec<String> =
                self.allowed.iter().map(|rule| format!("`{}`", visible(&rule.written))).collect();
            let message = format!("only {} may be changed in this task", allowed.join(", "));
            return Some(blocker(message, "undo the change to this file").in_file(path));
        }
        None
    }

    fn judge_link(&self, file: &ChangedFile) -> Option<Finding> {
        let target = file.link_target.as_deref().unwrap_or_default();
        let shown = visible(target);
        let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let fix = "remove the link";
        let Some(parts) = resolve(directory, target) else {
            let message = format!("the link points to `{shown}`, outside the repository");
            return Some(blocker(message, fix).in_file(&file.path));
        };
        let into_git = parts.first().is_some_and(|part| part.eq_ignore_ascii_case(".git"));
        let denied = self.denied.iter().any(|rule| rule.matches(&parts));
        let holds_denied = self.denied.iter().any(|rule| rule.is_under(&parts));
        if into_git || denied || holds_denied {
            let message = format!("the link points to `{shown}`, where changes are denied");
            return Some(blocker(message, fix).in_file(&file.path));
        }
        if !self.any_allowed && !self.allowed.iter().any(|rule| rule.matches(&parts)) {
            let message = format!("the link points to `{shown}`, outside the allowed paths");
            return Some(blocker(message, fix).in_file(&file.path));
        }
        None
    }
}

fn outside(path: &str, why: &str) -> Finding {
    blocker(format!("the path {why}"), "undo the change to this file").in_file(path)
}

fn blocker(message: String, fix: &str) -> Finding {
    Finding::new(FindingSource::Paths, Severity::Blocker, message, fix)
}

/// The components of `path` seen from `directory`, without reading any file; `None` if it is
/// absolute or leaves the repository.
fn resolve<'a>(directory: &'a str, path: &'a str) -> Option<Vec<&'a str>> {
    if path.is_empty() || path.starts_with('/') || path.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts)
}

/// Patterns of paths as they stand in a configuration: a directory means all that is in it, and a
/// pattern without a directory means that name anywhere.
pub struct PathPatterns {
    rules: Vec<PathRule>,
}

impl PathPatterns {
    /// Reads patterns; one that is not valid was refused with its configuration and matches nothing.
    pub fn new(written: &[String]) -> PathPatterns {
        PathPatterns { rules: rules(written, LetterCase::Matters, &mut Vec::new()) }
    }

    /// The pattern that names the file or a directory above it.
    pub fn matching(&self, path: &str) -> Option<&str> {
        let parts: Vec<&str> = path.split('/').collect();
        self.rules.iter().find(|rule| rule.matches(&parts)).map(|rule| rule.written.as_str())
    }

    /// What is wrong with a pattern.
    pub fn fault(written: &str) -> Option<String> {
        PathRule::new(written, LetterCase::Matters).err().map(|why| format!("`{written}` {why}"))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum LetterCase {
    Matters,
    Ignored,
}

struct PathRule {
    written: String,
    case: LetterCase,
    matcher: Matcher,
}

enum Matcher {
    Prefix(Vec<String>),
    Glob(GlobMatcher),
}

fn rules(written: &[String], case: LetterCase, findings: &mut Vec<Finding>) -> Vec<PathRule> {
    written
        .iter()
        .filter_map(|path| match PathRule::new(path, case) {
            Ok(rule) => Some(rule),
            Err(why) => {
                let message = format!("`{}` in the list of paths {why}", visible(path));
                findings.push(blocker(message, "correct the list"));
                None
            }
        })
        .collect()
}

impl PathRule {
    fn new(written: &str, case: LetterCase) -> Result<Self, String> {
        let trimmed = written.trim().trim_end_matches("/**").trim_end_matches('/');
        let parts = match resolve("", trimmed) {
            Some(parts) => parts,
            None if trimmed.is_empty() && !written.starts_with('/') => Vec::new(),
            None => return Err("is not inside the repository".to_owned()),
        };
        let matcher = if trimmed.contains(['*', '?', '[', '{']) {
            // A pattern without a directory means that name anywhere, as in .gitignore.
            let anywhere = if parts.len() == 1 { "**/" } else { "" };
            let glob = GlobBuilder::new(&format!("{anywhere}{}", parts.join("/")))
                .literal_separator(true)
                .case_insensitive(case == LetterCase::Ignored)
                .build()
                .map_err(|error| format!("is not a valid pattern: {}", error.kind()))?;
            Matcher::Glob(glob.compile_matcher())
        } else {
            Matcher::Prefix(parts.into_iter().map(str::to_owned).collect())
        };
        Ok(Self { written: written.to_owned(), case, matcher })
    }

    /// Whether the rule names the path itself or a directory above it.
    fn matches(&self, path: &[&str]) -> bool {
        match &self.matcher {
            Matcher::Prefix(prefix) => {
                prefix.len() <= path.len() && prefix.iter().zip(path).all(|(a, b)| self.same(a, b))
            }
            Matcher::Glob(glob) => {
                (1..=path.len()).any(|length| glob.is_match(path[..length].join("/")))
            }
        }
    }

    /// Whether the rule's own place lies in that directory: a link there could be used to write
    /// here.
    fn is_under(&self, directory: &[&str]) -> bool {
        match &self.matcher {
            Matcher::Prefix(prefix) => {
                prefix.len() > directory.len()
                    && !directory.is_empty()
                    && prefix.iter().zip(directory).all(|(a, b)| self.same(a, b))
            }
            Matcher::Glob(_) => false,
        }
    }

    fn same(&self, a: &str, b: &str) -> bool {
        match self.case {
            LetterCase::Matters => a == b,
            LetterCase::Ignored => a.to_lowercase() == b.to_lowercase(),
        }
    }
}

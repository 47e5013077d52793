//! `autopilot init --skills`: writes the shipped skills to the folders where agents look for them.
//! A file that differs stays as it is, and the difference is shown.

use crate::exit::CommandFailure;
use autopilot_core::skill::SKILL_BYTES_MAX;
use autopilot_engine::cause::chain;
use autopilot_engine::skill::shipped::{ALL, FOLDERS, Shipped};
use autopilot_host::file::{Dir, FileError};
use camino::Utf8Path;
use serde::Serialize;
use similar::TextDiff;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// The most lines of a diff that are shown.
const DIFF_LINES_MAX: usize = 200;
/// The time after which a diff becomes coarser.
const DIFF_TIME_MAX: Duration = Duration::from_secs(1);
/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// The skill files and what became of each.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Skills {
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    path: String,
    #[serde(flatten)]
    state: SkillState,
}

#[derive(Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum SkillState {
    Written,
    Same,
    /// The project's own text, with the diff to the shipped one.
    Changed {
        diff: String,
    },
    Refused {
        why: String,
    },
}

/// Writes the missing files. One that can't be written does not stop the others.
pub fn write(root: &Utf8Path) -> Result<Skills, CommandFailure> {
    let top = Dir::open(root.as_std_path()).map_err(CommandFailure::failed)?;
    let mut files = Vec::new();
    for folder in FOLDERS {
        for shipped in ALL {
            let path = shipped.path(folder);
            let state = one(&top, &path, shipped);
            files.push(File { path, state });
        }
    }
    Ok(Skills { files })
}

fn one(top: &Dir, path: &str, shipped: Shipped) -> SkillState {
    let refused = |error: &FileError| SkillState::Refused { why: chain(error) };
    match top.read_capped(Path::new(path), SKILL_BYTES_MAX as u64) {
        Ok(bytes) if shipped.is_in(&bytes) => SkillState::Same,
        Ok(bytes) => SkillState::Changed { diff: difference(path, &bytes, shipped.text) },
        Err(FileError::Failed { source, .. }) if source.kind() == ErrorKind::NotFound => {
            match top.write_atomic(Path::new(path), shipped.text.as_bytes()) {
                Ok(()) => SkillState::Written,
                Err(error) => refused(&error),
            }
        }
        Err(error) => refused(&error),
    }
}

/// The diff from the project's file to the shipped one.
fn difference(path: &str, theirs: &[u8], shipped: &str) -> String {
    let theirs = String::from_utf8_lossy(theirs).replace("\r\n", "\n");
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(theirs.as_str(), shipped);
    let (from, to) = (format!("a/{path}\tthis project"), format!("b/{path}\tshipped"));
    let text = diff.unified_diff().context_radius(CONTEXT_LINES).header(&from, &to).to_string();
    let more = text.lines().count().saturating_sub(DIFF_LINES_MAX);
    if more == 0 {
        return text;
    }
    let shown: Vec<&str> = text.lines().take(DIFF_LINES_MAX).collect();
    format!("{}\n… and {more} more lines\n", shown.join("\n"))
}

impl Skills {
    /// The lines of the report.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for File { path, state } in &self.files {
            match state {
                SkillState::Written => lines.push(format!("wrote    {path}")),
                SkillState::Same => lines.push(format!("kept     {path} (as shipped)")),
                SkillState::Changed { diff } => {
                    lines.push(format!("left     {path} (changed; the shipped one differs:)"));
                    lines.extend(diff.lines().map(|line| format!("  {line}")));
                }
                SkillState::Refused { why } => lines.push(format!("refused  {path}: {why}")),
            }
        }
        if self.files.iter().any(|file| matches!(file.state, SkillState::Written)) {
            lines.push("commit   the skills: an agent sees only what is committed".to_owned());
        }
        lines
    }

    /// The failure, if a file could not be written.
    pub fn failure(&self) -> Option<CommandFailure> {
        let is_refused = |file: &&File| matches!(file.state, SkillState::Refused { .. });
        let count = self.files.iter().filter(is_refused).count();
        let first = self.files.iter().find(is_refused)?;
        let SkillState::Refused { why } = &first.state else { return None };
        let files = if count == 1 { "file" } else { "files" };
        Some(
            CommandFailure::failed(format!(
                "{count} {files} of skills could not be written: {why}"
            ))
            .hint("put plain directories there, or leave it: the shipped skills are used anyway"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_patch_of_the_projects_file() {
        let diff = difference("x/SKILL.md", b"one\r\nmine\r\n", "one\nours\n");
        let expected = "--- a/x/SKILL.md\tthis project\n+++ b/x/SKILL.md\tshipped\n\
                        @@ -1,2 +1,2 @@\n one\n-mine\n+ours\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn a_difference_is_bounded_in_length_and_in_time() {
        let theirs: String = (0..SKILL_BYTES_MAX / 8).map(|n| format!("{n:07}\n")).collect();
        let ours: String = (0..9000).map(|n| format!("ours {n}\n")).collect();
        let began = std::time::Instant::now();
        let diff = difference("x", theirs.as_bytes(), &ours);
        assert_eq!(diff.lines().count(), DIFF_LINES_MAX + 1);
        assert!(diff.ends_with("more lines\n"), "{diff}");
        assert!(began.elapsed() < DIFF_TIME_MAX * 10, "{:?}", began.elapsed());
    }
}

//! The files of a repository that agents obey: whoever judges or plans gets them as they were at
//! the run's base, because an agent could have written its own judge's instructions.

/// The directories in which vendors keep settings, skills and rules of a project.
const DIRECTORIES: &[&str] = &[
    ".agents",
    ".claude",
    ".codex",
    ".crush",
    ".cursor",
    ".gemini",
    ".goose",
    ".opencode",
    ".windsurf",
];
/// The files with instructions or settings, in any directory.
const FILES: &[&str] = &[
    ".cursorrules",
    ".goosehints",
    ".mcp.json",
    ".windsurfrules",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "copilot-instructions.md",
    "crush.json",
    "crush.md",
    "gemini.md",
    "opencode.json",
    "opencode.jsonc",
    "opencode.md",
];

/// Whether agents take instructions or settings from a file of the repository.
pub fn is_instruction(path: &str) -> bool {
    let lower = path.to_lowercase();
    let mut parts = lower.split('/').rev();
    let is_file = parts.next().is_some_and(|name| FILES.contains(&name));
    // A directory may be a link, which is a file to git.
    is_file || lower.split('/').any(|part| DIRECTORIES.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_known_by_name_in_any_directory() {
        for path in [
            "AGENTS.md",
            "web/Agents.md",
            "CLAUDE.md",
            ".claude/skills/x/SKILL.md",
            "a/.codex/config.toml",
            ".agents",
            ".mcp.json",
        ] {
            assert!(is_instruction(path), "{path}");
        }
        for path in ["README.md", "src/agents.rs", "claude/x.md", "docs/agents.md.txt", ""] {
            assert!(!is_instruction(path), "{path}");
        }
    }
}

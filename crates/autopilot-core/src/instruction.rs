//! The files of a repository that agents obey: whoever judges or plans gets them as they were at
//! the run's base, because an agent could have written its own judge's instructions.

use std::collections::BTreeSet;

/// The directories in which agents and editors keep settings, skills and rules of a project.
const DIRECTORIES: &[&str] = &[
    ".agents",
    ".claude",
    ".codex",
    ".continue",
    ".crush",
    ".cursor",
    ".gemini",
    ".goose",
    ".idea",
    ".junie",
    ".kiro",
    ".opencode",
    ".roo",
    ".vscode",
    ".windsurf",
    ".zed",
];
/// Directories of that kind below another one that has other files too.
const DIRECTORIES_BELOW: &[(&str, &str)] = &[(".github", "instructions")];
/// The beginnings of the names of files and directories of that kind.
const BEGINNINGS: &[&str] = &[".aider", ".clinerules", ".roorules"];
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
    "qwen.md",
];

/// Whether agents take instructions or settings from a file of the repository.
pub fn is_instruction(path: &str) -> bool {
    let lower = path.to_lowercase();
    let parts: Vec<&str> = lower.split('/').collect();
    let is_file = parts.last().is_some_and(|name| FILES.contains(name));
    let begins = |part: &&str| BEGINNINGS.iter().any(|start| part.starts_with(start));
    // A directory may be a link, which is a file to git.
    is_file
        || parts.iter().any(|part| DIRECTORIES.contains(part) || begins(part))
        || parts
            .iter()
            .zip(parts.iter().skip(1))
            .any(|(above, part)| DIRECTORIES_BELOW.contains(&(*above, *part)))
}

/// The files of one commit that agents obey: those with such names, and the files to which symbolic
/// links with such names lead.
#[derive(Debug, Clone, Default)]
pub struct ObeyedFiles {
    targets: BTreeSet<String>,
}

impl ObeyedFiles {
    /// Takes the symbolic links of a commit, each as its path and where it leads.
    pub fn with_links(links: impl Iterator<Item = (String, String)>) -> ObeyedFiles {
        let named = links.filter(|(link, _)| is_instruction(link));
        let targets = named.filter_map(|(link, to)| target_of(&link, &to)).collect();
        ObeyedFiles { targets }
    }

    /// Whether agents take instructions or settings from a file.
    pub fn has(&self, path: &str) -> bool {
        is_instruction(path) || self.targets.contains(path)
    }
}

/// The path of the repository to which a link leads; none outside of it.
fn target_of(link: &str, to: &str) -> Option<String> {
    if to.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_to_which_an_instruction_leads_is_one() {
        for (link, to, path, wanted) in [
            ("AGENTS.md", "docs/ai.md", "docs/ai.md", true),
            ("web/CLAUDE.md", "../docs/./ai.md", "docs/ai.md", true),
            ("AGENTS.md", "docs/ai.md", "docs/other.md", false),
            ("AGENTS.md", "docs", "docs/ai.md", false),
            ("notes.md", "docs/ai.md", "docs/ai.md", false),
            ("AGENTS.md", "../docs/ai.md", "docs/ai.md", false),
            ("AGENTS.md", "/docs/ai.md", "docs/ai.md", false),
        ] {
            let files = ObeyedFiles::with_links([(link.to_owned(), to.to_owned())].into_iter());
            assert_eq!(files.has(path), wanted, "{link} -> {to}: {path}");
            assert!(files.has("AGENTS.md"), "names count as well");
        }
    }

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
            ".github/instructions/ts.instructions.md",
            ".clinerules",
            ".clinerules-code/a.md",
            ".roo/rules/a.md",
            ".roorules-ask",
            ".continue/rules/a.md",
            ".kiro/steering/a.md",
            ".junie/guidelines.md",
            ".aider.conf.yml",
            "web/QWEN.md",
            ".vscode/settings.json",
            ".idea/workspace.xml",
            ".zed/settings.json",
        ] {
            assert!(is_instruction(path), "{path}");
        }
        for path in [
            "README.md",
            "src/agents.rs",
            "claude/x.md",
            "docs/agents.md.txt",
            ".github/workflows/ci.yml",
            "docs/instructions/x.md",
            "src/vscode/x.ts",
            "clinerules",
            "",
        ] {
            assert!(!is_instruction(path), "{path}");
        }
    }
}

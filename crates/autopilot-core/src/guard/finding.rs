//! A finding: one thing to fix, whoever found it.

use crate::doubt::Doubt;
use crate::rows::rows;
use serde::{Deserialize, Serialize};

/// The number of findings that are listed; the rest is counted.
pub const FINDINGS_MAX: usize = 100;

rows! {
/// The weight of a finding, in falling order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Severity -> SeverityRow {
    Blocker: SeverityRow { word: "blocker", effect: FindingEffect::Blocks },
    /// The change may be right, and somebody must look.
    Major: SeverityRow { word: "major", effect: FindingEffect::IsDoubted },
    /// The change is as it should be, as far as the rule can see.
    Minor: SeverityRow { word: "minor", effect: FindingEffect::IsNoted },
}}

/// What the severity of a finding means.
#[derive(Debug, Clone, Copy)]
pub struct SeverityRow {
    word: &'static str,
    effect: FindingEffect,
}

/// What a finding of the guards does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingEffect {
    /// The change goes back to the builder and is never merged with it.
    Blocks,
    /// The reviewer sees it, and a person is told to look at it before the merge.
    IsDoubted,
    /// The reviewer sees it, and it is noted for people.
    IsNoted,
}

impl Severity {
    /// The word for the severity in messages.
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// Whether a finding of this severity blocks or is told, and how.
    pub fn effect(self) -> FindingEffect {
        self.row().effect
    }

    /// The rank of the severity: the lower, the more urgent.
    pub fn priority(self) -> u32 {
        self as u32
    }
}

/// The check that made a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSource {
    Paths,
    Repository,
    Ci,
    DiffCap,
    Todo,
    /// Whether the change says or does anything.
    Substance,
    /// Letters and names that are not what they look like.
    Unicode,
    /// Files that tell a run what to do.
    Instructions,
    TestCode,
    Secret,
    Validation,
    Review,
    Uat,
    Coverage,
    Integration,
}

/// One thing to fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub source: FindingSource,
    pub severity: Severity,
    /// The rank of the severity: the lower, the more urgent.
    pub priority: u32,
    pub message: String,
    /// The way to fix it.
    pub fix: String,
    pub file: Option<String>,
    pub line: Option<u64>,
    /// The place of the proof: a log, a blob, an acceptance criterion.
    pub evidence_ref: Option<String>,
}

impl Finding {
    /// A finding about the change as a whole.
    pub fn new(
        source: FindingSource,
        severity: Severity,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            source,
            severity,
            priority: severity.priority(),
            message: message.into(),
            fix: fix.into(),
            file: None,
            line: None,
            evidence_ref: None,
        }
    }

    /// The finding with its file.
    #[must_use]
    pub fn in_file(self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    /// The finding as a sentence that names its place.
    pub fn sentence(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}: {}", visible(file), self.message),
            (Some(file), None) => format!("{}: {}", visible(file), self.message),
            (None, _) => self.message.clone(),
        }
    }

    /// The finding with its line.
    #[must_use]
    pub fn at_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }
}

/// Lists findings, one per line: `blocker: src/a.rs:3: what is wrong; what to do`.
pub fn report(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let place = match (&finding.file, finding.line) {
            (Some(file), Some(line)) => format!("{}:{line}: ", visible(file)),
            (Some(file), None) => format!("{}: ", visible(file)),
            (None, _) => String::new(),
        };
        let fix = if finding.fix.is_empty() { String::new() } else { format!("; {}", finding.fix) };
        format!("{}: {place}{}{fix}", finding.severity.as_str(), finding.message)
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The findings that block by themselves, each as a sentence; the others go to the reviewer.
pub fn broken_rules(findings: &[Finding]) -> Vec<String> {
    with_effect(findings, FindingEffect::Blocks).map(Finding::sentence).collect()
}

/// The findings that do not block but that the reviewer and the person must know.
pub fn doubts(findings: &[Finding]) -> Vec<Doubt> {
    findings.iter().filter_map(Doubt::of_finding).collect()
}

/// The findings that are only noted, each as a sentence.
pub fn noted(findings: &[Finding]) -> Vec<String> {
    with_effect(findings, FindingEffect::IsNoted).map(Finding::sentence).collect()
}

fn with_effect(findings: &[Finding], effect: FindingEffect) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |found| found.severity.effect() == effect)
}

/// Keeps the most severe findings; within a severity their order stays.
pub(super) fn limited(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| finding.priority);
    if findings.len() > FINDINGS_MAX {
        let (left_out, kept) = (findings.len() - FINDINGS_MAX + 1, FINDINGS_MAX - 1);
        let last = &findings[kept];
        let message = format!("{left_out} more findings are not listed");
        let more = Finding::new(last.source, last.severity, message, "fix those above first");
        findings.truncate(kept);
        findings.push(more);
    }
    findings
}

/// The text of a repository as it may appear in a message: characters that a terminal would obey,
/// or that would turn the writing direction, are spelled out.
pub(super) fn visible(text: &str) -> String {
    let odd =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .flat_map(|c| {
            let shown: String = if odd(c) { c.escape_unicode().collect() } else { c.into() };
            shown.chars().collect::<Vec<_>>()
        })
        .collect()
}

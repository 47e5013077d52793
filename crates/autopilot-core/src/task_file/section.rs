//! Finds the sections of a task file, written as `Goal:` labels or `## Goal` headings.

mod read;

use super::item::Fence;
use super::{FileKind, Findings};
use crate::config::nearest::{distance, nearest};

pub(super) use read::spec;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Goal,
    Acceptance,
    Constraints,
    Allowed,
    Deny,
    Commands,
    Uat,
    Notes,
}

/// The names of sections; the first spelling of each is the one we write.
pub(super) const NAMES: &[(&str, Name)] = &[
    ("Goal", Name::Goal),
    ("Acceptance Criteria", Name::Acceptance),
    ("Constraints", Name::Constraints),
    ("Allowed Paths", Name::Allowed),
    ("Deny Paths", Name::Deny),
    ("Validation Commands", Name::Commands),
    ("User Acceptance Tests", Name::Uat),
    ("Notes", Name::Notes),
    ("Goals", Name::Goal),
    ("Acceptance", Name::Acceptance),
    ("Constraint", Name::Constraints),
    ("Denied Paths", Name::Deny),
    ("UAT", Name::Uat),
    ("Note", Name::Notes),
];

#[derive(Debug)]
pub(super) struct Title {
    pub(super) line: usize,
    pub(super) kind: Option<FileKind>,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct FileSection<'a> {
    pub(super) name: Name,
    pub(super) line: usize,
    pub(super) lines: Vec<(usize, &'a str)>,
}

#[derive(Debug, Default)]
pub(super) struct Outline<'a> {
    pub(super) title: Option<Title>,
    pub(super) sections: Vec<FileSection<'a>>,
}

pub(super) fn outline<'a>(lines: &[(usize, &'a str)], findings: &mut Findings) -> Outline<'a> {
    let mut outline = Outline::default();
    let mut fence = Fence::default();
    let mut fence_line = 0;
    let mut after_blank = true;
    for &(number, line) in lines {
        let trimmed = line.trim();
        let code = fence.open.is_some();
        fence.step(line);
        if !code {
            fence_line = number;
        }
        let in_code = code || fence.open.is_some();
        let mark = if in_code { SectionMark::None } else { mark_of(line, after_blank) };
        after_blank = trimmed.is_empty();
        place(&mut outline, number, line, mark, findings);
    }
    if fence.open.is_some() {
        findings
            .fault(fence_line, "the code block that starts here is not closed; end it with ```");
    }
    outline
}

fn place<'a>(
    outline: &mut Outline<'a>,
    number: usize,
    line: &'a str,
    mark: SectionMark<'a>,
    findings: &mut Findings,
) {
    match mark {
        SectionMark::Title(title) if outline.title.is_none() => {
            outline.title = Some(Title { line: number, ..title });
        }
        SectionMark::Title(Title { kind: Some(_), .. }) => {
            findings.fault(number, "a second title starts here; put each task into its own file")
        }
        SectionMark::Title(Title { text, .. }) => unknown(outline, number, &text, line, findings),
        SectionMark::Section(name, rest) => {
            let lines = rest.map(|rest| (number, rest)).into_iter().collect();
            outline.sections.push(FileSection { name, line: number, lines });
        }
        SectionMark::Unknown(text) => unknown(outline, number, text, line, findings),
        SectionMark::None => match outline.sections.last_mut() {
            Some(section) => section.lines.push((number, line)),
            None if line.trim().is_empty() => {}
            None => {
                let said = "text before the first section is kept as a note";
                findings.warn(number, said);
                let lines = vec![(number, line)];
                outline.sections.push(FileSection { name: Name::Notes, line: number, lines });
            }
        },
    }
}

/// Handles an unknown section: a name that is almost known is a typing error; any other section is
/// a note.
fn unknown<'a>(
    outline: &mut Outline<'a>,
    number: usize,
    text: &str,
    line: &'a str,
    findings: &mut Findings,
) {
    const SLIP_MAX: usize = 2;
    let known = NAMES.iter().map(|(name, _)| *name);
    let meant = nearest(text, known)
        .filter(|name| distance(&name.to_lowercase(), &text.to_lowercase()) <= SLIP_MAX);
    match meant {
        Some(meant) => {
            findings.fault(number, format!("unknown section `{text}`; did you mean `{meant}`?"));
        }
        None => findings.warn(
            number,
            format!(
                "unknown section `{text}` is kept as a note; known sections: {}",
                known_names()
            ),
        ),
    }
    outline.sections.push(FileSection {
        name: Name::Notes,
        line: number,
        lines: vec![(number, line)],
    });
}

fn known_names() -> String {
    NAMES.iter().take(8).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[derive(Debug)]
enum SectionMark<'a> {
    Title(Title),
    /// A known section, perhaps with its first words on the same line.
    Section(Name, Option<&'a str>),
    Unknown(&'a str),
    None,
}

fn mark_of(line: &str, after_blank: bool) -> SectionMark<'_> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with([' ', '\t']) {
        return heading(level, line[level..].trim().trim_end_matches('#').trim());
    }
    if level == 1 && line.len() == 1 {
        return SectionMark::Title(Title { line: 0, kind: None, text: String::new() });
    }
    label(line, after_blank)
}

fn heading(level: usize, text: &str) -> SectionMark<'_> {
    let plain = text.trim_end_matches(':').trim();
    if let Some(name) = known(plain) {
        return SectionMark::Section(name, None);
    }
    match level {
        1 => SectionMark::Title(title(text)),
        2 => SectionMark::Unknown(plain),
        _ => SectionMark::None,
    }
}

fn title(text: &str) -> Title {
    for (word, kind) in [("task", FileKind::Task), ("plan", FileKind::Plan)] {
        let head = text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        let rest =
            text.get(word.len()..).filter(|_| head).and_then(|r| r.trim_start().strip_prefix(':'));
        if let Some(rest) = rest {
            return Title { line: 0, kind: Some(kind), text: rest.trim().to_owned() };
        }
    }
    Title { line: 0, kind: None, text: text.to_owned() }
}

/// Recognizes `Goal:` or `**Goal:** words`. An unknown label must stand alone after an empty line,
/// or every sentence that ends with a colon would be one.
fn label(line: &str, after_blank: bool) -> SectionMark<'_> {
    let Some((head, rest)) = line.split_once(':') else { return SectionMark::None };
    let name = head.trim_start_matches("**").trim_end_matches("**");
    let rest = rest.strip_prefix("**").unwrap_or(rest).trim();
    if line.starts_with([' ', '\t', '-', '+']) {
        return SectionMark::None;
    }
    if let Some(known) = known(name.trim()) {
        return SectionMark::Section(known, (!rest.is_empty()).then_some(rest));
    }
    let words = name.split_whitespace().count();
    let worded = name.chars().all(|c| c.is_alphabetic() || c == ' ' || c == '/' || c == '-');
    let capital = name.chars().next().is_some_and(char::is_uppercase);
    if after_blank && rest.is_empty() && worded && capital && (1..=4).contains(&words) {
        return SectionMark::Unknown(name.trim());
    }
    SectionMark::None
}

fn known(text: &str) -> Option<Name> {
    NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, name)| *name)
}

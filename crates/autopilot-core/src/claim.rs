//! What a builder says of its work, compared with what the controller saw. A difference is a doubt
//! for the reviewer and the person; it never blocks by itself.

use crate::evidence::SeenCommand;
use crate::guard::ChangedFile;
use crate::guard::path::is_fixture;

/// The number of files that a doubt names; the rest is counted.
const NAMED_MAX: usize = 3;

/// The claims in a builder's report.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuilderClaim<'a> {
    /// The files that the builder says it changed; none are compared if it names none.
    pub changed_files: &'a [String],
    /// The commands that it says it ran, with the exit codes it tells.
    pub commands: &'a [(&'a str, Option<i64>)],
    pub tests_ran: Option<bool>,
    pub tests_passed: Option<bool>,
    /// The part of the change that the report is about.
    pub scope: ClaimScope<'a>,
}

/// The part of a change that a report is about.
#[derive(Debug, Clone, Copy, Default)]
pub enum ClaimScope<'a> {
    /// All of it.
    #[default]
    Whole,
    /// A repair of work that an earlier report, with these files, was about. A file may have become
    /// again what it was.
    Repair(&'a [String]),
    /// Some of it: others have worked on it before, and their reports are not at hand.
    Part,
}

/// The differences between a builder's claims and what the controller saw, each as a sentence.
/// `failure` words a check that did not pass.
pub fn differences(
    claim: &BuilderClaim<'_>,
    files: &[ChangedFile],
    checks: &[SeenCommand],
    failure: impl Fn(&SeenCommand) -> String,
) -> Vec<String> {
    let mut differs = Vec::new();
    let tests = checks.iter().find(|check| check.name == "tests" && check.failed());
    if let Some(tests) = tests.filter(|_| claim.tests_passed == Some(true)) {
        differs.push(format!("the builder says the tests passed, but {}", failure(tests)));
    }
    let is_green = checks.iter().any(|check| check.name == "tests" && !check.failed());
    if is_green && claim.tests_ran == Some(true) && claim.tests_passed == Some(false) {
        differs.push("the builder says the tests failed, and here they pass".to_owned());
    }
    if claim.tests_passed == Some(true) && claim.tests_ran == Some(false) {
        differs.push("the builder says the tests passed, and that it did not run them".to_owned());
    }
    for check in checks.iter().filter(|check| check.failed()) {
        let is_said = check.name == "tests" && claim.tests_passed == Some(true);
        // Only the last of several runs is a claim about the result.
        let last = claim.commands.iter().rev().find(|(line, _)| is_command(line, &check.command));
        if !is_said && last.is_some_and(|(_, code)| *code == Some(0)) {
            let (command, failure) = (&check.command, failure(check));
            differs.push(format!("the builder says `{command}` passed, but {failure}"));
        }
    }
    differs.extend(file_differences(claim, files));
    differs
}

fn is_command(claimed: &str, command: &str) -> bool {
    claimed.split_whitespace().eq(command.split_whitespace())
}

fn file_differences(claim: &BuilderClaim<'_>, files: &[ChangedFile]) -> Vec<String> {
    let said: Vec<ClaimedFile> = claimed(claim.changed_files).collect();
    if said.is_empty() {
        return Vec::new();
    }
    let mut differs = Vec::new();
    let before: &[String] = match claim.scope {
        ClaimScope::Part => return differs,
        ClaimScope::Repair(before) => before,
        ClaimScope::Whole => {
            let absent = said
                .iter()
                .filter(|said| said.names_file() && !files.iter().any(|file| said.covers(file)));
            let absent: Vec<&str> = absent.map(|said| said.0.as_str()).collect();
            if !absent.is_empty() {
                let names = named(&absent);
                differs.push(format!(
                    "the builder says it changed {names}, which the change does not hold"
                ));
            }
            &[]
        }
    };
    if matches!(claim.scope, ClaimScope::Repair(before) if before.is_empty()) {
        return differs;
    }
    let all: Vec<ClaimedFile> = said.into_iter().chain(claimed(before)).collect();
    let is_said = |file: &ChangedFile| all.iter().any(|said| said.covers(file));
    let silent = files
        .iter()
        .filter(|file| !is_lock_file(&file.path) && !is_snapshot(&file.path) && !is_said(file));
    let silent: Vec<&str> = silent.map(|file| file.path.as_str()).collect();
    if !silent.is_empty() {
        differs.push(format!("the builder does not say that it changed {}", named(&silent)));
    }
    differs
}

fn named(files: &[&str]) -> String {
    let shown: Vec<String> =
        files.iter().take(NAMED_MAX).map(|file| format!("`{}`", file.escape_debug())).collect();
    match files.len().saturating_sub(NAMED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The files of a list, without the words that stand for none.
fn claimed(texts: &[String]) -> impl Iterator<Item = ClaimedFile> {
    let is_none = |text: &str| {
        ["-", "n/a", "none"].iter().any(|none| text.eq_ignore_ascii_case(none)) || text.is_empty()
    };
    let texts = texts.iter().map(|text| text.trim()).filter(move |text| !is_none(text));
    texts.flat_map(unfolded).map(ClaimedFile)
}

/// The paths that one with alternatives such as `src/{a,b}.rs` stands for; the braces of a template
/// have no comma.
fn unfolded(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(start, rest)| {
        let (parts, end) = rest.split_once('}')?;
        (parts.contains(',') && !parts.contains('{')).then_some((start, parts, end))
    });
    match parts {
        Some((start, parts, end)) => {
            parts.split(',').map(|part| format!("{start}{}{end}", part.trim())).collect()
        }
        None => vec![text.to_owned()],
    }
}

/// A path without the line, column or range behind it, as in `src/a.rs:12:3` and `src/a.rs:12-20`.
fn without_line(word: &str) -> &str {
    let is_place = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '-'))
    };
    match word.split_once(':') {
        Some((path, rest)) if is_place(rest) => path,
        Some(_) | None => word,
    }
}

/// A file as a builder names it: a path, a directory, a pattern, an absolute path, or a path with a
/// word about it.
struct ClaimedFile(String);

impl ClaimedFile {
    fn covers(&self, file: &ChangedFile) -> bool {
        let paths = [Some(file.path.as_str()), file.old_path.as_deref()];
        paths.into_iter().flatten().any(|path| {
            self.0 == path
                || std::iter::once(self.0.as_str())
                    .chain(self.words())
                    .any(|said| means(said, path))
        })
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        let around = |c: char| "`'\"(),;:[]<>".contains(c);
        self.0.split_whitespace().map(move |word| without_line(word.trim_matches(around)))
    }

    /// Whether the text is meant as the path of a file of the repository.
    fn names_file(&self) -> bool {
        let is_path = |word: &str| word.contains('/') || word.trim_matches('.').contains('.');
        let is_elsewhere = self.0.starts_with(['/', '~', '$']) || self.0.contains("../");
        self.words().next().is_some_and(is_path) && !is_elsewhere
    }
}

fn means(said: &str, path: &str) -> bool {
    let said = said.strip_prefix("./").unwrap_or(said);
    if let Some((start, _)) = said.split_once('*') {
        return path.starts_with(start);
    }
    let said = said.trim_end_matches('/');
    let is_absolute = said.starts_with('/') && said.ends_with(&format!("/{path}"));
    let is_above = path.strip_prefix(said).is_some_and(|rest| rest.starts_with('/'));
    !said.is_empty() && (said == path || is_absolute || is_above || said == ".")
}

/// Whether a tool writes the file beside what a builder changes.
fn is_lock_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = ["go.sum", "npm-shrinkwrap.json", "package-lock.json", "pnpm-lock.yaml"];
    name.ends_with(".lock") || name.ends_with(".lockb") || known.contains(&name)
}

/// Whether a test writes the file when it runs, or it is the data of one.
fn is_snapshot(path: &str) -> bool {
    path.ends_with(".snap") || is_fixture(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{FileMode, FileStatus};

    fn file(path: &str, old: Option<&str>) -> ChangedFile {
        ChangedFile {
            path: path.into(),
            status: FileStatus::Modified,
            old_path: old.map(str::to_owned),
            link_target: None,
            mode: FileMode::Regular,
            binary: false,
        }
    }

    fn seen(name: &str, code: i32) -> SeenCommand {
        let command = format!("run {name}");
        let name = name.to_owned();
        SeenCommand { name, command, exit_code: Some(code), ended: true, ..SeenCommand::default() }
    }

    fn list(words: &str) -> Vec<String> {
        words.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn a_failure_of_the_tests_that_nobody_else_sees_is_told() {
        let told = |ran, code| {
            let claim = BuilderClaim {
                tests_ran: Some(ran),
                tests_passed: Some(false),
                ..BuilderClaim::default()
            };
            differences(&claim, &[], &[seen("tests", code)], |_| "no".to_owned()).join("; ")
        };
        assert_eq!(told(true, 0), "the builder says the tests failed, and here they pass");
        assert_eq!(told(false, 0), "");
        assert_eq!(told(true, 1), "");
    }

    /// The doubts about the files of a report.
    fn of_files(said: &str, changed: &str, scope: ClaimScope<'_>) -> String {
        let files: Vec<ChangedFile> = list(changed)
            .iter()
            .map(|path| match path.split_once('<') {
                Some((new, old)) => file(new, Some(old)),
                None => file(path, None),
            })
            .collect();
        let said = list(said);
        let claim = BuilderClaim { changed_files: &said, scope, ..BuilderClaim::default() };
        differences(&claim, &files, &[], |_| String::new()).join("; ")
    }

    #[test]
    fn files_are_told_that_were_not_changed_or_not_named() {
        let whole = |said, changed| of_files(said, changed, ClaimScope::Whole);
        assert_eq!(
            whole("a.rs|b.rs", "a.rs"),
            "the builder says it changed `b.rs`, which the change does not hold"
        );
        assert_eq!(
            whole("a.rs", "a.rs|t/a.rs"),
            "the builder does not say that it changed `t/a.rs`"
        );
        assert_eq!(
            whole("a.rs", "a.rs|1.rs|2.rs|3.rs|4.rs"),
            "the builder does not say that it changed `1.rs`, `2.rs`, `3.rs` and 1 more"
        );
        assert_eq!(
            whole("src/{a,c}.rs|b.rs:7", "src/a.rs"),
            "the builder says it changed `src/c.rs`, `b.rs:7`, which the change does not hold"
        );
        assert_eq!(
            whole("a.rs|N/A", "a.rs|snap.rs"),
            "the builder does not say that it changed `snap.rs`"
        );
        let before = list("a.rs");
        assert_eq!(
            of_files("b.rs", "a.rs|b.rs|c.rs", ClaimScope::Repair(&before)),
            "the builder does not say that it changed `c.rs`"
        );
    }

    #[test]
    fn an_honest_report_differs_in_nothing() {
        for (said, changed) in [
            ("b.rs|a.rs", "a.rs|b.rs"),
            ("./a.rs", "a.rs"),
            ("src/", "src/a.rs|src/b/c.rs"),
            ("src", "src/a.rs"),
            ("src/*.rs", "src/a.rs"),
            ("/home/ada/work/src/a.rs", "src/a.rs"),
            ("src/a.rs (new)", "src/a.rs"),
            ("M src/a.rs", "src/a.rs"),
            ("a.rs -> b.rs", "b.rs<a.rs"),
            ("a.rs", "b.rs<a.rs"),
            ("b.rs", "b.rs<a.rs"),
            ("", "a.rs|b.rs"),
            ("Cargo.toml", "Cargo.toml|Cargo.lock"),
            ("a.rs|none", "a.rs"),
            ("a.rs|/tmp/notes.txt", "a.rs"),
            ("src/a.rs:12|src/b.rs:12:3|src/c.rs:3-9", "src/a.rs|src/b.rs|src/c.rs"),
            ("`src/a.rs:12`", "src/a.rs"),
            ("src/{a,b}.rs", "src/a.rs|src/b.rs"),
            ("src/{a, b}.rs", "src/a.rs|src/b.rs"),
            ("{{cookiecutter.name}}/a.py", "{{cookiecutter.name}}/a.py"),
            ("a.rs|N/A", "a.rs"),
            ("none", "a.rs"),
            ("a.rs", "a.rs|src/snapshots/a.snap|b.snap|tests/fixtures/c.json"),
            ("with space.txt", "with space.txt"),
            (".", "a.rs|b.rs"),
        ] {
            assert_eq!(of_files(said, changed, ClaimScope::Whole), "", "{said}: {changed}");
        }
        let before = list("a.rs");
        // A repair may take a file back, and may name only what it repaired.
        assert_eq!(of_files("b.rs", "a.rs", ClaimScope::Repair(&before)), "");
        assert_eq!(of_files("a.rs", "a.rs|b.rs", ClaimScope::Part), "");
        assert_eq!(of_files("a.rs", "a.rs|b.rs", ClaimScope::Repair(&[])), "");
    }

    #[test]
    fn a_command_that_is_said_to_pass_and_fails_is_told() {
        let failure = |seen: &SeenCommand| format!("{} failed", seen.name);
        let told = |claim: BuilderClaim<'_>, checks: &[SeenCommand]| {
            differences(&claim, &[], checks, failure).join("; ")
        };
        let none = BuilderClaim::default();
        let (red, green) =
            ([seen("tests", 1), seen("lint", 1)], [seen("tests", 0), seen("lint", 0)]);
        let passed = BuilderClaim { tests_passed: Some(true), ..none };
        assert_eq!(told(passed, &red), "the builder says the tests passed, but tests failed");
        let lint = BuilderClaim { commands: &[("run  lint", Some(0))], ..none };
        assert_eq!(told(lint, &red), "the builder says `run lint` passed, but lint failed");
        let both = BuilderClaim { commands: &[("run tests", Some(0))], ..passed };
        assert_eq!(told(both, &red), "the builder says the tests passed, but tests failed");
        let not_run = BuilderClaim { tests_ran: Some(false), ..passed };
        assert!(told(not_run, &green).contains("did not run them"));
        for honest in [
            none,
            BuilderClaim { tests_passed: Some(false), ..none },
            BuilderClaim { commands: &[("run lint", Some(1))], ..none },
            BuilderClaim { commands: &[("run lint", None)], ..none },
            BuilderClaim { commands: &[("run lint", Some(0)), ("run lint", Some(1))], ..none },
            BuilderClaim { commands: &[("run other", Some(0))], ..none },
        ] {
            assert_eq!(told(honest, &red), "", "{honest:?}");
        }
        for claim in [passed, lint, both] {
            assert_eq!(told(claim, &green), "");
        }
    }
}

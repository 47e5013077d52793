//! The runners' reports of a gate's tests: asked for before a command, read after it.

use super::gate_site::CommandSite;
use super::own_work::blocking;
use super::process::ProcessResult;
use super::user_command::CommandCheck;
use super::workshop::For;
use super::{Job, JobError};
use crate::environment::Variables;
use crate::environment::reporter::{self, RunnerFacts};
use autopilot_core::guard::path::PathPatterns;
use autopilot_core::holdout::HOLDOUT;
use autopilot_core::test_report::hook::{self, ReportFile};
use autopilot_core::test_report::{AskedRun, REPORTED, TestReport, file, output};
use autopilot_host::dir;
use autopilot_host::file::Dir;
use autopilot_host::written::FileMarks;
use camino::{Utf8Path, Utf8PathBuf};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The most files of reports of one run that are read, and the most bytes of each.
const FILES_MAX: usize = 3_000;
const BYTES_MAX: u64 = 16 << 20;
/// The most bytes of a file that says which runners there are.
const FACTS_BYTES_MAX: u64 = 1 << 20;

/// Whether the runners of a command are asked for their reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    Runners,
    Nobody,
}

/// Where the runners of a command write their reports.
pub struct AskedReport {
    /// The temporary directory of the command, outside and as programs see it.
    tmp: PathBuf,
    seen: Utf8PathBuf,
    is_asked: bool,
    /// The directory in which the command writes its own reports, and those that are there already.
    tree: PathBuf,
    patterns: Vec<String>,
    before: FileMarks,
}

impl Job {
    /// Asks the runners of a command for their reports, if it is one whose tests are told apart.
    pub(super) fn ask_runners(
        &self,
        (name, line): (&str, &str),
        site: &CommandSite,
        asking: Asking,
        variables: &mut Variables,
    ) -> Result<Option<AskedReport>, JobError> {
        if site.purpose != For::Proof || !(name == HOLDOUT || REPORTED.contains(&name)) {
            return Ok(None);
        }
        let own = self.gate_room().tmp;
        let (tmp, seen) = match &site.room {
            Some(room) => (room.plan.tmp.clone(), room.inside.tmp.clone()),
            None => (Some(own.clone().into()), own),
        };
        let tmp = tmp.ok_or(JobError::Internal("a room without temporary files"))?;
        let is_asked = asking == Asking::Runners;
        blocking(|| prepare(&tmp, &seen, is_asked))?;
        if is_asked {
            let facts = RunnerFacts {
                line: line.to_owned(),
                manifest: in_trees(&site.trees, "package.json"),
                cargo: self.cargo_settings(site),
            };
            variables.extend(reporter::asking(variables, &facts, &seen));
        }
        let patterns = self.context.config.gates.reports.clone();
        let tree = site.trees.first().cloned().unwrap_or_default();
        let before = blocking(|| Ok::<_, JobError>(own_reports(&tree, &patterns)))?;
        Ok(Some(AskedReport { tmp, seen, is_asked, tree, patterns, before }))
    }

    /// The settings of cargo that may name a runner.
    fn cargo_settings(&self, site: &CommandSite) -> Vec<String> {
        let names = [".cargo/config.toml", ".cargo/config"];
        let mut settings: Vec<String> =
            names.iter().map(|name| in_trees(&site.trees, name)).collect();
        let home =
            self.context.variables.get("HOME").map(|home| PathBuf::from(home).join(".cargo"));
        let theirs = self.context.variables.get("CARGO_HOME").map(PathBuf::from).or(home);
        settings.extend(theirs.map(|dir| in_trees(&[dir], "config.toml")));
        settings
    }
}

/// The runs of one command until it is known whether it fails because its runners are asked: what asks
/// them must not be the reason of a failure. A command that passes unasked runs a third time, asked, which
/// tells that from a command that passes at times.
#[derive(Default)]
pub struct AskedTries {
    asked: Option<CommandCheck>,
    unasked: Option<CommandCheck>,
}

impl AskedTries {
    /// Whether the next run asks.
    pub fn asking(&self) -> Asking {
        match (&self.asked, &self.unasked) {
            (None, _) | (Some(_), Some(_)) => Asking::Runners,
            (Some(_), None) => Asking::Nobody,
        }
    }

    /// Takes a run, and returns the one that counts once that is known. After the last run that there
    /// may be, it is.
    pub fn saw(&mut self, check: CommandCheck, is_last: bool) -> Option<CommandCheck> {
        match (self.asked.take(), self.unasked.take()) {
            (None, _) if is_last || !check.as_asked().is_tried_unasked() => Some(check),
            (None, _) => {
                self.asked = Some(check);
                None
            }
            (Some(asked), None) if is_last || !check.passed() => Some(asked),
            (Some(asked), None) => {
                (self.asked, self.unasked) = (Some(asked), Some(check));
                None
            }
            (Some(asked), Some(_)) if is_last || check.passed() => Some(asked),
            (Some(_), Some(mut unasked)) => {
                unasked.report.get_or_insert_default().only_unasked = true;
                Some(unasked)
            }
        }
    }
}

impl CommandCheck {
    fn as_asked(&self) -> AskedRun {
        let exit = &self.ran.exit;
        let failed = exit.code.is_some_and(|code| code != 0) && !exit.timed_out && !exit.stuck;
        AskedRun { was_asked: self.was_asked, failed }
    }
}

/// Writes what runners need for a report, and removes every report that was there before.
fn prepare(tmp: &Path, seen: &Utf8Path, is_asked: bool) -> Result<(), JobError> {
    for name in [reporter::TOOLS, reporter::RESULTS] {
        let path = tmp.join(name);
        dir::remove(&path).map_err(JobError::directory("replace", seen.join(name)))?;
    }
    if !is_asked {
        return Ok(());
    }
    let tmp = Dir::open(tmp)?;
    tmp.below(Path::new(reporter::RESULTS))?;
    let tools = tmp.below(Path::new(reporter::TOOLS))?;
    for file in reporter::FILES {
        tools.write_passing(Path::new(file.name), file.text.as_bytes(), Some(file.mode))?;
    }
    Ok(())
}

/// The text of a file of a worktree; empty if there is none.
fn in_trees(trees: &[PathBuf], name: &str) -> String {
    let read =
        |tree: &PathBuf| Dir::open(tree).ok()?.read_capped(Path::new(name), FACTS_BYTES_MAX).ok();
    let bytes = trees.iter().find_map(read).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl AskedReport {
    /// The tests of the command that ran, and whether its runners were at work on a report.
    pub fn report(&self, ran: &ProcessResult) -> (Option<TestReport>, bool) {
        let written = hook::of_files(&self.written());
        let is_named = || reporter::is_named_in(&ran.text, &self.seen);
        let was_asked = self.is_asked && (written.is_some() || is_named());
        let report = match written {
            Some(mut report) => {
                report.merge(&output::documentation_tests(&ran.text));
                report
            }
            None => {
                let own = file::of_files(&self.own_written());
                own.unwrap_or_else(|| output::report(&ran.text))
            }
        };
        (Some(report), was_asked)
    }

    /// The files that the runners wrote. What can't be read says nothing.
    fn written(&self) -> Vec<ReportFile> {
        let Ok(tmp) = Dir::open(&self.tmp) else { return Vec::new() };
        let Ok(results) = tmp.below(Path::new(reporter::RESULTS)) else { return Vec::new() };
        let names = results.names(FILES_MAX).unwrap_or_default();
        names.iter().filter_map(|name| written_file(&results, Path::new(name))).collect()
    }

    /// The reports that the command wrote of its own accord. One that was there before says nothing of
    /// this run.
    fn own_written(&self) -> Vec<ReportFile> {
        let after = own_reports(&self.tree, &self.patterns);
        let Ok(tree) = Dir::open(&self.tree) else { return Vec::new() };
        let new = after.written_since(&self.before).take(FILES_MAX);
        new.filter_map(|path| written_file(&tree, path)).collect()
    }
}

/// The files of a worktree that match the patterns of reports.
fn own_reports(tree: &Path, patterns: &[String]) -> FileMarks {
    if patterns.is_empty() {
        return FileMarks::default();
    }
    let patterns = PathPatterns::new(patterns);
    FileMarks::below(tree, &|path| patterns.matching(path).is_some())
}

fn written_file(dir: &Dir, path: &Path) -> Option<ReportFile> {
    let ends = dir.read_ends(path, BYTES_MAX, 0).ok()?;
    let at = dir.written_at(path).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(ReportFile {
        name: path.to_str()?.to_owned(),
        text: String::from_utf8_lossy(&ends.head).into_owned(),
        is_cut: ends.bytes > BYTES_MAX,
        at_ms: u64::try_from(at.as_millis()).ok()?,
    })
}

//! The programs that the configured commands start.

use super::finding::DoctorFinding;
use autopilot_core::command_line::{NamedProgram, programs};
use autopilot_core::config::Config;
use autopilot_engine::job::find_program;
use camino::Utf8Path;

/// Checks for each configured command line that the programs it starts exist.
pub fn of(config: &Config, root: &Utf8Path) -> Vec<DoctorFinding> {
    let path = std::env::var("PATH").unwrap_or_default();
    let commands = config.commands.all(&Default::default()).into_iter();
    let commands = commands.map(|(name, line)| (format!("commands.{name}"), line));
    let setup = config.worktrees.setup.iter().cloned();
    let setup = setup.map(|line| ("worktrees.setup".to_owned(), line));
    let notify = config.notify.command.iter().cloned();
    let notify = notify.map(|line| ("notify.command".to_owned(), line));
    let is_prepared = config.worktrees.setup.is_some();
    let looked = commands.map(|(key, line)| (key, line, is_prepared));
    let looked = looked.chain(setup.chain(notify).map(|(key, line)| (key, line, false)));
    looked
        .filter_map(|(key, line, is_prepared)| one(&key, &line, is_prepared, &path, root))
        .collect()
}

/// The finding about one line; none if it starts nothing that could be missing.
fn one(
    key: &str,
    line: &str,
    is_prepared: bool,
    path: &str,
    root: &Utf8Path,
) -> Option<DoctorFinding> {
    let (mut there, mut gone, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let mut closed = Vec::new();
    for program in programs(line) {
        let word = program.word();
        match (find_program(word, path, root), &program) {
            (Some(found), _) => there.push(format!("`{word}` ({found})")),
            // What a worktree's setup makes is not in the checkout.
            (None, NamedProgram::At(_)) if is_prepared => unknown.push(format!("`{word}`")),
            (None, NamedProgram::At(_)) if root.join(word).is_file() => {
                closed.push(format!("`{word}` is not executable; run `chmod +x {word}`"));
            }
            (None, NamedProgram::At(_)) => gone.push(format!("`{word}` does not exist")),
            (None, NamedProgram::InPath(_)) => gone.push(format!("`{word}` was not found in PATH")),
        }
    }
    if gone.is_empty() && !closed.is_empty() {
        let text = format!("{}, commit that, or correct `{key}`", closed.join(", "));
        return Some(DoctorFinding::missing(key, text));
    }
    gone.extend(closed);
    if !gone.is_empty() {
        let text =
            format!("{}; install it, or correct `{key}` in .autopilot/config.yml", gone.join(", "));
        return Some(DoctorFinding::missing(key, text));
    }
    if !unknown.is_empty() {
        let text =
            format!("{} does not exist; `worktrees.setup` has to make it", unknown.join(", "));
        return Some(DoctorFinding::warning(key, text));
    }
    (!there.is_empty()).then(|| DoctorFinding::ok(key, there.join(", ")))
}

//! The checks of the machine and of Autopilot's own state.

use super::super::gc;
use super::super::past;
use super::finding::DoctorFinding;
use super::paths;
use autopilot_core::number::size;
use autopilot_engine::lost_state::LostState;
use autopilot_engine::place::StatePaths;
use autopilot_engine::{run_process, workspace};
use autopilot_host::exec::Supervisor;
use autopilot_host::git::{GitCommand, StateEnv, state_root};
use autopilot_host::{room, sandbox};
use autopilot_journal::check;
use autopilot_view::count;
use camino::Utf8Path;

/// A disk with less free space fills up within a few builds.
const DISK_BYTES_MIN: u64 = 1_000_000_000;
const INODES_MIN: u64 = 50_000;
/// The number of agents for which the file descriptors must suffice.
const AGENTS_MIN: u64 = 8;
const MEMORY_BYTES_MIN: u64 = 1_000_000_000;
const OLDEST: (u32, u32) = (2, 38);

/// Checks git and its version.
pub fn git() -> DoctorFinding {
    let line = GitCommand::bare_minimum("ask git for its version").arg("--version").line();
    match line {
        Err(error) => DoctorFinding::missing(
            "git",
            format!("{}; install git 2.38 or newer", autopilot_engine::cause::chain(&error)),
        ),
        Ok(line) if is_new_enough(&line) => DoctorFinding::ok("git", line),
        Ok(line) => {
            DoctorFinding::missing("git", format!("{line} is too old; install 2.38 or newer"))
        }
    }
}

fn is_new_enough(line: &str) -> bool {
    let mut parts = line.trim_start_matches("git version ").split('.');
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    (number(), number()) >= OLDEST
}

/// Checks what the sandbox can enforce here.
pub fn sandbox() -> DoctorFinding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let probe = sandbox::probe(&path, &Supervisor::default());
    if probe.landlock_abi.is_none() && probe.bwrap.is_none() {
        let text = format!(
            "{}; agents run unconfined: use a kernel with Landlock (5.13 or newer) or install bubblewrap",
            probe.sentence()
        );
        return DoctorFinding::warning("sandbox", text);
    }
    match probe.gap() {
        Some(gap) => DoctorFinding::warning("sandbox", format!("{}. {gap}", probe.sentence())),
        None => DoctorFinding::ok("sandbox", probe.sentence()),
    }
}

/// Checks disk, file descriptors and memory; `beside` is on the repository's disk.
pub fn machine(beside: &Utf8Path) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let env = StateEnv::from_process();
    let state = state_root(&env);
    findings.push(paths::state_root(&env, state.as_deref()));
    findings.extend(paths::temporary());
    let there = state.as_deref().and_then(|root| root.ancestors().find(|path| path.exists()));
    findings.push(disk(there.unwrap_or(beside.as_std_path())));
    findings.extend(descriptors());
    findings.extend(room::memory().map(memory));
    findings
}

fn disk(path: &std::path::Path) -> DoctorFinding {
    let room = match room::disk(path) {
        Ok(room) => room,
        Err(error) => {
            return DoctorFinding::warning(
                "disk",
                format!("cannot ask for the room at {}: {error}", path.display()),
            );
        }
    };
    let inodes = room.inodes_free.map(|free| format!(", {free} inodes")).unwrap_or_default();
    let text = format!("{}{inodes} free at {}", size(room.bytes_free), path.display());
    let is_short =
        room.bytes_free < DISK_BYTES_MIN || room.inodes_free.is_some_and(|free| free < INODES_MIN);
    let short = format!("only {text}; free some, or see `autopilot gc --dry-run`");
    DoctorFinding::either("disk", is_short, short, text)
}

fn descriptors() -> Option<DoctorFinding> {
    let found = room::descriptors().ok()?;
    let agents = found.agents_max();
    let text =
        format!("{} allowed, enough for {} at once", found.limit, count(agents as usize, "agent"));
    let short = format!("{text}; raise it with `ulimit -n 4096`");
    Some(DoctorFinding::either("open files", agents < AGENTS_MIN, short, text))
}

fn memory(found: room::Memory) -> DoctorFinding {
    let (free, all) = (size(found.bytes_available), size(found.bytes_total));
    let text = format!("{free} of {all} available");
    let short = format!("only {text}; builds of agents may be killed");
    DoctorFinding::either("memory", found.bytes_available < MEMORY_BYTES_MIN, short, text)
}

/// Checks the state directory and looks for processes that should be gone.
pub fn state(place: &StatePaths) -> Vec<DoctorFinding> {
    if place.state.as_str().is_empty() || !place.state.is_dir() {
        return vec![DoctorFinding::ok("state", "none yet; the first run makes it")];
    }
    let used = size(gc::used(place));
    let ok = DoctorFinding::ok("state", format!("{} ({used})", place.state));
    let mut findings = vec![paths::closed("state", place.state.as_std_path()).unwrap_or(ok)];
    findings.extend(paths::own_files(place));
    let journal = place.journal();
    if journal.is_dir() {
        // It is told as a path that is taken.
    } else if journal.exists() {
        findings.push(match check(&journal) {
            Ok(health) if health.is_sound() => {
                DoctorFinding::ok("journal", format!("sound, {}", count(health.runs.len(), "run")))
            }
            Ok(_) => DoctorFinding::missing(
                "journal",
                format!(
                    "`{journal}` is damaged; `autopilot recover --journal` saves what can be read"
                ),
            ),
            Err(error) => DoctorFinding::missing("journal", autopilot_engine::cause::chain(&error)),
        });
    } else if let Some(lost) = LostState::of(place, &StateEnv::from_process()) {
        findings.push(DoctorFinding::missing("journal", format!("{lost}; {}", lost.remedy())));
    }
    findings.extend(leftovers(place));
    findings
}

fn leftovers(place: &StatePaths) -> Option<DoctorFinding> {
    if let Some(holder) = workspace::holder(place) {
        let pid = holder.process.pid;
        return Some(DoctorFinding::ok(
            "processes",
            format!("process {pid} works on this repository"),
        ));
    }
    let last = past::at(place).ok()?.runs(1).ok()?;
    let last = last.first().map(|run| run.id.as_str()).unwrap_or_default();
    let left = run_process::own_processes(place, last).find();
    let left: Vec<String> = left.iter().map(|process| process.id.pid.to_string()).collect();
    let some =
        format!("left over from an earlier run: {}; `autopilot resume` ends them", left.join(", "));
    let none = "none left over from earlier runs".to_owned();
    Some(DoctorFinding::either("processes", !left.is_empty(), some, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_git_are_compared_as_numbers() {
        assert!(is_new_enough("git version 2.38.0"));
        assert!(is_new_enough("git version 10.1"));
        assert!(!is_new_enough("git version 2.9.5"));
        assert!(!is_new_enough("nonsense"));
    }
}

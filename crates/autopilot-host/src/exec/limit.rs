//! The kernel's limits, set on the process that is about to become the agent.

use std::io::{self, Write};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::wire::ProcessLimits;

/// Applies the limits that are set; one above the allowed hard limit becomes that hard limit.
pub fn apply(limits: &ProcessLimits) -> io::Result<()> {
    set(Resource::RLIMIT_CORE, Some(0))?;
    set(Resource::RLIMIT_NPROC, limits.processes_max)?;
    set(Resource::RLIMIT_NOFILE, limits.open_files_max)?;
    set(Resource::RLIMIT_FSIZE, limits.file_bytes_max)?;
    set(Resource::RLIMIT_AS, limits.memory_bytes_max)?;
    if let Some(score) = limits.oom_score_adj {
        // Lowering the score needs a privilege; an agent that dies no earlier than others is no
        // failure.
        let file = std::fs::OpenOptions::new().write(true).open("/proc/self/oom_score_adj");
        let _ = file.and_then(|mut file| file.write_all(score.to_string().as_bytes()));
    }
    Ok(())
}

/// Marks this process and all it will start. Returns the mark, unless the process already has one:
/// Autopilot itself may run below another, which must find its own.
pub fn mark(mark: u64) -> Option<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_LOCKS).ok()?;
    let is_unmarked = hard == libc::RLIM_INFINITY;
    (is_unmarked && setrlimit(Resource::RLIMIT_LOCKS, mark, mark).is_ok()).then_some(mark)
}

fn set(resource: Resource, wanted: Option<u64>) -> io::Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let (_, hard) = getrlimit(resource)?;
    let value = wanted.min(hard);
    setrlimit(resource, value, value)?;
    Ok(())
}

//! Crash points: with `AUTOPILOT_FAILPOINT=name:N` a debug build ends itself by SIGKILL the N-th
//! time it passes the point of that name, so that a test can crash between any two effects. A
//! release build has none.

/// The time between two looks of a loop. `AUTOPILOT_LOOK_MS` makes it longer in a debug build, so that
/// a test can tell what is heard from what is looked for.
pub fn look_every(time: std::time::Duration) -> std::time::Duration {
    asked_for("AUTOPILOT_LOOK_MS").unwrap_or(time)
}

/// The least time for git to save work. `AUTOPILOT_SAVE_MS` makes it shorter in a debug build, so
/// that a test need not wait for minutes.
pub fn save_within(time: std::time::Duration) -> std::time::Duration {
    asked_for("AUTOPILOT_SAVE_MS").unwrap_or(time)
}

/// The shortest gate whose seed is kept. `AUTOPILOT_SEED_MS` makes it shorter in a debug build, so that
/// a test need not build for seconds.
pub fn seed_pays_from() -> Option<std::time::Duration> {
    asked_for("AUTOPILOT_SEED_MS")
}

/// Returns whether a test plays a machine that can't make layers of this kind. In a debug build
/// `AUTOPILOT_WITHOUT_LAYERS` names them: `overlay,reflink`.
pub fn lacks_layers(kind: &str) -> bool {
    let asked = std::env::var("AUTOPILOT_WITHOUT_LAYERS").ok().filter(|_| cfg!(debug_assertions));
    asked.is_some_and(|kinds| kinds.split(',').any(|one| one == kind))
}

/// Returns whether git does everything itself, also what this process does faster. In a debug build
/// `AUTOPILOT_GIT_ALONE` says so, to let the faults of git strike there too.
pub fn is_git_alone() -> bool {
    use std::sync::OnceLock;
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED
        .get_or_init(|| cfg!(debug_assertions) && std::env::var_os("AUTOPILOT_GIT_ALONE").is_some())
}

fn asked_for(variable: &str) -> Option<std::time::Duration> {
    let asked = std::env::var(variable).ok().filter(|_| cfg!(debug_assertions));
    asked.and_then(|text| text.parse().ok()).map(std::time::Duration::from_millis)
}

/// Passes the crash point of this name, or ends the process here.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("AUTOPILOT_FAILPOINT").ok()?;
        let (name, passing) = text.rsplit_once(':')?;
        Some((name.to_owned(), passing.parse().ok()?))
    });
    let Some((at, passing)) = wanted else { return };
    if at == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *passing {
        // Nothing is left to do if even this fails; the test then sees a run that did not crash.
        let _gone = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}

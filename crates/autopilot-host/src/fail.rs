//! Crash points: with `AUTOPILOT_FAILPOINT=name:N` a debug build ends itself by SIGKILL the N-th
//! time it passes the point of that name, so that a test can crash between any two effects. A
//! release build has none.

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

//! Signals that arrive while nobody listens for them, as at a start: they end this process, and its
//! git commands before it. Those lead process groups of their own, which a terminal does not reach.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::git::running;

static IS_HANDED_OVER: AtomicBool = AtomicBool::new(false);

/// Guards this process from now on. Signals that its parent let it ignore stay ignored.
pub fn guard() -> io::Result<()> {
    let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(heard)?;
    let attend = move || {
        for signal in signals.forever() {
            if !IS_HANDED_OVER.load(Ordering::SeqCst) {
                let _nobody_goes_on = running::end_all();
                let _stays = emulate_default_handler(signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(attend)?;
    Ok(())
}

/// Ends the guard: from here on somebody else listens, and decides what a signal means.
pub fn hand_over() {
    IS_HANDED_OVER.store(true, Ordering::SeqCst);
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid action, and the call only writes to it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

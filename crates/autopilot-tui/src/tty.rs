//! The terminal while the dashboard has it, and its restoration at the end, after an error or a panic.

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once, OnceLock};

/// Switches to an empty alternate screen without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// The size of the write buffer: a frame takes few writes.
const FRAME_BYTES: usize = 64 * 1024;

static IS_OURS: AtomicBool = AtomicBool::new(false);
/// A separate handle, because a writer that is stuck must not hold the lock of standard output.
static OUT: OnceLock<File> = OnceLock::new();
static HOOK: Once = Once::new();

/// Whether standard output is a terminal that this process may take over. The kernel would stop a
/// background process for trying.
pub fn is_usable() -> bool {
    let stdout = io::stdout();
    stdout.is_terminal()
        && nix::unistd::tcgetpgrp(stdout.as_fd()).is_ok_and(|group| group == nix::unistd::getpgrp())
}

/// The terminal, taken while the dashboard is shown and restored when dropped.
#[derive(Debug)]
pub struct Tty(());

impl Tty {
    /// Takes the terminal: raw mode and the alternate screen.
    pub fn take() -> io::Result<Tty> {
        let out = match OUT.get() {
            Some(out) => out,
            None => {
                let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
                OUT.get_or_init(|| file)
            }
        };
        restore_in_a_panic();
        enable_raw_mode()?;
        IS_OURS.store(true, Ordering::SeqCst);
        let held = Tty(());
        let mut writer = out;
        writer.write_all(ENTER)?;
        Ok(held)
    }

    /// A buffered writer to the terminal.
    pub fn writer(&self) -> io::Result<BufWriter<File>> {
        let out = OUT.get().ok_or_else(|| io::Error::other("the terminal was not taken"))?;
        Ok(BufWriter::with_capacity(FRAME_BYTES, out.try_clone()?))
    }

    /// Whether the terminal is still taken; a panic in another thread restores it.
    pub fn is_ours(&self) -> bool {
        IS_OURS.load(Ordering::SeqCst)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal if it is taken. The modes come first: they don't wait for a reader.
pub fn restore() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let _no_terminal_any_more = disable_raw_mode();
    if let Some(mut out) = OUT.get() {
        let _no_terminal_any_more = out.write_all(LEAVE);
    }
}

/// Restores only the modes, for a terminal that does not read what is written to it.
pub fn restore_modes() {
    let _no_terminal_any_more = disable_raw_mode();
}

/// The saved modes of the terminal, for starting a process that may be killed while it uses it.
#[derive(Debug)]
pub struct KeptTerminal(Option<Termios>);

impl KeptTerminal {
    /// Saves the present modes.
    pub fn now() -> KeptTerminal {
        KeptTerminal(tcgetattr(io::stdout().as_fd()).ok())
    }

    /// Restores the saved modes. Does nothing without a terminal.
    pub fn put_back(&self) {
        let Some(modes) = &self.0 else { return };
        let _no_terminal_any_more = tcsetattr(io::stdout().as_fd(), SetArg::TCSANOW, modes);
        let _no_terminal_any_more = io::stdout().write_all(LEAVE);
        let _no_terminal_any_more = io::stdout().flush();
    }
}

/// Restores the terminal in a panic, so that its message can be read and the shell be used.
fn restore_in_a_panic() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// Signals that end an onlooker, caught so that the terminal is restored first.
#[derive(Debug)]
pub struct Signals {
    heard: Vec<(i32, Arc<AtomicBool>)>,
}

impl Signals {
    /// Catches the signals from now on.
    pub fn listen() -> io::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut heard = Vec::new();
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            heard.push((signal, flag));
        }
        autopilot_host::interrupt::hand_over();
        Ok(Signals { heard })
    }

    /// A signal that has arrived, if any.
    pub fn any(&self) -> Option<i32> {
        self.heard.iter().find(|(_, flag)| flag.load(Ordering::SeqCst)).map(|(signal, _)| *signal)
    }
}

/// Whether a signal ends this process at once, although it is caught.
static IS_OBEYED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let is_obeyed = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        let condition = Arc::clone(&is_obeyed);
        let _stays_caught = signal_hook::flag::register_conditional_default(signal, condition);
    }
    is_obeyed
});

/// Says whether signals end this process at once. While it works on a run they ask the run to stop;
/// afterwards nobody listens to them, and a process whose output nobody reads could not be ended.
pub fn obey_signals(is_wanted: bool) {
    IS_OBEYED.store(is_wanted, Ordering::SeqCst);
}

/// Ends this process as the signal would have if it had not been caught.
pub fn obey(signal: i32) {
    let _stays = signal_hook::low_level::emulate_default_handler(signal);
}

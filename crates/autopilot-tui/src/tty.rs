//! The terminal while it is ours, and as it was before on every way out: the end, an error, a panic.

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};

/// Alternate screen, nothing on it, no cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// One frame goes out in few writes.
const FRAME_BYTES: usize = 64 * 1024;

static IS_OURS: AtomicBool = AtomicBool::new(false);
/// A handle of our own: a writer that is stuck must not hold standard output's lock.
static OUT: OnceLock<File> = OnceLock::new();
static HOOK: Once = Once::new();

/// Whether standard output is a terminal that this process may take over. One that is in the
/// background would be stopped for trying.
pub fn is_usable() -> bool {
    let stdout = io::stdout();
    stdout.is_terminal()
        && nix::unistd::tcgetpgrp(stdout.as_fd()).is_ok_and(|group| group == nix::unistd::getpgrp())
}

/// Held while the dashboard is shown.
#[derive(Debug)]
pub struct Tty(());

impl Tty {
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

    pub fn writer(&self) -> io::Result<BufWriter<File>> {
        let out = OUT.get().ok_or_else(|| io::Error::other("the terminal was not taken"))?;
        Ok(BufWriter::with_capacity(FRAME_BYTES, out.try_clone()?))
    }

    /// False once a panic elsewhere has given it back.
    pub fn is_ours(&self) -> bool {
        IS_OURS.load(Ordering::SeqCst)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, if it is ours. The modes come first: they need no reader.
pub fn restore() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let _no_terminal_any_more = disable_raw_mode();
    if let Some(mut out) = OUT.get() {
        let _no_terminal_any_more = out.write_all(LEAVE);
    }
}

/// The modes alone, without a word: for a terminal that takes none.
pub fn restore_modes() {
    let _no_terminal_any_more = disable_raw_mode();
}

/// The terminal as it is now, for whoever starts a process that may be killed while it has it.
#[derive(Debug)]
pub struct KeptTerminal(Option<Termios>);

impl KeptTerminal {
    pub fn now() -> KeptTerminal {
        KeptTerminal(tcgetattr(io::stdout().as_fd()).ok())
    }

    /// Makes it so again. Nothing happens where there is no terminal.
    pub fn put_back(&self) {
        let Some(modes) = &self.0 else { return };
        let _no_terminal_any_more = tcsetattr(io::stdout().as_fd(), SetArg::TCSANOW, modes);
        let _no_terminal_any_more = io::stdout().write_all(LEAVE);
        let _no_terminal_any_more = io::stdout().flush();
    }
}

/// What a panic says must be readable, and the shell after it usable.
fn restore_in_a_panic() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// Signals that end an onlooker; the terminal is given back before they do.
#[derive(Debug)]
pub struct Signals {
    heard: Vec<(i32, Arc<AtomicBool>)>,
}

impl Signals {
    pub fn listen() -> io::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut heard = Vec::new();
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            heard.push((signal, flag));
        }
        Ok(Signals { heard })
    }

    pub fn any(&self) -> Option<i32> {
        self.heard.iter().find(|(_, flag)| flag.load(Ordering::SeqCst)).map(|(signal, _)| *signal)
    }
}

/// Ends this process as the signal would have, without us.
pub fn obey(signal: i32) {
    let _stays = signal_hook::low_level::emulate_default_handler(signal);
}

//! A pseudo-terminal with a program in it, and as much of a terminal behind it as the dashboard
//! needs: cursor moves, clearing, text.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test support")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use nix::libc;
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(60);

pub struct Terminal {
    child: Child,
    master: File,
    slave: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

impl Terminal {
    /// Starts a program as a shell would: in a session whose terminal this is.
    pub fn start(mut command: Command, width: u16, height: u16) -> Terminal {
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let stdio = || Stdio::from(pty.slave.try_clone().unwrap());
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                nix::unistd::setsid()?;
                if libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let master = File::from(pty.master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, kept) = (master.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { child, master, slave: pty.slave, before, seen }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, width: u16, height: u16) {
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the descriptor is open and the kernel reads a structure that outlives the call.
        let set = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        assert_eq!(set, 0);
    }

    /// Everything that was written, as it came.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    pub fn screen(&self) -> String {
        screen(&self.raw())
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !holds(&self.screen()) {
            let is_over = began.elapsed() > WAIT_MAX || self.raw().contains("\x1b[?1049l");
            assert!(!is_over, "`{what}` is not on:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn is_raw(&self) -> bool {
        let now = tcgetattr(&self.slave).unwrap();
        !now.local_flags.contains(LocalFlags::ICANON)
    }

    /// Waits for the end: the exit code, and what came after the dashboard was left.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < WAIT_MAX, "it did not end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        };
        let now = tcgetattr(&self.slave).unwrap();
        assert_eq!(now, self.before, "the terminal is not as it was");
        // The reader may be a moment behind.
        let mut all = self.raw();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let again = self.raw();
            if again == all {
                break;
            }
            all = again;
        }
        let count = |what: &str| all.matches(what).count();
        assert_eq!(count("\x1b[?1049h"), count("\x1b[?1049l"), "the other screen is still shown");
        assert!(all.rfind("\x1b[?25l") <= all.rfind("\x1b[?25h"), "the cursor is still hidden");
        let after = all.rsplit("\x1b[?1049l").next().unwrap_or_default();
        (status.code(), after.to_owned())
    }
}

/// What stands on the screen after all this was written to it.
fn screen(raw: &str) -> String {
    let mut rows: Vec<Vec<char>> = vec![Vec::new(); 200];
    let (mut row, mut column) = (0_usize, 0_usize);
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' if characters.peek() == Some(&'[') => {
                characters.next();
                let mut numbers = String::new();
                let end = loop {
                    match characters.next() {
                        Some(end @ '@'..='~') => break end,
                        Some(other) => numbers.push(other),
                        None => break 'm',
                    }
                };
                match end {
                    'H' => {
                        let mut places = numbers.split(';').map(|n| n.parse().unwrap_or(1_usize));
                        row = places.next().unwrap_or(1).clamp(1, 200) - 1;
                        column = places.next().unwrap_or(1).max(1) - 1;
                    }
                    'J' => rows.iter_mut().for_each(Vec::clear),
                    _ => {}
                }
            }
            '\r' => column = 0,
            '\n' => row = (row + 1).min(199),
            character if character.is_control() => {}
            character => {
                let cells = &mut rows[row];
                if cells.len() <= column {
                    cells.resize(column + 1, ' ');
                }
                cells[column] = character;
                column += 1;
            }
        }
    }
    let lines: Vec<String> = rows.iter().map(|row| row.iter().collect()).collect();
    lines.join("\n").trim_end().to_owned()
}

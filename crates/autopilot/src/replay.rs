//! `autopilot __replay <dir>`: says again what an agent said, as a process like the agent's.

use crate::terminal;
use autopilot_engine::job::{STDERR, STDOUT};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The recording is damaged, which is nobody's work.
const CANNOT_PLAY: u8 = 70;

pub fn main(args: &[OsString]) -> ExitCode {
    match play(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::error(&error);
            ExitCode::from(CANNOT_PLAY)
        }
    }
}

fn play(args: &[OsString]) -> Result<(), String> {
    let dir = Path::new(args.first().ok_or("no recording was named")?);
    copy(&dir.join(STDERR), &mut io::stderr().lock(), true)?;
    copy(&dir.join(STDOUT), &mut io::stdout().lock(), false)
}

fn copy(path: &Path, to: &mut dyn io::Write, may_miss: bool) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    // A link or a pipe in its place was put there by somebody.
    let is_plain = path.symlink_metadata().map(|meta| meta.is_file());
    if let Ok(false) = is_plain {
        return Err(format!("{} is not a plain file", path.display()));
    }
    match File::open(path) {
        Ok(mut file) => io::copy(&mut file, to).map(|_bytes| ()).map_err(failed),
        Err(error) if may_miss && error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

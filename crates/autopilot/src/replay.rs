//! `autopilot __replay <dir>`: prints the recorded output of an agent, as a process in its place.

use autopilot_engine::job::{STDERR, STDOUT};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

/// Prints the recording in the directory that the first argument names.
pub fn play(args: &[OsString]) -> Result<u8, String> {
    let dir = Path::new(args.first().ok_or("the directory of the recording is missing")?);
    copy(&dir.join(STDERR), &mut io::stderr().lock(), true)?;
    copy(&dir.join(STDOUT), &mut io::stdout().lock(), false)?;
    Ok(0)
}

fn copy(path: &Path, to: &mut dyn io::Write, may_miss: bool) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    // Autopilot records into plain files only, so somebody else put a link or a pipe there.
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

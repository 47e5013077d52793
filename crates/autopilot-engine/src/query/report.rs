//! The HTML report of a run.

use super::diff::diffstat;
use super::{KnownRun, QueryError, RunArchive, sessions};
use crate::clock::now;
use crate::report::{self, ReportGiven};
use autopilot_host::checkout;
use camino::Utf8PathBuf;

/// The HTML report of a run as text.
pub fn page(archive: &RunArchive, known: &KnownRun) -> Result<String, QueryError> {
    let (state, run) = (&known.state, &known.state.run);
    let records = archive.records(&known.run.id)?;
    let checkout = checkout::find(archive.place.root.as_std_path());
    let given = ReportGiven {
        standing: known.standing(),
        now: now(),
        change: checkout.and_then(|found| diffstat(&found.common_dir, &run.base, &run.branch)),
        ways: sessions::ways(archive, known)?,
    };
    let redactor = archive.redactor(state);
    Ok(report::of_run(&archive.place, &archive.history, state, &records, given, &redactor))
}

/// Writes the HTML report beside the files of the run.
pub fn write(archive: &RunArchive, run: &str) -> Result<Utf8PathBuf, QueryError> {
    let known = archive.run(Some(run))?;
    Ok(report::write(&archive.place, &known.state, &page(archive, &known)?)?)
}

//! The STOP, PAUSE and SKIP_REVIEW files: written in `.autopilot`, honoured there and at the top of
//! the checkout.

use crate::place::StatePaths;
use camino::Utf8PathBuf;

/// A flag file that a person controls a run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    Stop,
    Pause,
    SkipReview,
}

/// The content of a stop file that asks not to wait for the end of the step.
const NOW: &str = "now";

impl Flag {
    /// Every flag.
    pub const ALL: [Flag; 3] = [Flag::Stop, Flag::Pause, Flag::SkipReview];

    /// The file name of the flag.
    pub fn file_name(self) -> &'static str {
        match self {
            Flag::Stop => "AUTOPILOT_STOP",
            Flag::Pause => "AUTOPILOT_PAUSE",
            Flag::SkipReview => "AUTOPILOT_SKIP_REVIEW",
        }
    }

    fn places(self, place: &StatePaths) -> [Utf8PathBuf; 2] {
        [place.views().join(self.file_name()), place.root.join(self.file_name())]
    }

    /// The path of the flag's file, if it exists.
    pub fn raised(self, place: &StatePaths) -> Option<Utf8PathBuf> {
        self.places(place).into_iter().find(|path| path.symlink_metadata().is_ok())
    }

    /// Returns whether the flag's file asks not to wait for the end of the step.
    pub fn is_urgent(self, place: &StatePaths) -> bool {
        self.places(place).iter().any(|path| {
            autopilot_host::file::read_capped(path.as_std_path(), 64)
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).trim() == NOW)
        })
    }

    /// Writes the flag's file in `.autopilot`.
    pub fn raise(self, place: &StatePaths, urgent: bool) -> std::io::Result<Utf8PathBuf> {
        let path = place.views().join(self.file_name());
        autopilot_host::dir::create(place.views().as_std_path())?;
        let text = if urgent { NOW } else { "" };
        autopilot_host::file::write_atomic(path.as_std_path(), text.as_bytes())
            .map_err(std::io::Error::other)?;
        Ok(path)
    }

    /// Removes the flag's files wherever they are, and returns the removed paths.
    pub fn lower(self, place: &StatePaths) -> std::io::Result<Vec<Utf8PathBuf>> {
        let mut gone = Vec::new();
        for path in self.places(place) {
            if autopilot_host::dir::remove_file(path.as_std_path())? {
                gone.push(path);
            }
        }
        Ok(gone)
    }
}

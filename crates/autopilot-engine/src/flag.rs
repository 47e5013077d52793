//! The files a person stops, pauses or waives the review with: written in `.autopilot`, honoured
//! there and in the top level of the checkout.

use crate::place::StatePaths;
use camino::Utf8PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    Stop,
    Pause,
    SkipReview,
}

/// Written into a stop file, it asks not to wait for the step boundary.
const NOW: &str = "now";

impl Flag {
    pub const ALL: [Flag; 3] = [Flag::Stop, Flag::Pause, Flag::SkipReview];

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

    /// The file that raises it, if one is there.
    pub fn raised(self, place: &StatePaths) -> Option<Utf8PathBuf> {
        self.places(place).into_iter().find(|path| path.symlink_metadata().is_ok())
    }

    pub fn is_urgent(self, place: &StatePaths) -> bool {
        self.places(place).iter().any(|path| {
            autopilot_host::file::read_capped(path.as_std_path(), 64)
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).trim() == NOW)
        })
    }

    pub fn raise(self, place: &StatePaths, urgent: bool) -> std::io::Result<Utf8PathBuf> {
        let path = place.views().join(self.file_name());
        autopilot_host::dir::create(place.views().as_std_path())?;
        let text = if urgent { NOW } else { "" };
        autopilot_host::file::write_atomic(path.as_std_path(), text.as_bytes())
            .map_err(std::io::Error::other)?;
        Ok(path)
    }

    /// Takes it down wherever it is; says which files went.
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

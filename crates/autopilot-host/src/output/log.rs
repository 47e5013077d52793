//! The log file of one stream: it grows to its cap, and its failure never ends a run.

use std::path::Path;

use crate::file::{self, Append};

/// Whether a log is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogEnd {
    /// No log was wanted.
    #[default]
    NotKept,
    /// The log has all the output.
    Whole,
    /// The cap was reached; the file ends with a mark.
    Capped,
    /// The disk was full or the file could not be written; the reason, for people.
    Failed(String),
}

/// The log file of one stream, if one is wanted.
pub struct Log {
    file: Option<Append>,
    left: u64,
    end: LogEnd,
}

impl Log {
    /// Opens the log for appending at most so many bytes.
    pub fn open(path: Option<&Path>, bytes_max: u64) -> Log {
        let (file, end) = match path.map(file::append) {
            None => (None, LogEnd::NotKept),
            Some(Ok(file)) => (Some(file), LogEnd::Whole),
            Some(Err(error)) => (None, LogEnd::Failed(reason(&error))),
        };
        Log { file, left: bytes_max, end }
    }

    /// Appends bytes, up to the cap.
    pub fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let written = file.write(&bytes[..fits]);
        self.left -= u64::try_from(fits).unwrap_or(u64::MAX);
        if let Err(error) = written {
            // The partial write is marked if there is room for a mark at all.
            let _ = file.write(b"\n[log ends here: it could not be written]\n");
            self.close(LogEnd::Failed(reason(&error)));
        } else if fits < bytes.len() {
            let _ = file.write(b"\n[log ends here: its size limit is reached]\n");
            self.close(LogEnd::Capped);
        }
    }

    /// Returns whether the log is complete.
    pub fn end(self) -> LogEnd {
        self.end
    }

    fn close(&mut self, end: LogEnd) {
        self.file = None;
        self.end = end;
    }
}

fn reason(error: &file::FileError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

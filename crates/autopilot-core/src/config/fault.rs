//! The faults of a file that a person wrote, with their places.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in a file; both numbers count from 1, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TextPlace {
    pub line: usize,
    pub column: usize,
}

impl TextPlace {
    /// The position of a line and a column.
    pub const fn at(line: usize, column: usize) -> Self {
        Self { line, column }
    }
}

/// One fault of a file.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[error("line {}, column {}: {message}", .place.line, .place.column)]
pub struct ConfigFault {
    pub place: TextPlace,
    /// The description of the fault, and what to write instead.
    pub message: String,
}

impl ConfigFault {
    /// A fault at a place.
    pub fn new(place: TextPlace, message: String) -> Self {
        Self { place, message }
    }
}

/// A remark on a file that is no reason to stop.
pub type Warning = ConfigFault;

/// All faults found in one file, in the order of their places; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigFaults(Vec<ConfigFault>);

impl ConfigFaults {
    /// Sorts the faults and drops repeated ones.
    pub fn new(mut faults: Vec<ConfigFault>) -> Self {
        faults.sort();
        faults.dedup();
        Self(faults)
    }

    /// The faults in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigFault> {
        self.0.iter()
    }

    /// The faults as lines of a terminal message: `config.yml:3:5: …`.
    pub fn in_file(&self, name: &str) -> String {
        let line = |fault: &ConfigFault| {
            format!("{name}:{}:{}: {}", fault.place.line, fault.place.column, fault.message)
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFaults {}

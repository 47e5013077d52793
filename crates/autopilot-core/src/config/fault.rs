//! What is wrong in a file a person wrote, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Both count from 1, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Place {
    pub const fn at(line: usize, column: usize) -> Self {
        Self { line, column }
    }
}

#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[error("line {}, column {}: {message}", .place.line, .place.column)]
pub struct Fault {
    pub place: Place,
    pub message: String,
}

impl Fault {
    pub fn new(place: Place, message: String) -> Self {
        Self { place, message }
    }
}

/// Worth saying, and no reason to stop.
pub type Warning = Fault;

/// All faults found in one file, in the order of their places; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn new(mut faults: Vec<Fault>) -> Self {
        faults.sort();
        faults.dedup();
        Self(faults)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }

    /// For the front of a terminal message: `config.yml:3:5: …`, one per line.
    pub fn in_file(&self, name: &str) -> String {
        let line = |fault: &Fault| {
            format!("{name}:{}:{}: {}", fault.place.line, fault.place.column, fault.message)
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

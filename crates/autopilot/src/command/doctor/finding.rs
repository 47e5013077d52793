//! One finding of the report.

use autopilot_host::escape;
use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Works, but the user should know.
    Warning,
    /// A run needs it and can't start without it.
    Missing,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Missing => "missing",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    pub level: Level,
    #[serde(rename = "check")]
    pub name: String,
    pub text: String,
    /// What the text shows only the beginning of, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

impl DoctorFinding {
    /// Nothing is wrong.
    pub fn ok(name: &str, text: impl Into<String>) -> DoctorFinding {
        DoctorFinding { level: Level::Ok, name: name.to_owned(), text: text.into(), details: None }
    }

    /// Something the user should know.
    pub fn warning(name: &str, text: impl Into<String>) -> DoctorFinding {
        DoctorFinding { level: Level::Warning, ..DoctorFinding::ok(name, text) }
    }

    /// Something without which a run can't start.
    pub fn missing(name: &str, text: impl Into<String>) -> DoctorFinding {
        DoctorFinding { level: Level::Missing, ..DoctorFinding::ok(name, text) }
    }

    /// A warning with one text if something is wrong, and otherwise the other text.
    pub fn either(name: &str, is_wrong: bool, wrong: String, ok: String) -> DoctorFinding {
        if is_wrong { DoctorFinding::warning(name, wrong) } else { DoctorFinding::ok(name, ok) }
    }

    /// The finding as text; its further lines are indented below the first.
    pub fn text(&self) -> String {
        let text = escape::visible(&self.text).replace('\n', "\n                          ");
        format!("{:<9} {:<15} {text}", self.level.word(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_the_worst() {
        assert!(Level::Missing > Level::Warning && Level::Warning > Level::Ok);
        let text = DoctorFinding::missing("git", "one\ntwo").text();
        assert_eq!(text, "missing   git             one\n                          two");
    }
}

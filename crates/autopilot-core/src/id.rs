//! Ids of tasks and attempts, points in time, and amounts of money.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A task's number in the run's tree, in the order of creation. The root is 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The run itself.
    pub const ROOT: TaskId = TaskId(0);

    /// The index of the task in the state's list.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One try of one step: the record that started it and the place of the start in that record.
///
/// An id is unique and ordered without a counter of its own, and durable exactly when its record
/// is. Messages with an id that no longer runs come from the past and change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    pub seq: u64,
    pub place: u32,
}

impl AttemptId {
    /// The name of work that runs beside this attempt and is no attempt itself. No attempt has it,
    /// because no record starts that many.
    pub fn beside(self) -> AttemptId {
        AttemptId { place: u32::MAX, ..self }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.place)
    }
}

/// A text that is not an attempt's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an attempt id (expected something like 12.0)")]
pub struct NotAnAttempt(String);

impl FromStr for AttemptId {
    type Err = NotAnAttempt;

    fn from_str(text: &str) -> Result<Self, NotAnAttempt> {
        let bad = || NotAnAttempt(text.to_owned());
        let (seq, place) = text.split_once('.').ok_or_else(bad)?;
        Ok(AttemptId {
            seq: seq.parse().map_err(|_| bad())?,
            place: place.parse().map_err(|_| bad())?,
        })
    }
}

impl Serialize for AttemptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AttemptId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Milliseconds since the Unix epoch, UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// The milliseconds since `earlier`; a clock that went backwards counts as no time.
    pub fn since_ms(self, earlier: Time) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// The time `ms` milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Time {
        Time(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// The time by RFC 3339 in UTC, to the second.
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0)
            .map(|t| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
            .unwrap_or_else(|_| format!("{} ms", self.0))
    }
}

/// Money in millionths of a dollar: sums stay exact.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    /// Rounds dollars to millionths; negative and infinite amounts are zero.
    pub fn from_usd(usd: f64) -> Micros {
        if usd.is_finite() && usd > 0.0 { Micros((usd * 1e6).round() as u64) } else { Micros(0) }
    }

    /// The amount in dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The sum of both; stops at the largest number.
    #[must_use]
    pub fn plus(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }

    /// The part that is left without `other`; stops at zero.
    #[must_use]
    pub fn minus(self, other: Micros) -> Micros {
        Micros(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Less than a cent must not read as nothing.
        let digits = if (1..10_000).contains(&self.0) { 6 } else { 2 };
        let text = format!("{:.digits$}", self.usd());
        write!(f, "${}", if digits == 2 { &text } else { text.trim_end_matches('0') })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_a_cent_is_not_told_as_nothing() {
        let told = [0, 1, 1_500, 10_000, 1_234_567].map(|micros| Micros(micros).to_string());
        assert_eq!(told, ["$0.00", "$0.000001", "$0.0015", "$0.01", "$1.23"]);
    }

    #[test]
    fn an_attempt_id_reads_back_as_it_was_written() {
        let id = AttemptId { seq: 12, place: 3 };
        assert_eq!(id.to_string(), "12.3");
        assert_eq!("12.3".parse::<AttemptId>().unwrap(), id);
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"12.3\"");
        for bad in ["", "12", "12.", ".3", "a.b", "-1.0"] {
            assert!(bad.parse::<AttemptId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn later_attempts_are_greater() {
        assert!(AttemptId { seq: 9, place: 7 } < AttemptId { seq: 10, place: 0 });
    }

    #[test]
    fn a_clock_that_goes_back_passes_no_time() {
        assert_eq!(Time(5).since_ms(Time(9)), 0);
        assert_eq!(Time(9).since_ms(Time(5)), 4);
    }

    #[test]
    fn money_ignores_what_is_not_a_price() {
        assert_eq!(Micros::from_usd(f64::NAN), Micros(0));
        assert_eq!(Micros::from_usd(-3.0), Micros(0));
        assert_eq!(Micros::from_usd(0.01), Micros(10_000));
    }
}

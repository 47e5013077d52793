//! The rules for asking a server again, and the pause it wants before that.

use super::{ApiFailure, ApiLimits};
use jiff::Timestamp;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};
use ureq::http::HeaderMap;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause that the server did not ask for.
const OWN_PAUSE_MAX: Duration = Duration::from_secs(16);

/// The tries of one question so far.
pub(super) struct RetryPatience {
    limits: ApiLimits,
    began: Instant,
    tries: u32,
}

/// A pause before another try.
pub(super) struct Pause {
    /// The number of the try that follows.
    pub number: u32,
    pub length: Duration,
}

impl RetryPatience {
    pub(super) fn begin(limits: &ApiLimits) -> RetryPatience {
        RetryPatience { limits: *limits, began: Instant::now(), tries: 1 }
    }

    /// Returns the pause before the next try; `None` when there is to be none.
    pub(super) fn wait_for(&mut self, failure: &ApiFailure) -> Option<Pause> {
        if !failure.may_pass() || self.tries >= self.limits.tries_max {
            return None;
        }
        let own = own_pause(self.tries, RandomState::new().hash_one(self.tries));
        let length = match failure.retry_after {
            Some(wanted) if wanted > self.limits.pause_max => return None,
            Some(wanted) => wanted.max(own / 2),
            None => own.min(self.limits.pause_max),
        };
        if self.began.elapsed() + length > self.limits.retry_time_max {
            return None;
        }
        self.tries += 1;
        Some(Pause { number: self.tries, length })
    }
}

/// Returns our own pause: doubled each time, and up to a quarter less at random, so that many who
/// failed at once come back apart.
fn own_pause(tries: u32, random: u64) -> Duration {
    let full = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(OWN_PAUSE_MAX);
    let thousandths = u32::try_from(random % 251).unwrap_or(0);
    full - full * thousandths / 1000
}

/// Returns how long the server wants to be left alone, by whichever header it sends.
pub(super) fn wanted_pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let millis = header("retry-after-ms").and_then(|text| text.trim().parse().ok());
    millis
        .map(Duration::from_millis)
        .or_else(|| header("retry-after").and_then(|text| retry_after(text.trim(), now)))
        .or_else(|| {
            // Only the limits that are used up hold us back.
            ["requests", "tokens"]
                .iter()
                .filter(|what| header(&format!("x-ratelimit-remaining-{what}")) == Some("0"))
                .filter_map(|what| header(&format!("x-ratelimit-reset-{what}")).and_then(spelled))
                .max()
        })
}

/// Reads a header of seconds, or of a date.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Reads a duration such as `1h2m3.5s` or `250ms`.
fn spelled(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = tail;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::super::FailureKind;
    use super::*;

    fn pause(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        wanted_pause(&headers, "2026-05-01T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn the_pause_is_read_from_every_header_that_tells_it() {
        let secs = |n| Some(Duration::from_secs(n));
        assert_eq!(pause(&[("retry-after", "7")]), secs(7));
        assert_eq!(pause(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(pause(&[("retry-after", "Fri, 01 May 2026 10:01:30 GMT")]), secs(90));
        assert_eq!(pause(&[("retry-after", "Fri, 01 May 2026 09:00:00 GMT")]), secs(0));
        assert_eq!(
            pause(&[("retry-after-ms", "1500"), ("retry-after", "9")]).unwrap().as_millis(),
            1500
        );
        let reset = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "1m6.5s"),
            ("x-ratelimit-remaining-tokens", "100"),
            ("x-ratelimit-reset-tokens", "6h"),
        ];
        assert_eq!(pause(&reset), Some(Duration::from_millis(66_500)));
        for nonsense in ["", "soon", "-5", "1e400", "NaN"] {
            assert_eq!(pause(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(spelled("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(spelled("5 bananas"), None);
    }

    #[test]
    fn pauses_grow_up_to_a_limit_and_differ() {
        assert_eq!(own_pause(1, 0), FIRST_PAUSE);
        assert_eq!(own_pause(2, 0), FIRST_PAUSE * 2);
        assert_eq!(own_pause(40, 0), OWN_PAUSE_MAX);
        assert_eq!(own_pause(1, 250), FIRST_PAUSE * 3 / 4);
        assert!(own_pause(3, 100) < own_pause(3, 7));
    }

    #[test]
    fn patience_ends_with_its_tries_its_time_and_a_long_pause() {
        let limits = ApiLimits { tries_max: 3, ..ApiLimits::default() };
        let lost = ApiFailure::new(FailureKind::Lost, "");
        let mut patience = RetryPatience::begin(&limits);
        assert_eq!(patience.wait_for(&lost).unwrap().number, 2);
        assert_eq!(patience.wait_for(&lost).unwrap().number, 3);
        assert!(patience.wait_for(&lost).is_none());
        let long = ApiFailure { retry_after: Some(Duration::from_secs(61)), ..lost.clone() };
        assert!(RetryPatience::begin(&limits).wait_for(&long).is_none());
        let short = ApiFailure { retry_after: Some(Duration::from_secs(59)), ..lost.clone() };
        let waited = RetryPatience::begin(&limits).wait_for(&short).unwrap().length;
        assert_eq!(waited, Duration::from_secs(59));
        let brief = ApiLimits { retry_time_max: Duration::from_secs(58), ..limits };
        assert!(RetryPatience::begin(&brief).wait_for(&short).is_none());
    }
}

//! Parses the end of a quota from an agent's message.

use autopilot_agents::comeback::{self, Clock, Comeback};
use autopilot_core::id::Time;
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, ToSpan, Zoned};

/// A time without seconds means the end of that minute.
const TOLD_TO: SignedDuration = SignedDuration::from_secs(60);
/// A time without a date that passed less than this ago does not mean tomorrow.
const HEARD_LATE: SignedDuration = SignedDuration::from_secs(120);

/// The time that `text` names, received at `now` in the agent's time zone.
pub fn told(text: &str, now: &Zoned) -> Option<Time> {
    let until = match comeback::read(text)? {
        Comeback::In { seconds } => {
            now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok()?
        }
        Comeback::Date { year, month, day, at } => {
            let date = Date::new(year, month, day).ok()?;
            on(date, at, now)?
        }
        Comeback::Clock { at } => {
            let today = on(now.date(), at, now)?;
            if today.checked_add(HEARD_LATE).ok()? > *now {
                today
            } else {
                on(now.date().checked_add(1.day()).ok()?, at, now)?
            }
        }
    };
    Some(Time(until.timestamp().as_millisecond()))
}

/// The end of that minute, in the time zone of `now`.
fn on(date: Date, at: Clock, now: &Zoned) -> Option<Zoned> {
    let time = jiff::civil::Time::new(at.hour, at.minute, 0, 0).ok()?;
    let minute = DateTime::from_parts(date, time).to_zoned(now.time_zone().clone()).ok()?;
    minute.checked_add(TOLD_TO).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(text: &str, now: &str) -> Option<String> {
        let now: Zoned = now.parse().unwrap();
        let Time(ms) = told(text, &now)?;
        let at = jiff::Timestamp::from_millisecond(ms).unwrap();
        Some(at.to_zoned(now.time_zone().clone()).datetime().to_string())
    }

    #[test]
    fn a_time_of_the_day_is_the_next_one_where_the_agent_is() {
        let morning = "2026-11-16T07:40:00+01:00[+01:00]";
        let text = "You’ve hit your usage limit. Or try again at 8:23 AM.";
        assert_eq!(until(text, morning).as_deref(), Some("2026-11-16T08:24:00"));
        let evening = "2026-11-16T21:00:00-05:00[-05:00]";
        assert_eq!(until(text, evening).as_deref(), Some("2026-11-17T08:24:00"));
        // In that very minute, and just after it, it does not mean tomorrow.
        for now in ["2026-11-16T08:23:30+01:00[+01:00]", "2026-11-16T08:25:30+01:00[+01:00]"] {
            assert_eq!(until(text, now).as_deref(), Some("2026-11-16T08:24:00"), "{now}");
        }
        let later = "2026-11-16T08:26:01+01:00[+01:00]";
        assert_eq!(until(text, later).as_deref(), Some("2026-11-17T08:24:00"));
    }

    #[test]
    fn a_date_is_that_day_and_a_span_counts_from_now() {
        let now = "2026-11-16T07:40:00+01:00[+01:00]";
        let dated = "try again at Nov 17th, 2026 8:23 AM.";
        assert_eq!(until(dated, now).as_deref(), Some("2026-11-17T08:24:00"));
        let span = "try again in 3 days 4 hours 2 minutes.";
        assert_eq!(until(span, now).as_deref(), Some("2026-11-19T11:42:00"));
        assert_eq!(until("try again at Feb 30th, 2026 8:23 AM", now), None);
        assert_eq!(until("try again later", now), None);
        assert_eq!(until("try again in 99999999999999999999 days", now), None);
        assert_eq!(until("try again in 9999999999999999 days", now), None);
    }
}

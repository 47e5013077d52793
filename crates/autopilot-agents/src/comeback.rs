//! The time at which an account is usable again, where an agent says it only in a sentence for
//! people.
//!
//! Codex writes `try again at 8:23 AM`, `try again at Nov 17th, 2026 8:23 AM` and, in older
//! versions, `try again in 3 days 4 hours 2 minutes`. The meaning of a clock time depends on the
//! day and the time zone, which are not known here.

const AGAIN: &str = "try again ";

/// The time at which an account is usable again, in the form in which the vendor gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comeback {
    /// A span from now.
    In { seconds: u64 },
    /// The next time the clock shows this time.
    Clock { at: Clock },
    /// A time on a given day.
    Date { year: i16, month: i8, day: i8, at: Clock },
}

/// A time of the day in the agent's time zone, without seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    pub hour: i8,
    pub minute: i8,
}

/// Reads the time from `text`, a vendor's error; `None` if it names none.
pub fn read(text: &str) -> Option<Comeback> {
    let text = text.to_lowercase();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once(AGAIN) {
        let found = match after.split_once(' ') {
            Some(("at", when)) => moment(when),
            Some(("in", time)) => span(time),
            Some(_) | None => None,
        };
        if found.is_some() {
            return found;
        }
        rest = after;
    }
    None
}

fn moment(text: &str) -> Option<Comeback> {
    let words: Vec<&str> = text.split_whitespace().take(5).collect();
    if let Some(at) = clock(&words) {
        return Some(Comeback::Clock { at });
    }
    let [month, day, year, time @ ..] = words.as_slice() else { return None };
    let at = clock(time)?;
    let month = MONTHS.iter().position(|name| month.starts_with(name))?;
    let day = day.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let year = year.trim_end_matches(',').parse().ok()?;
    Some(Comeback::Date { year, month: i8::try_from(month).ok()? + 1, day, at })
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reads `8:23 am` or `20:23`.
fn clock(words: &[&str]) -> Option<Clock> {
    let bare = |word: &str| word.trim_end_matches(['.', ',', ')', ';']).to_owned();
    let (time, half) = (bare(words.first()?), words.get(1).map(|word| bare(word)));
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half.as_deref() {
        Some("am") if (1..=12).contains(&hour) => hour % 12,
        Some("pm") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some("am" | "pm") => return None,
        Some(_) | None => hour,
    };
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute);
    is_time.then_some(Clock { hour, minute })
}

/// Reads `3 days 4 hours 2 minutes`, `1m30s` or `less than a minute`.
fn span(text: &str) -> Option<Comeback> {
    if text.starts_with("less than a minute") {
        return Some(Comeback::In { seconds: 60 });
    }
    let (mut seconds, mut rest) = (None, text);
    while let Some((number, after)) = number(rest) {
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let Some(length) = unit(&after[..letters]) else { break };
        let part = number.saturating_mul(length);
        seconds = Some(u64::saturating_add(seconds.unwrap_or(0), part));
        rest = after[letters..].trim_start_matches([' ', ',']).trim_start_matches("and ");
    }
    seconds.map(|seconds| Comeback::In { seconds })
}

/// Reads the number at the start of `text`, and rounds a fraction up.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole: u64 = text[..end].parse().ok()?;
    let rest = &text[end..];
    match rest.strip_prefix('.') {
        Some(part) if part.starts_with(|c: char| c.is_ascii_digit()) => {
            let part = part.trim_start_matches(|c: char| c.is_ascii_digit());
            Some((whole.saturating_add(1), part))
        }
        Some(_) | None => Some((whole, rest)),
    }
}

fn unit(word: &str) -> Option<u64> {
    match word {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600),
        "d" | "day" | "days" => Some(86_400),
        "w" | "week" | "weeks" => Some(604_800),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(hour: i8, minute: i8) -> Clock {
        Clock { hour, minute }
    }

    #[test]
    fn the_sentences_of_codex_are_read() {
        let limit = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), \
            visit https://chatgpt.com/settings/usage to purchase more credits or ";
        let table = [
            ("try again at 8:23 AM.", Comeback::Clock { at: at(8, 23) }),
            ("Try again at 9:32 PM.", Comeback::Clock { at: at(21, 32) }),
            ("try again at 12:05 AM.", Comeback::Clock { at: at(0, 5) }),
            ("try again at 12:05 PM.", Comeback::Clock { at: at(12, 5) }),
            ("try again at 20:23", Comeback::Clock { at: at(20, 23) }),
            (
                "try again at Nov 17th, 2026 8:23 AM.",
                Comeback::Date { year: 2026, month: 11, day: 17, at: at(8, 23) },
            ),
            (
                "try again at Dec 1st, 2026 11:00 PM.",
                Comeback::Date { year: 2026, month: 12, day: 1, at: at(23, 0) },
            ),
            (
                "try again in 3 days 4 hours 2 minutes.",
                Comeback::In { seconds: 3 * 86_400 + 4 * 3_600 + 120 },
            ),
            ("try again in 1 day, 1 hour and 1 minute", Comeback::In { seconds: 90_060 }),
            ("Please try again in 1m30.5s.", Comeback::In { seconds: 91 }),
            ("try again in less than a minute.", Comeback::In { seconds: 60 }),
            ("try again later or try again in 5 minutes", Comeback::In { seconds: 300 }),
        ];
        for (text, meant) in table {
            assert_eq!(read(&format!("{limit}{text}")), Some(meant), "{text}");
        }
    }

    #[test]
    fn what_says_no_time_has_none() {
        for text in [
            "",
            "try again later.",
            "try again in a moment.",
            "try again at your own risk",
            "try again at 25:00",
            "try again at 13:00 PM",
            "try again at Foo 17th, 2026 8:23 AM",
            "come back at 8:23 AM",
            "try again in 350ms",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_sentence_is_too_strange(text in "(try again (at|in) )?.{0,60}") {
            let _any = read(&text);
        }
    }
}

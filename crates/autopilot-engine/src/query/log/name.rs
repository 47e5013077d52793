//! File names of logs: `<stream>_<time>_<task>_<step>_<attempt>.log`.

use super::LogStream;
use autopilot_core::id::AttemptId;
use autopilot_core::step::Step;

/// The parts of a log's file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogName {
    pub stream: String,
    /// The time as `20260101T120000Z`, which sorts by time.
    pub at: String,
    pub task: String,
    pub step: Step,
    pub attempt: AttemptId,
    /// Whether the file holds standard error.
    pub is_errors: bool,
}

impl LogName {
    /// Parses a file name; `None` where it is not the log of a step.
    pub fn parse(name: &str) -> Option<LogName> {
        let stem = name.strip_suffix(".log")?;
        let (stem, is_errors) =
            stem.strip_suffix(".err").map_or((stem, false), |stem| (stem, true));
        let (rest, attempt) = stem.rsplit_once('_')?;
        let attempt = attempt.parse().ok()?;
        let (rest, step) = step_of(rest)?;
        let (stream, at, task) = around_time(rest)?;
        Some(LogName {
            stream: stream.to_owned(),
            at: at.to_owned(),
            task: task.to_owned(),
            step,
            attempt,
            is_errors,
        })
    }

    /// Returns whether the log belongs to a stream.
    pub fn is_of(&self, stream: LogStream) -> bool {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let numbered = self.stream.rsplit_once('_').filter(|(_, number)| is_number(number));
        let own = numbered.map_or(self.stream.as_str(), |(own, _)| own);
        match stream {
            LogStream::Builder => matches!(own, "builder" | "claude_code"),
            LogStream::Reviewer => own == "reviewer",
            LogStream::Validation => self.stream.starts_with("validation"),
            LogStream::Controller => false,
        }
    }

    /// The heading of a log.
    pub fn heading(&self, path: &str) -> String {
        let errors = if self.is_errors { ", standard error" } else { "" };
        format!("==> {}: {} {}{errors} ({path}) <==", self.task, self.step, self.attempt)
    }
}

/// Tries longer step words first, in case one word ends in another.
fn step_of(rest: &str) -> Option<(&str, Step)> {
    let ending = |step: &Step| {
        let before = rest.strip_suffix(step.word())?.strip_suffix('_')?;
        Some((before, *step))
    };
    Step::ALL.iter().filter_map(ending).min_by_key(|(before, _)| before.len())
}

fn around_time(rest: &str) -> Option<(&str, &str, &str)> {
    rest.match_indices('_').find_map(|(place, _)| {
        let (stream, after) = (rest.get(..place)?, rest.get(place + 1..)?);
        let (at, task) = after.split_once('_')?;
        is_time(at).then_some((stream, at, task))
    })
}

fn is_time(text: &str) -> bool {
    let form = |(place, byte): (usize, u8)| match place {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 16 && text.bytes().enumerate().all(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_log_name_come_apart_again() {
        let name =
            LogName::parse("claude_code_20260101T120000Z_add_a_header_build_12.0.log").unwrap();
        assert_eq!((name.stream.as_str(), name.task.as_str()), ("claude_code", "add_a_header"));
        assert_eq!((name.step, name.attempt.to_string()), (Step::Build, "12.0".to_owned()));
        assert!(name.is_of(LogStream::Builder) && !name.is_errors);

        let name = LogName::parse("reviewer_20260101T120000Z_t_uat_generate_3.1.err.log").unwrap();
        assert_eq!((name.step, name.task.as_str()), (Step::UatGenerate, "t"));
        assert!(name.is_errors && name.is_of(LogStream::Reviewer));

        let name = LogName::parse("claude_code_2_20260101T120000Z_t_build_3.1.log").unwrap();
        assert!(name.is_of(LogStream::Builder) && !name.is_of(LogStream::Reviewer));
    }

    #[test]
    fn other_files_are_no_logs_of_a_step() {
        for other in [
            "controller.log",
            "x.txt",
            "claude_code_20260101T120000Z_t_build_12.0.prompt.txt",
            "claude_code_2026_t_build_12.0.log",
            "validation_tests_20260101T120000Z_t_nothing_1.0.log",
        ] {
            assert_eq!(LogName::parse(other), None, "{other}");
        }
    }
}

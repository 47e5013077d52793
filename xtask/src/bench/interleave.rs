//! Measuring a subject in turn with its anchor (A B A B …); the result is the median of the ratios
//! of the rounds, which a passing disturbance of the machine does not move.

use std::time::{Duration, Instant};

use crate::step::Failure;

/// The time of the anchor and of the subject in each round.
pub struct Measured {
    rounds: Vec<(Duration, Duration)>,
}

impl Measured {
    pub fn from_rounds(rounds: Vec<(Duration, Duration)>) -> Self {
        Self { rounds }
    }

    /// Subject over anchor, round by round.
    pub fn ratios(&self) -> Vec<f64> {
        self.rounds
            .iter()
            .map(|(anchor, subject)| subject.as_secs_f64() / anchor.as_secs_f64().max(1e-9))
            .collect()
    }

    pub fn ratio(&self) -> f64 {
        median(self.ratios())
    }

    pub fn anchor_ms(&self) -> f64 {
        median(self.rounds.iter().map(|(anchor, _)| anchor.as_secs_f64() * 1e3).collect())
    }

    pub fn subject_ms(&self) -> f64 {
        median(self.rounds.iter().map(|(_, subject)| subject.as_secs_f64() * 1e3).collect())
    }
}

/// Runs both `repeats` times in each of `rounds` rounds, always in turn; a round's times are per run.
pub fn measure(
    rounds: usize,
    repeats: u32,
    mut anchor: impl FnMut() -> Result<(), Failure>,
    mut subject: impl FnMut() -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    // The first run of each pays for cold caches and counts for nothing.
    anchor()?;
    subject()?;
    let mut measured = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let mut times = (Duration::ZERO, Duration::ZERO);
        for _ in 0..repeats {
            times.0 += timed(&mut anchor)?;
            times.1 += timed(&mut subject)?;
        }
        measured.push((times.0 / repeats, times.1 / repeats));
    }
    Ok(Measured::from_rounds(measured))
}

/// The same for work that takes its own time, and leaves something to clean up after each round.
/// The round before the first pays for cold caches and counts for nothing.
pub fn in_turn(
    rounds: usize,
    anchor: impl Fn(usize) -> Result<Duration, Failure>,
    subject: impl Fn(usize) -> Result<Duration, Failure>,
    clean: impl Fn(usize) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let mut measured = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let times = (anchor(round)?, subject(round)?);
        clean(round)?;
        if round > 0 {
            measured.push(times);
        }
    }
    Ok(Measured::from_rounds(measured))
}

/// How long a piece of work takes.
pub fn time(work: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

fn timed(work: &mut impl FnMut() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

/// The middle value; the mean of the two middle ones when their count is even; 0 of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), middle.checked_sub(1).and_then(|below| values.get(below))) {
        (Some(upper), Some(lower)) if values.len().is_multiple_of(2) => {
            f64::midpoint(*lower, *upper)
        }
        (Some(value), _) => *value,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_median_ignores_an_outlier() {
        assert_eq!(median(vec![]), 0.0);
        assert_eq!(median(vec![5.0]), 5.0);
        assert_eq!(median(vec![4.0, 2.0]), 3.0);
        assert_eq!(median(vec![1.0, 900.0, 2.0]), 2.0);
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_and_not_of_the_times() {
        let ms = Duration::from_millis;
        let measured =
            Measured::from_rounds(vec![(ms(10), ms(20)), (ms(100), ms(200)), (ms(20), ms(100))]);
        assert_eq!(measured.ratio(), 2.0);
        assert_eq!(measured.anchor_ms(), 20.0);
        assert_eq!(measured.subject_ms(), 100.0);
    }

    #[test]
    fn anchor_and_subject_take_turns_after_one_unmeasured_run() {
        let order = RefCell::new(String::new());
        let note = |letter: char| {
            order.borrow_mut().push(letter);
            Ok(())
        };
        let measured = measure(2, 2, || note('a'), || note('b')).unwrap();
        assert_eq!(order.borrow().as_str(), "ababababab");
        assert_eq!(measured.ratios().len(), 2);
    }

    #[test]
    fn a_failing_subject_fails_the_bench() {
        let broken = || Err(Failure::Task("broken".to_owned()));
        assert!(measure(1, 1, || Ok(()), broken).is_err());
    }
}

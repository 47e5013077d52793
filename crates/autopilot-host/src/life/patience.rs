//! The rules for when to look at an agent, when to suspect it and when to kill it, without a clock.
//!
//! Times are given as time since the start on a monotonic clock. Time in which we did not run (a
//! suspended laptop, a stopped controller, a paused virtual machine) does not count, for nothing
//! below us can have used it fairly: a tick that comes late by more than [`LATE_MAX`] moves every
//! limit by that delay. So a machine that wakes up kills nobody for having slept.

use std::time::Duration;

use super::{LifeSample, LifeVerdict, Threshold, verdict};

/// The time between two ticks.
pub const TICK: Duration = Duration::from_secs(1);

/// The longest delay of a tick on a busy machine; a longer one is suspension.
pub const LATE_MAX: Duration = Duration::from_secs(10);

/// The limits on the time and the silence of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// The longest time for the whole step, whatever happens.
    pub timeout: Duration,
    /// How long an agent may be silent and idle before it is suspect; after twice as long it is
    /// stuck.
    pub silent: Duration,
    /// The same limit while a connection is open.
    pub waiting: Duration,
    /// The smallest movement that counts as life.
    pub threshold: Threshold,
}

/// What to do next about a watched agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatienceStep {
    /// Nothing, until the next tick.
    Wait,
    /// Take a sample and give it to [`SilencePatience::judge`].
    Look,
    /// Report that the agent may be stuck.
    Suspect { idle: Duration, evidence: String },
    /// Report that a suspected agent moves again or has spoken.
    Cleared,
    /// Kill the agent because it is stuck.
    Stuck { evidence: String },
    /// Kill the agent because its time is over.
    TimedOut,
}

/// The state of the watch over one agent.
#[derive(Debug)]
pub struct SilencePatience {
    limits: WatchLimits,
    /// The time that counts: `now` without the suspensions.
    awake: Duration,
    last_tick: Duration,
    bytes: u64,
    last_output: Duration,
    last_life: Duration,
    last_look: Duration,
    earlier: Option<LifeSample>,
    suspected: bool,
}

impl SilencePatience {
    /// Begins the watch at time zero.
    pub fn new(limits: WatchLimits) -> SilencePatience {
        SilencePatience {
            limits,
            awake: Duration::ZERO,
            last_tick: Duration::ZERO,
            bytes: 0,
            last_output: Duration::ZERO,
            last_life: Duration::ZERO,
            last_look: Duration::ZERO,
            earlier: None,
            suspected: false,
        }
    }

    /// Returns when the next tick is due, so that short limits are met as well as long ones.
    pub fn pause(&self) -> Duration {
        let left = self.limits.timeout.saturating_sub(self.awake);
        let finest = self.look_every().min(TICK).min(left);
        finest.max(Duration::from_millis(5))
    }

    /// Advances the time to `now`; `bytes` is the length of all the output so far.
    pub fn tick(&mut self, now: Duration, bytes: u64) -> PatienceStep {
        let passed = now.saturating_sub(self.last_tick);
        self.last_tick = now;
        self.awake += if passed > TICK + LATE_MAX { TICK } else { passed };
        if self.awake >= self.limits.timeout {
            return PatienceStep::TimedOut;
        }
        if bytes != self.bytes {
            self.bytes = bytes;
            (self.last_output, self.last_life) = (self.awake, self.awake);
            self.earlier = None;
            return if std::mem::take(&mut self.suspected) {
                PatienceStep::Cleared
            } else {
                PatienceStep::Wait
            };
        }
        let silence = self.awake.saturating_sub(self.last_output);
        let since_look = self.awake.saturating_sub(self.last_look);
        if silence >= self.limits.silent / 2 && since_look >= self.look_every() {
            self.last_look = self.awake;
            return PatienceStep::Look;
        }
        PatienceStep::Wait
    }

    /// Compares a new sample with the one before it and says what to do.
    pub fn judge(&mut self, sample: LifeSample) -> PatienceStep {
        let words = sample.words();
        // The first look has nothing to compare with; it must not count as life nor as idleness.
        let Some(earlier) = self.earlier.replace(sample.clone()) else { return PatienceStep::Wait };
        let limit = match verdict(&earlier, &sample, self.limits.threshold) {
            LifeVerdict::Alive => {
                self.last_life = self.awake;
                let cleared = std::mem::take(&mut self.suspected);
                return if cleared { PatienceStep::Cleared } else { PatienceStep::Wait };
            }
            LifeVerdict::Waiting => self.limits.waiting,
            LifeVerdict::Suspect => self.limits.silent,
        };
        let idle = self.awake.saturating_sub(self.last_life);
        let evidence = format!("no output and no activity for {} s: {words}", idle.as_secs());
        if idle >= limit * 2 {
            return PatienceStep::Stuck { evidence };
        }
        if idle >= limit && !self.suspected {
            self.suspected = true;
            return PatienceStep::Suspect { idle, evidence };
        }
        PatienceStep::Wait
    }

    fn look_every(&self) -> Duration {
        self.limits.silent / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WatchLimits = WatchLimits {
        timeout: Duration::from_secs(10_000),
        silent: Duration::from_secs(100),
        waiting: Duration::from_secs(300),
        threshold: Threshold { cpu_percent_min: 5, io_bytes_per_sec_min: 4096 },
    };

    /// Ticks once a second; `world` gives the bytes printed and the sample at each second.
    fn play(seconds: u64, world: impl Fn(u64) -> (u64, LifeSample)) -> Vec<(u64, &'static str)> {
        let mut patience = SilencePatience::new(LIMITS);
        let mut story = Vec::new();
        for second in 1..=seconds {
            let (bytes, sample) = world(second);
            let mut step = patience.tick(Duration::from_secs(second), bytes);
            if step == PatienceStep::Look {
                step = patience.judge(LifeSample { at_ms: second * 1000, ..sample });
            }
            match step {
                PatienceStep::Wait | PatienceStep::Look => {}
                PatienceStep::Suspect { .. } => story.push((second, "suspect")),
                PatienceStep::Cleared => story.push((second, "cleared")),
                PatienceStep::Stuck { .. } => story.push((second, "stuck")),
                PatienceStep::TimedOut => story.push((second, "timed out")),
            }
            if matches!(story.last(), Some((_, "stuck" | "timed out"))) {
                break;
            }
        }
        story
    }

    #[test]
    fn p08_silent_but_busy_is_left_alone_until_the_timeout() {
        let busy = |second| (0, LifeSample { cpu_ms: second * 500, ..LifeSample::default() });
        assert_eq!(play(20_000, busy), [(10_000, "timed out")]);
    }

    #[test]
    fn p09_silent_and_idle_is_suspect_at_the_limit_and_stuck_at_twice() {
        let story = play(1000, |_| (0, LifeSample::default()));
        assert_eq!(story.iter().map(|(_, what)| *what).collect::<Vec<_>>(), ["suspect", "stuck"]);
        assert!((100..115).contains(&story[0].0) && (200..215).contains(&story[1].0), "{story:?}");
    }

    #[test]
    fn waiting_for_a_model_has_its_own_limit() {
        let story = play(1000, |_| (0, LifeSample { connections: 1, ..LifeSample::default() }));
        assert!((300..315).contains(&story[0].0) && (600..615).contains(&story[1].0), "{story:?}");
    }

    #[test]
    fn p10_a_trickle_meets_the_timeout() {
        assert_eq!(
            play(20_000, |second| (second / 60, LifeSample::default())),
            [(10_000, "timed out")]
        );
    }

    #[test]
    fn a_suspect_that_speaks_or_moves_is_cleared() {
        let speaks = |second| (u64::from(second >= 150), LifeSample::default());
        assert_eq!(play(240, speaks)[1], (150, "cleared"));
        let moves = |second: u64| {
            let cpu_ms = if second >= 150 { second * 1000 } else { 0 };
            (0, LifeSample { cpu_ms, ..LifeSample::default() })
        };
        let story = play(240, moves);
        assert_eq!(story.iter().map(|(_, what)| *what).collect::<Vec<_>>(), ["suspect", "cleared"]);
    }

    #[test]
    fn t02_hours_of_suspension_kill_nobody() {
        let mut patience = SilencePatience::new(LIMITS);
        let hours = Duration::from_secs(8 * 3600);
        assert_eq!(patience.tick(Duration::from_secs(1), 0), PatienceStep::Wait);
        assert_eq!(patience.tick(hours, 0), PatienceStep::Wait);
        assert_eq!(patience.awake, Duration::from_secs(2));
    }

    #[test]
    fn nothing_is_looked_at_before_half_the_limit() {
        let mut patience = SilencePatience::new(LIMITS);
        let first = (1..200)
            .find(|second| patience.tick(Duration::from_secs(*second), 0) == PatienceStep::Look);
        assert_eq!(first, Some(50));
    }
}

//! The messages of refusals: the reason, and the advice on what to do instead.

use super::{Deed, Hindrance, Refusal, RunStanding};
use std::fmt;

impl Refusal {
    /// Whether the run is already as asked, which counts as success.
    pub fn is_already_so(&self) -> bool {
        self.why == Hindrance::AlreadySo
    }

    /// The advice on what to do instead, if there is any.
    pub fn remedy(&self) -> Option<String> {
        let name = self.task.as_deref().unwrap_or_default();
        Some(match &self.why {
            Hindrance::AlreadySo | Hindrance::Done | Hindrance::NotFailed => return None,
            Hindrance::Unknown { known, .. } if known.is_empty() => {
                "it has no tasks yet; `autopilot status` shows where it stands".to_owned()
            }
            Hindrance::Unknown { known, more, .. } => {
                let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
                format!("its tasks are: {}{more}", known.join(", "))
            }
            Hindrance::TheRun => "name one of its tasks".to_owned(),
            Hindrance::ItsTasks { failed: Some(failed) } => {
                format!("retry the one that failed: `autopilot retry {failed}`")
            }
            Hindrance::ItsTasks { failed: None } => "name the task to retry".to_owned(),
            Hindrance::Blocked { by } => {
                format!("`autopilot retry {by}` retries both")
            }
            Hindrance::Dropped { run } => instead_of_dropped(*run).to_owned(),
            Hindrance::LeftOut { with } => format!("`autopilot retry {with}` retries both"),
            Hindrance::Behind { is_stopped, has_session } => {
                let first = match is_stopped {
                    true => "let `autopilot resume` finish the run",
                    false => "wait for the run to end, or `autopilot stop` it",
                };
                let session = match *is_stopped && *has_session {
                    true => {
                        "; you can continue its session: `autopilot resume <session> --prompt …`"
                    }
                    false => "",
                };
                let (verb, _) = self.deed.row();
                format!(
                    "{first}; if it fails, `autopilot {verb} {name}` is possible again{session}"
                )
            }
            Hindrance::Acting => "wait until the merge is done".to_owned(),
            Hindrance::Lifetime { .. } if self.deed == Deed::Continue => {
                "ask outside the run: `autopilot resume <session> --read-only --prompt …`"
                    .to_owned()
            }
            Hindrance::Lifetime { .. } => {
                "the merged work stays on its branch; start another run for the rest".to_owned()
            }
            Hindrance::Money(_) => {
                "raise its limit in the same command with `--max-usd-per-task <USD>`".to_owned()
            }
            Hindrance::NotAStep | Hindrance::NeverBegun => {
                "`autopilot sessions` lists the sessions that can be continued".to_owned()
            }
            Hindrance::AtWork | Hindrance::Merging => {
                "let `autopilot resume` finish that first, then try again".to_owned()
            }
            Hindrance::Publishing => {
                "`autopilot reject \"why\"` it, or let `autopilot resume` publish it first"
                    .to_owned()
            }
            Hindrance::NoGate => "`autopilot status` shows where the run stands".to_owned(),
            Hindrance::NoReason => "say why: `autopilot reject \"why\"`".to_owned(),
            Hindrance::Nonsense { .. } => "set it to at least 1".to_owned(),
        })
    }

    fn already(&self, f: &mut fmt::Formatter<'_>, object: &str) -> fmt::Result {
        match self.deed {
            Deed::Stop => write!(f, "{object} is already stopping or over"),
            Deed::Pause => write!(f, "{object} is already paused, stopping or over"),
            Deed::Resume => write!(f, "{object} is not stopped"),
            Deed::Unpause => write!(f, "{object} is not paused"),
            Deed::Skip => write!(f, "{object} is already skipped"),
            Deed::Continue => write!(f, "{object} is already being continued with this prompt"),
            Deed::Retry | Deed::Approve | Deed::Reject | Deed::Change => {
                f.write_str("nothing would change")
            }
        }
    }
}

fn instead_of_dropped(run: RunStanding) -> &'static str {
    match run {
        RunStanding::Done => {
            "ask for the missing part in a session (`autopilot sessions` lists them): `autopilot \
             resume <session> --prompt …`, or start another goal"
        }
        RunStanding::Failed => "`autopilot retry` continues the run",
        RunStanding::Unfinished => "`autopilot resume` continues the run",
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = match &self.task {
            Some(name) => format!("task `{name}`"),
            None => "the run".to_owned(),
        };
        let (verb, done) = self.deed.row();
        let cannot = |f: &mut fmt::Formatter<'_>, why: &str| {
            write!(f, "{object} can't be {done} now: {why}")
        };
        match &self.why {
            Hindrance::AlreadySo => self.already(f, &object),
            Hindrance::Unknown { run, meant, .. } => {
                write!(f, "there is no {object} in run {run}")?;
                meant.iter().try_for_each(|meant| write!(f, "; did you mean `{meant}`?"))
            }
            Hindrance::TheRun => write!(f, "{object} itself can't be {done}"),
            Hindrance::Done => write!(f, "{object} is done; there is nothing to {verb}"),
            Hindrance::NotFailed => {
                write!(f, "{object} has not failed; there is nothing to {verb}")
            }
            Hindrance::ItsTasks { .. } => write!(f, "{object} failed because of its tasks"),
            Hindrance::Blocked { by } => write!(f, "{object} needs `{by}`, which failed"),
            Hindrance::Dropped { .. } => write!(
                f,
                "{object} was dropped: its workflow was never started, because the one before it \
                 was judged again"
            ),
            Hindrance::LeftOut { with } => write!(f, "{object} was skipped together with `{with}`"),
            Hindrance::Behind { .. } => {
                cannot(f, "the run has moved past its tasks and is judging the result")
            }
            Hindrance::Acting => cannot(f, "its merge has started and may be complete"),
            Hindrance::Lifetime { rounds_max } => {
                write!(f, "{object} has used all {rounds_max} iterations of its lifetime")
            }
            Hindrance::Money(gone) => write!(f, "{object} has spent {gone}"),
            Hindrance::NotAStep => write!(f, "{object} is not a step of a workflow"),
            Hindrance::NeverBegun => cannot(f, "it was never started"),
            Hindrance::AtWork => cannot(f, "it is being worked on"),
            Hindrance::Merging => cannot(f, "its work is about to be merged"),
            Hindrance::Publishing => {
                cannot(f, "the result of the run is about to be approved or published")
            }
            Hindrance::NoGate => f.write_str("nothing is waiting for approval"),
            Hindrance::NoReason => f.write_str("a rejection needs a reason"),
            Hindrance::Nonsense { limit } => write!(f, "a limit of 0 for {limit} is not valid"),
        }
    }
}

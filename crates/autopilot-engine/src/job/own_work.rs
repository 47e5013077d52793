//! The controller's own work for an attempt: git and files, which block. It ends when the attempt is
//! cancelled and when its time is over, as the agent does.

use super::{Cancel, Job, JobError};
use autopilot_host::fail;
use autopilot_host::patience::{self, CutShort, Limit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long work may still be saved after its attempt was cancelled. What is not saved by then is
/// saved at the next start.
const SAVE_CANCELLED_MAX: Duration = Duration::from_millis(700);
/// The least time for one piece of the controller's own work: an agent that used all of the step's
/// time must not cost its files.
const OWN_WORK_MIN: Duration = Duration::from_secs(120);
/// The most time for saving what a dead process left, before the run goes on.
const RESCUE_MAX: Duration = Duration::from_secs(300);

tokio::task_local! {
    static OWN_WORK: OwnWork;
}

/// The limits of an attempt's own work.
#[derive(Clone)]
pub(super) struct OwnWork {
    cancel: Cancel,
    began: Instant,
    /// The time limit that a workflow set for the step, once it is known.
    asked: Arc<std::sync::OnceLock<Duration>>,
    usual: Duration,
}

/// What the work is good for once the attempt is cancelled.
#[derive(Clone, Copy)]
enum Purpose {
    Step,
    /// It saves what the agent made.
    Save,
}

impl OwnWork {
    /// Does asynchronous work whose blocking parts have these limits.
    pub(super) async fn scope<W: Future>(self, work: W) -> W::Output {
        OWN_WORK.scope(self, work).await
    }

    fn limit(&self, purpose: Purpose) -> Limit {
        let own = self.clone();
        let least = Instant::now() + fail::save_within(OWN_WORK_MIN);
        Arc::new(move || {
            let is_unwanted = match purpose {
                Purpose::Step => own.cancel.is_asked(),
                Purpose::Save => own.cancel.is_asked_for(SAVE_CANCELLED_MAX),
            };
            let end = own.began + own.asked.get().copied().unwrap_or(own.usual);
            let is_late = Instant::now() > end.max(least);
            match (is_unwanted, is_late) {
                (true, _) => Some(CutShort::Unwanted),
                (false, true) => Some(CutShort::OutOfTime),
                (false, false) => None,
            }
        })
    }
}

impl Job {
    /// The limits of this attempt's own work.
    pub(super) fn own_work(&self) -> OwnWork {
        let (cancel, asked) = (self.cancel.clone(), Arc::clone(&self.time_limit));
        OwnWork { cancel, began: self.began, asked, usual: self.usual_limit() }
    }
}

/// Does work that waits for git, files or a forge. The loop's other tasks move to another thread
/// meanwhile, and a panic breaks the attempt, not the run.
pub fn blocking<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, JobError>
where
    JobError: From<E>,
{
    limited(Purpose::Step, work)
}

/// Does work that saves what the agent made, also for a while after the attempt was cancelled.
pub fn saving<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, JobError>
where
    JobError: From<E>,
{
    limited(Purpose::Save, work)
}

fn limited<T, E>(purpose: Purpose, work: impl FnOnce() -> Result<T, E>) -> Result<T, JobError>
where
    JobError: From<E>,
{
    let limit = OWN_WORK.try_with(|own| own.limit(purpose));
    let limit = limit.unwrap_or_else(|_no_attempt| patience::unlimited());
    let done = tokio::task::block_in_place(|| {
        catch_unwind(AssertUnwindSafe(|| patience::during(limit, work)))
    });
    Ok(done.map_err(|_| JobError::Panicked)??)
}

/// Saves what a dead process left, as far as there is time.
pub(super) fn rescuing<T>(work: impl FnOnce() -> T) -> T {
    let end = Instant::now() + fail::save_within(RESCUE_MAX);
    let is_late = move || (Instant::now() > end).then_some(CutShort::OutOfTime);
    patience::during(Arc::new(is_late), work)
}

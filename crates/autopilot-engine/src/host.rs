//! The runs this process works on, side by side on one runtime. Each has a lock, a journal writer, a
//! loop and a feed of its own; nothing is shared between them but the machine.

use crate::feed::RunFeed;
use crate::run_process::{OpenRun, RunProcessError};
use crate::shell::WaitPolicy;
use autopilot_core::state::State;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Threads that run the loops; the work itself is done by other processes.
const THREADS: usize = 2;

/// The runtime that runs are worked on with.
pub struct EngineHost {
    runtime: Runtime,
}

impl EngineHost {
    /// Starts the runtime.
    pub fn new() -> Result<EngineHost, RunProcessError> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        Ok(EngineHost { runtime: runtime.map_err(RunProcessError::Runtime)? })
    }

    /// Begins to work on a run, beside those at work already.
    pub fn start(&self, run: OpenRun, wait: WaitPolicy) -> HostedRun {
        let (id, feed) = (run.id().to_owned(), run.feed().clone());
        let task = self.runtime.spawn(run.work(wait));
        HostedRun { id, feed, task, handle: self.runtime.handle().clone() }
    }

    /// Waits for work that is done outside of any run.
    pub(crate) fn block_on<F: Future>(&self, work: F) -> F::Output {
        self.runtime.block_on(work)
    }
}

/// A run at work.
pub struct HostedRun {
    /// The id of the run.
    pub id: String,
    /// What it tells while it works.
    pub feed: RunFeed,
    task: JoinHandle<Result<State, RunProcessError>>,
    handle: Handle,
}

impl HostedRun {
    /// Waits until the run is over or rests, and returns what it came to.
    pub fn join(self) -> Result<State, RunProcessError> {
        self.handle.block_on(self.task).map_err(RunProcessError::Loop)?
    }
}

//! The runs this process works on, side by side on one runtime. Each run has its own lock, journal
//! writer, loop and feed.

use crate::feed::RunFeed;
use crate::run_process::{OpenRun, RunProcessError};
use crate::shell::WaitPolicy;
use autopilot_core::state::State;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Threads of the runtime; agents and commands run in other processes.
const THREADS: usize = 2;

/// The runtime on which runs are executed.
pub struct EngineHost {
    runtime: Runtime,
}

impl EngineHost {
    /// Starts the runtime.
    pub fn new() -> Result<EngineHost, RunProcessError> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        Ok(EngineHost { runtime: runtime.map_err(RunProcessError::Runtime)? })
    }

    /// Starts a run beside those that are already running.
    pub fn start(&self, run: OpenRun, wait: WaitPolicy) -> HostedRun {
        let (id, feed) = (run.id().to_owned(), run.feed().clone());
        let task = self.runtime.spawn(run.work(wait));
        HostedRun { id, feed, task, handle: self.runtime.handle().clone() }
    }

    /// Blocks on a future outside of any run.
    pub(crate) fn block_on<F: Future>(&self, work: F) -> F::Output {
        self.runtime.block_on(work)
    }
}

/// A run that is being executed.
pub struct HostedRun {
    /// The id of the run.
    pub id: String,
    /// The feed of the run.
    pub feed: RunFeed,
    task: JoinHandle<Result<State, RunProcessError>>,
    handle: Handle,
}

impl HostedRun {
    /// Waits until the run ends or pauses, and returns its state.
    pub fn join(self) -> Result<State, RunProcessError> {
        self.handle.block_on(self.task).map_err(RunProcessError::Loop)?
    }
}

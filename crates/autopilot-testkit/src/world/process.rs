//! The simulated process table: few pids, so that they are soon given again.

use autopilot_core::id::TaskId;
use autopilot_core::wanted::Want;
use std::collections::BTreeMap;

const PIDS_MAX: u32 = 24;

/// A process by its pid and the time it was started: the pair is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub pid: u32,
    pub started: u64,
}

/// What an executor of ours is there for, and which life of the controller began it.
#[derive(Clone, Debug)]
pub struct Job {
    pub want: Want,
    pub boot: u32,
}

#[derive(Debug, Default)]
pub struct Processes {
    table: BTreeMap<u32, (u64, Option<Job>)>,
    /// What the controller wrote down at each spawn. Survives it.
    noted: Vec<Process>,
    last_pid: u32,
    starts: u64,
    pub strangers_killed: u32,
}

impl Processes {
    pub fn spawn(&mut self, job: Job) -> Process {
        let process = self.take_pid(Some(job));
        self.noted.push(process);
        process
    }

    /// Somebody else's process.
    pub fn spawn_stranger(&mut self) {
        let strangers = self.table.values().filter(|(_, job)| job.is_none()).count();
        if strangers < PIDS_MAX as usize / 3 {
            self.take_pid(None);
        }
    }

    /// The next start gets the lowest free pid, so that a pid just freed comes back at once.
    fn take_pid(&mut self, job: Option<Job>) -> Process {
        let free = (1..=PIDS_MAX).find(|pid| !self.table.contains_key(pid));
        self.last_pid = free.unwrap_or_else(|| self.last_pid.max(PIDS_MAX) + 1);
        self.starts += 1;
        self.table.insert(self.last_pid, (self.starts, job));
        Process { pid: self.last_pid, started: self.starts }
    }

    pub fn job(&self, process: Process) -> Option<&Job> {
        self.table
            .get(&process.pid)
            .filter(|(started, _)| *started == process.started)
            .and_then(|(_, job)| job.as_ref())
    }

    pub fn ended(&mut self, process: Process) {
        if self.job(process).is_some() {
            self.table.remove(&process.pid);
        }
    }

    pub fn ours(&self) -> impl Iterator<Item = (Process, &Job)> {
        self.table.iter().filter_map(|(pid, (started, job))| {
            job.as_ref().map(|job| (Process { pid: *pid, started: *started }, job))
        })
    }

    pub fn is_anyone_at(&self, task: TaskId) -> bool {
        self.ours().any(|(_, job)| job.want.task == task)
    }

    /// What a controller does before it starts anything: end what an earlier life left behind, by
    /// what was written down and by the marker in the environment. A pid alone proves nothing.
    pub fn sweep(&mut self) -> u32 {
        let mut swept = 0;
        for note in std::mem::take(&mut self.noted) {
            let Some((started, _)) = self.table.get(&note.pid) else { continue };
            if *started == note.started {
                self.kill(note.pid);
                swept += 1;
            }
        }
        let marked: Vec<u32> = self.ours().map(|(process, _)| process.pid).collect();
        for pid in marked {
            self.kill(pid);
            swept += 1;
        }
        swept
    }

    fn kill(&mut self, pid: u32) {
        if let Some((_, None)) = self.table.remove(&pid) {
            self.strangers_killed += 1;
        }
    }
}

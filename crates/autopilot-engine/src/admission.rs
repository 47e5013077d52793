//! Checks that the machine has memory, disk and file descriptors for one more worker.

use crate::place::StatePaths;
use autopilot_core::config::Orchestrator;
use autopilot_host::room::{self, Descriptors, Disk, Memory};

const MB: u64 = 1 << 20;

/// The resource the machine is short of, as a sentence, or `None` when there is room.
pub fn short(place: &StatePaths, config: &Orchestrator, workers: u32) -> Option<String> {
    // A resource that can't be measured is not treated as short.
    let measured = Measured {
        memory: room::memory(),
        disk: room::disk(place.state.as_std_path()).ok(),
        descriptors: room::descriptors().ok(),
    };
    measured.short(config, workers)
}

struct Measured {
    memory: Option<Memory>,
    disk: Option<Disk>,
    descriptors: Option<Descriptors>,
}

impl Measured {
    fn short(&self, config: &Orchestrator, workers: u32) -> Option<String> {
        let less = |free: u64, min_mb: u64, of: &str| {
            let free_mb = free / MB;
            let key = format!("orchestrator.min_free_{of}_mb");
            (free_mb < min_mb)
                .then(|| format!("only {free_mb} MB of {of} free ({key} is {min_mb})"))
        };
        let memory =
            self.memory.and_then(|m| less(m.bytes_available, config.min_free_memory_mb, "memory"));
        let disk = self.disk.and_then(|d| less(d.bytes_free, config.min_free_disk_mb, "disk"));
        let descriptors = self
            .descriptors
            .filter(|d| d.agents_max() <= u64::from(workers))
            .map(|d| format!("the limit of {} open files is reached", d.limit));
        memory.or(disk).or(descriptors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(memory_mb: u64, disk_mb: u64, files: u64) -> Measured {
        Measured {
            memory: Some(Memory { bytes_total: 1 << 40, bytes_available: memory_mb * MB }),
            disk: Some(Disk { bytes_free: disk_mb * MB, inodes_free: None }),
            descriptors: Some(Descriptors { limit: files, hard_limit: files }),
        }
    }

    #[test]
    fn whatever_is_short_is_named_with_the_setting_that_says_so() {
        let config = Orchestrator {
            min_free_memory_mb: 512,
            min_free_disk_mb: 256,
            ..Orchestrator::default()
        };
        let short = |m: Measured, workers| m.short(&config, workers);
        assert_eq!(short(measured(512, 256, 1024), 3), None);
        let memory = short(measured(100, 256, 1024), 3).unwrap();
        assert_eq!(memory, "only 100 MB of memory free (orchestrator.min_free_memory_mb is 512)");
        let disk = short(measured(512, 255, 1024), 3).unwrap();
        assert_eq!(disk, "only 255 MB of disk free (orchestrator.min_free_disk_mb is 256)");
        assert_eq!(short(measured(512, 256, 64), 1), None);
        assert!(short(measured(512, 256, 64), 2).unwrap().contains("64 open files"));
        let unknown = Measured { memory: None, disk: None, descriptors: None };
        assert_eq!(short(unknown, 1000), None);
    }
}

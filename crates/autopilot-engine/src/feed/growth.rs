//! Wakes a reader of growing files: by the kernel, and by the clock where the kernel can't tell.

use autopilot_host::dir_watch::DirWatch;
use camino::Utf8Path;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often files are read where the kernel can't report that they grow.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// How often files are read where it can: the end of a process is not reported with them.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long more lines are waited for after the first, so that few reads bring many.
const SETTLE: Duration = Duration::from_millis(20);

/// Waits for files in some directories to grow.
pub struct GrowthWatch {
    /// `None` where the kernel can't report growth.
    watch: Option<DirWatch>,
    watched: BTreeSet<String>,
}

impl GrowthWatch {
    /// A watch of these directories.
    pub fn of<'a>(dirs: impl IntoIterator<Item = &'a Utf8Path>) -> GrowthWatch {
        let watch = DirWatch::of_nothing().ok();
        let mut growth = GrowthWatch { watch, watched: BTreeSet::new() };
        dirs.into_iter().for_each(|dir| growth.add(dir));
        growth
    }

    /// Watches another directory. One that does not exist yet can be added again later.
    pub fn add(&mut self, dir: &Utf8Path) {
        if self.watched.contains(dir.as_str()) {
            return;
        }
        let Some(watch) = &self.watch else { return };
        match watch.add_growing(dir.as_std_path()) {
            Ok(()) => {
                self.watched.insert(dir.to_string());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_no_watch_left) => self.watch = None,
        }
    }

    /// How often the files must be read although nothing is reported.
    pub fn every(&self) -> Duration {
        if self.watch.is_some() { LOOK_EVERY } else { POLL_EVERY }
    }

    /// Waits until a file has grown, at most this long; returns whether the kernel reported it.
    pub fn wait(&mut self, time_max: Duration) -> bool {
        match self.watch.as_ref().map(|watch| watch.wait(time_max)) {
            Some(Ok(is_told)) => {
                if is_told && !time_max.is_zero() {
                    std::thread::sleep(SETTLE);
                }
                is_told
            }
            // A directory is gone, or there are no watches.
            Some(Err(_)) => {
                *self = GrowthWatch { watch: None, watched: BTreeSet::new() };
                false
            }
            None => {
                std::thread::sleep(time_max);
                false
            }
        }
    }
}

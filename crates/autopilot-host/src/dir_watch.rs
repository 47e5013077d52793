//! Waiting for files to be put into a directory, without looking again and again: the kernel tells.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Wakes whoever waits when a file is put into a directory, by writing or by renaming.
#[derive(Debug)]
pub struct DirWatch(Inotify);

impl DirWatch {
    /// Fails where the kernel has no watch left to give or the file system has none. What was put
    /// there before is not told.
    pub fn new(dir: &Path) -> io::Result<DirWatch> {
        let watch = DirWatch::of_nothing()?;
        let put = AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_CLOSE_WRITE;
        let moved = AddWatchFlags::IN_MOVE_SELF;
        watch.0.add_watch(dir, put | moved | AddWatchFlags::IN_ONLYDIR)?;
        Ok(watch)
    }

    /// A watch to which directories are added with [`DirWatch::add_growing`].
    pub fn of_nothing() -> io::Result<DirWatch> {
        Ok(DirWatch(Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?))
    }

    /// Also tells when something is made in this directory or a file in it grows.
    pub fn add_growing(&self, dir: &Path) -> io::Result<()> {
        let grown =
            AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        self.0.add_watch(dir, grown | AddWatchFlags::IN_ONLYDIR)?;
        Ok(())
    }

    /// Waits until something was put there, but no longer than this; returns whether it was.
    pub fn wait(&self, time_max: Duration) -> io::Result<bool> {
        let time_max = PollTimeout::try_from(time_max).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, time_max) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => Ok(false),
            Ok(_) => self.forget().map(|()| true),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Forgets what was told so far. An error means that nothing more will be told.
    fn forget(&self) -> io::Result<()> {
        let events = self.0.read_events()?;
        // A watch follows a directory that is moved, but files are put where it was.
        let is_blind = |mask: AddWatchFlags| {
            mask.intersects(AddWatchFlags::IN_IGNORED | AddWatchFlags::IN_MOVE_SELF)
        };
        if events.iter().any(|event| is_blind(event.mask)) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the directory is gone"));
        }
        Ok(())
    }
}

impl AsRawFd for DirWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The same for a loop that waits for other things too.
#[derive(Debug)]
pub struct Arrivals(AsyncFd<DirWatch>);

impl Arrivals {
    pub fn new(dir: &Path) -> io::Result<Arrivals> {
        let watch = DirWatch::new(dir)?;
        // SAFETY: the watch owns its descriptor until it is dropped, and never has another.
        Ok(Arrivals(unsafe { AsyncFd::register_with_interest(watch, Interest::READABLE) }?))
    }

    /// Something was put there. Nothing is lost when this is dropped while it waits.
    pub async fn next(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(told) = ready.try_io(|watch| watch.get_ref().forget()) {
                return told;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn whoever_waits_is_woken_by_a_file_and_not_by_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let watch = DirWatch::new(dir.path()).unwrap();
        watch.wait(Duration::from_millis(1)).unwrap();
        let began = Instant::now();
        crate::file::write_atomic(&dir.path().join("a.json"), b"{}").unwrap();
        watch.wait(LONG).unwrap();
        assert!(began.elapsed() < LONG, "it was the clock");
    }

    #[test]
    fn whoever_waits_for_growth_is_woken_by_a_line_in_an_open_file_and_by_a_new_directory() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = std::fs::File::create(dir.path().join("log")).unwrap();
        let watch = DirWatch::of_nothing().unwrap();
        watch.add_growing(dir.path()).unwrap();
        assert!(!watch.wait(Duration::from_millis(1)).unwrap());
        std::io::Write::write_all(&mut log, b"a line\n").unwrap();
        assert!(watch.wait(LONG).unwrap());
        std::fs::create_dir(dir.path().join("more")).unwrap();
        assert!(watch.wait(LONG).unwrap());
    }

    #[tokio::test]
    async fn a_file_is_told_to_a_loop_even_if_it_came_while_nobody_waited() {
        let dir = tempfile::tempdir().unwrap();
        let arrivals = Arrivals::new(dir.path()).unwrap();
        crate::file::write_atomic(&dir.path().join("a.json"), b"{}").unwrap();
        tokio::time::timeout(LONG, arrivals.next()).await.unwrap().unwrap();
        let nothing = tokio::time::timeout(Duration::from_millis(20), arrivals.next()).await;
        assert!(nothing.is_err(), "told twice");
        crate::file::write_atomic(&dir.path().join("b.json"), b"{}").unwrap();
        tokio::time::timeout(LONG, arrivals.next()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_is_taken_away_is_told_as_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let arrivals = Arrivals::new(dir.path()).unwrap();
        drop(dir);
        let gone = tokio::time::timeout(LONG, arrivals.next()).await.unwrap();
        assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(DirWatch::new(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn a_directory_that_is_moved_away_is_told_as_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = dir.path().join("inbox");
        std::fs::create_dir(&inbox).unwrap();
        let watch = DirWatch::new(&inbox).unwrap();
        std::fs::rename(&inbox, dir.path().join("inbox.x")).unwrap();
        assert_eq!(watch.wait(LONG).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

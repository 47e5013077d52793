//! Prepares the machine before a process works: checks the disk, and removes what a dead process
//! left.

use super::RunProcessError;
use crate::job::fault;
use crate::place::StatePaths;
use crate::workspace::{self, WorkspaceError};
use autopilot_core::event::MachineFault;
use autopilot_host::sweep::{self, OwnProcesses};
use autopilot_host::{dir, file, room};

/// Below this, not even the journal and a small worktree are safe.
const DISK_BYTES_MIN: u64 = 32 << 20;
const INODES_MIN: u64 = 5_000;
/// Below this, not even a log file is safe.
const INODES_LEAST: u64 = 32;
/// A file that is written to find out whether files can be written.
const PROBE: &str = ".writable";

/// Refuses to start without room on the disk, and raises the limits of this process.
pub(crate) fn make_room(
    place: &StatePaths,
    notice: &mut dyn FnMut(&str),
) -> Result<(), RunProcessError> {
    // Both are optional: without them the run still works.
    let _as_it_is = room::raise_descriptors();
    let _as_it_is = room::protect_from_oom();
    workspace::refuse_linked_views(place)?;
    let views = place.views();
    crate::views::prove_writable(&views)
        .map_err(|source| WorkspaceError::NotWritable { path: views, source })?;
    let Ok(disk) = room::disk(place.state.as_std_path()) else { return Ok(()) };
    if disk.bytes_free < DISK_BYTES_MIN {
        let (path, mb_free) = (place.state.clone(), disk.bytes_free >> 20);
        return Err(WorkspaceError::NoRoom { path, mb_free }.into());
    }
    if disk.inodes_free.is_some_and(|inodes| inodes < INODES_MIN) {
        notice("few inodes are left for the state directory; worktrees may not fit");
    }
    Ok(())
}

/// Returns a fault of the machine that would make any work fail, with a sentence about it. It is
/// found by doing: the directories are written to.
pub(crate) fn trouble(place: &StatePaths) -> Option<(MachineFault, String)> {
    if let Some(short) = shortage(place) {
        return Some(short);
    }
    for path in [place.state.clone(), place.views()] {
        if let Err(error) = file::write_atomic(path.join(PROBE).as_std_path(), &[0; 4096]) {
            let fault = fault::of_own_path(&error);
            return Some((fault, crate::cause::chain(&error)));
        }
        let _next_time = dir::remove_file(path.join(PROBE).as_std_path());
    }
    None
}

/// Returns what the disk is short of, with a sentence about it. Nothing is written.
pub(crate) fn shortage(place: &StatePaths) -> Option<(MachineFault, String)> {
    [place.state.clone(), place.views()].into_iter().find_map(|path| {
        let disk = room::disk(path.as_std_path()).ok()?;
        if disk.bytes_free < DISK_BYTES_MIN {
            let what = format!("only {} MB are free in `{path}`", disk.bytes_free >> 20);
            return Some((MachineFault::DiskFull, what));
        }
        let has_none = disk.inodes_free.is_some_and(|inodes| inodes < INODES_LEAST);
        has_none.then(|| (MachineFault::NoInodes, format!("no more files fit in `{path}`")))
    })
}

/// The processes that belong to this state directory while nobody works in it. What a version
/// without a register left of this run is known by its environment.
pub fn own_processes(place: &StatePaths, run: &str) -> OwnProcesses {
    let register = place.processes();
    OwnProcesses {
        trees: register.trees(),
        git_dir: Some(place.state.join("hub.git").into_std_path_buf()),
        entry: (!register.exists()).then(|| format!("AUTOPILOT_RUN_ID={run}")),
    }
}

/// Removes the temporary files of attempts that no longer run, after the costs that their agents left
/// in them were read.
pub(crate) fn remove_homes(place: &StatePaths) {
    let _next_time = dir::remove(place.state.join("tmp").as_std_path());
}

/// Ends the processes of an interrupted attempt.
pub(crate) fn sweep_leftovers(place: &StatePaths, run: &str, notice: &mut dyn FnMut(&str)) {
    let ours = own_processes(place, run);
    let swept = sweep::sweep(&ours);
    if !swept.killed.is_empty() {
        let count = swept.killed.len();
        notice(&format!("ended processes of an interrupted attempt ({count})"));
    }
    if !swept.left.is_empty() {
        notice(&format!("processes that could not be ended: {}", swept.left.len()));
    } else {
        place.processes().clear();
    }
    // From here on the register names what this version starts.
    let _next_time = place.processes().open();
    crate::job::put_back_left(place, notice);
    crate::job::keep_left(place, notice);
    sweep_half_written(place);
    // After the processes, since a layer is in use while its jail lives.
    let _next_time = autopilot_host::warm::sweep(place.state.as_std_path());
    // Each run fills its own caches from its own base.
    if let Ok(seeds) = place.caches().join("proof").read_dir_utf8() {
        for seed in seeds.flatten().filter(|seed| seed.file_name() != run) {
            let _next_time = dir::remove(seed.path().as_std_path());
        }
    }
}

/// The directories of the state into which this program writes files, and how deep below them.
/// Worktrees, homes and git's objects are not searched: they are not ours, and large.
const WRITTEN: [(&str, usize); 10] = [
    ("", 0),
    ("hub.git", 0),
    ("hub.git/info", 0),
    ("tmp", 0),
    ("bases", 0),
    ("cache", 3),
    ("inbox", usize::MAX),
    ("own", usize::MAX),
    ("schemas", usize::MAX),
    ("sessions", usize::MAX),
];

/// Removes files that a dead process was about to put in place.
fn sweep_half_written(place: &StatePaths) {
    let git = autopilot_host::checkout::find(place.root.as_std_path());
    let ids = git.map(|found| (found.common_dir.join("autopilot"), 0));
    let views = [place.views(), place.root.join("runs/autopilot")];
    let views = views.map(|path| (path.into_std_path_buf(), usize::MAX));
    let state = WRITTEN.map(|(name, depth)| (place.state.join(name).into_std_path_buf(), depth));
    for (path, depth) in views.into_iter().chain(ids).chain(state) {
        file::sweep_temporary(&path, depth);
    }
}

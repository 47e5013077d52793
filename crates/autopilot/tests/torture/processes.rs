//! Who is alive of a stage: found by what it was started with or where it stands, not by its parents.

use autopilot_host::proc::{self, ProcessIdentity};
use camino::Utf8Path;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// How soon nothing of a killed controller may be left.
pub const GONE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Every living process whose environment, arguments or directory lead into the stage.
pub fn alive(root: &Utf8Path) -> BTreeSet<ProcessIdentity> {
    let needle = root.as_str().as_bytes();
    let has = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    proc::all()
        .into_iter()
        .filter(|process| !process.is_zombie())
        .filter(|process| {
            let dir = format!("/proc/{}", process.id.pid);
            let read = |name: &str| fs::read(format!("{dir}/{name}")).unwrap_or_default();
            let cwd = fs::read_link(format!("{dir}/cwd")).unwrap_or_default();
            has(&read("environ"))
                || has(&read("cmdline"))
                || has(cwd.as_os_str().as_encoded_bytes())
        })
        .map(|process| process.id)
        .collect()
}

/// Waits until nobody but `known` is left; what remains after the time allowed.
pub fn left(root: &Utf8Path, known: &BTreeSet<ProcessIdentity>, wait_max: Duration) -> Vec<String> {
    let began = Instant::now();
    loop {
        let left: Vec<ProcessIdentity> = alive(root).difference(known).copied().collect();
        if left.is_empty() || began.elapsed() > wait_max {
            return left.iter().map(|id| told(*id)).collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn told(id: ProcessIdentity) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", id.pid)).unwrap_or_default();
    format!("{}: {}", id.pid, String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Everything below a controller that is a program of ours: supervisors, or also git.
pub fn helpers(controller: u32, also_git: bool) -> Vec<i32> {
    let own = fs::canonicalize(env!("CARGO_BIN_EXE_autopilot")).unwrap();
    let controller = i32::try_from(controller).unwrap();
    proc::descendants(controller)
        .into_iter()
        .filter(|process| !process.is_zombie() && process.parent == controller)
        .filter(|process| {
            let exe = fs::read_link(format!("/proc/{}/exe", process.id.pid)).unwrap_or_default();
            exe == own || (also_git && exe.file_name().is_some_and(|name| name == "git"))
        })
        .map(|process| process.id.pid)
        .collect()
}

/// The git processes that a controller has started.
pub fn git_below(controller: u32) -> Vec<i32> {
    let ours = helpers(controller, false);
    helpers(controller, true).into_iter().filter(|pid| !ours.contains(pid)).collect()
}

/// The scripted agents below a controller: its own executable under another word.
pub fn agents_below(controller: u32) -> Vec<i32> {
    let is_agent = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"__script")
    };
    let all = proc::descendants(i32::try_from(controller).unwrap());
    all.iter()
        .filter(|one| !one.is_zombie())
        .map(|one| one.id.pid)
        .filter(|pid| is_agent(*pid))
        .collect()
}

/// Looks for processes until there are some, or the time is over.
pub fn wait_for(time_max: Duration, find: &dyn Fn() -> Vec<i32>) -> Vec<i32> {
    let began = Instant::now();
    loop {
        let found = find();
        if !found.is_empty() || began.elapsed() > time_max {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One shell sends it to all of them without a pause between.
pub fn signal(name: &str, pids: &[i32]) {
    if pids.is_empty() {
        return;
    }
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let line = format!("kill -{name} {} 2>/dev/null", pids.join(" "));
    let _some_may_be_gone = Command::new("sh").args(["-c", &line]).status().unwrap();
}

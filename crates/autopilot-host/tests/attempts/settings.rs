//! The tests: each setting has a controller of its own, and its attempts end as the table says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::runner::{RUNNER, RunnerOrder, TrialEnd};
use crate::scene::SECRET;
use crate::table::{
    Alone, AttemptRow, CONTROLS, Expected, SETTINGS, Setting, TrialJail, TrialUser, rows,
};

/// The number of the plain user; on most systems it is `nobody`.
const PLAIN_USER: u32 = 65534;

/// The variable that names the only attempt to make.
pub const ONLY: &str = "AUTOPILOT_ATTEMPT";

pub fn as_root_with_namespaces() {
    check(SETTINGS[0], 0);
}

pub fn as_root_without_namespaces() {
    check(SETTINGS[1], 1);
}

pub fn as_a_user_with_namespaces() {
    check(SETTINGS[2], 2);
}

pub fn as_a_user_without_namespaces() {
    check(SETTINGS[3], 3);
}

pub fn without_a_jail_as_root() {
    check_control(CONTROLS[0], 0);
}

pub fn without_a_jail_as_a_user() {
    check_control(CONTROLS[1], 1);
}

fn check(setting: Setting, place: usize) {
    let ends = run(setting);
    compare(&ends, |row, end| {
        let expected = row.expected[place];
        let as_expected = match (expected, end) {
            (Expected::Refused(_, errno), TrialEnd::Refused(number)) => errno as i32 == *number,
            (Expected::Private(_), TrialEnd::Private) => true,
            (Expected::Through, TrialEnd::Through(_)) => true,
            (Expected::Refused(..) | Expected::Private(_) | Expected::Through, _) => false,
        };
        (!as_expected).then(|| format!("{expected:?}"))
    });
}

/// Without a jail the attempts succeed: what stops them otherwise is the jail.
fn check_control(setting: Setting, place: usize) {
    let ends = run(setting);
    compare(&ends, |row, end| {
        let expected = row.alone[place];
        let as_expected = match (expected, end) {
            (_, TrialEnd::Odd(_)) => false,
            (Alone::Works, end) => matches!(end, TrialEnd::Through(_)),
            (Alone::Fails, end) => matches!(end, TrialEnd::Refused(_)),
            (Alone::Supervised, end) => !matches!(end, TrialEnd::Through(_)),
            (Alone::Varies | Alone::Untried, _) => true,
        };
        (!as_expected).then(|| format!("{expected:?}"))
    });
}

type AttemptEnds = BTreeMap<String, TrialEnd>;

fn compare(ends: &AttemptEnds, judge: impl Fn(&AttemptRow, &TrialEnd) -> Option<String>) {
    let mut wrong = Vec::new();
    for row in rows() {
        if let Some(expected) = ends.get(row.id).and_then(|end| judge(row, end)) {
            wrong.push(format!("{}: expected {expected}, was {}", row.id, words(&ends[row.id])));
        }
    }
    println!("  {} attempts made, {} did not end as the table says", ends.len(), wrong.len());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn words(end: &TrialEnd) -> String {
    match end {
        TrialEnd::Refused(number) => format!("refused with {:?}", Errno::from_raw(*number)),
        TrialEnd::Through(_) | TrialEnd::Private | TrialEnd::Odd(_) => format!("{end:?}"),
    }
}

/// Starts the controller of the setting and returns how its attempts ended.
fn run(setting: Setting) -> AttemptEnds {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this setting was not tried: it needs root, who prepares it for both users"
    );
    let only = std::env::var(ONLY).ok();
    let is_tried = |row: &&&AttemptRow| {
        let place = usize::from(setting.user == TrialUser::Plain);
        setting.jail != TrialJail::None || row.alone[place] != Alone::Untried
    };
    let rows = rows();
    let tried: Vec<&&AttemptRow> = rows.iter().filter(is_tried).collect();
    let ground = Ground::new(setting.user);
    let mut ends = AttemptEnds::new();
    let order = RunnerOrder {
        jail: setting.jail.word().into(),
        only: only.clone(),
        skip: rows.iter().filter(|row| !is_tried(row)).map(|row| row.id.into()).collect(),
        base: ground.base.clone(),
        run: ground.run.clone(),
        mounted: ground.mounted.clone(),
        setuid: ground.setuid.clone(),
    };
    let mut command = Command::new(&ground.program);
    command
        .args([RUNNER, &serde_json::to_string(&order).unwrap()])
        .env_clear()
        .env("API_KEY", SECRET)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if setting.user == TrialUser::Plain {
        command.uid(PLAIN_USER).gid(PLAIN_USER);
    }
    let output = command.output().unwrap();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (id, end): (String, TrialEnd) = serde_json::from_str(line).unwrap();
        ends.insert(id, end);
    }
    assert!(output.status.success(), "the controller ended with {}", output.status);
    let wanted = if only.is_some() { 1 } else { tried.len() };
    assert_eq!(ends.len(), wanted, "not every attempt was made");
    ends
}

/// What root prepares for a setting.
struct Ground {
    _dir: tempfile::TempDir,
    base: PathBuf,
    run: PathBuf,
    mounted: PathBuf,
    program: PathBuf,
    setuid: PathBuf,
}

impl Ground {
    fn new(user: TrialUser) -> Ground {
        // Attempts on mounts, if they succeed, change this namespace and no other.
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let (none, private) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
        mount(none, "/", none, private, none).unwrap();
        // Not in `/tmp`, of which a jail has its own.
        let dir = tempfile::Builder::new().prefix("attempts-").tempdir_in("/var/lib").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let own = std::env::current_exe().unwrap();
        let copy = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            fs::copy(&own, &path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (program, setuid) = (copy("program", 0o755), copy("setuid", 0o4755));
        let base = dir.path().join("base");
        let mounted = dir.path().join("mounted");
        let run = Path::new("/run").join(format!("attempt-{}", std::process::id()));
        for dir in [&base, &mounted, &run] {
            fs::create_dir(dir).unwrap();
            if user == TrialUser::Plain {
                chown(dir, Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
            }
        }
        mount(Some("tmpfs"), &mounted, Some("tmpfs"), MsFlags::empty(), none).unwrap();
        fs::write(mounted.join("cover"), "").unwrap();
        Ground { _dir: dir, base, run, mounted, program, setuid }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = nix::mount::umount(&self.mounted);
        let _ = fs::remove_dir_all(&self.run);
    }
}

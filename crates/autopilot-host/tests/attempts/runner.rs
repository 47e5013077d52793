//! The controller of one setting: it starts every attempt through the real supervisor and looks
//! whether the world outside is as before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use autopilot_host::exec::{self, Exit, Launch};
use autopilot_host::jail::{JailNetwork, JailPlan};
use autopilot_host::sandbox::SandboxPlan;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use serde::{Deserialize, Serialize};

use crate::outside::{Outside, Sight};
use crate::scene::{SCENE, Scene};
use crate::table::{AttemptRow, Proof, TrialJail, TrialNeed, rows};

/// The word by which this binary is an attempt.
pub const ATTEMPT: &str = "__attempt";

/// The word by which this binary is the controller of a setting.
pub const RUNNER: &str = "__runner";

const END_TIME_MAX: Duration = Duration::from_secs(30);

/// The order to a runner.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunnerOrder {
    pub jail: String,
    /// The only attempt to make, if not all of them.
    pub only: Option<String>,
    /// Attempts that are not made in this setting.
    pub skip: Vec<String>,
    pub base: PathBuf,
    pub run: PathBuf,
    pub mounted: PathBuf,
    pub setuid: PathBuf,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrialEnd {
    /// Something outside changed, or was read, or a call was accepted that must not be.
    Through(String),
    /// The program did what it wanted and nobody outside noticed.
    Private,
    /// The kernel said no, with this number.
    Refused(i32),
    /// The attempt itself is broken.
    Odd(String),
}

/// Runs all attempts and prints an end for each.
pub fn main(order: &str) {
    let order: RunnerOrder = serde_json::from_str(order).unwrap();
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGUSR1);
    signals.thread_block().unwrap();
    let jail = TrialJail::from_word(&order.jail);
    let base = &order.base;
    let mut outside = Outside::new(base, order.run, order.mounted, order.setuid);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let is_chosen = |row: &AttemptRow| {
        order.only.as_ref().is_none_or(|only| row.id == only)
            && !order.skip.iter().any(|skipped| row.id == skipped)
    };
    for (number, row) in rows().into_iter().enumerate().filter(|(_, row)| is_chosen(row)) {
        let scratch = base.join(format!("scratch-{number}"));
        let end = runtime.block_on(attempt(row, jail, &mut outside, &scratch));
        println!("{}", serde_json::to_string(&(row.id, end)).unwrap());
    }
}

impl TrialJail {
    pub fn word(self) -> &'static str {
        match self {
            TrialJail::Namespaces => "namespaces",
            TrialJail::Bare => "bare",
            TrialJail::None => "none",
        }
    }

    fn from_word(word: &str) -> TrialJail {
        let all = [TrialJail::Namespaces, TrialJail::Bare, TrialJail::None];
        all.into_iter().find(|jail| jail.word() == word).unwrap()
    }
}

async fn attempt(
    row: &AttemptRow,
    jail: TrialJail,
    outside: &mut Outside,
    scratch: &Path,
) -> TrialEnd {
    let before = outside.look();
    let said = launch(row, "act", jail, outside, scratch).await;
    let after = outside.look();
    let heir = match row.heir {
        // It has a scratch directory of its own, as every attempt has.
        Some(_) => launch(row, "heir", jail, outside, &scratch.with_extension("heir")).await,
        None => Said::Errno(Errno::ENOENT as i32),
    };
    let changed = difference(&before, &after);
    if !changed.is_empty() || heir == Said::Done {
        outside.mend();
    }
    match (said, heir) {
        (Said::Odd(text), _) | (_, Said::Odd(text)) => TrialEnd::Odd(text),
        _ if !changed.is_empty() => TrialEnd::Through(changed),
        (_, Said::Done) => TrialEnd::Through(String::from("a later program found it")),
        (Said::Done, _) if row.proof == Proof::Inside => {
            TrialEnd::Through(String::from("the program says so"))
        }
        (Said::Done, _) => TrialEnd::Private,
        (Said::Errno(errno), _) => TrialEnd::Refused(errno),
    }
}

fn difference(before: &Sight, after: &Sight) -> String {
    let names = before.keys().chain(after.keys());
    let changed: BTreeMap<_, _> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| (name, (before.get(name), after.get(name))))
        .collect();
    let lines = changed.iter().map(|(name, (was, is))| format!("{name}: {was:?} is now {is:?}"));
    lines.collect::<Vec<_>>().join("; ")
}

/// What the jailed program says of its attempt.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Done,
    Errno(i32),
    Odd(String),
}

async fn launch(
    row: &AttemptRow,
    part: &str,
    jail: TrialJail,
    outside: &mut Outside,
    scratch: &Path,
) -> Said {
    std::fs::create_dir(scratch).unwrap();
    let scene = outside.scene.clone();
    let own = std::env::current_exe().unwrap();
    let mut launch = Launch::new(own, &scene.slot);
    launch.args = [ATTEMPT, row.id, part, &scene.mark].map(OsString::from).to_vec();
    launch.env.insert(SCENE.into(), serde_json::to_string(&scene).unwrap().into());
    launch.env.insert("HOME".into(), scene.home.clone().into());
    launch.env.insert("PATH".into(), "/usr/bin:/bin".into());
    launch.env.insert("TMPDIR".into(), scratch.into());
    launch.drain = Duration::from_millis(20);
    launch.sandbox = plan(&scene, row, jail, scratch);
    let (_control, child) = match exec::spawn(launch).await {
        Ok(started) => started,
        Err(error) => return Said::Odd(format!("it was not started: {error}")),
    };
    if row.needs == TrialNeed::LateSocket {
        outside.open_late_socket();
    }
    match tokio::time::timeout(END_TIME_MAX, child.wait()).await {
        Ok(exit) => said(&exit),
        Err(_) => Said::Odd(String::from("it did not end")),
    }
}

fn plan(scene: &Scene, row: &AttemptRow, jail: TrialJail, scratch: &Path) -> SandboxPlan {
    let namespaces = match jail {
        TrialJail::None => return SandboxPlan::Off,
        TrialJail::Namespaces => true,
        TrialJail::Bare => false,
    };
    let network = match row.needs {
        TrialNeed::NetworkOff => JailNetwork::Off,
        TrialNeed::Nothing | TrialNeed::LateSocket => JailNetwork::Open,
    };
    SandboxPlan::Jail(JailPlan {
        write: vec![scene.slot.clone(), scratch.into()],
        hide: vec![scene.hidden.clone()],
        tmp: Some(scratch.into()),
        network,
        namespaces,
        ..JailPlan::default()
    })
}

const DONE: &str = "done";
const REFUSED: &str = "refused ";

fn said(exit: &Exit) -> Said {
    let out = exit.output.stdout.text.trim();
    let number = out.strip_prefix(REFUSED).and_then(|number| number.parse().ok());
    match number {
        Some(number) => Said::Errno(number),
        None if out == DONE => Said::Done,
        None => Said::Odd(format!("{exit:?}")),
    }
}

/// Makes one attempt and prints how the kernel answered.
pub fn act(args: &[OsString]) {
    let word = |place: usize| args[place].to_str().unwrap();
    let scene: Scene = serde_json::from_str(&std::env::var(SCENE).unwrap()).unwrap();
    let rows = rows();
    let row = rows.iter().find(|row| row.id == word(0)).unwrap();
    let act = if word(1) == "heir" { row.heir.unwrap() } else { row.act };
    match act(&scene) {
        Ok(()) => println!("{DONE}"),
        Err(errno) => println!("{REFUSED}{}", errno as i32),
    }
}

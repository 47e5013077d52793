//! Damage to what a dead controller left: its branches, its journal, its disk.

use crate::account::place;
use crate::draw::Draw;
use crate::stage::{Ended, Stage};
use crate::trial::Trial;
use std::fs;

/// Damages one of the hub's branches of the run; false when there is none yet.
pub fn a_branch(stage: &Stage, draw: &mut Draw) -> bool {
    let hub = place(stage).state.join("hub.git");
    if !hub.join("HEAD").exists() {
        return false;
    }
    let list = stage.git_in(&hub, &["for-each-ref", "--format=%(refname)", "refs/heads/autopilot"]);
    // A branch that is damaged already comes as a warning.
    let refs: Vec<&str> = list.lines().filter(|line| line.starts_with("refs/")).collect();
    let Some(name) = refs.get(draw.below(refs.len() as u64) as usize) else { return false };
    let file = hub.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    match draw.below(5) {
        0 => {
            stage.git_in(&hub, &["update-ref", "-d", name]);
        }
        1 => fs::write(&file, "").unwrap(),
        2 => fs::write(&file, "not a commit\n").unwrap(),
        3 => fs::write(&file, format!("{}\n", "1".repeat(40))).unwrap(),
        _ => {
            // A branch that stands at the base has no commit of the run to lose.
            let parent = format!("{name}~1");
            if stage.try_git(&hub, &["update-ref", name, &parent]).0 != Some(0) {
                return false;
            }
        }
    }
    true
}

/// Makes the disk read-only, sees a `resume` rest, and makes it writable again.
pub fn read_only_for_a_while(trial: &mut Trial) -> bool {
    let remount = |trial: &Trial, how: &str| trial.stage.disk.as_ref().unwrap().remount(how);
    if !remount(trial, "ro") {
        return false;
    }
    let ended = trial.resume().end();
    assert!(remount(trial, "rw"), "the disk stays read-only");
    assert_eq!(
        ended,
        Ended::Code(2),
        "a read-only disk is no failure of the run:\n{}",
        trial.log()
    );
    assert!(trial.log().contains("Read-only file system"), "{}", trial.log());
    true
}

/// Damages the journal, sees a `resume` refuse in plain words, and puts the journal back.
pub fn the_journal_for_a_while(trial: &mut Trial, draw: &mut Draw) -> bool {
    let journal = place(&trial.stage).journal();
    if !journal.exists() {
        return false;
    }
    let files: Vec<(String, Vec<u8>)> = ["", "-wal", "-shm"]
        .iter()
        .map(|end| format!("{journal}{end}"))
        .filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes)))
        .collect();
    let whole = &files[0].1;
    // Without its log the database may be a prefix of the journal; it is damaged together with it.
    let remove_log = || {
        for (path, _) in &files[1..] {
            fs::remove_file(path).unwrap();
        }
    };
    let damage = match draw.below(4) {
        0 => {
            remove_log();
            fs::remove_file(&journal).unwrap();
            "gone"
        }
        1 => {
            remove_log();
            fs::write(&journal, "").unwrap();
            "empty"
        }
        2 => {
            remove_log();
            fs::write(&journal, [b"not a database, ", &whole[16..]].concat()).unwrap();
            "another header"
        }
        _ => {
            remove_log();
            fs::write(&journal, &whole[..whole.len() / 2 / 4096 * 4096 + 1000]).unwrap();
            "cut off"
        }
    };
    let before = trial.log().len();
    let ended = trial.start_with(&["resume"], None).end();
    let said = trial.log()[before..].to_owned();
    assert!(matches!(ended, Ended::Code(code) if code != 0), "{damage}: {ended:?}\n{said}");
    assert!(said.contains("autopilot recover"), "{damage}: says no way out:\n{said}");
    for raw in ["panicked", "malformed", "not a database", "SQLITE", "no such table"] {
        assert!(!said.contains(raw), "{damage}: {raw}:\n{said}");
    }
    for end in ["", "-wal", "-shm"] {
        let _was_not_there = fs::remove_file(format!("{journal}{end}"));
    }
    for (path, bytes) in &files {
        fs::write(path, bytes).unwrap();
    }
    true
}

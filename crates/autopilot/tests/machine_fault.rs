//! Faults of the machine and of Autopilot's own tools, injected for real: git that is killed or
//! fails, a supervisor that is killed, a disk that is full, read-only or out of inodes. No task may
//! pay for them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::stage::{APPROVES, Ended, Stage};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A git between Autopilot and the real one, which does to some commands what it is told to.
struct FaultyGit {
    dir: PathBuf,
}

impl FaultyGit {
    fn on(stage: &mut Stage) -> FaultyGit {
        let dir = stage.folder().join("faulty");
        let path = std::env::var("PATH").unwrap();
        let real =
            std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
        fs::create_dir(&dir).unwrap();
        let (here, real) = (dir.display(), real.unwrap());
        let script = format!(
            "#!/bin/sh\nskip=\nfor word in \"$@\"; do\n  case \"$skip$word\" in\n    -c) skip=x;;\n    \
             x*) skip=;;\n    *) verb=$word; break;;\n  esac\ndone\n\
             echo \"$verb\" >> '{here}/verbs'\n\
             if [ -e \"{here}/$verb.always\" ] || rm \"{here}/$verb.once\" 2>/dev/null; then\n  \
             echo \"$verb\" >> '{here}/struck'\n  . '{here}/how'\nfi\nexec '{}' \"$@\"\n",
            real.display()
        );
        fs::write(dir.join("git"), script).unwrap();
        fs::set_permissions(dir.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        stage.set("PATH", &format!("{here}:{path}"));
        let git = FaultyGit { dir };
        git.does("kill -9 $$");
        git
    }

    fn does(&self, how: &str) {
        fs::write(self.dir.join("how"), how).unwrap();
    }

    fn strike(&self, verb: &str, times: &str) {
        fs::write(self.dir.join(format!("{verb}.{times}")), "").unwrap();
    }

    fn heal(&self, verb: &str) {
        fs::remove_file(self.dir.join(format!("{verb}.always"))).unwrap();
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A builder that does the task, and something else the first time. Not before the run is under
/// way: what is refused then has cost nothing yet.
fn builds_and(stage: &Stage, command: &str) {
    let build = |first: &str, run: &str| {
        format!(
            "- step: [build, fix]\n  {first}do:\n    - run: \"{run}; printf 'start\\ndone\\n' > \
             app.txt\"\n    - answer: {{ changed_files: [app.txt], notes: x }}\n"
        )
    };
    stage.agents(&[&build("attempt: 1\n  ", command), &build("", "true"), APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: off }\n");
}

/// What is wrong, unless the task is done, its commit is on the branch, and it paid for nothing.
fn fault(stage: &Stage, ended: &Ended) -> Option<String> {
    let (state, task) = (stage.state_json(), stage.first_task());
    let paid = (&task["retries"], &task["iteration"]);
    if ended.code != 0 || state["current_state"] != "DONE" || paid != (&0.into(), &1.into()) {
        return Some(format!("exit {}, {paid:?}: {}", ended.code, ended.said()));
    }
    let branches =
        stage.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/autopilot"]);
    let run = branches.lines().find(|name| name.contains("/run-")).unwrap();
    let made = stage.git(&["show", &format!("{run}:app.txt")]);
    if made != "start\ndone" {
        return Some(format!("it made {made:?}"));
    }
    (!stage.survivors().is_empty()).then(|| format!("left behind: {:?}", stage.survivors()))
}

#[test]
fn a_git_command_that_is_killed_or_fails_once_costs_the_task_nothing() {
    let mut calm = stage();
    let git = FaultyGit::on(&mut calm);
    calm.run_task().expect(0);
    let verbs: BTreeSet<String> = git.lines("verbs").into_iter().collect();
    for verb in
        ["pack-objects", "index-pack", "merge-tree", "commit-tree", "update-ref", "read-tree"]
    {
        assert!(verbs.contains(verb), "{verb} is not in {verbs:?}");
    }
    let mut faults = Vec::new();
    for how in ["kill -9 $$", "exit 128"] {
        for verb in &verbs {
            let mut stage = stage();
            let git = FaultyGit::on(&mut stage);
            git.does(how);
            builds_and(&stage, &format!("touch '{}/{verb}.once'", git.dir.display()));
            let ended = stage.run_task();
            let what = format!("{verb} {how}, struck: {:?}", git.lines("struck"));
            faults.extend(fault(&stage, &ended).map(|fault| format!("{what}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

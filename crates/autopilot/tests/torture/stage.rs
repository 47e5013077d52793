//! A small project of its own for each run: scripted agents, real git, the real binary.

use autopilot_testkit::small_disk::SmallDisk;
use camino::{Utf8Path, Utf8PathBuf};
use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No start of the binary may take longer, however busy the machine is.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Task,
    Queue,
}

impl Flow {
    pub fn args(self) -> &'static [&'static str] {
        match self {
            Flow::Task => &["run", "tasks/1-alpha.md"],
            Flow::Queue => &["run", "--queue", "tasks"],
        }
    }
}

const TESTS: &str = "#!/bin/sh\nset -e\n\
[ ! -e lib/alpha.txt ] || grep -qx right lib/alpha.txt || { echo 'FAILED alpha'; exit 1; }\n\
echo 'all tests passed'\n";
/// Not `sed -i`: a kill in its middle leaves a temporary file, which is then kept as work.
const FORMAT: &str = "#!/bin/sh\n\
    for file in lib/*.txt; do\n  \
    text=$(sed 's/ *$//' \"$file\")\n  \
    [ \"$text\" = \"$(cat \"$file\")\" ] || printf '%s\\n' \"$text\" > \"$file\"\n\
    done\n";
const UAT: &str = "#!/bin/sh\n! grep -q ' $' lib/*.txt\n";
const CONFIG: &str = "repo: { base_branch: main }\ncommands:\n  tests: sh test.sh\n  \
format: sh format.sh\n  uat: sh uat.sh\n\
builder: { mode: script, script: agents.yml }\nreviewer: { mode: script, script: agents.yml }\n\
planner: { mode: script, script: agents.yml }\nbudget: { interruptions: 1000, retries: 1000 }\n\
loop:\n  retries: { build: 100, fix: 100, review: 100, uat_generate: 100 }\n";

/// Some leave processes behind that hide in sessions of their own.
const AGENTS: &str = r#"
- step: build
  task: 1-alpha
  do:
    - run: "setsid sleep 900 >/dev/null 2>&1 & (setsid sh -c 'sleep 901 & sleep 902' >/dev/null 2>&1 &)"
    - write: { lib/alpha.txt: "wrong   \nsecond line\n" }
    - cost_usd: 0.01
    - sleep_ms: 60
    - cost_usd: 0.04
    - answer: { changed_files: [lib/alpha.txt], tests_ran: true, tests_passed: true, notes: done }
- step: fix
  task: 1-alpha
  do:
    - run: "git commit -qam wip"
    - write: { lib/alpha.txt: "right   \nsecond line  \n", lib/extra.txt: "more\n" }
    - sleep_ms: 60
    - cost_usd: 0.03
    - answer: { changed_files: [lib/alpha.txt], tests_ran: true, tests_passed: true, notes: fixed }
- step: build
  do:
    - run: "mkdir -p lib; echo $AUTOPILOT_TASK_ID > lib/$AUTOPILOT_TASK_ID.txt"
    - run: "git add -A && git -c user.name=a -c user.email=a@localhost commit -qm own"
    - sleep_ms: 40
    - cost_usd: 0.02
    - answer: { changed_files: [], tests_ran: false, notes: built }
- step: fix
  do:
    - run: "echo better > lib/$AUTOPILOT_TASK_ID.txt; (setsid sleep 903 >/dev/null 2>&1 &)"
    - sleep_ms: 40
    - cost_usd: 0.02
    - answer: { changed_files: [], tests_ran: false, notes: better }
- step: review
  task: 2-beta
  iteration: 1
  do:
    - sleep_ms: 20
    - cost_usd: 0.01
    - answer:
        verdict: REQUEST_CHANGES
        summary: It could be better.
        issues: [{ severity: major, message: not good enough, fix: make it better }]
- step: review
  do:
    - cost_usd: 0.01
    - answer: { verdict: APPROVE, summary: Fine., issues: [] }
- step: uat_generate
  do:
    - cost_usd: 0.005
    - answer: |
        # Acceptance cases
        1. No line ends in a space.
"#;

/// The dearest attempt of the script, in millionths of a dollar.
pub const BILL_MAX: u64 = 40_000;

pub struct Stage {
    /// Kept until the stage is dropped; forgotten (and so kept on disk) when a test fails.
    temp: Option<tempfile::TempDir>,
    pub root: Utf8PathBuf,
    pub repo: Utf8PathBuf,
    /// The state directory as the binary is told of it.
    state: Utf8PathBuf,
    /// The file system of the state directory, where it has one of its own.
    pub disk: Option<SmallDisk>,
}

impl Stage {
    pub fn new() -> Stage {
        let temp = tempfile::Builder::new().prefix("autopilot-torture-").tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(temp.path().canonicalize().unwrap()).unwrap();
        let (repo, state) = (root.join("project"), root.join("state"));
        let task = |title: &str| {
            format!(
                "# Task: {title}\n\nGoal:\n- Write the file {title}.\n\n\
                 Acceptance Criteria:\n- It is there\n\nAllowed Paths:\n- lib/\n"
            )
        };
        for (name, content) in [
            ("test.sh", TESTS.to_owned()),
            ("format.sh", FORMAT.to_owned()),
            ("uat.sh", UAT.to_owned()),
            ("lib/base.txt", "base\n".to_owned()),
            ("agents.yml", AGENTS.to_owned()),
            ("tasks/1-alpha.md", task("alpha")),
            ("tasks/2-beta.md", task("beta")),
            ("tasks/3-gamma.md", task("gamma")),
            (".autopilot/config.yml", CONFIG.to_owned()),
            ("notes-of-the-user.txt", "not committed\n".to_owned()),
        ] {
            let path = repo.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(root.join("home")).unwrap();
        let stage = Stage { temp: Some(temp), root, repo, state, disk: None };
        stage.git(&["init", "-q", "-b", "main"]);
        stage.git(&["add", "test.sh", "format.sh", "uat.sh", "lib"]);
        stage.git(&["commit", "-q", "-m", "Base"]);
        stage
    }

    /// A project whose state directory is a small file system with these options.
    pub fn on_a_small_disk(options: &str) -> Stage {
        let mut stage = Stage::new();
        stage.disk = Some(SmallDisk::at(stage.state.as_std_path(), options));
        stage
    }

    /// The state directory, or a copy of it as it is now where only a namespace sees it: SQLite
    /// does not open a path that leads through another process.
    pub fn state(&self) -> Utf8PathBuf {
        let Some(disk) = &self.disk else { return self.state.clone() };
        let copy = self.root.join("state-now");
        let _is_the_first = fs::remove_dir_all(&copy);
        let status = Command::new("cp").arg("-a").arg(disk.seen()).arg(&copy).status().unwrap();
        assert!(status.success(), "cp -a of the state directory");
        copy
    }

    /// Leaves the folder for a person to look at.
    pub fn keep(&mut self) -> Utf8PathBuf {
        if let Some(temp) = self.temp.take() {
            let _path = temp.keep();
        }
        self.root.clone()
    }

    pub fn binary(&self, args: &[&str]) -> Command {
        let binary = env!("CARGO_BIN_EXE_autopilot");
        let mut command = match &self.disk {
            Some(disk) => disk.inside(binary),
            None => Command::new(binary),
        };
        // Whoever enters a mount namespace starts at its root.
        command.args(["-C", self.repo.as_str()]).args(args).current_dir(&self.repo);
        self.environment(&mut command);
        command.env("AUTOPILOT_STATE_DIR", &self.state);
        command
    }

    /// Starts the binary with its words in `log.txt` of the stage.
    pub fn start(&self, args: &[&str], failpoint: Option<&str>) -> Running {
        let log = || {
            let path = self.root.join("log.txt");
            OpenOptions::new().create(true).append(true).open(path).unwrap()
        };
        let mut command = self.binary(args);
        if let Some(failpoint) = failpoint {
            command.env("AUTOPILOT_FAILPOINT", failpoint);
        }
        command.stdin(Stdio::null()).stdout(log()).stderr(log());
        Running { child: command.spawn().unwrap(), began: Instant::now() }
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo, args)
    }

    pub fn git_in(&self, dir: &Utf8Path, args: &[&str]) -> String {
        let (code, out) = self.try_git(dir, args);
        assert_eq!(code, Some(0), "git {args:?} in {dir}: {out}");
        out
    }

    pub fn try_git(&self, dir: &Utf8Path, args: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir);
        self.environment(&mut command);
        let out = command.output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        (out.status.code(), text)
    }

    fn environment(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.join("home"))
            .env("USER", "tester")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Tester")
            .env("GIT_AUTHOR_EMAIL", "tester@localhost")
            .env("GIT_COMMITTER_NAME", "Tester")
            .env("GIT_COMMITTER_EMAIL", "tester@localhost")
            .env("GIT_AUTHOR_DATE", "@1700000000 +0000")
            .env("GIT_COMMITTER_DATE", "@1700000000 +0000");
    }
}

/// A controller that was started.
pub struct Running {
    pub child: Child,
    began: Instant,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until that long after the start; the status if it ended before.
    pub fn ended_before(&mut self, instant: Duration) -> Option<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            let left = instant.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return None;
            }
            std::thread::sleep(left.min(Duration::from_millis(2)));
        }
    }

    /// Waits for its own end.
    pub fn end(&mut self) -> Ended {
        match self.ended_before(RUN_TIME_MAX) {
            Some(status) => Ended::of(status),
            None => {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                panic!("autopilot did not end within {RUN_TIME_MAX:?}");
            }
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

impl Ended {
    pub fn of(status: ExitStatus) -> Ended {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, signal) => Ended::Signal(signal.unwrap_or(0)),
        }
    }
}

//! A stage for the real binary: a small project under git, its own state directory and home, and
//! scripted agents. Nothing of the person who runs the tests is read or touched.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support: what can't be set up must fail the test at once"
)]

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything a test waits for may take.
const WAIT_MAX: Duration = Duration::from_secs(180);
/// Prompts and variables of the machine that every program needs.
const KEPT: [&str; 3] = ["PATH", "LANG", "TMPDIR"];

/// A builder that does the task at once.
pub const BUILDS: &str = "
- step: [build, fix]
  do:
    - append: { app.txt: \"done\\n\" }
    - cost_usd: 0.01
    - answer: { changed_files: [app.txt], tests_ran: true, tests_passed: true, notes: wrote it }
";
/// A reviewer that likes everything, and acceptance cases.
pub const APPROVES: &str = "
- step: review
  do:
    - cost_usd: 0.01
    - answer: { verdict: APPROVE, summary: fine, issues: [] }
- step: uat_generate
  do: [{ answer: \"# Cases\\n1. app.txt says done\\n\" }]
";
pub const TASK: &str = "# Task: Say done\n\nGoal:\n- app.txt says done.\n\n\
Acceptance Criteria:\n- app.txt has a line `done`\n\nAllowed Paths:\n- app.txt\n- test.sh\n";
/// The project's tests: a line that says broken is a failure of its own name.
const TESTS: &str = "#!/bin/sh\nif grep broken app.txt; then\n  grep broken app.txt | \
while read -r line; do echo \"FAILED $line\"; done\n  exit 1\nfi\necho all tests passed\n";
const CONFIG: &str = "repo: { base_branch: main }\n\
builder: { mode: script, script: agents.yml }\n\
reviewer: { mode: script, script: agents.yml }\n\
planner: { mode: script, script: agents.yml }\n";

pub struct Stage {
    dir: tempfile::TempDir,
    binary: PathBuf,
    variables: BTreeMap<String, String>,
    /// The binary runs where the kernel gives no namespaces.
    is_poor: bool,
}

/// What a finished command left.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Everything it said.
    pub fn said(&self) -> String {
        format!("{}\n{}", self.out, self.err)
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Every one of the texts was said.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Ended {
        for text in texts {
            assert!(self.said().contains(text), "`{text}` is not in:\n{}", self.said());
        }
        self
    }
}

/// A command under way; ended with the test.
pub struct Started {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

impl Started {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(status.success(), "kill -s {name} {pid}");
    }

    #[track_caller]
    pub fn wait(mut self) -> Ended {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into();
                let code = status.code().unwrap_or(-1);
                return Ended { code, out: read(&self.out), err: read(&self.err) };
            }
            assert!(began.elapsed() < WAIT_MAX, "it did not end:\n{}", self.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Stage {
    /// A project whose tests pass, one task, and agents that do it.
    pub fn new(binary: &str) -> Stage {
        let stage = Stage::bare(binary);
        stage.write("app.txt", "start\n");
        stage.write("test.sh", TESTS);
        stage.git(&["init", "-q", "-b", "main"]);
        stage.commit("A beginning");
        stage.write("tasks/say-done.md", TASK);
        stage.agents(&[BUILDS, APPROVES]);
        stage.config("commands: { tests: sh test.sh }\n");
        stage
    }

    /// Only directories.
    pub fn bare(binary: &str) -> Stage {
        let dir = tempfile::Builder::new().prefix("autopilot-stage-").tempdir().unwrap();
        for name in ["project", "home", "said"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        // Other users may look in, for tests that play one.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        for name in KEPT {
            if let Ok(value) = std::env::var(name) {
                variables.insert(name.to_owned(), value);
            }
        }
        let path = |name: &str| dir.path().join(name).display().to_string();
        variables.insert("HOME".into(), path("home"));
        variables.insert("AUTOPILOT_STATE_DIR".into(), path("state"));
        variables.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
        Stage { dir, binary: binary.into(), variables, is_poor: false }
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Takes a variable away again.
    pub fn unset(&mut self, name: &str) {
        self.variables.remove(name);
    }

    /// The folder that holds everything of this stage.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The state directory of all repositories of this stage.
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn write_program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The configuration, besides the agents and the base branch.
    pub fn config(&self, more: &str) {
        self.write(".autopilot/config.yml", &format!("{CONFIG}{more}"));
    }

    pub fn agents(&self, rules: &[&str]) {
        self.write("agents.yml", &rules.concat());
    }

    pub fn task(&self, name: &str, title: &str) {
        let text = TASK.replace("Say done", title);
        self.write(&format!("tasks/{name}.md"), &text);
    }

    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root(), args)
    }

    #[track_caller]
    pub fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .env_clear()
            .envs(&self.variables)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@localhost"])
            .args(args)
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {error}\n{text}");
        text
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A", ":!.autopilot", ":!agents.yml", ":!tasks"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// From here on the binary runs on a machine that refuses user namespaces.
    pub fn without_namespaces(&mut self) {
        self.is_poor = true;
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(if self.is_poor {
            OsStr::new("unshare")
        } else {
            self.binary.as_os_str()
        });
        if self.is_poor {
            let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
            command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]).arg(&self.binary);
        }
        command
            .args(args)
            .env_clear()
            .envs(&self.variables)
            .current_dir(self.root())
            .stdin(Stdio::null());
        command
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ended {
        self.start(args).wait()
    }

    /// The same as a user who is not root, to whom the stage is given.
    #[track_caller]
    pub fn run_plainly(&self, args: &[&str]) -> Ended {
        if !crate::small_disk::is_root() {
            return self.run(args);
        }
        let chown = Command::new("chown").args(["-R", "65534:65534"]).arg(self.folder()).status();
        assert!(chown.unwrap().success());
        let inner = self.command(args);
        // The build directory may be closed to others, and a supervisor is our own executable again.
        let own = self.folder().join("autopilot");
        if !own.exists() {
            fs::copy(inner.get_program(), &own).unwrap();
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(own);
        command.args(inner.get_args()).env_clear().current_dir(self.root()).stdin(Stdio::null());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        self.start_command(command).wait()
    }

    /// The one task of the stage.
    #[track_caller]
    pub fn run_task(&self) -> Ended {
        self.run(&["run", "tasks/say-done.md"])
    }

    pub fn start(&self, args: &[&str]) -> Started {
        self.start_command(self.command(args))
    }

    pub fn start_command(&self, mut command: Command) -> Started {
        let said = self.dir.path().join("said");
        let number = fs::read_dir(&said).unwrap().count();
        let (out, err) = (said.join(format!("{number}.out")), said.join(format!("{number}.err")));
        let open = |path: &Path| fs::File::create(path).unwrap();
        let child = command.stdout(open(&out)).stderr(open(&err)).spawn().unwrap();
        Started { child, out, err }
    }

    /// `status --json`.
    #[track_caller]
    pub fn status(&self) -> Value {
        let ended = self.run(&["status", "--json"]).expect(0);
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.out))
    }

    /// `.autopilot/state.json`, or null while there is none.
    pub fn state_json(&self) -> Value {
        fs::read_to_string(self.path(".autopilot/state.json"))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or(Value::Null)
    }

    /// The first task of the state.
    #[track_caller]
    pub fn first_task(&self) -> Value {
        self.state_json()["tasks"][0].clone()
    }

    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl Fn(&Stage) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < WAIT_MAX, "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the first task is at this step, in the words of `state.json`.
    #[track_caller]
    pub fn wait_for_step(&self, word: &str) {
        self.wait_until(word, |stage| stage.first_task()["state"] == word);
    }

    /// Files below `.autopilot` whose path contains the text, in order.
    pub fn views(&self, part: &str) -> Vec<PathBuf> {
        let all = files(&self.path(".autopilot"));
        all.into_iter().filter(|path| path.to_string_lossy().contains(part)).collect()
    }

    /// The texts of those files together.
    pub fn texts_of(&self, part: &str) -> String {
        let read = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        self.views(part).iter().map(read).collect::<Vec<_>>().join("\n")
    }

    /// Processes with a variable that leads into the stage, as every program of its runs has one:
    /// a home, a temporary directory.
    pub fn survivors(&self) -> Vec<String> {
        let mine = format!("={}/", self.dir.path().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let marked = environment.windows(mine.len()).any(|v| v == mine.as_bytes());
            if is_process && marked {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(format!("{name}: {}", String::from_utf8_lossy(&line)));
            }
        }
        found
    }

    /// A digest of everything the person owns: files, index, refs but ours, stash, configuration,
    /// hooks and HEAD. `.autopilot` is ours.
    pub fn digest(&self) -> BTreeMap<String, String> {
        let ours = [
            ".autopilot",
            ".git/objects",
            ".git/autopilot",
            ".git/refs/heads/autopilot",
            ".git/refs/notes",
        ];
        let mut seen = digest_of(&self.root(), &ours);
        // Refs by name: they may be packed, and ours come.
        seen.remove(".git/packed-refs");
        seen.insert("refs".into(), self.refs_of_the_user());
        seen
    }

    fn refs_of_the_user(&self) -> String {
        let has_git = self.has(".git") || self.has("refs");
        if !has_git {
            return String::new();
        }
        let all = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let ours = ["refs/heads/autopilot/", "refs/notes/autopilot "];
        let theirs = |line: &&str| !ours.iter().any(|name| line.starts_with(name));
        all.lines().filter(theirs).collect::<Vec<_>>().join("\n")
    }

    /// A digest of every file of the stage, whoever owns it.
    pub fn digest_of_everything(&self) -> BTreeMap<String, String> {
        digest_of(self.dir.path(), &["said"])
    }
}

/// Path → mode, link target or content, of every file and directory but those below `without`.
pub fn digest_of(root: &Path, without: &[&str]) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if without.contains(&name.as_str()) {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let mode = meta.permissions().mode();
            let content = if meta.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if meta.is_dir() {
                open.push(path);
                String::new()
            } else {
                sha256(&fs::read(&path).unwrap())
            };
            seen.insert(name, format!("{mode:o} {content}"));
        }
    }
    seen
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file below, sorted.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => open.push(path),
                Ok(_) | Err(_) => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Files below whose bytes contain the text.
pub fn files_with(root: &Path, text: &str) -> Vec<PathBuf> {
    let needle = text.as_bytes();
    let contains = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(needle.len()).any(|window| window == needle)
    };
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    files(root).into_iter().filter(is_file).filter(contains).collect()
}

/// A path as text.
pub fn text(path: impl AsRef<OsStr>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

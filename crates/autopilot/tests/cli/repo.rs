//! A real repository in a temporary directory, and the real binary run in it.
#![allow(clippy::unwrap_used, reason = "test support")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub struct Repo {
    temp: tempfile::TempDir,
    pub dir: PathBuf,
}

impl Repo {
    /// A directory that is no repository yet.
    pub fn nothing() -> Repo {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap().join("repo");
        for dir in [&dir, &temp.path().join("home"), &temp.path().join("state")] {
            std::fs::create_dir(dir).unwrap();
        }
        Repo { temp, dir }
    }

    pub fn unborn(branch: &str) -> Repo {
        let repo = Repo::nothing();
        repo.git(&["init", "-q", "-b", branch]);
        repo
    }

    pub fn with(branch: &str, files: &[(&str, &str)]) -> Repo {
        let repo = Repo::unborn(branch);
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        repo
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.dir.join(path)).unwrap()
    }

    pub fn state(&self) -> PathBuf {
        let mut entries = self.temp.path().join("state").read_dir().unwrap();
        entries.next().unwrap().unwrap().path()
    }

    pub fn git(&self, args: &[&str]) -> String {
        let out = self
            .clean("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(args)
            .output()
            .unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn clean(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.temp.path().join("home"))
            .env("AUTOPILOT_STATE_DIR", self.temp.path().join("state"))
            .current_dir(&self.dir);
        command
    }

    pub fn autopilot(&self, args: &[&str]) -> Said {
        Said::of(self.command(args).output().unwrap())
    }

    /// In a directory of its own choice.
    pub fn autopilot_in(&self, dir: &Path, args: &[&str]) -> Said {
        Said::of(self.command(args).current_dir(dir).output().unwrap())
    }

    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.clean(env!("CARGO_BIN_EXE_autopilot"));
        command.args(args);
        command
    }

    /// Everything in the checkout but git's own, as `path: content`.
    pub fn picture(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![self.dir.clone()];
        while let Some(dir) = pending.pop() {
            for entry in dir.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.file_name().unwrap() == ".git" {
                    continue;
                }
                let name = path.strip_prefix(&self.dir).unwrap().display().to_string();
                if path.is_dir() {
                    found.push(format!("{name}/"));
                    pending.push(path);
                } else {
                    found.push(format!("{name}: {}", std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }

    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self.err
    }
}

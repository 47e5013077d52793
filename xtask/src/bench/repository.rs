//! Repositories to measure in: some files, and branches that each change one of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{self, Failure, failed_to};

pub struct Repository {
    /// A directory for whatever else the bench needs.
    pub dir: PathBuf,
    pub root: PathBuf,
}

impl Repository {
    pub fn make(dir: PathBuf, files: usize, branches: usize) -> Result<Repository, Failure> {
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(failed_to(format!("remove {}", dir.display())))?;
        }
        let root = dir.join("project");
        fs::create_dir_all(&root).map_err(failed_to(format!("create {}", root.display())))?;
        let made = Repository { dir, root };
        git(&made.root, &["init", "-q", "-b", "main"])?;
        // Housekeeping in the background would slow one side or the other, and trip over worktrees
        // that are removed meanwhile.
        for (key, value) in [("gc.auto", "0"), ("maintenance.auto", "false")] {
            git(&made.root, &["config", key, value])?;
        }
        let history = made.dir.join("history");
        fs::write(&history, stream(files, branches)).map_err(failed_to("write the history"))?;
        let import = fs::File::open(&history).map_err(failed_to("read the history"))?;
        let mut command = command(&made.root, &["fast-import", "--quiet"]);
        step::output_of(command.stdin(import))?;
        git(&made.root, &["reset", "-q", "--hard", "main"])?;
        Ok(made)
    }

    pub fn git(&self, arguments: &[&str]) -> Result<String, Failure> {
        git(&self.root, arguments)
    }

    /// Writes a file of the bench, beside the repository or in it.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(failed_to(format!("create {}", parent.display())))?;
        }
        fs::write(&path, text).map_err(failed_to(format!("write {}", path.display())))?;
        Ok(path)
    }
}

pub fn git(dir: &Path, arguments: &[&str]) -> Result<String, Failure> {
    Ok(step::output_of(&mut command(dir, arguments))?.trim().to_owned())
}

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"]);
    command.args(arguments).current_dir(dir);
    command
}

/// For `git fast-import`.
fn stream(files: usize, branches: usize) -> String {
    let commit = |branch: &str, from: &str, files: &[(String, String)]| {
        let mut text = format!(
            "commit refs/heads/{branch}\ncommitter bench <bench@localhost> 1700000000 +0000\n\
             data 1\nx\n{from}"
        );
        for (name, content) in files {
            text.push_str(&format!("M 644 inline {name}\ndata {}\n{content}\n", content.len()));
        }
        text
    };
    let dirs = (files / 100).max(10);
    let file =
        |n: usize| (format!("dir{}/file{n}.txt", n % dirs), format!("line {n}\n").repeat(20));
    let mut text = commit("main", "", &(0..files).map(file).collect::<Vec<_>>());
    for n in 0..branches {
        let own = (format!("dir{}/task{n}.txt", n % 10), format!("work {n}\n"));
        text.push_str(&commit(&format!("t{n}"), "from refs/heads/main\n", &[own]));
    }
    text
}

//! A small file system at a directory, in a mount namespace of its own: it can be filled, run out of
//! inodes and made read-only while nobody else notices.
#![allow(
    clippy::unwrap_used,
    reason = "test support: what can't be set up must fail the test at once"
)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A file system that lives as long as this value.
pub struct SmallDisk {
    holder: Child,
    dir: PathBuf,
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ended_already = self.holder.kill();
        let _ended_already = self.holder.wait();
    }
}

impl SmallDisk {
    /// Mounts a tmpfs with these options at a directory, which is made where it is missing.
    pub fn at(dir: &Path, options: &str) -> SmallDisk {
        std::fs::create_dir_all(dir).unwrap();
        let script = format!(
            "mount -t tmpfs -o {options} tmpfs '{}' && echo mounted && exec sleep 3600",
            dir.display()
        );
        let how: &[&str] = if is_root() { &["-m"] } else { &["-Urm"] };
        let mut holder = Command::new("unshare");
        holder.args(how).args(["sh", "-c", &script]);
        let mut holder = holder.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n", "no file system could be mounted at {}", dir.display());
        SmallDisk { holder, dir: dir.to_owned() }
    }

    /// Returns the directory as processes inside of the namespace name it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory as this process sees it, outside of the namespace.
    pub fn seen(&self) -> PathBuf {
        let inside = self.dir.strip_prefix("/").unwrap_or(&self.dir);
        Path::new(&format!("/proc/{}/root", self.holder.id())).join(inside)
    }

    /// Returns a command that runs in the namespace. It starts at the root directory.
    pub fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-m"]);
        if !is_root() {
            command.args(["-U", "--preserve-credentials"]);
        }
        command.args(["--", program]);
        command
    }

    /// Runs a shell command in the namespace, which must succeed.
    #[track_caller]
    pub fn shell(&self, script: &str) {
        let status = self.inside("sh").args(["-c", script]).status().unwrap();
        assert!(status.success(), "{script}");
    }

    /// Fills the file system, or takes all its inodes; [`SmallDisk::empty`] undoes it.
    pub fn fill(&self, what: Fill) {
        let fill = self.dir.join("fill").display().to_string();
        match what {
            Fill::Bytes => {
                self.shell(&format!("dd if=/dev/zero of='{fill}' bs=1M 2>/dev/null; true"));
            }
            Fill::Inodes => self.shell(&format!(
                "mkdir '{fill}'; i=0; while echo > '{fill}'/$i; do i=$((i+1)); done 2>/dev/null; true"
            )),
        }
    }

    /// Removes what [`SmallDisk::fill`] made.
    pub fn empty(&self) {
        self.shell(&format!("rm -rf '{}'", self.dir.join("fill").display()));
    }

    /// Makes the file system read-only, or writable again. While a file on it is open for writing
    /// the kernel refuses the first.
    pub fn remount(&self, how: &str) -> bool {
        let mut mount = self.inside("mount");
        mount.args(["-o", &format!("remount,{how}")]).arg(&self.dir).stderr(Stdio::null());
        mount.status().unwrap().success()
    }
}

/// The resource of a file system that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Its blocks.
    Bytes,
    /// Its inodes.
    Inodes,
}

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

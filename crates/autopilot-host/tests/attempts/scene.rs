//! The scene of the attempts: where things are, as the jailed program is told.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The variable in which a jailed program finds its scene.
pub const SCENE: &str = "ATTEMPT_SCENE";

/// Everything an attempt may aim at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scene {
    /// The worktree, which may be written.
    pub slot: PathBuf,
    /// A directory of the user that may not.
    pub outside: PathBuf,
    /// A directory that the plan hides.
    pub hidden: PathBuf,
    /// The user's home, with sockets in it.
    pub home: PathBuf,
    /// A directory of services in `/run`.
    pub run: PathBuf,
    /// Another program's directory in `/tmp`.
    pub other_tmp: PathBuf,
    /// A directory on which another file system is mounted.
    pub mounted: PathBuf,
    /// A copy of this binary that becomes root.
    pub setuid: PathBuf,
    /// The user's terminal.
    pub terminal: PathBuf,
    /// A disk of the machine.
    pub disk: PathBuf,
    pub controller: i32,
    pub stranger: i32,
    /// The address and length of a secret in the controller's memory.
    pub secret_address: usize,
    pub secret_bytes: usize,
    /// A file of the user's that the controller holds open for writing, under this number.
    pub inherited_fd: i32,
    /// The port of a server on the loopback interface.
    pub port: u16,
    /// A word that occurs in the names of everything that an attempt leaves.
    pub mark: String,
    /// A number in the same role.
    pub key: i32,
}

/// The secret that no jailed program may read.
pub const SECRET: &str = "attempt-secret-7c1f";

impl Scene {
    pub fn precious(&self) -> PathBuf {
        self.outside.join("precious")
    }

    /// The name of an abstract socket on which another program listens.
    pub fn abstract_name(&self) -> String {
        format!("{}-abstract", self.mark)
    }

    pub fn socket_in_run(&self) -> PathBuf {
        self.run.join("docker.sock")
    }

    pub fn socket_in_home(&self) -> PathBuf {
        self.home.join("agent.sock")
    }

    /// A service there that named its socket by a relative path.
    pub fn socket_relative(&self) -> PathBuf {
        self.home.join("relative.sock")
    }

    /// A named pipe from which another program reads.
    pub fn pipe(&self) -> PathBuf {
        self.home.join("pipe")
    }

    pub fn socket_in_tmp(&self) -> PathBuf {
        self.other_tmp.join("agent.sock")
    }

    /// The socket that another program opens late.
    pub fn socket_late(&self) -> PathBuf {
        self.home.join("late.sock")
    }

    /// A name in shared memory that is taken by another program.
    pub fn shared_memory_of_user(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/{}-user", self.mark))
    }

    /// The files that attempts leave where others might find them.
    pub fn left_files(&self) -> [PathBuf; 3] {
        ["/tmp", "/var/tmp", "/dev/shm"].map(|dir| PathBuf::from(dir).join(&self.mark))
    }
}

//! A `/tmp` in memory for the tests. They make thousands of small repositories and wait for the disk
//! each time git or the journal wants to be sure of a file; nothing they prove needs a real one,
//! because none of them cuts the power.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::step;
use crate::workspace::{root, target_dir, tool_cache};

/// Mounts it where only the command and its children see it, and gives way to the command.
const SCRIPT: &str = r#"mount -t tmpfs -o mode=1777,size=50% tmpfs /tmp && exec "$@""#;
const UNSHARE: [&str; 7] = ["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"];
/// Of memory to be had: the tests use a tenth of it, the product begins nothing on a full disk.
const MEMORY_MB_MIN: u64 = 6_000;

/// `command` with a `/tmp` in memory, or as it is where this machine does not have one to give.
pub fn with_tmp(command: Command) -> Command {
    if !can_mount() {
        println!("xtask: the tests use the disk; as root and with memory to spare they are faster");
        return command;
    }
    let mut inside = Command::new("unshare");
    inside.args(UNSHARE).arg(command.get_program()).args(command.get_args());
    inside.current_dir(command.get_current_dir().unwrap_or(&root()));
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside
}

fn can_mount() -> bool {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let is_hidden = |path: PathBuf| path.starts_with("/tmp");
    available_mb(&memory).is_some_and(|mb| mb >= MEMORY_MB_MIN)
        && ![root(), target_dir(), tool_cache()].into_iter().any(is_hidden)
        && step::output_of(Command::new("unshare").args(UNSHARE).arg("true")).is_ok()
}

/// The memory that could be had without swapping, of the text of `/proc/meminfo`.
fn available_mb(memory: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_to_be_had_is_read() {
        let text = "MemTotal:       24684100 kB\nMemAvailable:   20123456 kB\n";
        assert_eq!(available_mb(text), Some(20_123));
        assert_eq!(available_mb("MemTotal: 1 kB\n"), None);
        assert_eq!(available_mb(""), None);
    }

    #[test]
    fn the_command_is_the_same_with_either_tmp() {
        let command = || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo \"$@\" $A", "sh", "two words", "it's"]).env("A", "b");
            command
        };
        let said = step::output_of(&mut with_tmp(command())).unwrap();
        assert_eq!(said, step::output_of(&mut command()).unwrap());
    }

    #[test]
    fn a_tmp_in_memory_is_seen_inside_only() {
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let mut look = Command::new("test");
        look.arg("-e").arg(file.path());
        assert!(step::output_of(&mut look).is_ok());
        assert_eq!(step::output_of(&mut with_tmp(look)).is_err(), can_mount());
    }
}

//! The register of running process trees: a small file for each supervisor, written before its
//! program may run, by which a later controller finds what a dead one left.
//!
//! The entries are files and not events of the journal. They are facts about one process table,
//! void after a reboot and of no use on another machine, and nothing is decided by them. For the
//! same reason they are not synced: a power cut that could lose an entry ends its processes too,
//! and a file that was written outlives the kill of every process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::proc::{self, ProcessIdentity};
use crate::{dir, file};

/// The longest entry that is read.
const ENTRY_BYTES_MAX: u64 = 4096;

/// The bit that makes a mark too large for a number that somebody would set on purpose.
const MARK_BIT: u64 = 1 << 61;

/// A process tree that a controller started: everything by which its processes are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredTree {
    /// The process table that the numbers belong to, by [`proc::table_name`].
    pub table: String,
    /// The process that supervises the program.
    pub supervisor: ProcessIdentity,
    /// The program, which leads its own session; where it has a PID namespace, the init of that.
    pub program: ProcessIdentity,
    /// The mark that the program passes on to all it starts, unless the kernel refused it.
    pub mark: Option<u64>,
}

/// The directory with one file per running tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRegister {
    dir: PathBuf,
}

/// The entry of one tree, which stays until it is struck out.
#[derive(Debug)]
pub struct RegisterEntry {
    path: PathBuf,
}

impl ProcessRegister {
    /// Returns the register in this directory, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> ProcessRegister {
        ProcessRegister { dir: dir.into() }
    }

    /// Returns the directory of the entries.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns whether a controller that keeps a register has worked here.
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Makes the directory.
    pub fn open(&self) -> io::Result<()> {
        dir::create_private(&self.dir)
    }

    /// Enters a tree. When this returns, no kill of any process can lose the entry.
    pub fn enter(&self, tree: &RegisteredTree) -> io::Result<RegisterEntry> {
        self.open()?;
        let ProcessIdentity { pid, start_time } = tree.supervisor;
        let path = self.dir.join(format!("{pid}-{start_time}.json"));
        fs::write(&path, serde_json::to_vec(tree)?)?;
        Ok(RegisterEntry { path })
    }

    /// Returns the trees that were entered on this process table and not struck out. An entry that
    /// can't be read was being written, so its program never ran.
    pub fn trees(&self) -> Vec<RegisteredTree> {
        let table = proc::table_name();
        let names = dir::names(&self.dir).unwrap_or_default();
        let read = |name: &String| file::read_capped(&self.dir.join(name), ENTRY_BYTES_MAX).ok();
        let trees = names.iter().filter_map(read);
        let trees = trees.filter_map(|bytes| serde_json::from_slice(&bytes).ok());
        trees.filter(|tree: &RegisteredTree| tree.table == table).collect()
    }

    /// Strikes out every entry: nothing is left of any tree.
    pub fn clear(&self) {
        for name in dir::names(&self.dir).unwrap_or_default() {
            // An entry that stays names processes that are gone, which the next sweep sees.
            let _next_time = dir::remove_file(&self.dir.join(name));
        }
    }
}

impl RegisterEntry {
    /// Strikes the tree out, because nothing of it is left.
    pub fn strike(self) {
        // An entry that stays names processes that are gone, which the next sweep sees.
        let _next_time = dir::remove_file(&self.path);
    }
}

/// Returns a mark for one tree: a value of a limit that Linux keeps and passes on but has not
/// applied since 2.4 (`RLIMIT_LOCKS`). It is inherited through every fork, exec, `setsid` and
/// emptied environment, and shows in `/proc/<pid>/limits`.
pub fn new_mark() -> u64 {
    use std::hash::BuildHasher;
    (std::hash::RandomState::new().hash_one(std::process::id()) >> 3) | MARK_BIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pid: i32) -> RegisteredTree {
        let id = |pid| ProcessIdentity { pid, start_time: 5 };
        RegisteredTree {
            table: proc::table_name(),
            supervisor: id(pid),
            program: id(pid + 1),
            mark: Some(new_mark()),
        }
    }

    #[test]
    fn a_tree_is_registered_until_it_is_struck_out() {
        let temp = tempfile::tempdir().unwrap();
        let register = ProcessRegister::at(temp.path().join("processes"));
        assert!(!register.exists() && register.trees().is_empty());
        let entry = register.enter(&tree(7)).unwrap();
        register.enter(&tree(9)).unwrap();
        assert_eq!(register.trees().len(), 2);
        entry.strike();
        let left: Vec<i32> = register.trees().iter().map(|tree| tree.supervisor.pid).collect();
        assert_eq!(left, [9]);
        register.clear();
        assert!(register.exists() && register.trees().is_empty());
    }

    #[test]
    fn c16_after_a_reboot_no_entry_counts_and_a_torn_one_is_passed_over() {
        let temp = tempfile::tempdir().unwrap();
        let register = ProcessRegister::at(temp.path());
        register.enter(&RegisteredTree { table: "another boot".into(), ..tree(7) }).unwrap();
        fs::write(temp.path().join("9-5.json"), "{\"table\":\"").unwrap();
        assert_eq!(register.trees(), []);
    }

    #[test]
    fn marks_differ_and_are_no_number_that_somebody_sets() {
        let (one, other) = (new_mark(), new_mark());
        assert!(one != other && (MARK_BIT..MARK_BIT << 1).contains(&one));
    }
}

//! The path sockets of other programs, which a read-only mount does not protect: `connect` is no
//! write to a file system.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Returns the paths to which a socket of this network namespace is bound.
///
/// It does not tell of sockets that were bound by a relative path, that have a second name (a hard
/// link, a bind mount), that belong to another network namespace, or that come into being later.
/// So the directories where services put theirs are covered as a whole.
pub fn bound() -> BTreeSet<PathBuf> {
    std::fs::read_to_string("/proc/net/unix").map(|table| paths(&table)).unwrap_or_default()
}

/// Reads the table of the kernel: seven columns, then the path, which may hold spaces. The path of
/// an abstract socket begins with `@`.
fn paths(table: &str) -> BTreeSet<PathBuf> {
    const COLUMNS: usize = 7;
    let path = |line: &str| {
        let mut rest = line;
        for _ in 0..COLUMNS {
            rest = rest.trim_start_matches(' ').split_once(' ')?.1;
        }
        let path = rest.trim_start_matches(' ');
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    table.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_with_a_path_are_named() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
             0000000000000000: 00000002 00000000 00010000 0001 01  1234 /run/docker.sock\n\
             0000000000000000: 00000003 00000000 00000000 0001 03  1235\n\
             0000000000000000: 00000002 00000000 00000000 0002 01 12361 /home/a b/log\n\
             0000000000000000: 00000002 00000000 00010000 0001 01  1237 @/tmp/.X11-unix/X0\n";
        let expected = ["/run/docker.sock", "/home/a b/log"].map(PathBuf::from);
        assert_eq!(paths(table), BTreeSet::from(expected));
    }

    #[test]
    fn a_socket_of_ours_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("listens");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(bound().contains(&path));
    }
}

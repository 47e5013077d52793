//! Tests of reading and writing files.

use super::*;
use std::os::unix::fs::symlink;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn links_are_made_in_the_directory_and_replace_nothing() {
    let root = tempfile::tempdir().unwrap();
    let dir = Dir::open(root.path()).unwrap();
    std::fs::write(root.path().join("there"), "kept").unwrap();
    dir.link("new", Path::new("../elsewhere")).unwrap();
    dir.link("there", Path::new("../elsewhere")).unwrap();
    assert_eq!(std::fs::read_link(root.path().join("new")).unwrap(), Path::new("../elsewhere"));
    assert_eq!(std::fs::read_to_string(root.path().join("there")).unwrap(), "kept");
    let error = dir.link("../out", Path::new("x")).unwrap_err();
    assert!(matches!(error, FileError::Name { .. }), "{error}");
}

#[test]
fn what_lies_behind_a_link_is_neither_read_nor_written() {
    let root = tempfile::tempdir().unwrap();
    let (inside, outside) = (root.path().join("in"), root.path().join("out"));
    for dir in [&inside, &outside] {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("file"), "text").unwrap();
    }
    std::os::unix::fs::symlink(&outside, inside.join("dir")).unwrap();
    std::os::unix::fs::symlink(outside.join("file"), inside.join("link")).unwrap();
    let dir = Dir::open(&inside).unwrap();
    assert_eq!(dir.read_capped(Path::new("file"), 4).unwrap(), b"text");
    assert!(matches!(dir.read_capped(Path::new("file"), 3), Err(FileError::TooLarge { .. })));
    for path in ["dir/file", "link", "../out/file"] {
        assert!(dir.read_capped(Path::new(path), 99).is_err(), "{path}");
    }
    assert!(dir.rewrite(Path::new("dir/file"), b"new").is_err());
    assert!(dir.rewrite(Path::new("../out/file"), b"new").is_err());
    // A link itself may be replaced; what it led to stays.
    dir.rewrite(Path::new("link"), b"new").unwrap();
    assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"text");
    assert_eq!(dir.read_capped(Path::new("link"), 99).unwrap(), b"new");
}

#[test]
fn of_a_long_file_both_ends_are_read_and_no_byte_twice() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "0123456789").unwrap();
    std::os::unix::fs::symlink("file", root.path().join("link")).unwrap();
    let dir = Dir::open(root.path()).unwrap();
    let ends = |head_max, tail_max| {
        let ends = dir.read_ends(Path::new("file"), head_max, tail_max).unwrap();
        assert_eq!(ends.bytes, 10);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(ends.head), text(ends.tail))
    };
    assert_eq!(ends(4, 3), ("0123".into(), "789".into()));
    assert_eq!(ends(4, 9), ("0123".into(), "456789".into()));
    assert_eq!(ends(10, 3), ("0123456789".into(), String::new()));
    assert!(dir.read_ends(Path::new("link"), 4, 4).is_err());
    assert!(dir.read_ends(Path::new("../file"), 4, 4).is_err());
}

#[test]
fn a_program_stays_one_when_it_is_written_anew() {
    let root = tempfile::tempdir().unwrap();
    let program = root.path().join("run.sh");
    std::fs::write(&program, "old").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let dir = Dir::open(root.path()).unwrap();
    dir.rewrite(Path::new("run.sh"), b"new").unwrap();
    dir.rewrite(Path::new("new/file"), b"x").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o111;
    assert_eq!(mode(&program), 0o111);
    assert_eq!(mode(&root.path().join("new/file")), 0);
}

#[test]
fn a_file_is_replaced_whole_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    write_atomic(&path, b"one").unwrap();
    write_atomic(&path, b"two").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    assert_eq!(names(dir.path()), ["state.json"]);
}

#[test]
fn readers_never_see_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("view");
    write_atomic(&path, &[b'a'; 100_000]).unwrap();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            for round in 0..50u8 {
                write_atomic(&path, &vec![b'a' + round % 2; 100_000]).unwrap();
            }
        }
    });
    while !writer.is_finished() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == bytes[0]));
    }
    writer.join().unwrap();
}

#[test]
fn a_failed_write_leaves_the_old_content_and_no_litter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("taken");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("x"), "").unwrap();
    let error = write_atomic(&path, b"new").unwrap_err();
    assert!(error.to_string().starts_with("cannot write `"), "{error}");
    assert_eq!(names(dir.path()), ["taken"]);
}

#[test]
fn d09_a_directory_replaced_by_a_link_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    symlink(outside.path(), &logs).unwrap();
    for result in [
        write_atomic(&logs.join("a"), b"x"),
        append(&logs.join("a")).map(drop),
        Dir::open(dir.path()).unwrap().write_atomic(Path::new("logs/a"), b"x"),
        Dir::open(dir.path()).unwrap().write_atomic(Path::new("logs/deep/a"), b"x"),
        Dir::open(dir.path()).unwrap().append(Path::new("logs/a")).map(drop),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, FileError::Link { .. }), "{error}");
    }
    assert!(names(outside.path()).is_empty());
}

#[test]
fn d09_a_link_in_place_of_the_file_is_not_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::fs::write(&target, "precious").unwrap();
    let link = dir.path().join("link");
    symlink(&target, &link).unwrap();
    assert!(matches!(append(&link), Err(FileError::Link { .. })));
    write_atomic(&link, b"new").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert_eq!(std::fs::read(&link).unwrap(), b"new");
}

#[test]
fn a_path_out_of_the_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = Dir::open(dir.path()).unwrap();
    for path in ["../x", "a/../../x", "/etc/x", ".."] {
        assert!(root.write_atomic(Path::new(path), b"").is_err(), "{path}");
    }
    root.write_atomic(Path::new("a/b/c"), b"deep").unwrap();
    assert_eq!(std::fs::read(dir.path().join("a/b/c")).unwrap(), b"deep");
}

#[test]
fn appends_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    append(&path).unwrap().write_durable(b"one\n").unwrap();
    append(&path).unwrap().write_durable(b"two\n").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    let full = append(Path::new("/dev/full")).unwrap().write(b"x").unwrap_err();
    assert!(full.to_string().contains("append to `/dev/full`"));
}

#[test]
fn a_read_is_capped_and_does_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big");
    std::fs::write(&path, [0; 100]).unwrap();
    assert_eq!(read_capped(&path, 100).unwrap().len(), 100);
    assert!(matches!(read_capped(&path, 99), Err(FileError::TooLarge { bytes_max: 99, .. })));
    assert!(matches!(read_capped(Path::new("/dev/zero"), 10), Err(FileError::TooLarge { .. })));
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(read_capped(&fifo, 10).unwrap(), b"");
}

#[test]
fn temporary_files_of_dead_processes_are_swept_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let dead = 4_194_305; // More than a process number can be.
    let live = std::process::id();
    let gone = [
        format!(".state.json.{dead}.18a.3.tmp"),
        format!("deep/.note.json.{dead}.ff.0.tmp"),
        format!("autopilot.db.{dead}-0.tmp"),
        format!("autopilot.db.{dead}-0.tmp-wal"),
        format!("autopilot.db.{dead}-0.tmp-journal"),
    ];
    let kept = [
        format!(".state.json.{live}.18a.3.tmp"),
        "notes.tmp".to_owned(),
        ".x.y.z.tmp".to_owned(),
        format!(".state.json.{dead}.18a.3"),
    ];
    std::fs::create_dir(temp.path().join("deep")).unwrap();
    for name in gone.iter().chain(&kept) {
        std::fs::write(temp.path().join(name), "").unwrap();
    }
    assert_eq!(sweep_temporary(temp.path(), 0), 4);
    assert_eq!(sweep_temporary(temp.path(), 1), 1);
    for name in &gone {
        assert!(!temp.path().join(name).exists(), "{name}");
    }
    for name in &kept {
        assert!(temp.path().join(name).exists(), "{name}");
    }
}
